"""`rye help`: a verb's help, a tool's own help from its signed schema, and the manual page, all from what the parsers say."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rye.cli import terminal, words
from rye.cli.shared import EXIT_OK, Verb, add_common_options, harmless, print_json, printable, project_of
from rye.items import schema

_EPILOG = """\
examples:
  rye help                   the verbs
  rye help execute           a verb; so does `rye execute --help`
  rye help edit_lines        a tool: its parameters, and what its signed text says; so does `rye edit_lines --help`
  rye help --man > rye.1     the manual page
"""
_WIDTH = 100
_INDENT = 2
_OPTIONS = "--params JSON|@file|-, --project DIR, --dry-run, --json, --color WHEN; `rye help execute` explains them."


def _build(parser: argparse.ArgumentParser) -> None:
    parser.usage = "rye help [VERB | TOOL] [--man] [--project DIR] [--json]"
    parser.epilog = _EPILOG
    parser.add_argument("name", nargs="?", metavar="VERB | TOOL", help="a verb, or a tool's id or short name")
    parser.add_argument("--man", action="store_true", help="print the manual page of rye, in the form that `man` reads")
    add_common_options(parser, "print a tool's schema, or the verbs, as JSON and nothing else")


def _run(args: argparse.Namespace) -> int:
    from rye.cli import main

    if args.man:
        print(manual(), end="")
    elif args.name is None and args.json:
        print_json({"verbs": main.summaries()})
    elif args.name is None:
        main.top_parser().print_help()
    elif args.name in main.verb_names():
        main.parser_of(args.name, main.verb_of(args.name)).print_help()
    else:
        project = project_of(args.project)
        item_id = words.tool_id(args.name, project)
        if item_id is None:
            raise words.unknown_verb(args.name, project)
        _print_tool(args.name, item_id, project, as_json=args.json)
    return EXIT_OK


def explain_tool(typed: Sequence[str], *, short: bool) -> int:
    """Print the help of the tool in the words of a call with `--help`; return the exit code.

    Raises:
        RyeError: the tool is not there, or not verified; nothing of its text is shown then.
    """
    from rye.cli import main

    parser = main.parser_of("execute", main.verb_of("execute"))
    args = main.parsed(parser, [word for word in typed if word not in ("-h", "--help")])
    terminal.choose(args.color or "auto")
    project = project_of(args.project)
    item_id = words.tool_id(args.item_id, project)
    if item_id is None and short:
        raise words.unknown_verb(args.item_id, project)
    _print_tool(args.item_id, item_id or args.item_id, project, as_json=args.json)
    return EXIT_OK


def _print_tool(called: str, item_id: str, project: str, *, as_json: bool) -> None:
    from rye.executor import executor

    ready = executor.prepare(item_id, project).ready
    tool = ready.tool
    if as_json:
        print_json({"item_id": tool.id, "version": tool.version, "description": tool.description, "parameters": tool.schema})
        return
    width = min(terminal.columns(sys.stdout) or _WIDTH, _WIDTH + 28)
    for line in _tool_lines(called, tool.id, tool.version, tool.description, tool.docstring, tool.schema, width):
        print(line)


def _tool_lines(
    called: str, item_id: str, version: str, description: str, docstring: str, parameters_schema: Mapping[str, Any], width: int
) -> Iterator[str]:
    first, _, rest = docstring.strip().partition("\n")
    yield f"{terminal.styled('usage:', 'heading', sys.stdout)} rye {printable(called)} {usage(parameters_schema)}"
    yield ""
    yield harmless(description or first)
    yield terminal.styled(printable(f"{item_id}, version {version}"), "faint", sys.stdout)
    properties = parameters_schema.get("properties", {})
    if properties:
        yield ""
        yield terminal.styled("parameters:", "heading", sys.stdout)
        yield from _parameters(parameters_schema, _INDENT, width)
    text = harmless(f"{'' if first.rstrip('.') == description.rstrip('.') else first}\n{rest}".strip())
    if text:
        yield ""
        yield text
    yield ""
    yield from textwrap.wrap(f"options: {_OPTIONS}", width, subsequent_indent="  ")


def usage(parameters_schema: Mapping[str, Any]) -> str:
    """Return the words of a call: the parameters that bare values fill, in capitals, and whether there are others."""
    required = parameters_schema.get("required", ())
    positional = words.positions(parameters_schema)
    shown = [name.upper() if name in required else f"[{name.upper()}]" for name in positional]
    more = any(name not in positional for name in parameters_schema.get("properties", {}))
    return " ".join([*shown, *(["[name=value …]"] if more else [])])


def _parameters(parameters_schema: Mapping[str, Any], indent: int, width: int) -> Iterator[str]:
    """Yield a line for each parameter, and below it those of its members."""
    properties = {
        name: part if isinstance(part, dict) else {} for name, part in parameters_schema.get("properties", {}).items()
    }
    column = min(max(map(len, properties), default=0), 24) + indent + 2
    for name, part in properties.items():
        facts = _facts(part, required=name in parameters_schema.get("required", ()))
        about = " ".join(filter(None, (str(part.get("description", "")).strip(), f"({facts})")))
        lines = textwrap.wrap(printable(about), max(width - column, 30)) or [""]
        yield f"{' ' * indent}{printable(name).ljust(column - indent)}{lines[0]}"
        yield from (" " * column + line for line in lines[1:])
        below = part.get("items") if part.get("type") == "array" else part
        if isinstance(below, dict) and isinstance(below.get("properties"), dict) and indent < 3 * _INDENT:
            yield from _parameters(below, indent + _INDENT, width)


def _facts(part: Mapping[str, Any], *, required: bool) -> str:
    kind = part.get("type", "any")
    plain = {"string": "text", "array": "list", "boolean": "true or false", "integer": "whole number"}
    kinds = [plain.get(str(one), str(one)) for one in (kind if isinstance(kind, list) else [kind])]
    facts = ["required"] if required else []
    if "enum" in part:
        facts.append(" | ".join(map(str, part["enum"])))
    else:
        facts.append("path" if part.get("format") == schema.WORKSPACE_PATH else " or ".join(kinds))
    if "minimum" in part or "maximum" in part:
        facts.append(f"{part.get('minimum', '…')} to {part.get('maximum', '…')}")
    if "default" in part:
        facts.append(f"default {json.dumps(part['default'], ensure_ascii=False)}")
    return ", ".join(facts)


_SECTIONS = {
    "EXIT STATUS": """\
0    success
1    the tool, or the check, said no
2    usage: the call itself is wrong; nothing was done
3    refused by trust: a signature, a key or a lockfile
130  ended by Ctrl-C
141  the reader of a pipe went away""",
    "ENVIRONMENT": """\
USER_SPACE       the folder whose .ai holds your keys, trust, settings and state (default: the home)
RYE_SIGNING_KEY  a private key file to sign with
RYE_MCP_TOKEN    the token of `rye mcp --http`
NO_COLOR, FORCE_COLOR, COLUMNS  no colours, colours in a pipe too, the width of a terminal; --color WHEN wins""",
    "FILES": """\
.ai/                      a project's items; its keys count only after you approved them
~/.ai/config/rye.yaml     your settings
~/.ai/trusted_keys/       the keys that you trust
~/.ai/state/              what was changed, for undo; jobs; stored output""",
    "SEE ALSO": "`rt --help`: the same tools by line number, in short words. `rye search WORDS` searches the documentation.",
}


def manual() -> str:
    """Return the manual page of the command, in the man(7) form, made of what the parsers say."""
    from rye._version import __version__
    from rye.cli import main

    lines = [
        '.\\" Made by `rye help --man`.',
        f'.TH RYE 1 "" "rye {__version__}"',
        ".SH NAME",
        r"rye \- signed workspace tools for coding agents",
        ".SH SYNOPSIS",
        r".B rye\fR VERB …",
        ".br",
        r".B rye\fR TOOL [\fIvalue\fR | \fIname\fR=\fIvalue\fR …]",
        ".SH DESCRIPTION",
        *_roff(
            "A tool is one signed file. `rye TOOL …` runs one: bare values fill its required parameters, others are name=value."
        ),
        *_roff("`name=@file` gives a file's text, `name:=json` a JSON value. `rye help TOOL` lists a tool's parameters."),
        ".SH VERBS",
    ]
    for name in main.verb_names():
        lines += _verb_lines(name, main.verb_of(name))
    for heading, text in _SECTIONS.items():
        lines += [f".SH {heading}", ".nf", *_roff(text), ".fi"]
    return "\n".join(lines) + "\n"


def _verb_lines(name: str, verb: Verb) -> list[str]:
    from rye.cli import main

    parser = main.parser_of(name, verb)
    lines = [f".SS rye {name}", *_roff(verb.summary)]
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way
        if action.help is argparse.SUPPRESS or "--help" in action.option_strings or main.COLOR_OPTION in action.option_strings:
            continue
        shown = ", ".join(action.option_strings)
        metavar = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest)
        value = "" if action.nargs == 0 else f" {metavar}"
        lines += [".TP", rf"\fB{_escaped(shown)}\fR{_escaped(value)}", *_roff(str(action.help or ""))]
    if parser.epilog:
        lines += [".PP", ".nf", *_roff(parser.epilog), ".fi"]
    return lines


def _roff(text: str) -> list[str]:
    # A line that begins with a dot or an apostrophe would be a request.
    return [rf"\&{line}" if line[:1] in (".", "'") else line for line in _escaped(text).split("\n")]


def _escaped(text: str) -> str:
    return text.replace("\\", r"\e").replace("-", r"\-")


VERBS = {"help": Verb("Say what a verb or a tool does, and print the manual page.", _build, _run)}

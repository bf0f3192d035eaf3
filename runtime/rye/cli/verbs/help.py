"""`rye help`: a verb's help, a tool's own help from its signed schema."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from rye.cli import options, pages, terminal, words
from rye.cli.process import EXIT_OK
from rye.cli.shared import project_of
from rye.cli.table import VERBS
from rye.cli.terminal import harmless, print_json, printable
from rye.items import schema
from rye.items.parse import Tool

_WIDTH = 100
_INDENT = 2
_OPTIONS = "--params JSON|@file|-, --project DIR, --dry-run, --json, --color WHEN; `rye help execute` explains them."


def run_help(args: SimpleNamespace) -> int:
    """Run `rye help`; return its exit code."""
    if args.man:
        print(pages.manual(), end="")
    elif args.name is None and args.json:
        print_json({"verbs": {name: verb.summary for name, verb in VERBS.items()}})
    elif args.name is None:
        print(pages.overview())
    elif args.name in VERBS:
        print(pages.of_verb(f"rye {args.name}", VERBS[args.name]))
    else:
        _print_tool(args.name, args, short=True)
    return EXIT_OK


def explain_tool(typed: Sequence[str], *, short: bool) -> int:
    """Print the help of the tool in the words of a call with `--help`; return the exit code.

    Raises:
        RyeError: the tool is not there, or not verified; nothing of its text is shown then.
    """
    args = options.parse("rye execute", VERBS["execute"], [word for word in typed if word not in ("-h", "--help")])
    terminal.choose(args.color)
    _print_tool(args.item_id, args, short=short)
    return EXIT_OK


def _print_tool(called: str, args: SimpleNamespace, *, short: bool) -> None:
    from rye.executor import executor

    project = project_of(args.project)
    item_id = words.tool_id(called, project)
    if item_id is None and short:
        raise words.unknown_verb(called, project)
    tool = executor.prepare(item_id or called, project).ready.tool
    if args.json:
        print_json({"item_id": tool.id, "version": tool.version, "description": tool.description, "parameters": tool.schema})
        return
    for line in _tool_lines(called, tool, min(terminal.columns(sys.stdout) or _WIDTH, _WIDTH + 28)):
        print(line)


def _tool_lines(called: str, tool: Tool, width: int) -> Iterator[str]:
    first, _, rest = tool.docstring.strip().partition("\n")
    yield f"{terminal.styled('usage:', 'heading', sys.stdout)} rye {printable(called)} {words.usage(tool.schema)}"
    yield ""
    yield harmless(tool.description or first)
    yield terminal.styled(printable(f"{tool.id}, version {tool.version}"), "faint", sys.stdout)
    if tool.schema.get("properties"):
        yield ""
        yield terminal.styled("parameters:", "heading", sys.stdout)
        yield from _parameters(tool.schema, _INDENT, width)
    if tool.letters:
        stand = ", ".join(f"-{k} {f'--{v}'.replace('_', '-') if v else '(always so)'}" for k, v in tool.letters.items())
        yield from textwrap.wrap(f"{' ' * _INDENT}letters: {printable(stand)}", width, subsequent_indent="    ")
    text = harmless(f"{'' if first.rstrip('.') == tool.description.rstrip('.') else first}\n{rest}".strip())
    if text:
        yield ""
        yield text
    yield ""
    yield from textwrap.wrap(f"options: {_OPTIONS}", width, subsequent_indent="  ")


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

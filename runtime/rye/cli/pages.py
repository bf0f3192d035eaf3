"""What a command says of itself: its verbs, a verb's help, the manual page; all made of the table of verbs."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from rye.cli import options
from rye.cli.options import Option, Verb
from rye.cli.table import VERBS

# A column of help is no wider; a longer form has its text below.
_WIDEST = 26
_NARROWEST = 40
_EPILOG = """\
examples:
  rye tools                              what can be run here
  rye read README.md limit=20            a tool by its short name, here rye/file-system/read
  rye help grep                          what a verb or a tool does, and its parameters
  rye verify --all                       check every item

Exit codes: 0 success, 1 the tool said no, 2 usage, 3 refused by trust; 130 Ctrl-C, 141 the reader of a pipe went away;
of `rye bash` the command's own.
Colours: --color auto|always|never before or behind the verb, NO_COLOR, FORCE_COLOR. The project is the nearest folder above
with .git, or with items in .ai."""


def front(command: str, words: Sequence[str], overview: str) -> int:
    """Print a command's version, or what it is, as its words ask; return the exit code."""
    from rye._version import __version__

    print(f"{command} {__version__}" if words[:1] in (["-V"], ["--version"]) else overview)
    return 0 if words else 2


def overview() -> str:
    """Return the help of the command `rye`."""
    usage = "usage: rye VERB …\n       rye TOOL [value | name=value …]\n\nSigned workspace tools for coding agents."
    return f"{usage}\n\n{verbs_and(VERBS, _EPILOG)}"


def verbs_and(verbs: Mapping[str, Verb], notes: str) -> str:
    """Return the list of a command's verbs, with notes behind it."""
    lines = "\n".join(f"  {name:<11} {verb.summary}" for name, verb in verbs.items())
    return f"verbs:\n{lines}\n\n{notes}"


def of_verb(called: str, verb: Verb) -> str:
    """Return the help of a verb."""
    width = max(shutil.get_terminal_size((100, 24)).columns, _NARROWEST)
    # A space that does not break keeps an option and its value together.
    pieces = options.usage(called, verb).replace(" [", "\n[").replace(" ", "\xa0").replace("\n", " ") if not verb.usage else ""
    lines = textwrap.wrap(
        f"usage: {pieces}", width, subsequent_indent="       ", break_on_hyphens=False, break_long_words=False
    )
    head = "\n".join(lines).replace("\xa0", " ") if pieces else f"usage: {verb.usage}"
    out = [head, "", f"{verb.summary[:1].upper()}{verb.summary[1:]}."]
    for heading, listed in (
        ("words", [one for one in verb.options if not one.names]),
        ("options", [*(one for one in verb.options if one.names), options.COLOR, options.HELP]),
    ):
        out += ["", f"{heading}:", *_rows(listed, width)] if listed else []
    return "\n".join([*out, *(["", verb.notes] if verb.notes else [])])


def _rows(listed: Sequence[Option], width: int) -> Iterator[str]:
    forms = [one.form if one.names else options.shown(one) for one in listed]
    column = min(max(map(len, forms)), _WIDEST) + 4
    for form, one in zip(forms, listed, strict=True):
        about = textwrap.wrap(one.about, max(width - column, 30))
        first = f"  {form}"
        if len(first) + 2 > column:
            yield first
        else:
            yield f"{first:<{column}}{about.pop(0)}"
        yield from (" " * column + line for line in about)


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
    """Return the manual page of the command, in the man(7) form, made of the table of verbs."""
    from rye._version import __version__

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
    for name, verb in VERBS.items():
        lines += [f".SS rye {name}", ".nf", *_roff(of_verb(f"rye {name}", verb)), ".fi"]
    for heading, text in _SECTIONS.items():
        lines += [f".SH {heading}", ".nf", *_roff(text), ".fi"]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> list[str]:
    # A line that begins with a dot or an apostrophe would be a request.
    lines = text.replace("\\", r"\e").replace("-", r"\-").split("\n")
    return [rf"\&{line}" if line[:1] in (".", "'") else line for line in lines]

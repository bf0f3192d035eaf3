"""The command `rye`: parse, call one function, print. A verb's module is loaded when it is used."""

from __future__ import annotations

import sys

from rye.cli import process

# As `typing` has it, see `process`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def command() -> NoReturn:
    """Be the installed command `rye`."""
    process.run(main)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    return process.run_command("rye", lambda: _run(words), as_json="--json" in words)


def _run(words: list[str]) -> int:
    from importlib import import_module

    from rye.cli import options, terminal
    from rye.cli.table import VERBS

    when, words = options.color_before(words)
    terminal.choose(when)
    if not words or words[0] in ("-h", "--help", "-V", "--version"):
        from rye.cli import pages

        return pages.front("rye", words, pages.overview())
    if words[0][:1] == "-" and words[0] != "--":
        raise options.unknown("rye", words[0], ("--help", "--version", "--color"))
    # A tool by its short name or id: `rye read …` is `rye execute read …`.
    short = words[0] not in VERBS
    name, rest = ("execute", words) if short else (words[0], words[1:])
    before = rest[: rest.index("--")] if "--" in rest else rest
    if name == "execute" and {"-h", "--help"} & {*before} and any(word[:1] != "-" for word in before):
        from rye.cli.verbs import help as cli_help

        return cli_help.explain_tool(before, short=short)
    args = options.parse(f"rye {words[0]}", VERBS[name], rest)
    if args.help:
        from rye.cli import pages

        print(pages.of_verb(f"rye {name}", VERBS[name]))
        return 0
    args.short = short
    terminal.choose(args.color or when)
    code: int = getattr(import_module(f"rye.cli.verbs.{VERBS[name].module}"), f"run_{name}")(args)
    return code

"""The command `rt`: short words for the SWE tools. Parse, call one signed tool through the executor, print.

rt open src/app.py:120        rt edit src/app.py 120 124 << 'EOF'
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import argparse

SUMMARIES = {
    "open": "show a window of a file: its first lines, around a line, or from one line to another",
    "scroll": "show the window below (+) or above (-) the last one of a file",
    "find": "find files by a part of their name, or by a glob",
    "grep": "search the files of a folder",
    "grep-file": "search one file",
    "edit": "replace lines by the text on standard input, or delete them",
    "insert": "insert the text on standard input before a line",
    "create": "make a new file of the text on standard input",
    "undo": "take back the last edit, or list edits",
    "completion": "completion of names for bash, zsh and fish",
}
_EPILOG = """\
examples:
  rt grep 'def total' src tests      path:line: text; -l for the names of the files alone
  rt open src/app.py:120             100 lines around line 120; :120-160 for exactly those
  rt edit src/app.py 120 124 << 'EOF'
  …new lines…
  EOF
  rt insert src/app.py 10 < header.txt
  rt undo

Paths are relative to the current folder, in answers to the project: the nearest folder above with .git, or with items in .ai.
Exit codes: 0 success, 1 nothing found, not applied or refused by the tool, 2 usage, 3 refused by trust.
Colours: --color auto|always|never before or behind the verb, NO_COLOR, FORCE_COLOR.
RAGIX_PROFILE=safe-read-only shows patches and applies none; RAGIX_ENABLE_SWE=0 turns rt off. `rt VERB --help` teaches one."""


def command() -> NoReturn:
    """Be the installed command `rt`."""
    from rye.cli import main as cli_main

    cli_main.run(main)


def find_command() -> NoReturn:
    """Be the installed command `rt-find`, which is `rt find`."""
    _alias("find")


def grep_command() -> NoReturn:
    """Be the installed command `rt-grep`, which is `rt grep`."""
    _alias("grep")


def _alias(verb: str) -> NoReturn:
    from rye.cli import main as cli_main

    cli_main.run(lambda: main([verb, *sys.argv[1:]]))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    # Not at the top: see the end of this file.
    from rye.cli import main as cli_main

    words = list(sys.argv[1:] if argv is None else argv)
    return cli_main.run_command("rt", lambda: _run(words), as_json="--json" in words)


def _run(words: list[str]) -> int:
    from rye.cli import main as cli_main

    when, words = cli_main.color_before(words)
    cli_main.choose_color(when)
    if words == ["--version"]:
        from rye._version import __version__

        print(f"rt {__version__}")
        return 0
    if not words or words[0] in ("-h", "--help"):
        verb_lines = "\n".join(f"  {name:<11} {summary}" for name, summary in SUMMARIES.items())
        print(f"usage: rt [--version] [--help] VERB …\n\nverbs:\n{verb_lines}\n\n{_EPILOG}")
        return 0 if words else 2
    if words[0] == "help":
        return _run([*words[1:2], "--help"])
    if words[0] == "completion":
        from rye.cli.rt import completion

        return completion.run(words[1:])
    return _call(words, when)


def _parsed(words: list[str]) -> argparse.Namespace:
    from rye.cli import main as cli_main
    from rye.cli.rt.verbs import VERBS, parser_of

    name = words[0]
    if name not in VERBS:
        from rye.call.safe_text import nearest
        from rye.errors import UsageError

        close = nearest(name, SUMMARIES, 1)
        hint = f"Did you mean `rt {close[0]}`?" if close else f"Verbs: {', '.join(SUMMARIES)}."
        raise UsageError("unknown_verb", f"There is no verb {name!r}.", hint)
    args = cli_main.without_options(VERBS[name].plain, words[1:])
    if args is not None:
        return args
    parser = parser_of(name)
    parser.description = f"{SUMMARIES[name][0].upper()}{SUMMARIES[name][1:]}."
    return cli_main.parsed(parser, words[1:])


def _call(words: list[str], when: str | None) -> int:
    """Make the calls of a command, one after the other, and print each answer; `when` is what stood before it of colours."""
    from rye.cli import main as cli_main

    args = _parsed(words)
    cli_main.choose_color(getattr(args, "color", None) or when)
    from rye import api
    from rye.cli.rt import printing as rt_printing
    from rye.cli.rt.verbs import VERBS
    from rye.cli.shared import answer_stream, project_to_work_in

    args.project = project_to_work_in(args.project)
    with answer_stream() as answer:
        printing = rt_printing.Printing(answer, as_json=args.json, names_only=getattr(args, "files", False))
        verb = VERBS[words[0]]
        for parameters in verb.calls(args):
            following: dict[str, Any] | None = parameters
            while following is not None:
                response = api.execute(verb.tool, following, project_path=args.project)
                following = printing.show(words[0], response, following)
        printing.close()
    return printing.code


if __name__ == "__main__":
    # `-m` puts the current folder first on the path, where a project could offer modules of its own.
    if sys.path and not sys.flags.safe_path:
        del sys.path[0]
    command()

"""The command `rt`: short words for the SWE tools. Parse, call one signed tool through the executor, print.

rt open src/app.py:120        rt edit src/app.py 120 124 << 'EOF'
"""

from __future__ import annotations

import sys

# As `typing` has it, see `process`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

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
    from rye.cli import process

    process.run(main)


def find_command() -> NoReturn:
    """Be the installed command `rt-find`, which is `rt find`."""
    _alias("find")


def grep_command() -> NoReturn:
    """Be the installed command `rt-grep`, which is `rt grep`."""
    _alias("grep")


def _alias(verb: str) -> NoReturn:
    from rye.cli import process

    process.run(lambda: main([verb, *sys.argv[1:]]))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    # Not at the top: see the end of this file.
    from rye.cli import process

    words = list(sys.argv[1:] if argv is None else argv)
    return process.run_command("rt", lambda: _run(words), as_json="--json" in words)


def _run(words: list[str]) -> int:
    from rye.cli import options, terminal
    from rye.cli.rt.verbs import VERBS

    when, words = options.color_before(words)
    if not words or words[0] in ("-h", "--help", "-V", "--version"):
        from rye.cli import pages

        return pages.front("rt", words, f"usage: rt [--version] [--help] VERB …\n\n{pages.verbs_and(VERBS, _EPILOG)}")
    if words[0] == "help":
        return _run([*words[1:2], "--help"])
    if words[0] not in VERBS:
        from rye.call.safe_text import nearest
        from rye.errors import UsageError

        close = nearest(words[0], VERBS, 1)
        hint = f"Did you mean `rt {close[0]}`?" if close else f"Verbs: {', '.join(VERBS)}."
        raise UsageError("unknown_verb", f"There is no verb {words[0]!r}.", hint)
    args = options.parse(f"rt {words[0]}", VERBS[words[0]], words[1:])
    if args.help:
        from rye.cli import pages

        print(pages.of_verb(f"rt {words[0]}", VERBS[words[0]]))
        return 0
    terminal.choose(args.color or when)
    if words[0] == "completion":
        from rye.cli.verbs import completion

        return completion.printed("rt", args, lambda typed: completion.candidates(typed, VERBS))
    return _call(words[0], args)


def _call(name: str, args: Any) -> int:
    """Make the calls of a verb, one after the other, and print each answer."""
    from rye import api
    from rye.call.context import CallOptions
    from rye.cli.rt import printing as rt_printing
    from rye.cli.rt.verbs import CALLS, VERBS
    from rye.cli.shared import answer_stream, project_to_work_in

    args.project = project_to_work_in(args.project)
    options = CallOptions(writes_call=None if args.json else rt_printing.typed_call)
    with answer_stream() as answer:
        printing = rt_printing.Printing(answer, as_json=args.json, names_only=getattr(args, "files", False))
        for parameters in CALLS[name](args):
            following: dict[str, Any] | None = parameters
            while following is not None:
                response = api.execute(VERBS[name].module, following, project_path=args.project, options=options)
                following = printing.show(name, response, following)
        printing.close()
    return printing.code


if __name__ == "__main__":
    # `-m` puts the current folder first on the path, where a project could offer modules of its own.
    if sys.path and not sys.flags.safe_path:
        del sys.path[0]
    command()

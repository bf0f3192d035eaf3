"""The command `rye`: parse, call one function, print. Sub-commands are loaded when they are used."""

from __future__ import annotations

import argparse
import io
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from rye import process_end
from rye.errors import RyeError, TrustError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rye.cli.verbs import Verb

# verb: (module, summary); the module's VERBS says the rest.
_VERBS = {
    "execute": ("execute_verb", "run a tool, such as rye/file-system/read"),
    "search": ("finding_verbs", "find tools, knowledge and directives by words"),
    "load": ("finding_verbs", "print an item, or copy it to your project or user space"),
    "mcp": ("mcp_verb", "serve the tools to an agent's client, or print its configuration"),
    "tools": ("tools_verb", "list the tools of a project, with schemas and signers"),
    "new": ("writing_verbs", "make a new tool to begin with"),
    "lint": ("writing_verbs", "check that tools are well made"),
    "prompt": ("prompt_verb", "print a directive's instructions, such as swe, for an agent's system prompt"),
    "verify": ("signing_verbs", "check signatures of items and files"),
    "sign": ("signing_verbs", "sign items and files"),
    "trust": ("trust_verbs", "decide whose items may run"),
    "bundle": ("bundle_verbs", "create, verify or inspect a bundle's manifest"),
    "lock": ("bundle_verbs", "pin a tool to the digests of its chain"),
    "completion": ("completion_verb", "completion of names for bash, zsh and fish"),
    "keys": ("signing_verbs", "make or show your own key"),
    "registry": ("registry_verb", "share signed items: push, pull, search, inspect"),
}
_EPILOG = """\
examples:
  rye tools                                             what can be run here
  rye execute rye/file-system/read file_path=README.md  read a file with line IDs
  rye verify --all                                      check every item

Exit codes: 0 success, 1 the tool said no, 2 usage, 3 refused by trust.
`rye VERB --help` teaches a verb. The project is the nearest folder above that holds .ai or .git."""


def _top_parser() -> argparse.ArgumentParser:
    from rye import __version__

    listed = "\n".join(f"  {name:<10} {summary}" for name, (_, summary) in _VERBS.items())
    parser = argparse.ArgumentParser(
        prog="rye",
        usage="rye [--version] [--help] VERB …",
        description=f"Signed workspace tools for coding agents.\n\nverbs:\n{listed}",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"rye {__version__}")
    parser.add_argument("verb", nargs="?", help=argparse.SUPPRESS)
    return parser


def _verb(name: str) -> Verb:
    if name not in _VERBS:
        from rye.toolkit.suggest import nearest

        close = nearest(name, _VERBS, 1)
        raise UsageError(
            "unknown_verb",
            f"There is no verb {name!r}.",
            f"Did you mean {close[0]!r}?" if close else f"Verbs: {', '.join(_VERBS)}.",
        )
    found: Verb = import_module(f"rye.cli.{_VERBS[name][0]}").VERBS[name]
    return found


def verb_names() -> list[str]:
    """Return the verbs."""
    return list(_VERBS)


def option_names(verb: str) -> list[str]:
    """Return the options of a verb; [] for one that does not exist."""
    if verb not in _VERBS:
        return []
    parser = argparse.ArgumentParser()
    _verb(verb).build(parser)
    return [word for action in parser._actions for word in action.option_strings]  # noqa: SLF001 - argparse has no other way


def command() -> NoReturn:
    """Be the installed command `rye`."""
    process_end.run(main)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    return at_the_door("rye", lambda: _run(words), as_json="--json" in words)


def at_the_door(command: str, run: Callable[[], int], *, as_json: bool = False) -> int:
    """Do what a command was asked for; return its exit code.

    Whatever goes wrong is said in one line on standard error; with `as_json` a refusal is JSON on standard output, too.
    """
    _mend_streams()
    _forget_folder_on_path()
    try:
        return _answered(command, run, as_json=as_json)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader went away (`| head`); what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as err:
        print(f"{command}: {_told(err, _give_up_stdout())}", file=sys.stderr)
        return 1


def _told(err: OSError, unprinted: OSError | None) -> str:
    from rye.cli.verbs import UnprintedError

    unprinted = err if isinstance(err, UnprintedError) else unprinted
    if unprinted is not None:
        return f"The answer cannot be printed: {unprinted.strerror or unprinted}. What the command did, if anything, stands."
    where = f"{err.filename!r}: " if err.filename is not None else ""
    return f"{where}{err.strerror or err}. Check the folder, the disk and the permissions."


def _answered(command: str, run: Callable[[], int], *, as_json: bool) -> int:
    """Do it or refuse it. Nothing of the answer stays in a buffer, help neither: what cannot be printed is an error here."""
    try:
        return run()
    except RyeError as err:
        if as_json:
            from rye.cli.verbs import print_json

            details = {"details": err.details} if err.details else {}
            print_json({"status": "error", "error": str(err), "code": err.code, **details})
        print(f"{command}: {err}", file=sys.stderr)
        return 3 if isinstance(err, TrustError) else 2 if isinstance(err, UsageError) else 1
    finally:
        sys.stdout.flush()


def _run(words: list[str]) -> int:
    if not words or words[0].startswith("-"):
        parser = _top_parser()
        parser.parse_args(words)
        parser.print_help()
        return 0 if words else 2
    verb = _verb(words[0])
    parser = argparse.ArgumentParser(
        prog=f"rye {words[0]}", description=verb.summary, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verb.build(parser)
    return verb.run(parsed(parser, words[1:]))


def parsed(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """Parse words of which options may stand before, between and after the rest."""
    # Without options both ways are the same, and the first does without composing the usage, which takes 2 ms.
    return parser.parse_intermixed_args(words) if any(word[:1] == "-" for word in words) else parser.parse_args(words)


def _mend_streams() -> None:
    """Give a command that was started with closed streams some, and let none fail at a character it cannot show."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115 - for good
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _give_up_stdout() -> OSError | None:
    """Drop what is still to be printed, and return why, if that is what failed: Python would try again at the end."""
    try:
        sys.stdout.flush()
    except OSError as err:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return err
    return None


def _forget_folder_on_path() -> None:
    """Modules are never taken from the folder that the command is called in."""
    import site

    try:
        here = os.getcwd()
    except OSError:
        # The folder was deleted meanwhile.
        here = ""
    installed = site.getsitepackages()
    sys.path[:] = [entry for entry in sys.path if entry not in ("", ".", here) or entry in installed]

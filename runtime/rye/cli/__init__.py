"""The command `rye`: parse, call one function, print. Sub-commands are loaded when they are used."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from rye.errors import RyeError, TrustError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rye.cli.verbs import Verb

# verb: (module, summary); the module's VERBS says the rest.
_VERBS = {
    "execute": ("execute_verb", "run a tool, such as rye/file-system/read"),
    "tools": ("tools_verb", "list the tools of a project, with schemas and signers"),
    "verify": ("signing_verbs", "check signatures of items and files"),
    "sign": ("signing_verbs", "sign items and files"),
    "trust": ("trust_verbs", "decide whose items may run"),
    "bundle": ("bundle_verbs", "create, verify or inspect a bundle's manifest"),
    "lock": ("bundle_verbs", "pin a tool to the digests of its chain"),
    "keys": ("signing_verbs", "make or show your own key"),
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

    listed = "\n".join(f"  {name:<9} {summary}" for name, (_, summary) in _VERBS.items())
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    _forget_folder_on_path()
    try:
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
        return verb.run(parser.parse_args(words[1:]))
    except RyeError as err:
        print(f"rye: {err}", file=sys.stderr)
        return 3 if isinstance(err, TrustError) else 2 if isinstance(err, UsageError) else 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader went away (`| head`); what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _forget_folder_on_path() -> None:
    """Modules are never taken from the folder that the command is called in."""
    here = os.getcwd() if os.path.isdir(".") else ""
    sys.path[:] = [entry for entry in sys.path if entry not in ("", ".", here)]

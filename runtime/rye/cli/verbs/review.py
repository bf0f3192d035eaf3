"""`rye review`: a page on this machine that shows what was changed, and takes changes back."""

from __future__ import annotations

import argparse
import sys

from rye.cli.shared import EXIT_OK, Verb, add_project_option, project_of


def _build(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
The address holds a token: who has it may see the changes and take them back. The page loads nothing from elsewhere.
Keys: j and k go down and up, Enter opens a change, u takes it back, r marks it as reviewed, / searches."""
    parser.add_argument("--port", type=int, default=0, metavar="N", help="the port to listen at (default: any free one)")
    add_project_option(parser)


def _run(args: argparse.Namespace) -> int:
    from rye.review import server

    def announce(address: str) -> None:
        print(f"Open {address}\nCtrl-C ends it.", flush=True)

    try:
        server.serve(project_of(args.project), args.port, announce)
    except KeyboardInterrupt:
        print("Ended.", file=sys.stderr)
    return EXIT_OK


VERBS = {"review": Verb("Show what was changed on a page of this machine's own, and take changes back there.", _build, _run)}

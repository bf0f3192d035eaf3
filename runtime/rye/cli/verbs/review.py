"""`rye review`: pages on this machine that show what was changed, and take changes back."""

from __future__ import annotations

import argparse
import sys

from rye.cli.shared import EXIT_OK, Verb, add_project_option, printable, project_of, require_person


def _build(parser: argparse.ArgumentParser) -> None:
    parser.epilog = """\
It needs a terminal: the address that it prints opens the pages for whoever has it, once, and a key is approved on them with a
code that is shown here. The pages load nothing from elsewhere. Press ? on a page for its keys."""
    parser.add_argument("--port", type=int, default=0, metavar="N", help="the port to listen at (default: any free one)")
    add_project_option(parser)


def _run(args: argparse.Namespace) -> int:
    # Where a program reads what is printed, it would have the address, and with it what the user may do.
    require_person("open the pages")
    from rye.review import server

    def tell(text: str) -> None:
        for line in text.split("\n"):
            print(printable(line), file=sys.stderr, flush=True)

    try:
        server.serve(project_of(args.project), args.port, tell)
    except KeyboardInterrupt:
        print("Ended.", file=sys.stderr)
    return EXIT_OK


VERBS = {"review": Verb("Show what was changed on pages of this machine's own, and take changes back there.", _build, _run)}

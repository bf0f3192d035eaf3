"""`rye tools`: what an agent can discover in a project."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rye.cli.verbs import EXIT_NO, EXIT_OK, Verb, print_json, print_table, project_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_EPILOG = """\
examples:
  rye tools --category rye/file-system --json       all that is known of each
  rye tools --category rye/file-system --format openai

--format prints the list that the interface takes, of the tools that can run; `rye tools --json` has the id of each name.
A tool that is not valid shows its id and verdict only.
"""


def _build(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument(
        "--category",
        metavar="C",
        action="append",
        help="only tools in this category or below, such as rye/file-system; repeatable",
    )
    parser.add_argument("--format", metavar="F", help="openai, anthropic, gemini or mcp: print the tools as it takes them")
    parser.add_argument("--project", metavar="DIR", help="the project root (default: nearest folder above with .ai or .git)")
    parser.add_argument("--json", action="store_true", help="print a list with schemas, docstrings, digests and signers")


def _run(args: argparse.Namespace) -> int:
    from rye import discovery

    project = project_of(args.project)
    if args.format is not None:
        return _print_format(args.format, args.category, project)
    rows = discovery.tools(args.category, project_path=project)
    if args.json:
        print_json(rows)
    elif rows:
        print_table(rows, ("item_id", "verdict", "space", "version", "description"))
    else:
        print("No tools" + (f" in category {', '.join(args.category)}." if args.category else "."))
    return EXIT_OK if rows else EXIT_NO


def _print_format(format: str, category: Sequence[str] | None, project: str) -> int:
    from rye import discovery
    from rye.provider_schemas import check_format, render_all

    check_format(format)
    listing = discovery.listing(category, project_path=project)
    rendered, refused = render_all(listing.offers, format)
    for item_id, reason in [*listing.left_out, *refused]:
        print(f"rye: left out {item_id}: {reason}", file=sys.stderr)
    print_json(rendered)
    return EXIT_OK if rendered else EXIT_NO


VERBS = {"tools": Verb("List the tools of a project by category.", _build, _run)}

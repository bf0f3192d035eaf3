"""`rye tools`: what an agent can discover in a project."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rye.cli.verbs import EXIT_NO, EXIT_OK, Verb, print_json, print_table

if TYPE_CHECKING:
    import argparse


def _build(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "example:\n  rye tools --category rye/file-system --json\n\nA tool that is not valid shows its id and verdict only."
    )
    parser.add_argument("--category", metavar="C", help="only tools in this category or below, such as rye/file-system")
    parser.add_argument("--project", metavar="DIR", help="the project root (default: nearest folder above with .ai or .git)")
    parser.add_argument("--json", action="store_true", help="print a list with schemas, docstrings, digests and signers")


def _run(args: argparse.Namespace) -> int:
    from rye import discovery
    from rye.toolkit.workspace import find_root

    rows = discovery.tools(args.category, project_path=args.project or find_root(os.getcwd()))
    if args.json:
        print_json(rows)
    elif rows:
        print_table(rows, ("item_id", "verdict", "space", "version", "description"))
    else:
        print("No tools" + (f" in category {args.category}." if args.category else "."))
    return EXIT_OK if rows else EXIT_NO


VERBS = {"tools": Verb("List the tools of a project by category.", _build, _run)}

"""`rye lint` and `rye new`: writing tools."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from typing import Any

from rye.authoring.lint import lint
from rye.authoring.new_tool import new_tool
from rye.authoring.new_tool_kinds import KINDS
from rye.cli.shared import (
    EXIT_NO,
    EXIT_OK,
    Verb,
    add_common_options,
    harmless,
    print_json,
    printable,
    project_of,
    project_to_work_in,
)
from rye.errors import UsageError
from rye.fs import atomic
from rye.items import spaces, targets
from rye.items.targets import Target

_LINT_EPILOG = """\
A TARGET is an item id, a file, a folder or a glob; without one, every tool of the project. Nothing is run, and the files need
not be signed. One line for each finding: path:line: code message. Exit code 0 if there is none, 1 if there is, 2 for no tool.

examples:
  rye lint                                    every tool of the project
  rye lint my/text/word_count                 one, by its id
  rye lint .ai/tools/my --json                a folder; findings as JSON
  rye lint --all                              those of the user's space and of the system bundle too
"""

_NEW_EPILOG = """\
Writes .ai/tools/ID.py (or .sh, .js, .yaml), a whole tool that works, and tests/test_ID.py; no file is overwritten.

examples:
  rye new tool my/text/word_count
  rye new tool my/text/word_count --runtime bash
"""


def _build_lint(parser: argparse.ArgumentParser) -> None:
    parser.usage = "rye lint [TARGET… | --all] [--project DIR] [--json]"
    parser.epilog = _LINT_EPILOG
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="item id, file, folder or glob")
    parser.add_argument("--all", action="store_true", help="every tool of every space")
    add_common_options(parser, "print a list of findings, and nothing else")


def _build_new(parser: argparse.ArgumentParser) -> None:
    parser.usage = "rye new tool ID [--runtime python|bash|node|http] [--project DIR] [--json]"
    parser.epilog = _NEW_EPILOG
    parser.add_argument("kind", choices=("tool",), help="what to make")
    parser.add_argument("item_id", metavar="ID", help="category and name, such as my/text/word_count")
    parser.add_argument(
        "--runtime", metavar="R", choices=tuple(KINDS), default="python", help="python (default), bash, node or http"
    )
    add_common_options(parser, "print what was made as JSON, and nothing else")


def _lint(args: argparse.Namespace) -> int:
    tools = _tools(args)
    rows = [row for target in tools for row in _findings(target)]
    if args.json:
        print_json(rows)
    else:
        for row in rows:
            print(printable(f"{row['path']}:{row['line']}: {row['code']} {row['message']}"))
    # After the rows, so that `--json` prints its (empty) list before the refusal.
    if not tools:
        raise UsageError(
            "no_tools", "There is no tool to check.", "Name a file, a folder or an id; `rye new tool ID` makes one."
        )
    files = len({row["path"] for row in rows})
    summary = f"Findings: {len(rows)}, in {files} of {len(tools)} files." if rows else f"Files: {len(tools)}. No findings."
    print(f"rye: {summary}", file=sys.stderr)
    return EXIT_NO if rows else EXIT_OK


def _tools(args: argparse.Namespace) -> list[Target]:
    if args.all and args.targets:
        raise UsageError("bad_targets", "Give targets, or --all; not both.", "")
    search_path = spaces.spaces(project_of(args.project))
    # The first space is the project's own; an author cannot change the others' tools here.
    searched = search_path if args.all else search_path[:1]
    found = targets.resolve(args.targets, search_path) if args.targets else targets.all_targets(searched)
    return [target for target in found if target.item_type == "tool"]


def _findings(target: Target) -> Iterator[dict[str, Any]]:
    try:
        # The mode too: lint reports a file that others may write.
        with atomic.open_regular(target.path) as file:
            info, raw = os.fstat(file.fileno()), file.read()
    except OSError as err:
        message = f"It cannot be read: {err.strerror}."
        yield {"path": target.text, "line": 1, "item_id": target.item_id, "code": "unreadable", "message": message}
        return
    for found in lint(raw, target.suffix, target.item_id, info.st_mode):
        yield {"path": target.text, "item_id": target.item_id, **found._asdict()}


def _new(args: argparse.Namespace) -> int:
    # Not in a home: its `.ai` is the user's own space, and a folder of tests would lie beside it.
    made = new_tool(args.item_id, project_to_work_in(args.project), args.runtime)
    if args.json:
        print_json(made._asdict())
        return EXIT_OK
    print(harmless(f"{made.tool}\n{made.test}"))
    print(f"""
Next, in the project's folder:
  edit {made.tool}
  rye lint {made.item_id}
  python -m pytest {made.test}        (pip install pytest)
  rye sign {made.item_id}        (`rye keys generate` once before; a person at a terminal signs)
  rye {made.item_id} {KINDS[args.runtime].example}""")
    return EXIT_OK


VERBS = {
    "lint": Verb("Check that tools are well made: metadata, schema, docstring, imports, size.", _build_lint, _lint),
    "new": Verb("Make a new tool to begin with, and a test of it.", _build_new, _new),
}

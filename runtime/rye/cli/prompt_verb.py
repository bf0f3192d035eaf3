"""`rye prompt`: the instructions of a directive for agents, filled in for this project."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rye.cli.verbs import EXIT_OK, Verb, exit_code, print_json

if TYPE_CHECKING:
    import argparse

_FOLDER = "rye/agent"


def _build(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "example:\n  rye prompt swe >> AGENTS.md"
    parser.add_argument("name", help=f"a directive of {_FOLDER}, such as swe; or a whole id")
    parser.add_argument("--project", metavar="DIR", help="the project root (default: nearest folder above with .ai or .git)")
    parser.add_argument("--json", action="store_true", help="print the whole response as JSON, and nothing else")


def _run(args: argparse.Namespace) -> int:
    from rye import api
    from rye.toolkit import profiles, swe
    from rye.toolkit.workspace import find_root

    project = args.project or find_root(os.getcwd())
    item_id = args.name if "/" in args.name else f"{_FOLDER}/{args.name}"
    inputs = {}
    if item_id == f"{_FOLDER}/swe":
        profile = profiles.profile(project)
        inputs = {"profile": profile, "edits": swe.effect_on_edits(profile)}
    response = api.execute(item_id, inputs, item_type="directive", project_path=project)
    if args.json:
        print_json(response)
    elif response["status"] == "error":
        print(f"rye: {response['error']}", file=sys.stderr)
    else:
        print(str(response["data"]["output"]).strip())
    return EXIT_OK if response["status"] == "success" else exit_code(response)


VERBS = {"prompt": Verb("Print a directive's instructions, filled in for this project.", _build, _run)}

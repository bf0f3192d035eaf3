"""`rye tools`: what an agent can discover in a project.

`rye prompt`: the instructions of a directive for agents, filled in for this project.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rye.agents.provider_schemas import check_format, render_all
from rye.call import profile as config_profile
from rye.cli.shared import EXIT_NO, EXIT_OK, Verb, add_project_option, exit_code, print_json, print_table, project_of

_FOLDER = "rye/agent"


def _build_prompt(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "example:\n  rye prompt swe >> AGENTS.md"
    parser.add_argument("name", help=f"a directive of {_FOLDER}, such as swe; or a whole id")
    add_project_option(parser)
    parser.add_argument("--json", action="store_true", help="print the whole response as JSON, and nothing else")


def _run_prompt(args: argparse.Namespace) -> int:
    from rye import api

    project = project_of(args.project)
    # A short name means one of the directives for agents; an id always has a category.
    item_id = args.name if "/" in args.name else f"{_FOLDER}/{args.name}"
    inputs = {}
    if item_id == f"{_FOLDER}/swe":
        profile = config_profile.profile(project)
        # Only this directive declares these inputs; others would refuse them as unknown.
        inputs = {"profile": profile, "edits": config_profile.effect_on_edits(profile)}
    response = api.execute(item_id, inputs, item_type="directive", project_path=project)
    if args.json:
        print_json(response)
    elif response["status"] == "error":
        print(f"rye: {response['error']}", file=sys.stderr)
    else:
        print(str(response["data"]["output"]).strip())
    return EXIT_OK if response["status"] == "success" else exit_code(response)


_PROMPT_VERB = {"prompt": Verb("Print a directive's instructions, filled in for this project.", _build_prompt, _run_prompt)}


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
    add_project_option(parser)
    parser.add_argument("--json", action="store_true", help="print a list with schemas, docstrings, digests and signers")


def _run(args: argparse.Namespace) -> int:
    from rye.agents import discovery

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
    from rye.agents import discovery

    check_format(format)
    listing = discovery.listing(category, project_path=project)
    rendered, refused = render_all(listing.offers, format)
    # On standard error, since standard output is the list that a program reads.
    for item_id, reason in [*listing.left_out, *refused]:
        print(f"rye: left out {item_id}: {reason}", file=sys.stderr)
    print_json(rendered)
    return EXIT_OK if rendered else EXIT_NO


VERBS = {"tools": Verb("List the tools of a project by category.", _build, _run), **_PROMPT_VERB}

"""`rye tools`: what an agent can discover in a project.

`rye prompt`: the instructions of a directive for agents, filled in for this project.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rye.agents.provider_schemas import check_format, render_all
from rye.call import profile as config_profile
from rye.cli.shared import EXIT_NO, EXIT_OK, Verb, add_common_options, exit_code, harmless, print_json, print_table, project_of
from rye.errors import UsageError

_FOLDER = "rye/agent"


def _build_prompt(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "example:\n  rye prompt swe >> AGENTS.md"
    parser.usage = "rye prompt [NAME] [--project DIR] [--json]"
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help=f"a directive of {_FOLDER}, such as swe; or a whole id; none: list them"
    )
    add_common_options(parser, "print the whole response as JSON, and nothing else")


def _run_prompt(args: argparse.Namespace) -> int:
    from rye import api

    project = project_of(args.project)
    if args.name is None:
        return _list_prompts(project, as_json=args.json)
    # A short name means one of the directives for agents; an id always has a category.
    item_id = args.name if "/" in args.name else f"{_FOLDER}/{args.name}"
    inputs = {}
    if item_id == f"{_FOLDER}/swe":
        config_profile.enabled()
        profile = config_profile.profile(project)
        # Only this directive declares these inputs; others would refuse them as unknown.
        inputs = {"profile": profile, "edits": config_profile.effect_on_edits(profile)}
    response = api.execute(item_id, inputs, item_type="directive", project_path=project)
    if args.json:
        print_json(response)
    elif response["status"] == "error":
        print(harmless(f"rye: {response['error']}"), file=sys.stderr)
    else:
        print(str(response["data"]["output"]).strip())
    return EXIT_OK if response["status"] == "success" else exit_code(response)


def _list_prompts(project: str, *, as_json: bool) -> int:
    from rye import api

    found = api.search("*", f"directive.{_FOLDER.replace('/', '.')}.*", project_path=project, limit=100)["results"]
    rows = [{"name": row["name"], "item_id": row["id"], "description": row["description"] or row["title"]} for row in found]
    if as_json:
        print_json(rows)
    elif rows:
        print_table(rows, ("name", "description"), prose="description")
    return EXIT_OK if rows else EXIT_NO


_PROMPT_VERB = {"prompt": Verb("Print a directive's instructions, filled in for this project.", _build_prompt, _run_prompt)}


_EPILOG = """\
examples:
  rye tools                                         the categories
  rye tools rye/file-system                         the tools of a category and below; several may be named
  rye tools --all                                   every tool
  rye tools rye/file-system --json                  all that is known of each
  rye tools rye/file-system --format openai

`rye help TOOL` lists a tool's parameters. --format prints the list that the interface takes, of the tools that can run;
`rye tools --json` has the id of each name. A tool that is not valid shows its id and verdict only.
"""


def _build(parser: argparse.ArgumentParser) -> None:
    parser.usage = "rye tools [CATEGORY… | --all] [--format F] [--project DIR] [--json]"
    parser.epilog = _EPILOG
    parser.add_argument("categories", nargs="*", metavar="CATEGORY", help="list the tools in it or below, such as rye/web")
    parser.add_argument("--category", metavar="C", action="append", help="the same, as an option; repeatable")
    parser.add_argument("--all", action="store_true", help="every tool")
    parser.add_argument("--format", metavar="F", help="openai, anthropic, gemini or mcp: print the tools as it takes them")
    add_common_options(parser, "print a list with schemas, docstrings, digests and signers")


def _run(args: argparse.Namespace) -> int:
    from rye.agents import discovery

    project = project_of(args.project)
    categories = [*args.categories, *(args.category or ())] or None
    if categories and args.all:
        raise UsageError("bad_option", "A category and --all are both given.", "Give one of them.")
    if args.format is not None:
        return _print_format(args.format, categories, project)
    if not (categories or args.all or args.json):
        return _print_categories(project)
    rows = discovery.tools(categories, project_path=project)
    if args.json:
        print_json(rows)
    elif rows:
        # What cannot run says why in the place of what it would do.
        shown = [{**row, "description": row.get("hint") or row.get("description")} for row in rows]
        marked = [{**row, "verdict": f"{row['verdict']}, cannot run"} if _cannot_run(row) else row for row in shown]
        print_table(marked, ("item_id", "verdict", "space", "version", "description"), prose="description")
    else:
        print("No tools.")
    return EXIT_OK if rows else EXIT_NO


def _cannot_run(row: Mapping[str, Any]) -> bool:
    return row["verdict"] == "valid" and "hint" in row


def _print_categories(project: str) -> int:
    from rye.agents import discovery

    rows = discovery.categories(project_path=project)
    table = [{"category": one or "-", "tools": len(names), "names": ", ".join(names)} for one, names in rows]
    print_table(table, ("category", "tools", "names"), prose="names")
    sys.stdout.flush()
    print(
        "rye: `rye tools CATEGORY` or `rye tools --all` lists them with verdicts; `rye help NAME` explains one.",
        file=sys.stderr,
    )
    return EXIT_OK if rows else EXIT_NO


def _print_format(format: str, category: Sequence[str] | None, project: str) -> int:
    from rye.agents import discovery

    check_format(format)
    listing = discovery.listing(category, project_path=project, known=True)
    rendered, refused = render_all(listing.offers, format)
    # On standard error, since standard output is the list that a program reads.
    for item_id, reason in [*listing.left_out, *refused]:
        print(harmless(f"rye: left out {item_id}: {reason}"), file=sys.stderr)
    print_json(rendered)
    return EXIT_OK if rendered else EXIT_NO


VERBS = {"tools": Verb("List the tools of a project by category.", _build, _run), **_PROMPT_VERB}

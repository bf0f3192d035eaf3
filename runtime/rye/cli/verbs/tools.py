"""`rye tools`: what an agent can discover in a project.

`rye prompt`: the instructions of a directive for agents, filled in for this project.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import SimpleNamespace

from rye.agents.provider_schemas import check_format, render_all
from rye.call import profile as config_profile
from rye.cli.process import EXIT_NO, EXIT_OK, exit_code
from rye.cli.shared import project_of
from rye.cli.terminal import note, print_json, print_table, told_json
from rye.errors import UsageError

_FOLDER = "rye/agent"


def run_prompt(args: SimpleNamespace) -> int:
    """Run `rye prompt`; return its exit code."""
    from rye import api

    project = project_of(args.project)
    if args.name is None:
        return _list_prompts(args, project)
    # A short name means one of the directives for agents; an id always has a category.
    item_id = args.name if "/" in args.name else f"{_FOLDER}/{args.name}"
    inputs = {}
    if item_id == f"{_FOLDER}/swe":
        config_profile.enabled()
        profile = config_profile.profile(project)
        # Only this directive declares these inputs; others would refuse them as unknown.
        inputs = {"profile": profile, "edits": config_profile.effect_on_edits(profile)}
    response = api.execute(item_id, inputs, item_type="directive", project_path=project)
    if told_json(args, response):
        return exit_code(response)
    if response["status"] == "error":
        note(f"{response['error']}")
    else:
        print(str(response["data"]["output"]).strip())
    return exit_code(response)


def _list_prompts(args: SimpleNamespace, project: str) -> int:
    from rye import api

    found = api.search("*", f"directive.{_FOLDER.replace('/', '.')}.*", project_path=project, limit=100)["results"]
    rows = [{"name": row["name"], "item_id": row["id"], "description": row["description"] or row["title"]} for row in found]
    if not told_json(args, rows) and rows:
        print_table(rows, ("name", "description"), prose="description")
    return EXIT_OK if rows else EXIT_NO


def run_tools(args: SimpleNamespace) -> int:
    """Run `rye tools`; return its exit code."""
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
    if told_json(args, rows):
        return EXIT_OK if rows else EXIT_NO
    if rows:
        # What cannot run says why in the place of what it would do.
        shown = [{**row, "description": row.get("hint") or row.get("description")} for row in rows]
        for row in shown:
            if row["verdict"] == "valid" and "hint" in row:
                row["verdict"] = "valid, cannot run"
        print_table(shown, ("item_id", "verdict", "space", "version", "description"), prose="description")
    else:
        print("No tools.")
    return EXIT_OK if rows else EXIT_NO


def _print_categories(project: str) -> int:
    from rye.agents import discovery

    rows = discovery.categories(project_path=project)
    table = [{"category": one or "-", "tools": len(names), "names": ", ".join(names)} for one, names in rows]
    print_table(table, ("category", "tools", "names"), prose="names")
    sys.stdout.flush()
    note("`rye tools CATEGORY` or `rye tools --all` lists them with verdicts; `rye help NAME` explains one.")
    return EXIT_OK if rows else EXIT_NO


def _print_format(format: str, category: Sequence[str] | None, project: str) -> int:
    from rye.agents import discovery

    check_format(format)
    listing = discovery.listing(category, project_path=project, known=True)
    rendered, refused = render_all(listing.offers, format)
    # On standard error, since standard output is the list that a program reads.
    for item_id, reason in [*listing.left_out, *refused]:
        note(f"left out {item_id}: {reason}")
    print_json(rendered)
    return EXIT_OK if rendered else EXIT_NO

"""`rye search`, `rye load`, `rye tools`: find items, print or copy one, and what an agent can discover in a project.

`rye prompt`: the instructions of a directive for agents, filled in for this project.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from rye import api
from rye.call import profile as config_profile
from rye.cli.process import EXIT_NO, EXIT_OK, exit_code
from rye.cli.shared import project_of
from rye.cli.table import TYPES
from rye.cli.terminal import note, print_json, print_table, printable, tell, told_json
from rye.errors import UsageError


def run_search(args: SimpleNamespace) -> int:
    """Run `rye search`; return its exit code."""
    answer = api.search(
        " ".join(args.query), _scope(args), project_path=project_of(args.project), space=args.space, limit=args.limit
    )
    tell(args, answer, (line for row in answer["results"] for line in _found(row)))
    if not args.json:
        _say(answer)
    return EXIT_OK if answer["results"] else EXIT_NO


def _found(row: dict[str, Any]) -> Iterator[str]:
    yield f"{row['type']} {row['id']}  ({row['source']}, {row['score']:.2f})"
    about = ": ".join(filter(None, (row["title"], row["description"])))
    # A tool of one sentence has that as its preview too.
    texts = [about] if row["preview"].strip() == about.strip() else [about, row["preview"]]
    yield from (f"    {text}" for text in texts if text)


def _scope(args: SimpleNamespace) -> str | None:
    """Return one scope for the three options that narrow a search."""
    # Refused, because either of the two would silently narrow the other.
    if args.scope is not None and (args.type or args.category):
        raise UsageError("bad_option", "--scope already says type and category.", "Give --scope, or --type and --category.")
    if args.scope is not None or not (args.type or args.category):
        return str(args.scope) if args.scope is not None else None
    return f"{args.type or '*'}{'/' + args.category.strip('/') + '/*' if args.category else ''}"


def _say(answer: dict[str, Any]) -> None:
    more = answer["total"] - len(answer["results"])
    if not answer["results"]:
        note("nothing fits. Try fewer or other words, or '*' for everything.")
    elif more > 0:
        note(f"{more:,} more; --limit shows them.")
    # Said each time: an item that is missing from a search must not look as if it did not exist.
    left_out = sum(answer.get("unverified", {}).values())
    if left_out:
        note(f"{left_out:,} unverified item{'s' * (left_out != 1)} not searched; `rye verify` says why.")


def run_load(args: SimpleNamespace) -> int:
    """Run `rye load`; return its exit code."""
    if args.type not in TYPES or args.item_id is None:
        word = args.type if "/" in args.type else args.item_id or "rye/file-system/line-ids"
        known = args.type if args.type in TYPES else "knowledge"
        why = "Name a type and an id: tool, knowledge or directive, then the id."
        raise UsageError("bad_option", why, f"Such as `rye load {known} {word}`")
    found = api.load(
        args.type,
        args.item_id,
        project_path=project_of(args.project),
        source=args.source,
        destination=args.destination,
        overwrite=args.overwrite,
        allow_downgrade=args.allow_downgrade,
    )
    if told_json(args, found):
        return EXIT_OK
    for warning in found["warnings"]:
        note(f"warning: {printable(warning)}")
    if args.destination:
        print(f"Copied {args.item_id} to {printable(found['destination_path'])}.")
    else:
        # Without another newline: the output piped into a file is then the verified text, byte for byte.
        print(found["content"], end="")
    return EXIT_OK


_FOLDER = "rye/agent"


def run_prompt(args: SimpleNamespace) -> int:
    """Run `rye prompt`; return its exit code."""
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
    from rye.agents.provider_schemas import check_format, render_all

    check_format(format)
    listing = discovery.listing(category, project_path=project, known=True)
    rendered, refused = render_all(listing.offers, format)
    # On standard error, since standard output is the list that a program reads.
    for item_id, reason in [*listing.left_out, *refused]:
        note(f"left out {item_id}: {reason}")
    print_json(rendered)
    return EXIT_OK if rendered else EXIT_NO

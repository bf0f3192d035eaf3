"""`rye search` and `rye load`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rye import api
from rye.cli.process import EXIT_NO, EXIT_OK
from rye.cli.shared import project_of
from rye.cli.table import TYPES
from rye.cli.terminal import note, printable, told_json
from rye.errors import UsageError


def run_search(args: SimpleNamespace) -> int:
    """Run `rye search`; return its exit code."""
    answer = api.search(
        " ".join(args.query), _scope(args), project_path=project_of(args.project), space=args.space, limit=args.limit
    )
    if told_json(args, answer):
        return EXIT_OK if answer["results"] else EXIT_NO
    for row in answer["results"]:
        print(printable(f"{row['type']} {row['id']}  ({row['source']}, {row['score']:.2f})"))
        about = ": ".join(filter(None, (row["title"], row["description"])))
        # A tool of one sentence has that as its preview too.
        texts = [about] if row["preview"].strip() == about.strip() else [about, row["preview"]]
        for text in filter(None, texts):
            print(printable(f"    {text}"))
    _say(answer)
    return EXIT_OK if answer["results"] else EXIT_NO


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

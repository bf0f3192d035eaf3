"""`rye search` and `rye load`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from rye import api
from rye.cli.shared import EXIT_NO, EXIT_OK, Verb, add_common_options, print_json, printable, project_of
from rye.errors import UsageError

_TYPES = ("tool", "knowledge", "directive")

_SEARCH_EPILOG = """\
QUERY is words, "a phrase", wild*, AND OR NOT in capitals, and parentheses; * is everything. Of plain words not every one
need be found: items with most of them come first. Unverified items are not searched; `rye verify` says why.
Exit code 0 if anything was found, 1 if nothing.

examples:
  rye search "edit a line by id"
  rye search 'trust AND NOT sign*' --type knowledge
  rye search '*' --scope 'tool.rye.file-system.*'
"""
_LOAD_EPILOG = """\
Only what is verified is printed. A copy has the same id and bytes, so its signature stays valid.

examples:
  rye load knowledge rye/file-system/file-operations          print an entry
  rye load tool my/category/tool --to user                    take a project's tool to your own space
"""


def _build_search(parser: argparse.ArgumentParser) -> None:
    parser.usage = "rye search QUERY [--scope S] [--category C] [--space S] [--type T] [--limit N] [--project DIR] [--json]"
    parser.epilog = _SEARCH_EPILOG
    parser.add_argument("query", nargs="+", metavar="QUERY", help="what to look for")
    parser.add_argument("--scope", metavar="S", help="type and place, such as tool.rye.file-system.*")
    parser.add_argument("--category", metavar="C", help="only items in this category or below, such as rye/file-system")
    parser.add_argument("--space", metavar="S", default="all", help="only of this space: project, user or system")
    parser.add_argument("--type", metavar="T", choices=_TYPES, help="only tool, knowledge or directive")
    parser.add_argument("--limit", metavar="N", type=int, default=10, help="most results (default 10)")
    add_common_options(parser, "print the whole answer as JSON, and nothing else")


def _build_load(parser: argparse.ArgumentParser) -> None:
    parser.usage = "rye load TYPE ID [--from S] [--to project|user] [--overwrite] [--allow-downgrade] [--project DIR] [--json]"
    parser.epilog = _LOAD_EPILOG
    parser.add_argument("type", metavar="TYPE", type=_type_of_item, help="tool, knowledge or directive")
    parser.add_argument("item_id", metavar="ID", help="the item's id")
    parser.add_argument("--from", dest="source", metavar="S", help="the space: project, user or system (default: the first)")
    parser.add_argument("--to", dest="destination", metavar="S", choices=("project", "user"), help="copy it to this space")
    parser.add_argument("--overwrite", action="store_true", help="let the copy replace another file")
    parser.add_argument("--allow-downgrade", action="store_true", help="let the copy be of a lower version than the one there")
    add_common_options(parser, "print text, metadata and signer as JSON, and nothing else")


def _type_of_item(word: str) -> str:
    if word in _TYPES:
        return word
    example = f"rye load knowledge {word}" if "/" in word else "rye load knowledge rye/file-system/line-ids"
    raise argparse.ArgumentTypeError(f"{word!r} is no type; begin with tool, knowledge or directive, as in `{example}`")


def _search(args: argparse.Namespace) -> int:
    answer = api.search(
        " ".join(args.query), _scope(args), project_path=project_of(args.project), space=args.space, limit=args.limit
    )
    if args.json:
        print_json(answer)
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


def _scope(args: argparse.Namespace) -> str | None:
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
        print("rye: nothing fits. Try fewer or other words, or '*' for everything.", file=sys.stderr)
    elif more > 0:
        print(f"rye: {more:,} more; --limit shows them.", file=sys.stderr)
    # Said each time: an item that is missing from a search must not look as if it did not exist.
    left_out = sum(answer.get("unverified", {}).values())
    if left_out:
        print(f"rye: {left_out:,} unverified item{'s' * (left_out != 1)} not searched; `rye verify` says why.", file=sys.stderr)


def _load(args: argparse.Namespace) -> int:
    found = api.load(
        args.type,
        args.item_id,
        project_path=project_of(args.project),
        source=args.source,
        destination=args.destination,
        overwrite=args.overwrite,
        allow_downgrade=args.allow_downgrade,
    )
    if args.json:
        print_json(found)
        return EXIT_OK
    for warning in found["warnings"]:
        print(f"rye: warning: {printable(warning)}", file=sys.stderr)
    if args.destination:
        print(f"Copied {args.item_id} to {printable(found['destination_path'])}.")
    else:
        # Without another newline: the output piped into a file is then the verified text, byte for byte.
        print(found["content"], end="")
    return EXIT_OK


VERBS = {
    "search": Verb("Find tools, knowledge and directives by words.", _build_search, _search),
    "load": Verb("Print an item's verified text, or copy the item to another space.", _build_load, _load),
}

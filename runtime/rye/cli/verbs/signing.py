"""`rye verify`, `rye sign` and `rye keys`."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rye import api
from rye.cli.shared import EXIT_NO, EXIT_OK, EXIT_TRUST, print_json, print_table, printable, project_of, require_person_or_key
from rye.errors import ItemError, RyeError, UsageError
from rye.items import release_list
from rye.journal import own_files
from rye.journal.own_files import OwnFile
from rye.trust import keys

_PROGRESS_FROM = 200


def run_verify(args: SimpleNamespace) -> int:
    """Run `rye verify`; return its exit code."""
    rows = api.verify_iter(
        args.targets,
        project_path=project_of(args.project),
        space=args.space,
        trust=args.trust,
        everything=args.all or not args.targets,
    )
    results = list(_with_progress(rows, "verified"))
    if args.json:
        print_json(results)
    else:
        table = ({**row, "signer": _signer(row), "reason_and_next_step": row["hint"]} for row in results)
        _print_rows(results, table, "verdict", "valid")
        if (args.all or not args.targets) and not release_list.is_listed():
            _say("the code of the package rye is not checked: this is no release, so there is no signed list of its files.")
    if not results:
        _say("nothing to verify: there is no item. Name a file, a folder or an id.")
    if any(row["verdict"] != "valid" for row in results):
        return EXIT_TRUST
    return EXIT_OK if results else EXIT_NO


def run_sign(args: SimpleNamespace) -> int:
    """Run `rye sign`; return its exit code."""
    require_person_or_key("sign items", args.key, key_option=True)
    try:
        rows = api.sign_iter(
            args.targets, project_path=project_of(args.project), key=args.key, everything=args.all, space=args.space
        )
    except ItemError as err:
        # All targets are found before any is signed.
        raise ItemError(err.code, err.message, f"Nothing was signed. {err.hint}") from None
    results = list(_with_progress(rows, "signed"))
    if args.json:
        print_json(results)
    else:
        table = ({**row, "reason_and_next_step": " ".join(filter(None, (row["error"], row["hint"])))} for row in results)
        _print_rows(results, table, "status", "signed")
        for warning in (one for row in results for one in row.get("warnings", ())):
            _say(printable(warning))
    if not results:
        _say("nothing to sign: there is no item. Name a file, a folder or an id.")
    return EXIT_OK if results and all(row["status"] != "failed" for row in results) else EXIT_NO


def run_keys(args: SimpleNamespace) -> int:
    """Run `rye keys`; return its exit code."""
    if args.action != "generate" and args.owner is not None:
        raise UsageError("bad_option", f"`rye keys {args.action}` takes no --owner.", "Leave it out.")
    if args.action != "show":
        require_person_or_key("make a key that signs for them, or put theirs into a project")
    key = keys.generate(args.owner or "local") if args.action == "generate" else keys.show()
    if args.action == "export":
        key["exported"] = _export(key, project_of(args.project))
    if args.json:
        print_json(key)
        return EXIT_OK
    for name in ("fingerprint", "digest", "owner", "public_key", "document", "exported"):
        if name in key:
            print(f"{name.replace('_', ' '):<12} {printable(str(key[name]))}")
    if not key["trusted"]:
        _say("this key does not count here: its document is missing or is another key's.")
    elif args.action == "generate":
        _say("your colleagues' clones need the key, too: `rye keys export --project` puts it into a project.")
    elif args.action == "export":
        _say("commit that file. Whoever clones the project runs `rye trust approve`, and asks you for the full digest.")
    return EXIT_OK


def _export(key: Mapping[str, Any], project: str) -> str:
    """Put the document of the user's key into a project, and return where it lies."""
    if not key["trusted"]:
        raise RyeError("no_key_document", f"Your key has no document {key['document']}.", "Run `rye trust add KEY.toml`.")
    path = os.path.join(os.path.realpath(project), ".ai", "trusted_keys", f"{key['fingerprint']}.toml")
    data = Path(key["document"]).read_bytes()
    if not os.path.isfile(path) or Path(path).read_bytes() != data:
        own_files.write([OwnFile(path, data, 0o644)], "rye/cli/keys", [project])
    return path


def _signer(row: Mapping[str, Any]) -> str:
    """Show a name only for a proven signature; a bare fingerprint is what the line claims."""
    return " ".join(filter(None, (row["signer"], f"({row['owner']})" if row["owner"] else "")))


def _print_rows(rows: list[dict[str, Any]], table: Iterable[Mapping[str, Any]], outcome: str, first: str) -> None:
    if not rows:
        return
    print_table(table, (outcome, "target", "signer", "reason_and_next_step"))
    counts = Counter(row[outcome] for row in rows)
    # The good outcome first, the rest by name.
    order = sorted(counts, key=lambda name: (name != first, name))
    print(f"{len(rows):,} file{'s' * (len(rows) != 1)}: {', '.join(f'{counts[name]:,} {name}' for name in order)}.")


def _with_progress(rows: Iterator[dict[str, Any]], verb: str) -> Iterator[dict[str, Any]]:
    """Pass rows on; on a terminal, count those of a long run."""
    shown_at = 0.0
    for count, row in enumerate(rows, 1):
        # Ten times a second at most: a terminal over a slow line would otherwise hold up the run.
        if count > _PROGRESS_FROM and sys.stderr.isatty() and time.monotonic() > shown_at + 0.1:
            shown_at = time.monotonic()
            print(f"\r{count:,} files {verb}…", end="", file=sys.stderr, flush=True)
        yield row
    if shown_at:
        # Clears the counter's line before the table is printed over it.
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _say(text: str) -> None:
    print(f"rye: {text}", file=sys.stderr)

"""`rye skill add|list|verify|remove`: skills where agents' hosts look, signed or pinned."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

from rye.cli.shared import EXIT_NO, EXIT_OK, EXIT_TRUST, printable, project_of, tell_rows
from rye.errors import UsageError
from rye.folders import skills
from rye.items import spaces
from rye.trust import keys

_COLUMNS = ("verdict", "skill", "host", "scope", "hint")


def run_skill(args: SimpleNamespace) -> int:
    """Run `rye skill`; return its exit code."""
    project = project_of(args.project)
    names = args.words
    if args.action in ("add", "remove") and len(names) != 1:
        raise UsageError("bad_word", f"`rye skill {args.action}` takes one skill.", "Name it; --help shows how.")
    if args.action == "remove":
        scope = args.user or None
        removed = skills.remove(names[0], project, host=args.host, user=scope)
        return tell_rows(args, [{"removed": one} for one in removed], ("removed",))
    store = spaces.trust_store(spaces.spaces(project), keys.named_documents(args.trust))
    if args.action == "add":
        host = args.host or "agents"
        row = skills.add(names[0], project, store, host=host, user=args.user)
        rows = [_shown(row, row["path"], host, "user" if args.user else "project")]
        tell_rows(args, rows, _COLUMNS)
        for one in row["fetches"]:
            print(f"rye: it fetches code when it is started: {printable(one)}", file=sys.stderr)
        return EXIT_OK
    found = [
        _shown(skills.verify(path, store)[0] | {"path": path, "fetches": skills.fetches(path)}, path, host, scope)
        for path, host, scope in skills.folders(project, args.host)
        if not names or os.path.basename(path.rstrip("/")) in names
    ]
    tell_rows(args, found, _COLUMNS)
    if missing := set(names) - {row["skill"] for row in found}:
        print(f"rye: there is no skill {printable(', '.join(sorted(missing)))}.", file=sys.stderr)
    refused = [row for row in found if not skills.allowed(row, project)]
    if args.action == "verify" and refused:
        return EXIT_TRUST
    return EXIT_NO if missing else EXIT_OK


def _shown(row: dict[str, Any], path: str, host: str, scope: str) -> dict[str, Any]:
    return {"skill": os.path.basename(path.rstrip("/")), "host": host, "scope": scope, **row, "faults": skills.faults(path)}

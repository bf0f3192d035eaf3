"""`rye state list|prune|adopt`: what is stored in the user's space for projects, its size, and how it is removed or given back.

State is stored under the identity of a project's folder: it survives a rename on the same disk. A copy, a move to another
disk, or a restored backup is another folder; `adopt` gives such a folder the state of the one that is gone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rye.cli.process import EXIT_NO, EXIT_OK
from rye.cli.shared import confirm, project_of, require_person
from rye.cli.terminal import print_table, printable, size_text, told_json
from rye.config import stored_state, user_dirs
from rye.errors import UsageError
from rye.line_ids import epochs

# What belongs to running commands of one folder, or is made anew for each.
_NOT_MOVED = (user_dirs.PROJECT_FILE, user_dirs.MOUNTS_RECORD, "journal/index")


def run_state(args: SimpleNamespace) -> int:
    """Run `rye state`; return its exit code."""
    if args.action == "adopt":
        return _adopt(args.id, project_of(args.project))
    if args.action == "prune":
        return _prune(args.max_mb)
    rows = _rows()
    if not told_json(args, rows):
        _print(rows)
        print(f"{len(rows)} stored, {size_text(sum(row['bytes'] for row in rows))}.")
    return EXIT_OK


def _print(rows: Sequence[Mapping[str, Any]]) -> None:
    shown = []
    for row in rows:
        largest = sorted(row["kinds"].items(), key=lambda one: -one[1])[:3]
        kinds = ", ".join(f"{kind} {size_text(size)}" for kind, size in largest)
        status = "lost" if row["lost"] else "in use"
        shown.append({**row, "status": status, "size": size_text(row["bytes"]), "most_of_it": kinds, "used": row["used"][:10]})
    print_table(shown, ("id", "status", "used", "size", "changes", "most_of_it", "path"))


def _prune(max_mb: int | None) -> int:
    """Remove lost state, and what is beyond the bound; a person sees first what goes."""
    require_person("remove stored state")
    rows = _rows()
    removed = to_remove(rows, None if max_mb is None else max_mb * 1_000_000)
    if not removed:
        print(f"Nothing to remove: {len(rows)} stored, {size_text(sum(row['bytes'] for row in rows))}, none of it lost.")
        return EXIT_OK
    _print(removed)
    if not confirm(f"Remove {len(removed)} of {len(rows)}, {size_text(sum(row['bytes'] for row in removed))}, for good?"):
        print("Nothing was removed.")
        return EXIT_NO
    for row in removed:
        stored_state.remove(row["id"])
    print(f"{len(removed)} removed.")
    return EXIT_OK


def to_remove(rows: Sequence[dict[str, Any]], most_bytes: int | None) -> list[dict[str, Any]]:
    """Return the rows that `prune` removes: the lost ones, then those used longest ago, until the rest fits the bound.

    State that was used within the last hour stays, as a command may run on it; so does that in which a job listens.
    """
    recent = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3_600))
    # ISO timestamps of one zone compare as texts.
    idle = [row for row in rows if row["used"] < recent and not row["busy"]]
    # False sorts before True: lost state first, then the longest unused.
    idle.sort(key=lambda row: (not row["lost"], row["used"]))
    bytes_left = sum(row["bytes"] for row in rows)
    removed = []
    for row in idle:
        if row["lost"] or (most_bytes is not None and bytes_left > most_bytes):
            removed.append(row)
            bytes_left -= row["bytes"]
    return removed


def _rows() -> list[dict[str, Any]]:
    """Return one row for each stored state, the newest first."""
    return [
        {
            "id": one.key,
            "path": one.path,
            "lost": one.lost,
            "changes": sum(1 for _ in (stored_state.folder() / one.key / "journal").glob("*.json")),
            "used": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one.used)),
            "bytes": one.size,
            "kinds": dict(one.kinds),
            "busy": one.busy,
        }
        for one in stored_state.stored_states()
        if not one.key.startswith(".")
    ]


def _adopt(state_id: str | None, project: str) -> int:
    require_person("adopt stored state")
    lost = {row["id"]: row for row in _rows() if row["lost"] and row["id"] != user_dirs.project_key(project)}
    if state_id is None or state_id not in lost:
        known = ", ".join(lost) or "none is lost"
        raise UsageError(
            "state_not_found", f"There is no lost state {str(state_id)[:40]!r}.", f"`rye state list` shows them ({known})."
        )
    row = lost[state_id]
    print(f"{state_id}: {row['changes']} changes, made for {printable(row['path'] or 'an unknown folder')}.")
    if not confirm(f"Give it to {printable(os.path.realpath(project))}?"):
        print("Nothing was moved.")
        return EXIT_NO
    target = Path(user_dirs.state_dir(project))
    moved = adopt(target.parent / state_id, target)
    print(f"{moved} files were taken over. What this project had of its own is still there.")
    return EXIT_OK


def adopt(lost: Path, target: Path) -> int:
    """Move what a lost state holds into another; return how many files were moved.

    A file that the target has stays. Epochs of line IDs take the higher number, so that no ID of either comes back. The secret
    of the lost state is taken, since the line index in the project's own cache bears its seals.
    """
    moved = 0
    for source in sorted(one for one in lost.rglob("*") if one.is_file() and not one.is_symlink()):
        inner = source.relative_to(lost)
        place = target / inner
        if str(inner) in _NOT_MOVED or inner.suffix == ".lock":
            continue
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if inner.parts[0] == epochs.FILE:
            continue
        if not place.exists() or inner.name == "seal_secret":
            source.replace(place)
            moved += 1
    if (lost / epochs.FILE).is_file():
        epochs.merge(lost / epochs.FILE, target / epochs.FILE)
    # It is made anew from all entries.
    (target / "journal/index").unlink(missing_ok=True)
    # What is left has its like in the target, or belongs to the folder that is gone.
    with suppress(OSError):
        (lost / user_dirs.PROJECT_FILE).unlink()
    return moved

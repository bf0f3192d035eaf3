"""The journal as a list of changes for people: what, whose, when, which files, how many lines, and whether it is taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rye.edits import change_texts
from rye.fs import atomic
from rye.journal import entries, history
from rye.journal.entries import Entry
from rye.journal.history import History, Row
from rye.workspace.workspace import Workspace


def entry_of(ws: Workspace, row: Row) -> Entry | None:
    """Return a row's entry; None where it is damaged or gone."""
    return entries.load(history.folder(ws) / f"{row.id}.json")


def brief(past: History, row: Row) -> dict[str, Any]:
    """Return what the index alone says of a change: enough for a list of thousands."""
    return {
        "id": row.id,
        "time": change_texts.when(row),
        "tool": row.tool,
        "actor": row.actor,
        "name": change_texts.named(row),
        "undoes": row.undoes,
        "undone_by": past.undone.get(row.id),
        "batch": row.batch,
    }


def logged(ws: Workspace, past: History, row: Row) -> dict[str, Any]:
    """Return a change with its files, the command that made it, and how many lines it added and removed."""
    entry = entry_of(ws, row)
    diff = [] if entry is None else change_texts.diff_of(ws, entry)
    found = brief(past, row)
    del found["name"]
    return found | {
        "about": "" if entry is None else entry.about,
        "files": [row.path] if entry is None else entry.paths,
        **change_texts.counted(diff),
    }


def since_looked(ws: Workspace, rows: list[Row]) -> list[Row]:
    """Return the changes, newest first, that were recorded after the last `looked`; all where there was none."""
    data = atomic.read(_mark(ws)) or b""
    last_seen = data.decode("ascii", "replace").strip()
    at = next((at for at, row in enumerate(rows) if row.id == last_seen), None)
    # Where that change is dropped by now, IDs still tell what is newer.
    return rows[:at] if at is not None else [row for row in rows if row.id > last_seen]


def looked(ws: Workspace, past: History) -> None:
    """Note that a person has seen all changes until now. Raises OSError."""
    newest = next(iter(past), None)
    if newest is not None:
        where = _mark(ws)
        where.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic.write(where, newest.id.encode("ascii"), 0o600, durably=False)


def _mark(ws: Workspace) -> Path:
    return history.folder(ws) / "looked"

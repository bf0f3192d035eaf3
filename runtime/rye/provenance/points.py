"""What differs in each file between two points of the record: its kind, its mode and its content at both.

A command's change says how a path was before and after it, with the digests of contents that are stored. An edit's change says
what was done to the text, so the content around it is worked out from the file as it is (`rye.journal.file_history`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Literal, NamedTuple

from rye.errors import RyeError
from rye.journal import file_history, history
from rye.journal.entries import Entry
from rye.journal.history import Row
from rye.snapshots import known_tree
from rye.snapshots.contents import Contents
from rye.snapshots.states import Change, State
from rye.workspace.workspace import Workspace


class Side(NamedTuple):
    """A path at one point.

    Attributes:
        kind: a named pipe and anything else is `other`.
        mode: permission bits; None where they are not recorded.
        data: the content, or a link's target; None where it is not known.
    """

    kind: Literal["file", "link", "folder", "other"]
    mode: int | None
    data: bytes | None


class FileDiff(NamedTuple):
    """A path at two points; None: nothing was there. The path is as results show it."""

    path: str
    before: Side | None
    after: Side | None

    @property
    def is_known(self) -> bool:
        """Whether both sides are known."""
        return all(side is None or side.data is not None for side in (self.before, self.after))


def between(ws: Workspace, rows: Sequence[Row], changes: Sequence[Row], only: str | None = None) -> list[FileDiff]:
    """Return what some changes did to each path, or to one, all taken together; a path that is as it was is left out.

    Args:
        ws: the workspace.
        rows: all changes, newest first.
        changes: those that lie between the points.
        only: one path, as results show it.

    Raises:
        OSError: the stored contents cannot be read.
    """
    by_path: dict[str, list[tuple[Entry, Change | None]]] = {}
    # Oldest first, so that a path's first entry is the one that found it as it was.
    for row in reversed(changes):
        entry = history.entry_of(ws, row)
        if entry is None:
            continue
        for at, path in enumerate(entry.paths):
            if only in (None, path):
                by_path.setdefault(path, []).append((entry, None if entry.files is None else entry.files[at]))
    if not by_path:
        return []
    with Contents(known_tree.folder(ws.fd)) as contents:
        found = [_diff(ws, contents, path, by_path[path], rows) for path in sorted(by_path)]
    return [one for one in found if one.before != one.after or not one.is_known]


def _diff(
    ws: Workspace, contents: Contents, path: str, made: Sequence[tuple[Entry, Change | None]], rows: Sequence[Row]
) -> FileDiff:
    """Return a path before the first and after the last of the entries that changed it; a command's with its change of it."""
    first, last = _sides_of(contents, *made[0])[0], _sides_of(contents, *made[-1])[1]
    if _is_open(first) or _is_open(last):
        steps = file_history.of_file(ws, path, rows, since=made[0][0].id).steps
        by_entry = {one.entry.id: one for one in steps if one.entry is not None}
        if _is_open(first) and (step := by_entry.get(made[0][0].id)) is not None:
            first = Side("file", None, step.before)
        if _is_open(last) and (step := by_entry.get(made[-1][0].id)) is not None:
            last = Side("file", None, step.after)
    # An edit keeps the mode, so any command's change in between knows it.
    modes = [side.mode for one in made for side in _sides_of(contents, *one, read=False) if side is not None]
    known = [mode for mode in modes if mode is not None] or _mode_now(ws, path)
    return FileDiff(path, _with_mode(first, known[:1]), _with_mode(last, known[-1:]))


def _mode_now(ws: Workspace, path: str) -> list[int]:
    """Return the mode of the file as it is, which no recorded change gave it; nothing where there is none."""
    with suppress(RyeError, OSError), ws.file(path) as file:
        return [stat.S_IMODE(file.stat.st_mode)]
    return []


def _with_mode(side: Side | None, modes: Sequence[int]) -> Side | None:
    return side if side is None or side.mode is not None or not modes else side._replace(mode=modes[0])


def _is_open(side: Side | None) -> bool:
    """Tell whether a side is a file whose content the entry alone does not tell."""
    return side is not None and side.kind == "file" and side.data is None


def _sides_of(contents: Contents, entry: Entry, change: Change | None, *, read: bool = True) -> tuple[Side | None, Side | None]:
    """Return a path before and after one entry, as far as that alone tells it; without the contents if not `read`."""
    if change is not None:
        return _side(contents, change.before, read=read), _side(contents, change.after, read=read)
    whole = entry.splices[0] if entry.whole and entry.splices else None
    before, after = (whole.removed, whole.added) if whole else (None, None)
    return _edited(entry.before, entry.mode, before), _edited(entry.after, None, after)


def _edited(digest: str | None, mode: int | None, lines: Sequence[bytes] | None) -> Side | None:
    """Return a side of an edit, given its digest; None: nothing was there."""
    if digest is None:
        return None
    data = None if lines is None else b"".join(lines)
    return Side("file", mode, data if data is not None and sha256(data).hexdigest() == digest else None)


def _side(contents: Contents, state: State | None, *, read: bool) -> Side | None:
    if state is None:
        return None
    if state.kind == "link":
        return Side("link", None, os.fsencode(state.value or ""))
    if state.kind != "file":
        return Side("folder" if state.kind == "directory" else "other", state.mode, b"")
    stored = contents.read(bytes.fromhex(state.value)) if read and state.value else None
    return Side("file", state.mode, stored)

"""What our own tools changed since the last look at the tree: it has entries already, and is nobody else's change.

Where someone else, or a command, went on with a file that one of our tools had changed, only what came after that is theirs.
The content in between is made from the older one by the recorded edits; its digest proves it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import islice
from typing import Final, NamedTuple

from rye.fs import names
from rye.journal import entries, history
from rye.journal.entries import Entry
from rye.snapshots import states
from rye.snapshots.contents import Contents
from rye.snapshots.states import Change, Folders, State
from rye.workspace.workspace import Workspace

_MOST_ROWS: Final = 2_000
# Of a file that came and went between two looks.
_NEW_MODE: Final = 0o644


# What an edit made or removed with its file.
_FOLDER: Final = State("directory", -1, "", 0)


class _Step(NamedTuple):
    """What one entry did at a path."""

    before: State | None
    after: State | None
    entry: Entry


class OwnEdits:
    """The changes that the journal has since its entry `newest`, by path."""

    def __init__(self, ws: Workspace, newest: str) -> None:
        self._steps: dict[str, list[_Step]] = {}
        for path, step in _recorded_since(ws, newest):
            self._steps.setdefault(path, []).append(step)

    def without(self, changes: Iterable[Change], folders: Folders, contents: Contents) -> list[Change]:
        """Return the changes that others made.

        Args:
            changes: what a look found.
            folders: the tree as that look found it.
            contents: where contents are stored; those that lie between edits and the changes are added.
        """
        out = [self._rest(one, contents) for one in changes if not self._is_own(one)]
        # A file that came after the last look and is gone is not seen by comparing the two.
        unseen = (self._as_before(path, folders) for path in self._steps.keys() - {one.path for one in changes})
        rest = (self._rest(one, contents) for one in unseen if one is not None and not self._is_own(one))
        return out + [one for one in rest if one.before != one.after]

    def _is_own(self, change: Change) -> bool:
        steps = self._steps.get(change.path)
        if steps is None:
            return False
        after = steps[-1].after
        if after and after.mode < 0 and change.before and change.after and change.before.mode != change.after.mode:
            # An edit keeps the mode: someone else gave the file, or a folder that was there, another one since.
            return False
        return fits(change.after, after) and (after != _FOLDER or change.before is None)

    def _rest(self, change: Change, contents: Contents) -> Change:
        """Return a change without what our tools made of the file before, where one step follows the other."""
        steps = self._steps.get(change.path)
        if not steps:
            return change
        found, left = _left(steps, change.before, contents)
        return change._replace(before=left) if found else change

    def _as_before(self, path: str, folders: Folders) -> Change | None:
        """Return a path that is as it was at the last look, though our tools changed it."""
        folder, _, name = path.rpartition("/")
        marks = folders.get(folder, {})
        now = states.state_of(marks.get(name))
        return None if states.is_passed(marks) else Change(path, now, now)


def _left(steps: list[_Step], before: State | None, contents: Contents) -> tuple[bool, State | None]:
    """Return whether it can be told what the last of some steps left, and that; `before` is what the first one found."""
    now = before
    for step in steps:
        if not fits(now, step.before):
            return False, None
        now, before = step.after, now
        if now is not None and now.mode < 0:
            # What was in a folder cannot be told.
            data = _content(step.entry, now.value or "", before, contents) if now != _FOLDER else None
            if data is None:
                return False, None
            mode = before.mode if before is not None and before.kind == "file" else _NEW_MODE
            now = State("file", mode, now.value, len(data))
    return True, now


def _content(entry: Entry, digest: str, before: State | None, contents: Contents) -> bytes | None:
    """Return what an edit left, and store it; None where it cannot be told."""
    data = contents.read(bytes.fromhex(digest))
    if data is not None:
        return data
    old: bytes | None = b""
    if not entry.whole and before is not None:
        old = contents.read(bytes.fromhex(before.value)) if before.kind == "file" and before.value else None
    data = None if old is None else entries.content_after(entry, old)
    if data is None or sha256(data).hexdigest() != digest:
        return None
    contents.put(data)
    return data


def fits(found: State | None, recorded: State | None) -> bool:
    """Tell whether what a look found, or an entry left, is what an entry says."""
    if found is None or recorded is None:
        return found is recorded
    is_alike = (found.kind, found.value) == (recorded.kind, recorded.value)
    return is_alike and (found.mode == recorded.mode or -1 in (found.mode, recorded.mode))


def _recorded_since(ws: Workspace, newest: str) -> Iterator[tuple[str, _Step]]:
    """Yield the paths that entries after `newest` changed, and what they did there, the oldest first."""
    rows = []
    # In the order in which they were put into the journal: an edit has its ID before its file is written.
    for row in islice(history.History(ws), _MOST_ROWS):
        if row.id == newest:
            break
        rows.append(row)
    for entry in filter(None, (history.entry_of(ws, row) for row in reversed(rows))):
        yield from ((one.path, _Step(one.before, one.after, entry)) for one in entry.changes)
        made = _Step(_FOLDER if entry.before else None, _FOLDER if entry.after else None, entry)
        yield from ((os.fsdecode(names.parse(folder)), made) for folder in entry.folders)

"""One file's way through the journal: each recorded change with the content before and after, as far as it can be told.

It is worked out backwards from the file as it is. A change is taken out of the content that it left, which its digest proves.
Where the file changed outside of any tool in between, the content that was left is looked for in the stored contents, or made
from an older one by the edits that followed it; without it the way ends, and what is older is unknown. A file that a command
renamed is followed to its earlier name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from rye.call.results import shorten_all
from rye.errors import RyeError
from rye.fs import names
from rye.journal import entries, history, own_files, tree_changes
from rye.journal.entries import Entry
from rye.journal.history import Row
from rye.journal.hunks import lines_of
from rye.line_ids.diff import align, gaps
from rye.line_ids.document import Document
from rye.line_ids.render import joined_ranges
from rye.snapshots import known_tree
from rye.snapshots.contents import Contents
from rye.snapshots.states import Change, State
from rye.workspace.text import parse
from rye.workspace.workspace import Workspace

# A file that came where another went is that file under a new name, if so many of its lines were in it.
_ALIKE: Final = 0.5
_Name = TypeVar("_Name")
# Of so many changes the edits of a file are looked through, and so many of them followed one upon the other.
_MOST_ROWS: Final = 5_000
_MOST_EDITS: Final = 500
# So many lines that are gone at one place are shown.
_GONE: Final = 60


class Step(NamedTuple):
    """One change of a file's content.

    Attributes:
        entry: what the journal says of it; None: it was changed by someone else, at an unknown time between its neighbours.
        path: the file's name after it.
        before, after: the content; None where there was no file.
    """

    entry: Entry | None
    path: str
    before: bytes | None
    after: bytes | None


class FileHistory(NamedTuple):
    """A file's steps, the oldest first.

    Attributes:
        steps: what is known; the `after` of one is the `before` of the next.
        whole: the first step made the file, or nothing older is recorded; False: older changes are recorded but cannot be told.
    """

    steps: list[Step]
    whole: bool


def of_file(
    ws: Workspace, path: str, rows: Iterable[Row] | None = None, since: str = "", now: bytes | None = None
) -> FileHistory:
    """Return the history of a file, given by its path from the root.

    Args:
        ws: the workspace.
        path: from the root, as results show it.
        rows: the journal's rows, newest first; read if None.
        since: the entry that is the first step; what is older is left out.
        now: the file's content; read if None.
    """
    rows_of_project = history.History(ws) if rows is None else rows
    with Contents(known_tree.folder(ws.fd)) as contents:
        way = _Way(ws, contents, path, now)
        return way.back(rows_of_project, since)


def places_since(
    document: Document, version: str, ranges: Sequence[tuple[int, int]]
) -> tuple[list[tuple[int, int]], dict[int, list[str]] | None]:
    """Return where an open file differs from an earlier version, for a reader: with the lines that are gone.

    Args:
        document: the file, open.
        version: its short or long name.
        ranges: the lines [start, stop) that are new or changed since.

    Returns:
        The places [start, stop), each with a line on both sides; and before which line which lines are gone, as printed.
        None where the content of that version is not known, or the file is shown as cells.
    """
    removed = _removed_since(document, version.rpartition("-")[2])
    places = sorted([*ranges, *((at, at) for at in removed or ())])
    return joined_ranges((max(start - 1, 0), min(stop + 1, document.count)) for start, stop in places), removed


def _removed_since(document: Document, digest: str) -> dict[int, list[str]] | None:
    if document.cells() is not None:
        return None
    text = document.text
    with Contents(known_tree.folder(document.ws.fd)) as contents:
        way = _Way(document.ws, contents, document.path, text.slice(0, text.size))
        way.back(islice(history.History(document.ws), _MOST_ROWS), "", digest)
        old = way.now
    if old is None or not (_digest(old) or "").startswith(digest):
        return None
    lines = parse(old, text.encoding).lines()
    before, now = text.encoding.bodies(lines), text.encoding.bodies(text.lines())
    out = dict[int, list[str]]()
    for start, stop, place, _ in gaps(align(before, now), len(before), len(now)):
        if stop > start:
            shown = shorten_all(text.encoding.show_all(lines[start : min(stop, start + _GONE)]))
            more = [f"-\t… {stop - start - _GONE} more lines"] if stop - start > _GONE else []
            out[place] = [*(f"-\t{line}" for line in shown), *more]
    return out


class _Way:
    """The way back through the journal; `now` is the content where it ended."""

    def __init__(self, ws: Workspace, contents: Contents, path: str, now: bytes | None) -> None:
        self._ws, self._contents, self._path = ws, contents, path
        self.now = _content_now(ws, path) if now is None else now
        self._steps: list[Step] = []

    def back(self, rows: Iterable[Row], since: str, until: str = "?") -> FileHistory:
        """Go back to an entry, or until the content has a digest that begins so."""
        for row in rows:
            if (_digest(self.now) or "").startswith(until):
                break
            if row.files == 1 and row.path != self._path:
                continue
            entry = history.entry_of(self._ws, row)
            change = None if entry is None else _change_of(entry, self._path)
            if entry is not None and change is not None and not self._take(entry, change):
                return FileHistory(self._steps[::-1], whole=False)
            if row.id == since:
                break
        return FileHistory(self._steps[::-1], whole=True)

    def _take(self, entry: Entry, change: Change) -> bool:
        """Go one change back; False where that cannot be told."""
        # A link or a folder in the file's place is no file.
        before, after = (side if side is not None and side.kind == "file" else None for side in change[1:])
        is_commands = entry.files is not None
        mode_only = is_commands and before is not None and after is not None and before.value == after.value
        if mode_only or (before is None and after is None):
            return True
        digest_after = None if after is None else after.value
        if _digest(self.now) != digest_after and not self._outside(entry, digest_after):
            return False
        data = None
        if before is not None:
            data = self._before(entry, before)
            if data is None:
                return False
        self._steps.append(Step(entry, self._path, data, self.now))
        self.now = data
        if data is None and is_commands:
            self._follow_rename(entry)
        return True

    def _outside(self, entry: Entry, digest_after: str | None) -> bool:
        """Note that someone else changed the file after an entry; False where the content that it left is not stored."""
        data = None
        if digest_after is not None:
            data = self._content(digest_after, entry)
            if _digest(data) != digest_after:
                return False
        self._steps.append(Step(None, self._path, data, self.now))
        self.now = data
        return True

    def _content(self, digest: str, entry: Entry) -> bytes | None:
        """Return the content that an entry left, as it is stored, or as edits made it from one that is; None without one."""
        following: list[Entry] = []
        at: Entry | None = entry
        for _ in range(_MOST_EDITS):
            data = self._contents.read(bytes.fromhex(digest))
            if data is None and at is not None and at.whole:
                data = entries.content_after(at, b"")
            if data is not None:
                for one in reversed(following):
                    data = None if data is None else entries.content_after(one, data)
                return data
            if at is None or at.files is not None or at.before is None:
                return None
            following.append(at)
            digest = at.before
            at = self._edits().get(digest)
        return None

    def _edits(self) -> dict[str, Entry]:
        """Return the edits of the file by the digest of what they left."""
        if self._edits_by_digest is None or self._edits_by_digest[0] != self._path:
            out = dict[str, Entry]()
            for row in islice(history.History(self._ws), _MOST_ROWS):
                if row.files == 1 and row.path == self._path:
                    entry = history.entry_of(self._ws, row)
                    if entry is not None and entry.files is None and entry.after is not None:
                        out.setdefault(entry.after, entry)
            self._edits_by_digest = self._path, out
        return self._edits_by_digest[1]

    _edits_by_digest: tuple[str, dict[str, Entry]] | None = None

    def _before(self, entry: Entry, before: State) -> bytes | None:
        """Return the content before an entry; None where it cannot be told."""
        if entry.files is not None:
            return self._contents.read(bytes.fromhex(before.value)) if before.value else None
        data = entries.content_before(entry, self.now or b"")
        return data if _digest(data) == before.value else None

    def _follow_rename(self, entry: Entry) -> None:
        """Go on with the file that the same change took away, if this one is that file under a new name."""
        gone = dict[str, bytes]()
        for one in entry.files or ():
            if one.after is None and one.before is not None and one.before.kind == "file" and one.before.value:
                old = self._contents.read(bytes.fromhex(one.before.value))
                gone |= {} if old is None else {names.show(os.fsencode(one.path)): old}
        path = former(self._steps[-1].after or b"", gone.items())
        if path is not None:
            step = self._steps.pop()
            self._path, self.now = path, gone[path]
            self._steps.append(step._replace(before=gone[path]))


def former(now: bytes, gone: Iterable[tuple[_Name, bytes]]) -> _Name | None:
    """Return the name of the file that a new one was before, among those that went; None: it was none of them."""
    lines_now = _squeezed_lines(now)
    best, most = None, _ALIKE
    for name, old in gone:
        lines_then = _squeezed_lines(old)
        share = 1.1 if old == now else len(lines_now & lines_then) / max(len(lines_now), len(lines_then), 1)
        if share >= most:
            best, most = name, share
    return best


def _squeezed_lines(data: bytes) -> set[bytes]:
    """Return the lines of a text without their white space."""
    return {b"".join(line.split()) for line in lines_of(data)} - {b""}


def _digest(data: bytes | None) -> str | None:
    return None if data is None else sha256(data).hexdigest()


def _change_of(entry: Entry, path: str) -> Change | None:
    """Return what an entry did at a path, which is as results show it."""
    raw = os.fsdecode(names.parse(path))
    return next((one for one in entry.changes if one.path == raw), None)


def by_our_tools(ws: Workspace, paths: Iterable[str]) -> set[str]:
    """Return those of some files that are as a call of ours left them: a tool or a command, by its record, and nobody since.

    What a person had the command line write is the person's: tools may not write those places.
    Paths are those of the system, from the root. What git keeps in `.git` is in no record.
    """
    shown = {names.show(os.fsencode(path)): path for path in paths if ".git" not in path.split("/")}
    ours: set[str] = set()
    for row in history.History(ws) if shown else ():
        entry = history.entry_of(ws, row) if row.files > 1 or row.path in shown else None
        for change in entry.changes if entry is not None else ():
            path = names.show(os.fsencode(change.path))
            if entry is None or path not in shown:
                continue
            after = None if change.after is None else change.after.value
            persons = entry.tool == tree_changes.SOMEONE_ELSE or entry.tool.startswith(own_files.BY_A_PERSON)
            if not persons and after == _digest(_content_now(ws, path)):
                ours.add(shown[path])
            del shown[path]
        if not shown:
            break
    return ours


def _content_now(ws: Workspace, path: str) -> bytes | None:
    with suppress(RyeError, OSError), ws.file(path) as file:
        return file.read()
    return None


def touched(ws: Workspace, rows: list[Row]) -> Iterator[str]:
    """Yield the paths that some changes touched, each once."""
    paths_seen: set[str] = set()
    for row in rows:
        entry = history.entry_of(ws, row) if row.files > 1 else None
        for path in [row.path] if entry is None else entry.paths:
            if path not in paths_seen:
                paths_seen.add(path)
                yield path


def author_in_words(entry: Entry | None) -> str:
    """Return who made a change, in words."""
    if entry is None or entry.tool == tree_changes.SOMEONE_ELSE:
        return "someone else"
    return entry.actor or "a person or an unnamed program"

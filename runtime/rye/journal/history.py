"""The index of a project's journal: which changes it holds, in the order in which they were made, newest last.

`<state>/journal/index` has one line for each entry: a CRC-32, then a JSON list of what a look at the history needs (`Row`). So
the last change is found, and a page of changes listed, without opening the entries. The entries are the truth. An index that is
missing or damaged is made anew from them, and a line whose entry is gone counts for nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rye.call import context
from rye.config import stored_state, user_dirs
from rye.errors import UsageError
from rye.fs import atomic
from rye.fs.atomic import closing
from rye.journal import entries
from rye.journal.entries import Entry
from rye.workspace.workspace import Workspace

MAX_ENTRIES = 10_000
"""A project's journal holds at most so many changes; `journal.max_bytes` bounds it too. No clock does: it may jump."""

_INDEX = "index"
# Entries are counted, and dropped beyond the bounds, whenever the index has grown by so many bytes (about 300 entries).
_TRIM_EVERY = 64 * 1024
# Trimming goes this far below the bounds, so that it is not needed at the next change again.
_KEEP_SHARE = 0.9
_TAIL = 16 * 1024
_NEWEST = 4 * 1024
_FIRST_DIGITS = re.compile(rb'\n[0-9a-f]{8} \["([0-9a-f]{11})')
_ARRIVING = 256
_LARGEST = 64 * 1024 * 1024
_ID_DIGITS = 15
_SHORT = 6


def short(name: str) -> str:
    """Return what a model is told in place of an ID of an entry or a batch: its last digits, which `History.meant` takes."""
    return name[-_SHORT:]


def refuse_confined() -> None:
    """Raise UsageError `record_out_of_reach` in a confined tool, whose own user space has a record of nothing."""
    if context.current().confined:
        why = "The record of changes is a service for tools of the system's key: a copy signed by another key does not see it."
        raise UsageError("record_out_of_reach", why, "Use the tool of the bundle, such as `undo`.")


class Row(NamedTuple):
    """What the index says of an entry; see `entries.Entry`. `size` is what it takes on the disk (bytes), `files` how many."""

    id: str
    time: float
    tool: str
    path: str
    undoes: str | None
    batch: str | None
    batch_size: int | None
    actor: str
    size: int
    files: int = 1
    part: str | None = None
    hunks: Sequence[int] = ()
    hunk_count: int = 0
    key: str | None = None


def row_of(entry: Entry, file: Path) -> Row:
    """Return the index's row of an entry that is stored in a file."""
    size = atomic.disk_size(file.stat())
    batch = (entry.undoes, entry.batch, entry.batch_size)
    files = 1 if entry.files is None else len(entry.files)
    hunks = (entry.hunks, entry.hunk_count)
    key = entry.key or None
    return Row(entry.id, entry.time, entry.tool, entry.path, *batch, entry.actor, size, files, entry.part, *hunks, key)


def folder(ws: Workspace) -> Path:
    """Return the folder of the project's journal, which may not exist."""
    return Path(f"{user_dirs.state_dir(ws.fd)}/journal")


def entry_of(ws: Workspace, row: Row) -> Entry | None:
    """Return a row's entry; None where it is damaged or gone."""
    return entries.load(folder(ws) / f"{row.id}.json")


def next_number(ws: Workspace, now: float) -> int:
    """Return the number for a new entry's ID: the time in milliseconds, or more where the journal is ahead of the clock."""
    found: list[bytes] = []
    with contextlib.suppress(OSError), open(folder(ws) / _INDEX, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        # The tail is enough: IDs ascend. No CRC is checked, because a number too high only leaves a gap.
        for most in (_NEWEST, _TAIL):
            found = found or _FIRST_DIGITS.findall(b"\n" + os.pread(file.fileno(), most, max(0, size - most)))
    # All of one length, so that they compare as their numbers do.
    return max(int(now * 1000), int(max(found, default=b"0"), 16) + 1)


@contextlib.contextmanager
def _locked(where: Path) -> Iterator[None]:
    with atomic.in_order("the index"), atomic.locked(where / "lock"):
        yield


def append(where: Path, rows: Sequence[Row]) -> bool:
    """Add rows of changes just made, oldest first, whose entries are written to `where` next; tell whether to trim it."""
    try:
        with _locked(where):
            grown = _add(where, rows)
        # A few large entries pass the byte bound long before the index has grown enough for a trim.
        return grown or max(row.size for row in rows) > context.settings().number("journal.max_bytes") // 64
    except OSError:
        # Without its line a change would be unknown: a missing index is made anew from the entries.
        with contextlib.suppress(OSError):
            (where / _INDEX).unlink(missing_ok=True)
        return False


def put(where: Path, made: Sequence[Entry], *, durably: bool) -> None:
    """Store entries of changes just made, oldest first, and list them. Raises OSError."""
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    rows: list[Row] = []
    # Each entry is complete under a hidden name before the index lists it; the rename comes last, so no reader sees half.
    for one in made:
        fresh = where / f".{one.id}.new"
        atomic.write(fresh, entries.dump(entries.record_of(one)), 0o600, durably=durably, sync_folder=False)
        rows.append(row_of(one, fresh))
    full = append(where, rows)
    for row in rows:
        (where / f".{row.id}.new").replace(where / f"{row.id}.json")
    if durably:
        atomic.sync(where)
    if full:
        trim(where)


def _add(where: Path, rows: Sequence[Row]) -> bool:
    """Write rows at the index's end, except those already there after a crash; tell whether it is time to trim."""
    index = where / _INDEX
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
    try:
        fd = os.open(index, flags)
    except FileNotFoundError:
        _rebuild(where)
        fd = os.open(index, flags)
    with closing(fd):
        size = os.fstat(fd).st_size
        looked = max(_TAIL, 1_024 * len(rows))
        tail = os.pread(fd, looked, max(0, size - looked))
        # After a crash the pending entry is recorded again: its row must not appear twice.
        lines = b"".join(_line(row) for row in rows if f'["{row.id}"'.encode("ascii") not in tail)
        # A crash of the machine can cut the last line short; it must not swallow the next one.
        cut = size > 0 and not tail.endswith(b"\n")
        os.write(fd, b"\n" * cut + lines)
        if any(row.key for row in rows):
            # The entry of a named call must not be found without its row after a power cut.
            os.fsync(fd)
    return size // _TRIM_EVERY != (size + len(lines)) // _TRIM_EVERY


def _line(row: Row) -> bytes:
    body = json.dumps(row, separators=(",", ":")).encode("ascii")
    return b"%08x %b\n" % (zlib.crc32(body), body)


def _row(line: bytes) -> Row | None:
    """Return what a line of the index says; None when it is damaged."""
    try:
        return Row(*json.loads(line[9:])) if int(line[:8], 16) == zlib.crc32(line[9:]) else None
    except (ValueError, TypeError):
        return None


def _is_sound(line: bytes) -> bool:
    """Tell whether a line of the index is as it was written."""
    try:
        return int(line[:8], 16) == zlib.crc32(line[9:])
    except ValueError:
        return False


def _rows_of(where: Path) -> list[Row]:
    """Return the rows of all entries, oldest first; the caller holds the lock.

    Those that the index has keep their order: an edit has its ID before its file is written, and so before what others
    recorded meanwhile. Only one that lost its row is put among them by its ID.
    """
    found = (atomic.read(where / _INDEX, _LARGEST) or b"").splitlines()
    rows = {row.id: row for line in found if (row := _row(line)) is not None}
    names = {name[:-5] for name in os.listdir(where) if name.endswith(".json")}
    # The entries of the newest lines may be on their way.
    arriving = {*[*rows][-_ARRIVING:]}
    known = [row for row in rows.values() if row.id in names or row.id in arriving]
    for name in sorted(names - rows.keys()):
        path = where / f"{name}.json"
        if entry := entries.load(path):
            at = len(known)
            while at and known[at - 1].id > name:
                at -= 1
            known.insert(at, row_of(entry, path))
    return known


def _rebuild(where: Path) -> bytes:
    """Make the index anew; the caller holds the lock."""
    data = b"".join(map(_line, _rows_of(where)))
    # Where it cannot be written, it is made anew at every look.
    with contextlib.suppress(OSError):
        atomic.write(where / _INDEX, data, 0o600, durably=False)
    return data


def rebuild(where: Path) -> bytes:
    """Make the index anew and return it, empty where it cannot be made."""
    try:
        if not where.is_dir():
            return b""
        with _locked(where):
            return _rebuild(where)
    except OSError:
        return b""


def trim(where: Path) -> None:
    """Drop the oldest entries beyond the bounds of number and bytes.

    Raises:
        OSError: the folder cannot be read or written.
    """
    stored_state.prune_when_due()
    with _locked(where):
        # Only this comparison with the folder finds an entry that lost its row.
        current = _rows_of(where)
        first = _first_kept(current)
        for row in current[:first]:
            (where / f"{row.id}.json").unlink(missing_ok=True)
        atomic.write(where / _INDEX, b"".join(map(_line, current[first:])), 0o600, durably=False)


def _first_kept(rows: Sequence[Row]) -> int:
    """Return the position of the oldest entry to keep."""
    most = context.settings().number("journal.max_bytes")
    if len(rows) <= MAX_ENTRIES and sum(row.size for row in rows) <= most:
        return 0
    size, first = 0, len(rows)
    fewest = len(rows) - int(MAX_ENTRIES * _KEEP_SHARE)
    while first > max(fewest, 0) and size + rows[first - 1].size <= most * _KEEP_SHARE:
        first -= 1
        size += rows[first].size
    return first


class History:
    """The changes of a project's journal, newest first; each row is read when the iteration reaches it.

    What undoes an entry is newer than it. So `undone` is complete for every entry that was read.

    Attributes:
        undone: which entries are undone, by which; an undo that is itself undone counts no more.
        undone_parts: entry -> a path of it that was taken back by itself -> the undo that did it.
        undone_hunks: entry -> path -> number of a hunk that was taken back by itself -> the undo that did it.
        known: the rows read so far, by ID, newest first.
    """

    def __init__(self, ws: Workspace) -> None:
        """Read the index."""
        self._folder = str(folder(ws))
        self._rebuilt = False
        data = atomic.read(f"{self._folder}/{_INDEX}", _LARGEST) or b""
        if not data.endswith(b"\n"):
            data = self._anew()
        self._data, self._end = data, len(data)
        self.known: dict[str, Row] = {}
        self.undone: dict[str, str] = {}
        self.undone_parts: dict[str, dict[str, str]] = {}
        self.undone_hunks: dict[str, dict[str, dict[int, str]]] = {}
        self._counts: dict[tuple[str, str], int] = {}

    def _anew(self) -> bytes:
        self._rebuilt = True
        return rebuild(Path(self._folder))

    def __iter__(self) -> Iterator[Row]:
        """Yield the changes whose entries are there."""
        return filter(self.exists, self.rows())

    def rows(self) -> Iterator[Row]:
        """Yield the changes, also those whose entries are gone: `exists` tells, at the price of a look at the disk."""
        yield from [*self.known.values()]
        while self._end:
            # The last line not read yet; each ends with a newline.
            low = self._data.rfind(b"\n", 0, self._end - 1) + 1
            row, self._end = _row(self._data[low : self._end - 1]), low
            if row is None:
                # One damaged line makes the whole index doubtful.
                if not self._rebuilt:
                    self._data = self._anew()
                    self._end = len(self._data)
            elif row.id not in self.known:
                self.known[row.id] = row
                # Newest first: an undo that was itself undone is known by now, and its own target counts as not undone.
                if row.undoes is not None and row.id not in self.undone:
                    self._note_undo(row, row.undoes)
                yield row

    def _note_undo(self, row: Row, target: str) -> None:
        """Note what an undo took back, but for what was taken back of it in turn."""
        if row.id in self.undone_parts:
            # Some of its files are redone: the files themselves tell which.
            return
        if row.id in self.undone_hunks:
            for path, redone in self.undone_hunks[row.id].items():
                count = self._counts[row.id, path]
                numbers = row.hunks or range(1, count + 1)
                # As many hunks as it had taken back: then they are the same ones, in the same order.
                if len(numbers) == count:
                    left = [number for at, number in enumerate(numbers, 1) if at not in redone]
                    self._note_hunks(row, target, path, left, row.hunk_count or count)
        elif row.hunks:
            self._note_hunks(row, target, row.path if row.part is None else row.part, row.hunks, row.hunk_count)
        elif row.part is not None:
            taken = self.undone_parts.setdefault(target, {})
            for path in [row.part] if row.part != entries.SOME else self._files_of(row):
                taken.setdefault(path, row.id)
        else:
            self.undone.setdefault(target, row.id)

    def _files_of(self, row: Row) -> list[str]:
        entry = entries.load(Path(self._folder) / f"{row.id}.json")
        return [] if entry is None else [one.path for one in entry.files or ()]

    def _note_hunks(self, row: Row, target: str, path: str, numbers: Sequence[int], count: int) -> None:
        taken = self.undone_hunks.setdefault(target, {}).setdefault(path, {})
        self._counts[target, path] = count
        for number in numbers:
            taken.setdefault(number, row.id)
        if len(taken) >= count and row.part is None:
            # The newest of them, which is read first.
            self.undone.setdefault(target, next(iter(taken.values())))

    def exists(self, row: Row) -> bool:
        """Tell whether a change's entry is there."""
        return os.path.exists(f"{self._folder}/{row.id}.json")

    def undoer(self, entry_id: str) -> str | None:
        """Return the ID of the entry that undid this one, or None."""
        # Only its own line names an entry that nothing has undone.
        if entry_id not in self.known and self._data.count(b'"%b"' % entry_id.encode("ascii", "replace")) > 1:
            for row in self.rows():
                if row.id == entry_id:
                    break
        return self.undone.get(entry_id)

    def meant(self, name: str) -> tuple[str | None, str | None]:
        """Return the ID of an entry, or of a batch, that a name means: all of it, or six and more of its last digits."""
        if len(name) != _ID_DIGITS and len(name) >= _SHORT and name.replace("-", "").isalnum():
            found = {
                (None, row.batch) if row.batch and row.batch.endswith(name) else (row.id, None)
                for row in self.rows()
                if row.id.endswith(name) or (row.batch or "").endswith(name)
            }
            if len(found) == 1:
                return found.pop()
        return name, None

    def maker(self, entry_id: str) -> str:
        """Return the batch of an entry that was read, if it has one, else its ID: the name by which it is undone."""
        row = self.known.get(entry_id)
        return entry_id if row is None else row.batch or entry_id

    def of_batch(self, batch_id: str) -> list[Row]:
        """Return all changes that were made under a batch's ID, newest first."""
        return self._with_mark(batch_id, "batch")

    def of_key(self, key: str) -> list[Row]:
        """Return all changes that a named call made, newest first."""
        # A damaged line may be the one that is looked for; the entries then tell.
        if not self._rebuilt and not all(map(_is_sound, self._data.splitlines())):
            self._data = self._anew()
            self._end = len(self._data)
        return self._with_mark(key, "key")

    def of_path(self, path: str) -> list[Row]:
        """Return all changes of one file that were made by themselves, newest first."""
        return self._with_mark(path, "path")

    def _with_mark(self, text: str, name: str) -> list[Row]:
        """Return the rows whose field of this name has this text, newest first."""
        mark = json.dumps(text).encode("ascii")
        rows: dict[str, Row] = {}
        # A search in the raw bytes finds the candidate lines without decoding the whole index.
        at = self._data.rfind(mark)
        while at >= 0:
            low, high = self._data.rfind(b"\n", 0, at) + 1, self._data.find(b"\n", at)
            row = _row(self._data[low:high])
            if row is not None and getattr(row, name) == text and self.exists(row):
                rows.setdefault(row.id, row)
            at = self._data.rfind(mark, 0, low)
        return list(rows.values())

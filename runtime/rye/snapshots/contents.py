"""The contents of a project's files, each stored once under its SHA-256: what a change of the tree can be taken back to.

They lie in one SQLite database in the project's state folder, so that thousands of small files cost no thousands of names, and
a process that is killed leaves the old state or the new one. What is damaged is found by its digest and counts as missing.
A large file is stored, and read again, in parts: it is never in memory whole. Small ones that are added together are packed
together (a batch, a row of its own). A thread packs and writes them, beside the reading of more.
"""

from __future__ import annotations

import errno
import functools
import os
import threading
import zlib
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, Self, TypeVar

if TYPE_CHECKING:
    import sqlite3
    from concurrent.futures import Future, ThreadPoolExecutor
    from pathlib import Path

_BLOCK: Final = 1 << 20
# A larger content lies in parts of this size (bytes), the first of them in `content`, the others in `part`.
_PART: Final = 8 << 20
_WAIT_SECONDS: Final = 30.0
_NAME: Final = "contents.sqlite"
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS content
  (digest BLOB PRIMARY KEY, size INTEGER NOT NULL, packed INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS part
  (digest BLOB NOT NULL, number INTEGER NOT NULL, packed INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (digest, number));
"""
_LOG_BYTES: Final = 1 << 20
# Contents up to the first size are packed together, until they have the second (bytes).
_SMALL: Final = 16 << 10
_BATCH: Final = 128 << 10
# What `packed` of a content says: as it is; by itself; in a batch, which `data` names, with its place there.
_PLAIN, _PACKED, _IN_BATCH = 0, 1, 2
_DIGEST_BYTES: Final = 32
# The thread is given so much at a time, because each change from one thread to the other costs as much as several files, and
# so much may wait for it; a larger content waits alone (bytes). Of tiny files there are fewer than a statement may have values.
_JOB: Final = 1 << 20
_WAITING_BYTES: Final = 4 << 20
_MOST_ROWS: Final = 4_000
# So much of a disk of its own, or as much as it takes, a store leaves free: to drop contents, it moves others (bytes).
_SPARED: Final = 16 << 20
_UNTOLD: Final = 1 << 62


# What the database says, as the system says it, so that the caller hears what to do about it.
_ERRNOS: Final = {
    "SQLITE_FULL": errno.ENOSPC,
    "SQLITE_IOERR": errno.EIO,
    "SQLITE_NOMEM": errno.ENOMEM,
    "SQLITE_READONLY": errno.EROFS,
    "SQLITE_BUSY": errno.EAGAIN,
    "SQLITE_PERM": errno.EACCES,
}
in_sqlite: Final = threading.RLock()
"""Held for whatever is done in SQLite. A fork waits for it: the library's own locks would stay closed in the child for ever.

Who holds it does not wait for the thread of a `Contents`, which takes it.
"""
os.register_at_fork(before=in_sqlite.acquire, after_in_parent=in_sqlite.release, after_in_child=in_sqlite.release)
_P = ParamSpec("_P")
_T = TypeVar("_T")


def _alone(method: Callable[Concatenate[Contents, _P], _T]) -> Callable[Concatenate[Contents, _P], _T]:
    """Let one thread at a time be in SQLite; what that refuses is an error of the system."""

    @functools.wraps(method)
    def run(self: Contents, /, *args: _P.args, **more: _P.kwargs) -> _T:
        # Imported here: a call that runs no command needs no database.
        import sqlite3

        with in_sqlite:
            try:
                return method(self, *args, **more)
            except sqlite3.Error as err:
                raise self._failure(err) from None

    return run


class Contents:
    """The stored contents of one project. What was added is kept once `save` was called.

    Use it as a context manager: it holds a database open.

    Raises:
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        """Name the store of a folder, which is made (0700) if missing; one that is damaged is set aside when it is opened."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = folder / _NAME
        self._batch: list[tuple[bytes, bytes]] = []
        self._batch_bytes = 0
        self._last_batch = b"", b""
        self._thread: ThreadPoolExecutor | None = None
        # What the thread has to do, the oldest first, with its size.
        self._jobs: deque[tuple[Future[None], int]] = deque()
        self._waiting_bytes = 0
        self._is_broken = False
        self._added: set[bytes] = set()
        self._connection: sqlite3.Connection | None = None
        self._is_filled = True

    @property
    @_alone
    def _db(self) -> sqlite3.Connection:
        # At first use: most looks find nothing to store.
        if self._connection is None:
            self._connection = self._opened()
            self._is_filled = bool(self._rows("SELECT 1 FROM content LIMIT 1"))
        return self._connection

    def _opened(self, *, is_new: bool = False) -> sqlite3.Connection:
        import sqlite3

        # The file is private before anything is in it.
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        db = sqlite3.connect(self._path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute(f"PRAGMA journal_size_limit={_LOG_BYTES}")
            # Asked first: what is below would wait for a writer, though it changes nothing.
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'part'").fetchone():
                # Before the first page is written: later only a VACUUM changes it.
                db.execute("PRAGMA auto_vacuum=INCREMENTAL")
                # A write-ahead log: readers do not wait for a writer, and a transaction is one append.
                db.execute("PRAGMA journal_mode=WAL")
                db.executescript(_SCHEMA)
        except sqlite3.DatabaseError as err:
            db.close()
            if is_new or isinstance(err, sqlite3.OperationalError):
                raise
            self._set_aside()
            return self._opened(is_new=True)
        return db

    def _failure(self, err: sqlite3.Error) -> OSError:
        """Return what the database refuses as an error of the system."""
        # The extended codes begin with their family: SQLITE_IOERR_WRITE.
        error_name = getattr(err, "sqlite_errorname", "")
        number = next((number for name, number in _ERRNOS.items() if error_name.startswith(name)), errno.EIO)
        with suppress(OSError):
            # It also says so where there was no room for a file of its own.
            number = errno.ENOSPC if number == errno.EIO and os.statvfs(self._path).f_bavail == 0 else number
        return OSError(number, f"{os.strerror(number)} ({err})")

    def _set_aside(self) -> None:
        """Make way for a new store; what was in the damaged one counts as missing."""
        for tail in ("-wal", "-shm"):
            with suppress(OSError):
                os.unlink(f"{self._path}{tail}")
        os.replace(self._path, f"{self._path}.damaged")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Nothing of it goes on after the call: a file that is cut short meanwhile would end this process.
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
        with in_sqlite:
            if self._connection is not None:
                self._connection.close()

    def add(self, fd: int, length: int, most: int, room: int | None = None) -> tuple[bytes, int, int] | None:
        """Store the content of an open file of a known length, read in blocks. One that is stored already takes no room.

        Returns:
            Its SHA-256, its size and how many bytes it newly takes: more than `room` where it was not stored for want of it.
            None where it has more than `most` bytes, or changed while it was read.

        Raises:
            OSError: it cannot be read or stored.
        """
        most_read = min(_PART, most + 1)
        # Most files are read in one piece, which ends before the byte that is asked for beyond their length.
        first = os.read(fd, min(length + 1, _BLOCK, most_read))
        if len(first) != length or length >= _BLOCK:
            first += _read(fd, most_read - len(first))
        digest, size = sha256(first), len(first)
        if len(first) == _PART:
            # A large file is read twice: its parts are stored under its digest, which is known at its end.
            while size <= most and (block := os.read(fd, _BLOCK)):
                digest.update(block)
                size += len(block)
        if size > most:
            return None
        name = digest.digest()
        is_new = not self.has(name)
        if is_new and (room is None or size <= room):
            if size > len(first) and not self._store_parts(name, size, fd):
                return None
            self._store(_CONTENT, (name, size), first)
        return name, size, size if is_new else 0

    def put(self, data: bytes) -> bytes:
        """Store bytes of a file that is read whole and return their SHA-256. Raises OSError."""
        name = sha256(data).digest()
        if not self.has(name):
            if len(data) > self._free():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
            for number, at in enumerate(range(_PART, len(data), _PART), 1):
                self._store(_MORE, (name, number), data[at : at + _PART])
            self._store(_CONTENT, (name, len(data)), data[:_PART])
        return name

    def _store_parts(self, name: bytes, size: int, fd: int) -> bool:
        """Store all but the first part of a file; False where it is not the one that was read before."""
        os.lseek(fd, 0, os.SEEK_SET)
        digest, total, number = sha256(), 0, 0
        while part := _read(fd, _PART):
            digest.update(part)
            total += len(part)
            # A program may write as fast as this reads.
            if total > size:
                return False
            if number:
                self._store(_MORE, (name, number), part)
            number += 1
        return digest.digest() == name

    def _store(self, statement: str, key: tuple[bytes, int], data: bytes) -> None:
        self._added.add(key[0])
        if statement is _MORE or len(data) > _SMALL:
            self._give(lambda: self._insert(statement, [(*key, *_packed(data))]), len(data))
            return
        self._batch.append((key[0], data))
        self._batch_bytes += len(data)
        if self._batch_bytes > _JOB or len(self._batch) == _MOST_ROWS:
            self._end_batch()

    def _end_batch(self) -> None:
        batch, size, self._batch, self._batch_bytes = self._batch, self._batch_bytes, [], 0
        if batch:
            self._give(lambda: self._insert(_CONTENT, _rows_of(batch)), size)

    def _give(self, work: Callable[[], None], size: int) -> None:
        """Let the thread do what packs and writes so many bytes; where none can be started it is done at once."""
        while self._jobs and self._waiting_bytes + size > _WAITING_BYTES:
            self._wait_for_one()
        try:
            # Imported here: most looks store nothing.
            from concurrent.futures import ThreadPoolExecutor

            self._thread = self._thread or ThreadPoolExecutor(1, "rye-contents")
            job = self._thread.submit(self._do, work)
        except RuntimeError:
            # The system gives no thread, or this process ends.
            self._thread = None
            self._do(work)
        else:
            self._jobs.append((job, size))
            self._waiting_bytes += size

    def _do(self, work: Callable[[], None]) -> None:
        # Nothing is written behind what could not be: a content without its parts would count as stored.
        if not self._is_broken:
            self._is_broken = True
            work()
            self._is_broken = False

    def _wait_for_one(self) -> None:
        job, size = self._jobs.popleft()
        self._waiting_bytes -= size
        job.result()

    @_alone
    def _insert(self, statement: str, rows: Sequence[_Row]) -> None:
        """Write rows into the database; the parts of a content come before it."""
        # In one step: the interpreter's lock would be given away and taken again for each row. It is a transaction of its
        # own, because the child of a fork would take one that is open for ever for another program's.
        values = ", ".join(["(?, ?, ?, ?)"] * len(rows))
        self._db.execute(f"{statement} VALUES {values}", [value for row in rows for value in row])

    def has(self, digest: bytes) -> bool:
        """Tell whether a content is stored. Raises OSError."""
        if digest in self._added or not self._is_filled:
            return digest in self._added
        return bool(self._rows("SELECT 1 FROM content WHERE digest = ?", (digest,)))

    def read(self, digest: bytes) -> bytes | None:
        """Return a content whole; None where it is missing or damaged."""
        try:
            data = b"".join(self.blocks(digest))
        except (OSError, ValueError):
            return None
        return data

    def is_whole(self, digest: bytes) -> bool:
        """Tell whether a content is there and undamaged; it is read, but never in memory whole."""
        try:
            for _ in self.blocks(digest):
                pass
        except (OSError, ValueError):
            return False
        return True

    def blocks(self, digest: bytes) -> Iterator[bytes]:
        """Yield a content in parts of at most 8 MB.

        Raises:
            ValueError: it is missing or damaged, which may be found at its end only.
            OSError: the database cannot be read.
        """
        self.save()
        found = sha256()
        bytes_left = None
        numbers = iter(range(1, 1 << 31))
        rows = self._rows("SELECT packed, data, size FROM content WHERE digest = ?", (digest,))
        while rows and bytes_left != 0:
            packed, data, *size = rows[0]
            try:
                block = self._from_batch(data, int(size[0])) if int(packed) == _IN_BATCH else _unpacked(packed, data)
            except (zlib.error, TypeError):
                raise ValueError(digest.hex()) from None
            bytes_left = (int(size[0]) if bytes_left is None else bytes_left) - len(block)
            found.update(block)
            yield block
            if bytes_left:
                rows = self._rows("SELECT packed, data FROM part WHERE digest = ? AND number = ?", (digest, next(numbers)))
        if found.digest() != digest or bytes_left is None:
            raise ValueError(digest.hex())

    def _from_batch(self, place: bytes, size: int) -> bytes:
        name, at = place[:_DIGEST_BYTES], int.from_bytes(place[_DIGEST_BYTES:])
        batch = self._last_batch
        if batch[0] != name:
            # Files are brought back in the order in which they were read: most lie in the same one as the file before.
            batch = self._last_batch = name, self._batch_of(name)
        return batch[1][at : at + size]

    def _batch_of(self, name: bytes) -> bytes:
        rows = self._rows("SELECT packed, data FROM content WHERE digest = ?", (name,))
        return _unpacked(*rows[0]) if rows else b""

    @_alone
    def _rows(self, question: str, values: tuple[object, ...] = ()) -> list[tuple[bytes, ...]]:
        return self._db.execute(question, values).fetchall()

    def save(self) -> None:
        """Make what was added last. Raises OSError."""
        self._end_batch()
        while self._jobs:
            self._wait_for_one()

    def disk_size(self) -> int:
        """Return how much room the store takes (bytes), but for what was freed in it. Raises OSError."""
        self.save()
        numbers = [int(self._rows(f"PRAGMA {name}")[0][0]) for name in ("page_count", "freelist_count", "page_size")]
        return (numbers[0] - numbers[1]) * numbers[2]

    def limit(self, most: int) -> int:
        """Return how large the store may become, at most so many bytes: it never fills the disk. Raises OSError."""
        return min(most, self.disk_size() + self._free())

    def _free(self) -> int:
        disk, size = os.statvfs(self._path.parent), os.path.getsize(self._path) if self._connection is not None else 0
        # Of a disk that others fill a small change may have the rest: they can make room.
        spared = min(size, _SPARED) if 2 * size > (disk.f_blocks - disk.f_bfree) * disk.f_frsize else 0
        # What is added is in the log and in the database for a while. Some file systems do not tell their size.
        return max(disk.f_bavail * disk.f_frsize - spared, 0) // 2 if disk.f_blocks else _UNTOLD

    def sizes(self) -> dict[bytes, int]:
        """Return how much room each content takes (bytes): in a batch, its share. Raises OSError."""
        self.save()
        out: dict[bytes, int] = {}
        for table in ("content", "part"):
            for digest, size in self._rows(f"SELECT digest, length(data) FROM {table}"):  # noqa: S608 - our own names
                out[bytes(digest)] = out.get(bytes(digest), 0) + int(size)
        for batch, inside in self._batches().items():
            whole = sum(size for _, size, _ in inside)
            out |= {digest: out.get(batch, 0) * size // max(whole, 1) for digest, size, _ in inside}
        return out

    def _batches(self) -> dict[bytes, list[tuple[bytes, int, int]]]:
        """Return what lies in each batch: digest, size and place."""
        out: dict[bytes, list[tuple[bytes, int, int]]] = {}
        for digest, size, place in self._rows("SELECT digest, size, data FROM content WHERE packed = ?", (_IN_BATCH,)):
            at = int.from_bytes(place[_DIGEST_BYTES:])
            out.setdefault(bytes(place[:_DIGEST_BYTES]), []).append((bytes(digest), int(size), at))
        return out

    def keep_only(self, needed: Collection[bytes]) -> None:
        """Drop every content but these, and give its room back to the file system. Raises OSError."""
        self.save()
        self._added.clear()
        self._is_filled = True
        stored = {table: {bytes(row[0]) for row in self._rows(f"SELECT digest FROM {table}")} for table in ("content", "part")}  # noqa: S608
        self._drop(stored, {*needed} | self._kept_batches({*needed}))

    @_alone
    def _drop(self, stored: dict[str, set[bytes]], kept: set[bytes]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        for table, digests in stored.items():
            self._db.executemany(f"DELETE FROM {table} WHERE digest = ?", ((one,) for one in digests - kept))  # noqa: S608
        self._db.execute("COMMIT")
        # As a script, because `execute` ends after the first page.
        self._db.executescript("PRAGMA incremental_vacuum")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _kept_batches(self, needed: set[bytes]) -> set[bytes]:
        """Return the batches of which all is needed; what is needed of others is packed anew."""
        kept = set()
        for batch, inside in self._batches().items():
            if needed.issuperset(digest for digest, _, _ in inside):
                kept.add(batch)
                continue
            with suppress(zlib.error):
                data = self._batch_of(batch)
                for digest, size, at in inside:
                    if digest in needed:
                        self._store(_CONTENT, (digest, size), data[at : at + size])
        self.save()
        return kept


_Row = tuple[bytes, int, int, bytes]


def _rows_of(contents: list[tuple[bytes, bytes]]) -> list[_Row]:
    """Return small contents as they are stored: batches, each packed, then what lies in it."""
    rows, batch, at = list[_Row](), list[bytes](), 0
    # Its name is no digest, so that no content which a command makes can take its place.
    name = os.urandom(_DIGEST_BYTES)
    for number, (digest, one) in enumerate(contents, 1):
        rows.append((digest, len(one), _IN_BATCH, name + at.to_bytes(8)))
        batch.append(one)
        at += len(one)
        if at > _BATCH or number == len(contents):
            rows.append((name, at, *_packed(b"".join(batch))))
            name, batch, at = os.urandom(_DIGEST_BYTES), [], 0
    return rows


_CONTENT: Final = "INSERT OR REPLACE INTO content (digest, size, packed, data)"
_MORE: Final = "INSERT OR REPLACE INTO part (digest, number, packed, data)"


def _packed(data: bytes) -> tuple[int, bytes]:
    packed = zlib.compress(data, 1)
    return (_PACKED, packed) if len(packed) < len(data) else (_PLAIN, data)


def _unpacked(packed: object, data: bytes) -> bytes:
    return zlib.decompress(data) if packed else bytes(data)


def _read(fd: int, most: int) -> bytes:
    """Return the next bytes of a file: fewer than `most` at its end only."""
    blocks, bytes_left = [], most
    while bytes_left and (block := os.read(fd, min(bytes_left, _BLOCK))):
        blocks.append(block)
        bytes_left -= len(block)
    return b"".join(blocks)

"""The contents of a project's files, each stored once under its SHA-256: what a change of the tree can be taken back to.

They lie in one SQLite database in the project's state folder, so that thousands of small files cost no thousands of names, and
a process that is killed leaves the old state or the new one. What is damaged is found by its digest and counts as missing.
"""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Collection
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

_BLOCK: Final = 1 << 20
_WAIT_SECONDS: Final = 30.0
_NAME: Final = "contents.sqlite"
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS content (digest BLOB PRIMARY KEY, size INTEGER NOT NULL, packed INTEGER NOT NULL, data BLOB NOT NULL)
"""


# What the database says, as the system says it, so that the caller hears what to do about it.
_ERRNOS: Final = {
    "SQLITE_FULL": errno.ENOSPC,
    "SQLITE_IOERR": errno.EIO,
    "SQLITE_NOMEM": errno.ENOMEM,
    "SQLITE_READONLY": errno.EROFS,
    "SQLITE_BUSY": errno.EAGAIN,
    "SQLITE_PERM": errno.EACCES,
}


class Contents:
    """The stored contents of one project. What was added is kept once `save` was called.

    Use it as a context manager: it holds a database open.

    Raises:
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        """Open the store in a folder, which is made (0700) if missing. A store that is damaged is set aside."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = folder / _NAME
        self._db = self._opened()

    def _opened(self) -> sqlite3.Connection:
        # Imported here: a call that runs no command needs no database.
        import sqlite3

        for attempt in (1, 2):
            # The file is private before anything is in it.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
            db = sqlite3.connect(self._path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
            try:
                # A write-ahead log: readers do not wait for a writer, and a transaction is one append.
                db.execute("PRAGMA journal_mode=WAL")
                db.execute("PRAGMA synchronous=NORMAL")
                db.execute("PRAGMA auto_vacuum=INCREMENTAL")
                db.execute(_SCHEMA)
            except sqlite3.OperationalError as err:
                db.close()
                raise self._failure(err) from None
            except sqlite3.DatabaseError as err:
                db.close()
                if attempt == 2:
                    raise self._failure(err) from None
                self._set_aside()
            else:
                return db
        raise AssertionError(self._path)

    def _failure(self, err: sqlite3.Error) -> OSError:
        """Return what the database refuses as an error of the system."""
        # The extended codes begin with their family: SQLITE_IOERR_WRITE.
        said = getattr(err, "sqlite_errorname", "")
        number = next((number for name, number in _ERRNOS.items() if said.startswith(name)), errno.EIO)
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
        self._db.close()

    def add(self, fd: int, most: int) -> tuple[bytes, int] | None:
        """Store the content of an open file, read in blocks.

        Returns:
            Its SHA-256 and its size; None where it has more than `most` bytes.

        Raises:
            OSError: it cannot be read or stored.
        """
        digest, packer = sha256(), zlib.compressobj(1)
        blocks, packed, size = [], [], 0
        while block := os.read(fd, _BLOCK):
            size += len(block)
            if size > most:
                return None
            digest.update(block)
            blocks.append(block)
        name = digest.digest()
        if not self.has(name):
            packed = [*(packer.compress(block) for block in blocks), packer.flush()]
            self._store(name, size, blocks, packed)
        return name, size

    def put(self, data: bytes) -> bytes:
        """Store bytes and return their SHA-256. Raises OSError."""
        name = sha256(data).digest()
        if not self.has(name):
            self._store(name, len(data), [data], [zlib.compress(data, 1)])
        return name

    def _store(self, name: bytes, size: int, blocks: list[bytes], packed: list[bytes]) -> None:
        import sqlite3

        smaller = sum(map(len, packed)) < size
        data = b"".join(packed if smaller else blocks)
        try:
            if not self._db.in_transaction:
                self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("INSERT OR REPLACE INTO content VALUES (?, ?, ?, ?)", (name, size, smaller, data))
        except sqlite3.Error as err:
            raise self._failure(err) from None

    def has(self, digest: bytes) -> bool:
        """Tell whether a content is stored. Raises OSError."""
        return bool(self._rows("SELECT 1 FROM content WHERE digest = ?", (digest,)))

    def read(self, digest: bytes) -> bytes | None:
        """Return a content; None where it is missing or damaged."""
        try:
            rows = self._rows("SELECT packed, data FROM content WHERE digest = ?", (digest,))
            data: bytes | None = (zlib.decompress(rows[0][1]) if rows[0][0] else bytes(rows[0][1])) if rows else None
        except (OSError, zlib.error, TypeError):
            return None
        return data if data is not None and sha256(data).digest() == digest else None

    def _rows(self, question: str, values: tuple[object, ...] = ()) -> list[tuple[bytes, ...]]:
        import sqlite3

        try:
            return self._db.execute(question, values).fetchall()
        except sqlite3.Error as err:
            raise self._failure(err) from None

    def save(self) -> None:
        """Make what was added last. Raises OSError."""
        import sqlite3

        try:
            if self._db.in_transaction:
                self._db.execute("COMMIT")
        except sqlite3.Error as err:
            raise self._failure(err) from None

    def disk_size(self) -> int:
        """Return how much room the store takes (bytes), but for what was freed in it. Raises OSError."""
        numbers = [int(self._rows(f"PRAGMA {name}")[0][0]) for name in ("page_count", "freelist_count", "page_size")]
        return (numbers[0] - numbers[1]) * numbers[2]

    def sizes(self) -> dict[bytes, int]:
        """Return how much room each content takes (bytes). Raises OSError."""
        return {bytes(row[0]): int(row[1]) for row in self._rows("SELECT digest, length(data) FROM content")}

    def keep_only(self, needed: Collection[bytes]) -> None:
        """Drop every content but these, and give its room back to the file system. Raises OSError."""
        import sqlite3

        try:
            self._db.execute("BEGIN IMMEDIATE")
            stored = [row[0] for row in self._db.execute("SELECT digest FROM content")]
            self._db.executemany("DELETE FROM content WHERE digest = ?", ((one,) for one in stored if one not in needed))
            self._db.execute("COMMIT")
            self._db.execute("PRAGMA incremental_vacuum")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as err:
            raise self._failure(err) from None

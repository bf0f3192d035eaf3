"""Small files of our own: written whole, locked, read without trust in their content, and dropped when there are too many."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

_DAY = 86_400.0
_PATIENCE = 60.0
NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
ORDER: Final = ("a call's key", "files", "the tree", "the index")
"""The locks of which one is waited for while others are held, in their order; see `rye.journal.journal`."""


def make_private(folder: str | Path) -> None:
    """Make a folder for this user alone, with those above it that are missing, whatever the umask. Raises OSError."""
    if not os.path.isdir(folder):
        # By itself: `makedirs` leaves the mode of those above to the umask, and who writes in one exchanges what is below.
        if (above := os.path.dirname(folder)) not in ("", folder):
            make_private(above)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)


class closing:  # noqa: N801 - as `contextlib.closing`
    """Closes a descriptor when the block ends."""

    def __init__(self, fd: int) -> None:
        """Take an open descriptor."""
        self._fd = fd

    def __enter__(self) -> int:
        return self._fd

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


FAILING: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""By these the system says nothing of a file: it must not count as one that is not there."""


class passing(suppress):  # noqa: N801 - as `contextlib.suppress`
    """Passes over a file that is not there or cannot be read, but not that the system is short of descriptors or memory."""

    def __init__(self) -> None:
        """Begin."""
        super().__init__(OSError)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        return not (isinstance(error, OSError) and error.errno in FAILING) and super().__exit__(kind, error, trace)


_taken_last = ContextVar("the place in that order of the lock that was taken last", default=-1)


@contextmanager
def in_order(what: str, *, again: bool = False) -> Iterator[None]:
    """Assert that a lock is taken in the order that keeps two processes from waiting for each other.

    With `again` more than one of its kind may be held.
    """
    before, place = _taken_last.get(), ORDER.index(what)
    assert before < place + again, f"the lock of {what} is taken behind that of {ORDER[before]}"
    _taken_last.set(place)
    try:
        yield
    finally:
        _taken_last.set(before)


@contextmanager
def locked(
    lock: str | Path,
    *,
    shared: bool = False,
    patience: float = _PATIENCE,
    meanwhile: Callable[[], None] = lambda: None,
    strict: bool = False,
) -> Iterator[None]:
    """Hold a lock file for the block, waiting for whoever has it; its folder is made (0700) if missing.

    Several may hold it at once that ask for a `shared` one. `meanwhile` is called while it is waited for, and may raise.

    On a file system without locks the block runs unlocked: a record is still replaced whole, and a lost update is rare. Where
    that will not do, `strict` makes it an OSError.

    Raises:
        TimeoutError: another holds it, and goes on to for `patience` seconds.
        OSError: it cannot be made; what the block raises passes through.
    """
    # The lock file is never removed: a waiting process would hold the lock of a deleted file.
    flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        fd = os.open(lock, flags, 0o600)
    except FileNotFoundError:
        make_private(os.path.dirname(lock))
        fd = os.open(lock, flags, 0o600)
    with closing(fd):
        try:
            wait(fd, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, lock, time.monotonic() + patience, meanwhile)
        except OSError as err:
            if strict or err.errno not in NO_LOCKS:
                raise
        try:
            yield
        finally:
            # Not only closed: a process that was forked meanwhile has the descriptor, too, and would keep the lock.
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_UN)


def wait(fd: int, kind: int, lock: str | Path, end: float, meanwhile: Callable[[], None]) -> None:
    """Lock an open file, waiting for whoever has it until `end` on the monotonic clock. Arguments and errors as of `locked`."""
    pause = 0.000_2
    while True:
        try:
            return fcntl.flock(fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            meanwhile()
            if time.monotonic() > end:
                raise TimeoutError(errno.ETIMEDOUT, "another process holds the lock", str(lock)) from None
        time.sleep(pause)
        pause = min(pause * 2, 0.01)


def write(
    path: str | Path,
    data: bytes | Iterable[bytes],
    mode: int = 0o644,
    *,
    sync_folder: bool = True,
    durably: bool = True,
    dir_fd: int | None = None,
) -> None:
    """Put a file in place in one step: whoever reads it finds the old content or the new one, also after a crash.

    Records of changes under way (`rye.journal.commit`) are not written so: each is new, is written
    before the first file changes, and a half one, which a crash can leave, says that nothing was changed yet.

    Args:
        path: where; its folder exists.
        data: the content, whole or in parts.
        mode: permission bits, less the umask.
        durably: survive a crash of the machine; a cache need not.
        sync_folder: make the new name durable too; a caller that writes many does so once, with `sync`.
        dir_fd: an open folder in which `path` is a name; such a name is made durable by the caller.

    Raises:
        OSError: nothing was changed.
    """
    folder, name = os.path.split(path)
    # In the same folder: a rename is atomic only within one file system.
    temporary = os.path.join(folder, f".{name}.{os.urandom(4).hex()}")
    fd = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=dir_fd)
    try:
        # Unbuffered: a full disk fails here, not when a buffer is closed.
        with open(fd, "wb", buffering=0) as stream:
            for part in (data,) if isinstance(data, bytes) else data:
                view = memoryview(part).cast("B")
                while view:
                    view = view[stream.write(view) :]
            if durably:
                # Before the rename: after a power cut some file systems have the new name with no content.
                os.fsync(fd)
        _put(temporary, path, dir_fd, durably=durably)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=dir_fd)
        raise
    if sync_folder and durably and dir_fd is None:
        sync(folder)


def _put(temporary: str, path: str | Path, dir_fd: int | None, *, durably: bool) -> None:
    exchanged = False
    if not durably:
        # Loaded here: it takes time, and in a process that opens anything beneath a root it is there.
        from rye.fs import beneath

        # At a rename over a file ext4 writes the new content to the disk first, which takes ten milliseconds beside other work.
        with suppress(OSError):
            beneath.rename(dir_fd, temporary, os.fspath(path), beneath.EXCHANGE)
            exchanged = True
    if exchanged:
        os.unlink(temporary, dir_fd=dir_fd)
    else:
        os.replace(temporary, path, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)


def sync(folder: str | Path = ".", dir_fd: int | None = None) -> None:
    """Make a folder's names durable; `folder` may be a path from an open one."""
    with closing(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)) as fd:
        try:
            os.fsync(fd)
        except OSError as err:
            # Some file systems have no fsync for folders.
            if err.errno not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
                raise


def read_regular(
    path: str | bytes | Path, most: int = 1 << 40, *, dir_fd: int | None = None, follow: bool = True, whole: bool = False
) -> tuple[bytes, os.stat_result]:
    """Return the first `most` bytes of a regular file, and its state; with `follow` False no link stands for it.

    Raises:
        OSError: also for a named pipe or a device, which would be waited for, or never end; with `whole` for a larger file.
    """
    # O_NONBLOCK, since opening a named pipe would wait for a writer.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    return read_open(os.open(path, flags, dir_fd=dir_fd), most, path, whole=whole)


def read_open(opened: int, most: int, path: str | bytes | Path, *, whole: bool = False) -> tuple[bytes, os.stat_result]:
    """Return what `read_regular` does of an open file, which is closed; errors name `path`."""
    with closing(opened) as fd:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        # One byte more than allowed shows that there is more.
        limit = most + whole
        data = os.read(fd, min(limit, info.st_size + 4_096))
        # Files of the kernel's own tell no size, and some have no end.
        end = min(limit, info.st_size or 1 << 20)
        while len(data) < end and (more := os.read(fd, end - len(data))):
            data += more
        if whole and len(data) > most:
            raise OSError(errno.EFBIG, f"larger than {most:,} bytes", str(path))
        return data, info


def read(path: str | Path, limit: int = 64 * 1024 * 1024) -> bytes | None:
    """Return a file's bytes; None where there is none that can be read, no regular file, or more than `limit` bytes."""
    try:
        return read_regular(path, limit, whole=True)[0]
    except OSError:
        return None


def read_json(path: str | Path) -> dict[str, Any] | None:
    """Return the JSON object in a file of our own; None where there is none, whatever is wrong."""
    try:
        # However large: what is taken for missing is forgotten.
        record = json.loads(read(path, 1 << 40) or b"")
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def shaped(path: str, shape: Mapping[str, type]) -> dict[str, Any]:
    """Return the JSON object in a file with these members of these types; where it is not whole, one of empty members."""
    found = read_json(path) or {}
    is_whole = all(isinstance(found.get(name), kind) for name, kind in shape.items())
    return {name: found[name] if is_whole else kind() for name, kind in shape.items()}


@contextmanager
def changing(path: str, shape: Mapping[str, type]) -> Iterator[dict[str, Any]]:
    """Yield a record (`shaped`) to be changed, read under its lock, and store it, however the block ends. One of nothing goes.

    Raises:
        OSError: it cannot be stored.
    """
    with locked(f"{path}.lock"):
        record = shaped(path, shape)
        before = json.dumps(record)
        try:
            yield record
        finally:
            after = json.dumps(record)
            if not any(record.values()):
                with suppress(FileNotFoundError):
                    os.unlink(path)
            elif after != before:
                write(path, after.encode(), 0o600, durably=False)


def disk_size(info: os.stat_result) -> int:
    """Return what a file takes on its disk (bytes): small files take whole blocks."""
    return max(info.st_blocks * 512, info.st_size)


def prune(folder: str | Path, most: int, most_bytes: int, *, every: int = 1) -> None:
    """Drop the files of a folder that were written longest ago, beyond a number and bytes.

    To look at all files takes longer than to write one: with `every` it is done at about one call of so many.
    Names that begin with a dot are left, unless they are a day old: they belong to a write under way.

    Raises:
        OSError: the folder cannot be read.
    """
    if int.from_bytes(os.urandom(4)) % every:
        return
    found: list[tuple[float, int, str]] = []
    with os.scandir(folder) as listing:
        for one in listing:
            with suppress(OSError):
                info = one.stat(follow_symlinks=False)
                if stat.S_ISREG(info.st_mode):
                    found.append((info.st_mtime, disk_size(info), one.path))
    total = 0
    for number, (written, size, path) in enumerate(sorted(found, reverse=True)):
        total += size
        hidden = os.path.basename(path).startswith(".")
        if (time.time() - written > _DAY) if hidden else (number >= most or total > most_bytes):
            with suppress(OSError):
                os.unlink(path)

"""Where line indexes and locks live: the project's `.ai/cache`, or the user's state folder where that cannot be written.

A clone can bring its own `.ai/cache`. So it is opened beneath the root through no symbolic link, and what lies in it
is data to be checked, never an instruction.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from rye.call.context import check_deadline, deadline
from rye.call.results import call_text
from rye.config import user_dirs
from rye.errors import WorkspaceError
from rye.fs import atomic, beneath, names
from rye.fs.atomic import closing
from rye.workspace.path_errors import system_failure
from rye.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

VIEWS = ".ragix"
"""The project's folder for what was last viewed of each file."""

_DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A holder that works is done in far less; one that does not must not hold up every call for as long as it may take.
_MAX_WAIT = 10.0
# So often the list of locks is read, which the kernel gives in parts.
_LOOKS = 5
# Lock files that this process has open.
_lock_files: set[int] = set()
# A passing trouble must not pass for an absence: IDs would be lost, and the lock would be another than others hold.
_PASSING = (errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR)
_ABSENT = (errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.EACCES, errno.EPERM, errno.EINVAL)


def name_of(path: bytes) -> str:
    """Return the cache's name for a file: the first 16 hex digits of SHA-256 over its project-relative path."""
    return sha256(path).hexdigest()[:16]


@contextmanager
def folder(ws: Workspace, *parts: str) -> Iterator[int]:
    """Hold open a folder of the cache, made if missing: in the project, else in the user's state folder.

    Raises:
        WorkspaceError: `cache_unwritable` when neither can be written.
    """
    with closing(_folder(ws, parts)) as fd:
        yield fd


def _folder(ws: Workspace, parts: tuple[str, ...], files: Sequence[str] = ()) -> int:
    fd = _in_project(ws, (".ai", "cache", *parts), files)
    return _in_state(ws, parts) if fd is None else fd


@contextmanager
def view_folder(ws: Workspace) -> Iterator[int | None]:
    """Hold open the project's `.ragix`, made if missing; None where it cannot be written, or a link is there."""
    fd = _in_project(ws, (VIEWS,))
    try:
        yield fd
    finally:
        if fd is not None:
            os.close(fd)


def _in_project(ws: Workspace, parts: tuple[str, ...], files: Sequence[str] = ()) -> int | None:
    """Open a folder of the project that can be written, or that holds all of some files, for which it suffices to be read."""
    try:
        fd = _descend(ws.fd, parts)
    except OSError as err:
        if err.errno in _PASSING:
            raise
        return None
    # Root passes every permission check, so a read-only mount shows only here.
    if os.access(".", os.W_OK, dir_fd=fd) or (files and all(os.access(name, os.R_OK, dir_fd=fd) for name in files)):
        return fd
    os.close(fd)
    return None


def _in_state(ws: Workspace, parts: tuple[str, ...]) -> int:
    try:
        with closing(os.open(user_dirs.state_dir(ws.fd), _DIR)) as base:
            return _descend(base, ("cache", *parts))
    except OSError as err:
        why = f"Neither the project's .ai/cache nor the user's state folder can be written ({err.strerror})."
        hint = "Make one of them writable, or set USER_SPACE to a folder that is."
        raise WorkspaceError("cache_unwritable", why, hint) from None


def _descend(base: int, parts: tuple[str, ...]) -> int:
    """Open nested folders below `base`, made where they are missing, following no link."""
    # The folders exist at nearly every call, so that is tried first.
    try:
        return beneath.open_unlinked(base, parts, _DIR)
    except FileNotFoundError:
        for depth, part in enumerate(parts):
            with closing(beneath.open_unlinked(base, parts[:depth], _DIR)) as above:
                _make(part, above)
        return beneath.open_unlinked(base, parts, _DIR)


def _make(part: str, dir_fd: int) -> None:
    try:
        os.mkdir(part, dir_fd=dir_fd)
    except FileExistsError:
        return
    with closing(os.open(part, _DIR, dir_fd=dir_fd)) as below:
        # Under sudo or in a container the folder is for its owner, too, who could otherwise not write in it.
        if os.geteuid() == 0:
            above = os.fstat(dir_fd)
            with suppress(OSError):
                os.fchown(below, above.st_uid, above.st_gid)
        # The folder is no part of the project's source: git must not list it.
        if part in ("cache", VIEWS):
            _write(below, ".gitignore", b"*\n")


def read(dir_fd: int, name: str, limit: int = 256 * 1024 * 1024) -> bytes | None:
    """Return a cache file's bytes; None when it is missing, no regular file, or larger than `limit`."""
    try:
        data, _ = atomic.read_regular(name, limit + 1, dir_fd=dir_fd, follow=False)
    except OSError as err:
        if err.errno in _ABSENT:
            return None
        raise
    return data if len(data) <= limit else None


def write(dir_fd: int, name: str, data: bytes | Sequence[bytes]) -> None:
    """Replace a cache file in one step. Not made durable: what is lost here heals.

    Raises:
        WorkspaceError: `no_space`, `permission_denied` … as the system says; the old file is unchanged.
    """
    try:
        _write(dir_fd, name, data)
    except OSError as err:
        raise system_failure(err, "The line index") from None


def _write(dir_fd: int, name: str, data: bytes | Sequence[bytes]) -> None:
    try:
        atomic.write(name, data, durably=False, dir_fd=dir_fd)
    except IsADirectoryError:
        # No call makes a folder here: a clone brought it. It goes aside, and pruning spares what is not ours.
        os.rename(name, f".{name}.{os.urandom(4).hex()}.aside", src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        atomic.write(name, data, durably=False, dir_fd=dir_fd)


@contextmanager
def locked(ws: Workspace, *paths: bytes, patience: float = _MAX_WAIT, beside: Collection[bytes] = ()) -> Iterator[None]:
    """Hold the locks of some files (physical project-relative paths) across processes and threads.

    The caller holds those of the paths `beside` already.

    Files share 256 lock files, taken in one order, so that holders of several never wait for each other in a circle.

    Raises:
        WorkspaceError: `locked`, naming the holder where the system tells, when others hold any of them for longer than the
            call may take, or than `patience` (seconds for all of them); `cache_unwritable`.
            `no_locks` where neither the project nor the state folder lies on a file system that has locks.
        DeadlineError: the call's time is up.
    """
    held: list[int] = []
    started = time.monotonic()
    most = min(patience, _MAX_WAIT, deadline().remaining())
    try:
        with atomic.in_order("files", again=True):
            wanted = {name_of(path)[:2] for path in paths} - {name_of(path)[:2] for path in beside}
            _lock_somewhere(held, ws, sorted(wanted), started, started + most)
            yield
    finally:
        while held:
            _release(held.pop())


def _lock_somewhere(held: list[int], ws: Workspace, wanted: list[str], begun: float, end: float) -> None:
    # Also another user's locks, where they can be read: who edits beside them must wait for them.
    files = [f"{name}.lock" for name in wanted]
    # Every process finds the same file system without locks, so all of them lock in the state folder then.
    for opened in (partial(_folder, ws, ("locks",), files), partial(_in_state, ws, ("locks",))):
        try:
            with closing(opened()) as base:
                return _lock_all(held, base, wanted, begun, end)
        except OSError as err:
            if err.errno not in atomic.NO_LOCKS:
                raise system_failure(err, "The file's lock") from None
            why = err.strerror
    what = f"Neither the project's file system nor that of the user's state folder has locks ({why}). Nothing was written."
    raise WorkspaceError("no_locks", what, "Set USER_SPACE to a folder on a local disk.")


def _lock_all(held: list[int], base: int, lock_names: list[str], started: float, end: float) -> None:
    """Take the named locks in a folder; `held` gains the descriptors of those that are taken, or waited for."""
    for name in lock_names:
        fd = _open_lock(base, f"{name}.lock")
        _lock_files.add(fd)
        held.append(fd)
        path = f".ai/cache/locks/{name}.lock"
        try:
            atomic.wait(fd, fcntl.LOCK_EX, path, end, check_deadline)
        except TimeoutError:
            raise lock_error(fd, path, time.monotonic() - started) from None


def _release(fd: int) -> None:
    """Unlock and close a lock file; nothing in a forked child, which has closed its copy."""
    if fd in _lock_files:
        _lock_files.discard(fd)
        # A copy that a forked child has inherited would keep the lock past a mere close.
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def _forget_locks() -> None:
    """Close a forked child's copies: the threads that hold these locks live in the parent only."""
    while _lock_files:
        os.close(_lock_files.pop())


os.register_at_fork(after_in_child=_forget_locks)


def _open_lock(dir_fd: int, name: str) -> int:
    flags = os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        try:
            return os.open(name, flags | os.O_RDWR, 0o666, dir_fd=dir_fd)
        except OSError as err:
            if err.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            # Another user's lock file, or one on a read-only file system; to read it is enough to lock it.
            return os.open(name, flags & ~os.O_CREAT | os.O_RDONLY, dir_fd=dir_fd)
    except OSError as err:
        why = f"The lock file .ai/cache/locks/{name} cannot be opened ({err.strerror})."
        raise WorkspaceError("cache_unwritable", why, "Remove the folder .ai/cache/locks; it is made again.") from None


def lock_error(lock: int | Path, name: str, waited: float, held: str = "The lock of this file") -> WorkspaceError:
    """Return the refusal of a call that waited for a lock file, open or named: who holds it, and what to do."""
    pid = holder(lock)
    if pid == os.getpid():
        who, remedy = "another call of this process", "Try again in a moment."
    elif pid is None:
        who, remedy = "another process", f"Try again in a moment. If it stays so, `fuser -v {name}` shows the process to end."
    else:
        who = f"process {pid} ({_program(pid)})"
        job = call_text("job", action="end")
        remedy = (
            f"Try again in a moment. If it stays so, that process must end: a background job by {job}, any other by your user "
            f"(`kill {pid}`)."
        )
    return WorkspaceError(
        "locked",
        f"{held} is held by {who}; {waited:.0f} seconds were waited for it. Nothing was written.",
        remedy,
        **({} if pid is None else {"pid": pid}),
    )


def holder(lock: int | Path) -> int | None:
    """Return the process that has locked a file, open or named, as proc_locks(5) lists it; None where it does not tell."""
    info = os.stat(lock)
    device_and_inode = f"{os.major(info.st_dev):02x}:{os.minor(info.st_dev):02x}:{info.st_ino}"
    # A row is left out where other locks go between two parts of the list.
    for _ in range(_LOOKS):
        rows = [line.split() for line in (atomic.read("/proc/locks") or b"").decode("ascii", "replace").splitlines()]
        # A waiter's row has an arrow first. Process 0 is one that this process cannot see.
        found = [row[4] for row in rows if len(row) > 5 and row[1] == "FLOCK" and row[5] == device_and_inode]
        if found:
            return next((int(pid) for pid in found if pid.isdecimal() and int(pid)), None)
    return None


def _program(pid: int) -> str:
    return names.show((atomic.read(f"/proc/{pid}/comm", 64) or b"unknown program").strip())

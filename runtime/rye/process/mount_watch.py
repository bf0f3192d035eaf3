"""A watch over the names that a running job's sandbox covers.

A mount lies on a file, not on its name. When the user or the user's git puts another file at the name, the kernel takes the
mount off inside the job as well, and the job could write the new file. The kernel tells of such a change by inotify. The new
file is covered again, with the job stopped meanwhile: `stopped`, then `MountWatch.cover`.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from rye.fs import atomic, beneath
from rye.fs.atomic import closing
from rye.process import process_tree

_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_SELF_DELETED, _SELF_MOVED = 0x400, 0x800
_EVENTS: Final = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _SELF_DELETED | _SELF_MOVED
# <linux/nsfs.h>, <linux/sched.h>, <linux/mount.h>; the calls' numbers are those of every architecture (Linux 5.12).
_OWNER_OF_NAMESPACE: Final = 0xB701
_NEW_USERS, _NEW_MOUNTS = 0x10000000, 0x00020000
_OPEN_TREE, _MOVE_MOUNT, _SET_ATTRIBUTES = 428, 429, 442
_CLONE, _EMPTY_PATH, _FROM_EMPTY, _TO_EMPTY = 1, 0x1000, 4, 0x40
_READ_ONLY_NO_SETUID_NO_DEVICES: Final = 1 | 2 | 4
_MOST: Final = 1 << 20
# What makes the sandbox, and what has ended.
_NOT_THE_JOB: Final = (b"bwrap", b"")
_PATIENCE: Final = 2.0


class MountWatch:
    """Reports when the file at one of some names is replaced.

    Attributes:
        fd: readable when one of the folders changed.
    """

    def __init__(self, paths: Sequence[str], before: Mapping[str, Sequence[int]]) -> None:
        """Watch the folders of these absolute paths; `before` has the identity of some when they were covered.

        Raises:
            OSError: the kernel cannot tell of changes, as where the user watches too much already.
        """
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = _done(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        for folder in {os.path.dirname(path) for path in paths}:
            _done(libc.inotify_add_watch(self.fd, os.fsencode(folder), _EVENTS))
        self._known = {path: tuple(before[path]) if path in before else identity_at(path) for path in paths}
        # Held: a freed inode's number could be the next file's.
        self._held = [fd for path in paths if (fd := _held(path)) >= 0]

    def lost(self) -> str:
        """Return the first path whose file was replaced or is gone; empty while none is."""
        with suppress(BlockingIOError):
            # Drain the events and compare identities: events may be merged or lost, identities cannot be.
            os.read(self.fd, 1 << 16)
        return next((path for path, known in self._known.items() if identity_at(path) != known), "")

    def cover(self, path: str, inside: Sequence[int], since: int) -> None:
        """Cover the file that has taken a name, in the sandbox of processes that have been stopped `since` then.

        A file that was made before is exchanged for a copy of its own first: the job may have opened it. One that was made
        since is another job's copy; were it exchanged too, two jobs would exchange each other's for ever.

        Raises:
            OSError: it cannot be done, or another program has exchanged it meanwhile.
            RyeError: as `rye.workspace.atomic_replace.replace`.
        """
        namespaces = {os.stat(f"/proc/{pid}/ns/mnt").st_ino: pid for pid in inside if _comm(pid) not in _NOT_THE_JOB}
        if len(namespaces) != 1 or os.stat("/proc/self/ns/mnt").st_ino in namespaces:
            raise OSError(errno.EXDEV, "the job has other mount namespaces than its sandbox's")
        if _made_before(path, since):
            _renew(path)
        known = identity_at(path)
        # By another program, that is. A file system that does not tell says 0.
        if _made_before(path, since) and not _made_before(path, 0):
            raise OSError(errno.ESTALE, "the file was exchanged")
        child = os.fork()
        if child == 0:
            failed = 1
            with suppress(OSError):
                _mount_over(next(iter(namespaces.values())), path, known)
                failed = 0
            os._exit(failed)
        if os.waitpid(child, 0)[1] or identity_at(path) != known:
            raise OSError(errno.EIO, "the file could not be covered")
        self._known[path] = known
        self._held.append(_held(path))

    def descriptors(self) -> list[int]:
        """Return what must stay open."""
        return [*self._held, self.fd]


def identity_at(path: str) -> tuple[int, ...]:
    """Return what tells the file at a path, or a link, from each other that takes its place; zeros where nothing is."""
    with suppress(OSError), closing(os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)) as fd:
        return _identity(fd, path)
    return 0, 0


def _identity(fd: int, path: str) -> tuple[int, ...]:
    info, born = os.fstat(fd), beneath.birth_time(fd)
    # The number of a file that is gone is given again. Without its birth the time of change tells: git replaces its files, but
    # editors write in place.
    return info.st_dev, info.st_ino, *((info.st_ctime_ns,) if born == (0, 0) and "/.git/" in path else born)


def _made_before(path: str, then: int) -> bool:
    """Tell whether a file was made before a time (ns), or may have been. Raises OSError."""
    with closing(os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)) as fd:
        seconds, nanoseconds = beneath.birth_time(fd)
    return seconds * 1_000_000_000 + nanoseconds <= then


def _held(path: str) -> int:
    with suppress(OSError):
        return os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    return -1


def _done(result: int) -> int:
    """Return what a call of the C library did; raises OSError."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def wait_until_made(seconds: float) -> None:
    """Return when a process below this one runs in its sandbox. Raises OSError: none does for so long, or will."""
    end = time.monotonic() + seconds
    below = process_tree.descendants(os.getpid())
    while all(_comm(pid) in _NOT_THE_JOB for pid in below):
        # bubblewrap ends where it finds another file than the one that it has just mounted.
        if time.monotonic() > end or not below:
            raise OSError(errno.ETIMEDOUT, "no sandbox was made")
        time.sleep(0.01)
        below = process_tree.descendants(os.getpid())


def _comm(pid: int) -> bytes:
    """Return the name of the program that a process runs; empty where it has ended."""
    with suppress(OSError), open(f"/proc/{pid}/comm", "rb") as file:
        return file.read().rstrip(b"\n")
    return b""


@contextmanager
def stopped() -> Iterator[list[int]]:
    """Have all processes below this one stop for the block; yields them. Raises OSError where one does not."""
    # Late: a job starts without it.
    import signal

    held: list[int] = []
    end = time.monotonic() + _PATIENCE
    try:
        while True:
            now = process_tree.descendants(os.getpid())
            if all(process_tree.stat_fields(pid)[:1] in ([], [b"T"], [b"t"]) for pid in now):
                break
            if time.monotonic() > end:
                raise OSError(errno.ETIMEDOUT, "the job did not stop")
            for pid in set(now).difference(held):
                held.append(pid)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            time.sleep(0.001)
        yield now
    finally:
        for pid in held:
            with suppress(OSError):
                os.kill(pid, signal.SIGCONT)


def _renew(path: str) -> None:
    """Exchange a small file for a copy of its own. Raises OSError, also where another program changes it meanwhile."""
    # Late: a job starts without it.
    from rye.workspace import atomic_replace
    from rye.workspace.workspace import Place

    folder, name = os.path.split(path)
    with closing(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as fd:
        data, info = atomic.read_regular(name, _MOST, dir_fd=fd, follow=False)
        if info.st_size > _MOST:
            raise OSError(errno.EINVAL, "not a small file")
        place = Place(fd, (os.fsencode(name),), info)
        atomic_replace.replace(place, data, atomic_replace.digest_of(data), atomic_replace.temporary_name())


def _mount_over(pid: int, path: str, known: tuple[int, ...]) -> None:
    """Cover a file in the mount namespace of a process, which this process enters for good. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    mounts = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    # bubblewrap makes the mounts as an owner that is not the one of the job's processes. Root owns them itself.
    libc.setns(fcntl.ioctl(mounts, _OWNER_OF_NAMESPACE), _NEW_USERS)
    _done(libc.setns(mounts, _NEW_MOUNTS))
    at = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    if _identity(at, path) != known:
        raise OSError(errno.ESTALE, "the sandbox shows another file")
    tree = _done(libc.syscall(_OPEN_TREE, at, b"", _EMPTY_PATH | _CLONE))
    attributes = (ctypes.c_uint64 * 4)(_READ_ONLY_NO_SETUID_NO_DEVICES, 0, 0, 0)
    _done(libc.syscall(_SET_ATTRIBUTES, tree, b"", _EMPTY_PATH, attributes, ctypes.sizeof(attributes)))
    _done(libc.syscall(_MOVE_MOUNT, tree, b"", at, b"", _FROM_EMPTY | _TO_EMPTY))

"""Which commands run: `running/TOKEN` in the project's state folder, locked by the process that runs the command.

The kernel drops the lock when that process ends, however it ends. So a command lives exactly as long as its file is locked, and
no process number, start time or boot has to be compared. A command is passed on with its descriptor: a job's supervisor
inherits it. Nothing else does: the descriptor closes at exec, and forked children close theirs.

Where the file system of the state folder has no locks, a command lives as long as its file is there.

Within a process one thread at a time makes a command ready or looks after it: it is its turn.
"""

from __future__ import annotations

import fcntl
import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from rye.config import user_dirs
from rye.fs import atomic
from rye.fs.atomic import closing

FOLDER: Final = "running"

Handle = tuple[str, int, str]
"""A token, the descriptor of its file and the path."""

_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_ASKED: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
# Commands that this process runs: token -> (descriptor, path). The guard is held at a fork, too.
_held: dict[str, tuple[int, str]] = {}
_guard = threading.Lock()
_TURN_SECONDS: Final = 1.0


class Turn(threading.local):
    """Whether it is the turn of this thread: `take` it, and `leave` it to others while the command runs.

    Many at once would take the interpreter from each other at each system call, which costs more than their work.

    Attributes:
        asked: when the thread that has it asked for it, on the monotonic clock; infinite where none was asked for.
    """

    lock = threading.Lock()
    held = False
    asked = math.inf

    def take(self) -> None:
        """Wait for the turn, but go on without it after a while: another thread may look at a large project for long."""
        self.asked = time.monotonic()
        self.held = self.lock.acquire(timeout=_TURN_SECONDS)

    def leave(self) -> None:
        """Let others have their turn."""
        self.asked = math.inf
        if self.held:
            self.held = False
            self.lock.release()

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_: object) -> None:
        self.leave()


turn: Final = Turn()


def begin(root: str | int) -> str:
    """Note that this process runs a command, and return its token, which names it everywhere; `end` it. Raises OSError."""
    folder = f"{user_dirs.state_dir(root)}/{FOLDER}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    _sweep(folder)
    while True:
        token = os.urandom(8).hex()
        path = f"{folder}/{token}"
        with _guard:
            fd = os.open(path, _NEW, 0o600)
            try:
                _lock(fd, fcntl.LOCK_EX)
                # Another process may have swept it away before it was locked.
                if os.fstat(fd).st_nlink:
                    _held[token] = fd, path
                    return token
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)


@contextmanager
def running(root: str | int) -> Iterator[str]:
    """Have a command of this process live for the block; yields its token, empty where the state folder cannot be used."""
    token = ""
    with suppress(OSError):
        token = begin(root)
    try:
        yield token
    finally:
        end(token)


def end(token: str) -> None:
    """Note that a command of this process is over; nothing where it was passed on, or is over already."""
    with _guard:
        if command := _held.pop(token, None):
            fd, path = command
            with suppress(OSError):
                os.unlink(path)
            # Not only closed: a process that is being started may have the descriptor still.
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)


def handle(token: str) -> Handle:
    """Return what `take` needs in another process, which must inherit the descriptor. Raises KeyError: it does not run here."""
    return (token, *_held[token])


def pass_on(token: str) -> None:
    """Note that another process, which has inherited the descriptor, runs this command from now on."""
    with _guard:
        if command := _held.pop(token, None):
            os.close(command[0])


def take(command: Handle) -> None:
    """Run a command that another process has begun, by the descriptor that this one has inherited."""
    token, fd, path = command
    with _guard:
        # What this process starts must not inherit it: a program that lives on would keep the command alive.
        os.set_inheritable(fd, False)
        _held[token] = fd, path


def is_alive(root: str | int, token: str) -> bool:
    """Tell whether the process lives that runs a command. Where that cannot be found out it counts as living."""
    try:
        return _is_locked(f"{user_dirs.state_dir(root)}/{FOLDER}/{token}")
    except OSError:
        return True


def is_alive_from(job: int, token: str) -> bool:
    """Tell the same by a descriptor of a job's folder, which lies in the same state folder."""
    return _is_locked(f"../../{FOLDER}/{token}", job)


def _is_locked(path: str, dir_fd: int | None = None) -> bool:
    try:
        fd = os.open(path, _ASKED, dir_fd=dir_fd)
    except FileNotFoundError:
        return False
    except OSError:
        # Out of descriptors, say: to take a living command for a dead one would open what guards it.
        return True
    with closing(fd):
        # Shared: those who ask at the same time must not take each other for the one that runs it.
        return not _lock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)


def _lock(fd: int, kind: int) -> bool:
    """Lock a file; tell whether that was done. Raises OSError."""
    try:
        fcntl.flock(fd, kind)
    except BlockingIOError:
        return False
    except OSError as err:
        if err.errno not in atomic.NO_LOCKS:
            raise
        return False
    return True


def _sweep(folder: str) -> None:
    """Remove what killed processes left."""
    for name in os.listdir(folder):
        with suppress(OSError), closing(os.open(f"{folder}/{name}", _ASKED)) as fd:
            # Held until it is gone: who has just made it waits for its own lock, and sees then that it is to make another.
            if _lock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB):
                os.unlink(f"{folder}/{name}")


def _forget() -> None:
    """Close a forked child's copies: the commands are its parent's, and would outlive it."""
    for fd, _ in _held.values():
        os.close(fd)
    _held.clear()
    _guard.release()
    Turn.lock, turn.held, turn.asked = threading.Lock(), False, math.inf


os.register_at_fork(before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_forget)

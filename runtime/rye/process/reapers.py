"""Reapers for commands (see `rye.process.reaper`): a process of one thread forks them, and those of sandboxed ones serve again.

Never forked by this process, which may have threads. The process that forks is started with the first command, and ends with
this one; it is started anew where it was killed, or where what commands inherit from this process has changed.
"""

from __future__ import annotations

import array
import atexit
import os
import resource
import select
import signal
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rye.call.command_channel import ready
from rye.config import user_dirs
from rye.sandbox import resource_limits

# Behind the standard library on the path, so that no module beside it stands in for one of its own.
_START = "import sys; sys.path.append(sys.argv[1]); from rye.process import reaper; reaper.serve(int(sys.argv[2]))"
_MOST_IDLE = 10
_RUNTIME = str(Path(__file__).parents[2])
_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


def environment() -> dict[str, str]:
    """Return the environment of reapers and supervisors: not the command's, which must not affect them."""
    return {"PATH": os.defpath, **user_dirs.libraries()}


class Reaper(NamedTuple):
    """A reaper that waits for its order.

    Attributes:
        line: the socket for its order and what it reports; closed, the reaper ends all that it started.
        groups: control groups that it has joined.
        forker: its parent, which knows it by `number`.
    """

    line: socket.socket
    groups: tuple[str, ...]
    forker: _Forker
    number: int

    def close(self) -> None:
        """End it; it is gone when this returns."""
        with suppress(OSError):
            self.line.shutdown(socket.SHUT_WR)
        # Of no event: that the other end was closed, too, is told all the same.
        if not ready(self.line.fileno(), 0, 0.3):
            # Killed, it can no longer end what left the tree, so it is asked first.
            self.forker.kill(self.number)
            ready(self.line.fileno(), 0, 1.0)
        self.line.close()


def _pair(kind: int) -> tuple[socket.socket, socket.socket]:
    """Return two connected sockets, the second for another process, which waits for what comes."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    # A host's `socket.setdefaulttimeout`, and gevent, make sockets that do not block.
    ours.settimeout(None)
    os.set_blocking(theirs.fileno(), True)
    return ours, theirs


class _Forker:
    """The process that forks reapers; used under the lock."""

    def __init__(self) -> None:
        self.inherited, python = _inherited(), user_dirs.python()
        self._count = 0
        self._line, theirs = _pair(socket.SOCK_SEQPACKET)
        with theirs:
            # Any number but its own, so that it is inherited.
            number = 3 if theirs.fileno() != 3 else 4
            nothing = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
            self._pid = os.posix_spawn(
                python,
                [python, "-I", "-S", "-c", _START, _RUNTIME, str(number)],
                environment(),
                # The socket first: it may have the number of a stream that this process has closed.
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), number), *nothing],
                # A host may block or ignore some, and a reaper goes by SIGCHLD and SIGTERM.
                setsigmask=(),
                setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
            )

    def new(self, groups: tuple[str, ...]) -> Reaper:
        """Return a reaper that joins these groups; it may still be starting. Raises OSError."""
        ours, theirs = _pair(socket.SOCK_STREAM)
        self._count += 1
        request = b"\0".join((b"new", b"%d" % self._count, *map(os.fsencode, groups)))
        try:
            with theirs:
                rights = array.array("i", [theirs.fileno()])
                self._line.sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        except BaseException:
            ours.close()
            raise
        return Reaper(ours, groups, self, self._count)

    def kill(self, number: int) -> None:
        with suppress(OSError):
            self._line.send(b"kill\0%d" % number)

    def close(self) -> None:
        self._line.close()
        with suppress(ChildProcessError):
            os.waitpid(self._pid, os.WNOHANG)


class _State:
    """What this process has: the process that forks, and reapers that wait; used under the lock."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.lock = threading.Lock()
        self.forker: _Forker | None = None
        self.idle: list[Reaper] = []

    def new(self, groups: tuple[str, ...]) -> Reaper:
        if self.forker is not None and self.forker.inherited == _inherited():
            # Killed meanwhile: the next one serves.
            with suppress(ConnectionError):
                return self.forker.new(groups)
        if self.forker is not None:
            self.forker.close()
        self.forker = _Forker()
        return self.forker.new(groups)


_state = _State()


def take(groups: tuple[str, ...]) -> Reaper:
    """Return a reaper for one command, which has joined these control groups or does so now. Raises OSError."""
    with _state.lock:
        fitting = next((one for one in _state.idle if one.groups == groups), None)
        if fitting is not None:
            _state.idle.remove(fitting)
            if _is_usable(fitting):
                return fitting
        found = _state.new(groups)
    if fitting is not None:
        fitting.close()
    return found


def give_back(reaper: Reaper) -> None:
    """Let a reaper serve another command, with its control groups: its own has ended whole, in a sandbox.

    Without one the command could have taken the reaper over.
    """
    reaper.line.setblocking(True)
    with _state.lock:
        _state.idle.append(reaper)
        resource_limits.keep(reaper.groups)
        oldest = _state.idle.pop(0) if len(_state.idle) > _MOST_IDLE else None
    if oldest is not None:
        oldest.close()
        resource_limits.give_up(oldest.groups)


def _is_usable(idle: Reaper) -> bool:
    # One that says something before its order was killed.
    return not ready(idle.line.fileno(), select.POLLIN, 0) and idle.forker.inherited == _inherited()


def _inherited() -> tuple[object, ...]:
    """Return what commands have from this process, and the process that forks would keep as it was."""
    with open("/proc/self/status", "rb") as file:
        mask = next((line for line in file if line.startswith(b"Umask:")), b"")
    return mask, os.geteuid(), os.getegid(), environment(), [resource.getrlimit(one) for one in _LIMITS]


@atexit.register
def _finish() -> None:
    for one in _state.idle:
        one.close()
        resource_limits.give_up(one.groups)


# In a forked process: the reapers are its parent's, and another thread may have held the lock.
os.register_at_fork(after_in_child=_state.forget)

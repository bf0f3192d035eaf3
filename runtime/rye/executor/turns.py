"""Calls that run in the thread that brings them, and who waits beside a call that lasts.

Waking a thread takes longer than a small read. So a call begins alone; a timer of the kernel, set at its begin and taken back
at its end, wakes another thread only where the call lasts. That one starts whoever must not wait for it: who reads the next
request, and who ends the call when its time is over.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from rye.executor import run_code

MOMENT_SECONDS: Final = 0.002
"""A call that takes longer lasts."""

_MONOTONIC, _CLOEXEC = 1, 0o2000000


class CallTurn:
    """One call in the thread that brings it; any thread may use it."""

    def __init__(self, read_on: Callable[[], None]) -> None:
        self._read_on = read_on
        self._beside: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._lasts = self._is_over = self._is_read_on = False

    def beside(self, work: Callable[[], None]) -> None:
        """Have `work`, which handles its own failures, done in another thread if the call lasts."""
        with self._lock:
            if not self._lasts:
                self._beside.append(work)
                return
        start(work)

    def lasts(self) -> None:
        """Have another thread read on, and start what is to be done beside, unless the call is over."""
        with self._lock:
            if self._is_over or self._lasts:
                return
            self._lasts = True
            # With the lock: who ends the call reads on itself where no thread could be started.
            self._is_read_on = start(self._read_on)
        for work in self._beside:
            start(work)

    def end(self) -> bool:
        """Tell that the call is over; return whether another thread reads on."""
        with self._lock:
            self._is_over = True
            return self._is_read_on


current: ContextVar[CallTurn | None] = ContextVar("rye_turn", default=None)
"""The turn of the call that this thread runs; None where it is no such call's."""


def start(work: Callable[[], None]) -> bool:
    """Do work in another thread; False where none can be started."""
    with contextlib.suppress(RuntimeError, MemoryError):
        run_code.start(work)
        return True
    return False


# `struct itimerspec`: the interval, and how long until the first time; each in seconds and nanoseconds.
_NEVER, _SOON = (struct.pack("4l", 0, 0, 0, nanoseconds) for nanoseconds in (0, int(MOMENT_SECONDS * 1e9)))


class Alarm:
    """Tells the turns of one reader that they last: one turn at a time, until it is over or lasts."""

    def __init__(self) -> None:
        """Start the thread that waits. RuntimeError: the system gives none."""
        # Not `CDLL`, which gives the interpreter away for the call, and another thread may take it.
        self._libc = ctypes.PyDLL(None)
        self._fd = self._libc.timerfd_create(_MONOTONIC, _CLOEXEC)
        self._turn: CallTurn | None = None
        # A filter of system calls may refuse the timer: each turn lasts from its begin then.
        if self._fd >= 0:
            threading.Thread(target=self._wait, name="rye-alarm", daemon=True).start()

    def begin(self, read_on: Callable[[], None]) -> CallTurn:
        """Begin the next turn; where it lasts, `read_on` is called in another thread."""
        self._turn = turn = CallTurn(read_on)
        if self._fd >= 0:
            self._set(_SOON)
        else:
            turn.lasts()
        return turn

    def end(self, turn: CallTurn) -> bool:
        """End a turn; return whether another thread reads: the next turn may be under way then."""
        if turn.end():
            return True
        self._set(_NEVER)
        return False

    def _set(self, times: bytes) -> None:
        self._libc.timerfd_settime(self._fd, 0, times, None)

    def _wait(self) -> None:
        while True:
            os.read(self._fd, 8)
            turn = self._turn
            if turn is not None:
                turn.lasts()

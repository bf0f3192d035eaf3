"""Threads in which tools run. One that has ended its work takes the next call's: a new thread costs more than a small tool.

A thread is free again only when its work has returned, so one whose tool outlives its call is never shared. What is run carries
its own context; nothing of a call stays behind in a thread.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_KEPT = 8

_free: list[_Worker] = []


def start(work: Callable[[], object]) -> None:
    """Run `work`, which handles its own failures, in a thread beside the caller's."""
    try:
        worker = _free.pop()
    except IndexError:
        worker = _Worker()
    worker.take(work)


class _Worker:
    """A thread that waits for its next work, which one caller at a time gives it."""

    def __init__(self) -> None:
        self._work: Callable[[], object] | None = None
        self._given = threading.Lock()
        self._given.acquire()
        threading.Thread(target=self._serve, name="rye-tool", daemon=True).start()

    def take(self, work: Callable[[], object]) -> None:
        self._work = work
        self._given.release()

    def _serve(self) -> None:
        while True:
            self._given.acquire()
            work, self._work = self._work, None
            if work is not None:
                work()
            # Else what the call held would live on until the next one.
            del work
            if len(_free) >= _KEPT:
                return
            _free.append(self)


# Only the thread that forks is in the child.
os.register_at_fork(after_in_child=_free.clear)

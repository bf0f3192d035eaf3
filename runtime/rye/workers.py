"""Threads in which tools run. One that has ended its work takes the next call's: a new thread costs more than a small tool.

A thread is free again only when its work has returned, so one whose tool outlives its call is never shared. What is run carries
its own context; nothing of a call stays behind in a thread.
"""

from __future__ import annotations

import os
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_KEPT = 8

_free: list[SimpleQueue[Callable[[], object]]] = []


def start(work: Callable[[], object]) -> None:
    """Run `work`, which handles its own failures, in a thread beside the caller's."""
    try:
        todo = _free.pop()
    except IndexError:
        todo = SimpleQueue()
        threading.Thread(target=_serve, args=(todo,), name="rye-tool", daemon=True).start()
    todo.put(work)


def _serve(todo: SimpleQueue[Callable[[], object]]) -> None:
    while True:
        todo.get()()
        if len(_free) >= _KEPT:
            return
        _free.append(todo)


# Only the thread that forks is in the child.
os.register_at_fork(after_in_child=_free.clear)

"""Waiting for a state, not for a time: a machine with other work may take any time for anything."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds until what should happen at once counts as not happening. What would hold a test up for ever sleeps for longer."""


def until(true: Callable[[], T], seconds: float = PATIENCE) -> T:
    """Ask again and again until the answer is true, and return it. Raises AssertionError once the time is over."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, f"this did not happen within {seconds:g} s"
        time.sleep(0.01)
    return found


def in_time(call, about=""):
    """Return what a call answers, which may not hang."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(call()), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert answers, f"the call hangs: {about}"
    return answers[0]

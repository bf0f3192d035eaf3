"""What a tool says: success results, truncation envelopes, limits, and the deadline of the call."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from rye.errors import DeadlineError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINE_CHARS = 2_000
"""A longer line is shortened visibly when shown (characters)."""

MAX_OUTPUT_BYTES = 51_200
"""A tool's text output is cut at a line boundary beyond this (bytes of UTF-8)."""


def ok(output: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    """Return a success result: `{"success": true, "output": output, **fields}`."""
    return {"success": True, "output": output, **fields}


def envelope(shown: int, total: int, unit: str, call: str, omitted: int | None = None) -> str:
    """Return the one-line notice that something was cut, and the very call that gives the rest.

    Args:
        shown: how many units were returned.
        total: how many there are.
        unit: plural noun: `lines`, `matches`, `bytes`.
        call: the call that continues, such as `read(file_path="a.py", offset=101)`.
        omitted: how many remain, where that is not `total - shown`.
    """
    more = total - shown if omitted is None else omitted
    return f"[tool_result: {shown} of {total} {unit}; {more} more omitted. Call {call} to see more.]"


class Deadline:
    """The time limit of one call, shared by the executor and the toolkit.

    The toolkit calls `check` at every open and wraps every commit in `commit`. The executor calls `expire` when it
    gives up waiting: from then on no commit can begin, and one under way is waited for, so that what the caller is
    told is true. `commits` counts those that were completed.
    """

    def __init__(self, seconds: float) -> None:
        """Start the clock: the call may take `seconds` from now."""
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self.commits = 0
        self._expired = False
        self._lock = threading.RLock()

    def remaining(self) -> float:
        """Return the seconds left, never below zero."""
        return 0.0 if self._expired else max(0.0, self._end - time.monotonic())

    def check(self) -> None:
        """Raise `DeadlineError` when the time is up."""
        if self.remaining() <= 0:
            raise DeadlineError(self.seconds)

    @contextmanager
    def commit(self) -> Iterator[None]:
        """Hold the right to write: begins only in time, and `expire` waits for its end."""
        with self._lock:
            self.check()
            yield
            self.commits += 1

    def expire(self) -> None:
        """End the call's time now, after any commit that already began."""
        with self._lock:
            self._expired = True


_UNLIMITED = Deadline(float("inf"))
_current: ContextVar[Deadline] = ContextVar("rye_deadline", default=_UNLIMITED)


def deadline() -> Deadline:
    """Return the running call's deadline (without limit outside a call)."""
    return _current.get()


@contextmanager
def within(limit: Deadline) -> Iterator[Deadline]:
    """Make `limit` the deadline of everything called inside the block."""
    token = _current.set(limit)
    try:
        yield limit
    finally:
        _current.reset(token)

"""What a tool says: success results, truncation envelopes, limits, the deadline of the call, and what its door asks for."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from rye.errors import CancelledError, DeadlineError
from rye.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rye.errors import RyeError

MAX_LINE_CHARS = 2_000
"""A longer line is shortened visibly when shown (characters)."""

MAX_OUTPUT_BYTES = 51_200
"""A tool's text output is cut at a line boundary beyond this (bytes of UTF-8); a door may ask for less, see `output_room`."""


class Cancellation:
    """The caller's right to end a call early; made by a door, handed in with the call, used from any thread."""

    def __init__(self) -> None:
        self._cancelled = False
        self._callbacks: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """End the call now: its deadline expires, and what it started is ended. Calling it twice changes nothing."""
        with self._lock:
            callbacks = [] if self._cancelled else list(self._callbacks)
            self._cancelled = True
        for callback in callbacks:
            callback()

    def when_cancelled(self, callback: Callable[[], None]) -> None:
        """Call `callback` once on cancellation, at once if that was before."""
        with self._lock:
            if not self._cancelled:
                self._callbacks.append(callback)
                return
        callback()


class Door(Record):
    """What the door of a call asks for and offers; all of it may be left out.

    Attributes:
        max_output_bytes: the most text a tool should give in one answer (at most `MAX_OUTPUT_BYTES`).
        on_output: takes pieces of text of a running command as they come, from any thread.
        cancellation: by which the caller ends the call.
    """

    max_output_bytes: int = MAX_OUTPUT_BYTES
    on_output: Callable[[str], None] | None = None
    cancellation: Cancellation | None = None


NO_DOOR = Door()
"""That of a call that asks for nothing special."""

_door: ContextVar[Door] = ContextVar("rye_door", default=NO_DOOR)


@contextmanager
def opened_by(door: Door) -> Iterator[None]:
    """Make `door` the one of everything called inside the block."""
    token = _door.set(door)
    try:
        yield
    finally:
        _door.reset(token)


def door() -> Door:
    """Return the running call's door."""
    return _door.get()


def output_room() -> int:
    """Return how much text the answer to this call may have (bytes of UTF-8)."""
    return min(MAX_OUTPUT_BYTES, _door.get().max_output_bytes)


def is_reported() -> bool:
    """Tell whether the caller takes output before the answer."""
    return _door.get().on_output is not None


def report(text: str) -> None:
    """Give the caller a piece of output before the answer, where the door takes it."""
    sink = _door.get().on_output
    if sink is not None:
        sink(text)


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
    told is true. `commits` counts those that were completed. What a tool started outside this thread registers its end
    with `when_expired`.
    """

    def __init__(self, seconds: float) -> None:
        """Start the clock: the call may take `seconds` from now."""
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self.commits = 0
        self.cancelled = False
        self._expired = False
        self._lock = threading.RLock()
        self._callbacks: list[Callable[[], None]] = []

    def remaining(self) -> float:
        """Return the seconds left, never below zero."""
        return 0.0 if self._expired else max(0.0, self._end - time.monotonic())

    def check(self) -> None:
        """Raise `DeadlineError` when the time is up, `CancelledError` when the caller ended the call."""
        if self.remaining() <= 0:
            raise self.error()

    def error(self) -> RyeError:
        """Return why the call is given up."""
        return CancelledError() if self.cancelled else DeadlineError(self.seconds)

    @contextmanager
    def commit(self) -> Iterator[None]:
        """Hold the right to write: begins only in time, and `expire` waits for its end."""
        with self._lock:
            self.check()
            yield
            self.commits += 1

    def expire(self, *, cancelled: bool = False) -> None:
        """End the call's time now, after any commit that already began."""
        with self._lock:
            self.cancelled = cancelled and not self._expired
            callbacks = [] if self._expired else list(self._callbacks)
            self._expired = True
        for callback in callbacks:
            callback()

    def moment(self) -> float:
        """Return how long to wait, once given up, for the call's own account of it (seconds)."""
        # Who registered an end has a process tree to bring down, and its output to hand over.
        return 2.0 if self._callbacks else 0.05

    def when_expired(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the call is given up, at once if it already was."""
        with self._lock:
            if not self._expired:
                self._callbacks.append(callback)
                return
        callback()


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

"""What a tool prints, kept apart from its result."""

from __future__ import annotations

import contextvars
import sys
import threading
from typing import Any

_PRINTED_MAX = 10_240


class Printed:
    """Keeps what a call prints apart from everything else, for calls that run side by side too.

    While any call runs, `sys.stdout` is a router: text printed in a call's context goes to that call, all other text where
    it went before.
    """

    _lock = threading.Lock()
    _running = 0
    _original: Any = None
    _sink: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar("rye_printed", default=None)

    def __enter__(self) -> Printed:
        self._text: list[str] = []
        self._token = self._sink.set(self._text)
        with Printed._lock:
            if Printed._running == 0:
                Printed._original = sys.stdout
                sys.stdout = _Router(Printed._original, self._sink)
            Printed._running += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._sink.reset(self._token)
        with Printed._lock:
            Printed._running -= 1
            if Printed._running == 0:
                sys.stdout = Printed._original

    def text(self) -> str:
        """Return what was printed, at most 10 KiB."""
        return "".join(self._text)[:_PRINTED_MAX]


class _Router:
    """A text stream that writes to the running call's sink, if there is one."""

    def __init__(self, original: Any, sink: contextvars.ContextVar[list[str] | None]) -> None:  # noqa: ANN401 - any stream
        self._original, self._sink_of = original, sink

    def write(self, text: str) -> int:
        sink = self._sink_of.get()
        if sink is None:
            return int(self._original.write(text))
        if len(sink) < 10_000:
            sink.append(str(text)[:_PRINTED_MAX])
        return len(text)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the rest of the stream
        return getattr(self._original, name)

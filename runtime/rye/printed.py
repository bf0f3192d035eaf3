"""What a tool prints, kept apart from its result."""

from __future__ import annotations

import sys
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_PRINTED_MAX = 10_240

_sink: ContextVar[list[str] | None] = ContextVar("rye_printed", default=None)


class Printed:
    """Keeps what a call prints apart from everything else, for calls that run side by side too.

    From the first call on, `sys.stdout` is a router: text printed in a call's context goes to that call, all other text where
    it went before. It stays: a tool that outlives its call is still routed, so that what it prints late reaches nobody, and
    CPython's `print` crashes when another thread takes the stream away under it.
    """

    _lock = threading.Lock()

    def __enter__(self) -> Printed:
        self._text: list[str] = []
        self._token = _sink.set(self._text)
        with Printed._lock:
            # The host may have put another stream there since.
            if not isinstance(sys.stdout, _Router):
                sys.stdout = _Router(sys.stdout)
        return self

    def __exit__(self, *_: object) -> None:
        _sink.reset(self._token)

    def text(self) -> str:
        """Return what was printed, at most 10 KiB."""
        return "".join(self._text)[:_PRINTED_MAX]


class _Router:
    """A text stream that writes to the running call's sink, if there is one."""

    def __init__(self, original: Any) -> None:  # noqa: ANN401 - any stream
        self.original = original

    def write(self, text: str) -> int:
        sink = _sink.get()
        if sink is None:
            return int(self.original.write(text))
        if len(sink) < 10_000:
            sink.append(str(text)[:_PRINTED_MAX])
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> Any:  # noqa: ANN401 - any stream
        return self.original.buffer if _sink.get() is None else _Bytes(self)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the rest of the stream
        return getattr(self.original, name)


class _Bytes:
    """The byte stream below a router, for the running call."""

    def __init__(self, router: _Router) -> None:
        self._router = router

    def write(self, data: bytes) -> int:
        self._router.write(bytes(data).decode("utf-8", "replace"))
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

"""Output on its way to a caller who watches: plain text, in pieces, not more often than one can look."""

from __future__ import annotations

import time

from rye.toolkit import console, output

_EVERY = 0.1
_MOST = 16 * 1024


class Live:
    """Takes the bytes of some streams, and gives their text to the caller of this thread's call."""

    def __init__(self, streams: int) -> None:
        self._plain = [console.Plain() for _ in range(streams)]
        self._waiting: list[str] = []
        self._size = 0
        self._passed_over = 0
        self._due = 0.0

    def feed(self, stream: int, block: bytes) -> None:
        """Take what a stream gave; of a flood only so much is passed on, and it is said how much was not."""
        if self._size >= _MOST:
            self._passed_over += len(block)
            return
        text = self._plain[stream].feed(block)
        if text:
            self._waiting.append(text)
            self._size += len(text)

    def due(self) -> float | None:
        """Return when `tell` has something to do (monotonic clock), None when it has nothing."""
        return self._due if self._waiting else None

    def tell(self) -> None:
        """Give the caller what waits, if it is time."""
        now = time.monotonic()
        if not self._waiting or now < self._due:
            return
        text = "".join(self._waiting)
        if self._passed_over:
            text += f"\n[{self._passed_over} bytes passed over here]\n"
        self._waiting, self._size, self._passed_over = [], 0, 0
        self._due = now + _EVERY
        output.report(text)

    def close(self) -> None:
        """Give the caller the rest."""
        self._waiting += [text for plain in self._plain if (text := plain.rest())]
        self._due = 0.0
        self.tell()

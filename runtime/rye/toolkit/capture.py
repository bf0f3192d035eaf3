"""One stream of a command, kept in bounded memory: its beginning and its end, and all of it (within bounds) in a file."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from rye.toolkit import console
from rye.toolkit.output import envelope

if TYPE_CHECKING:
    from collections.abc import Callable

    from rye.toolkit.spool import Spool

_HEAD = 64 * 1024
_TAIL = 128 * 1024
_NOTICE = 200
_HEAD_SHARE = 3


class Capture:
    """What a stream gave.

    Attributes:
        total: how many bytes it gave in all.
        kept: whether everything (within the file's bounds) lies in a file; None while none is needed.
    """

    def __init__(self, keep: Callable[[], Spool | None] | None = None) -> None:
        """Hold nothing yet. `keep` makes the file, once there is more than can be shown; None: there shall be none."""
        self.total = 0
        self.kept: bool | None = None
        self._keep = keep
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._spool: Spool | None = None

    def feed(self, block: bytes) -> None:
        """Take what came."""
        room = _HEAD - len(self._head)
        head, rest = block[:room], block[room:] if room else block
        self._head += head
        if rest:
            self._tail.append(rest)
            self._tail_size += len(rest)
            while self._tail_size - len(self._tail[0]) >= _TAIL:
                self._tail_size -= len(self._tail.popleft())
        self.total += len(block)
        if self._spool is not None:
            self._write(block)
        elif rest:
            self._start_keeping()

    def _start_keeping(self) -> None:
        """Put what came so far, all of it still held, into a file."""
        if self._keep is not None and self.kept is None:
            self._spool = self._keep()
            self.kept = self._spool is not None
            for piece in self.ends():
                self._write(piece)

    def _write(self, data: bytes) -> None:
        try:
            if self._spool is not None:
                self._spool.write(data)
        except OSError:
            # A full disk ends the keeping, not the command.
            self.kept = False
            self.close()

    def close(self) -> None:
        """Let the file go."""
        spool, self._spool = self._spool, None
        if spool is not None:
            spool.close()

    def ends(self) -> tuple[bytes, bytes]:
        """Return the bytes of the beginning and of the end that are held; together they are all, if nothing lies between."""
        return bytes(self._head), b"".join(self._tail)

    @property
    def whole(self) -> bytes | None:
        """Everything that came; None when a part of it is no longer held."""
        head, tail = self.ends()
        return head + tail if len(head) + len(tail) == self.total else None

    def shown(self, room: int, call: Callable[[int], str]) -> tuple[str, bool]:
        """Return the text within `room` bytes, and whether something was cut: then from the middle.

        Args:
            room: bytes of UTF-8.
            call: writes the call that gives the output from an offset (bytes) on; used where it is kept.
        """
        whole = self.whole
        if whole is not None and len(text := console.plain(whole).encode()) <= room:
            return text.decode(), False
        self._start_keeping()
        self.close()
        head, tail = self.ends()
        space = max(0, room - _NOTICE)
        first, taken = console.first(head if whole is None else whole, space // _HEAD_SHARE)
        last, after = console.last(tail if whole is None else whole[taken:], space - len(first.encode()))
        return f"{first}{_joint(first)}{self._notice(taken, after, call)}\n{last}", True

    def _notice(self, taken: int, after: int, call: Callable[[int], str]) -> str:
        if self.kept:
            return envelope(taken + after, self.total, "bytes", call(taken))
        return (
            f"[tool_result: {taken + after} of {self.total} bytes; {self.total - taken - after} more omitted. They were not "
            "kept: run the command again with its output in a file, or narrowed.]"
        )


def _joint(first: str) -> str:
    return "" if not first or first.endswith("\n") else "\n"

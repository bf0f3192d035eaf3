r"""A bounded file of output: its beginning and its end, however much is written.

Format: 32 bytes (`RYELOG1\n`, then three unsigned 64-bit little-endian numbers: room for the beginning, room for the end,
bytes written so far), then the beginning, then a ring that holds the end. Readers need no lock: what the writer overtakes
while they read, they leave out.
"""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

_HEADER = struct.Struct("<8sQQQ")
_MAGIC = b"RYELOG1\n"
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC

MAX_BYTES = 64 * 1024 * 1024
"""Of a longer output the middle is not kept."""


class Spool:
    """The writer of one such file; `fd` is its descriptor, `total` how many bytes were written."""

    def __init__(self, dir_fd: int, name: str, most: int = MAX_BYTES) -> None:
        """Make the file (0600); it must not exist. Raises OSError."""
        self._head, self._ring = most // 2, most - most // 2
        self.total = 0
        self.fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | _FLAGS, 0o600, dir_fd=dir_fd)
        self._note()

    def _note(self) -> None:
        os.pwrite(self.fd, _HEADER.pack(_MAGIC, self._head, self._ring, self.total), 0)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append. Raises OSError (the disk is full); what was written before stands."""
        view = memoryview(data)
        while view:
            at, room = self._place()
            done = os.pwrite(self.fd, view[:room], _HEADER.size + at)
            self.total += done
            view = view[done:]
        self._note()

    def _place(self) -> tuple[int, int]:
        if self.total < self._head:
            return self.total, self._head - self.total
        at = (self.total - self._head) % self._ring
        return self._head + at, self._ring - at

    def close(self) -> None:
        """Let the file go."""
        os.close(self.fd)


class Part(NamedTuple):
    """What stands from an offset on.

    Attributes:
        data: the bytes.
        start: where they begin: the offset asked for, or behind what is no longer kept.
        total: how many bytes were written in all so far.
        lost: how many bytes between the offset and `start` are not kept.
    """

    data: bytes
    start: int
    total: int
    lost: int


def read(dir_fd: int, name: str, offset: int, most: int) -> Part:
    """Return up to `most` bytes from `offset` on; a negative one counts from the end.

    Raises:
        OSError: there is no such file.
        ValueError: it is not of this format.
    """
    fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | _FLAGS, dir_fd=dir_fd)
    try:
        head, ring, total = _facts(fd)
        wanted = max(0, total + offset) if offset < 0 else min(offset, total)
        start = wanted if wanted < head else max(wanted, total - ring)
        stop = min(total, start + most, head if start < head else total)
        data = b"".join(_pieces(fd, head, ring, start, stop))
        # The writer may have overtaken the beginning of what was read from the ring.
        overtaken = max(0, _facts(fd)[2] - ring - start) if start >= head else 0
        return Part(data[overtaken:], start + overtaken, total, start + overtaken - wanted)
    finally:
        os.close(fd)


def _facts(fd: int) -> tuple[int, int, int]:
    data = os.pread(fd, _HEADER.size, 0)
    if len(data) < _HEADER.size or not data.startswith(_MAGIC):
        raise ValueError("not a file of output")
    _, head, ring, total = _HEADER.unpack(data)
    return head, ring, total


def _pieces(fd: int, head: int, ring: int, start: int, stop: int) -> list[bytes]:
    pieces = []
    while start < stop:
        if start < head:
            at, room = start, head - start
        else:
            at = (start - head) % ring
            at, room = head + at, ring - at
        piece = os.pread(fd, min(room, stop - start), _HEADER.size + at)
        if not piece:
            break
        pieces.append(piece)
        start += len(piece)
    return pieces

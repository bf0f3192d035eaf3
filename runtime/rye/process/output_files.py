r"""The output of a command: its beginning and end in bounded memory, and all of it, within bounds, in a file.

An `OutputFile` is a bounded file: the beginning and the end of the output, however much is written. Its format: 32 bytes
(`RYELOG1\n`, then three unsigned 64-bit little-endian numbers: space for the beginning, space for the end, bytes written so
far), then the beginning, then a ring that holds the end. Readers need no lock: they leave out what the writer overwrites while
they read.

Outputs too long to be shown lie in the project's state folder, `outputs/<id>/stdout` and `stderr`. Old ones are removed when
new ones come (settings `outputs.…`).
"""

from __future__ import annotations

import os
import re
import shutil
import struct
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rye.call import context
from rye.call.results import call_text, cut_notice
from rye.config import user_dirs
from rye.fs.atomic import closing
from rye.process import terminal_text

_HEADER = struct.Struct("<8sQQQ")
_MAGIC = b"RYELOG1\n"
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC

MAX_BYTES = 64 * 1024 * 1024
"""Of a longer output the middle is not stored."""


class OutputFile:
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
        """Append. Raises OSError (the disk is full); what was written before stays."""
        view = memoryview(data)
        while view:
            at, space_left = self._place()
            count = os.pwrite(self.fd, view[:space_left], _HEADER.size + at)
            # Count each part as it is written: a full disk may take only some of the block.
            self.total += count
            view = view[count:]
        self._note()

    def _place(self) -> tuple[int, int]:
        if self.total < self._head:
            return self.total, self._head - self.total
        # Behind the head the file is a ring: a long run overwrites its own middle, never its beginning.
        at = (self.total - self._head) % self._ring
        return self._head + at, self._ring - at

    def close(self) -> None:
        """Close the file."""
        os.close(self.fd)


class Part(NamedTuple):
    """The output from an offset on.

    Attributes:
        data: the bytes.
        start: where they begin: the offset asked for, or behind what is no longer stored.
        total: how many bytes were written in all so far.
        lost: how many bytes between the offset and `start` are not stored.
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
    with closing(os.open(name, os.O_RDONLY | os.O_NONBLOCK | _FLAGS, dir_fd=dir_fd)) as fd:
        head, ring, total = _facts(fd)
        first = max(0, total + offset) if offset < 0 else min(offset, total)
        # Between the head and the oldest byte of the ring nothing is stored: move the start behind the gap.
        start = first if first < head else max(first, total - ring)
        # One read never crosses the gap, so the offsets of its bytes are continuous.
        stop = min(total, start + most, head if start < head else total)
        data = b"".join(_pieces(fd, head, ring, start, stop))
        # The writer may have overtaken the beginning of what was read from the ring.
        overtaken = max(0, _facts(fd)[2] - ring - start) if start >= head else 0
        return Part(data[overtaken:], start + overtaken, total, start + overtaken - first)


def _facts(fd: int) -> tuple[int, int, int]:
    data = os.pread(fd, _HEADER.size, 0)
    # The file may be from an older version or truncated by a crash: refuse it instead of reading nonsense.
    if len(data) < _HEADER.size or not data.startswith(_MAGIC):
        raise ValueError("not a file of output")
    _, head, ring, total = _HEADER.unpack(data)
    return head, ring, total


def _pieces(fd: int, head: int, ring: int, start: int, stop: int) -> list[bytes]:
    pieces = []
    while start < stop:
        if start < head:
            at, space_left = start, head - start
        else:
            at = (start - head) % ring
            at, space_left = head + at, ring - at
        piece = os.pread(fd, min(space_left, stop - start), _HEADER.size + at)
        if not piece:
            break
        pieces.append(piece)
        start += len(piece)
    return pieces


_HEAD = 64 * 1024
_TAIL = 128 * 1024
_NOTICE = 200
_HEAD_SHARE = 3


class Capture:
    """The output of one stream.

    Attributes:
        total: how many bytes it gave in all.
        stored: whether everything (within the file's bounds) lies in a file; None while none is needed.
        is_over: all that is wanted of the command has come.
    """

    def __init__(self, create: Callable[[], OutputFile | None] | None = None, *, is_told: bool = True) -> None:
        """Hold nothing yet. `create` makes the file, once there is more than can be shown; None: there shall be none.

        With `is_told` the caller may be given the output as it comes.
        """
        self.total, self.is_over, self._is_told = 0, False, is_told
        self.stored: bool | None = None
        self._create = create
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._file: OutputFile | None = None

    def feed(self, block: bytes) -> None:
        """Take a block of output."""
        space_left = _HEAD - len(self._head)
        head, rest = block[:space_left], block[space_left:] if space_left else block
        self._head += head
        if rest:
            # Whole blocks in a queue: moving bytes within one buffer for each block would take quadratic time.
            self._tail.append(rest)
            self._tail_size += len(rest)
            while self._tail_size - len(self._tail[0]) >= _TAIL:
                self._tail_size -= len(self._tail.popleft())
        self.total += len(block)
        if self._file is not None:
            self._write(block)
        elif rest:
            self._start_storing()

    def to_report(self, block: bytes) -> bytes:
        """Return what the caller may be given of a block that was just fed, while the command still runs."""
        return block if self._is_told else b""

    def _start_storing(self) -> None:
        """Put what came so far, all of it still held, into a file."""
        if self._create is not None and self.stored is None:
            self._file = self._create()
            self.stored = self._file is not None
            for piece in self.ends():
                self._write(piece)

    def _write(self, data: bytes) -> None:
        try:
            if self._file is not None:
                self._file.write(data)
        except OSError:
            # A full disk ends the storing, not the command.
            self.stored = False
            self.close()

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def ends(self) -> tuple[bytes, bytes]:
        """Return the bytes of the beginning and of the end that are held; together they are all, if nothing lies between."""
        return bytes(self._head), b"".join(self._tail)

    @property
    def complete(self) -> bytes | None:
        """Everything that came; None when a part of it is no longer held."""
        head, tail = self.ends()
        return head + tail if len(head) + len(tail) == self.total else None

    def shown(self, budget: int, output_id: str, stream: str) -> tuple[str, bool]:
        """Return the text within `budget` bytes of UTF-8, and whether something was cut: then from the middle.

        Where all of it is stored, the notice names the call that shows it, of this output's `stream`.
        """
        complete = self.complete
        if complete is not None and terminal_text.fits(text := terminal_text.plain(complete), budget):
            return text, False
        self._start_storing()
        self.close()
        head, tail = self.ends()
        # The notice between the two parts needs bytes as well, and its length is not known yet.
        space = max(0, budget - _NOTICE)
        first, head_bytes = terminal_text.first(head if complete is None else complete, space // _HEAD_SHARE)
        last, after = terminal_text.last(tail if complete is None else complete[head_bytes:], space - len(first.encode()))
        newline = "" if not first or first.endswith("\n") else "\n"
        return f"{first}{newline}{self._notice(head_bytes, after, output_id, stream)}\n{last}", True

    def _notice(self, head_bytes: int, after: int, output_id: str, stream: str) -> str:
        if self.stored:
            return cut_notice(head_bytes + after, self.total, "bytes", reading_call(output_id, stream, head_bytes))
        return (
            f"[tool_result: {head_bytes + after} of {self.total} bytes; {self.total - head_bytes - after} more omitted. "
            "They were not stored: run the command again with its output in a file, or narrowed.]"
        )


def reading_call(job_id: str, stream: str, offset: int) -> str:
    """Return the call that shows a job's or an output's bytes from an offset on."""
    which = {} if stream == "stdout" else {"stream": stream}
    return call_text("job", action="read", job_id=job_id, **which, offset=offset)


FOLDER = "outputs"
ID = re.compile(r"[0-9a-f]{16}\Z")
"""What names an output or a job: 64 random bits."""


class StoredOutputs:
    """Where one command's long outputs go; the folder is made when the first of them needs it."""

    def __init__(self, root: str | int) -> None:
        """Name the folder, making nothing; `root` is the project's path or an open descriptor of it."""
        self.id = os.urandom(8).hex()
        self._root = root

    def create(self, name: str) -> OutputFile | None:
        """Make the file of a stream; None where the state folder cannot be written."""
        try:
            parent = Path(user_dirs.state_dir(self._root)) / FOLDER
            folder = parent / self.id
            # Both streams of one command share the folder; prune only when it is new.
            if not folder.exists():
                parent.mkdir(mode=0o700, exist_ok=True)
                folder.mkdir(mode=0o700)
                _prune(parent)
            # O_NOFOLLOW and a descriptor: another process of the user could exchange the folder for a link.
            with closing(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)) as dir_fd:
                return OutputFile(dir_fd, name)
        except OSError:
            return None


def _prune(folder: Path) -> None:
    """Remove the oldest until the rest is small enough."""
    with os.scandir(folder) as entries:
        found = sorted(((entry.stat().st_mtime, entry.path) for entry in entries if ID.match(entry.name)), reverse=True)
    # Newest first: the byte budget is spent on recent outputs, and the rest is removed.
    budget = context.settings().number("outputs.max_bytes")
    for _, path in found:
        with suppress(OSError), os.scandir(path) as entries:
            budget -= sum(entry.stat().st_size for entry in entries)
        if budget < 0:
            shutil.rmtree(path, ignore_errors=True)

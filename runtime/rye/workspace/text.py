r"""Bytes <-> lines, byte-exact.

A text is the bytes of a file after its byte order mark, split at the encoded newline and nowhere else; each line keeps its
own terminator, the last one may have none. Nothing is translated: the lines joined again are the file. A carriage return
before the newline belongs to the terminator; form feeds, lone carriage returns, U+0085 and U+2028 are text.
"""

from __future__ import annotations

import codecs
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator

from rye.plain_class import Record
from rye.workspace.encoding import Encoding

_PART = 1 << 16
_CHUNK = 1 << 20
_GLANCE = 1 << 18


class Checkpoints(Record):
    """Some lines' numbers (from 0, ascending, the first is 0) and their byte offsets: the way to a line without a scan."""

    lines: array[int]
    offsets: array[int]

    def around(self, first: int, last: int, end: int) -> tuple[int, int, int]:
        """Return (line, offset) of the checkpoint at or before `first`, and the offset of one after `last` (or `end`)."""
        at = bisect_right(self.lines, first) - 1
        beyond = bisect_right(self.lines, last)
        return self.lines[at], self.offsets[at], self.offsets[beyond] if beyond < len(self.offsets) else end


class Text:
    """The lines of a file, cut out on demand from memory or from an open descriptor."""

    def __init__(
        self, encoding: Encoding, size: int, count: int, points: Checkpoints, slice_: Callable[[int, int], bytes]
    ) -> None:
        """See `parse` and `reopen`."""
        self.encoding = encoding
        self.size = size
        self.count = count
        self.points = points
        self.slice = slice_
        # What was cut last, and its lines.
        self._cut: tuple[int, int, list[bytes]] = (0, 0, [])

    def lines(self, start: int = 0, stop: int | None = None) -> list[bytes]:
        """Return raw lines [start, stop), terminators included."""
        stop = self.count if stop is None else min(stop, self.count)
        if start >= stop:
            return []
        line, low, high = self.points.around(start, stop - 1, self.size)
        cut = self._cut if self._cut[:2] == (low, high) else (low, high, split(self.slice(low, high), self.encoding))
        # Only a small cut is held, or a large file would stay in memory.
        if high - low <= _CHUNK:
            self._cut = cut
        return cut[2][start - line : stop - line]

    def offset(self, line: int) -> int:
        """Return the byte offset of a line's first byte; of the end for `line == count`."""
        if line >= self.count:
            return self.size
        known, low, _ = self.points.around(line, line, self.size)
        return low + sum(map(len, self.lines(known, line)))

    def line_at(self, offset: int) -> int:
        """Return the number (from 0) of the line that has the byte at `offset`; `count` or the last line at the end."""
        at = max(bisect_right(self.points.offsets, offset) - 1, 0)
        before = split(self.slice(self.points.offsets[at], offset), self.encoding)
        within = bool(before) and not self.encoding.terminator(before[-1])
        return self.points.lines[at] + len(before) - within


def parse(data: bytes, encoding: Encoding, each: Callable[[list[bytes]], object] | None = None) -> Text:
    """Return the text of a file's whole content: counted, and cut where it is looked at.

    `each` is given its raw lines, about 64 KiB at a time; so far apart are the checkpoints.
    """
    points = Checkpoints(array("Q", [0]), array("Q", [len(encoding.bom)]))
    count = 0
    for low, high in _parts(data, encoding):
        if count:
            points.lines.append(count)
            points.offsets.append(low)
        if each is None and len(encoding.newline) == 1:
            count += data.count(encoding.newline, low, high) + (not data.endswith(encoding.newline, low, high))
            continue
        lines = split(data[low:high], encoding)
        count += len(lines)
        if each is not None:
            each(lines)
    return Text(encoding, len(data), count, points, lambda low, high: data[low:high])


def streamed(fd: int, encoding: Encoding) -> Text | None:
    """Return the text of an open file for one look, read once in passing; None where it is not plainly UTF-8.

    Plainly: every byte decodes, none of the first ones is NUL, and there is no byte order mark. Lines end at LF, as in
    `encoding`, which is UTF-8. Checkpoints are about 256 KiB apart.
    """
    decoder = None
    points = Checkpoints(array("Q", [0]), array("Q", [0]))
    buffer = bytearray(_GLANCE)
    at = count = 0
    last = bytearray(b"\n")
    while size := os.preadv(fd, [buffer], at):
        part = buffer if size == _GLANCE else buffer[:size]
        if at == 0 and (0 in part[:8_192] or part.startswith(codecs.BOM_UTF8)):
            return None
        # ASCII needs no decoder; from the first other byte on, a character may reach across two parts.
        if decoder is None and not part.isascii():
            decoder = codecs.getincrementaldecoder("utf-8")()
        if decoder is not None and not _decodes(decoder, part):
            return None
        found = part.count(b"\n")
        if found:
            count += found
            points.lines.append(count)
            points.offsets.append(at + part.rfind(b"\n") + 1)
        last = part[-1:]
        at += size
    if decoder is not None and not _decodes(decoder, b"", final=True):
        return None
    count += last != b"\n"
    return Text(encoding, at, count, points, lambda low, high: os.pread(fd, high - low, low))


def _decodes(decoder: codecs.IncrementalDecoder, part: bytes | bytearray, *, final: bool = False) -> bool:
    try:
        decoder.decode(part, final)
    except UnicodeDecodeError:
        return False
    return True


def reopen(fd: int, encoding: Encoding, size: int, count: int, points: Checkpoints) -> Text:
    """Return the text of an open file whose shape is known already; only what is asked for is read."""
    return Text(encoding, size, count, points, lambda low, high: os.pread(fd, high - low, low))


def _parts(data: bytes, encoding: Encoding) -> Iterator[tuple[int, int]]:
    """Yield the offsets at which parts of whole lines begin and end."""
    at, end, unit = len(encoding.bom), len(data), len(encoding.newline)
    while at < end:
        stop = at + _PART
        cut = end
        if stop < end:
            found = _find(data, encoding.newline, stop, at)
            cut = end if found < 0 else found + unit
        yield at, cut
        at = cut


def split(data: bytes, encoding: Encoding) -> list[bytes]:
    """Split bytes that begin at a line into raw lines with their terminators."""
    newline = encoding.newline
    if len(newline) == 1:
        lines = data.split(newline)
        last = lines.pop()
        out = [line + newline for line in lines]
        if last:
            out.append(last)
        return out
    return list(_split_units(data, newline))


def _split_units(data: bytes, newline: bytes) -> Iterator[bytes]:
    at = 0
    while (found := _find(data, newline, at, 0)) >= 0:
        yield data[at : found + len(newline)]
        at = found + len(newline)
    if at < len(data):
        yield data[at:]


def _find(data: bytes, newline: bytes, at: int, base: int) -> int:
    """Find the encoded newline at a whole unit's distance from `base`."""
    # The newline's bytes can lie across two units of UTF-16; only at a whole unit is it a newline.
    found = data.find(newline, at)
    while found >= 0 and (found - base) % len(newline):
        found = data.find(newline, found + 1)
    return found


def content_lines(content: str) -> list[str]:
    r"""Return new content as a sequence of lines without terminators.

    `""` is none, `"\n"` one empty line, `"a"` and `"a\n"` both one line. `"\r\n"` separates like `"\n"`.
    """
    *lines, last = content.split("\n")
    return [line.removesuffix("\r") for line in lines] + ([last] if last else [])

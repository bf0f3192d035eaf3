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
from collections.abc import Callable, Iterator, Sequence

from rye.plain_class import Record
from rye.workspace.encoding import Encoding

STRIDE = 1024
"""There is a checkpoint at least every so many lines."""

_CHUNK = 1 << 20
_SMALL = 1 << 16
_GLANCE = 1 << 18


class Checkpoints(Record):
    """Some lines' numbers (from 0, ascending, the first is 0) and their byte offsets: the way to a line without a scan."""

    lines: array[int]
    offsets: array[int]

    def add(self, line: int, offset: int) -> None:
        """Append a checkpoint, unless the line has one."""
        if not self.lines or line > self.lines[-1]:
            self.lines.append(line)
            self.offsets.append(offset)

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
        # A small file is cut once for all that is asked of it.
        small = self.size <= _SMALL
        line, low, high = (0, self.points.offsets[0], self.size) if small else self.points.around(start, stop - 1, self.size)
        cut = self._cut if self._cut[:2] == (low, high) else (low, high, split(self.slice(low, high), self.encoding))
        # Only a small cut is held, or a large file would stay in memory.
        if high - low <= _CHUNK:
            self._cut = cut
        return cut[2][start - line : stop - line]

    def offset(self, line: int) -> int:
        """Return the byte offset of a line's first byte; of the end for `line == count`."""
        if line >= self.count:
            return self.size
        known, low, high = self.points.around(line, line, self.size)
        if known == line:
            return low
        if self.size <= _SMALL:
            return low + sum(map(len, self.lines(known, line)))
        return low + sum(map(len, split(self.slice(low, high), self.encoding)[: line - known]))

    def line_at(self, offset: int) -> int:
        """Return the number (from 0) of the line that has the byte at `offset`; `count` or the last line at the end."""
        at = max(bisect_right(self.points.offsets, offset) - 1, 0)
        before = split(self.slice(self.points.offsets[at], offset), self.encoding)
        within = bool(before) and not self.encoding.terminator(before[-1])
        return self.points.lines[at] + len(before) - within

    def after(self, edits: Sequence[tuple[int, int, list[bytes]]], data: bytes) -> Text:
        """Return the text of the content `data` that edits made; the checkpoints are moved, nothing is scanned.

        Args:
            edits: (start, stop, raw lines): what became of lines [start, stop); ascending and apart.
            data: the whole new content.
        """
        old, points = self.points, Checkpoints(array("Q"), array("Q"))
        at, shift, grown = 0, 0, 0
        for start, stop, lines in [*edits, (self.count, self.count, None)]:
            while at < len(old.lines) and old.lines[at] < start:
                points.add(old.lines[at] + shift, old.offsets[at] + grown)
                at += 1
            if lines is None:
                break
            low, high = self.offset(start), self.offset(stop)
            # Where no line follows there is none to mark.
            if (lines or stop < self.count) and (not points.lines or start + shift - points.lines[-1] >= STRIDE // 2):
                points.add(start + shift, low + grown)
            if len(lines) > STRIDE:
                within = Checkpoints(array("Q"), array("Q"))
                mark(within, lines, start + shift, low + grown)
                for point in zip(within.lines, within.offsets, strict=True):
                    points.add(*point)
            shift += len(lines) - (stop - start)
            grown += sum(map(len, lines)) - (high - low)
            # The checkpoints inside the replaced lines are skipped.
            while at < len(old.lines) and old.lines[at] < stop:
                at += 1
        if not points.lines or points.lines[0]:
            points.lines.insert(0, 0)
            points.offsets.insert(0, len(self.encoding.bom))
        return Text(self.encoding, len(data), self.count + shift, points, lambda low, high: data[low:high])


def parse(data: bytes, encoding: Encoding, each: Callable[[list[bytes]], object] = len) -> Text:
    """Return the text of a file's whole content; `each` is given its raw lines, about a megabyte at a time."""
    points = Checkpoints(array("Q"), array("Q"))
    count = 0
    for chunk_at, lines in chunks(data, encoding):
        mark(points, lines, count, chunk_at)
        each(lines)
        count += len(lines)
    if not points.lines:
        mark(points, [b""], 0, len(encoding.bom))
    return Text(encoding, len(data), count, points, lambda low, high: data[low:high])


def glanced(data: bytes, encoding: Encoding) -> Text:
    """Return the text of a whole content for one look at a few lines: counted, and cut only where it is looked at."""
    points = Checkpoints(array("Q", [0]), array("Q", [len(encoding.bom)]))
    count = 0
    one_byte = len(encoding.newline) == 1
    for low, high in _parts(data, encoding):
        if count:
            points.lines.append(count)
            points.offsets.append(low)
        if one_byte:
            count += data.count(encoding.newline, low, high) + (not data.endswith(encoding.newline, low, high))
        else:
            count += len(split(data[low:high], encoding))
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


def mark(points: Checkpoints, lines: list[bytes], number: int, offset: int) -> None:
    """Append checkpoints for `lines`, the first of which is line `number` at `offset`, one every `STRIDE`."""
    for at in range(0, len(lines), STRIDE):
        points.lines.append(number + at)
        points.offsets.append(offset)
        offset += sum(map(len, lines[at : at + STRIDE]))


def chunks(data: bytes, encoding: Encoding) -> Iterator[tuple[int, list[bytes]]]:
    """Yield (offset, raw lines) over the whole content, about a megabyte at a time, so that memory stays small."""
    for low, high in _parts(data, encoding):
        yield low, split(data[low:high], encoding)


def _parts(data: bytes, encoding: Encoding) -> Iterator[tuple[int, int]]:
    """Yield the offsets at which parts of about a megabyte of whole lines begin and end."""
    at, end, unit = len(encoding.bom), len(data), len(encoding.newline)
    while at < end:
        stop = at + _CHUNK
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

"""Bytes as the lines that a reader sees: text and terminator apart, the byte order mark aside."""

from __future__ import annotations

import codecs
from typing import NamedTuple

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Line(NamedTuple):
    r"""One line; `end` is `"\n"`, `"\r\n"`, or empty for a last line that has none."""

    text: str
    end: str


class LineView(NamedTuple):
    """A file's lines, the codec they were decoded with, and the mark that stood before them."""

    lines: list[Line]
    codec: str
    mark: bytes

    @property
    def keys(self) -> list[Line]:
        """Lines for comparison: whether the file ends in a newline is no property of its last line."""
        if not self.lines or self.lines[-1].end:
            return self.lines
        end = self.lines[-2].end if len(self.lines) > 1 else "\n"
        return [*self.lines[:-1], Line(self.lines[-1].text, end)]

    @property
    def ends(self) -> set[str]:
        """The terminators in use."""
        return {line.end for line in self.lines if line.end}

    @property
    def final(self) -> bool:
        """Whether the last line has a terminator."""
        return bool(self.lines and self.lines[-1].end)


def views(before: bytes, after: bytes) -> tuple[LineView, LineView]:
    """See both sides of a change in the encoding of the first; a mark that only the second has is text."""
    codec = codec_of(before, after)
    mark = mark_of(before, codec)
    return view(before, codec, mark), view(after, codec, mark if after.startswith(mark) else b"")


def view(data: bytes, codec: str, mark: bytes) -> LineView:
    """Split decoded text at line feeds; bytes that do not decode become lone surrogates."""
    unpaired = "surrogatepass" if codec.startswith("utf-16") else "surrogateescape"
    text = data[len(mark) :].decode(codec, unpaired)
    parts = text.split("\n")
    lines = [Line(part[:-1], "\r\n") if part.endswith("\r") else Line(part, "\n") for part in parts[:-1]]
    if parts[-1]:
        lines.append(Line(parts[-1], ""))
    return LineView(lines, codec, mark)


def codec_of(before: bytes, after: bytes) -> str:
    """Choose as a careful caller: the mark, UTF-8 when it fits, Latin-1 for a file that is not UTF-8."""
    for mark, codec in _MARKS:
        if before.startswith(mark):
            return codec
    if not is_utf8(before) or (before.isascii() and not is_utf8(after)):
        return "latin-1"
    return "utf-8"


def mark_of(data: bytes, codec: str) -> bytes:
    """Return the byte order mark of this codec that `data` begins with, empty when it has none."""
    return next((mark for mark, name in _MARKS if name == codec and data.startswith(mark)), b"")


def is_utf8(data: bytes) -> bool:
    """Tell whether all bytes decode."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True

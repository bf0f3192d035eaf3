r"""Positions of the Language Server Protocol in a text, and back.

Its lines end at `\n`, `\r\n` or `\r`, its columns are UTF-16 units. This project's lines end at `\n` alone, so a position is
turned into an offset first.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from typing import Any
from urllib.parse import quote, unquote, urlsplit

_END = re.compile(r"\r\n?|\n")


class Positions:
    """The lines of one text, by both ways of counting."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(match.end() for match in _END.finditer(text))]
        # Both ways of counting agree unless there is a lone carriage return.
        self._lines = [0, *(at + 1 for at, char in enumerate(text) if char == "\n")] if "\r" in text else self._starts

    def offset(self, position: dict[str, Any]) -> int:
        """Return the offset of a position; one past the end of its line is that end, as the protocol says."""
        line = min(max(0, int(position["line"])), len(self._starts) - 1)
        start = self._starts[line]
        stop = self._starts[line + 1] if line + 1 < len(self._starts) else len(self.text)
        # A column counts within the line's text: past its end it must not reach the next line.
        body = self.text[start:stop].rstrip("\r\n") if stop > start else ""
        return start + _characters(body, max(0, int(position["character"])))

    def at(self, offset: int) -> dict[str, int]:
        """Return the protocol's position of an offset."""
        line = bisect_right(self._starts, offset) - 1
        return {"line": line, "character": _units(self.text[self._starts[line] : offset])}

    def line(self, offset: int) -> tuple[int, int]:
        """Return this project's line and column of an offset, both from 1, columns in characters."""
        at = bisect_right(self._lines, offset) - 1
        return at + 1, offset - self._lines[at] + 1

    def start(self, line: int) -> int:
        """Return the offset at which this project's line begins (from 1)."""
        return self._lines[line - 1]

    def with_edits(self, text_edits: list[dict[str, Any]]) -> str:
        """Return the text after the protocol's edits.

        Raises:
            ValueError: two of them overlap, or one ends before it begins.
        """
        spans = [
            (self.offset(one["range"]["start"]), self.offset(one["range"]["end"]), str(one["newText"])) for one in text_edits
        ]
        parts, at = list[str](), 0
        # Insertions at one place keep the order in which they were given; one edit may begin where the other ends.
        for start, stop, new in sorted(spans, key=lambda span: span[:2]):
            if not at <= start <= stop:
                raise ValueError("two overlap, or one ends before it begins")
            parts += [self.text[at:start], new]
            at = stop
        return "".join([*parts, self.text[at:]])


def _characters(body: str, units: int) -> int:
    """Return how many characters the first `units` UTF-16 units are."""
    # Nearly every line: characters and units are the same.
    return (
        min(units, len(body)) if body.isascii() else len(body.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "replace"))
    )


def _units(body: str) -> int:
    return len(body) if body.isascii() else len(body.encode("utf-16-le")) // 2


def uri_of(path: str) -> str:
    """Return a file's URI."""
    return "file://" + quote(os.fsencode(path), safe="/")


def path_of(uri: str) -> str | None:
    """Return the path of a file's URI; None for any other."""
    parts = urlsplit(uri)
    is_here = parts.scheme == "file" and parts.netloc in ("", "localhost")
    return unquote(parts.path, errors="surrogateescape") if is_here else None


def normal_uri(uri: str) -> str:
    """Return a URI as `uri_of` writes it, whatever the server escaped."""
    path = path_of(uri)
    return uri if path is None else uri_of(path)

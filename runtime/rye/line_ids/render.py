"""Lines as they are shown, with their IDs or as a search found them: white space made visible, long ones shortened."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rye.call.results import shorten
from rye.plain_class import Record


class Row(NamedTuple):
    """A line as it is shown: number from 1, ID (None where none was asked for), whole text without terminator, address."""

    number: int
    id: str | None
    text: str
    short: str | None = None

    @property
    def mark(self) -> str:
        """Return what is printed before its text: its ID, or else its short address and a tab."""
        return f"[LID:{self.id}] " if self.id else f"{self.short}\t" if self.short else ""

    def numbered(self, width: int = 0, separator: str = ": ") -> str:
        """Return it as tools by line number print it: `12: [LID:a1b2c3] text`, a long line shortened."""
        return f"{self.number:>{width}}{separator}{self.mark}{shorten(self.text)}"


class Hit(NamedTuple):
    """A match. `line` and `last` count from 1; `start` is the byte in `text` (the line, or lines) where it begins."""

    line: int
    last: int
    start: int
    text: bytes


class Seen(Record):
    """What a result shows of a file: rows by number, the hits that they cover, why they have no IDs if so, and a note.

    The note is what a view says of an uncertain encoding; see `escapes.notice`.
    """

    rows: dict[int, Row]
    hits: list[Hit]
    changed: bool = False
    without_ids: str = ""
    note: str = ""


def joined_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges [start, stop) that ascend by their starts, those that meet as one."""
    out: list[tuple[int, int]] = []
    for start, stop in ranges:
        if out and start <= out[-1][1]:
            out[-1] = out[-1][0], max(out[-1][1], stop)
        else:
            out.append((start, stop))
    return out


def hits_without_ids(hits: Sequence[Hit], why: str = "") -> Seen:
    """Return hits as they were found, without IDs; `why` there are none, where they were asked for."""
    rows: dict[int, Row] = {}
    for hit in hits:
        # Not what is behind the last newline; a match may end in empty lines.
        for number, line in zip(range(hit.line, hit.last + 1), hit.text.split(b"\n"), strict=False):
            rows[number] = Row(number, None, line.removesuffix(b"\r").decode("utf-8", "backslashreplace"))
    return Seen(rows, list(hits), without_ids=why)


_TRAILING = r"[ \t]+$"


def reveal(text: str, crlf: bool = False) -> str:
    """Return a line with tabs as `→`, trailing blanks as `·`, CR as `␍`, odd spaces and control characters as `<U+00A0>`."""
    # Only blanks at the end are dotted: inside a line they are seen anyway.
    body = re.sub(_TRAILING, lambda match: match[0].replace(" ", "·"), text)
    return "".join(map(_char, body)) + ("␍" if crlf else "")


def _char(char: str) -> str:
    if char == "\t":
        return "→\t"
    if char == "\r":
        return "␍"
    if char != " " and unicodedata.category(char) in ("Zs", "Zl", "Zp", "Cf", "Cc"):
        return f"<U+{ord(char):04X}>"
    return char

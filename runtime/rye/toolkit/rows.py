"""Lines as they are shown: with their IDs, or as a search found them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rye.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence


class Row(NamedTuple):
    """A line as it is shown: number from 1, ID (None where none was asked for), whole text without terminator."""

    number: int
    id: str | None
    text: str


class Hit(NamedTuple):
    """A match. `line` and `last` count from 1; `start` is the byte in `text` (the line, or lines) where it begins."""

    line: int
    last: int
    start: int
    text: bytes


class Seen(Record):
    """What is to be shown of a file: rows by number, how many of the hits they are for, and why they have no IDs if so."""

    rows: dict[int, Row]
    hits: list[Hit]
    changed: bool = False
    without_ids: str = ""


def bare_end(text: bytes) -> bytes:
    """Return a line without its terminator."""
    return text.rstrip(b"\r\n")


def bare(hits: Sequence[Hit], why: str = "") -> Seen:
    """Return hits as they were found, without IDs; `why` there are none, where they were asked for."""
    rows: dict[int, Row] = {}
    for hit in hits:
        for number, line in enumerate(bare_end(hit.text).split(b"\n"), hit.line):
            rows[number] = Row(number, None, line.removesuffix(b"\r").decode("utf-8", "backslashreplace"))
    return Seen(rows, list(hits), without_ids=why)

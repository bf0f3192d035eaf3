"""The lines of a file's hunks as rows: numbers, signs, coloured pieces, and the lines around."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rye.review.colours import Colours, Line
from rye.review.diffs import ShownFile, ShownHunk

LINES_PER_FILE: Final = 400
"""So many lines of a file are on a page with others."""

Sides = tuple[Sequence[Line] | None, Sequence[Line] | None]
"""The coloured lines of a file before and after; None: they are shown plain."""

PLAIN: Final[Sides] = (None, None)

_CONTEXT: Final = 3


class DiffRow(NamedTuple):
    """A line: whether it went or came, its numbers before and after (from 1, as text), and its pieces with their classes."""

    kind: str
    sign: str
    old: str
    new: str
    pieces: Line


class ShownPart(NamedTuple):
    """A hunk that is shown: its place among the file's hunks, its rows, and how many of its lines are left out."""

    at: int
    hunk: ShownHunk
    rows: Sequence[DiffRow]
    left: int


def coloured(colours: Colours, files: Sequence[ShownFile]) -> list[Sides]:
    """Return the colours of files whose hunks are to be shown."""
    found = iter(colours.of((one.path, side if one.hunks else ()) for one in files for side in (one.before, one.after)))
    return list(zip(found, found, strict=True))


def parts(one: ShownFile, sides: Sides, most: int) -> list[ShownPart]:
    """Return the hunks of a file, the first ones, in not many more than `most` lines."""
    out: list[ShownPart] = []
    for at, hunk in enumerate(one.hunks):
        if most <= 0:
            break
        rows = [] if hunk.note else list(_rows(one, at, most, *sides))
        left = max(len(hunk.removed) - most, 0) + max(len(hunk.added) - most, 0)
        out.append(ShownPart(at, hunk, rows, left))
        most -= max(len(rows), 1)
    return out


def _rows(one: ShownFile, at: int, most: int, old: Sequence[Line] | None, new: Sequence[Line] | None) -> Iterator[DiffRow]:
    hunk = one.hunks[at]
    start = max(hunk.new - _CONTEXT, 0)
    if at:
        # What the hunk before showed behind itself is not shown again.
        last = one.hunks[at - 1]
        start = max(start, min(last.new + len(last.added) + _CONTEXT, hunk.new))
    yield from _same(one, new, range(start, hunk.new), hunk.old - hunk.new)
    for number, line in enumerate(hunk.removed[:most], hunk.old):
        yield DiffRow("minus", "\u2212", str(number + 1), "", _pieces(line, old, number))
    for number, line in enumerate(hunk.added[:most], hunk.new):
        yield DiffRow("plus", "+", "", str(number + 1), _pieces(line, new, number))
    first = hunk.new + len(hunk.added)
    following = one.hunks[at + 1 : at + 2]
    stop = following[0].new if following and not following[0].note else first + _CONTEXT
    yield from _same(one, new, range(first, min(first + _CONTEXT, stop)), hunk.old + len(hunk.removed) - first)


def _same(one: ShownFile, coloured: Sequence[Line] | None, numbers: range, shift: int) -> Iterator[DiffRow]:
    for number in numbers:
        if number < len(one.after):
            pieces = _pieces(one.after[number], coloured, number)
            yield DiffRow("", " ", str(number + shift + 1), str(number + 1), pieces)


def _pieces(line: str, coloured: Sequence[Line] | None, number: int) -> Line:
    # The line itself decides: where a mark of its end was added, the colours do not fit.
    if coloured is None or number >= len(coloured) or "".join(part for _, part in coloured[number]) != line:
        return [("", line)]
    return coloured[number]

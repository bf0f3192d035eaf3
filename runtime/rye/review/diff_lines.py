"""The lines of a file's hunks as HTML: numbers, signs, colours, and the lines around."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from rye.review.colours import Colours, Line
from rye.review.diffs import FileDiff
from rye.review.frame import lines, shown

LINES_PER_FILE: Final = 400
"""So many lines of a file are on a page with others."""

_CONTEXT: Final = 3


class DiffLines:
    """The lines of one file's hunks."""

    def __init__(self, one: FileDiff, colours: Colours | None, most: int) -> None:
        """Show at most so many lines; without `colours` they stay plain."""
        self.most = most
        self._one = one
        self._old, self._new = (self._coloured(colours, side) for side in (one.before, one.after))

    def _coloured(self, colours: Colours | None, side: Sequence[str]) -> Sequence[Line] | None:
        if colours is None or not side or not self._one.hunks or self.most <= 0:
            return None
        return colours.of(self._one.path, side)

    def of(self, at: int, most: int) -> tuple[str, int]:
        """Return the lines of a hunk, given by its number, and how many they are: not many more than `most`."""
        hunk = self._one.hunks[at]
        if hunk.note:
            return "", 1
        rows = [*self._before(at), *self._minus(at, most), *self._plus(at, most), *self._after(at)]
        left = max(len(hunk.removed) - most, 0) + max(len(hunk.added) - most, 0)
        if left:
            rows.append(f'<span class="row cut">{left:,} more lines of this hunk are not shown.</span>')
        return "".join(rows), len(rows)

    def _minus(self, at: int, most: int) -> Iterator[str]:
        hunk = self._one.hunks[at]
        for number, line in enumerate(hunk.removed[:most], hunk.old):
            yield _row("minus", "&minus;", number, None, _text(line, self._old, number))

    def _plus(self, at: int, most: int) -> Iterator[str]:
        hunk = self._one.hunks[at]
        for number, line in enumerate(hunk.added[:most], hunk.new):
            yield _row("plus", "+", None, number, _text(line, self._new, number))

    def _before(self, at: int) -> Iterator[str]:
        hunk = self._one.hunks[at]
        start = max(hunk.new - _CONTEXT, 0)
        if at:
            # What the hunk before showed behind itself is not shown again.
            last = self._one.hunks[at - 1]
            start = max(start, min(last.new + len(last.added) + _CONTEXT, hunk.new))
        return self._same(start, hunk.new, hunk.old - hunk.new)

    def _after(self, at: int) -> Iterator[str]:
        hunk = self._one.hunks[at]
        first = hunk.new + len(hunk.added)
        following = self._one.hunks[at + 1 : at + 2]
        stop = following[0].new if following and not following[0].note else first + _CONTEXT
        return self._same(first, min(first + _CONTEXT, stop), hunk.old + len(hunk.removed) - first)

    def _same(self, start: int, stop: int, shift: int) -> Iterator[str]:
        after = self._one.after
        for number in range(start, min(stop, len(after))):
            yield _row("", " ", number + shift, number, _text(after[number], self._new, number))


def _row(kind: str, sign: str, old: int | None, new: int | None, text: str) -> str:
    numbers = "".join(f'<span class="no">{"" if one is None else one + 1}</span>' for one in (old, new))
    return f'<span class="row {kind}">{numbers}<span class="sign">{sign}</span><span class="text">{text}</span>\n</span>'


def _text(line: str, coloured: Sequence[Line] | None, number: int) -> str:
    # The line itself decides: where a mark of its end was added, the colours do not fit.
    if coloured is None or number >= len(coloured) or "".join(part for _, part in coloured[number]) != line:
        return shown(line)
    return "".join(f'<span class="{kind}">{shown(part)}</span>' if kind else shown(part) for kind, part in coloured[number])


def head(one: FileDiff, rest: str = "", anchor: str = "") -> str:
    """Return the heading of a file, its notes behind it; an address with the anchor leads to it."""
    notes = "".join(f'<p class="note">{shown(note)}</p>' for note in one.notes)
    mark = f' id="{anchor}"' if anchor else ""
    title = f'<h2 tabindex="-1" data-item{mark}>{shown(one.path)}</h2>'
    count = lines(one.added, one.removed) if one.added or one.removed else ""
    return f'<div class="head">{title}{count}{rest}</div>{notes}'


def file(one: FileDiff, colours: Colours) -> str:
    """Return a file's differences alone, without anything to do."""
    made = DiffLines(one, colours, LINES_PER_FILE)
    left, parts = LINES_PER_FILE, []
    for at in range(len(one.hunks)):
        if left <= 0:
            parts.append(f'<p class="empty">{len(one.hunks) - at:,} more hunks are not shown.</p>')
            break
        text, count = made.of(at, left)
        parts.append(f'<p class="note">{shown(one.hunks[at].note)}</p>' if one.hunks[at].note else f"<pre>{text}</pre>")
        left -= count
    return f'<section class="file" data-scope aria-label="{escape(one.path)}">{head(one)}{"".join(parts)}</section>'

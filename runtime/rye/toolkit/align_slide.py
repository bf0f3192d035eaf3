"""Where a hunk among equal lines belongs: slid to where `git diff` puts it, which is where a person would.

Beside a hunk of the other version, else where indentation and blank lines say that a unit begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from rye.toolkit.align_script import Budget

MAX_SLIDE = 100
"""How far a hunk is slid (lines)."""


def end_of(flags: bytearray, value: int, start: int) -> int:
    """Return where `value` comes next, or the length."""
    found = flags.find(value, start)
    return len(flags) if found < 0 else found


def settle(lines: Sequence[Hashable], flags: bytearray, other: bytearray, splits: Splits | None, budget: Budget) -> None:
    """Slide every hunk of one version to its place."""
    hunk = _Hunk(lines, flags, _Run(other))
    while budget.left > 0:
        if hunk.start < hunk.end:
            _place(hunk, splits, budget)
        following = flags.find(1, hunk.end)
        if following < 0:
            return
        hunk.beside.skip(following - hunk.end)
        hunk.start, hunk.end = following, end_of(flags, 0, following)


def _place(hunk: _Hunk, splits: Splits | None, budget: Budget) -> None:
    """Slide a hunk as far down as it goes, then back up to the best place on its way."""
    size, highest, beside = 0, 0, -1
    while size != hunk.end - hunk.start:
        size, beside = hunk.end - hunk.start, -1
        while budget.take(1) and hunk.up():
            pass
        highest = hunk.end
        while True:
            if hunk.beside.start < hunk.beside.end:
                beside = hunk.end
            if not (budget.take(1) and hunk.down()):
                break
    if beside >= 0:
        best = beside
    elif splits is not None and highest < hunk.end:
        best = splits.best(max(highest, hunk.end - size - 1, hunk.end - MAX_SLIDE), hunk.end, size)
    else:
        return
    while hunk.end > best and hunk.up():
        pass


class _Run:
    """A run of changed lines of one version, maybe empty; one unchanged line stands between neighbours."""

    __slots__ = ("end", "flags", "start")

    def __init__(self, flags: bytearray) -> None:
        self.flags = flags
        self.start = 0
        self.end = end_of(flags, 0, 0)

    def previous(self) -> None:
        """Go to the run above the unchanged line that stands above."""
        self.end = self.start - 1
        self.start = self.flags.rfind(0, 0, self.end) + 1

    def next(self) -> None:
        """Go to the run below the unchanged line that stands below."""
        self.start = self.end + 1
        self.end = end_of(self.flags, 0, self.start)

    def skip(self, unchanged: int) -> None:
        """Go down over that many unchanged lines."""
        at = self.end
        while unchanged:
            stretch = min(unchanged, end_of(self.flags, 1, at) - at)
            unchanged -= stretch
            at += stretch
            self.start, self.end = at, end_of(self.flags, 0, at)
            at = self.end


class _Hunk(_Run):
    """A run that slides over equal lines, and swallows the runs it comes to touch."""

    __slots__ = ("beside", "lines")

    def __init__(self, lines: Sequence[Hashable], flags: bytearray, beside: _Run) -> None:
        super().__init__(flags)
        self.lines = lines
        self.beside = beside

    def up(self) -> bool:
        """Slide one line up, if the lines allow it."""
        if not self.start or self.lines[self.start - 1] != self.lines[self.end - 1]:
            return False
        self.flags[self.start - 1], self.flags[self.end - 1] = 1, 0
        self.end -= 1
        self.start = self.flags.rfind(0, 0, self.start) + 1
        self.beside.previous()
        return True

    def down(self) -> bool:
        """Slide one line down, if the lines allow it."""
        if self.end == len(self.lines) or self.lines[self.start] != self.lines[self.end]:
            return False
        self.flags[self.start], self.flags[self.end] = 0, 1
        self.start += 1
        self.end = end_of(self.flags, 0, self.end)
        self.beside.next()
        return True


class _Split(NamedTuple):
    """What a reader sees between two lines; indentation -1 means that there is no such line."""

    indent: int
    """Of the line below, or -1 if it is blank."""
    blank_above: int
    indent_above: int
    """Of the nearest line above that is not blank."""
    blank_below: int
    """Blank lines after the line below."""
    indent_below: int
    """Of the nearest line after it that is not blank."""
    at_end: bool

    def depth(self) -> int:
        """Return the indentation of what begins here."""
        return self.indent if self.indent >= 0 else self.indent_below

    def penalty(self) -> int:
        """Return how unlikely a unit begins or ends here, by git's weights, found in hand-rated diffs."""
        blank_after = 1 + self.blank_below if self.indent < 0 else 0
        blank = self.blank_above + blank_after
        cost = 6 * blank_after - 30 * blank
        if self.indent_above < 0 and not self.blank_above:
            cost += 1
        if self.at_end:
            cost += 21
        depth, above = self.depth(), self.indent_above
        if depth < 0 or above < 0 or depth == above:
            return cost
        if depth > above:
            return cost + (10 if blank else -4)
        if self.indent_below > depth:
            return cost + (17 if blank else 24)
        return cost + (17 if blank else 23)


class Splits:
    """Chooses among the places of a hunk by what begins and ends there."""

    def __init__(self, size: int, indent: Callable[[int], int | None]) -> None:
        self.size = size
        self.indent = indent

    def best(self, highest: int, lowest: int, hunk_size: int) -> int:
        """Return the best end for a hunk of `hunk_size` lines; among equals the lowest."""
        best, best_splits = lowest, self._pair(lowest, hunk_size)
        for end in range(lowest - 1, highest - 1, -1):
            splits = self._pair(end, hunk_size)
            if _compare(splits, best_splits) < 0:
                best, best_splits = end, splits
        return best

    def _pair(self, end: int, hunk_size: int) -> tuple[int, int]:
        """Return depth and penalty, each summed over the two splits of a hunk that ends at `end`."""
        splits = self._at(end), self._at(end - hunk_size)
        return sum(split.depth() for split in splits), sum(split.penalty() for split in splits)

    def _at(self, at: int) -> _Split:
        """Look at the place above line `at`."""
        indent = self.indent(at) if at < self.size else None
        above = self._look(range(at - 1, -1, -1))
        below = self._look(range(at + 1, self.size))
        return _Split(-1 if indent is None else indent, *above, *below, at >= self.size)

    def _look(self, indexes: range) -> tuple[int, int]:
        """Return how many blank lines come first (20 end the search, at depth 0), then the indentation."""
        for blank, index in enumerate(indexes[:20]):
            indent = self.indent(index)
            if indent is not None:
                return blank, indent
        return (20, 0) if len(indexes) >= 20 else (len(indexes), -1)


def _compare(left: tuple[int, int], right: tuple[int, int]) -> int:
    """Return below, at or above zero as `left` is a better, equal or worse place than `right`."""
    deeper = (left[0] > right[0]) - (left[0] < right[0])
    return 60 * deeper + left[1] - right[1]


def old_indent(
    old: Sequence[Hashable], new: Sequence[Hashable], indent: Callable[[int], int | None]
) -> Callable[[int], int | None]:
    """Return the indentation of old lines, known from equal new lines only; of others it is taken to be 0."""
    places: dict[Hashable, int] = {}

    def old_indent(index: int) -> int | None:
        if not places:
            places.update(zip(new, range(len(new)), strict=True))
        place = places.get(old[index])
        return 0 if place is None else indent(place)

    return old_indent

"""Which lines of two versions are the same line: bounded work, and hunks where git puts them.

Three steps, each on flags ("this line is changed") for either version, from which the blocks are read last:

1. Anchors: lines that occur once in both versions, in the longest order common to both (patience diff), grown
   over the equal lines around them, and again in each gap.
2. A gap without such lines gets a shortest edit script (Myers, linear space). Where that grows too long, runs
   of 4 and 16 lines that occur once serve as anchors, and without those the search is cut where it came
   furthest.
3. A hunk among equal lines can be at several places. It is slid to where `git diff` puts it, which is
   where a person would: beside a hunk of the other version, else where indentation and blank lines say that a
   unit begins.

Every step draws on one budget, so that no input takes more than a few steps a line beyond a constant. When it
is spent, what is left counts as changed, which is never wrong, only a longer diff.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from itertools import chain, islice
from typing import NamedTuple

from rye.line_ids.diff_script import Box, Budget, Script, Stretches, between, longest_chain, size, trim, unique_pairs

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
    # A hunk that swallows a neighbour grows and may slide further, so this repeats until its size stays.
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
    # Beside a change of the other version, deletion and insertion read as one replacement.
    if beside >= 0:
        best = beside
    elif splits is not None and highest < hunk.end:
        best = splits.best(max(highest, hunk.end - size - 1, hunk.end - MAX_SLIDE), hunk.end, size)
    else:
        return
    while hunk.end > best and hunk.up():
        pass


class _Run:
    """A run of changed lines of one version, maybe empty; one unchanged line is between neighbours."""

    __slots__ = ("end", "flags", "start")

    def __init__(self, flags: bytearray) -> None:
        self.flags = flags
        self.start = 0
        self.end = end_of(flags, 0, 0)

    def previous(self) -> None:
        """Go to the run above the unchanged line above."""
        self.end = self.start - 1
        self.start = self.flags.rfind(0, 0, self.end) + 1

    def next(self) -> None:
        """Go to the run below the unchanged line below."""
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
        # The line that leaves at one end equals the line that enters at the other, so only the flags change.
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
        best, best_splits = highest, self._pair(highest, hunk_size)
        # Downwards, as git does: the comparison is not transitive, so another order finds another place.
        for end in range(highest + 1, lowest + 1):
            splits = self._pair(end, hunk_size)
            if _compare(splits, best_splits) <= 0:
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
    # 60 is git's INDENT_WEIGHT.
    return 60 * deeper + left[1] - right[1]


def old_indent(
    old: Sequence[Hashable],
    new: Sequence[Hashable],
    indent: Callable[[int], int | None],
    known: Callable[[int], int | None] | None,
) -> Callable[[int], int | None]:
    """Return the indentation of old lines: as known, else that of equal new lines; of others it is taken to be 0."""
    places: dict[Hashable, int] = {}

    def old_indent(index: int) -> int | None:
        if known is not None and (depth := known(index)) != -1:
            return depth
        # Built at the first call: most alignments ask for no old line.
        if not places:
            places.update(zip(new, range(len(new)), strict=True))
        place = places.get(old[index])
        return 0 if place is None else indent(place)

    return old_indent


_WHOLE_LINES = 40_000
"""Up to this size (lines of both versions) anchors grow into the common head and tail too, as in git."""

_STEPS, _STEPS_PER_LINE = 2_000_000, 3
"""The budget of one alignment; a step is one line compared, and finding anchors takes two a line."""

_SCAN = 100
"""How far around a frequent line strangers are counted (lines)."""


def align(
    old: Sequence[Hashable],
    new: Sequence[Hashable],
    indent: Callable[[int], int | None] | None = None,
    known: Callable[[int], int | None] | None = None,
) -> list[tuple[int, int, int]]:
    """Return the blocks of lines that both versions share, as `(old_start, new_start, length)`.

    Args:
        old: one token a line (a digest, or the text); any size.
        new: the same for the other version.
        indent: the indentation of a new line by its index (see `indentation`), None for a blank one. With it,
            hunks that could be at several places go where git's indent heuristic puts them; without, at
            the lowest.
        known: the indentation of an old line likewise; -1 where it is not known.

    Returns:
        Blocks strictly increasing on both sides; no two of them touch on both sides.
    """
    return _align(old, new, indent, Budget(_STEPS + _STEPS_PER_LINE * (len(old) + len(new))), known)


def indentation(line: bytes) -> int | None:
    """Return the width of a line's leading blanks (tab stops every 8, at most 200), None if it is blank."""
    width = 0
    for byte in line:
        if byte == 0x20:
            width += 1
        elif byte == 0x09:
            width += 8 - width % 8
        elif byte not in b"\r\n\v\f":
            return width
        if width >= 200:
            return 200
    return None


def _align(
    old: Sequence[Hashable],
    new: Sequence[Hashable],
    indent: Callable[[int], int | None] | None,
    budget: Budget,
    known: Callable[[int], int | None] | None = None,
) -> list[tuple[int, int, int]]:
    gone, came = _changed(old, new, budget)
    # The old side first: the new side then slides to the places that the old side has.
    settle(old, gone, came, Splits(len(old), old_indent(old, new, indent, known)) if indent else None, budget)
    settle(new, came, gone, Splits(len(new), indent) if indent else None, budget)
    return _blocks(gone, came)


def _blocks(gone: bytearray, came: bytearray) -> list[tuple[int, int, int]]:
    """Pair the unchanged lines of both versions in their order."""
    blocks = []
    i = gone.find(0)
    j = came.find(0)
    while i >= 0 and j >= 0:
        run = min(end_of(gone, 1, i) - i, end_of(came, 1, j) - j)
        blocks.append((i, j, run))
        i = gone.find(0, i + run)
        j = came.find(0, j + run)
    return blocks


def _changed(old: Sequence[Hashable], new: Sequence[Hashable], budget: Budget) -> tuple[bytearray, bytearray]:
    """Flag the lines of both versions that have no counterpart in the other."""
    head = tail = 0
    if len(old) + len(new) > _WHOLE_LINES:
        head, tail = _common_ends(old, new)
    ids: dict[Hashable, int] = {}
    a = [ids.setdefault(token, len(ids)) for token in old[head : len(old) - tail]]
    b = [ids.setdefault(token, len(ids)) for token in new[head : len(new) - tail]]
    # A line that is in the common ends too is not unique, whatever it is between them.
    ends = chain(islice(old, head), islice(old, len(old) - tail, None)) if head or tail else ()
    outside = {ids[token] for token in frozenset(ids).intersection(ends)}
    gap = _Gap(a, b, budget)
    gap.match(outside)
    return (bytearray(head) + gap.gone + bytearray(tail), bytearray(head) + gap.came + bytearray(tail))


def _common_ends(old: Sequence[Hashable], new: Sequence[Hashable]) -> tuple[int, int]:
    """Return how many lines the versions share at their head and at their tail."""
    most = min(len(old), len(new))
    tail = _common_run(most, lambda at, n: old[len(old) - at - n : len(old) - at] == new[len(new) - at - n : len(new) - at])
    head = _common_run(most - tail, lambda at, n: old[at : at + n] == new[at : at + n])
    return head, tail


def _common_run(most: int, same: Callable[[int, int], bool]) -> int:
    """Return the length of a common run; `same(at, n)` compares `n` lines that come after `at` equal ones."""
    # Slices are compared in C; one line at a time would be many times slower.
    at, stride = 0, 4096
    while stride:
        while at + stride <= most and same(at, stride):
            at += stride
        stride //= 2
    return at


class _Gap(Stretches):
    """Stretches matched by unique lines, and by the shortest script where there are none."""

    def match(self, outside: Collection[int]) -> None:
        """Match gap within gap; tokens in `outside` do not count as unique at first."""
        boxes = [(0, len(self.a), 0, len(self.b))]
        while boxes:
            box = boxes.pop()
            if not self._open(box, 2 * size(box)):
                continue
            i0, i1, j0, j1 = box
            anchors = longest_chain(unique_pairs(self.a[i0:i1], self.b[j0:j1], (i0, j0), outside))
            # Within a gap a line counts as unique even if it occurs elsewhere: the anchors around tell the two apart.
            outside = ()
            if anchors:
                boxes.extend(between(self.a, self.b, box, anchors))
            else:
                self._match_repeated(box)

    def _match_repeated(self, box: Box) -> None:
        """Match lines of which none is unique, or none in common."""
        i0, i1, j0, j1 = trim(self.a, self.b, box)
        # Counted over the whole box, before trimming: how frequent a line is must not depend on where the box was cut.
        in_a, in_b = Counter(self.a[box[0] : box[1]]), Counter(self.b[box[2] : box[3]])
        rows = _telling(self.a, i0, i1, in_b, box[1] - box[0])
        cols = _telling(self.b, j0, j1, in_a, box[3] - box[2])
        core = Script([self.a[i] for i in rows], [self.b[j] for j in cols], self.budget)
        core.match()
        self.gone[i0:i1] = b"\1" * (i1 - i0)
        self.came[j0:j1] = b"\1" * (j1 - j0)
        for i, changed in zip(rows, core.gone, strict=True):
            self.gone[i] = changed
        for j, changed in zip(cols, core.came, strict=True):
            self.came[j] = changed


def _telling(lines: Sequence[int], start: int, end: int, elsewhere: Counter[int], size: int) -> list[int]:
    """Return the positions worth matching: no strangers to the other version, no frequent lines among such.

    A brace amid fifty new lines would only be paired with some brace far away.
    """
    # About the square root of the size, by shifts, as in git: what is frequent depends on the length of the text.
    limit = 1
    while size:
        limit, size = limit * 2, size // 4
    limit = min(limit, 1024)
    counts = [elsewhere.get(lines[i], 0) for i in range(start, end)]
    rank = bytearray(0 if not n else 2 if n >= limit else 1 for n in counts)
    return [start + at for at, r in enumerate(rank) if r == 1 or (r == 2 and not _among_strangers(rank, at))]


def _among_strangers(rank: bytearray, at: int) -> bool:
    """Return whether lines found nowhere (rank 0) surround a frequent one (rank 2), in great majority."""
    above = rank[max(0, at - _SCAN) : at]
    above = above[above.rfind(1) + 1 :]
    below = rank[at + 1 : at + 1 + _SCAN]
    below = below[: end_of(below, 1, 0)]
    strangers = above.count(0), below.count(0)
    frequent = above.count(2) + below.count(2) + 2
    return all(strangers) and 3 * frequent < sum(strangers)

"""Which lines of two versions are the same line: bounded work, and hunks where a person would put them.

1. Anchors: lines that occur once in both versions, in the longest order common to both (patience diff), grown over the equal
   lines around them, and again in each gap.
2. A gap without such lines gets a longest common subsequence. Where that takes long, runs of 4 or 16 lines that occur once
   serve as anchors first, and without those each half of the gap is looked at for itself.
3. Lines that only one version has can be at several places among equal lines. They are slid beside another change, else to
   where indentation and blank lines say that a unit begins.

What no steps are left for counts as changed, which is never wrong, only a longer diff.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from itertools import chain, pairwise

Lines = Sequence[Hashable]
Depth = Callable[[int], int | None]
"""The indentation of a line by its index, None for a blank one."""

Block = tuple[int, int, int]
"""Old start, new start, length: lines that both versions share."""

Pair = tuple[int, int]
"""An old and a new line that are taken for the same."""

MAX_SLIDE = 100
"""How far a hunk is slid either way (lines)."""

_STEPS, _STEPS_PER_LINE = 2_000_000, 6
"""The budget of one alignment; a step is one line compared, and finding anchors takes one a line."""

_MOST_PAIRS = 20_000
"""Of so many pairs of equal lines a longest common subsequence is looked for."""

_NEAR = 20
"""How many lines are looked at for one that is not blank."""


def align(old: Lines, new: Lines, indent: Depth | None = None, known: Depth | None = None) -> list[Block]:
    """Return the blocks of lines that both versions share.

    Args:
        old: one token a line (a digest, or the text); any size.
        new: the same for the other version.
        indent: the indentation of a new line (see `indentation`). With it, hunks that could be at several places go where a
            unit begins; without, at the lowest.
        known: the indentation of an old line; -1 where it is not known.

    Returns:
        Blocks strictly increasing on both sides; no two of them touch on both sides.
    """
    depths = None if indent is None else (_old_depth(old, new, indent, known), indent)
    return _slid(_joined(_matched(old, new)), old, new, depths)


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


def _old_depth(old: Lines, new: Lines, indent: Depth, known: Depth | None) -> Depth:
    """Return the indentation of old lines: as known, else that of an equal new line; of others it is taken to be 0."""
    places: dict[Hashable, int] = {}

    def depth(at: int) -> int | None:
        if known is not None and (found := known(at)) != -1:
            return found
        # Built at the first call: most alignments ask for no old line.
        if not places:
            places.update(zip(new, range(len(new)), strict=True))
        place = places.get(old[at])
        return 0 if place is None else indent(place)

    return depth


def _joined(blocks: list[Block]) -> list[Block]:
    """Join blocks that touch on both sides."""
    out: list[Block] = []
    for i, j, length in blocks:
        if out and (out[-1][0] + out[-1][2], out[-1][1] + out[-1][2]) == (i, j):
            out[-1] = (*out[-1][:2], out[-1][2] + length)
        else:
            out.append((i, j, length))
    return out


def _matched(old: Lines, new: Lines) -> list[Block]:
    """Return blocks of equal lines in their order: the common ends of each gap, and the anchors between them."""
    steps = _STEPS + _STEPS_PER_LINE * (len(old) + len(new))
    out: list[Block] = []
    boxes = [(0, len(old), 0, len(new))]
    barred: Collection[Hashable] | None = None
    while boxes:
        i0, i1, j0, j1 = boxes.pop()
        head, tail = _common_ends(old, new, i0, i1, j0, j1)
        out += [(i0, j0, head), (i1 - tail, j1 - tail, tail)]
        i0, i1, j0, j1 = i0 + head, i1 - tail, j0 + head, j1 - tail
        steps -= i1 - i0 + j1 - j0
        if i0 == i1 or j0 == j1 or steps < 0:
            continue
        # A line of the common ends occurs once in no version; within a gap it can: the anchors around tell the two apart.
        barred = frozenset(old[i0:i1]).intersection(chain(old[:i0], old[i1:])) if barred is None else ()
        anchors, cost = _anchors(old[i0:i1], new[j0:j1], barred)
        steps -= cost
        if anchors is None:
            middle = (i0 + i1) // 2, (j0 + j1) // 2
            boxes += [(i0, middle[0], j0, middle[1]), (middle[0], i1, middle[1], j1)]
            continue
        out += [(i0 + i, j0 + j, 1) for i, j in anchors]
        ends = [(-1, -1), *anchors, (i1 - i0, j1 - j0)] if anchors else []
        boxes += [(i0 + a + 1, i0 + c, j0 + b + 1, j0 + d) for (a, b), (c, d) in pairwise(ends)]
    return sorted(block for block in out if block[2])


def _common_ends(old: Lines, new: Lines, i0: int, i1: int, j0: int, j1: int) -> tuple[int, int]:
    """Return how many lines a part of both versions shares at its head, and behind that at its tail."""
    most = min(i1 - i0, j1 - j0)
    head = _common_run(most, lambda at, n: old[i0 + at : i0 + at + n] == new[j0 + at : j0 + at + n])
    tail = _common_run(most - head, lambda at, n: old[i1 - at - n : i1 - at] == new[j1 - at - n : j1 - at])
    return head, tail


def _common_run(most: int, same: Callable[[int, int], bool]) -> int:
    """Return the length of a common run; `same(at, n)` compares `n` lines that come after `at` equal ones."""
    # Slices are compared in C; one line at a time would be many times slower.
    at, stride = 0, 1
    while at + stride <= most and same(at, stride):
        at, stride = at + stride, stride * 2
    while stride := stride // 2:
        if at + stride <= most and same(at, stride):
            at += stride
    return at


def _anchors(old: Lines, new: Lines, barred: Collection[Hashable]) -> tuple[list[Pair] | None, int]:
    """Return lines that are the same in a gap, ascending, None where that takes too long; and the steps that it took."""
    if found := _longest_chain(_unique_pairs(old, new, barred)):
        return found, len(old) + len(new)
    places = defaultdict[Hashable, list[int]](list)
    for j in range(len(new) - 1, -1, -1):
        places[new[j]].append(j)
    cost = sum(len(places.get(token, ())) for token in old)
    if cost <= _MOST_PAIRS:
        # With the new lines descending, the longest chain of all pairs has each line once.
        return _longest_chain([(i, j) for i, token in enumerate(old) for j in places.get(token, ())]), cost
    for runs in _runs(old, new):
        if found := _longest_chain(_unique_pairs(*runs)):
            return found, 6 * (len(old) + len(new))
    return None, 6 * (len(old) + len(new))


def _runs(old: Lines, new: Lines) -> Iterator[tuple[Lines, Lines]]:
    """Yield both versions as runs of 4 lines, then of 16: one token for the run that begins at each line."""
    for reach in (1, 2, 4, 8):
        ids: dict[tuple[Hashable, Hashable], int] = {}
        old, new = ([ids.setdefault(pair, len(ids)) for pair in zip(side, side[reach:], strict=False)] for side in (old, new))
        if reach in (2, 8):
            yield old, new


def _unique_pairs(old: Lines, new: Lines, barred: Collection[Hashable] = ()) -> list[Pair]:
    """Return the places of tokens that occur once in both, but for the barred ones."""
    in_old, in_new = Counter(old), Counter(new)
    at_new = dict(zip(new, range(len(new)), strict=True))
    return [
        (i, at_new[token])
        for i, token in enumerate(old)
        if in_old[token] == 1 and in_new.get(token) == 1 and token not in barred
    ]


def _longest_chain(pairs: Sequence[Pair]) -> list[Pair]:
    """Return a longest subsequence of `pairs` (ascending in the first) that increases in the second."""
    tops: list[int] = []
    top_at: list[int] = []
    before: list[int] = []
    for at, (_, j) in enumerate(pairs):
        # Patience sorting: a pile's top is the lowest end of a chain of that length; of equal ends the first one stays.
        pile = len(tops) if not tops or j > tops[-1] else bisect_left(tops, j)
        before.append(top_at[pile - 1] if pile else -1)
        if tops[pile : pile + 1] == [j]:
            continue
        tops[pile : pile + 1] = [j]
        top_at[pile : pile + 1] = [at]
    longest: list[Pair] = []
    at = top_at[-1] if top_at else -1
    while at >= 0:
        longest.append(pairs[at])
        at = before[at]
    return longest[::-1]


def _slid(blocks: list[Block], old: Lines, new: Lines, depths: tuple[Depth, Depth] | None) -> list[Block]:
    """Slide what only one version has, between two blocks, to its place; a block that vanishes joins two hunks to one."""
    # The ends of both versions stand as blocks without lines, which do not vanish.
    out = [(0, 0, 0), *blocks, (len(old), len(new), 0)]
    at = 0
    while at < len(out) - 1:
        (i, j, above), (k, m, below) = out[at], out[at + 1]
        i, j = i + above, j + above
        if (i == k) == (j == m):
            at += 1
            continue
        lines, start, end, which = (new, j, m, 1) if i == k else (old, i, k, 0)
        highest = lowest = 0
        while -highest < min(above, MAX_SLIDE) and lines[start + highest - 1] == lines[end + highest - 1]:
            highest -= 1
        while lowest < min(below, MAX_SLIDE) and lines[start + lowest] == lines[end + lowest]:
            lowest += 1
        joins_below, joins_above = lowest == below and at + 2 < len(out), -highest == above and at > 0
        by = highest if joins_above and not joins_below else lowest
        if depths is not None and highest < lowest and not (joins_below or joins_above):
            by = _best_place(lines, depths[which], range(highest, lowest + 1), (start, end))
        out[at : at + 2] = [(i - above, j - above, above + by), (k + by, m + by, below - by)]
        if joins_below:
            del out[at + 1]
        elif joins_above:
            at -= 1
            del out[at + 1]
        else:
            at += 1
    return [block for block in out if block[2]]


def _best_place(lines: Lines, depth: Depth, shifts: range, hunk: Pair) -> int:
    """Return the shift of a hunk after which units begin at its start and behind its end, by weights that git has, too."""

    def look(order: range) -> Pair:
        """Return how many blank lines come first, then the indentation; -1 where no line follows."""
        return next(((at, found) for at, line in enumerate(order) if (found := depth(line)) is not None), (len(order), -1))

    def seen(by: int) -> Pair:
        deep = cost = 0
        for at in (hunk[0] + by, hunk[1] + by):
            blank_below, below = look(range(at, min(len(lines), at + _NEAR)))
            blank_above, above = look(range(at - 1, max(-1, at - _NEAR), -1))
            deep += below
            deeper = 10 if blank_below + blank_above else -4
            cost += 24 * (below < above) + deeper * (below > above) - 24 * blank_below - 30 * blank_above
        return deep, cost

    best = shifts[0]
    here = seen(best)
    # Downwards: the comparison is not transitive, so another order would find another place.
    for by in shifts[1:]:
        deep, cost = found = seen(by)
        if 60 * ((deep > here[0]) - (deep < here[0])) + cost <= here[1]:
            best, here = by, found
    return best

"""Which lines of two versions are the same line: bounded work, and hunks where git puts them.

Three steps, each on flags ("this line is changed") for either version, from which the blocks are read last:

1. Anchors: lines that occur once in both versions, in the longest order common to both (patience diff), grown
   over the equal lines around them, and again in each gap.
2. A gap without such lines gets a shortest edit script (Myers, linear space). Where that grows too long, runs
   of 4 and 16 lines that occur once serve as anchors, and without those the search is cut where it came
   furthest.
3. A hunk among equal lines can stand at several places. It is slid to where `git diff` puts it, which is
   where a person would: beside a hunk of the other version, else where indentation and blank lines say that a
   unit begins.

Every step draws on one budget, so that no input takes more than a few steps a line beyond a constant. When it
is spent, what is left counts as changed, which is never wrong, only less kind.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING

from rye.toolkit.align_script import Box, Budget, Script, Stretches, between, longest_chain, size, trim, unique_pairs
from rye.toolkit.align_slide import Splits, end_of, old_indent, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Sequence

_WHOLE_LINES = 40_000
"""Up to this size (lines of both versions) anchors grow into the common head and tail too, as in git."""

_STEPS, _STEPS_PER_LINE = 2_000_000, 3
"""The budget of one alignment; a step is one line compared, and finding anchors takes two a line."""

_SCAN = 100
"""How far around a frequent line strangers are counted (lines)."""


def align(
    old: Sequence[Hashable], new: Sequence[Hashable], indent: Callable[[int], int | None] | None = None
) -> list[tuple[int, int, int]]:
    """Return the blocks of lines that both versions share, as `(old_start, new_start, length)`.

    Args:
        old: one token a line (a digest, or the text); any size.
        new: the same for the other version.
        indent: the indentation of a new line by its index (see `indentation`), None for a blank one. With it,
            hunks that could stand at several places stand where git's indent heuristic puts them; without, at
            the lowest.

    Returns:
        Blocks strictly increasing on both sides; no two of them touch on both sides.
    """
    return _align(old, new, indent, Budget(_STEPS + _STEPS_PER_LINE * (len(old) + len(new))))


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
) -> list[tuple[int, int, int]]:
    gone, came = _changed(old, new, budget)
    if indent is not None:
        settle(old, gone, came, Splits(len(old), old_indent(old, new, indent)), budget)
    else:
        settle(old, gone, came, None, budget)
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
    # What stands in the common ends too is not unique, whatever it is between them.
    ends = chain(islice(old, head), islice(old, len(old) - tail, None)) if head or tail else ()
    outside = {ids[token] for token in frozenset(ids).intersection(ends)}
    gap = _Gap(a, b, budget)
    gap.match(outside)
    return (
        bytearray(head) + gap.gone + bytearray(tail),
        bytearray(head) + gap.came + bytearray(tail),
    )


def _common_ends(old: Sequence[Hashable], new: Sequence[Hashable]) -> tuple[int, int]:
    """Return how many lines the versions share at their head and at their tail."""
    room = min(len(old), len(new))
    tail = _common_run(room, lambda at, n: old[len(old) - at - n : len(old) - at] == new[len(new) - at - n : len(new) - at])
    head = _common_run(room - tail, lambda at, n: old[at : at + n] == new[at : at + n])
    return head, tail


def _common_run(room: int, same: Callable[[int, int], bool]) -> int:
    """Return the length of a common run; `same(at, n)` compares `n` lines that come after `at` equal ones."""
    at, stride = 0, 4096
    while stride:
        while at + stride <= room and same(at, stride):
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
            outside = ()
            if anchors:
                boxes.extend(between(self.a, self.b, box, anchors))
            else:
                self._match_repeated(box)

    def _match_repeated(self, box: Box) -> None:
        """Match lines of which none is unique, or none in common."""
        i0, i1, j0, j1 = trim(self.a, self.b, box)
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

"""The shortest edit script between two stretches of lines, as far as a budget of steps goes.

Myers' linear-space search from both ends; where it grows too long, runs of lines that occur once serve as anchors.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Sequence

Box = tuple[int, int, int, int]
"""A part of both versions: old start, old end, new start, new end (ends exclusive)."""

Pair = tuple[int, int]
"""An old and a new line that are taken for the same."""

_MAX_COST = 256
"""A shortest edit script is looked for up to this many changes from either end."""


class Budget:
    """The steps that one alignment may still take."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def take(self, steps: int) -> bool:
        """Spend `steps`; return whether they were there."""
        self.left -= steps
        return self.left >= 0


class Stretches:
    """Two stretches of interned lines, and the flags of those that found no counterpart."""

    def __init__(self, a: list[int], b: list[int], budget: Budget) -> None:
        self.a, self.b, self.budget = a, b, budget
        self.gone, self.came = bytearray(len(a)), bytearray(len(b))

    def _open(self, box: Box, steps: int) -> bool:
        """Return whether there are lines to match, and steps left for it; if not, all of it is changed."""
        i0, i1, j0, j1 = box
        if i0 < i1 and j0 < j1 and self.budget.take(steps):
            return True
        self.gone[i0:i1] = b"\1" * (i1 - i0)
        self.came[j0:j1] = b"\1" * (j1 - j0)
        return False


class Script(Stretches):
    """The shortest edit script between two stretches, as far as the budget goes."""

    def match(self) -> None:
        """Divide at the middle of a shortest path, and again in both parts, the smaller first."""
        boxes = [(0, len(self.a), 0, len(self.b))]
        barren = len(self.a) + len(self.b) + 1
        while boxes:
            box = i0, i1, j0, j1 = trim(self.a, self.b, boxes.pop())
            if not self._open(box, 10):
                continue
            i, j, surely = _middle(self.a, self.b, box, self.budget)
            parts = [(i0, i, j0, j), (i, i1, j, j1)]
            here = size(box)
            # The search for rare runs reads the whole box, so after a failure only boxes of half its size are searched.
            if not surely and here < barren:
                if anchors := self._rare(box):
                    parts = between(self.a, self.b, box, anchors)
                else:
                    barren = here // 2
            # The smaller part on top: a budget that runs out then costs one large part, not many small ones.
            boxes.extend(sorted(parts, key=size, reverse=True))

    def _rare(self, box: Box) -> list[Pair]:
        """Return anchors from runs of 1, 4, or 16 lines that occur once on both sides of the box."""
        i0, i1, j0, j1 = box
        for doublings in (0, 2, 4):
            if not self.budget.take(size(box)):
                break
            a, b = _grams(self.a[i0:i1], self.b[j0:j1], doublings)
            if anchors := longest_chain(unique_pairs(a, b, (i0, j0), ())):
                return anchors
        return []


def _middle(a: Sequence[int], b: Sequence[int], box: Box, budget: Budget) -> tuple[int, int, bool]:
    """Return a point that a shortest path through the box passes, and whether it surely is one.

    Walks from both corners at once, a change further each round, and keeps for every diagonal `i - j` the
    furthest `i` reached; where the two walks meet, half of the script is behind. On ties a deletion comes
    before an insertion when walking down. After too many rounds, the point that came furthest is returned.
    """
    i0, i1, j0, j1 = box
    low, high, first, last = i0 - j1, i1 - j0, i0 - j0, i1 - j1
    # No script is longer than the box, and each round walks two changes of it.
    limit = min(max(8, min(_MAX_COST, budget.left // (6 * size(box)))), size(box) // 2 + 1)
    down, up = [-1] * (2 * limit + 5), [i1 + j1 + 2] * (2 * limit + 5)
    at_down, at_up = limit + 2 - first, limit + 2 - last
    down[first + at_down], up[last + at_up] = i0, i1
    down_min = down_max = first
    up_min = up_max = last
    odd = (first - last) % 2 == 1
    for _ in range(limit):
        steps = 0
        down_min += -1 if down_min > low else 1
        down_max += 1 if down_max < high else -1
        for k in range(down_max, down_min - 1, -2):
            left, right = down[k - 1 + at_down], down[k + 1 + at_down]
            i = start = left + 1 if left >= right else right
            j = i - k
            while i < i1 and j < j1 and a[i] == b[j]:
                i += 1
                j += 1
            steps += i - start + 3
            down[k + at_down] = i
            # With an odd distance of the corner diagonals the walks meet on the way down, else on the way up (Myers).
            if odd and up_min <= k <= up_max and up[k + at_up] <= i:
                return i, j, True
        up_min += -1 if up_min > low else 1
        up_max += 1 if up_max < high else -1
        for k in range(up_max, up_min - 1, -2):
            left, right = up[k - 1 + at_up], up[k + 1 + at_up]
            i = start = left if left < right else right - 1
            j = i - k
            while i > i0 and j > j0 and a[i - 1] == b[j - 1]:
                i -= 1
                j -= 1
            steps += start - i + 3
            up[k + at_up] = i
            if not odd and down_min <= k <= down_max and i <= down[k + at_down]:
                return i, j, True
        if not budget.take(steps):
            break
    # No meeting point within the limits: the furthest point of either walk is a fair cut.
    reached_down = (min(down[k + at_down], i1, j1 + k) for k in range(down_max, down_min - 1, -2))
    behind, i, j = max((2 * i - k, i, i - k) for i, k in zip(reached_down, range(down_max, down_min - 1, -2), strict=True))
    reached_up = (max(up[k + at_up], i0, j0 + k) for k in range(up_max, up_min - 1, -2))
    ahead, up_i, up_j = min((2 * i - k, i, i - k) for i, k in zip(reached_up, range(up_max, up_min - 1, -2), strict=True))
    if i1 + j1 - ahead < behind - i0 - j0:
        return i, j, False
    return up_i, up_j, False


def unique_pairs(a: Sequence[int], b: Sequence[int], start: Pair, barred: Collection[int]) -> list[Pair]:
    """Return the places of tokens that occur once in `a` and once in `b`, counted from `start`."""
    in_a, in_b = Counter(a), Counter(b)
    at_b = dict(zip(b, range(start[1], start[1] + len(b)), strict=True))
    once = in_b.get
    return [
        (i, at_b[token]) for i, token in enumerate(a, start[0]) if in_a[token] == 1 and once(token) == 1 and token not in barred
    ]


def longest_chain(pairs: Sequence[Pair]) -> list[Pair]:
    """Return a longest subsequence of `pairs` (increasing in the first) that increases in the second too."""
    tops: list[int] = []
    top_at: list[int] = []
    before: list[int] = []
    for at, (_, j) in enumerate(pairs):
        # Patience sorting: a pile's top is the lowest end of a chain of that length.
        pile = len(tops) if not tops or j > tops[-1] else bisect_left(tops, j)
        before.append(top_at[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [j]
        top_at[pile : pile + 1] = [at]
    longest = []
    at = top_at[-1] if top_at else -1
    while at >= 0:
        longest.append(pairs[at])
        at = before[at]
    longest.reverse()
    return longest


def _grams(a: Sequence[int], b: Sequence[int], doublings: int) -> tuple[Sequence[int], Sequence[int]]:
    """Return for every line the run of `2 ** doublings` lines that begins there, as one id."""
    for power in range(doublings):
        ids: dict[Pair, int] = {}
        reach = 1 << power
        a, b = ([ids.setdefault(pair, len(ids)) for pair in zip(side, side[reach:], strict=False)] for side in (a, b))
    return a, b


def size(box: Box) -> int:
    """Return how many lines a box holds."""
    return box[1] - box[0] + box[3] - box[2]


def trim(a: Sequence[int], b: Sequence[int], box: Box) -> Box:
    """Take the common head, then the common tail off a box."""
    i0, i1, j0, j1 = box
    while i0 < i1 and j0 < j1 and a[i0] == b[j0]:
        i0 += 1
        j0 += 1
    while i0 < i1 and j0 < j1 and a[i1 - 1] == b[j1 - 1]:
        i1 -= 1
        j1 -= 1
    return i0, i1, j0, j1


def between(a: Sequence[int], b: Sequence[int], box: Box, anchors: list[Pair]) -> list[Box]:
    """Grow every anchor over equal lines, upwards first, and return what is left between them."""
    i, i1, j, j1 = box
    gaps = []
    for next_i, next_j in [*anchors, (i1, j1)]:
        top_i, top_j = next_i, next_j
        # The last pair is the corner of the box, not an anchor, so it does not grow.
        if next_i < i1:
            while top_i > i and top_j > j and a[top_i - 1] == b[top_j - 1]:
                top_i -= 1
                top_j -= 1
        while i < top_i and j < top_j and a[i] == b[j]:
            i += 1
            j += 1
        if i < top_i or j < top_j:
            gaps.append((i, top_i, j, top_j))
        i, j = next_i + 1, next_j + 1
    return gaps

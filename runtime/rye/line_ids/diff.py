"""Which lines of two versions are the same line, in bounded work.

Three steps: the first two set flags ("this line is changed") for either version, the third moves the runs of changed lines:

1. Anchors: lines that occur once in both versions, in the longest order common to both (patience diff), grown
   over the equal lines around them, and again in each gap.
2. A gap without such lines gets a shortest edit script (Myers, linear space). Where that grows too long, the search is
   cut where it came furthest.
3. A hunk among equal lines can be at several places. It is slid beside a hunk of the other version, else to the lowest,
   as `git diff --no-indent-heuristic` does.

Every step draws on one budget, so that no input takes more than a few steps a line beyond a constant. When it
is spent, what is left counts as changed, which is never wrong, only a longer diff.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from itertools import chain, islice

Box = tuple[int, int, int, int]
"""A part of both versions: old start, old end, new start, new end (ends exclusive)."""

Pair = tuple[int, int]
"""An old and a new line that are taken for the same."""

Runs = dict[int, int]
"""How many changed lines of one version there are at each place: above the unchanged line of that number, counted from 0."""

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


def _middle(a: Sequence[int], b: Sequence[int], box: Box, budget: Budget) -> Pair:
    """Return a point that a shortest path through the box passes, as far as the budget goes.

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
                return i, j
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
                return i, j
        if not budget.take(steps):
            break
    # No meeting point within the limits: the furthest point of either walk is a fair cut.
    reached_down = (min(down[k + at_down], i1, j1 + k) for k in range(down_max, down_min - 1, -2))
    behind, i, j = max((2 * i - k, i, i - k) for i, k in zip(reached_down, range(down_max, down_min - 1, -2), strict=True))
    reached_up = (max(up[k + at_up], i0, j0 + k) for k in range(up_max, up_min - 1, -2))
    ahead, up_i, up_j = min((2 * i - k, i, i - k) for i, k in zip(reached_up, range(up_max, up_min - 1, -2), strict=True))
    return (i, j) if i1 + j1 - ahead < behind - i0 - j0 else (up_i, up_j)


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


def size(box: Box) -> int:
    """Return how many lines a box holds."""
    return box[1] - box[0] + box[3] - box[2]


def trim(a: Sequence[Hashable], b: Sequence[Hashable], box: Box) -> Box:
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


def end_of(flags: bytearray, value: int, start: int) -> int:
    """Return where `value` comes next, or the length."""
    found = flags.find(value, start)
    return len(flags) if found < 0 else found


def settle(lines: Sequence[Hashable], runs: Runs, other: Runs, budget: Budget) -> None:
    """Slide every hunk of one version to its place."""
    hunk = _Hunk(lines, runs)
    for place in sorted(runs):
        if budget.left <= 0:
            return
        # One that slid down has swallowed those that it came to.
        if place > hunk.place and place in runs:
            hunk.go(place)
            _settle(hunk, other, budget)


def _settle(hunk: _Hunk, other: Runs, budget: Budget) -> None:
    """Slide a hunk as far down as it goes, then back up to where it was last beside a change of the other version."""
    size, beside = 0, -1
    # A hunk that swallows a neighbour grows and may slide further, so this repeats until its size stays.
    while size != hunk.size:
        size, beside = hunk.size, -1
        while budget.take(1) and hunk.slide(-1):
            pass
        while True:
            if hunk.place in other:
                beside = hunk.place
            if not (budget.take(1) and hunk.slide(1)):
                break
    # There deletion and insertion read as one replacement.
    while 0 <= beside < hunk.place and hunk.slide(-1):
        pass


class _Hunk:
    """One of the runs of a version, which slides over equal lines, and swallows the runs it comes to touch."""

    __slots__ = ("lines", "place", "runs", "size", "start")

    def __init__(self, lines: Sequence[Hashable], runs: Runs) -> None:
        self.lines, self.runs = lines, runs
        self.place, self.start, self.size = -1, -1, 0

    def go(self, place: int) -> None:
        """Go down to the next run."""
        self.start += self.size + place - self.place
        self.place, self.size = place, self.runs[place]

    def slide(self, step: int) -> bool:
        """Slide one line down (1) or up (-1), if the lines allow it."""
        above = 0 if step > 0 else -1
        first, last = self.start + above, self.start + self.size + above
        if first < 0 or last == len(self.lines) or self.lines[first] != self.lines[last]:
            return False
        # The line that leaves at one end equals the line that enters at the other, so only the place changes.
        swallowed = self.runs.pop(self.place + step, 0)
        del self.runs[self.place]
        self.start += step + above * swallowed
        self.place += step
        self.size = self.runs[self.place] = self.size + swallowed
        return True


_WHOLE_LINES = 40_000
"""Up to this size (lines of both versions) anchors grow into the common head and tail too, as in git."""

_STEPS, _STEPS_PER_LINE = 2_000_000, 3
"""The budget of one alignment; a step is one line compared, and finding anchors takes two a line."""

_SCAN = 100
"""How far around a frequent line strangers are counted (lines)."""


def align(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int, int, int]]:
    """Return the blocks of lines that both versions share, as `(old_start, new_start, length)`.

    Args:
        old: one token a line (a digest, or the text); any size.
        new: the same for the other version.

    Returns:
        Blocks strictly increasing on both sides; no two of them touch on both sides.
    """
    return _align(old, new, Budget(_STEPS + _STEPS_PER_LINE * (len(old) + len(new))))


def gaps(blocks: Sequence[tuple[int, int, int]], old_count: int, new_count: int) -> Iterator[Box]:
    """Yield what differs between two versions of so many lines: what is between their blocks, ends included."""
    old = new = 0
    for old_at, new_at, length in [*blocks, (old_count, new_count, 0)]:
        if old_at > old or new_at > new:
            yield old, old_at, new, new_at
        old, new = old_at + length, new_at + length


def _align(old: Sequence[Hashable], new: Sequence[Hashable], budget: Budget) -> list[tuple[int, int, int]]:
    gone, came = _changed(old, new, budget)
    # The old side first: the new side then slides to the places that the old side has.
    settle(old, gone, came, budget)
    settle(new, came, gone, budget)
    return _blocks(gone, came, len(old))


def _runs(flags: bytearray) -> Runs:
    runs, end, changed = Runs(), 0, 0
    while (start := flags.find(1, end)) >= 0:
        end = end_of(flags, 0, start)
        runs[start - changed] = end - start
        changed += end - start
    return runs


def _blocks(gone: Runs, came: Runs, old_count: int) -> list[tuple[int, int, int]]:
    """Return the unchanged lines of both versions, which are as many, in their order."""
    blocks, at, old, new = [], 0, 0, 0
    for place in sorted({*gone, *came, old_count - sum(gone.values())}):
        if place > at:
            blocks.append((old, new, place - at))
        old, new = old + place - at + gone.get(place, 0), new + place - at + came.get(place, 0)
        at = place
    return blocks


def _changed(old: Sequence[Hashable], new: Sequence[Hashable], budget: Budget) -> tuple[Runs, Runs]:
    """Return the lines of both versions that have no counterpart in the other."""
    head = tail = 0
    if len(old) + len(new) > _WHOLE_LINES:
        head, stop, _, _ = trim(old, new, (0, len(old), 0, len(new)))
        tail = len(old) - stop
    ids: dict[Hashable, int] = {}
    a = [ids.setdefault(token, len(ids)) for token in old[head : len(old) - tail]]
    b = [ids.setdefault(token, len(ids)) for token in new[head : len(new) - tail]]
    # A line that is in the common ends too is not unique, whatever it is between them.
    ends = chain(islice(old, head), islice(old, len(old) - tail, None)) if head or tail else ()
    outside = {ids[token] for token in frozenset(ids).intersection(ends)}
    gap = _Stretches(a, b, budget)
    gap.match(outside)
    return _runs(bytearray(head) + gap.gone), _runs(bytearray(head) + gap.came)


class _Stretches:
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

    def match(self, outside: Collection[int]) -> None:
        """Match gap within gap by unique lines; tokens in `outside` do not count as unique at first."""
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

    def _match_shortest(self) -> None:
        """Divide at the middle of a shortest path, and again in both parts, the smaller first, as far as the budget goes."""
        boxes = [(0, len(self.a), 0, len(self.b))]
        while boxes:
            box = i0, i1, j0, j1 = trim(self.a, self.b, boxes.pop())
            if self._open(box, 10):
                i, j = _middle(self.a, self.b, box, self.budget)
                # The smaller part on top: a budget that runs out then costs one large part, not many small ones.
                boxes.extend(sorted([(i0, i, j0, j), (i, i1, j, j1)], key=size, reverse=True))

    def _match_repeated(self, box: Box) -> None:
        """Match lines of which none is unique, or none in common."""
        i0, i1, j0, j1 = trim(self.a, self.b, box)
        # Counted over the whole box, before trimming: how frequent a line is must not depend on where the box was cut.
        in_a, in_b = Counter(self.a[box[0] : box[1]]), Counter(self.b[box[2] : box[3]])
        rows = _telling(self.a, i0, i1, in_b, box[1] - box[0])
        cols = _telling(self.b, j0, j1, in_a, box[3] - box[2])
        core = _Stretches([self.a[i] for i in rows], [self.b[j] for j in cols], self.budget)
        core._match_shortest()
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

"""Taking a change out of a text that changed elsewhere since: exactly, or not at all.

A hunk of the change is taken out where its lines and the line on each side are unchanged in the text now. Where the same lines
are at several places, so that a comparison could take one for the other, nothing is done.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from rye.line_ids.diff import align

# So many lines on each side tell where lines were taken out, if none of them is the only one of its kind.
_ANCHORS: Final = 3


class MergeHunk(NamedTuple):
    """Lines `start` to `stop` of one text, which stand for `lines` of the other."""

    start: int
    stop: int
    lines: Sequence[bytes]


class Missing(NamedTuple):
    """A hunk that cannot be taken out.

    Attributes:
        number: which one, from 0.
        start, stop: the lines of the text now that lie where it was.
    """

    number: int
    start: int
    stop: int


def lines_of(data: bytes) -> list[bytes]:
    """Return a text's lines, each with its newline."""
    *lines, last = data.split(b"\n")
    return [*(line + b"\n" for line in lines), *([last] if last else [])]


def hunks(new: Sequence[bytes], old: Sequence[bytes]) -> list[MergeHunk]:
    """Return what turns `new` into `old`, in the numbering of `new`: the same hunks as a printed diff has."""
    out: list[MergeHunk] = []
    at = made = 0
    # The old text first, as a diff compares them; the empty block at the end closes the last difference.
    for i, j, length in [*align(old, new), (len(old), len(new), 0)]:
        if i > at or j > made:
            out.append(MergeHunk(made, j, old[at:i]))
        at, made = i + length, j + length
    return out


def shared_ends(one: Sequence[bytes], other: Sequence[bytes]) -> tuple[int, int]:
    """Return how many lines two texts share at their beginning, and after that at their end."""
    most = min(len(one), len(other))
    head = next((at for at in range(most) if one[at] != other[at]), most)
    tail = next((at for at in range(most - head) if one[-1 - at] != other[-1 - at]), most - head)
    return head, tail


def without(
    old: Sequence[bytes], new: Sequence[bytes], current: Sequence[bytes], chosen: Collection[int] | None = None
) -> tuple[list[MergeHunk], list[Missing]]:
    """Work out how a change that had turned `old` into `new` is taken out of `current`.

    Args:
        old: the lines before the change.
        new: the lines that the change left.
        current: the lines as they are.
        chosen: numbers (from 0) of the hunks to take out; all if None.

    Returns:
        What becomes of `current`, ascending, and the hunks for which that cannot be told: without those it is exact.
    """
    wanted = [(at, hunk) for at, hunk in enumerate(hunks(new, old)) if chosen is None or at in chosen]
    if new == current:
        return [hunk for _, hunk in wanted], []
    since = [(hunk, *_slides(hunk, new)) for hunk in hunks(new, current)]
    out: list[MergeHunk] = []
    missing: list[Missing] = []
    for number, hunk in wanted:
        shift, low, high = _since(since, hunk, len(new))
        if low < high:
            missing.append(Missing(number, low, high))
        elif _is_clear(new, current, hunk, shift):
            out.append(MergeHunk(hunk.start + shift, hunk.stop + shift, hunk.lines))
        else:
            missing.append(Missing(number, hunk.start + shift, hunk.stop + shift))
    return out, missing


def replaced(current: Sequence[bytes], splices: Sequence[MergeHunk], newline: bytes) -> bytes | list[Missing]:
    """Return a text with some of its lines replaced; where a line would come behind one without a newline, that place."""
    out = list(current)
    for splice in reversed(splices):
        out[splice.start : splice.stop] = splice.lines
    # Only the last line may be without a newline.
    if any(not line.endswith(newline) for line in out[:-1]):
        return [Missing(0, max(len(current) - 1, 0), len(current))]
    return b"".join(out)


def _slides(hunk: MergeHunk, lines: Sequence[bytes]) -> tuple[int, int]:
    """Return how far up and down lines that only came or only went may also have come or gone, among others like them."""
    if hunk.lines and hunk.stop > hunk.start:
        return 0, 0
    # The lines that came, or those that went.
    block = hunk.lines or lines[hunk.start : hunk.stop]
    up = down = 0
    while hunk.start - up and lines[hunk.start - up - 1] == block[-1 - up % len(block)]:
        up += 1
    while hunk.stop + down < len(lines) and lines[hunk.stop + down] == block[down % len(block)]:
        down += 1
    return up, down


def _since(since: Sequence[tuple[MergeHunk, int, int]], hunk: MergeHunk, count: int) -> tuple[int, int, int]:
    """Return how far a hunk moved, and the lines of the text now that changed in it or beside it (none: an empty range)."""
    # With its neighbours: a change of those may belong to it.
    low, high = max(hunk.start - 1, 0), min(hunk.stop + 1, count)
    # Where the text began or ended with lines that the change made, more may have come before or behind them.
    above, below = low < hunk.start, high > hunk.stop
    shift, start, stop, touched = 0, 0, 0, False
    for one, up, down in since:
        grown = one.start == one.stop and hunk.start < hunk.stop
        first, last = one.start - up, one.stop + down
        if (last <= low and above) or (last == low and grown):
            shift += len(one.lines) - (one.stop - one.start)
        elif (first >= high and below) or (first == high and grown):
            break
        else:
            if not touched:
                start = min(hunk.start, one.start) + shift
            touched = True
            shift += len(one.lines) - (one.stop - one.start)
            stop = max(hunk.stop, one.stop) + shift
    # Deleted lines leave no line to show: the range has at least one, which may lie behind the end.
    return (shift, start, max(stop, start + 1)) if touched else (shift, 0, 0)


def _is_clear(new: Sequence[bytes], current: Sequence[bytes], hunk: MergeHunk, shift: int) -> bool:
    """Tell whether a hunk's lines and their neighbours are where they should be, and cannot be taken for others like them."""
    low, high = max(hunk.start - 1, 0), min(hunk.stop + 1, len(new))
    if hunk.start == hunk.stop:
        # Of lines taken out the neighbours alone tell: an empty line or a brace would be one of many.
        while low and hunk.start - low < _ANCHORS and not _is_alone(new[low], new, current):
            low -= 1
        while high < len(new) and high - hunk.stop < _ANCHORS and not _is_alone(new[high - 1], new, current):
            high += 1
    wanted, start = list(new[low:high]), low + shift
    stop = start + len(wanted)
    if start < 0 or list(current[start:stop]) != wanted:
        return False
    twins = _places(current, wanted)
    if twins == 1:
        return True
    # Among others like them, the same number as before, they are told by all that stands above them, or below, and by one
    # more line on the other side: where the texts begin to differ a line may be that of another.
    above = new[:low] == current[:start] and new[high : high + 1] == current[stop : stop + 1]
    below = new[high:] == current[stop:] and new[max(low - 1, 0) : low] == current[max(start - 1, 0) : start]
    return (above or below) and twins == _places(new, wanted)


def _is_alone(line: bytes, *texts: Sequence[bytes]) -> bool:
    return all(text.count(line) == 1 for text in texts)


def _places(lines: Sequence[bytes], wanted: Sequence[bytes]) -> int:
    first = wanted[0] if wanted else None
    spans = len(lines) - len(wanted) + 1
    return sum(lines[at] == first and lines[at : at + len(wanted)] == wanted for at in range(spans))

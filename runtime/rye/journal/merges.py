"""The hunks between two texts, and a text without some of them: exactly, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rye.line_ids.diff import align


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


def between(own: Sequence[int], above: int | None, below: int | None, made_at: int) -> tuple[int, int]:
    """Return the lines that stand where a hunk was: [start, stop).

    Args:
        own: where lines that it made are.
        above: where its upper neighbour is; None: that is gone.
        below: where its lower neighbour is.
        made_at: where it was made, which tells most where none of them is there any more.
    """
    low = min(own) if own else above + 1 if above is not None else below if below is not None else made_at
    high = max(own) + 1 if own else below if below is not None and below > low else low + 1
    if above is not None and below is not None and above < below:
        low, high = min(low, above + 1), max(high, below)
    return low, high


def replaced(current: Sequence[bytes], splices: Sequence[MergeHunk], newline: bytes) -> bytes | list[Missing]:
    """Return a text with some of its lines replaced; where a line would come behind one without a newline, that place."""
    out = [*current]
    for one in reversed(splices):
        out[one.start : one.stop] = one.lines
    # Only the last line may be without a newline.
    if any(not line.endswith(newline) for line in out[:-1]):
        return [Missing(0, max(len(current) - 1, 0), len(current))]
    return b"".join(out)

"""Taking a change out of a text that changed elsewhere since: exactly, or not at all.

A hunk of the change is taken out where its lines and the line on each side are unchanged in the text now. Where the same lines
are at several places, so that a comparison could take one for the other, nothing is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

_MAX_LINES: Final = 50_000
# Comparing takes time with the product of the lines that differ.
_MAX_DIFFERENT: Final = 4_000


class Hunk(NamedTuple):
    """Lines `start` to `stop` of one text, which stand for `lines` of the other."""

    start: int
    stop: int
    lines: Sequence[bytes]


def lines_of(data: bytes) -> list[bytes]:
    """Return a text's lines, each with its newline."""
    *lines, last = data.split(b"\n")
    return [*(line + b"\n" for line in lines), *([last] if last else [])]


def hunks(new: Sequence[bytes], old: Sequence[bytes]) -> list[Hunk]:
    """Return what turns `new` into `old`, in the numbering of `new`; one hunk where the two differ in too many lines."""
    head, tail = shared_ends(new, old)
    inner, other = new[head : len(new) - tail], old[head : len(old) - tail]
    if len(new) > _MAX_LINES or max(len(inner), len(other)) > _MAX_DIFFERENT:
        # One hunk for everything between is exact, too; it only has more neighbours that must stand unchanged.
        return [Hunk(head, len(new) - tail, other)] if inner or other else []
    matcher = SequenceMatcher(None, inner, other, autojunk=False)
    return [
        Hunk(head + low, head + high, other[first:last])
        for kind, low, high, first, last in matcher.get_opcodes()
        if kind != "equal"
    ]


def shared_ends(one: Sequence[bytes], other: Sequence[bytes]) -> tuple[int, int]:
    """Return how many lines two texts share at their beginning, and after that at their end."""
    most = min(len(one), len(other))
    head = next((at for at in range(most) if one[at] != other[at]), most)
    tail = next((at for at in range(most - head) if one[-1 - at] != other[-1 - at]), most - head)
    return head, tail


def taken_out(before: bytes, after: bytes, now: bytes, chosen: Sequence[int] | None = None) -> bytes | None:
    """Return the text `now` without a change that had turned `before` into `after`; None where that is not exact.

    Args:
        before: the text before the change.
        after: the text that the change left.
        now: the text as it is.
        chosen: numbers (from 0) of the hunks to take out; all if None.
    """
    old, new, current = lines_of(before), lines_of(after), lines_of(now)
    found = hunks(new, old)
    wanted = found if chosen is None else [found[at] for at in chosen]
    out = list(current)
    spots = _spots(new, current, wanted)
    if spots is None:
        return None
    for start, hunk in reversed(list(zip(spots, wanted, strict=True))):
        out[start : start + hunk.stop - hunk.start] = hunk.lines
    # Only the last line may be without a newline.
    if any(not line.endswith(b"\n") for line in out[:-1]):
        return None
    return b"".join(out)


def _spots(new: Sequence[bytes], current: Sequence[bytes], wanted: Sequence[Hunk]) -> list[int] | None:
    """Return where each hunk's lines are in the text now; None where one is changed, gone or at several places."""
    if new == current:
        return [hunk.start for hunk in wanted]
    since = hunks(new, current)
    spots: list[int] = []
    for hunk in wanted:
        # With its neighbours: a change beside it may belong to it.
        low, high = max(hunk.start - 1, 0), min(hunk.stop + 1, len(new))
        shift, last = 0, 0
        for one in since:
            if one.stop < low or (one.stop == low and one.start < low):
                shift += len(one.lines) - (one.stop - one.start)
                last = one.stop
            elif one.start > high or (one.start == high and (one.stop > high or high < len(new))):
                break
            else:
                return None
        if not _is_clear(new, current, (low, high), low + shift, last > 0):
            return None
        spots.append(hunk.start + shift)
    return spots


def _is_clear(new: Sequence[bytes], current: Sequence[bytes], region: tuple[int, int], start: int, moved: bool) -> bool:
    """Tell whether a region is at `start` now, and nowhere else where it moved."""
    wanted = list(new[region[0] : region[1]])
    if list(current[start : start + len(wanted)]) != wanted:
        return False
    if not moved:
        return True
    places = 0
    for at in range(len(current) - len(wanted) + 1):
        if current[at] == (wanted[0] if wanted else None) and list(current[at : at + len(wanted)]) == wanted:
            places += 1
    return places == 1

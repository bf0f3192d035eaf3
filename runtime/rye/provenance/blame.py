"""Who wrote each line of a file: the recorded change that brought it, through moves, re-indentation, formatting and renames.

A line stays its writer's where only white space around and in it changes, where it moves, and where a formatter breaks or joins
lines without another change of the text. Lines that come back, by an undo, a checkout, a rebase or a stash, are as before those
of who wrote them. What is older than the record is nobody's here; git knows more of it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from rye.journal import file_history
from rye.journal.entries import Entry
from rye.journal.file_history import Step
from rye.journal.hunks import lines_of
from rye.line_ids.diff import align
from rye.workspace.workspace import Workspace

# Texts that stand in every file say nothing of where a line came from.
_TELLING: Final = 4
_SPACE: Final = re.compile(rb"\s+")
# What formatters add, take away or exchange without changing what the text says.
_FORMAT: Final = re.compile(rb"[\s,;()'\"]+")
# So many earlier texts are looked through for lines that come back.
_LOOKED_BACK: Final = 200


class BlamedLine(NamedTuple):
    """A line with the change that brought it.

    Attributes:
        text: the line, without its newline.
        step: None: it is older than the record.
    """

    text: bytes
    step: Step | None

    @property
    def entry(self) -> Entry | None:
        """What the journal says of the change; None where someone else made it, or it is older."""
        return None if self.step is None else self.step.entry


def of_file(ws: Workspace, path: str) -> list[BlamedLine]:
    """Return the lines of a file, each with the change that brought it. Errors as reading the file."""
    with ws.file(path) as file:
        now = file.read()
    found = file_history.of_file(ws, path, now=now)
    return [BlamedLine(line.rstrip(b"\r\n"), step) for line, step in zip(lines_of(now), writers(found.steps, now), strict=True)]


def writers(steps: Sequence[Step], now: bytes) -> list[Step | None]:
    """Return the step that wrote each line of a file.

    Args:
        steps: the file's history, the oldest first.
        now: its content, as the last step left it.
    """
    lines = lines_of(steps[0].before or b"") if steps else lines_of(now)
    authors: list[Step | None] = [None] * len(lines)
    earlier: list[_Version] = []
    known: dict[bytes, list[Step | None]] = {}
    for step in steps:
        known[sha256(step.before or b"").digest()] = authors
        earlier.append(_Version([_key(line) for line in lines], authors))
        new = lines_of(step.after or b"")
        back = known.get(sha256(step.after or b"").digest())
        if back is not None:
            authors = back
        else:
            authors = _carried(lines, authors, new, step)
            if step.entry is not None and (step.entry.undoes or step.entry.git):
                _bring_back(authors, new, step, earlier)
        lines = new
    return authors


class _Version(NamedTuple):
    """The keys of a text's lines at some time, and whose they were."""

    keys: list[bytes]
    authors: list[Step | None]


def _bring_back(authors: list[Step | None], new: Sequence[bytes], step: Step, earlier: Sequence[_Version]) -> None:
    """Give lines that a step brought back to who had written them, by the latest text that had them."""
    keys = [_key(line) for line in new]
    for version in reversed(earlier[-_LOOKED_BACK:]):
        fresh = [at for at, one in enumerate(authors) if one is step]
        if not fresh:
            return
        places_of: dict[bytes, list[int]] = defaultdict(list)
        for at, key in enumerate(version.keys):
            places_of[key].append(at)
        for at, source in _moved(version.keys, keys, places_of, fresh).items():
            authors[at] = version.authors[source]


def _key(line: bytes) -> bytes:
    return _SPACE.sub(b" ", line).strip()


def _carried(old: Sequence[bytes], authors: Sequence[Step | None], new: Sequence[bytes], step: Step) -> list[Step | None]:
    """Return whose the new lines are, after one step."""
    out: list[Step | None] = [step] * len(new)
    before, after = [_key(line) for line in old], [_key(line) for line in new]
    removed: dict[bytes, list[int]] = defaultdict(list)
    fresh: list[int] = []
    low = first = 0
    # The empty block at the end closes the last difference.
    for high, last, length in [*align(before, after), (len(before), len(after), 0)]:
        formatted = _formatted(old[low:high], authors[low:high], new[first:last])
        if formatted is not None:
            out[first:last] = formatted
        else:
            for at in range(low, high):
                removed[before[at]].append(at)
            fresh += range(first, last)
        low, first = high + length, last + length
        out[last:first] = authors[high:low]
    for at, source in _moved(before, after, removed, fresh).items():
        out[at] = authors[source]
    return out


def _moved(
    before: Sequence[bytes], after: Sequence[bytes], removed: dict[bytes, list[int]], fresh: Sequence[int]
) -> dict[int, int]:
    """Return which of the lines that are gone each fresh line is: the same text, or between neighbours that moved with it."""
    found: dict[int, int] = {}
    free = {at for places in removed.values() for at in places}

    def take(at: int, source: int) -> None:
        found[at] = source
        free.discard(source)

    for at in fresh:
        if len(after[at]) < _TELLING or at in found:
            continue
        # Behind its neighbour, where that moved too: the same text may be gone from several places.
        near = found.get(at - 1, -2) + 1
        places = [one for one in removed.get(after[at], ()) if one in free]
        if places:
            take(at, near if near in places else places[0])
    waiting = set(fresh) - found.keys()
    for step, order in ((1, fresh), (-1, fresh[::-1])):
        for at in order:
            source = found.get(at - step, -2) + step
            if at in waiting and at not in found and source in free and before[source] == after[at]:
                take(at, source)
    return found


def _formatted(old: Sequence[bytes], authors: Sequence[Step | None], new: Sequence[bytes]) -> list[Step | None] | None:
    """Return whose lines are that were only broken or joined otherwise; None where their text changed."""
    texts = [[_FORMAT.sub(b"", line) for line in side] for side in (old, new)]
    if not old or not new or b"".join(texts[0]) != b"".join(texts[1]) or not any(texts[0]):
        return None
    # Each character of the text keeps its writer; a line goes to the writer of most of it.
    ends, total = [], 0
    for text in texts[0]:
        total += len(text)
        ends.append(total)
    out: list[Step | None] = []
    at, line = 0, 0
    for text in texts[1]:
        shares: dict[int, int] = defaultdict(int)
        stop = at + len(text)
        while at < stop:
            while ends[line] <= at:
                line += 1
            length = min(stop, ends[line]) - at
            shares[line] += length
            at += length
        # An empty line, or one of signs alone, goes with the line before it.
        source = max(shares, key=lambda one: shares[one]) if shares else min(line, len(old) - 1)
        out.append(authors[source])
    return out

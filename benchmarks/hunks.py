"""What differs between two texts, in hunks; and the same as string replacements by a careful caller."""

from __future__ import annotations

import itertools
import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

_HEADER = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_DIFF = ("git", "diff", "--no-index", "--no-ext-diff", "--no-color", "--text", "-U0", "--histogram")


class Hunk(NamedTuple):
    """Old lines `old_start:old_end` become new lines `new_start:new_end`, counted from zero."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def hunks(before: Sequence[Hashable], after: Sequence[Hashable]) -> list[Hunk]:
    """Return the differing stretches in order; between two of them at least one line is equal."""
    numbers: dict[Hashable, int] = {}
    old = _numbered(before, numbers)
    new = _numbered(after, numbers)
    if old == new:
        return []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "old").write_bytes(old)
        (Path(folder) / "new").write_bytes(new)
        done = subprocess.run([*_DIFF, "old", "new"], cwd=folder, capture_output=True, check=False)
    return [_hunk(*match.groups()) for match in _HEADER.finditer(done.stdout)]


def _numbered(lines: Sequence[Hashable], numbers: dict[Hashable, int]) -> bytes:
    return b"".join(b"%d\n" % numbers.setdefault(line, len(numbers)) for line in lines)


def _hunk(old_at: bytes, old_count: bytes | None, new_at: bytes, new_count: bytes | None) -> Hunk:
    return Hunk(*_span(old_at, old_count), *_span(new_at, new_count))


def _span(at: bytes, count: bytes | None) -> tuple[int, int]:
    length = 1 if count is None else int(count)
    # An empty side names the line before the gap, a full one its own first line.
    start = int(at) - 1 if length else int(at)
    return start, start + length


def replacements(before: str, after: str) -> list[tuple[str, str]]:
    """Express a change as (old, new) strings to be applied one after the other.

    Args:
        before: The text as it is.
        after: The text as it shall be.

    Returns:
        Replacements whose old text is there exactly once at the moment it is looked for.
    """
    if not before:
        return [(before, after)] if after else []
    old, new = _Lines(before), _Lines(after)
    blocks = hunks(old.lines, new.lines)
    while clashes := [at for at, block in enumerate(blocks) if not _unique(block, old, new)]:
        blocks = _merged(_widened(blocks, set(clashes), len(old.lines)))
    return [(old.between(block.old_start, block.old_end), new.between(block.new_start, block.new_end)) for block in blocks]


class _Lines:
    """A text split at line feeds only, with the offset of each line."""

    def __init__(self, text: str) -> None:
        self.text = text
        parts = text.split("\n")
        self.lines = [part + "\n" for part in parts[:-1]] + [part for part in parts[-1:] if part]
        self._offsets = [0, *itertools.accumulate(map(len, self.lines))]

    def between(self, start: int, end: int) -> str:
        """Return lines `start:end` as one text."""
        return self.text[self._offsets[start] : self._offsets[end]]


def _unique(block: Hunk, old: _Lines, new: _Lines) -> bool:
    """Look for the old text once all blocks before it have been replaced."""
    wanted = old.between(block.old_start, block.old_end)
    rest = old.between(block.old_start, len(old.lines))
    text = new.between(0, block.new_start) + rest
    first = text.find(wanted)
    return bool(wanted) and first == len(text) - len(rest) and text.find(wanted, first + 1) < 0


def _widened(blocks: list[Hunk], clashes: set[int], total: int) -> list[Hunk]:
    """Take more context into the blocks that clash, up to their neighbours.

    The steps grow, or a file of twins would take forever.
    """
    wider = []
    for at, block in enumerate(blocks):
        step = max(1, (block.old_end - block.old_start) // 4) if at in clashes else 0
        floor = blocks[at - 1].old_end if at else 0
        ceiling = blocks[at + 1].old_start if at + 1 < len(blocks) else total
        up, down = min(step, block.old_start - floor), min(step, ceiling - block.old_end)
        wider.append(Hunk(block.old_start - up, block.old_end + down, block.new_start - up, block.new_end + down))
    return wider


def _merged(blocks: list[Hunk]) -> list[Hunk]:
    """Join blocks that touch."""
    merged: list[Hunk] = []
    for block in blocks:
        if merged and block.old_start <= merged[-1].old_end:
            first = merged.pop()
            merged.append(Hunk(first.old_start, block.old_end, first.new_start, block.new_end))
        else:
            merged.append(block)
    return merged

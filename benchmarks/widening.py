"""String replacements by a careful caller: enough context that each old text stands in the file once."""

from __future__ import annotations

import itertools

from hunks import Hunk, hunks


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

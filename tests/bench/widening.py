"""String replacements by a careful caller: enough context that each old text stands in the file once."""

from __future__ import annotations

from hunks import Hunk, hunks


def replacements(before: str, after: str) -> list[tuple[str, str]]:
    """Express a change as (old, new) strings to be applied one after the other.

    Args:
        before: The text as it is.
        after: The text as it shall be.

    Returns:
        Replacements whose old text is there exactly once at the moment it is looked for; the whole text as
        one replacement when nothing smaller will do.
    """
    old, new = _lines(before), _lines(after)
    blocks = hunks(old, new)
    while blocks:
        edits = [_strings(block, old, new) for block in blocks]
        clash = _first_clash(before, after, edits)
        if clash is None:
            return edits
        wider = _merged(_widened(blocks, clash, len(old)))
        if wider == blocks:
            break
        blocks = wider
    return [(before, after)] if before != after else []


def _lines(text: str) -> list[str]:
    """Split at line feeds only, each line with its own."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _strings(block: Hunk, old: list[str], new: list[str]) -> tuple[str, str]:
    return "".join(old[block.old_start : block.old_end]), "".join(new[block.new_start : block.new_end])


def _first_clash(before: str, after: str, edits: list[tuple[str, str]]) -> int | None:
    """Play the edits; return the first whose old text is not there exactly once, None when all is well."""
    text = before
    for number, (old, new) in enumerate(edits):
        at = text.find(old)
        if not old or at < 0 or text.find(old, at + 1) >= 0:
            return number
        text = text[:at] + new + text[at + len(old) :]
    return None if text == after else 0


def _widened(blocks: list[Hunk], at: int, old_count: int) -> list[Hunk]:
    """Take more context into one block; the steps grow, or a file of twins would take forever."""
    block = blocks[at]
    floor = block.old_start - (blocks[at - 1].old_end if at else 0)
    last = at + 1 == len(blocks)
    ceiling = (old_count if last else blocks[at + 1].old_start) - block.old_end
    step = max(1, (block.old_end - block.old_start) // 4)
    up, down = min(step, floor), min(step, ceiling)
    wider = Hunk(block.old_start - up, block.old_end + down, block.new_start - up, block.new_end + down)
    if not up and not down:
        # Nothing but changed lines around: join the neighbours, or give up.
        return _joined(blocks, at)
    return [*blocks[:at], wider, *blocks[at + 1 :]]


def _joined(blocks: list[Hunk], at: int) -> list[Hunk]:
    low, high = max(0, at - 1), min(len(blocks), at + 2)
    first, last = blocks[low], blocks[high - 1]
    joined = Hunk(first.old_start, last.old_end, first.new_start, last.new_end)
    return [*blocks[:low], joined, *blocks[high:]]


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

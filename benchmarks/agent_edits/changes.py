"""A change of a file in the terms of a tool: where two texts differ, and how few words say it."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, NamedTuple


class Hunk(NamedTuple):
    """Old lines [start, stop) become new lines [new_start, new_stop); all else is equal."""

    start: int
    stop: int
    new_start: int
    new_stop: int


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, without their newlines."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def hunks(old: list[str], new: list[str]) -> list[Hunk]:
    """Return where two texts differ."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle = difflib.SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False)
    return [Hunk(head + a, head + b, head + c, head + d) for kind, a, b, c, d in middle.get_opcodes() if kind != "equal"]


def widened(hunk: Hunk, count: int, named: Callable[[int], bool]) -> Hunk:
    """Return a hunk whose first and last old line can be named, or that stands beside a line that can be."""
    start, stop, new_start, new_stop = hunk
    if start == stop and (start == 0 or start == count or named(start - 1) or named(start)):
        return hunk
    if start == stop:
        start, new_start = start - 1, new_start - 1
    while start > 0 and not named(start):
        start, new_start = start - 1, new_start - 1
    while stop < count and not named(stop - 1):
        stop, new_stop = stop + 1, new_stop + 1
    return Hunk(start, stop, new_start, new_stop)


def named(found: list[Hunk], count: int, has_name: Callable[[int], bool]) -> list[Hunk]:
    """Return hunks whose ends can be named, see `widened`; those that would share a line then are one."""
    out: list[tuple[Hunk, Hunk]] = []
    for hunk in found:
        wide = widened(hunk, count, has_name)
        while out and wide.start < out[-1][1].stop:
            before = out.pop()[0]
            hunk = Hunk(before.start, hunk.stop, before.new_start, hunk.new_stop)  # noqa: PLW2901
            wide = widened(hunk, count, has_name)
        out.append((hunk, wide))
    return [wide for _, wide in out]


def joined(found: list[Hunk], close: int) -> list[Hunk]:
    """Return hunks with those joined that overlap, or stand so close that another change would cost more words."""
    out: list[Hunk] = []
    for hunk in found:
        if out and hunk.start - out[-1].stop <= close:
            last = out.pop()
            hunk = Hunk(last.start, max(last.stop, hunk.stop), last.new_start, max(last.new_stop, hunk.new_stop))  # noqa: PLW2901
        out.append(hunk)
    return out


def quoted(before_text: str, after_text: str) -> list[tuple[str, str, int]]:
    """Return the shortest replacements of whole lines: text that stands once in the file, the new text, and its line at the end.

    No two of the texts share a line, so they can be replaced in any order. They come from the file's end.
    """
    old, new = _terminated(before_text), _terminated(after_text)
    out: list[tuple[Hunk, str, str, int]] = []
    # From the end, so that lines before a change still stand as they were.
    left = hunks(old, new)
    while left:
        hunk = left.pop()
        start, stop, before, after = hunk.start, hunk.stop, 0, 0
        while not (quote := "".join(old[start:stop])) or _count(before_text, quote) != 1:
            if start > 0 and (before <= after or stop == len(old)):
                start, before = start - 1, before + 1
            elif stop < len(old):
                stop, after = stop + 1, after + 1
            else:
                return [(before_text, after_text, 0)]
        if out and stop > out[-1][0].start:
            # Both as one, from the start of this to the end of the one behind.
            behind = out.pop()[0]
            gap = behind.stop - hunk.stop
            left.append(Hunk(hunk.start, behind.stop, hunk.new_start, hunk.new_stop + gap + _grown(behind)))
            continue
        text = "".join([*old[start : hunk.start], *new[hunk.new_start : hunk.new_stop], *old[hunk.stop : stop]])
        # A newline at both ends need not be said, where the text is unique without it.
        bare = quote.removesuffix("\n")
        if quote != bare and text.endswith("\n") and bare and _count(before_text, bare) == 1:
            quote, text = bare, text.removesuffix("\n")
        size = stop - hunk.stop
        whole = Hunk(start, stop, hunk.new_start - before, hunk.new_stop + size)
        out.append((whole, quote, text, hunk.new_start - before))
    return [(quote, text, at) for _, quote, text, at in out]


def _count(text: str, part: str) -> int:
    """Return in how many places a part stands, also where these overlap; 2 stands for more."""
    first = text.find(part)
    return 0 if first < 0 else 1 if text.find(part, first + 1) < 0 else 2


def _grown(hunk: Hunk) -> int:
    """Return how many lines more a hunk has in the new text."""
    return (hunk.new_stop - hunk.new_start) - (hunk.stop - hunk.start)


def _terminated(text: str) -> list[str]:
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [last for last in [text.rpartition("\n")[2]] if last]


def find_words(old: str, new: str, where: str = "", count: int = 1) -> dict[str, Any] | str:
    """Return the change of exact text as one string, with a sign that neither text has; an object where each sign is in one."""
    sign = next((sign for sign in "|#~^@!%" if sign not in old + new), None)
    if sign is None:
        return {**({"line_id": where} if where else {}), "find": old, "replace": new, **({"count": count} if count > 1 else {})}
    return f"{where}{' ' * bool(where)}find{f' {count}' if count > 1 else ''}{sign}{old}{sign}{new}"

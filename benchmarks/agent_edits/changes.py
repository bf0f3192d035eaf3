"""A change of a file in the terms of a tool: which lines are named, and how few words say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hunks import Hunk


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, without their newlines."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


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


def find_words(old: str, new: str, where: str = "", count: int = 1) -> dict[str, Any] | str:
    """Return the change of exact text as one string, with a sign that neither text has; an object where each sign is in one."""
    sign = next((sign for sign in "|#~^@!%" if sign not in old + new), None)
    if sign is None:
        return {**({"line_id": where} if where else {}), "find": old, "replace": new, **({"count": count} if count > 1 else {})}
    return f"{where}{' ' * bool(where)}find{f' {count}' if count > 1 else ''}{sign}{old}{sign}{new}"

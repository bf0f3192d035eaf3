"""Windows of long results: where they start, how much fits, the call for the rest, and what could not be read."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from rye.errors import UsageError
from rye.toolkit import names
from rye.toolkit.globs import bad_glob
from rye.toolkit.output import envelope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rye.toolkit.walk import Tree

_NAMED = 5


class Page:
    """Printed lines, up to a size in bytes of UTF-8; the first item always fits, cut lines are its maker's business."""

    def __init__(self, room: int) -> None:
        self._room = room
        self.lines: list[str] = []
        self.full = False

    def add(self, lines: Sequence[str]) -> bool:
        """Add the lines of one item if they all fit; tell whether they did."""
        size = sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)
        if self.full or (size > self._room and self.lines):
            self.full = True
            return False
        self._room -= size
        self.lines += lines
        return True


def start(offset: int, total: int, unit: str, timed_out: bool = False) -> int:
    """Return the position from 0 that an offset names.

    Raises:
        UsageError: `bad_offset` past the end.
    """
    if offset > max(total, 1) and not timed_out:
        raise UsageError(
            "bad_offset", f"offset {offset} is past the end: there are {total} {unit}.",
            f"Use an offset from 1 to {max(total, 1)}.",
        )  # fmt: skip
    return offset - 1


def call(tool: str, parameters: dict[str, Any], defaults: dict[str, Any]) -> Callable[[int], str]:
    """Return what writes the same call with another offset; parameters at their defaults are left out."""
    given = {name: value for name, value in parameters.items() if value not in (None, False) and value != defaults.get(name)}
    words = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in given.items()]
    return lambda offset: f"{tool}({', '.join([*words, f'offset={offset}'])})"


def glob_text(glob: str) -> str:
    r"""Return a pattern as it is matched: `\xHH` stands for a byte, as in names that results show.

    Raises:
        UsageError: `bad_glob`.
    """
    try:
        raw = names.parse(glob)
    except UnicodeEncodeError:
        raise bad_glob(
            glob.encode("utf-8", "replace").decode(), "it contains a lone surrogate, which no file name holds"
        ) from None
    if not raw or b"\0" in raw:
        raise bad_glob(glob, "it contains a NUL character" if raw else "it is empty")
    return os.fsdecode(raw).removeprefix("./")


def some(paths: Sequence[str]) -> str:
    """Return the first few of some paths, and how many more there are."""
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more


def troubles(tree: Tree) -> list[str]:
    """Return what is to be said of places that were not searched, and of time that ran out."""
    out = []
    if tree.trouble_count:
        named = [f"{path} ({reason})" for path, reason in tree.troubles]
        more = tree.trouble_count - min(len(named), _NAMED)
        out.append(f"[not readable: {', '.join(named[:_NAMED])}{f' and {more} more' if more else ''}]")
    if tree.timed_out:
        out.append("[the time ran out: this is what was found until then, in no particular order; narrow path or pattern]")
    return out


def trouble_fields(tree: Tree) -> dict[str, Any]:
    """Return the same as fields, where there is anything to say."""
    fields: dict[str, Any] = {}
    if tree.trouble_count:
        fields["unreadable"] = [{"path": path, "reason": reason} for path, reason in tree.troubles]
        fields["unreadable_count"] = tree.trouble_count
    if tree.timed_out:
        fields["timed_out"] = True
    return fields


__all__ = ["Page", "call", "envelope", "glob_text", "some", "start", "trouble_fields", "troubles"]

"""Results of tools: success and failure, pages of lines within a budget, and the notice of what was cut."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from rye.call import context
from rye.errors import RyeError, UsageError


class Page:
    """Lines up to a size in bytes of UTF-8. The first item always fits; whoever adds it shortens its lines."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.lines: list[str] = []
        self.full = False

    def add(self, lines: Sequence[str]) -> bool:
        """Add the lines of one item if they all fit; return whether they did."""
        size = size_of(lines)
        # The first item is always added: an empty page would make the caller ask for the same page again.
        if self.full or (size > self.budget and self.lines):
            self.full = True
            return False
        self.budget -= size
        self.lines += lines
        return True

    def fill(self, lines: Iterable[str]) -> int:
        """Add lines until one does not fit; return how many did."""
        given = [] if self.full else list(lines)
        # Measured together first: most often all fit.
        if (size := size_of(given)) > max(self.budget, 0):
            ends = list(accumulate(len(line.encode("utf-8", "replace")) + 1 for line in given))
            count = bisect_right(ends, self.budget) or int(not self.lines)
            self.full = count < len(given)
            given, size = given[:count], ends[count - 1] if count else 0
        self.budget -= size
        self.lines += given
        return len(given)

    def mark(self) -> tuple[int, int, bool]:
        """Return where the page stands, for `back_to`."""
        return self.budget, len(self.lines), self.full

    def back_to(self, mark: tuple[int, int, bool]) -> None:
        """Take off what was added since a mark."""
        self.budget, count, self.full = mark
        del self.lines[count:]


def start_index(offset: int, total: int, unit: str, timed_out: bool = False) -> int:
    """Return the position from 0 that an offset names.

    Raises:
        UsageError: `bad_offset` past the end.
    """
    if offset > max(total, 1) and not timed_out:
        why = f"offset {offset} is past the end: there are {total} {unit}."
        raise UsageError("bad_offset", why, f"Use an offset from 1 to {max(total, 1)}.")
    return offset - 1


def call_text(tool: str, **arguments: Any) -> str:
    """Return a call as the caller makes it: a model by `read(file_path="a.py", offset=3)`; `...` is to be filled in."""
    write = context.current().options.writes_call
    return write(tool, arguments) if write is not None else f"{tool}({_assignments(arguments)})"


def parameter_text(**arguments: Any) -> str:
    """Return parameters of the running tool as the caller gives them: a model `hidden=true`."""
    write = context.current().options.writes_call
    return write("", arguments) if write is not None else _assignments(arguments)


def _assignments(arguments: Mapping[str, Any]) -> str:
    words = [f"{name}={'…' if value is ... else json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()]
    return ", ".join(words)


def next_call(tool: str, parameters: dict[str, Any], schema: Mapping[str, Any]) -> Callable[[int], str]:
    """Return what writes a tool's call with another offset; `schema` (its CONFIG_SCHEMA) says what need not be written."""
    written = {
        name: value
        for name, value in parameters.items()
        if name != "offset" and value is not None and value != schema["properties"][name].get("default")
    }
    return lambda offset: call_text(tool, **written, offset=offset)


def first_few(texts: Sequence[object], most: int = 5, *, between: str = ", ", total: int | None = None) -> str:
    """Return the first few of some texts, and how many more there are: of `total`, where these are not all."""
    more = (len(texts) if total is None else total) - min(len(texts), most)
    return between.join(map(str, texts[:most])) + (f" and {more:,} more" if more else "")


def ok(output: str, **fields: Any) -> dict[str, Any]:
    """Return a success result: `{"success": true, "output": output, **fields}`."""
    return {"success": True, "output": output, **fields}


def failure(err: RyeError) -> dict[str, Any]:
    """Return a failed result: `{"success": false, "error": what went wrong and what to do next, "code", **details}`."""
    # The fixed fields come last, so that no detail can replace them.
    return {**err.details, "success": False, "error": str(err), "code": err.code}


ENVELOPE = "invoke_result"
"""The value of `__envelope__` by which a tool says that its failures have the fields of `envelope` too."""


def envelope(code: str, messages: Iterable[str]) -> dict[str, Any]:
    """Return the fields of a failure for callers who parse one shape, whatever failed."""
    listed = [{"code": code, "message": one} for one in messages]
    return {"successful": False, "result": None, "errors": listed, "warnings": []}


def cut_notice(shown: int, total: int, unit: str, call: str, omitted: int | None = None, *, advice: str = "") -> str:
    """Return the one-line notice that something was cut, and the very call that gives the rest.

    Args:
        shown: how many units were returned.
        total: how many there are.
        unit: plural noun: `lines`, `matches`, `bytes`.
        call: the call that continues, such as `read(file_path="a.py", offset=101)`.
        omitted: how many remain, where that is not `total - shown`.
        advice: what could be done in place of the call, such as `, or narrow it with include`.
    """
    more = total - shown if omitted is None else omitted
    return f"[tool_result: {shown} of {total} {unit}; {more} more omitted. Call {call} to see more{advice}.]"


def left_out(
    lines: list[str], shown: int, reached: int, total: int, unit: str, call: Callable[[int], str], *, advice: str = ""
) -> dict[str, Any]:
    """Say behind the lines of a window what it leaves out, if anything; return the fields that say so.

    Args:
        lines: what is shown; the notice is put behind it.
        shown: how many units are shown.
        reached: the last one, from 1, that a further call need not look at.
        total: how many there are.
        unit: as for `cut_notice`.
        call: writes the call that goes on at an offset.
        advice: as for `cut_notice`.
    """
    if reached >= total:
        return {"truncated": False}
    lines.append(cut_notice(shown, total, unit, call(reached + 1), total - reached, advice=advice))
    return {"truncated": True, "next_offset": reached + 1}


MAX_LINE_CHARS = 2_000
"""A longer line is shortened visibly when shown (characters)."""
# Of a long line of a diff: characters that are shown, and of these before the first that differs.
_PART, _BEFORE = 500, 150


def size_of(lines: Iterable[str]) -> int:
    """Return how many bytes of UTF-8 lines take, each with its newline."""
    joined = "\n".join([*lines, ""])
    # Text in ASCII, most of it, need not be encoded to be measured.
    return len(joined if joined.isascii() else joined.encode("utf-8", "replace"))


def fit_lines(text: Sequence[str], budget: int) -> tuple[list[str], bool]:
    """Return as many lines as fit into `budget` bytes, very long ones shortened, and whether some did not."""
    out: list[str] = []
    for line in map(shorten, _parted(text)):
        budget -= size_of([line])
        if budget < 0:
            return out, True
        out.append(line)
    return out, False


def _parted(text: Sequence[str]) -> Sequence[str]:
    """Return lines of a diff; of a long one that replaces another, the part where the two begin to differ."""
    if max(map(len, text), default=0) <= MAX_LINE_CHARS:
        return text
    out, gone = [*text], list[int]()
    for at, line in enumerate(text):
        if line[:1] == "-":
            gone.append(at)
        elif line[:1] == "+" and gone:
            pair = [gone.pop(0), at]
            sides = [text[one][1:] for one in pair]
            same = next((at for at, (a, b) in enumerate(zip(*sides, strict=False)) if a != b), min(map(len, sides)))
            low = max(0, same - _BEFORE)
            for one, side in zip(pair, sides, strict=True) if low and max(map(len, sides)) > MAX_LINE_CHARS else ():
                out[one] = f"{text[one][0]}[{low:,} characters before]… {shorten(side[low:], _PART)}"
        elif line[:1] != "\\":
            gone.clear()
    return out


def shorten(text: str, most: int = MAX_LINE_CHARS) -> str:
    """Return a line, or of one over `most` characters its beginning, with how much there is of it."""
    return text if len(text) <= most else f"{text[:most]}… [line shortened: {most:,} of {len(text):,} characters shown]"


def shorten_all(lines: list[str]) -> list[str]:
    """Return `shorten` of each line; where none is long, the lines themselves."""
    return lines if max(map(len, lines), default=0) <= MAX_LINE_CHARS else list(map(shorten, lines))

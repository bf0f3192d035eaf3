"""A change put into the terms of one `edit_lines` call."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from hunks import Hunk, hunks
from line_view import Line, LineView, is_utf8

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_STYLES = {"\n": "lf", "\r\n": "crlf"}
# The file's first line has nothing before it to stand behind.
_FILE_START = {"after_line_id": "start"}


def edit_arguments(before: LineView, after: LineView, ids: Sequence[str]) -> dict[str, Any]:
    """Return `changes` and what else the call must say; empty when no line and no end of file differs.

    Args:
        before: The file as it is.
        after: The file as it shall be.
        ids: The IDs of the lines of `before`.
    """
    found = hunks(before.keys, after.keys)
    new = after.keys
    plain = _one_style(before, [line for hunk in found for line in new[hunk.new_start : hunk.new_end]])
    changes = [change for hunk in found for change in _changes(hunk, new, ids, plain=plain)]
    final = _final_newline(before, after, found)
    if final and not changes:
        # The call wants at least one change: the last line becomes itself.
        changes = [{"line_id": ids[-1], "new_content": _content(new[-1:])}]
    return {"changes": changes, **final} if changes else {}


def sayable(before: LineView, after: LineView, arguments: dict[str, Any]) -> bool:
    """Tell whether the call's words can carry the change at all; nothing in them takes a mark away."""
    texts = [change["new_content"] for change in arguments.get("changes", ())]
    carried = not any("\0" in text or _escaped(text) for text in texts)
    return bool(arguments) and carried and before.mark == after.mark


def declared_encoding(before: bytes, codec: str, arguments: dict[str, Any]) -> dict[str, str]:
    """Name the encoding only where it is needed: for new text beyond ASCII in a file that is not UTF-8."""
    if codec != "latin-1" or all(change["new_content"].isascii() for change in arguments.get("changes", ())):
        return {}
    return {"encoding": codec} if before.isascii() or not is_utf8(before) else {}


def _escaped(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _one_style(before: LineView, new: list[Line]) -> bool:
    """Whether the new lines' terminators are what they get unasked."""
    ends = before.ends or {"\n"}
    return len(ends) == 1 and {line.end for line in new} <= ends


def _changes(hunk: Hunk, new: list[Line], ids: Sequence[str], *, plain: bool) -> Iterator[dict[str, Any]]:
    """Replace with the last run of equal terminators; earlier runs are insertions in front of it."""
    runs = list(_runs(new[hunk.new_start : hunk.new_end], plain=plain))
    removed = ids[hunk.old_start : hunk.old_end]
    for run in runs[:-1] if removed else runs:
        before = {"after_line_id": ids[hunk.old_start - 1]} if hunk.old_start else _FILE_START
        yield {**before, "new_content": _content(run), **_newline(run, plain=plain)}
    if removed:
        last = runs[-1] if runs else []
        yield {**_address(removed), "new_content": _content(last), **_newline(last, plain=plain)}


def _runs(lines: list[Line], *, plain: bool) -> Iterator[list[Line]]:
    if plain:
        yield from [lines] if lines else []
        return
    for _, run in itertools.groupby(lines, key=lambda line: line.end):
        yield list(run)


def _address(ids: Sequence[str]) -> dict[str, str]:
    if len(ids) == 1:
        return {"line_id": ids[0]}
    return {"start_line_id": ids[0], "end_line_id": ids[-1]}


def _newline(run: list[Line], *, plain: bool) -> dict[str, str]:
    return {} if plain or not run else {"newline": _STYLES[run[0].end]}


def _content(run: list[Line]) -> str:
    """Write lines as a model would; a carriage return of the text must not look like a terminator."""
    text = "".join(line.text + ("\r\n" if line.text.endswith("\r") else "\n") for line in run)
    bare = run and run[-1].text and not run[-1].text.endswith("\r")
    return text[:-1] if bare else text


def _final_newline(before: LineView, after: LineView, found: list[Hunk]) -> dict[str, str]:
    if not after.lines:
        return {}
    uncovered = found and found[-1].old_end == len(before.lines) and found[-1].new_start == found[-1].new_end
    if before.lines and before.final == after.final and (before.final or not uncovered):
        return {}
    return {"final_newline": "add" if after.final else "remove"}

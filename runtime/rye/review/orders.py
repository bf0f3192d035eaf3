"""What a button of a change's page asks for: a verb and a file or hunk, and the calls of `undo` that it comes to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from rye.journal.history import Row
from rye.review.changes import ChangeGroup, Timeline
from rye.review.diffs import ShownFile

_ORDER = re.compile(r"(undo|redo|mark)(?: ([0-9]{1,6}))?(?: ([0-9]{1,6}))?", re.ASCII)


class ButtonOrder(NamedTuple):
    """A verb (`undo`, `redo`, `mark`), and the numbers of a file of the call and of a hunk of that (from 0); None: all."""

    verb: str
    file: int | None = None
    hunk: int | None = None

    @property
    def anchor(self) -> str:
        """The part of the page that it is about."""
        return "main" if self.file is None else f"f{self.file}" if self.hunk is None else f"f{self.file}h{self.hunk}"

    def mark(self, call_id: str) -> str:
        """Return its name for `rye.review.marks`."""
        return "/".join(str(one) for one in (call_id, self.file, self.hunk) if one is not None)


def order_of(text: str, files: Sequence[ShownFile]) -> ButtonOrder | None:
    """Return what a button sent; None where a call with these files has no such button."""
    found = _ORDER.fullmatch(text)
    if found is None:
        return None
    verb, file, hunk = found[1], *(None if one is None else int(one) for one in found.groups()[1:])
    if file is not None and (file >= len(files) or (hunk is not None and hunk >= len(files[file].hunks))):
        return None
    return ButtonOrder(verb, file, hunk)


def undo_calls(order: ButtonOrder, now: Timeline, call: ChangeGroup, files: Sequence[ShownFile]) -> list[dict[str, Any]]:
    """Return the parameters of each call of `rye/file-system/undo` that does it. To restore is to undo the undos."""
    if order.file is None:
        # Whole, and what was taken back of it by itself before.
        undos = [one for row in call.rows for one in now.undos_of(row.id)] if order.verb == "redo" else [call.id]
        targets = dict.fromkeys(now.groups[now.places[one]].id for one in undos if one in now.places)
        return [_whole(now.group(one)) for one in targets]
    one = files[order.file]
    numbers = [None if order.hunk is None else one.hunks[order.hunk].number]
    if order.verb == "undo":
        return [_part(now.rows[one.entry_id], one.path, numbers[0])]
    if order.hunk is None and now.undoer_of(one.entry_id, one.path) is None:
        # Its hunks were taken back one by one.
        numbers = [hunk.number for hunk in one.hunks]
    out: dict[str, dict[str, Any]] = {}
    for number in numbers:
        undo = now.rows.get(now.undoer_of(one.entry_id, one.path, number) or "")
        if undo is not None:
            out.setdefault(undo.id, _part(undo, one.path, _number_in(undo, number if order.hunk is not None else None)))
    return list(out.values())


def _whole(call: ChangeGroup) -> dict[str, Any]:
    return {"batchId": call.id} if call.is_batch else {"entry_id": call.id}


def _number_in(undo: Row, number: int | None) -> int | None:
    """Return the number that a hunk has in the undo that took it back; None: the undo took back no other."""
    if number is None or list(undo.hunks) == [number]:
        return None
    return list(undo.hunks).index(number) + 1 if number in undo.hunks else number


def _part(row: Row, path: str, number: int | None) -> dict[str, Any]:
    of_file = {"file_path": path} if row.files > 1 or number is not None else {}
    return {"entry_id": row.id, **of_file, **({} if number is None else {"hunks": [number]})}

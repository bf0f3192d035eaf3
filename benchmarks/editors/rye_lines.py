"""This project's `read` and `edit_lines`, called in process as the doors call them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from editors.rye_changes import declared_encoding, edit_arguments, sayable
from line_view import views
from outcome import Attempt, Pair, Unavailable, json_bytes, text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_READ = "rye/file-system/read"
_EDIT = "rye/file-system/edit_lines"
_LINE = re.compile(r"\[LID:([^\]]+)\]")


class _Refused(Exception):
    """The tool said no; the message is its error."""


class RyeLines:
    """Reads every page, then makes all of a pair's changes in one call."""

    form = "lid"

    def __init__(self, execute: Callable[..., dict[str, Any]], root: Path) -> None:
        self._execute = execute
        self._root = root

    def attempt(self, target: Path, pair: Pair) -> Attempt:
        """Read with addresses off and on, then edit by line ID."""
        path = str(target.relative_to(self._root))
        before, after = views(pair.before, pair.after)
        # What to say of the encoding hangs on the new text alone, so it is known before any ID is.
        draft = edit_arguments(before, after, ["?"] * len(before.lines))
        encoding = declared_encoding(pair.before, before.codec, draft)
        cost: dict[str, Any] = {"sayable": sayable(before, after, draft)}
        if not draft or before.mark != after.mark:
            # Not sent: no line carries the mark, and the rest alone would be another change.
            return Attempt(False, "not sent: only a byte order mark differs, or one goes", **cost)
        try:
            plain = self._pages(path, encoding, line_ids="none")
            cost["read_plain"] = sum(map(text_bytes, plain))
            pages = list(self._pages(path, encoding, line_ids=self.form))
            cost["read"] = sum(map(text_bytes, pages))
            ids = self.ids_of(pages)
            change = edit_arguments(before, after, _counted(ids, len(before.lines)))
            change["changes"] = [self.said(one) for one in change["changes"]]
            arguments = {"file_path": path, **change, **encoding}
            cost["wrote"] = json_bytes(arguments)
            self._call(_EDIT, arguments)
        except _Refused as refusal:
            return Attempt(False, str(refusal), **cost)
        return Attempt(True, **cost)

    def ids_of(self, pages: list[str]) -> list[str]:
        """Return the IDs that the pages show, one a line."""
        return [found[1] for page in pages for line in page.split("\n") if (found := _LINE.match(line))]

    def said(self, change: dict[str, Any]) -> dict[str, Any] | str:
        """Return a change in the form in which it is sent."""
        return change

    def close(self) -> None:
        """Nothing is running."""

    def _pages(self, path: str, encoding: dict[str, str], **options: Any) -> Iterator[str]:
        offset = 1
        while True:
            data = self._call(_READ, {"file_path": path, "offset": offset, **encoding, **options})
            yield data["output"]
            following = data.get("next_offset") if data.get("truncated") else None
            if following is None:
                return
            if following <= offset:
                raise _Refused(f"read at offset {offset} says to go on at {following}")
            offset = following

    def _call(self, item: str, params: dict[str, Any]) -> dict[str, Any]:
        answer = self._execute(item, params, project_path=str(self._root))
        data = answer.get("data") or {}
        if answer.get("status") != "success" or not data.get("success", True):
            raise _Refused(str(answer.get("error") or data.get("error") or answer))
        return data


def _counted(ids: list[str], lines: int) -> list[str]:
    if len(ids) != lines:
        raise _Refused(f"the view shows {len(ids)} line IDs, the file has {lines} lines")
    if len(set(ids)) != lines:
        raise _Refused("the view shows one ID on two lines")
    return ids


def open_editor(root: Path, _tools: Path) -> RyeLines:
    """Import the runtime.

    Raises:
        Unavailable: It is not importable.
    """
    try:
        import rye

        return RyeLines(rye.execute, root)
    except (ImportError, AttributeError) as error:
        raise Unavailable(f"not importable: {error}") from error

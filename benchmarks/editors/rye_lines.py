"""This project's `read` and `edit_lines`, called in process: in IDs, or in short addresses as models are offered them."""

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
_LINE = re.compile(r"^\[LID:([^\]]+)\]", re.MULTILINE)


class _Refused(Exception):
    """The tool said no; the message is its error."""


class RyeLines:
    """Reads every page, then makes all of a pair's changes in one call."""

    def __init__(self, execute: Callable[..., dict[str, Any]], root: Path, form: str) -> None:
        self.form = form
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
            ids = _short_addresses(pages) if self.form == "short" else [one for page in pages for one in _LINE.findall(page)]
            change = edit_arguments(before, after, _counted(ids, len(before.lines)))
            if self.form == "short":
                change["changes"] = [_as_string(one) for one in change["changes"]]
            arguments = {"file_path": path, **change, **encoding}
            cost["wrote"] = json_bytes(arguments)
            self._call(_EDIT, arguments)
        except _Refused as refusal:
            return Attempt(False, str(refusal), **cost)
        return Attempt(True, **cost)

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


def _short_addresses(pages: list[str]) -> list[str]:
    """Return the addresses; in a file that was never edited an empty line has the number behind the one before."""
    out: list[str] = []
    for page in pages:
        for line in page.split("\n"):
            if line.startswith(("[version ", "[tool_result: ", "[empty file", "[bytes that", "[the file is")):
                break
            out.append(line.partition("\t")[0] or str(len(out) + 1))
    return out


def _as_string(change: dict[str, Any]) -> dict[str, Any] | str:
    """Return a change as one string, where a string can say it."""
    lines = change["new_content"].split("\n")
    if change["new_content"].endswith("\n"):
        lines.pop()
    if not change["new_content"] or set(change) & {"newline"} or any("\r" in line for line in lines):
        return change
    if "line_id" in change:
        head = str(change["line_id"])
    elif "start_line_id" in change:
        head = f"{change['start_line_id']}-{change['end_line_id']}"
    else:
        head = f"{change['after_line_id']}+" if "after_line_id" in change else f"+{change['before_line_id']}"
    return f"{head}|" + "\n".join(lines)


def open_editor(root: Path, _tools: Path, form: str = "lid") -> RyeLines:
    """Import the runtime.

    Raises:
        Unavailable: It is not importable.
    """
    try:
        import rye

        return RyeLines(rye.execute, root, form)
    except (ImportError, AttributeError) as error:
        raise Unavailable(f"not importable: {error}") from error

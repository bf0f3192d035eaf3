"""This project's `read` and `edit_lines`, called in process: in IDs, or in short addresses as models are offered them."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

from hunks import Hunk, hunks
from line_view import Line, LineView, is_utf8, views
from outcome import Attempt, Pair, Unavailable, json_bytes, text_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

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
    plain = _one_style(before, [line for hunk in found for line in new[hunk.new_start : hunk.new_stop]])
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
    runs = list(_runs(new[hunk.new_start : hunk.new_stop], plain=plain))
    removed = ids[hunk.start : hunk.stop]
    for run in runs[:-1] if removed else runs:
        before = {"after_line_id": ids[hunk.start - 1]} if hunk.start else _FILE_START
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
    uncovered = found and found[-1].stop == len(before.lines) and found[-1].new_start == found[-1].new_stop
    if before.lines and before.final == after.final and (before.final or not uncovered):
        return {}
    return {"final_newline": "add" if after.final else "remove"}


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
        said = declared_encoding(pair.before, before.codec, draft)
        if path.endswith(".ipynb"):
            # History changes the file's JSON, of which a view of cells shows a part.
            said["notebook"] = "json"
        cost: dict[str, Any] = {"sayable": sayable(before, after, draft)}
        if not draft or before.mark != after.mark:
            # Not sent: no line carries the mark, and the rest alone would be another change.
            return Attempt(False, "not sent: only a byte order mark differs, or one goes", **cost)
        try:
            plain = self._pages(path, said, line_ids="none")
            cost["read_plain"] = sum(map(text_bytes, plain))
            pages = list(self._pages(path, said, line_ids=self.form))
            cost["read"] = sum(map(text_bytes, pages))
            ids = _short_addresses(pages) if self.form == "short" else [one for page in pages for one in _LINE.findall(page)]
            change = edit_arguments(before, after, _counted(ids, len(before.lines)))
            if self.form == "short":
                change["changes"] = [_as_string(one) for one in change["changes"]]
            arguments = {"file_path": path, **change, **said}
            cost["wrote"] = json_bytes(arguments)
            self._call(_EDIT, arguments)
        except _Refused as refusal:
            return Attempt(False, str(refusal), **cost)
        return Attempt(True, **cost)

    def close(self) -> None:
        """Nothing is running."""

    def _pages(self, path: str, said: dict[str, str], **options: Any) -> Iterator[str]:
        offset = 1
        while True:
            data = self._call(_READ, {"file_path": path, "offset": offset, **said, **options})
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

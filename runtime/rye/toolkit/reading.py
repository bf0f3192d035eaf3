"""What `read` does: a window of a file with line IDs, or what changed in it since a version."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, repeat
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

from rye.errors import UsageError, WorkspaceError
from rye.toolkit import document as documents
from rye.toolkit.output import envelope, ok, output_room
from rye.toolkit.visible import reveal, shortened
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rye.toolkit.document import Document

_BATCH = 500
# Bytes kept free for the notices around the lines.
_NOTICES = 400
# Bytes that a line with its ID takes at least.
_SHORTEST = 13


def read(
    project_path: str, file_path: str, offset: int = 1, limit: int = 2_000, line_ids: str = "all",
    changes_since: str | None = None, encoding: str | None = None, *, show_whitespace: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/file-system/read`; see its CONFIG_SCHEMA for the parameters.

    Where the disk is full, or nothing can be written for another reason, the lines come without IDs, and a warning says so.

    Raises:
        WorkspaceError, UsageError: see `document.view`; `bad_offset` for a window past the end.
    """
    asked = _Asked(file_path, offset, limit, line_ids == "all", changes_since, show_whitespace)
    with Workspace(project_path) as ws:
        try:
            with documents.view(ws, file_path, encoding) as document:
                return _answer(document, asked)
        except WorkspaceError as err:
            if err.code not in documents.UNKEPT:
                raise
            with documents.unnamed(ws, file_path, encoding) as document:
                return _unnamed(document, asked, err)


class _Asked(NamedTuple):
    """What is asked for; see the tool's CONFIG_SCHEMA."""

    file_path: str
    offset: int
    limit: int
    ids: bool
    changes_since: str | None
    whitespace: bool


def _answer(document: Document, asked: _Asked) -> dict[str, Any]:
    """Show the window, or what changed since a version that is known."""
    room = output_room() - _NOTICES - 2 * len(asked.file_path.encode("utf-8", "replace"))
    window = _Window(document, ids=asked.ids, whitespace=asked.whitespace, room=room)
    since = None if asked.changes_since is None else document.index.revision_of(asked.changes_since)
    if since is not None:
        return _changes(document, window, asked.changes_since or "", since, asked.file_path)
    result = _window(document, window, asked.file_path, asked.offset, asked.limit)
    if asked.changes_since is not None:
        result["output"] = (
            f"[changes_since: version {asked.changes_since[:80]} is not among the last 20 of this file; here is the window "
            f"instead.]\n{result['output']}"
        )
        result["changes_known"] = False
    return result


def _unnamed(document: Document, asked: _Asked, err: WorkspaceError) -> dict[str, Any]:
    """Show the window without IDs: one that cannot be kept would be unknown to the next call."""
    window = _Window(document, ids=False, whitespace=asked.whitespace, room=output_room() - 2 * _NOTICES)
    result = _window(document, window, asked.file_path, asked.offset, asked.limit)
    del result["version"]
    why = err.message.rstrip(".")
    warning = f"No line IDs and no version: they cannot be kept ({why}). edit_lines needs them: read again when they can."
    changes = {} if asked.changes_since is None else {"changes_known": False}
    return {**result, **changes, "output": f"{result['output']}\n[{warning}]", "warnings": [warning]}


class _Window:
    """Collects shown lines up to the output's size, and records which were shown."""

    def __init__(self, document: Document, *, ids: bool, whitespace: bool, room: int) -> None:
        self.document, self.ids, self.whitespace = document, ids, whitespace
        self.room = room
        self.lines: list[str] = []
        self.seen: list[tuple[int, int]] = []
        self.full = False

    def add(self, start: int, stop: int) -> int:
        """Show lines [start, stop) as far as they fit; return where it stopped."""
        at = start
        while at < stop and not self.full:
            lines = self._lines(at, min(at + _BATCH, stop))
            encoded = lines if "".join(lines).isascii() else [line.encode("utf-8", "replace") for line in lines]
            ends = list(accumulate(map(add, map(len, encoded), repeat(1))))
            # A first line is shown, however long.
            fits = bisect_right(ends, self.room) or int(not self.lines)
            self.full = fits < len(lines)
            self.room -= ends[fits - 1] if fits else 0
            self.lines += lines[:fits]
            at += fits
        if self.ids and at > start:
            self.seen.append((start, at))
        return at

    def _lines(self, start: int, stop: int) -> list[str]:
        document = self.document
        texts = shortened(document.texts(start, stop))
        if self.whitespace:
            code, raw = document.text.encoding, document.text.lines(start, stop)
            texts = [reveal(text, code.terminator(line) == code.crlf) for text, line in zip(texts, raw, strict=True)]
        if not self.ids:
            return texts
        return [f"[LID:{name}] {text}" for name, text in zip(document.ids(start, stop), texts, strict=True)]


def _facts(document: Document) -> dict[str, Any]:
    return {
        "total_lines": document.text.count, "version": document.index.version, "encoding": document.text.encoding.label,
        "file_path": document.path,
    }  # fmt: skip


def _window(document: Document, window: _Window, file_path: str, offset: int, limit: int) -> dict[str, Any]:
    total = document.text.count
    start = offset - 1 if offset > 0 else max(0, total + offset)
    if start >= total and (total or offset > 1):
        raise UsageError(
            "bad_offset", f"offset {offset} is past the end: {document.path} has {total} line(s).",
            f"Use an offset from 1 to {max(total, 1)}, or a negative one to count from the end.",
        )  # fmt: skip
    stop = window.add(start, min(start + limit, total))
    document.shown(*window.seen)
    shown = stop - start
    truncated = stop < total
    lines = list(window.lines)
    if truncated:
        call = f'read(file_path="{file_path}", offset={stop + 1})'
        lines.append(envelope(shown, total, "lines", call, total - stop))
    if not total:
        lines.append('[empty file: insert with edit_lines, after_line_id="start"]')
    fields = {"next_offset": stop + 1} if truncated else {}
    return ok(
        "\n".join(lines),
        line_count=shown,
        offset=start + 1,
        truncated=truncated,
        **fields,
        **_facts(document),
    )


def _changes(document: Document, window: _Window, version: str, since: int, file_path: str) -> dict[str, Any]:
    """Show the lines that are new or changed since a revision, and which IDs are gone."""
    index = document.index
    ranges = index.ages.since(since)
    gone = {name: fate for name, fate in index.dead.items() if fate is not None and fate.revision > since}
    count = sum(stop - start for start, stop in ranges)
    shown = 0
    cut_at = None
    lines: list[str] = []
    ending = _gone(gone.items()) if gone else ""
    window.room -= len(ending)
    if window.ids:
        document.name(_first(ranges, window.room // _SHORTEST))
    for start, stop in ranges:
        before = len(window.lines)
        header = f"@ line {start + 1}"
        window.room -= len(header) + 1
        reached = window.add(start, stop)
        shown += reached - start
        if reached > start:
            lines += [header, *window.lines[before:]]
        if reached < stop:
            cut_at = reached
            break
    document.shown(*window.seen)
    if gone:
        lines.append(ending)
    if not count and not gone:
        lines.append(f"[no changes since version {version}]")
    fields: dict[str, Any] = {}
    if cut_at is not None:
        call = f'read(file_path="{file_path}", offset={cut_at + 1})'
        lines.append(envelope(shown, count, "changed lines", call))
        fields["next_offset"] = cut_at + 1
    return ok(
        "\n".join(lines), line_count=shown, changed_lines=count, deleted_ids=list(gone)[:200], changes_known=True,
        truncated=cut_at is not None, offset=(ranges[0][0] + 1 if ranges else 1), **fields, **_facts(document),
    )  # fmt: skip


def _first(ranges: Iterable[tuple[int, int]], count: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges as far as `count` positions reach."""
    for start, stop in ranges:
        yield start, min(stop, start + max(count, 0))
        count -= stop - start
        if count <= 0:
            return


def _gone(fates: Iterable[tuple[str, Any]]) -> str:
    named = [f"{name} ({fate.how}, was line {fate.line})" for name, fate in fates]
    more = f" and {len(named) - 50} more" if len(named) > 50 else ""
    return f"[gone: {', '.join(named[:50])}{more}]"

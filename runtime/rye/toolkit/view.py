"""Windows of a file: opened at a line, scrolled, or as a viewport; and the memory of what was last viewed of each file.

The memory is `.ragix/state.json` in the project: `{"format": 1, "views": {path: {"start_line", "chunk_size", "overlap"}}}`,
the last 200 files. It may be deleted, or be anything at all, at any time: what does not hold is as if it were not there.
"""

from __future__ import annotations

import fcntl
import json
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from rye.errors import UsageError, WorkspaceError
from rye.record import Record, changed
from rye.toolkit import cache, swe
from rye.toolkit import document as documents
from rye.toolkit.output import envelope, ok, output_room
from rye.toolkit.pages import Page
from rye.toolkit.rows import Row
from rye.toolkit.visible import shorten
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


WINDOW = 100
"""Lines of a window where none are asked for."""

OVERLAP = 2
"""Lines that a scrolled window shares with the one before."""

MAX_EXPLICIT = 200
"""Lines of a window that is asked for by its first and last line, at most."""

MAX_VIEWPORT = 500
"""Lines of a viewport, at most."""

_STATE = "state.json"
_FORMAT = 1
_FILES = 200
_STATE_BYTES = 1 << 20
_NOTICES = 1_000
_PATIENCE = 0.25


class Span(Record):
    """Lines first..last, from 1, both included; `asked` is the last one that was asked for, where it was cut."""

    first: int
    last: int
    asked: int


class View(Record):
    """The window of a file that was last shown."""

    start_line: int
    chunk_size: int


class _Shown(Record):
    """A file's name and length, and the rows of a window of it."""

    path: str
    total: int
    span: Span
    rows: list[Row]


def open_chunk(
    project_path: str, path: str, line: int | None = None, start: int | None = None, end: int | None = None,
    encoding: str | None = None, *, line_ids: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/swe/open_file_chunk`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        UsageError: `out_of_range`, `bad_window`; those of `swe.enabled`.
        WorkspaceError: see `document.view`.
    """
    swe.enabled()
    with Workspace(project_path) as ws:
        shown = _look(ws, path, encoding, lambda total: _asked(total, line, start, end), line_ids=line_ids)
        return _answer(ws, shown, path)


def scroll(
    project_path: str, path: str, direction: str = "+", encoding: str | None = None, *, line_ids: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/swe/scroll_file`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        UsageError: `end_of_file` when the window before this one reached it. Others as `open_chunk`.
    """
    swe.enabled()
    with Workspace(project_path) as ws:
        with ws.file(path) as file:
            physical = file.shown
        last = _views(ws).get(physical) if swe.views_kept() else None
        shown = _look(ws, path, encoding, lambda total: _scrolled(total, last, direction, physical), line_ids=line_ids)
        return _answer(ws, shown, path)


def viewport(
    project_path: str, path: str, offset: int = 0, limit: int = WINDOW, encoding: str | None = None, *, line_ids: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/swe/read_file_viewport`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        UsageError: `out_of_range`. Others as `open_chunk`.
    """
    swe.enabled()
    most = max(1, min(limit, MAX_VIEWPORT))

    def wanted(total: int) -> Span:
        if offset < 0 or offset >= max(total, 1):
            raise out_of_range("offset", offset, 0, max(total, 1) - 1)
        return Span(offset + 1, min(offset + most, total), min(offset + most, total))

    with Workspace(project_path) as ws:
        shown = _look(ws, path, encoding, wanted, line_ids=line_ids)
    first, last, total = shown.span.first, shown.span.last, shown.total
    more = [f"MORE below - call with offset={last}" if last < total else "end of file"]
    more += ["MORE above - call with offset=0"] if first > 1 else []
    footer = f"[{shown.path}: lines {first if total else 0}-{last} of {total}; {'; '.join(more)}]"
    width = len(str(last))
    lines = [f"{row.number:>{width}}: {named(row)}" for row in shown.rows]
    fields = {"next_offset": last} if last < total else {}
    return ok("\n".join([*lines, footer]), file_path=shown.path, offset=offset, line_count=len(lines), total_lines=total,
              truncated=last < total, notices=[footer], **fields)  # fmt: skip


def out_of_range(name: str, value: int, low: int, high: int) -> UsageError:
    """Return the refusal of a line that is not there, naming those that are."""
    if high < low:
        return UsageError(
            "out_of_range", f"{name} {value} out of range: the file is empty.",
            "insert_at with line=1 (rt insert PATH 1) puts lines into it.", parameter=name, valid=[],
        )  # fmt: skip
    return UsageError(
        "out_of_range", f"{name} {value} out of range ({low}..{high}).", f"Give {name} a value from {low} to {high}.",
        parameter=name, valid=[low, high],
    )  # fmt: skip


def named(row: Row) -> str:
    """Return a row's text as it is shown, behind its ID where it has one."""
    return f"[LID:{row.id}] {shorten(row.text)}" if row.id else shorten(row.text)


def _asked(total: int, line: int | None, start: int | None, end: int | None) -> Span:
    """Return the window that a call asks for: around a line, from one to another, or the first lines."""
    if line is not None and (start is not None or end is not None):
        raise UsageError("bad_window", "line stands alone; start and end name a range.", "Give line, or start and end.")
    if line is not None:
        if not 1 <= line <= total:
            raise out_of_range("line", line, 1, total)
        last = min(line + WINDOW // 2 - 1, total)
        return Span(max(line - WINDOW // 2, 1), last, last)
    first = 1 if start is None else start
    if not (1 <= first <= total or (first == 1 and not total)):
        raise out_of_range("start", first, 1, total)
    if end is not None and end < first:
        raise UsageError(
            "bad_window",
            f"end {end} lies before start {first}.",
            f"Give end a value from {first} to {total}.",
            valid=[first, total],
        )
    wanted = min(first + WINDOW - 1 if end is None else end, total)
    return Span(first, min(wanted, first + MAX_EXPLICIT - 1), wanted)


def _scrolled(total: int, last: View | None, direction: str, path: str) -> Span:
    """Return the window below or above the last one; the first lines where there was none."""
    if last is None:
        return _asked(total, None, None, None)
    if direction == "-":
        first = max(1, last.start_line - WINDOW + OVERLAP)
    else:
        if last.start_line + last.chunk_size > total >= last.start_line:
            raise UsageError(
                "end_of_file", f"End of file: {path} has {total} lines, and the last window showed the end of it.",
                "Scroll up with -, or open the file at a line.", total_lines=total,
            )  # fmt: skip
        first = last.start_line + max(last.chunk_size - OVERLAP, 1)
    # The file may have become shorter since.
    first = max(1, min(first, total - WINDOW + 1)) if first > total else first
    return _asked(total, None, first, first + WINDOW - 1)


def _look(
    ws: Workspace, path: str, encoding: str | None, wanted: Callable[[int], Span], *, line_ids: bool
) -> _Shown:  # fmt: skip
    """Read the rows of a window, as many as fit; with IDs they count as shown."""
    if line_ids:
        with documents.view(ws, path, encoding) as document:
            span = wanted(document.text.count)
            rows = _fitting(document.rows(span.first - 1, span.last))
            document.shown((span.first - 1, span.first - 1 + len(rows)))
            return _shown(document.path, document.text.count, span, rows)
    with documents.glance(ws, path, encoding) as (file, text):
        span = wanted(text.count)
        texts = text.encoding.show_all(text.lines(span.first - 1, span.last))
        rows = _fitting([Row(at, None, line) for at, line in enumerate(texts, span.first)])
        return _shown(file.shown, text.count, span, rows)


def _shown(path: str, total: int, span: Span, rows: list[Row]) -> _Shown:
    return _Shown(path, total, changed(span, last=rows[-1].number if rows else 0), rows)


def _fitting(rows: list[Row]) -> list[Row]:
    page = Page(output_room() - _NOTICES)
    for at, row in enumerate(rows):
        if not page.add([f"{row.number}: {named(row)}"]):
            return rows[:at]
    return rows


def _answer(ws: Workspace, shown: _Shown, path: str) -> dict[str, Any]:
    """Print a window under its header, and remember it."""
    first, last, total = shown.span.first if shown.rows else 0, shown.span.last, shown.total
    lines = [f"--- {shown.path} (lines {first}-{last}) ---", *(f"{row.number}: {named(row)}" for row in shown.rows)]
    if total and swe.views_kept():
        _remember(ws, shown.path, View(first, last - first + 1))
    notices = [] if total else ["[empty file]"]
    fields: dict[str, Any] = {}
    if last < total:
        call = f"open_file_chunk(path={json.dumps(path, ensure_ascii=False)}, start={last + 1})"
        notices.append(envelope(len(shown.rows), total, "lines", call, total - last))
        fields["next_line"] = last + 1
    return ok(
        "\n".join([*lines, *notices]), file_path=shown.path, start_line=first, end_line=last, line_count=len(shown.rows),
        total_lines=total, truncated=last < shown.span.asked, more_below=total - last, more_above=max(first - 1, 0),
        notices=notices, **fields,
    )  # fmt: skip


def _views(ws: Workspace) -> dict[str, View]:
    """Return what is remembered, the oldest first; anything that is not of the right shape is not there."""
    with cache.view_folder(ws) as fd:
        return {} if fd is None else _read(fd)


def _read(fd: int) -> dict[str, View]:
    try:
        record = json.loads(cache.read(fd, _STATE, _STATE_BYTES) or b"{}")
        if record.get("format") != _FORMAT:
            return {}
        found = {path: (view["start_line"], view["chunk_size"]) for path, view in record["views"].items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}
    return {path: View(*view) for path, view in found.items() if all(type(n) is int and 0 < n < 1 << 40 for n in view)}


def _remember(ws: Workspace, path: str, view: View) -> None:
    """Keep a window as the last one of its file; that it cannot be kept is no failure of the look."""
    with suppress(OSError, WorkspaceError), cache.view_folder(ws) as fd:
        if fd is None:
            return
        with _turn(fd):
            views = _read(fd)
            views.pop(path, None)
            views[path] = view
            kept = {
                name: {"start_line": one.start_line, "chunk_size": one.chunk_size, "overlap": OVERLAP}
                for name, one in [*views.items()][-_FILES:]
            }
            cache.write(fd, _STATE, json.dumps({"format": _FORMAT, "views": kept}, indent=1).encode())


@contextmanager
def _turn(fd: int) -> Iterator[None]:
    """Take turns with others that remember a window now; who holds on for too long is not waited for."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > end:
                break
            time.sleep(0.005)
    # Closing the descriptor gives the turn on.
    yield

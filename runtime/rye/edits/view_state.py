"""What was last viewed of each file: the window, for scrolling, and the lines shown, for edits by line number.

The memory is `.ragix/state.json` in the project, sealed: `{"format": 1, "views": {path: {"start_line", "chunk_size",
"overlap", "shown"}}}`, the last 200 files. `shown` lists runs of lines as [first line, 8 hex digits of a digest for each line].
It may be deleted at any time; an invalid file counts as missing. Beside another user space's file stands `state-<space>.json`.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256

from rye.errors import WorkspaceError
from rye.fs import atomic
from rye.line_ids.reconcile import Splice
from rye.plain_class import Record, changed, field
from rye.workspace import cache, seals
from rye.workspace.text import Text
from rye.workspace.workspace import Workspace

OVERLAP = 2
"""Lines that a scrolled window shares with the one before."""

_STATE = "state"
_FORMAT = 1
_FILES = 200
_STATE_BYTES = 1 << 20
# Lines of a file whose digests are remembered, and digits of each.
_LINES, _DIGITS = 1_000, 8
_WAIT_SECONDS = 0.25


class ShownWindow(Record):
    """The window of a file that was last shown (0 where it was only edited), and digests of shown lines by number."""

    start_line: int = 0
    chunk_size: int = 0
    shown: dict[int, str] = field(factory=dict)


def last_view(ws: Workspace, path: str) -> ShownWindow | None:
    """Return what is remembered of a file."""
    with cache.view_folder(ws) as fd:
        return None if fd is None else _read(fd, seals.secret(ws))[1].get(path)


def remember(ws: Workspace, path: str, text: Text, first: int, last: int, *, window: bool = True) -> None:
    """Remember lines first..last (from 1) as shown, with `window` also as the last window of the file."""
    lines = digests(text, first - 1, last)

    def add(view: ShownWindow) -> ShownWindow:
        shown = {number: digest for number, digest in view.shown.items() if not first <= number <= last}
        view = changed(view, shown={**shown, **dict(enumerate(lines, first))})
        return changed(view, start_line=first, chunk_size=last - first + 1) if window else view

    _update(ws, path, add)


def follow(ws: Workspace, path: str, splices: Sequence[Splice] | None) -> None:
    """Follow a change that a tool made: what was shown of the replaced lines is gone, what stood behind them moves.

    Without splices the whole file was written, and nobody can tell where its lines are now.
    """

    def move(view: ShownWindow) -> ShownWindow:
        shown = view.shown if splices is not None else {}
        # From the last one up: the numbers before a splice are those before the edit.
        for start, stop, lines in [one[:3] for one in reversed(splices or ())]:
            grown = len(lines) - (stop - start)
            shown = {at if at <= start else at + grown: digest for at, digest in shown.items() if not start < at <= stop}
        return changed(view, shown=shown)

    with suppress(OSError):
        os.stat(cache.VIEWS, dir_fd=ws.fd)
        _update(ws, path, move, known=True)


def changed_lines(view: ShownWindow, text: Text, start: int, stop: int) -> list[int]:
    """Return those of the lines [start, stop), counted from 0, that were shown and are different now."""
    now = digests(text, start, stop)
    # A line that was never shown has nothing to compare with and counts as unchanged.
    return [at for at, digest in enumerate(now, start) if view.shown.get(at + 1, digest) != digest]


def digests(text: Text, start: int, stop: int) -> list[str]:
    """Return a short digest of each of the lines [start, stop)."""
    # Of the bytes: whoever names the encoding later names the same line.
    body = text.encoding.body
    return [sha256(body(line)).hexdigest()[:_DIGITS] for line in text.lines(start, stop)]


def _read(fd: int, key: bytes) -> tuple[str, dict[str, ShownWindow]]:
    """Return the file, and what it remembers, the oldest first; anything of another shape counts as missing."""
    name = _STATE
    try:
        name, raw = seals.own(fd, key, _STATE, ".json", _STATE_BYTES)
        record = seals.unsealed(key, name, raw or b"")
        if record.get("format") == _FORMAT:
            return name, {path: _view(**view) for path, view in record["views"].items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        pass
    return name, {}


def _view(start_line: int, chunk_size: int, shown: Sequence[tuple[int, str]] = (), **_: object) -> ShownWindow:
    lines: dict[int, str] = {}
    for first, text in shown:
        lines.update((first + at // _DIGITS, text[at : at + _DIGITS]) for at in range(0, len(text), _DIGITS))
    return ShownWindow(start_line, chunk_size, lines)


def _record(view: ShownWindow) -> dict[str, object]:
    runs: list[tuple[int, str]] = []
    # The dict has the lines shown last at its end.
    for number, digest in sorted([*view.shown.items()][-_LINES:]):
        if runs and runs[-1][0] + len(runs[-1][1]) // _DIGITS == number:
            runs[-1] = (runs[-1][0], runs[-1][1] + digest)
        else:
            runs.append((number, digest))
    return {"start_line": view.start_line, "chunk_size": view.chunk_size, "overlap": OVERLAP, "shown": runs}


def _update(ws: Workspace, path: str, change: Callable[[ShownWindow], ShownWindow], *, known: bool = False) -> None:
    """Change what is remembered of a file, with `known` only where something is; that it cannot be stored is no failure."""
    # Read, changed and written under one lock, or two calls at once would lose one view.
    with suppress(OSError, WorkspaceError), cache.view_folder(ws) as fd:
        if fd is None:
            return
        key = seals.secret(ws)
        # One that takes too long is not waited for. Closing the descriptor releases the lock.
        with suppress(OSError):
            atomic.wait(fd, fcntl.LOCK_EX, _STATE, time.monotonic() + _WAIT_SECONDS, lambda: None)
        name, views = _read(fd, key)
        if known and path not in views:
            return
        # Taken out and put back at the end: the file unused for longest is dropped first.
        views[path] = change(views.pop(path, ShownWindow()))
        records = {name: _record(view) for name, view in [*views.items()][-_FILES:]}
        # Half of what a read accepts, so that what is written can always be read again.
        while len(body := json.dumps({"format": _FORMAT, "views": records}, indent=1).encode()[1:]) > _STATE_BYTES // 2:
            del records[next(iter(records))]
        cache.write(fd, f"{name}.json", seals.sealed(key, name, body))

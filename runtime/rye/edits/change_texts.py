"""A recorded change for people: what it was, whose and when, its files, its lines and diff, and whether it is taken back."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rye.call import context
from rye.edits import splices as edits_splices
from rye.fs import atomic, names
from rye.journal import history as edits_history
from rye.journal import hunks
from rye.journal.entries import Entry, printable
from rye.journal.history import History, Row
from rye.line_ids.reconcile import Splice
from rye.snapshots import known_tree
from rye.snapshots.contents import Contents
from rye.snapshots.states import Change, State
from rye.workspace.encoding import UTF8, Encoding
from rye.workspace.text import parse, split
from rye.workspace.workspace import Workspace

LISTED_LINES = 400
"""So many lines of one change's diff are shown in a list."""

_NAMED_FILES = 5
_MORE = "… and"
_HEAD = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_MINUTE, _DAY = 60, 86_400
_NOBODY = "a person at a terminal, or a program without a name"


def described(change: Row | Entry) -> str:
    """Return what a change was, whose, and how long ago."""
    by = "you" if change.actor == context.actor() else change.actor or _NOBODY
    return f"{change.tool} of {named(change)} by {by}, {_ago(change)}"


def named(change: Row | Entry) -> str:
    """Return the file that a change was of, or the first and how many more."""
    files = change.files if isinstance(change, Row) else len(change.paths)
    return change.path if files == 1 else f"{change.path} and {files - 1} more"


def _ago(change: Row | Entry) -> str:
    """Return how long ago a change was made, by this machine's clock; the date where that is a day or makes no sense."""
    seconds = time.time() - change.time
    if not 0 <= seconds < _DAY:
        return f"at {when(change)}"
    if seconds < _MINUTE:
        return "just now"
    return f"{seconds / _MINUTE:.0f} min ago" if seconds < 60 * _MINUTE else f"{seconds / 60 / _MINUTE:.0f} h ago"


def when(change: Row | Entry) -> str:
    """Return when a change was made (UTC)."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(change.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def listed(ws: Workspace, history: History, rows: Sequence[Row]) -> str:
    """Return the row of a list for the changes of one call: its name for undo, when, the tool, the files with their counts."""
    row, files = rows[0], list[str]()
    about = ""
    for one in rows[:_NAMED_FILES]:
        entry = edits_history.entry_of(ws, one)
        if entry is None:
            files.append(f"{one.path} (its record is damaged: it cannot be undone)")
            continue
        about = f" ({entry.about})" if entry.about else ""
        parts = (
            [(entry.path, recorded_diff(entry))]
            if entry.files is None
            else [(printable(part.path), tree_diff(ws, [part])) for part in entry.files[:_NAMED_FILES]]
        )
        files += [counts(path, diff) for path, diff in parts]
    count = sum(one.files for one in rows)
    more = f" and {count - _NAMED_FILES} more" if count > _NAMED_FILES else ""
    by = f", by {row.actor or _NOBODY}" if row.actor != context.actor() else ""
    undoes = f", undoes {edits_history.short(history.maker(row.undoes))}" if row.undoes else ""
    undoer = history.undone.get(row.id)
    state = f", undone by {edits_history.short(history.maker(undoer))}" if undoer else ""
    name = edits_history.short(row.batch or row.id)
    return f"{name} {_ago(row)}: {short_tool(row.tool)}{about} {', '.join(files[:_NAMED_FILES])}{more}{by}{undoes}{state}"


def counts(path: str, diff: list[str]) -> str:
    """Return how many lines of a file came and went; of one whose diff has none, what the diff says in their stead."""
    lines = counted(diff)
    is_told = any(lines.values()) or not diff or diff[-1].startswith("+++ ")
    return f"{path} +{lines['added']} -{lines['removed']}" if is_told else diff[-1]


def short_tool(tool: str) -> str:
    """Return a tool's name in a list: without the folder, of one of the system's."""
    return tool.rpartition("/")[2] if tool.startswith("rye/") else tool


def fields(history: History, row: Row) -> dict[str, Any]:
    """Return what a list's result says of one change."""
    more = {"files": row.files} if row.files > 1 else {}
    made = {"entry_id": row.id, "time": when(row), "tool": row.tool, "file_path": row.path, "actor": row.actor}
    return more | made | {"undoes": row.undoes, "undone_by": history.undone.get(row.id), "batchId": row.batch}


def diff_of(ws: Workspace, entry: Entry) -> list[str]:
    """Return a change's diff, as far as it is text."""
    return tree_diff(ws, entry.files) if entry.files else recorded_diff(entry)


def counted(diff: list[str]) -> dict[str, int]:
    """Return how many lines a diff adds and removes. Within a hunk, whose head says how long it is, no line is a heading."""
    counts = {"+": 0, "-": 0, " ": 0}
    old = new = 0
    for line in diff:
        sign = line[:1] or " "
        in_hunk = old > 0 or new > 0
        if not in_hunk and (head := _HEAD.match(line)):
            old, new = int(head[1] or 1), int(head[2] or 1)
        elif sign in counts and (in_hunk or not line.startswith(("--- ", "+++ "))):
            counts[sign] += 1
            old -= sign != "+"
            new -= sign != "-"
    return {"added": counts["+"], "removed": counts["-"]}


def tree_diff(ws: Workspace, changes: Sequence[Change]) -> list[str]:
    """Return the diff of what a command changed, as far as it is text."""
    out: list[str] = []
    with suppress(OSError), Contents(known_tree.folder(ws.fd)) as contents:
        for at, piece in enumerate(_pieces(contents, changes), 1):
            out += piece
            if len(out) > LISTED_LINES and at < len(changes):
                out.append(f"{_MORE} {len(changes) - at} more files")
                break
    return out


def recorded_diff(entry: Entry) -> list[str]:
    """Return the diff of an entry: without context, which the journal does not hold, unless it changed a whole file."""
    if entry.whole:
        return whole_diff(entry)[2:] if entry.splices else []
    return [line for one in hunks.of_file(entry) for line in one.diff()]


def whole_diff(entry: Entry) -> list[str]:
    """Return the unified diff of an entry that changed a whole file."""
    (splice,), there = entry.splices, (entry.before is not None, entry.after is not None)
    codes = (entry.encoding, entry.encoding_after or entry.encoding)
    return _diff(entry.path, (splice.removed, splice.added), codes, there)


def renamed_diff(gone: Entry, came: Entry) -> list[str]:
    """Return what differs between a file that goes and the one that comes, which is that file under a new name."""
    sides = (gone.splices[0].removed, came.splices[0].added)
    diff = _diff(came.path, sides, (gone.encoding, came.encoding_after or came.encoding), (True, True))
    return [f"renamed {gone.path} to {came.path}", *diff[2:]]


def _diff(path: str, sides: tuple[list[bytes], list[bytes]], codes: tuple[str, str], there: tuple[bool, bool]) -> list[str]:
    """Return the unified diff of a file's lines before and after: with the codec name of both, and whether there was a file."""
    before, after = (Encoding(name, newline="\n".encode(name)) for name in codes)
    removed, new = sides
    old = parse(b"".join(removed), before)
    if before.name == after.name:
        exact = edits_splices.refine(old, [Splice(0, old.count, new)])
        diff = edits_splices.unified_diff(path, old, [one for one in exact if old.lines(one.start, one.stop) != one.lines])
    else:
        diff = ["", "", *(f"-{before.show(line)}" for line in removed), *(f"+{after.show(line)}" for line in new)]
    diff[:2] = [f"--- a/{path}" if there[0] else "--- /dev/null", f"+++ b/{path}" if there[1] else "+++ /dev/null"]
    return diff


def _pieces(contents: Contents, changes: Sequence[Change]) -> Iterator[list[str]]:
    """Yield the diff of each change, or a line that says what changed."""
    moved = _moved(changes)
    going = {*moved.values()}
    for one in changes:
        path = names.show(os.fsencode(one.path))
        if one.path in going or one.path in moved:
            yield [] if one.path in going else [f"renamed {names.show(os.fsencode(moved[one.path]))} to {path}"]
            continue
        sides = [_text(contents, state) for state in one[1:]]
        if sides[0] is None or sides[1] is None or not (sides[0] or sides[1]):
            yield [f"{path}: {said(one.before)} -> {said(one.after)}"]
            continue
        code, was = (hunks.code_of(side) or UTF8 for side in (sides[1], sides[0]))
        # Text without a letter beyond ASCII is in the encoding of the other side, too.
        was, code = code if sides[0].isascii() else was, was if sides[1].isascii() else code
        there = (one.before is not None, one.after is not None)
        piece = _diff(path, (split(sides[0], was), split(sides[1], code)), (was.name, code.name), there)
        if one.before is not None and one.after is not None and one.before.mode != one.after.mode:
            piece.append(f"{path}: mode {one.before.mode:o} -> {one.after.mode:o}")
        yield piece


def _moved(changes: Sequence[Change]) -> dict[str, str]:
    """Return which files that come, by their paths, are files of the same content that go, by their other names."""
    gone: dict[tuple[str | None, int], list[str]] = {}
    for path, before, after in changes:
        if after is None and before is not None and before.kind == "file" and before.size and before.value:
            gone.setdefault((before.value, before.mode), []).append(path)
    came = {path: (after.value, after.mode) for path, before, after in changes if before is None and after is not None}
    return {path: gone[key].pop(0) for path, key in came.items() if gone.get(key)}


def _text(contents: Contents, state: State | None) -> bytes | None:
    if state is None:
        return b""
    data = hunks.content_of(contents, state)
    return None if data is None or hunks.code_of(data) is None else data


def said(state: State | None) -> str:
    """Return what was at a path, in words."""
    if state is None:
        return "nothing"
    if state.kind == "link":
        return f"a link to {printable(state.value or '')}"
    if state.kind == "file":
        stored = "" if state.value is not None else ", not stored"
        return f"a file of {state.size:,} bytes, mode {state.mode:o}{stored}"
    kind = {"fifo": "named pipe", "other": "socket or device"}.get(state.kind, state.kind)
    return f"a {kind}, mode {state.mode:o}"


def logged(ws: Workspace, past: History, row: Row) -> dict[str, Any]:
    """Return a change with its files, the command that made it, and how many lines it added and removed.

    `has_more`: those of the first files alone were counted.
    """
    entry = edits_history.entry_of(ws, row)
    diff = [] if entry is None else diff_of(ws, entry)
    return {
        "id": row.id,
        "time": when(row),
        "tool": row.tool,
        "actor": row.actor,
        "undoes": row.undoes,
        "undone_by": past.undone.get(row.id),
        "batch": row.batch,
        "about": "" if entry is None else entry.about,
        "files": [row.path] if entry is None else entry.paths,
        **counted(diff),
        "has_more": bool(diff) and diff[-1].startswith(_MORE),
    }


def since_looked(ws: Workspace, rows: list[Row]) -> list[Row]:
    """Return the changes, newest first, that were recorded after the last `looked`; all where there was none."""
    data = atomic.read(_mark(ws)) or b""
    last_seen = data.decode("ascii", "replace").strip()
    at = next((at for at, row in enumerate(rows) if row.id == last_seen), None)
    # Where that change is dropped by now, IDs still tell what is newer.
    return rows[:at] if at is not None else [row for row in rows if row.id > last_seen]


def looked(ws: Workspace, past: History) -> None:
    """Note that a person has seen all changes until now. Raises OSError."""
    newest = next(iter(past), None)
    if newest is not None:
        where = _mark(ws)
        where.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic.write(where, newest.id.encode("ascii"), 0o600, durably=False)


def _mark(ws: Workspace) -> Path:
    return edits_history.folder(ws) / "looked"

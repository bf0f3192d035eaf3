"""The hunks of a recorded change: the parts of it that can be taken back one by one.

A hunk is one run of lines that the change put in place of others. What is no change of lines is one hunk by itself: a file made
or deleted, a content that is no text, a mode. Hunks have numbers from 1, in the order of the lines; the number of a hunk never
changes, whatever was taken back before. A text without some of them is made exactly, or not at all.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from rye.call.results import call_text
from rye.errors import UsageError, WorkspaceError
from rye.fs import names
from rye.journal.entries import Entry
from rye.journal.history import History
from rye.line_ids.diff import align, gaps
from rye.line_ids.reconcile import Splice
from rye.snapshots import known_tree
from rye.snapshots.contents import Contents
from rye.snapshots.states import Change, State
from rye.workspace.encoding import Encoding, detect, mark_of
from rye.workspace.text import split
from rye.workspace.workspace import Workspace


class Missing(NamedTuple):
    """A hunk that cannot be taken out.

    Attributes:
        number: which one, from 0.
        start, stop: the lines of the text now that lie where it was.
    """

    number: int
    start: int
    stop: int


def lines_of(data: bytes) -> list[bytes]:
    """Return a text's lines, each with its newline."""
    return io.BytesIO(data).readlines()


def in_place_of(own: Sequence[int], above: int | None, below: int | None, made_at: int) -> tuple[int, int]:
    """Return the lines that stand where a hunk was: [start, stop).

    Args:
        own: where lines that it made are.
        above: where its upper neighbour is; None: that is gone.
        below: where its lower neighbour is.
        made_at: where it was made, which tells most where none of them is there any more.
    """
    low = min(own) if own else above + 1 if above is not None else max(below - 1, 0) if below is not None else made_at
    high = max(own) + 1 if own else below if below is not None and below > low else low + 1
    if above is not None and below is not None and above < below:
        low, high = min(low, above + 1), max(high, below)
    return low, high


def replaced(current: Sequence[bytes], splices: Sequence[Splice], newline: bytes) -> bytes | list[Missing]:
    """Return a text with some of its lines replaced; where a line would come behind one without a newline, that place."""
    out = [*current]
    for one in reversed(splices):
        out[one.start : one.stop] = one.lines
    # Only the last line may be without a newline.
    if any(not line.endswith(newline) for line in out[:-1]):
        return [Missing(0, max(len(current) - 1, 0), len(current))]
    return b"".join(out)


MAX_TEXT = 4 * 1024 * 1024
"""A larger file that a command changed has one hunk (bytes)."""

# So much is shown of the lines that stand where a hunk was.
_SHOWN_LINES, _SAID_LINES, _SHOWN_CHARS = 20, 5, 200


class Hunk(NamedTuple):
    """One part of a change.

    Attributes:
        path: the file.
        number: its number in the change of this file, from 1.
        kind: `lines`; `mode`: the permission bits; `whole`: all that the change did at the path.
        start, removed: the first line before the change (from 1; of an insertion the line behind it), and the raw lines.
        new_start, added: the same after the change.
        undone_by: the undo that took it back; empty: it is in place.
        codes: the codec names of the lines removed, and of those added.
    """

    path: str
    number: int
    kind: Literal["lines", "mode", "whole"]
    start: int = 0
    removed: Sequence[bytes] = ()
    new_start: int = 0
    added: Sequence[bytes] = ()
    undone_by: str = ""
    codes: tuple[str, str] = ("utf-8", "utf-8")

    def diff(self) -> list[str]:
        """Return it as lines of a diff: the place, then the lines removed and added."""
        if self.kind != "lines":
            return [f"@@ {self.kind} @@"]
        out = [f"@@ -{self.start},{len(self.removed)} +{self.new_start},{len(self.added)} @@"]
        for sign, lines, code in zip("-+", (self.removed, self.added), self.codes, strict=True):
            show = Encoding(code, newline="\n".encode(code)).show
            out += [sign + show(line) for line in lines]
        return out


def of_entry(ws: Workspace, history: History, entry: Entry, path: str | None = None) -> list[Hunk]:
    """Return the hunks of a change, of all its files or of one, with what was taken back of each.

    Raises:
        OSError: the stored contents cannot be read.
    """
    if entry.files is None:
        return with_undoers(history, entry.id, of_file(entry))
    with Contents(known_tree.folder(ws.fd)) as contents:
        found = [hunk for one in entry.files if path in (None, one.path) for hunk in of_change(contents, one)]
    return with_undoers(history, entry.id, found)


def with_undoers(history: History, entry_id: str, found: Sequence[Hunk]) -> list[Hunk]:
    """Return the hunks of a change with what was taken back of each."""
    whole = history.undoer(entry_id) or ""
    parts, taken = history.undone_parts.get(entry_id, {}), history.undone_hunks.get(entry_id, {})
    return [one._replace(undone_by=taken.get(one.path, {}).get(one.number) or parts.get(one.path) or whole) for one in found]


def of_file(entry: Entry) -> list[Hunk]:
    """Return the hunks of a change that an edit of one file made."""
    codes = (entry.encoding, entry.encoding_after or entry.encoding)
    if not entry.whole:
        return of_splices(entry.path, [(one.start, one.removed, one.added) for one in entry.splices], codes)
    sides = whole_sides(entry)
    if sides is None:
        return [Hunk(entry.path, 1, "whole")]
    return between(entry.path, *sides, codes) or [Hunk(entry.path, 1, "whole")]


def whole_sides(entry: Entry) -> tuple[list[bytes], list[bytes]] | None:
    """Return the lines before and after the change of a whole file, without a byte order mark; None where it has one hunk."""
    if entry.before is None or entry.after is None or not entry.splices:
        return None
    codes = (entry.encoding, entry.encoding_after or entry.encoding)
    # Lines are compared as bytes, which are cut alike where the newline has the same bytes.
    if len({"\n".encode(code) for code in codes}) > 1:
        return None
    (splice,) = entry.splices
    marks = [
        mark if side and (mark := mark_of(code)) and side[0].startswith(mark) else b""
        for side, code in zip((splice.removed, splice.added), codes, strict=True)
    ]
    if marks[0] != marks[1]:
        return None
    before, after = ([side[0][len(marks[0]) :], *side[1:]] if side else [] for side in (splice.removed, splice.added))
    # A file that is its byte order mark alone has no line.
    return [line for line in before if line], [line for line in after if line]


def of_change(contents: Contents, change: Change) -> list[Hunk]:
    """Return the hunks of what a command did at one path."""
    sides = texts(contents, change)
    before, after = change.before, change.after
    if sides is None or before is None or after is None:
        return [Hunk(change.path, 1, "whole")]
    out = between(change.path, sides.before, sides.after, sides.codes)
    if before.mode != after.mode:
        out.append(Hunk(change.path, len(out) + 1, "mode"))
    # Another file with the same content in its place: only its other names differ.
    return out or [Hunk(change.path, 1, "whole")]


class Texts(NamedTuple):
    """A file's raw lines before and after a change, and the codec names of both. A byte order mark is in the first line."""

    before: list[bytes]
    after: list[bytes]
    codes: tuple[str, str]


def texts(contents: Contents, change: Change) -> Texts | None:
    """Return a file's lines before and after; None where it has none to compare, or a side is not stored."""
    sides = [content_of(contents, state) for state in (change.before, change.after)]
    if sides[0] is None or sides[1] is None:
        return None
    codes = [code_of(side) for side in sides if side is not None]
    # Lines are compared as bytes, which are cut alike where the newline has the same bytes.
    if None in codes or len({code.newline for code in codes if code is not None}) > 1:
        return None
    lines = [split(side, code) for side, code in zip(sides, codes, strict=True) if side is not None and code is not None]
    names = [code.name for code in codes if code is not None]
    return Texts(lines[0], lines[1], (names[0], names[1]))


def content_of(contents: Contents, state: State | None) -> bytes | None:
    """Return the stored content of a file that is not too large to be compared; None where there is none."""
    if state is None or state.kind != "file" or state.value is None or state.size > MAX_TEXT:
        return None
    return contents.read(bytes.fromhex(state.value))


def code_of(data: bytes) -> Encoding | None:
    """Return the encoding of a content as its bytes tell it; None where it is no text."""
    try:
        code = detect(data)
    except WorkspaceError:
        return None
    # A NUL may come late in a program's file.
    return None if len(code.newline) == 1 and b"\0" in data else code


def between(path: str, old: Sequence[bytes], new: Sequence[bytes], codes: tuple[str, str]) -> list[Hunk]:
    """Return the hunks that turn one text into another."""
    found = gaps(align(old, new), len(old), len(new))
    return of_splices(path, [(i, old[i:stop], new[j:new_stop]) for i, stop, j, new_stop in found], codes)


def of_splices(
    path: str, splices: Sequence[tuple[int, Sequence[bytes], Sequence[bytes]]], codes: tuple[str, str]
) -> list[Hunk]:
    """Return the hunks of an edit: first line (from 0) in the text before, lines removed and added."""
    out: list[Hunk] = []
    shift = 0
    for number, (start, removed, added) in enumerate(splices, 1):
        out.append(Hunk(path, number, "lines", start + 1, removed, start + shift + 1, added, codes=codes))
        shift += len(added) - len(removed)
    return out


def chosen(found: Sequence[Hunk], numbers: Sequence[int] | None) -> list[int] | None:
    """Return which hunks of one path to take back, ascending; None: all of them.

    Without numbers, those that are not taken back yet.

    Raises:
        UsageError: `unknown_hunk`.
    """
    if numbers is None:
        left = [one.number for one in found if not one.undone_by]
        return None if len(left) == len(found) else left
    wanted = sorted({*numbers})
    known = len(found)
    wrong = [number for number in wanted if not 1 <= number <= known]
    if wrong or not wanted:
        why = f"The change of {found[0].path} has the hunks 1 to {known}, not {wrong[0]}." if wrong else "No hunk is given."
        call = call_text("undo", list=True, entry_id=...)
        raise UsageError("unknown_hunk", why, f"{call} shows the hunks of a change with their numbers.")
    return None if len(wanted) == known else wanted


def fields(found: Sequence[Hunk]) -> list[dict[str, Any]]:
    """Return what a result says of hunks."""
    return [
        {
            "file_path": names.normal(one.path),
            "hunk": one.number,
            "kind": one.kind,
            "start": one.start,
            "removed": len(one.removed),
            "new_start": one.new_start,
            "added": len(one.added),
            "undone_by": one.undone_by or None,
        }
        for one in found
    ]


def in_the_way(path: str, lines: Sequence[bytes], place: Missing, code: str) -> dict[str, object]:
    """Return, as fields, the lines that stand where a hunk cannot be taken out; `lines` are those of the place, raw."""
    coded = Encoding(code, newline="\n".encode(code))
    texts = [coded.show(line)[:_SHOWN_CHARS] for line in lines[:_SHOWN_LINES]]
    return {"file_path": names.normal(path), "hunk": place.number + 1, "line": place.start + 1, "lines": texts}


def said_in_the_way(places: Sequence[dict[str, Any]]) -> str:
    """Return, in words, what stands where the first of some hunks cannot be taken out; empty without one."""
    for place in places[:1]:
        texts = place["lines"]
        if texts:
            return (
                f" (hunk {place['hunk']}: from line {place['line']} there is now {', '.join(map(repr, texts[:_SAID_LINES]))})"
            )
        return f" (hunk {place['hunk']}: nothing is there now at line {place['line']})"
    return ""

"""What a recorded change did, file by file and hunk by hunk, as text with the lines around: what the pages show.

Its rows have numbers, signs and coloured pieces. The hunks and their numbers are those of `rye.journal.hunks`, by which `undo`
takes them back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from rye.edits import change_texts
from rye.errors import RyeError
from rye.journal import file_history
from rye.journal import hunks as edits_hunks
from rye.journal.entries import Entry, printable
from rye.journal.history import History, Row
from rye.review.colours import Colours, Line
from rye.snapshots import known_tree
from rye.snapshots.contents import Contents
from rye.snapshots.states import Change
from rye.workspace.text import split
from rye.workspace.workspace import Workspace

MAX_TEXT: Final = edits_hunks.MAX_TEXT
"""A larger file is shown as one that changed, without its lines (bytes)."""

MAX_FILES: Final = 400
"""So many files of one change are shown."""

_FOLLOWED: Final = 500


class ShownHunk(NamedTuple):
    """One part of a change: lines `removed` from line `old` on (from 0), and `added` in their place, which is line `new` then.

    Attributes:
        number: by which it is taken back, from 1.
        note: what it is where it is no change of lines.
        undone_by: the undo that took it back; empty: it is in place.
    """

    number: int
    old: int = 0
    new: int = 0
    removed: Sequence[str] = ()
    added: Sequence[str] = ()
    note: str = ""
    undone_by: str = ""


class ShownFile(NamedTuple):
    """What a change did to a file.

    Attributes:
        entry_id: the entry that it is in.
        path: from the project's root, as results show it.
        hunks: the parts of it.
        notes: what is to be said of all of it.
        before, after: all lines; empty where they are not known.
    """

    entry_id: str
    path: str
    hunks: Sequence[ShownHunk]
    notes: Sequence[str] = ()
    before: Sequence[str] = ()
    after: Sequence[str] = ()

    @property
    def added(self) -> int:
        """How many lines it added."""
        return sum(len(one.added) for one in self.hunks)

    @property
    def removed(self) -> int:
        """How many lines it removed."""
        return sum(len(one.removed) for one in self.hunks)

    def undone(self, past: History) -> list[bool]:
        """Tell of each hunk whether it is taken back; of a file without hunks whether the file is."""
        return [one.undone_by != "" for one in self.hunks] or [self.entry_id in past.undone]


def of_entries(ws: Workspace, past: History, made: Sequence[Entry], rows: Sequence[Row] | None = None) -> Iterator[ShownFile]:
    """Yield what some entries did to each file, at most `MAX_FILES`.

    Args:
        ws: the workspace.
        past: the journal's list, which knows what was taken back.
        made: the entries.
        rows: the changes from now back to the oldest of them, newest first: with them the lines around are told, too.

    Raises:
        OSError: the stored contents cannot be read.
    """
    left = MAX_FILES
    with Contents(known_tree.folder(ws.fd)) as contents:
        for entry in made:
            for change in [None] if entry.files is None else entry.files[:left]:
                yield _of_path(ws, contents, past, entry, change, rows)
            left -= len(entry.paths)
            if left <= 0:
                return


def of_contents(path: str, before: bytes | None, after: bytes | None) -> ShownFile:
    """Return the difference between two contents of a file; None: there was none. Nothing of it can be taken back."""
    notes = [_MADE] if before is None else [_DELETED] if after is None else []
    old, new = before or b"", after or b""
    codes = [edits_hunks.code_of(side) for side in (old, new)]
    if max(len(old), len(new)) > MAX_TEXT or codes[0] is None or codes[1] is None or codes[0].newline != codes[1].newline:
        return ShownFile("", path, (), [*notes, _sizes(old, new)])
    names = (codes[0].name, codes[1].name)
    shown = [_shown(one) for one in edits_hunks.between(path, split(old, codes[0]), split(new, codes[1]), names)]
    return ShownFile("", path, shown, notes, _lines_in(old, names[0]) or (), _lines_in(new, names[1]) or ())


_MADE: Final = "The file was made."
_DELETED: Final = "The file was deleted."
_TOO_MANY: Final = "The change is recorded without its lines: they were too many to keep."


def _sizes(old: bytes, new: bytes) -> str:
    return f"{len(old):,} bytes before, {len(new):,} after."


def _of_path(
    ws: Workspace, contents: Contents, past: History, entry: Entry, change: Change | None, rows: Sequence[Row] | None
) -> ShownFile:
    """Return what a change did to a file: an edit, or with `change` a command."""
    if change is None:
        found, path, sides = edits_hunks.of_file(entry), entry.path, _sides(ws, entry, rows)
        there: tuple[object, object] = (entry.before, entry.after)
        names = (entry.encoding, entry.encoding_after or entry.encoding)
    else:
        found, path, there = edits_hunks.of_change(contents, change), printable(change.path), change[1:]
        sides = [edits_hunks.content_of(contents, state) for state in change[1:]]
        codes = [edits_hunks.code_of(data or b"") for data in sides]
        names = ("" if codes[0] is None else codes[0].name, "" if codes[1] is None else codes[1].name)
    found = edits_hunks.with_undoers(past, entry.id, found)
    before, after = ([] if it is None else _lines_in(data, name) for it, data, name in zip(there, sides, names, strict=True))
    if not found or found[0].kind != "whole":
        mode = " -> ".join(f"{one.mode:o}" for one in change[1:] if one is not None) if change is not None else ""
        shown = [_shown(one)._replace(note=f"mode {mode}" if one.kind == "mode" else "") for one in found]
        notes = () if found else ("No line changed." if entry.before == entry.after else _TOO_MANY,)
        return ShownFile(entry.id, path, shown, notes, before or (), after or ())
    # Of a file that was made or deleted, or is in another encoding, all lines are one hunk.
    changed = f"The encoding changed: {names[0]} -> {names[1]}." if names[0] != names[1] else "The file was replaced."
    note = _MADE if there[0] is None else _DELETED if there[1] is None else changed
    undone_by = found[0].undone_by
    if before is not None and after is not None and before != after:
        return ShownFile(entry.id, path, [ShownHunk(1, 0, 0, before, after, "", undone_by)], (note,), before, after)
    if change is not None:
        note = f"{change_texts.said(change.before)} -> {change_texts.said(change.after)}"
    elif entry.splices:
        note = f"{note} {_sizes(sides[0] or b'', sides[1] or b'')}"
    return ShownFile(
        entry.id, path, [ShownHunk(1, note=note, undone_by=undone_by)], () if change or entry.splices else (_TOO_MANY,)
    )


def _sides(ws: Workspace, entry: Entry, rows: Sequence[Row] | None) -> list[bytes | None]:
    """Return a file's content before and after an edit: the entry has it, or the changes since then tell it."""
    if entry.whole and entry.splices:
        return [b"".join(side) for side in (entry.splices[0].removed, entry.splices[0].added)]
    since = [row for row in rows or () if row.files > 1 or row.path == entry.path]
    # Each is read to get back to the entry.
    with suppress(RyeError, OSError):
        for step in file_history.of_file(ws, entry.path, since).steps if 0 < len(since) <= _FOLLOWED else ():
            if step.entry is not None and step.entry.id == entry.id:
                return [None if len(side or b"") > MAX_TEXT else side for side in (step.before, step.after)]
    return [None, None]


def _shown(hunk: edits_hunks.Hunk) -> ShownHunk:
    """Return a hunk with its lines as text. Their ends are said where one has none, and where these are all that differs."""
    if hunk.kind != "lines":
        return ShownHunk(hunk.number, undone_by=hunk.undone_by)
    sides = _texts(hunk.removed, hunk.codes[0]), _texts(hunk.added, hunk.codes[1])
    removed, added = ([line.rstrip("\r\n") + ("" if line.endswith("\n") else _end(line)) for line in side] for side in sides)
    if removed == added:
        removed, added = ([line.rstrip("\r\n") + _end(line) for line in side] for side in sides)
    return ShownHunk(hunk.number, hunk.start - 1, hunk.new_start - 1, removed, added, "", hunk.undone_by)


def _end(line: str) -> str:
    if line.endswith("\r\n"):
        return "  [line end: CR LF]"
    return "  [line end: LF]" if line.endswith("\n") else "  [no line end]"


def _lines_in(data: bytes | None, encoding: str) -> list[str] | None:
    """Return the lines of a whole content, without their ends and a byte order mark; None where it is not known, or no text."""
    text = "\0" if data is None or not encoding else data.decode(encoding, "backslashreplace").removeprefix("\ufeff")
    if "\0" in text:
        return None
    return [line.rstrip("\r\n") for line in text.removesuffix("\n").split("\n")] if text else []


def _texts(lines: Sequence[bytes], encoding: str) -> list[str]:
    try:
        return [line.decode(encoding) for line in lines]
    except (UnicodeDecodeError, LookupError):
        return [line.decode("utf-8", "backslashreplace") for line in lines]


LINES_PER_FILE: Final = 400
"""So many lines of a file are on a page with others."""

Sides = tuple[Sequence[Line] | None, Sequence[Line] | None]
"""The coloured lines of a file before and after; None: they are shown plain."""

PLAIN: Final[Sides] = (None, None)

_CONTEXT: Final = 3


class DiffRow(NamedTuple):
    """A line: whether it went or came, its numbers before and after (from 1, as text), and its pieces with their classes."""

    kind: str
    sign: str
    old: str
    new: str
    pieces: Line


class ShownPart(NamedTuple):
    """A hunk that is shown: its place among the file's hunks, its rows, and how many of its lines are left out."""

    at: int
    hunk: ShownHunk
    rows: Sequence[DiffRow]
    left: int


def coloured(colours: Colours, files: Sequence[ShownFile]) -> list[Sides]:
    """Return the colours of files whose hunks are to be shown."""
    found = iter(colours.of((one.path, side if one.hunks else ()) for one in files for side in (one.before, one.after)))
    return list(zip(found, found, strict=True))


def parts(one: ShownFile, sides: Sides, most: int) -> list[ShownPart]:
    """Return the hunks of a file, the first ones, in not many more than `most` lines."""
    out: list[ShownPart] = []
    for at, hunk in enumerate(one.hunks):
        if most <= 0:
            break
        rows = [] if hunk.note else list(_rows(one, at, most, *sides))
        left = max(len(hunk.removed) - most, 0) + max(len(hunk.added) - most, 0)
        out.append(ShownPart(at, hunk, rows, left))
        most -= max(len(rows), 1)
    return out


def _rows(one: ShownFile, at: int, most: int, old: Sequence[Line] | None, new: Sequence[Line] | None) -> Iterator[DiffRow]:
    hunk = one.hunks[at]
    start = max(hunk.new - _CONTEXT, 0)
    if at:
        # What the hunk before showed behind itself is not shown again.
        last = one.hunks[at - 1]
        start = max(start, min(last.new + len(last.added) + _CONTEXT, hunk.new))
    yield from _same(one, new, range(start, hunk.new), hunk.old - hunk.new)
    for number, line in enumerate(hunk.removed[:most], hunk.old):
        yield DiffRow("minus", "\u2212", str(number + 1), "", _pieces(line, old, number))
    for number, line in enumerate(hunk.added[:most], hunk.new):
        yield DiffRow("plus", "+", "", str(number + 1), _pieces(line, new, number))
    first = hunk.new + len(hunk.added)
    following = one.hunks[at + 1 : at + 2]
    stop = following[0].new if following and not following[0].note else first + _CONTEXT
    yield from _same(one, new, range(first, min(first + _CONTEXT, stop)), hunk.old + len(hunk.removed) - first)


def _same(one: ShownFile, coloured: Sequence[Line] | None, numbers: range, shift: int) -> Iterator[DiffRow]:
    for number in numbers:
        if number < len(one.after):
            pieces = _pieces(one.after[number], coloured, number)
            yield DiffRow("", " ", str(number + shift + 1), str(number + 1), pieces)


def _pieces(line: str, coloured: Sequence[Line] | None, number: int) -> Line:
    # The line itself decides: where a mark of its end was added, the colours do not fit.
    if coloured is None or number >= len(coloured) or "".join(part for _, part in coloured[number]) != line:
        return [("", line)]
    return coloured[number]

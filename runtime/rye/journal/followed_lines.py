"""Where the lines of a recorded change are now, by the record of what became of the file since.

A comparison of two texts cannot follow a line whose neighbours changed, or one of several alike. The record can: an edit says
which lines it put in place of which, and an undo brings back those that were there. Where a command or a whole new content came
in between, a line counts as the same one only if it cannot be taken for another; what is not certain is not found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Final, NamedTuple

from rye.fs import names
from rye.journal import file_history, hunks
from rye.journal.entries import Entry
from rye.journal.file_history import Step
from rye.journal.history import History
from rye.journal.hunks import Hunk, Missing
from rye.line_ids.diff import align, trim
from rye.line_ids.reconcile import Splice
from rye.workspace.text import split
from rye.workspace.workspace import Workspace

# More changes, or more of the file, are not followed.
_MOST_ROWS: Final = 5_000
_MOST_STEPS: Final = 500


def places(ws: Workspace, entry: Entry, wanted: Sequence[Hunk], now: bytes) -> tuple[list[Splice], list[Missing]] | None:
    """Return where hunks of a change are, in the lines of a text, and which are not there any more as it left them.

    Args:
        ws: the workspace; the caller holds the file's lock, or the tree's.
        entry: the change.
        wanted: its hunks of lines that are looked for, ascending; all of one file.
        now: the file's content. The lines are those without its byte order mark.

    Returns:
        None where the record does not tell all that became of the file.
    """
    path = names.normal(wanted[0].path)
    steps = file_history.of_file(ws, path, islice(History(ws), _MOST_ROWS), since=entry.id).steps
    first = steps[0] if steps else None
    if first is None or first.entry is None or first.entry.id != entry.id or steps[-1].after != now or len(steps) > _MOST_STEPS:
        return None
    texts = [_lines(first.before), *(_lines(step.after) for step in steps)]
    if any(text is None or text[0] != (texts[-1] or text)[0] for text in texts) or any(step.path != path for step in steps):
        return None
    old, *versions = [text[1] for text in texts if text is not None]
    fresh, made = count(len(old)), dict[str, list[_Piece]]()
    lines = [_TOP, *enumerate(old), _END]
    for step, text in zip(steps, versions, strict=True):
        before, lines = lines, _taken_back(step, lines, text, made) or _carried(step, lines, text, fresh)
        if step.entry is not None:
            made[step.entry.id] = [_piece(one, before, lines) for one in _hunks(step, before, text)]
    found: list[Splice] = []
    missing: list[Missing] = []
    where = {line: at for at, line in enumerate(lines)}
    for hunk in wanted:
        piece = made[entry.id][hunk.number - 1]
        at = _place(piece, lines, where)
        # Lines that were reordered since have no common place.
        if at is None or (found and at - 1 < found[-1].stop):
            above, below = (where[one] - 1 if one in where else None for one in piece.beside)
            own = [where[line] - 1 for line in piece.added if line in where]
            missing.append(Missing(hunk.number - 1, *hunks.in_place_of(own, above, below, hunk.start - 1)))
        else:
            found.append(Splice(at - 1, at - 1 + len(piece.added), [*hunk.removed]))
    return found, missing


def _lines(data: bytes | None) -> tuple[bytes, list[bytes]] | None:
    """Return the byte order mark and the lines of a text; None where it is none."""
    code = hunks.code_of(data) if data is not None else None
    return None if data is None or code is None else (code.bom, split(data[len(code.bom) :], code))


_Line = tuple[int, bytes]
"""A line with a name of its own, through the changes of its text."""

# The ends of a file, which stand before its first line and behind its last one.
_TOP: Final[_Line] = (-1, b"")
_END: Final[_Line] = (-2, b"")


class _Piece(NamedTuple):
    """One hunk of a change: the lines that went and came, and the neighbours that it left."""

    removed: list[_Line]
    added: list[_Line]
    beside: list[_Line]


def _hunks(step: Step, before: Sequence[_Line], text: Sequence[bytes]) -> list[Hunk]:
    """Return the hunks of lines of a step, as `hunks.of_entry` numbers them."""
    if step.entry is not None and step.entry.files is None:
        found = hunks.of_file(step.entry)
    else:
        found = hunks.between(step.path, [line for _, line in before[1:-1]], text, ("utf-8", "utf-8"))
    return [one for one in found if one.kind == "lines"]


def _piece(hunk: Hunk, before: Sequence[_Line], after: Sequence[_Line]) -> _Piece:
    stop = hunk.new_start + len(hunk.added)
    removed = [*before[hunk.start : hunk.start + len(hunk.removed)]]
    return _Piece(
        removed, [*after[hunk.new_start : stop]], [*after[hunk.new_start - 1 : hunk.new_start], *after[stop : stop + 1]]
    )


def _place(piece: _Piece, lines: list[_Line], where: Mapping[_Line, int]) -> int | None:
    """Return where a hunk is among the lines: all that it made, together; of lines that it took out the neighbours."""
    wanted = piece.added or piece.beside
    at = where.get(wanted[0], len(lines))
    return at + (not piece.added) if lines[at : at + len(wanted)] == wanted else None


def _taken_back(
    step: Step, before: list[_Line], text: Sequence[bytes], made: Mapping[str, Sequence[_Piece]]
) -> list[_Line] | None:
    """Follow an undo of a change that was followed: its lines are those that were there; None where it is none."""
    entry = step.entry
    pieces = made.get(entry.undoes or "") if entry is not None else None
    if entry is None or not pieces or (entry.hunks and entry.hunk_count != len(pieces)):
        return None
    named = [pieces[number - 1] for number in entry.hunks] or pieces
    where = {line: at for at, line in enumerate(before)}
    spots = {at: piece for piece in named if (at := _place(piece, before, where)) is not None}
    out = [*before]
    # From the end, so that the places before stay what they are.
    for at in sorted(spots, reverse=True):
        out[at : at + len(spots[at].added)] = spots[at].removed
    return out if [line for _, line in out[1:-1]] == [*text] else None


def _carried(step: Step, before: Sequence[_Line], text: Sequence[bytes], fresh: Iterator[int]) -> list[_Line]:
    """Follow an edit, which says itself what it changed, or two texts, of which lines that are certain keep their names."""
    entry, numbers = step.entry, [name for name, _ in before[1:-1]]
    edited = entry is not None and entry.files is None and not entry.whole
    for one in reversed(entry.splices) if entry is not None and edited else ():
        numbers[one.start : one.start + len(one.removed)] = islice(fresh, len(one.added))
    if not edited or len(numbers) != len(text):
        numbers = [*islice(fresh, len(text))]
        for old, new in certain([line for _, line in before[1:-1]], text):
            numbers[new] = before[old + 1][0]
    return [_TOP, *zip(numbers, text, strict=True), _END]


def certain(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Yield which lines of two texts are the same ones without doubt.

    A line is, where it stands between the same lines as before and nothing like the three is elsewhere in either text; or is
    elsewhere as often in both, and all above or all below is the same; or the line itself is nowhere else, and one of its
    neighbours is the same. So are the lines between two such lines, or the end of both texts, where none of them changed.
    """
    threes = [Counter(_around(side)) for side in (old, new)]
    ones = [Counter(side) for side in (old, new)]
    whole = (0, len(old), 0, len(new))
    head, tail = trim(old, new, whole)[0], trim(old[::-1], new[::-1], whole)[0]

    def is_certain(o: int, n: int) -> bool:
        three = (_at(old, o - 1), old[o], _at(old, o + 1))
        twins = [counted[three] for counted in threes]
        same = [_at(new, n - 1) == three[0], _at(new, n + 1) == three[2]]
        beside = o + 1 < head or len(old) - o < tail
        alone = ones[0][old[o]] == ones[1][old[o]] == 1
        return (all(same) and (twins == [1, 1] or (twins[0] == twins[1] and beside))) or (alone and any(same))

    for i, j, length in align(old, new):
        found = [at for at in range(length) if is_certain(i + at, j + at)]
        low = 0 if i == j == 0 and found else min(found, default=0)
        high = length if (i + length, j + length) == (len(old), len(new)) and found else max(found, default=-1) + 1
        yield from ((i + at, j + at) for at in range(low, high))


def _at(lines: Sequence[bytes], at: int) -> bytes | None:
    return lines[at] if 0 <= at < len(lines) else None


def _around(lines: Sequence[bytes]) -> Iterator[tuple[bytes | None, bytes, bytes | None]]:
    for at, line in enumerate(lines):
        yield _at(lines, at - 1), line, _at(lines, at + 1)

"""Where the lines of a recorded change are now, by the record of what became of the file since.

A comparison of two texts cannot follow a line whose neighbours changed, or one of several alike. The record can: an edit says
which lines it put in place of which, and an undo brings back those that were there. Where a command or a whole new content came
in between, a line counts as the same one only if it cannot be taken for another; what is not certain is not found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, islice, pairwise
from typing import Final, NamedTuple

from rye.fs import names
from rye.journal import file_history, hunks, merges
from rye.journal.entries import Entry
from rye.journal.file_history import Step
from rye.journal.history import History
from rye.line_ids.diff import align
from rye.workspace.text import split
from rye.workspace.workspace import Workspace

# More changes, or more of the file, are not followed.
_MOST_ROWS: Final = 5_000
_MOST_STEPS: Final = 500


class _Piece(NamedTuple):
    """One hunk of a change: lines by their names, and the neighbours that it left; None: the file's end."""

    removed: list[int]
    added: list[int]
    above: int | None
    below: int | None


def places(ws: Workspace, entry: Entry, path: str, wanted: Sequence[int] | None, now: bytes) -> list[merges.MergeHunk] | None:
    """Return where hunks of a change are now, with the lines that were there before them.

    Args:
        ws: the workspace; the caller holds the file's lock, or the tree's.
        entry: the change.
        path: the file.
        wanted: the numbers of the hunks, ascending; all of lines if None.
        now: the file's content.

    Returns:
        Their places, ascending, in the lines of `now` without its byte order mark; None where the record does not tell all.
    """
    path = names.normal(path)
    steps = file_history.of_file(ws, path, islice(History(ws), _MOST_ROWS), since=entry.id).steps
    first = steps[0] if steps else None
    if first is None or first.entry is None or first.entry.id != entry.id or steps[-1].after != now or len(steps) > _MOST_STEPS:
        return None
    texts = [_lines(first.before), *(_lines(step.after) for step in steps)]
    if any(text is None or text[0] != (texts[-1] or text)[0] for text in texts) or any(step.path != path for step in steps):
        return None
    versions = [text[1] for text in texts if text is not None]
    lines = _Lines(versions[0])
    for step, version in zip(steps, versions[1:], strict=True):
        lines.follow(step, version)
    found = lines.hunks_of(entry.id, wanted)
    return found if found is not None and all(one.stop <= other.start for one, other in pairwise(found)) else None


def _lines(data: bytes | None) -> tuple[bytes, list[bytes]] | None:
    """Return the byte order mark and the lines of a text; None where it is none."""
    code = hunks.code_of(data) if data is not None else None
    return None if data is None or code is None else (code.bom, split(data[len(code.bom) :], code))


class _Lines:
    """A file's lines, each with a name of its own, through the changes of its text."""

    def __init__(self, text: Sequence[bytes]) -> None:
        self._fresh = count()
        self._text = list(text)
        self._names = self._new(len(text))
        self._known = dict(zip(self._names, text, strict=True))
        self._pieces: dict[str, list[_Piece]] = {}

    def _new(self, how_many: int) -> list[int]:
        return [next(self._fresh) for _ in range(how_many)]

    def follow(self, step: Step, text: Sequence[bytes]) -> None:
        """Go on to the text after a step."""
        spans = _spans(step, self._text, text)
        names = self._taken_back(step, text) or self._edited(step, spans, text) or self._compared(text)
        self._known |= dict(zip(names, text, strict=True))
        if step.entry is not None:
            gone = self._gone(names)
            self._pieces[step.entry.id] = [
                _Piece(
                    [self._that_went(name, gone) for name in self._names[start : start + removed]],
                    names[new : new + added],
                    names[new - 1] if new else None,
                    names[new + added] if new + added < len(names) else None,
                )
                for start, removed, new, added in spans
            ]
        self._names, self._text = names, list(text)

    def _gone(self, names: list[int]) -> dict[bytes, list[int]]:
        """Return the lines that are not among those of the next text, by their text."""
        stay, gone = {*names}, dict[bytes, list[int]]()
        for name in self._names:
            if name not in stay:
                gone.setdefault(self._known[name], []).append(name)
        return gone

    def _that_went(self, name: int, gone: dict[bytes, list[int]]) -> int:
        """Return the line that a hunk took out: among lines alike a comparison may show another one than an undo took."""
        alike = gone.get(self._known[name], [])
        if name in alike:
            alike.remove(name)
            return name
        found = alike.pop(0) if alike else next(self._fresh)
        self._known[found] = self._known[name]
        return found

    def _taken_back(self, step: Step, text: Sequence[bytes]) -> list[int] | None:
        """Follow an undo of a change that was followed: its lines are those that were there; None where it is none."""
        entry = step.entry
        pieces = self._pieces.get(entry.undoes or "") if entry is not None else None
        if entry is None or not pieces or (entry.hunks and entry.hunk_count != len(pieces)):
            return None
        names = list(self._names)
        for piece in [pieces[number - 1] for number in entry.hunks] or pieces:
            start = _place(piece, names)
            if start is None:
                return None
            names[start : start + len(piece.added)] = piece.removed
        return names if [self._known[name] for name in names] == [*text] else None

    def _edited(self, step: Step, spans: Sequence[tuple[int, int, int, int]], text: Sequence[bytes]) -> list[int] | None:
        """Follow an edit, which says itself what it changed; None where it does not."""
        if step.entry is None or step.entry.whole or step.entry.files is not None:
            return None
        names = list(self._names)
        for start, removed, _, added in reversed(spans):
            names[start : start + removed] = self._new(added)
        return names if len(names) == len(text) else None

    def _compared(self, text: Sequence[bytes]) -> list[int]:
        """Follow a change of which only the two texts are known: lines that are certain keep their names."""
        names = self._new(len(text))
        for old, new in certain(self._text, text):
            names[new] = self._names[old]
        return names

    def hunks_of(self, entry_id: str, wanted: Sequence[int] | None) -> list[merges.MergeHunk] | None:
        """Return where hunks of a step are now; None where one is not there any more as it was left."""
        pieces = self._pieces[entry_id]
        out: list[merges.MergeHunk] = []
        for number, piece in enumerate(pieces, 1):
            if wanted is not None and number not in wanted:
                continue
            start = _place(piece, self._names)
            if start is None:
                return None
            out.append(merges.MergeHunk(start, start + len(piece.added), [self._known[name] for name in piece.removed]))
        return out


def _place(piece: _Piece, names: Sequence[int]) -> int | None:
    """Return where a hunk is among the lines: all that it made, together; of lines that it took out the neighbours."""
    if piece.added:
        start = names.index(piece.added[0]) if piece.added[0] in names else None
        return start if start is not None and names[start : start + len(piece.added)] == piece.added else None
    if piece.above is not None and piece.above not in names:
        return None
    start = names.index(piece.above) + 1 if piece.above is not None else 0
    return start if (names[start] if start < len(names) else None) == piece.below else None


def _spans(step: Step, old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int, int, int]]:
    """Return the hunks of lines of a step, as `hunks.of_entry` numbers them: start, count before; start, count after."""
    if step.entry is None:
        return []
    if not step.entry.whole and step.entry.files is None:
        splices = [(one.start, one.removed, one.added) for one in step.entry.splices]
        found = hunks.of_splices(step.path, splices, ("utf-8", "utf-8"))
    else:
        found = hunks.between(step.path, old, new, ("utf-8", "utf-8"))
    return [(one.start - 1, len(one.removed), one.new_start - 1, len(one.added)) for one in found]


def certain(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Yield which lines of two texts are the same ones without doubt.

    A line is, where it stands between the same lines as before and nothing like the three is elsewhere in either text; or is
    elsewhere as often in both, and all above or all below is the same; or the line itself is nowhere else, and one of its
    neighbours is the same. So are the lines between two such lines, or the end of both texts, where none of them changed.
    """
    threes = [Counter(_around(side)) for side in (old, new)]
    ones = [Counter(side) for side in (old, new)]
    head, tail = merges.shared_ends(old, new)[0], merges.shared_ends(old[::-1], new[::-1])[0]

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

"""Reconcile line IDs from one state of a file to the next.

`splice` follows our own edits, which say what they changed: what a change writes is new, but for the lines that the same change
replaces and that are equal, white space aside. `reconcile` follows anyone else's: lines that the alignment finds again keep
their ID, then lines that moved and are unmistakable, then lines that differ in white space only. Everything else is new, and
the IDs of what is gone stay reserved.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import NamedTuple

from rye.line_ids import addresses
from rye.line_ids.addresses import Addresses
from rye.line_ids.diff import Box, align, gaps
from rye.line_ids.index import ENDS_STORED, VERSIONS_STORED, Index, LineEnd, LineId, Runs, digest_lines, loose_digest
from rye.plain_class import changed

Name = tuple[str | None, addresses.Number | None, bool]
"""A line's ID and its short address, where they are known, and whether that address was ever printed."""


class Revived(NamedTuple):
    """What the lines of a splice were called before: the ID of each, None where it has none; their short addresses, as runs.

    `told` tells of each whether its short address was ever printed, `shown` whether it was shown as it is now.
    """

    ids: Sequence[str | None] = ()
    shorts: Sequence[addresses.Run] = ()
    told: Sequence[bool] = ()
    shown: Sequence[bool] = ()


class Splice(NamedTuple):
    """Lines [start, stop) of a text become `lines`, called `names` where they had a name; raw lines, terminators included."""

    start: int
    stop: int
    lines: list[bytes]
    names: Revived | None = None


def splice(index: Index, changes: Sequence[Splice], content_hash: str) -> Index:
    """Return the index after our own edit; the one before is left as it is.

    Args:
        index: the state before.
        changes: ascending, not overlapping, exact: every old line outside is untouched. No ID passes from one to another,
            unless it is named there. Their lines are the identifying texts, see `Encoding.key`.
        content_hash: SHA-256 of the new content.
    """
    count = index.count
    blocks, edges = [], [*((c.start, c.stop, len(c.lines)) for c in changes), (count, count, 0)]
    old = new = 0
    for start, stop, added in edges:
        blocks.append((old, new, start - old))
        new += start - old + added
        old = stop
    texts: dict[int, bytes] = {}
    revived: dict[int, Name] = {}
    pieces: list[bytes] = []
    found: list[Box] = []
    for (old_at, new_at, length), change in zip(blocks, [*changes, None], strict=True):
        pieces.append(index.digests[old_at * index.width : (old_at + length) * index.width])
        if change is not None:
            pieces.append(digest_lines(change.lines, index.width))
            first, names = new_at + length, change.names or Revived()
            found.append((change.start, change.stop, first, first + len(change.lines)))
            texts.update(enumerate(change.lines, first))
            numbers: Sequence[addresses.Number | None] = Addresses(names.shorts).numbers(0, len(names.ids))
            told = names.told or [False] * len(names.ids)
            revived.update(enumerate(zip(names.ids, numbers or [None] * len(names.ids), told, strict=True), first))
    step = _Transition(index, b"".join(pieces), [b for b in blocks if b[2]], texts.__getitem__, content_hash)
    return step.finish(found, revived)


def reconcile(index: Index, digests: bytes, texts: Callable[[int], bytes], content_hash: str) -> Index:
    """Return the index for a content that somebody else made of the old one.

    Args:
        index: the state before.
        digests: of the new lines, `index.width` bytes each.
        texts: the text of a new line, by position.
        content_hash: SHA-256 of the new content.
    """
    width = index.width
    old, new = ([side[at : at + width] for at in range(0, len(side), width)] for side in (index.digests, digests))
    step = _Transition(index, digests, align(old, new), texts, content_hash)
    step.leave_out_shifted()
    return step.finish([*gaps(step.blocks, step.old_count, step.count)], moves=True)


class _Transition:
    """One step from a state to the next: who is who, and what is recorded of it."""

    def __init__(
        self, old: Index, digests: bytes, blocks: list[tuple[int, int, int]], texts: Callable[[int], bytes], content_hash: str
    ) -> None:
        self.old, self.digests, self.blocks, self.texts = old, digests, blocks, texts
        self.revision = old.revision + 1
        self.content_hash = content_hash
        self.old_count, self.count = old.count, len(digests) // old.width
        # Old position -> new position, for lines outside the blocks that were recognised all the same.
        self.found: dict[int, int] = {}
        self.loose_of_new: dict[int, bytes] = {}

    def finish(self, gaps: list[Box], revived: Mapping[int, Name] = MappingProxyType({}), *, moves: bool = False) -> Index:
        """Recognise what is left, with `moves` also from one gap to another, and build the next index."""
        # An ID that is given back to its line is not to be found on another one.
        promised, known = {name for name, _, _ in revived.values()}, self.old.marks
        left_old = [at for a, b, _, _ in gaps for at in range(a, b) if at not in known or known[at].id not in promised]
        left_new = [at for _, _, c, d in gaps for at in range(c, d) if at not in revived]
        if left_old and left_new:
            # The surest evidence first: each step takes only what the step before has left.
            if moves:
                self._recognise_moved(left_old, left_new)
            self._recognise_loose(gaps, set(left_old), set(left_new), by_others=moves)
            if moves:
                self._recognise_loose_moved(left_old, left_new)
        marks = self._surviving_ids()
        index = changed(
            self.old,
            content_hash=self.content_hash,
            digests=self.digests,
            marks=marks,
            revision=self.revision,
            ages=self._ages(),
            dead=dict(self.old.dead),
            versions=[*self.old.versions, (self.revision, self.content_hash[:8])][-VERSIONS_STORED:],
        )
        self._revive(index, marks, revived)
        index.marks = {at: marks[at] for at in sorted(marks)}
        self._number(index, revived)
        self._bury(index, gaps)
        return index

    def _revive(self, index: Index, marks: dict[int, LineId], revived: Mapping[int, Name]) -> None:
        """Give lines back their IDs: those that an undo restores, and those that our own edit moves."""
        if not revived:
            return
        alive, promised = {mark.id for mark in marks.values()}, {name for name, _, _ in revived.values()}
        before = {mark.id: (at, mark) for at, mark in self.old.marks.items() if mark.id in promised}
        for at, (name, _, was_told) in revived.items():
            # Another line may have been recognised under this ID already; no ID names two lines.
            if name is None or name in alive:
                continue
            index.dead.pop(name, None)
            told, shown = was_told, -1
            if name in before:
                place, old_mark = before[name]
                # Whoever moves a line that was shown has seen it.
                was_seen = old_mark.shown >= self.old.ages.values(place, place + 1)[0]
                told, shown = old_mark.short_shown, self.revision if was_seen else -1
            alive.add(name)
            marks[at] = LineId(name, loose_digest(self.texts(at)), self.revision, shown, told)

    def _number(self, index: Index, revived: Mapping[int, Name]) -> None:
        """Give every line its short address: that which it has; or had, where it is given back; or a new one."""
        found = [(old_at, new_at, 1) for old_at, new_at in self.found.items()]
        stay = [(new_at, self.old.addresses.part(old_at, old_at + many)) for old_at, new_at, many in [*self.blocks, *found]]
        taken = Addresses(run for _, part in stay for run in part)
        given = set[addresses.Number]()
        for at, (_, number, _) in revived.items():
            if number is not None and number not in given and taken.place(*number) is None:
                given.add(number)
                stay.append((at, [(1, *number)]))
        runs, at = list[addresses.Run](), 0
        for new_at, part in [*sorted(stay), (self.count, [])]:
            runs.append((new_at - at, index.numbers + 1, index.epoch))
            index.numbers += new_at - at
            runs += part
            at = new_at + sum(length for length, _, _ in part)
        index.addresses = Addresses(runs)

    def _new_digest(self, at: int) -> bytes:
        return self.digests[at * self.old.width : (at + 1) * self.old.width]

    def _loose(self, at: int) -> bytes:
        known = self.loose_of_new.get(at)
        if known is None:
            known = self.loose_of_new[at] = loose_digest(self.texts(at))
        return known

    def leave_out_shifted(self) -> None:
        """Leave out blocks within lines that were indented anew: one of these may have the text now that its neighbour had."""
        offsets = [0, *(new - old for old, new, _ in self.blocks), self.count - self.old_count]
        edges = [(0, 0, 0), *self.blocks, (self.old_count, self.count, 0)]
        following: dict[int, int] = {}
        again = [0] * len(edges)
        for at in range(len(edges) - 1, -1, -1):
            again[at] = following.get(offsets[at], 0)
            following[offsets[at]] = at
        kept, at = list[tuple[int, int, int]](), 0
        while at < len(edges) - 1:
            old, _, length = edges[at]
            to = (
                again[at]
                if again[at] > at + 1 and self._is_indented(old + length, edges[again[at]][0], offsets[at])
                else at + 1
            )
            at = to
            kept += edges[at : at + 1]
        self.blocks = kept[:-1]

    def _is_indented(self, start: int, stop: int, offset: int) -> bool:
        """Tell whether old lines [start, stop) are, each for itself, new lines but for white space."""
        known = self.old.marks
        return all((mark := known.get(at)) is not None and mark.loose == self._loose(at + offset) for at in range(start, stop))

    def _recognise_moved(self, left_old: list[int], left_new: list[int]) -> None:
        """Follow runs of lines that are elsewhere now: unmistakable ones, with a line whose text is unique before and after."""
        by_old = {self.old.digest(at): at for at in left_old}
        by_new = {self._new_digest(at): at for at in left_new}
        shared = by_old.keys() & by_new.keys()
        if not shared:
            return
        # Unique in the whole file, not only in the gaps: with a twin in an unchanged block the match would be a guess.
        width, sides = self.old.width, (self.old.digests, self.digests)
        all_digests = ((side[at : at + width] for at in range(0, len(side), width)) for side in sides)
        before, after = (_once(digest for digest in found if digest in shared) for found in all_digests)
        unique = before & after
        if unique:
            # A line that differs in its indentation is a twin, too: all may have been indented anew.
            single = self._loose_once(left_new)
            unique = {digest for digest in unique if self._loose(by_new[digest]) in single}
        free_old, free_new = set(left_old), set(left_new)
        # Sorted, so that the result does not depend on the order of a set.
        for seed in sorted((by_old[digest], by_new[digest]) for digest in unique):
            if seed[0] not in free_old or seed[1] not in free_new:
                continue
            run = [seed]
            # A moved block has repeated lines too, such as braces. They follow between lines that have no twin, and no further:
            # at an end of the block their like may stand where it came to.
            for step in (1, -1):
                a, b = seed[0] + step, seed[1] + step
                beside = list[tuple[int, int]]()
                while a in free_old and b in free_new and (digest := self.old.digest(a)) == self._new_digest(b):
                    beside.append((a, b))
                    if digest in unique:
                        run += beside
                        beside.clear()
                    a, b = a + step, b + step
            if sum(_weight(self.texts(b)) for _, b in run) >= _UNMISTAKABLE:
                self.found.update(run)
                free_old.difference_update(a for a, _ in run)
                free_new.difference_update(b for _, b in run)

    def _recognise_loose(self, gaps: list[Box], from_old: set[int], to_new: set[int], *, by_others: bool) -> None:
        """Within a gap, in order: lines that differ in white space only.

        Of others' changes all lines of the gap together, or those that are unmistakable: a run with lines that have no twin.
        """
        used, single = set(self.found.values()), None
        for a, b, c, d in gaps:
            old = [at for at in range(a, b) if at in from_old and at not in self.found and at in self.old.marks]
            new = [at for at in range(c, d) if at in to_new and at not in used] if old else []
            if not new:
                continue
            loose_old, loose_new = [self.old.marks[at].loose for at in old], [self._loose(at) for at in new]
            pairs = [] if set(loose_old).isdisjoint(loose_new) else align(loose_old, loose_new)
            for old_at, new_at, length in pairs:
                if by_others and not length == b - a == d - c:
                    if single is None:
                        single = self._loose_once(to_new)
                    run = new[new_at : new_at + length]
                    if sum(_weight(self.texts(at)) for at in run if self._loose(at) in single) < _UNMISTAKABLE:
                        continue
                self.found.update(zip(old[old_at : old_at + length], new[new_at : new_at + length], strict=True))

    def _loose_once(self, left_new: Collection[int]) -> Set[bytes]:
        """Return the texts without white space of which the old state knows one line, and what is left one."""
        return _once(mark.loose for mark in self.old.marks.values()) & _once(map(self._loose, left_new))

    def _recognise_loose_moved(self, left_old: list[int], left_new: list[int]) -> None:
        """Anywhere: a line moved and changed in white space, unmistakable among what is left and among all known lines."""
        used = set(self.found.values())
        known = self.old.marks
        old = {known[at].loose: at for at in left_old if at in known and at not in self.found}
        if not old:
            return
        free = [at for at in left_new if at not in used]
        single = self._loose_once(free) & old.keys()
        for at in free if single else ():
            if self._loose(at) in single and _weight(self.texts(at)) >= _UNMISTAKABLE:
                self.found[old[self._loose(at)]] = at

    def _surviving_ids(self) -> dict[int, LineId]:
        marks, known = dict[int, LineId](), self.old.marks
        positions = sorted(known)
        for old_at, new_at, length in self.blocks:
            within = positions[bisect_left(positions, old_at) : bisect_left(positions, old_at + length)]
            marks.update({at - old_at + new_at: known[at] for at in within})
            # A block's first line has another line above it now, unless both begin the file.
            if within[:1] == [old_at] and (old_at or new_at):
                mark = known[old_at]
                marks[new_at] = LineId(mark.id, mark.loose, self.revision, mark.shown, mark.short_shown)
        for old_at, new_at in self.found.items():
            if old_at in known:
                mark = known[old_at]
                loose = self.loose_of_new.get(new_at, mark.loose)
                marks[new_at] = LineId(mark.id, loose, self.revision, mark.shown, mark.short_shown)
        return marks

    def _ages(self) -> Runs:
        runs: list[tuple[int, int]] = []
        new = 0
        for old_at, new_at, length in [*self.blocks, (self.old_count, self.count, 0)]:
            runs.append((new_at - new, self.revision))
            if length:
                runs.extend(self.old.ages.part(old_at, old_at + length))
            new = new_at + length
        return Runs(runs)

    def _bury(self, index: Index, gaps: list[Box]) -> None:
        """Reserve the IDs of lines that are gone, and tell what became of them."""
        alive = {mark.id for mark in index.marks.values()}
        for a, b, c, d in gaps:
            deleted = [at for at in range(a, b) if at in self.old.marks and self.old.marks[at].id not in alive]
            if not deleted:
                continue
            how = "replaced" if d > c else "deleted"
            before, after = index.id_at(d), index.id_at(c - 1)
            for at in deleted:
                mark = self.old.marks[at]
                (short,) = self.old.addresses.names(at, at + 1)
                index.dead[mark.id] = LineEnd(how, at + 1, after, before, self.revision, short)
        # Dicts keep their order, so the oldest ends lose their details first.
        surplus = [name for name, end in index.dead.items() if end is not None][:-ENDS_STORED]
        for name in surplus:
            index.dead[name] = None


# So many letters and digits a line, or a run of lines, must have to be the same one elsewhere: `return x` is written again.
_UNMISTAKABLE = 16


def _weight(text: bytes) -> int:
    """Return how many letters and digits a text has; bytes beyond ASCII count as letters."""
    return len(text.translate(None, _NO_LETTERS))


_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())


def _once(digests: Iterable[bytes]) -> set[bytes]:
    """Return the digests that occur exactly once."""
    return {digest for digest, count in Counter(digests).items() if count == 1}

"""Line IDs: which ID belongs to which line of a file, through every change.

An `Index` is pure data about one state of a file: a digest of every line, and for lines that have an ID (all lines of a
small file, the lines that were shown of a large one) what is known of them. `rye.line_ids.reconcile` takes it to the next state
of the file.

IDs. The first index of a file gives line n of text t the first 6 hex digits of SHA-256 over `"{n}:{t}"`, and on a clash 8, 10,
… of them. Later lines hash `"{epoch}.{counter}:{t}"`, with further counters on a clash. An index that had to be rebuilt takes
a new epoch, and IDs of epoch 2 and later end in it: 6 digits and 1 (epochs to 15), 3 (to 4,095) or 5 digits of epoch. So IDs of
two epochs differ in length or in their end, and an ID of an epoch gone by can only be unknown, never another line's. An index
with many dead IDs also takes a new epoch, for its new lines; the lines that live keep their IDs.

Short addresses. Every line has a number, also one that has no ID yet, which is never used again: line n of the first index has
n, later lines count on from the last one. An address is the number and, from epoch 2 on, letters that name the epoch (see
`rye.line_ids.addresses`), so that both views of a line's identity live and die together.

`Runs` stores which revision last changed each line: a long sequence of numbers that is nearly constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import accumulate
from typing import NamedTuple

from rye.line_ids import addresses
from rye.line_ids.addresses import Addresses
from rye.line_ids.render import joined_ranges
from rye.plain_class import Record, field

Run = tuple[int, int]


class Runs:
    """An immutable sequence of ints as (length, value) runs; no run is empty, neighbours differ."""

    __slots__ = ("_runs", "_starts")

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        """Take runs in order; empty ones are dropped, equal neighbours joined."""
        joined: list[Run] = []
        for length, value in runs:
            if length <= 0:
                continue
            if joined and joined[-1][1] == value:
                joined[-1] = (joined[-1][0] + length, value)
            else:
                joined.append((length, value))
        self._runs = joined
        # Where each run begins, and the end; made when a part is first asked for.
        self._starts: list[int] = []

    def part(self, start: int, stop: int) -> list[Run]:
        """Return the runs of positions [start, stop)."""
        if not self._starts:
            self._starts = list(accumulate((length for length, _ in self._runs), initial=0))
        return [(many, self._runs[which][1]) for which, _, many in addresses.cut(self._starts, start, stop)]

    def values(self, start: int, stop: int) -> list[int]:
        """Return the values at positions [start, stop), one each."""
        return [value for length, value in self.part(start, stop) for _ in range(length)]

    def since(self, value: int) -> list[tuple[int, int]]:
        """Return the position ranges (start, stop) whose value is greater than `value`."""
        starts = accumulate((length for length, _ in self._runs), initial=0)
        return joined_ranges((at, at + length) for at, (length, here) in zip(starts, self._runs, strict=False) if here > value)


ALL_IDS_MAX = 2_000
"""Files of up to so many lines have an ID for every line; in larger ones a line gets its ID when it is first shown."""

ENDS_STORED = 300
"""So many dead IDs are stored with what became of their lines; the rest only as taken, until the next epoch."""

DEAD_MAX = 900
"""With more dead IDs than this the index takes a new epoch, whose IDs cannot be any of them: then they need not be stored."""

VERSIONS_STORED = 20
# Hexadecimal digits of the content's hash in the short form of a version.
_SHORT = 6
_SPACE = b" \t\r\x0b\x0c"


class LineId(Record, frozen=False):
    """What is known of a line that has an ID; never changed, since indexes share them.

    Attributes:
        id: its ID.
        loose: 8 bytes of SHA-256 over its text without white space.
        near: revision in which the line before it became its neighbour (0: never changed).
        shown: revision in which it was last printed; -1 for never.
        short_shown: whether its short address was ever printed.
    """

    id: str
    loose: bytes
    near: int = 0
    shown: int = -1
    short_shown: bool = False

    def __init__(self, id: str, loose: bytes, near: int = 0, shown: int = -1, short_shown: bool = False) -> None:
        # One is made for every line: this is several times as fast as what all records share.
        self.id = id
        self.loose = loose
        self.near = near
        self.shown = shown
        self.short_shown = short_shown


class LineEnd(NamedTuple):
    """What became of a line whose ID is dead: `after` and `before` are the IDs around it, `short` was its short address."""

    how: str
    line: int
    after: str | None
    before: str | None
    revision: int
    short: str = ""


class Index(Record, frozen=False):
    """The lines of one state of a file.

    Attributes:
        epoch: counts the indexes of this file that began anew.
        content_hash: SHA-256 of the file's bytes, 64 hex.
        digests: `width` bytes of SHA-256 for each line's text, concatenated.
        width: 32 where every line has an ID, else 8.
        marks: position (from 0) -> LineId, ascending.
        ages: the revision that last changed each line's text or brought it here.
        revision: counts the states seen; 0 is the first.
        counter: the last number used for an ID of `"{epoch}.{counter}:{text}"`.
        versions: the last states' (revision, first 8 hex digits of the content hash).
        dead: dead ID -> LineEnd, or None where it is only reserved.
        numbers: the last number used for a short address of this epoch.
        addresses: the short addresses of all lines.
    """

    epoch: int
    content_hash: str
    digests: bytes
    width: int
    marks: dict[int, LineId]
    ages: Runs
    revision: int = 0
    counter: int = 0
    versions: list[tuple[int, str]] = field(factory=list)
    dead: dict[str, LineEnd | None] = field(factory=dict)
    id_epoch: int = 0
    numbers: int = 0
    addresses: Addresses = field(factory=Addresses)

    @property
    def count(self) -> int:
        """Return the number of lines."""
        return len(self.digests) // self.width

    @property
    def version(self) -> str:
        """Return the name of this state: `epoch.revision-content`."""
        return self._version(self.revision, self.content_hash[:8])

    def _version(self, revision: int, content: str) -> str:
        return f"{self.epoch}.{revision}-{content}"

    def revision_of(self, version: str) -> int | None:
        """Return the revision that a version named, in its long or short form, if it is among those stored.

        Where the file was back at an old content, a short form means the first time: what changed since is then complete.
        """
        return next((rev for rev, content in self.versions if version in (self._version(rev, content), content[:_SHORT])), None)

    @property
    def short_version(self) -> str:
        """Return the short name of this state."""
        return self.content_hash[:_SHORT]

    def is_version(self, version: str) -> bool:
        """Tell whether a version, in its long or short form, names this state."""
        return version in (self.version, self.short_version)

    def digest(self, line: int) -> bytes:
        """Return a line's digest."""
        return self.digests[line * self.width : (line + 1) * self.width]

    def id_at(self, at: int) -> str | None:
        """Return the ID of a line; None where it has none."""
        mark = self.marks.get(at)
        return mark.id if mark else None

    def positions(self) -> dict[str, int]:
        """Return ID -> position of all lines that have one."""
        return {mark.id: at for at, mark in self.marks.items()}

    def place(self, short: str) -> int | None:
        """Return the position of the line that has a short address, None where none has it."""
        return self.addresses.place(*addresses.number_of(short))

    def was_given(self, short: str) -> bool:
        """Tell whether a line certainly had a short address once."""
        number, epoch = addresses.number_of(short)
        return epoch == self.epoch and number <= self.numbers

    def is_told(self, at: int) -> bool:
        """Tell whether a line's short address was ever printed."""
        mark = self.marks.get(at)
        return mark is not None and mark.short_shown


def bare(text: bytes) -> bytes:
    """Return what stays the same of a line when only its white space changes."""
    return text.translate(None, _SPACE)


def loose_digest(text: bytes) -> bytes:
    """Return 8 bytes of a digest of what stays the same of a line when only its white space changes."""
    return sha256(bare(text)).digest()[:8]


def digest_lines(texts: Sequence[bytes], width: int) -> bytes:
    """Return the concatenated digests of lines' texts."""
    if width == 32:
        return b"".join([sha256(text).digest() for text in texts])
    return b"".join([sha256(text).digest()[:width] for text in texts])


def fresh(epoch: int, content_hash: str, digests: bytes, width: int) -> Index:
    """Return a first index without IDs; `give_ids` adds them."""
    count = len(digests) // width
    named = Addresses([(count, 1, epoch)])
    versions = [(0, content_hash[:8])]
    return Index(epoch, content_hash, digests, width, {}, Runs([(count, 0)]), versions=versions, numbers=count, addresses=named)


def give_ids(index: Index, start: int, texts: Sequence[bytes]) -> None:
    """Give an ID to each line of [start, start + len(texts)) that has none."""
    give_ids_at(index, {at: text for at, text in enumerate(texts, start) if at not in index.marks})


def give_ids_at(index: Index, texts: Mapping[int, bytes]) -> None:
    """Give an ID to each of these lines (position: text, ascending), none of which has one."""
    if texts:
        used = {mark.id for mark in index.marks.values()}
        # A dead ID must not name another line: an edit prepared before would hit the wrong one.
        used.update(index.dead)
        for at, text in texts.items():
            made = _first_id(index, at, text, used) if index.revision == 0 else _later_id(index, text, used)
            used.add(made)
            index.marks[at] = LineId(made, loose_digest(text))
        # In ascending order, on which alignment and the stored rows rely.
        index.marks = {at: index.marks[at] for at in sorted(index.marks)}


def begin_epoch(index: Index, epoch: int) -> None:
    """Give IDs of a new epoch from now on. Lines keep theirs; dead IDs that are only reserved are forgotten."""
    index.id_epoch = epoch
    index.dead = {name: end for name, end in index.dead.items() if end is not None}


def _epoch_tail(epoch: int) -> str:
    if epoch == 1:
        return ""
    return f"{epoch:x}".zfill(next(width for width in (1, 3, 5, 7) if epoch < 16**width))


def _first_id(index: Index, at: int, text: bytes, used: set[str]) -> str:
    digest = sha256(b"%d:%b" % (at + 1, text)).hexdigest()
    tail = _epoch_tail(index.id_epoch or index.epoch)
    if not tail:
        for length in range(6, 64, 2):
            if digest[:length] not in used:
                return digest[:length]
    elif digest[:6] + tail not in used:
        return digest[:6] + tail
    return _later_id(index, text, used)


def _later_id(index: Index, text: bytes, used: set[str]) -> str:
    tail = _epoch_tail(index.id_epoch or index.epoch)
    while True:
        index.counter += 1
        made = sha256(b"%d.%d:%b" % (index.id_epoch or index.epoch, index.counter, text)).hexdigest()[:6] + tail
        if made not in used:
            return made


def note_shown(index: Index, start: int, stop: int, *, short: bool = False) -> bool:
    """Record that lines [start, stop) were printed as they are now; tell whether that was news.

    With `short` they were printed with their short addresses, which nobody can name before.

    It is news of a line, too, that the next one became its neighbour: an edit of both asks whether they were seen side by side.
    """
    marks, news, at = index.marks, list[int](), start
    for length, age in index.ages.part(start, stop):
        for place in range(at, at + length):
            mark, behind = marks[place], marks.get(place + 1)
            shown = mark.shown
            # Written out: `max` takes twice as long, and each line of a view is asked.
            if shown < age or shown < mark.near or (behind is not None and shown < behind.near) or short > mark.short_shown:
                news.append(place)
        at += length
    for place in news:
        mark = marks[place]
        # A new object: other indexes share the old one.
        marks[place] = LineId(mark.id, mark.loose, mark.near, index.revision, mark.short_shown or short)
    return bool(news)

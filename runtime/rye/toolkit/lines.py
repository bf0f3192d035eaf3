"""Line IDs: which ID belongs to which line of a file, through every change.

An `Index` is pure data about one state of a file: a digest of every line, and for lines that have an ID (all lines of a
small file, the lines that were shown of a large one) what is known of them. `rye.toolkit.carry` takes it to the next state
of the file.

IDs. The first index of a file gives line n of text t the first 6 hex digits of SHA-256 over `"{n}:{t}"`, and on a clash 8, 10,
… of them. Later lines hash `"{epoch}.{counter}:{t}"`, with further counters on a clash. An index that had to be rebuilt takes
a new epoch, and IDs of epoch 2 and later end in it: 6 digits and 1 (epochs to 15), 3 (to 4,095) or 5 digits of epoch. So IDs of
two epochs differ in length or in their end, and an ID of an epoch gone by can only be unknown, never another line's.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from rye.record import Record, field
from rye.toolkit.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ALL_IDS_MAX = 2_000
"""Files of up to so many lines have an ID for every line; in larger ones a line gets its ID when it is first shown."""

EPOCHS = 16**7
"""Epochs count from 1 to below this."""

FATES_KEPT = 1_000
VERSIONS_KEPT = 20
_SPACE = b" \t\r\x0b\x0c"


class Mark(Record, frozen=False):
    """What is known of a line that has an ID; never changed, since indexes share them.

    Attributes:
        id: its ID.
        loose: 8 bytes of SHA-256 over its text without white space.
        near: revision in which the line before it became its neighbour (0: never changed).
        shown: revision in which it was last printed; -1 for never.
    """

    id: str
    loose: bytes
    near: int = 0
    shown: int = -1

    def __init__(self, id: str, loose: bytes, near: int = 0, shown: int = -1) -> None:
        # One is made for every line: this is several times as fast as what all records share.
        self.id = id
        self.loose = loose
        self.near = near
        self.shown = shown


class Fate(NamedTuple):
    """What became of a line whose ID is dead: `after` and `before` are the IDs that stood around it."""

    how: str
    line: int
    after: str | None
    before: str | None
    revision: int


class Index(Record, frozen=False):
    """The lines of one state of a file.

    Attributes:
        epoch: counts the indexes of this file that began anew.
        content_hash: SHA-256 of the file's bytes, 64 hex.
        digests: `width` bytes of SHA-256 for each line's text, concatenated.
        width: 32 where every line has an ID, else 8.
        marks: position (from 0) -> Mark, ascending.
        ages: the revision that last changed each line's text or brought it here.
        revision: counts the states seen; 0 is the first.
        counter: the last number used for an ID of `"{epoch}.{counter}:{text}"`.
        versions: the last states' (revision, first 8 hex digits of the content hash).
        dead: dead ID -> Fate, or None where only its reservation is kept.
    """

    epoch: int
    content_hash: str
    digests: bytes
    width: int
    marks: dict[int, Mark]
    ages: Runs
    revision: int = 0
    counter: int = 0
    versions: list[tuple[int, str]] = field(factory=list)
    dead: dict[str, Fate | None] = field(factory=dict)

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
        """Return the revision that a version named, if it is among those kept."""
        return next((rev for rev, content in self.versions if self._version(rev, content) == version), None)

    def digest(self, line: int) -> bytes:
        """Return a line's digest."""
        return self.digests[line * self.width : (line + 1) * self.width]

    def positions(self) -> dict[str, int]:
        """Return ID -> position of all lines that have one."""
        return {mark.id: at for at, mark in self.marks.items()}


def loose_digest(text: bytes) -> bytes:
    """Return what stays the same of a line when only its white space changes."""
    return sha256(text.translate(None, _SPACE)).digest()[:8]


def digest_lines(texts: Sequence[bytes], width: int) -> bytes:
    """Return the concatenated digests of lines' texts."""
    if width == 32:
        return b"".join([sha256(text).digest() for text in texts])
    return b"".join([sha256(text).digest()[:width] for text in texts])


def width_for(count: int) -> int:
    """Return how many digest bytes a line gets in a file of so many lines."""
    return 32 if count <= ALL_IDS_MAX else 8


def fresh(epoch: int, content_hash: str, digests: bytes, width: int) -> Index:
    """Return a first index without IDs; `give_ids` adds them."""
    ages = Runs([(len(digests) // width, 0)])
    return Index(epoch, content_hash, digests, width, {}, ages, versions=[(0, content_hash[:8])])


def give_ids(index: Index, start: int, texts: Sequence[bytes]) -> bool:
    """Give an ID to each line of [start, start + len(texts)) that has none; tell whether any was given."""
    return give_ids_at(index, {at: text for at, text in enumerate(texts, start) if at not in index.marks})


def give_ids_at(index: Index, texts: Mapping[int, bytes]) -> bool:
    """Give an ID to each of these lines (position: text, ascending), none of which has one; tell whether there was any."""
    if texts:
        taken = {mark.id for mark in index.marks.values()}
        taken.update(index.dead)
        for at, text in texts.items():
            made = _first_id(index, at, text, taken) if index.revision == 0 else _later_id(index, text, taken)
            taken.add(made)
            index.marks[at] = Mark(made, loose_digest(text))
        index.marks = dict(sorted(index.marks.items()))
    return bool(texts)


def _epoch_tail(epoch: int) -> str:
    if epoch == 1:
        return ""
    return f"{epoch:x}".zfill(next(width for width in (1, 3, 5, 7) if epoch < 16**width))


def _first_id(index: Index, at: int, text: bytes, taken: set[str]) -> str:
    digest = sha256(b"%d:%b" % (at + 1, text)).hexdigest()
    tail = _epoch_tail(index.epoch)
    if not tail:
        for length in range(6, 64, 2):
            if digest[:length] not in taken:
                return digest[:length]
    elif digest[:6] + tail not in taken:
        return digest[:6] + tail
    return _later_id(index, text, taken)


def _later_id(index: Index, text: bytes, taken: set[str]) -> str:
    tail = _epoch_tail(index.epoch)
    while True:
        index.counter += 1
        made = sha256(b"%d.%d:%b" % (index.epoch, index.counter, text)).hexdigest()[:6] + tail
        if made not in taken:
            return made


def note_shown(index: Index, start: int, stop: int) -> bool:
    """Record that lines [start, stop) were printed as they are now; tell whether that was news."""
    marks, news, at = index.marks, list[int](), start
    for length, age in index.ages.part(start, stop):
        news += [here for here in range(at, at + length) if (mark := marks[here]).shown < age or mark.shown < mark.near]
        at += length
    for here in news:
        mark = marks[here]
        marks[here] = Mark(mark.id, mark.loose, mark.near, index.revision)
    return bool(news)

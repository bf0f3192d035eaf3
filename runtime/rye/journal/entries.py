"""What the journal says of one change: its shape, and how it is written to a file so that damage to it is seen."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rye.fs import names
from rye.plain_class import Record, as_dict, changed, field
from rye.snapshots.states import Change, State
from rye.workspace.encoding import Encoding, mark_of
from rye.workspace.text import split

if TYPE_CHECKING:
    from pathlib import Path

    from rye.line_ids.addresses import Run

_T = TypeVar("_T")
_DIGEST_BYTES = 64
# A longer record is worth compressing.
_COMPRESSED_FROM = 4_096


class Recorded(Record):
    """One splice of an entry, in the numbering of the text before.

    Attributes:
        start: first line (from 0).
        removed, added: raw lines, terminators included.
        removed_ids, added_ids: their IDs, None where a line had none.
        after_id, before_id: the IDs of the lines around, None at the ends of the file.
        removed_shorts: the short addresses of the lines removed, as runs; empty where they are not known.
        told: whether any of those was ever printed.
    """

    start: int
    removed: list[bytes]
    added: list[bytes]
    removed_ids: list[str | None] = field(factory=list)
    added_ids: list[str | None] = field(factory=list)
    after_id: str | None = None
    before_id: str | None = None
    removed_shorts: list[Run] = field(factory=list)
    told: bool = False


SOME: Final = "/"
"""The `part` of an undo that stopped before its end. No recorded path begins so."""


class Entry(Record):
    """One change of one file. `before` or `after` is None where the file did not exist.

    A `whole` entry replaces, creates or deletes the file: its one splice holds the content before and after. `encoding` is the
    codec name of the lines removed, and `encoding_after` that of the lines added where it is another.
    `batch` names the commit of several files that it was a part of, `batch_size` says of how many. `mode` has the
    permission bits of a deleted file. `actor` is who made the change (see `rye.call.context`).

    A change of the tree, which a command made, has `files`: each path with what was there before and after; the contents lie
    in `rye.snapshots.contents`. Its `path` is the first of them, `about` says what command it was, `shared` names the commands
    that ran beside it and may have made some of it. `part` is the one path that an undo of a part took back, or `SOME` where an
    undo stopped: then it took back what its `files` name. `hunks` are the
    numbers of the hunks that an undo of some hunks took back, out of `hunk_count` that the change has at its path.
    `git` says how the command moved the repository.

    `key` names the call that made the change, where the caller named it (see `rye.executor.call_keys`).

    `folders` are those that were made for a file that did not exist, or removed with one, the outer first. `hard_links`
    says how many names the file had, where the change parted it from them; 0: it had one.
    """

    id: str
    time: float
    tool: str
    path: str
    before: str | None
    after: str | None
    encoding: str
    splices: list[Recorded]
    undoes: str | None = None
    temporary: str = ""
    whole: bool = False
    batch: str | None = None
    mode: int | None = None
    batch_size: int | None = None
    actor: str = ""
    encoding_after: str | None = None
    files: list[Change] | None = None
    about: str = ""
    shared: list[str] = []  # noqa: RUF012 - a Record's default, never changed
    part: str | None = None
    hunks: list[int] = []  # noqa: RUF012 - a Record's default, never changed
    hunk_count: int = 0
    key: str = ""
    git: str = ""
    folders: list[str] = []  # noqa: RUF012 - a Record's default, never changed
    hard_links: int = 0

    @property
    def paths(self) -> list[str]:
        """The paths that it changed, as results show them (see `rye.fs.names`)."""
        return [self.path] if self.files is None else [names.show(os.fsencode(one.path)) for one in self.files]

    @property
    def changes(self) -> Sequence[Change]:
        """What it did at each path, which is as a look has it. An edit's tells no mode (-1) and no size."""
        if self.files is not None:
            return self.files
        sides = [None if digest is None else State("file", -1, digest, 0) for digest in (self.before, self.after)]
        return [Change(os.fsdecode(names.parse(self.path)), *sides)]


def emptied(entry: Entry) -> Entry:
    """Return an entry without its lines: what is too large to store is still listed."""
    return changed(entry, splices=[])


def dump(record: dict[str, Any]) -> bytes:
    """Return a record as it is stored: its SHA-256, then its JSON, compressed where that is worth it."""
    text = json.dumps(record, separators=(",", ":")).encode("ascii")
    body = zlib.compress(text, 1) if len(text) > _COMPRESSED_FROM else text
    # The digest covers the stored bytes, so that damage is found before the decompressor reads them.
    return sha256(body).hexdigest().encode() + body


def parse(data: bytes) -> dict[str, Any]:
    """Return the record that `dump` made.

    Raises:
        ValueError, zlib.error, RecursionError: it is none, or was damaged.
    """
    body = data[_DIGEST_BYTES:]
    if data[:_DIGEST_BYTES] != sha256(body).hexdigest().encode():
        raise ValueError("digest")
    # Compressed data begins with 0x78, never with a brace.
    record: dict[str, Any] = json.loads(body if body.startswith(b"{") else zlib.decompress(body))
    return record


def record_of(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON values; bytes that are no UTF-8 travel as surrogates."""
    record = {**as_dict(entry), "splices": [as_dict(splice) for splice in entry.splices]}
    # What most entries do not have takes no room in them.
    for name in ("files", "about", "shared", "part", "hunks", "hunk_count", "key", "git", "folders", "hard_links"):
        if not record[name]:
            del record[name]
    for splice in record["splices"]:
        for side in ("removed", "added"):
            splice[side] = [line.decode("utf-8", "surrogateescape") for line in splice[side]]
    return record


def entry_of(record: dict[str, Any]) -> Entry:
    """Return the entry that `record_of` turned into a record. The digest of what is stored tells that it is as it was written.

    Raises:
        LookupError, TypeError, AttributeError, ValueError: it is none, or of another version of this program.
    """
    for splice in record["splices"]:
        for side in ("removed", "added"):
            splice[side] = [line.encode("utf-8", "surrogateescape") for line in splice[side]]
    record["splices"] = [Recorded(**splice) for splice in record["splices"]]
    if "files" in record:
        record["files"] = [Change(path, _state(before), _state(after)) for path, before, after in record["files"]]
    return Entry(**record)


def _state(record: list[Any] | None) -> State | None:
    return None if record is None else State(*record)


def load(path: Path) -> Entry | None:
    """Return the entry in a file; None where there is none, or not the one that the file's name says, whole."""
    entry = read(path, entry_of)
    # A copy under another name must not count as a second change.
    return entry if entry is not None and entry.id == path.stem else None


def read(path: Path, made: Callable[[dict[str, Any]], _T]) -> _T | None:
    """Return what a function makes of the record in a file; None where there is none that it takes, whole."""
    try:
        return made(parse(path.read_bytes()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, zlib.error):
        return None


def content_before(entry: Entry, data: bytes) -> bytes | None:
    """Return the content before an entry of one file, from the content that it left; None where its lines are not recorded."""
    pieces, shift = [], 0
    for one in entry.splices:
        pieces.append((one.start + shift, len(one.added), one.removed))
        shift += len(one.added) - len(one.removed)
    return _replaced(entry, data, pieces)


def content_after(entry: Entry, data: bytes) -> bytes | None:
    """Return what an entry of one file made of a content, which is the one before it; None where its lines are not recorded."""
    return _replaced(entry, data, [(one.start, len(one.removed), one.added) for one in entry.splices])


def _replaced(entry: Entry, data: bytes, pieces: Sequence[tuple[int, int, list[bytes]]]) -> bytes | None:
    """Return a content with other lines in places: the first line, how many go, what comes; None without any."""
    if not pieces:
        return None
    if entry.whole:
        return b"".join(pieces[0][2])
    code = Encoding(entry.encoding, newline="\n".encode(entry.encoding))
    mark = mark_of(entry.encoding) if data.startswith(mark_of(entry.encoding)) else b""
    lines = split(data[len(mark) :], code)
    for start, count, new in reversed(pieces):
        lines[start : start + count] = new
    return mark + b"".join(lines)


def printable(path: str) -> str:
    """Return a path of the tree, or a link's target, as results show it."""
    return names.show(os.fsencode(path))

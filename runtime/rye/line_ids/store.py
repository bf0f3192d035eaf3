"""Where a file's line index is stored between calls, and where lines begin in large files.

`<cache>/tools/read/line_index/<name>.json` holds the fields of the RYE line cache (`file_path`, `content_hash`,
`last_modified`, `lines: [{id, line_num, content_hash}]`) and what persistent IDs need besides. For a file of more than
`ALL_IDS_MAX` lines, `lines` lists only those that were shown, without their digests; `<name>.<digest>.lines` beside it holds 8
bytes of the digest of each line, and the record names it by its SHA-256. `<name>.points` is such a record without lines and
digests: it tells where lines begin in a large file that was looked at without line IDs.

Every record bears the seal of `rye.workspace.seals`. A file here that is corrupt, cut short or of another version counts as
missing. One that another user space sealed is left alone: `<name>-<space>.json` stands beside it. That an index existed is
remembered in the user's state folder, so that the one which replaces it takes a new epoch.
"""

from __future__ import annotations

import json
import os
from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from itertools import groupby
from typing import Any

from rye.config import user_dirs
from rye.errors import WorkspaceError
from rye.fs import atomic, names, stamps
from rye.line_ids.addresses import Addresses
from rye.line_ids.index import Index, LineEnd, LineId, Runs, fresh
from rye.plain_class import Record, changed, field
from rye.workspace import cache, seals
from rye.workspace.encoding import Encoding
from rye.workspace.text import Checkpoints, Text
from rye.workspace.workspace import Identity, OpenFile, Workspace

FOLDER = ("tools", "read", "line_index")
_PLACE = "/".join((".ai", "cache", *FOLDER, ""))
MOST_FILES, MOST_BYTES = 50_000, 1 << 30
"""Beyond this what was stored longest ago is dropped."""
_FORMAT = 6
_SUFFIXES = {"line_index": ".json", "points": ".points"}
_LOOKED_BYTES = 1 << 22
# What stands behind what a view changes. A record of another version may have another order.
_REST = b'],"format":%d' % _FORMAT
_DAMAGED = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
# A state of the file is trusted by its times only when they are older than the clock's grain.
_SETTLED_NS = 50_000_000

Stamp = tuple[int, int, int, int, int]


class Stored(Record):
    """A stored index; its digests may still be on the disk only.

    Attributes:
        index: without digests when `dense` was not asked for and they lie in the binary.
        encoding: of the file when indexed.
        stamp: (device, inode, size, mtime_ns, ctime_ns) under which the content is known, or None.
        points: the checkpoints, for a large file; for a small one where they are known.
        count: lines of the file.
        modified: when the file was last changed (seconds), which is for readers of the cache alone.
        dense: names the binary that holds the digests of a large file; empty where they are to be written.
        views: what was found to be no news to this record, as `index.note_shown` takes it. Such a view stays no news until an
            edit, which makes another record.
    """

    index: Index
    encoding: Encoding
    stamp: Stamp | None
    points: Checkpoints | None
    count: int
    modified: int = 0
    dense: str = ""
    views: set[tuple[int, int, bool]] = field(factory=set)


def stamp_of(info: os.stat_result) -> Stamp:
    """Return what of a file's state changes whenever its content does, clock grain aside."""
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def same_state(one: os.stat_result, other: os.stat_result) -> bool:
    """Tell whether two states of a file have the same stamp."""
    return stamp_of(one) == stamp_of(other)


def settled(stamp: Stamp, looked: int) -> bool:
    """Tell whether a change after the moment `looked` (nanoseconds), when the stamp was taken, must show in the times.

    Not of the present moment: reading a large file, or waiting for a processor, takes longer than the clock's grain.
    """
    return stamps.settled(stamp[3], looked - _SETTLED_NS) and stamps.settled(stamp[4], looked - _SETTLED_NS)


def load(ws: Workspace, path: bytes, *, dense: bool) -> Stored | None:
    """Return the stored index of a file (physical project-relative path), or None where there is no valid one."""
    known = _checked.get((user_dirs.user_ai(), ws.identity, path))
    if known is not None and known.stamp is not None and record_stamp(ws, path) == known.stamp:
        return _detached(known.stored)
    first = cache.name_of(path)
    with cache.folder(ws, *FOLDER) as fd:
        # Both before the record is read: a change after that must be noticed.
        now, stamp = stamps.clock(), stamps.stamp(f"{first}.json", fd)
        key = seals.secret(ws)
        name, raw = seals.own(fd, key, first, ".json")
        if raw is None:
            return None
        if stamp is not None and (name != first or not stamps.settled(stamp[3], now)):
            stamp = None
        try:
            if known is not None and (known.key, known.raw) == (key, raw):
                _remember(ws, path, _Known(key, raw, stamp, known.stored))
                return _detached(known.stored)
            stored = _parsed(fd, path, key, name, raw, "line_index", dense=dense)
            if stored is not None and stored.points is None:
                _remember(ws, path, _Known(key, raw, stamp, _detached(stored)))
            return stored
        except _DAMAGED:
            return None


def record_stamp(ws: Workspace, path: bytes) -> stamps.Stamp | None:
    """Return the stamp of a file's record in the project's own cache; None where there is none, or it cannot be told."""
    found = stamps.stamp(f"{_PLACE}{cache.name_of(path)}.json", ws.fd)
    return None if found == stamps.UNKNOWN else found


class _Known(Record):
    """A record that this process has decoded and checked; `stamp` is of its file, where that tells of every change."""

    key: bytes
    raw: bytes
    stamp: stamps.Stamp | None
    stored: Stored


# By user space, project and path.
_checked: dict[tuple[str, Identity, bytes], _Known] = {}
_REMEMBERED, _REMEMBERED_BYTES = 500, 16 << 20  # records; decoded, they take some times as much


def _remember(ws: Workspace, path: bytes, known: _Known) -> None:
    """Remember what a file's record says: the next call in this process need not decode it, nor read it where it stands."""
    at = user_dirs.user_ai(), ws.identity, path
    # Emptied at once: a long process that looks at many files pays one decode each for it, and no bookkeeping. Other threads
    # add theirs meanwhile.
    held = [len(one.raw) for one in list(_checked.values())] if at not in _checked else []
    if len(held) >= _REMEMBERED or sum(held) > _REMEMBERED_BYTES:
        _checked.clear()
    _checked[at] = known


def _detached(stored: Stored) -> Stored:
    """Return a copy that may be changed without changing the original."""
    old = stored.index
    return changed(stored, index=changed(old, marks=dict(old.marks), versions=list(old.versions), dead=dict(old.dead)))


def _parsed(fd: int, path: bytes, key: bytes, name: str, raw: bytes, kind: str, *, dense: bool) -> Stored | None:
    """Return what a record of a kind says: its seal proves that it is as `save` wrote it."""
    record = seals.unsealed(key, f"{kind} {name}", raw)
    if record["format"] != _FORMAT or names.parse(record["file_path"]) != path:
        return None
    total, width, rows = record["total_lines"], 32, record["lines"]
    points, binary = None, ""
    digests: bytes | None
    if "dense" in record:
        width, binary, points = 8, record["dense"], _unpacked(record["points"])
        digests = _load_digests(fd, f"{name}.{binary}.lines", binary, total, read=dense) if binary else b""
    else:
        digests = b"".join([bytes.fromhex(row["content_hash"].removeprefix("sha256:")) for row in rows])
    if digests is None:
        return None
    loose = bytes.fromhex(record["loose"])
    near, shown, told = (_expand(record[name]) for name in ("near", "shown", "told"))
    marks = {
        row["line_num"] - 1: LineId(row["id"], loose[at * 8 : at * 8 + 8], near[at], shown[at], told[at] == 1)
        for at, row in enumerate(rows)
    }
    index = Index(
        record["epoch"],
        record["content_hash"].removeprefix("sha256:"),
        digests,
        width,
        marks,
        Runs(record["ages"]),
        record["revision"],
        record["counter"],
        [(revision, content) for revision, content in record["versions"]],
        {name: LineEnd(*line_end) if line_end else None for name, line_end in record["dead"].items()},
        record.get("id_epoch", 0),
        record["numbers"],
        Addresses(record["short"]),
    )
    stamp = record["stamp"]
    known = (stamp[0], stamp[1], stamp[2], stamp[3], stamp[4]) if stamp else None
    return Stored(index, encoding_of(*record["encoding"]), known, points, total, record["last_modified"], binary)


def _expand(runs: list[tuple[int, int]]) -> list[int]:
    """Return the values of runs."""
    return [value for length, value in runs for _ in range(length)]


def _collapse(values: Iterable[int]) -> list[tuple[int, int]]:
    return [(len([*run]), value) for value, run in groupby(values)]


def _load_digests(fd: int, file: str, wanted: str, lines: int, *, read: bool) -> bytes | None:
    """Return the digests that a sealed record names, nothing without `read`; None where they are not there."""
    if not read:
        with suppress(OSError):
            return b"" if os.stat(file, dir_fd=fd, follow_symlinks=False).st_size == 8 * lines else None
        return None
    digests = cache.read(fd, file, 8 * lines)
    return digests if digests is not None and len(digests) == 8 * lines and _digest(digests) == wanted else None


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:32]


def _packed(points: Checkpoints) -> str:
    return b64encode(points.lines.tobytes() + points.offsets.tobytes()).decode()


def _unpacked(text: str) -> Checkpoints:
    """Return checkpoints that a sealed record holds."""
    numbers = array("Q", b64decode(text))
    half = len(numbers) // 2
    return Checkpoints(numbers[:half], numbers[half:])


def of_state(index: Index, encoding: Encoding, info: os.stat_result, points: Checkpoints, *, looked: int = 0) -> Stored:
    """Return what is to be stored of a file whose content was read while its state was `info`, taken at `looked` or later.

    After a change of our own, `looked` is 0: that state is too young to be known by its times.
    """
    stamp = stamp_of(info)
    return Stored(index, encoding, stamp if settled(stamp, looked) else None, points, index.count, max(0, int(info.st_mtime)))


def save(ws: Workspace, path: bytes, stored: Stored, kind: str = "line_index") -> Stored:
    """Store an index in place of the one of this kind that is stored of this file; return it. A known binary stays."""
    index, key = stored.index, seals.secret(ws)
    marks, known = index.marks.values(), _checked.get((user_dirs.user_ai(), ws.identity, path))
    # The last member is a list, whose end is that of `_REST`.
    seen = {
        "last_modified": stored.modified,
        "stamp": stored.stamp,
        "encoding": encoding_fields(stored.encoding),
        "shown": _collapse(mark.shown for mark in marks),
        "told": _collapse(int(mark.short_shown) for mark in marks),
    }
    with cache.folder(ws, *FOLDER) as fd:
        name, _ = seals.own(fd, key, cache.name_of(path), _SUFFIXES[kind])
        if index.width == 8 and not stored.dense and kind == "line_index":
            stored = changed(stored, dense=_digest(index.digests))
            # The binary first: after a crash in between, the old record still names the old binary.
            cache.write(fd, f"{name}.{stored.dense}.lines", index.digests)
        # Where the file was looked at and no more since a record, the rest of that is taken over.
        is_view = known is not None and known.key == key and known.stored.views is stored.views
        rest = (known.raw.partition(_REST)[2] if known is not None and is_view else b"") or _dump(path, stored)
        raw = seals.sealed(key, f"{kind} {name}", json.dumps(seen, separators=(",", ":"))[1:-2].encode() + _REST + rest)
        cache.write(fd, f"{name}{_SUFFIXES[kind]}", raw)
        if index.width == 32:
            _remember(ws, path, _Known(key, raw, None, _detached(stored)))
        _drop_other_dense(fd, name, stored.dense)
        prune(fd)
    return stored


def encoding_fields(encoding: Encoding) -> list[Any]:
    """Return an encoding as `encoding_of` reads it."""
    return [encoding.name, encoding.bom.hex(), encoding.newline.hex(), encoding.certain]


def _dump(path: bytes, stored: Stored) -> bytes:
    """Return what a view changes nothing of, as it follows `_REST`, with one row a line; the rows' values need no escaping."""
    index = stored.index
    marks = index.marks.values()
    record: dict[str, Any] = {
        "file_path": names.show(path),
        "content_hash": f"sha256:{index.content_hash}",
        "total_lines": stored.count,
        "epoch": index.epoch,
        "revision": index.revision,
        "counter": index.counter,
        "versions": index.versions,
        "ages": index.ages.part(0, stored.count),
        "dead": index.dead,
        **({"id_epoch": index.id_epoch} if index.id_epoch else {}),
        "loose": b"".join([mark.loose for mark in marks]).hex(),
        "numbers": index.numbers,
        "short": index.addresses.runs,
        "near": _collapse(mark.near for mark in marks),
    }
    if index.width == 8:
        record |= {"dense": stored.dense, "points": _packed(stored.points or Checkpoints(array("Q", [0]), array("Q", [0])))}
    head = json.dumps(record, separators=(",", ":"))[1:-1]
    digests = index.digests.hex() if index.width == 32 else ""
    rows = [
        f'{{"id":"{mark.id}","line_num":{at + 1},"content_hash":"sha256:{digests[at * 64 : (at + 1) * 64]}"}}'
        if digests
        else f'{{"id":"{mark.id}","line_num":{at + 1}}}'
        for at, mark in index.marks.items()
    ]
    return f',{head},"lines":[{",".join(rows)}]}}'.encode("ascii")


def encoding_of(name: str, bom: str, newline: str, certain: bool) -> Encoding:
    """Return the encoding that was stored so."""
    return Encoding(name, bytes.fromhex(bom), bytes.fromhex(newline), certain)


def _drop_other_dense(fd: int, name: str, digest: str) -> None:
    """Remove the binary that an older state used."""
    for entry in os.listdir(fd) if digest else ():
        if entry.startswith(f"{name}.") and entry.endswith(".lines") and entry != f"{name}.{digest}.lines":
            # No call makes a folder here: what a clone brought stays.
            with suppress(OSError):
                os.unlink(entry, dir_fd=fd)


def prune(fd: int) -> None:
    """Remove what was stored longest ago, beyond the bounds; looks at about one call of 256."""
    with suppress(OSError):
        atomic.prune(f"/proc/self/fd/{fd}", MOST_FILES, MOST_BYTES, every=256)


def save_looked(ws: Workspace, file: OpenFile, text: Text) -> None:
    """Store where the lines of a large file begin, in the state that it was opened in; that this cannot be is no failure."""
    stamp = stamp_of(file.stat)
    # A write in the same tick of the clock would leave the stamp as it is.
    if settled(stamp, file.looked):
        with suppress(OSError, WorkspaceError):
            save(ws, file.path, Stored(fresh(0, "", b"", 8), text.encoding, stamp, text.points, text.count), "points")


def load_looked(ws: Workspace, path: bytes) -> Stored | None:
    """Return what `save_looked` stored of a file: without line IDs and digests; None if nothing is."""
    with suppress(WorkspaceError, OSError, *_DAMAGED), cache.folder(ws, *FOLDER) as fd:
        key = seals.secret(ws)
        name, raw = seals.own(fd, key, cache.name_of(path), _SUFFIXES["points"], _LOOKED_BYTES)
        return None if raw is None else _parsed(fd, path, key, name, raw, "points", dense=False)
    return None

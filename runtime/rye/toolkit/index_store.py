"""Where a file's line index is kept between calls.

`<cache>/tools/read/line_index/<name>.json` holds the fields of the RYE line cache (`file_path`, `content_hash`,
`last_modified`, `lines: [{id, line_num, content_hash}]`), what persistent IDs need besides, and a check sum of it all. For a
file of more than `ALL_IDS_MAX` lines, `lines` lists only those that were shown (with 8 bytes of their digests), and
`<name>.<crc>.lines` beside it holds the checkpoints and all digests in binary.

A file here that is corrupt, cut short, foreign or of another version counts as missing. That an index existed is
remembered in the user's state folder, so that the one which replaces it takes a new epoch.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import time
import zlib
from array import array
from typing import TYPE_CHECKING, Any

from rye import state
from rye.record import Record, changed
from rye.toolkit import cache, names
from rye.toolkit.encoding import restored
from rye.toolkit.lines import ALL_IDS_MAX, EPOCHS, Fate, Index, Mark
from rye.toolkit.runs import Runs
from rye.toolkit.text import Checkpoints

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rye.toolkit.encoding import Encoding
    from rye.toolkit.workspace import Workspace

FOLDER = ("tools", "read", "line_index")
UNUSED_DAYS = 30
_FORMAT = 2
_MAGIC = b"RYELINES"
# magic, format, digest width, lines, checkpoints, their CRC-32
_HEAD = struct.Struct("<8sHHQQI")
_DAY = 86_400
# A state of the file is trusted by its times only when they are older than the clock's grain.
_SETTLED_NS = 50_000_000

Stamp = tuple[int, int, int, int, int]


class Stored(Record):
    """A kept index, its digests perhaps left on disk.

    Attributes:
        index: without digests when `dense` was not asked for and they lie in the binary.
        encoding: of the file when indexed.
        stamp: (device, inode, size, mtime_ns, ctime_ns) under which the content is known, or None.
        points: the checkpoints, for a large file.
        count: lines of the file.
    """

    index: Index
    encoding: Encoding
    stamp: Stamp | None
    points: Checkpoints | None
    count: int


def stamp_of(info: os.stat_result) -> Stamp:
    """Return what of a file's state changes whenever its content does, clock grain aside."""
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def settled(stamp: Stamp) -> bool:
    """Tell whether a later change must show in the times."""
    return max(stamp[3], stamp[4]) + _SETTLED_NS < time.time_ns()


def load(ws: Workspace, path: bytes, *, dense: bool) -> Stored | None:
    """Return the kept index of a file (physical project-relative path), or None where there is none that holds."""
    with cache.folder(ws, *FOLDER) as fd:
        name = cache.name_of(path)
        raw = cache.read(fd, f"{name}.json")
        if raw is None:
            return None
        known = _checked.get((ws.root, path))
        try:
            if known is not None and known[0] == raw:
                _touch(fd, f"{name}.json")
                return _detached(known[1])
            record = unsealed(raw)
            if record["format"] != _FORMAT or names.parse(record["file_path"]) != path:
                return None
            _touch(fd, f"{name}.json", *([f"{name}.{_word(record['dense'])}.lines"] if "dense" in record else []))
            stored = _stored(fd, record, path, dense=dense)
            if stored is not None and stored.points is None:
                if len(_checked) >= _REMEMBERED:
                    _checked.clear()
                _checked[ws.root, path] = raw, _detached(stored)
            return stored
        except (ValueError, LookupError, TypeError, AttributeError, struct.error, OverflowError, RecursionError):
            return None


# Indexes that this process has decoded and checked, by root and path, with the very bytes they were read from.
_checked: dict[tuple[str, bytes], tuple[bytes, Stored]] = {}
_REMEMBERED = 64


def _detached(stored: Stored) -> Stored:
    """Return a copy that may be changed without changing the original."""
    old = stored.index
    return changed(stored, index=changed(old, marks=dict(old.marks), versions=list(old.versions), dead=dict(old.dead)))


def _touch(fd: int, *files: str) -> None:
    """Mark an entry as used, at most once a day, so that pruning spares it."""
    if time.time() - os.stat(files[0], dir_fd=fd).st_mtime > _DAY:
        for file in files:
            with contextlib.suppress(OSError):
                os.utime(file, dir_fd=fd, follow_symlinks=False)


def _stored(fd: int, record: dict[str, Any], path: bytes, *, dense: bool) -> Stored | None:
    total, width = whole(record["total_lines"]), 32
    digests, points = b"", None
    rows = record["lines"]
    if "dense" in record:
        width = 8
        binary = _load_dense(fd, f"{cache.name_of(path)}.{_word(record['dense'])}.lines", total, dense=dense)
        if binary is None:
            return None
        points, digests = binary
    else:
        digests = b"".join([bytes.fromhex(row["content_hash"].removeprefix("sha256:")) for row in rows])
        if len(digests) != 32 * total or [row["line_num"] for row in rows] != list(range(1, total + 1)):
            return None
    loose = bytes.fromhex(record["loose"])
    near, shown = _expand(record["near"]), _expand(record["shown"])
    marks = {
        whole(row["line_num"]) - 1: Mark(_word(row["id"]), loose[at * 8 : at * 8 + 8], near[at], shown[at])
        for at, row in enumerate(rows)
    }
    dead = {_word(name): _fate(*fate) if fate else None for name, fate in record["dead"].items()}
    alive = {mark.id for mark in marks.values()}
    ages = Runs((whole(a), whole(b)) for a, b in record["ages"])
    complete = len(alive) == len(rows) == len(marks) and not alive & dead.keys() and len(ages) == total
    if not complete or len(loose) != 8 * len(rows) or (marks and not 0 <= min(marks) <= max(marks) < total):
        return None
    if not 0 < whole(record["epoch"]) < EPOCHS:
        return None
    index = Index(
        record["epoch"], record["content_hash"].removeprefix("sha256:"), digests, width, marks, ages,
        whole(record["revision"]), whole(record["counter"]), [(whole(a), _word(b)) for a, b in record["versions"]], dead,
    )  # fmt: skip
    encoding = encoding_of(*record["encoding"])
    stamp = record["stamp"]
    return Stored(index, encoding, (stamp[0], stamp[1], stamp[2], stamp[3], stamp[4]) if stamp else None, points, total)


def whole(value: object) -> int:
    """Return a number of a record; ValueError for anything else."""
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value


def _word(value: object) -> str:
    plain = isinstance(value, str) and value.isascii() and len(value) <= 64
    if not plain or not value.replace("-", "").replace("_", "").isalnum():  # type: ignore[attr-defined]
        raise ValueError(value)
    return value  # type: ignore[return-value]


def _fate(how: object, line: object, after: object, before: object, revision: object) -> Fate:
    after, before = (None if name is None else _word(name) for name in (after, before))
    return Fate(_word(how), whole(line), after, before, whole(revision))


def _expand(runs: list[tuple[int, int]]) -> list[int]:
    """Return the values of runs, each a revision or -1."""
    if sum(whole(length) for length, _ in runs) > 10_000_000:
        raise ValueError(runs)
    return [whole(value + 1) - 1 for length, value in runs for _ in range(length)]


def _collapse(values: Iterable[int]) -> list[tuple[int, int]]:
    return list(Runs((1, value) for value in values))


def _load_dense(fd: int, name: str, total: int, *, dense: bool) -> tuple[Checkpoints, bytes] | None:
    try:
        binary = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
    except OSError:
        return None
    try:
        magic, version, width, lines, points, check = _HEAD.unpack(os.pread(binary, _HEAD.size, 0))
        size = os.fstat(binary).st_size
        if (magic, version, width, lines) != (
            _MAGIC,
            _FORMAT,
            8,
            total,
        ) or size != _HEAD.size + 16 * points + 8 * lines:
            return None
        table = array("Q", os.pread(binary, 16 * points, _HEAD.size))
        if zlib.crc32(table) != check:
            return None
        digests = os.pread(binary, 8 * lines, _HEAD.size + 16 * points) if dense else b""
    finally:
        os.close(binary)
    checkpoints = Checkpoints(table[:points], table[points:])
    if (
        not points
        or checkpoints.lines[0]
        or any(a >= b for a, b in zip(checkpoints.lines, checkpoints.lines[1:], strict=False))
    ):
        return None
    if dense and zlib.crc32(digests, zlib.crc32(table.tobytes())) != int(name.split(".")[1], 16):
        return None
    return checkpoints, digests


def save(ws: Workspace, path: bytes, index: Index, encoding: Encoding, info: os.stat_result, points: Checkpoints) -> None:
    """Keep the index of a file whose content was read while its state was `info`.

    An index without digests (loaded with `dense=False`) keeps the binary that stands.
    """
    stamp = stamp_of(info)
    record: dict[str, Any] = {
        "format": _FORMAT, "file_path": names.show(path), "content_hash": f"sha256:{index.content_hash}",
        "last_modified": int(info.st_mtime), "total_lines": index.count,
        "stamp": stamp if settled(stamp) else None,
        "encoding": encoding_fields(encoding),
        "epoch": index.epoch, "revision": index.revision, "counter": index.counter, "versions": index.versions,
        "ages": list(index.ages), "dead": index.dead,
        "loose": b"".join([mark.loose for mark in index.marks.values()]).hex(),
        "near": _collapse(mark.near for mark in index.marks.values()),
        "shown": _collapse(mark.shown for mark in index.marks.values()),
    }  # fmt: skip
    name = cache.name_of(path)
    with cache.folder(ws, *FOLDER) as fd:
        if index.width == 8:
            record["dense"] = _save_dense(fd, name, index, points)
        cache.write(fd, f"{name}.json", _dump(record, index))
        _drop_other_dense(fd, name, record.get("dense"))
        prune(fd)


def encoding_fields(encoding: Encoding) -> list[Any]:
    """Return an encoding as `encoding_of` reads it."""
    return [encoding.name, encoding.bom.hex(), encoding.newline.hex(), encoding.certain]


def _dump(record: dict[str, Any], index: Index) -> bytes:
    """Write the record with one row a line; the rows' values need no escaping."""
    head = json.dumps(record, separators=(",", ":"))[:-1]
    rows = (
        f'{{"id":"{mark.id}","line_num":{at + 1},"content_hash":"sha256:{index.digest(at).hex()}"}}'
        for at, mark in index.marks.items()
    )
    body = f'{head},"lines":[{",".join(rows)}]}}'.encode("ascii")[1:]
    return sealed(body)


def encoding_of(name: str, bom: str, newline: str, certain: object) -> Encoding:
    """Return the encoding that was kept so. Errors as `encoding.restored`."""
    return restored(_word(name), bytes.fromhex(bom), bytes.fromhex(newline), certain=bool(certain))


def sealed(body: bytes) -> bytes:
    """Return a JSON object behind a check sum of it; `body` is all but its opening brace."""
    return _check_of(body) + body


def _check_of(body: bytes | memoryview) -> bytes:
    return b'{"check":"%08x",' % zlib.crc32(body)


def unsealed(raw: bytes) -> dict[str, Any]:
    """Return the record, if its check sum says that it is as it was written."""
    size = len(_check_of(b""))
    if raw[:size] != _check_of(memoryview(raw)[size:]):
        raise ValueError(raw[:size])
    record = json.loads(raw)
    if not isinstance(record, dict):
        raise TypeError(record)
    return record


def _save_dense(fd: int, name: str, index: Index, points: Checkpoints) -> str:
    table = points.lines.tobytes() + points.offsets.tobytes()
    crc = f"{zlib.crc32(index.digests, zlib.crc32(table)):08x}"
    head = _HEAD.pack(_MAGIC, _FORMAT, 8, index.count, len(points.lines), zlib.crc32(table))
    cache.write(fd, f"{name}.{crc}.lines", (head, table, index.digests))
    return crc


def note_shown(ws: Workspace, path: bytes, stored: Stored) -> None:
    """Keep new IDs and newly shown lines of an otherwise unchanged index, without rewriting its binary."""
    index, name = stored.index, cache.name_of(path)
    with cache.folder(ws, *FOLDER) as fd:
        raw = cache.read(fd, f"{name}.json")
        if raw is None:
            return
        record = unsealed(raw)
        del record["lines"], record["check"]
        if not index.digests and stored.count:
            binary = _load_dense(fd, f"{name}.{record['dense']}.lines", stored.count, dense=True)
            if binary is None:
                return
            index.digests = binary[1]
        record.update(
            counter=index.counter,
            loose=b"".join([mark.loose for mark in index.marks.values()]).hex(),
            near=_collapse(mark.near for mark in index.marks.values()),
            shown=_collapse(mark.shown for mark in index.marks.values()),
        )
        cache.write(fd, f"{name}.json", _dump(record, index))


def _drop_other_dense(fd: int, name: str, crc: str | None) -> None:
    """Remove the binary that an older state used."""
    if crc is None:
        return
    for entry in os.listdir(fd):
        if entry.startswith(f"{name}.") and entry.endswith(".lines") and entry != f"{name}.{crc}.lines":
            os.unlink(entry, dir_fd=fd)


def prune(fd: int) -> None:
    """Remove entries unused for 30 days; looks at most once a day."""
    try:
        if time.time() - os.stat(".pruned", dir_fd=fd).st_mtime < _DAY:
            return
    except FileNotFoundError:
        pass
    cache.write(fd, ".pruned", b"")
    limit = time.time() - UNUSED_DAYS * _DAY
    for entry in os.listdir(fd):
        try:
            if os.stat(entry, dir_fd=fd, follow_symlinks=False).st_mtime < limit:
                os.unlink(entry, dir_fd=fd)
        except OSError:
            # Another process took it, or it is a folder that is not ours.
            continue


def next_epoch(ws: Workspace, path: bytes) -> int:
    """Return the epoch for an index that begins anew, and remember that it was used.

    Where the state folder cannot be written, the epoch is drawn at random from those that no counting reaches soon.
    """
    try:
        from pathlib import Path

        folder = Path(state.state_dir(ws.root), "line_epochs")
        folder.mkdir(mode=0o700, exist_ok=True)
        file = folder / cache.name_of(path)
        try:
            epoch = int(file.read_text()) + 1
        except (FileNotFoundError, ValueError):
            epoch = 1
        fresh = folder / f".{file.name}.{os.urandom(4).hex()}"
        fresh.write_text(f"{epoch}\n")
        fresh.replace(file)
    except OSError:
        return 4_096 + int.from_bytes(os.urandom(4)) % (1 << 20)
    return epoch


__all__ = [
    "ALL_IDS_MAX", "FOLDER", "Stamp", "Stored", "encoding_fields", "encoding_of", "load", "next_epoch", "note_shown", "prune",
    "save", "sealed", "settled", "stamp_of", "unsealed", "whole",
]  # fmt: skip

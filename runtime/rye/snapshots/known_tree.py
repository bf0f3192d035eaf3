"""What is known of a project's tree since the last look, and which commands run in it; see `rye.snapshots.tree`.

It lies in `<state>/tree`, whose lock a look holds: `known` is a whole tree, and `known.log` has a line for each look after it,
with the folders that differ. It is stored behind the journal's entry for what the look found, so that a kill in between loses
nothing: to the next look what has an entry is no change (`rye.journal.own_edits`). What is damaged counts as unknown.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from rye.call import context
from rye.config import user_dirs
from rye.fs import atomic, stamps
from rye.fs.atomic import closing
from rye.snapshots.states import Folders, Running

_TREE: Final = "known"
_LOG: Final = "known.log"
_RUNNING: Final = "running.json"
PATIENCE: Final = 20.0
"""So long a look or an edit waits for another one (seconds)."""

PATIENCE_AT_END: Final = 120.0
"""So long a look waits that ends a command (seconds): what the command changed has happened already."""

_LARGEST: Final = 512 * 1024 * 1024
_DIGEST_BYTES: Final = 64
_VERSION: Final = 1
# A log is worked into the tree when it has grown beyond this (bytes), or beyond a quarter of the tree.
_LOG_BYTES: Final = 256 * 1024


class Known(NamedTuple):
    """A tree as it was at a look.

    Attributes:
        folders: its entries; never changed in place.
        newest: ID of the newest entry of the journal then; empty where there was none.
    """

    folders: Folders
    newest: str


def folder(root: str | int) -> Path:
    """Return the folder of the project's tree, which may not exist. Raises OSError."""
    return Path(f"{user_dirs.state_dir(root)}/tree")


@contextmanager
def locked(root: str | int, *, shared: bool = False, at_end: bool = False) -> Iterator[Path]:
    """Hold the project's tree; yields its folder. `at_end` of a command it waits longer, and heeds no deadline.

    Raises:
        OSError: the state folder cannot be used.
        WorkspaceError: `locked`: another process holds it on and on.
        DeadlineError: the call's time ran out.
    """
    where = folder(root)
    lock, patience = where / "lock", PATIENCE_AT_END if at_end else PATIENCE
    heed = (lambda: None) if at_end else context.check_deadline
    with atomic.in_order("the tree"), ExitStack() as stack:
        try:
            stack.enter_context(atomic.locked(lock, shared=shared, patience=patience, meanwhile=heed))
        except TimeoutError:
            # Imported here: the supervisor of a job takes this lock, and loads little.
            from rye.workspace import cache

            raise cache.lock_error(lock, str(lock), patience, "The record of what changes in this project") from None
        yield where


@contextmanager
def unlooked(root: str | int) -> Iterator[None]:
    """Let nobody look at the project's tree for the block: an edit of ours that began is seen with its record, or not at all.

    An edit beside a state folder that cannot be used is made all the same. Errors else as `locked`.
    """
    with ExitStack() as stack:
        # Also where nobody looked yet: the first look may begin meanwhile.
        with suppress(OSError):
            stack.enter_context(locked(root, shared=True))
        yield


# The trees read last, with the identity of their files: parsing one is most of the cost of a look that finds nothing.
_latest: dict[str, tuple[tuple[stamps.Stamp | None, ...], Known]] = {}
_MOST_TREES: Final = 4
_MOST_FOLDERS: Final = 20_000


def _identity(where: Path) -> tuple[stamps.Stamp | None, ...]:
    return tuple(stamps.stamp(f"{where}/{name}") for name in (_TREE, _LOG))


def load(where: Path) -> Known | None:
    """Return what is known of the tree, None where nothing is; the caller holds the lock of its folder."""
    found = _latest.get(str(where))
    if found is not None and found[0] == _identity(where):
        return found[1]
    # What another version of this program stored, too, counts as unknown.
    with suppress(LookupError, TypeError, AttributeError):
        base = _base(atomic.read(where / _TREE, _LARGEST) or b"")
        return None if base is None else _with_log(where, base)
    return None


def _base(data: bytes) -> Known | None:
    body = memoryview(data)[_DIGEST_BYTES:]
    if data[:_DIGEST_BYTES] != sha256(body).hexdigest().encode():
        return None
    record = json.loads(bytes(body))
    return Known(record["folders"], record["newest"]) if record["version"] == _VERSION else None


def _with_log(where: Path, base: Known) -> Known:
    data = atomic.read(where / _LOG, _LARGEST) or b""
    folders, newest, end = dict(base.folders), base.newest, 0
    for line in data.splitlines(keepends=True):
        record = _record(line)
        if record is None:
            break
        end += len(line)
        newest = record["newest"]
        for path, marks in record["folders"].items():
            if marks is None:
                folders.pop(path, None)
            else:
                folders[path] = marks
    if end < len(data):
        with suppress(OSError):
            os.truncate(where / _LOG, end)
    return Known(folders, newest)


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line[9:]) if int(line[:8], 16) == zlib.crc32(line[9:]) else None
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def store(where: Path, before: Known | None, now: Known) -> None:
    """Store a tree, once the journal has what differs in it from the one before. Raises OSError."""
    if before is None:
        _write_whole(where, now)
    else:
        differs: dict[str, Any] = {path: marks for path, marks in now.folders.items() if marks is not before.folders.get(path)}
        differs |= dict.fromkeys(before.folders.keys() - now.folders.keys())
        body = json.dumps({"newest": now.newest, "folders": differs}, separators=(",", ":")).encode() + b"\n"
        with closing(os.open(where / _LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)) as fd:
            os.write(fd, b"%08x %b" % (zlib.crc32(body), body))
    with suppress(OSError):
        grown = os.stat(where / _LOG).st_size
        if grown > _LOG_BYTES and grown > os.stat(where / _TREE).st_size // 4:
            _write_whole(where, now)
    remember(where, now)


def remember(where: Path, now: Known) -> None:
    """Remember the tree that is stored: the next look need not parse it."""
    _latest.pop(str(where), None)
    _latest[str(where)] = _identity(where), now
    # A server has few projects at a time; of large ones it remembers the last. Other threads have theirs remembered meanwhile.
    sizes = [(name, len(one.folders)) for name, (_, one) in list(_latest.items())]
    while len(sizes) > 1 and (len(sizes) > _MOST_TREES or sum(size for _, size in sizes) > _MOST_FOLDERS):
        _latest.pop(sizes.pop(0)[0], None)


def _write_whole(where: Path, now: Known) -> None:
    record = {"version": _VERSION, "newest": now.newest, "folders": now.folders}
    data = json.dumps(record, separators=(",", ":")).encode()
    atomic.write(where / _TREE, sha256(data).hexdigest().encode() + data, 0o600, durably=False)
    # A crash before this leaves lines that say what the tree says already.
    (where / _LOG).unlink(missing_ok=True)


def running(where: Path) -> list[Running]:
    """Return the commands that run, or were cut off."""
    found = atomic.read_json(where / _RUNNING) or {}
    out = []
    for token, one in found.items():
        with suppress(TypeError):
            out.append(Running(token=token, **one))
    return out


def set_running(where: Path, commands: list[Running]) -> None:
    """Store which commands run; with none there is no file. Raises OSError."""
    if not commands:
        (where / _RUNNING).unlink(missing_ok=True)
        return
    record = {one.token: {"tool": one.tool, "actor": one.actor, "about": one.about, "started": one.started} for one in commands}
    atomic.write(where / _RUNNING, json.dumps(record).encode(), 0o600, durably=False)


def is_known(root: str | int) -> bool:
    """Tell whether the project's tree was looked at."""
    try:
        return os.path.exists(folder(root) / _TREE)
    except OSError:
        return False


def is_running(root: str | int) -> bool:
    """Tell whether a command runs whose changes are recorded. One look at a name: every edit asks."""
    try:
        return os.path.exists(folder(root) / _RUNNING)
    except OSError:
        return False

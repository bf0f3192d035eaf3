"""Every change that file tools make, landed safely and recorded so that it can be undone.

An entry is one JSON file, `<state>/journal/<id>.json` (0600): the time, the tool, the path, the digests before and after, and
the splices with the raw lines removed and added and their IDs. Before the file is touched the entry stands as
`<state>/journal/pending/<id>.json`; so the next call after a crash can tell whether the change landed, complete or drop
the entry, and remove the temporary file it names. What a shell command changes is not recorded.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rye import state
from rye.errors import EditError, WorkspaceError
from rye.record import Record, as_dict, changed, field
from rye.toolkit import cache, config, index_store, profiles
from rye.toolkit.encoding import UTF8
from rye.toolkit.replace import digest_of, is_free, is_temporary, remove, replace, sweep, temporary_name
from rye.toolkit.text import split

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rye.toolkit.workspace import Place, Workspace

_DAY = 86_400


class Recorded(Record):
    """One splice of an entry, in the numbering of the text before.

    Attributes:
        start: first line (from 0).
        removed, added: raw lines, terminators included.
        removed_ids, added_ids: their IDs, None where a line had none.
        after_id, before_id: the IDs of the lines around, None at the ends of the file.
    """

    start: int
    removed: list[bytes]
    added: list[bytes]
    removed_ids: list[str | None] = field(factory=list)
    added_ids: list[str | None] = field(factory=list)
    after_id: str | None = None
    before_id: str | None = None


class Entry(Record):
    """One change of one file. `before` or `after` is None where the file did not exist. `encoding` is a codec name.

    A `whole` entry replaces, creates or deletes the file: its one splice holds the content before and after, split at LF bytes.
    `batch` names the commit of several files that it was a part of, `batch_size` says of how many. `mode` is kept of a deleted
    file (permission bits).
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


def new_entry(tool: str, path: str, before: str | None, after: str | None, encoding: str, splices: list[Recorded]) -> Entry:
    """Return an entry with a fresh ID (ordered by time)."""
    now = time.time()
    return Entry(f"{int(now * 1000):011x}{os.urandom(2).hex()}", now, tool, path, before, after, encoding, splices)


def undoing(entry: Entry, undoes: str) -> Entry:
    """Return an entry that undoes another one: its ID comes after that one's, whatever the clock says."""
    after = int(undoes[:11], 16) + 1
    return changed(entry, id=f"{max(int(entry.id[:11], 16), after):011x}{entry.id[11:]}", undoes=undoes)


def whole_entry(ws: Workspace, tool: str, place: Place, old: bytes | None, data: bytes | None) -> Entry:
    """Return the entry for a change of a whole file: all lines out, all lines in, with the IDs that the old ones have."""
    kept = None if old is None else index_store.load(ws, place.path, dense=False)
    removed = split(old or b"", UTF8)
    before, after = (None if content is None else digest_of(content) for content in (old, data))
    # The index of another content would name other lines.
    ids = {at: mark.id for at, mark in kept.index.marks.items()} if kept and kept.index.content_hash == before else {}
    recorded = Recorded(0, removed, split(data or b"", UTF8), [ids.get(at) for at in range(len(removed))])
    mode = stat.S_IMODE(place.stat.st_mode) if place.stat is not None and data is None else None
    return changed(new_entry(tool, place.shown, before, after, "utf-8", [recorded]), whole=True, mode=mode)


def hard_links(place: Place) -> list[str]:
    """Return the warning of a change that parts a file from its other hard links, if it has any."""
    if place.stat is None or place.stat.st_nlink < 2:
        return []
    return [f"{place.shown} had {place.stat.st_nlink} hard links; this one now holds the new content, the others the old."]


def land(ws: Workspace, place: Place, data: bytes | None, entry: Entry) -> list[str]:
    """Put `data` in place of what stands there (None: delete the file), recording the entry around it.

    The caller holds the file's lock. `entry.before` is the digest that must still stand there.

    Returns:
        Warnings for the caller's result.

    Raises:
        WorkspaceError: see `rye.toolkit.replace`; nothing was written.
        UsageError: `read_only_profile`, `bad_profile`; nothing was written.
        DeadlineError: the call's time is up; nothing was written.
    """
    profiles.refuse_changes(ws.root)
    warnings = hard_links(place)
    temporary = temporary_name()
    pending = _begin(ws, entry, temporary.decode())
    if pending is None:
        warnings.append("Not recorded for undo: the change is too large for the journal or the state folder cannot be written.")
    try:
        if data is None:
            free = remove(place, entry.before or "", temporary)
        else:
            free = replace(place, data, entry.before, temporary, entry.mode)
    except BaseException:
        # While something lies under the temporary name, the entry stays pending, for the next call to settle.
        if pending is not None and is_free(place, temporary):
            with contextlib.suppress(OSError):
                pending.unlink(missing_ok=True)
        raise
    if pending is not None and free:
        # The change has landed; an entry that stays pending is finished by the next change or undo.
        with contextlib.suppress(OSError):
            size = pending.stat().st_size
            _finish(pending)
            # To look at every entry takes longer than an edit: now and then is enough, or for one that weighs.
            if entry.id.endswith("0") or size > config.number("journal.max_bytes") // 64:
                trim(pending.parent.parent)
    return warnings


def folder(ws: Workspace) -> Path:
    """Return the folder of the project's journal, which may not exist."""
    return Path(state.state_dir(ws.root)) / "journal"


def _begin(ws: Workspace, entry: Entry, temporary: str) -> Path | None:
    """Write the entry as pending; None where it cannot or should not be kept."""
    path = None
    try:
        waiting = folder(ws) / "pending"
        waiting.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = _pack(entry, temporary)
        if len(data) > config.number("journal.max_bytes") // 2:
            data = _pack(emptied(entry), temporary)
        path = waiting / f"{entry.id}.json"
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
    except OSError:
        if path is not None:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        return None
    return path


def emptied(entry: Entry) -> Entry:
    """Return an entry without its lines: what is too large to keep is still listed."""
    return changed(entry, splices=[])


def _finish(pending: Path) -> None:
    pending.rename(pending.parent.parent / pending.name)


def _pack(entry: Entry, temporary: str) -> bytes:
    return dump(record_of(changed(entry, temporary=temporary)))


def dump(record: dict[str, Any]) -> bytes:
    """Return a record as it is kept: JSON, compressed where that is worth it."""
    text = json.dumps(record, separators=(",", ":")).encode("ascii")
    return zlib.compress(text, 1) if len(text) > 4_096 else text


def parse(data: bytes) -> dict[str, Any]:
    """Return the record that `dump` made.

    Raises:
        ValueError, zlib.error, RecursionError: it is none.
    """
    record: dict[str, Any] = json.loads(data if data.startswith(b"{") else zlib.decompress(data))
    return record


def record_of(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON values; bytes that are no UTF-8 travel as surrogates."""
    record = {**as_dict(entry), "splices": [as_dict(splice) for splice in entry.splices]}
    for splice in record["splices"]:
        for side in ("removed", "added"):
            splice[side] = [line.decode("utf-8", "surrogateescape") for line in splice[side]]
    return record


def entry_of(record: dict[str, Any]) -> Entry:
    """Return the entry that `record_of` turned into a record.

    Raises:
        KeyError, TypeError, AttributeError, ValueError: it is none.
    """
    for splice in record["splices"]:
        for side in ("removed", "added"):
            splice[side] = [line.encode("utf-8", "surrogateescape") for line in splice[side]]
    record["splices"] = [Recorded(**splice) for splice in record["splices"]]
    return Entry(**record)


def _load(path: Path) -> Entry | None:
    try:
        return entry_of(parse(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, zlib.error):
        return None


def entries(ws: Workspace) -> Iterator[Entry]:
    """Yield the recorded changes, newest first; unreadable files are passed over."""
    return (entry for entry in map(kept, files(ws)) if entry is not None)


def files(ws: Workspace) -> list[Path]:
    """Return the files of the recorded changes, newest first."""
    try:
        return sorted(folder(ws).glob("*.json"), reverse=True)
    except OSError:
        return []


def kept(path: Path) -> Entry | None:
    """Return an entry that is not past its age; one that is counts as gone, also where trimming has not come by yet."""
    try:
        aged = path.stat().st_mtime < _oldest()
    except OSError:
        return None
    return None if aged else _load(path)


def _oldest() -> float:
    return time.time() - config.number("journal.max_age_days") * _DAY


def find(ws: Workspace, entry_id: str) -> Entry:
    """Return one entry.

    Raises:
        EditError: `unknown_entry`.
    """
    if entry_id.isalnum():
        entry = kept(folder(ws) / f"{entry_id}.json")
        if entry is not None:
            return entry
    raise EditError(
        "unknown_entry",
        f"There is no change {entry_id!r} in this project's journal.",
        "Call undo(list=true) to see them.",
    )


def trim(folder: Path) -> None:
    """Drop the oldest JSON files of a folder beyond the configured bytes and age."""
    limit = config.number("journal.max_bytes")
    oldest = _oldest()
    total = 0
    with os.scandir(folder) as listing:
        found = [(entry.name, entry.stat()) for entry in listing if entry.name.endswith(".json")]
    for name, info in sorted(found, reverse=True):
        total += info.st_size
        if total > limit or info.st_mtime < oldest:
            (folder / name).unlink(missing_ok=True)


def recover(ws: Workspace) -> None:
    """Settle changes that a crash left pending; called before every change and before undo.

    An entry whose file another process holds locked is left alone: it is at work.
    """
    try:
        pending = list((folder(ws) / "pending").glob("*.json"))
    except OSError:
        return
    for path in pending:
        entry = _load(path)
        if entry is None:
            drop_if_old(path)
            continue
        try:
            _settle(ws, path, entry)
        except WorkspaceError as err:
            if err.code == "file_not_found":
                # Its folder is gone, and the temporary file with it.
                path.unlink(missing_ok=True)
        except OSError:
            continue


def drop_if_old(path: Path) -> None:
    """A record cut short by a crash: the change had not begun. Another process may be writing it just now."""
    try:
        if time.time() - path.stat().st_mtime > 60:
            path.unlink(missing_ok=True)
    except OSError:
        return


def _settle(ws: Workspace, path: Path, entry: Entry) -> None:
    from rye.toolkit import names

    with cache.locked(ws, names.parse(entry.path), wait=False):
        if not path.exists():
            return
        temporary = entry.temporary.encode()
        if not is_temporary(temporary):
            path.unlink(missing_ok=True)
            return
        landed = _landed(ws, entry, temporary)
        with ws.place(entry.path) as place:
            sweep(place, temporary, entry.before, entry.after, landed=landed)
        if landed:
            _finish(path)
        else:
            path.unlink(missing_ok=True)


def _landed(ws: Workspace, entry: Entry, temporary: bytes) -> bool:
    """Tell whether the change took effect: the new content stands there, or the old one was displaced."""
    try:
        with ws.file(entry.path) as file:
            now = digest_of(file.read())
    except WorkspaceError as err:
        if err.code != "file_not_found":
            raise
        now = None
    if now == entry.after:
        return True
    if now == entry.before or entry.before is None:
        return False
    with ws.place(entry.path) as place:
        try:
            fd = os.open(temporary, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.dir_fd)
        except OSError:
            return False
        with os.fdopen(fd, "rb") as file_:
            return digest_of(file_.read()) == entry.before

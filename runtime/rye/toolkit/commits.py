"""Changing several files in one step: all of them or none, also where a crash comes between two renames.

While a commit is under way one record stands in the state folder, `<state>/journal/commits/<id>.<phase>` (0600): an entry
of the journal for each file, with the temporary name beside it. The phase is the suffix, so that it changes by one rename:

    prepare   the new files are being written under their temporary names; nothing is in place yet
    commit    all of them are durable; from here the commit is finished, whoever finishes it
    abort     something else stood in the way of a file: those already in place are taken back
    done      all files are in place; the entries go to the journal and the displaced contents go

Whoever comes first after a crash settles what is left (`recover`): it finishes a commit, or takes it back when a file holds
neither its old nor its new content. Such a file is never touched; the content that was meant for it, or was displaced from it,
is kept beside it as `.rye-conflict`. The folder exists only while a record does: to look costs one `stat`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rye import state
from rye.errors import WorkspaceError
from rye.record import Record, changed
from rye.toolkit import cache, config, journal, names, profiles
from rye.toolkit.commit_steps import Step, clear, leave, look, prepare, take_back, turn
from rye.toolkit.output import deadline
from rye.toolkit.refusals import system_failure
from rye.toolkit.replace import conflict, digest_of, is_temporary, sync_directory, temporary_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rye.toolkit.journal import Entry
    from rye.toolkit.workspace import Place, Workspace

_PHASES = (".prepare", ".commit", ".abort", ".done")
_PATIENCE = 1.0
_GONE = ("file_not_found", "not_a_directory", "is_directory", "not_regular_file", "path_outside", "protected_path")


class Change(Record):
    """One file of a commit.

    Attributes:
        place: where it stands or will stand, held open.
        expected: SHA-256 (hex) of what must stand there; None when nothing may.
        data: the new content; None deletes the file.
        entry: what the journal shall say of it; made here where it is None.
        mode: permission bits of a new file (default 0666 less the umask).
    """

    place: Place
    expected: str | None
    data: bytes | None
    entry: Entry | None = None
    mode: int | None = None


class Committed(NamedTuple):
    """What a commit made: the journal's entries, in the order of the changes, and warnings for the caller's result."""

    entries: list[str]
    warnings: list[str]


def commit(ws: Workspace, changes: Sequence[Change], tool: str, batch: str | None = None) -> Committed:
    """Make all changes, or none, and record each in the journal under `batch`.

    Args:
        ws: the workspace.
        changes: of different files, whose locks the caller holds (`cache.locked`).
        tool: item id for entries that are made here.
        batch: names the commit in the journal; a fresh name if None.

    Raises:
        WorkspaceError: `conflict` when a file is not as expected; `state_unwritable` where nothing could be recorded;
            `no_space` … from the system: no file was changed. Only after `unsettled` the next call settles what became of them.
        UsageError: `read_only_profile`, `bad_profile`; nothing was changed.
        DeadlineError: the call's time is up; nothing was changed.
    """
    profiles.refuse_changes(ws.root)
    entries = _apart([changed(_entry(ws, change, tool, batch), batch_size=len(changes)) for change in changes])
    steps = [Step(change.place, entry) for change, entry in zip(changes, entries, strict=True)]
    with deadline().commit():
        record = _begin(ws, steps, batch or entries[0].id)
        try:
            for step, change in zip(steps, changes, strict=True):
                prepare(step, change.data)
            for fd in {os.fstat(step.place.dir_fd).st_ino: step.place.dir_fd for step in steps}.values():
                sync_directory(fd)
            record = _advance(record, ".commit")
        except BaseException as err:
            _drop(record, steps)
            if isinstance(err, OSError):
                raise system_failure(err, "The commit of several files") from None
            raise
        record = _go_through(ws, record, steps)
    with contextlib.suppress(OSError):
        # The commit is made; a record that stays is finished by the next call.
        _finish(ws, record, steps)
    return Committed([entry.id for entry in entries], [said for step in steps for said in journal.hard_links(step.place)])


def _apart(entries: list[Entry]) -> list[Entry]:
    """Return the entries with IDs that differ, made in one millisecond as they are."""
    out: dict[str, Entry] = {}
    for entry in entries:
        name = entry.id
        while name in out:
            name = entry.id[:-4] + os.urandom(2).hex()
        out[name] = changed(entry, id=name)
    return list(out.values())


def _entry(ws: Workspace, change: Change, tool: str, batch: str | None) -> Entry:
    entry = change.entry
    if entry is None:
        old = None
        if change.place.stat is not None:
            with ws.file(change.place.shown) as file:
                old = file.read()
        if (None if old is None else digest_of(old)) != change.expected:
            raise conflict(change.place)
        entry = journal.whole_entry(ws, tool, change.place, old, change.data)
    mode = change.mode if change.mode is not None else entry.mode
    return changed(entry, batch=batch, mode=mode, temporary=temporary_name().decode())


def _go_through(ws: Workspace, record: Path, steps: Sequence[Step]) -> Path:
    """Put every file in place; on a failure take back those that are, and raise it."""
    try:
        for step in steps:
            turn(step, step.entry.before, step.entry.after)
    except (OSError, WorkspaceError) as err:
        try:
            record = _advance(record, ".abort")
            left = take_back(steps, keep_staged=False)
        except (OSError, WorkspaceError) as worse:
            raise _unsettled(worse) from None
        _drop(record, steps)
        if left:
            _note(ws, record.stem, left)
        raise err if isinstance(err, WorkspaceError) else system_failure(err, "The commit of several files") from None
    # Where this fails the next call finds all files in place, and goes on from there.
    with contextlib.suppress(OSError):
        record = _advance(record, ".done")
    return record


# --- the record ---


def _folder(ws: Workspace) -> Path:
    return Path(state.commits_dir(ws.real))


def _begin(ws: Workspace, steps: Sequence[Step], name: str) -> Path:
    entries = [journal.record_of(step.entry) for step in steps]
    data = journal.dump({"entries": entries})
    if len(data) > config.number("journal.max_bytes") // 2:
        data = journal.dump({"entries": [journal.record_of(journal.emptied(step.entry)) for step in steps]})
    for _ in range(16):
        try:
            folder = _folder(ws)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = folder / f"{name}.prepare"
            fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            break
        except FileNotFoundError:
            # Another commit ended, and took the empty folder away.
            continue
        except OSError as err:
            raise _unwritable(err) from None
    else:
        raise _unwritable(FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _sync(folder)
    except OSError as err:
        _drop(path, ())
        raise _unwritable(err) from None
    return path


def _unwritable(err: OSError) -> WorkspaceError:
    return WorkspaceError(
        "state_unwritable", f"The user's state folder cannot be written ({err.strerror}), and without a record there several "
        "files cannot be changed as one. Nothing was written.",
        "Make it writable, set USER_SPACE to a folder that is, or change the files one by one.",
    )  # fmt: skip


def _unsettled(err: Exception) -> WorkspaceError:
    return WorkspaceError(
        "unsettled", f"The commit could not be finished nor taken back now ({err}).",
        "The next call in this project settles it, all or nothing; check the disk, then call undo(list=true).",
    )  # fmt: skip


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_directory(fd)
    finally:
        os.close(fd)


def _advance(record: Path, phase: str) -> Path:
    """Move the commit to a phase, durably."""
    moved = record.with_suffix(phase)
    record.rename(moved)
    try:
        _sync(record.parent)
    except OSError:
        moved.rename(record)
        raise
    return moved


def _drop(record: Path, steps: Sequence[Step]) -> None:
    """Remove what a commit that is no more has left; the record last, and only when nothing else is left."""
    free = [clear(step) for step in steps]
    if all(free):
        with contextlib.suppress(OSError):
            for phase in _PHASES:
                record.with_suffix(phase).unlink(missing_ok=True)
            record.parent.rmdir()


def _finish(ws: Workspace, record: Path, steps: Sequence[Step]) -> None:
    """Put the entries into the journal and remove the displaced contents."""
    if record.suffix != ".done":
        return
    kept = journal.parse(record.read_bytes())["entries"]
    folder = journal.folder(ws)
    for entry in kept:
        fresh = folder / f".{entry['id']}.new"
        fresh.touch(mode=0o600)
        fresh.write_bytes(journal.dump(entry))
        fresh.replace(folder / f"{entry['id']}.json")
    _drop(record, steps)
    journal.trim(folder)


# --- after a crash ---


def recover(ws: Workspace) -> list[str]:
    """Settle what a crash left, of single changes and of commits; return what is to be said of the latter.

    What another process holds locked is left alone: it is at work.
    """
    journal.recover(ws)
    return settle(ws)


def settle(ws: Workspace) -> list[str]:
    """Settle commits that a crash cut off; return what became of them, and which files were left alone."""
    if not _folder(ws).is_dir():
        return []
    said: list[str] = []
    try:
        records = sorted(_folder(ws).iterdir())
    except OSError:
        return []
    for path in records:
        try:
            said += _settle(ws, path)
        except (OSError, WorkspaceError):
            # Locked, or trouble with the disk: it stays, for the next call.
            continue
    with contextlib.suppress(OSError):
        _folder(ws).rmdir()
    return said


def _load(path: Path) -> list[Entry] | None:
    try:
        record: dict[str, Any] = journal.parse(path.read_bytes())
        entries = [journal.entry_of(entry) for entry in record["entries"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, zlib.error):
        return None
    return entries if all(is_temporary(entry.temporary.encode()) for entry in entries) else None


def _settle(ws: Workspace, path: Path) -> list[str]:
    if path.suffix not in _PHASES or (entries := _load(path)) is None:
        journal.drop_if_old(path)
        return []
    paths = [names.parse(entry.path) for entry in entries]
    with cache.locked(ws, *paths, patience=_PATIENCE), ExitStack() as stack:
        if not path.exists():
            return []
        steps: list[Step] = []
        left: list[str] = []
        for entry in entries:
            try:
                place = stack.enter_context(ws.place(entry.path))
            except WorkspaceError as err:
                if err.code not in _GONE:
                    raise
                # The temporary file is gone with its folder; or what stands there is none of ours.
                left.append(f"{entry.path}: {err.message}")
                continue
            if place.path == names.parse(entry.path):
                steps.append(Step(place, entry))
            else:
                left.append(f"{entry.path} is a link to another place now, and left as it is.")
        said, more = _go_on(ws, path, steps)
        left += more
        if left:
            _note(ws, path.stem, left)
        return [f"{said} {line}" for line in left] or ([said] if said else [])


def _go_on(ws: Workspace, record: Path, steps: list[Step]) -> tuple[str, list[str]]:
    """Bring a commit that was cut off to its end, one or the other; return what to say, and of which files besides."""
    named = f"A change of {len(steps)} files ({record.stem}) that was cut off"
    left: list[str] = []
    if record.suffix == ".commit":
        standings = [look(step) for step in steps]
        if all(standing.ready for standing in standings):
            for step, standing in zip(steps, standings, strict=True):
                if not standing.landed:
                    turn(step, step.entry.before, step.entry.after)
                elif not standing.clean:
                    left += leave(step, standing)
            record = _advance(record, ".done")
        else:
            record = _advance(record, ".abort")
    if record.suffix == ".done":
        _finish(ws, record, steps)
        return f"{named} is finished now.", left
    if record.suffix == ".abort":
        left += take_back(steps, keep_staged=True)
    _drop(record, steps)
    return f"{named} was taken back.", left


def _note(ws: Workspace, batch: str, left: Sequence[str]) -> None:
    """Keep what is to be said of a commit's files that were left alone."""
    with contextlib.suppress(OSError):
        folder = journal.folder(ws) / "notes"
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / f"{batch}.json").write_bytes(journal.dump({"left": [*left]}))
        journal.trim(folder)


def notes(ws: Workspace, batch: str) -> list[str]:
    """Return what was kept of a commit's files that were left alone."""
    try:
        return [str(line) for line in journal.parse((journal.folder(ws) / "notes" / f"{batch}.json").read_bytes())["left"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError, zlib.error):
        return []

"""The record of a change of several files, and what is done after a crash: the change is finished, or taken back.

During a commit the state folder has one record, `<state>/journal/commits/<id>.<phase>` (0600): an entry
of the journal for each file, with the temporary name beside it. The phase is the suffix, so that it changes by one rename:

    prepare   the new files are being written under their temporary names; nothing is in place yet
    commit    all of them are durable; from here the commit is finished, whoever finishes it
    abort     a file has another content: the files already in place are taken back
    done      all files are in place; the entries go to the journal and the displaced contents go

The first process after a crash recovers what is left (`recover`): it finishes a commit, or takes it back when a file holds
neither its old nor its new content. Such a file is never touched; the content that was meant for it, or was displaced from it,
is stored beside it as `.rye-conflict`. The folder exists only while a record does: to look costs one `stat`.

A step is one file of a commit. Before it is applied, the temporary name holds the new content; afterwards it holds the old one.
So the digests under the two names tell how far a step came, to any process and at any time.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from rye.config import user_dirs
from rye.errors import WorkspaceError
from rye.fs import atomic, names
from rye.journal import entries, history, journal
from rye.journal.entries import Entry
from rye.workspace import cache
from rye.workspace.atomic_replace import conflict, digest_at, discard, is_temporary, keep, put, set_aside, stage
from rye.workspace.workspace import Place, Workspace

_PHASES = (".prepare", ".commit", ".abort", ".done")
WAIT_SECONDS = 1.0
_MOST_NOTES = 1_000
_GONE = ("file_not_found", "not_a_directory", "is_directory", "not_regular_file", "path_outside", "protected_path")


class Step(NamedTuple):
    """A change whose new content is, or was, under the entry's temporary name."""

    place: Place
    entry: Entry

    @property
    def aside(self) -> bytes:
        """The name beside the file that holds its other content."""
        return self.entry.temporary.encode()

    @property
    def backup(self) -> bytes:
        """A second temporary name, for file systems that cannot exchange: the first one's digits reversed."""
        return b".rye-" + self.aside[5:21][::-1] + b".tmp"


class StepState(NamedTuple):
    """How far a step came.

    Attributes:
        in_place: the change is in place, or was.
        clean: the file holds what the commit knows of, not what someone else wrote meanwhile.
        ready: it can be applied, or was.
    """

    in_place: bool
    clean: bool
    ready: bool


def prepare(step: Step, data: bytes | None) -> None:
    """Write a step's new content beside the file, if the file holds what the entry says.

    Raises:
        WorkspaceError: `conflict`.
        OSError: as the system says.
    """
    # Checked here, before any file changes, and again at the exchange: other programs take no locks.
    if digest_at(step.place.dir_fd, step.place.name) != step.entry.before or _blocked(step):
        raise conflict(step.place)
    if data is not None and step.entry.before != step.entry.after:
        stage(step.place, [data], step.aside, step.entry.mode)


def _blocked(step: Step) -> bool:
    """Tell whether something that is no regular file is where none is expected."""
    if step.entry.before is not None:
        return False
    # `digest_at` returns None for a folder or a link too, so a missing digest does not prove that the name is free.
    try:
        os.stat(step.place.name, dir_fd=step.place.dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def exchange(step: Step, before: str | None, after: str | None) -> None:
    """Put the content `after` in place of `before`; the displaced content gets the temporary name."""
    if before == after:
        return
    if after is None:
        set_aside(step.place, step.aside, before or "")
    else:
        put(step.place, step.aside, before, step.backup)


def take_back(steps: Sequence[Step], *, keep_staged: bool) -> list[str]:
    """Bring every file that is in place back to its old content; return messages about files that hold neither content.

    Where such a file was not changed yet, its new content is stored beside it only with `keep_staged`.
    """
    left: list[str] = []
    # In reverse: a crash here again leaves the first steps in place, as a crash on the way forward does.
    for step in reversed(steps):
        state = state_of(step)
        if state.clean and state.in_place:
            exchange(step, step.entry.after, step.entry.before)
        elif not state.clean and (state.in_place or keep_staged):
            left += store_conflicting(step, state)
    return left


def state_of(step: Step) -> StepState:
    """Find out how far a step came, from the digests alone; a file of another program that a crash displaced is put back."""
    fd, entry = step.place.dir_fd, step.entry
    now, aside = digest_at(fd, step.place.name), digest_at(fd, step.aside)
    if digest_at(fd, step.backup) is not None:
        # The file system cannot exchange, and the crash came within the renames that replace the exchange.
        if aside is None:
            os.rename(step.backup, step.aside, src_dir_fd=fd, dst_dir_fd=fd)
            aside = digest_at(fd, step.aside)
        else:
            os.unlink(step.backup, dir_fd=fd)
    # A content that is neither is another program's, displaced by our exchange: it goes back first.
    if aside not in (None, entry.before, entry.after):
        put(step.place, step.aside, now)
        now, aside = aside, now
    # Creation moves the staged file into place, so a missing temporary name proves that it happened.
    if entry.before is None:
        in_place = aside is None or now == entry.after
    elif entry.after is None:
        in_place = aside == entry.before or (aside is None and now is None)
    else:
        in_place = aside == entry.before or (aside is None and now == entry.after)
    clean = now == (entry.after if in_place else entry.before)
    return StepState(in_place, clean, in_place or (clean and (entry.after is None or aside is not None or now == entry.after)))


def store_conflicting(step: Step, state: StepState) -> list[str]:
    """Store a step's other content beside a file that another program has changed meanwhile."""
    about = f"{step.place.shown} was changed by another program meanwhile, and left as it is"
    try:
        stored = keep(step.place, step.aside)
    except FileNotFoundError:
        # A new file that is gone again was taken back already, or its deletion is the other program's last word.
        return [f"{about}."] if step.entry.before is not None or _blocked(step) else []
    which = "the content before" if state.in_place else "the content meant for it"
    return [f"{about}; {which} is stored as {names.show(b'/'.join([*step.place.parts[:-1], stored]))}."]


def remove_temporary(step: Step) -> bool:
    """Remove the files with a step's temporary names; tell whether the names are free."""
    free = [discard(step.place.dir_fd, name) for name in (step.aside, step.backup)]
    return all(free)


def folder(ws: Workspace) -> Path:
    """Return the folder of the records of commits."""
    return Path(user_dirs.commits_dir(ws.fd))


def advance(record: Path, phase: str) -> Path:
    """Move the commit to a phase, durably."""
    moved = record.with_suffix(phase)
    record.rename(moved)
    try:
        atomic.sync(record.parent)
    except OSError:
        # A phase that may be lost in a crash must not be acted on.
        moved.rename(record)
        raise
    return moved


def drop(record: Path, steps: Sequence[Step]) -> None:
    """Remove the files of a commit that is over; the record last, and only when nothing else is left."""
    free = [remove_temporary(step) for step in steps]
    if all(free):
        with contextlib.suppress(OSError):
            for phase in _PHASES:
                record.with_suffix(phase).unlink(missing_ok=True)
            record.parent.rmdir()


def finish_commit(ws: Workspace, record: Path, steps: Sequence[Step]) -> None:
    """Remove the displaced contents and put the entries into the journal."""
    # First: they take room on a disk that may be full, and the record holds all that the journal needs.
    for step in steps:
        remove_temporary(step)
    found = [entries.entry_of(one) for one in entries.parse(record.read_bytes())["entries"]]
    made = journal.folders_removed(ws, found)
    # A named call must not be made again after a power cut: its entries are durable before the record goes that was.
    history.put(history.folder(ws), made, durably=any(one.key for one in made))
    drop(record, steps)


# --- after a crash ---


def recover(ws: Workspace, *, patience: float = 0.0, beside: Collection[bytes] = ()) -> list[str]:
    """Settle what a crash left, of single changes and of commits; called before every change and undo.

    What another process holds locked is left alone: it is at work. Of single changes it is waited for, for `patience` seconds.
    The caller holds the locks of the paths `beside`.

    Returns:
        What became of the commits, and which of their files were left alone.
    """
    messages: list[str] = []
    # A note of folders behind the changes: a file that came keeps its folders.
    for path in sorted(_left(ws), key=lambda one: one.suffix == ".folders"):
        try:
            if path.suffix == ".folders":
                journal.recover_folders(ws, path)
            else:
                messages += _settle(ws, path, patience, beside)
        except (OSError, WorkspaceError):
            # Locked, or trouble with the disk: it stays, for the next call.
            continue
    with contextlib.suppress(OSError):
        # `access` answers for what is missing, as it mostly is, without an exception.
        if os.access(commits := user_dirs.commits_dir(ws.fd), os.F_OK):
            os.rmdir(commits)
    return messages


def _left(ws: Workspace) -> list[Path]:
    """Return the records of what is under way, or was cut off: of single changes, then of commits."""
    found: list[Path] = []
    for place, below in ((user_dirs.state_dir, "/journal/pending"), (user_dirs.commits_dir, "")):
        # The folder of the state may be none at all.
        with contextlib.suppress(OSError):
            where = f"{place(ws.fd)}{below}"
            found += [Path(where, name) for name in sorted(os.listdir(where))] if os.access(where, os.F_OK) else []
    return found


def is_left(ws: Workspace) -> bool:
    """Tell whether the record of a change is there that is under way, or was cut off."""
    return any(path.suffix != ".folders" for path in _left(ws))


def pending_keys(ws: Workspace) -> set[str]:
    """Return the keys of calls whose changes, of one file or several, are under way or not settled yet."""
    keys: set[str] = set()
    for path in _left(ws):
        with contextlib.suppress(OSError):
            keys |= {entry.key for entry in _load(path) or ()}
    return keys


def _load(path: Path) -> list[Entry] | None:
    """Return the entries of a record, of a single change its one; None where it is not whole. Raises OSError."""
    try:
        record: dict[str, Any] = entries.parse(path.read_bytes())
        found = [entries.entry_of(entry) for entry in (record["entries"] if path.suffix in _PHASES else [record])]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, zlib.error):
        return None
    # A copy under another name must not count as a second change; and what a temporary name names is removed.
    if any(path.stem not in (entry.id, entry.batch) for entry in found):
        return None
    return found if all(is_temporary(entry.temporary.encode()) for entry in found) else None


def _settle(ws: Workspace, path: Path, patience: float, beside: Collection[bytes]) -> list[str]:
    recorded, single = _load(path), path.suffix not in _PHASES
    if recorded is None:
        journal.drop_if_old(path)
        return []
    paths = [names.parse(entry.path) for entry in recorded]
    # A lock that stays held belongs to a live process that is still at work on this commit.
    most = patience if single else WAIT_SECONDS
    with cache.locked(ws, *paths, patience=most, beside=beside), ExitStack() as stack:
        # Under the lock once more: the process that held it may have settled it.
        if not path.exists():
            return []
        steps: list[Step] = []
        left: list[str] = []
        for entry in recorded:
            try:
                place = stack.enter_context(ws.place(entry.path, guarded=False))
            except WorkspaceError as err:
                went = entry.after is None and entry.folders and err.code == "file_not_found"
                if went and (single or path.suffix == ".done"):
                    # Its folder went with it, where an undo removed both.
                    continue
                if err.code not in _GONE:
                    raise
                # The temporary file is gone with its folder; or the file there is not ours.
                left.append(f"{entry.path}: {err.message}")
                continue
            # A folder of the path may be a link now; only the very file that was recorded may be touched.
            if place.path == names.parse(entry.path):
                steps.append(Step(place, entry))
            else:
                left.append(f"{entry.path} is a link to another place now, and left as it is.")
        if single:
            journal.settle(ws, path, recorded[0], [step.place for step in steps], is_gone=bool(left))
            return []
        outcome, more = _go_on(ws, path, steps)
        left += more
        if left:
            note(ws, path.stem, left)
        return [f"{outcome} {line}" for line in left] or ([outcome] if outcome else [])


def _go_on(ws: Workspace, record: Path, steps: list[Step]) -> tuple[str, list[str]]:
    """Finish a commit that was cut off, or take it back; return the outcome and messages about files left alone."""
    named = f"A change of {len(steps)} files ({record.stem}) that was cut off"
    left: list[str] = []
    if record.suffix == ".commit":
        states = [state_of(step) for step in steps]
        # One step that cannot be applied any more takes the whole commit back.
        if all(state.ready for state in states):
            for step, state in zip(steps, states, strict=True):
                if not state.in_place:
                    exchange(step, step.entry.before, step.entry.after)
                elif not state.clean:
                    left += store_conflicting(step, state)
            record = advance(record, ".done")
        else:
            record = advance(record, ".abort")
    if record.suffix == ".done":
        finish_commit(ws, record, steps)
        return f"{named} is finished now.", left
    if record.suffix == ".abort":
        left += take_back(steps, keep_staged=True)
    drop(record, steps)
    journal.take_back_folders(ws, [step.entry for step in steps])
    return f"{named} was taken back.", left


def note(ws: Workspace, batch: str, left: Sequence[str]) -> None:
    """Store the messages about a commit's files that were left alone."""
    with contextlib.suppress(OSError):
        folder = history.folder(ws) / "notes"
        folder.mkdir(mode=0o700, exist_ok=True)
        atomic.write(folder / f"{batch}.json", entries.dump({"left": [*left]}), 0o600, durably=False)
        atomic.prune(folder, _MOST_NOTES, _MOST_NOTES * 4_096)


def notes(ws: Workspace, batch: str) -> list[str]:
    """Return the stored messages about a commit's files that were left alone."""
    path = history.folder(ws) / "notes" / f"{batch}.json"
    return entries.read(path, lambda record: [str(line) for line in record["left"]]) or []

"""Make and record changes: of one file, or of several in one step, all of them or none (`rye.journal.recovery` has the steps).

Commands may run beside an edit: what they changed until then is recorded first, so that a change has one author.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rye.call import profile
from rye.call.context import deadline
from rye.call.results import call_text
from rye.errors import WorkspaceError
from rye.fs import atomic, names
from rye.journal import entries, history, journal, recovery
from rye.journal.entries import Entry
from rye.journal.recovery import Step
from rye.plain_class import Record, changed
from rye.snapshots import known_tree
from rye.workspace.atomic_replace import is_free, replace, temporary_name
from rye.workspace.path_errors import system_failure
from rye.workspace.workspace import Place, Workspace

_NOT_RECORDED = "Not recorded for undo: the change is too large for the journal or the state folder cannot be written."


class Change(Record):
    """One file of a commit.

    Attributes:
        place: where it is or will be, held open.
        data: the new content; None deletes the file.
        entry: what the journal shall say of it. Its `before` must be there, its `mode` is that of a new file.
    """

    place: Place
    data: bytes | None
    entry: Entry


class Committed(NamedTuple):
    """What a commit made: the journal's entries, in the order of the changes, and warnings for the caller's result."""

    entries: list[str]
    warnings: list[str]


@contextlib.contextmanager
def _beside_commands(ws: Workspace, changes: Sequence[Change]) -> Iterator[None]:
    """Run an edit of ours, told apart from what commands change."""
    with known_tree.unlooked(ws.fd):
        # Asked while nobody looks: a command that begins later finds the edit made and recorded.
        if not known_tree.is_running(ws.fd):
            yield
            return
    # Imported here: few edits are made beside a command.
    from rye.journal import tree_changes

    with tree_changes.beside_commands(ws, [(one.entry, one.data) for one in changes]), known_tree.unlooked(ws.fd):
        yield


def commit(ws: Workspace, changes: Sequence[Change], batch: str | None = None, *, is_own: bool = False) -> Committed:
    """Make all changes, or none, and record each in the journal.

    Args:
        ws: the workspace.
        changes: of different files, whose locks the caller holds (`cache.locked`).
        batch: names the commit in the journal; None: the change of one file stands by itself there, several have a fresh name.
        is_own: a person told rye to write it, which the profile does not forbid: that is for tools.

    Raises:
        WorkspaceError: `conflict` when a file is not as expected; `state_unwritable` where nothing could be recorded;
            `no_space` … from the system: no file was changed. Only after `unsettled` the next call settles what became of them.
        UsageError: `read_only_profile`, `bad_profile`; nothing was changed.
        DeadlineError: the call's time is up; nothing was changed.
    """
    if not changes:
        return Committed([], [])
    if not is_own:
        profile.refuse_changes(ws.root)
    # While these locks were waited for, their holder may have been killed: its change comes first.
    warnings = recovery.recover(ws, beside=[change.place.path for change in changes])
    if len(changes) == 1 and batch is None:
        with _beside_commands(ws, changes):
            return _commit_one(ws, changes[0], warnings)
    batch = batch or os.urandom(16).hex()
    # The IDs become file names in the journal, so those that are made in one millisecond must differ.
    first = int.from_bytes(os.urandom(2))
    made = [
        changed(
            one.entry,
            id=f"{one.entry.id[:11]}{(first + at) % 0x10000:04x}",
            batch=batch,
            batch_size=len(changes),
            temporary=temporary_name().decode(),
            hard_links=journal.link_count(one.place),
        )
        for at, one in enumerate(changes)
    ]
    made = _with_folders(changes, made)
    steps = [Step(change.place, entry) for change, entry in zip(changes, made, strict=True)]
    # The right to write comes second: who waits for the tree can still run out of time.
    with _beside_commands(ws, changes), deadline().commit():
        record = _begin(ws, steps, batch)
        try:
            for step, change in zip(steps, changes, strict=True):
                recovery.prepare(step, change.data)
            # One sync a directory: several files of a commit often share one.
            for fd in {os.fstat(step.place.dir_fd).st_ino: step.place.dir_fd for step in steps}.values():
                atomic.sync(dir_fd=fd)
            record = recovery.advance(record, ".commit")
        except BaseException as err:
            # Before the phase `commit` no file is in place: removing the staged files and the record undoes everything.
            recovery.drop(record, steps)
            if isinstance(err, OSError):
                raise system_failure(err, "The commit of several files") from None
            raise
        _go_through(ws, record, steps)
        with contextlib.suppress(OSError):
            # The commit is made: the next call finds all files in place, and goes on from there.
            recovery.finish_commit(ws, recovery.advance(record, ".done"), steps)
    warnings += [warning for step in steps for warning in journal.notes(step.place)]
    return Committed([entry.id for entry in made], warnings)


def _commit_one(ws: Workspace, change: Change, warnings: list[str]) -> Committed:
    """Replace or delete one file, with its entry pending meanwhile. Where it cannot be recorded it is made with a warning."""
    place, temporary = change.place, temporary_name()
    entry = changed(change.entry, hard_links=journal.link_count(place), temporary=temporary.decode())
    pending = None
    try:
        record = history.folder(ws) / "pending" / f"{entry.id}.json"
        journal.begin(record, [entry], lambda made: entries.record_of(made[0]), durably=bool(entry.key))
        pending = record
    except OSError:
        if entry.key:
            # Made without a record, it would be made again at the next attempt.
            why = "The user's state folder cannot be written, so this named call cannot be recorded. Nothing was written."
            hint = "Make it writable, or set USER_SPACE to a folder that is."
            raise WorkspaceError("state_unwritable", why, hint) from None
        warnings.append(_NOT_RECORDED)
    try:
        free = replace(place, change.data, entry.before, temporary, entry.mode)
    except BaseException:
        # While something lies under the temporary name, the entry stays pending, for the next call to settle.
        if pending is not None and is_free(place, temporary):
            with contextlib.suppress(OSError):
                pending.unlink(missing_ok=True)
        raise
    warnings += journal.notes(place)
    # Behind the deletion: a crash here leaves the entry pending, and the next call goes on.
    (made,) = journal.folders_removed(ws, [entry])
    if pending is not None and free:
        # The change is made; an entry that stays pending is finished by the next change or undo.
        with contextlib.suppress(OSError):
            journal.finish(pending, entry, made)
    return Committed([] if _NOT_RECORDED in warnings else [entry.id], warnings)


def _with_folders(changes: Sequence[Change], made: Sequence[Entry]) -> list[Entry]:
    """Return the entries, those of new files with all the folders above them that the commit's places made.

    The first place alone made a folder that several files share; whichever of them is taken back last removes it.
    """
    folders = sorted({parts for change in changes for parts in change.place.made}, key=len)
    if not folders:
        return [*made]
    above = [[parts for parts in folders if change.place.parts[: len(parts)] == parts] for change in changes]
    return [
        changed(entry, folders=[names.show(b"/".join(parts)) for parts in own]) if entry.before is None else entry
        for entry, own in zip(made, above, strict=True)
    ]


def _go_through(ws: Workspace, record: Path, steps: Sequence[Step]) -> None:
    """Put every file in place; on a failure take back those that are, and raise it."""
    try:
        for step in steps:
            recovery.exchange(step, step.entry.before, step.entry.after)
    except (OSError, WorkspaceError) as err:
        try:
            # The phase first: after a crash from here on the files must be taken back, not finished.
            record = recovery.advance(record, ".abort")
            left = recovery.take_back(steps, keep_staged=False)
        except (OSError, WorkspaceError) as worse:
            why = f"The commit could not be finished nor taken back now ({worse})."
            then = call_text("undo", list=True)
            hint = f"The next call in this project settles it, all or nothing; check the disk, then call {then}."
            raise WorkspaceError("unsettled", why, hint) from None
        recovery.drop(record, steps)
        if left:
            recovery.note(ws, record.stem, left)
        raise (
            err
            if isinstance(err, WorkspaceError)
            else system_failure(err, f"The commit of several files, at {step.place.shown}")
        ) from None


def _begin(ws: Workspace, steps: Sequence[Step], name: str) -> Path:
    try:
        # Durable before the first temporary file exists, or a crash could leave files that no record names.
        path = recovery.folder(ws) / f"{name}.prepare"
        made = [step.entry for step in steps]
        journal.begin(path, made, lambda made: {"entries": [entries.record_of(one) for one in made]}, durably=True)
    except OSError as err:
        raise _unwritable(err) from None
    return path


def _unwritable(err: OSError) -> WorkspaceError:
    return WorkspaceError(
        "state_unwritable",
        f"The user's state folder cannot be written ({err.strerror}), and without a record there several "
        "files cannot be changed as one. Nothing was written.",
        "Make it writable, set USER_SPACE to a folder that is, or change the files one by one.",
    )

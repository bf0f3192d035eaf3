"""The steps of taking back a command's change: each path is brought from the state that it is in to the one that it shall have.

Before the first file is touched, the undo is written to `<state>/tree/undo`, as the journal's entry that it will be. The next
look or undo after a crash goes on with it. Each step can be told from its result, so it is made at most once.

To an ordinary user a folder may be closed in which files came back or go: it is opened first and closed again at the end.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from rye.call.results import call_text
from rye.errors import EditError, WorkspaceError
from rye.fs import atomic, beneath
from rye.fs.atomic import closing
from rye.journal import entries, history, journal
from rye.journal.entries import Entry
from rye.plain_class import changed
from rye.snapshots import passed_over
from rye.snapshots import tree as snapshots_tree
from rye.snapshots.contents import Contents
from rye.snapshots.states import Change, State
from rye.workspace import protected_paths
from rye.workspace.atomic_replace import discard, give_back, put, set_aside, stage
from rye.workspace.path_errors import system_failure
from rye.workspace.workspace import Place, Workspace

_PENDING: Final = "undo"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MAX_NAMED: Final = 5
_REPOSITORY: Final = "a git repository, which is not recorded; remove it by hand where it is not wanted"


# --- what is there ---


def alike(now: State | None, other: State | None) -> bool:
    """Tell whether two states are of one kind, mode and content; their other names count for nothing."""
    if now is None or other is None:
        return now is other
    return now[:3] == other[:3]


def parted(one: Change) -> bool:
    """Tell whether only the file's other names differ: that cannot be seen at the path itself."""
    return one.before is not None and one.after is not None and sorted(one.before.links) != sorted(one.after.links)


def parts_of(path: str) -> beneath.Parts:
    """Return the components of a recorded path."""
    return tuple(os.fsencode(path).split(b"/"))


@contextmanager
def folder_of(ws: Workspace, path: str) -> Iterator[tuple[int, str]]:
    """Open the folder of a path, through no link; yields it with the last name. Raises OSError."""
    *above, name = parts_of(path)
    with closing(beneath.open_unlinked(ws.fd, [os.fsdecode(part) for part in above], _FOLDER)) as fd:
        yield fd, os.fsdecode(name)


def names_in(ws: Workspace, folder: str) -> frozenset[str]:
    """Return the names in a folder of the project; none where it cannot be listed."""
    with suppress(OSError), folder_of(ws, f"{folder}/." if folder else ".") as (fd, _):
        return frozenset(os.listdir(fd))
    return frozenset()


def state_now(ws: Workspace, path: str) -> State | None:
    """Return what is at a recorded path; None where nothing is, or a link in the place of a folder. Raises WorkspaceError."""
    try:
        with folder_of(ws, path) as (fd, name):
            return snapshots_tree.state_at(fd, name)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as err:
        if err.errno == errno.ELOOP:
            # A link lies where a folder was.
            return None
        raise system_failure(err, path) from None


# --- making it ---


def make(ws: Workspace, where: Path, contents: Contents, entry: Entry) -> list[str]:
    """Take the steps of an undo and record it; return warnings.

    Args:
        ws: the workspace.
        where: the folder of the tree; the caller holds its lock.
        contents: the stored contents.
        entry: as `entry_for` returned it.

    Raises:
        EditError: `changed_since`: no step could be made.
        WorkspaceError: a step failed; what was done is recorded, and the rest was not done.
    """
    contents.save()
    # With them a crash leaves no folder open.
    pending = changed(entry, files=[*(entry.files or ()), *_closed_above(ws, entry.files or ())])
    atomic.write(where / _PENDING, entries.dump(entries.record_of(pending)), 0o600)
    done, warnings = _go_on(ws, where, contents, pending)
    if not done:
        why = f"Nothing of change {entry.undoes} was taken back: {' '.join(warnings[:_MAX_NAMED])}"
        hint = f"Remove what is in the way, or leave it; {call_text('undo', list=True)} shows what the change was."
        raise EditError("changed_since", why, hint)
    return warnings


def is_pending(where: Path) -> bool:
    """Tell whether an undo is under way, or was cut off."""
    return (where / _PENDING).exists()


def recover(ws: Workspace, where: Path, contents: Contents) -> list[str]:
    """Go on with an undo that was cut off; the caller holds the tree's lock. Returns warnings."""
    data = atomic.read(where / _PENDING)
    if data is None:
        return []
    try:
        entry = entries.entry_of(entries.parse(data))
    except (ValueError, LookupError, TypeError, AttributeError):
        # Cut short while it was written: no step had been taken.
        (where / _PENDING).unlink(missing_ok=True)
        return []
    _, warnings = _go_on(ws, where, contents, entry)
    return [f"An undo that was cut off was finished: {entry.id}.", *warnings]


def _go_on(ws: Workspace, where: Path, contents: Contents, entry: Entry) -> tuple[int, list[str]]:
    """Take the steps that are left, then put the entry into the journal, with what was done.

    Returns:
        How many steps were done, and warnings of the others.
    """
    warnings: list[str] = []
    done: list[Change] = []
    left: list[str] = []
    failure: tuple[str, OSError] | None = None
    steps = _in_order(entry.files or [])
    later = {one.path for one in steps}
    opened = _opened(ws, steps)
    links = protected_paths.links_of(ws.fd)
    for one in steps:
        later.discard(one.path)
        try:
            was = _info(ws, one.path)
            warning = _step(ws, contents, entry.id, one, later, links)
        except WorkspaceError as err:
            # A command has made a repository there, or wrote there, since the undo was planned.
            warnings.append(f"{entries.printable(one.path)} was left: {err.message.removesuffix(' Nothing was written.')}")
            left.append(one.path)
            continue
        except OSError as err:
            # What was done stays recorded, so that it can be taken back in turn.
            failure = failure or (one.path, err)
            continue
        if warning:
            # A folder that stays for the sake of one in it is not named once more.
            if _REPOSITORY in warning or not any(other.startswith(f"{one.path}/") for other in left):
                warnings.append(warning)
            left.append(one.path)
        else:
            done.append(one)
            warnings += journal.lost(entries.printable(one.path), was, _info(ws, one.path))
    made = {one.path for one in done}
    # Before modes are set, which may close one.
    _sync_folders(ws, steps)
    # What stays is closed again.
    _set_modes(ws, [*done, *(Change(one.path, None, one.before) for one in opened if one.path not in made)])
    done = [one for one in done if one.before != one.after]
    if done:
        # An undo that stopped counts for the paths that it took back alone: the rest can be undone.
        made_back = changed(entry, files=done, part=entry.part if failure is None else entries.SOME)
        history.put(history.folder(ws), [made_back], durably=True)
    (where / _PENDING).unlink(missing_ok=True)
    if failure is not None:
        raise _cut_off(*failure, entry, len(done)) from None
    return len(done), warnings


def _sync_folders(ws: Workspace, steps: Sequence[Change]) -> None:
    """Make the names of all steps durable, each folder once: until then the undo counts as under way."""
    for folder in {one.path.rpartition("/")[0] for one in steps}:
        with suppress(OSError), closing(beneath.open_unlinked(ws.fd, folder.split("/") if folder else [], _FOLDER)) as fd:
            os.fsync(fd)


def _cut_off(path: str, failure: OSError, entry: Entry, done: int) -> WorkspaceError:
    """Return the failure at a path of an undo of which `done` paths are done."""
    begun = f"{done} of {len(entry.files or ())} paths are undone, then " if done else ""
    refusal = system_failure(failure, f"{begun}{entries.printable(path)}")
    if not done:
        return refusal
    more = f"See to that, then undo the rest with entry_id={entry.undoes}, or take back what was done with entry_id="
    return WorkspaceError(refusal.code, refusal.message, f"{more}{entry.id}.", **refusal.details)


def _in_order(changes: Sequence[Change]) -> list[Change]:
    """Return changes in an order in which each is possible: what goes before what comes, the inner before the outer."""

    def rank(one: Change) -> tuple[int, int]:
        depth = one.path.count("/")
        was_folder = one.before is not None and one.before.kind == "directory"
        if one.after is None or (was_folder and one.after.kind != "directory"):
            return (1, -depth) if was_folder else (0, -depth)
        return (2, depth) if one.after.kind == "directory" else (3, depth)

    return sorted(changes, key=rank)


def _is_closed(state: State | None) -> bool:
    return state is not None and state.kind == "directory" and state.mode & stat.S_IRWXU != stat.S_IRWXU


def _closed_above(ws: Workspace, changes: Sequence[Change]) -> list[Change]:
    """Return the folders above some paths that are closed to their owner, as steps that leave them as they are."""
    paths = {one.path for one in changes}
    above: set[str] = set()
    for path in paths:
        while (path := path.rpartition("/")[0]) and path not in above:
            above.add(path)
    out = []
    for path in above - paths:
        # What cannot be seen cannot be opened either: the step will tell.
        with suppress(WorkspaceError):
            now = state_now(ws, path)
            if now is not None and _is_closed(now):
                out.append(Change(path, now, now))
    return out


def _opened(ws: Workspace, steps: Sequence[Change]) -> list[Change]:
    """Let the owner change what is in folders that he closed; return the steps of those folders."""
    out = []
    for one in sorted(steps, key=lambda one: one.path.count("/")):
        if one.before is not None and _is_closed(one.before):
            # Of another owner's the step will tell.
            with suppress(OSError), folder_of(ws, one.path) as (fd, name):
                now = snapshots_tree.state_at(fd, name)
                if alike(now, one.before) or _is_begun(now, one):
                    _set_mode(fd, name, one.before.mode | stat.S_IRWXU)
                    out.append(one)
    return out


def _step(ws: Workspace, contents: Contents, entry_id: str, one: Change, later: set[str], links: protected_paths.Links) -> str:
    """Bring one path from its state before to the one after; return why it was left, if it was.

    Raises OSError, and WorkspaceError where tools may not write now, or somebody did since. `later` are the paths whose steps
    are still to come, `links` as `Workspace.guard` takes them.
    """
    shown = entries.printable(one.path)
    try:
        with folder_of(ws, one.path) as (fd, name):
            digest = sha256(f"{entry_id}/{one.path}".encode("utf-8", "surrogateescape")).hexdigest()
            temporary = f".rye-{digest[:16]}.tmp"
            parts = parts_of(one.path)
            place = Place(fd, parts, None, check=functools.partial(ws.guard_open, fd, parts, links))
            _settle_temporary(place, name, temporary, one)
            was = _found_at(fd, name)
            now = was and was.state
            # Where only the other names of the file differ, the step is taken once more, which does no harm.
            if alike(now, one.after) and not (parted(one) and alike(now, one.before)):
                return ""
            if not alike(now, one.before) and not _is_begun(now, one):
                return f"{shown} was left: it changed meanwhile."
            ws.guard_open(fd, parts, links)
            # A rename puts no file in place of a folder, and no folder in place of a file.
            if one.after is None or (now is not None and (now.kind == "directory") != (one.after.kind == "directory")):
                _remove(place, temporary, was)
                was = None
            if one.after is not None:
                _bring(ws, contents, place, temporary, one.after, was, later)
            return ""
    except FileNotFoundError:
        if one.after is None:
            return ""
        raise
    except OSError as err:
        if err.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return f"{shown} stays: it holds {_held(ws, one.path)}."
        raise


def _bring(
    ws: Workspace, contents: Contents, place: Place, temporary: str, after: State, was: _Found | None, later: set[str]
) -> None:
    """Put in place what shall be there, in place of what had the status `was`. Errors as `_step`."""
    fd, settled = place.dir_fd, True
    try:
        if after.kind != "file" or not _linked(ws, fd, temporary, after, later):
            # A new content gets the owner and the attributes of the file that is there.
            known = was.info if was is not None and stat.S_ISREG(was.info.st_mode) else None
            _put(contents, changed(place, stat=known), temporary, after)
        if after.kind != "directory":
            # Guarded once more: to write a large file takes long.
            put(place, temporary.encode(), was and was.is_at, durably=False)
    except WorkspaceError as err:
        settled = err.code != "unsettled"
        raise
    finally:
        # What it displaced, or half of a file where the disk is full.
        if settled:
            discard(fd, temporary.encode())


def _info(ws: Workspace, path: str) -> os.stat_result | None:
    with suppress(OSError), folder_of(ws, path) as (fd, name):
        info = os.stat(name, dir_fd=fd, follow_symlinks=False)
        return info if stat.S_ISREG(info.st_mode) else None
    return None


def _held(ws: Workspace, path: str) -> str:
    """Return, in words, what keeps a folder from being removed."""
    with suppress(OSError), folder_of(ws, f"{path}/.git") as (fd, name):
        os.stat(name, dir_fd=fd, follow_symlinks=False)
        return _REPOSITORY
    return _REPOSITORY if passed_over.is_repository(ws.fd, path) else "files that this change did not make"


def _is_begun(now: State | None, one: Change) -> bool:
    """Tell whether a folder was opened up, or was made and has not its mode yet: modes are set last, as they may close it."""
    if now is None or now.kind != "directory":
        return False
    if one.before is not None and one.before.kind == "directory" and now.mode == one.before.mode | stat.S_IRWXU:
        return True
    if one.after is None or one.after.kind != "directory":
        return False
    return (one.before is None or one.before.kind != "directory") and not now.mode & 0o077


class _Found(NamedTuple):
    """What a step found at its path."""

    info: os.stat_result
    state: State

    def is_at(self, fd: int, name: bytes) -> bool:
        """Tell whether it is in an open folder under a name now, and nobody wrote to it since. Raises OSError."""
        there, was = os.stat(name, dir_fd=fd, follow_symlinks=False), self.info
        # A rename changes its ctime, so that does not count; on some file systems (FUSE) it changes the inode, too.
        if (there.st_size, there.st_mtime_ns) != (was.st_size, was.st_mtime_ns):
            return False
        return there.st_ino == was.st_ino or alike(snapshots_tree.state_at(fd, os.fsdecode(name)), self.state)


def _found_at(fd: int, name: str) -> _Found | None:
    with suppress(FileNotFoundError):
        info = os.stat(name, dir_fd=fd, follow_symlinks=False)
        state = snapshots_tree.state_at(fd, name)
        return None if state is None else _Found(info, state)
    return None


def _settle_temporary(place: Place, name: str, temporary: str, one: Change) -> None:
    """Remove what a step that was cut off left; what another program wrote meanwhile gets its name back. Raises OSError."""
    fd, aside = place.dir_fd, temporary.encode()
    left = snapshots_tree.state_at(fd, temporary)
    foreign = left is not None and not alike(left, one.before) and not alike(left, one.after)
    if foreign and alike(snapshots_tree.state_at(fd, name), one.after):
        if one.after is None:
            give_back(place, aside)
        else:
            beneath.rename(fd, aside, place.name, beneath.EXCHANGE)
    discard(fd, aside)


def _remove(place: Place, temporary: str, was: _Found | None) -> None:
    """Remove what is in a place, if nobody wrote it since `was`. Errors as `_step`."""
    if was is None or was.state.kind == "directory":
        os.rmdir(place.name, dir_fd=place.dir_fd)
    else:
        set_aside(place, temporary.encode(), was.is_at, durably=False)
        os.unlink(temporary, dir_fd=place.dir_fd)


def _put(contents: Contents, place: Place, temporary: str, state: State) -> None:
    """Make a folder in place, or a file, link or pipe under a temporary name. Raises OSError."""
    fd = place.dir_fd
    if state.kind == "directory":
        with suppress(FileExistsError):
            os.mkdir(place.name, 0o700, dir_fd=fd)
    elif state.kind == "link":
        os.symlink(os.fsencode(state.value or ""), os.fsencode(temporary), dir_fd=fd)
    elif state.kind == "fifo":
        os.mkfifo(temporary, 0o600, dir_fd=fd)
        _set_mode(fd, temporary, state.mode)
    else:
        try:
            stage(place, contents.blocks(bytes.fromhex(state.value or "")), temporary.encode(), state.mode, forced=True)
        except ValueError:
            raise OSError(errno.EIO, "the stored content is damaged") from None


def _linked(ws: Workspace, fd: int, temporary: str, state: State, later: set[str]) -> bool:
    """Make a hard link to another name that the file had, where that name is there with the same content.

    A name whose step comes `later` may be of another file still, with the same content: it will be linked to this one.
    """
    for path in state.links:
        if path in later:
            continue
        with suppress(OSError), folder_of(ws, path) as (other, name):
            if alike(snapshots_tree.state_at(other, name), state):
                os.link(name, temporary, src_dir_fd=other, dst_dir_fd=fd, follow_symlinks=False)
                return True
    return False


def _set_modes(ws: Workspace, changes: Sequence[Change]) -> None:
    """Give folders their modes, the inner first: a mode can make a folder unwritable."""
    for one in sorted(changes, key=lambda one: -one.path.count("/")):
        if one.after is not None and one.after.kind == "directory":
            with suppress(OSError), folder_of(ws, one.path) as (fd, name):
                if stat.S_IMODE(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode) != one.after.mode:
                    _set_mode(fd, name, one.after.mode)


def _set_mode(fd: int, name: str, mode: int) -> None:
    with closing(os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)) as opened:
        # Through /proc, because no chmod takes a descriptor opened with O_PATH.
        os.chmod(f"/proc/self/fd/{opened}", mode)

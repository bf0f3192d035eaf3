"""Taking back what a command changed in the tree: files, links, folders and modes, all of one look's change or one file of it.

A path is taken back where it is as the change left it. A text file that changed elsewhere since is merged: the change is
taken out of it where its lines stand unchanged. Anything else is refused, and nothing is written.

Before the first file is touched, the undo is written to `<state>/tree/undo`, as the journal's entry that it will be. The next
look or undo after a crash goes on with it. Each step can be told from its result, so it is made at most once.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from rye.errors import EditError, WorkspaceError
from rye.fs import atomic, beneath
from rye.journal import entries, followed_lines, history, hunks, journal, merges, tree_changes
from rye.journal.entries import Entry
from rye.journal.history import History
from rye.plain_class import changed
from rye.snapshots import tree as snapshots_tree
from rye.snapshots.contents import Contents
from rye.snapshots.tree import Change, State
from rye.workspace import atomic_replace, protected_paths
from rye.workspace.encoding import Encoding
from rye.workspace.path_errors import system_failure
from rye.workspace.text import split
from rye.workspace.workspace import Workspace

_PENDING: Final = "undo"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_NAMED: Final = 5
# Of so many later changes it is asked whether they are undone.
_MOST_ROWS: Final = 5_000


class Plan(NamedTuple):
    """What an undo will do.

    Attributes:
        changes: for each path what is there, and what shall be.
        merged: paths whose change is taken out of a file that changed elsewhere since.
        kept: paths that are already as they were before.
        guarded: paths that only the user may write, which are left as they are.
        gone: sockets and devices, which no undo makes again.
    """

    changes: list[Change]
    merged: list[str]
    kept: list[str]
    guarded: list[str]
    gone: list[str]


def plan(ws: Workspace, contents: Contents, entry: Entry, path: str | None, chosen: Mapping[str, Sequence[int]]) -> Plan:
    """Work out what takes back a change of the tree, or its part at one path.

    Args:
        ws: the workspace.
        contents: the stored contents.
        entry: the change.
        path: the one path; None: all.
        chosen: for some paths the numbers of the hunks to take back; for the others all.

    Raises:
        EditError: `changed_since`, `not_recorded`, `damaged_entry`: nothing was written.
        WorkspaceError: `protected_path`, when the one path, or every path of those that differ, may not be written by tools.
    """
    made = Plan([], [], [], [], [])
    guard: WorkspaceError | None = None
    refused: list[str] = []
    current: list[dict[str, object]] = []
    links = protected_paths.links_of(ws.fd)
    for one in entry.files or ():
        if path not in (None, one.path):
            continue
        try:
            ws.guard(_parts(one.path), links=links)
        except WorkspaceError as err:
            # What a command did elsewhere is taken back all the same.
            guard = guard or err
            made.guarded.append(one.path)
            continue
        if one.before is not None and one.before.kind == "other" and path is None:
            made.gone.append(one.path)
            continue
        why = _planned(ws, contents, made, entry, one, chosen.get(one.path), current)
        if why:
            refused.append(f"{tree_changes.printable(one.path)} {why}")
    if refused:
        more = f", and {len(refused) - _MAX_NAMED} more" if len(refused) > _MAX_NAMED else ""
        raise EditError(
            "changed_since",
            f"Change {entry.id} cannot be taken back exactly: {'; '.join(refused[:_MAX_NAMED])}{more}. Nothing was written.",
            "Give file_path, or hunks of a file, to take back a part of it, or edit the file by hand; "
            "undo(list=true) shows what the change was.",
            **({"current": current[:_MAX_NAMED]} if current else {}),
        )
    if guard is not None and not made.changes:
        raise guard
    if made.gone and not made.changes:
        raise EditError(
            "not_recorded",
            f"Change {entry.id} removed or changed sockets or devices alone ({tree_changes.printable(made.gone[0])}), which no "
            "undo makes again. Nothing was written.",
            "Start the program again that makes them.",
        )
    return made


def _planned(
    ws: Workspace,
    contents: Contents,
    made: Plan,
    entry: Entry,
    one: Change,
    chosen: Sequence[int] | None,
    current: list[dict[str, object]],
) -> str:
    """Add one path to the plan; return why that cannot be, in words, or an empty text. `current` takes the lines in the way."""
    if one.after is not None and one.after.kind == "file" and one.after.value is None:
        # Asked before the file is read, which may take long.
        return "was left as a file too large to be recorded"
    now = _now(ws, one.path)
    if chosen is not None and not chosen:
        made.kept.append(one.path)
        return ""
    if chosen is None:
        if _alike(now, one.before) and not _parted(one):
            made.kept.append(one.path)
            return ""
        missing = _not_stored(contents, one.before)
        if missing:
            return missing
        if _alike(now, one.after):
            # As recorded, because the names that a file shares are not seen at its path.
            made.changes.append(Change(one.path, one.after, one.before))
            return ""
        if _is_folder(now) and _is_folder(one.before) and not _is_folder(one.after) and _stayed(ws, entry, one.path):
            made.changes.append(Change(one.path, now, one.before))
            return ""
    merged = _merged(ws, contents, entry, one, now, chosen)
    if isinstance(merged, State):
        if chosen is None or not _alike(now, one.after):
            made.merged.append(one.path)
        made.changes.append(Change(one.path, now, merged))
        return ""
    current += merged
    return f"has changed since{hunks.said_in_the_way(merged)}"


def _alike(now: State | None, other: State | None) -> bool:
    if now is None or other is None:
        return now is other
    return now[:3] == other[:3]


def _parted(one: Change) -> bool:
    """Tell whether only the file's other names differ: that cannot be seen at the path itself."""
    return one.before is not None and one.after is not None and sorted(one.before.links) != sorted(one.after.links)


def _is_folder(state: State | None) -> bool:
    return state is not None and state.kind == "directory"


def _stayed(ws: Workspace, entry: Entry, path: str) -> bool:
    """Tell whether every later change at a folder's path is undone: it stands only because it holds what is not recorded.

    Then nobody's mode is lost when the folder that the change removed is put in its place.
    """
    found = History(ws)
    for row in islice(found, _MOST_ROWS):
        if row.id == entry.id:
            return True
        if row.undoes is not None or row.id in found.undone or path in found.undone_parts.get(row.id, ()):
            continue
        later = entries.load(history.folder(ws) / f"{row.id}.json") if row.files > 1 else None
        if path in ([row.path] if later is None else later.paths):
            return False
    return False


def _not_stored(contents: Contents, state: State | None) -> str:
    if state is None or state.kind in ("link", "directory", "fifo"):
        return ""
    if state.kind == "other":
        return "was a socket or a device"
    if state.value is None:
        return "was too large to be recorded"
    return "" if contents.is_whole(bytes.fromhex(state.value)) else "has no stored content any more"


def _merged(
    ws: Workspace, contents: Contents, entry: Entry, one: Change, now: State | None, chosen: Sequence[int] | None
) -> State | list[dict[str, object]]:
    """Return the file with the change, or hunks of it, taken out where it is unchanged, its content stored.

    Returns:
        The file as it shall be; where that is not exact, the lines in the way, if there are any.
    """
    sides = hunks.texts(contents, one)
    if (
        sides is None
        or now is None
        or now.kind != "file"
        or now.size > hunks.MAX_TEXT
        or one.after is None
        or one.before is None
    ):
        return []
    with _folder(ws, one.path) as (fd, name):
        current = _read(fd, name)
    if sha256(current).hexdigest() != now.value:
        return []
    code = hunks.code_of(current)
    newline = "\n".encode(sides.codes[1])
    if code is None or code.newline != newline:
        return []
    lines = split(current, code)
    wanted = None if chosen is None else [number - 1 for number in chosen]
    splices, missing = merges.without(sides.before, sides.after, lines, wanted)
    result = missing or merges.replaced(lines, splices, newline)
    followed = None if sides.after == lines else _followed(ws, entry, one.path, chosen, current, code)
    if isinstance(result, list):
        places = [hunks.in_the_way(one.path, lines[place.start : place.stop], place, code.name) for place in result]
        if followed is None:
            return places
        result = followed
    elif followed not in (None, result):
        # Lines alike have changed places: the text and the record do not name the same one.
        spots = [merges.Missing(number, at.start, at.stop) for number, at in enumerate(splices)]
        return [hunks.in_the_way(one.path, lines[spot.start : spot.stop], spot, code.name) for spot in spots]
    digest = contents.put(result)
    mode = now.mode
    # The mode is the hunk behind those of the lines.
    if one.before.mode != one.after.mode and (chosen is None or len(hunks.of_change(contents, one)) in chosen):
        if now.mode == one.after.mode:
            mode = one.before.mode
        elif chosen is not None and now.mode != one.before.mode:
            return []
    return State("file", mode, digest.hex(), len(result))


def _followed(
    ws: Workspace, entry: Entry, path: str, chosen: Sequence[int] | None, current: bytes, code: Encoding
) -> bytes | None:
    """Return a file without hunks of a change that only the record of what came after can find; None where it cannot."""
    found = followed_lines.places(ws, entry, path, chosen, current)
    if found is None:
        return None
    lines = split(current[len(code.bom) :], code)
    result = merges.replaced(lines, found, code.newline)
    return None if isinstance(result, list) else code.bom + result


def _parts(path: str) -> beneath.Parts:
    return tuple(os.fsencode(path).split(b"/"))


@contextmanager
def _folder(ws: Workspace, path: str) -> Iterator[tuple[int, str]]:
    """Open the folder of a path, through no link; yields it with the last name. Raises OSError."""
    *above, name = _parts(path)
    fd = beneath.open_unlinked(ws.fd, [os.fsdecode(part) for part in above], _FOLDER)
    try:
        yield fd, os.fsdecode(name)
    finally:
        os.close(fd)


def _now(ws: Workspace, path: str) -> State | None:
    try:
        with _folder(ws, path) as (fd, name):
            return snapshots_tree.state_at(fd, name)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as err:
        if err.errno == errno.ELOOP:
            # A link lies where a folder was.
            return None
        raise system_failure(err, path) from None


def _read(folder_fd: int, name: str) -> bytes:
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder_fd)
    with open(fd, "rb") as file:
        return file.read()


# --- making it ---


def entry_for(
    ws: Workspace, planned: Plan, tool: str, undoes: Entry, path: str | None, taken: Sequence[int] = (), count: int = 0
) -> Entry:
    """Return the journal's entry of an undo; `taken` are the hunks of the path that it takes back, out of `count`."""
    first = tree_changes.printable(planned.changes[0].path)
    made = journal.undoing(journal.new_entry(ws, tool, first, None, None, "utf-8", []), undoes.id)
    about = undoes.about or undoes.tool
    said = (
        f"redo of {about.removeprefix('undo of ')}"
        if about.startswith("undo of ")
        else f"undo of {about.removeprefix('redo of ')}"
    )
    return changed(made, files=planned.changes, part=path, about=said, hunks=[*taken], hunk_count=count)


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
    atomic.write(where / _PENDING, entries.dump(entries.record_of(entry)), 0o600)
    done, warnings = _go_on(ws, where, contents, entry)
    if not done:
        raise EditError(
            "changed_since",
            f"Nothing of change {entry.undoes} was taken back: {' '.join(warnings[:_MAX_NAMED])}",
            "Remove what is in the way, or leave it; undo(list=true) shows what the change was.",
        )
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
    failure: OSError | None = None
    steps = _in_order(entry.files or [])
    later = {one.path for one in steps}
    for one in steps:
        later.discard(one.path)
        try:
            was = _info(ws, one.path)
            warning = _step(ws, contents, entry.id, one, later)
        except OSError as err:
            # What was done stays recorded, so that it can be taken back in turn.
            failure = failure or err
            continue
        if warning:
            warnings.append(warning)
        else:
            done.append(one)
            warnings += _lost(one.path, was, _info(ws, one.path))
    _set_modes(ws, done)
    if done:
        tree_changes.append(ws, changed(entry, files=done))
    (where / _PENDING).unlink(missing_ok=True)
    if failure is not None:
        raise _cut_off(failure, entry, len(done)) from None
    return len(done), warnings


def _cut_off(failure: OSError, entry: Entry, done: int) -> WorkspaceError:
    """Return the failure of an undo of which `done` paths are done."""
    refusal = system_failure(failure, "The undo" if not done else f"{done} of {len(entry.files or ())} paths are undone, then")
    if not done:
        return refusal
    more = f"Free what has run out, then undo the rest with entry_id={entry.undoes}, or take back what was done with entry_id="
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


def _step(ws: Workspace, contents: Contents, entry_id: str, one: Change, later: set[str]) -> str:
    """Bring one path from its state before to the one after; return why it was left, if it was. Raises OSError.

    `later` are the paths whose steps are still to come.
    """
    shown = tree_changes.printable(one.path)
    try:
        with _folder(ws, one.path) as (fd, name):
            temporary = _temporary(entry_id, one.path)
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=fd)
            now = snapshots_tree.state_at(fd, name)
            # Where only the other names of the file differ, the step is taken once more, which does no harm.
            if _alike(now, one.after) and not (_parted(one) and _alike(now, one.before)):
                return ""
            if not _alike(now, one.before) and not _is_begun(now, one):
                return f"{shown} was left: it changed meanwhile."
            # A rename puts no file in place of a folder, and no folder in place of a file.
            if one.after is None or (now is not None and (now.kind == "directory") != (one.after.kind == "directory")):
                _remove(fd, name, now)
                if one.after is None:
                    return ""
            if one.after.kind != "file" or not _linked(ws, fd, temporary, one, later):
                try:
                    _put(contents, fd, name, temporary, one.after)
                except OSError:
                    # Half of a file, where the disk is full.
                    with suppress(OSError):
                        os.unlink(temporary, dir_fd=fd)
                    raise
            if one.after.kind != "directory":
                os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)
                # The kernel does nothing where both are names of one file.
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=fd)
                os.fsync(fd)
            return ""
    except FileNotFoundError:
        if one.after is None:
            return ""
        raise
    except OSError as err:
        if err.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return f"{shown} stays: it holds {_held(ws, one.path)}."
        raise


def _info(ws: Workspace, path: str) -> os.stat_result | None:
    with suppress(OSError), _folder(ws, path) as (fd, name):
        info = os.stat(name, dir_fd=fd, follow_symlinks=False)
        return info if stat.S_ISREG(info.st_mode) else None
    return None


def _lost(path: str, was: os.stat_result | None, now: os.stat_result | None) -> list[str]:
    """Return what a file lost that an undo put another content into."""
    if was is None or now is None:
        return []
    shown, out = tree_changes.printable(path), []
    if was.st_mode & ~now.st_mode & (stat.S_ISUID | stat.S_ISGID):
        out.append(f"{shown} had a set-user-id or set-group-id bit, which no undo gives.")
    if (was.st_uid, was.st_gid) != (now.st_uid, now.st_gid):
        out.append(f"{shown} belonged to {was.st_uid}:{was.st_gid} and belongs to {now.st_uid}:{now.st_gid} now.")
    return out


def _held(ws: Workspace, path: str) -> str:
    """Return, in words, what keeps a folder from being removed."""
    with suppress(OSError), _folder(ws, f"{path}/.git") as (fd, name):
        os.stat(name, dir_fd=fd, follow_symlinks=False)
        return "a git repository, which is not recorded; remove it by hand where it is not wanted"
    return "files that this change did not make"


def _is_begun(now: State | None, one: Change) -> bool:
    """Tell whether a folder was made, and has not its mode yet: modes are set last, because they may close a folder."""
    if now is None or one.after is None or now.kind != "directory" or one.after.kind != "directory":
        return False
    return (one.before is None or one.before.kind != "directory") and not now.mode & 0o077


def _remove(fd: int, name: str, now: State | None) -> None:
    if now is not None and now.kind == "directory":
        os.rmdir(name, dir_fd=fd)
    else:
        os.unlink(name, dir_fd=fd)


def _put(contents: Contents, fd: int, name: str, temporary: str, state: State) -> None:
    """Make a folder in place, or a file, link or pipe under a temporary name. Raises OSError."""
    if state.kind == "directory":
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=fd)
    elif state.kind == "link":
        os.symlink(os.fsencode(state.value or ""), os.fsencode(temporary), dir_fd=fd)
    elif state.kind == "fifo":
        os.mkfifo(temporary, 0o600, dir_fd=fd)
        _set_mode(fd, temporary, state.mode)
    else:
        _write(contents, fd, name, temporary, state)


def _linked(ws: Workspace, fd: int, temporary: str, one: Change, later: set[str]) -> bool:
    """Make a hard link to another name that the file had, where that name is there with the same content.

    A name whose step comes `later` may be of another file still, with the same content: it will be linked to this one.
    """
    state = one.after
    if state is None:
        return False
    for path in state.links:
        if path in later:
            continue
        with suppress(OSError), _folder(ws, path) as (other, name):
            if _alike(snapshots_tree.state_at(other, name), state):
                os.link(name, temporary, src_dir_fd=other, dst_dir_fd=fd, follow_symlinks=False)
                return True
    return False


def _write(contents: Contents, fd: int, name: str, temporary: str, state: State) -> None:
    """Write a file under a temporary name, with the owner and the attributes of the file that is there. Raises OSError."""
    made = os.open(temporary, _NEW, 0o600, dir_fd=fd)
    with open(made, "wb") as file:
        try:
            file.writelines(contents.blocks(bytes.fromhex(state.value or "")))
        except ValueError:
            raise OSError(errno.EIO, "the stored content is damaged") from None
        file.flush()
        with suppress(FileNotFoundError):
            there = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISREG(there.st_mode):
                atomic_replace.copy_metadata(fd, name, made, there)
        os.fchmod(made, state.mode)
        os.fsync(made)


def _set_modes(ws: Workspace, changes: Sequence[Change]) -> None:
    """Give folders their modes, the inner first: a mode can make a folder unwritable."""
    for one in sorted(changes, key=lambda one: -one.path.count("/")):
        if one.after is not None and one.after.kind == "directory":
            with suppress(OSError), _folder(ws, one.path) as (fd, name):
                if stat.S_IMODE(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode) != one.after.mode:
                    _set_mode(fd, name, one.after.mode)


def _set_mode(fd: int, name: str, mode: int) -> None:
    opened = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
    try:
        # Through /proc, because no chmod takes a descriptor opened with O_PATH.
        os.chmod(f"/proc/self/fd/{opened}", mode)
    finally:
        os.close(opened)


def _temporary(entry_id: str, path: str) -> str:
    return f".rye-{sha256(f'{entry_id}/{path}'.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}.tmp"

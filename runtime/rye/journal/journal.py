"""The record of each change of a file, by which it can be undone; `rye.journal.commit` makes the changes.

An entry is one file, `<state>/journal/<id>.json` (0600): the time, the tool, who called it, the path, the digests before and
after, and the splices with the raw lines removed and added and their IDs. Before the file is touched the entry is written as
`<state>/journal/pending/<id>.json`. So the next call after a crash can tell whether the change was made, complete or drop the
entry, and remove the temporary file that it names. What a command changes is recorded by `rye.journal.tree_changes`.

Locks are taken in this order, so that no two processes wait for each other (`rye.fs.atomic.in_order` asserts it):

    a call's key    `<state>/calls/.KEY`: one attempt of a named call at a time
    files           `.ai/cache/locks`: all that a call changes, at once and in the order of their names. Recovery takes those of
                    what it recovers beside them, and waits for none of them longer than a second
    the tree        `<state>/tree/lock`: whole for a look, and for an undo of what a command changed; shared for an edit
    the index       `<state>/journal/lock`: while a line is added, or the journal is trimmed
    SQLite          `rye.snapshots.contents.in_sqlite`, within one process: whatever is done in the library. A fork waits for it

Other locks are held for one file of our own, and nothing is waited for meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from typing import TYPE_CHECKING, Any

from rye.call import context
from rye.call.results import call_text
from rye.errors import EditError, UsageError, WorkspaceError
from rye.fs import atomic, names
from rye.journal import entries, history
from rye.journal.entries import Entry, Recorded
from rye.line_ids import document, store
from rye.plain_class import changed
from rye.workspace import running_commands
from rye.workspace.atomic_replace import digest_of, sweep
from rye.workspace.encoding import UTF8, Encoding, is_text
from rye.workspace.text import split
from rye.workspace.workspace import Place, Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path


# A pending record that is not whole, and older than this, was cut short by a crash (seconds).
_TORN_AFTER = 60


def new_entry(
    ws: Workspace, tool: str, path: str, before: str | None, after: str | None, encoding: str, splices: list[Recorded]
) -> Entry:
    """Return an entry by the running call's caller, with an ID that comes after all of the journal, whatever the clock says."""
    now = time.time()
    name = f"{history.next_number(ws, now):011x}{os.urandom(2).hex()}"
    return Entry(
        name, now, tool, path, before, after, encoding, splices, actor=context.actor(), key=context.current().options.key
    )


def undoing(entry: Entry, undoes: str) -> Entry:
    """Return an entry that undoes another one: its ID comes after that one's."""
    after = int(undoes[:11], 16) + 1
    return changed(entry, id=f"{max(int(entry.id[:11], 16), after):011x}{entry.id[11:]}", undoes=undoes)


def whole_entry(
    ws: Workspace, tool: str, place: Place, old: bytes | None, data: bytes | None, encoding: str | None = None
) -> Entry:
    """Return the entry for a change of a whole file: all lines out, all lines in, with the IDs that the old ones have.

    `encoding` is that of the new content; None: as its bytes tell. So do those of an old content that was never read.
    """
    before, after = (None if content is None else digest_of(content) for content in (old, data))
    stored = None if old is None else store.load(ws, place.path, dense=False)
    # The index of another content would name other lines.
    known = stored if stored is not None and stored.index.content_hash == before else None
    code = known.encoding if known is not None else _told_by(old, encoding, stored)
    removed = split(old or b"", code)
    ids = {at: mark.id for at, mark in known.index.marks.items()} if known is not None else {}
    line_ids = [ids.get(at) for at in range(len(removed))]
    shorts = known.index.addresses.runs if known is not None else []
    told = known is not None and any(mark.short_shown for mark in known.index.marks.values())
    after_code = _told_by(data, None, stored).name if encoding is None else encoding
    added = split(data or b"", Encoding(after_code, newline="\n".encode(after_code)))
    mode = stat.S_IMODE(place.stat.st_mode) if place.stat is not None and data is None else None
    splice = Recorded(0, removed, added, line_ids, removed_shorts=shorts, told=told)
    entry = new_entry(ws, tool, place.shown, before, after, code.name, [splice])
    folders = [names.show(b"/".join(parts)) for parts in place.made] if old is None else []
    return changed(entry, whole=True, mode=mode, encoding_after=after_code, folders=folders)


def _told_by(content: bytes | None, declared: str | None, stored: store.Stored | None) -> Encoding:
    """Return the encoding of a content by its bytes; where they do not tell, what is remembered of the file, or declared."""
    others = [stored.encoding.name] if stored is not None else []
    for name in (None, *others, *([declared] if declared is not None else [])):
        # Bytes with NULs are UTF-16 without a mark, or no text: only what is known of the file tells.
        with contextlib.suppress(WorkspaceError, UsageError):
            code = document.encoding_of(content or b"", name, stored)
            if name is None or (len(code.newline) > 1 and is_text(content or b"", code)):
                return code
    return UTF8


def folders_removed(ws: Workspace, made: Sequence[Entry]) -> list[Entry]:
    """Remove the empty folders of entries that deleted a file, and return the entries with those that are gone now.

    A folder that holds anything stays. It may be done twice, so that a crash in between does no harm.
    """
    folders = {folder for entry in made if entry.after is None for folder in entry.folders}
    if not folders:
        return [*made]
    _remove_empty(ws, folders)
    there = {folder for folder in folders if os.path.lexists(os.path.join(os.fsencode(ws.real), names.parse(folder)))}
    return [
        changed(entry, folders=[one for one in entry.folders if one not in there]) if entry.after is None else entry
        for entry in made
    ]


def take_back_folders(ws: Workspace, made: Iterable[Entry]) -> None:
    """Remove the empty folders that were made for files which then did not come."""
    _remove_empty(ws, {folder for entry in made if entry.before is None for folder in entry.folders})


def _remove_empty(ws: Workspace, folders: Iterable[str]) -> None:
    ws.remove_empty(tuple(names.parse(folder).split(b"/")) for folder in folders)


@contextlib.contextmanager
def place_for(ws: Workspace, path: str, *, guarded: bool = True) -> Iterator[Place]:
    """Hold open the folder in which a file will be, and make what is missing of it; parameters and errors as `Workspace.place`.

    A note of the folders is stored until the block ends, so that a kill in it leaves none of them empty.
    """
    folders = ws.missing_folders(path)
    with running_commands.running(ws.fd) if folders else contextlib.nullcontext("") as token:
        note = _note_folders(ws, folders, token)
        try:
            with ws.place(path, create_parents=True, guarded=guarded) as place:
                yield place
        finally:
            if note is not None:
                with contextlib.suppress(OSError):
                    note.unlink(missing_ok=True)


def new_place(stack: contextlib.ExitStack, ws: Workspace, path: str, *, dry_run: bool) -> Place:
    """Hold the place of a new file as `place_for`, until the stack ends.

    A dry run makes no folders, so that there may be nothing to hold.
    """
    try:
        return stack.enter_context(ws.place(path) if dry_run else place_for(ws, path))
    except WorkspaceError as err:
        if err.code != "file_not_found" or not dry_run:
            raise
        return Place(-1, ws.components(path), None)


def _note_folders(ws: Workspace, folders: Sequence[bytes], token: str) -> Path | None:
    if not token:
        return None
    record = {"folders": [names.show(one) for one in folders], "token": token}
    with contextlib.suppress(OSError):
        waiting = history.folder(ws) / "pending"
        waiting.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = waiting / f"{os.urandom(8).hex()}.folders"
        # In one step: half of a note would be none.
        atomic.write(path, entries.dump(record), 0o600, durably=False)
        return path
    return None


def recover_folders(ws: Workspace, note: Path) -> None:
    """Remove the empty folders that a process which was killed had made for a file. Raises OSError."""
    known = entries.read(note, lambda record: (str(record["token"]), [str(one) for one in record["folders"]]))
    if known is None:
        drop_if_old(note)
    elif not running_commands.is_alive(ws.fd, known[0]):
        _remove_empty(ws, known[1])
        note.unlink(missing_ok=True)


def link_count(place: Place) -> int:
    """Return how many hard links a change parts a file from, itself counted; 0 where it has one name."""
    return place.stat.st_nlink if place.stat is not None and place.stat.st_nlink > 1 else 0


def notes(place: Place) -> list[str]:
    """Return the warnings of a change that was made: of other hard links, and of what the file lost or never allowed."""
    count = link_count(place)
    out = [f"{place.shown} had {count} hard links; this one now holds the new content, the others the old."] if count else []
    if place.stat is not None and not place.stat.st_mode & 0o222:
        out.append(f"{place.shown} has no write permission; it was changed all the same.")
    # Of a file that was deleted there is nothing to say.
    with contextlib.suppress(OSError):
        out += lost(place.shown, place.stat, os.stat(place.name, dir_fd=place.dir_fd, follow_symlinks=False))
    return out


def lost(shown: str, was: os.stat_result | None, now: os.stat_result | None) -> list[str]:
    """Return what a file lost that another content was put into."""
    out: list[str] = []
    if was is None or now is None:
        return out
    if was.st_mode & ~now.st_mode & (stat.S_ISUID | stat.S_ISGID):
        out.append(f"{shown} had a set-user-id or set-group-id bit, which no change of its content keeps.")
    if (was.st_uid, was.st_gid) != (now.st_uid, now.st_gid):
        out.append(f"{shown} belonged to {was.st_uid}:{was.st_gid} and belongs to {now.st_uid}:{now.st_gid} now.")
    return out


def begin(path: Path, made: Sequence[Entry], record: Callable[[Sequence[Entry]], dict[str, Any]], *, durably: bool) -> None:
    """Write the record of changes that are made next, each with its temporary name. Raises OSError."""
    data = entries.dump(record(made))
    # A larger one would displace most others in the journal; without its lines it is listed, but cannot be undone.
    if len(data) > context.settings().number("journal.max_bytes") // 2:
        data = entries.dump(record([entries.emptied(one) for one in made]))
    try:
        with os.fdopen(_new_file(path), "wb") as file:
            file.write(data)
            if durably:
                file.flush()
                os.fsync(file.fileno())
        if durably:
            atomic.sync(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        raise


def _new_file(path: Path, tries: int = 16) -> int:
    """Make a file, with its folder, which whoever empties it takes away. Raises OSError."""
    try:
        return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        if not tries:
            raise
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _new_file(path, tries - 1)


def finish(pending: Path, entry: Entry, made: Entry) -> None:
    """Put a pending entry into the journal as what was made. Its line in the index comes first: no entry is without one."""
    where = pending.parent.parent
    if made.folders != entry.folders:
        atomic.write(pending, entries.dump(entries.record_of(made)), 0o600)
        entry = made
    full = history.append(where, [history.row_of(entry, pending)])
    pending.rename(where / pending.name)
    if full:
        history.trim(where)


def settle(ws: Workspace, pending: Path, entry: Entry, places: Sequence[Place], *, is_gone: bool) -> None:
    """Record a change that was cut off if it was made, else drop it. Without a place its folder went, too. Raises OSError."""
    if not is_gone and all(sweep(place, entry.temporary.encode(), entry.before, entry.after) for place in places):
        (made,) = folders_removed(ws, [entry])
        finish(pending, entry, made)
    else:
        take_back_folders(ws, [entry])
        pending.unlink(missing_ok=True)


def find(ws: Workspace, entry_id: str) -> Entry:
    """Return one entry.

    Raises:
        EditError: `unknown_entry`; `damaged_entry`, when its record is there and is not whole.
    """
    path = history.folder(ws) / f"{entry_id}.json"
    # The ID comes from the caller and becomes a file name: no slash and no dot may pass.
    if entry_id.isalnum() and path.exists():
        entry = entries.load(path)
        if entry is not None:
            return entry
        why = f"The record of change {entry_id} is damaged, so it cannot be undone. Nothing was written."
        hint = f"Use git to restore the file, or {call_text('undo', list=True)} to see the other changes."
        raise EditError("damaged_entry", why, hint)
    what = f"There is no change {entry_id!r} in this project's journal."
    raise EditError("unknown_entry", what, f"Call {call_text('undo', list=True)} to see them.")


def made_by_named_calls(ws: Workspace, path: str, before: str, after: str) -> bool:
    """Tell whether named calls alone led from one content of a file to another (digests), as the journal has it.

    Their callers know of them: each asks again after a crash, and is told that its change was made.
    """
    for row in history.History(ws).of_path(path):
        entry = history.entry_of(ws, row)
        if entry is None or not entry.key or entry.files is not None or entry.after != after:
            break
        after = entry.before or ""
        if after == before:
            return True
    return False


def drop_if_old(path: Path) -> None:
    """A record cut short by a crash: the change had not begun. Another process may be writing it just now."""
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > _TORN_AFTER:
            path.unlink(missing_ok=True)

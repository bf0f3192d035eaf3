"""What takes back a change of one file: its lines are found by their IDs, or by comparing the text; exactly, or refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from types import MappingProxyType

from rye.call.results import call_text
from rye.edits.apply import FileChange, Prepared, WholeFile, prepare
from rye.errors import EditError, WorkspaceError
from rye.journal import followed_lines, hunks, journal
from rye.journal.entries import Entry, Recorded
from rye.journal.history import History, short
from rye.line_ids import document as documents
from rye.line_ids.addresses import Addresses
from rye.line_ids.document import Document
from rye.line_ids.reconcile import Revived, Splice
from rye.plain_class import changed
from rye.workspace import cache
from rye.workspace.text import Text
from rye.workspace.workspace import Place, Workspace

UNDO = "rye/file-system/undo"
# So many later changes are named by a refusal.
_NAMED = 5


@contextmanager
def reversals(
    ws: Workspace, entries: Sequence[Entry], *, dry_run: bool, chosen: Mapping[str, Sequence[int]] = MappingProxyType({})
) -> Iterator[list[FileChange]]:
    """Hold the files of some entries, and work out what undoes each; every file that has changed since is named.

    Args:
        ws: the workspace.
        entries: the changes, each of another file.
        dry_run: make no folders.
        chosen: of some entries, by ID, the numbers of the hunks to take back; of the others all.

    Raises:
        EditError: `not_recorded`, `changed_since`, `damaged_entry`.
    """
    with ExitStack() as stack:
        # Places first: the locks are named by the physical paths.
        places = [
            journal.new_place(stack, ws, one.path, dry_run=dry_run)
            if one.after is None
            else stack.enter_context(ws.place(one.path))
            for one in entries
        ]
        stack.enter_context(cache.locked(ws, *(place.path for place in places)))
        pieces: list[FileChange] = []
        refused: list[EditError] = []
        for entry, place in zip(entries, places, strict=True):
            try:
                pieces.append(FileChange(place, _reversal(ws, entry, place, stack, chosen.get(entry.id))))
            except EditError as err:
                refused.append(err)
        if refused:
            messages = " ".join(err.message for err in refused)
            current = [place for err in refused for place in err.details.get("current", ())]
            hint = refused[0].hint + _later(ws, entries)
            raise EditError(refused[0].code, messages, hint, **({"current": current} if current else {}))
        yield pieces


def _later(ws: Workspace, entries: Sequence[Entry]) -> str:
    """Name the changes of some entries' files that came later and still stand, the newest first."""
    history, names = History(ws), dict[str, None]()
    ids, paths = {one.id for one in entries}, {one.path for one in entries}
    for row in history:
        if row.id in ids:
            break
        if row.undoes is None and row.id not in history.undone and row.path in paths:
            names[short(row.batch or row.id)] = None
    return f" Later changes, to be undone first: {', '.join([*names][:_NAMED])}." if names else ""


def _reversal(
    ws: Workspace, entry: Entry, place: Place, stack: ExitStack, numbers: Sequence[int] | None
) -> Prepared | WholeFile:
    """Work out what undoes an entry, or hunks of it; the caller holds the file's lock."""
    if not entry.splices and entry.before != entry.after:
        why = f"Change {entry.id} of {entry.path} was too large to be stored for undo. Nothing was written."
        raise EditError("not_recorded", why, "Use git to restore the file.")
    if entry.whole and (numbers is None or hunks.whole_sides(entry) is None):
        restored = _restored(ws, entry, place)
        if restored is not None:
            return restored
    document = _opened(ws, entry, place, stack)
    exact = document.index.content_hash == entry.after
    spots = _spots(ws, document, entry, numbers, exact=exact)
    names = [_names_in(entry, one) for one in hunks.of_file(entry) if numbers is None or one.number in numbers]
    if not _apart(document.text, spots):
        raise _changed(entry, "the file ended, or ends now, in a line without a newline there")
    spots = [spot._replace(names=known) for spot, known in zip(spots, names, strict=True)]
    made = prepare(document, spots, UNDO, undoes=entry.id)
    # From exactly the content that the change left, undo must give exactly the content before it.
    if exact and numbers is None and made.entry.after != entry.before:
        raise _damaged(entry)
    if numbers is None:
        return made
    return changed(made, entry=changed(made.entry, hunks=[*numbers], hunk_count=len(hunks.of_file(entry))))


def _opened(ws: Workspace, entry: Entry, place: Place, stack: ExitStack) -> Document:
    """Open the file, by the entry's encoding where nothing else tells that it is text."""
    why = ""
    for encoding in (None, entry.encoding):
        try:
            return stack.enter_context(documents.open_locked_for_edit(ws, entry.path, place.parts, encoding))
        except WorkspaceError as err:
            if err.code not in ("file_not_found", "binary_file"):
                raise
            why = str(err)
    raise _changed(entry, why)


def _damaged(entry: Entry) -> EditError:
    why = f"What change {entry.id} recorded does not give the content that {entry.path} had before it. Nothing was written."
    return EditError("damaged_entry", why, "Use git to restore the file.")


def _names_in(entry: Entry, hunk: hunks.Hunk) -> Revived:
    """Return what the lines were called that a hunk removed."""
    if not entry.whole:
        return _revivable(entry.splices[hunk.number - 1])
    return _revivable(entry.splices[0], hunk.start - 1, hunk.start - 1 + len(hunk.removed))


def _revivable(splice: Recorded, start: int = 0, stop: int | None = None) -> Revived:
    """Return what the removed lines [start, stop) of a splice were called."""
    stop = len(splice.removed) if stop is None else stop
    ids = splice.removed_ids[start:stop] or [None] * (stop - start)
    return Revived(ids, Addresses(splice.removed_shorts).part(start, stop), [splice.told] * len(ids))


def _spots(ws: Workspace, document: Document, entry: Entry, numbers: Sequence[int] | None, *, exact: bool) -> list[Splice]:
    """Find where an entry's hunks are now: exactly, by the record, or by the IDs of an edit's lines and their neighbours."""
    wanted = [one for one in hunks.of_file(entry) if numbers is None or one.number in numbers]
    if exact:
        return [Splice(one.new_start - 1, one.new_start - 1 + len(one.added), [*one.removed]) for one in wanted]
    found = followed_lines.places(ws, entry, wanted, document.data or b"") if wanted else ([], [])
    if (found is None or found[1]) and not entry.whole:
        by_ids = _by_ids(document, entry, wanted)
        found = by_ids if found is None or not by_ids[1] else found
    if found is None:
        raise _changed(entry, "its content is another")
    if found[1]:
        code = document.text.encoding.name
        places = [hunks.in_the_way(document.path, document.text.lines(one.start, one.stop), one, code) for one in found[1]]
        raise _changed(entry, "the lines it made, or their neighbours, are not there any more as it left them", places)
    return found[0]


def _by_ids(document: Document, entry: Entry, wanted: Sequence[hunks.Hunk]) -> tuple[list[Splice], list[hunks.Missing]]:
    """Find hunks of an edit where the record does not tell all that became of the file."""
    positions = document.index.positions()
    found: list[Splice] = []
    missing: list[hunks.Missing] = []
    for number, splice in ((one.number, entry.splices[one.number - 1]) for one in wanted):
        start = _spot(document, positions, splice)
        # Splices must ascend: lines that were reordered since have no common place.
        if start is None or (found and start < found[-1].stop):
            own = [positions[name] for name in splice.added_ids if name is not None and name in positions]
            above, below = (positions.get(name) if name is not None else None for name in (splice.after_id, splice.before_id))
            made_at = min(splice.start, max(document.text.count - 1, 0))
            missing.append(hunks.Missing(number - 1, *hunks.in_place_of(own, above, below, made_at)))
        else:
            found.append(Splice(start, start + len(splice.added), splice.removed))
    return found, missing


def _apart(text: Text, splices: Sequence[Splice]) -> bool:
    """Tell whether every line but the last would end in a terminator: only a last line can be without a terminator."""
    behind, at = 0, text.count
    for splice in [*reversed(splices), Splice(0, 0, [])]:
        for lines in (text.lines(max(splice.stop, at - 1), at), splice.lines):
            if lines and behind and not text.encoding.terminator(lines[-1]):
                return False
            behind += len(lines)
        at = splice.start
    return True


def _spot(document: Document, positions: dict[str, int], splice: Recorded) -> int | None:
    """Return where the splice's added lines are, if all of them are there, unchanged, together and in their place; else None.

    An ID follows a line to another place by its text alone; a later change may have deleted a short line here and made one like
    it there, and that one is not this splice's to take out. So a neighbour must be beside the lines still; of a deletion both.
    """
    above = -1 if splice.after_id is None else positions.get(splice.after_id)
    below = document.text.count if splice.before_id is None else positions.get(splice.before_id)
    if not splice.added:
        return below if above is not None and below == above + 1 else None
    start = positions.get(splice.added_ids[0] or "") if splice.added_ids else None
    if start is None:
        return None
    stop = start + len(splice.added)
    named = [positions.get(name) if name else None for name in splice.added_ids]
    is_there = named == [*range(start, stop)] and document.text.lines(start, stop) == splice.added
    return start if is_there and (above == start - 1 or below == stop) else None


def _changed(entry: Entry, why: str, current: Sequence[dict[str, object]] = ()) -> EditError:
    what = f"{entry.path} has changed since change {entry.id}: {why}{hunks.said_in_the_way(current)}. Nothing was written."
    changes = call_text("undo", list=True, entry_id=entry.id)
    hint = f"Call {call_text('read', file_path=entry.path)} and edit by line IDs; {changes} shows what the change was."
    return EditError("changed_since", what, hint, **{"current": [*current]} if current else {})


def _restored(ws: Workspace, entry: Entry, place: Place) -> WholeFile | None:
    """Work out what undoes the change of a whole file: the old content, or the absence of a file.

    None where the file has changed since, and its lines may still tell what the change was.
    """
    splice = entry.splices[0]
    data = None if entry.before is None else b"".join(splice.removed)
    now = ws.content_of(place)
    if (None if now is None else sha256(now).hexdigest()) != entry.after:
        if now is not None and hunks.whole_sides(entry) is not None:
            return None
        raise _changed(entry, "the file is gone" if now is None else "its content is another")
    back = journal.whole_entry(ws, UNDO, place, now, data, entry.encoding)
    if back.after != entry.before:
        raise _damaged(entry)
    back = changed(journal.undoing(back, entry.id), mode=back.mode if data is None else entry.mode)
    if data is None:
        back = changed(back, folders=entry.folders)
    # A guess at the encoding of a file that nobody had read stays one.
    declared = entry.encoding if any(splice.removed_ids) or "\n".encode(entry.encoding) != b"\n" else "utf-8"
    return WholeFile(back, data, declared, _revivable(splice))

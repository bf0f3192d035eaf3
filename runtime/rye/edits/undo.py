"""Taking back recorded changes, and listing them: what the tools undo and undo_edit do.

Without more said, the last change of the caller itself is taken back. Another caller's change is taken back by its entry_id.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from itertools import islice
from typing import Any

from rye.call import context, profile
from rye.call.results import Page, cut_notice, fit_lines, ok, start_index
from rye.edits import change_texts
from rye.edits import splices as edits_splices
from rye.edits.apply import FileChange, Prepared, Revived, WholeFile, apply_all, index_whole, prepare, store_applied
from rye.edits.patch_store import new_id
from rye.errors import EditError, UsageError, WorkspaceError
from rye.fs import names
from rye.journal import commit, entries, journal, tree_changes, tree_undo
from rye.journal import history as edits_history
from rye.journal.entries import Entry, Recorded
from rye.journal.history import History, Row
from rye.line_ids import document as documents
from rye.line_ids.document import Document
from rye.line_ids.index import note_shown
from rye.plain_class import Record, changed
from rye.snapshots import tree as snapshots_tree
from rye.workspace import cache
from rye.workspace.path_errors import system_failure
from rye.workspace.text import Text
from rye.workspace.workspace import Place, Workspace

_UNDO = "rye/file-system/undo"
# What is left of a result's bytes for the lines beside the diff.
_NOTICES = 700


class _Chosen(Record):
    """What undo takes back.

    Attributes:
        entries: the changes.
        batch: what they are taken back as; None: one entry by itself.
        part: the one path of a command's change that is taken back; None: all of it.
        warnings: for the result.
    """

    entries: list[Entry]
    batch: str | None = None
    part: str | None = None
    warnings: list[str] = []  # noqa: RUF012 - a Record's default, never changed


def undo(
    project_path: str,
    entry_id: str | None = None,
    limit: int = 20,
    offset: int = 1,
    batch_id: str | None = None,
    file_path: str | None = None,
    *,
    list: bool = False,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Return the result of `rye/file-system/undo`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        EditError: `nothing_to_undo`, `unknown_entry`, `unknown_batch`, `already_undone`, `changed_since`, `not_recorded`,
            `damaged_entry`.
        WorkspaceError: as `journal.apply_change` and `commit.commit`.
        UsageError: `entry_or_batch`; `bad_offset` past the end of the list.
    """
    given = [
        name
        for name, value in (("entry_id", entry_id), ("batchId", batch_id), ("file_path", file_path and not list))
        if value not in (None, False)
    ]
    if len(given) > 1 and given != ["entry_id", "file_path"]:
        raise UsageError("entry_or_batch", f"{' and '.join(given)} are given.", "Give one of them: each names what to undo.")
    with Workspace(project_path) as ws:
        # A change that a crash left pending is not in the index yet; without this it could not be the last change.
        recovered = commit.recover(ws)
        history = History(ws)
        path = None if file_path is None else _recorded_path(ws, file_path)
        if list:
            return _listing(ws, history, limit, offset, path)
        if entry_id is not None:
            chosen = _part(_entry(ws, history, entry_id), path)
        elif batch_id is not None:
            chosen = _Chosen(_of_batch(ws, history, batch_id), batch_id)
        else:
            chosen = _last(ws, history, path)
        revert = _revert if chosen.entries[0].files is None else _revert_tree
        answer = revert(ws, chosen, dry_run=dry_run)
        answer["warnings"][:0] = [*recovered, *chosen.warnings]
        return answer


# --- which change ---


def _recorded_path(ws: Workspace, path: str) -> str:
    """Return a path as entries have it: where links lead, also of a file that is gone."""
    try:
        with ws.place(path) as place:
            return place.shown
    except WorkspaceError as err:
        if err.code not in ("file_not_found", "not_a_directory"):
            raise
        return names.show(b"/".join(ws.components(path)))


def _entry(ws: Workspace, history: History, entry_id: str) -> Entry:
    entry = journal.find(ws, entry_id)
    # An undo is an entry too: undoing that one is the redo, so an entry is undone at most once.
    by = history.undoer(entry.id)
    if by is not None:
        raise EditError(
            "already_undone",
            f"Change {entry.id} is already undone, by {by}. Nothing was written.",
            f'To redo it, call undo(entry_id="{by}").',
        )
    return entry


def _part(entry: Entry, path: str | None) -> _Chosen:
    """Choose a change, or of a command's change what it did at one path."""
    if path is not None and path not in entry.paths:
        raise UsageError(
            "entry_or_batch", f"Change {entry.id} did not change {path}.", "Give its entry_id alone, or a file of it."
        )
    return _Chosen([entry], part=None if entry.files is None else path)


def _of_batch(ws: Workspace, history: History, batch_id: str) -> list[Entry]:
    """Return the entries of a batch that are not undone: the newest of each file."""
    rows: dict[str, Row] = {}
    for row in history.of_batch(batch_id):
        rows.setdefault(row.path, row)
    if not rows:
        raise EditError(
            "unknown_batch",
            f"No change in this project's journal belongs to a batch {batch_id[:80]!r}.",
            "Call undo(list=true) to see the changes; get_patch_change tells what became of a batch.",
        )
    undoers = [history.undoer(row.id) for row in rows.values()]
    current = [row for row, by in zip(rows.values(), undoers, strict=True) if by is None]
    if not current:
        by = history.maker(undoers[0] or "")
        raise EditError(
            "already_undone",
            f"Batch {batch_id} is already undone, by {by}. Nothing was written.",
            f'To redo it, call undo(batchId="{by}").',
        )
    return [journal.find(ws, row.id) for row in current]


def _last(ws: Workspace, history: History, path: str | None) -> _Chosen:
    """Return the caller's own last change that is not undone, of any file or of one; a batch counts as one change."""
    others: Row | None = None
    warnings: list[str] = []
    for row in history:
        if row.undoes is not None or row.id in history.undone or row.tool == tree_changes.SOMEONE_ELSE:
            continue
        if path is not None and ((row.id, path) in history.undone_parts or not _touches(ws, row, path)):
            continue
        if row.actor != context.actor():
            # Remembered for the refusal, so that the caller can name it if it is meant.
            others = others or row
            continue
        try:
            if row.batch is not None and path is None:
                return _Chosen(_of_batch(ws, history, row.batch), row.batch, warnings=warnings)
            entry = journal.find(ws, row.id)
            if entry.files is not None and tree_changes.is_of_running(ws, entry):
                # A job, or the very command that asks: what it does is not over.
                continue
            return _Chosen([entry], None, None if entry.files is None else path, warnings)
        except EditError as err:
            if err.code != "damaged_entry":
                raise
            warnings.append(
                f"The record of a later change is damaged: {row.id}, {change_texts.described(row)}. It was passed over."
            )
    of = "" if path is None else f" of {path}"
    if others is None:
        raise EditError(
            "nothing_to_undo",
            f"No change{of} that the tools made is recorded and not undone yet in this project.",
            "Call undo(list=true) to see what other programs changed between calls; each is taken back by its entry_id.",
        )
    raise EditError(
        "nothing_to_undo",
        f"You have no change{of} to undo here. The last one is another caller's: {change_texts.described(others)}. "
        "Nothing was written.",
        f'To undo that one all the same, call undo(entry_id="{others.id}"); undo(list=true) shows all.',
        entry_id=others.id,
        actor=others.actor,
    )


def _touches(ws: Workspace, row: Row, path: str) -> bool:
    """Tell whether a change has to do with a path; a command's may with several."""
    if row.files == 1:
        return row.path == path
    entry = entries.load(edits_history.folder(ws) / f"{row.id}.json")
    return entry is not None and path in entry.paths


# --- the list ---


def _listing(ws: Workspace, history: History, limit: int, offset: int, path: str | None) -> dict[str, Any]:
    """Return the newest changes with their diffs. A change whose record is damaged cannot be undone and is left out."""
    known: list[tuple[Row, Entry]] = []
    damaged = 0
    rows = iter(history) if path is None else (row for row in history if _touches(ws, row, path))
    # `islice` takes no larger number.
    for row in islice(rows, min(offset - 1 + limit, sys.maxsize)):
        entry = entries.load(edits_history.folder(ws) / f"{row.id}.json")
        if entry is None:
            damaged += 1
        else:
            known.append((row, entry))
    # Of the changes not read yet only the number is known.
    total = len(known) + (history.left if path is None else sum(1 for _ in rows))
    first = start_index(offset, total, "changes")
    page = Page(context.output_budget())
    listed = [
        change_texts.fields(history, row)
        for row, entry in known[first:]
        if page.add(change_texts.block(ws, history, row, entry)[: change_texts.LISTED_LINES])
    ]
    end = first + len(listed)
    if end < total:
        more = f', file_path="{path}"' if path is not None else ""
        page.lines.append(cut_notice(len(listed), total, "changes", f"undo(list=true{more}, offset={end + 1})", total - end))
    return ok(
        "\n".join(page.lines) or "No changes recorded.",
        entries=listed,
        count=len(listed),
        total=total,
        truncated=end < total,
        warnings=[f"{damaged} change(s) with a damaged record are left out: they cannot be undone."] if damaged else [],
        **({"next_offset": end + 1} if end < total else {}),
    )


# --- taking back ---


def _revert(ws: Workspace, chosen: _Chosen, *, dry_run: bool) -> dict[str, Any]:
    """Undo one entry by itself, or all of a batch, or none of it."""
    batch = chosen.batch
    first = chosen.entries[0]
    rest = f'read(file_path="{first.path}")' if batch is None else f'get_patch_change(id="{batch}")'
    with _reversals(ws, chosen.entries, dry_run=dry_run) as reversals:
        pieces = reversals
        diff = [line for piece in pieces for line in _diff_of(piece)]
        shown, cut = fit_lines(diff, context.output_budget() - _NOTICES)
        if cut:
            shown.append(cut_notice(len(shown), len(diff), "diff lines", rest))
        else:
            pieces = [_as_shown(piece) for piece in pieces]
        made: dict[str, Any] = {}
        warnings: list[str] = []
        if not dry_run:
            made, warnings = _apply(ws, pieces, batch)
    verb = "Would undo" if dry_run else "Undid"
    what = "" if batch is None else f"a batch of {len(pieces)} file(s), "
    shown.append(f"{verb} {what}{change_texts.described(first)}.")
    named = {"file_path": first.path} if batch is None else {"file_paths": [entry.path for entry in chosen.entries]}
    return ok(
        "\n".join(shown),
        undone=batch or first.id,
        actor=first.actor,
        time=change_texts.when(first),
        **made,
        **named,
        truncated=cut,
        dry_run=dry_run,
        warnings=warnings,
    )


def _revert_tree(ws: Workspace, chosen: _Chosen, *, dry_run: bool) -> dict[str, Any]:
    """Undo what a command changed, or its part at one path."""
    (entry,) = chosen.entries
    try:
        held = [os.fsencode(path) for path in entry.paths if chosen.part in (None, path)]
        with cache.locked(ws, *held), tree_changes.look_at(ws) as look:
            # What changed until now is recorded as what it is, before anything is written.
            look.attribute()
            planned = tree_undo.plan(ws, look.contents, entry, chosen.part)
            if not planned.changes:
                raise EditError(
                    "already_undone",
                    f"What change {entry.id} changed is as it was before it. Nothing was written.",
                    "undo(list=true) shows the other changes.",
                )
            diff = change_texts.tree_diff(ws, planned.changes)
            made: dict[str, Any] = {}
            warnings: list[str] = []
            if not dry_run:
                profile.refuse_changes(ws.root)
                back = tree_undo.entry_for(ws, planned, _UNDO, entry, chosen.part)
                warnings = tree_undo.make(ws, look.where, look.contents, back)
                made["entry_id"] = back.id
        if not dry_run:
            with tree_changes.look_at(ws) as look:
                look.attribute()
    except OSError as err:
        raise system_failure(err, "The record of changes") from None
    except snapshots_tree.TooLargeError:
        raise EditError("not_recorded", "The project has too many files to be recorded.", "Use git to restore it.") from None
    shown, cut = fit_lines(diff, context.output_budget() - _NOTICES)
    if cut:
        shown.append(cut_notice(len(shown), len(diff), "diff lines", "undo(list=true)"))
    verb = "Would undo" if dry_run else "Undid"
    of = f"{chosen.part} of " if chosen.part is not None else ""
    shown.append(f"{verb} {of}{change_texts.described(entry)}.")
    if planned.merged:
        shown.append(f"Taken out of what changed since: {', '.join(map(tree_changes.printable, planned.merged))}.")
    paths = [tree_changes.printable(one.path) for one in planned.changes]
    return ok(
        "\n".join(shown),
        undone=entry.id,
        actor=entry.actor,
        time=change_texts.when(entry),
        **made,
        file_paths=paths[: change_texts.LISTED_LINES],
        truncated=cut,
        dry_run=dry_run,
        warnings=warnings,
    )


def _apply(ws: Workspace, pieces: Sequence[FileChange], batch: str | None) -> tuple[dict[str, Any], list[str]]:
    """Make the changes; return the fields that name them in the result, and warnings."""
    if batch is not None:
        name = new_id()
        committed = apply_all(ws, pieces, _UNDO, name)
        return {"batchId": name, "entry_ids": committed.entries}, committed.warnings
    (piece,) = pieces
    made, place = piece.made, piece.place
    if isinstance(made, Prepared):
        warnings = journal.apply_change(ws, place, made.document.data or b"", made.entry)
        warnings = store_applied(made, place, made.entry.id, warnings).warnings
    else:
        warnings = journal.apply_change(ws, place, made.data, made.entry)
        if made.data is not None:
            names = Revived(made.ids, made.shorts)
            warnings += index_whole(ws, place, made.data, made.encoding, names, shown=made.shown)
    return {"entry_id": made.entry.id}, warnings


def _as_shown(piece: FileChange) -> FileChange:
    """Return a change whose diff was printed whole: the lines that it gives back can be edited at once."""
    made = piece.made
    if isinstance(made, WholeFile):
        return piece._replace(made=made._replace(shown=True))
    document, shift = made.document, 0
    ranges: list[tuple[int, int]] = []
    for splice in made.splices:
        low, high = splice.start + shift, splice.start + shift + len(splice.lines)
        shift += len(splice.lines) - (splice.stop - splice.start)
        # The lines beside it are in the diff, too.
        ranges.append((max(low - 1, 0), min(high + 1, document.text.count)))
    document.name(ranges)
    for low, high in ranges:
        note_shown(document.index, low, high)
    return piece


@contextmanager
def _reversals(ws: Workspace, entries: Sequence[Entry], *, dry_run: bool) -> Iterator[list[FileChange]]:
    """Hold the files of some entries, and work out what undoes each; every file that has changed since is named.

    Raises:
        EditError: `not_recorded`, `changed_since`.
    """
    with ExitStack() as stack:
        # Places first: the locks are named by the physical paths.
        places = [stack.enter_context(ws.place(one.path, create_parents=one.after is None and not dry_run)) for one in entries]
        stack.enter_context(cache.locked(ws, *(place.path for place in places)))
        pieces: list[FileChange] = []
        refused: list[EditError] = []
        for entry, place in zip(entries, places, strict=True):
            try:
                pieces.append(FileChange(place, _reversal(ws, entry, place, stack)))
            except EditError as err:
                refused.append(err)
        if refused:
            messages = " ".join(err.message for err in refused)
            raise EditError(refused[0].code, messages, refused[0].hint)
        yield pieces


def _reversal(ws: Workspace, entry: Entry, place: Place, stack: ExitStack) -> Prepared | WholeFile:
    """Work out what undoes an entry; the caller holds the file's lock."""
    if not entry.splices and entry.before != entry.after:
        raise EditError(
            "not_recorded",
            f"Change {entry.id} of {entry.path} was too large to be stored for undo. Nothing was written.",
            "Use git to restore the file.",
        )
    if entry.whole:
        return _restored(ws, entry, place)
    document = _opened(ws, entry, place, stack)
    exact = sha256(document.data or b"").hexdigest() == entry.after
    spots = _spots(document, entry, exact=exact)
    made = prepare(document, spots, _UNDO, undoes=entry.id, revive=[_revivable(splice) for splice in entry.splices])
    # From exactly the content that the change left, undo must give exactly the content before it.
    if exact and made.entry.after != entry.before:
        raise _damaged(entry)
    return made


def _opened(ws: Workspace, entry: Entry, place: Place, stack: ExitStack) -> Document:
    """Open the file, by the entry's encoding where nothing else tells that it is text."""
    for encoding in (None, entry.encoding):
        try:
            return stack.enter_context(documents.open_locked_for_edit(ws, entry.path, place.parts, encoding))
        except WorkspaceError as err:
            if err.code == "file_not_found" or (err.code == "binary_file" and encoding is not None):
                raise _changed(entry, str(err)) from None
            if err.code != "binary_file":
                raise
    raise AssertionError(entry.id)


def _damaged(entry: Entry) -> EditError:
    return EditError(
        "damaged_entry",
        f"What change {entry.id} recorded does not give the content that {entry.path} had before it. Nothing was written.",
        "Use git to restore the file.",
    )


def _revivable(splice: Recorded) -> Revived:
    return Revived(splice.removed_ids or [None] * len(splice.removed), splice.removed_shorts)


def _spots(document: Document, entry: Entry, *, exact: bool) -> list[edits_splices.Splice]:
    """Find where the entry's lines are now: exactly, or through the IDs of its lines and their neighbours."""
    if exact:
        return edits_splices.reversed_splices([(s.start, len(s.added), s.removed) for s in entry.splices])
    positions = document.index.positions()
    out: list[edits_splices.Splice] = []
    for splice in entry.splices:
        start = _spot(document, positions, splice)
        # Splices must ascend: lines that were reordered since have no common place.
        if start is None or (out and start < out[-1].stop):
            raise _changed(entry, "the lines it made, or their neighbours, are not there any more as it left them")
        out.append(edits_splices.Splice(start, start + len(splice.added), list(splice.removed)))
    if not _apart(document.text, out):
        raise _changed(entry, "the file ended, or ends now, in a line without a newline there")
    return out


def _apart(text: Text, splices: Sequence[edits_splices.Splice]) -> bool:
    """Tell whether every line but the last would end in a terminator: only a last line can be without a terminator."""
    behind, at = 0, text.count
    for splice in [*reversed(splices), edits_splices.Splice(0, 0, [])]:
        for lines in (text.lines(max(splice.stop, at - 1), at), splice.lines):
            if lines and behind and not text.encoding.terminator(lines[-1]):
                return False
            behind += len(lines)
        at = splice.start
    return True


def _spot(document: Document, positions: dict[str, int], splice: Recorded) -> int | None:
    """Return where the splice's added lines are, if all of them are there, unchanged and together; else None."""
    after = -1 if splice.after_id is None else positions.get(splice.after_id)
    if splice.added:
        first = splice.added_ids[0] if splice.added_ids else None
        start = positions.get(first) if first is not None else None
    else:
        # A deletion left no line to find; its two neighbours, still side by side, are the evidence.
        start = None if after is None else after + 1
        before = document.text.count if splice.before_id is None else positions.get(splice.before_id)
        if before != start:
            return None
    if start is None or document.text.lines(start, start + len(splice.added)) != splice.added:
        return None
    named = [positions.get(name) if name else None for name in splice.added_ids]
    return start if named == [*range(start, start + len(splice.added))] else None


def _changed(entry: Entry, why: str) -> EditError:
    return EditError(
        "changed_since",
        f"{entry.path} has changed since change {entry.id}: {why}. Nothing was written.",
        f'Call read(file_path="{entry.path}") and edit by line IDs; undo(list=true) shows what the change was.',
    )


def _restored(ws: Workspace, entry: Entry, place: Place) -> WholeFile:
    """Work out what undoes the change of a whole file: the old content, or the absence of a file."""
    splice = entry.splices[0]
    data = None if entry.before is None else b"".join(splice.removed)
    now = None
    if place.stat is not None:
        with ws.file(entry.path) as file:
            now = file.read()
    if (None if now is None else sha256(now).hexdigest()) != entry.after:
        raise _changed(entry, "the file is gone" if now is None else "its content is another")
    if (None if data is None else sha256(data).hexdigest()) != entry.before:
        raise _damaged(entry)
    back = journal.whole_entry(ws, _UNDO, place, now, data, entry.encoding)
    back = changed(journal.undoing(back, entry.id), mode=back.mode if data is None else entry.mode)
    return WholeFile(back, data, entry.encoding, splice.removed_ids, shorts=splice.removed_shorts)


def _diff_of(piece: FileChange) -> list[str]:
    made = piece.made
    return made.diff if isinstance(made, Prepared) else change_texts.whole_diff(made.entry)

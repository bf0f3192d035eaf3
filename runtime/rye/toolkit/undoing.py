"""What `undo` does: take back one recorded change, or list them."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any

from rye.errors import EditError, UsageError, WorkspaceError
from rye.record import changed
from rye.toolkit import cache, commits, edits, journal
from rye.toolkit import document as documents
from rye.toolkit.batches import Piece, Whole, land_all
from rye.toolkit.commits import Committed
from rye.toolkit.editing import fit, index_whole
from rye.toolkit.encoding import Encoding
from rye.toolkit.history import History
from rye.toolkit.landing import Prepared, landed, prepare
from rye.toolkit.output import envelope, ok, output_room
from rye.toolkit.patch_store import new_id
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rye.toolkit.document import Document
    from rye.toolkit.journal import Entry, Recorded
    from rye.toolkit.text import Text
    from rye.toolkit.workspace import Place

_UNDO = "rye/file-system/undo"


def undo(
    project_path: str, entry_id: str | None = None, limit: int = 20, offset: int = 1, batch_id: str | None = None, *,
    list: bool = False, dry_run: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/file-system/undo`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        EditError: `nothing_to_undo`, `unknown_entry`, `unknown_batch`, `already_undone`, `changed_since`, `not_recorded`.
        WorkspaceError: as `journal.land` and `commits.commit`.
        UsageError: `entry_or_batch`; `bad_offset` past the end of the list.
    """
    if entry_id is not None and batch_id is not None:
        raise UsageError("entry_or_batch", "entry_id and batchId are both given.", "Give the one or the other.")
    with Workspace(project_path) as ws:
        recovered = commits.recover(ws)
        history = History(ws)
        if list:
            return _listing(history, limit, offset)
        if entry_id is None and batch_id is None:
            last = _last(history)
            entry_id, batch_id = (last.id, None) if last.batch is None else (None, last.batch)
        if batch_id is not None:
            answer = _revert_all(ws, _standing(history, batch_id), batch_id, dry_run=dry_run)
        else:
            answer = _revert_one(ws, _entry(ws, history, entry_id or ""), dry_run=dry_run)
        answer["warnings"][:0] = recovered
        return answer


def _entry(ws: Workspace, history: History, entry_id: str) -> Entry:
    entry = journal.find(ws, entry_id)
    by = history.undoer(entry)
    if by is not None:
        raise EditError(
            "already_undone", f"Change {entry.id} is already undone, by {by}. Nothing was written.",
            f'To redo it, call undo(entry_id="{by}").',
        )  # fmt: skip
    return entry


def _standing(history: History, batch_id: str) -> list[Entry]:
    """Return the entries of a batch that are not undone."""
    entries = history.batch(batch_id)
    if not entries:
        raise EditError(
            "unknown_batch", f"No change in this project's journal belongs to a batch {batch_id[:80]!r}.",
            "Call undo(list=true) to see the changes; get_patch_change tells what became of a batch.",
        )  # fmt: skip
    standing = [entry for entry in entries if entry.id not in history.undone]
    if not standing:
        by = history.read[history.undone[entries[0].id]]
        raise EditError(
            "already_undone", f"Batch {batch_id} is already undone, by {by.batch or by.id}. Nothing was written.",
            f'To redo it, call undo(batchId="{by.batch or by.id}").',
        )  # fmt: skip
    return standing


def _last(history: History) -> Entry:
    for entry in history:
        if entry.undoes is None and entry.id not in history.undone:
            return entry
    raise EditError(
        "nothing_to_undo", "No change of the file tools stands in this project's journal.",
        "Changes made by shell commands or other programs are not recorded; use git for them.",
    )  # fmt: skip


def _listing(history: History, limit: int, offset: int) -> dict[str, Any]:
    known = [*islice(history, min(offset - 1 + limit, sys.maxsize))]
    # Of those not come to it is only known how many files there are.
    total, undone = len(known) + history.left, history.undone
    out: list[str] = []
    rows: list[dict[str, Any]] = []
    room = output_room()
    if offset > max(len(known), 1):
        raise UsageError(
            "bad_offset", f"offset {offset} is past the end: there are {total} changes.",
            f"Use an offset from 1 to {max(total, 1)}.",
        )  # fmt: skip
    for entry in known[offset - 1 :]:
        state = f", undone by {undone[entry.id]}" if entry.id in undone else ""
        about = f", undoes {entry.undoes}" if entry.undoes else ""
        of = f", of batch {entry.batch}" if entry.batch else ""
        block = [f"{entry.id} {_when(entry)} {entry.tool} {entry.path}{about}{of}{state}", *_diff(entry)]
        size = sum(len(line.encode("utf-8", "replace")) + 1 for line in block)
        if size > room and rows:
            break
        room -= size
        out += block[:400]
        rows.append({
            "entry_id": entry.id, "time": _when(entry), "tool": entry.tool, "file_path": entry.path, "undoes": entry.undoes,
            "undone_by": undone.get(entry.id), "batchId": entry.batch,
        })  # fmt: skip
    end = offset - 1 + len(rows)
    if end < total:
        out.append(envelope(len(rows), total, "changes", f"undo(list=true, offset={end + 1})", total - end))
    return ok(
        "\n".join(out) or "No changes recorded.",
        entries=rows,
        count=len(rows),
        total=total,
        truncated=end < total,
        **({"next_offset": end + 1} if end < total else {}),
    )


def _when(entry: Entry) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(entry.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _diff(entry: Entry) -> list[str]:
    """Return the entry's diff without context, which the journal does not keep."""
    code = _code(entry)
    out: list[str] = []
    shift = 0
    for splice in entry.splices:
        removed, added = len(splice.removed), len(splice.added)
        out.append(f"@@ -{splice.start + 1},{removed} +{splice.start + shift + 1},{added} @@")
        out += [f"-{code.show(line)}" for line in splice.removed] + [f"+{code.show(line)}" for line in splice.added]
        shift += added - removed
    return out


def _code(entry: Entry) -> Encoding:
    return Encoding(entry.encoding, newline="\n".encode(entry.encoding))


def _revert_one(ws: Workspace, entry: Entry, *, dry_run: bool) -> dict[str, Any]:
    with _reversals(ws, [entry], dry_run=dry_run) as (piece,):
        warnings: list[str] = []
        if not dry_run:
            made, place = piece.made, piece.place
            if isinstance(made, Prepared):
                warnings = journal.land(ws, place, made.document.data or b"", made.entry)
                warnings = landed(made, place, made.entry.id, warnings).warnings
            else:
                warnings = journal.land(ws, place, made.data, made.entry)
                if made.data is not None:
                    warnings += index_whole(ws, place, made.data, made.encoding, made.ids)
        shown, cut = _shown(_diff_of(piece), f'read(file_path="{entry.path}")')
    return ok(
        shown, undone=entry.id, **({} if dry_run else {"entry_id": piece.made.entry.id}), file_path=entry.path, truncated=cut,
        dry_run=dry_run, warnings=warnings,
    )  # fmt: skip


def _revert_all(ws: Workspace, entries: Sequence[Entry], batch_id: str, *, dry_run: bool) -> dict[str, Any]:
    """Undo all changes of a batch, or none."""
    name = new_id()
    with _reversals(ws, entries, dry_run=dry_run) as pieces:
        committed = Committed([], []) if dry_run else land_all(ws, pieces, _UNDO, name)
        shown, cut = _shown([line for piece in pieces for line in _diff_of(piece)], f'get_patch_change(id="{batch_id}")')
    return ok(
        shown, undone=batch_id, **({} if dry_run else {"batchId": name}), entry_ids=committed.entries, truncated=cut,
        file_paths=[entry.path for entry in entries], dry_run=dry_run, warnings=committed.warnings,
    )  # fmt: skip


@contextmanager
def _reversals(ws: Workspace, entries: Sequence[Entry], *, dry_run: bool) -> Iterator[list[Piece]]:
    """Hold the files of some entries, and work out what undoes each; every file that has changed since is named.

    Raises:
        EditError: `not_recorded`, `changed_since`.
    """
    with ExitStack() as stack:
        places = [stack.enter_context(ws.place(one.path, create_parents=one.after is None and not dry_run)) for one in entries]
        stack.enter_context(cache.locked(ws, *(place.path for place in places)))
        pieces: list[Piece] = []
        refused: list[EditError] = []
        for entry, place in zip(entries, places, strict=True):
            try:
                pieces.append(Piece(place, _reversal(ws, entry, place, stack)))
            except EditError as err:
                refused.append(err)
        if refused:
            said = " ".join(err.message for err in refused)
            raise EditError(refused[0].code, said, refused[0].hint)
        yield pieces


def _reversal(ws: Workspace, entry: Entry, place: Place, stack: ExitStack) -> Prepared | Whole:
    """Work out what undoes an entry; the caller holds the file's lock."""
    if not entry.splices and entry.before != entry.after:
        raise EditError(
            "not_recorded",
            f"Change {entry.id} of {entry.path} was too large to be kept for undo. Nothing was written.",
            "Use git to restore the file.",
        )
    if entry.whole:
        return _restored(ws, entry, place)
    try:
        document = stack.enter_context(documents.opened_for_edit(ws, entry.path, place.parts))
    except WorkspaceError as err:
        if err.code in ("file_not_found", "binary_file"):
            raise _changed(entry, str(err)) from None
        raise
    spots = _spots(document, entry)
    return prepare(document, spots, _UNDO, undoes=entry.id, revive=[_revivable(splice) for splice in entry.splices])


def _revivable(splice: Recorded) -> Sequence[str | None]:
    return splice.removed_ids or [None] * len(splice.removed)


def _spots(document: Document, entry: Entry) -> list[edits.Splice]:
    """Find where the entry's lines stand now: exactly, or through the IDs of its lines and their neighbours."""
    if sha256(document.data or b"").hexdigest() == entry.after:
        return edits.reversed_splices([(s.start, len(s.added), s.removed) for s in entry.splices])
    positions = document.index.positions()
    out: list[edits.Splice] = []
    for splice in entry.splices:
        start = _spot(document, positions, splice)
        if start is None or (out and start < out[-1].stop):
            raise _changed(entry, "the lines it made, or their neighbours, are not there any more as it left them")
        out.append(edits.Splice(start, start + len(splice.added), list(splice.removed)))
    if not _apart(document.text, out):
        raise _changed(entry, "the file ended, or ends now, in a line without a newline there")
    return out


def _apart(text: Text, splices: Sequence[edits.Splice]) -> bool:
    """Tell whether every line would keep the next one apart: only a last line can be without a terminator."""
    behind, at = 0, text.count
    for splice in [*reversed(splices), edits.Splice(0, 0, [])]:
        for lines in (text.lines(max(splice.stop, at - 1), at), splice.lines):
            if lines and behind and not text.encoding.terminator(lines[-1]):
                return False
            behind += len(lines)
        at = splice.start
    return True


def _spot(document: Document, positions: dict[str, int], splice: Recorded) -> int | None:
    """Return where the splice's added lines stand, all of them, unchanged and together; None when they do not."""
    after = -1 if splice.after_id is None else positions.get(splice.after_id)
    if splice.added:
        first = splice.added_ids[0] if splice.added_ids else None
        start = positions.get(first) if first is not None else None
    else:
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
        "changed_since", f"{entry.path} has changed since change {entry.id}: {why}. Nothing was written.",
        f'Call read(file_path="{entry.path}") and edit by line IDs; undo(list=true) shows what the change was.',
    )  # fmt: skip


def _restored(ws: Workspace, entry: Entry, place: Place) -> Whole:
    """Work out what undoes the change of a whole file: the old content, or the absence of a file."""
    splice = entry.splices[0]
    data = None if entry.before is None else b"".join(splice.removed)
    now = None
    if place.stat is not None:
        with ws.file(entry.path) as file:
            now = file.read()
    if (None if now is None else sha256(now).hexdigest()) != entry.after:
        raise _changed(entry, "the file is gone" if now is None else "its content is another")
    back = journal.whole_entry(ws, _UNDO, place, now, data)
    back = changed(journal.undoing(back, entry.id), mode=back.mode if data is None else entry.mode)
    return Whole(back, data, entry.encoding, splice.removed_ids)


def _diff_of(piece: Piece) -> list[str]:
    made, path = piece.made, piece.made.entry.path
    if isinstance(made, Prepared):
        return made.diff
    old = "/dev/null" if made.entry.before is None else f"a/{path}"
    new = "/dev/null" if made.entry.after is None else f"b/{path}"
    return [f"--- {old}", f"+++ {new}", *_diff(made.entry)]


def _shown(diff: Sequence[str], rest: str) -> tuple[str, bool]:
    shown, cut = fit(diff, output_room() - 500)
    if cut:
        shown.append(envelope(len(shown), len(diff), "diff lines", rest))
    return "\n".join(shown), cut

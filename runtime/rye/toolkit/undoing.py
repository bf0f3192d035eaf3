"""What `undo` does: take back one recorded change, or list them."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from rye.errors import EditError, WorkspaceError
from rye.toolkit import cache, edits, journal
from rye.toolkit import document as documents
from rye.toolkit.editing import fit, index_whole
from rye.toolkit.encoding import Encoding
from rye.toolkit.landing import land
from rye.toolkit.output import envelope, ok, output_room
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rye.toolkit.document import Document
    from rye.toolkit.journal import Entry, Recorded
    from rye.toolkit.text import Text

_UNDO = "rye/file-system/undo"


def undo(
    project_path: str, entry_id: str | None = None, limit: int = 20, offset: int = 1, *, list: bool = False,
    dry_run: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/file-system/undo`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        EditError: `nothing_to_undo`, `unknown_entry`, `already_undone`, `changed_since`, `not_recorded`.
        WorkspaceError: as `journal.land`.
    """
    with Workspace(project_path) as ws:
        journal.recover(ws)
        known = [*journal.entries(ws)]
        if list:
            return _listing(known, limit, offset)
        undone = _undone(known)
        entry = _last(known, undone) if entry_id is None else journal.find(ws, entry_id)
        if entry.id in undone:
            raise EditError(
                "already_undone", f"Change {entry.id} is already undone, by {undone[entry.id]}. Nothing was written.",
                f'To redo it, call undo(entry_id="{undone[entry.id]}").',
            )  # fmt: skip
        return _revert(ws, entry, dry_run=dry_run)


def _undone(known: Sequence[Entry]) -> dict[str, str]:
    """Return which entries are undone, by which; newest first, so that an undone undo counts no more."""
    out: dict[str, str] = {}
    for entry in known:
        if entry.undoes is not None and entry.id not in out:
            out.setdefault(entry.undoes, entry.id)
    return out


def _last(known: Sequence[Entry], undone: dict[str, str]) -> Entry:
    for entry in known:
        if entry.undoes is None and entry.id not in undone:
            return entry
    raise EditError(
        "nothing_to_undo", "No change of the file tools stands in this project's journal.",
        "Changes made by shell commands or other programs are not recorded; use git for them.",
    )  # fmt: skip


def _listing(known: Sequence[Entry], limit: int, offset: int) -> dict[str, Any]:
    undone = _undone(known)
    out: list[str] = []
    rows: list[dict[str, Any]] = []
    room = output_room()
    for entry in known[offset - 1 : offset - 1 + limit]:
        state = f", undone by {undone[entry.id]}" if entry.id in undone else ""
        about = f", undoes {entry.undoes}" if entry.undoes else ""
        block = [f"{entry.id} {_when(entry)} {entry.tool} {entry.path}{about}{state}", *_diff(entry)]
        size = sum(len(line.encode("utf-8", "replace")) + 1 for line in block)
        if size > room and rows:
            break
        room -= size
        out += block[:400]
        rows.append({
            "entry_id": entry.id, "time": _when(entry), "tool": entry.tool, "file_path": entry.path, "undoes": entry.undoes,
            "undone_by": undone.get(entry.id),
        })  # fmt: skip
    end = offset - 1 + len(rows)
    if end < len(known):
        out.append(envelope(len(rows), len(known), "changes", f"undo(list=true, offset={end + 1})", len(known) - end))
    return ok(
        "\n".join(out) or "No changes recorded.",
        entries=rows,
        count=len(rows),
        total=len(known),
        truncated=end < len(known),
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


def _revert(ws: Workspace, entry: Entry, *, dry_run: bool) -> dict[str, Any]:
    if not entry.splices and entry.before != entry.after:
        raise EditError(
            "not_recorded",
            f"Change {entry.id} was too large to be kept for undo.",
            "Use git to restore the file.",
        )
    if entry.whole:
        return _restore(ws, entry, dry_run=dry_run)
    try:
        with documents.held_for_edit(ws, entry.path) as document:
            spots = _spots(document, entry)
            revive = [_revivable(splice) for splice in entry.splices]
            landed = land(document, spots, _UNDO, dry_run=dry_run, undoes=entry.id, revive=revive)
    except WorkspaceError as err:
        if err.code in ("file_not_found", "binary_file"):
            raise _changed(entry, str(err)) from None
        raise
    return _result(entry, landed.diff, landed.entry, landed.warnings, dry_run=dry_run)


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


def _restore(ws: Workspace, entry: Entry, *, dry_run: bool) -> dict[str, Any]:
    """Undo the change of a whole file: put the old content, or the absence of a file, back."""
    splice = entry.splices[0]
    data = None if entry.before is None else b"".join(splice.removed)
    create = entry.after is None and not dry_run
    with ws.place(entry.path, create_parents=create) as place, cache.locked(ws, place.path):
        now = None
        if place.stat is not None:
            with ws.file(entry.path) as file:
                now = file.read()
        if (None if now is None else sha256(now).hexdigest()) != entry.after:
            raise _changed(entry, "the file is gone" if now is None else "its content is another")
        back = replace(journal.whole_entry(ws, _UNDO, place, now, data), undoes=entry.id)
        warnings = [] if dry_run else journal.land(ws, place, data, back)
        if data is not None and not dry_run:
            warnings += index_whole(ws, place, data, entry.encoding, splice.removed_ids)
    header = [f"--- a/{entry.path}" if now is not None else "--- /dev/null"]
    header.append(f"+++ b/{entry.path}" if data is not None else "+++ /dev/null")
    return _result(entry, [*header, *_diff(back)], None if dry_run else back.id, warnings, dry_run=dry_run)


def _result(entry: Entry, diff: Sequence[str], made: str | None, warnings: Sequence[str], *, dry_run: bool) -> dict[str, Any]:
    shown, cut = fit(diff, output_room() - 500)
    if cut:
        shown.append(envelope(len(shown), len(diff), "diff lines", f'read(file_path="{entry.path}")'))
    return ok(
        "\n".join(shown), undone=entry.id, entry_id=made, file_path=entry.path, truncated=cut, dry_run=dry_run,
        warnings=[*warnings],
    )  # fmt: skip

"""Landing splices on a held document: render, record, replace, carry the index over; all of it or nothing."""

from __future__ import annotations

import os
from array import array
from typing import TYPE_CHECKING

from rye.errors import EditError, WorkspaceError
from rye.record import Record, changed
from rye.toolkit import carry, index_store, journal, lines
from rye.toolkit import document as documents
from rye.toolkit.edits import Splice, refine, render, unified_diff
from rye.toolkit.journal import Recorded
from rye.toolkit.replace import digest_of
from rye.toolkit.text import Checkpoints, Text, mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rye.toolkit.document import Document
    from rye.toolkit.journal import Entry
    from rye.toolkit.lines import Index
    from rye.toolkit.workspace import Place

# So many new lines of one splice get IDs at once; in a large file the rest get theirs when shown.
_IDS_AT_ONCE = 2_000


class Landed(Record):
    """What an edit did: the document as it is now, the refined splices (old numbering), the diff, the journal entry.

    `indexed` is False where the new index could not be kept: the next read works it out.
    """

    document: Document
    splices: list[Splice]
    diff: list[str]
    entry: str | None
    warnings: list[str]
    indexed: bool = True

    def regions(self, context: int = 2) -> list[tuple[int, int]]:
        """Return the changed ranges [start, stop) in the new text, with `context` lines around, joined where they meet."""
        out: list[tuple[int, int]] = []
        shift = 0
        for splice in self.splices:
            low = max(0, splice.start + shift - context)
            high = min(self.document.text.count, splice.start + shift + len(splice.lines) + context)
            shift += len(splice.lines) - (splice.stop - splice.start)
            if out and low <= out[-1][1]:
                out[-1] = (out[-1][0], high)
            else:
                out.append((low, high))
        return out


class Prepared(Record):
    """An edit worked out to the last byte, and not made yet.

    Attributes:
        document: as it will be; its `data` is the new content.
        splices: refined (old numbering).
        diff: lines of a unified diff.
        entry: what the journal shall say.
    """

    document: Document
    splices: list[Splice]
    diff: list[str]
    entry: Entry


def prepare(
    document: Document, splices: Sequence[Splice], tool: str, *, undoes: str | None = None,
    revive: Sequence[Sequence[str | None]] = (),
) -> Prepared:  # fmt: skip
    """Work out what assembled splices make of a document that is held for editing; nothing is written.

    Args:
        document: from `held_for_edit`, with an index of its present content.
        splices: ascending raw splices, complete (see `edits.assemble`).
        tool: item id for the journal.
        undoes: the journal entry that this reverts.
        revive: for each splice the IDs that its lines had, None where unknown; then splices are taken as they are.

    Raises:
        EditError: `no_change` when the splices change nothing.
    """
    text = document.text
    exact = list(splices) if revive else refine(text, splices)
    if not any(text.lines(s.start, s.stop) != s.lines for s in exact):
        raise EditError(
            "no_change", f"The changes leave {document.path} as it is (no-op). Nothing was written.",
            "Check that the new content differs from what stands there.",
        )  # fmt: skip
    new = render(document.data or b"", text, exact)
    diff = unified_diff(document.path, text, exact)
    changes = _changes(document, exact, revive)
    index = carry.splice(_whole(document.index), changes, digest_of(new))
    after = _text(text, exact, new)
    documents.fit(index, after)
    _name_added(index, after, exact)
    outcome = changed(document, text=after, index=index, before=None, data=new, stored=None)
    recorded = _recorded(document, outcome, exact)
    before = document.index.content_hash
    entry = journal.new_entry(tool, document.path, before, index.content_hash, text.encoding.name, recorded)
    return Prepared(outcome, exact, diff, entry if undoes is None else journal.undoing(entry, undoes))


def land(
    document: Document, splices: Sequence[Splice], tool: str, *, dry_run: bool = False, undoes: str | None = None,
    revive: Sequence[Sequence[str | None]] = (),
) -> Landed:  # fmt: skip
    """Apply assembled splices to a document that is held for editing; with `dry_run` write nothing.

    Raises:
        EditError: as `prepare`.
        WorkspaceError, DeadlineError: nothing was written.
    """
    made = prepare(document, splices, tool, undoes=undoes, revive=revive)
    if dry_run:
        document.ws.guard(document.file.parts)
        return Landed(made.document, made.splices, made.diff, None, [])
    with document.ws.place(document.path) as place:
        warnings = journal.land(document.ws, place, made.document.data or b"", made.entry)
        return landed(made, place, made.entry.id, warnings)


def landed(made: Prepared, place: Place, entry: str, warnings: Sequence[str]) -> Landed:
    """Keep the index of an edit that has just landed under a journal entry; a failure is only a warning by now."""
    after = made.document
    try:
        info = os.stat(place.name, dir_fd=place.dir_fd, follow_symlinks=False)
        index_store.save(after.ws, after.file.path, after.index, after.text.encoding, info, after.text.points)
    except (OSError, WorkspaceError) as err:
        # The change has landed and is recorded: that is what the caller must hear.
        return Landed(after, made.splices, made.diff, entry, [*warnings, index_lost(err)], indexed=False)
    return Landed(changed(after, landed=info), made.splices, made.diff, entry, [*warnings])


def index_lost(err: Exception) -> str:
    """Return the warning of a change that landed, but whose line IDs could not be kept."""
    return f"The change is made, but its line IDs could not be kept ({err}). Read the file again before the next edit."


def _whole(index: Index) -> Index:
    """Return the index detached from the document's own, so that a refused landing leaves that as it was."""
    return changed(index, dead=dict(index.dead), versions=list(index.versions))


def _changes(document: Document, exact: list[Splice], revive: Sequence[Sequence[str | None]]) -> list[carry.Change]:
    """Return the splices as changes of text; a change of terminators alone is none."""
    code = document.text.encoding
    if revive:
        pairs = zip(exact, revive, strict=True)
        return [carry.Change(s.start, s.stop, [code.key(x) for x in s.lines], ids) for s, ids in pairs]
    finer = refine(document.text, exact, key=code.key)
    return [carry.Change(s.start, s.stop, [code.key(x) for x in s.lines]) for s in finer]


def _text(text: Text, exact: list[Splice], new: bytes) -> Text:
    """Return the text of the new content; the checkpoints are carried over instead of scanning it again."""
    points, count = text.points, text.count
    for splice in reversed(exact):
        low, high = text.offset(splice.start), text.offset(splice.stop)
        added = Checkpoints(array("Q"), array("Q"))
        mark(added, splice.lines, splice.start, low)
        grown = sum(map(len, splice.lines)) - (high - low)
        points = points.spliced(splice.start, splice.stop, added, len(splice.lines), grown)
        count += len(splice.lines) - (splice.stop - splice.start)
    if not points.lines or points.lines[0]:
        points = Checkpoints(array("Q", [0]) + points.lines, array("Q", [len(text.encoding.bom)]) + points.offsets)
    return Text(text.encoding, len(new), count, points, lambda low, high: new[low:high])


def _name_added(index: Index, text: Text, exact: list[Splice]) -> None:
    shift = 0
    for splice in exact:
        start = splice.start + shift
        raw = splice.lines[:_IDS_AT_ONCE]
        lines.give_ids(index, start, [text.encoding.key(line) for line in raw])
        shift += len(splice.lines) - (splice.stop - splice.start)


def _recorded(before: Document, after: Document, exact: list[Splice]) -> list[Recorded]:
    out: list[Recorded] = []
    shift = 0
    for splice in exact:
        new_at = splice.start + shift
        out.append(
            Recorded(
                splice.start,
                before.text.lines(splice.start, splice.stop),
                list(splice.lines),
                [_id(before.index, at) for at in range(splice.start, splice.stop)],
                [_id(after.index, at) for at in range(new_at, new_at + len(splice.lines))],
                _id(after.index, new_at - 1),
                _id(after.index, new_at + len(splice.lines)),
            )
        )
        shift += len(splice.lines) - (splice.stop - splice.start)
    return out


def _id(index: Index, at: int) -> str | None:
    mark_ = index.marks.get(at)
    return mark_.id if mark_ else None

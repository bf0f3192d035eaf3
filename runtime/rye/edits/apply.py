"""Apply edits to files: render the new bytes, record them in the journal, replace the file, bring its line index up to date.

An edit of one file, or changes of several files as one: lines edited, or whole files created, replaced or deleted. All of a
call's changes are made, or none. The receipt of an edit for a model's budget has the addresses that lines have now, and text
only where a line holds more than the caller knows: a line that `find` changed and that the caller had not seen.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from itertools import zip_longest
from typing import Literal, NamedTuple

from rye.call.context import advice
from rye.call.results import Page
from rye.edits import syntax_check, view_state
from rye.edits.splices import joined, placed, refine, render, unified_diff
from rye.errors import EditError, RyeError, WorkspaceError
from rye.journal import commit, journal
from rye.journal.entries import Entry, Recorded
from rye.line_ids import addresses, epochs, reconcile, store
from rye.line_ids import document as documents
from rye.line_ids import index as line_ids_index
from rye.line_ids.document import Document
from rye.line_ids.index import Index
from rye.line_ids.reconcile import Revived, Splice
from rye.line_ids.render import Row, joined_ranges
from rye.plain_class import Record, changed, field
from rye.workspace.encoding import Encoding, detect, mark_of
from rye.workspace.text import Text, parse
from rye.workspace.workspace import Place, Workspace

# So many new lines of one splice get IDs at once; in a large file the rest get theirs when shown.
_IDS_AT_ONCE = 2_000
_BATCH = 500
# The lines of a larger new file are named when they are read.
_TOLD_LINES, _TOLD_RANGES = 2_000, 40


class Applied(Record, frozen=False):
    """What an edit did.

    Attributes:
        document: the file as it is now.
        splices: refined, in the old numbering.
        diff: lines of a unified diff.
        entry: the journal entry that undo takes, None after a dry run.
        warnings: what went less than well.
        lines: the lines that the result prints, as `Show` asks for them: number and text, with the ID where it has one.
        cut: whether some of those lines did not fit.
        brief: the answer in short addresses, where `Show` asks for it.
    """

    document: Document
    splices: list[Splice]
    diff: list[str]
    entry: str | None
    warnings: list[str]
    lines: list[Row] = field(factory=list)
    cut: bool = False
    brief: list[str] = field(factory=list)

    def regions(self) -> list[tuple[int, int]]:
        """Return the changed ranges [start, stop) in the new text, with two lines around, joined where they meet."""
        places = ((at - 2, at + len(splice.lines) + 2) for splice, at in placed(self.splices))
        return joined_ranges((max(0, low), min(self.document.count, high)) for low, high in places)

    def printed(self) -> list[str]:
        """Return the lines of the result as tools print them: `12: [LID:a1b2c3] text`."""
        return [row.numbered() for row in self.lines]


class Show(Record):
    """Which lines of the new text an edit's result prints.

    Attributes:
        budget: bytes that the printed lines may have; None: none is printed, and all count as shown.
        ids: print their IDs; a line that is printed with its ID counts as shown.
        span: the lines [start, stop); else the changed ones with two around.
        short: collect the brief answer for models instead, see `answer_lines`.
        short_rows: print short addresses instead of IDs.
        files: how many files the call changes.
    """

    budget: int | None
    ids: bool = True
    span: tuple[int, int] | None = None
    short: bool = False
    short_rows: bool = False
    files: int = 1


class Plan(Record):
    """One change, located: lines [start, stop) of the present text become `raw` lines, called `names` from then on.

    With `quoted` the caller gave the text that is there instead of having been shown it. `beside` is the line that an insertion
    names, -1 for none.
    """

    number: int
    start: int
    stop: int
    raw: list[bytes]
    names: Revived | None = None
    quoted: bool = False
    beside: int = -1


class Prepared(Record):
    """An edit worked out to the last byte, and not made yet.

    Attributes:
        document: as it will be; its `data` is the new content.
        splices: refined (old numbering).
        diff: lines of a unified diff.
        entry: what the journal shall say.
        before: the document before.
        asked: the splices that were asked for, one for each change (old numbering).
    """

    document: Document
    splices: list[Splice]
    diff: list[str]
    entry: Entry
    before: Document
    asked: Sequence[Splice] = ()


def prepare(document: Document, splices: Sequence[Splice], tool: str, *, undoes: str | None = None) -> Prepared:
    """Work out what assembled splices make of a document that is open for editing; nothing is written.

    Args:
        document: from `open_for_edit`, with an index of its present content.
        splices: ascending raw splices, one for each change, complete (see `splices.assemble`).
        tool: item id for the journal.
        undoes: the journal entry that this reverts.

    Raises:
        EditError: `no_change` when the splices change nothing.
    """
    text = document.text
    refined = refine(text, splices)
    exact = joined(refined)
    outcome = successor(document, refined)
    before, after = document.index.content_hash, outcome.index.content_hash
    # Also where a line moves past equal ones.
    if before == after:
        why = f"The changes leave {document.path} as it is (no-op). Nothing was written."
        raise EditError("no_change", why, "Check that the new content differs from the present one.")
    diff = unified_diff(document.path, text, exact)
    recorded = _recorded(document, outcome, exact)
    entry = journal.new_entry(document.ws, tool, document.path, before, after, text.encoding.name, recorded)
    entry = entry if undoes is None else journal.undoing(entry, undoes)
    return Prepared(outcome, exact, diff, entry, document, splices)


def successor(document: Document, refined: list[Splice]) -> Document:
    """Return a document that is open for editing as refined splices make it."""
    text, exact = document.text, joined(refined)
    new = render(document.data or b"", text, exact)
    index = reconcile.splice(document.index, _changes(document, refined), sha256(new).hexdigest())
    after = parse(new, text.encoding)
    # Before new IDs are given: past the bound they must come from a new epoch.
    documents.bound_dead(document.ws, document.file.path, index)
    _give_ids(index, after, exact)
    documents.fit(index, after)
    return changed(document, text=after, index=index, before=None, data=new, stored=None)


def apply(
    document: Document,
    splices: Sequence[Splice],
    tool: str,
    *,
    dry_run: bool = False,
    show: Show | None = None,
    guard: str = "tell",
) -> Applied:
    """Apply assembled splices to a document that is open for editing; with `dry_run` write nothing.

    A syntax error that the change makes is a warning; with `guard` "refuse" it is an error.

    Raises:
        EditError: as `prepare`.
        WorkspaceError, DeadlineError: nothing was written.
    """
    made = prepare(document, splices, tool)
    syntax_findings = syntax_warnings(document, made.document, guard, short=show is not None and show.short)
    if dry_run:
        # A dry run opens no place, so a protected path must be refused here, as the real call refuses it.
        document.ws.guard(document.file.parts)
        return Applied(made.document, made.splices, made.diff, None, syntax_findings)
    with document.ws.place(document.path) as place:
        _, (applied,), warnings = apply_all(document.ws, [FileChange(place, made)], None, show)
    return changed(applied, warnings=[*warnings, *syntax_findings])


def syntax_warnings(before: Document | None, after: Document, guard: str = "tell", *, short: bool = False) -> list[str]:
    """Return the warning about a syntax error that a change made, with the address of its line.

    Raises:
        EditError: `syntax_error`, with `guard` "refuse"; `notebook_broken`. Nothing was written.
    """
    if before is not None and before.as_cells:
        _check_notebook(before, after)
        # That has parsed it.
        if after.cells() is not None:
            return []

    def named(line: int) -> str:
        at = min(line, after.count) - 1
        if at < 0 or not short:
            return f"line {line}" if at < 0 else f"line {at + 1} [LID:{after.ids(at, at + 1)[0]}]"
        return f"address {after.shorts(at, at + 1)[0]}"

    return syntax_check.told(after.path, None if before is None else before.data, after.data or b"", guard, named)


def _check_notebook(before: Document, after: Document) -> None:
    """Refuse a change of cells after which a notebook would be none."""
    if before.cells() is None or after.cells() is not None:
        return
    found = syntax_check.first_error(after.path, after.data or b"")
    why = f" ({found.message}, at line {found.line})" if isinstance(found, syntax_check.Broken) else ""
    raise EditError(
        "notebook_broken",
        f"{after.path} would be no notebook any more{why}. Nothing was written.",
        "Lines of a cell take its text; other lines are JSON."
        + advice("notebook", ' Read and edit_lines with notebook="json" show and edit them as they stand.'),
    )


def _stored(made: Prepared, place: Place, entry: str | None, show: Show | None) -> Applied:
    """Store the index of an edit that was just written under a journal entry; a failure is only a warning by now.

    The lines of the result get their IDs first, so that the index is written once.
    """
    after = made.document
    # Its addresses are in use from here on.
    made.before.known = True
    view_state.follow(after.ws, after.path, made.splices)
    applied = Applied(after, made.splices, made.diff, entry, [])
    try:
        # The document's descriptor still shows the replaced inode, so the index needs the state of the new file.
        after.applied_stat = os.stat(place.name, dir_fd=place.dir_fd, follow_symlinks=False)
        if show is not None and show.short:
            applied.brief = answer_lines(made.before, after, made.asked, show.files)
        elif show is not None:
            _collect(applied, show)
        after.store()
    except (OSError, WorkspaceError) as err:
        # The change is written and recorded: that is what the caller must hear.
        applied.warnings.append(index_not_stored(err))
        applied.lines = [] if show is None or show.ids else applied.lines
    return applied


def _collect(applied: Applied, show: Show) -> None:
    """Collect the lines that the result prints, as many as fit; those printed with their ID count as shown."""
    document, regions = applied.document, applied.regions() if show.span is None else [show.span]
    if show.budget is None:
        document.name(regions)
        document.note_shown(*regions)
        return
    page = Page(show.budget)
    for start, stop in regions:
        at = start
        while at < stop and not page.full:
            # In batches: lines beyond the budget need not be decoded.
            rows = document.rows(at, min(at + _BATCH, stop), ids=show.ids)
            if show.short_rows:
                rows = [addresses.one_view(row, "short") for row in rows]
            fits = page.fill(row.numbered() for row in rows)
            if page.budget < 0:
                # A page takes its first line in any case; an edit is told without one, too.
                fits, page.full = 0, True
            applied.lines += rows[:fits]
            at += fits
        if show.ids:
            # Only printed lines count as shown: an edit of a line that the caller never saw must be refused.
            document.note_shown((start, at), short=show.short_rows)
        if page.full:
            break
    applied.cut = page.full


def prepare_bom(document: Document, place: Place, bom: Literal["add", "remove"], tool: str) -> Prepared:
    """Work out what adds or removes the byte order mark of a document that is open for editing; its lines keep their IDs.

    Raises:
        EditError: `no_change`, `bom_needed`. Nothing was written.
    """
    old, data = document.text.encoding, document.data or b""
    mark = mark_of(old.name) if bom == "add" else b""
    # Without its mark UTF-16 or UTF-32 is bytes with NULs: the next read would refuse the file as binary.
    if (bom == "add" and not mark) or (bom == "remove" and len(old.newline) > 1):
        why = f"{old.name} has no byte order mark" if bom == "add" else f"without it {old.name} would not be recognised"
        raise EditError("bom_needed", f"The byte order mark cannot be changed: {why}. Nothing was written.", "Leave bom out.")
    if mark == old.bom:
        has = "has a byte order mark already" if bom == "add" else "has no byte order mark"
        raise EditError("no_change", f"{document.path} {has} (no-op). Nothing was written.", "Leave bom out.")
    new = mark + data[len(old.bom) :]
    code = changed(old, bom=mark)
    diff = [f"{document.path}: {old.label} -> {code.label}, byte order mark {'added' if mark else 'removed'}"]
    # The mark belongs to no line, so only the content hash changes.
    index = reconcile.splice(document.index, [], sha256(new).hexdigest())
    after = changed(document, text=parse(new, code), index=index, before=None, data=new, stored=None)
    entry = journal.whole_entry(document.ws, tool, place, data, new, code.name)
    return Prepared(after, [], diff, entry, document)


def index_not_stored(err: Exception) -> str:
    """Return the warning of a change that was made, but whose line IDs could not be stored."""
    # The message alone: what an error advises is for a call that did nothing.
    why = (err.message if isinstance(err, RyeError) else str(err)).rstrip(".")
    return f"The change is made, but its line IDs could not be stored ({why}). Read the file again before the next edit."


def _changes(document: Document, splices: list[Splice]) -> list[Splice]:
    """Return the splices of the lines' identifying texts; a change of terminators alone is none."""
    keys = partial(documents.keys, code=document.text.encoding)
    # Compared without terminators: a line whose CRLF became LF keeps its ID.
    return [one._replace(lines=keys(one.lines)) for one in refine(document.text, splices, keys=keys)]


def _give_ids(index: Index, text: Text, exact: list[Splice]) -> None:
    """Give the new lines their IDs, all at once: a splice at a time would take the square of their number.

    So those beside them, which of a large file may have none yet: an undo tells by them whether the new lines are in place.
    """
    added: dict[int, bytes] = {}
    for splice, start in placed(exact):
        raw = [*enumerate(splice.lines[:_IDS_AT_ONCE], start)]
        for at in {start - 1, start + len(splice.lines)} - index.marks.keys():
            raw += enumerate(text.lines(max(at, 0), at + 1), at)
        # A line that has an ID here was recognised or revived; it keeps that one.
        added.update((at, text.encoding.key(line)) for at, line in raw if at not in index.marks)
    line_ids_index.give_ids_at(index, dict(sorted(added.items())))


def _recorded(before: Document, after: Document, exact: list[Splice]) -> list[Recorded]:
    out: list[Recorded] = []
    for splice, new_at in placed(exact):
        old_lines, stop = range(splice.start, splice.stop), new_at + len(splice.lines)
        out.append(
            Recorded(
                splice.start,
                before.text.lines(splice.start, splice.stop),
                list(splice.lines),
                [*map(before.index.id_at, old_lines)],
                [*map(after.index.id_at, range(new_at, stop))],
                after.index.id_at(new_at - 1),
                after.index.id_at(stop),
                before.index.addresses.part(splice.start, splice.stop),
                told=any(map(before.index.is_told, old_lines)),
            )
        )
    return out


class WholeFile(NamedTuple):
    """The change of a whole file: created, replaced or (data None) deleted.

    Attributes:
        entry: from `journal.whole_entry`.
        data: the new content.
        encoding: codec name for its index.
        names: what its lines are called; empty when new.
        shown: the caller has seen these lines as they will be.
        known: the file as it will be, in which unchanged lines are what they were; None: its index begins anew.
        told: where the caller will hear the short addresses of all lines, which count as shown then: ranges are put there.
    """

    entry: Entry
    data: bytes | None
    encoding: str = "utf-8"
    names: Revived = Revived()
    shown: bool = False
    known: Document | None = None
    told: list[str] | None = None


class FileChange(NamedTuple):
    """One file of a batch: its place, held open, and the change to make."""

    place: Place
    made: Prepared | WholeFile


def apply_all(
    ws: Workspace, pieces: Sequence[FileChange], batch: str | None, show: Show | None = None
) -> tuple[list[str], list[Applied], list[str]]:
    """Make all changes or none, under one name in the journal; the caller holds the files' locks.

    Args:
        ws: the workspace.
        pieces: the changes, of different files.
        batch: the name; None for one change that stands by itself.
        show: which lines the result prints.

    Returns:
        The journal's entries (none where it could not be recorded), what became of the files whose lines changed, and warnings.

    Raises:
        WorkspaceError, DeadlineError: as `commit.commit`.
    """
    contents = [(made.document.data or b"") if isinstance(made, Prepared) else made.data for _, made in pieces]
    changes = [commit.Change(place, data, made.entry) for (place, made), data in zip(pieces, contents, strict=True)]
    entries, warnings = commit.commit(ws, changes, batch)
    show = None if show is None else changed(show, files=len(pieces))
    found = [_indexed(ws, piece, entry, show) for piece, entry in zip_longest(pieces, entries)]
    made = [applied for applied, _ in found if applied is not None]
    return entries, made, [*warnings, *(warning for _, more in found for warning in more)]


def _indexed(ws: Workspace, piece: FileChange, entry: str | None, show: Show | None) -> tuple[Applied | None, list[str]]:
    """Store the index of a file that was written; return what an edit did, and warnings."""
    made, place = piece.made, piece.place
    if isinstance(made, Prepared):
        applied = _stored(made, place, entry, show)
        return applied, applied.warnings
    return None, [] if made.data is None else _index_whole(ws, place, made, made.data)


def _index_whole(ws: Workspace, place: Place, made: WholeFile, data: bytes) -> list[str]:
    """Store the index of a file that was written whole; return warnings.

    A new one is of a new epoch: IDs from before are unknown, never another line's, except names that come back.
    """
    view_state.follow(ws, place.shown, None)
    code, names = text_encoding(data, made.encoding), made.names
    if code is None:
        return []
    if made.known is not None:
        index, text = made.known.index, made.known.text
    else:
        text, width, digests = documents.scan(data, code)
        # Of a renamed file the names are of another path's epochs, whose numbers and IDs come back no more than its own.
        epoch = epochs.next_epoch(ws, place.path, store.FOLDER, max((run[2] for run in names.shorts), default=0))
        index = line_ids_index.fresh(epoch, made.entry.after or "", digests, width)
    # Another count means that this encoding splits the lines differently: the recorded IDs would name wrong lines.
    if len(names.ids) == text.count:
        keys = documents.keys(text.lines(), code)
        for at, name in enumerate(names.ids):
            if name is not None:
                told, revision_shown = (
                    bool(names.told) and names.told[at],
                    0 if made.shown or (names.shown and names.shown[at]) else -1,
                )
                index.marks[at] = line_ids_index.LineId(name, line_ids_index.loose_digest(keys[at]), 0, revision_shown, told)
        if names.shorts:
            # None of the first numbers was given then.
            index.addresses, index.numbers = addresses.Addresses(names.shorts), 0
    if made.told is not None and 0 < text.count <= _TOLD_LINES and len(index.addresses.runs) <= _TOLD_RANGES:
        line_ids_index.give_ids(index, 0, documents.keys(text.lines(), code))
        line_ids_index.note_shown(index, 0, text.count, short=True)
        made.told.append(addresses.ranges(index.addresses.names(0, text.count)))
    documents.fit(index, text)
    try:
        # Through the held directory: the path may lead elsewhere by now.
        info = os.stat(place.name, dir_fd=place.dir_fd, follow_symlinks=False)
        store.save(ws, place.path, store.of_state(index, code, info, text.points))
    except (OSError, WorkspaceError) as err:
        if made.told is not None:
            made.told.clear()
        return [index_not_stored(err)]
    return []


def text_encoding(data: bytes, encoding: str) -> Encoding | None:
    """Return the encoding in which the next reader will see the content; None where it is no text."""
    try:
        # A reader declares no encoding for UTF-8, so the content decides here as it will for the reader.
        return detect(data, None if encoding == "utf-8" else encoding)
    except WorkspaceError:
        return None


# Changes with a row of their own, and those of unseen lines; characters of lines that are printed, and of a list of addresses.
_ROWS, _ROWS_UNSEEN, _PRINTED, _NAMED = 12, 3, 500, 400


def answer_lines(before: Document, document: Document, asked: Sequence[Splice], files: int = 1) -> list[str]:
    """Return the lines of the receipt; what it names or prints counts as shown, and so do seen lines that it now stands beside.

    Args:
        before: the file as it was.
        document: the file as it is now.
        asked: what the changes put in place of which lines, ascending, in the old numbering.
        files: how many the call changed: many share what is printed of two.
    """
    out, more = list[str](), list[str]()
    places, left = 0, _PRINTED * 2 // max(2, files)
    for splice, start in placed(asked):
        count = len(splice.lines)
        if before.text.lines(splice.start, splice.stop) == splice.lines:
            continue
        places += 1
        new = document.shorts(start, start + count)
        is_known = all(before.is_seen(at) for at in range(splice.start, splice.stop))
        texts = [] if is_known else document.texts(start, start + count)
        size = sum(map(len, texts))
        if texts and size <= left:
            left -= size
            out += [f"{name}\t{text}" for name, text in zip(new, texts, strict=True)]
            is_known = True
        elif places > (_ROWS if is_known else _ROWS_UNSEEN):
            more += new
        elif row := _row(before, document, splice, new):
            out.append(row)
        beside = [at for at in (start - 1, start + count) if 0 <= at < document.count and document.is_seen(at)]
        shown = [(start, start + count)] if is_known else []
        document.note_shown(*shown, *((at, at + 1) for at in beside), short=True)
    if more:
        named = addresses.ranges(more)
        out.append(f"… -> {named if len(named) <= _NAMED else named[:_NAMED].rpartition(',')[0] + ' …'}")
    return out


def _row(before: Document, document: Document, splice: Splice, new: list[str]) -> str:
    """Return what became of the lines of one change: `12-15 -> 3677-3679`, `12+ -> 380`; nothing of lines that moved."""
    old = before.index.addresses.names(splice.start, splice.stop)
    if old and not new:
        is_moved = any(document.index.place(name) is not None for name in (old[0], old[-1]))
        return "" if is_moved else f"{addresses.ranges(old)} deleted"
    behind = before.index.addresses.names(splice.start - 1, splice.start) if splice.start else []
    place = addresses.ranges(old) if old else f"{behind[0]}+" if behind else "+start"
    return f"{place} -> {addresses.ranges(new)}"

"""Taking back recorded changes, and listing them: what the tools undo and undo_edit do.

Without more said, the last change of the caller itself is taken back. Another caller's change is taken back by its entry_id.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby, islice
from typing import Any

from rye.call import context, profile
from rye.call.results import Page, call_text, cut_notice, first_few, fit_lines, left_out, ok, start_index
from rye.edits import change_texts, reversals
from rye.edits.apply import FileChange, Prepared, Show, WholeFile, apply_all
from rye.edits.patch_store import new_id
from rye.errors import EditError, RyeError, UsageError, WorkspaceError
from rye.fs import names
from rye.journal import file_history, journal, recovery, tree_changes, tree_undo, tree_undo_steps
from rye.journal import history as edits_history
from rye.journal import hunks as edits_hunks
from rye.journal.entries import Entry, printable
from rye.journal.history import History, Row, refuse_confined
from rye.line_ids import store
from rye.plain_class import Record, changed
from rye.workspace import cache
from rye.workspace.workspace import Workspace

# What is left of a result's bytes for the lines beside the diff.
_NOTICES = 700
_LISTED = 20
# A longer diff of several files tells a model little: it knows its own change.
_MOST_LINES, _MOST_FILES = 100, 20


class _Chosen(Record):
    """What undo takes back.

    Attributes:
        entries: the changes.
        batch: what they are taken back as; None: one entry by itself.
        part: the one path of a command's change that is taken back; None: all of it.
        hunks: for some paths, the numbers of the hunks that are taken back; of the others all.
        count: how many hunks the one path has whose hunks are taken back by themselves.
        warnings: for the result.
    """

    entries: list[Entry]
    batch: str | None = None
    part: str | None = None
    hunks: dict[str, list[int]] = {}  # noqa: RUF012 - a Record's default, never changed
    count: int = 0
    warnings: list[str] = []  # noqa: RUF012 - a Record's default, never changed


def undo(
    project_path: str,
    entry_id: str | None = None,
    limit: int = _LISTED,
    offset: int = 1,
    batch_id: str | None = None,
    file_path: str | None = None,
    hunks: Sequence[int] | None = None,
    *,
    list: bool = False,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Return the result of `rye/file-system/undo`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        EditError: `nothing_to_undo`, `unknown_entry`, `unknown_batch`, `already_undone`, `changed_since`, `not_recorded`,
            `damaged_entry`.
        WorkspaceError: as `commit.commit`.
        UsageError: `entry_or_batch`; `unknown_hunk`; `bad_offset` past the end of the list; `one_change`.
    """
    if not list and (limit, offset) != (_LISTED, 1):
        why = "limit and offset are of list=true: a call takes one change back. Nothing was written."
        raise UsageError("one_change", why, f"Give the entry_id of each, the newest first: {call_text('undo', list=True)}.")
    if entry_id is not None and batch_id is not None:
        raise UsageError("entry_or_batch", "entry_id and batchId are given.", "Give one of them: each names what to undo.")
    with Workspace(project_path) as ws:
        # A change that a crash left pending is not in the index yet; without this it could not be the last change.
        recovered = [*recovery.recover(ws), *tree_changes.settle_undo(ws)]
        tree_changes.catch_up(ws, lost_only=not list)
        refuse_confined()
        history = History(ws)
        path = None if file_path is None else _recorded_path(ws, file_path)
        if entry_id is not None:
            entry_id, batch_id = history.meant(entry_id)
        if list:
            if entry_id is not None or batch_id is not None:
                names_of_call = [entry_id] if entry_id else [row.id for row in _rows_of_batch(history, batch_id or "")]
                return _hunk_listing(ws, history, [journal.find(ws, name) for name in names_of_call], path, offset)
            return _listing(ws, history, limit, offset, path)
        if entry_id is not None:
            answer = _taken_back(ws, history, _part(_entry(ws, history, entry_id), path), hunks, dry_run=dry_run)
        elif batch_id is not None:
            answer = _taken_back(ws, history, _in_batch(ws, history, batch_id, path), hunks, dry_run=dry_run)
        else:
            answer = _last_taken_back(ws, history, path, hunks, dry_run=dry_run)
        answer["warnings"][:0] = recovered
        # A terminal and a model see the text alone.
        answer["output"] = "\n".join([answer["output"], *answer["warnings"]])
        return answer


def _last_taken_back(
    ws: Workspace, history: History, path: str | None, hunks: Sequence[int] | None, *, dry_run: bool
) -> dict[str, Any]:
    """Take the last change back that a tool may: one of a place that is protected is passed over, and named."""
    passed: dict[str, str] = {}
    refused: RyeError | None = None
    while True:
        try:
            chosen = _last(ws, history, path, passed)
        except EditError as err:
            raise refused or err from None
        if hunks is None and _is_taken_back(ws, history, chosen):
            passed |= dict.fromkeys((entry.id for entry in chosen.entries), "")
            continue
        try:
            answer = _taken_back(ws, history, chosen, hunks, dry_run=dry_run)
        except RyeError as err:
            if err.code != "protected_path" or path is not None:
                raise
            refused = refused or err
            said = f"{change_texts.described(chosen.entries[0])} was passed over: {err.message}"
            passed |= dict.fromkeys((entry.id for entry in chosen.entries), said)
            continue
        answer["warnings"][:0] = dict.fromkeys(filter(None, passed.values()))
        return answer


def _taken_back(
    ws: Workspace, history: History, chosen: _Chosen, hunks: Sequence[int] | None, *, dry_run: bool
) -> dict[str, Any]:
    chosen = _with_hunks(ws, history, chosen, hunks)
    revert = _revert if chosen.entries[0].files is None else _revert_tree
    try:
        answer = revert(ws, chosen, dry_run=dry_run)
    except RyeError as err:
        if err.code in ("changed_since", "file_not_found") and chosen.part is None and not chosen.hunks:
            # Another process may have taken it back since it was chosen: that is the reason then.
            for entry in chosen.entries:
                _entry(ws, History(ws), entry.id)
        raise
    answer["warnings"][:0] = chosen.warnings
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
        why = f"Change {entry.id} is already undone, by {by}. Nothing was written."
        raise EditError("already_undone", why, f"To redo it, call {call_text('undo', entry_id=by)}.")
    return entry


def _part(entry: Entry, path: str | None) -> _Chosen:
    """Choose a change, or of a command's change what it did at one path."""
    return _Chosen(_having([entry], path), part=_tree_path(entry, path))


def _having(made: Sequence[Entry], path: str | None) -> list[Entry]:
    """Return those of a call's changes that changed a path, or all of them."""
    found = [entry for entry in made if path is None or path in entry.paths]
    if not found:
        paths = list(dict.fromkeys(path for entry in made for path in entry.paths))
        hint = f"Leave file_path out, or give a file of it: {first_few([*map(printable, paths)])}."
        raise UsageError("entry_or_batch", f"Change {made[0].batch or made[0].id} did not change {path}.", hint)
    return found


def _tree_path(entry: Entry, path: str | None) -> str | None:
    """Return a path of a command's change as the change has it; None: all of it, or the change of one file."""
    return None if path is None or entry.files is None else entry.files[entry.paths.index(path)].path


def _in_batch(ws: Workspace, history: History, batch_id: str, path: str | None) -> _Chosen:
    """Choose all files of a batch, or one."""
    found = _having(_of_batch(ws, history, batch_id), path)
    return _Chosen(found, batch_id if path is None else None)


def _with_hunks(ws: Workspace, history: History, chosen: _Chosen, numbers: Sequence[int] | None) -> _Chosen:
    """Choose hunks of a change; without numbers those that are not taken back yet, where some are."""
    entry = chosen.entries[0]
    taken = history.undone_hunks.keys() | history.undone_parts.keys()
    if numbers is None and not any(one.id in taken for one in chosen.entries):
        return chosen
    if numbers is not None and (chosen.batch is not None or (chosen.part is None and len(entry.paths) > 1)):
        raise UsageError("entry_or_batch", f"hunks are given for {len(entry.paths)} files.", "Give file_path, too.")
    found = [hunk for one in chosen.entries for hunk in edits_hunks.of_entry(ws, history, one, chosen.part)]
    by_path: dict[str, list[edits_hunks.Hunk]] = {}
    for hunk in found:
        by_path.setdefault(hunk.path, []).append(hunk)
    wanted: dict[str, list[int]] = {}
    for path, of_path in by_path.items():
        _refuse_undone(entry, [one for one in of_path if one.undone_by and one.number in (numbers or ())])
        left = edits_hunks.chosen(of_path, numbers)
        if left is not None:
            wanted[path] = left
    if wanted and not any(wanted.values()) and len(wanted) == len(by_path):
        _refuse_undone(entry, found)
    if len(by_path) > 1 or not wanted:
        return changed(chosen, hunks=wanted)
    (path,) = wanted
    return changed(chosen, part=path if entry.files is not None else None, hunks=wanted, count=len(by_path[path]))


def _refuse_undone(entry: Entry, found: Sequence[edits_hunks.Hunk]) -> None:
    if found:
        by = found[0].undone_by
        of = f"hunk {', '.join(str(one.number) for one in found)} of change {entry.id}"
        why = f"{of[0].upper()}{of[1:]} is already undone, by {by}. Nothing was written."
        raise EditError("already_undone", why, f"To redo it, call {call_text('undo', entry_id=by)}.")


def _of_batch(ws: Workspace, history: History, batch_id: str) -> list[Entry]:
    """Return the entries of a batch that are not undone: the newest of each file."""
    rows: dict[str, Row] = {}
    for row in _rows_of_batch(history, batch_id):
        rows.setdefault(row.path, row)
    undoers = [history.undoer(row.id) for row in rows.values()]
    current = [row for row, by in zip(rows.values(), undoers, strict=True) if by is None]
    if not current:
        by = history.maker(undoers[0] or "")
        why = f"Batch {batch_id} is already undone, by {by}. Nothing was written."
        raise EditError("already_undone", why, f"To redo it, call {call_text('undo', batchId=by)}.")
    return [journal.find(ws, row.id) for row in current]


def _rows_of_batch(history: History, batch_id: str) -> list[Row]:
    found = history.of_batch(batch_id)
    if not found:
        hint = f"Call {call_text('undo', list=True)} to see the changes; get_patch_change tells what became of a batch."
        raise EditError("unknown_batch", f"No change in this project's journal belongs to a batch {batch_id[:80]!r}.", hint)
    return found


def _last(ws: Workspace, history: History, path: str | None, passed: Collection[str]) -> _Chosen:
    """Return the caller's own last change that is not undone, of any file or of one; a batch counts as one change."""
    others: Row | None = None
    warnings: list[str] = []
    for row in history.rows():
        if row.undoes is not None or row.id in history.undone or row.tool == tree_changes.SOMEONE_ELSE or row.id in passed:
            continue
        # After the rest: most rows are of what was undone before, and this looks at the disk.
        if not history.exists(row):
            continue
        read = None if path is None or row.files == 1 else edits_history.entry_of(ws, row)
        if path is not None and (path in history.undone_parts.get(row.id, ()) or not _touches(row, read, path)):
            continue
        if row.actor != context.actor():
            # Remembered for the refusal, so that the caller can name it if it is meant.
            others = others or row
            continue
        try:
            if row.batch is not None and path is None:
                return _Chosen(_of_batch(ws, history, row.batch), row.batch, warnings=warnings)
            entry = read or journal.find(ws, row.id)
            if entry.files is not None and tree_changes.is_of_running(ws, entry):
                # A job, or the very command that asks: what it does is not over.
                continue
            return _Chosen([entry], None, None if entry.files is None else path, warnings=warnings)
        except EditError as err:
            if err.code != "damaged_entry":
                raise
            warnings.append(
                f"The record of a later change is damaged: {row.id}, {change_texts.described(row)}. It was passed over."
            )
    of = "" if path is None else f" of {path}"
    if others is None:
        why = f"No change{of} that the tools made is recorded and not undone yet in this project."
        changes = call_text("undo", list=True)
        hint = f"Call {changes} to see what other programs changed between calls; each is taken back by its entry_id."
        raise EditError("nothing_to_undo", why, hint)
    name = history.maker(others.id)
    raise EditError(
        "nothing_to_undo",
        f"You have no change{of} to undo here. The last one is another caller's, or yours from another session: "
        f"{change_texts.described(others)}. Nothing was written.",
        f"To undo that one all the same, call {call_text('undo', entry_id=name)}; {call_text('undo', list=True)} shows all.",
        entry_id=others.id,
        actor=others.actor,
    )


def _is_taken_back(ws: Workspace, history: History, chosen: _Chosen) -> bool:
    """Tell whether nothing is left of a change, whose files or hunks were taken back by themselves."""
    taken, entries = history.undone_hunks.keys() | history.undone_parts.keys(), chosen.entries
    return all(
        entry.id in taken and all(hunk.undone_by for hunk in edits_hunks.of_entry(ws, history, entry, chosen.part))
        for entry in entries
    )


def _touches(row: Row, entry: Entry | None, path: str) -> bool:
    """Tell whether a change has to do with a path; a command's, which is read for it, may with several."""
    if row.files == 1:
        return row.path == path
    return entry is not None and path in entry.paths


# --- the list ---


def _listing(ws: Workspace, history: History, limit: int, offset: int, path: str | None) -> dict[str, Any]:
    """Return the newest changes, a row for each call."""
    rows = (
        row
        for row in history
        if path is None or _touches(row, None if row.files == 1 else edits_history.entry_of(ws, row), path)
    )
    calls = [[*group] for _, group in groupby(rows, lambda row: row.batch or row.id)]
    first = start_index(offset, len(calls), "changes")
    page = Page(context.output_budget())
    shown = [one for one in calls[first : first + limit] if page.add([change_texts.listed(ws, history, one)])]
    of = {} if path is None else {"file_path": path}
    listed = [change_texts.fields(history, row) for one in shown for row in one]
    return _page_of(page, "changes", (first, first + len(shown), len(calls)), "No changes recorded.", of, entries=listed)


def _page_of(
    page: Page, unit: str, place: tuple[int, int, int], head: str, named: dict[str, Any], **listed: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the result of a list: its page [first, end) of a total, with the notice of what is left, and its fields."""
    first, end, total = place

    def call(offset: int) -> str:
        return call_text("undo", list=True, **named, offset=offset)

    cut = left_out(page.lines, end - first, end, total, unit, call)
    return ok("\n".join(page.lines) or head, **listed, count=end - first, total=total, warnings=[], **cut)


def _hunk_listing(ws: Workspace, history: History, made: Sequence[Entry], path: str | None, offset: int) -> dict[str, Any]:
    """Return the hunks of a call's changes with their numbers and lines."""
    of_path = _having(made, path)
    found = [hunk for entry in of_path for hunk in edits_hunks.of_entry(ws, history, entry, _tree_path(entry, path))]
    entry = of_path[0]
    first = start_index(offset, len(found), "hunks")
    page = Page(context.output_budget())
    listed = [hunk for hunk in found[first:] if page.add(_hunk_block(hunk))]
    page.lines.insert(0, f"{change_texts.described(entry)}:")
    place = (first, first + len(listed), len(found))
    return _page_of(page, "hunks", place, "", {"entry_id": entry.id}, hunks=edits_hunks.fields(listed))


def _hunk_block(hunk: edits_hunks.Hunk) -> list[str]:
    state = f", undone by {hunk.undone_by}" if hunk.undone_by else ""
    diff = hunk.diff()
    more = len(diff) - change_texts.LISTED_LINES
    diff[change_texts.LISTED_LINES :] = [f"… and {more} more lines"] if more > 0 else []
    return [f"{names.normal(hunk.path)}, hunk {hunk.number}{state}", *diff]


# --- taking back ---


def _revert(ws: Workspace, chosen: _Chosen, *, dry_run: bool) -> dict[str, Any]:
    """Undo one entry by itself, or all of a batch, or none of it."""
    batch = chosen.batch
    first = chosen.entries[0]
    numbers = {one.id: chosen.hunks[one.path] for one in chosen.entries if one.path in chosen.hunks}
    with reversals.reversals(ws, chosen.entries, dry_run=dry_run, chosen=numbers) as pieces:
        moved = _renamed(pieces)
        going = [went.place.path for went in moved.values()]
        diffs = [(one.place.shown, _diff_of(one, moved.get(one.place.path))) for one in pieces if one.place.path not in going]
        shown, cut = _fitting([line for _, lines in diffs for line in lines], diffs, len(diffs), chosen)
        made: dict[str, Any] = {}
        warnings: list[str] = []
        if not dry_run:
            told = pieces if cut else [_as_shown(ws, piece, moved.get(piece.place.path)) for piece in pieces]
            made, warnings = _apply(ws, told, batch, is_shown=not cut)
    parted = [one for one in chosen.entries if one.hard_links]
    warnings += [f"{one.path} had {one.hard_links} hard links, which no undo of an edit joins again." for one in parted]
    what = _said_hunks(chosen) if batch is None else f"a batch of {len(pieces)} file(s), "
    named = {"file_path": first.path} if batch is None else {"file_paths": [entry.path for entry in chosen.entries]}
    return _answer(chosen, shown, what, **made, **named, truncated=cut, dry_run=dry_run, warnings=warnings)


def _fitting(
    diff: Sequence[str], files: Iterable[tuple[str, list[str]]], count: int, chosen: _Chosen
) -> tuple[list[str], bool]:
    """Return as many lines of a diff as fit, with the call that shows the whole change, and whether there is one.

    In place of a long diff of several files stands a line for each of the first.
    """
    rest = call_text("undo", list=True, entry_id=edits_history.short(chosen.batch or chosen.entries[0].id))
    if count > 1 and len(diff) > _MOST_LINES:
        lines = [change_texts.counts(path, of_file) for path, of_file in islice(files, _MOST_FILES)]
        return [*lines, f"[tool_result: {len(lines)} of {count} files, without their lines. Call {rest} to see them.]"], True
    shown, cut = fit_lines(diff, context.output_budget() - _NOTICES)
    return [*shown, *([cut_notice(len(shown), len(diff), "diff lines", rest)] if cut else [])], cut


def _answer(
    chosen: _Chosen, shown: Sequence[str], what: str, *, dry_run: bool, more: Sequence[str] = (), **fields: Any
) -> dict[str, Any]:
    first = chosen.entries[0]
    said = f"{'Would undo' if dry_run else 'Undid'} {what}{change_texts.described(first)}."
    facts = {"undone": chosen.batch or first.id, "actor": first.actor, "time": change_texts.when(first), "dry_run": dry_run}
    return ok("\n".join([*shown, said, *more]), **facts, **fields)


def _planned(ws: Workspace, look: tree_changes.Look, entry: Entry, chosen: _Chosen) -> tuple[tree_changes.Look, tree_undo.Plan]:
    """Return how a command's change is taken back, and the last look before that."""
    for last in look.and_later():
        planned = tree_undo.plan(ws, last.contents, entry, chosen.part, chosen.hunks)
        if last.saw(planned.changes):
            return last, planned
    why = "A command that runs writes these files on and on. Nothing was written."
    raise EditError("changed_since", why, "Wait for its end, or end the job, then undo.")


def _revert_tree(ws: Workspace, chosen: _Chosen, *, dry_run: bool) -> dict[str, Any]:
    """Undo what a command changed, or its part at one path."""
    (entry,) = chosen.entries
    held = [os.fsencode(one.path) for one in entry.files or () if chosen.part in (None, one.path)]
    with cache.locked(ws, *held), tree_changes.look_at(ws, beside=held) as first:
        if chosen.part is None and not chosen.hunks:
            # Another process may have taken it back since it was chosen.
            _entry(ws, History(ws), entry.id)
        look, planned = _planned(ws, first, entry, chosen)
        if not planned.changes:
            why = f"What change {entry.id} changed is as it was before it. Nothing was written."
            raise EditError("already_undone", why, f"{call_text('undo', list=True)} shows the other changes.")
        # What was merged is read by another connection.
        look.contents.save()
        diff = change_texts.tree_diff(ws, planned.changes)
        made: dict[str, Any] = {}
        warnings = _said_left(planned)
        if not dry_run:
            profile.refuse_changes(ws.root)
            taken = chosen.hunks.get(chosen.part or "", ()) if chosen.count else ()
            back = tree_undo.entry_for(ws, planned, reversals.UNDO, entry, chosen.part, taken, chosen.count)
            # Who ends this call waits for the end of its steps.
            with context.deadline().commit():
                warnings += tree_undo_steps.make(ws, look.where, look.contents, back)
            if entry.git and chosen.part is None:
                warnings.append(f"What the command did to git is not taken back: {entry.git}.")
            made["entry_id"] = back.id
    if not dry_run:
        with tree_changes.look_at(ws) as look:
            look.attribute()
    files = ((printable(one.path), change_texts.tree_diff(ws, [one])) for one in planned.changes)
    shown, cut = _fitting(diff, files, len(planned.changes), chosen)
    of = _said_hunks(chosen) + (f"{printable(chosen.part)} of " if chosen.part is not None else "")
    merged = ", ".join(map(printable, planned.merged))
    more = [f"Taken out of what changed since: {merged}."] if merged else []
    paths = [printable(one.path) for one in planned.changes]
    made["file_paths"] = paths[: change_texts.LISTED_LINES]
    return _answer(chosen, shown, of, **made, truncated=cut, dry_run=dry_run, more=more, warnings=warnings)


def _said_left(planned: tree_undo.Plan) -> list[str]:
    """Return a warning of paths that tools may not write, and of those that no undo makes; none where there are none."""
    reasons = {
        "Other programs run or load these without asking: only the user may change them.": planned.guarded,
        "They were sockets or devices, which no undo makes again.": planned.gone,
    }
    said = {why: first_few([*map(printable, paths)]) for why, paths in reasons.items() if paths}
    return [f"Left as they are: {paths}. {why}" for why, paths in said.items()]


def _said_hunks(chosen: _Chosen) -> str:
    """Return which hunks are taken back, in words; empty where it is all of a change."""
    if not chosen.count:
        return ""
    (numbers,) = chosen.hunks.values()
    return f"hunk{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))} of "


def _apply(
    ws: Workspace, pieces: Sequence[FileChange], batch: str | None, *, is_shown: bool
) -> tuple[dict[str, Any], list[str]]:
    """Make the changes; return the fields that name them in the result, and warnings.

    `is_shown`: their diff was printed whole, so that the lines of an edit, and those beside them, can be edited at once.
    """
    name = None if batch is None else new_id()
    made, _, warnings = apply_all(ws, pieces, name, Show(None) if is_shown else None)
    if name is not None:
        return {"batchId": name, "entry_ids": made}, warnings
    return {"entry_id": made[0]} if made else {}, warnings


def _as_shown(ws: Workspace, piece: FileChange, went: FileChange | None) -> FileChange:
    """Return a change whose diff was printed whole: the lines of a file that comes can be edited at once.

    Of one that gets its name back from another, `went`, those count as seen that did so, or are in the diff.
    """
    made = piece.made
    if isinstance(made, Prepared):
        return piece
    if went is None:
        return piece._replace(made=made._replace(shown=True))
    stored = store.load(ws, went.place.path, dense=False)
    unseen = {mark.id for mark in stored.index.marks.values() if mark.shown < 0} if stored is not None else ()
    return piece._replace(made=made._replace(names=made.names._replace(shown=[one not in unseen for one in made.names.ids])))


def _renamed(pieces: Sequence[FileChange]) -> dict[bytes, FileChange]:
    """Return which files that come, by their paths, are files that go under their other names."""
    whole = {piece.place.path: piece for piece in pieces if isinstance(piece.made, WholeFile)}
    gone = {name: b"".join(one.made.entry.splices[0].removed) for name, one in whole.items() if one.made.entry.after is None}
    out: dict[bytes, FileChange] = {}
    for name, piece in whole.items():
        came = piece.made.entry
        went = file_history.former(b"".join(came.splices[0].added), gone.items()) if came.before is None else None
        if went is not None:
            del gone[went]
            out[name] = whole[went]
    return out


def _diff_of(piece: FileChange, went: FileChange | None) -> list[str]:
    made = piece.made
    if went is not None:
        return change_texts.renamed_diff(went.made.entry, made.entry)
    return made.diff if isinstance(made, Prepared) else change_texts.whole_diff(made.entry)

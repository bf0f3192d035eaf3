"""One call of line edits: of one file, or of several as one, files renamed and deleted among them; all of it or nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

from rye.edits import change_forms
from rye.edits import splices as edits_splices
from rye.edits.apply import (
    Applied,
    FileChange,
    Prepared,
    Show,
    WholeFile,
    answer_lines,
    apply_all,
    prepare,
    prepare_bom,
    syntax_warnings,
)
from rye.edits.change_forms import Change
from rye.edits.line_id_changes import Checker, Options
from rye.edits.patch_store import new_id
from rye.edits.splices import FinalNewline, Newline
from rye.errors import EditError, UsageError, WorkspaceError
from rye.journal import journal, recovery
from rye.line_ids import addresses, store
from rye.line_ids import document as documents
from rye.line_ids.document import Document
from rye.line_ids.reconcile import Revived
from rye.plain_class import Record, changed, field
from rye.workspace import cache
from rye.workspace.workspace import Place, Workspace


class Edited(Record):
    """What a call did.

    Attributes:
        files: the files whose lines changed, in the order of the call.
        notes: what became of whole files, a line each.
        entries: the journal's entries.
        batch: the name by which several files are undone together; None for one file.
        warnings: what went less than well.
    """

    files: list[Applied]
    notes: list[str]
    entries: list[str]
    batch: str | None
    warnings: list[str]


def edit_lines(project_path: str, file_path: str, changes: Sequence[Any], **options: Any) -> Applied:
    """Apply changes to the lines of one file, as `edit_files` does.

    Raises:
        UsageError: `one_file`, where a change names another file. Other errors as `edit_files`.
    """
    refuse_several(changes, file_path)
    return edit_files(project_path, file_path, changes, **options).files[0]


def refuse_several(changes: Sequence[Any], file_path: str) -> None:
    """Raise UsageError `one_file` where changes are not of this file alone."""
    if not _is_of_one_file(change_forms.parsed(list(changes), file_path), file_path):
        raise UsageError("one_file", "These changes are of several files.", "Call edit_files.")


def edit_files(
    project_path: str,
    file_path: str,
    changes: Sequence[Any],
    *,
    tool: str,
    show: Show | None = None,
    version: str | None = None,
    on_stale: str = "refuse",
    line_ids: str = "lid",
    newline: Newline = "keep",
    final_newline: FinalNewline = "keep",
    convert_newlines: Literal["lf", "crlf"] | None = None,
    bom: Literal["keep", "add", "remove"] = "keep",
    encoding: str | None = None,
    guard: str = "tell",
    dry_run: bool = False,
    notebook: Literal["cells", "json"] = "cells",
) -> Edited:
    """Apply changes by line address: all of them, or none.

    Args:
        project_path: the project's root.
        file_path: the file, from the root, of every change that names none.
        changes: objects or strings, see `change_forms`.
        tool: item id for the journal.
        show: which lines of the new text the result prints.
        version: refuse unless `file_path` is in this version; with `on_stale` "rebase", unless its named lines are as in it.
        on_stale: see `line_id_changes.Options`.
        line_ids: how refusals show lines, see `addresses.form_of`.
        newline: terminators of changed lines, see `splices.terminated`.
        final_newline: whether the file ends in a newline.
        convert_newlines: give every line this terminator.
        bom: add or remove the byte order mark, in a call without other changes.
        encoding: codec name, where it is not recognised.
        guard: "refuse" a change that makes a syntax error, or "tell" of it.
        dry_run: work out the diff, write nothing.
        notebook: lines of a notebook's cells are named and given as the text of the "cells", or as the "json" of the file.

    Raises:
        EditError: as `Checker`, `Checker.spliced` and `apply`; `file_exists`. Nothing was written.
        WorkspaceError, UsageError: as `document.view`; `no_changes`, `protected_path`, `conflict` and what the system refuses.
    """
    requested = change_forms.parsed(list(changes), file_path)
    options = Options(newline, on_stale, addresses.form_of(line_ids))
    is_single = _is_of_one_file(requested, file_path)
    has_newlines = final_newline != "keep" or convert_newlines is not None
    if bom != "keep" and (requested or has_newlines):
        raise UsageError("bom_alone", "bom changes nothing else.", "Change the lines in a call of their own.")
    if bom == "keep" and not requested and not has_newlines:
        why = "changes is empty, and no newline option is given."
        raise UsageError("no_changes", why, "Give at least one change.")
    if not is_single and (has_newlines or encoding is not None):
        why = "bom, convert_newlines, final_newline and encoding are of one file."
        raise UsageError("one_file", why, "Give them in a call that changes that file alone.")
    with Workspace(project_path) as ws:
        # First: settling a crash may change the content that is about to be read.
        recovered = recovery.recover(ws)
        job = _Job(
            ws, tool, options, file_path, version, guard, show, notebook, final_newline, convert_newlines, bom, is_single
        )
        with _open_files(job, requested, encoding, dry_run=dry_run) as files:
            edited = _planned(job, requested, files, dry_run=dry_run)
        edited.warnings[:0] = recovered
        if is_single:
            edited.files[0].warnings = edited.warnings
        return edited


def _is_of_one_file(changes: Sequence[Change], file_path: str) -> bool:
    return all(
        change.file == file_path and change.kind not in ("delete_file", "rename_to") and change.fields.get("to_file") is None
        for change in changes
    )


class _Job(Record):
    """What a call is made with; `is_single`: it changes lines of one file alone, of which newline options may be given."""

    ws: Workspace
    tool: str
    options: Options
    file_path: str
    version: str | None
    guard: str
    show: Show | None
    notebook: str
    final_newline: FinalNewline
    convert_newlines: Literal["lf", "crlf"] | None
    bom: Literal["keep", "add", "remove"]
    is_single: bool


class _File(Record, frozen=False):
    """One file of the call: its place, held and locked; its document, where lines of it change; what becomes of it."""

    name: str
    place: Place
    document: Document | None = None
    checker: Checker | None = None
    made: Prepared | None = None
    note: str = ""
    pieces: list[FileChange] = field(factory=list)


@contextmanager
def _open_files(job: _Job, changes: Sequence[Change], encoding: str | None, *, dry_run: bool) -> Iterator[dict[str, _File]]:
    """Hold every file of a call under its lock, and open those whose lines change.

    Raises:
        EditError: `duplicate_file`, `is_link`; WorkspaceError: as `open_for_edit`, `protected_path`.
    """
    lines, others = dict[str, None]({job.file_path: None} if job.is_single else {}), dict[str, None]()
    for change in changes:
        is_of_whole_file = change.kind in ("delete_file", "rename_to")
        (others if is_of_whole_file else lines)[change.file] = None
        if change.fields.get("to_file") is not None:
            lines[str(change.fields["to_file"])] = None
        if change.kind == "rename_to":
            others[str(change.fields["rename_to"])] = None
    renamed = {str(change.fields["rename_to"]) for change in changes if change.kind == "rename_to"}
    with ExitStack() as stack:
        # All places before any lock: locks are named by physical paths and taken in one order.
        files: dict[str, _File] = {}
        for name in {**lines, **others}:
            place = (
                journal.new_place(stack, job.ws, name, dry_run=dry_run)
                if name in renamed
                else stack.enter_context(job.ws.place(name))
            )
            parts = () if name in renamed or name not in others else job.ws.components(name)
            if parts and os.path.islink(b"/proc/self/fd/%d/%b" % (job.ws.fd, b"/".join(parts))):
                why = f"{name} is a link, to {place.shown}. Nothing was written."
                hint = f"Name {place.shown}, or change the link itself in bash."
                raise EditError("is_link", why, hint)
            if any(other.place.path == place.path for other in files.values()):
                raise EditError("duplicate_file", f"{name} is named twice, by two paths.", "Name each file by one path.")
            files[name] = _File(name, place)
        stack.enter_context(cache.locked(job.ws, *{file.place.path for file in files.values()}))
        for name in lines:
            place = files[name].place
            try:
                document = stack.enter_context(documents.open_locked_for_edit(job.ws, name, place.parts, encoding))
            except WorkspaceError as err:
                if err.code == "file_not_found":
                    err.message += " Nothing was written; write makes a new file."
                raise
            if job.notebook == "cells":
                document.show_as_cells()
            files[name].document = document
        yield files


def _planned(job: _Job, changes: Sequence[Change], files: dict[str, _File], *, dry_run: bool) -> Edited:
    """Work out every file's change, then make all of them."""
    refused = list[EditError]()
    for name, file in files.items():
        if file.document is None:
            continue
        own = [change for change in changes if change.file == name and change.kind not in ("delete_file", "rename_to")]
        try:
            version = job.version if name == job.file_path else None
            is_of_lines = job.is_single and job.bom == "keep"
            file.checker = Checker(file.document, own, job.options, version, target=not own and not is_of_lines)
            for change in own:
                file.checker.add(change)
        except EditError as err:
            file.checker = None
            refused.append(err)
    for change in changes:
        if change.fields.get("to_file") not in (None, change.file):
            _transfer(change, files)
    for file in files.values():
        try:
            if file.checker is not None:
                file.made = _made(job, file.checker, file.place)
        except EditError as err:
            refused.append(err)
    if len(refused) == 1:
        raise refused[0]
    if refused:
        hint = " ".join([*dict.fromkeys(err.hint for err in refused if err.hint)][:3])
        raise EditError(refused[0].code, "\n".join(err.message.rstrip() for err in refused) + "\n", hint)
    for change in changes:
        if change.kind == "rename_to":
            _rename(job, change, files)
    for change in changes:
        if change.kind == "delete_file":
            _delete(job, files[change.file])
    return _committed(job, list(files.values()), dry_run=dry_run)


def _made(job: _Job, checker: Checker, place: Place) -> Prepared | None:
    """Work out what becomes of the lines of a file, or of its byte order mark; None where nothing shall."""
    document = checker.document
    splices = checker.spliced(job.final_newline)
    if job.bom != "keep":
        return prepare_bom(document, place, job.bom, job.tool)
    if job.convert_newlines is not None:
        splices = edits_splices.converted(document.text, splices, job.convert_newlines)
    return prepare(document, splices, job.tool) if splices or job.is_single else None


def _transfer(change: Change, files: dict[str, _File]) -> None:
    """Put the lines that a change moves or copies to another file into the changes of that file."""
    source, target = files[change.file].checker, files[str(change.fields["to_file"])].checker
    found = source.spots.get(change.number) if source is not None else None
    if source is None or target is None or found is None:
        return
    text, other = source.document.text, target.document
    if source.document.cells() is None and text.encoding.name == other.text.encoding.name:
        target.take(change, text.encoding.bodies(text.lines(*found)))
    else:
        target.take(change, [other.encode(line) for line in source.document.texts(*found)])


def _delete(job: _Job, file: _File) -> None:
    """Work out the deletion of a file."""
    if file.made is not None or file.pieces:
        why = f"{file.name} is both {'edited' if file.made is not None else 'renamed'} and deleted. Nothing was written."
        raise EditError("malformed_change", why, "Choose one.")
    entry = journal.whole_entry(job.ws, job.tool, file.place, _content(job.ws, file), None)
    file.pieces = [FileChange(file.place, WholeFile(entry, None))]
    file.note = f"deleted {file.place.shown}"


def _content(ws: Workspace, file: _File) -> bytes:
    with ws.file(file.name) as opened:
        return opened.read()


def _rename(job: _Job, change: Change, files: dict[str, _File]) -> None:
    """Work out the renaming of a file, edited in the same call or not; its lines keep their addresses."""
    source, target = files[change.file], files[str(change.fields["rename_to"])]
    if target.place.stat is not None or target.pieces:
        raise EditError("file_exists", f"{target.name} exists already. Nothing was written.", "Choose another name.")
    data, names, encoding, lines = _content(job.ws, source), Revived(), "utf-8", list[str]()
    known = store.load(job.ws, source.place.path, dense=False)
    before = journal.whole_entry(job.ws, job.tool, source.place, data, None)
    if source.made is not None:
        edited = source.made.document
        # Before the names are taken: what is printed here counts as shown.
        lines = answer_lines(source.made.before, edited, source.made.asked)
        data, encoding = edited.data or b"", edited.text.encoding.name
        names = _names(edited)
    elif known is not None and known.index.content_hash == before.before:
        encoding = known.encoding.name
        with documents.open_locked_for_edit(job.ws, source.name, source.place.parts) as document:
            names = _names(document)
    entry = journal.whole_entry(job.ws, job.tool, target.place, None, data, encoding)
    entry = changed(entry, mode=before.mode)
    made = WholeFile(entry, data, encoding, names)
    source.pieces = [FileChange(source.place, WholeFile(before, None))]
    target.pieces = [FileChange(target.place, made)]
    target.note = "\n".join([f"renamed {source.place.shown} to {target.place.shown}", *lines])


def _names(document: Document) -> Revived:
    index, lines = document.index, range(document.count)
    told = [index.is_told(at) for at in lines]
    return Revived([*map(index.id_at, lines)], index.addresses.runs, told, [document.is_seen(at) for at in lines])


def _committed(job: _Job, files: Sequence[_File], *, dry_run: bool) -> Edited:
    """Make the changes under one name in the journal; return what became of each file."""
    warnings = list[str]()
    short = job.show is not None and job.show.short
    for file in files:
        if file.made is not None:
            file.pieces = file.pieces or [FileChange(file.place, file.made)]
            warnings += syntax_warnings(file.document, file.made.document, job.guard, short=short)
    at_work = [file for file in files if file.pieces]
    notes = [file.note for file in at_work if file.note]
    if dry_run:
        for file in at_work:
            job.ws.guard(file.place.parts)
        applied = [Applied(made.document, made.splices, made.diff, None, []) for file in at_work if (made := file.made)]
        return Edited(applied, notes, [], None, warnings)
    batch = None if job.is_single else new_id()
    entries, applied, more = apply_all(job.ws, [piece for file in at_work for piece in file.pieces], batch, job.show)
    return Edited(applied, notes, entries, batch, [*warnings, *more])

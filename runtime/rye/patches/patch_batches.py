"""A patch batch against the files themselves: each found, held, verified, and worked out to its last byte.

A docPath is a file's project-relative path in lower case, optionally led by the project folder's own name. It names a file by
any spelling of its letters' case; one that fits two files names neither. What it leads to is decided by directory listings
beneath the held root, and opened like any other path.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from rye.call.context import check_deadline
from rye.call.safe_text import nearest
from rye.edits import refusals, syntax_check
from rye.edits import splices as edits_splices
from rye.edits.apply import FileChange, WholeFile, prepare, syntax_warnings
from rye.errors import RUN_OUT, CancelledError, DeadlineError, EditError, RyeError, UsageError, WorkspaceError
from rye.fs import beneath, names
from rye.fs.atomic import closing
from rye.journal import journal
from rye.line_ids import document as documents
from rye.line_ids.document import Document
from rye.line_ids.reconcile import Splice
from rye.patches.patches import WORDS, Batch, FilePatch, Problems, check_digest, splices_for
from rye.plain_class import Record
from rye.workspace import cache
from rye.workspace.atomic_replace import digest_of
from rye.workspace.encoding import UTF8, Encoding, detect
from rye.workspace.text import Text, parse
from rye.workspace.workspace import Place, Workspace

_MOST = 10


class DocPaths:
    """The docPaths of one call; a directory is listed once."""

    def __init__(self, ws: Workspace) -> None:
        self._ws = ws
        self._listings: dict[beneath.Parts, dict[str, list[bytes]]] = {}

    def path_of(self, doc_path: str) -> str:
        """Return the project-relative path of the one file that a docPath names, as results name it.

        Raises:
            UsageError: `malformed_doc_path` (not lower case, not relative), `ambiguous_doc_path`, naming the files.
            WorkspaceError: `file_not_found`, with the nearest docPaths.
        """
        parts = self._parts(doc_path)
        found = {one for readable in self._readings(parts) for one in self._matches(readable)}
        if len(found) > 1:
            paths = sorted(names.show(b"/".join(one)) for one in found)
            raise UsageError(
                "ambiguous_doc_path",
                f"docPath {doc_path} names {len(paths)} files: {', '.join(paths[:_MOST])}.",
                "Files that differ in letter case only have no docPath of their own: use edit_lines for them."
                if len({path.lower() for path in paths}) == 1
                else f"Lead it with the project folder's name ({self._root()}/…), or leave that name out.",
            )
        if not found:
            raise self._missing(doc_path, parts)
        return names.show(b"/".join(found.pop()))

    def spelt_otherwise(self, path: str) -> list[str]:
        """Return the files whose docPath a new file at this path would have too."""
        parts = [part for part in path.lower().split("/") if part not in ("", ".")]
        return sorted(names.show(b"/".join(one)) for one in self._matches(parts))

    def _root(self) -> str:
        return names.show(os.fsencode(os.path.basename(self._ws.root))).lower()

    def _parts(self, doc_path: str) -> list[str]:
        parts = doc_path.split("/")
        if doc_path != doc_path.lower():
            why, hint = "is not in lower case", f"Write {doc_path.lower()}."
        elif "\0" in doc_path or any(part in ("", ".", "..") for part in parts):
            why, hint = "is not a plain relative path", "Write it without a leading slash, without . and .. in it."
        else:
            return parts
        raise UsageError("malformed_doc_path", f"docPath {doc_path[:300]!r} {why}.", hint)

    def _readings(self, parts: list[str]) -> list[list[str]]:
        """Return the paths below the root that it may mean: with its first name, and without the project's."""
        return [parts, parts[1:]] if len(parts) > 1 and parts[0] == self._root() else [parts]

    def _matches(self, parts: list[str]) -> list[beneath.Parts]:
        folders = self._folders(parts[:-1])
        matches = [(*folder, name) for folder in folders for name in self._listing(folder).get(parts[-1], [])]
        # What other than a directory is there, and where, the open decides.
        return [one for one in matches if self._directory(one) is None]

    def _listing(self, folder: beneath.Parts) -> dict[str, list[bytes]]:
        """Return a directory's names by their docPath form; nothing where it is no directory inside the project."""
        if folder not in self._listings:
            by_form = self._listings[folder] = dict[str, list[bytes]]()
            with suppress(OSError):
                fd, _ = beneath.open_beneath(self._ws.fd, folder, os.O_RDONLY | os.O_DIRECTORY)
                with closing(fd):
                    for name in map(os.fsencode, os.listdir(fd)):
                        by_form.setdefault(names.show(name).lower(), []).append(name)
        return self._listings[folder]

    def _directory(self, parts: beneath.Parts) -> beneath.Parts | None:
        """Return where a directory physically lies; None where there is none inside the project."""
        try:
            fd, physical = beneath.open_beneath(self._ws.fd, parts, beneath.DIRECTORY)
        except OSError:
            return None
        os.close(fd)
        return physical

    def _missing(self, doc_path: str, parts: list[str]) -> WorkspaceError:
        close: list[str] = []
        message = f"No file has the docPath {doc_path}."
        for reading in self._readings(parts):
            folder = "/".join(reading[:-1])
            for parent in self._folders(reading[:-1]):
                listing = {name for name in self._listing(parent) if name != reading[-1]}
                if len(listing) < len(self._listing(parent)):
                    message = f"The docPath {doc_path} is no file."
                close += [f"{folder}/{one}".lstrip("/") for one in nearest(reading[-1], listing)]
        near = f"Did you mean {' or '.join(close[:3])}? " if close else ""
        hint = f"{near}A docPath is the project-relative path in lower case; use ls or glob to see the files."
        return WorkspaceError("file_not_found", message, hint, nearest=close[:3])

    def _folders(self, parts: list[str]) -> list[beneath.Parts]:
        """Return the directories that fit, each once: a link beside a folder of its name would double the ways at every level.

        Raises:
            DeadlineError: the call's time is up.
        """
        folders: list[beneath.Parts] = [()]
        for part in parts:
            # Every level lists directories, and links multiply the ways: only the call's time bounds this.
            check_deadline()
            named = [(*folder, name) for folder in folders for name in self._listing(folder).get(part, [])]
            folders = list(dict.fromkeys(place for one in named if (place := self._directory(one)) is not None))
        return folders


TOOL = "rye/workspace/workspace_write_patch"


class ActiveFiles:
    """The contents that editors hold of some files: they win over the disk.

    A content's bytes are its text in UTF-8: of them its digest is taken.
    """

    def __init__(self, docs: DocPaths, files: Sequence[dict[str, str]]) -> None:
        """Take `[{"docPath", "content"}]`."""
        self._by_name: dict[str, str] = {}
        for one in files:
            # Under the name as given too: a file that exists in the editor only has no path.
            by_name = [one["docPath"]]
            try:
                by_name.append(docs.path_of(one["docPath"]))
            except RyeError as err:
                # On the disk there is none, or several: the docPath alone names it then.
                if err.code == "malformed_doc_path":
                    raise
            for name in by_name:
                if self._by_name.setdefault(name, one["content"]) != one["content"]:
                    why = f"activeFiles holds two contents of {name}."
                    raise UsageError("duplicate_doc_path", why, "Give the one that the editor holds.")

    def content(self, doc_path: str, path: str | None = None) -> bytes | None:
        """Return the active content of a file, None when it is not active.

        Raises:
            EditError: `unencodable`, for text that is no Unicode.
        """
        text = self._by_name.get(doc_path) if path is None else self._by_name.get(path, self._by_name.get(doc_path))
        return None if text is None else _utf8(doc_path, text)


def _utf8(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as err:
        why = f"The content given for {name} holds a lone surrogate at position {err.start + 1}."
        raise EditError("unencodable", why, "Replace it.") from None


class Worked(Record, frozen=False):
    """One file of a batch, worked out.

    Attributes:
        patch: what was asked.
        path: project-relative, as results name it.
        source: "active" or "disk": whose content the patch was verified against.
        before, after: SHA-256 of the content on the disk; None where no file was or will be.
        diff: lines of a unified diff.
        piece: the change to apply; None where nothing changes.
    """

    patch: FilePatch
    path: str
    source: str
    before: str | None
    after: str | None
    diff: list[str]
    piece: FileChange | None


@contextmanager
def worked(
    ws: Workspace, batch: Batch, active: Sequence[dict[str, str]], problems: Problems, *, write: bool
) -> Iterator[list[Worked]]:
    """Hold every file of a batch under its lock and work its change out; what is wrong goes to `problems`.

    Args:
        ws: the workspace.
        batch: parsed.
        active: see `ActiveFiles`.
        problems: collects; with any, the result must not be applied.
        write: the result will be applied: folders for new files are made, and taken back if the block fails.
    """
    docs = DocPaths(ws)
    overlay = ActiveFiles(docs, active)
    with ExitStack() as stack:
        # All places before any lock: locks are named by physical paths and taken in one order.
        found: list[tuple[FilePatch, str, Place]] = []
        for patch in batch.patches:
            if not patch.doc_path:
                continue
            try:
                found.append((patch, *_placed(ws, docs, patch, stack, write=write)))
            except RyeError as err:
                _note(err, patch, problems)
        _check_apart(found, problems)
        stack.enter_context(cache.locked(ws, *{place.path for _, _, place in found}))
        out: list[Worked] = []
        for patch, path, place in found:
            try:
                work = _work(ws, patch, path, place, overlay, problems, stack)
            except RyeError as err:
                _note(err, patch, problems)
                continue
            out += [work] if work is not None else []
        yield out


def _note(err: RyeError, patch: FilePatch, problems: Problems) -> None:
    """Note what is wrong with a patch; what no other patch would mend is raised: the time is up, the disk is full."""
    if isinstance(err, DeadlineError | CancelledError) or err.code in RUN_OUT:
        raise err
    problems.add(err.code, str(err), patch)


def _placed(ws: Workspace, docs: DocPaths, patch: FilePatch, stack: ExitStack, *, write: bool) -> tuple[str, Place]:
    """Return where a patch's file is, and its place, held."""
    if patch.kind != "create":
        path = docs.path_of(patch.doc_path)
        place = stack.enter_context(ws.place(path))
        return place.shown, place
    # Before folders are made, and also in a check without writing, where the place may not open.
    ws.check(patch.doc_path)
    ws.guard(ws.components(patch.doc_path))
    twins = docs.spelt_otherwise(patch.doc_path)
    if twins and os.path.normpath(patch.doc_path) not in twins:
        why = f"{patch.doc_path} would have the same docPath as {' and '.join(twins)}; no batch could name either of them."
        raise EditError("duplicate_doc_path", why, "Choose another path, or patch the file that is there.")
    place = journal.new_place(stack, ws, patch.doc_path, dry_run=not write)
    if place.stat is not None:
        raise EditError("file_exists", f"{place.shown} exists already.", "Patch it by its lines, or choose another path.")
    return place.shown, place


def _check_apart(found: Sequence[tuple[FilePatch, str, Place]], problems: Problems) -> None:
    """Two docPaths may lead to one file: through links, or with and without the project folder's name."""
    first: dict[str, FilePatch] = {}
    files = {path for patch, path, _ in found if patch.kind != "delete"}
    for patch, path, _ in found:
        parents = [path[:at] for at, char in enumerate(path) if char == "/"]
        for file in [parent for parent in parents if patch.kind == "create" and parent in files]:
            problems.add("not_a_directory", f"{path} cannot be made: the batch has a file {file}.", patch)
        other = first.setdefault(path, patch)
        if other is not patch and other.doc_path.lower() != patch.doc_path.lower():
            message = f"docPaths {other.doc_path} and {patch.doc_path} name the same file, {path}; put its changes together."
            problems.add("duplicate_doc_path", message, patch)


def _work(
    ws: Workspace, patch: FilePatch, path: str, place: Place, overlay: ActiveFiles, problems: Problems, stack: ExitStack
) -> Worked | None:
    if patch.kind == "create":
        return _created(ws, patch, path, place, problems)
    if patch.kind == "delete":
        return _deleted(ws, patch, path, place, problems)
    document = stack.enter_context(documents.open_locked_for_edit(ws, path, place.parts, patch.request.get("encoding")))
    content = overlay.content(patch.doc_path, path)
    return _edited(patch, path, place, document, content, problems)


def _created(ws: Workspace, patch: FilePatch, path: str, place: Place, problems: Problems) -> Worked:
    data = _utf8(path, patch.request.get("content", ""))
    problems.warnings += syntax_check.told(path, None, data, problems.guard)
    diff = edits_splices.unified_diff(path, parse(b"", UTF8), [Splice(0, 0, parse(data, UTF8).lines())], created=True)
    change = FileChange(place, WholeFile(journal.whole_entry(ws, TOOL, place, None, data), data))
    return Worked(patch, path, "disk", None, digest_of(data), diff, change)


def _deleted(ws: Workspace, patch: FilePatch, path: str, place: Place, problems: Problems) -> Worked:
    with ws.file(path) as file:
        data = file.read()
    check_digest(patch, data, problems)
    diff = [f"--- a/{path}", "+++ /dev/null"]
    try:
        text = parse(data, detect(data))
        diff += edits_splices.unified_diff(path, text, [Splice(0, text.count, [])])[2:]
    except WorkspaceError:
        diff.append(f"Binary file of {len(data):,} bytes deleted")
    change = FileChange(place, WholeFile(journal.whole_entry(ws, TOOL, place, data, None), None))
    return Worked(patch, path, "disk", digest_of(data), None, diff, change)


def _edited(
    patch: FilePatch, path: str, place: Place, document: Document, content: bytes | None, problems: Problems
) -> Worked | None:
    known = len(problems.errors)
    text, data = document.text, document.data or b""
    if content is not None:
        text, data = parse(content, detect(content)), content
    splices = edits_splices.refine(text, splices_for(patch, text, data, problems))
    if len(problems.errors) > known or not patch.sound:
        return None
    source = "disk" if content is None else "active"
    diff = edits_splices.unified_diff(path, text, splices)
    before = document.index.content_hash
    if content is not None:
        # The patch was verified against the editor's content, so all of that content goes to the disk.
        splices = _for_disk(document, text, edits_splices.render(data, text, splices))
    if not any(document.text.lines(one.start, one.stop) != one.lines for one in splices):
        problems.warnings.append(f"The changes leave {patch.doc_path} as it is; nothing is written to it.")
        return Worked(patch, path, source, before, before, [], None)
    if content is not None and digest_of(content) != before:
        problems.warnings.append(
            f"{path} is active: the file on the disk differs from the active content, which is written with these changes."
        )
    new = [line for splice in splices for line in document.text.encoding.show_all(splice.lines)]
    prefix = refusals.first_prefix(document.index, document.data or b"", new)
    if prefix is not None:
        problems.add("pasted_ids", refusals.explained(prefix), patch)
        return None
    made = prepare(document, splices, TOOL)
    problems.warnings += syntax_warnings(document, made.document, problems.guard)
    return Worked(patch, path, source, before, made.entry.after, diff, FileChange(place, made))


def _for_disk(document: Document, active: Text, data: bytes) -> list[Splice]:
    """Return the whole of a changed active content as one splice of the file on the disk, in that file's encoding."""
    source, target = active.encoding, document.text.encoding
    lines = parse(data, source).lines()
    if source.name != target.name:
        lines = [_translated(line, source, target) for line in lines]
    return [Splice(0, document.text.count, lines)]


def _translated(line: bytes, source: Encoding, target: Encoding) -> bytes:
    ending = {b"": b"", source.newline: target.newline, source.crlf: target.crlf}[source.terminator(line)]
    return target.encode(source.show(line)) + ending


def described(work: Worked, entry: str | None = None) -> dict[str, Any]:
    """Return what an answer says of one file: its IDs, and every key, label and description that came with it."""
    patch = work.patch
    fields: dict[str, Any] = {"filePatchId": patch.id}
    fields.update({key: patch.request[key] for key in ("fileKey", "fileLabel") if key in patch.request})
    fields.update(docPath=patch.doc_path, path=work.path, operation=patch.kind, source=work.source)
    fields.update(originalSha256=patch.digest or None, newSha256=work.after)
    if entry is not None:
        fields["entryId"] = entry
    keys = ("changeKey", "operation", *WORDS, "afterLine", "startLine", "endLine")
    said = [{key: one.request[key] for key in keys if key in one.request} for one in patch.changes]
    fields["changes"] = [{"changeId": one.id, **own} for one, own in zip(patch.changes, said, strict=True)]
    return fields

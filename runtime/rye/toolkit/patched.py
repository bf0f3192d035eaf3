"""A patch batch against the files themselves: each found, held, verified, and worked out to its last byte."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from rye.errors import EditError, RyeError, WorkspaceError
from rye.record import Record
from rye.toolkit import cache, edits, journal
from rye.toolkit import document as documents
from rye.toolkit.batches import Piece, Whole
from rye.toolkit.doc_paths import DocPaths
from rye.toolkit.encoding import UTF8, Encoding, detect
from rye.toolkit.landing import prepare
from rye.toolkit.patches import check_digest, splices_for
from rye.toolkit.replace import digest_of
from rye.toolkit.text import Text, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rye.toolkit.document import Document
    from rye.toolkit.patches import Batch, FilePatch, Problems
    from rye.toolkit.workspace import Place, Workspace

TOOL = "rye/workspace/workspace_write_patch"


class ActiveFiles:
    """The contents that editors hold of some files: they win over what stands on the disk.

    A content's bytes are its text in UTF-8: of them its digest is taken.
    """

    def __init__(self, docs: DocPaths, given: Sequence[dict[str, str]]) -> None:
        """Take `[{"docPath", "content"}]`."""
        self._by_name: dict[str, str] = {}
        for one in given:
            self._by_name[one["docPath"]] = one["content"]
            try:
                self._by_name[docs.resolve(one["docPath"])] = one["content"]
            except RyeError:
                # On the disk there is none, or several: the docPath alone names it then.
                continue

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
        raise EditError(
            "unencodable", f"The content given for {name} holds a lone surrogate at position {err.start + 1}.", "Replace it."
        ) from None


class Worked(Record, frozen=False):
    """One file of a batch, worked out.

    Attributes:
        patch: what was asked.
        path: project-relative, as it stands in results.
        source: "active" or "disk": whose content the patch was verified against.
        before, after: SHA-256 of the content on the disk; None where no file was or will be.
        diff: lines of a unified diff.
        piece: what lands; None where nothing changes, or where nothing shall be written.
    """

    patch: FilePatch
    path: str
    source: str
    before: str | None
    after: str | None
    diff: list[str]
    piece: Piece | None


@contextmanager
def worked(
    ws: Workspace, batch: Batch, active: Sequence[dict[str, str]], problems: Problems, *, write: bool
) -> Iterator[list[Worked]]:
    """Hold every file of a batch under its lock and work its change out; what is wrong goes to `problems`.

    Args:
        ws: the workspace.
        batch: parsed.
        active: see `ActiveFiles`.
        problems: collects; with any, what is yielded must not be landed.
        write: the result will be landed: folders for new files are made, and taken back if the block fails.
    """
    docs = DocPaths(ws)
    overlay = ActiveFiles(docs, active)
    with ExitStack() as stack:
        found: list[tuple[FilePatch, str, Place | None]] = []
        for patch in batch.patches:
            if not patch.doc_path:
                continue
            try:
                found.append((patch, *_placed(ws, docs, patch, stack, write=write)))
            except RyeError as err:
                problems.add(err.code, str(err), patch)
        _check_apart(found, problems)
        stack.enter_context(cache.locked(ws, *{place.path for _, _, place in found if place is not None}))
        out: list[Worked] = []
        for patch, path, place in found:
            try:
                work = _work(ws, patch, path, place, overlay, problems, stack)
            except RyeError as err:
                problems.add(err.code, str(err), patch)
                continue
            out += [work] if work is not None else []
        yield out


def _placed(ws: Workspace, docs: DocPaths, patch: FilePatch, stack: ExitStack, *, write: bool) -> tuple[str, Place | None]:
    """Return where a patch's file stands; the place is None for a new one that is only checked."""
    if patch.kind != "create":
        path = docs.resolve(patch.doc_path)
        place = stack.enter_context(ws.place(path))
        return place.shown, place
    ws.check(patch.doc_path)
    ws.guard(ws.components(patch.doc_path))
    try:
        place = stack.enter_context(ws.place(patch.doc_path, create_parents=write))
    except WorkspaceError as err:
        if err.code != "file_not_found" or write:
            raise
        # Its folder does not exist yet.
        return patch.doc_path, None
    if place.stat is not None:
        raise EditError("file_exists", f"{place.shown} exists already.", "Patch it by its lines, or choose another path.")
    return place.shown, place


def _check_apart(found: Sequence[tuple[FilePatch, str, Place | None]], problems: Problems) -> None:
    """Two docPaths may lead to one file: through links, or with and without the project folder's name."""
    first: dict[str, FilePatch] = {}
    for patch, path, _ in found:
        other = first.setdefault(path, patch)
        if other is not patch and other.doc_path.lower() != patch.doc_path.lower():
            said = f"docPaths {other.doc_path} and {patch.doc_path} name the same file, {path}; put its changes together."
            problems.add("duplicate_doc_path", said, patch)


def _work(
    ws: Workspace, patch: FilePatch, path: str, place: Place | None, overlay: ActiveFiles, problems: Problems,
    stack: ExitStack,
) -> Worked | None:  # fmt: skip
    if patch.kind == "create":
        return _created(ws, patch, path, place)
    if place is None or place.stat is None:
        raise WorkspaceError("file_not_found", f"{path} is a link to a file that does not exist.", "Name an existing file.")
    if patch.kind == "delete":
        return _deleted(ws, patch, path, place, problems)
    document = stack.enter_context(documents.opened_for_edit(ws, path, place.parts))
    content = overlay.content(patch.doc_path, path)
    return _edited(patch, path, place, document, content, problems)


def _created(ws: Workspace, patch: FilePatch, path: str, place: Place | None) -> Worked:
    data = _utf8(path, patch.asked.get("content", ""))
    diff = edits.unified_diff(path, parse(b"", UTF8), [edits.Splice(0, 0, parse(data, UTF8).lines())], created=True)
    piece = None if place is None else Piece(place, Whole(journal.whole_entry(ws, TOOL, place, None, data), data))
    return Worked(patch, path, "disk", None, digest_of(data), diff, piece)


def _deleted(ws: Workspace, patch: FilePatch, path: str, place: Place, problems: Problems) -> Worked:
    with ws.file(path) as file:
        data = file.read()
    check_digest(patch, data, problems)
    diff = [f"--- a/{path}", "+++ /dev/null"]
    try:
        text = parse(data, detect(data))
        diff += edits.unified_diff(path, text, [edits.Splice(0, text.count, [])])[2:]
    except WorkspaceError:
        diff.append(f"Binary file of {len(data):,} bytes deleted")
    return Worked(
        patch,
        path,
        "disk",
        digest_of(data),
        None,
        diff,
        Piece(place, Whole(journal.whole_entry(ws, TOOL, place, data, None), None)),
    )


def _edited(
    patch: FilePatch, path: str, place: Place, document: Document, content: bytes | None, problems: Problems
) -> Worked | None:  # fmt: skip
    known = len(problems.errors)
    text, data = document.text, document.data or b""
    if content is not None:
        text, data = parse(content, detect(content)), content
    splices = edits.refine(text, splices_for(patch, text, data, problems))
    if len(problems.errors) > known or not patch.sound:
        return None
    source = "disk" if content is None else "active"
    diff = edits.unified_diff(path, text, splices)
    before = document.index.content_hash
    if content is not None:
        splices = _for_disk(document, text, edits.render(data, text, splices))
    if not any(document.text.lines(one.start, one.stop) != one.lines for one in splices):
        problems.warnings.append(f"The changes leave {patch.doc_path} as it is; nothing is written to it.")
        return Worked(patch, path, source, before, before, [], None)
    if content is not None and digest_of(content) != before:
        problems.warnings.append(
            f"{path} is active: what stands on the disk differs from the active content, which is written with these changes."
        )
    made = prepare(document, splices, TOOL)
    return Worked(patch, path, source, before, made.entry.after, diff, Piece(place, made))


def _for_disk(document: Document, active: Text, data: bytes) -> list[edits.Splice]:
    """Return the whole of a changed active content as one splice of the file on the disk, in that file's encoding."""
    source, target = active.encoding, document.text.encoding
    lines = parse(data, source).lines()
    if source.name != target.name:
        lines = [_translated(line, source, target) for line in lines]
    return [edits.Splice(0, document.text.count, lines)]


def _translated(line: bytes, source: Encoding, target: Encoding) -> bytes:
    ending = {b"": b"", source.newline: target.newline, source.crlf: target.crlf}[source.terminator(line)]
    return target.encode(source.show(line)) + ending


def described(work: Worked, entry: str | None = None) -> dict[str, Any]:
    """Return what an answer says of one file: its IDs, and every key, label and description that came with it."""
    patch = work.patch
    told: dict[str, Any] = {"filePatchId": patch.id}
    told.update({key: patch.asked[key] for key in ("fileKey", "fileLabel") if key in patch.asked})
    told.update(docPath=patch.doc_path, path=work.path, operation=patch.kind, source=work.source)
    told.update(originalSha256=patch.digest or None, newSha256=work.after)
    if entry is not None:
        told["entryId"] = entry
    told["changes"] = [
        {
            "changeId": change.id,
            **{
                key: change.asked[key]
                for key in ("changeKey", "operation", "description", "afterLine", "startLine", "endLine")
                if key in change.asked
            },
        }
        for change in patch.changes
    ]
    return told

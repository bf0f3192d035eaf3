"""What `edit_lines` and `write` do."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from rye.errors import EditError, UsageError, WorkspaceError
from rye.toolkit import cache, commits, edits, index_store, journal, line_edits, lines
from rye.toolkit import document as documents
from rye.toolkit.encoding import Encoding, bom_of, detect
from rye.toolkit.landing import Landed, index_lost, land
from rye.toolkit.output import MAX_LINE_CHARS, envelope, ok, output_room
from rye.toolkit.text import parse
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rye.toolkit.document import Document
    from rye.toolkit.edits import FinalNewline, Newline, Splice
    from rye.toolkit.workspace import Place

_EDIT = "rye/file-system/edit_lines"
_WRITE = "rye/file-system/write"


def edit_lines(
    project_path: str, file_path: str, changes: list[dict[str, Any]], version: str | None = None, on_stale: str = "refuse",
    newline: Newline = "keep", final_newline: FinalNewline = "keep",
    convert_newlines: Literal["lf", "crlf"] | None = None, encoding: str | None = None, *, dry_run: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/file-system/edit_lines`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        EditError: see `line_edits.splices_for` and `landing.land`; `wrong_version`. Nothing was written.
        WorkspaceError, UsageError: as `document.view`; `protected_path`, `conflict` and what the system refuses.
    """
    with Workspace(project_path) as ws:
        recovered = commits.recover(ws)
        with documents.held_for_edit(ws, file_path, encoding) as document:
            if version is not None and document.known and version != document.index.version:
                raise _wrong_version(document, version)
            if not changes and final_newline == "keep" and convert_newlines is None:
                raise UsageError("no_changes", "changes is empty, and no newline option is given.", "Give at least one change.")
            splices = line_edits.splices_for(document, changes, newline=newline, on_stale=on_stale)
            assembled = edits.assemble(document.text, splices, final_newline)
            if convert_newlines is not None:
                assembled = edits.converted(document.text, assembled, convert_newlines)
            landed = land(document, assembled, _EDIT, dry_run=dry_run)
            landed.warnings[:0] = recovered
            return _edited(landed, len(changes), file_path, dry_run=dry_run)


def _wrong_version(document: Document, version: str) -> EditError:
    return EditError(
        "wrong_version",
        f"{document.path} is in version {document.index.version}, not {version}. Nothing was written.",
        f'Call read(file_path="{document.path}", changes_since="{version}") to see what changed.',
        version=document.index.version,
    )


def _edited(landed: Landed, applied: int, file_path: str, *, dry_run: bool) -> dict[str, Any]:
    diff, cut = fit(landed.diff, _diff_room())
    shown: list[str] = []
    rows: list[dict[str, Any]] = []
    if not dry_run and landed.indexed:
        try:
            shown, rows, more = _regions(landed)
            cut = cut or more
        except (OSError, WorkspaceError) as err:
            landed.warnings.append(index_lost(err))
    output = [*diff]
    if shown:
        output += ["", "Lines now:", *shown]
    for warning in landed.warnings:
        output += ["", f"Warning: {warning}"]
    if cut:
        total = len(landed.diff) + sum(stop - start for start, stop in landed.regions())
        output.append(envelope(len(diff) + len(rows), total, "lines", f'read(file_path="{file_path}")'))
    changed = sum(max(s.stop - s.start, len(s.lines)) for s in landed.splices)
    facts: dict[str, Any] = {"dry_run": True} if dry_run else {"entry_id": landed.entry, "lines": rows}
    return ok(
        "\n".join(output), changes_applied=0 if dry_run else applied, lines_changed=changed, truncated=cut,
        file_path=landed.document.path, version=landed.document.index.version, warnings=landed.warnings, **facts,
    )  # fmt: skip


def _diff_room() -> int:
    """Return how much of the answer the diff may take; the rest is for the lines as they stand."""
    return output_room() * 3 // 5


def _regions(landed: Landed) -> tuple[list[str], list[dict[str, Any]], bool]:
    """Show the changed lines with two around, as far as they fit, and record them as shown."""
    room = output_room() - _diff_room()
    shown: list[str] = []
    rows: list[dict[str, Any]] = []
    seen: list[tuple[int, int]] = []
    for start, stop in landed.regions():
        for at in range(start, stop):
            row = landed.document.rows(at, at + 1)[0]
            text = row.text if len(row.text) <= MAX_LINE_CHARS else row.text[:MAX_LINE_CHARS] + "…"
            line = f"{row.number}: [LID:{row.id}] {text}"
            room -= len(line.encode("utf-8", "replace")) + 1
            if room < 0:
                landed.document.shown(*seen, (start, at))
                return shown, rows, True
            shown.append(line)
            rows.append({"line_num": row.number, "id": row.id})
        seen.append((start, stop))
    landed.document.shown(*seen)
    return shown, rows, False


def fit(text: Sequence[str], room: int) -> tuple[list[str], bool]:
    """Return as many lines as fit into `room` bytes, very long ones shortened, and whether some did not."""
    out: list[str] = []
    for line in text:
        short = line if len(line) <= MAX_LINE_CHARS else line[:MAX_LINE_CHARS] + "… [line shortened]"
        room -= len(short.encode("utf-8", "replace")) + 1
        if room < 0:
            return out, True
        out.append(short)
    return out, False


def write(
    project_path: str,
    file_path: str,
    content: str,
    expected_sha256: str | None = None,
    encoding: str = "utf-8",
) -> dict[str, Any]:
    """Return the result of `rye/file-system/write`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        EditError: `wrong_digest`, `unencodable`. Nothing was written.
        WorkspaceError, UsageError: `protected_path`, `is_directory`, `conflict`, `unknown_encoding` …
    """
    code = detect(b"", encoding)
    data = code.encode(content) if "\0" not in content else _with_nul(code, content)
    bom = bom_of(encoding)
    data = data if data.startswith(bom) else bom + data
    with Workspace(project_path) as ws:
        recovered = commits.recover(ws)
        with ws.place(file_path, create_parents=True) as place, cache.locked(ws, place.path):
            return _write(ws, place, data, code, expected_sha256, recovered)


def _with_nul(code: Encoding, content: str) -> bytes:
    """A whole file may hold NULs, which lines may not; every other rule of `Encoding.encode` stands."""
    return "\0".encode(code.name).join(code.encode(part) for part in content.split("\0"))


def _write(
    ws: Workspace, place: Place, data: bytes, code: Encoding, expected: str | None, recovered: list[str]
) -> dict[str, Any]:
    old = _standing(ws, place)
    before = None if old is None else sha256(old).hexdigest()
    if expected is not None and expected.removeprefix("sha256:").lower() != before:
        found = "does not exist" if before is None else f"has the SHA-256 {before}, not the one expected"
        hint = f'Call read(file_path="{place.shown}") to see it.' if before else "Leave expected_sha256 out to create it."
        raise EditError("wrong_digest", f"{place.shown} {found}. Nothing was written.", hint, sha256=before)
    if old == data:
        # Nothing to take back: an entry would stand before the change that the next undo is meant for.
        told = [f"{place.shown} is unchanged: it holds this very content already ({len(data)} bytes). Nothing was written."]
        return ok(
            "\n".join([*told, *(f"Warning: {warning}" for warning in recovered)]), file_path=place.shown,
            bytes_written=len(data), created=False, unchanged=True, truncated=False, warnings=recovered,
        )  # fmt: skip
    entry = journal.whole_entry(ws, _WRITE, place, old, data)
    warnings = [*recovered, *journal.land(ws, place, data, entry)]
    warnings += index_whole(ws, place, data, code.name)
    diff, cut = fit(_described(place, old, data, code.name), output_room())
    if cut:
        diff.append(envelope(len(diff), len(diff) + 1, "diff lines", f'read(file_path="{place.shown}")', omitted=1))
    return ok(
        "\n".join([*diff, *(f"Warning: {warning}" for warning in warnings)]), file_path=place.shown, bytes_written=len(data),
        created=old is None, unchanged=False, truncated=cut, entry_id=entry.id, warnings=warnings,
    )  # fmt: skip


def _standing(ws: Workspace, place: Place) -> bytes | None:
    if place.stat is None:
        return None
    with ws.file(place.shown) as file:
        return file.read()


def index_whole(ws: Workspace, place: Place, data: bytes, encoding: str, ids: Sequence[str | None] = ()) -> list[str]:
    """Begin a new index in a new epoch: IDs from before are unknown, never another line's, except `ids` that come back.

    Returns:
        Warnings for the caller's result: the change itself has landed, whatever becomes of the index.
    """
    code = _as_text(data, encoding)
    if code is None:
        return []
    text, width, digests = documents.scan(data, code)
    index = lines.fresh(index_store.next_epoch(ws, place.path), sha256(data).hexdigest(), digests, width)
    if len(ids) == text.count:
        keys = documents.keys(text.lines(), code)
        for at, name in enumerate(ids):
            if name is not None:
                index.marks[at] = lines.Mark(name, lines.loose_digest(keys[at]))
    documents.fit(index, text)
    try:
        info = os.stat(place.name, dir_fd=place.dir_fd, follow_symlinks=False)
        index_store.save(ws, place.path, index, code, info, text.points)
    except (OSError, WorkspaceError) as err:
        return [index_lost(err)]
    return []


def _as_text(data: bytes, encoding: str) -> Encoding | None:
    """Return the encoding in which the next reader will see the content; None where it is no text."""
    try:
        return detect(data, None if encoding == "utf-8" else encoding)
    except WorkspaceError:
        return None


def _described(place: Place, old: bytes | None, data: bytes, encoding: str) -> list[str]:
    if old is None:
        return [f"Created {place.shown} ({len(data)} bytes)"]
    code, was = _as_text(data, encoding), _as_text(old, encoding)
    if code is None or was is None or code != was:
        change = "" if code is None or was is None else f"{was.label} -> {code.label}: "
        return [f"Replaced {place.shown} ({len(old)} -> {len(data)} bytes; {change}no text diff between the two)"]
    text = parse(old, code)
    splices: list[Splice] = edits.refine(text, [edits.Splice(0, text.count, parse(data, code).lines())])
    return edits.unified_diff(place.shown, text, splices)

"""Create a file or replace its whole content: the same content writes nothing, anything else is recorded for undo."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256

from rye.call import context
from rye.call.results import call_text
from rye.edits import refusals, syntax_check
from rye.edits.apply import FileChange, WholeFile, apply_all, successor, text_encoding
from rye.edits.splices import line_ends, refine, unified_diff
from rye.errors import EditError, WorkspaceError
from rye.journal import followed_lines, journal, recovery
from rye.line_ids import document as documents
from rye.line_ids import store
from rye.line_ids.diff import gaps
from rye.line_ids.document import Document
from rye.line_ids.reconcile import Revived, Splice
from rye.plain_class import Record
from rye.workspace import cache
from rye.workspace.encoding import bom_of, detect
from rye.workspace.escapes import encoding_to_try, shown_escapes
from rye.workspace.text import parse
from rye.workspace.workspace import Place, Workspace


class Replaced(Record):
    """What writing a whole file did.

    Attributes:
        path: the file, from the project's root.
        data: its content now.
        before: its content before, None where there was no file.
        encoding: codec name of the new content.
        entry: the journal entry that undo takes, None where there is none.
        warnings: what went less than well.
        addresses: the short addresses of all lines as a range, `1-57`; empty where they were not asked for, or are not known.
        unchanged: nothing was written: the file held this content.
    """

    path: str
    data: bytes
    before: bytes | None
    encoding: str
    entry: str | None
    warnings: list[str]
    addresses: str = ""
    unchanged: bool = False

    def diff(self) -> list[str] | None:
        """Return a unified diff, or None where the two contents have no common encoding."""
        code, was = text_encoding(self.data, self.encoding), text_encoding(self.before or b"", self.encoding)
        if code is None or code != was:
            return None
        text, new = parse(self.before or b"", code), parse(self.data, code)
        splices = refine(text, [Splice(0, text.count, new.lines())])
        return unified_diff(self.path, text, splices, line_ends=line_ends(text) != line_ends(new))

    def encodings(self) -> str:
        """Return `old -> new` where both contents are text and their encodings differ, else an empty text."""
        code, was = text_encoding(self.data, self.encoding), text_encoding(self.before or b"", self.encoding)
        return "" if code is None or was is None or code == was else f"{was.label} -> {code.label}"


def replace_file(
    project_path: str,
    file_path: str,
    content: str,
    *,
    tool: str,
    encoding: str = "utf-8",
    expected_sha256: str | None = None,
    guard: str = "tell",
    addresses: bool = False,
) -> Replaced:
    """Create a file or replace its content; missing folders are made.

    Args:
        project_path: the project's root.
        file_path: the file, from the root.
        content: the complete text, written exactly as given.
        tool: item id for the journal.
        encoding: codec name; `utf-8-sig` puts a byte order mark before the text.
        expected_sha256: refuse unless the present content has this digest.
        guard: "refuse" a content with a syntax error, or "tell" of it.
        addresses: the caller is told the short addresses of the new lines, which count as shown.

    Raises:
        EditError: `wrong_digest`, `escaped_bytes`, `unencodable`, `pasted_ids`, `syntax_error`. Nothing was written.
        WorkspaceError, UsageError: `protected_path`, `is_directory`, `conflict`, `unknown_encoding` and others.
    """
    code = detect(b"", encoding)
    # A whole file may hold NULs, which no line may.
    data = "\0".encode(code.name).join(map(code.encode, content.split("\0")))
    bom = bom_of(encoding)
    # The caller may have sent the byte order mark as part of the text.
    data = data if data.startswith(bom) else bom + data
    with Workspace(project_path) as ws:
        recovered = recovery.recover(ws)
        with journal.place_for(ws, file_path) as place, cache.locked(ws, place.path):
            old = ws.content_of(place)
            _check_digest(place, old, expected_sha256)
            _check_escapes(ws, place, old, content, encoding)
            refusals.refuse_in_file(ws, place.path, place.shown, old or b"", content)
            if old == data:
                # An entry for no change would be what the next undo takes back.
                return Replaced(place.shown, data, old, code.name, None, recovered, unchanged=True)
            syntax_findings = syntax_check.told(place.shown, old, data, guard)
            known, unseen = _followed(ws, place, old, data, code.name)
            entry = journal.whole_entry(ws, tool, place, old, data, code.name)
            told: list[str] | None = [] if addresses else None
            piece = FileChange(place, WholeFile(entry, data, code.name, known=known, told=told))
            entries, _, warnings = apply_all(ws, [piece], None)
            # A program that writes a whole file means it; a model may not know of what another one wrote since it looked.
            gone = (
                [f"{unseen} line(s) that it had and you were not shown are gone; undo brings them back."]
                if addresses and unseen
                else []
            )
            warnings = [*recovered, *syntax_findings, *gone, *warnings, *_line_end_warning(place, old, data, code.name)]
            return Replaced(place.shown, data, old, code.name, "".join(entries) or None, warnings, "".join(told or ()))


def _followed(ws: Workspace, place: Place, old: bytes | None, data: bytes, encoding: str) -> tuple[Document | None, int]:
    """Return the file as it will be, unchanged lines with their IDs, and how many lines go that were not shown as they were.

    None where they are not known or the encoding changes.
    """
    if old is None or not data:
        return None, 0
    with suppress(WorkspaceError), documents.open_locked_for_edit(ws, place.shown, place.parts) as document:
        text = document.text
        if document.known and text.encoding == text_encoding(data, encoding) and document.data == old:
            lines = parse(data, text.encoding).lines()
            # Of equal lines nobody said which one stays.
            same = [(i, j, 1) for i, j in followed_lines.certain(text.lines(), lines)]
            found = [*gaps(same, text.count, len(lines))]
            unseen = sum(not document.is_seen(at) for i, stop, _, _ in found for at in range(i, stop))
            splices = [Splice(i, stop, lines[j:end], Revived([None] * (end - j))) for i, stop, j, end in found]
            return successor(document, splices), unseen
    return None, 0


def _line_end_warning(place: Place, old: bytes | None, data: bytes, encoding: str) -> list[str]:
    """Return what a caller who was never shown the line endings must hear: that they are others now."""
    contents = [parse(content, code) for content in (old, data) if content and (code := text_encoding(content, encoding))]
    kinds = [line_ends(text) for text in contents]
    if len(kinds) < 2 or kinds[0] == kinds[1] or "none" in kinds:
        return []
    was, now = (kind.upper() if kind != "mixed" else "mixed" for kind in kinds)
    # What models are offered of edit_lines converts no file.
    for_models = context.current().options.agent_defaults
    way = "undo" if for_models else call_text("edit_lines", file_path=place.shown, changes=[], convert_newlines=kinds[0])
    return [f"The line endings were {was} and are {now} now{f'; {way} brings them back' if kinds[0] != 'mixed' else ''}."]


def _check_escapes(ws: Workspace, place: Place, old: bytes | None, content: str, encoding: str) -> None:
    r"""Refuse text with the `\xHH` that views show for bytes of the present content that do not decode."""
    if old is None or "\\x" not in content or old.isascii():
        return
    # Views show a file in the encoding that is remembered of it. Of one that was never viewed the caller knows its encoding.
    stored = store.load(ws, place.path, dense=False)
    code = text_encoding(old, encoding) if stored is None else stored.encoding
    if code is None:
        return
    # An escape that the old file holds as plain text may be meant as plain text.
    escaped, plain = shown_escapes(old, code)
    found = sorted(escape for escape in escaped - plain if escape in content)
    if found:
        raise EditError(
            "escaped_bytes",
            f"The content holds {found[0]}, which stands for a byte of {place.shown} that does not decode as {code.name}. "
            "Nothing was written.",
            f'Read the file with its encoding, such as encoding="{encoding_to_try(old)}", and write it with the same.',
        )


def _check_digest(place: Place, old: bytes | None, expected: str | None) -> None:
    before = None if old is None or expected is None else sha256(old).hexdigest()
    if expected is None or expected.removeprefix("sha256:").lower() == before:
        return
    found = "does not exist" if before is None else f"has the SHA-256 {before}, not the one expected"
    read = f"Call {call_text('read', file_path=place.shown)} to see it."
    hint = read if before else "Leave expected_sha256 out to create it."
    raise EditError("wrong_digest", f"{place.shown} {found}. Nothing was written.", hint, sha256=before)

"""Edits by line number and by exact snippet, and their undo: the landing, journal and line IDs are those of all edits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from rye.errors import EditError, UsageError
from rye.toolkit import document as documents
from rye.toolkit import edits, journal, profiles, swe, undoing
from rye.toolkit.editing import fit
from rye.toolkit.edits import Splice
from rye.toolkit.landing import Landed, land
from rye.toolkit.output import envelope, ok, output_room
from rye.toolkit.pages import Page
from rye.toolkit.text import content_lines, split
from rye.toolkit.view import named, out_of_range
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rye.toolkit.document import Document
    from rye.toolkit.rows import Row
    from rye.toolkit.text import Text

CONTEXT = 2
"""Lines shown on each side of an edit."""

_CATEGORY = "rye/swe"
_WORD = r"\w+"
_PLACES = 10
# Places that are looked for beside the first.
_MOST_PLACES = 1_000
# Of a file where the snippet does not stand: lines looked at, those of them that are compared, and how much of each. What
# compares two texts takes up to the product of their lengths.
_LOOKED_AT, _COMPARED, _COMPARED_CHARS = 5_000, 200, 80
_NOTICES = 2_000


class _Asked(NamedTuple):
    """An edit as it was asked for: lines [start, stop) become `added` lines; the splices are the whole of what that takes."""

    start: int
    stop: int
    added: int
    splices: list[Splice]

    @property
    def span(self) -> tuple[int, int]:
        """Return the first and last new line (from 1); of a deletion the lines that were there."""
        return self.start + 1, self.start + self.added if self.added else self.stop


def edit_range(
    project_path: str, path: str, start_line: int, end_line: int, new_text: str, encoding: str | None = None, *,
    insert_form: bool = True, dry_run: bool = False, show_diff: bool = False, line_ids: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/swe/edit_range`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        UsageError: `out_of_range`, `bad_range`, `nothing_to_insert`. Nothing was written.
        EditError, WorkspaceError: see `landing.land` and `document.view`.
    """

    def asked(document: Document) -> _Asked:
        count = document.text.count
        inserts = insert_form and end_line == start_line - 1
        if not 1 <= start_line <= count + inserts:
            raise out_of_range("start_line", start_line, 1, count + inserts)
        if end_line < start_line and not inserts:
            raise UsageError(
                "bad_range", f"end_line {end_line} lies before start_line {start_line} (valid: {start_line}..{count}). "
                "Nothing was written.", f"To insert before line {start_line}, use insert_at (rt insert).",
            )  # fmt: skip
        if end_line > count:
            raise out_of_range("end_line", end_line, start_line, count)
        return _lines(document, start_line - 1, end_line, new_text)

    return _edit(
        f"{_CATEGORY}/edit_range", project_path, path, encoding, asked, dry_run=dry_run, show_diff=show_diff, line_ids=line_ids
    )  # fmt: skip


def insert_at(
    project_path: str, path: str, line: int, new_text: str, encoding: str | None = None, *, dry_run: bool = False,
    show_diff: bool = False, line_ids: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/swe/insert_at`; see its CONFIG_SCHEMA for the parameters. Errors as `edit_range`."""

    def asked(document: Document) -> _Asked:
        if not 1 <= line <= document.text.count + 1:
            raise out_of_range("line", line, 1, document.text.count + 1)
        return _lines(document, line - 1, line - 1, new_text)

    return _edit(
        f"{_CATEGORY}/insert_at", project_path, path, encoding, asked, dry_run=dry_run, show_diff=show_diff, line_ids=line_ids
    )  # fmt: skip


def edit_file(
    project_path: str, path: str, old: str, new: str, encoding: str | None = None, *, dry_run: bool = False,
    show_diff: bool = False, line_ids: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/swe/edit_file`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        EditError: `snippet_not_found`, `no_change`. Nothing was written. Others as `edit_range`.
    """
    others: list[int] = []

    def asked(document: Document) -> _Asked:
        found, elsewhere = _snippet(document, old, new)
        others.extend(elsewhere)
        return found

    result = _edit(
        f"{_CATEGORY}/edit_file", project_path, path, encoding, asked, dry_run=dry_run, show_diff=show_diff, line_ids=line_ids
    )  # fmt: skip
    return {**result, "other_places": others} if not others else _with_places(result, others)


def undo_edit(
    project_path: str, entry_id: str | None = None, limit: int = 20, offset: int = 1, *, list: bool = False,
    dry_run: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/swe/undo_edit`; see its CONFIG_SCHEMA. Errors as `undoing.undo`, `profiles.profile`."""
    swe.enabled()
    with Workspace(project_path) as ws:
        held_back = profiles.profile(ws.root) == profiles.READ_ONLY
    result = undoing.undo(project_path, entry_id, limit, offset, list=list, dry_run=dry_run or held_back)
    if list:
        return result
    facts = {"applied": not (dry_run or held_back), "profile": profiles.READ_ONLY} if held_back else {"applied": not dry_run}
    # Of a batch there are several.
    undone = ", ".join(sorted(result.get("file_paths") or [result["file_path"]]))
    head = _not_applied() if held_back and not dry_run else f"✓ Undone {undone}" if not dry_run else ""
    return {**result, **facts, "notices": [], "output": "\n".join(line for line in (head, result["output"]) if line)}


def _lines(document: Document, start: int, stop: int, new_text: str) -> _Asked:
    """Return the edit that puts lines of text in place of lines [start, stop)."""
    bodies = [document.text.encoding.encode(line) for line in content_lines(new_text)]
    if not bodies and start == stop:
        raise UsageError(
            "nothing_to_insert", "There is no text to insert. Nothing was written.",
            r'Give new_text at least one line; "\n" is one empty line.',
        )  # fmt: skip
    splices = edits.assemble(document.text, [edits.terminated(document.text, start, stop, bodies)])
    return _Asked(start, stop, len(bodies), splices)


def _snippet(document: Document, old: str, new: str) -> tuple[_Asked, list[int]]:
    """Return the edit that puts `new` in place of the first `old`, and the lines (from 1) where else it stands."""
    text, data = document.text, document.data or b""
    places = _places(document, text.encoding.encode(old))
    if not places and "\r" not in old:
        # A file with CRLF, and a snippet as models write it.
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
        places = _places(document, text.encoding.encode(old))
    elif "\n" in new and "\r" not in new and edits.dominant(text) == text.encoding.crlf:
        new = new.replace("\n", "\r\n")
    if not places:
        raise _absent(document, old)
    low, high = places[0], places[0] + len(text.encoding.encode(old))
    start, stop = text.line_at(low), min(text.line_at(high) + 1, text.count)
    changed = data[text.offset(start) : low] + text.encoding.encode(new) + data[high : text.offset(stop)]
    lines = split(changed, text.encoding)
    if lines and high == text.offset(stop - 1) and text.lines(stop - 1, stop) == lines[-1:]:
        # The snippet ended with its line: the next one is not touched.
        stop -= 1
        lines.pop()
    return _Asked(start, stop, len(lines), [Splice(start, stop, lines)]), _line_numbers(text, places[1:])


def _places(document: Document, wanted: bytes) -> list[int]:
    """Return the byte offsets at which a snippet stands, at whole characters of a wide encoding, without overlaps.

    The first, and at most 1,000 others.
    """
    data, unit = document.data or b"", len(document.text.encoding.newline)
    out: list[int] = []
    base = len(document.text.encoding.bom)
    at = data.find(wanted, base)
    while at >= 0 and len(out) <= _MOST_PLACES:
        whole = (at - base) % unit == 0
        if whole:
            out.append(at)
        at = data.find(wanted, at + (len(wanted) if whole else 1))
    return out


def _line_numbers(text: Text, offsets: Sequence[int]) -> list[int]:
    """Return the numbers (from 1) of the lines in which ascending offsets stand; a line is looked up once."""
    out: list[int] = []
    line, end = -1, 0
    for at in offsets:
        if at >= end:
            line = text.line_at(at)
            end = text.offset(line + 1)
        out.append(line + 1)
    return out


def _absent(document: Document, old: str) -> EditError:
    """Name the lines that are most like the snippet's first: what was retyped is seldom far off."""
    from rye.toolkit.suggest import nearest

    first = next((line for line in content_lines(old) if line.strip()), "").strip()[:_COMPARED_CHARS]
    rows = document.rows(0, min(document.text.count, _LOOKED_AT), ids=False)
    by_text: dict[str, Row] = {}
    for row in rows:
        by_text.setdefault(row.text.strip()[:_COMPARED_CHARS], row)
    words = {*re.findall(_WORD, first)}
    alike = sorted(by_text, key=lambda text: -len(words.intersection(re.findall(_WORD, text))))
    close = [by_text[found] for found in nearest(first, alike[:_COMPARED], 2)]
    near = f" The nearest lines: {'; '.join(f'{row.number}: {named(row)}' for row in close)}." if close else ""
    return EditError(
        "snippet_not_found", f"The text of old does not stand in {document.path}. Nothing was written.{near}",
        "Copy old exactly, blanks included, or name the lines: edit_range (rt edit).",
    )  # fmt: skip


def _with_places(result: dict[str, Any], others: list[int]) -> dict[str, Any]:
    more = f" and {len(others) - _PLACES} more" if len(others) > _PLACES else ""
    some = f"more than {len(others)}" if len(others) == _MOST_PLACES else len(others) + 1
    notice = (
        f"[the text stands at {some} places; only the first was changed. The others, in the numbering before: "
        f"line {', '.join(map(str, others[:_PLACES]))}{more}]"
    )
    return {
        **result,
        "other_places": others,
        "output": f"{result['output']}\n{notice}",
        "notices": [*result["notices"], notice],
    }


def _edit(
    tool: str, project_path: str, path: str, encoding: str | None, wanted: Callable[[Document], _Asked], *, dry_run: bool,
    show_diff: bool, line_ids: bool,
) -> dict[str, Any]:  # fmt: skip
    """Make an edit, or show it where the call or the profile says so."""
    swe.enabled()
    with_diff = swe.diff_wanted(show_diff)
    with Workspace(project_path) as ws:
        profile = profiles.profile(ws.root)
        held_back = profile == profiles.READ_ONLY
        journal.recover(ws)
        with documents.held_for_edit(ws, path, encoding) as document:
            asked = wanted(document)
            landed = land(document, asked.splices, tool, dry_run=dry_run or held_back)
            facts = {"profile": profile, "total_before": document.text.count, **_facts(landed, asked)}
            if dry_run or held_back:
                head = [_not_applied()] if held_back and not dry_run else []
                return _answer(landed, asked, head, landed.diff, {"applied": False, "dry_run": True, **facts})
            first, last = asked.span
            head = [f"✓ Edited {landed.document.path}:{first}-{last}", _counts(asked)]
            region = _region(landed, asked, line_ids=line_ids)
            return _answer(
                landed, asked, [*head, *region.lines], landed.diff if with_diff else [], {"applied": True, **facts}, region.full
            )


def _not_applied() -> str:
    return f"Not applied: the profile {profiles.READ_ONLY} lets no edit through. Nothing was written. The patch:"


def _counts(asked: _Asked) -> str:
    removed = asked.stop - asked.start
    return f"{removed} {'line' if removed == 1 else 'lines'} removed, {asked.added} added"


def _facts(landed: Landed, asked: _Asked) -> dict[str, Any]:
    first, last = asked.span
    return {
        "file_path": landed.document.path, "start_line": first, "end_line": last, "lines_removed": asked.stop - asked.start,
        "lines_added": asked.added, "total_lines": landed.document.text.count, "entry_id": landed.entry,
        "version": landed.document.index.version, "warnings": landed.warnings,
    }  # fmt: skip


def _region(landed: Landed, asked: _Asked, *, line_ids: bool) -> Page:
    """Return the new lines with two on each side under their new numbers, as far as they fit."""
    page = Page((output_room() - _NOTICES) // 2)
    low = max(asked.start - CONTEXT, 0)
    high = min(asked.start + asked.added + CONTEXT, landed.document.text.count)
    for row in landed.document.rows(low, high, ids=line_ids and landed.indexed):
        if not page.add([f"{row.number}: {named(row)}"]):
            break
    if line_ids and landed.indexed:
        landed.document.shown((low, low + len(page.lines)))
    return page


def _answer(
    landed: Landed, asked: _Asked, head: list[str], diff: list[str], facts: dict[str, Any], cut: bool = False
) -> dict[str, Any]:  # fmt: skip
    """Print what became of an edit, and the diff where it is wanted."""
    shown, cut_diff = fit(diff, (output_room() - _NOTICES) // 2)
    notices = [f"Warning: {warning}" for warning in landed.warnings]
    if cut or cut_diff:
        path, (first, _) = landed.document.path, asked.span
        total = asked.added + len(diff)
        notices.append(
            envelope(min(len(head) + len(shown), total), total, "lines", f'open_file_chunk(path="{path}", line={first})')
        )
    if diff:
        facts["diff"] = "\n".join(shown)
    blank = [""] if head and shown and facts["applied"] else []
    return ok(
        "\n".join([*head, *blank, *shown, *notices]), **facts, truncated=cut or cut_diff, notices=notices
    )  # fmt: skip

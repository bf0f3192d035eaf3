"""Edits by line number and by exact snippet: applied, recorded and undone as all edits are. What the edit tools share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rye.call import profile as config_profile
from rye.call.context import output_budget
from rye.call.results import call_text, cut_notice, failure, fit_lines, ok
from rye.edits import refusals, view_state
from rye.edits import splices as edits_splices
from rye.edits.apply import Applied, Show, apply
from rye.errors import EditError, UsageError
from rye.journal import recovery
from rye.line_ids import addresses
from rye.line_ids import document as documents
from rye.line_ids.document import Document
from rye.line_ids.reconcile import Splice
from rye.workspace.text import content_lines
from rye.workspace.workspace import Workspace

CONTEXT = 2
"""Lines shown on each side of an edit."""

_NOTICES = 2_000
_CHANGED_SHOWN = 20


class RequestedEdit(NamedTuple):
    """An edit as it was asked for: lines [start, stop) become `added` lines; the splices are the whole of what that takes."""

    start: int
    stop: int
    added: int
    splices: list[Splice]

    @property
    def span(self) -> tuple[int, int]:
        """Return the first and last new line (from 1); of a deletion the lines that were there."""
        return self.start + 1, self.start + self.added if self.added else self.stop


def edit(
    tool: str, project_path: str, params: dict[str, Any], plan: Callable[[Document], RequestedEdit], *, by_number: bool = True
) -> dict[str, Any]:
    """Make an edit; where the call or the profile says so, show it (for the profile as a refusal, with the patch as output).

    Args:
        tool: item id for the journal.
        project_path: the project's root.
        params: `path`, `dry_run`, `show_diff`, `line_ids`, `guard`, and perhaps `encoding`; `new_text` or `new`.
        plan: returns the edit of an open file.
        by_number: the edit names lines by number: those that were shown must be as they were shown.

    Raises:
        EditError: `lines_changed`, `pasted_ids`, and as `apply`; what `plan` raises. Nothing was written.
        WorkspaceError, UsageError: see `document.view`, `config_profile.enabled`.
    """
    config_profile.enabled()
    with_diff = config_profile.diff_wanted(params["show_diff"])
    with Workspace(project_path) as ws:
        profile = config_profile.profile(ws.root)
        # Known before the file is opened: a read-only profile shows the patch and writes nothing.
        held_back = profile == config_profile.READ_ONLY
        recovery.recover(ws)
        with documents.open_for_edit(ws, params["path"], params.get("encoding")) as document:
            lines = str(params.get("new_text", params.get("new", ""))).split("\n")
            refusals.refuse(document.index, document.data or b"", lines, document.path)
            request = plan(document)
            remembers = config_profile.views_kept()
            if by_number and remembers:
                _check_shown(document, request)
            dry_run = params["dry_run"] or held_back
            show = _show(document, request, line_ids=params["line_ids"])
            applied = apply(document, request.splices, tool, dry_run=dry_run, show=show, guard=params["guard"])
            facts = {"profile": profile, "total_before": document.count, **_facts(applied, request)}
            if dry_run:
                shown = _result(applied, request, [], applied.diff, {"applied": False, "dry_run": True, **facts})
                return shown if params["dry_run"] else {**shown, **failure(config_profile.refusal())}
            # Not before this point: a dry run prints lines that are not in the file.
            if remembers:
                _remember(applied)
            first, last = request.span
            head = [f"✓ Edited {applied.document.path}:{first}-{last}", _counts(request), *applied.printed()]
            diff = applied.diff if with_diff else []
            return _result(applied, request, head, diff, {"applied": True, **facts}, applied.cut)


def _check_shown(document: Document, request: RequestedEdit) -> None:
    """Refuse an edit of lines that another program changed since they were shown; one of lines never shown goes through."""
    last_view = view_state.last_view(document.ws, document.path)
    # An insertion names the line before which it goes.
    stop = max(request.stop, request.start + 1)
    changed = [] if last_view is None else view_state.changed_lines(last_view, document.text, request.start, stop)
    if not changed:
        return
    low, high = max(changed[0] - CONTEXT, 0), min(changed[0] + _CHANGED_SHOWN, document.count)
    rows = document.rows(low, high, ids=False)
    # The refusal prints these lines, so the next edit may name them.
    view_state.remember(document.ws, document.path, document.text, low + 1, high, window=False)
    named = ", ".join(str(at + 1) for at in changed[:8]) + ("…" if len(changed) > 8 else "")
    now = "\n".join(row.numbered() for row in rows)
    why = f"Line {named} of {document.path} changed since it was shown. Nothing was written.\nThe lines there now:\n{now}\n"
    hint = "Find the line that you mean, and send the edit again with its number."
    raise EditError("lines_changed", why, hint, changed=[at + 1 for at in changed])


def _remember(applied: Applied) -> None:
    """Remember the lines that the result prints."""
    document = applied.document
    if applied.lines:
        first, last = applied.lines[0].number, applied.lines[-1].number
        view_state.remember(document.ws, document.path, document.text, first, last, window=False)


def new_lines(document: Document, start: int, stop: int, new_text: str) -> RequestedEdit:
    """Return the edit that puts lines of text in place of lines [start, stop)."""
    bodies = [document.encode(line) for line in content_lines(new_text)]
    if not bodies and start == stop:
        why = "There is no text to insert. Nothing was written."
        raise UsageError("nothing_to_insert", why, r'The text needs at least one line; "\n" is one empty line.')
    splices = edits_splices.assemble(document.text, [edits_splices.terminated(document.text, start, stop, bodies)])
    return RequestedEdit(start, stop, len(bodies), splices)


def _counts(request: RequestedEdit) -> str:
    removed = request.stop - request.start
    return f"{removed} {'line' if removed == 1 else 'lines'} removed, {request.added} added"


def _facts(applied: Applied, request: RequestedEdit) -> dict[str, Any]:
    first, last = request.span
    return {
        "file_path": applied.document.path,
        "start_line": first,
        "end_line": last,
        "lines_removed": request.stop - request.start,
        "lines_added": request.added,
        "total_lines": applied.document.text.count,
        **({} if applied.entry is None else {"entry_id": applied.entry}),
        "version": applied.document.index.version,
        "warnings": applied.warnings,
    }


def _show(document: Document, request: RequestedEdit, *, line_ids: bool | str) -> Show:
    """Return which lines the result prints: the new ones with two on each side."""
    count = document.count + request.added - (request.stop - request.start)
    form = addresses.form_of(line_ids)
    return Show((output_budget() - _NOTICES) // 2, ids=form != "none", span=_span(request, count), short_rows=form == "short")


def _span(request: RequestedEdit, count: int) -> tuple[int, int]:
    """Return the new lines [start, stop) with two on each side, of `count` lines."""
    return max(request.start - CONTEXT, 0), min(request.start + request.added + CONTEXT, count)


def _result(
    applied: Applied, request: RequestedEdit, head: list[str], diff: list[str], facts: dict[str, Any], cut: bool = False
) -> dict[str, Any]:
    """Print what became of an edit, and the diff where it is wanted."""
    shown, cut_diff = fit_lines(diff, (output_budget() - _NOTICES) // 2)
    notices = [f"Warning: {warning}" for warning in applied.warnings]
    if cut or cut_diff:
        call = call_text("open_file_chunk", path=applied.document.path, line=request.span[0])
        low, high = _span(request, applied.document.count) if cut else (0, len(applied.lines))
        notices.append(cut_notice(len(applied.lines) + len(shown), high - low + len(diff), "lines", call))
    if diff:
        facts["diff"] = "\n".join(shown)
    blank = [""] if head and shown else []
    return ok("\n".join([*head, *blank, *shown, *notices]), **facts, truncated=cut or cut_diff, notices=notices)

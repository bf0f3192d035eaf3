"""Windows of a file as numbered lines, with or without line IDs; what the viewing tools of `rye/swe` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rye.call import profile
from rye.call.context import output_budget
from rye.call.results import Page, call_text, cut_notice, ok
from rye.edits import view_state
from rye.errors import UsageError
from rye.line_ids import addresses
from rye.line_ids import document as documents
from rye.line_ids.render import Row
from rye.plain_class import Record, changed
from rye.workspace.workspace import Workspace

WINDOW = 100
"""Lines of a window where none are asked for."""

MAX_EXPLICIT = 200
"""Lines of a window that is asked for by its first and last line, at most."""

_NOTICES = 1_000


class Span(Record):
    """Lines first..last, from 1, both included; `requested_last` is the last one that was asked for, where it was cut."""

    first: int
    last: int
    requested_last: int


class Shown(Record):
    """A file's name and length, the rows of a window of it, and the notice about its encoding."""

    path: str
    total: int
    span: Span
    rows: list[Row]
    encoding_notice: str = ""


def out_of_range(name: str, value: int, low: int, high: int) -> UsageError:
    """Return the refusal of a line number out of range, with the valid range."""
    if high < low:
        hint = "insert_at with line=1 (rt insert PATH 1) puts lines into it."
        return UsageError("out_of_range", f"{name} {value} out of range: the file is empty.", hint, parameter=name, valid=[])
    why = f"{name} {value} out of range ({low}..{high})."
    return UsageError("out_of_range", why, f"Give {name} a value from {low} to {high}.", parameter=name, valid=[low, high])


def window_at(total: int, line: int | None, start: int | None, end: int | None) -> Span:
    """Return the window that a call asks for: around a line, from one to another, or the first lines."""
    if line is not None and (start is not None or end is not None):
        raise UsageError("bad_window", "line is given with start or end, which name a range.", "Give line, or start and end.")
    if line is not None:
        if not 1 <= line <= total:
            raise out_of_range("line", line, 1, total)
        last = min(line + WINDOW // 2 - 1, total)
        return Span(max(line - WINDOW // 2, 1), last, last)
    first = 1 if start is None else start
    if not (1 <= first <= total or (first == 1 and not total)):
        raise out_of_range("start", first, 1, total)
    if end is not None and end < first:
        why = f"end {end} lies before start {first}."
        raise UsageError("bad_window", why, f"Give end a value from {first} to {total}.", valid=[first, total])
    requested_last = min(first + WINDOW - 1 if end is None else end, total)
    return Span(first, min(requested_last, first + MAX_EXPLICIT - 1), requested_last)


def look(
    ws: Workspace,
    path: str,
    encoding: str | None,
    choose_span: Callable[[int], Span],
    *,
    line_ids: bool | str,
    window: bool = True,
) -> Shown:
    """Read the rows of the window that `choose_span` makes of the number of lines, as many as fit.

    With IDs they count as shown. Unless the user switched that off, they are remembered for edits by line number, and with
    `window` as the window from which `scroll_file` goes on.
    """
    form = addresses.form_of(line_ids)
    named = form != "none"
    # Without IDs no index is needed, so a large file is neither locked nor hashed.
    with (documents.view if named else documents.without_ids)(ws, path, encoding) as document:
        span = choose_span(document.count)
        rows = document.rows(span.first - 1, span.last, ids=named)
        rows = [addresses.one_view(row, form) for row in rows]
        rows = rows[: Page(output_budget() - _NOTICES).fill(row.numbered() for row in rows)]
        fitting = span.first - 1, span.first - 1 + len(rows)
        if named:
            # Only the rows that fit count as shown.
            document.shown(fitting, short=form == "short")
        if rows and profile.views_kept():
            view_state.remember(ws, document.path, document.text, rows[0].number, rows[-1].number, window=window)
        span = changed(span, last=rows[-1].number if rows else 0)
        return Shown(document.path, document.count, span, rows, document.encoding_notice([fitting]))


def result(shown: Shown, params: dict[str, Any]) -> dict[str, Any]:
    """Return a window under its header; `params` are the tool's, of which the call for the rest repeats how it looks."""
    first, last, total = shown.span.first if shown.rows else 0, shown.span.last, shown.total
    lines = [f"--- {shown.path} (lines {first}-{last}) ---", *(row.numbered() for row in shown.rows)]
    notices = [] if total else ["[empty file]"]
    fields: dict[str, Any] = {} if profile.views_kept() else {"remembered": False}
    if last < total:
        view = {name: params[name] for name in ("line_ids", "encoding") if params.get(name)}
        call = call_text("open_file_chunk", path=params["path"], start=last + 1, **view)
        notices.append(cut_notice(len(shown.rows), total, "lines", call, total - last))
        fields["next_line"] = last + 1
    notices += [shown.encoding_notice] if shown.encoding_notice else []
    return ok(
        "\n".join([*lines, *notices]),
        file_path=shown.path,
        start_line=first,
        end_line=last,
        line_count=len(shown.rows),
        total_lines=total,
        truncated=last < shown.span.requested_last,
        more_below=total - last,
        more_above=max(first - 1, 0),
        notices=notices,
        **fields,
    )

# rye:signed:2026-11-28T21:04:33Z:f3b422aa10acddeba7a8ddad18795b19cfee8eb2d227470353ffe319c218110f:WXpsUgCf-rhw6zc9cEHBuYDxreednmK3brt_vJliloPgZgMT-VhTDFY803VrjE0WJKftxjQbd0MKQ-GA12_QCQ==:b63173adc9f5699f
"""Read a text file of the project as lines, each with a persistent line ID: `[LID:a1b2c3] text`.

Requires: file_path, a text file inside the project, or a picture (PNG, JPEG, GIF, WebP), which is shown. A PDF is shown as the
text of its pages, which offset and limit count then; a notebook (.ipynb) as its cells, each line of their text by its address,
outputs cut. Other binary files are refused.
Does not: follow links out of the project.
Side effects: none on your files; keeps line IDs in .ai/cache (or the user's state folder). On a full disk lines come without IDs.
Returns: output (lines with IDs), line_count, total_lines, offset, truncated, next_offset, version, encoding. At most `limit`
lines and 50 KB, cut at a line boundary; a cut ends with a [tool_result: …] line naming the call that continues. Lines over
2,000 characters are shortened visibly; their ID still stands for the whole line.
An ID belongs to its line as long as it lives: pass IDs to edit_lines instead of retyping text, and do not
read again after an edit. Pass changes_since=<version of an earlier read> to see only what is
new, changed or gone since (several: also for `more`). file_path may end in a range of line numbers, "a.py:20-40" or "a.py:20-", or of addresses, "a.py:@12-15";
more=["b.py", ":90-99"] reads other files and ranges, too. Negative offset counts from the end. show_whitespace shows blanks.
Prefer it to cat in a shell where you may edit the file; in a large one find the place with grep.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any

from rye.toolkit import (
    Document,
    Page,
    RyeError,
    UsageError,
    WorkspaceError,
    call_text,
    cut_notice,
    notebook_view,
    ok,
    output_budget,
    pdf_pages,
    picture,
    view_lines,
)

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/file-system"
__tool_description__ = "Read a text file with persistent line IDs, or only a part of a large file, a window at a time"
__item_id__ = "rye/file-system/read"
__agent_defaults__ = {"line_ids": "short"}
__agent_description__ = """Read a text file. Before each line and a tab stands its address (an empty line's is not printed): its line number at first.
It keeps it through every edit; new lines get new ones.
Requires: file_path.
Does not: show binary files but pictures and PDFs (offset: page).
Side effects: none.
Returns: lines, [version x]; a cut names the next call. After an edit do not read again: changes_since=x shows what is new and gone (-).
Prefer it to cat."""
__agent_parameters__ = {
    "file_path": 'Or "a.py:20-40" (line numbers), "a.py:@20-40" (addresses)',
    "offset": "From 1; negative: from the end",
    "limit": "",
    "changes_since": 'Version of an earlier read; of more files "x y"',
    "encoding": "",
    "more": '["b.py", "b.py:20-40", ":200-240" (of file_path)]',
}
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
        "offset": {
            "type": "integer",
            "default": 1,
            "not": {"const": 0},
            "description": "First line (from 1); negative counts from the end, -1 is the last line",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": 100000, "default": 2000, "description": "Most lines to return"},
        "line_ids": {
            "type": "string",
            "enum": ["lid", "short", "none", "all"],
            "default": "lid",
            "description": "How lines are named: [LID:a1b2c3], a short number before a tab, or not at all (all: lid)",
        },
        "changes_since": {
            "type": "string",
            "minLength": 1,
            "description": "A version from an earlier result, or several with blanks between: show only what changed since",
        },
        "more": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "description": 'Other files and ranges to read in the same call: "b.py", "b.py:20-40", ":200-240" of this file, "b.py:@12-15"',
        },
        "notebook": {
            "type": "string",
            "enum": ["cells", "json"],
            "default": "cells",
            "description": "Show a notebook (.ipynb) as its cells, or as the JSON of the file",
        },
        "show_whitespace": {"type": "boolean", "default": False, "description": "Make tabs, CR and odd blanks visible"},
        "encoding": {
            "type": "string",
            "minLength": 1,
            "description": "Codec name, only where it is not recognised (latin-1, shift_jis …)",
        },
    },
    "required": ["file_path"],
    "additionalProperties": False,
}

OUTPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "line_count": {"type": "integer", "description": "Lines shown"},
        "total_lines": {"type": "integer", "description": "Lines in the file"},
        "offset": {"type": "integer", "description": "First line shown"},
        "truncated": {"type": "boolean", "description": "Whether the output was cut"},
        "next_offset": {"type": "integer", "description": "Where the next call continues"},
        "version": {"type": "string", "description": "The file's version, for later calls"},
        "warnings": {"type": "array", "description": "Why lines have no IDs, where these cannot be kept"},
        "encoding": {"type": "string", "description": "The file's encoding"},
        "file_path": {"type": "string", "description": "The file, from the project's root"},
        "changed_lines": {"type": "integer", "description": "With changes_since: lines changed"},
        "deleted_ids": {"type": "array", "description": "With changes_since: IDs of lines that are gone"},
        "more": {"type": "array", "description": "Of each of `more`: the fields above, or error and code"},
        "changes_known": {"type": "boolean", "description": "With changes_since: whether that version is known"},
        "cells": {"type": "integer", "description": "Of a notebook: its cells"},
        "media": {"type": "array", "description": "Pictures (of a notebook: of its outputs), in base64"},
        "total_pages": {"type": "integer", "description": "Of a PDF: its pages"},
        "mime_type": {"type": "string", "description": "Of a picture or PDF: its type"},
        "bytes": {"type": "integer", "description": "Of a picture or PDF: its size"},
        "width": {"type": "integer", "description": "Of a picture: its width in pixels"},
        "height": {"type": "integer", "description": "Of a picture: its height in pixels"},
    },
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return the window, or the changes since a version."""
    more, failed = params.get("more") or (), None
    try:
        result = _of_path(params, project_path)
    except RyeError as err:
        if not more:
            raise
        # The others are read all the same.
        failed, result = err, ok(f"[{err}]", file_path=_part(params["file_path"], "")["file_path"])
    many = len((params.get("changes_since") or "").replace(",", " ").split()) > 1
    for one in more:
        _add(result, {**params, **_part(one, result["file_path"], many=many)}, project_path)
    if failed is not None and all("error" in one for one in result["more"]):
        raise failed
    if any(one["file_path"] != result["file_path"] for one in result.get("more", ())):
        result["output"] = f"{result['file_path']}:\n{result['output']}"
    return result


def _of_path(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    try:
        return _read(params, project_path, output_budget())
    except WorkspaceError as err:
        # A file may have such a name, so this is looked at last.
        window = _part(params["file_path"], params["file_path"])
        if err.code != "file_not_found" or window["file_path"] == params["file_path"]:
            raise
    # A line and how many: as with an offset.
    given = {"limit": params["limit"]} if window.get("limit") == 1 and params["limit"] != _MOST_LINES else {}
    # A version that was given still names the state of that file; the range is this file's alone.
    return _read({**params, **window, **given, "changes_since": params.get("changes_since")}, project_path, output_budget())


def _read(params: dict[str, Any], project_path: str, budget: int) -> dict[str, Any]:
    path = params["file_path"]
    try:
        return view_lines(project_path, path, lambda document: _result(document, params, budget), params.get("encoding"))
    except WorkspaceError as err:
        # Only now, so that a text costs no look for pictures and documents.
        if err.code not in ("binary_file", "file_too_large"):
            raise
        shown = pdf_pages(project_path, path, params["offset"], params["limit"], budget) or picture(project_path, path)
        if shown is None:
            raise
        return shown


def _part(text: str, file_path: str, *, many: bool = False) -> dict[str, Any]:
    """Return the file and window that `b.py`, `b.py:20-40`, `b.py:@12-15` or `:20-40`, of the call's own file, names."""
    if by_address := re.fullmatch(r"(.*):@(\w+)(?:-@?(\w+))?", text, re.DOTALL):
        path, *named = by_address.groups()
        return {"file_path": path or file_path, "offset": 1, "changes_since": None, "named": named}
    found = re.fullmatch(r"(.*?)(?::(-?[1-9]\d{,15})?(?:(-)(\d{1,15})?)?)?", text, re.DOTALL)
    path, first, dash, last = found.groups() if found else (text, None, None, None)
    ends = sorted((int(first or 1), int(last or first or 1)))
    # Who names the last line knows that there may be more; `b.py:20`, as compilers name a line, is that line.
    limit = {"limit": ends[1] - ends[0] + 1, "ranged": True} if last or (first and ends[0] > 0 and not dash) else {}
    # One version names a state of one file; several may be of several.
    since = {} if many and path and not (first or last) else {"changes_since": None}
    return {"file_path": path or file_path, "offset": ends[0], "named": None, **since, **limit}


def _add(result: dict[str, Any], params: dict[str, Any], project_path: str) -> None:
    """Put another window behind the ones so far; what cannot be read is said there, and the others stay."""
    parts = result.setdefault("more", [])
    place = f"@{params['named'][0]}" if params["named"] else f"line {params['offset']}" if params["offset"] != 1 else ""
    header = ", from ".join(filter(None, (params["file_path"], place))) + ":"
    params["cells_explained"] = any("cells" in one for one in (result, *parts))
    budget_left = output_budget() - len(result["output"].encode("utf-8", "replace")) - len(header) - 2
    try:
        if budget_left < _LEAST:
            raise UsageError("no_room", "There is no room left.", call_text("read", file_path=params["file_path"]))
        part = _read(params, project_path, budget_left)
    except RyeError as err:
        part = {"file_path": params["file_path"], "output": f"[{err}]", "error": str(err), "code": err.code}
    if media := part.pop("media", []):
        result["media"] = [*result.get("media", []), *media]
    before = parts[-1] if parts else result
    if before["file_path"] == part["file_path"] and "version" in part and before.get("version") == part["version"]:
        # One file, one heading, one version, behind its last range.
        result["output"], header = re.sub(r"\n\[version [^\n]*\Z", "", result["output"]), "…"
    result["output"] += f"\n{header}\n{part['output']}"
    parts.append({name: value for name, value in part.items() if name not in ("output", "success")})


# Lines printed at a time. Bytes: kept for the notices; left where another window begins; that a line with its ID takes at least.
_BATCH, _NOTICES, _LEAST, _SHORTEST = 500, 400, 1_000, 13
_MOST_LINES = 2_000  # as in the schema
_CELLS = '[cells: edit a line as its text; behind the last line of a cell "# %%" or "# %% [markdown]" and text add one]'


def _result(document: Document, params: dict[str, Any], budget: int) -> dict[str, Any]:
    """Return the window, or what changed since a version that is known."""
    if params["notebook"] == "cells":
        document.show_as_cells()
    if params.get("named"):
        start, stop = document.lines_named(*params["named"])
        params = {**params, "offset": start + 1, "limit": stop - start, "ranged": True}
    window = _Window(document, params, budget)
    since = params.get("changes_since")
    if since is None or document.no_ids:
        result = _window(document, window, params)
        return _without_ids(result, document, since) if document.no_ids else result
    for version in re.findall(r"[\w.-]+", since):
        if (changes := document.changes_since(version)) is not None:
            params = {**params, "changes_since": version}
            return _changes(document, window, params, changes.lines, changes.ended, changes.gone)
    result = _window(document, window, params)
    notice = f"[changes_since: version {since[:80]} is not among the last 20 of this file; here is the window instead.]"
    return {**result, "output": f"{notice}\n{result['output']}", "changes_known": False}


def _without_ids(result: dict[str, Any], document: Document, since: str | None) -> dict[str, Any]:
    """Say why the window has no IDs: one that cannot be stored would be unknown to the next call."""
    del result["version"]
    warning = f"No line IDs and no version: they cannot be kept ({document.no_ids.rstrip('.')}). edit_lines needs them: read again when they can."
    changes = {} if since is None else {"changes_known": False}
    return {**result, **changes, "output": f"{result['output']}\n[{warning}]", "warnings": [warning]}


class _Window(Page):
    """Collects printed lines up to the size of the output, and which lines were printed with their IDs."""

    def __init__(self, document: Document, params: dict[str, Any], budget: int) -> None:
        notices = _NOTICES * (2 if document.no_ids else 1)
        super().__init__(budget - notices - 2 * len(params["file_path"].encode("utf-8", "replace")))
        self.document = document
        self.ids = params["line_ids"] != "none" and not document.no_ids
        self.short = self.ids and params["line_ids"] == "short"
        self.whitespace = params["show_whitespace"]
        self.shown: list[tuple[int, int]] = []

    def show(self, start: int, stop: int) -> int:
        """Print lines [start, stop) as far as they fit; return where it stopped."""
        at = start
        while at < stop and not self.full:
            upto = min(at + _BATCH, stop)
            at += self.fill(self.document.printed(at, upto, ids=self.ids, short=self.short, whitespace=self.whitespace))
        if self.ids and at > start:
            self.shown.append((start, at))
        return at


def _call(params: dict[str, Any], offset: int) -> str:
    """Return the call that goes on at a line, in the same view of the file."""
    usual = {"encoding": None, "notebook": "cells", "show_whitespace": False}
    view = {name: params[name] for name in usual if params.get(name) != usual[name]}
    return call_text("read", file_path=params["file_path"], offset=offset, **view)


def _facts(document: Document) -> dict[str, Any]:
    whole = {"total_lines": document.count, "version": document.version}
    return {**whole, "encoding": document.encoding, "file_path": document.path}


def _window(document: Document, window: _Window, params: dict[str, Any]) -> dict[str, Any]:
    total, offset = document.count, params["offset"]
    start = offset - 1 if offset > 0 else max(0, total + offset)
    last = offset + params["limit"] - 1 if params.get("ranged") else offset
    by_address = "" if params.get("named") or document.no_ids else document.otherwise_named(offset, last)
    if start >= total and (total or offset > 1):
        hint = by_address or f"Use an offset from 1 to {max(total, 1)}, or a negative one to count from the end."
        raise UsageError("bad_offset", f"offset {offset} is past the end: {document.path} has {total} line(s).", hint)
    media: list[dict[str, str]] = []
    if (book := document.cells()) is None:
        stop = window.show(start, min(start + params["limit"], total))
        lines = list(window.lines)
    else:
        stop, lines, media = notebook_view(document, window, start, params["limit"], is_range=params.get("ranged", False))
        lines += [_CELLS] if window.ids and not params.get("cells_explained") else []
    document.shown(*window.shown, short=window.short)
    truncated = stop < total
    is_full_range = stop - start == params["limit"] and window.short and params.get("ranged", False)
    if truncated and not is_full_range:
        call = _call(params, stop + 1)
        lines.append(cut_notice(stop - start, total, "lines", call, total - stop))
    if notice := document.encoding_notice([(start, stop)]):
        lines.append(notice)
    if window.short:
        lines += [f"[{by_address}]"] if by_address and params.get("ranged") else []
        lines.append(f"[version {document.short_version}{f'; {total} lines' if is_full_range else ''}]")
    if not total:
        lines.append('[empty file: insert with edit_lines, "end+|text"]')
    fields: dict[str, Any] = {"next_offset": stop + 1} if truncated else {}
    fields |= ({"cells": len(book.cells)} if book else {}) | ({"media": media} if media else {})
    return ok("\n".join(lines), line_count=stop - start, offset=start + 1, truncated=truncated, **fields, **_facts(document))


def _changes(
    document: Document,
    window: _Window,
    params: dict[str, Any],
    ranges: list[tuple[int, int]],
    dead_lines: list[tuple[str, str, int]],
    forgotten: str,
) -> dict[str, Any]:
    """Print the lines that are new or changed since a version, and which IDs are gone."""
    from rye.toolkit import places_since  # It loads the record, which no other reading needs.

    count = sum(stop - start for start, stop in ranges)
    cut_at = None
    lines: list[str] = []
    places, removed = places_since(document, params["changes_since"], ranges) if window.short else (ranges, None)
    ending = f"[gone: {forgotten[:2_000]}]" if window.short else _deleted_lines(dead_lines)
    ending = ending if dead_lines and removed is None else ""
    removed = removed or {}
    # The list of deleted IDs comes last but must fit, so its size is taken off first.
    window.budget -= len(ending)
    if window.ids:  # All at once: naming them range by range would align the file each time.
        document.name(_first(ranges, window.budget // _SHORTEST))
    for start, stop in places:
        before, reached = len(window.lines), start
        header = "…" if window.short else f"@ line {start + 1}"
        window.budget -= len(header) + 1
        for at in (*(at for at in sorted(removed) if start <= at <= stop), stop):
            reached = window.show(reached, at)
            gone = removed.pop(at, []) if reached == at else []
            size = sum(len(line.encode("utf-8", "replace")) + 1 for line in gone)
            window.lines += gone if size <= max(window.budget, 0) else [f"-\t… {len(gone)} lines"]
            window.budget -= size
        if len(window.lines) > before:
            lines += [*([header] if lines or not window.short else []), *window.lines[before:]]
        if reached < stop:
            cut_at = reached
            break
    document.shown(*window.shown, short=window.short)
    lines += [ending] if ending else []
    if notice := document.encoding_notice(window.shown):
        lines.append(notice)
    if not lines:
        lines.append(f"[no changes since version {params['changes_since']}]")
    elif window.short:
        lines.append(f"[version {document.short_version}]")
    fields: dict[str, Any] = {}
    if cut_at is not None:
        call = _call(params, cut_at + 1)
        # Without the unchanged lines around them.
        passed = sum(min(stop, cut_at) - start for start, stop in ranges if start < cut_at)
        lines.append(cut_notice(passed, count, "changed lines", call))
        fields["next_offset"] = cut_at + 1
    return ok(
        "\n".join(lines),
        line_count=len(window.lines),
        changed_lines=count,
        deleted_ids=[name for name, _, _ in dead_lines][:200],
        changes_known=True,
        truncated=cut_at is not None,
        offset=ranges[0][0] + 1 if ranges else 1,
        **fields,
        **_facts(document),
    )


def _first(ranges: list[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """Return the ranges as far as `count` lines reach."""
    counts = accumulate((stop - start for start, stop in ranges), initial=0)
    pairs = zip(ranges, counts, strict=False)
    return [(start, min(stop, start + count - before)) for (start, stop), before in pairs if before < count]


def _deleted_lines(dead_lines: list[tuple[str, str, int]]) -> str:
    named = [f"{name} ({how}, was line {line})" for name, how, line in dead_lines]
    more = f" and {len(named) - 50} more" if len(named) > 50 else ""
    return f"[gone: {', '.join(named[:50])}{more}]"

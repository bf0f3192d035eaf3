# rye:signed:2026-11-28T17:10:51Z:9a24049812f564499985757c6ca61f1f64d14920b51b5bff81d85f2f0f28b787:LSNeC-V8TInsv8J1qFjFQxQadX8-k2TQF4BhGdf0PtX7tEYgeCRTryNqyg4RKi4HRaFoOJksCW8FHIZZ8NrcDg==:b63173adc9f5699f
"""Search file contents by regular expression; every line shown carries its line ID: `file:line:[LID:a1b2c3]:content`.

Requires: pattern (Rust regex syntax: no look-around, no backreferences; literal=true for plain text). path is a folder or one
file, the project by default; include narrows by file name (`*.py`) or path (`src/**/*.py`).
Does not: look at hidden files, what .gitignore names, build and dependency folders (hidden=true, no_ignore=true lift this),
binary files, or follow symbolic links.
Side effects: none on your files; keeps line IDs in .ai/cache.
Returns: output, matches [{file, line, line_id, content}], count, total, files (that match), truncated, next_offset. Sorted by
path; at most `limit` and 50 KB, a cut ends with a [tool_result: …] line naming the call that continues. context shows lines
around each match. Lines over 500 characters are shown around the match. mode="files" or "count" lists files only.
Pass the IDs to edit_lines at once, no read is needed in between. A line in a file over 64 MB has no ID.
Prefer it to grep or rg in a shell whenever you may edit what you find; use glob to find files by name.
"""

from __future__ import annotations

from typing import Any

from rye.call import results
from rye.call.context import current, widened
from rye.filesearch import content_search
from rye.filesearch import tree as filesearch_tree
from rye.filesearch.content_search import ContentSearch
from rye.filesearch.ripgrep import Pattern
from rye.line_ids import addresses
from rye.line_ids.render import Hit, Row, Seen

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/file-system"
__tool_description__ = "Search file contents by regex; matches carry line IDs, ready for edit_lines"
__item_id__ = "rye/file-system/grep"
__timeout__ = 60
__agent_defaults__ = {"line_ids": "short"}
__letters__ = {
    "i": "ignore_case",
    "F": "literal",
    "C": "context",
    "m": "limit",
    "l": "mode=files",
    "c": "mode=count",
    "n": "",
    "r": "",
    "E": "",
}
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}
__agent_description__ = """Search file contents by regex (Rust, no look-around). Lines come with their addresses: edit_lines needs no read.
Requires: pattern.
Does not: search hidden, ignored or binary files.
Side effects: none.
Returns: matches by file; up to three with context, marked "-". Too many: the first 100, and counts by folder.
Prefer it to grep or rg."""
__agent_parameters__ = {
    "pattern": "",
    "path": "",
    "include": "Such as *.py",
    "ignore_case": "",
    "literal": "",
    "context": "",
    "multiline": "",
    "hidden": "",
    "no_ignore": "",
    "mode": "",
    "limit": "",
    "offset": "",
}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "minLength": 1, "maxLength": 20000, "description": "Regex pattern"},
        "path": {"type": "string", "format": "workspace-path", "default": ".", "description": "Directory or file to search"},
        "include": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "File glob filter (e.g., *.py)"},
        "ignore_case": {"type": "boolean", "default": False, "description": "Letter case does not count"},
        "literal": {"type": "boolean", "default": False, "description": "The pattern is plain text"},
        "multiline": {"type": "boolean", "default": False, "description": "Match across lines; use (?s) for . over newlines"},
        "context": {
            "type": "integer",
            "minimum": 0,
            "maximum": 1000,
            "description": "Lines to show before and after each match; an agent gets 3 where at most three match",
        },
        "mode": {
            "type": "string",
            "enum": ["content", "files", "count"],
            "default": "content",
            "description": "Matching lines, names of matching files, or names with counts",
        },
        "line_ids": {
            "type": "string",
            "enum": ["lid", "short", "none", "all"],
            "default": "lid",
            "description": "How lines are named: number and [LID:a1b2c3], a short address, or by number (all: lid)",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": 10000, "default": 100, "description": "Most matches (or files)"},
        "offset": {"type": "integer", "minimum": 1, "maximum": 100000000, "default": 1, "description": "First one, from 1"},
        "hidden": {"type": "boolean", "default": False, "description": "Search hidden files too"},
        "no_ignore": {"type": "boolean", "default": False, "description": "Search ignored files too"},
    },
    "required": ["pattern"],
    "additionalProperties": False,
}

OUTPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "matches": {"type": "array", "description": "file, line, line_id, content; in other modes file, count"},
        "count": {"type": "integer", "description": "Matches shown"},
        "total": {"type": "integer", "description": "Matches in all"},
        "files": {"type": "integer", "description": "Files that match"},
        "truncated": {"type": "boolean", "description": "Whether the output was cut"},
        "next_offset": {"type": "integer", "description": "Where the next call continues"},
    },
}

_AUTO_CONTEXT = 3


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return the matches of the window, or the files that have any.

    Raises:
        UsageError, WorkspaceError: see `content_search.opened`; UsageError `bad_offset`.
    """
    query = content_search.ContentQuery(
        Pattern(params["pattern"], params["ignore_case"], params["literal"], params["multiline"]),
        params["path"],
        params.get("include"),
        **filesearch_tree.scope(params),
    )
    with content_search.opened(project_path, query) as search:
        return _content(search, params) if params["mode"] == "content" else _files(search, params)


def _files(search: ContentSearch, params: dict[str, Any]) -> dict[str, Any]:
    """Answer the modes that name files: `total` is of matches, paging goes by files."""
    start, window = search.file_window()
    matches = []
    for path, count in window:
        if not search.page.add([path if params["mode"] == "files" else f"{path}:{count}"]):
            break
        matches.append({"file": path, "count": count})
    most = widened(search.query.limit, search.file_count - start)
    end = start + len(matches) if search.page.full else min(start + most, search.file_count)
    return _answer(search, params, matches, end, search.file_count, f"files with {search.total} matches")


def _content(search: ContentSearch, params: dict[str, Any]) -> dict[str, Any]:
    context = params.get("context")
    if context is None:
        context = _AUTO_CONTEXT if search.total <= 3 and current().options.agent_defaults else 0
    form = "lid" if params["line_ids"] == "all" else params["line_ids"]
    end = search.show(context, _Printer(search.page, context, form, one_file=search.tree.is_file), form)
    unit = f"matches in {search.file_count} file{'s' * (search.file_count != 1)}"
    return _answer(search, params, search.matches, end, search.total, unit)


class _Printer:
    """Prints hits with the lines around them, each line once."""

    def __init__(self, page: results.Page, context: int, form: str, *, one_file: bool) -> None:
        self._page, self._context, self._form, self._one_file = page, context, form, one_file
        self._printed_to, self._path, self._named_at = 0, "", 0

    def __call__(self, path: str, hit: Hit, seen: Seen, at: int) -> list[str]:
        """Return the lines of a hit and its context; the context after a hit ends where the next hit begins."""
        printed_to = self._printed_to if at else 0
        # Context stops where the next hit begins, so that no line is printed twice.
        following = seen.hits[at + 1].line if at + 1 < len(seen.hits) else None
        start = max(hit.line - self._context, printed_to + 1, 1)
        stop = hit.last + self._context if following is None else min(hit.last + self._context, following - 1)
        # A single line between two contexts costs no more than its mark would.
        stop += self._context and following == stop + 2 + self._context
        rows = [seen.rows[number] for number in range(start, max(stop, hit.last) + 1) if number in seen.rows]
        separated = self._context and self._page.lines and start != printed_to + 1
        lines = ["--"] if separated and rows else []
        if self._form == "short":
            lines = self._grouped(path, hit, rows, ["--"] if separated and at else [])
        else:
            for row in rows:
                mark = ":" if hit.line <= row.number <= hit.last else "-"
                lines.append(f"{path}{mark}{self._name(row, mark)}{mark}{content_search.around(hit, row)}")
        self._printed_to = max(stop, hit.last, printed_to)
        return lines

    def _grouped(self, path: str, hit: Hit, rows: list[Row], lines: list[str]) -> list[str]:
        """Return rows as read prints them, below the file's path, which is said once."""
        # A path that was taken off the page again is said once more.
        if (path != self._path or self._named_at == len(self._page.lines)) and not self._one_file:
            lines, self._named_at = [f"{path}:"], len(self._page.lines)
        self._path = path
        for row in rows:
            # As grep has it: what stands around a match is marked.
            mark = "" if hit.line <= row.number <= hit.last else "-"
            lines.append(addresses.printed(f"{row.short or f'{row.number}:'}{mark}", content_search.around(hit, row)))
        return lines

    def _name(self, row: Row, mark: str) -> str:
        """Return what names a line: its number and ID."""
        if self._form == "none":
            return str(row.number)
        return f"{row.number}{mark}[LID:{row.id}]" if row.id else f"{row.number}{mark}[no LID]"


def _answer(
    search: ContentSearch, params: dict[str, Any], matches: list[dict[str, Any]], end: int, total: int, unit: str
) -> dict[str, Any]:
    """Return the printed lines and the notices; `end` of `total` units are passed."""
    out = [*search.page.lines, *search.notices()]
    # What a model's call has without asking need not be written again.
    usual = __agent_defaults__ if current().options.agent_defaults else {}
    call = results.next_call("grep", {name: value for name, value in params.items() if usual.get(name) != value}, CONFIG_SCHEMA)
    where, advice = search.narrowing() if end < total else ("", "")
    cut = results.left_out(out, len(matches), end, total, f"{unit}{where}", call, advice=advice)
    facts = {"matches": matches, "count": len(matches), "total": search.total, "files": search.file_count}
    return filesearch_tree.answer(search.tree, out, cut, **facts)

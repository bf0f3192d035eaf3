# rye:signed:2026-11-28T03:43:31Z:e7380a37a85108792e39e6ea0a2a890a86ab70cda0f63901f3eec768c7324e4d:_d0VN-WjDoqk-Yv9uA2sxhM24IjQAHjP2MhDC3Imy3Rck7jZmicSfnnrDUeKpVG5eTejYzz5DbD3RDBR_DqOAg==:b63173adc9f5699f
"""Read a text file through a viewport: `limit` lines from the zero-based `offset`, each with its one-based number, and a footer
that says where you are.

Requires: path, an existing text file of the project; offset=B of a footer continues there.
Does not: change or remember anything, or read folders, devices and binary files: each is refused in its own words.
Side effects: none on your files; .ai/cache keeps where the lines of a large file begin, with line_ids=true line IDs.
RAGIX_ENABLE_SWE=0 turns it off.
Returns: output, file_path, offset, line_count, total_lines, truncated, next_offset. limit is clamped to 1..500. The footer:
`[file path; lines A-B of N; MORE below — call with offset=B; MORE above — call with offset=0]`, or `end of file`. An offset past
the end is refused with the valid range; lines over 2,000 characters are shortened visibly.
Prefer it for reading on through a long file; open_file_chunk for a jump to a line; read for line IDs of a whole file.
"""

from __future__ import annotations

from typing import Any

from rye.call import profile
from rye.call.results import ok
from rye.swe import view
from rye.workspace.workspace import Workspace

MAX_LINES = 500

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/swe"
__tool_description__ = "Read a file a viewport at a time, by zero-based offset"
__item_id__ = "rye/swe/read_file_viewport"
__timeout__ = 60
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
        "offset": {"type": "integer", "default": 0, "description": "Lines to skip, from 0"},
        "limit": {"type": "integer", "default": 100, "description": "Most lines to show, clamped to 1..500"},
        "line_ids": {"type": ["string", "boolean"], "default": False, "description": "Line addresses: lid (true), short, none"},
        "encoding": {"type": "string", "minLength": 1, "description": "Codec name, only where it is not recognised"},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return the window."""
    profile.enabled()
    offset, limit = params["offset"], max(1, min(params["limit"], MAX_LINES))

    def choose_span(total: int) -> view.Span:
        if offset < 0 or offset >= max(total, 1):
            raise view.out_of_range("offset", offset, 0, max(total, 1) - 1)
        return view.Span(offset + 1, min(offset + limit, total), min(offset + limit, total))

    with Workspace(project_path) as ws:
        shown = view.look(ws, params["path"], params.get("encoding"), choose_span, line_ids=params["line_ids"], window=False)
    first, last, total = shown.span.first, shown.span.last, shown.total
    more = [f"MORE below — call with offset={last}" if last < total else "end of file"]
    more += ["MORE above — call with offset=0"] if first > 1 else []
    footer = f"[file {shown.path}; lines {first if total else 0}-{last} of {total}; {'; '.join(more)}]"
    width = len(str(total))
    lines = [row.numbered(width, "  ") for row in shown.rows]
    notices = [*filter(None, [shown.encoding_notice]), footer]
    fields = {"next_offset": last} if last < total else {}
    where = {
        "file_path": shown.path,
        "offset": offset,
        "line_count": len(lines),
        "total_lines": total,
        "truncated": last < total,
    }
    return ok("\n".join([*lines, *notices]), **where, notices=notices, **fields)

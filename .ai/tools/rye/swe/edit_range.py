# rye:signed:2026-11-28T10:02:43Z:155ff01dede2c55022496e8bcc6a1869c924edb1ea4e090009b2e3c93a092fd2:sBFA6lxU2Axh9dmds52MHY5uFgBSW2tv_JgogP-DXPg_u3PGxqe5CFr-2WGocEDqKWqxkAFRujnGhiqu2k1bCw==:b63173adc9f5699f
"""Replace lines start_line..end_line (from 1, inclusive) of a text file by new_text.

Requires: line numbers as the file is now (open_file_chunk first). new_text is lines: "" deletes, "\\n" is one empty line,
"a" and "a\\n" are one line. end_line = start_line - 1 inserts before start_line; on last + 1 it appends.
Does not: glue text onto the next line, change line endings, encoding or mode, or guess: a range out of bounds is refused with
the valid one ("start_line 500 out of range (1..424)"). A line that changed since you saw it is refused.
Side effects: rewrites the file atomically; recorded for undo_edit. In the profile safe-read-only nothing is written and the
patch is shown; RAGIX_ENABLE_SWE=0 turns it off.
Returns: output (`✓ Edited path:a-b`, lines removed and added, the new lines with two on each side, numbered, so no re-read is
needed), applied, start_line, end_line, lines_removed, lines_added, total_lines, entry_id, truncated. dry_run returns the diff
only, show_diff (or RAGIX_AUTO_DIFF=1) adds it. Over 50 KB the output is cut with a [tool_result: …] line.
Prefer edit_lines with line IDs (line_ids=true shows them) where others may edit too; this where numbers are at hand.
"""

from __future__ import annotations

from typing import Any

from rye.errors import UsageError
from rye.line_ids.document import Document
from rye.swe.edit import RequestedEdit, edit, new_lines
from rye.swe.view import out_of_range

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/swe"
__tool_description__ = "Replace, delete, insert or append lines of a file by line number"
__item_id__ = "rye/swe/edit_range"
__timeout__ = 60
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
        "start_line": {"type": "integer", "description": "First line to replace, from 1"},
        "end_line": {"type": "integer", "description": "Last line, inclusive; start_line - 1 inserts before start_line"},
        "new_text": {"type": "string", "description": 'The new lines; "" deletes'},
        "insert_form": {
            "type": "boolean",
            "default": True,
            "description": "Let end_line = start_line - 1 insert; else it is refused",
        },
        "dry_run": {"type": "boolean", "default": False, "description": "Return the diff, write nothing"},
        "show_diff": {"type": "boolean", "default": False, "description": "Add the unified diff of this edit to the answer"},
        "guard": {"type": "string", "enum": ["tell", "refuse"], "default": "tell", "description": "On a new syntax error"},
        "line_ids": {"type": ["string", "boolean"], "default": False, "description": "Line addresses: lid (true), short, none"},
        "encoding": {"type": "string", "minLength": 1, "description": "Codec name, only where it is not recognised"},
    },
    "required": ["path", "start_line", "end_line", "new_text"],
    "additionalProperties": False,
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Make the edit, or show it."""

    def plan(document: Document) -> RequestedEdit:
        count, start, end = document.count, params["start_line"], params["end_line"]
        inserts = params["insert_form"] and end == start - 1
        if not 1 <= start <= count + inserts:
            raise out_of_range("start_line", start, 1, count + inserts)
        if end < start and not inserts:
            why = f"end_line {end} lies before start_line {start} (valid: {start}..{count}). Nothing was written."
            raise UsageError("bad_range", why, f"To insert before line {start}, use insert_at (rt insert).")
        if end > count:
            raise out_of_range("end_line", end, start, count)
        return new_lines(document, start - 1, end, params["new_text"])

    return edit(__item_id__, project_path, params, plan)

# rye:signed:2026-11-28T10:02:43Z:e9c3c1df66768ce244017eb1c2785a6b80e47831e0705fa934d4455a04debc54:fHcRUch2J16WR0mpx979K7mRMKpl1ziKY9qnFryThwM6U4eNpU3FW3TSuZoGjGkO6fRt7GqlAAQaUS_Hlct3AA==:b63173adc9f5699f
"""Insert lines before a line of a text file; line = last + 1 appends.

Requires: path and line, a number as the file is now (open_file_chunk first), and new_text: whole lines, "\\n" is one empty
line, "a" and "a\\n" are one line.
Does not: glue text onto the next line, change line endings, encoding or mode, or guess: a line out of bounds is refused with the
valid range. A line that changed since you saw it is refused.
Side effects: rewrites the file atomically; recorded for undo_edit. In the profile safe-read-only nothing is written and the
patch is shown; RAGIX_ENABLE_SWE=0 turns it off.
Returns: output (`✓ Edited path:a-b`, lines added, the new lines with two on each side, numbered), applied, start_line, end_line,
lines_added, total_lines, entry_id, truncated. dry_run returns the diff only, show_diff (or RAGIX_AUTO_DIFF=1) adds it. Over
50 KB the output is cut with a [tool_result: …] line.
Prefer edit_range to change lines that stand there; edit_lines with line IDs where others may edit too.
"""

from __future__ import annotations

from typing import Any

from rye.line_ids.document import Document
from rye.swe.edit import RequestedEdit, edit, new_lines
from rye.swe.view import out_of_range

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/swe"
__tool_description__ = "Insert lines before a line of a file, or append them"
__item_id__ = "rye/swe/insert_at"
__timeout__ = 60
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
        "line": {"type": "integer", "minimum": 0, "description": "Insert before this line, from 1; last + 1 appends"},
        "new_text": {"type": "string", "description": "The lines to insert"},
        "dry_run": {"type": "boolean", "default": False, "description": "Return the diff, write nothing"},
        "show_diff": {"type": "boolean", "default": False, "description": "Add the unified diff of this edit to the answer"},
        "guard": {"type": "string", "enum": ["tell", "refuse"], "default": "tell", "description": "On a new syntax error"},
        "line_ids": {"type": ["string", "boolean"], "default": False, "description": "Line addresses: lid (true), short, none"},
        "encoding": {"type": "string", "minLength": 1, "description": "Codec name, only where it is not recognised"},
    },
    "required": ["path", "line", "new_text"],
    "additionalProperties": False,
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Make the edit, or show it."""
    line = params["line"]

    def plan(document: Document) -> RequestedEdit:
        if not 1 <= line <= document.count + 1:
            raise out_of_range("line", line, 1, document.count + 1)
        return new_lines(document, line - 1, line - 1, params["new_text"])

    return edit(__item_id__, project_path, params, plan)

# rye:signed:2026-11-21T09:07:38Z:a3993ac0f031c4c0062a36fa40550aa56c7a616aaa67838f50cfca31d0fe9739:Omvwg0U4QjI4cPhR31oNbgUOLVmlXMJVk0eUj8K9cjAzfsnxbaOIX8aK2xN61gQq4YQO7AzujjgWkoL7uD3EBA==:b63173adc9f5699f
"""Replace the first occurrence of an exact snippet of a text file by another text; the fallback where lines are not known.

Requires: path, old (copied exactly, blanks included; "\\n" also fits the CRLF of a file that has it) and new.
Does not: use patterns, replace every occurrence, or change line endings, encoding or mode. A snippet that is not there is
refused, naming the lines most like it; one that stands at several places is replaced at the first, and the others are named.
Side effects: rewrites the file atomically; recorded for undo_edit. In the profile safe-read-only nothing is written and the
patch is shown; RAGIX_ENABLE_SWE=0 turns it off.
Returns: output (`✓ Edited path:a-b`, lines removed and added, the new lines with two on each side, numbered), applied,
other_places (line numbers before the edit), start_line, end_line, entry_id, truncated. dry_run returns the diff only,
show_diff (or RAGIX_AUTO_DIFF=1) adds it. Over 50 KB the output is cut with a [tool_result: …] line.
Prefer edit_range or edit_lines: they name the lines, so nothing is retyped and no twin is hit.
"""

from rye.toolkit import swe_editing

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/swe"
__tool_description__ = "Replace exact text (a snippet, a string) where it first stands in a file, without its line"
__item_id__ = "rye/swe/edit_file"
__requires_rye__ = ">=0.1"
__timeout__ = 60
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
        "old": {"type": "string", "minLength": 1, "description": "The exact text to replace"},
        "new": {"type": "string", "description": "What stands there afterwards"},
        "dry_run": {"type": "boolean", "default": False, "description": "Return the diff, write nothing"},
        "show_diff": {"type": "boolean", "default": False, "description": "Add the unified diff of this edit to the answer"},
        "line_ids": {"type": "boolean", "default": False, "description": "Show line IDs, ready for edit_lines"},
        "encoding": {"type": "string", "description": "Codec name, only where it is not recognised"},
    },
    "required": ["path", "old", "new"],
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Make the edit, or show it."""
    return swe_editing.edit_file(project_path, **params)

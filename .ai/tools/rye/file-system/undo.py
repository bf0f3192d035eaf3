# rye:signed:2026-11-21T08:22:32Z:50edfcf4fc202ec6dcc8a06c0bdc78f6d2dba2726bc40e39560e3dc26c24d2a3:7rQa7oXfhJSe-fh5dtXaOTHBTmb4tU7EhV_Df2LVT8RhaWYBBsEvo4BlnwifbQkTSBSL-7FQ6f8KFypg13yRDQ==:b63173adc9f5699f
"""Take back a change that a file tool made (edit_lines, write, undo itself), or list such changes.

Requires: nothing to revert the last change that still stands; entry_id (from a result, or from list) to revert that one.
Undoing an undo is redo: pass the entry_id that undo returned.
Does not: know what shell commands or other programs changed; it refuses, with the reason, when the file has changed in the
same place since, and never merges.
Side effects: rewrites, creates or deletes the one file of the entry, atomically; lines get their own IDs back; the undo is
recorded too. Old entries are dropped beyond 30 days or 64 MB (the user's configuration decides).
Returns: output (unified diff of the reversal), entry_id (of the undo), undone, file_path. With list=true: the newest `limit`
entries with their diffs, at most 50 KB, and a [tool_result: …] line that gives the call for the rest (offset).
Prefer it to editing back by hand; prefer git for changes older than your work here.
"""

from rye.toolkit import undoing

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/file-system"
__tool_description__ = "Undo, redo or list the changes made by the file tools"
__item_id__ = "rye/file-system/undo"
__requires_rye__ = ">=0.1"
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "entry_id": {
            "type": "string",
            "description": "The change to revert; the last one that stands if absent",
        },
        "list": {"type": "boolean", "default": False, "description": "List changes instead of reverting one"},
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1000,
            "default": 20,
            "description": "Most entries to list",
        },
        "offset": {
            "type": "integer",
            "minimum": 1,
            "default": 1,
            "description": "First entry to list, from 1, newest first",
        },
        "dry_run": {"type": "boolean", "default": False, "description": "Return the diff, write nothing"},
    },
    "additionalProperties": False,
}

OUTPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "undone": {"type": "string", "description": "The entry that was taken back"},
        "entry_id": {"type": "string", "description": "What undo takes this back by"},
        "file_path": {"type": "string", "description": "The file, from the project's root"},
        "dry_run": {"type": "boolean", "description": "Whether nothing was written"},
        "entries": {"type": "array", "description": "With list: entry_id, time, tool, file_path, undoes, undone_by"},
        "count": {"type": "integer", "description": "Entries shown"},
        "total": {"type": "integer", "description": "Entries in all"},
        "truncated": {"type": "boolean", "description": "Whether the output was cut"},
        "next_offset": {"type": "integer", "description": "Where the next call continues"},
        "warnings": {"type": "array", "description": "What went less than well"},
    },
}


def execute(params: dict, project_path: str) -> dict:
    """Revert one change, or list them."""
    return undoing.undo(project_path, **params)

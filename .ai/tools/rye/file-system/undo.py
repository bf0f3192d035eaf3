# rye:signed:2026-11-21T07:47:52Z:c2e3875a0aca8a50ada169409cedb611369d1351cf978d6aa1574ff86cdb43c4:hNzadtKdLeiZ2cxCkB5heKVwv5Zu97V-TEl6DuYiOjvAwwNt0CVeyA6D1R_k5hvmBwpqrJdxBHqrAn5AU-FRDQ==:b63173adc9f5699f
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


def execute(params: dict, project_path: str) -> dict:
    """Revert one change, or list them."""
    return undoing.undo(project_path, **params)

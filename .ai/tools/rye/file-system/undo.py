# rye:signed:2026-11-21T09:07:55Z:05042bb58864bef3701070e40d0422c27f108563faba4c8e0828b4caf3b89c5a:_8xlb25TeE60QN4qFEpCjECJbyOvEZbwXy3LgOh2-eGb3BvndH-rFKR4euiW3dKOriBLo9Mh4u8NlslQDjUxBA==:b63173adc9f5699f
"""Take back a change that a tool made (edit_lines, write, a patch batch, undo itself), or list such changes.

Requires: nothing to revert the last change that still stands; entry_id (from a result, or from list) to revert that one;
batchId to revert all files of a patch batch, or none. Undoing an undo is redo: pass the entry_id or batchId it returned.
Does not: know what shell commands or other programs changed; it refuses, with the reason, when the file has changed in the
same place since, and never merges.
Side effects: rewrites, creates or deletes the file of the entry (of a batch: all its files), atomically; lines get their own IDs back; the undo is
recorded too. Old entries are dropped beyond 30 days or 64 MB (the user's configuration decides).
Returns: output (unified diff of the reversal), entry_id (of the undo), undone, file_path; of a batch batchId, file_paths. With list=true: the newest `limit`
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
        "batchId": {
            "type": "string",
            "description": "The patch batch whose files are to be reverted, all or none",
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
        "batchId": {"type": "string", "description": "Of a batch: what undo takes this back by"},
        "entry_ids": {"type": "array", "description": "Of a batch: the undo of each file"},
        "file_path": {"type": "string", "description": "The file, from the project's root"},
        "file_paths": {"type": "array", "description": "Of a batch: its files"},
        "dry_run": {"type": "boolean", "description": "Whether nothing was written"},
        "entries": {"type": "array", "description": "With list: entry_id, time, tool, file_path, undoes, undone_by, batchId"},
        "count": {"type": "integer", "description": "Entries shown"},
        "total": {"type": "integer", "description": "Entries in all"},
        "truncated": {"type": "boolean", "description": "Whether the output was cut"},
        "next_offset": {"type": "integer", "description": "Where the next call continues"},
        "warnings": {"type": "array", "description": "What went less than well"},
    },
}


def execute(params: dict, project_path: str) -> dict:
    """Revert one change, or list them."""
    batch_id = params.pop("batchId", None)
    return undoing.undo(project_path, batch_id=batch_id, **params)

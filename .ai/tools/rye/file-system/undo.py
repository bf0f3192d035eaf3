# rye:signed:2026-11-28T10:09:49Z:629001e484024a1ed19e3c3ac14c7f60f34f1f092af93f3334a265baa3f34e59:eM2WMAPaHPAk0oyKX8CuFzzfziuf3t21efNFzm9UUE1e6TQGafr2Xc99CmrtxN_V67oTxPzwE20J-uF4w3uDAA==:b63173adc9f5699f
"""Take back a change that a tool or a command made (edit_lines, write, bash, a patch batch, undo itself), or list changes.

Requires: nothing to undo your own last change; file_path for your last change of that file; entry_id (from a result, or from
list; its last six digits do) for any change, also another caller's; batchId for all files of a patch batch, or none; with file_path for one file of
it; with hunks for some hunks of one file. Undoing an undo is redo: pass the entry_id or batchId that it returned.
Does not: know what other programs changed before a command ran; it refuses, with the reason and the lines that are there now,
when the file has changed in the same place since.
Side effects: rewrites, creates or deletes the file of the entry (of a batch: all its files), atomically; lines get their own
IDs back and can be edited at once; the undo is recorded too. Entries are dropped beyond 30 days, 64 MB or 10,000 of them.
Returns: output (unified diff of the reversal; whose change it was, and when), entry_id (of the undo), undone, file_path; of a
batch batchId, file_paths. With list=true: the newest `limit` changes, a row for each call, or with entry_id that change's diff as
hunks with their numbers, at most 50 KB, and a [tool_result: …] line that gives the call for the rest (offset).
Prefer it to editing back by hand; prefer git for changes older than your work here.
"""

from rye.edits import undo

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/file-system"
__tool_description__ = "Undo, redo or list the changes made by the file tools"
__item_id__ = "rye/file-system/undo"
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}
__agent_description__ = """Take back your last change, or a named one; an undo, to redo.
Requires: nothing; file_path for your last change of it, entry_id for any.
Does not: touch lines changed since.
Side effects: changes files; can be undone.
Returns: the diff; list=true: one row a call, with entry_id its diff.
Prefer it to retyping old text."""
__agent_parameters__ = {"entry_id": "", "file_path": "", "list": "", "offset": "", "dry_run": ""}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "entry_id": {"type": "string", "minLength": 1, "description": "The change to undo; your own last one if absent"},
        "file_path": {
            "type": "string",
            "format": "workspace-path",
            "description": "Undo your last change of this file; with entry_id or batchId: this file of it; with list: only its "
            "changes",
        },
        "batchId": {"type": "string", "minLength": 1, "description": "The patch batch to undo, all its files or none"},
        "hunks": {
            "type": "array",
            "items": {"type": "integer", "minimum": 1},
            "minItems": 1,
            "description": "Undo only these hunks of one file of the change, by the numbers that list=true with entry_id shows",
        },
        "list": {"type": "boolean", "default": False, "description": "List changes instead of undoing one"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 20, "description": "Most calls to list"},
        "offset": {"type": "integer", "minimum": 1, "default": 1, "description": "First call to list, from 1, newest first"},
        "dry_run": {"type": "boolean", "default": False, "description": "Return the diff, write nothing"},
    },
    "additionalProperties": False,
}

OUTPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "undone": {"type": "string", "description": "The entry that was taken back"},
        "actor": {"type": "string", "description": "Who had made the change; empty for a person or an unnamed program"},
        "time": {"type": "string", "description": "When it had been made"},
        "entry_id": {"type": "string", "description": "What undo takes this back by"},
        "batchId": {"type": "string", "description": "Of a batch: what undo takes this back by"},
        "entry_ids": {"type": "array", "description": "Of a batch: the undo of each file"},
        "file_path": {"type": "string", "description": "The file, from the project's root"},
        "file_paths": {"type": "array", "description": "Of a batch: its files"},
        "dry_run": {"type": "boolean", "description": "Whether nothing was written"},
        "entries": {
            "type": "array",
            "description": "With list: entry_id, time, tool, file_path, actor, undoes, undone_by, batchId",
        },
        "hunks": {
            "type": "array",
            "description": "With list and entry_id: file_path, hunk, kind, start, removed, new_start, added, undone_by",
        },
        "count": {"type": "integer", "description": "Calls, or hunks, shown"},
        "total": {"type": "integer", "description": "Calls, or hunks, in all"},
        "truncated": {"type": "boolean", "description": "Whether the output was cut"},
        "next_offset": {"type": "integer", "description": "Where the next call continues"},
        "warnings": {"type": "array", "description": "What went less than well"},
    },
}


def execute(params: dict, project_path: str) -> dict:
    """Revert one change, or list them."""
    batch_id = params.pop("batchId", None)
    return undo.undo(project_path, batch_id=batch_id, **params)

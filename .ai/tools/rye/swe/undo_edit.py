# rye:signed:2026-11-21T07:58:12Z:c8cf179901f91f1a31e7030f2b426e74fbfd17c75fdaad822d56384cbd70b3cf:SBLS9rl8MbiNQ9v_ONy_g8Rqr6H9xg_z6U5c7gjdMHEd3aL4mT-r2VCIEqC2bu6teLvUJLuP172fzyp_uTaHBQ==:b63173adc9f5699f
"""Take back an edit that edit_range, insert_at, edit_file or another file tool made, or list such edits.

Requires: nothing to revert the last one that still stands; entry_id (from an answer, or from list) to revert that one.
Undoing an undo is redo: pass the entry_id that it returned.
Does not: know what shell commands or other programs changed; it refuses when the same lines have changed since.
Side effects: rewrites, creates or deletes the one file, atomically; the undo is recorded too. In the profile safe-read-only
nothing is written and the patch is shown; RAGIX_ENABLE_SWE=0 turns it off.
Returns: output (`✓ Undone path`, then the diff), applied, entry_id (of the undo), undone, file_path, truncated. With list=true:
the newest `limit` edits with their diffs; a cut ends with a [tool_result: …] line.
Prefer it to editing back by hand; prefer git for what is older than your work here.
"""

from rye.toolkit import swe_editing

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/swe"
__tool_description__ = "Undo, redo or list edits, within the profile in force"
__item_id__ = "rye/swe/undo_edit"
__requires_rye__ = ">=0.1"
__timeout__ = 60
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "entry_id": {"type": "string", "description": "The edit to revert; the last one that stands if absent"},
        "list": {"type": "boolean", "default": False, "description": "List edits instead of reverting one"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 20, "description": "Most edits to list"},
        "offset": {"type": "integer", "minimum": 1, "default": 1, "description": "First edit to list, from 1, newest first"},
        "dry_run": {"type": "boolean", "default": False, "description": "Return the diff, write nothing"},
    },
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Make the edit, or show it."""
    return swe_editing.undo_edit(project_path, **params)

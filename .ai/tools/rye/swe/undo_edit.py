# rye:signed:2026-11-24T06:20:58Z:4eba559e15cec6cf7cdd551d1c302877711690ccd01d9b5f2e349d7e230525ea:9ScpBIocWvBe6V22TynTF8640jWQnxAAjzUGsMq_1bzjS1X2c4PpdCWz8XWekzuTIFjl45tGTvQ-xLrwPsl2DQ==:b63173adc9f5699f
"""Take back an edit that edit_range, insert_at, edit_file or another file tool made, or list such edits.

Requires: nothing to undo your own last edit; file_path for your last one of that file; entry_id (from a result, or from list)
for any, also another caller's. Undoing an undo is redo: pass the entry_id that it returned.
Does not: know what shell commands or other programs changed; it refuses when the same lines have changed since.
Side effects: rewrites, creates or deletes the one file, atomically; the undo is recorded too. In the profile safe-read-only
nothing is written and the patch is shown; RAGIX_ENABLE_SWE=0 turns it off.
Returns: output (`✓ Undone path`, then the diff), applied, entry_id (of the undo), undone, file_path, truncated. With list=true:
the newest `limit` edits with their diffs; a cut ends with a [tool_result: …] line.
Prefer it to editing back by hand; prefer git for what is older than your work here.
"""

from __future__ import annotations

from typing import Any

from rye.call import profile
from rye.call.results import failure
from rye.edits import undo
from rye.workspace.workspace import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/swe"
__tool_description__ = "Undo, redo or list edits, within the profile in force"
__item_id__ = "rye/swe/undo_edit"
__timeout__ = 60
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "entry_id": {"type": "string", "minLength": 1, "description": "The edit to undo; your own last one if absent"},
        "file_path": {"type": "string", "format": "workspace-path", "description": "Undo your last edit of this file"},
        "list": {"type": "boolean", "default": False, "description": "List edits instead of undoing one"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 20, "description": "Most edits to list"},
        "offset": {"type": "integer", "minimum": 1, "default": 1, "description": "First edit to list, from 1, newest first"},
        "dry_run": {"type": "boolean", "default": False, "description": "Return the diff, write nothing"},
    },
    "additionalProperties": False,
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Revert one edit, show what would revert it, or list edits."""
    profile.enabled()
    with Workspace(project_path) as ws:
        held_back = profile.profile(ws.root) == profile.READ_ONLY
        result = undo.undo(project_path, **{**params, "dry_run": params["dry_run"] or held_back})
        if params["list"]:
            return result
        # Of a batch there are several.
        undone = sorted(result.get("file_paths") or [result["file_path"]])
        applied = not (params["dry_run"] or held_back)
    facts = {"applied": applied, **({"profile": profile.READ_ONLY} if held_back else {})}
    refused = failure(profile.refusal()) if held_back and not params["dry_run"] else {}
    head = [f"✓ Undone {', '.join(undone)}"] if applied else []
    return {**result, **facts, "notices": [], "output": "\n".join([*head, result["output"]]), **refused}

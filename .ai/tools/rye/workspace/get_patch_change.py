# rye:signed:2026-11-21T09:13:48Z:2e42592d82d58facee03b8c970c33de513b0c496419eaf27f80cd728234081f0:Qw32QbtAayOqdtuXeRzW6BcFlw_5aIMPoRG-UcrmbZ7voZMXhD8Sq-omN-9qwLEqstNR4xO019tpffT1Iq3OCw==:b63173adc9f5699f
"""Look up a stored patch batch, one file's patch in it, or one change, and what became of it.

Requires: id, any batchId, filePatchId or changeId that workspace_write_patch returned. Keys are the caller's own and find nothing.
Does not: change anything, or know edits that were made by other tools or programs.
Side effects: none.
Returns: output (what it is and why, the batch's status, the diff), and the envelope successful, result, errors, warnings. result:
kind (batch, file, change), status (stored, applied, not_applied, undone, partly_undone), entries (of the journal, for undo),
undoneBy, notes (files that were left alone after a crash), and the file patches with their changes, or the one file or change.
Over 50 KB output is cut with a [tool_result: …] line that gives the call for the rest (offset).
Prefer it to reading files again when the question is what a patch did and why; use undo(list=true) for all changes.
"""

from rye.toolkit import patching

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/workspace"
__tool_description__ = "Fetch a stored patch batch, file patch or change by its ID, with its diff and fate"
__item_id__ = "rye/workspace/get_patch_change"
__envelope__ = "invoke_result"
__requires_rye__ = ">=0.1"
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "A batchId, filePatchId or changeId"},
        "offset": {"type": "integer", "minimum": 1, "default": 1, "description": "First diff line to show, from 1"},
    },
    "required": ["id"],
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Return the stored part that the ID names."""
    return patching.get_change(project_path, params["id"], params["offset"])

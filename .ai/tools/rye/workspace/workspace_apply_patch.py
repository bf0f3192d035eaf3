# rye:signed:2026-11-21T09:13:48Z:d6fba419cde7205787ae1ba5ed77c6eabca89e4b8278e0f4e0bae83f408f5b1d:YC4n0G5jHKyOQXxENf6yIDb2PAm1A6ALoiOhHL8seip0QABB3ygXiHC5adAe4BetAey2TTYHlpydjkEQbS8DBw==:b63173adc9f5699f
"""Apply a batch that workspace_write_patch stored (apply=false), as one: all of its files, or none.

Requires: batchId, from the answer that stored it. activeFiles, if the patch was planned on an editor's unsaved contents.
Does not: trust the earlier verdict: every digest and expected line is verified again, and if one file has changed since, nothing
is written and every problem is told. A batch that is applied is not applied twice; one that was undone may be.
Side effects: rewrites, creates and deletes the batch's files atomically together (mode, encoding, line endings kept); recorded,
so that undo(batchId=…) takes all of it back.
Returns: output (the diffs), and the envelope successful, result (the IDs, keys and descriptions of the batch), errors, warnings.
Over 50 KB output is cut with a [tool_result: …] line. dryRun=true verifies and shows the diffs only.
Prefer it to sending the patch again when someone has looked at the stored batch meanwhile.
"""

from rye.toolkit import patching

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/workspace"
__tool_description__ = "Apply a stored patch batch: verified again, all files or none"
__item_id__ = "rye/workspace/workspace_apply_patch"
__envelope__ = "invoke_result"
__requires_rye__ = ">=0.1"
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "batchId": {"type": "string", "description": "The stored batch"},
        "activeFiles": {
            "type": "array",
            "maxItems": 200,
            "description": "Contents that an editor holds now, as for workspace_write_patch",
            "items": {
                "type": "object",
                "properties": {
                    "docPath": {"type": "string", "description": "The file"},
                    "content": {"type": "string", "description": "Its whole text, newlines as they are"},
                },
                "required": ["docPath", "content"],
                "additionalProperties": False,
            },
        },
        "dryRun": {"type": "boolean", "default": False, "description": "Verify and return the diffs, write nothing"},
    },
    "required": ["batchId"],
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Verify the stored batch again, then apply all of it, or none."""
    return patching.apply_patch(project_path, params["batchId"], params.get("activeFiles"), dry_run=params["dryRun"])

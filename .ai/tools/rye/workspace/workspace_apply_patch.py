# rye:signed:2026-11-28T13:29:19Z:ec6be4af2a70991d1532e1d011e4ca5a5bc3075653bfbd80139a6d8b1b7d62f5:aEBCqRJ00fIitSesZin7laEKB-__zQQWOvEgPOvZZlB99FGd-wwq8au0LLqvFSr-QE8znq06ypn26gltMSObCw==:b63173adc9f5699f
"""Apply a batch that workspace_write_patch stored (apply=false), as one: all of its files, or none.

Requires: batchId, from the answer that stored it. activeFiles, if an editor's contents changed since: those that the
batch was stored with count while their files on the disk are as they were.
Does not: trust the earlier verdict: every digest and expected line is verified again, and if one file has changed since, nothing
is written and every problem is told. A batch that is applied is not applied twice; one that was undone may be.
Side effects: rewrites, creates and deletes the batch's files atomically together (mode, encoding, line endings kept); recorded,
so that undo(batchId=…) takes all of it back.
Returns: output (the diffs), and the envelope successful, result (the IDs, keys and descriptions of the batch), errors, warnings.
Over 50 KB output is cut with a [tool_result: …] line. dryRun=true verifies and shows the diffs only.
Prefer it to sending the patch again when someone has looked at the stored batch meanwhile.
"""

from __future__ import annotations

from typing import Any

from rye.call.results import call_text
from rye.edits import patch_store
from rye.errors import EditError
from rye.journal import recovery
from rye.patches import patch_calls, patches
from rye.patches.patch_calls import outcome
from rye.workspace.atomic_replace import digest_of
from rye.workspace.workspace import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/workspace"
__tool_description__ = "Apply a stored patch batch: verified again, all files or none"
__item_id__ = "rye/workspace/workspace_apply_patch"
__envelope__ = "invoke_result"
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


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Verify the stored batch again, then apply all of it, or none."""
    batch_id = params["batchId"]
    with Workspace(project_path) as ws:
        problems = patches.Problems(warnings=recovery.recover(ws))
        record = patch_store.batch(ws, batch_id)
        if outcome(ws, record)["status"] in ("applied", "partly_undone"):
            raise EditError(
                "already_applied",
                f"Batch {batch_id} is applied already. Nothing was written.",
                f"Call {call_text('get_patch_change', id=batch_id)} to see it; "
                f"{call_text('undo', batchId=batch_id)} takes it back.",
            )
        batch = patches.parse(record["request"], iter(record["ids"]).__next__, problems)
        active = params.get("activeFiles") or _active(ws, record)
        return patch_calls.run_batch(ws, batch, active, problems, dry_run=params["dryRun"])


def _active(ws: Workspace, record: dict[str, Any]) -> list[dict[str, str]]:
    """Return the active contents that a batch was stored with; none where a file on the disk is another since."""
    for path, digest in record.get("disk", {}).items():
        with ws.file(path) as file:
            # Saved, or changed by somebody: the stored content is no longer what an editor holds.
            if digest_of(file.read()) != digest:
                return []
    active: list[dict[str, str]] = record.get("active", [])
    return active

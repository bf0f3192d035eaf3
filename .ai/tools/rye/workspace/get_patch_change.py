# rye:signed:2026-11-28T13:29:19Z:6740fa00b6d23d17b73372e910751460384aa71736b882545a6bd63813487eaa:b3BuszAMfqoVPW9CJ7Vw_lq9FIcm--02rURYBMkyCERdd1OiUrLlc567J46QpDwd1sKP0b-Ey0qEGQb0HuJzDA==:b63173adc9f5699f
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

from __future__ import annotations

from typing import Any

from rye.call.context import output_budget
from rye.call.results import fit_lines, left_out, next_call, size_of, start_index
from rye.edits import patch_store
from rye.errors import EditError
from rye.journal import recovery
from rye.patches.patch_calls import NOTICES, id_lines, outcome, succeeded
from rye.workspace.workspace import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/workspace"
__tool_description__ = "Fetch a stored patch batch, file patch or change by its ID, with its diff and fate"
__item_id__ = "rye/workspace/get_patch_change"
__envelope__ = "invoke_result"
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


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return the stored part that the ID names."""
    any_id, offset = params["id"], params["offset"]
    with Workspace(project_path) as ws:
        warnings = recovery.recover(ws)
        record = patch_store.find(ws, any_id)
        head, diff, part = _part(record, any_id)
        result_of_file = outcome(ws, record, part.get("file", {}).get("path"))
    if result_of_file["entries"] and "file" in part:
        part["file"]["entryId"] = result_of_file["entries"][0]
    first = start_index(offset, len(diff), "diff lines")
    head += fit_lines(id_lines(part.get("files") or [part["file"]]), output_budget() // 3)[0]
    head.append(
        f"Batch {record['batchId']}: {result_of_file['status']}." + "".join(f"\n{line}" for line in result_of_file["notes"])
    )
    shown, _ = fit_lines(diff[first:], output_budget() - NOTICES - size_of(head))
    out, call = [*head, *shown], next_call("get_patch_change", params, CONFIG_SCHEMA)
    cut = left_out(out, len(shown), first + len(shown), len(diff), "diff lines", call)
    keys = {key: record["request"][key] for key in ("batchKey", "batchLabel") if key in record["request"]}
    result = {"batchId": record["batchId"], **keys, **part, **result_of_file}
    return succeeded("\n".join(out), result, warnings, **cut)


def _part(record: dict[str, Any], any_id: str) -> tuple[list[str], list[str], dict[str, Any]]:
    """Return the headline, the diff and the fields of what an ID names: the batch, a file patch, or a change."""
    files = record["files"]
    if any_id == record["batchId"]:
        label = record["request"].get("batchLabel", "")
        every = [{key: value for key, value in one.items() if key != "diff"} for one in files]
        diff = [line for one in files for line in one["diff"]]
        return [f"{len(files)} file(s). {label}".rstrip()], diff, {"kind": "batch", "files": every}
    # In the order in which `patches.parse` gives them IDs.
    asked = [one for kind in ("files", "createFiles", "deleteFiles") for one in record["request"].get(kind, ())]
    requests = {one["filePatchId"]: request for one, request in zip(files, asked, strict=True)}
    for one in files:
        without_diff = {key: value for key, value in one.items() if key != "diff"}
        if any_id == one["filePatchId"]:
            head = f"{one['operation']} {one['path']}. {one.get('fileLabel', '')}".rstrip()
            return [head], one["diff"], {"kind": "file", "file": without_diff}
        for stored, change in zip(one["changes"], requests[one["filePatchId"]].get("changes", ()), strict=False):
            if any_id == stored["changeId"]:
                del without_diff["changes"]
                head = f"{stored['operation']} in {one['path']}. {stored.get('description', '')}".rstrip()
                return [head], _change_diff(change), {"kind": "change", "file": without_diff, "change": {**change, **stored}}
    raise EditError("unknown_patch_id", f"The stored batch has lost {any_id}.", "Ask for the batch itself.")


def _change_diff(change: dict[str, Any]) -> list[str]:
    old, new = change.get("expectedOriginalLines", []), change.get("newLines", [])
    at = change.get("startLine", change.get("afterLine", 0) + 1)
    return [
        f"@@ lines {at} to {at + len(old) - 1} @@" if old else f"@@ before line {at} @@",
        *(f"-{x}" for x in old),
        *(f"+{x}" for x in new),
    ]

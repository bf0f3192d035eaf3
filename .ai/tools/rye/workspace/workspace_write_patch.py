# rye:signed:2026-11-28T13:29:19Z:fee804dd809a382a9e665668620d6de9f3536cf02a0dea3807d7a8bec21753ee:pg5Dfl4Zlhe_ab3Ww75FRkas-1Fw2KOtTmY3Uh4frmKBhLtkpARZvE-WJA-QgqwsQtGOzmcfuS1q9hTsB-L8DA==:b63173adc9f5699f
"""Change several files as one batch of line patches: all of them land, or none.

Requires: files, one entry for each docPath (lower case, project-relative): originalSha256 (copy sha256 from
workspace_read_file) and changes, ordered top to bottom, apart from each other, line numbers of the original text:
insert (afterLine, newLines; 0 is the top), replace (startLine, endLine, expectedOriginalLines, newLines), delete (startLine,
endLine, expectedOriginalLines). Whole lines only, without newline characters; expected lines verbatim.
Does not: merge, guess or apply a part. Every problem of the batch is told at once ("Nothing was written"): wrong digests,
ranges, overlaps, expected lines that differ (as a diff).
Side effects: rewrites the files atomically together, also through a crash (mode, encoding, line endings, other bytes kept);
stores the batch; undo(batchId=…) takes all of it back. createFiles and deleteFiles land with the rest.
Returns: output (the diffs), and the envelope successful, result (batchId, filePatchId, changeId, all keys and descriptions),
errors, warnings. Over 50 KB output is cut with a [tool_result: …] line. apply=false only stores the batch for
workspace_apply_patch; dryRun=true only shows the diffs.
Prefer it to several edits when files must change together; prefer edit_lines for one file.
"""

from __future__ import annotations

from typing import Any

from rye.edits import patch_store
from rye.journal import recovery
from rye.patches import patch_calls, patches
from rye.workspace.workspace import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/workspace"
__tool_description__ = "Apply line patches to several files as one: all or none, verified by SHA-256 and expected lines"
__item_id__ = "rye/workspace/workspace_write_patch"
__envelope__ = "invoke_result"
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}

# Only JSON types are fixed here: the tool reports all other problems in one answer. What must be there stands beside `{}`, which
# takes anything: models are offered it as required.

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "batchLabel": {"type": "string", "description": "What the batch is for, for people"},
        "batchKey": {"type": "string", "description": "Your short name for the batch, echoed"},
        "batchId": {"type": "string", "description": "Assigned here; ignored in a request"},
        "files": {
            "type": "array",
            "maxItems": 200,
            "description": "Required: one patch a file; each docPath at most once",
            "items": {
                "type": "object",
                "anyOf": [{"required": ["docPath", "originalSha256", "changes"]}, {}],
                "properties": {
                    "docPath": {
                        "type": "string",
                        "description": "Required: project-relative path in lower case, optionally led by the project folder's name",
                    },
                    "originalSha256": {
                        "type": "string",
                        "description": "Required: sha256 of the full content planned on, from workspace_read_file",
                    },
                    "encoding": {
                        "type": "string",
                        "minLength": 1,
                        "description": "Codec name, only where it is not recognised",
                    },
                    "fileKey": {"type": "string", "description": "Your short name for the file patch, echoed"},
                    "fileLabel": {"type": "string", "description": "What changes in the file, for people"},
                    "filePatchId": {"type": "string", "description": "Assigned here; ignored in a request"},
                    "changes": {
                        "type": "array",
                        "maxItems": 2000,
                        "description": "Required: changes by line of the original text, top to bottom, not overlapping",
                        "items": {
                            "type": "object",
                            "anyOf": [{"required": ["operation"]}, {}],
                            "properties": {
                                "operation": {
                                    "type": "string",
                                    "anyOf": [{"enum": ["insert", "replace", "delete"]}, {}],
                                    "description": "Required: insert, replace or delete",
                                },
                                "changeKey": {"type": "string", "description": "Your short name for the change, echoed"},
                                "changeId": {"type": "string", "description": "Assigned here; ignored in a request"},
                                "description": {"type": "string", "description": "Why, in a short sentence; echoed"},
                                "severity": {"type": "string", "description": "How grave what it mends is; echoed"},
                                "category": {"type": "string", "description": "Of what kind it is; echoed"},
                                "tags": {
                                    "type": "array",
                                    "items": {"type": "string"},
                                    "description": "Words to find it by; echoed",
                                },
                                "afterLine": {
                                    "type": "integer",
                                    "description": "insert: the line behind which newLines go; 0 is the top of the file",
                                },
                                "startLine": {"type": "integer", "description": "replace, delete: first line, from 1"},
                                "endLine": {"type": "integer", "description": "replace, delete: last line, inclusive"},
                                "expectedOriginalLines": {
                                    "type": "array",
                                    "items": {"type": "string"},
                                    "description": "replace, delete: those lines verbatim, without newline characters",
                                },
                                "newLines": {
                                    "type": "array",
                                    "items": {"type": "string"},
                                    "description": "insert, replace: whole lines without newline characters; never for delete",
                                },
                            },
                            "additionalProperties": False,
                        },
                    },
                },
                "additionalProperties": False,
            },
        },
        "createFiles": {
            "type": "array",
            "maxItems": 200,
            "description": "Files to create with the batch; folders are made",
            "items": {
                "type": "object",
                "anyOf": [{"required": ["path", "content"]}, {}],
                "properties": {
                    "path": {
                        "type": "string",
                        "format": "workspace-path",
                        "description": "Required: project-relative path as it shall be spelt",
                    },
                    "content": {"type": "string", "description": "Required: the whole text (UTF-8)"},
                    "fileKey": {"type": "string", "description": "Your short name, echoed"},
                    "fileLabel": {"type": "string", "description": "What the file is for, echoed"},
                },
                "additionalProperties": False,
            },
        },
        "deleteFiles": {
            "type": "array",
            "maxItems": 200,
            "description": "Files to delete with the batch",
            "items": {
                "type": "object",
                "anyOf": [{"required": ["docPath", "originalSha256"]}, {}],
                "properties": {
                    "docPath": {"type": "string", "description": "Required: the file, as above"},
                    "originalSha256": {"type": "string", "description": "Required: sha256 of its content"},
                    "fileKey": {"type": "string", "description": "Your short name, echoed"},
                    "fileLabel": {"type": "string", "description": "Why, echoed"},
                },
                "additionalProperties": False,
            },
        },
        "activeFiles": {
            "type": "array",
            "maxItems": 200,
            "description": "Contents that an editor holds; patches are verified against them and the result is written to disk",
            "items": {
                "type": "object",
                "properties": {
                    "docPath": {"type": "string", "description": "The file, as above"},
                    "content": {"type": "string", "description": "Its whole text, newlines as they are"},
                },
                "required": ["docPath", "content"],
                "additionalProperties": False,
            },
        },
        "guard": {"type": "string", "enum": ["tell", "refuse"], "default": "tell", "description": "On a new syntax error"},
        "apply": {"type": "boolean", "default": True, "description": "False: verify and store the batch, write no file"},
        "dryRun": {"type": "boolean", "default": False, "description": "Verify and return the diffs, write and store nothing"},
    },
    "additionalProperties": False,
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Verify the whole batch, then apply all of it, or none."""
    # What the caller sent, without this call's switches: it is stored with the batch and shown again.
    request = {key: value for key, value in params.items() if key not in ("activeFiles", "guard", "apply", "dryRun")}
    with Workspace(project_path) as ws:
        problems = patches.Problems(warnings=recovery.recover(ws), guard=params.get("guard", "tell"))
        batch, active = patches.parse(request, patch_store.new_id, problems), params.get("activeFiles", [])
        return patch_calls.run_batch(ws, batch, active, problems, apply=params["apply"], dry_run=params["dryRun"])

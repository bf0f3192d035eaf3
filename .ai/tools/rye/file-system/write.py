# rye:signed:2026-11-21T11:41:25Z:1fc17548d92fc64eb07ae0314889dd4d0ad6d1e620692cf944cc004a874332d4:IXzNofdiWz0eINb8gBOqjMpjGhOwtaZe0vzDUQuTR5ZvC0RuO9-TaKQCuEsA2pTYwDICJ07Q0n7Nzozo_9tjCw==:b63173adc9f5699f
"""Create a text file, or replace the whole content of one.

Requires: file_path inside the project and content, the complete text of the file, written exactly as given (UTF-8 without
a byte order mark unless encoding says otherwise; no newline is added or translated).
Does not: append, merge, or write outside the project, through links out of it, into .git, .ai/trusted_keys, .ai/keys and
.ai/cache, or to files that other programs run or load unasked (.vscode, .mcp.json, .envrc …) unless the user allows it.
Side effects: makes missing parent directories; replaces the file atomically, keeping the mode of an existing one; all line
IDs of the file become unknown (read it again before edit_lines); recorded for undo. The same content: none.
Returns: output (a creation message, or the unified diff), file_path, bytes_written, created, unchanged, entry_id. A diff over 50 KB is
cut at a line boundary with a [tool_result: …] line. expected_sha256 refuses unless the present content has that digest.
Prefer edit_lines for changing a part of an existing file: it sends and risks only those lines.
"""

from rye.toolkit import checking, editing

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/file-system"
__tool_description__ = "Create or overwrite a file"
__item_id__ = "rye/file-system/write"
__requires_rye__ = ">=0.1"
__effects__ = {"read_only": False, "destructive": True, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
        "content": {"type": "string", "description": "The whole content"},
        "expected_sha256": {
            "type": "string",
            "pattern": "^(sha256:)?[0-9a-fA-F]{64}$",
            "description": "Write only if the file's present content has this SHA-256",
        },
        "check": {
            "type": "boolean",
            "default": False,
            "description": "Ask a language server what the change broke and mended",
        },
        "encoding": {
            "type": "string",
            "default": "utf-8",
            "description": "Codec name for the content; utf-8-sig puts a byte order mark before it, others write none",
        },
    },
    "required": ["file_path", "content"],
    "additionalProperties": False,
}

OUTPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "description": "The file, from the project's root"},
        "bytes_written": {"type": "integer", "description": "Size of the file now"},
        "created": {"type": "boolean", "description": "Whether the file is new"},
        "unchanged": {"type": "boolean", "description": "Whether the file held this content already: nothing was written"},
        "truncated": {"type": "boolean", "description": "Whether the output was cut"},
        "entry_id": {"type": "string", "description": "What undo takes this back by; absent when unchanged"},
        "warnings": {"type": "array", "description": "What went less than well"},
    },
}


def execute(params: dict, project_path: str) -> dict:
    """Write the file."""
    if not params.pop("check", False):
        return editing.write(project_path, **params)
    return checking.checked(project_path, params["file_path"], lambda: editing.write(project_path, **params))

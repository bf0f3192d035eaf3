# rye:signed:2026-11-21T10:56:03Z:5054c6fdb5f6dbd5e05b07707a37cee0e8d65dedea26c15173bed5052d6b6f58:ygfWlll5JTRftvv0-2GgB3Ma_kgchOUooMMmPGanveeBlzgG1NAKgtZObTVvjaSgxOnpOsbYMnD0EG-BtDukAQ==:b63173adc9f5699f
"""Create a text file, or replace the whole content of one.

Requires: file_path inside the project and content, the complete text of the file, written exactly as given (UTF-8 without
a byte order mark unless encoding says otherwise; no newline is added or translated).
Does not: append, merge, or write outside the project, through links out of it, or into .git, .ai/trusted_keys, .ai/keys
and .ai/cache.
Side effects: makes missing parent directories; replaces the file atomically, keeping the mode of an existing one; all line
IDs of the file become unknown (read it again before edit_lines); recorded for undo.
Returns: output (a creation message, or the unified diff), file_path, bytes_written, created, entry_id. A diff over 50 KB is
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
        "truncated": {"type": "boolean", "description": "Whether the output was cut"},
        "entry_id": {"type": "string", "description": "What undo takes this back by"},
        "warnings": {"type": "array", "description": "What went less than well"},
    },
}


def execute(params: dict, project_path: str) -> dict:
    """Write the file."""
    if not params.pop("check", False):
        return editing.write(project_path, **params)
    return checking.checked(project_path, params["file_path"], lambda: editing.write(project_path, **params))

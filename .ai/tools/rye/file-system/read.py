# rye:signed:2026-11-21T10:53:15Z:a45d54b187fc65a1333491fb480498ed1b5a5754959717a859d892a9294da4dd:FzNeWZD8eHu7aAvJeB_O_3TvnhlHyN_k_xJqeGOwm5id0aIdYvPKHX0pbdrKiLnAPG9DZIj3zYEJnG3fYaEFBw==:b63173adc9f5699f
"""Read a text file of the project as lines, each with a persistent line ID: `[LID:a1b2c3] text`.

Requires: file_path, an existing text file inside the project. Binary files are refused with their type and size.
Does not: follow links out of the project, change the file, decode images or documents.
Side effects: none on your files; keeps line IDs in .ai/cache (or the user's state folder). On a full disk lines come without IDs.
Returns: output (lines with IDs), line_count, total_lines, offset, truncated, next_offset, version, encoding. At most `limit`
lines and 50 KB, cut at a line boundary; a cut ends with a [tool_result: …] line naming the call that continues. Lines over
2,000 characters are shortened visibly; their ID still stands for the whole line.
An ID belongs to its line for as long as the line lives, through edits elsewhere in the file: pass IDs to edit_lines instead
of retyping text, and do not read again after an edit. Pass changes_since=<version of an earlier read> to see only what is
new, changed or gone since. Negative offset counts from the end. show_whitespace makes tabs, CR and trailing blanks visible.
Prefer it to cat in a shell whenever you may edit the file; use grep to find the place first in a large one.
"""

from rye.toolkit import reading

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/file-system"
__tool_description__ = "Read a text file with persistent line IDs, a window at a time"
__item_id__ = "rye/file-system/read"
__requires_rye__ = ">=0.1"
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
        "offset": {
            "type": "integer",
            "default": 1,
            "not": {"const": 0},
            "description": "First line (from 1); negative counts from the end, -1 is the last line",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": 100000,
            "default": 2000,
            "description": "Most lines to return",
        },
        "line_ids": {
            "type": "string",
            "enum": ["all", "none"],
            "default": "all",
            "description": "Show line IDs or not",
        },
        "changes_since": {
            "type": "string",
            "description": "A version from an earlier result: show only what changed since",
        },
        "show_whitespace": {
            "type": "boolean",
            "default": False,
            "description": "Make tabs, CR and odd blanks visible",
        },
        "encoding": {
            "type": "string",
            "description": "Codec name, only where it is not recognised (latin-1, shift_jis …)",
        },
    },
    "required": ["file_path"],
    "additionalProperties": False,
}

OUTPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "line_count": {"type": "integer", "description": "Lines shown"},
        "total_lines": {"type": "integer", "description": "Lines in the file"},
        "offset": {"type": "integer", "description": "First line shown"},
        "truncated": {"type": "boolean", "description": "Whether the output was cut"},
        "next_offset": {"type": "integer", "description": "Where the next call continues"},
        "version": {"type": "string", "description": "The file's version, for later calls"},
        "warnings": {"type": "array", "description": "Why lines have no IDs, where these cannot be kept"},
        "encoding": {"type": "string", "description": "The file's encoding"},
        "file_path": {"type": "string", "description": "The file, from the project's root"},
        "changed_lines": {"type": "integer", "description": "With changes_since: lines changed"},
        "deleted_ids": {"type": "array", "description": "With changes_since: IDs of lines that are gone"},
        "changes_known": {"type": "boolean", "description": "With changes_since: whether that version is known"},
    },
}


def execute(params: dict, project_path: str) -> dict:
    """Return the window, or the changes since a version."""
    return reading.read(project_path, **params)

# rye:signed:2026-11-21T07:47:52Z:a48250097e2c1a1974556f3aa71916bceb06c2071ddd14436ab77ab6fd9e3689:T8v8lMrK7zSuG1gZzPqDf0IkHh5k_SSevgpo9hs_GQ9_-5BwZhI8kwjmlqrnVPZ7sjt4VeuGRygTRTrw_pyeAA==:b63173adc9f5699f
"""Read a text file of the project as lines, each with a persistent line ID: `[LID:a1b2c3] text`.

Requires: file_path, an existing text file inside the project. Binary files are refused with their type and size.
Does not: follow links out of the project, change the file, decode images or documents.
Side effects: none on your files; keeps line IDs in .ai/cache (or the user's state folder).
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


def execute(params: dict, project_path: str) -> dict:
    """Return the window, or the changes since a version."""
    return reading.read(project_path, **params)

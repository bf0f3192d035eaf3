# rye:signed:2026-11-21T07:47:52Z:49c0cbcea5f438770df942197898c5287b0fe98cb28752be02f73cd1ae1f0435:mDhV0nkK6grTx_XUsMASylt1lA3pPiOMXsOfCr61yrb6YDKy2c_hn7wrb0oGwnb6A8rJUAcsM5aBbB_2ovhpDQ==:b63173adc9f5699f
"""Edit a text file by line ID: replace, delete or insert whole lines without retyping the old text.

Requires: a prior read (or grep) of the file, whose [LID:…] IDs name the lines. Each change has new_content and one of:
line_id (replace that line); start_line_id + end_line_id (replace the range, inclusive); after_line_id or before_line_id
(insert; "start" and "end" of the file allowed). new_content is lines without IDs: "" deletes, "\\n" is one empty line,
"a" and "a\\n" are one line.
Does not: match text, guess, or apply a part: all changes are checked first, then all land or none ("Nothing was written").
It refuses unknown or dead IDs (telling what became of them), overlaps, lines never shown, files changed by others since.
Side effects: rewrites the file atomically (mode, encoding, line endings, other bytes kept); recorded for undo.
Returns: output (unified diff, then the changed lines with their new IDs and two lines around, so no re-read is needed),
changes_applied, lines_changed, version, entry_id. Over 50 KB the output is cut with a [tool_result: …] line.
on_stale="rebase" applies to a file changed by others if every covered line is untouched. dry_run shows the diff only.
Prefer it to write for any change of an existing file.
"""

from rye.toolkit import editing

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/file-system"
__tool_description__ = "Edit lines of a file by their persistent IDs"
__item_id__ = "rye/file-system/edit_lines"
__requires_rye__ = ">=0.1"
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
        "changes": {
            "type": "array",
            "description": "Changes by line ID, all checked first, then applied together; [] only to set newlines",
            "items": {
                "type": "object",
                "properties": {
                    "line_id": {"type": "string", "description": "Replace this line"},
                    "start_line_id": {"type": "string", "description": "First line of a range to replace"},
                    "end_line_id": {"type": "string", "description": "Last line of the range, inclusive"},
                    "after_line_id": {
                        "type": "string",
                        "description": 'Insert behind this line ("start", "end" allowed)',
                    },
                    "before_line_id": {
                        "type": "string",
                        "description": 'Insert before this line ("start", "end" allowed)',
                    },
                    "new_content": {"type": "string", "description": 'The new lines; "" deletes'},
                    "newline": {
                        "type": "string",
                        "enum": ["keep", "lf", "crlf"],
                        "description": "Terminator of these lines",
                    },
                },
                "required": ["new_content"],
                "additionalProperties": False,
            },
        },
        "version": {
            "type": "string",
            "description": "Refuse unless the file is still in this version (from read)",
        },
        "on_stale": {
            "type": "string",
            "enum": ["refuse", "rebase"],
            "default": "refuse",
            "description": "What to do when another program changed the file since it was last read",
        },
        "dry_run": {"type": "boolean", "default": False, "description": "Return the diff, write nothing"},
        "newline": {
            "type": "string",
            "enum": ["keep", "lf", "crlf"],
            "default": "keep",
            "description": "Terminator of changed lines (keep: as their neighbours)",
        },
        "final_newline": {
            "type": "string",
            "enum": ["keep", "add", "remove"],
            "default": "keep",
            "description": "Whether the file ends in a newline",
        },
        "convert_newlines": {
            "type": "string",
            "enum": ["lf", "crlf"],
            "description": "Convert the whole file's terminators",
        },
        "encoding": {"type": "string", "description": "Codec name, only where it is not recognised"},
    },
    "required": ["file_path", "changes"],
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Apply all changes, or none."""
    return editing.edit_lines(project_path, **params)

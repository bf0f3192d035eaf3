# rye:signed:2026-11-21T09:07:38Z:065d84e56353ae1a2c659fe719f6f0938be6e33cd77b90f359dae513724fe438:IbP4QhcyktGclT3LpBKuv7Z3lJ65fYaRLo-gQBhjfzWJn_-wgMBCVEI7aP_2ZyqkhhLM1EhkoZCbvWAjuF4UAQ==:b63173adc9f5699f
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
check=true asks a language server what the edit broke or mended.
Prefer it to write for any change of an existing file.
"""

from rye.toolkit import checking, editing

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/file-system"
__tool_description__ = "Edit lines of a file by their persistent IDs: replace, insert, delete"
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
        "check": {
            "type": "boolean",
            "default": False,
            "description": "Ask a language server what the change broke and mended",
        },
        "encoding": {"type": "string", "description": "Codec name, only where it is not recognised"},
    },
    "required": ["file_path", "changes"],
    "additionalProperties": False,
}

OUTPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "changes_applied": {"type": "integer", "description": "Changes made"},
        "lines_changed": {"type": "integer", "description": "Lines that differ now"},
        "lines": {"type": "array", "description": "The changed lines: line_num and id"},
        "version": {"type": "string", "description": "The file's version, for later calls"},
        "entry_id": {"type": "string", "description": "What undo takes this back by"},
        "file_path": {"type": "string", "description": "The file, from the project's root"},
        "dry_run": {"type": "boolean", "description": "Whether nothing was written"},
        "truncated": {"type": "boolean", "description": "Whether the output was cut"},
        "warnings": {"type": "array", "description": "What went less than well"},
    },
}


def execute(params: dict, project_path: str) -> dict:
    """Apply all changes, or none."""
    if not params.pop("check", False):
        return editing.edit_lines(project_path, **params)
    return checking.checked(project_path, params["file_path"], lambda: editing.edit_lines(project_path, **params))

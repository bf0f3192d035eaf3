# rye:signed:2026-11-21T07:47:52Z:e4c305d09d8587aa91add6a6e640aba2f96567de65083d797aff651118083bb3:r_CbMeUAnqOGkAa0RCJ3jREDftK_Nio3VVBWkbp91c4qA5KJ7MaPFpzi7JhYUPjj40bkRlQvVQ1nWwTdWQQ-AQ==:b63173adc9f5699f
"""Search file contents by regular expression; every line shown carries its line ID: `file:line:[LID:a1b2c3]:content`.

Requires: pattern (Rust regex syntax: no look-around, no backreferences; literal=true for plain text). path is a folder or one
file, the project by default; include narrows by file name (`*.py`) or path (`src/**/*.py`).
Does not: look at hidden files, what .gitignore names, build and dependency folders (hidden=true, no_ignore=true lift this),
binary files, or follow symbolic links.
Side effects: none on your files; keeps line IDs in .ai/cache.
Returns: output, matches [{file, line, line_id, content}], count, total, files (that match), truncated, next_offset. Sorted by
path; at most `limit` and 50 KB, a cut ends with a [tool_result: …] line naming the call that continues. One to three matches
bring 3 lines of context. Lines over 500 characters are shown around the match. mode="files" or "count" lists files only.
Pass the IDs to edit_lines at once, no read is needed in between. A line in a file over 64 MB has no ID.
Prefer it to grep or rg in a shell whenever you may edit what you find; use glob to find files by name.
"""

from rye.toolkit import grepping

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/file-system"
__tool_description__ = "Search file contents by regex; matches carry line IDs, ready for edit_lines"
__item_id__ = "rye/file-system/grep"
__requires_rye__ = ">=0.1"
__timeout__ = 60
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "minLength": 1, "maxLength": 20000, "description": "Regex pattern"},
        "path": {
            "type": "string",
            "format": "workspace-path",
            "default": ".",
            "description": "Directory or file to search",
        },
        "include": {"type": "string", "maxLength": 4000, "description": "File glob filter (e.g., *.py)"},
        "ignore_case": {"type": "boolean", "default": False, "description": "Letter case does not count"},
        "literal": {"type": "boolean", "default": False, "description": "The pattern is plain text"},
        "multiline": {"type": "boolean", "default": False, "description": "Match across lines; use (?s) for . over newlines"},
        "context": {
            "type": "integer",
            "minimum": 0,
            "maximum": 50,
            "description": "Lines to show before and after each match; 3 if absent and there are at most three matches",
        },
        "mode": {
            "type": "string",
            "enum": ["content", "files", "count"],
            "default": "content",
            "description": "Matching lines, names of matching files, or names with counts",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": 10000,
            "default": 100,
            "description": "Most matches (or files) to return",
        },
        "offset": {"type": "integer", "minimum": 1, "maximum": 100000000, "default": 1, "description": "First one, from 1"},
        "hidden": {"type": "boolean", "default": False, "description": "Search hidden files too"},
        "no_ignore": {"type": "boolean", "default": False, "description": "Search ignored files too"},
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Return the matches of the window."""
    return grepping.grep(project_path, **params)

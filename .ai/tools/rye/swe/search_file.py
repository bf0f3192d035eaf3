# rye:signed:2026-11-28T03:43:31Z:53d262d7029b7ae64fb3c7fc1df916595e0399abe0e7bf5519d2f58446238177:PzAf4Ylo9UU7Ib66zhTggSFFT5RDGJG3iHQbM5bvbu6yl8lNCbEdIovTo9p8Rbfld2sGrs9lt3a0qsZOVr7LDA==:b63173adc9f5699f
"""Search one file; every match is one line, `n : text`.

Requires: path, a text file, and pattern (Rust regex syntax; wrapped in quotes, or with literal=true, it is plain text).
Does not: search folders (search_dir does) or binary files, or match across lines.
Side effects: none (line_ids=true keeps line IDs in .ai/cache). RAGIX_ENABLE_SWE=0 turns it off.
Returns: output, matches [{file, line, line_id, content}], count, total, truncated, next_offset. At most `limit` (200) and
50 KB; a cut ends with a [tool_result: …] line naming the call that continues. Lines over 500 characters are shown around the
match.
Prefer it to reading a long file through: it gives the line to open with open_file_chunk.
"""

from __future__ import annotations

from typing import Any

from rye.call import profile
from rye.swe import search
from rye.workspace.workspace import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/swe"
__tool_description__ = "Search one file by regex, results as line : text"
__item_id__ = "rye/swe/search_file"
__timeout__ = 60
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
        "pattern": {"type": "string", "minLength": 1, "maxLength": 20000, "description": "Regex; in quotes: plain text"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": 200, "description": "Most results to return"},
        "offset": {"type": "integer", "minimum": 1, "maximum": 100000000, "default": 1, "description": "First one, from 1"},
        "ignore_case": {"type": "boolean", "default": False, "description": "Letter case does not count"},
        "literal": {"type": "boolean", "default": False, "description": "The pattern is plain text"},
        "line_ids": {"type": ["string", "boolean"], "default": False, "description": "Line addresses: lid (true), short, none"},
    },
    "required": ["path", "pattern"],
    "additionalProperties": False,
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return what was found.

    Raises:
        WorkspaceError: `is_directory`, `not_regular_file`, `file_not_found`. Others as `search.search`, `profile.enabled`.
    """
    profile.enabled()
    # A search takes folders too; this tool is about one file.
    with Workspace(project_path) as ws, ws.file(params["path"]):
        pass
    return search.search(project_path, "search_file", params, CONFIG_SCHEMA, params["path"], "{line} : {text}")

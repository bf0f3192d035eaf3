# rye:signed:2026-11-28T03:43:31Z:13cfc3bc7a99e21d8f8cfc679839e51c32c74b6ec312edf070559a3ce5b837a3:fpRMwGoLsfgDP3yuPyZQDg7FcxiIjYq45UMPg77WwhBfhhefBOpkX7Ug3pf2XxRHT611XxmW0SQq_4C1zKerAw==:b63173adc9f5699f
"""Search file contents below a folder; every match is one line, `path:line: text`, as `grep -Rn` prints it.

Requires: pattern (Rust regex syntax; wrapped in quotes, or with literal=true, it is plain text). root is the folder, the project
by default; include narrows by file name (`*.py`).
Does not: search hidden files, what .gitignore names, build and dependency folders (hidden=true, no_ignore=true lift this),
or binary files, or follow links.
Side effects: none (line_ids=true keeps line IDs in .ai/cache). RAGIX_ENABLE_SWE=0 turns it off.
Returns: output, matches [{file, line, line_id, content}], count, total, truncated, next_offset. Sorted by path, at most `limit`
(200) and 50 KB; a cut ends with a [tool_result: …] line naming the call that continues. Lines over 500 characters are shown
around the match.
Prefer it to grep in a shell for finding a place, then open_file_chunk with its line; grep of rye/file-system adds context.
"""

from __future__ import annotations

from typing import Any

from rye.call import profile
from rye.swe import search

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/swe"
__tool_description__ = "Search the files of a folder by regex, results as path:line: text"
__item_id__ = "rye/swe/search_dir"
__timeout__ = 60
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "minLength": 1, "maxLength": 20000, "description": "Regex; in quotes: plain text"},
        "root": {"type": "string", "format": "workspace-path", "default": ".", "description": "Directory to search"},
        "include": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "File glob filter (e.g., *.py)"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": 200, "description": "Most results to return"},
        "offset": {"type": "integer", "minimum": 1, "maximum": 100000000, "default": 1, "description": "First one, from 1"},
        "ignore_case": {"type": "boolean", "default": False, "description": "Letter case does not count"},
        "literal": {"type": "boolean", "default": False, "description": "The pattern is plain text"},
        "hidden": {"type": "boolean", "default": False, "description": "Look at hidden files too"},
        "no_ignore": {"type": "boolean", "default": False, "description": "Look at ignored files too"},
        "line_ids": {"type": ["string", "boolean"], "default": False, "description": "Line addresses: lid (true), short, none"},
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return what was found. Errors as `search.search`, `profile.enabled`."""
    profile.enabled()
    return search.search(project_path, "search_dir", params, CONFIG_SCHEMA, params["root"], "{path}:{line}: {text}")

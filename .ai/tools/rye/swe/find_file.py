# rye:signed:2026-11-24T06:25:11Z:abab02b0df464c707271ba5a0f8f6752e9b41dee35cdb04ed284f193d41528c9:AVMxBJ0XTUeqQS9p_SVhdlu8kQNcZy8Bmg0TqiQIMnRaoVucXkRKGa8BrQfrT4ITXaR0eNZR7zcpxkgGFP7IBQ==:b63173adc9f5699f
"""Find files whose name contains a text (`route`), or fits a glob (`test_*.py`, `src/**/*.md`).

Requires: pattern; with none of * ? [ { in it, it is a part of the name (`api/rout`: of the folder's and the file's). root is
the folder to start from, the project by default; a glob with a slash is relative to it.
Does not: list folders, follow links, or show what .gitignore names, hidden files, build and dependency folders
(hidden=true, no_ignore=true lift this).
Side effects: none. RAGIX_ENABLE_SWE=0 turns it off.
Returns: output (one path a line, relative to the project, sorted), files, count, total, truncated, next_offset. At most
`limit` (200); a cut ends with a [tool_result: …] line naming the call that continues.
Prefer it to find in a shell when only a part of a name is known; use search_dir to search contents.
"""

from __future__ import annotations

import os
from typing import Any

from rye.call import profile, results
from rye.filesearch import globs, name_search
from rye.filesearch import tree as filesearch_tree
from rye.fs import names

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/swe"
__tool_description__ = "Find files by a part of their name, or by a glob"
__item_id__ = "rye/swe/find_file"
__timeout__ = 60
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "Part of a file name, or a glob"},
        "root": {"type": "string", "format": "workspace-path", "default": ".", "description": "Directory to search"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": 200, "description": "Most results to return"},
        "offset": {"type": "integer", "minimum": 1, "maximum": 100000000, "default": 1, "description": "First one, from 1"},
        "hidden": {"type": "boolean", "default": False, "description": "Look at hidden files too"},
        "no_ignore": {"type": "boolean", "default": False, "description": "Look at ignored files too"},
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return what was found. Errors as `name_search.find`, `profile.enabled`."""
    profile.enabled()
    query = name_search.NameQuery(_as_glob(params["pattern"]), params["root"], **filesearch_tree.scope(params))
    return name_search.find(project_path, query, results.next_call("find_file", params, CONFIG_SCHEMA))


def _as_glob(pattern: str) -> str:
    """Return a name pattern as a glob: one that holds no wildcard fits every name that contains it."""
    if set(pattern) & set("*?[{"):
        return pattern
    folder, slash, name = filesearch_tree.glob_text(pattern).rpartition("/")
    around = f"*{globs.escape(name)}*" if name else "*"
    glob = f"**/*{globs.escape(folder)}/{around}" if slash and folder else around
    # Bytes that are no text are written in patterns as results show them.
    return names.show(os.fsencode(glob))

# rye:signed:2026-11-21T07:58:12Z:63f392e8cb68e32166c50f6fe7205749ec6b0d085f35373593d1d25de097db3a:TmqSOyQm9jcOvA0aOdQL9vUhP1161jrz5zsAGoUZTtGxWhLYb7k-G-DehZHoQaJThu2mDR2iYiHNlIdeV0NhDg==:b63173adc9f5699f
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

from rye.toolkit import swe_search

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/swe"
__tool_description__ = "Find files by a part of their name, or by a glob"
__item_id__ = "rye/swe/find_file"
__requires_rye__ = ">=0.1"
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


def execute(params: dict, project_path: str) -> dict:
    """Return what was found."""
    return swe_search.find_file(project_path, **params)

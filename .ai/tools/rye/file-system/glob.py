# rye:signed:2026-11-28T03:43:31Z:7415c9cf72f36ec6e1ee3abd27aaa3fee73aa0c7cb1aaee8adfe39be9bb6a51e:x8HONu6s7gOi0et8WrOGaZmX2Vg1M6N-rYoImSwg4BpvHi1qSXg5WWL4LCASWAaiUUF4B2kHkLPrtshpmPt5Aw==:b63173adc9f5699f
"""Find files by name: `**/*.py`, `src/**/test_*.{ts,tsx}`, `[!_]*.md`; a pattern without a slash matches at any depth.

Requires: pattern (`*` `?` within a name, `**` for any folders, `[a-z]`, `[!x]`, `{a,b}`, backslash before a character to mean
itself). path is the folder to start from, the project by default; the pattern is relative to it.
Does not: list folders or symbolic links, leave the project, or show what .gitignore names, hidden files (unless the pattern
writes the dot), build and dependency folders; hidden=true and no_ignore=true lift this.
Side effects: none.
Returns: output (one path a line, relative to the project), files, count, total, truncated, next_offset. In alphabetical order,
or the last modified first with sort="modified"; at most `limit` and 50 KB, a cut ends with a [tool_result: …] line naming the
call that continues. Bytes of a name that are no printable UTF-8 show as \\xHH; pass such paths on as they are shown.
Prefer it to find in a shell; use grep to search contents, ls to see one folder.
"""

from __future__ import annotations

from typing import Any

from rye.call import results
from rye.filesearch import name_search
from rye.filesearch import tree as filesearch_tree

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/file-system"
__tool_description__ = "Find files by glob pattern, sorted by name or time"
__item_id__ = "rye/file-system/glob"
__timeout__ = 60
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}
__agent_description__ = """Find files by name: `**/*.py`, `src/**/*.{ts,tsx}`; without a slash at any depth.
Requires: pattern.
Does not: list folders, hidden or ignored files.
Side effects: none.
Returns: one path a line.
Prefer it to find."""
__agent_parameters__ = {"pattern": "", "path": "", "sort": "", "hidden": "", "no_ignore": "", "limit": "", "offset": ""}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "Glob pattern (e.g., **/*.py)"},
        "path": {"type": "string", "format": "workspace-path", "default": ".", "description": "Directory to start from"},
        "sort": {"type": "string", "enum": ["name", "modified"], "default": "name", "description": "By name, or newest first"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 10000, "default": 100, "description": "Most files to return"},
        "offset": {"type": "integer", "minimum": 1, "maximum": 100000000, "default": 1, "description": "First one, from 1"},
        "hidden": {"type": "boolean", "default": False, "description": "Show hidden files too"},
        "no_ignore": {"type": "boolean", "default": False, "description": "Show ignored files too"},
    },
    "required": ["pattern"],
    "additionalProperties": False,
}

OUTPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "files": {"type": "array", "description": "Paths from the project's root"},
        "count": {"type": "integer", "description": "Files shown"},
        "total": {"type": "integer", "description": "Files in all"},
        "truncated": {"type": "boolean", "description": "Whether the output was cut"},
        "next_offset": {"type": "integer", "description": "Where the next call continues"},
    },
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return the files of the window.

    Raises:
        UsageError, WorkspaceError: see `name_search.find`.
    """
    query = name_search.NameQuery(
        params["pattern"], params["path"], newest_first=params["sort"] == "modified", **filesearch_tree.scope(params)
    )
    answer = name_search.find(project_path, query, results.next_call("glob", params, CONFIG_SCHEMA))
    # The output has them; a model need not read them twice.
    del answer["notices"]
    return answer

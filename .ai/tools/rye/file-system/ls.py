# rye:signed:2026-11-21T07:47:52Z:7de4ce0ede7d6f1d10fc6fe2a2f3282df8be895d3173dedf6e0be8abbd7f022d:LltEH2fGC1OnrffctMk3jU5-4ksP4bl9kUdF6xvxnK1hFxxoae3d568wUw72i4WouR8YFqjlxHr3YmEHg5FqAg==:b63173adc9f5699f
"""List a folder: directories first (`name/`), then files; with depth, a tree.

Requires: nothing; path is the folder, the project by default.
Does not: follow symbolic links (shown as `name -> target`), recurse beyond depth, or show dependency, build and version
control folders such as node_modules and .git (named as left out; no_ignore=true shows them). Hidden files are shown.
Side effects: none.
Returns: output, entries [{name, type}] (type: directory, file, symlink with target, fifo, socket, device; with long=true also
size in bytes and modified in UTC), count, total, truncated, next_offset. At most `limit` entries and 50 KB, a cut ends with a
[tool_result: …] line naming the call that continues. In a tree names are relative to path, and a folder below the first shows
at most 100 entries, then `… N more`. Unreadable folders are marked, not fatal. Bytes of a name that are no printable UTF-8 show
as \\xHH; pass such names on as they are shown.
Prefer it to ls or find in a shell; use glob to find files by pattern anywhere, read for a file's lines.
"""

from rye.toolkit import listing

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/file-system"
__tool_description__ = "List a directory, or a tree of directories down to a depth"
__item_id__ = "rye/file-system/ls"
__requires_rye__ = ">=0.1"
__timeout__ = 60
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "format": "workspace-path", "default": ".", "description": "Directory to list"},
        "long": {"type": "boolean", "default": False, "description": "Show size and time of change too"},
        "depth": {"type": "integer", "minimum": 1, "maximum": 100, "default": 1, "description": "Levels of folders to show"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 10000, "default": 500, "description": "Most entries to return"},
        "offset": {"type": "integer", "minimum": 1, "maximum": 100000000, "default": 1, "description": "First one, from 1"},
        "no_ignore": {"type": "boolean", "default": False, "description": "Show ignored directories too"},
    },
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Return the entries of the window."""
    return listing.ls(project_path, **params)

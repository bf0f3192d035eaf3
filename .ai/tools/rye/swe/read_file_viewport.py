# rye:signed:2026-11-21T12:10:48Z:7a32b38f49c1331205c919c8cd8e9f5f50017eedce116dc74217ad846431173a:JkIUGrmpG63zgOydgo2mNay7s9js52NciBfGEaljQw-5932pJ-UIbS7RiVUccyF6FR8oHDzSspUMRJm2U0yoDA==:b63173adc9f5699f
"""Read a text file through a viewport: `limit` lines from the zero-based `offset`, each with its one-based number, and a footer
that says where you are.

Requires: path, an existing text file of the project; offset=B of a footer continues there.
Does not: change or remember anything, or read folders, devices and binary files: each is refused in its own words.
Side effects: none on your files; .ai/cache keeps where the lines of a large file begin, with line_ids=true line IDs.
RAGIX_ENABLE_SWE=0 turns it off.
Returns: output, file_path, offset, line_count, total_lines, truncated, next_offset. limit is clamped to 1..500. The footer:
`[path: lines A-B of N; MORE below - call with offset=B; MORE above - call with offset=0]`, or `end of file`. An offset past
the end is refused with the valid range; lines over 2,000 characters are shortened visibly.
Prefer it for reading on through a long file; open_file_chunk for a jump to a line; read for line IDs of a whole file.
"""

from rye.toolkit import view

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/swe"
__tool_description__ = "Read a file a viewport at a time, by zero-based offset"
__item_id__ = "rye/swe/read_file_viewport"
__requires_rye__ = ">=0.1"
__timeout__ = 60
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
        "offset": {"type": "integer", "default": 0, "description": "Lines to skip, from 0"},
        "limit": {"type": "integer", "default": 100, "description": "Most lines to show, clamped to 1..500"},
        "line_ids": {"type": "boolean", "default": False, "description": "Show line IDs, ready for edit_lines"},
        "encoding": {"type": "string", "description": "Codec name, only where it is not recognised"},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Return the window."""
    return view.viewport(project_path, **params)

# rye:signed:2026-11-21T12:10:48Z:cbb752bdc660ed6a44906ad3529311b3757acd5435bdb21eb7d83dc6309543fb:zgQ3_De7GOcCzmCrvadnUIGqc4RgB7fCDLTUojmXTgtcQc5Fev9tcwzJQ6AzUADEzt2E3wRKe_Hbs2v0ckA1BQ==:b63173adc9f5699f
"""Show the next window of a file (direction "+") or the one before ("-"): 100 lines, two of them shared with the last one.

Requires: path, a text file; the last window that open_file_chunk or this tool showed of it counts, in any process.
Does not: know what read or other programs showed; without an earlier window it shows the first lines.
Side effects: none on your files; remembers the window in .ragix/state.json (safe to delete; RAGIX_VIEW_STATE=off: no),
and of a large file in .ai/cache where its lines begin. RAGIX_ENABLE_SWE=0 turns it off.
Returns: as open_file_chunk: output under `--- path (lines a-b) ---`, then `n: text`, start_line, end_line, total_lines,
truncated; a [tool_result: …] line where the file goes on. At its end "+" is refused with the number of lines (end_of_file).
Prefer open_file_chunk with line=N whenever you know a line: one jump replaces many scrolls.
"""

from rye.toolkit import view

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/swe"
__tool_description__ = "Show the window below or above the last one shown of a file"
__item_id__ = "rye/swe/scroll_file"
__requires_rye__ = ">=0.1"
__timeout__ = 60
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
        "direction": {"type": "string", "enum": ["+", "-"], "default": "+", "description": "Down or up"},
        "line_ids": {"type": "boolean", "default": False, "description": "Show line IDs, ready for edit_lines"},
        "encoding": {"type": "string", "description": "Codec name, only where it is not recognised"},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Return the window."""
    return view.scroll(project_path, **params)

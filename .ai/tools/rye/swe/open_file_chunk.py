# rye:signed:2026-11-28T03:43:31Z:804e477d53300f4eee09566de092c056d4001b9f4b0581aadd85c1d583291050:DdpiXvkFD1c-zWZzOp9O9hTYEkJwY76vCZG2LTA1y9XHusY_hRezTWhLL4u-Tbbq3jFZvRXCJFgaWMS9uDxGAw==:b63173adc9f5699f
"""Show a window of a text file as numbered lines, under `--- path (lines a-b) ---`: its first 100 lines; with line=N the
100 lines around N; with start and end exactly those, at most 200.

Requires: path, an existing text file of the project. Line numbers come from search_dir, search_file or an earlier window.
Does not: dump whole files, change anything, or read binary files.
Side effects: none on your files; remembers the window in .ragix/state.json for scroll_file (RAGIX_VIEW_STATE=off: no),
and of a large file in .ai/cache where its lines begin. RAGIX_ENABLE_SWE=0 turns it off.
Returns: output (header, then `n: text`), file_path, start_line, end_line, total_lines, more_above, more_below, truncated. A
window that ends before the file does is followed by a [tool_result: …] line naming the call for the rest; lines over 2,000
characters are shortened visibly; a line that is not there is refused with the valid range.
Prefer it to read for a look at one place of a large file; a direct jump to a line to scrolling there.
"""

from __future__ import annotations

from typing import Any

from rye.call import profile
from rye.swe import view
from rye.workspace.workspace import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/swe"
__tool_description__ = "Show a window of a file: its first lines, around a line, or from one line to another"
__item_id__ = "rye/swe/open_file_chunk"
__timeout__ = 60
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
        "line": {"type": "integer", "minimum": 1, "description": "Show the 100 lines around this one"},
        "start": {"type": "integer", "minimum": 1, "description": "First line to show"},
        "end": {"type": "integer", "minimum": 1, "description": "Last line to show, inclusive; at most 200 lines in all"},
        "line_ids": {"type": ["string", "boolean"], "default": False, "description": "Line addresses: lid (true), short, none"},
        "encoding": {"type": "string", "minLength": 1, "description": "Codec name, only where it is not recognised"},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return the window, and remember it."""
    profile.enabled()
    path = params["path"]

    def choose_span(total: int) -> view.Span:
        return view.window_at(total, params.get("line"), params.get("start"), params.get("end"))

    with Workspace(project_path) as ws:
        return view.result(view.look(ws, path, params.get("encoding"), choose_span, line_ids=params["line_ids"]), params)

# rye:signed:2026-11-28T03:43:31Z:dce2b067289d43ffafcbf50d74231c9b1ce689e0d6df6052f7c5bd8919262b5a:hBRC0ivuDh_7UaGz8q03A7xJr-xjQcwzZwkMHWGOGIAtEkQ_DhjJiRSJjhnUNiZApU7VG2iHhiSjf3I26ZOXBw==:b63173adc9f5699f
"""Show the next window of a file (direction "+") or the one before ("-"): 100 lines, two of them shared with the last one.

Requires: path, a text file; the last window that open_file_chunk or this tool showed of it counts, in any process.
Does not: know what read or other programs showed; without an earlier window it shows the first lines.
Side effects: none on your files; remembers the window in .ragix/state.json (safe to delete; RAGIX_VIEW_STATE=off: no),
and of a large file in .ai/cache where its lines begin. RAGIX_ENABLE_SWE=0 turns it off.
Returns: as open_file_chunk: output under `--- path (lines a-b) ---`, then `n: text`, start_line, end_line, total_lines,
truncated; a [tool_result: …] line where the file goes on. At its end "+" is refused with the number of lines (end_of_file).
Prefer open_file_chunk with line=N whenever you know a line: one jump replaces many scrolls.
"""

from __future__ import annotations

from typing import Any

from rye.call import profile
from rye.edits import view_state
from rye.errors import UsageError
from rye.swe import view
from rye.workspace.workspace import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/swe"
__tool_description__ = "Show the window below or above the last one shown of a file"
__item_id__ = "rye/swe/scroll_file"
__timeout__ = 60
__effects__ = {"read_only": True, "destructive": False, "idempotent": False, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
        "direction": {"type": "string", "enum": ["+", "-"], "default": "+", "description": "Down or up"},
        "line_ids": {"type": ["string", "boolean"], "default": False, "description": "Line addresses: lid (true), short, none"},
        "encoding": {"type": "string", "minLength": 1, "description": "Codec name, only where it is not recognised"},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return the next window, and remember it."""
    profile.enabled()
    path = params["path"]
    with Workspace(project_path) as ws:
        with ws.file(path) as file:
            physical = file.shown
        last = view_state.last_view(ws, physical) if profile.views_kept() else None

        def choose_span(total: int) -> view.Span:
            return _scrolled(total, last, params["direction"], physical)

        return view.result(view.look(ws, path, params.get("encoding"), choose_span, line_ids=params["line_ids"]), params)


def _scrolled(total: int, last: view_state.ShownWindow | None, direction: str, path: str) -> view.Span:
    """Return the window below or above the last one; the first lines where there was none."""
    if last is None or not last.start_line:
        return view.window_at(total, None, None, None)
    if direction == "-":
        first = max(1, last.start_line - view.WINDOW + view_state.OVERLAP)
    else:
        if last.start_line + last.chunk_size > total >= last.start_line:
            why = f"End of file: {path} has {total} lines, and the last window showed the end of it."
            raise UsageError("end_of_file", why, "Scroll up with -, or open the file at a line.", total_lines=total)
        first = last.start_line + max(last.chunk_size - view_state.OVERLAP, 1)
    # The file may have become shorter since.
    first = max(1, min(first, total - view.WINDOW + 1)) if first > total else first
    return view.window_at(total, None, first, first + view.WINDOW - 1)

"""What the author of a tool may use: files, lines with IDs, edits, results, limits and errors.

These names are the whole promise; every other module of `rye` may change at any time. Names are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rye.call.context import deadline, output_budget
    from rye.call.event_log import log_event
    from rye.call.results import Page, call_text, cut_notice, fit_lines, ok
    from rye.edits.apply import Applied, Show
    from rye.edits.edit_files import Edited, edit_files, edit_lines
    from rye.edits.whole_file import Replaced, replace_file
    from rye.errors import EditError, RyeError, UsageError, WorkspaceError
    from rye.journal.file_history import places_since
    from rye.line_ids.document import Document, view_lines
    from rye.line_ids.notebook_view import notebook_view
    from rye.lsp.check import checked
    from rye.web.pdf_text import pdf_pages
    from rye.workspace.pictures import picture
    from rye.workspace.workspace import OpenFile, Workspace

_MODULES = {
    "call.context": ("deadline", "output_budget"),
    "call.event_log": ("log_event",),
    "call.results": ("Page", "call_text", "cut_notice", "fit_lines", "ok"),
    "edits.apply": ("Applied", "Show"),
    "edits.edit_files": ("Edited", "edit_files", "edit_lines"),
    "edits.whole_file": ("Replaced", "replace_file"),
    "errors": ("EditError", "RyeError", "UsageError", "WorkspaceError"),
    "journal.file_history": ("places_since",),
    "line_ids.document": ("Document", "view_lines"),
    "line_ids.notebook_view": ("notebook_view",),
    "lsp.check": ("checked",),
    "web.pdf_text": ("pdf_pages",),
    "workspace.pictures": ("picture",),
    "workspace.workspace": ("OpenFile", "Workspace"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = [
    "Applied",
    "Document",
    "EditError",
    "Edited",
    "OpenFile",
    "Page",
    "Replaced",
    "RyeError",
    "Show",
    "UsageError",
    "Workspace",
    "WorkspaceError",
    "call_text",
    "checked",
    "cut_notice",
    "deadline",
    "edit_files",
    "edit_lines",
    "fit_lines",
    "log_event",
    "notebook_view",
    "ok",
    "output_budget",
    "pdf_pages",
    "picture",
    "places_since",
    "replace_file",
    "view_lines",
]

# `from rye.toolkit import …` asks for this first: without an answer here each call of a tool would go through `__getattr__`.
__path__: list[str] = []


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rye.toolkit' has no attribute {name!r}")
    # The next tool finds it without coming here.
    found = globals()[name] = getattr(import_module(f"rye.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)

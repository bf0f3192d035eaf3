"""What the author of a tool may use: files, lines with IDs, edits, results, limits and errors.

These names are the whole promise; every other module of `rye` may change at any time. Names are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rye.call.context import deadline, output_budget
    from rye.call.event_log import tell as log_event
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

_PLACES = {
    "Applied": "edits.apply.Applied",
    "Document": "line_ids.document.Document",
    "EditError": "errors.EditError",
    "Edited": "edits.edit_files.Edited",
    "OpenFile": "workspace.workspace.OpenFile",
    "Page": "call.results.Page",
    "Replaced": "edits.whole_file.Replaced",
    "RyeError": "errors.RyeError",
    "Show": "edits.apply.Show",
    "UsageError": "errors.UsageError",
    "Workspace": "workspace.workspace.Workspace",
    "WorkspaceError": "errors.WorkspaceError",
    "call_text": "call.results.call_text",
    "checked": "lsp.check.checked",
    "cut_notice": "call.results.cut_notice",
    "deadline": "call.context.deadline",
    "edit_files": "edits.edit_files.edit_files",
    "edit_lines": "edits.edit_files.edit_lines",
    "fit_lines": "call.results.fit_lines",
    "log_event": "call.event_log.tell",
    "notebook_view": "line_ids.notebook_view.notebook_view",
    "ok": "call.results.ok",
    "output_budget": "call.context.output_budget",
    "pdf_pages": "web.pdf_text.pdf_pages",
    "picture": "workspace.pictures.picture",
    "places_since": "journal.file_history.places_since",
    "replace_file": "edits.whole_file.replace_file",
    "view_lines": "line_ids.document.view_lines",
}
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
    if name not in _PLACES:
        raise AttributeError(f"module 'rye.toolkit' has no attribute {name!r}")
    module, _, attribute = _PLACES[name].rpartition(".")
    # The next tool finds it without coming here.
    found = globals()[name] = getattr(import_module(f"rye.{module}"), attribute)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)

"""A language server's edits to several files, made in one commit: all of them or none, and undone as one."""

from __future__ import annotations

from contextlib import ExitStack
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from rye.errors import EditError
from rye.toolkit import cache, commits
from rye.toolkit.edits import unified_diff
from rye.toolkit.encoding import detect
from rye.toolkit.lsp_wire import LanguageServerError
from rye.toolkit.positions import applied

if TYPE_CHECKING:
    from rye.toolkit.language import Project


class Changed(NamedTuple):
    """What was changed: project-relative paths, the batch that undo takes, the diff, warnings."""

    files: list[str]
    batch: str | None
    diff: list[str]
    warnings: list[str]


def file_edits(edit: Any) -> dict[str, list[dict[str, Any]]]:  # noqa: ANN401 - a WorkspaceEdit, JSON
    """Return the text edits of a WorkspaceEdit by URI.

    Raises:
        LanguageServerError: `not_offered`, when it would create, rename or delete files.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    if not isinstance(edit, dict):
        return found
    for one in edit.get("documentChanges") or []:
        if "kind" in one:
            told = f"The server wants to {one['kind']} files as well, which is not done here."
            raise LanguageServerError("not_offered", told, "Make the change with edit_lines and write.")
        found.setdefault(one["textDocument"]["uri"], []).extend(one["edits"])
    if not found:
        for uri, edits in (edit.get("changes") or {}).items():
            found.setdefault(uri, []).extend(edits)
    return found

"""A language server's edits to several files, made in one commit: all of them or none, and undone as one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, NamedTuple

from rye.edits import splices
from rye.edits.apply import FileChange, Prepared, Show, apply_all, prepare, syntax_warnings
from rye.edits.patch_store import new_id
from rye.line_ids import document as documents
from rye.line_ids.reconcile import Splice
from rye.lsp.connection import LanguageServerError
from rye.lsp.queries import Project
from rye.workspace import cache
from rye.workspace.text import parse
from rye.workspace.workspace import Place


class Changed(NamedTuple):
    """What was changed: project-relative paths, the batch that undo takes, the diff (for a model rows), warnings."""

    files: list[str]
    batch: str | None
    diff: list[str]
    warnings: list[str]


def file_edits(edit: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the text edits of a WorkspaceEdit by URI.

    Raises:
        LanguageServerError: `not_offered`, when it would create, rename or delete files; `bad_edits`.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    if not isinstance(edit, dict):
        return found
    try:
        # When both forms are given they mean the same; the protocol prefers this one.
        for one in edit.get("documentChanges") or []:
            _add(found, one)
        if not found:
            for uri, text_edits in (edit.get("changes") or {}).items():
                found.setdefault(uri, []).extend(text_edits)
    except (KeyError, TypeError, AttributeError) as err:
        message = f"The server's answer is no list of edits ({type(err).__name__}: {err})."
        raise LanguageServerError("bad_edits", message, "Nothing was written. Make the change with edit_lines.") from None
    return found


def _add(found: dict[str, list[dict[str, Any]]], one: dict[str, Any]) -> None:
    if "kind" in one:
        message = f"The server wants to {one['kind']} files as well, which is not done here."
        raise LanguageServerError("not_offered", message, "Make the change with edit_lines and write.")
    found.setdefault(one["textDocument"]["uri"], []).extend(one["edits"])


def change_files(
    project: Project, edits_by_uri: dict[str, list[dict[str, Any]]], tool: str, *, dry_run: bool, holding: str = ""
) -> Changed:
    """Make a server's edits, of every file or of none. `holding` is a name that each of the files must contain.

    Raises:
        LanguageServerError: `outside_project`, `changed_meanwhile`, `bad_edits`. Nothing was written.
        EditError, WorkspaceError: as the commit of several files.
    """
    paths = {uri: project.inside(uri) for uri, edits in edits_by_uri.items() if edits}
    outside = [uri for uri, path in paths.items() if path is None]
    if outside:
        message = f"The change reaches outside the project: {', '.join(outside[:3])}."
        raise LanguageServerError("outside_project", message, "Nothing was written. Rename it where it is defined.")
    with ExitStack() as stack:
        places = {path: stack.enter_context(project.ws.place(path)) for path in paths.values() if path is not None}
        # All files are locked together, so that no other writer comes between them.
        stack.enter_context(cache.locked(project.ws, *(place.path for place in places.values())))
        ready: list[tuple[Place, Prepared]] = []
        warnings: list[str] = []
        for uri, path in paths.items():
            if path is not None:
                _check_holds(project, path, holding)
                prepared = _prepared(project, path, places[path], edits_by_uri[uri], tool, stack, warnings)
                ready += [] if prepared is None else [(places[path], prepared)]
        # By path, so that the diff and the batch do not depend on the server's order.
        ready.sort(key=lambda one: one[1].document.path)
        files = [prepared.document.path for _, prepared in ready]
        diff = [line for _, prepared in ready for line in prepared.diff]
        if dry_run or not ready:
            return Changed(files, None, diff, warnings)
        # One batch for all files: a single undo takes the whole change back.
        batch = new_id()
        show = Show(0, short=True) if project.form == "short" else None
        _, applied, more = apply_all(project.ws, [FileChange(place, prepared) for place, prepared in ready], batch, show)
        rows = [[f"{one.document.path}:", *one.brief, f"[version {one.document.short_version}]"] for one in applied if show]
        return Changed(files, batch, [line for one in rows for line in one] or diff, [*warnings, *more])


def _check_holds(project: Project, path: str, name: str) -> None:
    # A server reads what the project brings, and may be misled: a rename has no business in a file without the name.
    known = project.positions(path)
    if known is not None and name not in known.text:
        message = f"The server wants to change {path}, which does not contain {name!r}."
        raise LanguageServerError("bad_edits", message, "Nothing was written. Make the change with edit_lines.")


def _prepared(
    project: Project,
    path: str,
    place: Place,
    text_edits: list[dict[str, Any]],
    tool: str,
    stack: ExitStack,
    warnings: list[str],
) -> Prepared | None:
    document = stack.enter_context(documents.open_locked_for_edit(project.ws, path, place.parts))
    code, data = document.text.encoding, document.data or b""
    known = project.positions(path)
    # The server's positions are about the text that it was sent.
    if known is None or code.bom + known.text.encode(code.name) != data:
        message = f"{path} changed while the server was asked."
        raise LanguageServerError("changed_meanwhile", message, "Nothing was written. Ask again.")
    try:
        new = code.bom + known.with_edits(text_edits).encode(code.name)
    except (ValueError, KeyError, TypeError) as err:
        message = f"The server's edits of {path} cannot be made: {err}."
        raise LanguageServerError("bad_edits", message, "Nothing was written. Make the change with edit_lines.") from None
    # A server may return edits that change nothing; such a file is not written.
    if new == data:
        return None
    lines = parse(new, code).lines()
    made = prepare(document, splices.refine(document.text, [Splice(0, document.text.count, lines)]), tool)
    warnings += syntax_warnings(document, made.document, short=project.form == "short")
    return made

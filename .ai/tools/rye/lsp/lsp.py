# rye:signed:2026-11-28T16:12:16Z:d9951f0c82a71760dc8cbe6c142249544df11ee3cb17eff881e780b872553549:dpRGe5DgNJ4p5qpYB-XVZUs6Ahu3MNNAnXR9fEUS9Bl76sGLtnU_HTS_81CJLuHRPlHwS-55N5yGeMLx7aifAQ==:b63173adc9f5699f
"""Ask a language server about a file: compiler errors, definitions, references, hover text, symbols; rename or format.

Requires: file_path; for definition, references, hover and rename also line_id (from read or grep) and symbol, a name in that line;
new_name for rename. A language server on this machine; a missing one is named with the command that installs it.
Does not: run the project's code or a server that the project brings, look outside the project, or rename files.
Side effects: rename and format change files, all or none, through the journal: undo(entry_id=…) takes them back; dry_run=true shows
the diff only. Other actions change nothing. A server is started and stays warm in a long-lived process.
Returns: output, server, server_state, and diagnostics [{line, column, severity, message, code, line_id}], locations [{file, line,
column, line_id, text}], symbols, text, or files and batchId. Every place in the project has its line ID, ready for
edit_lines. Long lists end with a [tool_result: …] line.
action: diagnostics (default), definition, references, hover, symbols (of the file; query searches the project), rename, format.
Prefer it to grep for who uses a name, to retyping for renames.
"""

from __future__ import annotations

import re
from typing import Any

from rye.call.results import call_text, ok
from rye.call.safe_text import plain
from rye.config import user_dirs
from rye.errors import UsageError
from rye.journal import history, recovery
from rye.line_ids import addresses
from rye.lsp import queries
from rye.lsp.connection import LanguageServerError
from rye.lsp.positions import uri_of
from rye.lsp.workspace_edit import change_files, file_edits
from rye.workspace.workspace import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/lsp"
__tool_description__ = "Compiler errors, where a function or class is defined, used or called, rename, format (LSP)"
__item_id__ = "rye/lsp/lsp"
__timeout__ = 200
__agent_defaults__ = {"line_ids": "short"}
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "format": "workspace-path", "description": "Path to file"},
        "action": {
            "type": "string",
            "enum": ["diagnostics", "definition", "references", "hover", "symbols", "rename", "format"],
            "default": "diagnostics",
            "description": "What to ask or do",
        },
        "line_id": {
            "type": ["string", "integer"],
            "minLength": 1,
            "maxLength": 40,
            "description": "Address of the line that holds the symbol",
        },
        "line_ids": {
            "type": "string",
            "enum": ["lid", "short", "none", "all"],
            "default": "lid",
            "description": "How the answer names lines: [LID:a1b2c3], or a short address",
        },
        "symbol": {"type": "string", "minLength": 1, "maxLength": 500, "description": "A name as it is written in that line"},
        "occurrence": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1000,
            "default": 1,
            "description": "Which one, where the line holds the name several times",
        },
        "new_name": {"type": "string", "minLength": 1, "maxLength": 500, "description": "The new name, for rename"},
        "query": {"type": "string", "maxLength": 500, "description": "For symbols: search the whole project for this name"},
        "timeout": {"type": "number", "minimum": 1, "maximum": 180, "default": 60, "description": "Seconds to wait for it"},
        "dry_run": {"type": "boolean", "default": False, "description": "For rename and format: show the diff, write nothing"},
    },
    "required": ["file_path"],
    "additionalProperties": False,
}

_HOVER = 8_000
_MAX_SYMBOLS = 1_000
# SymbolKind of the protocol.
_SYMBOLS = (
    "symbol,file,module,namespace,package,class,method,property,field,constructor,enum,interface,function,variable,constant,"
    "string,number,boolean,array,object,key,null,enum member,struct,event,operator,type parameter"
)
_KINDS = _SYMBOLS.split(",")


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return the server's answer.

    Raises:
        UsageError: `position_missing`, `unknown_line_id`, `symbol_not_found`, `new_name_missing`, `bad_config`.
        LanguageServerError: `no_language`, `server_missing`, `server_timeout`, `server_died`, `server_refused`, `not_offered`,
            `bad_answer`.
        WorkspaceError, EditError: as the commit of several files.
    """
    action = params["action"]
    changes = action in ("rename", "format")
    if changes:
        with Workspace(project_path) as ws:
            # Finish what a crash interrupted first: the server must see the files as they will be.
            recovery.recover(ws)
    with queries.open_for_query(project_path, params["file_path"], params["timeout"]) as (project, path):
        project.form = addresses.form_of(params["line_ids"])
        question = _Question(project, path, params)
        try:
            return _ACTIONS[action](question)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as err:
            # After a rename began, an error must not read as if nothing had happened.
            if changes:
                raise
            # The server's answers are read without checking each part of them.
            message = f"{project.session.server.name} gave an answer to {action} that the protocol does not know."
            raise LanguageServerError("bad_answer", message, "Use grep and read instead.") from err


class _Question:
    """A call's parameters, and the project that they are about."""

    def __init__(self, project: queries.Project, path: str, params: dict[str, Any]) -> None:
        self.project, self.path, self.params = project, path, params
        self.symbol: str | None = params.get("symbol")
        self.uri = uri_of(project.absolute(path))

    def at(self) -> dict[str, Any]:
        """Return the text document and position that line_id and symbol name."""
        if self.params.get("line_id") is None or self.symbol is None:
            hint = f"Call {call_text('read', file_path=self.path)} for the IDs, then give the ID of a line and a name in it."
            raise UsageError("position_missing", "This action needs line_id and symbol.", hint)
        position = queries.position_of(self.project, self.path, self.params["line_id"], self.symbol, self.params["occurrence"])
        return {"textDocument": {"uri": self.uri}, "position": position}

    def ask(self, capability: str, method: str, params: dict[str, Any]) -> Any:
        """Ask the server, if it offers that."""
        if self.symbol is not None and capability in ("referencesProvider", "renameProvider"):
            # Servers know only opened files: an answer without the others would mislead.
            queries.show_mentions(self.project, self.path, self.symbol)
        session = self.project.session
        if not session.offers(capability):
            message = f"{session.server.name} does not offer {method.partition('/')[2]}."
            hint = f"Use grep, or configure another server in {user_dirs.settings_file('lsp.yaml')}."
            raise LanguageServerError("not_offered", message, hint)
        return session.wire.request(method, params, self.params["timeout"])


def _diagnostics(question: _Question) -> dict[str, Any]:
    rows = queries.diagnosed(question.project, question.path, question.params["timeout"])
    lines = [queries.described(question.path, row, question.project.form) for row in rows] or [
        f"{question.path}: no diagnostics"
    ]
    call = f"edit_lines on the first ones, then {call_text('lsp', file_path=question.path)}"
    counts = {kind: sum(row["severity"] == kind for row in rows) for kind in ("error", "warning")}
    return queries.answer(question.project, lines, call, "diagnostics", diagnostics=rows, counts=counts)


def _places(question: _Question) -> dict[str, Any]:
    """Return where a symbol is defined, or used."""
    kind = question.params["action"]
    more = {"context": {"includeDeclaration": True}} if kind == "references" else {}
    found = question.ask(f"{kind}Provider", f"textDocument/{kind}", {**question.at(), **more})
    given = found if isinstance(found, list) else [found] if found else []
    pairs = [
        (str(one.get("uri") or one.get("targetUri")), (one.get("range") or one["targetSelectionRange"])["start"])
        for one in given
    ]
    places = sorted(
        queries.locations_of(question.project, pairs),
        key=lambda place: (place.line_id is None, place.path, place.line, place.column),
    )
    lines = [place.shown(question.project.form) for place in places] or [f"No {kind} of {question.symbol!r} was found."]
    rows = [place.fields() for place in places]
    return queries.answer(
        question.project, lines, call_text("grep", pattern=question.symbol), "places", locations=rows, count=len(rows)
    )


def _hover(question: _Question) -> dict[str, Any]:
    found = question.ask("hoverProvider", "textDocument/hover", question.at())
    text = plain(_markup((found or {}).get("contents", "")), _HOVER, lines=True).strip()
    return queries.answer(
        question.project, text.split("\n") if text else ["Nothing is known there."], "read", "lines", text=text
    )


def _markup(contents: Any) -> str:
    if isinstance(contents, list):
        return "\n\n".join(filter(None, map(_markup, contents)))
    return str(contents.get("value", "")) if isinstance(contents, dict) else str(contents)


def _symbols(question: _Question) -> dict[str, Any]:
    query = question.params.get("query")
    if query is not None:
        found = question.ask("workspaceSymbolProvider", "workspace/symbol", {"query": query}) or []
        flat = [(0, one, str(one["location"]["uri"]), one["location"].get("range")) for one in found]
    else:
        found = (
            question.ask("documentSymbolProvider", "textDocument/documentSymbol", {"textDocument": {"uri": question.uri}}) or []
        )
        flat = _flat(found, question.uri)
    # Some servers list symbols without a place.
    flat = [one for one in flat if one[3] is not None][:_MAX_SYMBOLS]
    places = queries.locations_of(question.project, [(uri, span["start"]) for _, _, uri, span in flat])
    rows, lines, form = [], [], question.project.form
    for (depth, one, _, _), place in zip(flat, places, strict=True):
        kind = _KINDS[one["kind"] if 0 < one.get("kind", 0) < len(_KINDS) else 0]
        name = plain(str(one.get("name", "")), 200)
        rows.append({"name": name, "kind": kind, "depth": depth, **place.fields()})
        lines.append(f"{'  ' * depth}{kind} {name} {place.path}:{place.line} {queries.named(place.line_id, form)}".rstrip())
    return queries.answer(question.project, lines or ["No symbols."], "grep", "symbols", symbols=rows, count=len(rows))


def _flat(found: list[dict[str, Any]], uri: str, depth: int = 0) -> list[tuple[int, dict[str, Any], str, Any]]:
    out: list[tuple[int, dict[str, Any], str, Any]] = []
    for one in found:
        location = one.get("location") or {}
        out.append((depth, one, str(location.get("uri", uri)), one.get("selectionRange") or location.get("range")))
        out += _flat(one.get("children") or [], uri, depth + 1)
    return out


def _rename(question: _Question) -> dict[str, Any]:
    new_name = question.params.get("new_name")
    if not new_name:
        raise UsageError("new_name_missing", "rename needs new_name.", "Give the name that the symbol shall have.")
    found = question.ask("renameProvider", "textDocument/rename", {**question.at(), "newName": new_name})
    # A symbol may be given with brackets; the files to be changed contain only its name.
    word = re.match(r"\w*", question.symbol or "")
    return _changed(question, file_edits(found), f"Renamed {question.symbol} to {new_name}", word[0] if word else "")


def _format(question: _Question) -> dict[str, Any]:
    options = {"tabSize": 4, "insertSpaces": True, "trimTrailingWhitespace": True, "insertFinalNewline": False}
    params = {"textDocument": {"uri": question.uri}, "options": options}
    found = question.ask("documentFormattingProvider", "textDocument/formatting", params)
    return _changed(question, {question.uri: found or []}, f"Formatted {question.path}")


def _changed(question: _Question, edits: dict[str, list[dict[str, Any]]], what: str, holding: str = "") -> dict[str, Any]:
    result = change_files(question.project, edits, "rye/lsp/lsp", dry_run=question.params["dry_run"], holding=holding)
    if not result.files:
        return ok(f"Nothing to change in {question.path}.", files=[], changed=0, server=question.project.session.server.name)
    dry_run = question.params["dry_run"]
    summary = f"{what}{' (dry run: nothing was written)' if dry_run else ''}: {len(result.files)} files."
    undo = [] if result.batch is None else [f"{call_text('undo', entry_id=history.short(result.batch))} takes all of it back."]
    lines = [summary, *undo, *result.diff]
    return queries.answer(
        question.project,
        lines,
        "read of the changed files",
        "lines",
        files=result.files,
        changed=len(result.files),
        dry_run=dry_run,
        warnings=result.warnings,
        **({} if result.batch is None else {"batchId": result.batch}),
    )


_ACTIONS = {one.__name__[1:]: one for one in (_diagnostics, _hover, _symbols, _rename, _format)}
_ACTIONS |= dict.fromkeys(("definition", "references"), _places)

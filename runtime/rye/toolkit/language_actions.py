"""The actions of `rye/lsp/lsp`, each from a question of the Language Server Protocol to a result of this project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rye.errors import UsageError
from rye.toolkit import commits, language
from rye.toolkit.lsp_session import uri_of
from rye.toolkit.lsp_wire import LanguageServerError
from rye.toolkit.output import ok
from rye.toolkit.refactoring import change_files, file_edits
from rye.toolkit.untrusted import plain
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from rye.toolkit.language import Project

_HOVER = 8_000
_MAX_SYMBOLS = 1_000
# SymbolKind of the protocol.
_KINDS = (
    "", "file", "module", "namespace", "package", "class", "method", "property", "field", "constructor", "enum", "interface",
    "function", "variable", "constant", "string", "number", "boolean", "array", "object", "key", "null", "enum member",
    "struct", "event", "operator", "type parameter",
)  # fmt: skip


def lsp(
    project_path: str, file_path: str, action: str = "diagnostics", line_id: str | None = None, symbol: str | None = None,
    occurrence: int = 1, new_name: str | None = None, query: str | None = None, timeout: float = 60, *, dry_run: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/lsp/lsp`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        UsageError: `position_missing`, `unknown_line_id`, `symbol_not_found`, `new_name_missing`, `bad_config`.
        LanguageServerError: `no_language`, `server_missing`, `server_timeout`, `server_died`, `server_refused`, `not_offered`,
            `bad_answer`.
        WorkspaceError, EditError: as the commit of several files.
    """
    if action in ("rename", "format"):
        with Workspace(project_path) as ws:
            commits.recover(ws)
    with language.known(project_path, file_path) as (project, path):
        asked = _Asked(project, path, line_id, symbol, occurrence, new_name, query, timeout, dry_run)
        if action in ("rename", "format"):
            return _ACTIONS[action](asked)
        try:
            return _ACTIONS[action](asked)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as err:
            told = f"{project.session.server.name} gave an answer to {action} that the protocol does not know."
            raise LanguageServerError("bad_answer", told, "Use grep and read instead.") from err


class _Asked:
    """A question, with what the answers share."""

    def __init__(
        self, project: Project, path: str, line_id: str | None, symbol: str | None, occurrence: int, new_name: str | None,
        query: str | None, timeout: float, dry_run: bool,
    ) -> None:  # fmt: skip
        self.project, self.path, self.line_id, self.symbol, self.occurrence = project, path, line_id, symbol, occurrence
        self.new_name, self.query, self.timeout, self.dry_run = new_name, query, timeout, dry_run
        self.uri = uri_of(project.absolute(path))

    def at(self) -> dict[str, Any]:
        """Return the text document and position that line_id and symbol name."""
        if self.line_id is None or self.symbol is None:
            raise UsageError(
                "position_missing", "This action needs line_id and symbol.",
                f'Call read(file_path="{self.path}") for the IDs, then give the ID of a line and a name in it.',
            )  # fmt: skip
        position = language.position_of(self.project, self.path, self.line_id, self.symbol, self.occurrence)
        return {"textDocument": {"uri": self.uri}, "position": position}

    def ask(self, capability: str, method: str, params: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
        """Ask the server, if it offers that."""
        if self.symbol is not None and capability in ("referencesProvider", "renameProvider"):
            # An answer that leaves out a file nobody opened yet would be worse than none.
            language.show_mentions(self.project, self.path, self.symbol)
        session = self.project.session
        if not session.offers(capability):
            told = f"{session.server.name} does not offer {method.partition('/')[2]}."
            raise LanguageServerError("not_offered", told, "Use grep, or configure another server in ~/.ai/config/lsp.yaml.")
        return session.ask(method, params, self.timeout)


def _diagnostics(asked: _Asked) -> dict[str, Any]:
    rows = language.diagnosed(asked.project, asked.path, asked.timeout)
    lines = [language.described(asked.path, row) for row in rows] or [f"{asked.path}: no diagnostics"]
    call = f'edit_lines on the first ones, then lsp(file_path="{asked.path}")'
    counts = {kind: sum(row["severity"] == kind for row in rows) for kind in ("error", "warning")}
    return language.answer(asked.project, lines, call, "diagnostics", diagnostics=rows, counts=counts)


def _definition(asked: _Asked) -> dict[str, Any]:
    found = asked.ask("definitionProvider", "textDocument/definition", asked.at())
    return _places(asked, found, "definition")


def _references(asked: _Asked) -> dict[str, Any]:
    found = asked.ask("referencesProvider", "textDocument/references", {**asked.at(), "context": {"includeDeclaration": True}})
    return _places(asked, found, "references")


def _places(asked: _Asked, found: Any, what: str) -> dict[str, Any]:  # noqa: ANN401 - JSON
    given = found if isinstance(found, list) else [found] if found else []
    pairs = [
        (str(one.get("uri") or one.get("targetUri")), (one.get("range") or one["targetSelectionRange"])["start"])
        for one in given
    ]
    places = sorted(
        language.spots(asked.project, pairs), key=lambda spot: (spot.line_id is None, spot.path, spot.line, spot.column)
    )
    lines = [spot.shown() for spot in places] or [f"No {what} of {asked.symbol!r} was found."]
    rows = [spot.fields() for spot in places]
    return language.answer(asked.project, lines, f'grep(pattern="{asked.symbol}")', "places", locations=rows, count=len(rows))


def _hover(asked: _Asked) -> dict[str, Any]:
    found = asked.ask("hoverProvider", "textDocument/hover", asked.at())
    text = plain(_markup((found or {}).get("contents", "")), _HOVER, lines=True).strip()
    return language.answer(asked.project, text.split("\n") if text else ["Nothing is known there."], "read", "lines", text=text)


def _markup(contents: Any) -> str:  # noqa: ANN401 - a string, a marked string, or a list of them
    if isinstance(contents, list):
        return "\n\n".join(filter(None, map(_markup, contents)))
    return str(contents.get("value", "")) if isinstance(contents, dict) else str(contents)


def _symbols(asked: _Asked) -> dict[str, Any]:
    if asked.query is not None:
        found = asked.ask("workspaceSymbolProvider", "workspace/symbol", {"query": asked.query}) or []
        flat = [(0, one, str(one["location"]["uri"]), one["location"].get("range")) for one in found]
    else:
        found = asked.ask("documentSymbolProvider", "textDocument/documentSymbol", {"textDocument": {"uri": asked.uri}}) or []
        flat = _flat(found, asked.uri)
    flat = [one for one in flat if one[3] is not None][:_MAX_SYMBOLS]
    places = language.spots(asked.project, [(uri, span["start"]) for _, _, uri, span in flat])
    rows, lines = [], []
    for (depth, one, _, _), spot in zip(flat, places, strict=True):
        kind = _KINDS[one["kind"]] if 0 < one.get("kind", 0) < len(_KINDS) else "symbol"
        name = plain(str(one.get("name", "")), 200)
        rows.append({"name": name, "kind": kind, "depth": depth, **spot.fields()})
        lines.append(f"{'  ' * depth}{kind} {name} {spot.path}:{spot.line} {language.named(spot.line_id)}")
    return language.answer(asked.project, lines or ["No symbols."], "grep", "symbols", symbols=rows, count=len(rows))


def _flat(found: list[dict[str, Any]], uri: str, depth: int = 0) -> list[tuple[int, dict[str, Any], str, Any]]:
    out: list[tuple[int, dict[str, Any], str, Any]] = []
    for one in found:
        location = one.get("location") or {}
        out.append((depth, one, str(location.get("uri", uri)), one.get("selectionRange") or location.get("range")))
        out += _flat(one.get("children") or [], uri, depth + 1)
    return out


def _rename(asked: _Asked) -> dict[str, Any]:
    if not asked.new_name:
        raise UsageError("new_name_missing", "rename needs new_name.", "Give the name that the symbol shall have.")
    found = asked.ask("renameProvider", "textDocument/rename", {**asked.at(), "newName": asked.new_name})
    return _changed(asked, file_edits(found), f"Renamed {asked.symbol} to {asked.new_name}")


def _format(asked: _Asked) -> dict[str, Any]:
    options = {"tabSize": 4, "insertSpaces": True, "trimTrailingWhitespace": True, "insertFinalNewline": False}
    params = {"textDocument": {"uri": asked.uri}, "options": options}
    found = asked.ask("documentFormattingProvider", "textDocument/formatting", params)
    return _changed(asked, {asked.uri: found or []}, f"Formatted {asked.path}")


def _changed(asked: _Asked, edits: dict[str, list[dict[str, Any]]], what: str) -> dict[str, Any]:
    done = change_files(asked.project, edits, "rye/lsp/lsp", dry_run=asked.dry_run)
    if not done.files:
        return ok(f"Nothing to change in {asked.path}.", files=[], changed=0, server=asked.project.session.server.name)
    said = f"{what}{' (dry run: nothing was written)' if asked.dry_run else ''}: {len(done.files)} files."
    undo = [] if done.batch is None else [f'undo(batchId="{done.batch}") takes all of it back.']
    lines = [said, *undo, *done.diff]
    return language.answer(
        asked.project, lines, "read of the changed files", "lines", files=done.files, changed=len(done.files),
        dry_run=asked.dry_run, warnings=done.warnings, **({} if done.batch is None else {"batchId": done.batch}),
    )  # fmt: skip


_ACTIONS: dict[str, Callable[[_Asked], dict[str, Any]]] = {
    "diagnostics": _diagnostics, "definition": _definition, "references": _references, "hover": _hover, "symbols": _symbols,
    "rename": _rename, "format": _format,
}  # fmt: skip

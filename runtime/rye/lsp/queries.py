"""Questions to a language server, answered with project paths and line IDs."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rye.call.context import output_budget
from rye.call.results import Page, call_text, cut_notice, ok
from rye.call.safe_text import plain
from rye.config import user_dirs
from rye.errors import UsageError, WorkspaceError
from rye.filesearch import tree as filesearch_tree
from rye.filesearch.ripgrep import Pattern
from rye.line_ids import document as documents
from rye.line_ids.document import Document
from rye.line_ids.render import Row
from rye.lsp import servers
from rye.lsp.connection import LanguageServerError
from rye.lsp.positions import Positions, path_of, uri_of
from rye.lsp.session import ANSWER_SECONDS, MAX_FILES, ServerSession, session
from rye.plain_class import Record
from rye.sandbox import hidden_paths, sandbox
from rye.sandbox.policy import Confined, Policy
from rye.workspace.encoding import detect
from rye.workspace.workspace import Identity, Workspace

_SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}
_NOTICES = 1_000
_MAX_MENTIONS = 500
_MESSAGE = 2_000
# Sources of dependencies beside the folder of programs, which servers of these languages read.
_LIBRARIES = {".cargo": ("registry", "git"), "go": ("pkg",)}


class Project(Record, frozen=False):
    """An open project, its language server session, and the texts and documents that this call has read.

    `form`: how lines are named, as `addresses.FORMS`.
    """

    ws: Workspace
    session: ServerSession
    texts: dict[str, Positions]
    form: str = "lid"

    def positions(self, path: str) -> Positions | None:
        """Return a project file's text for positions; None where it is no text of this project."""
        if path not in self.texts:
            text = read_text(self.ws, path)
            if text is None:
                return None
            self.texts[path] = Positions(text)
        return self.texts[path]

    def inside(self, uri: str) -> str | None:
        """Return the project-relative path of a URI; None for what lies outside."""
        path = path_of(uri)
        root = self.ws.root.rstrip("/") + "/"
        return path.removeprefix(root) if path is not None and path.startswith(root) else None

    def absolute(self, path: str) -> str:
        """Return a project file's absolute path."""
        return os.path.join(self.ws.root, path)


def read_text(ws: Workspace, path: str) -> str | None:
    """Return a file's text exactly, byte order mark apart; None where its bytes are not wholly text."""
    try:
        with ws.file(path) as file:
            data = file.read()
    except WorkspaceError:
        return None
    code = detect(data)
    try:
        text = data[len(code.bom) :].decode(code.name)
    except UnicodeError:
        return None
    return text if code.bom + text.encode(code.name) == data else None


@contextmanager
def open_for_query(project_path: str, file_path: str, seconds: float) -> Iterator[tuple[Project, str]]:
    """Open the session that knows a file, with every change reported to its server; yield the file's physical path.

    `seconds` is how long it may wait for another caller's question.

    Raises:
        LanguageServerError: see `servers.server_for` and `session.session`; `not_text`.
        WorkspaceError: as `Workspace.open_file`.
    """
    with Workspace(project_path) as ws:
        with ws.file(file_path) as file:
            path = file.shown
        server = servers.server_for(ws.root, path)
        root = _root_of(ws, path, server.markers)
        found = session(root, server, lambda: start_confined(server.argv, ws.root, ws.identity), ws.identity)
        with found.locked(seconds):
            project = Project(ws, found, {})

            def text_at(absolute: str) -> str | None:
                relative = project.inside(uri_of(absolute))
                known = project.positions(relative) if relative is not None else None
                return known.text if known is not None else None

            found.look(ws, text_at)
            positions = project.positions(path)
            if positions is None:
                raise LanguageServerError("not_text", f"{path} is not wholly text in its encoding.", "Use read to look at it.")
            found.show(project.absolute(path), positions.text)
            yield project, path
            found.cold = False


def start_confined(argv: tuple[str, ...], root: str, identity: Identity | None = None) -> Confined:
    """Start servers in a sandbox that lets them read the project and change nothing.

    Some servers run the project's code (plugins, build scripts, its own compiler). Without any sandbox none is started, unless
    the user turned the sandbox off.

    They write nothing, so no look at repositories follows. `identity` is what the root was when it was opened.

    Raises:
        LanguageServerError: `sandbox_missing`. RyeError: `sandbox_unavailable`. WorkspaceError: `project_changed`.
    """
    settings = sandbox.effective(root)
    programs = hidden_paths.programs(os.path.dirname(argv[0]), hidden_paths.home_folders())
    needed = (*programs, *_package(os.path.realpath(argv[0])), sys.prefix, sys.base_prefix)
    policy = Policy(
        root, root, write_project=False, network="off", extra_read=needed, pass_env=settings.pass_env, identity=identity
    )
    confined = sandbox.confine(list(argv), policy, settings.mode)
    if confined.report["kind"] == "none" and settings.mode != "off":
        why = "; ".join(sorted(set(sandbox.layers().values())))
        raise LanguageServerError(
            "sandbox_missing",
            f"A language server may run what the project's files say, and nothing here confines it: {why}.",
            "Install bubblewrap. For projects they trust, your user can set sandbox: {mode: off} in "
            f"{user_dirs.settings_file()}.",
        )
    return confined


def _package(program: str) -> tuple[str, ...]:
    """Return the folders that a program needs to run: its `node_modules`, or its installation and its libraries.

    In a folder such as `~/.local` only the programs count: the rest is the user's own.
    """
    above, found, _ = program.rpartition(f"{os.sep}node_modules{os.sep}")
    if found:
        return (f"{above}{os.sep}node_modules",)
    folder = os.path.dirname(program)
    prefix = os.path.dirname(folder)
    libraries = _LIBRARIES.get(os.path.basename(prefix), ())
    return (*hidden_paths.programs(folder, hidden_paths.home_folders()), *(os.path.join(prefix, name) for name in libraries))


def _root_of(ws: Workspace, path: str, markers: tuple[str, ...]) -> str:
    """Return the nearest folder above a file, within the project, that contains a marker; else the project's root."""
    folder = os.path.dirname(path)
    while True:
        folder_path = os.path.join(ws.root, folder) if folder else ws.root
        if any(os.path.lexists(os.path.join(folder_path, marker)) for marker in markers) or not folder:
            return folder_path
        folder = os.path.dirname(folder)


def show_mentions(project: Project, path: str, symbol: str) -> None:
    """Open every file of the language that contains a name, because servers know only files that were opened.

    Raises:
        LanguageServerError: `too_many_files`.
    """
    globs = tuple(f"*{suffix}" for suffix in project.session.server.languages)
    mentions: list[str] = []
    with filesearch_tree.opened(project.ws, ".") as tree:
        view = filesearch_tree.view_of(tree, hidden=False, no_ignore=False)._replace(names=globs)
        for found in tree.counts(Pattern(symbol, False, True, False), view):
            mentions += [name.removeprefix("./") for name, _ in found]
    if len(mentions) > _MAX_MENTIONS:
        message = f"{len(mentions)} files contain {symbol!r}, more than {_MAX_MENTIONS}."
        raise LanguageServerError("too_many_files", message, "Use grep, and change them with edit_lines.")
    for name in sorted(mentions):
        positions = project.positions(name)
        if name != path and positions is not None:
            project.session.show(project.absolute(name), positions.text)


class Location(Record):
    """A place in the project or outside it.

    Attributes:
        path: project-relative, or absolute where it lies outside.
        line: from 1.
        column: from 1, in characters.
        line_id: None outside the project, if IDs cannot be stored, and where none are asked for.
        text: the line, without its end.
    """

    path: str
    line: int
    column: int
    line_id: str | None
    text: str

    def fields(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"file": self.path, "line": self.line, "column": self.column, "line_id": self.line_id, "text": self.text}

    def shown(self, form: str) -> str:
        """Return it as one line of output, its line named by a form of `addresses.FORMS`."""
        if os.path.isabs(self.path):
            return f"{self.path}:{self.line}:{self.column}: (outside the project)"
        return f"{self.path}:{self.line}:{self.column}: {named(self.line_id, form)}{self.text}"


def named(line_id: str | None, form: str) -> str:
    """Return a line's ID or short address as output shows it, and a blank; a line has none if IDs cannot be stored."""
    if form == "none":
        return ""
    if line_id is None:
        return "[no LID] "
    return f"[{line_id}] " if form == "short" else f"[LID:{line_id}] "


def locations_of(project: Project, locations: list[tuple[str, dict[str, Any]]]) -> list[Location]:
    """Return places for (URI, protocol position) pairs, in their order; lines of this project get their IDs."""
    places_by_path: dict[str, list[tuple[int, int, int]]] = {}
    out: list[Location | None] = [None] * len(locations)
    for at, (uri, position) in enumerate(locations):
        path = project.inside(uri)
        positions = project.positions(path) if path is not None else None
        if path is None or positions is None:
            name = plain(path_of(uri) or uri, 500)
            out[at] = Location(name, int(position["line"]) + 1, int(position["character"]) + 1, None, "")
        else:
            places_by_path.setdefault(path, []).append((at, *positions.line(positions.offset(position))))
    for path, places in places_by_path.items():
        rows = _rows(project, path, {line for _, line, _ in places})
        for at, line, column in places:
            row = rows.get(line)
            called = {"lid": row.id, "short": row.short}.get(project.form) if row else None
            out[at] = Location(path, line, column, called, row.text[:_MESSAGE] if row else "")
    return [place for place in out if place is not None]


def _rows(project: Project, path: str, numbers: set[int]) -> dict[int, Row]:
    """Return some lines of a file (number from 1) with their IDs, and record that these are shown."""
    if project.form != "none":
        try:
            with documents.view(project.ws, path) as document:
                rows = _some(document, numbers, ids=True)
                document.shown(*{(row.number - 1, row.number) for row in rows.values()}, short=project.form == "short")
                return rows
        except WorkspaceError as err:
            if err.code not in documents.IDS_NOT_STORED:
                raise
    with documents.without_ids(project.ws, path) as document:
        return _some(document, numbers, ids=False)


def _some(document: Document, numbers: set[int], *, ids: bool) -> dict[int, Row]:
    count = document.text.count
    # A server may name the line after the last one.
    ends = {number: min(number, count) for number in numbers} if count else {}
    return {number: document.rows(end - 1, end, ids=ids)[0] for number, end in ends.items()}


def position_of(project: Project, path: str, line_id: str | int, symbol: str, occurrence: int) -> dict[str, int]:
    """Return the protocol's position of a name in the line that an ID names.

    Raises:
        UsageError: `unknown_line_id`, `symbol_not_found`.
    """
    with documents.view(project.ws, path) as document:
        document.name([(0, min(document.text.count, 2_000))])
        try:
            at, _ = document.lines_named(re.sub(r"^\[?(?:LID:)?|\]$", "", str(line_id).strip()), None)
        except UsageError:
            hint = f"Call {call_text('read', file_path=path)} to see the IDs."
            raise UsageError("unknown_line_id", f"No line of {path} has the ID {line_id!r}.", hint) from None
    positions = project.positions(path)
    assert positions is not None  # the file was shown to the server
    start = positions.start(at + 1)
    line = positions.text[start:].partition("\n")[0]
    name = re.escape(symbol)
    found = [match.start() for match in re.finditer(rf"(?<!\w){name}(?!\w)" if symbol.isidentifier() else name, line)]
    if len(found) < occurrence:
        why = f"The line [LID:{line_id}] {line.strip()[:200]!r} contains {symbol!r} {len(found)} times."
        remedy = "Give a symbol exactly as it is written in the line; occurrence counts from 1."
        raise UsageError("symbol_not_found", why, remedy)
    return positions.at(start + found[occurrence - 1])


def diagnosed(project: Project, path: str, seconds: float = ANSWER_SECONDS) -> list[dict[str, Any]]:
    """Return a file's diagnostics: `[{line, column, severity, message, code, source, line_id, text}]`, in order of place."""
    published = project.session.diagnostics(project.absolute(path), seconds)
    uri = uri_of(project.absolute(path))
    placed = locations_of(project, [(uri, one["range"]["start"]) for one in published])
    rows = [
        {
            "line": place.line,
            "column": place.column,
            "severity": _SEVERITIES.get(one.get("severity", 1), "error"),
            "message": plain(str(one.get("message", "")), _MESSAGE, lines=True),
            "code": plain(str(one.get("code") or ""), 100),
            "source": plain(str(one.get("source") or ""), 100),
            "line_id": place.line_id,
            "text": place.text,
        }
        for one, place in zip(published, placed, strict=True)
    ]
    return sorted(rows, key=lambda row: (row["line"], row["column"], row["severity"], row["message"]))


def described(path: str, row: dict[str, Any], form: str) -> str:
    """Return a diagnostic as one line: `path:line:col: severity: message [code] [LID:…]`."""
    message = " ".join(row["message"].split())
    code = f" ({row['code']})" if row["code"] else ""
    return f"{path}:{row['line']}:{row['column']}: {row['severity']}: {message}{code} {named(row['line_id'], form)}".rstrip()


def answer(project: Project, lines: list[str], call: str, unit: str, **fields: Any) -> dict[str, Any]:
    """Return a result of as many lines as fit, with the server's name and state."""
    page = Page(output_budget() - _NOTICES)
    count = page.fill(lines)
    output = list(page.lines)
    if count < len(lines):
        output.append(cut_notice(count, len(lines), unit, call))
    state = "started for this call" if project.session.cold else "warm"
    if project.session.cold:
        output.append(f"({project.session.server.name} was started for this call; the next one in this process is faster)")
    if not project.session.sees_all:
        output.append(
            f"(only the first {MAX_FILES:,} source files are watched: changes elsewhere may be unknown to the server)"
        )
    return ok("\n".join(output), truncated=count < len(lines), server=project.session.server.name, server_state=state, **fields)

"""What `rye/lsp/lsp` answers: a language server's knowledge of the project, every place with its line ID."""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from rye.errors import RyeError, UsageError, WorkspaceError
from rye.record import Record
from rye.toolkit import document as documents
from rye.toolkit import hidden, lines, lsp_servers, sandbox, walk
from rye.toolkit.encoding import detect
from rye.toolkit.lsp_session import ANSWER_SECONDS, Started, path_of, session, uri_of
from rye.toolkit.lsp_wire import LanguageServerError
from rye.toolkit.output import envelope, ok, output_room
from rye.toolkit.pages import Page
from rye.toolkit.policy import Policy
from rye.toolkit.positions import Positions
from rye.toolkit.ripgrep import Pattern, View
from rye.toolkit.source_files import MAX_FILES
from rye.toolkit.untrusted import plain
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rye.toolkit.document import Document
    from rye.toolkit.lsp_session import Session
    from rye.toolkit.rows import Row

_SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}
_NOTICES = 1_000
_MAX_MENTIONS = 500
_MESSAGE = 2_000
# Sources of dependencies beside the folder of programs, which servers of these languages read.
_LIBRARIES = {".cargo": ("registry", "git"), "go": ("pkg",)}


class Project(Record, frozen=False):
    """A project, the session that knows it, the texts already looked at, and of some their lines with IDs."""

    ws: Workspace
    session: Session
    texts: dict[str, Positions]
    indexed: dict[str, Document]

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
def known(project_path: str, file_path: str) -> Iterator[tuple[Project, str]]:
    """Hold the session that knows a file, told of all that changed; give the file's physical path.

    Raises:
        LanguageServerError: see `lsp_servers.server_for` and `lsp_session.session`; `not_text`.
        WorkspaceError: as `Workspace.open_file`.
    """
    with Workspace(project_path) as ws:
        with ws.file(file_path) as file:
            path = file.shown
        server = lsp_servers.server_for(ws.root, path)
        root = _root_of(ws, path, server.markers)
        found = session(root, server, lambda: confined(server.argv, ws.root))
        with found.held():
            project = Project(ws, found, {}, {})
            found.refresh(ws.root, found.sources_of(ws.root).stamps(ws), lambda one: _text_at(project, one))
            positions = project.positions(path)
            if positions is None:
                raise LanguageServerError("not_text", f"{path} is not wholly text in its encoding.", "Use read to look at it.")
            found.show(project.absolute(path), positions.text)
            yield project, path
            found.cold = False


def _text_at(project: Project, absolute: str) -> str | None:
    relative = project.inside(uri_of(absolute))
    positions = project.positions(relative) if relative is not None else None
    return positions.text if positions is not None else None


def confined(argv: tuple[str, ...], root: str) -> Started:
    """Start servers where they can read the project and change nothing: what they read is somebody else's code.

    Some run it too (plugins, build scripts, a project's own compiler), so without any sandbox none is started unless the user
    turned the sandbox off.

    Raises:
        LanguageServerError: `sandbox_missing`. RyeError: `sandbox_unavailable`.
    """
    settings = sandbox.effective(root)
    needed = (*hidden.programs(os.path.dirname(argv[0])), *_package(os.path.realpath(argv[0])), sys.prefix, sys.base_prefix)
    policy = Policy(root, root, write_project=False, network="off", extra_read=needed, pass_env=settings.pass_env)
    confined = sandbox.confine(list(argv), policy, settings.mode)
    if confined.report["kind"] == "none" and settings.mode != "off":
        why = "; ".join(sorted(set(sandbox.layers().values())))
        raise LanguageServerError(
            "sandbox_missing", f"A language server may run what the project's files say, and nothing here confines it: {why}.",
            "Install bubblewrap. For projects they trust, your user can set sandbox: {mode: off} in ~/.ai/config/rye.yaml.",
        )  # fmt: skip
    return Started(confined.argv, confined.env, confined.fds, confined.close, confined.finish, confined.report)


def _package(program: str) -> tuple[str, ...]:
    """Return the folders with all that a program consists of: its `node_modules`, or its installation and its libraries.

    Of a folder like `~/.local` that is the programs alone: what else lies there is the user's own.
    """
    above, found, _ = program.rpartition(f"{os.sep}node_modules{os.sep}")
    if found:
        return (f"{above}{os.sep}node_modules",)
    folder = os.path.dirname(program)
    prefix = os.path.dirname(folder)
    libraries = _LIBRARIES.get(os.path.basename(prefix), ())
    return (*hidden.programs(folder), *(os.path.join(prefix, name) for name in libraries))


def _root_of(ws: Workspace, path: str, markers: tuple[str, ...]) -> str:
    """Return the nearest folder at or above a file, within the project, that holds a marker; else the project's root."""
    folder = os.path.dirname(path)
    while True:
        here = os.path.join(ws.root, folder) if folder else ws.root
        if any(os.path.lexists(os.path.join(here, marker)) for marker in markers) or not folder:
            return here
        folder = os.path.dirname(folder)


def show_mentions(project: Project, path: str, symbol: str) -> None:
    """Show the server every file of the language that holds a name, so that none is unknown to it.

    Raises:
        LanguageServerError: `too_many_files`.
    """
    globs = tuple(f"*{suffix}" for suffix in project.session.server.languages)
    mentions: list[str] = []
    with walk.held(project.ws, ".") as tree:
        view = View(False, False, globs, walk.inherited(tree), closed=walk.closed(tree))
        for found in tree.counts(Pattern(symbol, False, True, False), view):
            mentions += [name.removeprefix("./") for name, _ in found]
    if len(mentions) > _MAX_MENTIONS:
        told = f"{len(mentions)} files hold {symbol!r}, more than {_MAX_MENTIONS}."
        raise LanguageServerError("too_many_files", told, "Use grep, and change them with edit_lines.")
    for name in sorted(mentions):
        positions = project.positions(name)
        if name != path and positions is not None:
            project.session.show(project.absolute(name), positions.text)


class Spot(Record):
    """A place in the project or outside it.

    Attributes:
        path: project-relative, or absolute where it lies outside.
        line: from 1.
        column: from 1, in characters.
        line_id: None outside the project, and where IDs cannot be kept.
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

    def shown(self) -> str:
        """Return it as one line of output."""
        if os.path.isabs(self.path):
            return f"{self.path}:{self.line}:{self.column}: (outside the project)"
        return f"{self.path}:{self.line}:{self.column}: {named(self.line_id)} {self.text}"


def named(line_id: str | None) -> str:
    """Return a line's ID as it stands in output; a line has none where IDs cannot be kept."""
    return f"[LID:{line_id}]" if line_id is not None else "[no LID]"


def spots(project: Project, given: list[tuple[str, dict[str, Any]]]) -> list[Spot]:
    """Return places for (URI, protocol position) pairs, in their order; lines of this project get their IDs."""
    wanted: dict[str, list[tuple[int, int, int]]] = {}
    out: list[Spot | None] = [None] * len(given)
    for at, (uri, position) in enumerate(given):
        path = project.inside(uri)
        positions = project.positions(path) if path is not None else None
        if path is None or positions is None:
            name = plain(path_of(uri) or uri, 500)
            out[at] = Spot(name, int(position["line"]) + 1, int(position["character"]) + 1, None, "")
        else:
            wanted.setdefault(path, []).append((at, *positions.line(positions.offset(position))))
    for path, places in wanted.items():
        rows = _rows(project, path, {line for _, line, _ in places})
        for at, line, column in places:
            row = rows.get(line)
            out[at] = Spot(path, line, column, row.id if row else None, row.text[:_MESSAGE] if row else "")
    return [spot for spot in out if spot is not None]


def _rows(project: Project, path: str, numbers: set[int]) -> dict[int, Row]:
    """Return some lines of a file (number from 1) with their IDs, and record that these are shown."""
    known = project.indexed.get(path)
    if known is not None and _shown_before(known, numbers):
        return {number: known.rows(number - 1, number)[0] for number in numbers}
    try:
        with documents.view(project.ws, path) as document:
            rows = _some(document, numbers, ids=True)
            document.shown(*{(row.number - 1, row.number) for row in rows.values()})
            return rows
    except WorkspaceError as err:
        if err.code not in documents.UNKEPT:
            raise
    with documents.unnamed(project.ws, path) as document:
        return _some(document, numbers, ids=False)


def _some(document: Document, numbers: set[int], *, ids: bool) -> dict[int, Row]:
    count = document.text.count
    # A server may name the line after the last one.
    ends = {number: min(number, count) for number in numbers} if count else {}
    return {number: document.rows(end - 1, end, ids=ids)[0] for number, end in ends.items()}


def _shown_before(document: Document, numbers: set[int]) -> bool:
    """Tell whether some lines of a file read whole were printed as they are, so that nothing is new to be kept."""
    marks = document.index.marks
    if document.data is None or not all(number - 1 in marks for number in numbers):
        return False
    return not any(lines.note_shown(document.index, number - 1, number) for number in numbers)


def position_of(project: Project, path: str, line_id: str, symbol: str, occurrence: int) -> dict[str, int]:
    """Return the protocol's position of a name in the line that an ID names.

    Raises:
        UsageError: `unknown_line_id`, `symbol_not_found`.
    """
    with documents.view(project.ws, path) as document:
        document.name([(0, min(document.text.count, 2_000))])
        at = document.index.positions().get(re.sub(r"^\[?LID:|\]$", "", line_id.strip()))
    if at is None:
        raise UsageError(
            "unknown_line_id", f"No line of {path} has the ID {line_id!r}.", f'Call read(file_path="{path}") to see the IDs.'
        )
    positions = project.positions(path)
    assert positions is not None  # noqa: S101 - the file was shown to the server
    start = positions.start(at + 1)
    line = positions.text[start:].partition("\n")[0]
    name = re.escape(symbol)
    found = [match.start() for match in re.finditer(rf"(?<!\w){name}(?!\w)" if symbol.isidentifier() else name, line)]
    if len(found) < occurrence:
        raise UsageError(
            "symbol_not_found", f"The line [LID:{line_id}] {line.strip()[:200]!r} holds {symbol!r} {len(found)} times.",
            "Name a symbol as it stands in the line; occurrence counts from 1.",
        )  # fmt: skip
    return positions.at(start + found[occurrence - 1])


def diagnosed(project: Project, path: str, seconds: float = ANSWER_SECONDS) -> list[dict[str, Any]]:
    """Return a file's diagnostics: `[{line, column, severity, message, code, source, line_id, text}]`, in order of place."""

    def index() -> None:
        # The server needs its time anyway. Whatever fails here fails again where IDs are needed.
        with suppress(RyeError), documents.view(project.ws, path) as document:
            project.indexed[path] = document

    given = project.session.diagnostics(project.absolute(path), seconds, index)
    uri = uri_of(project.absolute(path))
    placed = spots(project, [(uri, one["range"]["start"]) for one in given])
    rows = [
        {
            "line": spot.line, "column": spot.column, "severity": _SEVERITIES.get(one.get("severity", 1), "error"),
            "message": plain(str(one.get("message", "")), _MESSAGE, lines=True), "code": plain(str(one.get("code") or ""), 100),
            "source": plain(str(one.get("source") or ""), 100), "line_id": spot.line_id, "text": spot.text,
        }
        for one, spot in zip(given, placed, strict=True)
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (row["line"], row["column"], row["severity"], row["message"]))


def described(path: str, row: dict[str, Any]) -> str:
    """Return a diagnostic as one line: `path:line:col: severity: message [code] [LID:…]`."""
    message = " ".join(row["message"].split())
    code = f" ({row['code']})" if row["code"] else ""
    return f"{path}:{row['line']}:{row['column']}: {row['severity']}: {message}{code} {named(row['line_id'])}"


def answer(project: Project, told: list[str], call: str, unit: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return a result of as many lines as fit, and what every answer says of the server."""
    page = Page(output_room() - _NOTICES)
    shown = 0
    for line in told:
        if not page.add([line]):
            break
        shown += 1
    output = list(page.lines)
    if shown < len(told):
        output.append(envelope(shown, len(told), unit, call))
    state = "started for this call" if project.session.cold else "warm"
    if project.session.cold:
        output.append(f"({project.session.server.name} was started for this call; the next one in this process is faster)")
    if not project.session.sources_of(project.ws.root).complete:
        output.append(
            f"(only the first {MAX_FILES:,} source files are watched: changes elsewhere may be unknown to the server)"
        )
    return ok("\n".join(output), truncated=shown < len(told), server=project.session.server.name, server_state=state, **fields)

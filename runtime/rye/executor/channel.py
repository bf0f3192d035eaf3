"""Files with line IDs for a confined worker: the worker asks, its parent answers.

The line index is sealed with a secret that no sandbox shows, and the journal lies in the user's space. So a worker can neither
read nor write them. What `rye.toolkit` offers of them (`view_lines`, `edit_lines`, `replace_file`) is done by the parent. The
parent holds every request to the tool's permissions and opens every path beneath the project's root.

A request is `{"op", …}`, a reply `{"value"}` or `{"failure": {"kind", "code", "message", "hint", "details"}}`, all JSON. `view`
(path, encoding, ids) opens a file until `close`; `document` (name, args) calls one of its methods; `edit_lines` and
`replace_file` take the parameters of the functions. Nobody trusts what a worker sends.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rye import errors
from rye.edits import edit_files, whole_file
from rye.edits.apply import Applied, Show
from rye.errors import RyeError, UsageError, WorkspaceError
from rye.line_ids import document as documents
from rye.line_ids.document import Changes, Document
from rye.line_ids.reconcile import Splice
from rye.line_ids.render import Row
from rye.plain_class import as_dict
from rye.workspace.workspace import Workspace

if TYPE_CHECKING:
    from rye.workspace.notebook import Notebook

T = TypeVar("T")

# Lines that one request may ask for.
_LINES_AT_ONCE = 2_000
# Of a document: what takes lines [start, stop), and what else a worker may call.
_OF_LINES = ("printed", "texts", "ids", "shorts", "rows")
_OTHERS = ("name", "shown", "changes_since", "encoding_notice", "show_as_cells", "lines_named", "otherwise_named")
_METHODS = (*_OF_LINES, *_OTHERS)
# In others, bytes that look like ASCII can mean something else: a worker must not make later reads show such text.
_ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "latin-1", "cp1252")


class FileService:
    """The parent's half: answers one worker's requests, in the context of the call that the worker runs."""

    def __init__(self, root: str, permissions: Sequence[str], item_id: str) -> None:
        """Serve a tool with these permissions below a root; `item_id` is what the journal says."""
        self._root = root
        self._permissions = permissions
        self._item_id = item_id
        # It holds the open project and the lock of the file: one file at a time for each worker.
        self._open = ExitStack()
        self._document: Document | None = None
        self.line_ids: set[str] = set()
        """Those that the worker was given: no other may appear in its result."""

    def close(self) -> None:
        """Close the worker's open file."""
        self._document = None
        self._open.close()

    def answer(self, request: object) -> dict[str, Any]:
        """Return the reply to a request; a malformed one is refused."""
        try:
            return {"value": self._value(request if isinstance(request, dict) else {})}
        except RyeError as err:
            # A refusal shows lines with their IDs, so that the next try can name them.
            self.line_ids.update(re.findall(r"\[LID:([0-9a-z]+)\]", err.message))
            texts = {"kind": type(err).__name__, "code": err.code, "message": err.message, "hint": err.hint}
            return {"failure": {**texts, "details": err.details}}
        except (TypeError, ValueError, LookupError, AttributeError, RecursionError) as err:
            why = f"The request to the worker's parent is malformed ({type(err).__name__})."
            return {"failure": {"kind": "UsageError", "code": "bad_request", "message": why, "hint": "", "details": {}}}

    def _value(self, request: dict[str, Any]) -> Any:
        ops: dict[object, Callable[..., Any]] = {
            "view": self._view,
            "document": self._call,
            "edit_lines": self._edit,
            "replace_file": self._replace,
            "close": self.close,
        }
        return ops[request.pop("op", None)](**request)

    def _need(self, *permissions: str) -> None:
        # Checked here and not in the worker, whose code the tool can replace.
        missing = [one for one in permissions if one not in self._permissions]
        if missing:
            why = f"{self._item_id} may not do this: it lacks the permission {' and '.join(missing)}."
            hint = "Its author declares what it needs in __permissions__; a profile that lets no tool write takes `write` away."
            raise UsageError("permission_missing", why, hint)

    def _view(self, path: str, encoding: str | None, *, ids: bool) -> dict[str, Any]:
        self._need("read")
        self.close()
        workspace = self._open.enter_context(Workspace(self._root))
        opened = (documents.view if ids else documents.without_ids)(workspace, path, _encoding(encoding))
        self._document = self._open.enter_context(opened)
        return _described(self._document)

    def _call(self, name: str, args: list[Any], **options: bool) -> Any:
        if self._document is None or name not in _METHODS:
            raise ValueError(name)
        # A request for a billion lines must not occupy this process; the worker asks in parts.
        if name in _OF_LINES and not 0 <= args[1] - args[0] <= _LINES_AT_ONCE:
            raise ValueError(args)
        # The name is one of `_METHODS`, checked above: `getattr` must not lead to other attributes.
        found = getattr(self._document, name)(*args, **options)
        if name == "ids" or (name in ("rows", "printed") and options.get("ids", True)):
            self.line_ids.update(one for one in self._document.ids(*args) if one is not None)
        return found

    def _edit(
        self, path: str, changes: list[Any], show: dict[str, Any] | None = None, encoding: str | None = None, **options: Any
    ) -> dict[str, Any]:
        self._need("read", "write")
        # The journal gets our own item id: a worker cannot record its change under another tool's name.
        code, shown = _encoding(encoding), None if show is None else Show(**show)
        edited = edit_files.edit_files(
            self._root, path, list(changes), tool=self._item_id, show=shown, encoding=code, **options
        )
        self.line_ids.update(row.id for applied in edited.files for row in applied.lines if row.id is not None)
        return {**as_dict(edited), "files": [_made(applied) for applied in edited.files]}

    def _replace(self, path: str, content: str, encoding: str | None = None, **options: Any) -> dict[str, Any]:
        self._need("write")
        code = _encoding(encoding) or "utf-8"
        replaced = whole_file.replace_file(self._root, path, content, tool=self._item_id, encoding=code, **options)
        # A tool without the permission to read does not learn the old content.
        before = replaced.before if replaced.before is None or "read" in self._permissions else b""
        contents = {"data": replaced.data, "before": before}
        coded = {name: None if one is None else base64.b64encode(one).decode() for name, one in contents.items()}
        return {**as_dict(replaced), **coded}


def _encoding(name: str | None) -> str | None:
    if name is not None and name.lower().replace("_", "-") not in _ENCODINGS:
        hint = f"One of {', '.join(_ENCODINGS)}; or leave it out for the one that is recognised."
        raise UsageError("unknown_encoding", f"The encoding {name[:40]} is not available to tools of other signers.", hint)
    return name


def _made(applied: Applied) -> dict[str, Any]:
    splices = [(splice.start, splice.stop, len(splice.lines)) for splice in applied.splices]
    return {**as_dict(applied), "document": _described(applied.document), "splices": splices}


def _described(document: Document) -> dict[str, Any]:
    facts = ("path", "count", "version", "short_version", "encoding", "no_ids")
    return {name: getattr(document, name) for name in facts}


class RemoteDocument:
    """The worker's half of an open file: what `rye.line_ids.document.Document` offers to tools, answered by the parent.

    Its facts are attributes: `path`, `count`, `version`, `short_version`, `encoding`, `no_ids`.
    """

    path: str
    count: int
    no_ids: str

    def __init__(self, files: RemoteFiles, facts: dict[str, Any]) -> None:
        """Describe the file; `files` asks for the rest."""
        self.__dict__.update(facts)
        self._files = files
        self._cells: Notebook | None = None

    def __getattr__(self, name: str) -> Any:
        """Return the method of the parent's document that has this name."""
        if name not in _METHODS:
            raise AttributeError(name)
        return partial(self._lines if name in _OF_LINES else self._call, name)

    def show_as_cells(self) -> None:
        """Show a notebook's lines that hold a cell's text as that text; see `Document.show_as_cells`."""
        if not self.path.lower().endswith(".ipynb"):
            return
        from rye.workspace import notebook

        # Asked for before: afterwards these lines are the text of the cells.
        self._cells = notebook.parse("\n".join(self.texts(0, self.count)).encode("utf-8", "replace"))
        self._call("show_as_cells")

    def cells(self) -> Notebook | None:
        """Return the cells of a notebook that is shown as such; None for every other file."""
        return self._cells

    def changes_since(self, version: str) -> Changes | None:
        """Return what changed since a version, or None where that is not among the stored ones."""
        found = self._call("changes_since", version)
        return found and documents.Changes(*found)

    def _lines(self, name: str, start: int, stop: int, **options: bool) -> list[Any]:
        stop = min(stop, self.count)
        # The parent refuses more lines at once.
        parts = [(at, min(at + _LINES_AT_ONCE, stop)) for at in range(start, stop, _LINES_AT_ONCE)]
        found = [line for part in parts for line in self._call(name, *part, **options)]
        return [Row(*row) for row in found] if name == "rows" else found

    def _call(self, name: str, *args: Any, **options: bool) -> Any:
        plain = [one if isinstance(one, str | int | None) else list(one) for one in args]
        return self._files.ask(op="document", name=name, args=plain, **options)


class RemoteFiles:
    """The worker's half: the functions that stand in for those of `rye.toolkit`."""

    def __init__(self, ask: Callable[[dict[str, Any]], dict[str, Any]], root: str) -> None:
        """Send requests with `ask`, which returns the reply; the parent serves the project at `root` alone."""
        self._ask = ask
        self._root = root

    def ask(self, **request: Any) -> Any:
        """Return the value of a reply. Raises what the parent refused with."""
        reply = self._ask(request)
        if "failure" not in reply:
            return reply["value"]
        failure = reply["failure"]
        error = RyeError(failure["code"], failure["message"], failure["hint"])
        error.details = failure["details"]
        # A deadline's class takes other arguments; what counts is who catches it.
        error.__class__ = getattr(errors, failure["kind"], RyeError)
        raise error

    def view_lines(self, project_path: str, path: str, show: Callable[[RemoteDocument], T], encoding: str | None = None) -> T:
        """Return what `show` makes of a file's lines; see `rye.line_ids.document.view_lines`."""
        self._hold_to_root(project_path)
        try:
            return self._viewed(path, show, encoding)
        except WorkspaceError as err:
            if err.code not in documents.IDS_NOT_STORED:
                raise
            return self._viewed(path, show, encoding, no_ids=err.message)

    def _viewed(self, path: str, show: Callable[[RemoteDocument], T], encoding: str | None, no_ids: str = "") -> T:
        document = RemoteDocument(self, self.ask(op="view", path=path, encoding=encoding, ids=not no_ids))
        document.no_ids = no_ids
        try:
            return show(document)
        finally:
            self.ask(op="close")

    def edit_lines(self, project_path: str, file_path: str, changes: Sequence[Any], **options: Any) -> Applied:
        """Apply changes to the lines of one file; see `rye.edits.edit_files.edit_lines`."""
        edit_files.refuse_several(changes, file_path)
        return self.edit_files(project_path, file_path, changes, **options).files[0]

    def edit_files(
        self, project_path: str, file_path: str, changes: Sequence[Any], show: Show | None = None, **options: Any
    ) -> edit_files.Edited:
        """Apply changes by line address; see `rye.edits.edit_files`. The journal names the tool that runs."""
        self._hold_to_root(project_path)
        options.pop("tool", None)
        shown = None if show is None else as_dict(show)
        made = self.ask(op="edit_lines", path=file_path, changes=list(changes), show=shown, **options)
        for one in made["files"]:
            # It offers what tools may ask of one.
            one["document"] = RemoteDocument(self, one["document"])
            one["splices"] = [Splice(start, stop, [b""] * count) for start, stop, count in one["splices"]]
            one["lines"] = [Row(*row) for row in one["lines"]]
        return edit_files.Edited(**{**made, "files": [Applied(**one) for one in made["files"]]})

    def replace_file(self, project_path: str, file_path: str, content: str, **options: Any) -> whole_file.Replaced:
        """Create a file or replace its content; see `rye.edits.whole_file.replace_file`."""
        self._hold_to_root(project_path)
        options.pop("tool", None)
        made = self.ask(op="replace_file", path=file_path, content=content, **options)
        coded = {name: made[name] for name in ("data", "before")}
        contents = {name: None if one is None else base64.b64decode(one) for name, one in coded.items()}
        return whole_file.Replaced(**{**made, **contents})

    def _hold_to_root(self, project_path: str) -> None:
        # The parent serves one project only; a clear error is better than lines of another file.
        if os.path.realpath(project_path) != self._root:
            raise UsageError("bad_project", f"{project_path} is not the project of this call.", "Pass on project_path.")

"""`rye review`: what each address shows, and what each form does, served on this machine to the user alone.

Who may ask is judged before, by `rye.review.guard`. Everything that is done is done by the same tools that a model calls, so
that it is recorded and can be taken back. A button asks for a verb and a file or hunk, which come to calls of `undo`.
"""

from __future__ import annotations

import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from rye import api, local_http
from rye.agents import discovery
from rye.call.context import CallOptions
from rye.errors import RyeError
from rye.executor.executor import Call
from rye.items import proposed_keys
from rye.journal.history import Row
from rye.process import jobs
from rye.review import changes, diffs, marks, pages
from rye.review.approvals import Approvals
from rye.review.changes import ChangeGroup, Timeline
from rye.review.colours import Colours
from rye.review.diffs import ShownFile
from rye.review.guard import PageGuard
from rye.trust.decisions import Root
from rye.workspace.workspace import Workspace, identity_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from uvicorn import Server

_ORDER = re.compile(r"(undo|redo|mark)(?: ([0-9]{1,6}))?(?: ([0-9]{1,6}))?", re.ASCII)


class ButtonOrder(NamedTuple):
    """A verb (`undo`, `redo`, `mark`), and the numbers of a file of the call and of a hunk of that (from 0); None: all."""

    verb: str
    file: int | None = None
    hunk: int | None = None

    @property
    def anchor(self) -> str:
        """The part of the page that it is about."""
        return "main" if self.file is None else f"f{self.file}" if self.hunk is None else f"f{self.file}h{self.hunk}"

    def mark(self, call_id: str) -> str:
        """Return its name for `rye.review.marks`."""
        return "/".join(str(one) for one in (call_id, self.file, self.hunk) if one is not None)


def order_of(text: str, files: Sequence[ShownFile]) -> ButtonOrder | None:
    """Return what a button sent; None where a call with these files has no such button."""
    found = _ORDER.fullmatch(text)
    if found is None:
        return None
    verb, file, hunk = found[1], *(None if one is None else int(one) for one in found.groups()[1:])
    if file is not None and (file >= len(files) or (hunk is not None and hunk >= len(files[file].hunks))):
        return None
    return ButtonOrder(verb, file, hunk)


def undo_calls(order: ButtonOrder, now: Timeline, call: ChangeGroup, files: Sequence[ShownFile]) -> list[dict[str, Any]]:
    """Return the parameters of each call of `rye/file-system/undo` that does it. To restore is to undo the undos."""
    if order.file is None:
        # Whole, and what was taken back of it by itself before.
        undos = [one for row in call.rows for one in now.undos_of(row.id)] if order.verb == "redo" else [call.id]
        targets = dict.fromkeys(now.groups[now.places[one]].id for one in undos if one in now.places)
        return [{"entry_id" if now.group(one).first.batch is None else "batchId": one} for one in targets]
    one = files[order.file]
    chosen = one.hunks if order.hunk is None else [one.hunks[order.hunk]]
    if order.verb == "undo":
        return [_part(now.rows[one.entry_id], one.path, None if order.hunk is None else chosen[0].number)]
    out: dict[str, dict[str, Any]] = {}
    for hunk in chosen:
        undo = now.rows.get(hunk.undone_by)
        if undo is not None:
            number = None if order.hunk is None else _number_in(undo, hunk.number)
            out.setdefault(undo.id, _part(undo, one.path, number))
    return list(out.values())


def _number_in(undo: Row, number: int) -> int | None:
    """Return the number that a hunk has in the undo that took it back; None: the undo took back no other."""
    if list(undo.hunks) == [number]:
        return None
    return list(undo.hunks).index(number) + 1 if number in undo.hunks else number


def _part(row: Row, path: str, number: int | None) -> dict[str, Any]:
    of_file = {"file_path": path} if row.files > 1 or number is not None else {}
    return {"entry_id": row.id, **of_file, **({} if number is None else {"hunks": [number]})}


HOST: Final = "127.0.0.1"

_MOST_CONNECTIONS: Final = 256
_STATIC: Final = Path(__file__).parent / "static"
_KINDS: Final = {".css": "text/css", ".js": "text/javascript"}
_MOST_SAID: Final = 64
_MOST_ACTORS: Final = 100
_MOST_OUTPUT: Final = 40_000


class _Html(HTMLResponse):
    """A page. A byte of a folder's or command's name that is no UTF-8 is shown as an escape."""

    def render(self, content: str) -> bytes:
        return content.encode("utf-8", "backslashreplace")


class Site:
    """The pages of one project at one port: `app` is an ASGI application, `app.address` opens them in a browser, once."""

    def __init__(self, root: str, port: int, tell: Callable[[str], None]) -> None:
        """Show the project at `root`; `tell` shows a text to the person at the terminal."""
        self._root = root
        self._identity = identity_of(root)
        self._changes = changes.ChangeIndex(root)
        self._colours = Colours()
        self._approvals = Approvals(root, tell)
        self._said: OrderedDict[str, str] = OrderedDict()
        self.app = PageGuard(self._pages(), HOST, port, lambda address: tell(f"Opened. To open it elsewhere, too: {address}"))

    def server(self) -> Server:
        """Return the web server, bounded in connections."""
        made: Server = local_http.web_server(self.app, _MOST_CONNECTIONS, date_header=False, timeout_keep_alive=30)
        return made

    def _pages(self) -> Starlette:
        shown: dict[str, Callable[[Workspace, Request], _Html]] = {
            "/": self._timeline,
            "/since": self._since,
            "/change/{id}": self._change,
            "/jobs": self._jobs,
            "/jobs/{id}": self._job,
            "/tools": self._tools,
            "/keys": self._keys,
        }
        posts: dict[str, Callable[[Workspace, Mapping[str, str]], str]] = {
            "/act": self._act,
            "/mark": self._mark,
            "/jobs/end": self._end_job,
            "/keys/approve": self._approve,
        }
        # The posts first: `/jobs/{id}` would fit the path of one.
        routes = [Route(path, self._done(do), methods=["POST"]) for path, do in posts.items()]
        routes += [Route(path, self._shown(page), methods=["GET"]) for path, page in shown.items()]
        rest = Route("/{rest:path}", self._shown(_nothing))
        return Starlette(routes=[Route("/static/{name}", _static, methods=["GET"]), *routes, rest])

    # --- requests ---

    def _workspace(self) -> Workspace:
        """Open the project. Raises RyeError where another folder was moved to its path since the start."""
        ws = Workspace(self._root)
        try:
            ws.hold_to(self._identity)
        except RyeError:
            ws.close()
            raise
        return ws

    def _tool(self, item_id: str, **parameters: Any) -> dict[str, Any]:
        """Call a tool and return its data."""
        call = Call("tool", item_id, parameters, self._root, options=CallOptions(root=self._identity))
        found: dict[str, Any] = api.answer(call)["data"]
        return found

    def _version(self, ws: Workspace) -> str:
        """Return a text that changes whenever the changes or the marks do."""
        return f"{self._changes.version(ws)} {marks.version(ws)}"

    def _shown(self, page: Callable[[Workspace, Request], _Html]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            try:
                with self._workspace() as ws:
                    return page(ws, request)
            except LookupError:
                message = "There is no such thing in this project."
                return self._html(request, "frame", "Not found", message=message, path="-", status=404)
            except (RyeError, OSError) as err:
                return self._html(request, "frame", "This cannot be shown", message="", path="-", said=str(err), status=409)

        return answer

    def _html(self, request: Request, name: str, title: str, *, status: int = 200, **values: Any) -> _Html:
        """Return a page with what `frame.html` needs: `path`, `live`, and `said`, what the last action came to."""
        frame = {"base": self.app.path, "token": self.app.form_token, "project": self._root}
        said = self._said.get(request.query_params.get("said", ""), "")
        return _Html(pages.render(name, title, **{"frame": frame, "path": "", "live": "", "said": said, **values}), status)

    @staticmethod
    def _live(request: Request, version: str) -> str:
        """Return the version of a page, by which `live.js` asks for a newer one. Raises HTTPException where it is unchanged."""
        mark = f'"{quote(version)}"'
        if request.headers.get("if-none-match") == mark:
            raise HTTPException(304)
        return mark

    def _done(self, do: Callable[[Workspace, Mapping[str, str]], str]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            form: dict[str, str] = request.scope["rye.form"]
            try:
                with self._workspace() as ws:
                    where = do(ws, form)
            except (RyeError, OSError) as err:
                where = f"?{self._note(f'Nothing was done. {err}')}"
            return RedirectResponse(f"{self.app.path}/{where}", 303)

        return answer

    def _note(self, text: str) -> str:
        """Keep a text for the next page, and return the field of its address."""
        key = secrets.token_urlsafe(6)
        self._said[key] = text
        while len(self._said) > _MOST_SAID:
            self._said.popitem(last=False)
        return f"said={key}"

    # --- pages ---

    def _timeline(self, ws: Workspace, request: Request) -> _Html:
        asked = request.query_params
        query = changes.Query(*(asked.get(name, "")[:200] for name in changes.Query._fields))
        first = _number(asked.get("first", "")) or 0
        live = self._live(request, self._version(ws)) if first == 0 else ""
        now, known = self._changes.timeline(ws), marks.read(ws)
        found = self._changes.find(ws, now, query, known)
        shown = found[first : first + changes.PER_PAGE]
        values: dict[str, Any] = {"now": now, "marks": known, "query": query, "first": first, "found": found, "shown": shown}
        values |= {"facts": self._changes.facts(ws, shown), "per_page": changes.PER_PAGE}
        # Each session of a client is a caller of its own: of many the newest.
        actors = sorted(list(dict.fromkeys(call.who for call in now.groups))[:_MOST_ACTORS])
        values["actors"] = {"": "anyone", **{one: one for one in actors}}
        tools = sorted({call.first.tool for call in now.groups} - {""})
        values["tools"] = {"": "any", **{one: one.rpartition("/")[2] for one in tools}}
        return self._html(request, "timeline", "Changes", live=live, **values)

    def _since(self, ws: Workspace, request: Request) -> _Html:
        known = marks.read(ws)
        live = self._live(request, self._version(ws))
        now = self._changes.timeline(ws)
        last = {row.id for call in now.groups[: now.newer(known.looked)] for row in call.rows}
        title = "Changes since you looked" if known.looked else "All changes"
        made = pages.since(ws, [row for row in now.rows.values() if row.id in last], self._colours)
        return self._html(request, "since", title, path="since", live=live, now=now, **made)

    def _change(self, ws: Workspace, request: Request) -> _Html:
        now = self._changes.timeline(ws)
        call = now.group(request.path_params["id"])
        live = self._live(request, self._version(ws))
        made, rows = changes.entries_of(ws, call), list(now.rows.values())
        # With the lines around.
        files = list(diffs.of_entries(ws, now.past, made, rows[: rows.index(call.first) + 1]))
        shown = pages.of_change(files, _number(request.query_params.get("file", "")), self._colours)
        values: dict[str, Any] = {"now": now, "call": call, "entries": made, "files": files, "shown": shown}
        return self._html(request, "change", call.title, live=live, marks=marks.read(ws), **values)

    def _jobs(self, ws: Workspace, request: Request) -> _Html:
        found = jobs.records(ws.fd)
        live = self._live(request, " ".join(f"{one['job_id']}{one['status']}" for one in found) or "none")
        return self._html(request, "jobs", "Jobs", path="jobs", live=live, jobs=found)

    def _job(self, ws: Workspace, request: Request) -> _Html:
        name = request.path_params["id"]
        record = next((one for one in jobs.records(ws.fd) if one["job_id"] == name), None)
        if record is None:
            raise LookupError(name)
        answer = self._tool("rye/bash/job", action="read", job_id=name, offset=-_MOST_OUTPUT)
        live = self._live(request, f"{answer.get('status')} {answer.get('total_bytes')}")
        return self._html(request, "jobs", f"Job {name}", path="jobs", live=live, job=record, answer=answer)

    def _tools(self, _ws: Workspace, request: Request) -> _Html:
        text = request.query_params.get("text", "")[:200]
        found, fields = discovery.tools(None, project_path=self._root), ("item_id", "description", "verdict", "owner")
        chosen = [row for row in found if text.casefold() in " ".join(str(row.get(name, "")) for name in fields).casefold()]
        return self._html(request, "tools", "Tools", path="tools", text=text, count=len(found), tools=chosen)

    def _keys(self, _ws: Workspace, request: Request) -> _Html:
        store = proposed_keys.store_of(Root.of(self._root).path)
        counting = [key for key in store.keys if key.public.digest not in store.revoked]
        waiting = self._approvals.waiting()
        return self._html(request, "keys", "Keys", path="keys", known=counting, waiting=waiting, problems=store.problems)

    # --- what is done ---

    def _act(self, ws: Workspace, form: Mapping[str, str]) -> str:
        now = self._changes.timeline(ws)
        try:
            call = now.group(form.get("id", ""))
        except LookupError:
            return f"?{self._note('This change is no longer recorded.')}"
        files = list(diffs.of_entries(ws, now.past, changes.entries_of(ws, call)))
        order = order_of(form.get("do", ""), files)
        if order is None:
            return f"change/{quote(call.id)}?{self._note('This button is not of this page. Look again.')}"
        said = ""
        if order.verb == "mark":
            with marks.changed(ws) as known:
                known.toggle(order.mark(call.id), [len(one.hunks) for one in files])
        else:
            said = f"?{self._note(self._undo(order.verb, undo_calls(order, now, call, files)))}"
        return f"change/{quote(call.id)}{said}#{order.anchor}"

    def _undo(self, verb: str, wanted: list[dict[str, Any]]) -> str:
        """Call `undo` once or more; return what to tell the user."""
        if not wanted:
            return "Nothing was done: it was not taken back."
        notes = ["Taken back." if verb == "undo" else "Restored."]
        for parameters in wanted:
            answer = self._tool("rye/file-system/undo", **parameters)
            if not answer["success"]:
                before = "" if parameters is wanted[0] else "The rest was not done. "
                return f"{before or 'Nothing was done. '}{answer['error']}"
            notes += answer.get("warnings") or ()
        return " ".join(notes)

    def _mark(self, ws: Workspace, form: Mapping[str, str]) -> str:
        verb, _, name = form.get("do", "").partition(" ")
        now = self._changes.timeline(ws)
        back = form.get("back", "")
        where = back if back == "since" or back.startswith("?") else ""
        if name not in now.places or verb not in ("mark", "seen"):
            return where
        with marks.changed(ws) as known:
            if verb == "seen":
                known.looked = now.group(name).first.id
                return where
            call = now.group(name)
            known.toggle(call.id, [0])
        return f"{where}#c-{quote(call.id)}"

    def _end_job(self, _ws: Workspace, form: Mapping[str, str]) -> str:
        name = form.get("do", "").removeprefix("end ")
        answer = self._tool("rye/bash/job", action="end", job_id=name)
        where = f"jobs/{quote(name, safe='')}" if form.get("back", "").startswith("jobs/") else "jobs"
        return f"{where}?{self._note(str(answer['output'] if answer['success'] else answer['error']))}"

    def _approve(self, _ws: Workspace, form: Mapping[str, str]) -> str:
        key, seen = form.get("key", ""), form.get("shown", "")
        try:
            if form.get("do") == "confirm":
                text = self._approvals.confirm(key, seen, form.get("code", ""))
            else:
                text = self._approvals.ask(key, seen)
        except RyeError as err:
            text = str(err)
        return f"keys?{self._note(text)}"


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 8 else None


def _nothing(_ws: Workspace, _request: Request) -> _Html:
    raise LookupError


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    # From the list of what is there, never a path made of what was asked for.
    known = {path.name: path for path in _STATIC.iterdir() if path.suffix in _KINDS}
    if name not in known:
        return PlainTextResponse("There is no such file.\n", 404)
    return Response(known[name].read_bytes(), media_type=_KINDS[known[name].suffix])


def serve(root: str, port: int, tell: Callable[[str], None]) -> None:
    """Serve until the process is stopped; `tell` gets the address first, and then what a person has to know.

    Raises:
        UsageError: `cannot_listen`.
    """
    with local_http.listen(local_http.Address(HOST, port)) as listening:
        site = Site(root, listening.getsockname()[1], tell)
        tell(f"Open {site.app.address}\nThe address works once. Ctrl-C ends the server.")
        site.server().run(sockets=[listening])

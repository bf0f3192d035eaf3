"""The pages of `rye review` as an application: what each address shows, and what each form does.

Who may ask is judged before, by `rye.review.guard`. Everything that is done is done by the same tools that a model calls, so
that it is recorded and can be taken back.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from rye.agents import discovery
from rye.errors import RyeError
from rye.items import proposed_keys
from rye.process import jobs
from rye.review import changes, marks, pages
from rye.review.approvals import Approvals
from rye.review.colours import Colours
from rye.review.frame import Frame, render
from rye.review.service import ReviewService
from rye.trust.decisions import Root
from rye.workspace.workspace import Workspace

if TYPE_CHECKING:
    from starlette.requests import Request

_STATIC: Final = Path(__file__).parent / "static"
_KINDS: Final = {".css": "text/css", ".js": "text/javascript"}
_MOST_SAID: Final = 64
_MOST_OUTPUT: Final = 40_000


class _Html(HTMLResponse):
    """A page. A byte of a folder's or command's name that is no UTF-8 is shown as an escape."""

    def render(self, content: str) -> bytes:
        return content.encode("utf-8", "backslashreplace")


class ReviewPage(NamedTuple):
    """A page that can be made: its template, its title, what makes its values, its entry of the navigation, and its version."""

    template: str
    title: str
    make: Callable[[], pages.Values]
    path: str = ""
    version: str = ""


class Site:
    """The pages of one project."""

    def __init__(self, root: str, tell: Callable[[str], None]) -> None:
        """Show the project at `root`; `tell` shows a text to the person at the terminal."""
        self._root = root
        self._service = ReviewService(root)
        self._colours = Colours()
        self._approvals = Approvals(root, tell)
        self._said: OrderedDict[str, str] = OrderedDict()
        self._base, self._token = "", ""

    def hold(self, base: str, token: str) -> None:
        """Take the path that all addresses begin with, and the token that forms must hold."""
        self._base, self._token = base, token

    def app(self) -> Starlette:
        """Return the application."""
        pages: dict[str, Callable[[Workspace, Request], ReviewPage]] = {
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
        routes += [Route(path, self._shown(page), methods=["GET"]) for path, page in pages.items()]
        rest = Route("/{rest:path}", self._shown(_nothing))
        return Starlette(routes=[Route("/static/{name}", _static, methods=["GET"]), *routes, rest])

    # --- requests ---

    def _shown(self, page: Callable[[Workspace, Request], ReviewPage]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            frame, said = Frame(self._base, self._token, self._root), self._said.get(request.query_params.get("said", ""), "")
            try:
                with self._service.workspace() as ws:
                    made = page(ws, request)
                    mark = f'"{quote(made.version)}"'
                    if made.version and request.headers.get("if-none-match") == mark:
                        return Response(status_code=304)
                    live = mark if made.version else ""
                    return _Html(render(frame, made.template, made.title, made.make(), path=made.path, live=live, said=said))
            except LookupError:
                message = "There is no such thing in this project."
                return _Html(render(frame, "frame", "Not found", {"message": message}, path="-", said=said), 404)
            except (RyeError, OSError) as err:
                return _Html(render(frame, "frame", "This cannot be shown", {"message": ""}, path="-", said=str(err)), 409)

        return answer

    def _done(self, do: Callable[[Workspace, Mapping[str, str]], str]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            form: dict[str, str] = request.scope["rye.form"]
            try:
                with self._service.workspace() as ws:
                    where = do(ws, form)
            except (RyeError, OSError) as err:
                where = f"?{self._note(f'Nothing was done. {err}')}"
            return RedirectResponse(f"{self._base}/{where}", 303)

        return answer

    def _note(self, text: str) -> str:
        """Keep a text for the next page, and return the field of its address."""
        key = secrets.token_urlsafe(6)
        self._said[key] = text
        while len(self._said) > _MOST_SAID:
            self._said.popitem(last=False)
        return f"said={key}"

    # --- pages ---

    def _timeline(self, ws: Workspace, request: Request) -> ReviewPage:
        asked = request.query_params
        query = changes.Query(*(asked.get(name, "")[:200] for name in changes.Query._fields))
        first = int(asked.get("first", "")) if asked.get("first", "").isdecimal() and len(asked["first"]) < 8 else 0

        def make() -> pages.Values:
            now, known = self._service.changes.timeline(ws), marks.read(ws)
            view = pages.TimelineView(query, first, self._service.changes.find(ws, now, query, known))
            return pages.timeline(now, view, self._service.changes.facts(ws, view.shown), known)

        return ReviewPage("timeline", "Changes", make, "", self._service.version(ws) if first == 0 else "")

    def _since(self, ws: Workspace, _request: Request) -> ReviewPage:
        known = marks.read(ws)

        def make() -> pages.Values:
            return pages.since(ws, self._service.changes.timeline(ws), known, self._colours)

        title = "Changes since you looked" if known.looked else "All changes"
        return ReviewPage("since", title, make, "since", self._service.version(ws))

    def _change(self, ws: Workspace, request: Request) -> ReviewPage:
        now = self._service.changes.timeline(ws)
        call = now.group(request.path_params["id"])
        given = request.query_params.get("file", "")
        only = int(given) if given.isdecimal() and len(given) < 8 else None

        def make() -> pages.Values:
            made, files = self._service.shown(ws, now, call)
            return pages.change(now, call, made, files, only, marks.read(ws), self._colours)

        return ReviewPage("change", pages.change_title(call), make, "", self._service.version(ws))

    def _jobs(self, ws: Workspace, _request: Request) -> ReviewPage:
        found = jobs.records(ws.fd)
        version = " ".join(f"{one['job_id']}{one['status']}" for one in found) or "none"
        return ReviewPage("jobs", "Jobs", lambda: {"jobs": [pages.job(one) for one in found]}, "jobs", version)

    def _job(self, ws: Workspace, request: Request) -> ReviewPage:
        name = request.path_params["id"]
        record = next((one for one in jobs.records(ws.fd) if one["job_id"] == name), None)
        if record is None:
            raise LookupError(name)
        answer = self._service.tool("rye/bash/job", action="read", job_id=name, offset=-_MOST_OUTPUT)
        version = f"{answer.get('status')} {answer.get('total_bytes')}"
        shown = {"job": pages.job(record), "output": answer["output"], "offset": answer.get("offset") or 0}
        return ReviewPage("jobs", f"Job {name}", lambda: shown, "jobs", version)

    def _tools(self, _ws: Workspace, request: Request) -> ReviewPage:
        text = request.query_params.get("text", "")[:200]
        found = discovery.tools(None, project_path=self._root)
        return ReviewPage("tools", "Tools", lambda: pages.tools(found, text), "tools")

    def _keys(self, _ws: Workspace, _request: Request) -> ReviewPage:
        store = proposed_keys.store_of(Root.of(self._root).path)
        counting = [key for key in store.keys if key.public.digest not in store.revoked]
        values = {"known": counting, "waiting": self._approvals.waiting(), "problems": store.problems}
        return ReviewPage("keys", "Keys", lambda: values, "keys")

    # --- what is done ---

    def _act(self, ws: Workspace, form: Mapping[str, str]) -> str:
        now = self._service.changes.timeline(ws)
        try:
            call = now.group(form.get("id", ""))
        except LookupError:
            return f"?{self._note('This change is no longer recorded.')}"
        done = self._service.act(ws, call, form.get("do", ""))
        said = f"?{self._note(done.said)}" if done.said else ""
        return f"change/{quote(call.id)}{said}{f'#{done.order.anchor}' if done.order is not None else ''}"

    def _mark(self, ws: Workspace, form: Mapping[str, str]) -> str:
        verb, _, name = form.get("do", "").partition(" ")
        now = self._service.changes.timeline(ws)
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
        text = self._service.end_job(name)
        where = f"jobs/{quote(name, safe='')}" if form.get("back", "").startswith("jobs/") else "jobs"
        return f"{where}?{self._note(text)}"

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


def _nothing(_ws: Workspace, _request: Request) -> ReviewPage:
    raise LookupError


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    # From the list of what is there, never a path made of what was asked for.
    known = {path.name: path for path in _STATIC.iterdir() if path.suffix in _KINDS}
    if name not in known:
        return PlainTextResponse("There is no such file.\n", 404)
    return Response(known[name].read_bytes(), media_type=_KINDS[known[name].suffix])

"""`rye review`: pages on loopback that show the record of changes, and take changes back.

Who has the token may do what the user may do with `rye undo`; nobody else sees anything. The token comes once in the address
that is printed, and is a cookie from then on. A request is judged before anything else: its Host header (a name that a web page
made point here is refused), the cookie, and for what changes something the Origin header and the token in the form.
Nothing is loaded from elsewhere, and no other page may frame these.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote

from rye.api import execute
from rye.config import user_dirs
from rye.errors import UsageError
from rye.fs import atomic
from rye.journal import history
from rye.record import timeline
from rye.review import pages
from rye.workspace.workspace import Workspace

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

_COOKIE: Final = "rye-review"
_HOST: Final = "127.0.0.1"
_REVIEWED: Final = "reviewed.json"
_MOST_REVIEWED: Final = 20_000
_MOST_BODY: Final = 64 * 1024


class Review:
    """The pages of one project."""

    def __init__(self, root: str, token: str, port: int) -> None:
        """Serve a project's root to who holds the token, at this port of loopback."""
        self._root, self._token = root, token
        self._hosts = {f"{_HOST}:{port}", f"localhost:{port}"}

    def app(self) -> Starlette:
        """Return the application."""
        from starlette.applications import Starlette
        from starlette.routing import Route

        gets: dict[str, Callable[[Request], str]] = {
            "/": self._changes,
            "/change/{id}": self._change,
            "/jobs": self._jobs,
            "/jobs/{id}": self._job,
            "/tools": self._tools,
            "/keys": self._keys,
        }
        posts: dict[str, Callable[[Mapping[str, str]], str]] = {
            "/undo": self._undo,
            "/reviewed": self._mark,
            "/jobs/end": self._end_job,
        }
        routes = [Route(path, self._shown(make)) for path, make in gets.items()]
        # Before `/jobs/{id}`, which its path would fit as well.
        made = [Route(path, self._done(do), methods=["POST"]) for path, do in posts.items()]
        return Starlette(routes=[Route("/newest", self._newest), *made, *routes])

    # --- who may ---

    def _refusal(self, request: Request) -> Response | None:
        from starlette.responses import PlainTextResponse

        if request.headers.get("host", "") not in self._hosts or len(request.headers.getlist("host")) != 1:
            return PlainTextResponse("The Host header names another server. Use the address that rye review printed.\n", 421)
        if not self._is_token(request.cookies.get(_COOKIE, "")):
            return PlainTextResponse("Open the address that rye review printed: it holds the token.\n", 401)
        return None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    def _guarded(self, request: Request, answer: Callable[[], Response]) -> Response:
        from starlette.responses import RedirectResponse

        given = request.query_params.get("token")
        if given is not None and self._is_token(given) and request.headers.get("host", "") in self._hosts:
            response: Response = RedirectResponse("/", 303)
            response.set_cookie(_COOKIE, self._token, httponly=True, samesite="strict")
        else:
            response = self._refusal(request) or answer()
        response.headers["cache-control"] = "no-store"
        response.headers["referrer-policy"] = "no-referrer"
        response.headers["x-content-type-options"] = "nosniff"
        response.headers.setdefault("content-security-policy", _policy("none"))
        return response

    def _shown(self, make: Callable[[Request], str]) -> Callable[[Request], Response]:
        from starlette.responses import HTMLResponse

        def answer(request: Request) -> Response:
            def made() -> Response:
                nonce = secrets.token_urlsafe(16)
                request.state.nonce = nonce
                try:
                    text, status = make(request), 200
                except LookupError:
                    text, status = pages.page("Not found", "<p>There is no such thing in this project.</p>", nonce=nonce), 404
                return HTMLResponse(text, status, {"content-security-policy": _policy(nonce)})

            return self._guarded(request, made)

        return answer

    def _done(self, do: Callable[[Mapping[str, str]], str]) -> Callable[[Request], Any]:
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import PlainTextResponse, RedirectResponse

        async def answer(request: Request) -> Response:
            body = await _body(request)

            def made() -> Response:
                form = {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}
                origin = request.headers.get("origin")
                own = origin is None or origin.removeprefix("http://") in self._hosts
                if not own or not self._is_token(form.get("token", "")):
                    return PlainTextResponse("Requests of other pages are refused.\n", 403)
                return RedirectResponse(do(form), 303)

            return await run_in_threadpool(self._guarded, request, made)

        return answer

    # --- what is shown ---

    def _changes(self, request: Request) -> str:
        first = max(int(request.query_params.get("first", "0") or 0), 0) if _is_number(request) else 0
        wanted = request.query_params.get("q", "")
        with Workspace(self._root) as ws:
            past = history.History(ws)
            rows = [row for row in past if not wanted or wanted in f"{row.path} {row.tool} {row.actor} {row.id}"]
            found = [timeline.brief(past, row) for row in rows[first : first + pages.PER_PAGE]]
            reviewed = self._reviewed(ws)
        newest = rows[0].id if rows and not wanted else ""
        body = pages.changes(found, reviewed, wanted, first, len(rows))
        return pages.page("Changes", body, nonce=request.state.nonce, newest=None if wanted else newest)

    def _newest(self, request: Request) -> Response:
        from starlette.responses import PlainTextResponse

        def made() -> Response:
            with Workspace(self._root) as ws:
                return PlainTextResponse(next((row.id for row in history.History(ws)), ""))

        return self._guarded(request, made)

    def _change(self, request: Request) -> str:
        with Workspace(self._root) as ws:
            past = history.History(ws)
            row = next((row for row in past if row.id == request.path_params["id"]), None)
            if row is None:
                raise LookupError(request.path_params["id"])
            one = timeline.logged(ws, past, row)
            entry = timeline.entry_of(ws, row)
            diff = [] if entry is None else timeline.diff_of(ws, entry)
            reviewed = row.id in self._reviewed(ws)
        said = request.query_params.get("said", "")
        body = pages.change(one, diff, self._token, reviewed=reviewed, said=said)
        return pages.page(f"Change {row.id}", body, nonce=request.state.nonce)

    def _jobs(self, request: Request) -> str:
        found = self._call("rye/bash/job", action="list").get("jobs", [])
        rows = [pages.job_row(job, self._token) for job in found]
        body = pages.table(("Job", "Status", "Command", "Started", ""), rows, "No command runs in the background.")
        return pages.page("Jobs", body, nonce=request.state.nonce)

    def _job(self, request: Request) -> str:
        answer = self._call("rye/bash/job", action="wait", job_id=request.path_params["id"], timeout=0)
        if not answer["success"]:
            raise LookupError
        return pages.page(f"Job {request.path_params['id']}", pages.output(answer["output"]), nonce=request.state.nonce)

    def _tools(self, request: Request) -> str:
        from html import escape

        from rye.agents import discovery

        names = ("item_id", "space", "verdict", "signer", "description")
        found = discovery.tools(None, project_path=self._root)
        rows = [[escape(str(row.get(name) or "")) for name in names] for row in found]
        body = pages.table(("Tool", "Space", "Verdict", "Signer", "What it does"), rows, "There are no tools.")
        return pages.page("Tools", body, nonce=request.state.nonce)

    def _keys(self, request: Request) -> str:
        body = (
            "<p>A key that this project brings counts after you approved it at a terminal, having seen what it admits: "
            "<code>rye trust</code> shows the keys that wait and what each would admit.</p>"
        )
        return pages.page("Keys", body, nonce=request.state.nonce)

    # --- what is done ---

    def _call(self, item_id: str, **parameters: Any) -> dict[str, Any]:
        found: dict[str, Any] = execute(item_id, parameters, project_path=self._root)["data"]
        return found

    def _undo(self, form: Mapping[str, str]) -> str:
        which = {"entry_id": form.get("id", "")} | ({"file_path": form["path"]} if form.get("path") else {})
        answer = self._call("rye/file-system/undo", **which)
        said = "Taken back." if answer["success"] else answer["error"]
        return f"/change/{quote(form.get('id', ''), safe='')}?said={quote(said)}"

    def _mark(self, form: Mapping[str, str]) -> str:
        name = form.get("id", "")
        if name.isalnum():
            with Workspace(self._root) as ws, atomic.locked(_marks(ws).with_suffix(".lock")):
                found = dict.fromkeys(self._reviewed(ws))
                if name in found:
                    del found[name]
                else:
                    found[name] = None
                atomic.write(_marks(ws), json.dumps({"reviewed": [*found][-_MOST_REVIEWED:]}).encode(), 0o600)
        return f"/change/{quote(name, safe='')}"

    def _end_job(self, form: Mapping[str, str]) -> str:
        self._call("rye/bash/job", action="end", job_id=form.get("id", ""))
        return "/jobs"

    def _reviewed(self, ws: Workspace) -> list[str]:
        found = (atomic.read_json(_marks(ws)) or {}).get("reviewed", [])
        return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _marks(ws: Workspace) -> Path:
    return Path(user_dirs.state_dir(ws.fd), _REVIEWED)


def _is_number(request: Request) -> bool:
    return request.query_params.get("first", "0").isdecimal()


def _policy(nonce: str) -> str:
    own = f"'nonce-{nonce}'"
    return (
        f"default-src 'none'; style-src {own}; script-src {own}; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )


async def _body(request: Request) -> bytes:
    data = b""
    async for block in request.stream():
        data += block
        if len(data) > _MOST_BODY:
            return b""
    return data


def serve(root: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve until the process is stopped; `announce` gets the address with the token.

    Raises:
        UsageError: `cannot_listen`; `extra_missing`, when the server's packages are not installed.
    """
    try:
        import uvicorn
    except ImportError:
        raise UsageError(
            "extra_missing", "rye review needs the extra `mcp`.", "Install it: pip install 'rye-workspace[mcp]'."
        ) from None
    try:
        listening = socket.create_server((_HOST, port))
    except OSError as err:
        raise UsageError(
            "cannot_listen", f"Cannot listen at {_HOST}:{port}: {err.strerror or err}.", "Give another port, or 0."
        ) from None
    token = secrets.token_urlsafe(32)
    port = listening.getsockname()[1]
    announce(f"http://{_HOST}:{port}/?token={token}")
    config = uvicorn.Config(Review(root, token, port).app(), log_level="error", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])

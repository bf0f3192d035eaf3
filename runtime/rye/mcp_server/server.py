"""The MCP server: an agent's client lists and calls the project's tools over standard input and output, or over HTTP."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from rye import api
from rye._version import __version__
from rye.agents.model_text import Sessions
from rye.call.context import CallOptions
from rye.errors import RyeError, WorkspaceError
from rye.executor.executor import Call
from rye.mcp_server import apps, http, prompts, resources, skills, stdio
from rye.mcp_server.calls import Calls, Request
from rye.mcp_server.listing import EXECUTE, SEARCH, Listing, Offered, Selection, switch_for
from rye.mcp_server.quick import QuickCalls
from rye.mcp_server.results import Results
from rye.mcp_server.stdio import Wire
from rye.plain_class import changed
from rye.workspace.workspace import Workspace, identity_of

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel.server import Server


REVISIONS: Final = ("2025-06-18", "2025-11-25", "2026-07-28")
"""The revisions of the protocol that are tested; the library speaks older ones too."""

_SETTLE_SECONDS = 4.0
_MOST_SHOWING = 4_096
_RESOURCE_NOT_FOUND: Final = -32002

# What the newest revision wants of every answer that a client could cache: these are true now and for this user only.
_FRESH: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

_INSTRUCTIONS = (
    "Tools for the files of one project. read and grep show a short ID before each line: pass these to edit_lines in place of "
    "old text. An ID stays with its line through other edits and is never given to another line. undo takes a change back. A "
    "result that was cut ends with a [tool_result: …] line naming the call that continues. A failed call says what to do next."
)


class Service:
    """What the server's answers are made of, for one project and one selection."""

    def __init__(self, project: str, selection: Selection) -> None:
        self.project = project
        self.selection = selection
        # Device and inode at the start: another folder moved to this path later is not served.
        self._identity = identity_of(project)
        self.listing = Listing(project, selection)
        self.calls = Calls(self._execute, Results(partial(resources.store, project), selection.structured, Sessions()))
        self.quick = QuickCalls(self.calls, self._quick_request)
        # Used as the session where the transport has none: standard input and output serve one client.
        self._process = os.urandom(4).hex()
        # The sessions whose clients show pages.
        self._showing: set[str] = set()

    def _execute(self, item_id: str, arguments: dict[str, Any], options: CallOptions) -> dict[str, Any]:
        call = Call("tool", item_id, arguments, self.project, options=changed(options, root=self._identity))
        response = api.answer(call, self.selection.reaches if self.selection.meta else None)
        if item_id == SEARCH and response["status"] == "success":
            note = self.selection.note_of(response["data"]["results"])
            response["data"]["output"] += f"\n{note}" if note else ""
        return response

    async def _look(self, function: Callable[..., Any], *args: Any) -> Any:
        """Ask for what the project's folder holds, in a thread; another folder at its path is refused."""

        def confined() -> Any:
            with Workspace(self.project) as workspace:
                workspace.hold_to(self._identity)
                return function(*args)

        try:
            return await _threaded(confined)
        except WorkspaceError as err:
            raise _invalid(str(err)) from None

    def server(self) -> Server[Any]:
        """Return the protocol library's server over this service."""
        from mcp.server.lowlevel.server import Server

        server: Server[Any] = Server(
            "rye",
            version=__version__,
            title="RYE workspace tools",
            instructions=_INSTRUCTIONS,
            get_tool_input_schema=self.listing.schema_of,
        )
        # Handlers return what goes over the wire: the typed overloads want the library's models.
        _register(server, self)
        # Tracing spans around each message, which nobody collects here.
        server.middleware.clear()
        return server

    async def list_tools(self, context: ServerRequestContext[Any], params: Any) -> dict[str, Any]:  # noqa: ARG002
        """Answer `tools/list`."""
        tools = await self._look(self.listing.tools)
        return {**_FRESH, "tools": apps.with_page(tools) if apps.shown_by(context) else tools}

    async def call_tool(self, context: ServerRequestContext[Any], params: Any) -> dict[str, Any]:
        """Answer `tools/call`: what fails inside a tool is a result with `isError`; an unknown name is a protocol error."""
        # The last listing first; a tool installed since then costs one new listing.
        offered = self.listing.known(params.name) or await self._look(self.listing.find, params.name)
        if offered is None:
            near = self.listing.near(params.name)
            hint = f"Did you mean {', '.join(near)}?" if near else "tools/list names what there is."
            item_id = await self._look(self.listing.elsewhere, params.name)
            if item_id is not None:
                hint = f"{item_id} is installed, but this server does not offer it. {switch_for([item_id])}"
            raise _invalid(f"Unknown tool: {params.name!r}. {hint}")
        actor = _actor(context, self._process)
        if apps.shown_by(context) and len(self._showing) < _MOST_SHOWING:
            self._showing.add(actor)
        self.quick.open(actor, context.protocol_version)
        request = self._request(offered, params.arguments or {}, actor, _reporter(context))
        return await self.calls.result(request)

    def _request(self, offered: Offered, given: dict[str, Any], actor: str, report: Any = None) -> Request:
        arguments = offered.arguments(given)
        runs = self._runs(offered, arguments)
        fields = actor in self._showing and apps.wants_fields(offered.item_id, arguments)
        return Request(offered.item_id, arguments, runs.item_id, runs.repeatable, report, actor, fields)

    def _quick_request(self, name: str, given: dict[str, Any], actor: str, report: Any) -> Request | None:
        offered = self.listing.known(name)
        return None if offered is None else self._request(offered, given, actor, report)

    def _runs(self, offered: Offered, arguments: dict[str, Any]) -> Offered:
        """Return the tool that a call comes to: of rye_execute, the one that it executes."""
        if offered.item_id != EXECUTE:
            return offered
        return self.listing.by_id(str(arguments.get("item_id"))) or offered

    async def list_resources(self, context: ServerRequestContext[Any], params: Any) -> dict[str, Any]:  # noqa: ARG002
        """Answer `resources/list`."""
        return {**_FRESH, "resources": await self._look(resources.listed, self.project)}

    async def list_templates(self, context: ServerRequestContext[Any], params: Any) -> dict[str, Any]:  # noqa: ARG002
        """Answer `resources/templates/list`."""
        return {**_FRESH, "resourceTemplates": resources.TEMPLATES}

    async def read_resource(self, context: ServerRequestContext[Any], params: Any) -> dict[str, Any]:
        """Answer `resources/read`."""
        if str(params.uri) == apps.URI and apps.shown_by(context):
            return {**_FRESH, "contents": [apps.page()]}
        try:
            source = skills.read if str(params.uri).startswith(skills.SCHEME) else resources.read
            return {**_FRESH, "contents": [await self._look(source, self.project, str(params.uri))]}
        except RyeError as err:
            raise _unread(err, str(params.uri), context.protocol_version) from None

    async def list_prompts(self, context: ServerRequestContext[Any], params: Any) -> dict[str, Any]:  # noqa: ARG002
        """Answer `prompts/list`."""
        return {**_FRESH, "prompts": await self._look(prompts.listed, self.project)}

    async def get_prompt(self, context: ServerRequestContext[Any], params: Any) -> dict[str, Any]:  # noqa: ARG002
        """Answer `prompts/get`."""
        try:
            filled = await self._look(prompts.filled, self.project, params.name, params.arguments or {})
        except RyeError as err:
            raise _invalid(str(err)) from None
        return {"resultType": "complete", **filled}

    async def complete(self, context: ServerRequestContext[Any], params: Any) -> dict[str, Any]:  # noqa: ARG002
        """Answer `completion/complete`."""
        asked = (self.project, params.ref, params.argument.name, params.argument.value)
        try:
            return {"resultType": "complete", "completion": await self._look(prompts.completed, *asked)}
        except RyeError as err:
            raise _invalid(str(err)) from None

    async def list_skills(self, context: ServerRequestContext[Any], params: Any) -> dict[str, Any]:  # noqa: ARG002
        """Answer `skills/list`."""
        return {**_FRESH, "skills": await self._look(skills.listed, self.project)}

    async def get_skill(self, context: ServerRequestContext[Any], params: Any) -> dict[str, Any]:  # noqa: ARG002
        """Answer `skills/get`."""
        try:
            return {**_FRESH, "skill": await self._look(skills.entry, self.project, params.uri)}
        except RyeError as err:
            raise _invalid(str(err), data={"uri": params.uri}) from None


def _register(server: Server[Any], service: Service) -> None:
    import mcp_types as types

    paged = types.PaginatedRequestParams
    server.add_request_handler("tools/list", paged, service.list_tools)
    server.add_request_handler("tools/call", types.CallToolRequestParams, service.call_tool)
    server.add_request_handler("resources/list", paged, service.list_resources)
    server.add_request_handler("resources/templates/list", paged, service.list_templates)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, service.read_resource)
    server.add_request_handler("prompts/list", paged, service.list_prompts)
    server.add_request_handler("prompts/get", types.GetPromptRequestParams, service.get_prompt)
    server.add_request_handler("completion/complete", types.CompleteRequestParams, service.complete)
    server.add_request_handler("skills/list", paged, service.list_skills)
    server.add_request_handler("skills/get", types.ReadResourceRequestParams, service.get_skill)
    server.extensions[skills.EXTENSION] = {}


def _invalid(message: str, data: Any = None) -> Exception:
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_PARAMS

    return MCPError(code=INVALID_PARAMS, message=message, data=data)


def _unread(err: RyeError, uri: str, revision: str) -> Exception:
    """Return the error for a resource that cannot be read; revisions before 2026 have a code of their own for one not there."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_PARAMS

    missing = err.code in ("unknown_resource", "unknown_skill", "item_not_found", "bad_item_id", "job_not_found")
    code = _RESOURCE_NOT_FOUND if missing and revision < "2026" else INVALID_PARAMS
    # The hint is for a shell; here the search is a tool.
    return MCPError(code=code, message=str(err).replace("`rye search`", "rye_search"), data={"uri": uri})


def _actor(context: ServerRequestContext[Any], process: str) -> str:
    """Return the client's name and its session, under which the journal records what it changes."""
    client = context.session.client_params
    # The client names itself: only plain characters of it go into the journal.
    name = re.sub(r"[^\w.@+-]+", " ", client.client_info.name)[:40].strip() if client else ""
    # The ID itself lets its holder speak for the session, so only a digest of it is recorded.
    session = context.request.headers.get("mcp-session-id") if context.request is not None else None
    return f"{name or 'mcp'} {sha256(session.encode()).hexdigest()[:8] if session else process}"


def _reporter(context: ServerRequestContext[Any]) -> Any:
    """Return what sends progress notifications, if the caller asked for them."""
    # The protocol forbids progress notifications that carry no token of the request.
    if not context.meta or "progress_token" not in context.meta:
        return None

    async def report(done: float, text: str) -> None:
        await context.session.report_progress(done, None, text or None)

    return report


async def _threaded(function: Any, *args: Any) -> Any:
    import anyio.to_thread

    return await anyio.to_thread.run_sync(function, *args)


def serve_stdio(project: str, selection: Selection, wire: Wire) -> None:
    """Serve one client over its descriptors until it closes them."""
    import anyio

    service = Service(project, selection)

    async def serve() -> None:
        server = service.server()
        async with stdio.streams(wire, service.quick) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)
    service.calls.settle(_SETTLE_SECONDS)


def serve_http(project: str, selection: Selection, address: http.Address, workers: int = 1) -> None:
    """Serve any number of clients at an address until the process is stopped. Errors as `rye.mcp_server.http.serve`.

    `workers` are the processes that serve them.
    """
    token, is_new = http.token_to_use()
    service = Service(project, selection)
    if http.serve(service.server(), address, token, show_token=is_new, workers=workers):
        service.calls.settle(_SETTLE_SECONDS)

"""The MCP server: an agent's client lists and calls the project's tools over standard input and output, or over HTTP."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rye import api, mcp_http, mcp_resources
from rye.errors import RyeError
from rye.executor import Call
from rye.mcp_calls import Calls, Wanted
from rye.mcp_listing import Listing
from rye.mcp_selection import EXECUTE

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel.server import Server

    from rye.mcp_listing import Offered
    from rye.mcp_selection import Selection
    from rye.mcp_stdio import Wire
    from rye.toolkit.output import Door

REVISIONS: Final = ("2025-06-18", "2025-11-25", "2026-07-28")
"""The revisions of the protocol that are tested; the library speaks older ones too."""

_SETTLE_SECONDS = 4.0

# What the newest revision wants of every answer that could be kept: these are true now and for this user only.
_FRESH: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

_INSTRUCTIONS = (
    "Tools for the files of one project. read and grep show each line with a persistent ID, [LID:a1b2c3]: pass these IDs to "
    "edit_lines in place of line numbers or old text; they stay valid through other edits. undo takes a change back. A result "
    "that was cut ends with a [tool_result: …] line naming the call that continues. A failed call says what to do next."
)


class Service:
    """What the server's answers are made of, for one project and one selection."""

    def __init__(self, project: str, selection: Selection) -> None:
        self.project = project
        self.selection = selection
        self.listing = Listing(project, selection)
        self.calls = Calls(self._execute, partial(mcp_resources.keep, project))

    def _execute(self, item_id: str, arguments: dict[str, Any], door: Door) -> dict[str, Any]:
        call = Call("tool", item_id, arguments, self.project, door=door)
        return api.answer(call, self.selection.reaches if self.selection.meta else None)

    def server(self) -> Server[Any]:
        """Return the protocol library's server over this service."""
        from mcp.server.lowlevel.server import Server

        from rye import __version__

        server: Server[Any] = Server(
            "rye", version=__version__, title="RYE workspace tools", instructions=_INSTRUCTIONS,
            get_tool_input_schema=self.listing.schema_of,
        )  # fmt: skip
        # Handlers return what goes over the wire: the typed overloads want the library's models.
        _register(server, self)
        # Tracing spans around each message, which nobody collects here.
        server.middleware.clear()
        return server

    async def list_tools(self, context: ServerRequestContext[Any], params: Any) -> dict[str, Any]:  # noqa: ANN401, ARG002
        """Answer `tools/list`."""
        return {**_FRESH, "tools": await _threaded(self.listing.tools)}

    async def call_tool(self, context: ServerRequestContext[Any], params: Any) -> dict[str, Any]:  # noqa: ANN401
        """Answer `tools/call`: what fails inside a tool is a result with `isError`; an unknown name is a protocol error."""
        offered = self.listing.known(params.name) or await _threaded(self.listing.find, params.name)
        if offered is None:
            near = self.listing.near(params.name)
            hint = f"Did you mean {', '.join(near)}?" if near else "tools/list names what there is."
            raise _invalid(f"Unknown tool: {params.name!r}. {hint}")
        arguments = offered.arguments(params.arguments or {})
        runs = self._runs(offered, arguments)
        wanted = Wanted(
            offered.item_id, arguments, lane=runs.item_id, repeatable=runs.read_only, report=_reporter(context)
        )  # fmt: skip
        return await self.calls.result(wanted)

    def _runs(self, offered: Offered, arguments: dict[str, Any]) -> Offered:
        """Return the tool that a call comes to: of rye_execute, the one that it executes."""
        if offered.item_id != EXECUTE:
            return offered
        return self.listing.by_id(str(arguments.get("item_id"))) or offered

    async def list_resources(self, context: ServerRequestContext[Any], params: Any) -> dict[str, Any]:  # noqa: ANN401, ARG002
        """Answer `resources/list`."""
        return {**_FRESH, "resources": await _threaded(mcp_resources.listed, self.project)}

    async def list_templates(self, context: ServerRequestContext[Any], params: Any) -> dict[str, Any]:  # noqa: ANN401, ARG002
        """Answer `resources/templates/list`."""
        return {**_FRESH, "resourceTemplates": mcp_resources.TEMPLATES}

    async def read_resource(self, context: ServerRequestContext[Any], params: Any) -> dict[str, Any]:  # noqa: ANN401, ARG002
        """Answer `resources/read`."""
        try:
            return {**_FRESH, "contents": [await _threaded(mcp_resources.read, self.project, str(params.uri))]}
        except RyeError as err:
            raise _invalid(str(err)) from None


def _register(server: Server[Any], service: Service) -> None:
    import mcp_types as types

    paged = types.PaginatedRequestParams
    server.add_request_handler("tools/list", paged, service.list_tools)
    server.add_request_handler("tools/call", types.CallToolRequestParams, service.call_tool)
    server.add_request_handler("resources/list", paged, service.list_resources)
    server.add_request_handler("resources/templates/list", paged, service.list_templates)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, service.read_resource)


def _invalid(message: str) -> Exception:
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_PARAMS

    return MCPError(code=INVALID_PARAMS, message=message)


def _reporter(context: ServerRequestContext[Any]) -> Any:  # noqa: ANN401
    """Return what sends progress notifications, if the caller asked for them."""
    if not context.meta or "progress_token" not in context.meta:
        return None

    async def report(done: float, text: str) -> None:
        await context.session.report_progress(done, None, text)

    return report


async def _threaded(function: Any, *args: Any) -> Any:  # noqa: ANN401
    import anyio.to_thread

    return await anyio.to_thread.run_sync(function, *args)


def serve_stdio(project: str, selection: Selection, wire: Wire) -> None:
    """Serve one client over its descriptors until it closes them."""
    import anyio

    from rye import mcp_stdio

    service = Service(project, selection)

    async def serve() -> None:
        server = service.server()
        async with mcp_stdio.streams(wire) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)
    service.calls.settle(_SETTLE_SECONDS)


def serve_http(project: str, selection: Selection, address: mcp_http.Address) -> None:
    """Serve any number of clients at an address until the process is told to stop. Errors as `rye.mcp_http.serve`."""
    token, is_new = mcp_http.token_to_use()
    service = Service(project, selection)
    mcp_http.serve(service.server(), address, token, show_token=is_new)
    service.calls.settle(_SETTLE_SECONDS)

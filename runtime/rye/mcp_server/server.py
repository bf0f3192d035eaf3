"""The MCP server: an agent's client lists and calls the project's tools over standard input and output, or over HTTP."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from rye._version import __version__
from rye.mcp_server import http, skills, stdio
from rye.mcp_server.messages import INSTRUCTIONS, NAME, TITLE, Peer, Refused
from rye.mcp_server.service import Service, actor_of, session_of
from rye.mcp_server.session import Session

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel.server import Server

    from rye.mcp_server.listing import Selection
    from rye.mcp_server.stdio import Wire


REVISIONS: Final = ("2025-06-18", "2025-11-25", "2026-07-28")
"""The revisions of the protocol that are tested; the library speaks older ones too."""

_SETTLE_SECONDS = 4.0


def library_server(service: Service, opened: Callable[[Peer], None] | None = None) -> Server[Any]:
    """Return the protocol library's server over a service. `opened` is told who calls, before each call of a tool."""
    from mcp.server.lowlevel.server import Server

    server: Server[Any] = Server(
        NAME, version=__version__, title=TITLE, instructions=INSTRUCTIONS, get_tool_input_schema=service.listing.schema_of
    )
    # Handlers return what goes over the wire: the typed overloads want the library's models.
    _register(server, service, opened)
    # Tracing spans around each message, which nobody collects here.
    server.middleware.clear()
    return server


def _register(server: Server[Any], service: Service, opened: Callable[[Peer], None] | None) -> None:
    import mcp_types as types

    paged = types.PaginatedRequestParams
    wanted: dict[str, Any] = {
        "tools/list": paged,
        "tools/call": types.CallToolRequestParams,
        "resources/list": paged,
        "resources/templates/list": paged,
        "resources/read": types.ReadResourceRequestParams,
        "prompts/list": paged,
        "prompts/get": types.GetPromptRequestParams,
        "completion/complete": types.CompleteRequestParams,
        "skills/list": paged,
        "skills/get": types.ReadResourceRequestParams,
    }
    # Used as the session where the transport has none: standard input and output serve one client.
    process = os.urandom(4).hex()

    async def handled(context: ServerRequestContext[Any], params: Any) -> dict[str, Any]:  # noqa: ARG001 - held to its schema
        peer = _peer(context, process)
        if opened is not None and context.method == "tools/call":
            opened(peer)
        try:
            return await service.answer(context.method, dict(context.params or {}), peer, _reporter(context))
        except Refused as err:
            from mcp.shared.exceptions import MCPError

            raise MCPError(code=err.code, message=err.message, data=err.data) from None

    for method, kind in wanted.items():
        server.add_request_handler(method, kind, handled)
    server.extensions[skills.EXTENSION] = {}


def _peer(context: ServerRequestContext[Any], process: str) -> Peer:
    client = context.session.client_params
    name = client.client_info.name if client else None
    secret = context.request.headers.get("mcp-session-id") if context.request is not None else None
    actor = actor_of(name, session_of(secret) if secret else process)
    return Peer(actor, context.protocol_version)


def _reporter(context: ServerRequestContext[Any]) -> Any:
    """Return what sends progress notifications, if the caller asked for them."""
    # The protocol forbids progress notifications that carry no token of the request.
    if not context.meta or "progress_token" not in context.meta:
        return None

    async def report(done: float, text: str) -> None:
        await context.session.report_progress(done, None, text or None)

    return report


def serve_stdio(project: str, selection: Selection, wire: Wire) -> None:
    """Serve one client over its descriptors until it closes them."""
    import anyio

    service = Service(project, selection)

    async def serve() -> None:
        session = Session(service)
        async with stdio.streams(wire, session) as (incoming, outgoing):
            # The library is loaded for the first message that the session leaves to it, which most clients never send.
            if await session.left():
                server = library_server(service, session.opened)
                await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)
    service.calls.settle(_SETTLE_SECONDS)


def serve_http(project: str, selection: Selection, address: http.Address) -> None:
    """Serve any number of clients at an address until the process is stopped. Errors as `rye.mcp_server.http.serve`."""
    token, is_new = http.token_to_use()
    service = Service(project, selection)
    http.serve(library_server(service), address, token, show_token=is_new)
    service.calls.settle(_SETTLE_SECONDS)

"""The MCP server: an agent's client lists and calls the project's tools over standard input and output, or over HTTP."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from rye._version import __version__
from rye.call.context import Cancellation
from rye.executor import run_code
from rye.mcp_server import skills
from rye.mcp_server.client_config import PATH, TOKEN_VARIABLE
from rye.mcp_server.protocol import INSTRUCTIONS, NAME, TITLE, Peer, ProtocolError, actor_of
from rye.mcp_server.service import Service

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel.server import Server

    from rye.local_http import Address
    from rye.mcp_server.listing import Selection


_SETTLE_SECONDS = 4.0
_PROGRAM: Final = "rye mcp"
# Bytes; a larger request is refused.
_MOST_BODY: Final = 4 * 1024 * 1024
# A client that leaves without ending its session has one until it was idle for so long; only beyond these one is refused.
_IDLE_SECONDS: Final = 600.0
_MOST_SESSIONS: Final = 1_024
_MOST_CONNECTIONS: Final = 512


def library_server(service: Service) -> Server[Any]:
    """Return the protocol library's server over a service."""
    from mcp.server.lowlevel.server import Server

    server: Server[Any] = Server(
        NAME, version=__version__, title=TITLE, instructions=INSTRUCTIONS, get_tool_input_schema=service.listing.schema_of
    )
    # Handlers return what goes over the wire: the typed overloads want the library's models.
    _register(server, service)
    # Tracing spans around each message, which nobody collects here.
    server.middleware.clear()
    return server


def _register(server: Server[Any], service: Service) -> None:
    import anyio.to_thread
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
    # Used as the session of requests that have none.
    process = os.urandom(4).hex()

    async def handled(context: ServerRequestContext[Any], params: Any) -> dict[str, Any]:  # noqa: ARG001 - held to its schema
        peer, given = _peer(context, process), dict(context.params or {})
        try:
            if context.method == "tools/call":
                return await _called(service, given, peer, context)
            return await anyio.to_thread.run_sync(service.answer, context.method, given, peer)
        except ProtocolError as err:
            from mcp.shared.exceptions import MCPError

            raise MCPError(code=err.code, message=err.message, data=err.data) from None

    for method, kind in wanted.items():
        server.add_request_handler(method, kind, handled)
    server.extensions[skills.EXTENSION] = {}


async def _called(service: Service, params: dict[str, Any], peer: Peer, context: ServerRequestContext[Any]) -> dict[str, Any]:
    """Run a call in a thread; pass on its progress, and its cancellation by the caller's task."""
    import asyncio

    loop, news, cancellation = asyncio.get_running_loop(), asyncio.Queue[Any](), Cancellation()

    def tell(first: Any, second: Any) -> None:
        # A call that was given up may end after the server's loop is gone.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(news.put_nowait, (first, second))

    # The protocol forbids progress notifications that carry no token of the request.
    report = tell if context.meta and "progress_token" in context.meta else None
    run_code.start(partial(service.call, params, peer, report, cancellation, tell))
    try:
        while True:
            first, second = await news.get()
            if isinstance(first, float):
                await context.session.report_progress(first, None, second or None)
            elif first is None:
                raise second
            else:
                result: dict[str, Any] = first
                return result
    except asyncio.CancelledError:
        # Sets a flag that the tool's library checks; a Python thread cannot be stopped from outside.
        cancellation.cancel()
        raise


def _peer(context: ServerRequestContext[Any], process: str) -> Peer:
    client = context.session.client_params
    name = client.client_info.name if client else None
    secret = context.request.headers.get("mcp-session-id") if context.request is not None else None
    # Not the ID itself: that lets its holder speak for the session.
    session = sha256(secret.encode()).hexdigest()[:8] if secret else process
    return Peer(actor_of(name, session), context.protocol_version)


def serve_http(project: str, selection: Selection, address: Address) -> None:
    """Serve clients on this machine that hold the token, until the process is stopped; the guard judges every request before.

    Raises:
        UsageError: `cannot_listen`, when the address is taken or not this machine's; `weak_token`.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    from rye import local_http

    token, is_new = local_http.token_to_use(TOKEN_VARIABLE)
    service = Service(project, selection)
    listening = local_http.listen(address)
    # Port 0 lets the system choose; clients need the number that it chose.
    address = local_http.Address(address.host, listening.getsockname()[1])
    shown = token if is_new else f"${TOKEN_VARIABLE}"
    local_http.announce(_PROGRAM, f"listening at {local_http.url_of(address, PATH)}", address, shown)
    app = library_server(service).streamable_http_app(
        # The guard before it judges names and origins, more strictly.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        streamable_http_path=PATH,
        max_request_body_size=_MOST_BODY,
        session_idle_timeout=_IDLE_SECONDS,
        max_sessions=_MOST_SESSIONS,
    )
    guard = local_http.Guard(app, address, token, _PROGRAM, PATH)
    local_http.web_server(guard, _MOST_CONNECTIONS, lifespan="on").run(sockets=[listening])
    service.calls.settle(_SETTLE_SECONDS)

"""MCP over streamable HTTP: for clients on this machine that hold the token. `rye.local_http` judges every request before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rye import local_http
from rye.local_http import Address, Guard

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server

PATH: Final = "/mcp"
TOKEN_VARIABLE: Final = "RYE_MCP_TOKEN"  # noqa: S105 - the name of a variable

MOST_BODY: Final = 4 * 1024 * 1024
"""A larger request is refused (bytes)."""

_PROGRAM: Final = "rye mcp"
_IDLE_SECONDS: Final = 600.0
_MOST_SESSIONS: Final = 1_024
"""A client that leaves without ending its session has one until it was idle for so long; only beyond these one is refused."""
_MOST_CONNECTIONS: Final = 512


def serve(server: Server[Any], address: Address, token: str, *, show_token: bool) -> None:
    """Serve until the process is stopped.

    Raises:
        UsageError: `cannot_listen`, when the address is taken or not this machine's.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    listening = local_http.listen(address)
    # Port 0 lets the system choose; clients need the number that it chose.
    address = Address(address.host, listening.getsockname()[1])
    shown = token if show_token else f"${TOKEN_VARIABLE}"
    local_http.announce(_PROGRAM, f"listening at {local_http.url_of(address, PATH)}", address, shown)
    app = server.streamable_http_app(
        # The guard before it judges names and origins, more strictly.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        streamable_http_path=PATH,
        max_request_body_size=MOST_BODY,
        session_idle_timeout=_IDLE_SECONDS,
        max_sessions=_MOST_SESSIONS,
    )
    guard = Guard(app, address, token, _PROGRAM, PATH)
    local_http.web_server(guard, _MOST_CONNECTIONS, lifespan="on").run(sockets=[listening])

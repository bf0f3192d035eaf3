"""MCP over streamable HTTP: for clients on this machine that hold the token. `rye.local_http` judges every request before."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Final

from rye import local_http
from rye.local_http import Address, App, Guard, Receive, Scope, Send

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server

PATH: Final = "/mcp"
TOKEN_VARIABLE: Final = "RYE_MCP_TOKEN"  # noqa: S105 - the name of a variable

MOST_BODY: Final = 4 * 1024 * 1024
"""A larger request is refused (bytes)."""

_PROGRAM: Final = "rye mcp"
_IDLE_SECONDS: Final = 600.0
_MOST_SESSIONS: Final = 256
_MOST_CONNECTIONS: Final = 512


class Sessions:
    """Ends the session that was idle for longest when a new client comes and all are taken.

    A session that answers a request, or on which a client listens, is not idle.
    """

    def __init__(self, app: App, most: int = _MOST_SESSIONS) -> None:
        self._app = app
        self._most = most
        # Session -> requests under way, in the order of last use.
        self._known: dict[bytes, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        session = next((value for name, value in scope["headers"] if name == b"mcp-session-id"), None)
        if session is None:
            await self._make_place(scope)

        async def noted(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self._note(scope, message, session)
            await send(message)

        self._count(session, 1)
        try:
            await self._app(scope, receive, noted)
        finally:
            self._count(session, -1)

    def _count(self, session: bytes | None, change: int) -> None:
        if session in self._known:
            # Taken out and put in again: a dict's order is that of insertion, so the front is the longest unused.
            self._known[session] = self._known.pop(session) + change

    def _note(self, scope: Scope, message: MutableMapping[str, Any], session: bytes | None) -> None:
        """Learn from a response that a session began, or is over."""
        begun = next((value for name, value in message.get("headers", ()) if name.lower() == b"mcp-session-id"), None)
        if session is None and begun is not None and message["status"] < 400:
            self._known.setdefault(begun, 0)
        elif session is not None and (message["status"] == 404 or (scope["method"] == "DELETE" and message["status"] < 400)):
            self._known.pop(session, None)

    async def _make_place(self, scope: Scope) -> None:
        while len(self._known) >= self._most:
            idlest = next((session for session, running in self._known.items() if running == 0), None)
            if idlest is None:
                return
            # Before the request, which suspends this task: another client must not choose the same session.
            del self._known[idlest]
            await self._end(scope, idlest)

    async def _end(self, scope: Scope, session: bytes) -> None:
        """End a session as its client would: by a DELETE request."""
        headers = [pair for pair in scope["headers"] if pair[0] in (b"host", b"authorization", b"mcp-protocol-version")]
        headers += [(b"accept", b"application/json, text/event-stream"), (b"mcp-session-id", session)]

        async def nothing() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unread(message: MutableMapping[str, Any]) -> None:
            pass

        await self._app({**scope, "method": "DELETE", "headers": headers}, nothing, unread)


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
        # Some more than `Sessions` lets begin: clients that come at the same moment are not refused.
        max_sessions=_MOST_SESSIONS + 64,
    )
    guard = Guard(Sessions(app), address, token, _PROGRAM, PATH)
    local_http.web_server(guard, _MOST_CONNECTIONS, lifespan="on").run(sockets=[listening])

"""What the package's local web servers share: the address, the token, the guard before each request, and uvicorn's settings.

Every request is judged before its body is read: the Host and Origin headers, so that no web page reaches the server through a
name that it made point here (DNS rebinding), and the bearer token.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from rye.call.safe_text import plain
from rye.errors import UsageError
from rye.plain_class import Record

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_LEAST_TOKEN: Final = 16
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


class Address(Record):
    """Where to listen: a host as it was given (an IPv6 address without brackets), and a port, 0 for any free one."""

    host: str
    port: int


def parse_address(text: str) -> Address:
    """Return the address that `HOST:PORT`, `:PORT` or `PORT` names; the default host is 127.0.0.1.

    Raises:
        UsageError: `bad_address`.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit() and int(port) < 65_536) or any(char.isspace() or char == "/" for char in host):
        raise UsageError("bad_address", f"{text!r} is no HOST:PORT.", "Give one such as 127.0.0.1:8765, or only a port.")
    return Address(host, int(port))


def token_to_use(variable: str) -> tuple[str, bool]:
    """Return the token that clients must send, and whether it was made now (else it is the user's own).

    Raises:
        UsageError: `weak_token`, when the user's is short or cannot stand in a header.
    """
    given = os.environ.get(variable)
    if not given:
        return secrets.token_urlsafe(32), True
    # A header cannot carry other characters, and blanks at its ends are stripped on the way.
    if len(given) < _LEAST_TOKEN or not all("!" <= char <= "~" for char in given):
        raise UsageError(
            "weak_token",
            f"{variable} holds no usable token.",
            f"Give at least {_LEAST_TOKEN} printable ASCII characters without spaces, or unset it: one is made then.",
        )
    return given, False


class Guard:
    """Lets through what comes from a client on an expected name, from no foreign web page, with the token."""

    def __init__(self, app: App, address: Address, token: str | None, program: str, path: str | None = None) -> None:
        """Guard an application.

        Args:
            app: what answers.
            address: where it is reached.
            token: what clients must send; None lets in who sends none.
            program: by which name refusals speak of the server.
            path: the only path that is served; None for all.
        """
        self._app = app
        self._token = None if token is None else token.encode()
        self._program, self._path = program, path
        self._hosts = hosts(address)
        self._any_ip = _is_wildcard(address.host)
        self._port = address.port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge a request, and answer it or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._judge(scope)
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await answer(send, *refusal, *([(b"www-authenticate", b"Bearer")] if refusal[0] == 401 else ()))

    def _judge(self, scope: Scope) -> tuple[int, str] | None:
        headers: list[tuple[bytes, bytes]] = list(scope["headers"])
        # Exactly one is accepted: servers and proxies differ in which of two they believe.
        named = [value.decode("latin-1") for name, value in headers if name == b"host"]
        if len(named) != 1 or not self._expected(named[0]):
            return 421, f"The Host header names another server. Use the address that {self._program} printed.\n"
        # Browsers send Origin, other clients none: its absence is no fault.
        origins = [value.decode("latin-1") for name, value in headers if name == b"origin"]
        if origins and not (len(origins) == 1 and self._own_origin(origins[0])):
            return 403, "Requests of web pages of other origins are refused.\n"
        shown = [value for name, value in headers if name == b"authorization"]
        if self._needs_token(scope) and (len(shown) != 1 or not self._right_token(shown[0])):
            said = f"Send the header `Authorization: Bearer TOKEN` with the token that {self._program} printed at its start.\n"
            return 401, said
        # Last: without the token nobody learns which paths exist.
        if self._path not in (None, scope["path"]):
            return 404, f"The server is at {self._path}.\n"
        return None

    def _needs_token(self, _scope: Scope) -> bool:
        return self._token is not None

    def _expected(self, host: str) -> bool:
        if host.lower() in self._hosts:
            return True
        # A page cannot make an address of numbers mean something else, so any of this machine's will do.
        name, _, port = host.rpartition(":")
        return self._any_ip and port == str(self._port) and _is_ip(name.removeprefix("[").removesuffix("]"))

    def _own_origin(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return scheme in ("http", "https") and self._expected(host)

    def _right_token(self, shown: bytes) -> bool:
        scheme, _, token = shown.partition(b" ")
        # compare_digest takes the same time wherever the difference is.
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(b" "), self._token or b"")


def hosts(address: Address) -> frozenset[str]:
    """Return the Host headers that mean a server at this address."""
    name = f"[{address.host}]" if ":" in address.host else address.host
    names = {name.lower()}
    if _is_wildcard(address.host) or name in _LOOPBACK:
        names |= {*_LOOPBACK, *({socket.gethostname().lower()} if _is_wildcard(address.host) else ())}
    return frozenset({f"{one}:{address.port}" for one in names} | (names if address.port == 80 else set()))


def _is_wildcard(host: str) -> bool:
    return host in ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound to


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine for itself alone."""
    return host == "localhost" or (_is_ip(host) and ipaddress.ip_address(host).is_loopback)


async def answer(send: Send, status: int, text: str, *headers: tuple[bytes, bytes], kind: str = "text/plain") -> None:
    """Send a whole answer. A refusal closes the connection: a body may be on its way that nobody will read."""
    body = text.encode()
    length = (b"content-length", str(len(body)).encode())
    close = () if status == 200 else ((b"connection", b"close"),)
    every = [(b"content-type", f"{kind}; charset=utf-8".encode()), length, *close, *headers]
    await send({"type": "http.response.start", "status": status, "headers": every})
    await send({"type": "http.response.body", "body": body})


def web_server(app: App, most: int, **others: Any) -> Any:
    """Return a web server for an application, as every server of the package has it.

    Args:
        app: what answers, its guard before it.
        most: connections at a time; beyond these requests are answered with 503. Of those that have brought no whole request
            yet, or none since the last answer, the oldest is closed beyond half of these.
        others: further settings of uvicorn; they replace the common ones.
    """
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    waiting: dict[H11Protocol, None] = {}

    class Protocol(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def _wait(self) -> None:
            waiting[self] = None
            if len(waiting) > most // 2:
                # The first one waits longest: a client that keeps requests back loses to new ones.
                first = next(iter(waiting))
                del waiting[first]
                first.transport.close()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._judge()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if not self.transport.is_closing():
                # For the next request, which may never be whole either.
                self._wait()
                self._judge()

        def _judge(self) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                waiting.pop(self, None)

        def connection_lost(self, exc: Exception | None) -> None:
            waiting.pop(self, None)
            super().connection_lost(exc)

    common = {
        # A warning is for what a stranger sent: each would be a line, and a full pipe of lines would hold the server up.
        "log_level": "error",
        "access_log": False,
        "server_header": False,
        "ws": "none",
        "lifespan": "off",
        "timeout_graceful_shutdown": 3,
    }
    return uvicorn.Server(uvicorn.Config(app, http=Protocol, limit_concurrency=most, **{**common, **others}))


def listen(address: Address) -> socket.socket:
    """Return a socket that listens there. Raises UsageError: `cannot_listen`."""
    try:
        if not 0 <= address.port < 65_536:
            # The C library would take the rest of a division.
            raise OSError(0, "there is no such port")
        family, kind, proto, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, proto)
        # Without it a restart fails while old connections are in TIME_WAIT.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        # Before the address is printed: who reads it may connect at once.
        listening.listen(128)
    except (OSError, UnicodeError) as err:
        raise UsageError(
            "cannot_listen",
            f"Cannot listen at {address.host}:{address.port}: {getattr(err, 'strerror', None) or err}.",
            "Give another port, or 0 for a free one.",
        ) from None
    return listening


def url_of(address: Address, path: str = "") -> str:
    """Return the URL at which clients reach a server at this address."""
    name = f"[{address.host}]" if ":" in address.host else address.host
    return f"http://{name}:{address.port}{path}"


def announce(program: str, what: str, address: Address, token: str | None) -> None:
    """Say at the terminal what is served where, and by which token: its text or variable, None where none is asked for."""
    lines = [what, f"Authorization: Bearer {token}" if token else "no token: whoever reaches this port runs commands here."]
    if not is_loopback(address.host):
        lines.append("warning: other machines can reach this address, and nothing on the way is encrypted.")
    sys.stderr.write("".join(f"{program}: {plain(line)}\n" for line in lines))
    sys.stderr.flush()

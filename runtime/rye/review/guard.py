"""Who may use the pages of `rye review`: every request is judged here, before anything of it is read or answered.

Three things are needed, and no one of them is enough. The path begins with a random part, to which the cookie is bound:
browsers send a cookie to every port of a host, so another server on this machine, which an agent may have started, would get
it else. The cookie itself is given for a code that works once, so that neither a history nor a log holds what opens the pages.
What changes something also needs the token that only the pages hold, and the Origin header of these pages.

The Host header must name this server (a name that a web page made point here is refused), and where the browser says which page
asks (Sec-Fetch-Site), it must be one of these, or nobody: the user's own hand.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable, MutableMapping
from typing import Any, Final
from urllib.parse import parse_qs

from rye.local_http import App, Receive, Scope, Send, answer

COOKIE: Final = "rye-review"
MOST_BODY: Final = 64 * 1024
"""A larger request is refused (bytes)."""

_BODY_SECONDS = 15.0
_OPEN = "open"

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-frame-options", b"DENY"),
    (b"cache-control", b"no-store"),
    # Not `no-referrer`: with it a browser sends the Origin `null` with the pages' own forms.
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)

_OPENED = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>rye review</title>'
    '<meta http-equiv="refresh" content="0;url=./"></head><body><p><a href="./">Go on to the pages</a></p></body></html>'
)


class PageGuard:
    """An ASGI application around another one, which sees only requests of the user."""

    def __init__(self, app: App, host: str, port: int, announce: Callable[[str], None]) -> None:
        """Guard an application at an address; `announce` shows an address with a new code to the user, at their terminal."""
        self._app, self._announce = app, announce
        self._origin = f"http://{host}:{port}"
        self._host = f"{host}:{port}".encode()
        self.path = f"/{secrets.token_urlsafe(12)}"
        self.form_token = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)
        self._code = secrets.token_urlsafe(24)

    @property
    def address(self) -> str:
        """The address that opens the pages, once."""
        return f"{self._origin}{self.path}/{_OPEN}?code={self._code}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge a request, and answer it or pass it on."""
        given: list[tuple[bytes, bytes]] = list(scope["headers"])
        refusal = self._refusal(scope, given)
        if refusal is None and scope["path"] == f"{self.path}/{_OPEN}":
            await self._open(scope, given, send)
        elif refusal is None:
            await self._pass_on(scope, receive, send)
        else:
            await _answer(send, *refusal)

    def _refusal(self, scope: Scope, given: list[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        hosts, origins, sites = (_values(given, name) for name in (b"host", b"origin", b"sec-fetch-site"))
        if hosts != [self._host]:
            return 421, "The Host header names another server. Use the address that rye review printed.\n"
        if not scope["path"].startswith(f"{self.path}/"):
            return 404, "Use the address that rye review printed.\n"
        if scope["path"] == f"{self.path}/{_OPEN}" and scope["method"] == "GET":
            return None
        if not self._is_known(given):
            return 401, "Open the address that rye review printed last: it works once.\n"
        if any(site not in (b"same-origin", b"none") for site in sites):
            return 403, "Requests of other pages are refused. Open the page from its own tab.\n"
        if scope["method"] not in ("GET", "HEAD") and origins != [self._origin.encode()]:
            return 403, "Requests of other pages are refused.\n"
        return None

    def _is_known(self, given: list[tuple[bytes, bytes]]) -> bool:
        # Each of several: a server at another port can add one of this name, but not take ours away.
        found = [value for text in _values(given, b"cookie") for value in _cookies(text)]
        return any(hmac.compare_digest(value, self._cookie.encode()) for value in found[:16])

    async def _open(self, scope: Scope, given: list[tuple[bytes, bytes]], send: Send) -> None:
        """Give the cookie for the code, which is then used up; a browser that has the cookie already may go on."""
        code = parse_qs(scope["query_string"].decode("latin-1")).get("code", [""])[-1]
        if hmac.compare_digest(code.encode("utf-8", "replace"), self._code.encode()):
            self._code = secrets.token_urlsafe(24)
            self._announce(self.address)
            cookie = f"{COOKIE}={self._cookie}; Path={self.path}; HttpOnly; SameSite=Strict"
            # A page that goes on by itself, not a redirect: after a link in a web page, a strict cookie would not be sent.
            await _answer(send, 200, _OPENED, (b"set-cookie", cookie.encode()), kind="text/html")
        elif self._is_known(given):
            await _answer(send, 200, _OPENED, kind="text/html")
        else:
            await _answer(send, 401, "This code was used or is wrong. Open the address that rye review printed last.\n")

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def hardened(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = [pair for pair in message["headers"] if pair[0] not in _NAMES]
                message = {**message, "headers": [*own, *_HEADERS]}
            await send(message)

        inner = {**scope, "path": scope["path"][len(self.path) :], "raw_path": b"", "root_path": ""}
        if scope["method"] in ("GET", "HEAD"):
            await self._app(inner, receive, hardened)
            return
        body = await _body(receive)
        if body is None:
            await _answer(send, 413, "The request is too large or too slow.\n")
            return
        form = _form(body)
        if not hmac.compare_digest(form.pop("token", "").encode("utf-8", "replace"), self.form_token.encode()):
            await _answer(send, 403, "Requests of other pages are refused.\n")
            return
        inner["rye.form"] = form
        await self._app(inner, receive, hardened)


_NAMES = frozenset(name for name, _ in _HEADERS)


def _values(given: list[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for one, value in given if one == name]


def _cookies(text: bytes) -> list[bytes]:
    """Return the values of our cookie; a browser may send several of one name."""
    pairs = (part.strip().partition(b"=") for part in text.split(b";"))
    return [value for name, _, value in pairs if name == COOKIE.encode()]


def _form(body: bytes) -> dict[str, str]:
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=64)
    except ValueError:
        return {}
    return {name: values[-1] for name, values in fields.items()}


async def _body(receive: Receive) -> bytes | None:
    """Return a request's body; None where it is too large, or does not come in time."""
    data = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while True:
                message = await receive()
                data += message.get("body", b"")
                if message["type"] == "http.disconnect" or len(data) > MOST_BODY:
                    return None
                if not message.get("more_body"):
                    return bytes(data)
    except TimeoutError:
        return None


async def _answer(send: Send, status: int, text: str, *headers: tuple[bytes, bytes], kind: str = "text/plain") -> None:
    await answer(send, status, text, *headers, *_HEADERS, kind=kind)

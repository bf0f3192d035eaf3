"""One registry's HTTP over `rye.web.client`: retries, redirects, and the challenge for credentials.

The registry that the user names may have any address. Where it leads, by a redirect or to a token server, must be public or
among the user's `web.allow_hosts`; a registry on this machine may lead to this machine. Credentials go to the registry's own
origin, and to the token server that it names; never along a redirect.
"""

from __future__ import annotations

import ipaddress
import json
import re
import threading
import time
import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urljoin, urlsplit

from rye.call import context
from rye.call.context import deadline
from rye.call.safe_text import of_json, plain
from rye.errors import RegistryError, RyeError, UsageError
from rye.plain_class import Record, field
from rye.registry.oci import credentials
from rye.registry.oci.credentials import Credentials
from rye.web import client
from rye.web.address_guard import ConnectError, FetchDeadline
from rye.web.addresses import Allowed
from rye.web.client import Connections, HttpAnswer

if TYPE_CHECKING:
    import httpx

# Seconds before each further attempt, where the server does not name its own.
_WAITS = (0.25, 0.5, 1.0, 2.0)
_LONGEST_WAIT = 10.0
# A slow answer may take so long: this, and a second for each 64 KB that were asked for.
_REQUEST_SECONDS = 60.0
_SLOWEST = 65_536
_CONNECTIONS = 16
_MAX_TOKEN_BYTES = 256 * 1024
_PASSING = (408, 425, 429, 500, 502, 503, 504)
_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


class RegistryRequest(Record):
    """A request to a registry.

    Attributes:
        method: such as `GET`.
        url: absolute, or a path on the host.
        scope: what a token must allow, such as `repository:my:pull`.
        what: what is asked for, in errors and as the beginning of their codes: `manifest`, `blob`, `tags`, `upload`.
        limit: the most bytes of an answer.
        headers, body: to send.
        answers: the statuses that answer it; any other is refused. None for whatever comes.
    """

    method: str
    url: str
    scope: str
    what: str
    limit: int = 64 * 1024
    headers: dict[str, str] = field(factory=dict)
    body: bytes = b""
    answers: tuple[int, ...] | None = (200, 404)


class PassingError(RegistryError):
    """A failure that may pass: no connection, a busy or failing server; `pause` is how long that server says to wait (s)."""

    pause: float | None = None


class RegistryHost:
    """A registry's host. Its methods may be called from several threads."""

    def __init__(self, host: str, *, plain_http: bool) -> None:
        """Take `name[:port]`; http is spoken to this machine, or where it is asked for.

        Raises:
            UsageError: `bad_registry`, `bad_url`.
        """
        if not _HOST.fullmatch(host):
            raise UsageError("bad_registry", f"Not a host: {host[:200]!r}.", "Write oci://host[:port][/prefix].")
        self.host = host
        scheme = "http" if plain_http or is_loopback(host) else "https"
        # As URLs are written back: in lower case, without the port that goes without saying.
        self.origin = str(client.parse(f"{scheme}://{host}")).rstrip("/")
        # Taken here: the call's context is not visible in the threads that use this host.
        self._deadline = deadline()
        self._limit = FetchDeadline(float("inf"))
        named = Allowed.of(context.settings().texts("web.allow_hosts"))
        proxy = str(context.settings().get("web.proxy")) or None
        # `_url` lets only a registry on this machine lead to this machine; a proxy's own loopback is another machine.
        local, proxy = (("localhost", "127.0.0.1", "::1"), None) if is_loopback(host) else ((), proxy)
        allowed = Allowed(frozenset({host.lower(), *local, *named.patterns}))
        self._pool = Connections(self._limit, allowed, proxy, _CONNECTIONS)
        # Who asks a registry need not close it.
        weakref.finalize(self, self._pool.close)
        self._lock = threading.RLock()
        self._headers: dict[str, str] = {}

    def send(self, request: RegistryRequest) -> HttpAnswer:
        """Send a request until it is answered for good.

        Raises:
            RegistryError: `registry_unreachable`, `registry_busy`, `<what>_oversized`, `<what>_truncated`, `bad_redirect`,
                `registry_unauthorized`, `bad_registry_answer`, `<what>_refused`. DeadlineError.
        """
        waits = list(_WAITS)
        while True:
            self._deadline.check()
            try:
                answer = self._authorized(request)
                if answer.status in _PASSING:
                    raise self._busy(answer, f"the request for the {request.what}")
                break
            except PassingError as err:
                if not waits:
                    raise
                wait = waits.pop(0)
                time.sleep(min(wait if err.pause is None else err.pause, self._deadline.remaining()))
        if request.answers is not None and answer.status not in request.answers:
            raise unexpected_status(self.host, answer, request.what)
        return answer

    def _busy(self, answer: HttpAnswer, asked: str) -> PassingError:
        err = PassingError("registry_busy", f"{self.host} answers {answer.status} to {asked}.", "Try again later.")
        after = answer.headers.get("retry-after", "")
        # Only the form in seconds; the HTTP date form would need this machine's clock to be right.
        err.pause = min(float(after), _LONGEST_WAIT) if after.isdecimal() else None
        return err

    def _authorized(self, request: RegistryRequest) -> HttpAnswer:
        """Send a request; where it is challenged, once more with what answers the challenge."""
        sent = self._headers.get(request.scope)
        answer = self._redirected(request, sent)
        # Another host, where the registry led, would name the token server that gets the credentials.
        if answer.status != 401 or not self._is_own(answer.url):
            return answer
        with self._lock:
            # Another thread may have answered the same challenge meanwhile.
            if self._headers.get(request.scope) == sent:
                self._headers[request.scope] = self._answer(answer.headers.get("www-authenticate", ""), request.scope)
            now = self._headers[request.scope]
        # Once only: a server that challenges again does not accept these credentials.
        answer = self._redirected(request, now)
        if answer.status in (401, 403):
            raise self._unauthorized(f"it refuses the credentials for {request.scope}")
        return answer

    def _redirected(self, request: RegistryRequest, authorization: str | None) -> HttpAnswer:
        """Send a request; what only asks follows redirects."""
        first = self._url(request.url)

        def send(url: httpx.URL) -> HttpAnswer:
            # Decided for each hop: a redirect to a blob store must not carry the registry's token.
            own = self._is_own(str(url))
            return self._send_once(request, url, {"Authorization": authorization} if own and authorization else {})

        if request.method not in ("GET", "HEAD"):
            return send(first)
        return client.follow(first, send, lambda here, answer: self._url(answer.headers["location"], here))

    def _is_own(self, url: str) -> bool:
        return url.startswith(f"{self.origin}/")

    def _url(self, location: str, base: httpx.URL | None = None) -> httpx.URL:
        """Return where a location leads: not from https to http, from this machine's http to another's, or to another scheme.

        Raises:
            RegistryError: `bad_redirect`.
        """
        try:
            # Servers send absolute and relative locations; both are judged as absolute ones.
            url = client.parse(urljoin(str(base) if base is not None else f"{self.origin}/", location))
        except (UsageError, ValueError) as err:
            raise self._bad_redirect(location, f"which is no URL: {err}") from None
        # By parts, not by prefix: `https://host@other/` begins with the right text.
        parts = urlsplit(str(url))
        known = parts.scheme == "https" or f"{parts.scheme}://{parts.netloc}" == self.origin
        local = parts.scheme == "http" and is_loopback(parts.netloc) and is_loopback(self.host)
        if not (known or local) or parts.username is not None:
            raise self._bad_redirect(str(url), "where nothing is asked")
        return url

    def _bad_redirect(self, where: str, why: str, hint: str = "Check the registry's address.") -> RegistryError:
        return RegistryError("bad_redirect", f"{self.host} leads to {plain(where, 200)!r}, {why}.", hint)

    def _send_once(self, request: RegistryRequest, url: httpx.URL, headers: dict[str, str]) -> HttpAnswer:
        """Send one request and read its answer, at most the request's limit."""
        general = {"User-Agent": client.USER_AGENT, "Accept-Encoding": "identity", "Accept": "*/*"}
        sent = {**general, **request.headers, **headers}
        try:
            # A slow sender cannot hold the call: each request has its own time.
            with self._limit.one_request(_REQUEST_SECONDS + max(request.limit, len(request.body)) / _SLOWEST):
                answer = self._pool.send(request.method, url, sent, content=request.body, most=request.limit, compressed=False)
        except (client.FetchError, ConnectError) as err:
            raise self._failed(err, request) from None
        # An error's long page is only shown in part, so its cut does not matter.
        if answer.cut and answer.status < 300:
            why = f"{self.host} sends more than {request.limit:,} bytes for the {request.what}."
            raise RegistryError(f"{request.what}_oversized", why, "The rest was not read; nothing was installed.")
        return answer

    def _failed(self, err: RyeError, request: RegistryRequest) -> RegistryError:
        """Return the registry's error for one of the HTTP client."""
        what = request.what
        if err.code == "address_not_public":
            return self._bad_redirect(request.url, f"for the {what}, where nothing is asked: {err.message}", err.hint)
        if err.code == "unsupported_encoding":
            message = f"{self.host} compresses the {what}, which was not asked for."
            return RegistryError("bad_registry_answer", message, "Nothing is taken.")
        if err.code == "answer_truncated":
            message = f"{self.host} ends the {what} before its announced length."
            return PassingError(f"{what}_truncated", message, "Try again later.")
        late = err.code == "fetch_timeout"
        code, why = ("registry_timeout", "does not answer in time") if late else ("registry_unreachable", "cannot be reached")
        message = err.message if why in err.message else f"{self.host} {why}: {err.message}"
        return PassingError(code, message, "Check the address and the network.")

    @cached_property
    def _credentials(self) -> Credentials | None:
        return credentials.credentials(self.host)

    def _answer(self, challenge: str, scope: str) -> str:
        """Return the Authorization header that answers a challenge."""
        kind, _, rest = challenge.partition(" ")
        if kind.lower() == "basic" and self._credentials is not None and self._credentials.password:
            return self._credentials.basic
        if kind.lower() != "bearer":
            raise self._unauthorized("it asks for credentials, and none are known for it")
        return f"Bearer {self._token(dict(_CHALLENGE.findall(rest)), scope)}"

    def _token(self, challenge: dict[str, str], scope: str) -> str:
        realm, known = challenge.get("realm", ""), self._credentials
        query = {"service": challenge.get("service", ""), "scope": challenge.get("scope") or scope}
        # A refresh token goes in a POST body: in a URL it would end in the server's logs.
        if known is not None and known.identity:
            form = {**query, "grant_type": "refresh_token", "refresh_token": known.identity, "client_id": "rye"}
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            request = RegistryRequest("POST", realm, scope, "token", _MAX_TOKEN_BYTES, headers, urlencode(form).encode())
            answer = self._send_once(request, self._url(realm), {})
        else:
            url = self._url(f"{realm}{'&' if '?' in realm else '?'}{urlencode(query)}")
            secret = {"Authorization": known.basic} if known is not None and known.password else {}
            answer = self._send_once(RegistryRequest("GET", realm, scope, "token", _MAX_TOKEN_BYTES), url, secret)
        if answer.status in _PASSING:
            raise self._busy(answer, "the request for a token")
        if answer.status != 200:
            raise self._unauthorized(f"its token server answers {answer.status}")
        record = of_json(answer.body)
        # Two names: docker's protocol says `token`, OAuth says `access_token`.
        token = (record.get("token") or record.get("access_token")) if isinstance(record, dict) else None
        # It becomes a header: a line break in it would add headers of the server's choice.
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            why = f"The token server of {self.host} gives no token."
            raise RegistryError("bad_registry_answer", why, "Check the registry's address.")
        return token

    def _unauthorized(self, why: str) -> RegistryError:
        what = f"{self.host} refuses access: {why}."
        return RegistryError("registry_unauthorized", what, f"Run `docker login {self.host}`, then try again.")


def is_loopback(netloc: str) -> bool:
    """Tell whether a host names this machine by `localhost` or a loopback address."""
    host = netloc.rpartition("@")[2]
    host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def unexpected_status(host: str, answer: HttpAnswer, what: str) -> RegistryError:
    """Return the error for a status that is no answer to what was asked."""
    detail: Any = None
    try:
        detail = json.loads(answer.body)["errors"][0].get("message")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        detail = "HTML, not a registry's answer" if answer.body.lstrip()[:1] == b"<" else None
    more = f": {plain(detail, 200)}" if isinstance(detail, str) else ""
    why = f"{host} answers {answer.status} to the request for the {what}{more}."
    return RegistryError(f"{what}_refused", why, "Check address and permissions.")

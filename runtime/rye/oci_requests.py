"""One host's HTTP, as a registry speaks it: bounded answers, retries, redirects, and the challenge for credentials.

Credentials go to the registry's own origin, and to the token server that it names; never along a redirect.
"""

from __future__ import annotations

import ipaddress
import re
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from rye import oci_auth
from rye.errors import RegistryError, UsageError
from rye.record import Record, field
from rye.toolkit import config
from rye.toolkit.output import deadline
from rye.toolkit.untrusted import plain

if TYPE_CHECKING:
    import httpx

    from rye.oci_auth import Credentials

WAITS = (0.25, 0.5, 1.0, 2.0)
"""Seconds before each further attempt, where the server does not name its own."""

_LONGEST_WAIT = 10.0
_CONNECT_SECONDS, _READ_SECONDS = 10.0, 30.0
_MAX_REDIRECTS = 5
_MAX_TOKEN_BYTES = 256 * 1024
_PASSING = (408, 425, 429, 500, 502, 503, 504)
_MOVED = (301, 302, 303, 307, 308)
_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_AGENT = "rye-workspace (+https://pypi.org/project/rye-workspace/)"


class Answer(Record):
    """What came: status, headers in lower case, body."""

    status: int
    headers: dict[str, str]
    body: bytes


class Ask(Record):
    """What to ask.

    Attributes:
        method: such as `GET`.
        url: absolute, or a path on the host.
        scope: what a token must allow, such as `repository:my:pull`.
        what: what is asked for, in errors and as the beginning of their codes: `manifest`, `blob`, `tags`, `upload`.
        limit: the most bytes of an answer.
        headers, body: to send.
        retry: try again after a passing failure; not for what cannot be sent twice.
    """

    method: str
    url: str
    scope: str
    what: str
    limit: int = 64 * 1024
    headers: dict[str, str] = field(factory=dict)
    body: bytes = b""
    retry: bool = True


class PassingError(RegistryError):
    """A failure that may pass: no connection, a busy or failing server."""


class Host:
    """A registry's host. Its methods may be called from several threads."""

    def __init__(self, host: str, *, plain_http: bool) -> None:
        """Take `name[:port]`; http is spoken to this machine, or where it is asked for.

        Raises:
            UsageError: `bad_registry`.
        """
        if not _HOST.fullmatch(host):
            raise UsageError("bad_registry", f"Not a host: {host[:200]!r}.", "Write oci://host[:port][/prefix].")
        self.host = host
        self.origin = f"{'http' if plain_http or is_loopback(host) else 'https'}://{host}"
        self._deadline = deadline()
        self._proxy = str(config.setting("web.proxy")) or None
        self._lock = threading.RLock()
        self._made: httpx.Client | None = None
        self._credentials: Credentials | None = None
        self._asked = False
        self._headers: dict[str, str] = {}

    def ask(self, ask: Ask) -> Answer:
        """Send a request until it is answered for good; the answer may be an error's.

        Raises:
            RegistryError: `registry_unreachable`, `registry_busy`, `<what>_oversized`, `<what>_truncated`, `bad_redirect`,
                `registry_unauthorized`, `bad_registry_answer`. DeadlineError.
        """
        for wait in (*(WAITS if ask.retry else ()), None):
            self._deadline.check()
            try:
                answer = self._authorized(ask)
            except PassingError:
                if wait is None:
                    raise
                pause = wait
            else:
                if answer.status not in _PASSING:
                    return answer
                if wait is None:
                    raise PassingError(
                        "registry_busy",
                        f"{self.host} answers {answer.status} to the request for the {ask.what}.",
                        "Try again later.",
                    )
                pause = _pause(answer.headers.get("retry-after", ""), wait)
            time.sleep(min(pause, self._deadline.remaining()))
        raise AssertionError

    def _authorized(self, ask: Ask) -> Answer:
        """Send a request; where it is challenged, once more with what answers the challenge."""
        sent = self._headers.get(ask.scope)
        answer = self._redirected(ask, sent)
        if answer.status != 401:
            return answer
        with self._lock:
            # Another thread may have answered the same challenge meanwhile.
            if self._headers.get(ask.scope) == sent:
                self._headers[ask.scope] = self._answer(answer.headers.get("www-authenticate", ""), ask.scope)
            now = self._headers[ask.scope]
        answer = self._redirected(ask, now)
        if answer.status in (401, 403):
            raise self._unauthorized(f"it refuses the credentials for {ask.scope}")
        return answer

    def _redirected(self, ask: Ask, authorization: str | None) -> Answer:
        from urllib.parse import urljoin, urlsplit

        url = urljoin(self.origin + "/", ask.url)
        for _ in range(_MAX_REDIRECTS + 1):
            parts = urlsplit(url)
            own = f"{parts.scheme}://{parts.netloc}" == self.origin
            secret = {"Authorization": authorization} if own and authorization else {}
            answer = self.send(ask, url, secret)
            location = answer.headers.get("location")
            if answer.status not in _MOVED or location is None or ask.method not in ("GET", "HEAD"):
                return answer
            url = urljoin(url, location)
            self.judge_url(url)
        raise RegistryError("bad_redirect", f"{self.host} redirects more than {_MAX_REDIRECTS} times.", "Check its address.")

    def judge_url(self, url: str) -> None:
        """Refuse to be led from https to http, from this machine's http to another's, or to another scheme.

        Raises:
            RegistryError: `bad_redirect`.
        """
        from urllib.parse import urlsplit

        parts = urlsplit(url)
        known = parts.scheme == "https" or f"{parts.scheme}://{parts.netloc}" == self.origin
        local = parts.scheme == "http" and is_loopback(parts.netloc) and is_loopback(self.host)
        if not (known or local) or parts.username is not None:
            raise RegistryError(
                "bad_redirect",
                f"{self.host} leads to {plain(url, 200)!r}, where nothing is asked.",
                "Check the registry's address.",
            )

    def send(self, ask: Ask, url: str, headers: dict[str, str]) -> Answer:
        """Send one request and read its answer, at most the ask's limit."""
        import httpx

        general = {"User-Agent": _AGENT, "Accept-Encoding": "identity"}
        try:
            with self._client().stream(ask.method, url, headers={**general, **ask.headers, **headers}, content=ask.body) as got:
                found = {name.lower(): value for name, value in got.headers.items()}
                if found.get("content-encoding", "identity").lower() != "identity":
                    raise RegistryError(
                        "bad_registry_answer",
                        f"{self.host} compresses the {ask.what}, which was not asked for.",
                        "Nothing is taken.",
                    )
                body = b""
                for piece in got.iter_raw(65_536):
                    body += piece
                    if len(body) > ask.limit and got.status_code < 300:
                        raise RegistryError(
                            f"{ask.what}_oversized", f"{self.host} sends more than {ask.limit:,} bytes for the {ask.what}.",
                            "The rest was not read; nothing was installed.",
                        )  # fmt: skip
                    if len(body) > ask.limit:
                        break
                return Answer(got.status_code, found, body)
        except httpx.RemoteProtocolError as err:
            if "body" in str(err):
                raise PassingError(
                    f"{ask.what}_truncated", f"{self.host} ends the {ask.what} before its announced length.", "Try again later."
                ) from None
            raise self._unreachable(err) from None
        except httpx.InvalidURL as err:
            raise RegistryError("bad_redirect", f"{self.host} leads to what is no URL: {err}.", "Check its address.") from None
        except httpx.HTTPError as err:
            raise self._unreachable(err) from None

    def _unreachable(self, err: Exception) -> PassingError:
        import httpx

        late = isinstance(err, httpx.TimeoutException)
        code, why = ("registry_timeout", "does not answer in time") if late else ("registry_unreachable", "cannot be reached")
        return PassingError(code, f"{self.host} {why}: {str(err) or type(err).__name__}.", "Check the address and the network.")

    def _client(self) -> httpx.Client:
        import httpx

        with self._lock:
            if self._made is None:
                self._made = httpx.Client(
                    trust_env=False, follow_redirects=False, proxy=None if is_loopback(self.host) else self._proxy,
                    timeout=httpx.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS),
                    limits=httpx.Limits(max_connections=16, max_keepalive_connections=16),
                )  # fmt: skip
                # Whoever asks a registry need not close it.
                weakref.finalize(self, self._made.close)
            return self._made

    def _answer(self, challenge: str, scope: str) -> str:
        """Return the Authorization header that answers a challenge."""
        if not self._asked:
            self._credentials, self._asked = oci_auth.credentials(self.host), True
        kind, _, rest = challenge.partition(" ")
        if self._credentials is not None and self._credentials.bearer:
            return f"Bearer {self._credentials.bearer}"
        if kind.lower() == "basic" and self._credentials is not None and self._credentials.password:
            return self._credentials.basic
        if kind.lower() != "bearer":
            raise self._unauthorized("it asks for credentials, and none are known for it")
        return f"Bearer {self._token(dict(_CHALLENGE.findall(rest)), scope)}"

    def _token(self, challenge: dict[str, str], scope: str) -> str:
        import json
        from urllib.parse import urlencode

        realm, known = challenge.get("realm", ""), self._credentials
        self.judge_url(realm)
        asked = {"service": challenge.get("service", ""), "scope": challenge.get("scope") or scope}
        if known is not None and known.identity:
            form = {**asked, "grant_type": "refresh_token", "refresh_token": known.identity, "client_id": "rye"}
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            ask = Ask("POST", realm, scope, "token", _MAX_TOKEN_BYTES, headers, urlencode(form).encode())
            answer = self.send(ask, realm, {})
        else:
            url = f"{realm}{'&' if '?' in realm else '?'}{urlencode(asked)}"
            secret = {"Authorization": known.basic} if known is not None and known.password else {}
            answer = self.send(Ask("GET", url, scope, "token", _MAX_TOKEN_BYTES), url, secret)
        if answer.status in _PASSING:
            raise PassingError("registry_busy", f"The token server of {self.host} answers {answer.status}.", "Try again later.")
        if answer.status != 200:
            raise self._unauthorized(f"its token server answers {answer.status}")
        try:
            record = json.loads(answer.body)
            token = record.get("token") or record["access_token"]
        except (ValueError, KeyError, AttributeError, RecursionError):
            raise RegistryError(
                "bad_registry_answer", f"The token server of {self.host} gives no token.", "Check the registry's address."
            ) from None
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise RegistryError("bad_registry_answer", f"The token of {self.host} is no text.", "Check its address.")
        return token

    def _unauthorized(self, why: str) -> RegistryError:
        return RegistryError(
            "registry_unauthorized", f"{self.host} lets you not in: {why}.", f"Run `docker login {self.host}`, then try again."
        )


def is_loopback(netloc: str) -> bool:
    """Tell whether a host names this machine by `localhost` or a loopback address."""
    host = netloc.rpartition("@")[2]
    host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _pause(retry_after: str, wait: float) -> float:
    return min(float(retry_after), _LONGEST_WAIT) if retry_after.isdecimal() else wait


def refused(host: str, answer: Answer, what: str) -> RegistryError:
    """Return the error for a status that is no answer to what was asked."""
    import json

    said: Any = None
    try:
        said = json.loads(answer.body)["errors"][0].get("message")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        said = "HTML, not a registry's answer" if answer.body.lstrip()[:1] == b"<" else None
    more = f": {plain(said, 200)}" if isinstance(said, str) else ""
    return RegistryError(
        f"{what}_refused",
        f"{host} answers {answer.status} to the request for the {what}{more}.",
        "Check address and permissions.",
    )

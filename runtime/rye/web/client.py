"""The HTTP client of web tools and registry: it connects to judged addresses only, within one limit, and inflates in steps.

A name is resolved once for each connection, every address it has is judged, and one of those very addresses is connected to;
the name is still what TLS and the Host header see. So a name that answers otherwise the next time changes nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from rye.call.safe_text import quoted
from rye.errors import RyeError, UsageError
from rye.plain_class import Record, changed, field
from rye.web.address_guard import AddressGuard, FetchDeadline
from rye.web.addresses import Allowed, well_formed

if TYPE_CHECKING:
    import httpx

MAX_BODY_BYTES = 5 * 1024 * 1024
"""Of a larger body (decompressed) only the beginning is read."""

MAX_REDIRECTS = 5
MAX_URL_CHARS = 8_192
REDIRECTS = frozenset({301, 302, 303, 307, 308})
USER_AGENT = "rye-workspace"

_STEP = 65_536
_GENERAL = {
    "User-Agent": USER_AGENT,
    "Accept": "text/html, text/markdown, application/json, text/plain, */*;q=0.5",
    "Accept-Language": "en, *;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}
_SCHEMES = {"http": 80, "https": 443}
_PLAIN = frozenset({"", "identity"})
_COMPRESSED = frozenset({"gzip", "x-gzip", "deflate"})


class FetchError(RyeError):
    """A page or an answer cannot be had."""


class FetchRequest(Record):
    """What to ask for.

    Attributes:
        url: http or https.
        seconds: how long everything together may take.
        allowed: hosts that need not be public.
        method: such as `GET`.
        headers: further headers; they go to the first host only, never along a redirect to another one.
        json: a JSON body.
        proxy: URL of a proxy that the user configured.
    """

    url: str
    seconds: float
    allowed: Allowed = field(factory=Allowed)
    method: str = "GET"
    headers: dict[str, str] = field(factory=dict)
    json: Any = None
    proxy: str | None = None


class HttpAnswer(Record):
    """What came.

    Attributes:
        url: where it came from, after redirects.
        status: HTTP status, 200 to 299, or an error's.
        reason: HTTP reason phrase.
        headers: in lower case; the last of repeated ones.
        body: as many bytes as were asked for, decompressed.
        cut: the body was longer.
        hops: the URLs that redirected.
    """

    url: str
    status: int
    reason: str
    headers: dict[str, str]
    body: bytes
    cut: bool = False
    hops: tuple[str, ...] = ()

    @property
    def asked(self) -> str:
        """The URL that was asked for: where a redirect led is text from the web."""
        return self.hops[0] if self.hops else self.url

    @property
    def status_line(self) -> str:
        """The status with its usual words: the server's own are text from the web, for which an error is no place."""
        import httpx

        return f"{self.status} {httpx.codes.get_reason_phrase(self.status)}".rstrip()


def fetch(request: FetchRequest) -> HttpAnswer:
    """Ask, follow at most 5 redirects, and return the answer, whatever its status.

    A body is never sent along to another host: such a redirect is refused.

    Raises:
        UsageError: `bad_url`.
        FetchError: `address_not_public`, `host_unknown`, `fetch_timeout`, `connection_failed`, `answer_truncated`,
            `too_many_redirects`, `bad_redirect`, `unsupported_encoding`, `bad_answer`.
    """
    method, headers, body = request.method, request.headers, request.json
    limit = FetchDeadline(request.seconds)

    def moved(current: httpx.URL, answer: HttpAnswer) -> httpx.URL:
        nonlocal method, headers, body
        following = _next(current, answer.headers["location"])
        # As browsers do: only 307 and 308 repeat the method and the body.
        if answer.status not in (307, 308):
            method, body = "GET", None
        # Headers may carry a key: another origin gets none of them.
        if _origin(following) != _origin(current):
            if body is not None:
                raise _not_followed(current, following, ", another host, with what was sent.")
            headers = {}
        return following

    with closing(Connections(limit, request.allowed, request.proxy)) as connections:
        return follow(
            parse(request.url),
            lambda url: connections.send(method, url, {**_GENERAL, **headers}, json=body, most=MAX_BODY_BYTES),
            moved,
        )


def follow(
    url: httpx.URL, send: Callable[[httpx.URL], HttpAnswer], moved: Callable[[httpx.URL, HttpAnswer], httpx.URL]
) -> HttpAnswer:
    """Send, and send again where an answer redirects to.

    Args:
        url: the first one.
        send: asks a URL.
        moved: is given a URL and the answer that redirects from it; judges and returns the next one.

    Raises:
        FetchError: `too_many_redirects`, and what `send` and `moved` raise.
    """
    hops: list[str] = []
    current = url
    while True:
        answer = send(current)
        if answer.status not in REDIRECTS or "location" not in answer.headers:
            return changed(answer, hops=tuple(hops))
        hops.append(str(current))
        # Two pages may redirect to each other for ever.
        if len(hops) > MAX_REDIRECTS:
            raise FetchError("too_many_redirects", f"{url} redirects more than {MAX_REDIRECTS} times.", "Fetch where it leads.")
        current = moved(current, answer)


class Connections:
    """A pool of connections to judged addresses. Its methods may be called from several threads."""

    def __init__(self, limit: FetchDeadline, allowed: Allowed, proxy: str | None = None, most: int = 1) -> None:
        """Connect within `limit`, to public addresses and the `allowed` hosts; `proxy` is the URL of one that the user set."""
        from rye.web import transport

        self._limit = limit
        self._target = guard = AddressGuard(limit, allowed)
        self._by_proxy = proxy is not None
        if proxy is not None:
            # The connection goes to the proxy, which may well be at a private address; targets are judged apart.
            guard = AddressGuard(limit, Allowed(frozenset({_proxy_host(proxy)})))
        # No httpx.Client: it would read the Location itself, and take proxies and cookies into account.
        self._pool = transport.pool(guard, proxy, most)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def send(
        self,
        method: str,
        url: httpx.URL,
        headers: dict[str, str],
        *,
        most: int,
        json: Any = None,
        content: bytes | None = None,
        compressed: bool = True,
    ) -> HttpAnswer:
        """Send one request; return its answer with at most `most` bytes of the body, which is not read of a redirect.

        Raises:
            UsageError: `bad_url`.
            FetchError: `fetch_timeout`, `connection_failed`, `answer_truncated`, `unsupported_encoding`, `bad_answer`.
            ConnectError: see `AddressGuard.allowed_addresses`.
        """
        import httpx

        if self._by_proxy:
            # Through a proxy no connection of ours shows where the request goes, so the target is judged by itself.
            self._target.check_proxy_target(url.raw_host.decode("ascii"), url.port or _SCHEMES[url.scheme])
        waits = dict.fromkeys(("connect", "read", "write", "pool"), self._limit.remaining())
        try:
            request = httpx.Request(method, url, headers=headers, json=json, content=content, extensions={"timeout": waits})
        except (httpx.InvalidURL, UnicodeError, ValueError) as err:
            raise _bad_url(str(url), str(err)) from None
        return self._sent(request, most, _PLAIN | _COMPRESSED if compressed else _PLAIN)

    def _sent(self, request: httpx.Request, most: int, encodings: frozenset[str]) -> HttpAnswer:
        import httpcore
        import httpx

        from rye.web import transport

        try:
            with closing(transport.handle(self._pool, request)) as response:
                headers = dict(httpx.Headers(response.headers).items())
                # A redirect's body is not read: a hostile server could make it endless.
                is_redirect = response.status in REDIRECTS and "location" in headers
                body, cut = (b"", False) if is_redirect else _body(response.iter_stream(), headers, most, encodings)
            if self._limit.remaining() <= 0:
                # A body without a stated length ends where the connection was broken.
                raise TimeoutError
        except (httpcore.TimeoutException, TimeoutError):
            raise self._limit.timeout_error(_place(request.url)) from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError, OSError) as err:
            if self._limit.remaining() <= 0:
                raise self._limit.timeout_error(_place(request.url)) from None
            short = isinstance(err, httpcore.RemoteProtocolError) and "body" in str(err)
            # Behind `: b` some errors show the bytes that the server sent.
            told = str(err).partition(": b")[0] or type(err).__name__
            why = f"{_place(request.url)} cannot be read: {told}."
            hint = "Check the URL, or try again later."
            raise FetchError("answer_truncated" if short else "connection_failed", why, hint) from None
        reason = response.extensions["reason_phrase"].decode("ascii", "ignore")
        return HttpAnswer(str(request.url), response.status, reason, headers, body, cut)


def parse(url: str) -> httpx.URL:
    """Return a URL that may be asked for.

    Raises:
        UsageError: `bad_url`.
    """
    import httpx

    try:
        parsed = httpx.URL(url.strip())
        host = parsed.raw_host.decode("ascii")
    except (httpx.InvalidURL, UnicodeError, ValueError, TypeError) as err:
        raise _bad_url(url, f"it cannot be read ({err})") from None
    if len(url) > MAX_URL_CHARS:
        raise _bad_url(url, f"it is longer than {MAX_URL_CHARS:,} characters")
    if parsed.scheme not in _SCHEMES:
        raise _bad_url(url, "only http and https are fetched")
    # A URL appears in results, logs and redirects, and its password would appear with it.
    if parsed.userinfo:
        raise _bad_url(url, "it carries a user name or password, which is never sent")
    if not 0 < (parsed.port or 80) < 65_536:
        raise _bad_url(url, f"there is no port {parsed.port}")
    if not well_formed(host):
        raise _bad_url(url, f"its host {host!r} is neither a name nor an address")
    # A fragment is for browsers, and would make two cache entries of one page.
    return parsed.copy_with(fragment=None)


def _bad_url(url: str, why: str) -> UsageError:
    what = f"The URL {url[:200]!r} cannot be fetched: {why}."
    return UsageError("bad_url", what, "Give a full URL such as https://example.org/page.")


def _place(url: httpx.URL) -> str:
    """Return how errors name a URL that may come from the web: without its path, which could say anything."""
    return f"{url.scheme}://{url.netloc.decode('ascii')}"


def _origin(url: httpx.URL) -> tuple[str, bytes, int]:
    return url.scheme, url.raw_host, url.port or _SCHEMES[url.scheme]


def _next(current: httpx.URL, location: str) -> httpx.URL:
    from urllib.parse import urljoin

    target = location
    try:
        # A Location may be relative (RFC 9110, 10.2.2).
        target = urljoin(str(current), location)
        following = parse(target)
    except ValueError:
        raise _not_followed(current, target, ", which is no URL.") from None
    except UsageError as err:
        raise _not_followed(current, target, f". {err.message}") from None
    # What was asked for over TLS is not fetched in plain text.
    if current.scheme == "https" and following.scheme == "http":
        raise _not_followed(current, following, ", from https to http.")
    return following


def _not_followed(current: httpx.URL, target: object, why: str) -> FetchError:
    told = " ".join(quoted([f"{str(target)[:200]!r}{why}"])[0])
    message = f"{_place(current)} redirects elsewhere: {told}"
    return FetchError("bad_redirect", message, "It is not followed; fetch that URL if you mean it.")


def _proxy_host(proxy: str) -> str:
    """Return `name:port` of the user's proxy, which need not be at a public address."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(proxy)
        usual = _SCHEMES[parts.scheme]
        return f"{(parts.hostname or '').rstrip('.')}:{parts.port or usual}"
    except (ValueError, KeyError):
        raise UsageError("bad_config", "web.proxy is no http or https URL.", "Write http://host:port.") from None


def _body(raw: Iterator[bytes], headers: dict[str, str], most: int, encodings: frozenset[str]) -> tuple[bytes, bool]:
    """Read and inflate at most `most` bytes; tell whether there are more."""
    coding = headers.get("content-encoding", "").strip().lower()
    # Several codings in a row multiply the ratio of compression; none is accepted that was not asked for.
    if coding not in encodings:
        why = "The answer is compressed in a way that was not asked for."
        raise FetchError("unsupported_encoding", why, "Only gzip and deflate, once, are read.")
    body = bytearray()
    for piece in _inflated(raw) if coding in _COMPRESSED else raw:
        # One byte beyond the limit tells a cut body from one that ends there.
        body += piece[: most + 1 - len(body)]
        if len(body) > most:
            del body[most:]
            return bytes(body), True
    return bytes(body), False


def _inflated(raw: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the inflated body in pieces of at most 64 KB, whatever the ratio; what is no gzip behind its end is left."""
    # 47: zlib tells gzip and zlib's own wrapping apart by itself.
    inflater = zlib.decompressobj(47)
    began, behind = False, b""
    try:
        for received in raw:
            block, began = received, True
            while block and not inflater.eof:
                # The rest of the input waits until the caller has taken this piece: memory stays bounded.
                yield inflater.decompress(block, _STEP)
                block = inflater.unconsumed_tail or inflater.unused_data
            behind += block
            if len(behind) > 1:
                break
        yield inflater.flush()
    except zlib.error:
        raise _broken() from None
    if behind.startswith(b"\x1f\x8b"):
        raise FetchError("unsupported_encoding", "The answer is compressed in several members.", "Only one is read.")
    if began and not inflater.eof:
        raise _broken()


def _broken() -> FetchError:
    return FetchError("bad_answer", "The answer's compressed body is broken or incomplete.", "Try again later.")

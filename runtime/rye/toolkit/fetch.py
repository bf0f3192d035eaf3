"""The guarded HTTP client: connects only to addresses that were checked, within one deadline, and inflates in bounded steps.

A name is resolved once for each connection, every address it has is judged, and one of those very addresses is connected to;
the name is still what TLS and the Host header see. So a name that answers otherwise the next time changes nothing.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from rye.errors import RyeError, UsageError
from rye.record import Record, field
from rye.toolkit.addresses import Allowed, well_formed
from rye.toolkit.connections import Guard, Limit

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

MAX_BODY_BYTES = 5 * 1024 * 1024
"""Of a larger body (decompressed) the beginning is kept."""

MAX_REDIRECTS = 5
MAX_URL_CHARS = 8_192

_STEP = 65_536
_AGENT = "rye-workspace (+https://pypi.org/project/rye-workspace/)"
_SCHEMES = {"http": 80, "https": 443}
_MOVED = {301, 302, 303, 307, 308}
_GZIP = b"\x1f\x8b"
_ENCODINGS = {"": 0, "identity": 0, "gzip": 31, "x-gzip": 31, "deflate": 47}


class FetchError(RyeError):
    """A page or an answer cannot be had."""


class Request(Record):
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


class Answer(Record):
    """What came.

    Attributes:
        url: where it came from, after redirects.
        status: HTTP status, 200 to 299, 304, or an error's.
        reason: HTTP reason phrase.
        headers: in lower case; the last of repeated ones.
        body: at most `MAX_BODY_BYTES`, decompressed.
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


def fetch(request: Request) -> Answer:
    """Ask, follow at most 5 redirects, and return the answer, whatever its status.

    A body is never sent along to another host: such a redirect is refused.

    Raises:
        UsageError: `bad_url`.
        FetchError: `address_not_public`, `host_unknown`, `fetch_timeout`, `connection_failed`, `too_many_redirects`,
            `bad_redirect`, `unsupported_encoding`, `bad_answer`.
    """
    limit = Limit(request.seconds)
    hops: list[str] = []
    url, method, headers, body = request.url, request.method, request.headers, request.json
    while True:
        parsed = parse(url)
        with _transport(request, parsed, limit) as transport, limit.guarding():
            answer, location = _once(transport, _prepared(parsed, method, headers, body, limit), limit)
        if location is None:
            return Answer(str(parsed), *answer, tuple(hops))
        hops.append(str(parsed))
        if len(hops) > MAX_REDIRECTS:
            raise FetchError(
                "too_many_redirects", f"{request.url} redirects more than {MAX_REDIRECTS} times.", "Fetch where it leads."
            )
        url = _next(parsed, location)
        if answer[0] not in (307, 308):
            method, body = "GET", None
        if _origin(parse(url)) != _origin(parsed):
            if body is not None:
                raise FetchError(
                    "bad_redirect", f"{parsed} redirects to another host, {url[:200]}, with what was sent.",
                    "It is not followed; ask that URL if you mean it.",
                )  # fmt: skip
            headers = {}


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
    if parsed.userinfo:
        raise _bad_url(url, "it carries a user name or password, which is never sent")
    if not 0 < (parsed.port or 80) < 65_536:
        raise _bad_url(url, f"there is no port {parsed.port}")
    if not well_formed(host):
        raise _bad_url(url, f"its host {host!r} is neither a name nor an address")
    return parsed.copy_with(fragment=None)


def _bad_url(url: str, why: str) -> UsageError:
    return UsageError(
        "bad_url", f"The URL {url[:200]!r} cannot be fetched: {why}.", "Give a full URL such as https://example.org/page."
    )


def _origin(url: httpx.URL) -> tuple[str, bytes, int]:
    return url.scheme, url.raw_host, url.port or _SCHEMES[url.scheme]


def _next(here: httpx.URL, location: str) -> str:
    from urllib.parse import urljoin

    try:
        target = urljoin(str(here), location)
        following = parse(target)
    except ValueError:
        raise FetchError(
            "bad_redirect", f"{here} redirects to {location[:200]!r}, which is no URL.", "It is not followed."
        ) from None
    except UsageError as err:
        raise FetchError(
            "bad_redirect", f"{here} redirects to {target[:200]!r}. {err.message}", "It is not followed."
        ) from None
    if here.scheme == "https" and following.scheme == "http":
        raise FetchError(
            "bad_redirect",
            f"{here} redirects to {following}, from https to http.",
            "It is not followed; fetch that URL if you mean it.",
        )
    return target


def _transport(request: Request, url: httpx.URL, limit: Limit) -> httpx.BaseTransport:
    from rye.toolkit.http_transport import GuardedTransport

    guard = Guard(limit, request.allowed)
    if request.proxy is not None:
        # Through a proxy no connection of ours shows where the request goes, so the target is judged by itself.
        guard.judge_for_proxy(url.raw_host.decode("ascii"), url.port or _SCHEMES[url.scheme])
        guard = Guard(limit, Allowed(frozenset({_proxy_host(request.proxy)})))
    # No httpx.Client: it would read the Location itself, and take proxies and cookies into account.
    return GuardedTransport(guard, request.proxy)


def _proxy_host(proxy: str) -> str:
    """Return `name:port` of the user's proxy, which need not be at a public address."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(proxy)
        known = {"http": 80, "https": 443}[parts.scheme]
        return f"{(parts.hostname or '').rstrip('.')}:{parts.port or known}"
    except (ValueError, KeyError):
        raise UsageError("bad_config", "web.proxy is no http or https URL.", "Write http://host:port.") from None


def _prepared(url: httpx.URL, method: str, headers: dict[str, str], body: Any, limit: Limit) -> httpx.Request:  # noqa: ANN401 - JSON
    import httpx

    general = {
        "User-Agent": _AGENT, "Accept": "text/html, text/markdown, application/json, text/plain, */*;q=0.5",
        "Accept-Language": "en, *;q=0.5", "Accept-Encoding": "gzip, deflate",
    }  # fmt: skip
    waits = dict.fromkeys(("connect", "read", "write", "pool"), limit.remaining())
    try:
        return httpx.Request(method, url, headers={**general, **headers}, json=body, extensions={"timeout": waits})
    except (httpx.InvalidURL, UnicodeError, ValueError) as err:
        raise _bad_url(str(url), str(err)) from None


def _once(
    transport: httpx.BaseTransport, request: httpx.Request, limit: Limit
) -> tuple[tuple[int, str, dict[str, str], bytes, bool], str | None]:
    """Send one request; return (status, reason, headers, body, cut), and where it redirects to."""
    import httpcore

    try:
        response = transport.handle_request(request)
        try:
            headers = {name.lower(): value for name, value in response.headers.items()}
            location = headers.get("location") if response.status_code in _MOVED else None
            body, cut = (b"", False) if location is not None else _body(response.iter_raw(_STEP), headers)
        finally:
            response.close()
        if limit.remaining() <= 0:
            # A body without length ends where the connection was broken.
            raise TimeoutError
    except (httpcore.TimeoutException, TimeoutError):
        raise limit.late(str(request.url)) from None
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError, OSError) as err:
        if limit.remaining() <= 0:
            raise limit.late(str(request.url)) from None
        raise FetchError(
            "connection_failed",
            f"{request.url} cannot be read: {str(err) or type(err).__name__}.",
            "Check the URL, or try again later.",
        ) from None
    return (response.status_code, response.reason_phrase, headers, body, cut), location


def _body(raw: Iterator[bytes], headers: dict[str, str]) -> tuple[bytes, bool]:
    """Read and inflate at most `MAX_BODY_BYTES`."""
    coding = headers.get("content-encoding", "").strip().lower()
    if coding not in _ENCODINGS:
        raise FetchError(
            "unsupported_encoding", f"The answer is compressed as {coding[:100]!r}.", "Only gzip and deflate, once, are read."
        )
    kept = bytearray()
    for piece in _inflated(raw, _ENCODINGS[coding]) if _ENCODINGS[coding] else raw:
        kept += piece[: MAX_BODY_BYTES + 1 - len(kept)]
        if len(kept) > MAX_BODY_BYTES:
            del kept[MAX_BODY_BYTES:]
            return bytes(kept), True
    return bytes(kept), False


def _inflated(raw: Iterator[bytes], window: int) -> Iterator[bytes]:
    """Yield the inflated body in pieces of at most 64 KB, whatever the ratio; a gzip body may have several members."""
    inflater = zlib.decompressobj(window)
    begun = False
    for received in raw:
        block = received
        while block:
            if inflater.eof:
                if window != _ENCODINGS["gzip"] or not block.startswith(_GZIP[: len(block)]):
                    return
                inflater = zlib.decompressobj(window)
            try:
                piece = inflater.decompress(block, _STEP)
            except zlib.error:
                if begun or window != _ENCODINGS["deflate"]:
                    raise _broken() from None
                # Some servers send `deflate` without the zlib wrapping.
                inflater = zlib.decompressobj(-15)
                piece = _more(inflater, block)
            begun = True
            yield piece
            block = inflater.unconsumed_tail or inflater.unused_data
    if begun and not inflater.eof:
        # What was decided by the last byte, but had no room in the last piece.
        yield inflater.flush()
        if not inflater.eof:
            raise _broken()


def _more(inflater: Any, block: bytes) -> bytes:  # noqa: ANN401 - zlib names no type for it
    try:
        piece: bytes = inflater.decompress(block, _STEP)
    except zlib.error:
        raise _broken() from None
    return piece


def _broken() -> FetchError:
    return FetchError("bad_answer", "The answer's compressed body is broken or incomplete.", "Try again later.")

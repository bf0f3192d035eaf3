"""The transport under the guarded HTTP client: httpcore, every connection opened by the guard.

Imported only when something is fetched, so it may import the HTTP libraries at its top.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import httpcore
import httpx

from rye.web.address_guard import AddressGuard, ConnectError, FetchDeadline

if TYPE_CHECKING:
    import ssl


_CONNECT_SECONDS = 10.0


@cache
def _tls() -> ssl.SSLContext:
    """Return the context of every connection: reading the certificates takes longer than a small answer."""
    return httpx.create_ssl_context(trust_env=True)


class _GuardedStream(httpcore.NetworkStream):
    """One connection; every wait on it ends with the limit."""

    def __init__(self, inner: httpcore.NetworkStream, limit: FetchDeadline) -> None:
        self._inner = inner
        self._limit = limit

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._wait(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._wait(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> _GuardedStream:
        return _GuardedStream(self._inner.start_tls(ssl_context, server_hostname, self._wait(timeout)), self._limit)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    def _wait(self, timeout: float | None) -> float:
        left = self._limit.remaining()
        if left <= 0:
            raise httpcore.ReadTimeout
        return left if timeout is None else min(timeout, left)


class _Backend(httpcore.NetworkBackend):
    """Connects to the addresses that the guard judged, by number, never by name."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard
        self._system = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> _GuardedStream:
        failed: Exception | None = None
        limit = self._guard.limit
        # Each judged address is tried in turn, by number: no second lookup can answer otherwise.
        for address in self._guard.allowed_addresses(host, port):
            # Never without end, and never without a wait: what no time is left for fails at once.
            wait = max(min(_CONNECT_SECONDS, limit.remaining(), timeout or _CONNECT_SECONDS), 0.001)
            try:
                inner = self._system.connect_tcp(str(address), port, wait, local_address, socket_options)
            except (httpcore.NetworkError, httpcore.TimeoutException) as err:
                failed = err
                continue
            self._confirm(inner, address)
            return _GuardedStream(inner, limit)
        if limit.remaining() <= 0:
            raise limit.timeout_error(host)
        why = f"{host}:{port} cannot be reached: {failed or 'it did not answer'}."
        raise ConnectError("connection_failed", why, "Check the host and port, or try again later.")

    def _confirm(self, inner: httpcore.NetworkStream, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
        connected = inner.get_extra_info("socket")
        peer = ipaddress.ip_address(connected.getpeername()[0].partition("%")[0])
        # A proxy in the system (or a rewriting network) could have taken the connection elsewhere.
        if peer != address:
            inner.close()
            why = f"The connection went to {peer} instead of {address}."
            raise ConnectError("connection_failed", why, "Check the network.")
        self._guard.limit.watch(connected)


def pool(guard: AddressGuard, proxy: str | None, most: int) -> httpcore.ConnectionPool:
    """Return a pool of `most` connections that all go through a guard; `proxy` is the URL of one that the user configured."""
    tls, backend = _tls(), _Backend(guard)
    if proxy is None:
        return httpcore.ConnectionPool(ssl_context=tls, network_backend=backend, max_connections=most)
    return httpcore.HTTPProxy(proxy, ssl_context=tls, network_backend=backend, max_connections=most)


def handle(connections: httpcore.ConnectionPool, request: httpx.Request) -> httpcore.Response:
    """Send one request; the caller closes its answer."""
    url = httpcore.URL(
        scheme=request.url.raw_scheme, host=request.url.raw_host, port=request.url.port, target=request.url.raw_path
    )
    headers, content, more = request.headers.raw, request.stream, request.extensions
    return connections.handle_request(httpcore.Request(request.method, url, headers=headers, content=content, extensions=more))

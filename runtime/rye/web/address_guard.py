"""What the HTTP client may connect to, and how long it may take: judged addresses only, one limit over every wait."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rye.call.context import deadline
from rye.config import user_dirs
from rye.errors import RyeError
from rye.web.addresses import Address, Allowed, not_public, own_networks


class ConnectError(RyeError):
    """A host cannot be reached, or may not be."""


class FetchDeadline:
    """How long a fetch may take in all; breaks its connections when the call is given up."""

    def __init__(self, seconds: float) -> None:
        """Start the clock; the call's own deadline counts too."""
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        # A thread that sends need not have the call's context.
        self._deadline = deadline()
        self._thread = threading.local()
        self._open: list[socket.socket] = []
        self._given_up = False
        # Called from another thread when the call is cancelled.
        self._deadline.when_expired(self.give_up)

    def remaining(self) -> float:
        """Return the seconds left for this thread's request, never below zero."""
        if self._given_up:
            return 0.0
        # Of a pool's threads each has its own request.
        end = min(self._end, getattr(self._thread, "end", self._end))
        return max(0.0, min(end - time.monotonic(), self._deadline.remaining()))

    @contextmanager
    def one_request(self, seconds: float) -> Iterator[None]:
        """Give what this thread sends inside the block so many seconds, however slowly an answer drips."""
        self._thread.end = time.monotonic() + seconds
        try:
            yield
        finally:
            del self._thread.end

    def timeout_error(self, url: str) -> RyeError:
        """Return the error for a fetch that took too long."""
        if self._deadline.remaining() <= 0:
            return self._deadline.error()
        within = f"within {self.seconds:g} s" if self.seconds < float("inf") else "in time"
        return ConnectError("fetch_timeout", f"{url} was not read {within}.", "Give a larger timeout, or try again later.")

    def give_up(self) -> None:
        """Break the connections that are open, so that whoever waits on them wakes."""
        self._given_up = True
        for one in list(self._open):
            # One that is closed already refuses it.
            with suppress(OSError):
                # shutdown wakes a thread that waits in recv; close alone would leave it waiting.
                one.shutdown(socket.SHUT_RDWR)

    def watch(self, one: socket.socket) -> None:
        """Break this connection, too, when the call is given up."""
        # A new list, not append: another thread may be walking the old one.
        self._open = [*(other for other in self._open if other.fileno() >= 0), one]
        if self._given_up:
            self.give_up()


class AddressGuard:
    """Resolves a host once, and judges all its addresses."""

    def __init__(self, limit: FetchDeadline, allowed: Allowed) -> None:
        """Judge connections within `limit`; hosts in `allowed` may have any address."""
        self.limit = limit
        self.allowed = allowed

    def allowed_addresses(self, host: str, port: int) -> list[Address]:
        """Return a host's addresses, all of which may be connected to.

        Raises:
            ConnectError: `host_unknown`, `address_not_public`, `fetch_timeout`.
        """
        # All of them must be public: a host with one private address could choose it at connect time.
        addresses = self._resolved(host, port)
        if self.allowed.holds(host, port):
            return addresses
        own = own_networks()
        for address in addresses:
            what = not_public(address)
            # A machine on a public network: its neighbours have public numbers and are still internal.
            if what is None and any(address in network for network in own):
                what = "this machine's own network"
            if what is not None:
                named = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                raise ConnectError(
                    "address_not_public",
                    f"{host} is at {address}, which is no public address ({what}).",
                    f'To allow it, the user writes `web: {{allow_hosts: ["{named}"]}}` into {user_dirs.settings_file()}.',
                )
        return addresses

    def check_proxy_target(self, host: str, port: int) -> None:
        """Refuse what a proxy is not to be asked for; a name that only the proxy can resolve is left to the proxy.

        Raises:
            ConnectError: `address_not_public`, `fetch_timeout`.
        """
        try:
            self.allowed_addresses(host, port)
        except ConnectError as err:
            if err.code != "host_unknown":
                raise

    def _resolved(self, host: str, port: int) -> list[Address]:
        """Resolve within the time; the system's resolver knows no limit of its own."""
        found: list[Any] = []
        finished = threading.Event()

        def ask() -> None:
            try:
                found.extend(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            except (OSError, UnicodeError) as err:
                found.append(err)
            finished.set()

        # A thread that hangs is left behind: nothing can interrupt getaddrinfo.
        threading.Thread(target=ask, daemon=True, name="resolve").start()
        if not finished.wait(self.limit.remaining()):
            raise self.limit.timeout_error(host)
        if not found or isinstance(found[0], Exception):
            why = getattr(found[0], "strerror", None) or str(found[0]) if found else "no address"
            what = f"The host {host} is not known: {why}."
            raise ConnectError("host_unknown", what, "Check the spelling, and that the network is up.")
        return list(dict.fromkeys(ipaddress.ip_address(entry[4][0].partition("%")[0]) for entry in found))

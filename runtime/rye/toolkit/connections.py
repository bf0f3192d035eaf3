"""Connections for the guarded HTTP client: checked addresses only, and one deadline over every wait."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rye.errors import RyeError
from rye.toolkit.addresses import Address, not_public
from rye.toolkit.output import deadline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rye.toolkit.addresses import Allowed


class ConnectError(RyeError):
    """A host cannot be reached, or may not be."""


class Limit:
    """How long a fetch may take in all; ends its connections when the call is given up."""

    def __init__(self, seconds: float) -> None:
        """Start the clock; the call's own deadline counts too."""
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._open: list[socket.socket] = []
        self._given_up = False
        deadline().when_expired(self.give_up)

    def remaining(self) -> float:
        """Return the seconds left, never below zero."""
        return 0.0 if self._given_up else max(0.0, min(self._end - time.monotonic(), deadline().remaining()))

    def late(self, url: str) -> RyeError:
        """Return the error for a fetch that took too long."""
        if deadline().remaining() <= 0:
            return deadline().error()
        return ConnectError(
            "fetch_timeout", f"{url} was not read within {self.seconds:g} s.", "Give a larger timeout, or try again later."
        )

    def give_up(self) -> None:
        """Break the connections that are open, so that whoever waits on them wakes."""
        self._given_up = True
        for one in list(self._open):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def watch(self, one: socket.socket) -> None:
        """Break this connection, too, when the call is given up."""
        self._open.append(one)
        if self._given_up:
            self.give_up()

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Forget the connections at the end of the block."""
        try:
            yield
        finally:
            self._open.clear()


class Guard:
    """Resolves a host once, and judges all its addresses."""

    def __init__(self, limit: Limit, allowed: Allowed) -> None:
        """Hold connections to `limit`; hosts in `allowed` may have any address."""
        self.limit = limit
        self.allowed = allowed

    def judged(self, host: str, port: int) -> list[Address]:
        """Return a host's addresses, all of which may be connected to.

        Raises:
            ConnectError: `host_unknown`, `address_not_public`, `fetch_timeout`.
        """
        addresses = self._resolved(host, port)
        if not self.allowed.holds(host, port):
            for address in addresses:
                what = not_public(address)
                if what is not None:
                    raise ConnectError(
                        "address_not_public", f"{host} is at {address}, which is no public address ({what}).",
                        f'To allow it, the user writes `web: {{allow_hosts: ["{host}:{port}"]}}` into ~/.ai/config/rye.yaml.',
                    )  # fmt: skip
        return addresses

    def judge_for_proxy(self, host: str, port: int) -> None:
        """Refuse what a proxy is not to be asked for; a name that only the proxy can resolve is left to the proxy.

        Raises:
            ConnectError: `address_not_public`, `fetch_timeout`.
        """
        try:
            self.judged(host, port)
        except ConnectError as err:
            if err.code != "host_unknown":
                raise

    def _resolved(self, host: str, port: int) -> list[Address]:
        """Resolve within the time; the system's resolver knows no limit of its own."""
        found: list[Any] = []
        done = threading.Event()

        def ask() -> None:
            try:
                found.extend(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            except (OSError, UnicodeError) as err:
                found.append(err)
            done.set()

        threading.Thread(target=ask, daemon=True, name="resolve").start()
        if not done.wait(self.limit.remaining()):
            raise self.limit.late(host)
        if not found or isinstance(found[0], Exception):
            why = getattr(found[0], "strerror", None) or str(found[0]) if found else "no address"
            raise ConnectError(
                "host_unknown", f"The host {host} is not known: {why}.", "Check the spelling, and that the network is up."
            )
        return list(dict.fromkeys(ipaddress.ip_address(entry[4][0].partition("%")[0]) for entry in found))

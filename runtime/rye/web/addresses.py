"""Which network addresses are public, and which hosts the user allows although they are not.

The tables follow IANA's registries of special-purpose addresses, not the standard library's `is_global`, which calls several
of them public (multicast, 6to4, translated and compatible forms of private ones).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from contextlib import suppress

from rye.errors import UsageError
from rye.plain_class import Record

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Network: what it is, as the refusal names it.
_NOT_PUBLIC_4 = {
    "0.0.0.0/8": "this network",
    "10.0.0.0/8": "private",
    "100.64.0.0/10": "carrier-grade NAT",
    "127.0.0.0/8": "loopback",
    "168.63.129.16/32": "a cloud host's own service",
    "169.254.0.0/16": "link-local, where clouds keep their metadata",
    "172.16.0.0/12": "private",
    "192.0.0.0/24": "protocol assignments",
    "192.0.2.0/24": "documentation",
    "192.88.99.0/24": "a retired relay",
    "192.168.0.0/16": "private",
    "198.18.0.0/15": "benchmarking",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved or broadcast",
}
_PUBLIC_6 = "2000::/3"
_NOT_PUBLIC_6 = {
    "2001::/23": "protocol assignments, Teredo among them",
    "2001:db8::/32": "documentation",
    "2002::/16": "6to4, which holds an IPv4 address",
    "3fff::/20": "documentation",
}
# Forms of IPv6 that are an IPv4 address in truth: the last 32 bits.
_CARRIES_4 = ("::ffff:0:0/96", "64:ff9b::/96")

_TABLE_4 = [(ipaddress.IPv4Network(net), what) for net, what in _NOT_PUBLIC_4.items()]
_TABLE_6 = [(ipaddress.IPv6Network(net), what) for net, what in _NOT_PUBLIC_6.items()]
_CARRIERS = [ipaddress.IPv6Network(net) for net in _CARRIES_4]
_UNICAST = ipaddress.IPv6Network(_PUBLIC_6)

# The widest networks of interfaces that count as a site's own.
_SITE_4, _SITE_6 = 16, 48

# What a name may be made of once it is in ASCII: a NUL, a space or a percent sign ends a name early elsewhere.
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252})\Z")
# name, name:port, *.domain, an address, [address]:port; the groups hold the host.
_PATTERN = re.compile(r"(?:\*\.)?([^:\[\]*]+)(?::\d{1,5})?\Z|\[([0-9a-f:.]+)\](?::\d{1,5})?\Z|([0-9a-f:.]*:[0-9a-f:.]*)\Z")


def not_public(address: Address) -> str | None:
    """Return what an address is when it is not a public one; None for a public address."""
    if isinstance(address, ipaddress.IPv4Address):
        return next((what for net, what in _TABLE_4 if address in net), None)
    # `::ffff:127.0.0.1` reaches the loopback address: the IPv4 address inside decides.
    if any(address in net for net in _CARRIERS):
        return not_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    # A zone makes even a global address one of this machine's interface.
    if address.scope_id is not None or address not in _UNICAST:
        return "loopback" if address.is_loopback else "not global unicast"
    return next((what for net, what in _TABLE_6 if address in net), None)


def own_networks() -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """Return this machine's addresses and the networks of its interfaces, also those with public numbers.

    Linux only: elsewhere, and where the tables cannot be read, nothing. A wider network than a site's own does not
    count: a VPN's interface may take the whole internet.
    """
    found: set[ipaddress.IPv4Network | ipaddress.IPv6Network] = set()
    with suppress(OSError, ValueError, IndexError), open("/proc/net/if_inet6", encoding="ascii") as file:
        for line in file:
            digits, _, length = line.split()[:3]
            address = ipaddress.IPv6Address(int(digits, 16))
            # The prefix length is hexadecimal in this file.
            found.add(ipaddress.IPv6Network((address, max(int(length, 16), _SITE_6)), strict=False))
            found.add(ipaddress.IPv6Network(address))
    with suppress(OSError, ValueError, IndexError), open("/proc/net/fib_trie", encoding="ascii") as file:
        at = ""
        for line in file:
            words = line.split()
            # The kernel prints an address, then its entries: `/32 host LOCAL`, `/24 link UNICAST`.
            if words[:1] == ["|--"]:
                at = words[1]
            elif len(words) >= 3 and words[2] in ("LOCAL", "UNICAST") and words[1] in ("host", "link"):
                length = words[0].removeprefix("/")
                if words[2] == "LOCAL" or int(length) >= _SITE_4:
                    found.add(ipaddress.IPv4Network(f"{at}/{length}"))
    return list(found)


def well_formed(host: str) -> bool:
    """Tell whether a host is a name in ASCII or a literal address, with nothing else in it."""
    if ":" in host:
        try:
            return ipaddress.IPv6Address(host).scope_id is None
        except ValueError:
            return False
    return _HOST.match(host) is not None and ".." not in host


class Allowed(Record):
    """Hosts that the user allows whatever their address: `name`, `name:port` or `*.domain`, in lower case."""

    patterns: frozenset[str] = frozenset()

    @classmethod
    def of(cls, patterns: Iterable[str]) -> Allowed:
        """Return the hosts of a list in the user's configuration.

        Raises:
            UsageError: `bad_config`.
        """
        hosts = frozenset(one.strip().lower() for one in patterns)
        for one in hosts:
            # A pattern that can never match would look like a permission that does not work.
            if not _PATTERN.match(one) or not well_formed(_PATTERN.sub(r"\1\2\3", one)):
                why = f"web.allow_hosts names {one!r}, which is no host."
                raise UsageError("bad_config", why, "Write name, name:port or *.domain.")
        return cls(hosts)

    def holds(self, host: str, port: int) -> bool:
        """Tell whether the user allows this host at this port."""
        name = host.lower().strip("[]").rstrip(".")
        parents = name.split(".")
        # By whole labels: `*.example.org` does not allow `badexample.org`.
        wild = {"*." + ".".join(parents[at:]) for at in range(1, len(parents))}
        return bool(self.patterns & ({name, f"{name}:{port}", f"[{name}]", f"[{name}]:{port}"} | wild))

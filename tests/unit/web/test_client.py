"""What goes along a redirect: a body only where it is asked for again at the same host, a key only to the host it is for."""

from __future__ import annotations

import ipaddress
import socket

import httpcore
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.errors import RyeError
from rye.web import addresses, client
from support import web_site

AGAIN, ELSEWHERE = (307, 308), (301, 302, 303)


@pytest.fixture(scope="module")
def other():
    with web_site.served() as site:
        yield site


@pytest.fixture(scope="module")
def site(other):
    moved = {f"/{status}": (status, {"Location": "/plain"}, b"") for status in (*ELSEWHERE, *AGAIN)}
    away = {f"/away-{status}": (status, {"Location": f"{other.url}/plain"}, b"") for status in (302, *AGAIN)}
    with web_site.served({**moved, **away, "/cookie": (302, {"Location": "/plain", "Set-Cookie": "session=1"}, b"")}) as site:
        yield site


def post(site, path, *others):
    hosts = client.Allowed.of([f"127.0.0.1:{one.port}" for one in (site, *others)])
    given = {"method": "POST", "json": {"query": "q"}, "headers": {"x-api-key": "secret"}}
    return client.fetch(client.FetchRequest(site.url + path, 10, hosts, **given))


@pytest.mark.parametrize(
    ("path", "bodies", "asked", "key"),
    [
        *[(f"/{status}", 1, "site", "secret") for status in ELSEWHERE],
        *[(f"/{status}", 2, "site", "secret") for status in AGAIN],
        ("/away-302", 1, "other", None),
        # Where the body would go along to another host, that one is not asked.
        *[(f"/away-{status}", 1, "nobody", None) for status in AGAIN],
        # No cookie is kept on the way.
        ("/cookie", 1, "site", "secret"),
    ],
)
def test_what_goes_along_a_redirect(site, other, path, bodies, asked, key):
    sent, before = len(site.bodies), len(other.requests)
    if asked == "nobody":
        with pytest.raises(RyeError) as caught:
            post(site, path, other)
        assert (caught.value.code, len(other.requests)) == ("bad_redirect", before)
    else:
        assert post(site, path, other).status == 200
        last = (other if asked == "other" else site).requests[-1][1]
        assert (last.get("x-api-key"), "cookie" in last, "content-type" in last) == (key, False, bodies == 2)
    assert site.bodies[sent:] == [b'{"query":"q"}'] * bodies


def test_a_connection_that_the_system_takes_elsewhere_is_closed(site, monkeypatch):
    """A proxy of the system or a rewriting network: the address that was judged is not the one that answers."""
    connect = httpcore.SyncBackend.connect_tcp
    post(site, "/plain")
    with socket.create_server(("127.0.0.2", 0)) as another:

        def elsewhere(self, host, port, *more):
            return connect(self, *another.getsockname(), *more)

        monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", elsewhere)
        with pytest.raises(RyeError, match=r"went to 127\.0\.0\.2 instead of 127\.0\.0\.1"):
            post(site, "/plain")


# --- which addresses are public, against the ranges that the standard library gets wrong, and the user's exceptions ---


NOT_PUBLIC = [
    *["0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "168.63.129.16", "169.254.169.254", "172.31.255.255"],
    *["192.0.0.8", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.9", "224.0.0.1"],
    *["239.255.255.250", "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1"],
    *["64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1", "fc00::1"],
    *["fd00::1", "fe80::1", "fec0::1", "ff02::1"],
]
PUBLIC = ("1.1.1.1", "8.8.8.8", "93.184.215.14", "2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::808:808")


@pytest.mark.parametrize("text", [*NOT_PUBLIC, *PUBLIC])
def test_which_addresses_are_public(text):
    assert (addresses.not_public(ipaddress.ip_address(text)) is None) == (text in PUBLIC)
    assert sum(ipaddress.ip_address(one).is_global for one in NOT_PUBLIC) >= 3, "control: Python calls some of them global"


@given(st.ip_addresses())
def test_what_is_public_is_global_to_the_standard_library_too(address):
    if addresses.not_public(address) is None and getattr(address, "ipv4_mapped", None) is None:
        assert address.is_global or address in ipaddress.ip_network("64:ff9b::/96")


def test_a_host_is_allowed_by_name_by_port_or_by_domain():
    allowed = addresses.Allowed.of(["docs.internal", "127.0.0.1:8080", "*.example.org", "[::1]:80"])
    held = ("DOCS.internal", 1), ("127.0.0.1", 8080), ("a.b.example.org", 443), ("::1", 80)
    assert all(allowed.holds(*one) for one in held)
    assert not any(allowed.holds(*one) for one in (("127.0.0.1", 8081), ("example.org", 443), ("evilexample.org", 443)))

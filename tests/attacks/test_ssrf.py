"""Ways to make a fetcher reach this machine or its network: spellings, redirects, names that change their address.

A listener on loopback counts connections. Control: a plain client with the same names reaches it.
"""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import socket
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest

import rye
from rye.errors import RyeError
from rye.web import addresses, client
from support import web_site
from support.shell_calls import configure

TOOL = "rye/web/webfetch"

# {port} is the listener's. Each names loopback, a private network, or a place that only looks public.
SPELLINGS = (
    "http://127.0.0.1:{port}/", "http://localhost:{port}/", "http://LOCALHOST:{port}/", "http://localhost.:{port}/",
    "http://127.1:{port}/", "http://127.0.1:{port}/", "http://2130706433:{port}/", "http://0x7f000001:{port}/",
    "http://0x7f.1:{port}/", "http://0177.0.0.1:{port}/", "http://017700000001:{port}/", "http://0:{port}/",
    "http://0.0.0.0:{port}/", "http://127.255.255.254:{port}/", "http://127.000.000.001:{port}/", "http://[::1]:{port}/",
    "http://[::]:{port}/", "http://[0:0:0:0:0:0:0:1]:{port}/", "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/", "http://[::127.0.0.1]:{port}/", "http://[64:ff9b::7f00:1]:{port}/",
    "http://[64:ff9b::127.0.0.1]:{port}/", "http://[64:ff9b:1::7f00:1]:{port}/", "http://[2002:7f00:1::]:{port}/",
    "http://[2002:7f00:1::1]:{port}/", "http://[2001:0:7f00:1::]:{port}/", "http://[fe80::1]:{port}/",
    "http://[fc00::1]:{port}/", "http://[fd12:3456::1]:{port}/", "http://[fec0::1]:{port}/", "http://[ff02::1]:{port}/",
    "http://[2001:db8::1]:{port}/", "http://[3fff::1]:{port}/", "http://[100::1]:{port}/", "http://[::1%25lo]:{port}/",
    "http://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460:{port}/", "http://\uff11\uff12\uff17.0.0.1:{port}/",
    "http://127\u30020\u30020\u30021:{port}/", "http://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3:{port}/",
    "http://127.0.0.1%00.example.org:{port}/", "http://127.0.0.1\x00.example.org:{port}/",
    "http://127.0.0.1%2f.example.org:{port}/", "http://example.org@127.0.0.1:{port}/",
    "http://example.org:80@127.0.0.1:{port}/", "http://127.0.0.1:{port}#@example.org/",
    "http://127.0.0.1:{port}\\@example.org/", "http:\\\\127.0.0.1:{port}/", "http:127.0.0.1:{port}/",
    "http:///127.0.0.1:{port}/", " http://127.0.0.1:{port}/ ", "http://127.0.0.1:{port}/?http://example.org/",
    "http://10.0.0.1:{port}/", "http://172.16.0.1:{port}/", "http://192.168.0.1:{port}/",
    "http://169.254.169.254:{port}/latest/meta-data/", "http://100.64.0.1:{port}/", "http://168.63.129.16:{port}/",
    "http://224.0.0.1:{port}/", "http://255.255.255.255:{port}/", "http://198.18.0.1:{port}/", "http://192.0.0.192:{port}/",
    "http://240.0.0.1:{port}/",
)  # fmt: skip

PUBLIC, LOOPBACK, NAME = "93.184.215.14", "127.0.0.1", "rebound.example"


def attempt(url: str, project: str) -> dict:
    return rye.execute(TOOL, {"url": url, "timeout": 5}, project_path=project)["data"]


@pytest.fixture(scope="module")
def site():
    with web_site.served() as site:
        yield site


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_reaches_loopback_or_a_private_network(project, site, spelling):
    before = site.connections
    data = attempt(spelling.format(port=site.port), str(project))
    assert data["code"] in {"address_not_public", "bad_url", "host_unknown"}, data
    assert site.connections == before


def test_control_a_plain_client_reaches_it_under_many_spellings(site):
    before = site.connections
    for spelling in SPELLINGS[:14]:
        with contextlib.suppress(httpx.HTTPError, httpx.InvalidURL):
            httpx.get(spelling.format(port=site.port), trust_env=False, timeout=2)
    assert site.connections - before >= 6


@pytest.mark.slow
def test_no_redirect_reaches_them_either(project, user_space, site):
    targets = [spelling.format(port=site.port) for spelling in SPELLINGS]
    usable = [one for one in targets if one.isascii() and "\x00" not in one]
    pages = {f"/{at}": (302, {"Location": target}, b"") for at, target in enumerate(usable)}
    with web_site.served(pages) as door:
        allow(user_space, f"127.0.0.1:{door.port}")
        before = site.connections
        codes = Counter(attempt(f"{door.url}/{at}", str(project))["code"] for at in range(len(usable)))
    assert site.connections == before
    # What reads as a path leads back to the redirecting site itself, which has no such page.
    refused = {"address_not_public", "bad_redirect", "host_unknown", "http_error", "connection_failed"}
    assert set(codes) <= refused, codes
    assert codes["http_error"] + codes["connection_failed"] <= 4, codes


def allow(user_space, host: str) -> None:
    configure(user_space, f"web: {{allow_hosts: ['{host}']}}\n")


class Network:
    """Gives a name the addresses that `answers` has in turn, and counts which addresses are connected to; strangers are sent nothing."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.answers: Iterator[list[str]] = iter(())
        self.connected: Counter[str] = Counter()
        real, connect = socket.getaddrinfo, socket.create_connection

        def resolve(host, port, *args, **kinds):
            if host != NAME:
                return real(host, port, *args, **kinds)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in next(self.answers)]

        def note(address, *args, **kinds):
            resolved = socket.getaddrinfo(address[0], address[1])[0][4][0]
            self.connected[resolved] += 1
            if resolved != LOOPBACK:
                raise ConnectionRefusedError(111, "the test's network ends here")
            return connect((resolved, address[1]), *args, **kinds)

        patch.setattr(socket, "getaddrinfo", resolve)
        patch.setattr(socket, "create_connection", note)


def fetched(port: int) -> str:
    """Return what became of a fetch of the name."""
    try:
        client.fetch(client.FetchRequest(f"http://{NAME}:{port}/", 5, addresses.Allowed()))
    except RyeError as err:
        return err.code
    return "read"


def test_a_name_that_changes_its_address_changes_nothing(site, monkeypatch):
    before, network = site.connections, Network(monkeypatch)
    # Also in one answer, in both orders.
    network.answers = itertools.cycle([[LOOPBACK], [PUBLIC], [PUBLIC, LOOPBACK], [LOOPBACK, PUBLIC]])
    codes = Counter(fetched(site.port) for _ in range(40))
    assert set(network.connected) == {PUBLIC}
    assert site.connections == before
    assert codes == {"address_not_public": 30, "connection_failed": 10}


def test_control_judging_the_name_and_connecting_by_name_is_caught_out(site, monkeypatch):
    """Whichever address comes first, a name that alternates is judged by one and connected to by the other."""
    before, network = site.connections, Network(monkeypatch)
    network.answers = itertools.cycle([[PUBLIC], [LOOPBACK]])
    for _ in range(10):
        address = socket.getaddrinfo(NAME, site.port)[0][4][0]
        if addresses.not_public(ipaddress.ip_address(address)) is None:
            with contextlib.suppress(httpx.HTTPError):
                httpx.get(f"http://{NAME}:{site.port}/", trust_env=False, timeout=5)
    assert network.connected[LOOPBACK] > 0
    assert site.connections > before


def test_the_very_address_is_connected_to_and_the_name_is_still_the_host(project, user_space, site, monkeypatch):
    real = socket.getaddrinfo

    def resolve(host, port, *args, **kinds):
        return real("127.0.0.1" if host == "site.example" else host, port, *args, **kinds)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    allow(user_space, f"site.example:{site.port}")
    data = attempt(f"http://site.example:{site.port}/plain", str(project))
    assert data["success"], data
    assert site.requests[-1][1]["host"] == f"site.example:{site.port}"


def test_proxies_of_the_environment_are_not_used(project, site, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, site.url)
    before = site.connections
    with pytest.raises(RyeError):
        client.fetch(client.FetchRequest("http://host.invalid/", 2, addresses.Allowed()))
    assert site.connections == before

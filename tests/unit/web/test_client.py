"""The guarded client by itself: what goes along a redirect, what a proxy is asked for, and how a body is inflated."""

from __future__ import annotations

import gzip
import socket
import zlib

import httpcore
import pytest

from rye.errors import RyeError
from rye.web import client
from rye.web.addresses import Allowed
from rye.web.client import MAX_BODY_BYTES, FetchRequest
from support import web_site

KEY = {"x-api-key": "secret"}


@pytest.fixture(scope="module")
def other():
    with web_site.served() as site:
        yield site


@pytest.fixture(scope="module")
def site(other):
    moved = {f"/{status}": (status, {"Location": "/plain"}, b"") for status in (301, 302, 303, 307, 308)}
    away = {f"/away-{status}": (status, {"Location": f"{other.url}/plain"}, b"") for status in (302, 307, 308)}
    more = {
        "/members": (
            200,
            {"Content-Type": "text/plain", "Content-Encoding": "gzip"},
            gzip.compress(b"one ") + gzip.compress(b"two"),
        ),
        "/cookie": (302, {"Location": "/plain", "Set-Cookie": "session=1"}, b""),
        "/bad-location": (302, {"Location": "http://[x"}, b""),
        "/user": (302, {"Location": "http://name:word@127.0.0.1/"}, b""),
        "/many-headers": (200, {f"X-{at}": "x" * 1_000 for at in range(300)}, b"x"),
        "/trailing": (200, {"Content-Encoding": "gzip"}, gzip.compress(b"text") + b"no gzip"),
        "http://nowhere.invalid/page": (200, {"Content-Type": "text/plain"}, b"through the proxy"),
        "http://nowhere.invalid/inward": (302, {"Location": "http://169.254.169.254/latest/"}, b""),
    }
    with web_site.served({**moved, **away, **more}) as site:
        yield site


def ask(site, path, *others, **more):
    hosts = Allowed.of([f"127.0.0.1:{one.port}" for one in (site, *others)])
    return client.fetch(FetchRequest(site.url + path, 10, hosts, **more))


def code_of(site, path, *others, **more):
    with pytest.raises(RyeError) as caught:
        ask(site, path, *others, **more)
    return caught.value.code


def test_a_connection_that_the_system_takes_elsewhere_is_closed(site, monkeypatch):
    """A proxy of the system or a rewriting network: the address that was judged is not the one that answers."""
    connect = httpcore.SyncBackend.connect_tcp
    ask(site, "/plain")
    with socket.create_server(("127.0.0.2", 0)) as another:

        def elsewhere(self, host, port, *more):
            return connect(self, *another.getsockname(), *more)

        monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", elsewhere)
        with pytest.raises(RyeError, match=r"went to 127\.0\.0\.2 instead of 127\.0\.0\.1"):
            ask(site, "/plain")


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_moved_post_is_asked_for_without_its_body(site, status):
    sent = len(site.bodies)
    assert ask(site, f"/{status}", method="POST", json={"query": "q"}, headers=KEY).status == 200
    assert site.bodies[sent:] == [b'{"query":"q"}']
    assert "content-type" not in site.requests[-1][1]


@pytest.mark.parametrize("status", [307, 308])
def test_a_post_that_is_to_be_repeated_is_repeated_at_the_same_host(site, status):
    sent = len(site.bodies)
    assert ask(site, f"/{status}", method="POST", json={"query": "q"}, headers=KEY).status == 200
    assert site.bodies[sent:] == [b'{"query":"q"}'] * 2
    assert site.requests[-1][1]["x-api-key"] == "secret"


@pytest.mark.parametrize("status", [307, 308])
def test_no_body_goes_along_to_another_host(site, other, status):
    sent = len(other.requests)
    assert code_of(site, f"/away-{status}", other, method="POST", json={"query": "q"}, headers=KEY) == "bad_redirect"
    assert len(other.requests) == sent


def test_no_header_goes_along_to_another_host(site, other):
    assert ask(site, "/away-302", other, method="POST", json={"query": "q"}, headers=KEY).status == 200
    assert "x-api-key" not in other.requests[-1][1]
    assert site.requests[-1][1]["x-api-key"] == "secret"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/bad-location", "bad_redirect"),
        ("/user", "bad_redirect"),
        ("/many-headers", "connection_failed"),
        ("/members", "unsupported_encoding"),
    ],
)
def test_what_no_server_should_answer_is_refused(site, path, code):
    assert code_of(site, path) == code
    # No cookie is kept on the way.
    ask(site, "/cookie")
    assert "cookie" not in site.requests[-1][1]


def test_what_follows_a_gzip_body_is_left(site):
    assert ask(site, "/trailing").body == b"text"


@pytest.mark.parametrize("size", [1, 7, 4_096])
@pytest.mark.parametrize(("coding", "packed"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_a_body_is_the_same_however_it_arrives(size, coding, packed):
    body = bytes(range(256)) * 500
    data = packed(body)
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    assert client._body(pieces, {"content-encoding": coding}, client.MAX_BODY_BYTES, client._COMPRESSED) == (body, False)


def test_inflation_stops_at_the_limit():
    data = web_site.bomb(64 * 1024 * 1024)
    body, cut = client._body(iter([data]), {"content-encoding": "gzip"}, client.MAX_BODY_BYTES, client._COMPRESSED)
    assert (len(body), cut) == (MAX_BODY_BYTES, True)


@pytest.mark.parametrize("url", ["http://b\u00fccher.example/", "http://xn--bcher-kva.example/", "HTTP://B\u00dcCHER.example/"])
def test_a_name_in_any_script_is_asked_for_in_ascii(url):
    assert client.parse(url).raw_host == b"xn--bcher-kva.example"


def test_a_proxy_is_asked_for_names_only_it_knows(site):
    got = client.fetch(FetchRequest("http://nowhere.invalid/page", 10, proxy=site.url))
    assert got.body == b"through the proxy"


@pytest.mark.parametrize(
    "target", ["http://169.254.169.254/latest/", "http://127.0.0.1:1/", "https://localhost/", "http://[::1]/"]
)
def test_a_proxy_is_not_asked_for_what_is_not_public(site, target):
    before = site.connections
    with pytest.raises(RyeError) as caught:
        client.fetch(FetchRequest(target, 10, proxy=site.url))
    assert caught.value.code == "address_not_public"
    assert site.connections == before
    # Where it leads is judged too, and being the proxy allows its own host nothing.
    for url in ("http://nowhere.invalid/inward", f"{site.url}/plain"):
        with pytest.raises(RyeError) as caught:
            client.fetch(FetchRequest(url, 10, proxy=site.url))
        assert caught.value.code == "address_not_public"
    for proxy in ("socks9://x", "socks5://127.0.0.1:1080", "http://127.0.0.1:99999"):
        with pytest.raises(RyeError) as caught:
            client.fetch(FetchRequest("http://nowhere.invalid/", 10, proxy=proxy))
        assert caught.value.code == "bad_config"

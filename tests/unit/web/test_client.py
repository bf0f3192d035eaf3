"""What goes along a redirect: a body only where it is asked for again at the same host, a key only to the host it is for."""

from __future__ import annotations

import socket

import httpcore
import pytest

from rye.errors import RyeError
from rye.web import client
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

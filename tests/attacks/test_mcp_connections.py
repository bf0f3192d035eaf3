"""Clients that open much and ask nothing: half-open requests, and sessions that nobody ends."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from urllib.parse import urlsplit

import pytest
import uvicorn

from rye import local_http
from support.mcp_peer import listening

HALF = b"POST /mcp HTTP/1.1\r\nHost: x\r\nX-A: "


async def hello(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@contextlib.contextmanager
def serving(protocol):
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    config = uvicorn.Config(hello, http=protocol, log_level="critical", lifespan="off", ws="none", limit_concurrency=60)
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


def status_of(place):
    connection = http.client.HTTPConnection(*place, timeout=120)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status
    finally:
        connection.close()


def half_open(place, count):
    made = []
    for _ in range(count):
        made.append(socket.create_connection(place))
        made[-1].sendall(HALF)
    return made


def test_half_open_requests_keep_nobody_out(monkeypatch):
    monkeypatch.setattr(local_http, "_MOST_WAITING", 20)
    with serving(local_http.header_timeout_protocol()) as place, contextlib.ExitStack() as stack:
        for one in half_open(place, 150):
            stack.enter_context(one)
        assert status_of(place) == 200
    # Control: the web server by itself refuses everybody then.
    with serving("h11") as place, contextlib.ExitStack() as stack:
        for one in half_open(place, 150):
            stack.enter_context(one)
        assert status_of(place) == 503


def test_a_header_that_never_ends_is_given_up_and_a_client_that_goes_on_is_not(monkeypatch):
    monkeypatch.setattr(local_http, "_HEADER_SECONDS", 0.5)
    with (
        serving(local_http.header_timeout_protocol()) as place,
        contextlib.closing(http.client.HTTPConnection(*place, timeout=120)) as good,
    ):
        (slow,) = half_open(place, 1)
        good.request("GET", "/")
        assert good.getresponse().read() == b"ok"
        slow.settimeout(10)
        assert slow.recv(100) == b""
        slow.close()
        # The second request on a connection is as slow, or as quick.
        good.request("GET", "/")
        assert good.getresponse().read() == b"ok"
        good.sock.sendall(HALF)
        good.sock.settimeout(10)
        assert good.sock.recv(100) == b""


def ask(server, method, message=None, session=None):
    """Make a request of the server; return the open response."""
    url = urlsplit(server.url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=120)
    headers = {"Authorization": f"Bearer {server.token}", "Accept": "application/json, text/event-stream"}
    headers |= {"Content-Type": "application/json", "MCP-Protocol-Version": "2025-06-18"}
    headers |= {"Mcp-Session-Id": session} if session else {}
    connection.request(method, url.path, json.dumps(message) if message else None, headers)
    return connection, connection.getresponse()


def begun(server):
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    connection, response = ask(server, "POST", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    with contextlib.closing(connection):
        response.read()
        return response.status, response.headers["mcp-session-id"]


def ping(server, session):
    connection, response = ask(server, "POST", {"jsonrpc": "2.0", "id": 2, "method": "ping"}, session)
    with contextlib.closing(connection):
        response.read()
        return response.status


@pytest.mark.slow
def test_clients_that_leave_without_a_word_keep_no_other_out_and_lose_no_session(project):
    with listening(project) as server:
        first = begun(server)[1]
        assert {begun(server)[0] for _ in range(400)} == {200}
        assert ping(server, first) == 200

"""MCP's server against web pages, other machines' names, strangers, clients that open much, and very many calls at once."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import urlsplit

import pytest
import uvicorn

from rye import local_http
from rye.errors import UsageError
from support.harness import times
from support.mcp_peer import listening, peer
from support.waiting import until

CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT}


def post(url, body=None, **headers):
    """As `request`; return status and body."""
    return request(url, body, **headers)[:2]


def request(url, body=None, **headers):
    """Send one request with exactly these headers besides the usual ones; return status, body and headers."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)
    try:
        connection.putrequest("POST", parts.path, skip_host=True, skip_accept_encoding=True)
        given = {"Host": parts.netloc, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = json.dumps(HELLO).encode() if body is None else body
        for name, value in {"Content-Length": str(len(data)), **given}.items():
            for one in value if isinstance(value, list) else [value]:
                if one is not None:
                    connection.putheader(name, one)
        connection.endheaders()
        # It may be refused before the body was taken.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.send(data)
        answer = connection.getresponse()
        try:
            return answer.status, answer.read(), answer.headers
        except ConnectionResetError:
            # Closed with our body still on the way.
            return answer.status, b"", answer.headers
    finally:
        connection.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("USER_SPACE", str(tmp_path_factory.mktemp("user")))
        patch.delenv("RYE_MCP_TOKEN", raising=False)
        with listening(tmp_path_factory.mktemp("project")) as made:
            yield made


def test_who_holds_the_token_is_served(server):
    status, body = post(server.url, Authorization=f"Bearer {server.token}")
    assert status == 200
    assert b"serverInfo" in body
    port = urlsplit(server.url).port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
        assert post(server.url, Authorization=f"bearer {server.token}", Host=host)[0] == 200
        assert post(server.url, Authorization=f"Bearer {server.token}", Origin=f"http://{host}")[0] == 200


WRONG_HOSTS = [
    "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1:{port}.evil.example",
    "localhost.evil.example:{port}", "127.0.0.2:{port}", "[::ffff:127.0.0.1]:{port}", "user@127.0.0.1:{port}", "",
    "0.0.0.0:{port}", "2130706433:{port}", "localhost:0{port}",
]  # fmt: skip


@pytest.mark.parametrize("host", [*WRONG_HOSTS, None, ["127.0.0.1:{port}", "evil.example"]])
def test_another_servers_name_is_refused_with_the_token_too(server, host):
    port = urlsplit(server.url).port
    made = [one.format(port=port) for one in host] if isinstance(host, list) else host and host.format(port=port)
    status, body = post(server.url, Authorization=f"Bearer {server.token}", Host=made)
    assert status in (400, 421)
    assert b"serverInfo" not in body


WRONG_ORIGINS = [
    "http://evil.example", "null", "http://127.0.0.1", "http://127.0.0.1:1", "http://127.0.0.1:{port}.evil.example",
    "http://localhost:{port}@evil.example", "file://", "", "javascript:1", "http://127.0.0.1:{port}/", "chrome-extension://abc",
]  # fmt: skip


@pytest.mark.parametrize("origin", [*WRONG_ORIGINS, ["http://127.0.0.1:{port}", "http://evil.example"]])
def test_a_page_of_another_origin_is_refused_with_the_token_too(server, origin):
    port = urlsplit(server.url).port
    made = [one.format(port=port) for one in origin] if isinstance(origin, list) else origin.format(port=port)
    assert post(server.url, Authorization=f"Bearer {server.token}", Origin=made)[0] == 403


def test_a_wrong_token_is_refused(server):
    token = server.token
    wrong = [
        None, "", "Bearer", "Bearer ", f"Basic {token}", token, f"Bearer {token[:-1]}", f"Bearer {token}x",
        f"Bearer {token.swapcase()}", f"Bearer {token} {token}", "Bearer \xff\xfe", f"Bearer\t{token}",
        [f"Bearer {token}", "Bearer x"],
    ]  # fmt: skip
    for shown in wrong:
        status, body = post(server.url, Authorization=shown)
        assert status in (400, 401), shown
        assert b"serverInfo" not in body
    assert post(f"{server.url}?token={token}&access_token={token}")[0] == 401


def test_other_paths_and_large_bodies_are_refused(server):
    right = {"Authorization": f"Bearer {server.token}"}
    assert post(server.url, Connection="Upgrade", Upgrade="websocket")[0] == 401
    assert post(server.url.replace("/mcp", "/other"), **right)[0] == 404
    assert post(server.url, b" " * (4 * 1024 * 1024 + 1), **right)[0] == 413
    chunked = {**right, "Transfer_Encoding": "chunked", "Content_Length": None}
    assert post(server.url, b"1000001\r\n" + b" " * 5_000_000, **chunked)[0] in (400, 413)
    # A stranger's body is not read at all.
    assert post(server.url, b"", Content_Length=str(10**12))[0] == 401
    # Nor does it write lines where the server's own are.
    assert (post(server.url, **right)[0], server.errors) == (200, [])


def test_control_without_the_guard_a_foreign_name_and_page_are_served():
    reached = []

    async def app(scope, receive, send):
        reached.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"served"})

    with _served(app) as port:
        assert post(f"http://127.0.0.1:{port}/mcp", Host="evil.example", Origin="http://evil.example")[0] == 200
    assert reached
    reached.clear()
    address = partial(local_http.Address, "127.0.0.1")
    with _served(lambda port: local_http.Guard(app, address(port), "a token of the test", "rye mcp")) as port:
        assert post(f"http://127.0.0.1:{port}/mcp", Host="evil.example", Origin="http://evil.example")[0] == 421
    assert not reached


@contextlib.contextmanager
def _served(app):
    """Serve an application, or what a function makes of the port; yields the port."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        port = listener.getsockname()[1]
        made = app(port) if app.__code__.co_argcount == 1 else app
        server = uvicorn.Server(uvicorn.Config(made, log_level="critical", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        until(lambda: server.started)
        try:
            yield port
        finally:
            server.should_exit = True
            thread.join(10)


def test_only_this_machine_unless_told(server):
    for told in ("8765", ":8765", "127.0.0.1:8765"):
        assert local_http.parse_address(told) == local_http.Address("127.0.0.1", 8765)
    assert local_http.parse_address("[::1]:80") == local_http.Address("::1", 80)
    for wrong in ("", "x", "host:", "host:x", "host:70000", "http://host:1", "a b:1", "127.0.0.1:１"):
        with pytest.raises(UsageError, match="HOST:PORT"):
            local_http.parse_address(wrong)
    assert "evil.example:80" not in local_http.hosts(local_http.Address("127.0.0.1", 80))
    with socket.socket() as outside:
        # Bound to loopback only: another address of this very machine does not answer.
        outside.settimeout(2)
        assert outside.connect_ex(("127.0.0.2", urlsplit(server.url).port)) != 0


def test_an_address_for_all_takes_any_number_of_this_machine_but_no_name():
    guard = local_http.Guard(None, local_http.Address("0.0.0.0", 8765), "x" * 20, "rye mcp")
    hosts = {"192.168.1.7:8765": True, "evil.example:8765": False, "192.168.1.7:1": False, "localhost:8765": True}
    for host, expected in hosts.items():
        scope = {"headers": [(b"host", host.encode()), (b"authorization", b"Bearer " + b"x" * 20)], "path": "/mcp"}
        assert (guard._judge(scope) is None) == expected, host


def test_the_users_own_token_must_be_long_and_is_not_printed(project, monkeypatch):
    for weak in ("short", "with a space in the middle", "ü" * 20, "x" * 20 + "\n"):
        monkeypatch.setenv("RYE_MCP_TOKEN", weak)
        with pytest.raises(UsageError, match="RYE_MCP_TOKEN"):
            local_http.token_to_use("RYE_MCP_TOKEN")
    monkeypatch.setenv("RYE_MCP_TOKEN", "a-token-of-my-own-choice")
    with listening(project) as own:
        assert "a-token-of-my-own-choice" not in "".join(own.said)
        assert post(own.url, Authorization="Bearer a-token-of-my-own-choice")[0] == 200
    monkeypatch.delenv("RYE_MCP_TOKEN")
    assert len({local_http.token_to_use("RYE_MCP_TOKEN")[0] for _ in range(100)}) == 100


def asked(server, message, **headers):
    return request(server.url, message, Authorization=f"Bearer {server.token}", MCP_Protocol_Version="2025-06-18", **headers)


def begun(server):
    status, _, headers = asked(server, None)
    return status, headers["mcp-session-id"]


def ping(server, session):
    return asked(server, b'{"jsonrpc": "2.0", "id": 2, "method": "ping"}', Mcp_Session_Id=session)[0]


@pytest.mark.slow
def test_clients_that_leave_without_a_word_keep_no_other_out_and_lose_no_session(project):
    with listening(project) as server:
        first = begun(server)[1]
        assert {begun(server)[0] for _ in range(400)} == {200}
        assert ping(server, first) == 200


@pytest.mark.slow
def test_requests_that_never_become_whole_keep_no_other_out(project):
    with listening(project) as server, contextlib.ExitStack() as stack:
        at = urlsplit(server.url)
        for _ in range(700):
            half = stack.enter_context(socket.create_connection((at.hostname, at.port)))
            half.sendall(b"POST /mcp HTTP/1.1\r\nHost: x\r\nX-A: ")
        # The control is the web server by itself, which answers 503.
        assert begun(server)[0] == 200
        assert len(os.listdir(f"/proc/{server.process.pid}/fd")) < 400


IDLE_MB = 100
# More commands than there are places for them.
SLEEPERS, EDITS, READS, SEARCHES = 40, 16, 20, 8


def edit(server, number):
    change = {"after_line_id": "end", "new_content": f"line of call {number}"}
    return server.call("edit_lines", {"file_path": "shared.txt", "changes": [change]})


@pytest.mark.slow
def test_84_calls_at_once_are_all_answered_or_wait_and_no_edit_is_lost(project):
    (project / "shared.txt").write_bytes(b"first\n")
    (project / "big.py").write_bytes(b"".join(b"value = %d\n" % number for number in range(200)))
    with peer(project) as server, ThreadPoolExecutor(84) as pool:
        server.text("read", file_path="shared.txt")
        sleepers = [
            server.begin("tools/call", {"name": "bash", "arguments": {"command": "sleep 120"}}) for _ in range(SLEEPERS)
        ]
        edits = [pool.submit(edit, server, number) for number in range(EDITS)]
        reads = [pool.submit(server.call, "read", {"file_path": "big.py"}) for _ in range(READS)]
        found = [pool.submit(server.call, "grep", {"pattern": "value = 1"}) for _ in range(SEARCHES)]
        results = [one.result(60) for one in [*edits, *reads, *found]]
        assert not any(result["isError"] for result in results)
        assert all(result.result()["content"][0]["text"].count("value = ") == 200 for result in reads)
        # While all of that was answered, the commands slept on.
        assert len(server._waiting) == SLEEPERS, [early(0) for number, early in sleepers if number not in server._waiting]
        assert not server.call("job", {"action": "list"})["isError"]
        for number, _ in sleepers:
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        assert server.text("bash", command="echo free") == "free\n"
    lines = (project / "shared.txt").read_text().splitlines()
    assert lines[0] == "first"
    assert sorted(lines[1:]) == sorted(f"line of call {number}" for number in range(EDITS))


@pytest.mark.slow
def test_an_idle_server_is_small_and_calls_do_not_grow_it(project):
    calls, marks = times(150), []
    kinds = [("read", {"file_path": name}) for name in ("a.py", "missing.py")]
    kinds += [("grep", {"pattern": "value = 7"}), ("ls", {}), ("glob", {"pattern": "*"})]
    (project / "a.py").write_bytes(b"".join(b"value = %d\n" % number for number in range(200)))
    with peer(project) as server:
        server.tools()
        assert server.resident() < IDLE_MB
        for number in range(calls):
            server.call(*kinds[number % len(kinds)])
            if number + 1 in (calls // 10, calls):
                marks.append(server.resident())
    early, late = marks
    assert late - early < 5

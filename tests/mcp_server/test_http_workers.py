"""Several processes behind one port: a session is served wherever its requests come in, and whatever becomes of a worker."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from rye.mcp_server.http_workers import owner_of
from support.mcp_peer import listening
from support.waiting import PATIENCE

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class Session:
    """A client over plain HTTP; each request on a connection of its own, unless one is given."""

    def __init__(self, server):
        self.place = server.url.split("/")[2].split(":")
        self.headers = {
            "Authorization": f"Bearer {server.token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        self.number = 0
        answer, _ = self.ask("initialize", HELLO)
        self.id = self.headers["mcp-session-id"] = answer.getheader("mcp-session-id")
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def connection(self):
        return http.client.HTTPConnection(self.place[0], int(self.place[1]), timeout=PATIENCE)

    def post(self, message, connection=None):
        made = connection or self.connection()
        made.request("POST", "/mcp", json.dumps(message), self.headers)
        answer = made.getresponse()
        body = answer.read()
        if connection is None:
            made.close()
        return answer, body

    def ask(self, method, params, connection=None):
        self.number += 1
        return self.post({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}, connection)

    def read(self, path="a.txt", connection=None):
        return self.ask("tools/call", {"name": "read", "arguments": {"file_path": path}}, connection)


def workers_of(server):
    found = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text(encoding="ascii").split()
    return [int(one) for one in found]


def waited_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("USER_SPACE", str(tmp_path_factory.mktemp("user")))
        patch.delenv("RYE_MCP_TOKEN", raising=False)
        project = tmp_path_factory.mktemp("project")
        (project / "a.txt").write_text("what is in it\n")
        (project / "long.txt").write_text("x\n" * 50)
        with listening(project, "--workers", "3") as made:
            yield made


def test_names_of_sessions():
    assert owner_of(b"0123abcd-2") == (b"0123abcd", 2)
    for other in (b"", b"abc", b"-1", b"abc-", b"abc-x", b"abc-1234"):
        assert owner_of(other) == (other, None)


@pytest.mark.slow
def test_sessions_begin_in_every_worker_and_are_served_on_any_connection(server):
    sessions = [Session(server) for _ in range(6)]
    assert {owner_of(one.id.encode())[1] for one in sessions} == {0, 1, 2}
    for one in sessions:
        for _ in range(4):
            answer, body = one.read()
            assert (answer.status, b"what is in it" in body) == (200, True)


@pytest.mark.slow
def test_one_connection_serves_sessions_of_several_workers(server):
    one, two, three = Session(server), Session(server), Session(server)
    connection = one.connection()
    for session in (one, two, three, two, one, one):
        answer, body = session.read(connection=connection)
        assert (answer.status, b"what is in it" in body) == (200, True)
    connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("piece", [7, 300])
def test_a_request_that_comes_in_pieces_moves_whole(server, piece):
    session = Session(server)
    content = "y" * 20_000 if piece > 7 else "y"
    message = {"name": "write", "arguments": {"file_path": f"made{piece}.txt", "content": content}}
    body = json.dumps({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": message}).encode()
    lines = [f"{name}: {value}" for name, value in session.headers.items()]
    head = "\r\n".join(["POST /mcp HTTP/1.1", f"Host: {':'.join(session.place)}", f"Content-Length: {len(body)}", *lines])
    whole = head.encode() + b"\r\n\r\n" + body
    # Three times, so that it begins in each of the workers.
    for _ in range(3):
        with socket.create_connection((session.place[0], int(session.place[1])), timeout=PATIENCE) as wire:
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for at in range(0, len(whole), piece):
                wire.sendall(whole[at : at + piece])
            assert wire.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.slow
def test_many_clients_at_once(server):
    failed = []

    def use():
        try:
            session = Session(server)
            connection = session.connection()
            for _ in range(5):
                answer, body = session.read(connection=connection)
                assert (answer.status, b"what is in it" in body) == (200, True)
            connection.close()
        except BaseException as err:
            failed.append(err)

    threads = [threading.Thread(target=use) for _ in range(24)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failed


@pytest.mark.slow
def test_a_wrong_token_and_an_unknown_session_are_refused_as_ever(server):
    session = Session(server)
    session.headers["mcp-session-id"] = "00" * 16 + "-1"
    assert session.read()[0].status == 404
    session.headers["mcp-session-id"] = "00" * 16 + "-77"
    assert session.read()[0].status == 404
    session.headers["Authorization"] = "Bearer " + "x" * 40
    assert session.read()[0].status == 401


@pytest.mark.slow
def test_a_worker_that_dies_is_started_again(project):
    (project / "a.txt").write_text("what is in it\n")
    with listening(project, "--workers", "2") as own:
        waited_for(lambda: len(workers_of(own)) == 2)
        session = Session(own)
        before = workers_of(own)
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        waited_for(lambda: len(workers_of(own)) == 2 and not set(workers_of(own)) & set(before))
        assert session.read()[0].status == 404
        assert b"what is in it" in Session(own).read()[1]


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_the_server(project, ending):
    with listening(project, "--workers", "2") as own:
        waited_for(lambda: len(workers_of(own)) == 2)
        Session(own)
        left = workers_of(own)
        own.process.send_signal(ending)
        assert own.process.wait(PATIENCE) in (0, -ending)
        waited_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in left))


@pytest.mark.slow
def test_an_address_that_is_taken_is_refused(project, server):
    import subprocess

    from support.mcp_peer import command, environment

    place = server.url.split("/")[2]
    done = subprocess.run(
        command(project, "--http", place, "--workers", "2"),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode != 0, "Cannot listen" in done.stderr) == (True, True)

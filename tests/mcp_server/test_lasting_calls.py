"""Calls over standard input and output that last: the next request is read meanwhile, and one that hangs is answered in time."""

from __future__ import annotations

import time

import pytest

from support.mcp_peer import RUNTIME, Peer, environment

# A disk that does not answer holds the thread of a tool in the kernel; nothing here can do that on purpose, so the tool's own
# start waits, in the same thread, and asks nobody for its time.
HANGING = """
import os, time
from rye.executor import chain, run_code
started = run_code.call
def call(code, item_id, digest, parameters, root, *more, **named):
    while parameters.get("file_path") == "hangs.py" and not os.path.exists(f"{root}/back"):
        time.sleep(0.02)
    return started(code, item_id, digest, parameters, root, *more, **named)
run_code.call = call
chain.time_limit = lambda found: 1.0
"""
MOST_AT_ONCE = 32


@pytest.fixture
def server(project, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(HANGING, encoding="utf-8")
    for name in ("hangs.py", "a.py"):
        (project / name).write_text("x = 1\n", encoding="utf-8")
    peer = Peer(project, env=environment(PYTHONPATH=f"{tmp_path}:{RUNTIME}"))
    yield peer
    (project / "back").touch()
    assert peer.close() == 0


def test_a_call_that_hangs_is_answered_at_its_time_and_others_meanwhile(server, project):
    began = time.monotonic()
    _, answer = server.begin("tools/call", {"name": "read", "arguments": {"file_path": "hangs.py"}})
    assert "x = 1" in server.text("read", file_path="a.py")
    assert time.monotonic() - began < 1
    result = answer()["result"]
    assert result["isError"]
    assert "ran past its limit of 1 s" in result["content"][0]["text"]
    # When the disk is back, the tool ends, and says nothing more to a client that has its answer.
    (project / "back").touch()
    assert "x = 1" in server.text("read", file_path="hangs.py")
    assert server.notices == []


def test_a_call_that_hangs_ends_when_it_is_cancelled(server):
    number, _ = server.begin("tools/call", {"name": "read", "arguments": {"file_path": "hangs.py"}})
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    assert "x = 1" in server.text("read", file_path="a.py")


def test_calls_that_hang_take_no_place_from_others_once_they_are_answered(server):
    hanging = [
        server.begin("tools/call", {"name": "read", "arguments": {"file_path": "hangs.py"}})[1] for _ in range(MOST_AT_ONCE)
    ]
    _, waits = server.begin("tools/call", {"name": "read", "arguments": {"file_path": "a.py"}})
    assert all(one()["result"]["isError"] for one in hanging)
    assert not waits()["result"]["isError"]

"""Calls that last: over standard input and output the next request is read meanwhile, and one that hangs is answered in time."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import anyio
import pytest

from support.harness import RUNTIME, environment
from support.mcp_peer import ARGUMENTS, Peer, listening, peer
from support.shell_calls import sleepers
from support.waiting import PATIENCE

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
# Where a process has as many threads as it may, the next one is refused.
NO_THREADS = """
import os, threading
start_thread = threading.Thread.start
def start(self):
    if os.path.exists("FULL"):
        raise RuntimeError("can't start new thread")
    start_thread(self)
threading.Thread.start = start
"""
MOST_AT_ONCE = 32


@pytest.fixture
def server(project, tmp_path):
    no_threads = NO_THREADS.replace("FULL", str(project / "full"))
    (tmp_path / "sitecustomize.py").write_text(HANGING + no_threads, encoding="utf-8")
    for name in ("hangs.py", "a.py"):
        (project / name).write_text("x = 1\n", encoding="utf-8")
    made = Peer(project, env=environment(PYTHONPATH=f"{tmp_path}:{RUNTIME}"))
    yield made
    (project / "back").touch()
    assert made.close() == 0


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


def test_a_call_that_waited_for_a_hanging_one_sees_the_settings_of_its_own_begin(server, project):
    settings = Path(os.environ["USER_SPACE"], ".ai", "config", "rye.yaml")
    settings.parent.mkdir(parents=True)
    settings.write_text('protected:\n  allow: [".vscode"]\n', encoding="utf-8")
    (project / ".vscode").mkdir()
    server.text("write", file_path=".vscode/a.txt", content="x")
    given = {"file_path": "hangs.py", "content": "x"}
    hanging = [server.begin("tools/call", {"name": "write", "arguments": given})[1] for _ in range(MOST_AT_ONCE)]
    _, waits = server.begin("tools/call", {"name": "write", "arguments": {**given, "file_path": ".vscode/b.txt"}})
    server.text("ls")
    settings.unlink()
    assert all(one()["result"]["isError"] for one in hanging)
    assert "protected" in waits()["result"]["content"][0]["text"]


def test_a_server_that_can_start_no_thread_reads_on(server, project):
    asked = {"name": "bash", "arguments": {"command": "sleep 0.2"}}
    (project / "full").touch()
    # With a token for progress, which needs a thread, too.
    answers = [server.begin("tools/call", asked, progressToken=number)[1] for number in range(12)]
    assert all("result" in one(20) for one in answers)
    (project / "full").unlink()
    assert "x = 1" in server.text("read", file_path="a.py")


def test_a_server_without_a_timer_reads_on_during_a_call(project, tmp_path):
    # No such clock, which is refused as a timer is by a filter of system calls.
    (tmp_path / "sitecustomize.py").write_text("from rye.executor import turns\nturns._MONOTONIC = 99\n", encoding="utf-8")
    with peer(project, env=environment(PYTHONPATH=f"{tmp_path}:{RUNTIME}")) as server:
        number, _ = server.begin("tools/call", {"name": "bash", "arguments": {"command": "sleep 60"}})
        assert "result" in server.ask("ping")
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        assert "out" in server.text("bash", command="echo out")


def test_calls_that_wait_take_no_thread_each_to_be_told_that_they_do(server):
    for _ in range(MOST_AT_ONCE):
        server.begin("tools/call", {"name": "read", "arguments": {"file_path": "hangs.py"}})
    time.sleep(1)  # Each has lasted, and has its thread, by then.
    before = len(os.listdir(f"/proc/{server.process.pid}/task"))
    told = [
        server.begin("tools/call", {"name": "read", "arguments": {"file_path": "a.py"}}, progressToken=number)[1]
        for number in range(100)
    ]
    server.ask("ping")
    assert len(os.listdir(f"/proc/{server.process.pid}/task")) < before + 10
    assert not any(one()["result"]["isError"] for one in told)


# --- over HTTP, with the client of the library that the server is made with, in both of its modes ---


@contextlib.asynccontextmanager
async def client(server, mode):
    import httpx2
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {server.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as web,
        Client(streamable_http_client(server.url, http_client=web), mode=mode) as made,
    ):
        yield made


@pytest.fixture(scope="module")
def http_server(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("USER_SPACE", str(tmp_path_factory.mktemp("user")))
        patch.delenv("RYE_MCP_TOKEN", raising=False)
        with listening(tmp_path_factory.mktemp("project")) as made:
            yield made


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_tools_are_listed_progress_is_told_and_cancelling_ends_the_command(http_server, mode, number):
    told = []

    async def note(progress, total, message):
        told.append(message)

    async def until(true):
        end = time.monotonic() + PATIENCE
        while not true() and time.monotonic() < end:
            await anyio.sleep(0.05)
        assert true()

    async def use():
        async with client(http_server, mode) as made:
            assert {tool.name for tool in (await made.list_tools()).tools} == set(ARGUMENTS)
            async with anyio.create_task_group() as tasks:
                command = {"command": f"echo begun; sleep {number}"}
                tasks.start_soon(lambda: made.call_tool("bash", command, progress_callback=note))
                await until(lambda: sleepers(number) and told)
                tasks.cancel_scope.cancel()
            await until(lambda: not sleepers(number))
            assert (await made.call_tool("bash", {"command": "echo next"})).content[0].text.startswith("next\n")

    anyio.run(use)
    assert "".join(told) == "begun\n"


def test_a_server_over_http_that_is_stopped_while_it_starts_ends_in_order(project):
    for times in (0, 3):
        with listening(project) as own:
            for _ in range(times):
                own.process.terminate()
            assert own.close() in (0, -15)

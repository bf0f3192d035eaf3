"""The MCP server over HTTP, with the client of the library it is made with, in both of its modes."""

from __future__ import annotations

import contextlib
import time

import anyio
import pytest

from support.mcp_peer import ARGUMENTS, listening
from support.shell_calls import sleepers
from support.waiting import PATIENCE


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
def server(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("USER_SPACE", str(tmp_path_factory.mktemp("user")))
        patch.delenv("RYE_MCP_TOKEN", raising=False)
        with listening(tmp_path_factory.mktemp("project")) as made:
            yield made


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_tools_are_listed_progress_is_told_and_cancelling_ends_the_command(server, mode, number):
    told = []

    async def note(progress, total, message):
        told.append(message)

    async def until(true):
        end = time.monotonic() + PATIENCE
        while not true() and time.monotonic() < end:
            await anyio.sleep(0.05)
        assert true()

    async def use():
        async with client(server, mode) as made:
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


def test_a_server_that_is_stopped_while_it_starts_ends_in_order(project):
    for times in (0, 3):
        with listening(project) as own:
            for _ in range(times):
                own.process.terminate()
            assert own.close() in (0, -15)

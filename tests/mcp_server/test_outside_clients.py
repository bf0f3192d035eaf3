"""Clients that others wrote: the MCP Inspector's command line, and the 1.x SDK in an environment of its own."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import venv
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.mcp_peer import ARGUMENTS, command, environment, listening

pytestmark = pytest.mark.slow

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
OLD_SDK = "mcp>=1.20,<2"
TOOLS = {"read", *ARGUMENTS}
PRIMARY = {
    "rye_execute": {"item_type": "tool", "item_id": "rye/file-system/ls", "parameters": {}},
    "rye_load": {"item_type": "tool", "item_id": "rye/file-system/ls"},
}
CALLS = {**ARGUMENTS, **PRIMARY}
OPTIONS = ("--meta", "--structured")

OLD_CLIENT = """
import asyncio, json, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

order = json.loads(sys.argv[1])
calls = order["calls"]

async def use(streams):
    async with ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        results = {}
        for name in calls:
            result = await session.call_tool(name, calls[name])
            # The client itself holds structuredContent to the output schema.
            results[name] = [result.isError, result.content[0].text, (result.structuredContent or {}).get("success")]
        return {"tools": tools, "results": results, "resources": len((await session.list_resources()).resources)}

async def main():
    if "url" in order:
        async with streamablehttp_client(order["url"], headers=order["headers"]) as streams:
            return await use(streams)
    command, *args = order["command"]
    async with stdio_client(StdioServerParameters(command=command, args=args, env=dict(os.environ))) as streams:
        return await use(streams)

print(json.dumps(asyncio.run(main())))
"""


def run(what, *words, **options):
    """Run a command that must succeed; on failure say what it said."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=240, **options)
    assert done.returncode == 0, f"{what} failed ({done.returncode}); is the registry reachable?\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """Both clients, installed side by side from the package registries: the path of the inspector, and of a Python.

    They are installed once for a run, also when several processes share its tests.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "outside-clients"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            _install(folder)
            (folder / "done").touch()
    return str(folder / "node_modules/.bin/mcp-inspector"), str(folder / "venv/bin/python")


def _install(folder):
    if shutil.which("npm") is None:
        pytest.skip("needs Node.js with npm (Debian package npm)")

    def inspector():
        run("npm install", "npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--prefer-offline", INSPECTOR)

    def old_sdk():
        venv.create(folder / "venv", with_pip=False)
        python = str(folder / "venv/bin/python")
        run("pip install", sys.executable, "-m", "pip", "--python", python, "install", "-q", OLD_SDK)

    with ThreadPoolExecutor(2) as pool:
        for one in [pool.submit(inspector), pool.submit(old_sdk)]:
            one.result()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A project whose file was read once, so that each call stands by itself; and an environment of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("USER_SPACE", str(tmp_path_factory.mktemp("user")))
        patch.delenv("RYE_MCP_TOKEN", raising=False)
        yield tmp_path_factory.mktemp("project"), environment()


def target(transport, project, server):
    """Return where a server is, for a client: words of a command, or URL and header."""
    if transport == "stdio":
        return command(project, *OPTIONS), ()
    return [server.url], ("--transport", "http", "--header", f"Authorization: Bearer {server.token}")


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_sdk_before_this_one_lists_and_calls_every_tool(installed, place, transport):
    project, env = place
    with listening(project, *OPTIONS, env=env) as server:
        order = {"calls": CALLS}
        if transport == "http":
            order |= {"url": server.url, "headers": {"Authorization": f"Bearer {server.token}"}}
        else:
            order["command"] = command(project, *OPTIONS)
        told = json.loads(run("the client", installed[1], "-c", OLD_CLIENT, json.dumps(order), env=env).splitlines()[-1])
    assert set(told["tools"]) == set(CALLS)
    for name, (failed, text, success) in told["results"].items():
        assert not failed, (name, text)
        assert success, name
        assert text


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_inspector_lists_and_calls_every_tool(installed, place, transport):
    project, env = place
    (project / "made.txt").write_bytes(b"one\n")
    with listening(project, *OPTIONS, env=env) as server:
        where, more = target(transport, project, server)

        def ask(*words):
            wanted = ["--cli", "--method", *words, *more]
            wanted += [word for name in ("PYTHONPATH", "USER_SPACE") for word in ("-e", f"{name}={env[name]}")]
            return json.loads(run(f"the inspector ({words})", installed[0], *wanted, "--", *where, env=env))

        def call(name, **more):
            given = {**CALLS[name], **more}
            pairs = [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in given.items()]
            return name, ask("tools/call", "--tool-name", name, *(["--tool-arg", *pairs] if pairs else []))

        assert {tool["name"] for tool in ask("tools/list")["tools"]} == set(CALLS)
        # One after another where the next needs what the last one did; the others side by side.
        results = dict(call(name) for name in ("read", "edit_lines"))
        # Each command of the inspector is another client, and a plain undo takes back the caller's own change.
        results |= dict([call("undo", entry_id=results["edit_lines"]["structuredContent"]["entry_id"])])
        with ThreadPoolExecutor(3) as pool:
            results |= dict(pool.map(call, [name for name in CALLS if name not in results]))
    assert set(results) == set(CALLS)
    for name, result in results.items():
        assert not result.get("isError"), (name, result)
        assert result["structuredContent"]["success"], name
        assert result["content"][0]["text"], name
    assert os.path.exists(project / "made.txt")

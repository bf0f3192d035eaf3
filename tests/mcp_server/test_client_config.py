"""What is printed for each client, read as that client reads it; and the entry for the server registry."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rye.mcp_server.client_config import CLIENTS
from support.in_process import rye
from support.mcp_peer import ARGUMENTS, environment
from support.signed_tools import rye as process

ROOT = Path(__file__).parents[2]
ALL = ["claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini", "opencode"]


def printed(project, client, *options):
    done = rye("mcp", "install", "--client", client, "--project", str(project), *options, cwd=project)
    assert done.returncode == 0, done
    return done.stdout.decode()


def block(text):
    """Return the JSON of a text."""
    return json.loads(text[text.index("{\n") :])


def entry(client, text):
    """Return program and arguments as the client takes them from its configuration."""
    if client == "codex":
        table = tomllib.loads(text[text.index("[mcp_servers") :])["mcp_servers"]["rye"]
        return [table["command"], *table["args"]]
    found = block(text)
    if client == "opencode":
        local = found["mcp"]["rye"]
        assert (local["type"], local["enabled"], "args" in local) == ("local", True, False)
        return local["command"]
    server = found["servers" if client == "vscode" else "mcpServers"]["rye"]
    if client in ("vscode", "claude-code", "cursor"):
        assert server["type"] == "stdio"
    return [server["command"], *server["args"]]


@pytest.mark.parametrize("client", ALL)
def test_each_client_is_told_how_to_start_this_server(tmp_path, client):
    project = tmp_path / "a project; with $odd 'words'"
    project.mkdir()
    words = entry(client, printed(project, client, "--category", "my/tools", "--meta"))
    assert Path(words[0]).is_absolute()
    at = words.index("mcp")
    assert words[at:] == ["mcp", "--project", str(project), "--category", "my/tools", "--meta"]


def test_what_is_printed_starts_a_server(project):
    words = entry("codex", printed(project, "codex"))
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    server = subprocess.Popen(words, cwd="/", env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        server.stdin.write("".join(json.dumps(message) + "\n" for message in messages).encode())
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
    finally:
        server.stdin.close()
        server.wait(20)
        server.stdout.close()
    assert {tool["name"] for tool in answers[1]["result"]["tools"]} == set(ARGUMENTS)


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_the_command_for_a_shell_says_the_same(tmp_path, client):
    project = tmp_path / "it's here"
    project.mkdir()
    text = printed(project, client)
    (line,) = [line for line in text.splitlines() if line.startswith("  ") and " mcp add " in line]
    words = shlex.split(line)
    assert words[words.index("--") + 1 :] == entry(client, text)


@pytest.mark.parametrize("client", [one for one in ALL if one != "claude-desktop"])
def test_a_server_that_listens_is_named_without_its_token(project, client):
    text = printed(project, client, "--http", "127.0.0.1:8765")
    assert "http://127.0.0.1:8765/mcp" in text
    if client == "codex":
        table = tomllib.loads(text[text.index("[mcp_servers") :])["mcp_servers"]["rye"]
        assert table == {"url": "http://127.0.0.1:8765/mcp", "bearer_token_env_var": "RYE_MCP_TOKEN"}
    elif client == "vscode":
        found = block(text)
        (secret,) = found["inputs"]
        assert found["servers"]["rye"]["headers"] == {"Authorization": f"Bearer ${{input:{secret['id']}}}"}
        assert secret["password"]
    else:
        (server,) = next(part for name, part in block(text).items() if name != "$schema").values()
        assert re.fullmatch(r"Bearer \$?\{(env:)?RYE_MCP_TOKEN\}", server["headers"]["Authorization"])
        assert server["httpUrl" if client == "gemini" else "url"] == "http://127.0.0.1:8765/mcp"


def test_what_cannot_be_is_said(project):
    assert list(CLIENTS) == ALL
    for words, said in (
        (("install",), "--client"),
        (("install", "--client", "emacs"), "no client 'emacs'"),
        (("install", "--client", "claude-desktop", "--http", "1"), "stdio"),
        (("--client", "codex"), "install"),
        (("install", "--client", "codex", "--http", "here"), "HOST:PORT"),
    ):
        done = rye("mcp", *words, "--project", str(project), cwd=project)
        assert done.returncode == 2
        assert said in done.stderr.decode()
        assert not done.stdout


def test_a_category_without_tools_is_told(project):
    done = rye("mcp", "install", "--client", "codex", "--category", "rye/swe", "--category", "rye/swee", cwd=project)
    assert done.returncode == 0
    assert done.stderr.decode().splitlines() == [
        "rye mcp: warning: no tool of 'rye/swee' can run here; `rye tools --category rye/swee` says why."
    ]


def test_neither_the_whole_disk_nor_a_home_is_served_unasked(tmp_path):
    for folder in ("/", str(tmp_path)):
        done = rye("mcp", cwd=folder, env={"HOME": str(tmp_path)})
        assert done.returncode == 2
        assert b"--project" in done.stderr


def test_printing_a_configuration_does_not_load_the_protocol(project):
    done = process("mcp", "install", "--client", "codex", cwd=project, python=("-X", "importtime"))
    assert not re.search(rb"\| +(mcp|mcp_types|anyio|pydantic|starlette)\n", done.stderr)


def test_the_extra_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "mcp>=2.3,<3" in project["optional-dependencies"]["mcp"]
    assert sys.version_info >= (3, 11)

"""The configuration with which a client starts this server or reaches it, in the client's own format.

Formats, as their makers document them: Claude Code (`.mcp.json`, `claude mcp add`), Claude Desktop
(`claude_desktop_config.json`), Cursor (`.cursor/mcp.json`), VS Code (`.vscode/mcp.json`), Codex (`config.toml`), Gemini CLI
(`settings.json`), opencode (`opencode.json`).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from typing import Any, Final

from rye.errors import UsageError
from rye.mcp_server.http import TOKEN_VARIABLE
from rye.plain_class import Record

NAME: Final = "rye"


class Local(Record):
    """A server that the client starts itself: program and arguments, no shell between."""

    argv: tuple[str, ...]


class Remote(Record):
    """A server that listens already; its token is in the variable RYE_MCP_TOKEN of the client's environment."""

    url: str


Server = Local | Remote


def configuration(client: str, server: Server) -> str:
    """Return what to put where, as text to print.

    Args:
        client: one of `CLIENTS`.
        server: how the client is to reach it.

    Raises:
        UsageError: `unknown_client`; `no_http_client`, where a client cannot reach a server that listens.
    """
    if client not in CLIENTS:
        raise UsageError("unknown_client", f"There is no client {client!r}.", f"Clients: {', '.join(CLIENTS)}.")
    return CLIENTS[client](server)


def _claude_code(server: Server) -> str:
    if isinstance(server, Local):
        command = ["claude", "mcp", "add", "--scope", "user", NAME, "--", *server.argv]
        entry: dict[str, Any] = {"type": "stdio", **_command(server)}
    else:
        # The shell puts the token in: it is not to stand in a history or a file of the project.
        command = ["claude", "mcp", "add", "--scope", "user", "--transport", "http", NAME, server.url]
        entry = {"type": "http", "url": server.url, "headers": _bearer(f"${{{TOKEN_VARIABLE}}}")}
    line = shlex.join(command)
    if isinstance(server, Remote):
        # Double quotes, so that the shell puts the token in when the line is run.
        line += f' --header "Authorization: Bearer ${TOKEN_VARIABLE}"'
    return _snippet(f"Run this once:\n\n  {line}\n\nor put this into .mcp.json in the project:", {"mcpServers": {NAME: entry}})


def _claude_desktop(server: Server) -> str:
    if isinstance(server, Remote):
        raise UsageError(
            "no_http_client", "Claude Desktop starts local servers itself.", "Leave --http out: it speaks stdio to rye mcp."
        )
    where = (
        "Put this into claude_desktop_config.json (macOS: ~/Library/Application Support/Claude/, Linux: ~/.config/Claude/),\n"
        "then restart Claude Desktop:"
    )
    return _snippet(where, {"mcpServers": {NAME: _command(server)}})


def _cursor(server: Server) -> str:
    entry = (
        {"type": "stdio", **_command(server)}
        if isinstance(server, Local)
        else {"url": server.url, "headers": _bearer(f"${{env:{TOKEN_VARIABLE}}}")}
    )
    return _snippet(
        "Put this into .cursor/mcp.json in the project, or into ~/.cursor/mcp.json for all projects:",
        {"mcpServers": {NAME: entry}},
    )


def _vscode(server: Server) -> str:
    if isinstance(server, Local):
        content: dict[str, Any] = {"servers": {NAME: {"type": "stdio", **_command(server)}}}
    else:
        # VS Code asks for it once and stores it encrypted, so that the token is in no file of the project.
        secret = {"type": "promptString", "id": "rye-token", "description": "Token of rye mcp", "password": True}
        entry = {"type": "http", "url": server.url, "headers": _bearer("${input:rye-token}")}
        content = {"inputs": [secret], "servers": {NAME: entry}}
    return _snippet("Put this into .vscode/mcp.json in the project:", content)


def _codex(server: Server) -> str:
    if isinstance(server, Local):
        # Written by hand: the standard library reads TOML but does not write it.
        lines = [f"command = {_toml(server.argv[0])}", f"args = [{', '.join(map(_toml, server.argv[1:]))}]"]
        command = ["codex", "mcp", "add", NAME, "--", *server.argv]
    else:
        lines = [f"url = {_toml(server.url)}", f"bearer_token_env_var = {_toml(TOKEN_VARIABLE)}"]
        command = ["codex", "mcp", "add", NAME, "--url", server.url, "--bearer-token-env-var", TOKEN_VARIABLE]
    table = "\n".join([f"[mcp_servers.{NAME}]", *lines])
    return f"Run this once:\n\n  {shlex.join(command)}\n\nor put this into ~/.codex/config.toml:\n\n{table}\n"


def _gemini(server: Server) -> str:
    entry = (
        _command(server) if isinstance(server, Local) else {"httpUrl": server.url, "headers": _bearer(f"${{{TOKEN_VARIABLE}}}")}
    )
    return _snippet(
        "Put this into .gemini/settings.json in the project, or into ~/.gemini/settings.json for all projects:",
        {"mcpServers": {NAME: entry}},
    )


def _opencode(server: Server) -> str:
    entry: dict[str, Any] = (
        {"type": "local", "command": list(server.argv), "enabled": True}
        if isinstance(server, Local)
        else {"type": "remote", "url": server.url, "headers": _bearer(f"{{env:{TOKEN_VARIABLE}}}"), "enabled": True}
    )
    content = {"$schema": "https://opencode.ai/config.json", "mcp": {NAME: entry}}
    return _snippet("Put this into opencode.json in the project, or into ~/.config/opencode/opencode.json:", content)


CLIENTS: Final[dict[str, Callable[[Server], str]]] = {
    "claude-code": _claude_code,
    "claude-desktop": _claude_desktop,
    "cursor": _cursor,
    "vscode": _vscode,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
}


def argv(program: Sequence[str], project: str, options: Sequence[str]) -> tuple[str, ...]:
    """Return the command by which a client starts the server: absolute paths, since clients start it from anywhere."""
    return (*program, "mcp", "--project", project, *options)


def _command(server: Local) -> dict[str, Any]:
    return {"command": server.argv[0], "args": list(server.argv[1:])}


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _snippet(where: str, content: dict[str, Any]) -> str:
    return f"{where}\n\n{json.dumps(content, indent=2, ensure_ascii=False)}\n"


def _toml(text: str) -> str:
    """Return a basic string of TOML, which escapes as JSON does."""
    return json.dumps(text)

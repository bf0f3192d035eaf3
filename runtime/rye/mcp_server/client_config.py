"""The configuration with which a client starts this server or reaches it, in the client's own format and place.

Each client says where its settings lie, for all of a user's projects or for one, and how the server learns the project: most
clients start it in the project's folder; some put the folder in for a variable; the others say nothing, so that one
configuration serves one project. Formats and places as their makers document them, 2026.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from rye.call.safe_text import nearest
from rye.errors import UsageError
from rye.folders import gate
from rye.mcp_server import settings_file
from rye.plain_class import Record

NAME: Final = "rye"
PATH: Final = "/mcp"
"""Where a server that listens is reached."""
TOKEN_VARIABLE: Final = "RYE_MCP_TOKEN"  # noqa: S105 - the name of a variable

Scope = Literal["user", "project"]


class Client(Record):
    """How one client is configured.

    In `local`, `remote` and `command` stand for what is known later: `{program}` and `{words}` for a server that the client
    starts itself (no shell between), `{url}` for one that listens, whose token is in RYE_MCP_TOKEN of the client's environment.

    Attributes:
        user: its settings for all projects: a variable that may name their folder, that folder in the home, a path in it.
        local: the entry for a server that it starts.
        section: the member of its settings that holds the servers.
        project: its settings for one project, below the project's folder; "" where it has none.
        folder: "" where the server is started in the project's folder; a variable that the client replaces by it; None where
            the server does not learn it.
        remote: the entry for a server that listens; None where it reaches none.
        command: its own commands that add a server which it starts, and one that listens; None where it has none.
        inputs: other members that a server that listens needs.
        note: what its user should know besides.
        syntax: of its settings.
    """

    user: tuple[str, str, str]
    local: dict[str, Any]
    section: str = "mcpServers"
    project: str = ""
    folder: str | None = ""
    remote: dict[str, Any] | None = None
    command: tuple[str, str] | None = None
    inputs: dict[str, Any] | None = None
    syntax: settings_file.Syntax = "json"
    note: str = ""


class ClientSetup(Record):
    """What is to be put where.

    Attributes:
        client: whose settings.
        path: the settings file.
        entry: the member for this server.
        command: the client's own command that does the same; empty where there is none.
        inputs: other members of the file.
    """

    client: Client
    path: str
    entry: dict[str, Any]
    command: str
    inputs: dict[str, Any]


def client(name: str) -> Client:
    """Return a client by its name.

    Raises:
        UsageError: `unknown_client`.
    """
    if name not in CLIENTS:
        near = [one for one in CLIENTS if name and one.startswith(name.lower())] or nearest(name, CLIENTS, 1)
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        raise UsageError("unknown_client", f"There is no client {name!r}.{meant}", f"Clients: {', '.join(CLIENTS)}.")
    return CLIENTS[name]


def scope_for(name: str, wanted: str | None) -> Scope:
    """Return the scope to configure: the wanted one, or that of all projects where the client has it.

    Raises:
        UsageError: `unknown_client`; `no_scope`, for one that the client does not have.
    """
    one = client(name)
    scope: Scope = "project" if wanted == "project" else "user"
    if scope == "project" and not one.project:
        raise UsageError("no_scope", f"{name} has no settings for the scope project.", "Give --scope user, or leave it out.")
    return scope


def plan(name: str, server: Sequence[str] | str, scope: Scope, project: str) -> ClientSetup:
    """Return what a client is to be told.

    Args:
        name: one of `CLIENTS`.
        server: what starts it, program and arguments; or the URL at which it listens.
        scope: as `scope_for` gives it.
        project: the project root, for settings that lie in it.

    Raises:
        UsageError: `unknown_client`; `no_http_client`, where a client cannot reach a server that listens.
    """
    one, listens = client(name), isinstance(server, str)
    template = one.remote if listens else one.local
    if template is None:
        why = f"{name} starts local servers itself."
        raise UsageError("no_http_client", why, "Leave --http out: it speaks stdio to rye mcp.")
    program, *words = [server] if isinstance(server, str) else server
    entry = _filled(template, words, {"{program}": program, "{url}": program})
    command = "" if one.command is None else one.command[listens].format(scope=scope, server=shlex.join([program, *words]))
    return ClientSetup(one, _path(one, scope, project), entry, command, (listens and one.inputs) or {})


def _filled(part: Any, words: Sequence[str], known: Mapping[str, str]) -> Any:
    """Return a template with what is known in the place of its marks."""
    if isinstance(part, dict):
        return {name: _filled(one, words, known) for name, one in part.items()}
    if isinstance(part, list):
        return [word for one in part for word in (words if one == "{words}" else [_filled(one, words, known)])]
    return known.get(part, part) if isinstance(part, str) else part


def as_text(made: ClientSetup, for_all: str) -> str:
    """Return a plan as text to print: the command that does it, or what to put where.

    Args:
        made: the plan.
        for_all: for which projects it counts.
    """
    program = made.entry.get("command", made.entry.get("cmd", ""))
    program = program[0] if isinstance(program, list) else program
    # Beside a library that wants an older `mcp`, neither works: installers do not look at what is there already.
    own = f"The server runs from the environment of {program}; keep it for the server alone, or add --uvx.\n\n"
    if program in ("", "uvx"):
        own = ""
    own += f"{made.client.note}\n\n" if made.client.note else ""
    before = f"{own}Run this once:\n\n  {made.command}\n\nor put this" if made.command else f"{own}Put this"
    snippet = settings_file.block(made.client.syntax, made.client.section, NAME, made.entry, made.inputs)
    return f"{before} into {made.path} ({for_all}):\n\n{snippet}"


def write(made: ClientSetup, scope: Scope, project: str) -> settings_file.Written:
    """Put a plan into the client's settings file.

    Raises:
        UsageError: `foreign_link`, where a file of the project leads out of it; `not_by_file`, where a server that listens
            needs more than one member; as `settings_file.put`.
    """
    if made.inputs:
        why = "This client asks for the token itself, by another entry."
        raise UsageError("not_by_file", why, "Leave --write out and put both there.")
    keys, syntax = (made.client.section, NAME), made.client.syntax
    entry, present = made.entry, settings_file.member(made.path, syntax, keys)
    # What the user added to the entry stays, unless it is for another way to reach the server. In a project's file a clone may
    # have brought it: a variable such as LD_PRELOAD would have its code run as the server.
    if scope == "user" and isinstance(present, dict) and _is_remote(present) == _is_remote(entry):
        entry = {**present, **entry}
    return _put(made.path, syntax, keys, entry, scope, project)


def remove(name: str, scope: Scope, project: str) -> settings_file.Written:
    """Take the server out of a client's settings file.

    Raises:
        UsageError: `unknown_client`; `foreign_link`; as `settings_file.put`.
    """
    one = client(name)
    return _put(_path(one, scope, project), one.syntax, (one.section, NAME), None, scope, project)


def gate_path(scope: Scope, project: str) -> str:
    """Return the settings of Claude Code in which its hooks stand."""
    top = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")
    return os.path.join(top if scope == "user" else os.path.join(project, ".claude"), "settings.json")


def gates(path: str, *programs: Sequence[str]) -> list[str]:
    """Return the events at which the gate of skills is asked; with programs, those whose entry is as `put_gate` writes it.

    A clone can bring settings in which another program has the gate's words.
    """
    hooks = settings_file.member(path, "json", ("hooks",))
    ours, found = [*map(_gate, programs)], hooks.items() if isinstance(hooks, dict) else ()
    return [event for event, those in found if _is_gate(those) and (not ours or any(one.get(event) in those for one in ours))]


def hooks_off(project: str) -> str | None:
    """Return the settings that switch off all hooks of Claude Code, the gate with them: a clone may bring them."""
    paths = [gate_path("user", project), *(os.path.join(project, ".claude", f"settings{one}.json") for one in ("", ".local"))]
    return next((one for one in paths if settings_file.member(one, "json", ("disableAllHooks",)) is True), None)


def put_gate(program: Sequence[str], scope: Scope, project: str, *, wanted: bool = True) -> settings_file.Written:
    """Put the gate of skills (see `rye.folders.gate`) into Claude Code's settings, or take it out.

    Raises:
        UsageError: `foreign_link`; `broken_settings`; as `settings_file.put`.
    """
    path = gate_path(scope, project)
    hooks = settings_file.member(path, "json", ("hooks",))
    hooks = dict(hooks) if isinstance(hooks, dict) else {}
    for event, entry in _gate(program).items():
        others = [one for one in hooks.pop(event, None) or [] if not _is_gate([one])] + [entry] * wanted
        hooks |= {event: others} if others else {}
    if not wanted and not gates(path):
        return settings_file.Written(path, changed=False, kept=None)
    return _put(path, "json", ("hooks",), hooks, scope, project)


def _gate(program: Sequence[str]) -> dict[str, dict[str, Any]]:
    asked = [{"type": "command", "command": shlex.join([*program, *gate.COMMAND.split()]), "timeout": 60}]
    return {"SessionStart": {"hooks": asked}, "PreToolUse": {"matcher": gate.MATCHER, "hooks": asked}}


def _is_gate(hooks: Any) -> bool:
    return any(gate.COMMAND in json.dumps(one) for one in hooks) if isinstance(hooks, list) else False


def _put(
    path: str, syntax: settings_file.Syntax, keys: tuple[str, ...], value: dict[str, Any] | None, scope: Scope, project: str
) -> settings_file.Written:
    real = os.path.realpath(path)
    # A clone could bring a link under this name, so that another file of the user would be changed.
    if scope == "project" and not real.startswith(os.path.realpath(project) + os.sep):
        raise UsageError("foreign_link", f"{path} leads out of the project, to {real}.", "Remove the link, then try again.")
    return settings_file.put(path, syntax, keys, value, project if scope == "project" else None)


def _is_remote(entry: dict[str, Any]) -> bool:
    return any(key.lower().endswith("url") for key in entry)


def project_words(name: str, named: str | None, nearest: Callable[[], str]) -> tuple[str, ...]:
    """Return the words that tell the server its project: none where the client starts it there.

    Args:
        name: one of `CLIENTS`.
        named: the project that the user named; it is tied to it then.
        nearest: finds the project of the current folder.
    """
    if named is not None:
        return ("--project", named)
    folder = client(name).folder
    if folder is None:
        return ("--project", nearest())
    return ("--project", folder) if folder else ()


def places(project: str) -> list[tuple[str, Scope, str]]:
    """Return the clients' settings files as (client, scope, path)."""
    scopes: tuple[Scope, Scope] = ("user", "project")
    return [
        (name, scope, _path(one, scope, project))
        for name, one in CLIENTS.items()
        for scope in scopes
        if scope == "user" or one.project
    ]


def _path(one: Client, scope: Scope, project: str) -> str:
    if scope == "project":
        return os.path.join(project, one.project)
    variable, folder, path = one.user
    return os.path.join(os.environ.get(variable) or os.path.join(os.path.expanduser("~"), folder), path)


_CONFIG: Final = ("XDG_CONFIG_HOME", ".config")
_STARTED: Final = {"command": "{program}", "args": ["{words}"]}
_BY_STDIO: Final = {"type": "stdio", **_STARTED}


def _bearer(token: str = f"${{{TOKEN_VARIABLE}}}") -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {token}"}}


# Double quotes, so that the shell puts the token in when the line is run: it is not to stand in a history.
_HEADER: Final = f'--header "Authorization: Bearer ${TOKEN_VARIABLE}"'
_OF_EDITORS: Final = _bearer(f"${{env:{TOKEN_VARIABLE}}}")
# VS Code asks for it once and stores it encrypted, so that the token is in no file of the project.
_VSCODE_TOKEN: Final = {"type": "promptString", "id": "rye-token", "description": "Token of rye mcp", "password": True}

CLIENTS: Final[dict[str, Client]] = {
    "claude-code": Client(
        user=("CLAUDE_CONFIG_DIR", "", ".claude.json"),
        project=".mcp.json",
        local=_BY_STDIO,
        remote={"type": "http", "url": "{url}", **_bearer()},
        command=(
            f"claude mcp add --scope {{scope}} {NAME} -- {{server}}",
            f"claude mcp add --scope {{scope}} --transport http {NAME} {{server}} {_HEADER}",
        ),
    ),
    "claude-desktop": Client(user=(*_CONFIG, "Claude/claude_desktop_config.json"), folder=None, local=_STARTED),
    "cursor": Client(
        user=("", ".cursor", "mcp.json"),
        project=".cursor/mcp.json",
        folder="${workspaceFolder}",
        local=_BY_STDIO,
        remote={"url": "{url}", **_OF_EDITORS},
    ),
    "vscode": Client(
        section="servers",
        user=(*_CONFIG, "Code/User/mcp.json"),
        project=".vscode/mcp.json",
        folder="${workspaceFolder}",
        local=_BY_STDIO,
        remote={"type": "http", "url": "{url}", **_bearer("${input:rye-token}")},
        inputs={"inputs": [_VSCODE_TOKEN]},
    ),
    "codex": Client(
        section="mcp_servers",
        user=("CODEX_HOME", ".codex", "config.toml"),
        project=".codex/config.toml",
        # Its own limits are 10 s for the start, which a busy machine passes, and a minute or so for a call.
        local={**_STARTED, "startup_timeout_sec": 60, "tool_timeout_sec": 660},
        remote={"url": "{url}", "bearer_token_env_var": TOKEN_VARIABLE},
        command=(
            f"codex mcp add {NAME} -- {{server}}",
            f"codex mcp add {NAME} --url {{server}} --bearer-token-env-var {TOKEN_VARIABLE}",
        ),
        syntax="toml",
        note="For `codex exec` add `required = true`: its first turn does not wait for a server that is still starting.",
    ),
    "gemini": Client(
        user=("", ".gemini", "settings.json"),
        project=".gemini/settings.json",
        local=_STARTED,
        remote={"httpUrl": "{url}", **_bearer()},
    ),
    "opencode": Client(
        section="mcp",
        user=(*_CONFIG, "opencode/opencode.json"),
        project="opencode.json",
        local={"type": "local", "command": ["{program}", "{words}"], "enabled": True, "timeout": 60_000},
        remote={"type": "remote", "url": "{url}", **_bearer(f"{{env:{TOKEN_VARIABLE}}}"), "enabled": True},
    ),
    "copilot-cli": Client(
        user=("COPILOT_HOME", ".copilot", "mcp-config.json"),
        project=".mcp.json",
        local={"type": "local", **_STARTED, "tools": ["*"]},
        remote={"type": "http", "url": "{url}", **_bearer(), "tools": ["*"]},
    ),
    "goose": Client(
        section="extensions",
        user=(*_CONFIG, "goose/config.yaml"),
        local={
            "name": NAME,
            "type": "stdio",
            "enabled": True,
            "cmd": "{program}",
            "args": ["{words}"],
            "envs": {},
            "timeout": 660,
        },
        syntax="yaml",
    ),
    "zed": Client(
        section="context_servers",
        user=(*_CONFIG, "zed/settings.json"),
        project=".zed/settings.json",
        local={"source": "custom", **_STARTED, "env": {}},
    ),
    "windsurf": Client(
        user=("", ".codeium/windsurf", "mcp_config.json"),
        folder=None,
        local=_STARTED,
        remote={"serverUrl": "{url}", **_OF_EDITORS},
    ),
    "cline": Client(
        user=(*_CONFIG, "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
        folder=None,
        local={**_STARTED, "disabled": False, "timeout": 660},
    ),
    "lm-studio": Client(user=("", ".lmstudio", "mcp.json"), folder=None, local=_STARTED),
}

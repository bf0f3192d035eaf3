"""The configuration with which a client starts this server or reaches it, in the client's own format and place.

Each client says where its settings lie, for all of a user's projects or for one, and how the server learns the project: most
clients start it in the project's folder; some put the folder in for a variable; the others say nothing, so that one
configuration serves one project. Formats and places as their makers document them, 2026.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from rye.call.safe_text import nearest
from rye.errors import UsageError
from rye.folders import gate
from rye.mcp_server import settings_file
from rye.mcp_server.http import TOKEN_VARIABLE
from rye.plain_class import Record

NAME: Final = "rye"

Scope = Literal["user", "project"]


class Local(Record):
    """A server that the client starts itself: program and arguments, no shell between."""

    argv: tuple[str, ...]


class Remote(Record):
    """A server that listens already; its token is in the variable RYE_MCP_TOKEN of the client's environment."""

    url: str


Server = Local | Remote


class Client(Record):
    """How one client is configured.

    Attributes:
        section: the member of its settings that holds the servers.
        user: its settings for all projects, with `~` and `$VARIABLES`; "" where it has none.
        project: its settings for one project, below the project's folder; "" where it has none.
        folder: "" where the server is started in the project's folder; a variable that the client replaces by it; None where
            the server does not learn it.
        local: the entry for a server that it starts, of program and arguments.
        remote: the entry for a server that listens, of its URL; None where it reaches none.
        command: the words of its own command that adds the server, for a scope; None where it has none.
        beside: other members that a server that listens needs.
        note: what its user should know besides.
        syntax: of its settings.
    """

    section: str
    user: str
    project: str
    folder: str | None
    local: Callable[[str, list[str]], dict[str, Any]]
    remote: Callable[[str], dict[str, Any]] | None = None
    command: Callable[[Server, Scope], list[str]] | None = None
    beside: dict[str, Any] | None = None
    syntax: settings_file.Syntax = "json"
    note: str = ""


class Plan(Record):
    """What is to be put where.

    Attributes:
        path: the settings file.
        keys: the way to the member.
        entry: the member.
        beside: other members of the file.
        syntax: of the file.
        command: the client's own command that does the same; empty where there is none.
        note: what the client's user should know besides.
    """

    path: str
    keys: tuple[str, ...]
    entry: dict[str, Any]
    beside: dict[str, Any]
    syntax: settings_file.Syntax
    command: str
    note: str


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
    scope: Scope = "project" if wanted == "project" or (wanted is None and not one.user) else "user"
    if not (one.user if scope == "user" else one.project):
        other = "project" if scope == "user" else "user"
        raise UsageError(
            "no_scope", f"{name} has no settings for the scope {scope}.", f"Give --scope {other}, or leave it out."
        )
    return scope


def plan(name: str, server: Server, scope: Scope, project: str) -> Plan:
    """Return what a client is to be told.

    Args:
        name: one of `CLIENTS`.
        server: how the client is to reach it.
        scope: as `scope_for` gives it.
        project: the project root, for settings that lie in it.

    Raises:
        UsageError: `unknown_client`; `no_http_client`, where a client cannot reach a server that listens.
    """
    one = client(name)
    if isinstance(server, Local):
        entry = one.local(server.argv[0], list(server.argv[1:]))
    elif one.remote is not None:
        entry = one.remote(server.url)
    else:
        raise UsageError(
            "no_http_client", f"{name} starts local servers itself.", "Leave --http out: it speaks stdio to rye mcp."
        )
    path = _expanded(one.user) if scope == "user" else os.path.join(project, one.project)
    command = _shell_line(one.command(server, scope), server) if one.command is not None else ""
    beside = (one.beside or {}) if isinstance(server, Remote) else {}
    return Plan(path, (one.section, NAME), entry, beside, one.syntax, command, one.note)


def as_text(made: Plan, for_all: str) -> str:
    """Return a plan as text to print: the command that does it, or what to put where.

    Args:
        made: the plan.
        for_all: for which projects it counts.
    """
    program = made.entry.get("command", made.entry.get("cmd", ""))
    program = program[0] if isinstance(program, list) else program
    # Beside a library that wants an older `mcp`, neither works: installers do not look at what is there already.
    own = (
        f"The server runs from the environment of {program}; keep it for the server alone, or add --uvx.\n\n"
        if program not in ("", "uvx")
        else ""
    )
    own += f"{made.note}\n\n" if made.note else ""
    before = f"{own}Run this once:\n\n  {made.command}\n\nor put this" if made.command else f"{own}Put this"
    return f"{before} into {made.path} ({for_all}):\n\n{_snippet(made)}"


def _snippet(made: Plan) -> str:
    section, name = made.keys
    if made.syntax == "toml":
        return settings_file.toml_table(made.keys, made.entry)
    whole = {**made.beside, section: {name: made.entry}}
    if made.syntax == "yaml":
        lines = "".join(f"    {key}: {json.dumps(one, ensure_ascii=False)}\n" for key, one in made.entry.items())
        return f"{section}:\n  {name}:\n{lines}"
    return f"{json.dumps(whole, indent=2, ensure_ascii=False)}\n"


def write(made: Plan, scope: Scope, project: str) -> settings_file.Written:
    """Put a plan into the client's settings file.

    Raises:
        UsageError: `foreign_link`, where a file of the project leads out of it; `not_by_file`, where a server that listens
            needs more than one member; as `settings_file.put`.
    """
    if made.beside:
        raise UsageError(
            "not_by_file", "This client asks for the token itself, by another entry.", "Leave --write out and put both there."
        )
    _refuse_foreign(made.path, scope, project)
    entry, present = made.entry, settings_file.member(made.path, made.syntax, made.keys)
    # What the user added to the entry stays, unless it is for another way to reach the server.
    if isinstance(present, dict) and _is_remote(present) == _is_remote(entry):
        entry = {**present, **entry}
    return settings_file.put(made.path, made.syntax, made.keys, entry, project if scope == "project" else None)


def remove(name: str, scope: Scope, project: str) -> settings_file.Written:
    """Take the server out of a client's settings file.

    Raises:
        UsageError: `unknown_client`; `foreign_link`; as `settings_file.put`.
    """
    one = client(name)
    path = _expanded(one.user) if scope == "user" else os.path.join(project, one.project)
    _refuse_foreign(path, scope, project)
    return settings_file.put(path, one.syntax, (one.section, NAME), None, project if scope == "project" else None)


def gate_path(scope: Scope, project: str) -> str:
    """Return the settings of Claude Code in which its hooks stand."""
    top = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")
    return os.path.join(top if scope == "user" else os.path.join(project, ".claude"), "settings.json")


def gates(path: str) -> list[str]:
    """Return the events at which the gate of skills is asked."""
    hooks = settings_file.member(path, "json", ("hooks",))
    return [event for event, those in hooks.items() if _is_gate(those)] if isinstance(hooks, dict) else []


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
    _refuse_foreign(path, scope, project)
    hooks = settings_file.member(path, "json", ("hooks",))
    hooks = dict(hooks) if isinstance(hooks, dict) else {}
    command = shlex.join([*program, *gate.COMMAND.split()])
    for event, more in (("SessionStart", {}), ("PreToolUse", {"matcher": gate.MATCHER})):
        others = [one for one in hooks.pop(event, None) or [] if not _is_gate([one])]
        if wanted:
            others.append({**more, "hooks": [{"type": "command", "command": command, "timeout": 60}]})
        hooks |= {event: others} if others else {}
    if not wanted and not gates(path):
        return settings_file.Written(path, changed=False, kept=None)
    return settings_file.put(path, "json", ("hooks",), hooks, project if scope == "project" else None)


def _is_gate(hooks: Any) -> bool:
    return any(gate.COMMAND in json.dumps(one) for one in hooks) if isinstance(hooks, list) else False


def _refuse_foreign(path: str, scope: Scope, project: str) -> None:
    real = os.path.realpath(path)
    # A clone could bring a link under this name, so that another file of the user would be changed.
    if scope == "project" and not real.startswith(os.path.realpath(project) + os.sep):
        raise UsageError("foreign_link", f"{path} leads out of the project, to {real}.", "Remove the link, then try again.")


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


def places() -> list[tuple[str, str, str, settings_file.Syntax]]:
    """Return the clients' settings files as (client, path, section, syntax): those of the user, then those of a project."""
    found = []
    for name, one in CLIENTS.items():
        found += [(name, place, one.section, one.syntax) for place in (_expanded(one.user), one.project) if place]
    return found


def _expanded(place: str) -> str:
    """Return a settings path: its first folder may be named by a variable, as in `$CODEX_HOME|~/.codex`."""
    first, slash, rest = place.partition("/.../")
    for choice in first.split("|"):
        value = os.environ.get(choice[1:], "") if choice.startswith("$") else os.path.expanduser(choice)
        if value:
            return f"{value}/{rest}" if slash else value
    return ""


def _shell_line(words: list[str], server: Server) -> str:
    line = shlex.join(words)
    # Double quotes, so that the shell puts the token in when the line is run: it is not to stand in a history.
    header = f' --header "Authorization: Bearer ${TOKEN_VARIABLE}"'
    return line + header if isinstance(server, Remote) and words[0] in ("claude", "gemini") else line


def _claude_command(server: Server, scope: Scope) -> list[str]:
    begin = ["claude", "mcp", "add", "--scope", scope]
    if isinstance(server, Local):
        return [*begin, NAME, "--", *server.argv]
    return [*begin, "--transport", "http", NAME, server.url]


def _codex_command(server: Server, scope: Scope) -> list[str]:  # noqa: ARG001 - it has one
    if isinstance(server, Local):
        return ["codex", "mcp", "add", NAME, "--", *server.argv]
    return ["codex", "mcp", "add", NAME, "--url", server.url, "--bearer-token-env-var", TOKEN_VARIABLE]


def _typed(kind: str, **more: Any) -> Callable[[str, list[str]], dict[str, Any]]:
    return lambda program, words: {"type": kind, "command": program, "args": words, **more}


def _plain(program: str, words: list[str]) -> dict[str, Any]:
    return {"command": program, "args": words}


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _codex_entry(program: str, words: list[str]) -> dict[str, Any]:
    # Its own limits are 10 s for the start, which a busy machine passes, and a minute or so for a call.
    return {"command": program, "args": words, "startup_timeout_sec": 60, "tool_timeout_sec": 660}


def _goose_entry(program: str, words: list[str]) -> dict[str, Any]:
    return {"name": NAME, "type": "stdio", "enabled": True, "cmd": program, "args": words, "envs": {}, "timeout": 660}


_APPS: Final = "$XDG_CONFIG_HOME|~/.config"
_ENV: Final = f"${{{TOKEN_VARIABLE}}}"
_ENV_OF_EDITORS: Final = f"${{env:{TOKEN_VARIABLE}}}"
# VS Code asks for it once and stores it encrypted, so that the token is in no file of the project.
_VSCODE_TOKEN: Final = {"type": "promptString", "id": "rye-token", "description": "Token of rye mcp", "password": True}

CLIENTS: Final[dict[str, Client]] = {
    "claude-code": Client(
        section="mcpServers",
        user="$CLAUDE_CONFIG_DIR|~/.../.claude.json",
        project=".mcp.json",
        folder="",
        local=_typed("stdio"),
        remote=lambda url: {"type": "http", "url": url, "headers": _bearer(_ENV)},
        command=_claude_command,
    ),
    "claude-desktop": Client(
        section="mcpServers", user=f"{_APPS}/.../Claude/claude_desktop_config.json", project="", folder=None, local=_plain
    ),
    "cursor": Client(
        section="mcpServers",
        user="~/.cursor/mcp.json",
        project=".cursor/mcp.json",
        folder="${workspaceFolder}",
        local=_typed("stdio"),
        remote=lambda url: {"url": url, "headers": _bearer(_ENV_OF_EDITORS)},
    ),
    "vscode": Client(
        section="servers",
        user=f"{_APPS}/.../Code/User/mcp.json",
        project=".vscode/mcp.json",
        folder="${workspaceFolder}",
        local=_typed("stdio"),
        remote=lambda url: {"type": "http", "url": url, "headers": _bearer("${input:rye-token}")},
        beside={"inputs": [_VSCODE_TOKEN]},
    ),
    "codex": Client(
        section="mcp_servers",
        user="$CODEX_HOME|~/.codex/.../config.toml",
        project=".codex/config.toml",
        folder="",
        local=_codex_entry,
        remote=lambda url: {"url": url, "bearer_token_env_var": TOKEN_VARIABLE},
        command=_codex_command,
        syntax="toml",
        note="For `codex exec` add `required = true`: its first turn does not wait for a server that is still starting.",
    ),
    "gemini": Client(
        section="mcpServers",
        user="~/.gemini/settings.json",
        project=".gemini/settings.json",
        folder="",
        local=_plain,
        remote=lambda url: {"httpUrl": url, "headers": _bearer(_ENV)},
    ),
    "opencode": Client(
        section="mcp",
        user="$XDG_CONFIG_HOME|~/.config/.../opencode/opencode.json",
        project="opencode.json",
        folder="",
        local=lambda program, words: {"type": "local", "command": [program, *words], "enabled": True, "timeout": 60_000},
        remote=lambda url: {"type": "remote", "url": url, "headers": _bearer(f"{{env:{TOKEN_VARIABLE}}}"), "enabled": True},
    ),
    "copilot-cli": Client(
        section="mcpServers",
        user="$COPILOT_HOME|~/.copilot/.../mcp-config.json",
        project=".mcp.json",
        folder="",
        local=_typed("local", tools=["*"]),
        remote=lambda url: {"type": "http", "url": url, "headers": _bearer(_ENV), "tools": ["*"]},
    ),
    "goose": Client(
        section="extensions",
        user="$XDG_CONFIG_HOME|~/.config/.../goose/config.yaml",
        project="",
        folder="",
        local=_goose_entry,
        syntax="yaml",
    ),
    "zed": Client(
        section="context_servers",
        user="$XDG_CONFIG_HOME|~/.config/.../zed/settings.json",
        project=".zed/settings.json",
        folder="",
        local=lambda program, words: {"source": "custom", "command": program, "args": words, "env": {}},
    ),
    "windsurf": Client(
        section="mcpServers",
        user="~/.codeium/windsurf/mcp_config.json",
        project="",
        folder=None,
        local=_plain,
        remote=lambda url: {"serverUrl": url, "headers": _bearer(_ENV_OF_EDITORS)},
    ),
    "cline": Client(
        section="mcpServers",
        user=f"{_APPS}/.../Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        project="",
        folder=None,
        local=lambda program, words: {"command": program, "args": words, "disabled": False, "timeout": 660},
    ),
    "lm-studio": Client(section="mcpServers", user="~/.lmstudio/mcp.json", project="", folder=None, local=_plain),
}


def argv(program: Sequence[str], project: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
    """Return the command by which a client starts the server: an absolute path, since clients start it from anywhere."""
    return (*program, "mcp", *project, *options)

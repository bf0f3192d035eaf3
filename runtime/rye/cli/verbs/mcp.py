"""`rye mcp`: serve the project's tools to an agent's client, or print the client's own configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import SimpleNamespace

from rye import local_http
from rye.cli import shared, terminal
from rye.cli.process import EXIT_NO, EXIT_OK
from rye.cli.shared import project_to_work_in
from rye.errors import UsageError
from rye.mcp_server import client_config, settings_file, stdio
from rye.mcp_server.client_config import CLIENTS
from rye.sandbox import environment


def run_mcp(args: SimpleNamespace) -> int:
    """Run `rye mcp`; return its exit code."""
    if args.action == "import":
        return _import(args)
    if args.name or args.command or args.url or args.permissions or args.key:
        raise UsageError("bad_option", "These words go with import.", "Try: rye mcp import NAME -- COMMAND …")
    if args.action and not args.client:
        raise UsageError("no_client", "Say for which client.", f"Give --client with one of: {', '.join(CLIENTS)}.")
    if args.action:
        return (_install if args.action == "install" else _uninstall)(args)
    for option in ("client", "scope", "write", "uvx", "gate"):
        if getattr(args, option):
            raise UsageError("bad_option", f"--{option} goes with install.", "Try: rye mcp install --client claude-code")
    try:
        project = project_to_work_in(args.project)
    except UsageError as err:
        # A client that starts a server in the home shows only that it failed: this one answers, and says why, in each call.
        if err.code != "no_project" or args.http or sys.stdin.isatty():
            raise
        import tempfile

        print(f"rye mcp: {terminal.printable(str(err))}", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="rye-no-project-") as empty:
            return _serve(args, empty, err)
    return _serve(args, project)


def _import(args: SimpleNamespace) -> int:
    """Ask another server for its tools, show them, and write a signed item for each."""
    from rye.cli import mcp_import
    from rye.trust import keys

    shared.require_person_or_key("sign items", args.key, key_option=True)
    # Before the server is asked: without a key nothing of it would be used.
    key = keys.signing_key(args.key)
    project = project_to_work_in(args.project)
    permissions = [one for one in args.permissions.split(",") if one]
    items = mcp_import.items_of(args.name or "", args.command, args.url, permissions, project)
    for line in mcp_import.shown(items, project):
        print(terminal.printable(line))
    if not items:
        raise UsageError("no_tools", "The server lists no tools.", "Look at its documentation.")
    if shared.at_terminal() and not shared.confirm(f"Sign these {len(items)} tools?"):
        return EXIT_NO
    refused = mcp_import.write(items, project, key)
    for line in refused:
        terminal.note(terminal.printable(line))
    print(f"{len(items) - len(refused)} of {len(items)} signed; `rye tools --category mcp/{args.name}` lists them.")
    return EXIT_NO if refused else EXIT_OK


def _serve(args: SimpleNamespace, project: str, refusal: UsageError | None = None) -> int:
    environment.close()
    # Asked now: the transport takes standard input for itself.
    typed = not args.http and sys.stdin.isatty()
    # Before anything is loaded that could print.
    wire = None if args.http else stdio.take_descriptors()
    # Before the server's modules, which would fail with a bare ImportError.
    shared.require_extra("mcp", "mcp")
    from rye.mcp_server import server as mcp_server_server
    from rye.mcp_server.listing import Selection
    from rye.mcp_server.service import Service

    if typed:
        # What would otherwise be silence: the server waits for a client's messages.
        print(
            f"rye mcp: serving {terminal.printable(project)} over standard input and output. An MCP client starts this itself; "
            "nothing to type here.\n"
            f"  Tell a client of it:  rye mcp install --client {'|'.join(CLIENTS)}\n"
            "  For clients over HTTP: rye mcp --http 127.0.0.1:8765\n"
            "  Ctrl-C ends it.",
            file=sys.stderr,
        )
    _check_categories(args.category, project)
    selection = Selection(
        tuple(args.category), args.meta, args.allow_sign, args.structured, _tool_ids(args.tools, project), args.read_only
    )
    if wire is None:
        mcp_server_server.serve_http(project, selection, local_http.parse_address(args.http))
    else:
        stdio.serve(Service(project, selection, refusal), wire)
    return EXIT_OK


def _check_categories(categories: Sequence[str], project: str) -> None:
    """Refuse misspelt categories, which only the model would miss; warn of others without a tool that can run."""
    from rye.agents import discovery

    discovery.refuse_misspelt(categories, project_path=project)
    for category in categories:
        if not discovery.listing([category], project_path=project).offers:
            warning = f"rye mcp: warning: no tool of {category!r} can run here; `rye tools --category {category}` says why."
            print(terminal.harmless(warning), file=sys.stderr)


def _tool_ids(names: str, project: str) -> tuple[str, ...]:
    """Return the ids of the tools that `--tools` names."""
    wanted = [name for one in names.split(",") if (name := one.strip())]
    if not wanted:
        return ()
    from rye.agents.toolset import Toolset

    return tuple(Toolset(project, only=wanted).names.values())


def _install(args: SimpleNamespace) -> int:
    client_config.client(args.client)
    if args.gate:
        return _install_gate(args)
    # A client that starts a server without it shows only a dead one.
    if not (args.http or args.uvx):
        shared.require_extra("mcp", "mcp")
    project = project_to_work_in(args.project) if args.project or args.category or args.tools or args.scope == "project" else ""
    if project:
        _check_categories(args.category, project)
        _tool_ids(args.tools, project)
    named = project if args.project else None
    scope, place = _scope_and_place(args)
    words: Sequence[str] = ()
    if not args.http:
        words = client_config.project_words(args.client, named, lambda: project_to_work_in(args.project))
    # An absolute path: clients start it from anywhere.
    argv = [*started_by(uvx=args.uvx), "mcp", *words, *_options(args)]
    server = local_http.url_of(local_http.parse_address(args.http), client_config.PATH) if args.http else argv
    made = client_config.plan(args.client, server, scope, place)
    if args.write:
        return _write(made, scope, place)
    print(terminal.harmless(client_config.as_text(made, _counts_for(words, scope))), end="")
    return EXIT_OK


def _install_gate(args: SimpleNamespace) -> int:
    if args.client != "claude-code":
        raise UsageError("bad_option", f"{args.client} has no hooks that a gate could use.", "Give --client claude-code.")
    written = client_config.put_gate(started_by(uvx=args.uvx), *_scope_and_place(args))
    said = "Wrote" if written.changed else "There already:"
    print(terminal.harmless(f"{said} the gate of skills: {written.path}.{_kept(written)}"))
    print("The setting skills.require (signed, pinned or none) decides what passes; `rye skill verify` shows it.")
    return EXIT_OK


def _uninstall(args: SimpleNamespace) -> int:
    where = _scope_and_place(args)
    written = client_config.remove(args.client, *where)
    if args.client == "claude-code":
        gone = client_config.put_gate((), *where, wanted=False)
        if gone.changed:
            print(terminal.harmless(f"Removed the gate of skills from {gone.path}."))
    if not written.changed:
        print(f"{terminal.printable(written.path)} has no entry of rye; nothing was changed.")
        return EXIT_OK
    print(terminal.harmless(f"Removed rye from {written.path}.{_kept(written)}"))
    return EXIT_OK


def _kept(written: settings_file.Written) -> str:
    return f" The former content is in {written.kept}." if written.kept else ""


def _scope_and_place(args: SimpleNamespace) -> tuple[client_config.Scope, str]:
    """Return the scope to configure, of a named project its own where the client has such, and the folder that it is about."""
    own = "project" if args.project and client_config.client(args.client).project else None
    scope = client_config.scope_for(args.client, args.scope or own)
    return scope, project_to_work_in(args.project) if scope == "project" else os.getcwd()


def _options(args: SimpleNamespace) -> list[str]:
    options = [word for category in args.category for word in ("--category", category)]
    options += ["--tools", args.tools] if args.tools else []
    switches = ("read_only", "meta", "allow_sign", "structured")
    return options + [f"--{name.replace('_', '-')}" for name in switches if getattr(args, name)]


def _counts_for(words: Sequence[str], scope: str) -> str:
    """Say for which projects the configuration counts, by the words that name the project to the server."""
    if words and not words[1].startswith("$"):
        # Said, because the client passes no folder: in each project the server would change this one's files.
        return f"it serves {words[1]} only"
    return "all your projects" if scope == "user" else "this project"


def _write(made: client_config.ClientSetup, scope: client_config.Scope, project: str) -> int:
    written = client_config.write(made, scope, project)
    if not written.changed:
        print(f"{terminal.printable(str(written.path))} says so already; nothing was changed.")
        return EXIT_OK
    print(terminal.harmless(f"Wrote {made.client.section}.{client_config.NAME} into {written.path}.{_kept(written)}"))
    print(
        "Start the client anew. `rye doctor` shows what it will start." + (f"\n{made.client.note}" if made.client.note else "")
    )
    return EXIT_OK


def started_by(*, uvx: bool = False) -> list[str]:
    """Return how to start this very installation from anywhere."""
    if uvx:
        if not (clone := shared.clone()):
            raise UsageError("no_clone", "uvx needs the folder that rye was installed from.", "Install rye from its clone.")
        return ["uvx", "--from", f"{clone}[mcp]", "rye"]
    in_environment = os.path.join(os.path.dirname(sys.executable), "rye")
    # `-P`: the client starts it in a project, whose own folder `rye` would be run instead.
    return [in_environment] if os.access(in_environment, os.X_OK) else [sys.executable, "-P", "-m", "rye"]


def run_serve(args: SimpleNamespace) -> int:
    """Run `rye serve --agent-sandbox`, the runtime inside a sandbox of kubernetes-sigs/agent-sandbox; return its exit code."""
    if not args.agent_sandbox:
        raise UsageError("bad_option", "Say what to serve.", "Give --agent-sandbox; `rye mcp` serves tools to agents' clients.")
    project = project_to_work_in(args.project)
    shared.require_extra("mcp", "python-multipart", "starlette", "uvicorn")
    from rye.agent_sandbox import server

    token, made = (None, False) if args.no_token else local_http.token_to_use(server.TOKEN_VARIABLE)
    address = local_http.Address(args.host.removeprefix("[").removesuffix("]"), args.port)
    server.serve(project, address, token, tuple(args.allow_host), show_token=made)
    return EXIT_OK

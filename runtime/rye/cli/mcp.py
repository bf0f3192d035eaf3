"""`rye mcp`: serve the project's tools to an agent's client, or print the client's own configuration."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from rye.cli.shared import EXIT_OK, Verb, add_project_option, project_to_work_in
from rye.errors import UsageError
from rye.mcp_server import stdio
from rye.mcp_server.client_config import CLIENTS
from rye.sandbox import environment

_EPILOG = """\
examples:
  rye mcp                                        serve the nearest project over standard input and output
  rye mcp --category rye/web --meta              offer more tools, and the primary tools with the same reach
  rye mcp --http 127.0.0.1:8765                  listen for clients on this machine that hold the printed token
  rye mcp install --client claude-code           print what to tell the client

The token is made anew at each start, or taken from RYE_MCP_TOKEN."""


def _build(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "rye mcp [--project DIR] [--category C …] [--meta] [--allow-sign] [--structured] [--http HOST:PORT]\n"
        "       rye mcp install --client NAME [the same options]"
    )
    parser.epilog = _EPILOG
    parser.add_argument("action", nargs="?", choices=["install"], help="print a client's configuration in place of serving")
    parser.add_argument("--client", metavar="NAME", help=f"with install: {', '.join(CLIENTS)}")
    add_project_option(parser)
    parser.add_argument(
        "--category", metavar="C", action="append", default=[], help="offer the tools of this category too, such as my/tools"
    )
    parser.add_argument("--meta", action="store_true", help="offer the primary tools; they reach what is offered, no more")
    parser.add_argument("--allow-sign", action="store_true", help="offer rye_sign; your configuration decides what it may")
    parser.add_argument("--structured", action="store_true", help="for programs: answer with fields and list their schemas too")
    parser.add_argument("--http", metavar="HOST:PORT", help="listen there in place of standard input (default host: 127.0.0.1)")


def _run(args: argparse.Namespace) -> int:
    project = project_to_work_in(args.project)
    # Now, since a server that fails at its first call tells its user nothing.
    if not os.path.isdir(project):
        raise UsageError("project_not_found", f"There is no folder {project}.", "Give --project an existing one.")
    if args.action == "install":
        return _install(args, project)
    if args.client:
        raise UsageError("bad_option", "--client goes with install.", "Try: rye mcp install --client claude-code")
    return _serve(args, project)


def _serve(args: argparse.Namespace, project: str) -> int:
    environment.close()
    # Before anything is loaded that could print.
    wire = None if args.http else stdio.take_descriptors()
    # Before the server's modules, which would fail with a bare ImportError.
    _require_library()
    from rye.mcp_server import http
    from rye.mcp_server import server as mcp_server_server
    from rye.mcp_server.listing import Selection

    _tell_of_empty(args.category, project)
    selection = Selection(tuple(args.category), args.meta, args.allow_sign, args.structured)
    if wire is None:
        mcp_server_server.serve_http(project, selection, http.parse_address(args.http))
    else:
        mcp_server_server.serve_stdio(project, selection, wire)
    return EXIT_OK


def _tell_of_empty(categories: Sequence[str], project: str) -> None:
    """Warn of categories without a tool that can run: misspelt ones would be missed only by the model."""
    from rye.agents import discovery

    for category in categories:
        if not discovery.listing([category], project_path=project).offers:
            warning = f"rye mcp: warning: no tool of {category!r} can run here; `rye tools --category {category}` says why."
            print(warning, file=sys.stderr)


def _require_library() -> None:
    try:
        import mcp.server.lowlevel  # noqa: F401 - to see that it is there
    except ModuleNotFoundError:
        raise UsageError(
            "extra_missing", "The MCP server needs the extra `mcp`.", "Install it: pip install 'rye-workspace[mcp]'"
        ) from None


def _install(args: argparse.Namespace, project: str) -> int:
    from rye.mcp_server import client_config, http

    if not args.client:
        names = ", ".join(client_config.CLIENTS)
        raise UsageError("no_client", "Say for which client.", f"Give --client with one of: {names}.")
    _tell_of_empty(args.category, project)
    options = [word for category in args.category for word in ("--category", category)]
    switches = (("--meta", args.meta), ("--allow-sign", args.allow_sign), ("--structured", args.structured))
    options += [option for option, given in switches if given]
    server: client_config.Server
    if args.http:
        server = client_config.Remote(http.url_of(http.parse_address(args.http)))
    else:
        server = client_config.Local(client_config.argv(_program(), project, options))
    print(client_config.configuration(args.client, server), end="")
    return EXIT_OK


def _program() -> list[str]:
    """Return how to start this very installation from anywhere."""
    beside = os.path.join(os.path.dirname(sys.executable), "rye")
    return [beside] if os.access(beside, os.X_OK) else [sys.executable, "-m", "rye"]


VERBS = {"mcp": Verb("Serve the project's tools over MCP, or print a client's configuration for it.", _build, _run)}

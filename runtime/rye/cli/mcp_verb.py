"""`rye mcp`: serve the project's tools to an agent's client, or print the client's own configuration."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rye.cli.verbs import EXIT_OK, Verb, project_to_work_in
from rye.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_EPILOG = """\
examples:
  rye mcp                                        serve the nearest project over standard input and output
  rye mcp --category rye/git --meta              offer more tools, and the primary tools with the same reach
  rye mcp --http 127.0.0.1:8765                  listen for clients on this machine that hold the printed token
  rye mcp install --client claude-code           print what to tell the client

The token is made anew at each start, or taken from RYE_MCP_TOKEN."""


def _build(parser: argparse.ArgumentParser) -> None:
    from rye.mcp_clients import CLIENTS

    parser.usage = (
        "rye mcp [--project DIR] [--category C …] [--meta] [--allow-sign] [--http HOST:PORT]\n"
        "       rye mcp install --client NAME [the same options]"
    )
    parser.epilog = _EPILOG
    parser.add_argument("action", nargs="?", choices=["install"], help="print a client's configuration in place of serving")
    parser.add_argument("--client", metavar="NAME", help=f"with install: {', '.join(CLIENTS)}")
    parser.add_argument("--project", metavar="DIR", help="the project root (default: nearest folder above with .ai or .git)")
    parser.add_argument(
        "--category", metavar="C", action="append", default=[], help="offer the tools of this category too, such as my/tools"
    )
    parser.add_argument("--meta", action="store_true", help="offer the primary tools; they reach what is offered, no more")
    parser.add_argument("--allow-sign", action="store_true", help="offer rye_sign; your configuration decides what it may")
    parser.add_argument(
        "--http", metavar="HOST:PORT", help="listen there in place of standard input (host: 127.0.0.1 unless told)"
    )


def _run(args: argparse.Namespace) -> int:
    project = project_to_work_in(args.project)
    if not os.path.isdir(project):
        raise UsageError("project_not_found", f"There is no folder {project}.", "Give --project an existing one.")
    if args.action == "install":
        return _install(args, project)
    if args.client:
        raise UsageError("bad_option", "--client goes with install.", "Try: rye mcp install --client claude-code")
    return _serve(args, project)


def _serve(args: argparse.Namespace, project: str) -> int:
    from rye import mcp_stdio
    from rye.toolkit import unreadable

    unreadable.close()
    # Before anything is loaded that could print.
    wire = None if args.http else mcp_stdio.put_away()
    _require_library()
    from rye import mcp_http, mcp_server
    from rye.mcp_selection import Selection

    _tell_of_empty(args.category, project)
    selection = Selection(tuple(args.category), args.meta, args.allow_sign)
    if wire is None:
        mcp_server.serve_http(project, selection, mcp_http.parse_address(args.http))
    else:
        mcp_server.serve_stdio(project, selection, wire)
    return EXIT_OK


def _tell_of_empty(categories: Sequence[str], project: str) -> None:
    """Warn of categories without a tool that can run: misspelt ones would be missed only by the model."""
    from rye import discovery

    for category in categories:
        if not discovery.listing([category], project_path=project).offers:
            told = f"rye mcp: warning: no tool of {category!r} can run here; `rye tools --category {category}` says why."
            print(told, file=sys.stderr)


def _require_library() -> None:
    try:
        import mcp.server.lowlevel  # noqa: F401 - to see that it is there
    except ModuleNotFoundError:
        raise UsageError(
            "extra_missing", "The MCP server needs the extra `mcp`.", "Install it: pip install 'rye-workspace[mcp]'"
        ) from None


def _install(args: argparse.Namespace, project: str) -> int:
    from rye import mcp_clients, mcp_http

    if not args.client:
        names = ", ".join(mcp_clients.CLIENTS)
        raise UsageError("no_client", "Say for which client.", f"Give --client with one of: {names}.")
    _tell_of_empty(args.category, project)
    options = [word for category in args.category for word in ("--category", category)]
    options += [option for option, given in (("--meta", args.meta), ("--allow-sign", args.allow_sign)) if given]
    server: mcp_clients.Server
    if args.http:
        server = mcp_clients.Remote(mcp_http.url_of(mcp_http.parse_address(args.http)))
    else:
        server = mcp_clients.Local(mcp_clients.argv(_program(), project, options))
    print(mcp_clients.configuration(args.client, server), end="")
    return EXIT_OK


def _program() -> list[str]:
    """Return how to start this very installation from anywhere."""
    beside = os.path.join(os.path.dirname(sys.executable), "rye")
    return [beside] if os.access(beside, os.X_OK) else [sys.executable, "-m", "rye"]


VERBS = {"mcp": Verb("Serve the project's tools over MCP, or print a client's configuration for it.", _build, _run)}

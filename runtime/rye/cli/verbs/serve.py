"""`rye serve --agent-sandbox`: the runtime inside a sandbox of kubernetes-sigs/agent-sandbox."""

from __future__ import annotations

import argparse
import os

from rye.cli import shared
from rye.cli.shared import EXIT_OK, Verb, add_project_option, project_to_work_in
from rye.errors import UsageError

_EPILOG = """\
It answers /execute, /upload, /download/PATH, /list/PATH, /exists/PATH and a health check at /, as that project's clients ask.
Commands run by the tool bash, under its sandbox and settings. Files stay below the project's root. Every change is recorded:
`rye log` and `rye undo` know it.

It listens on this machine alone, and clients send a token: `Authorization: Bearer TOKEN`, made anew at each start or taken
from RYE_SANDBOX_TOKEN. In a pod, where only the router or a network policy lets clients in:

  rye serve --agent-sandbox --host 0.0.0.0 --port 8888 --no-token --allow-host '*'

Whoever reaches such a port runs commands in the project. Nothing is encrypted: that is the router's or the gateway's part."""


def _build(parser: argparse.ArgumentParser) -> None:
    parser.usage = "rye serve --agent-sandbox [--project DIR] [--host HOST] [--port N] [--no-token] [--allow-host NAME …]"
    parser.epilog = _EPILOG
    parser.add_argument("--agent-sandbox", action="store_true", help="serve the contract of kubernetes-sigs/agent-sandbox")
    add_project_option(parser)
    parser.add_argument("--host", default="127.0.0.1", help="where to listen; 0.0.0.0 lets other machines in (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8888, metavar="N", help="the port, 0 for a free one (8888)")
    parser.add_argument("--no-token", action="store_true", help="let in whoever reaches the port")
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="accept this Host header too, such as a service's name; '*' for any",
    )


def _run(args: argparse.Namespace) -> int:
    if not args.agent_sandbox:
        raise UsageError("bad_option", "Say what to serve.", "Give --agent-sandbox; `rye mcp` serves tools to agents' clients.")
    if not 0 <= args.port < 65_536:
        raise UsageError("bad_address", f"{args.port} is no port.", "Give one from 0 to 65535.")
    project = project_to_work_in(args.project)
    if not os.path.isdir(project):
        raise UsageError("project_not_found", f"There is no folder {project}.", "Give --project an existing one.")
    shared.require_extra("mcp", "python-multipart", "starlette", "uvicorn")
    from rye import local_http
    from rye.agent_sandbox import server

    token, made = (None, False) if args.no_token else local_http.token_to_use(server.TOKEN_VARIABLE)
    address = local_http.Address(args.host.removeprefix("[").removesuffix("]"), args.port)
    server.serve(project, address, token, tuple(args.allow_host), show_token=made)
    return EXIT_OK


VERBS = {"serve": Verb("Be the runtime inside an agent's sandbox.", _build, _run)}

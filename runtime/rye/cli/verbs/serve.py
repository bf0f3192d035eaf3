"""`rye serve --agent-sandbox`: the runtime inside a sandbox of kubernetes-sigs/agent-sandbox."""

from __future__ import annotations

import os
from types import SimpleNamespace

from rye.cli import shared
from rye.cli.shared import EXIT_OK, project_to_work_in
from rye.errors import UsageError


def run_serve(args: SimpleNamespace) -> int:
    """Run `rye serve`; return its exit code."""
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

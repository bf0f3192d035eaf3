"""The HTTP contract of kubernetes-sigs/agent-sandbox, served by our own tools: a project as a sandbox's runtime.

| request | answer |
|---|---|
| `POST /execute` `{"command", "timeout_seconds"?}` | `{"stdout", "stderr", "exit_code", "timed_out"}`, of the tool `bash` |
| `POST /upload`, a form with `file`, whose file name is the path | `{"message"}` |
| `GET /download/PATH` | the file's bytes |
| `GET /list/PATH` | `[{"name", "size", "type", "mod_time"}]` |
| `GET /exists/PATH` | `{"path", "exists"}` |
| `GET /` | `{"status": "ok", "message"}`, without a token |

Refusals are `{"message", "code"}` with 400, 401, 403, 404, 413, 422 or 507. Host, Origin and token are judged by the guard that
the MCP server has.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any, Final

import anyio
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from rye import api, local_http
from rye.agent_sandbox import files
from rye.call.context import CallOptions, Cancellation
from rye.errors import RyeError, WorkspaceError
from rye.local_http import Address, Guard
from rye.workspace.path_errors import system_failure

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Message

_PROGRAM: Final = "rye serve"
TOKEN_VARIABLE: Final = "RYE_SANDBOX_TOKEN"  # noqa: S105 - the name of a variable

MOST_OUTPUT: Final = 16 * 1024 * 1024
"""Of each stream of a command so many bytes are answered; what is cut is said on `stderr`."""

MOST_UPLOAD: Final = 8 * 1024 * 1024 * 1024
"""A larger upload is refused (bytes)."""

DEFAULT_SECONDS: Final = 300.0
MOST_SECONDS: Final = 600.0
_MOST_BODY: Final = 1024 * 1024
_MOST_COMMANDS: Final = 32
_MOST_CONNECTIONS: Final = 256
# As `timeout` of coreutils and a shell say it.
_TIMED_OUT, _SIGNALLED = 124, 128
_STATUS: Final = {
    "path_outside": 403,
    "protected_path": 403,
    "permission_denied": 403,
    "read_only_profile": 403,
    "file_not_found": 404,
    "not_a_directory": 404,
    "is_directory": 404,
    "not_regular_file": 404,
    "project_not_found": 404,
    "file_too_large": 413,
    "malformed_request": 422,
    "no_space": 507,
}


class SandboxGuard(Guard):
    """The guard for these paths: the health check needs no token, and further hosts are accepted as the user says."""

    def __init__(self, app: Any, address: Address, token: str | None, names: tuple[str, ...] = ()) -> None:
        super().__init__(app, address, token, _PROGRAM)
        self._names = {name.lower() for name in names}

    def _expected(self, host: str) -> bool:
        name = host.lower().rpartition(":")[0] or host.lower()
        return "*" in self._names or bool({host.lower(), name} & self._names) or super()._expected(host)

    def _needs_token(self, scope: Any) -> bool:
        return super()._needs_token(scope) and not (scope["path"] == "/" and scope["method"] in ("GET", "HEAD"))

    def _own_origin(self, _origin: str) -> bool:
        # There is no page: a browser that sends a request was told so by another site.
        return False


def app(root: str) -> Starlette:
    """Return the application that serves a project, without a guard."""
    routes = [
        Route("/", _health),
        Route("/execute", _execute, methods=["POST"]),
        Route("/upload", _upload, methods=["POST"]),
        Route("/download/{path:path}", _download),
        Route("/list/{path:path}", _list),
        # Clients shorten `/list/.` to these.
        Route("/list", _list),
        Route("/exists/{path:path}", _exists),
    ]
    made = Starlette(routes=routes, exception_handlers={RyeError: _refused, OSError: _refused})
    made.state.root = root
    # Below the threads that there are: files are served while so many commands run.
    made.state.commands = asyncio.Semaphore(_MOST_COMMANDS)
    return made


async def _health(_request: Request) -> Response:
    return JSONResponse({"status": "ok", "message": "rye serves this sandbox."})


async def _execute(request: Request) -> Response:
    """Run a command; a client that goes away ends it."""
    command, seconds = await _command_of(request)
    cancellation = Cancellation()

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        cancellation.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        async with request.app.state.commands:
            answer = await run_sync(_ran, request.app.state.root, command, seconds, cancellation)
        group.cancel_scope.cancel()
    return JSONResponse(answer)


async def _upload(request: Request) -> Response:
    """Take a file."""
    name = await _received(request, request.app.state.root)
    return JSONResponse({"message": f"File '{name}' uploaded successfully."})


async def _download(request: Request) -> Response:
    """Send a file, read as it goes."""
    # A file object, not a descriptor: a client that goes away before the first piece has it closed, too.
    file, size = await run_sync(files.opened, *_place(request))

    async def pieces() -> Any:
        at = 0
        try:
            # As long as it was when it was opened: the header says so.
            while at < size and (piece := await run_sync(os.pread, file.fileno(), min(files.PIECE, size - at), at)):
                at += len(piece)
                yield piece
        finally:
            file.close()

    headers = {"content-length": str(size), "x-content-type-options": "nosniff", "content-disposition": "attachment"}
    return StreamingResponse(pieces(), media_type="application/octet-stream", headers=headers)


async def _list(request: Request) -> Response:
    return JSONResponse(await run_sync(files.entries_of, *_place(request)))


async def _exists(request: Request) -> Response:
    root, path = _place(request)
    return JSONResponse({"path": path, "exists": await run_sync(files.exists, root, path)})


def _place(request: Request) -> tuple[str, str]:
    """Return the project's root, and the path below it that a request names."""
    return request.app.state.root, str(request.path_params.get("path", ""))


async def _received(request: Request, root: str) -> str:
    """Write the file of a form below the root, and return its path as the form names it.

    It is kept in the server's temporary folder until all of it came, then put in place.

    Raises:
        RyeError: `malformed_request`, `file_too_large`; those of `files.put`. Nothing is in place then.
    """
    try:
        async with _bounded(request, MOST_UPLOAD, "Send less.").form(max_files=1) as form:
            file: Any = form.get("file")
            if not isinstance(file, UploadFile) or not (name := (file.filename or "").strip("/")):
                raise _malformed("The form has no whole file named `file` with a file name.")
            await run_sync(files.put, root, name, file.file)
            return file.filename or ""
    except ClientDisconnect:
        raise RyeError("malformed_request", "The client went away.", "Send it again.") from None
    except HTTPException as err:
        raise _malformed(f"The form cannot be read: {err.detail}") from None


def _malformed(why: str) -> RyeError:
    return RyeError("malformed_request", why, "Send a form with one file named `file`, whose file name is its path.")


def _bounded(request: Request, most: int, hint: str) -> Request:
    """Return a request whose body is refused (`file_too_large`) beyond so many bytes."""
    size = 0

    async def receive() -> Message:
        nonlocal size
        message = await request.receive()
        size += len(message.get("body", b""))
        if size > most:
            raise WorkspaceError("file_too_large", f"The request is larger than {most:,} bytes.", hint)
        return message

    return Request(request.scope, receive)


async def _command_of(request: Request) -> tuple[str, float]:
    """Return the command that a request asks for, and its time. Raises RyeError `malformed_request`, `file_too_large`."""
    body = await _bounded(request, _MOST_BODY, "Upload a script, and run it.").body()
    try:
        fields = json.loads(body)
        command, seconds = fields["command"], fields.get("timeout_seconds")
        if not isinstance(command, str):
            raise TypeError(command)
        seconds = DEFAULT_SECONDS if seconds is None else float(seconds)
        if not 0 < seconds < float("inf"):
            raise ValueError(seconds)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        why = 'The body is no JSON object with "command", a text, and "timeout_seconds", a number above 0, if any.'
        raise RyeError("malformed_request", why, 'Send {"command": "echo hello"}.') from None
    return command, min(seconds, MOST_SECONDS)


def _ran(root: str, command: str, seconds: float, cancellation: Cancellation) -> dict[str, Any]:
    """Run a command with `bash`; return the contract's answer."""
    streams, totals = {1: bytearray(), 2: bytearray()}, {1: 0, 2: 0}

    def take(number: int, block: bytes) -> None:
        totals[number] += len(block)
        streams[number].extend(block[: MOST_OUTPUT - len(streams[number])])

    options = CallOptions(actor=files.ACTOR, cancellation=cancellation, on_bytes=take)
    response = api.execute("rye/bash/bash", {"command": command, "timeout": seconds}, project_path=root, options=options)
    data = response["data"] or {}
    stdout, stderr = (streams[number].decode("utf-8", "replace") for number in (1, 2))
    timed_out = bool(data.get("timed_out"))
    code = data.get("exit_code")
    if code is None:
        import signal

        named = getattr(signal, str(data.get("signal")), None)
        code = _TIMED_OUT if timed_out else 1 if named is None else _SIGNALLED + int(named)
        # Neither exit code nor output: the reason is in our own words.
        stderr += f"{_gap(stderr)}{response.get('error', 'The command has no exit code.')}\n"
    for name, total in (("stdout", totals[1]), ("stderr", totals[2])):
        if total > MOST_OUTPUT:
            stderr += f"{_gap(stderr)}[{name} was cut: {MOST_OUTPUT:,} of {total:,} bytes]\n"
    return {"stdout": stdout, "stderr": stderr, "exit_code": code, "timed_out": timed_out}


def _gap(text: str) -> str:
    return "" if not text or text.endswith("\n") else "\n"


async def _refused(_request: Request, err: Exception) -> Response:
    refusal: Any = system_failure(err, "The file") if isinstance(err, OSError) else err
    return JSONResponse({"message": str(refusal), "code": refusal.code}, _STATUS.get(refusal.code, 400))


def serve(root: str, address: Address, token: str | None, names: tuple[str, ...] = (), *, show_token: bool = True) -> None:
    """Serve until the process is stopped.

    Args:
        root: the project.
        address: where to listen; port 0 for a free one.
        token: what clients must send; None lets everyone in who reaches the port.
        names: further Host headers to accept, with or without a port; `*` for all.
        show_token: print it; one that the user gave is not printed.

    Raises:
        UsageError: `cannot_listen`.
    """
    listening = local_http.listen(address)
    address = Address(address.host, listening.getsockname()[1])
    shown = token if token is None or show_token else f"${TOKEN_VARIABLE}"
    what = f"the agent-sandbox contract at {local_http.url_of(address)}"
    local_http.announce(_PROGRAM, what, address, shown)
    guard = SandboxGuard(app(root), address, token, names)
    local_http.web_server(guard, _MOST_CONNECTIONS).run(sockets=[listening])

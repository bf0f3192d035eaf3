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


class Runtime:
    """The runtime of one project."""

    def __init__(self, root: str) -> None:
        self._root = root

    def app(self) -> Starlette:
        """Return the application, without a guard."""
        return Starlette(
            routes=[
                Route("/", self.health),
                Route("/execute", self.execute, methods=["POST"]),
                Route("/upload", self.upload, methods=["POST"]),
                Route("/download/{path:path}", self.download),
                Route("/list/{path:path}", self.list),
                # Clients shorten `/list/.` to these.
                Route("/list", self.list),
                Route("/exists/{path:path}", self.exists),
            ],
            exception_handlers={RyeError: _refused, OSError: _failed},
        )

    async def health(self, _request: Request) -> Response:
        """Say that the server runs."""
        return _json({"status": "ok", "message": "rye serves this sandbox."})

    async def execute(self, request: Request) -> Response:
        """Run a command; a client that goes away ends it."""
        command, seconds = await _command_of(request)
        cancellation = Cancellation()
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                while (await request.receive())["type"] != "http.disconnect":
                    pass
                cancellation.cancel()

            group.start_soon(watch)
            answer = await run_sync(_ran, self._root, command, seconds, cancellation, limiter=self._limiter())
            group.cancel_scope.cancel()
        return _json(answer)

    _commands: Any = None

    def _limiter(self) -> Any:
        if self._commands is None:
            self._commands = anyio.CapacityLimiter(_MOST_COMMANDS)
        return self._commands

    async def upload(self, request: Request) -> Response:
        """Take a file."""
        name = await _received(request, self._root)
        return _json({"message": f"File '{name}' uploaded successfully."})

    async def download(self, request: Request) -> Response:
        """Send a file, read as it goes."""
        # A file object, not a descriptor: a client that goes away before the first piece has it closed, too.
        file, size = await run_sync(files.opened, self._root, _path(request))

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

    async def list(self, request: Request) -> Response:
        """List a folder."""
        return _json(await run_sync(files.entries_of, self._root, _path(request)))

    async def exists(self, request: Request) -> Response:
        """Tell whether a path leads to something."""
        path = _path(request)
        return _json({"path": path, "exists": await run_sync(files.exists, self._root, path)})


def _path(request: Request) -> str:
    return str(request.path_params.get("path", ""))


async def _received(request: Request, root: str) -> str:
    """Write the file of a form below the root, and return its path as the form names it.

    It is kept in the server's temporary folder until all of it came, then put in place.

    Raises:
        RyeError: `malformed_request`, `file_too_large`; those of `files.put`. Nothing is in place then.
    """
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await request.receive()
        size += len(message.get("body", b""))
        if size > MOST_UPLOAD:
            raise WorkspaceError("file_too_large", f"The upload is larger than {MOST_UPLOAD:,} bytes.", "Send less.")
        return message

    try:
        async with Request(request.scope, counted).form(max_files=1) as form:
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


async def _command_of(request: Request) -> tuple[str, float]:
    """Return the command that a request asks for, and its time. Raises RyeError `malformed_request`."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _MOST_BODY:
            what = f"The request is larger than {_MOST_BODY:,} bytes."
            raise RyeError("file_too_large", what, "Upload a script, and run it.")
    try:
        fields = json.loads(body)
        command, seconds = fields["command"], fields.get("timeout_seconds")
        if not isinstance(command, str):
            raise TypeError(command)
        seconds = DEFAULT_SECONDS if seconds is None else float(seconds)
        if not 0 < seconds < float("inf"):
            raise ValueError(seconds)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
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


def _json(value: Any, status: int = 200) -> Response:
    return JSONResponse(value, status)


async def _refused(_request: Request, err: Exception) -> Response:
    code = err.code if isinstance(err, RyeError) else "failed"
    return _json({"message": str(err), "code": code}, _STATUS.get(code, 422 if code == "malformed_request" else 400))


async def _failed(_request: Request, err: Exception) -> Response:
    return await _refused(_request, system_failure(err, "The file")) if isinstance(err, OSError) else _json({}, 500)


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
    guard = SandboxGuard(Runtime(root).app(), address, token, names)
    local_http.web_server(guard, _MOST_CONNECTIONS).run(sockets=[listening])

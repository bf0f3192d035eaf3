"""The form of an upload: its file is kept in the server's temporary folder until all of it came, then put in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from anyio.to_thread import run_sync
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from rye.agent_sandbox import files
from rye.errors import RyeError, WorkspaceError

if TYPE_CHECKING:
    from starlette.types import Message

MOST_UPLOAD: Final = 8 * 1024 * 1024 * 1024
"""A larger upload is refused (bytes)."""


async def receive(request: Request, root: str) -> str:
    """Write the file of a form below the root, and return its path as the form names it.

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

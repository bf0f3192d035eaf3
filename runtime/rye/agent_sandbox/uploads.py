"""The form of an upload, parsed as it comes: nothing of the file is held in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from anyio.to_thread import run_sync
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from rye.agent_sandbox import files
from rye.errors import RyeError

if TYPE_CHECKING:
    from starlette.requests import Request

_FIELD: Final = b"file"
_MOST_HEADER: Final = 16 * 1024


async def receive(request: Request, root: str) -> str:
    """Write the file of a form below the root, and return its path as the form names it.

    Raises:
        RyeError: `malformed_request`; those of `files.Upload`. Nothing is in place then.
    """
    form = _Form(request.headers.get("content-type", ""), root)
    try:
        async for piece in request.stream():
            # In a thread: a disk may be slow, and other requests are answered meanwhile.
            await run_sync(form.feed, piece)
        await run_sync(form.finish)
    except ClientDisconnect:
        raise RyeError("malformed_request", "The client went away.", "Send it again.") from None
    finally:
        await run_sync(form.close)
    return form.name


class _Form:
    """A form under way, and the upload that its part `file` becomes."""

    def __init__(self, content_type: str, root: str) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise _malformed("The body is no form (multipart/form-data with a boundary).")
        self._root = root
        self._upload: files.Upload | None = None
        self._taking = self._is_complete = False
        self._field, self._value, self._headers = b"", b"", dict[bytes, bytes]()
        self.name = ""
        callbacks: dict[str, Callable[..., Any]] = {
            "on_part_begin": self._begin,
            "on_header_field": self._add_field,
            "on_header_value": self._add_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._open,
            "on_part_data": self._write,
            "on_part_end": self._end,
            "on_end": self._all,
        }
        self._parser = MultipartParser(boundary, callbacks)  # type: ignore[arg-type]

    def feed(self, piece: bytes) -> None:
        try:
            self._parser.write(piece)
        except FormParserError as err:
            raise _malformed(f"The form cannot be read: {err}.") from None

    def finish(self) -> None:
        if not self._is_complete or self._upload is None:
            raise _malformed("The form ended too early." if self._upload else "The form has no file named `file`.")
        self._upload.finish()

    def close(self) -> None:
        if self._upload is not None:
            self._upload.close()

    # --- what the parser finds ---

    def _begin(self) -> None:
        self._headers = {}

    def _add_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]
        self._check_headers()

    def _add_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        self._check_headers()

    def _check_headers(self) -> None:
        header_bytes = sum(len(name) + len(value) for name, value in self._headers.items())
        if header_bytes + len(self._field) + len(self._value) > _MOST_HEADER:
            raise _malformed("A part's header is too long.")

    def _end_header(self) -> None:
        self._headers[self._field.lower()] = self._value
        self._field = self._value = b""

    def _open(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        self._taking = options.get(b"name") == _FIELD
        if not self._taking:
            return
        if self._upload is not None:
            raise _malformed("The form has two files.")
        self.name = options.get(b"filename", b"").decode("utf-8", "surrogateescape")
        if not self.name.strip("/"):
            raise _malformed("The file has no name.")
        self._upload = files.Upload(self._root, self.name)

    def _write(self, data: bytes, start: int, end: int) -> None:
        if self._taking and self._upload is not None:
            self._upload.write(data[start:end])

    def _end(self) -> None:
        self._taking = False

    def _all(self) -> None:
        self._is_complete = True


def _malformed(why: str) -> RyeError:
    return RyeError("malformed_request", why, "Send a form with one file named `file`, whose file name is its path.")

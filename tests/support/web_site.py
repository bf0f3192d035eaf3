"""A web site on loopback with pages of the shapes that a fetcher meets, kind and unkind; counts who connects."""

from __future__ import annotations

import itertools
import threading
import time
import zlib
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

Page = tuple[int, dict[str, str], bytes]


def bomb(size: int = 1 << 30) -> bytes:
    """Return gzip data of about a thousandth of `size` that inflates to `size` bytes of text, in members of 16 MB."""
    block = b"a line\n" * (1 << 17)
    squeezer = zlib.compressobj(9, zlib.DEFLATED, 31)
    count = min(18, size // len(block))
    member = b"".join([*(squeezer.compress(block) for _ in range(count)), squeezer.flush()])
    return member * (size // (count * len(block)))


class Site:
    """The running site at `url`: the paths that were asked for, with the headers, how many connections came, what was posted."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.connections = 0
        self.bodies: list[bytes] = []
        self.url = ""
        self.port = 0


@contextmanager
def answering(
    answer: Callable[[BaseHTTPRequestHandler, bytes], tuple[Any, ...] | None], connected: Callable[[], None] = int
) -> Iterator[int]:
    """Serve on a loopback port, which is yielded, until the block ends.

    `answer(handler, body)` returns status (or status and reason), headers, body, and perhaps another length to be announced, before
    the connection ends; or None where it wrote to the connection itself.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            # Called once a connection.
            connected()
            super().setup()

        def handle(self) -> None:
            # That the other side goes away is what is tested.
            with suppress(OSError):
                super().handle()

        def handle_any(self) -> None:
            found = answer(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))
            self.close_connection = found is None or len(found) > 3
            if found is None:
                return
            status, headers, body, *announced = found
            self.send_response(*(status if isinstance(status, tuple) else (status,)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(announced[0] if announced else len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_POST = do_PUT = handle_any

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def served(
    extra: dict[str, Page] | None = None, streams: dict[str, Callable[[socket.socket], None]] | None = None
) -> Iterator[Site]:
    """Serve `/plain` and these pages on a loopback port until the block ends."""
    site = Site()
    pages = {"/plain": (200, {"Content-Type": "text/plain"}, b"one\r\ntwo\rthree"), **(extra or {})}

    def connected() -> None:
        site.connections += 1

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> Page | None:
        path = handler.path.partition("?")[0]
        site.bodies += [body] * (handler.command == "POST")
        site.requests.append((handler.path, {name.lower(): value for name, value in handler.headers.items()}))
        return streams[path](handler.connection) if streams and path in streams else pages.get(path, (404, {}, b""))

    with answering(answer, connected) as site.port:
        site.url = f"http://127.0.0.1:{site.port}"
        yield site


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"


def sending(first: bytes, piece: bytes = b"", pause: float = 0, times: int | None = None) -> Callable[[socket.socket], None]:
    """Return what sends a beginning, and then a piece again and again, for as long as somebody reads or so many times."""

    def stream(connection: socket.socket) -> None:
        connection.sendall(first)
        for _ in itertools.repeat(None) if times is None else range(times):
            connection.sendall(piece)
            time.sleep(pause)

    return stream


STREAMS: dict[str, Callable[[socket.socket], None]] = {
    "/endless": sending(HEAD + b"\r\n", b"and on it goes\n" * 4_000),
    # Of 100 MB.
    "/huge": sending(HEAD + b"Content-Length: 104857600\r\n\r\n", b"0123456789abcde\n" * 4_096, times=1_600),
    "/drip": sending(HEAD + b"\r\n", b"x", 0.1),
    "/dripping-head": sending(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n", 0.1),
    "/endless-head": sending(b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"b" * 10_000 + b"\r\n"),
    **{f"/no-http-{at}": sending(sent, times=0) for at, sent in enumerate((b"Obey me\r\n\r\n", HEAD + b"Obey me\r\n\r\n"))},
}

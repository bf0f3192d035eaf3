"""MCP over standard input and output: one JSON-RPC message a line; nothing but the protocol ever reaches the client.

The real descriptors are put away before anything else is loaded: from then on descriptor 1 is standard error and descriptor 0
is empty, for every thread and child.
"""

from __future__ import annotations

import contextlib
import os
import queue
import stat
import sys
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator
    from typing import Self

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

_AHEAD: Final = 64
"""Messages read before the server has taken them; a client that sends more waits."""

_BLOCK: Final = 1 << 16

_MOST_LINE: Final = 64 * 1024 * 1024
"""A longer message ends the connection (bytes)."""

_PARSE_ERROR = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: a line that is no JSON-RPC message."}}\n'
)


class Wire(NamedTuple):
    """The descriptors by which the client is reached; no child inherits them."""

    incoming: int
    outgoing: int


def put_away() -> Wire:
    """Move the client's descriptors out of reach: what anything prints from now on goes to standard error."""
    import fcntl

    sys.stdout.flush()
    wire = Wire(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3), fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3))
    empty = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return wire


class _Writer:
    """Writes whole lines in the order given, without waiting: what the client does not take at once is left to a thread."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._at_once = _Unblocked(fd)
        self._lock = threading.Lock()
        self._behind = 0
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="rye-mcp-out", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        with self._lock:
            # A client that reads slowly delays nobody else.
            rest = line if self._behind else line[self._at_once.write(line) :]
            if rest:
                self._behind += 1
                self._lines.put(rest)

    def finish(self, seconds: float) -> None:
        """Write what is left, for so long at most."""
        self._lines.put(None)
        self._thread.join(seconds)
        with self._lock:
            self._at_once.close()

    def _work(self) -> None:
        try:
            while (line := self._lines.get()) is not None:
                view = memoryview(line)
                while view:
                    view = view[os.write(self._fd, view) :]
                with self._lock:
                    self._behind -= 1
        except OSError:
            # The client went away; what is left has nowhere to go.
            return


class _Unblocked:
    """Writes as much as goes without waiting.

    Others may share the descriptor, so it stays as it is: a socket is asked anew each time, a pipe is opened once more.
    """

    def __init__(self, fd: int) -> None:
        import socket

        self._own = -1
        self._socket: socket.socket | None = None
        self._flags = socket.MSG_DONTWAIT
        with contextlib.suppress(OSError):
            mode = os.fstat(fd).st_mode
            if stat.S_ISSOCK(mode):
                self._socket = socket.socket(fileno=os.dup(fd))
            elif stat.S_ISFIFO(mode):
                self._own = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def write(self, line: bytes) -> int:
        """Return how many bytes went."""
        try:
            if self._socket is not None:
                return self._socket.send(line, self._flags)
            return os.write(self._own, line) if self._own >= 0 else 0
        except OSError:
            # Full, or closed: whoever waits for it finds out which.
            return 0

    def close(self) -> None:
        """Let go of what was opened."""
        if self._socket is not None:
            self._socket.close()
        elif self._own >= 0:
            os.close(self._own)
        self._socket, self._own = None, -1


class _Outgoing:
    """The stream to which the protocol library writes its messages."""

    def __init__(self, writer: _Writer) -> None:
        self._writer = writer
        self._closed = False

    async def send(self, message: SessionMessage) -> None:
        import anyio

        if self._closed:
            raise anyio.ClosedResourceError
        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._writer.put(text.encode() + b"\n")

    async def aclose(self) -> None:
        self._closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


@asynccontextmanager
async def streams(wire: Wire) -> AsyncIterator[tuple[MemoryObjectReceiveStream[SessionMessage | Exception], _Outgoing]]:
    """Give the streams that the protocol library reads messages from and writes them to, until the client is done."""
    import anyio

    writer = _Writer(wire.outgoing)
    arrived, incoming = anyio.create_memory_object_stream[Any](_AHEAD)
    reader = _Reader(wire.incoming, arrived, writer)
    reader.begin()
    try:
        yield incoming, _Outgoing(writer)
    finally:
        reader.end()
    writer.finish(2.0)


class _Reader:
    """Passes the client's messages on as they come. Its methods belong to the event loop in which it is made."""

    def __init__(self, fd: int, arrived: MemoryObjectSendStream[Any], writer: _Writer) -> None:
        import asyncio

        self._fd, self._arrived, self._writer = fd, arrived, writer
        self._loop = asyncio.get_running_loop()
        self._begun = bytearray()
        self._late: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Read whenever there is something."""
        try:
            self._loop.add_reader(self._fd, self._take)
        except PermissionError:
            # A plain file cannot be waited for: it is always ready.
            self._loop.call_soon(self._take_on)

    def _take_on(self) -> None:
        if self._take():
            self.begin()

    def end(self) -> None:
        """Read no more; what came before is still taken."""
        self._loop.remove_reader(self._fd)
        self._arrived.close()

    def _take(self) -> bool:
        """Read once, and pass on what is whole; tell whether to go on."""
        import anyio

        messages, more = self._read()
        for at, message in enumerate(messages):
            try:
                self._arrived.send_nowait(message)
            except anyio.WouldBlock:
                # The client waits until the server has caught up.
                self._loop.remove_reader(self._fd)
                self._late = self._loop.create_task(self._catch_up(messages[at:], more))
                return False
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                more = False
        if not more:
            self.end()
        return more

    async def _catch_up(self, messages: list[SessionMessage], more: bool) -> None:
        import anyio

        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            for message in messages:
                await self._arrived.send(message)
            if more:
                self.begin()
                return
        self.end()

    def _read(self) -> tuple[list[SessionMessage], bool]:
        """Return the messages that are whole now, and whether more may come."""
        try:
            data = os.read(self._fd, _BLOCK)
        except OSError:
            data = b""
        self._begun += data
        if len(self._begun) > _MOST_LINE:
            return [], False
        if data and b"\n" not in data:
            return [], True
        *lines, rest = bytes(self._begun).split(b"\n")
        self._begun = bytearray(rest if data else b"")
        return [found for line in (lines if data else [*lines, rest]) if (found := self._message(line)) is not None], bool(data)

    def _message(self, line: bytes) -> SessionMessage | None:
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        if not line.strip():
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            self._writer.put(_PARSE_ERROR)
            return None

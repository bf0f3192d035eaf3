"""MCP over standard input and output: one JSON-RPC message a line; nothing but the protocol ever reaches the client.

The real descriptors are put away before anything else is loaded: from then on descriptor 1 is standard error and descriptor 0
is empty, for every thread and child.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

_AHEAD: Final = 64
"""Messages read before the server has taken them; a client that sends more waits."""

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
    """Writes whole lines in the order given, in a thread of its own: a client that reads slowly delays nobody else."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="rye-mcp-out", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        self._lines.put(line)

    def finish(self, seconds: float) -> None:
        """Write what is left, for so long at most."""
        self._lines.put(None)
        self._thread.join(seconds)

    def _work(self) -> None:
        try:
            while (line := self._lines.get()) is not None:
                view = memoryview(line)
                while view:
                    view = view[os.write(self._fd, view) :]
        except OSError:
            # The client went away; what is left has nowhere to go.
            return


@asynccontextmanager
async def streams(
    wire: Wire,
) -> AsyncIterator[tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]]:
    """Give the streams that the protocol library reads messages from and writes them to, until the client is done."""
    import anyio

    writer = _Writer(wire.outgoing)
    arrived, incoming = anyio.create_memory_object_stream[Any](_AHEAD)
    outgoing, leaving = anyio.create_memory_object_stream[Any](0)
    _start_reading(wire.incoming, arrived, writer)
    async with anyio.create_task_group() as tasks, leaving:
        tasks.start_soon(_write_messages, leaving, writer)
        try:
            yield incoming, outgoing
        finally:
            await outgoing.aclose()
    writer.finish(2.0)


async def _write_messages(leaving: MemoryObjectReceiveStream[SessionMessage], writer: _Writer) -> None:
    async for message in leaving:
        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
        writer.put(text.encode() + b"\n")


def _start_reading(fd: int, arrived: MemoryObjectSendStream[Any], writer: _Writer) -> None:
    """Read lines in a thread, which blocks for good and so must not keep the process."""
    import asyncio

    reader = _Reader(fd, asyncio.get_running_loop(), arrived, writer)
    threading.Thread(target=reader.work, name="rye-mcp-in", daemon=True).start()


class _Reader:
    def __init__(self, fd: int, loop: Any, arrived: MemoryObjectSendStream[Any], writer: _Writer) -> None:  # noqa: ANN401 - asyncio is not loaded yet
        self._fd, self._loop, self._arrived, self._writer = fd, loop, arrived, writer
        self._places = threading.BoundedSemaphore(_AHEAD)

    def work(self) -> None:
        import asyncio

        try:
            with open(self._fd, "rb", closefd=False) as file:
                while (line := file.readline(_MOST_LINE)) and len(line) < _MOST_LINE:
                    self._take(line)
            asyncio.run_coroutine_threadsafe(self._arrived.aclose(), self._loop).result()
        except (OSError, RuntimeError):
            # The server ended first: its loop takes nothing any more.
            return

    def _take(self, line: bytes) -> None:
        import asyncio

        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        if not line.strip():
            return
        try:
            message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            self._writer.put(_PARSE_ERROR)
            return
        # Not waited for: the order stands, and this thread need not wake while the call is answered.
        self._places.acquire()
        sent = asyncio.run_coroutine_threadsafe(self._arrived.send(message), self._loop)
        sent.add_done_callback(lambda _: self._places.release())

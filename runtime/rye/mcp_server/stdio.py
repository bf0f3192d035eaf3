"""MCP over standard input and output: one JSON-RPC message a line; nothing but the protocol reaches the client.

The real descriptors are moved before anything else is loaded: from then on descriptor 1 is standard error and descriptor 0 is
empty, for every thread and child.

The library's own transport (`mcp.server.stdio`, 2.3) moves the descriptors as well. It is not used, because each message
there passes two threads and two tasks: an empty call takes 0.62 to 0.76 ms over it, 0.39 to 0.51 ms here (2 cores, medians of
300 calls, three runs of `benchmarks/mcp_latency.py --calls 300 --node-server none`). It also has no limit for a line, and
drops a message that it cannot read without an answer.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import queue
import re
import stat
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

if TYPE_CHECKING:
    import asyncio

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    from rye.mcp_server.session import Session

_AHEAD: Final = 64
"""Messages read before the server has taken them; a client that sends more waits."""

_BLOCK: Final = 1 << 16

_MOST_LINE: Final = 64 * 1024 * 1024
"""A longer message is not read: it is answered with an error (bytes)."""

_PARSE_ERROR: Final = -32700
_INVALID_REQUEST: Final = -32600

_MOST_DIGITS: Final = 4_300
"""Python reads no longer number."""


class Wire(NamedTuple):
    """The descriptors by which the client is reached; no child inherits them."""

    incoming: int
    outgoing: int


def take_descriptors() -> Wire:
    """Move the client's descriptors out of reach: what anything prints from now on goes to standard error."""
    # What was printed so far must not be written to the moved descriptor later.
    sys.stdout.flush()
    # CLOEXEC: a child that inherited the client's end would keep it open after the server has gone.
    wire = Wire(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3), fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3))
    empty = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return wire


class _Writer:
    """Writes whole lines in the order given, without waiting. What the client does not take at once, a thread writes later."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._at_once = _Unblocked(fd)
        self._lock = threading.Lock()
        self._behind = 0
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="rye-mcp-out", daemon=True)
        # A daemon, because a client that reads nothing would block the end of the process.
        self._thread.start()

    def put(self, line: bytes) -> None:
        with self._lock:
            # While the thread is behind, all goes through it: lines stay in order, and a slow client delays no other call.
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
    """Writes as much as is possible without waiting.

    Another process may share the descriptor, so its flags stay: a socket takes the flag with each call, a pipe is opened again.
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
                # Opening it again makes a new file description, so O_NONBLOCK changes nothing for other holders.
                self._own = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def write(self, line: bytes) -> int:
        """Return how many bytes went."""
        try:
            if self._socket is not None:
                return self._socket.send(line, self._flags)
            return os.write(self._own, line) if self._own >= 0 else 0
        except OSError:
            # Full or closed: the thread, which waits, finds out which.
            return 0

    def close(self) -> None:
        """Close what was opened here."""
        if self._socket is not None:
            self._socket.close()
        elif self._own >= 0:
            os.close(self._own)
        self._socket, self._own = None, -1


class _Outgoing:
    """The stream to which the protocol library writes its messages."""

    def __init__(self, writer: _Writer, session: Session | None = None) -> None:
        self._writer = writer
        self._session = session
        self._closed = False

    async def send(self, message: SessionMessage) -> None:
        import anyio

        if self._closed:
            raise anyio.ClosedResourceError
        if self._session is not None and getattr(message.message, "id", None) == self._session.replayed:
            return
        # By alias and without unset fields: the protocol's names, and no nulls that it does not allow.
        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._writer.put(text.encode() + b"\n")

    async def aclose(self) -> None:
        self._closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


@asynccontextmanager
async def streams(
    wire: Wire, session: Session | None = None
) -> AsyncIterator[tuple[MemoryObjectReceiveStream[SessionMessage | Exception], _Outgoing]]:
    """Return the two streams that the protocol library works on, until the client closes its end.

    Lines that `session` takes do not reach the library.
    """
    import anyio

    writer = _Writer(wire.outgoing)
    arrived, incoming = anyio.create_memory_object_stream[Any](_AHEAD)
    reader = _Reader(wire.incoming, arrived, writer, session)
    if session is not None:
        session.answer_by(writer.put)
    reader.begin()
    try:
        yield incoming, _Outgoing(writer, session)
    finally:
        reader.end()
        if session is not None:
            session.close()
    # Bounded: a client that no longer reads costs two seconds at most.
    writer.finish(2.0)


class _Reader:
    """Passes the client's messages on as they come. Its methods run in the event loop in which it is made."""

    def __init__(self, fd: int, arrived: MemoryObjectSendStream[Any], writer: _Writer, session: Session | None = None) -> None:
        import asyncio

        self._fd, self._arrived, self._writer, self._session = fd, arrived, writer, session
        self._loop = asyncio.get_running_loop()
        self._begun = bytearray()
        self._skips = False
        self._late: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Read whenever there is something to read."""
        try:
            self._loop.add_reader(self._fd, self._take)
        except PermissionError:
            # A plain file cannot be waited for: it is always ready.
            self._loop.call_soon(self._take_on)

    def _take_on(self) -> None:
        if self._take():
            self.begin()

    def end(self) -> None:
        """Stop reading; messages that came before are still answered."""
        self._loop.remove_reader(self._fd)
        self._arrived.close()
        if self._session is not None:
            self._session.end()

    def _take(self) -> bool:
        """Read once and pass on the complete messages; return whether to go on."""
        import anyio

        messages, more = self._read()
        for at, message in enumerate(messages):
            try:
                self._arrived.send_nowait(message)
            except anyio.WouldBlock:
                # The client waits until the server has caught up.
                self._loop.remove_reader(self._fd)
                # Stored, because the loop holds only a weak reference to a task.
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
        """Return the messages that are complete now, and whether more may come."""
        try:
            data = os.read(self._fd, _BLOCK)
        except OSError:
            data = b""
        self._begun += data
        # No whole line yet: splitting at each block would take quadratic time for a long message.
        if data and b"\n" not in data:
            self._bound()
            return [], True
        *lines, rest = bytes(self._begun).split(b"\n")
        # End of input: a last line without a newline is a message too.
        if not data:
            lines, rest = [*lines, rest], b""
        if self._skips:
            # The end of the line that was too long.
            lines, self._skips = lines[1:], False
        self._begun = bytearray(rest)
        return [found for line in lines for found in self._messages(line)], bool(data)

    def _bound(self) -> None:
        """Drop a line that has become too long, and answer it once."""
        if len(self._begun) > _MOST_LINE and not self._skips:
            self._skips = True
            refusal = f"A message of more than {_MOST_LINE >> 20} MB is not read. Send the content in several calls."
            sys.stderr.write(f"rye mcp: {refusal}\n")
            self._writer.put(_error(_first_id(self._begun), _INVALID_REQUEST, refusal))
        if self._skips:
            self._begun.clear()

    def _messages(self, line: bytes) -> list[SessionMessage]:
        """Return what a line is for the library: nothing, or its message and, the first time, how the session began."""
        if not line.strip() or (self._session is not None and self._session.takes(line)):
            return []
        from mcp.shared.message import SessionMessage
        from mcp_types import JSONRPCNotification, jsonrpc_message_adapter

        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            # The library takes a request whose id is of another type for a notification.
            refusal = refusal_of(line) if isinstance(message, JSONRPCNotification) and b'"id"' in line else None
        except ValueError:
            message, refusal = None, refusal_of(line)
        if refusal is not None:
            self._writer.put(refusal)
        if message is None or refusal is not None:
            return []
        before = [] if self._session is None else self._session.hand_over()
        earlier = [jsonrpc_message_adapter.validate_json(one, by_name=False) for one in before]
        return [SessionMessage(one) for one in (*earlier, message)]


def refusal_of(line: bytes) -> bytes | None:
    """Return the answer to a line that the library cannot read, with the id of the request where that can be read.

    None: the line is a notification, which is never answered.
    """
    try:
        # Python refuses integers of more than 4,300 digits with ValueError, which would hide the request's id.
        message = json.loads(line, parse_int=_LongInt.of)
    except (ValueError, RecursionError):
        return _error(None, _PARSE_ERROR, "Parse error: the line is no JSON-RPC message.")
    if not isinstance(message, dict):
        return _error(None, _INVALID_REQUEST, "Invalid request: a message is one JSON object.")
    # JSON-RPC forbids an answer to a notification, also to a wrong one.
    if "id" not in message and isinstance(message.get("method"), str):
        return None
    number = message.get("id")
    # bool is a subclass of int in Python; JSON-RPC has no such ids.
    known = isinstance(number, str | int | float) and not isinstance(number, bool | _LongInt)
    return _error(number if known else None, _INVALID_REQUEST, f"Invalid request: {_fault(message)}")


class _LongInt(float):
    """A number with more digits than Python reads."""

    @classmethod
    def of(cls, digits: str) -> float:
        return cls() if len(digits) > _MOST_DIGITS else int(digits)


def _fault(message: dict[str, Any]) -> str:
    """Return what is wrong with a message."""
    if message.get("jsonrpc") != "2.0":
        return '"jsonrpc" must be "2.0".'
    if not isinstance(message.get("method"), str):
        return '"method" must be a string.'
    if not isinstance(message.get("id"), str | int) or isinstance(message["id"], bool):
        return '"id" must be a string or an integer.'
    if not isinstance(message.get("params", {}), dict):
        return '"params" must be an object.'
    if re.search("[\ud800-\udfff]", json.dumps(message, ensure_ascii=False, default=str)):
        return "a text holds half of a surrogate pair, such as \\ud800: it is no character. Send the whole one."
    return f"a number has more than {_MOST_DIGITS} digits, or the message nests too deeply."


def _first_id(begun: bytearray) -> int | str | None:
    """Return the id of an incomplete message, if it comes right after the version."""
    # Of a line too long to parse only the usual beginning is tried; a wrong id would answer another request.
    found = re.match(rb'\s*\{\s*"jsonrpc":\s*"2\.0",\s*"id":\s*(\d{1,18}|"[^"\\]{0,200}")\s*,', begun)
    return json.loads(found[1]) if found else None


def _error(number: float | str | None, code: int, message: str) -> bytes:
    """Return the line of an error response."""
    answer = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
    return json.dumps(answer).encode() + b"\n"

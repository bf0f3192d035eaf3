"""Worker processes behind one HTTP port, so that a server's throughput grows with the machine's cores.

The parent accepts connections and hands them to the workers in turn; it reads nothing of them. A session lives in the worker
in which it began, and its ID ends in that worker's number (`…-1`). Where a request of another worker's session comes in, its
connection moves there, with what was read of it: a client that keeps its connection moves once at most. What a worker knows by
itself is the protocol's state; everything of the project is on the disk, where any process may serve the next call.

A worker that dies is started again; clients of its sessions are told that these are gone (404) and begin new ones, as MCP says.
"""

from __future__ import annotations

import gc
import os
import re
import select
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from types import FrameType

    _Scope = MutableMapping[str, Any]
    _Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    _Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
    _App = Callable[[_Scope, _Receive, _Send], Awaitable[None]]

MOST_HEADER: Final = 64 * 1024
"""A request header is looked at whole up to this size (bytes); a longer one stays where it is."""

_SESSION: Final = re.compile(rb"\r\nmcp-session-id:[ \t]*([^\r\n]*)", re.IGNORECASE)
_OWNER: Final = re.compile(rb"(.+)-(\d{1,3})")
_ENDS_WITHIN: Final = 15.0
_MOST_DEATHS: Final = 5
_DEATHS_WITHIN: Final = 10.0


def owner_of(session: bytes) -> tuple[bytes, int | None]:
    """Return a session's ID as the protocol library knows it, and the number of its worker; None where it names none."""
    found = _OWNER.fullmatch(session)
    return (found[1], int(found[2])) if found else (session, None)


class Place:
    """What a worker knows of itself and the others: its number, and a channel to each of them."""

    def __init__(self, number: int, channels: list[tuple[socket.socket, socket.socket]]) -> None:
        self.number = number
        self._to = [one for one, _ in channels]
        self._mine = channels[number][1]

    def elsewhere(self, header: bytes) -> int | None:
        """Return the number of the worker that has the session of a request; None where that is this one, or none at all."""
        found = _SESSION.search(header)
        owner = owner_of(found[1].strip())[1] if found else None
        return owner if owner is not None and self.is_other(owner) else None

    def is_other(self, owner: int) -> bool:
        """Tell whether a number is that of another worker."""
        return owner != self.number and owner < len(self._to)

    def move(self, fd: int, begun: bytes, owner: int) -> bool:
        """Give a connection to another worker, with what was read of it; tell whether that was possible."""
        held = os.memfd_create("rye-mcp", os.MFD_CLOEXEC)
        try:
            # In a file of memory: a message between processes holds less than a request may have.
            os.write(held, begun)
            return _sent(self._to[owner], [fd, held])
        finally:
            os.close(held)

    def listen(self, accept: Callable[[socket.socket, bytes], None]) -> None:
        """Call `accept` with each connection that comes, from the parent or another worker; of the running loop."""
        import asyncio

        asyncio.get_running_loop().add_reader(self._mine, self._take, accept)

    def _take(self, accept: Callable[[socket.socket, bytes], None]) -> None:
        # One a turn: each worker's loop serves what it has before it takes more.
        try:
            _, fds, _, _ = socket.recv_fds(self._mine, 1, 2, socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC)
        except OSError:
            return
        begun = b""
        for held in fds[1:]:
            begun = os.pread(held, os.fstat(held).st_size, 0)
            os.close(held)
        if fds:
            accept(socket.socket(fileno=fds[0]), begun)


def _sent(channel: socket.socket, fds: list[int]) -> bool:
    try:
        socket.send_fds(channel, [b"c"], fds, socket.MSG_DONTWAIT)
    except OSError:
        return False
    return True


class Named:
    """Puts the worker's number into the session IDs that clients see, and takes it out again."""

    def __init__(self, app: _App, place: Place) -> None:
        self._app = app
        self._place = place
        self._tail = b"-%d" % place.number

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = []
        for name, value in scope["headers"]:
            session, owner = owner_of(value) if name == b"mcp-session-id" else (value, None)
            if owner is not None and self._place.is_other(owner):
                # Behind another request on one connection, which could not move.
                await send({"type": "http.response.start", "status": 503, "headers": [(b"connection", b"close")]})
                await send({"type": "http.response.body", "body": b"Send this request on a connection of its own.\n"})
                return
            headers.append((name, session))

        async def named(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                shown = message.get("headers", ())
                message["headers"] = [
                    (name, value + self._tail if name.lower() == b"mcp-session-id" else value) for name, value in shown
                ]
            await send(message)

        await self._app({**scope, "headers": headers}, receive, named)


def run(listening: socket.socket, count: int, work: Callable[[Place, int], None]) -> bool:
    """Run workers until the process is asked to end; return in each of them, too.

    Args:
        listening: accepts the clients.
        count: workers.
        work: serves in a worker until it is done: its place, and a descriptor that ends when the parent does.

    Returns:
        Whether this is the parent.
    """
    return _Parent(listening, count, work).run()


class _Parent:
    def __init__(self, listening: socket.socket, count: int, work: Callable[[Place, int], None]) -> None:
        self._listening = listening
        self._work = work
        # Kept open here, both ends: what was sent to a worker that dies waits for the next one.
        self._channels = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(count)]
        self._alive, self._ends = os.pipe2(os.O_CLOEXEC)
        self._workers: dict[int, int] = {}
        self._deaths: list[float] = []
        self._worker: int | None = None
        self._stopped_by: int | None = None
        self._woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._turn = 0

    def run(self) -> bool:
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        signal.set_wakeup_fd(self._woken[1], warn_on_full_buffer=False)
        # A client may be gone between waiting and accepting.
        self._listening.setblocking(False)
        # What was loaded so far stays shared: the collector would write into each object, and so copy it for each worker.
        gc.collect()
        gc.freeze()
        for number in range(len(self._channels)):
            self._start(number, before)
            if self._worker is not None:
                return False
        while self._stopped_by is None:
            self._reap(before)
            if self._worker is not None:
                return False
            self._hand_out()
        self._listening.close()
        self._end()
        signal.set_wakeup_fd(-1)
        for number, handler in before.items():
            signal.signal(number, handler)
        # As the web server does by itself: whoever started this process learns how it ended.
        signal.raise_signal(self._stopped_by)
        return True

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        # Noted, not raised: an exception would be lost where it comes into a destructor.
        self._stopped_by = number

    def _start(self, number: int, before: dict[signal.Signals, Any]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        # Held back until the parent knows the worker, and the worker no longer ends as the parent does.
        signal.pthread_sigmask(signal.SIG_BLOCK, before)
        pid = os.fork()
        if pid:
            self._workers[pid] = number
        else:
            self._worker = number
            signal.set_wakeup_fd(-1)
            for name, handler in before.items():
                signal.signal(name, handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, before)
        if pid:
            return
        os.close(self._ends)
        self._listening.close()
        self._work(Place(number, self._channels), self._alive)

    def _hand_out(self) -> None:
        """Give the next connection to a worker; return after a second at most, and at once when the process is asked to end."""
        ready, _, _ = select.select([self._listening.fileno(), self._woken[0]], [], [], 1.0)
        if self._listening.fileno() not in ready:
            return
        try:
            connection, _ = self._listening.accept()
        except OSError:
            # The client went away again, or descriptors are short for a moment.
            time.sleep(0.01)
            return
        with connection:
            # The next one where the first takes no more.
            for step in range(len(self._channels)):
                if _sent(self._channels[(self._turn + step) % len(self._channels)][0], [connection.fileno()]):
                    break
        self._turn += 1

    def _reap(self, before: dict[signal.Signals, Any]) -> None:
        """Start again what has died, unless that does not help."""
        while self._workers:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            number = self._workers.pop(pid, None)
            if pid == 0:
                return
            if number is None:
                continue
            now = time.monotonic()
            self._deaths = [one for one in self._deaths if one > now - _DEATHS_WITHIN] + [now]
            if len(self._deaths) > _MOST_DEATHS:
                sys.stderr.write("rye mcp: its workers end as soon as they begin; the server ends.\n")
                self._stopped_by = signal.SIGTERM
                return
            self._start(number, before)
            if self._worker is not None:
                return

    def _end(self) -> None:
        """End the workers: they are asked, and ended when they take too long."""
        for pid in self._workers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        end = time.monotonic() + _ENDS_WITHIN
        while self._workers:
            for pid in list(self._workers):
                late = time.monotonic() > end
                with suppress(ProcessLookupError):
                    if late:
                        os.kill(pid, signal.SIGKILL)
                try:
                    gone = os.waitpid(pid, 0 if late else os.WNOHANG)[0] == pid
                except ChildProcessError:
                    gone = True
                if gone:
                    del self._workers[pid]
            time.sleep(0.02)

"""MCP over standard input and output: one JSON-RPC message a line; nothing but the protocol reaches the client.

The real descriptors are moved before anything else is loaded: from then on descriptor 1 is standard error and descriptor 0 is
empty, for every thread and child.

One thread at a time reads. What it reads it also answers: where that lasts, another thread reads on meanwhile, so that no
request waits for the switch to one (`rye.executor.turns`). An answer is written by the thread that made it.
"""

from __future__ import annotations

import fcntl
import os
import select
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from rye.mcp_server.service import Service

_BLOCK: Final = 1 << 16

_MOST_LINE: Final = 64 * 1024 * 1024
"""A longer message is not read: it is answered with an error (bytes)."""

_LAST_WRITES_SECONDS: Final = 2.0
"""A client that closed its end and no longer reads does not hold up the end of the server for longer."""

_SETTLE_SECONDS: Final = 4.0


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


def serve(service: Service, wire: Wire) -> None:
    """Serve one client over its descriptors until it closes them."""
    from rye.executor import run_code, turns
    from rye.mcp_server.protocol import INVALID_REQUEST, Dispatcher, ProtocolError, error_line

    write = _Writer(wire.outgoing).put
    dispatcher = Dispatcher(service.look, service.call, write)
    ended, closed = threading.Event(), threading.Event()

    def refuse() -> None:
        refusal = f"A message of more than {_MOST_LINE >> 20} MB is not read. Send the content in several calls."
        sys.stderr.write(f"rye mcp: {refusal}\n")
        write(error_line(None, ProtocolError(refusal, INVALID_REQUEST)))

    arriving, alarm = _lines(wire.incoming, refuse), turns.Alarm()

    def listen() -> None:
        for line in arriving:
            work = dispatcher.receive(line)
            if work is None:
                continue
            turn = alarm.begin(listen)
            turns.current.set(turn)
            work()
            if alarm.end(turn):
                return
        ended.set()
        dispatcher.close()
        closed.set()

    run_code.start(listen)
    ended.wait()
    closed.wait(_LAST_WRITES_SECONDS)
    service.calls.settle(_SETTLE_SECONDS)


def _lines(fd: int, refuse: Callable[[], None]) -> Iterator[bytes]:
    """Return the client's messages as they come; `refuse` is called for each that is too long."""
    begun = bytearray()
    skips = False
    while data := _read(fd):
        begun += data
        if b"\n" in data:
            *lines, rest = bytes(begun).split(b"\n")
            begun = bytearray(rest)
            # The first may be the end of one that was too long.
            yield from lines[skips:]
            skips = False
        elif len(begun) > _MOST_LINE:
            if not skips:
                refuse()
            skips = True
            begun.clear()
        # No whole line yet: splitting at each block would take quadratic time for a long message.
    # End of input: a last line without a newline is a message too.
    if not skips:
        yield bytes(begun)


def _read(fd: int) -> bytes:
    """Return what comes next; nothing at the end."""
    while True:
        try:
            return os.read(fd, _BLOCK)
        except BlockingIOError:
            # Who shares the descriptor set its flag.
            select.select([fd], [], [])
        except OSError:
            return b""


class _Writer:
    """Writes whole lines, from any thread. A client that does not read makes those wait who have something for it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()

    def put(self, line: bytes) -> None:
        with self._lock:
            left = line
            while left:
                try:
                    left = left[os.write(self._fd, left) :]
                except BlockingIOError:
                    select.select([], [self._fd], [])
                except OSError:
                    # The client went away; what is left has nowhere to go.
                    return

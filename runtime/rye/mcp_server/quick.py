"""Plain `tools/call` requests over standard input and output, answered without the protocol library.

Most messages of a session are calls of one shape, and the library takes longer for one than a read takes. So a line that
certainly is such a call, in a session that is open, goes from the line's JSON to the call and from its result to the line's
JSON. Everything else is left to others, as if nothing stood before them: every other method, a call with any field that is not
named here, every fault, and tools that were not listed yet.

Such a call can be cancelled like any other, has the same limits, and is answered once or, when it was cancelled, never.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from rye.call.context import Cancellation
from rye.mcp_server import messages
from rye.mcp_server.messages import ENVELOPE, Peer, Reporter
from rye.plain_class import Record

if TYPE_CHECKING:
    from rye.mcp_server.calls import Calls, Request

_MEMBERS: Final = {"jsonrpc", "id", "method", "params"}
_PARAMS: Final = {"name", "arguments", "_meta"}


class _Running(Record, frozen=False):
    """A call that has no answer yet: the id of its request, and how to end it."""

    number: int | str
    cancellation: Cancellation


class QuickCalls:
    """The calls of one client. Its methods belong to the event loop of the server, but for the answers."""

    def __init__(
        self, calls: Calls, request_of: Callable[[str, dict[str, Any], Peer, Reporter | None], Request | None]
    ) -> None:
        """Take what runs calls, and what makes a request of a tool's name, arguments, caller and report; None: unknown tool."""
        self._calls = calls
        self._request_of = request_of
        self._put: Callable[[bytes], None] | None = None
        self._peer: Peer | None = None
        self._envelope: dict[str, Any] = {}
        # By the id as text, since some clients name a number so when they cancel it.
        self._running: dict[str, _Running] = {}
        self._lock = threading.Lock()

    def answer_by(self, put: Callable[[bytes], None]) -> None:
        """Take what writes a line to the client, from any thread."""
        self._put = put

    def open(self, peer: Peer, envelope: dict[str, Any]) -> None:
        """Note who calls: from now on plain calls are taken, if their `_meta` has these entries of the protocol's own."""
        self._peer, self._envelope = peer, envelope

    def runs(self, number: int | str) -> bool:
        """Tell whether a call has this id."""
        return str(number) in self._running

    def takes(self, line: bytes) -> bool:
        """Take a line if it is a plain call; what it does not take goes to the library."""
        if b"tools/call" not in line:
            if b"cancelled" in line:
                self._cancel(line)
            elif b"initialize" in line:
                # The next session may be another client's.
                self._peer = None
            return False
        if self._peer is None or self._put is None:
            return False
        try:
            message = from_json(line)
            found = self._plain(message)
            request = None if found is None else self._request_of(found[0], found[1], self._peer, found[2])
        except (ValueError, TypeError, RecursionError):
            return False
        return request is not None and self._begin(message["id"], request, self._peer)

    def _plain(self, message: Any) -> tuple[str, dict[str, Any], Reporter | None] | None:
        """Return the name and arguments of a plain call, and what reports its progress; None for everything else."""
        if not isinstance(message, dict) or message.keys() != _MEMBERS or message["method"] != "tools/call":
            return None
        number, params = message["id"], message["params"]
        if message["jsonrpc"] != "2.0" or number.__class__ not in (int, str) or str(number) in self._running:
            return None
        if not isinstance(params, dict) or not params.keys() <= _PARAMS or not isinstance(params.get("name"), str):
            return None
        arguments, meta = params.get("arguments", {}), params.get("_meta", {})
        if not isinstance(arguments, dict) or not isinstance(meta, dict):
            return None
        token = meta.get("progressToken", "")
        if token.__class__ not in (int, str):
            return None
        if (meta or self._envelope) and {name: meta[name] for name in meta if name.startswith(ENVELOPE)} != self._envelope:
            return None
        return params["name"], arguments, self.reporter(meta["progressToken"]) if "progressToken" in meta else None

    def reporter(self, token: int | str) -> Reporter:
        """Return what sends progress notifications under a token of the client's."""

        async def report(done: float, text: str) -> None:
            self._write(messages.progress_line(token, done, text))

        return report

    def _begin(self, number: int | str, request: Request, peer: Peer) -> bool:
        running = _Running(number, Cancellation())

        def answer(result: dict[str, Any] | None, failure: BaseException | None) -> None:
            if self._settles(running):
                if result is None:
                    line = messages.failure_line(number, failure, peer.revision)
                else:
                    line = messages.result_line(number, "tools/call", result, peer.revision)
                self._write(line)

        self._running[str(number)] = running
        if self._calls.begin(request, running.cancellation, answer):
            return True
        del self._running[str(number)]
        return False

    def _settles(self, running: _Running) -> bool:
        """Tell whether a call is still to be answered. Once: by itself, its cancellation or the end of the input."""
        with self._lock:
            # By identity: a client may use the id of a cancelled call again.
            stands = self._running.get(str(running.number)) is running
            if stands:
                del self._running[str(running.number)]
        return stands

    def _write(self, line: bytes) -> None:
        if self._put is not None:
            self._put(line)

    def _cancel(self, line: bytes) -> None:
        """End a call of these that a notification names; the library, which gets it too, does not know the call."""
        try:
            message = from_json(line)
            if message["method"] != "notifications/cancelled" or "id" in message:
                return
            running = self._running.get(str(message["params"]["requestId"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            return
        if running is not None and self._settles(running):
            running.cancellation.cancel()

    def close(self) -> None:
        """End what still runs, and answer that the connection is over, as the library does for its own calls."""
        for running in list(self._running.values()):
            if self._settles(running):
                running.cancellation.cancel()
                self._write(messages.closed_line(running.number))

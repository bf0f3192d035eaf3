"""One client over standard input and output, served without the protocol library for as long as its messages are plain.

The library and its models take 40 MB, two thirds of a server that has them, and its import half a second. Most clients never
send what only the library knows. So the requests whose form is certain are answered here: the beginning of a session, what
lists and looks, calls of tools, in each revision. The first other message is left to the library, and with it the session: it
is told how the session began, and takes all that comes later but plain calls.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json

from rye.mcp_server import messages, skills
from rye.mcp_server.messages import ENVELOPE, ENVELOPED, Peer
from rye.mcp_server.quick import QuickCalls
from rye.mcp_server.service import actor_of

if TYPE_CHECKING:
    import asyncio

    from rye.mcp_server.messages import Client
    from rye.mcp_server.service import Service

_EXTENSIONS: Final[dict[str, Any]] = {skills.EXTENSION: {}}
_MEMBERS: Final = {"jsonrpc", "id", "method", "params"}


class Session:
    """The messages of one client. Its methods belong to the event loop of the server."""

    def __init__(self, service: Service) -> None:
        import asyncio

        self._service = service
        self._loop = asyncio.get_running_loop()
        self._quick = QuickCalls(service.calls, service.request_of)
        # Standard input and output serve one client, so the process is the session.
        self._name = os.urandom(4).hex()
        self._put: Callable[[bytes], None] = lambda _: None
        self._running: dict[str, tuple[int | str, asyncio.Task[None]]] = {}
        # What the library is told when it takes over: a first request that decides on the revision, as the client's did.
        self._begun: tuple[str, dict[str, Any]] | None = None
        # None: nothing was asked yet.
        self._revision: str | None = None
        self._peer: Peer | None = None
        self._envelope: dict[str, Any] = {}
        self._is_left = False
        self._news = asyncio.Event()
        self.replayed: Final = f"rye-{os.urandom(8).hex()}"
        """The id under which the library is told of the beginning; its answer to it is not for the client."""

    def answer_by(self, put: Callable[[bytes], None]) -> None:
        """Take what writes a line to the client, from any thread."""
        self._put = put
        self._quick.answer_by(put)

    def opened(self, peer: Peer) -> None:
        """Note who calls, as the library found when it served a call: from now on plain calls are taken."""
        if peer.revision != ENVELOPED:
            self._quick.open(peer, {})

    async def left(self) -> bool:
        """Wait until a message is left to the library, or the input ends; return whether one is."""
        await self._news.wait()
        return self._is_left

    def hand_over(self) -> list[bytes]:
        """Note that a message is left to the library; return the lines that tell it how the session began."""
        if self._is_left:
            return []
        self._is_left = True
        self._news.set()
        if self._begun is None:
            return []
        method, params = self._begun
        told = [{"jsonrpc": "2.0", "id": self.replayed, "method": method, "params": params}]
        if method == "initialize":
            told.append({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return [json.dumps(one).encode() for one in told]

    def takes(self, line: bytes) -> bool:
        """Answer a line, or see that it is answered; what is not taken goes to the library."""
        if self._quick.takes(line):
            return True
        if self._is_left:
            self._cancel_by(line)
            return False
        try:
            message = from_json(line)
        except ValueError:
            return False
        if not isinstance(message, dict) or not message.keys() <= _MEMBERS or message.get("jsonrpc") != "2.0":
            return False
        method, params = message.get("method"), message.get("params", {})
        if not isinstance(method, str) or not isinstance(params, dict):
            return False
        if "id" not in message:
            return self._notices(method, params)
        number = message["id"]
        if number.__class__ not in (int, str) or str(number) in self._running or self._quick.runs(number):
            return False
        if method == "initialize":
            return self._greets(number, params)
        return self._asks(number, method, params)

    def _greets(self, number: int | str, params: dict[str, Any]) -> bool:
        """Begin a session of the older revisions."""
        found = messages.hello(params) if self._revision is None else None
        if found is None:
            return False
        client, self._revision, result = found
        self._begun = "initialize", params
        self._known(client, {})
        self._put(messages.result_line(number, "initialize", result, self._revision))
        return True

    def _known(self, client: Client, envelope: dict[str, Any]) -> Peer:
        peer = Peer(actor_of(client.name, self._name), str(self._revision))
        self._peer, self._envelope = peer, envelope
        self._quick.open(peer, envelope)
        return peer

    def _notices(self, method: str, params: dict[str, Any]) -> bool:
        """Take a notification: but for cancellations they change nothing here, and none is ever answered."""
        if self._revision is None:
            return False
        if method == "notifications/cancelled":
            self._cancel(params.get("requestId"))
        return True

    def _asks(self, number: int | str, method: str, params: dict[str, Any]) -> bool:
        peer = self._asking(params.get("_meta", {}))
        if peer is None or not messages.is_plain(method, params):
            return False
        if method in ("ping", "server/discover"):
            # Each is of one era only.
            if (method == "ping") != (peer.revision != ENVELOPED):
                return False
            result = {} if method == "ping" else messages.discovered(_EXTENSIONS)
            self._put(messages.result_line(number, method, result, peer.revision))
            return True
        task = self._loop.create_task(self._answer(number, method, params, peer))
        self._running[str(number)] = number, task
        return True

    def _asking(self, meta: Any) -> Peer | None:
        """Return who asks by the `_meta` of a request; None where that is not certain, or not of this session's era."""
        envelope = {name: part for name, part in meta.items() if name.startswith(ENVELOPE)} if isinstance(meta, dict) else {}
        if self._peer is not None and envelope == self._envelope:
            return self._peer
        client = messages.asker(meta) if envelope and self._revision in (None, ENVELOPED) else None
        if client is None:
            return None
        self._revision, self._begun = ENVELOPED, ("server/discover", {"_meta": envelope})
        return self._known(client, envelope)

    async def _answer(self, number: int | str, method: str, params: dict[str, Any], peer: Peer) -> None:
        meta = params.get("_meta", {})
        report = self._quick.reporter(meta["progressToken"]) if "progressToken" in meta else None
        try:
            result = await self._service.answer(method, params, peer, report)
            line = messages.result_line(number, method, result, peer.revision)
        except Exception as err:  # noqa: BLE001 - who asked is told
            line = messages.failure_line(number, err, peer.revision)
        if self._settles(number):
            self._put(line)

    def _settles(self, number: int | str) -> bool:
        """Tell whether a request of this task is still to be answered."""
        import asyncio

        known = self._running.get(str(number))
        # By identity: a client may use the id of a cancelled request again.
        if known is None or known[1] is not asyncio.current_task():
            return False
        del self._running[str(number)]
        return True

    def _cancel_by(self, line: bytes) -> None:
        """End a request that a notification names; the library, which gets it too, does not know the request."""
        if not self._running or b"cancelled" not in line:
            return
        try:
            message = from_json(line)
            if message["method"] == "notifications/cancelled" and "id" not in message:
                self._cancel(message["params"]["requestId"])
        except (ValueError, TypeError, KeyError):
            return

    def _cancel(self, number: object) -> None:
        # By the id as text, since some clients name a number so when they cancel it. A cancelled request is not answered.
        known = self._running.pop(str(number), None)
        if known is not None:
            known[1].cancel()

    def end(self) -> None:
        """Note that the input has ended: nobody waits for a message to the library any more."""
        self._news.set()

    def close(self) -> None:
        """End what still runs, and answer that the connection is over."""
        self._quick.close()
        running, self._running = self._running, {}
        for number, task in running.values():
            task.cancel()
            self._put(messages.closed_line(number))

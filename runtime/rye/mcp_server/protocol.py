"""MCP as JSON-RPC: what the server says of itself, how a line becomes a request, and how a result becomes a line.

Each request is judged by itself: one with an envelope in its `_meta` is of the newest revision, any other belongs to the
session that `initialize` began. Members that are not known are ignored, as the protocol wants.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from pydantic_core import from_json, to_json

from rye._version import __version__
from rye.call.context import Cancellation
from rye.call.safe_text import encodable
from rye.mcp_server import skills
from rye.plain_class import Record

NAME: Final = "rye"
TITLE: Final = "RYE workspace tools"
INSTRUCTIONS: Final = (
    "Tools for the files of one project. read and grep show a short ID before each line: pass these to edit_lines in place of "
    "old text. An ID stays with its line through other edits and is never given to another line. undo takes a change back. A "
    "result that was cut ends with a [tool_result: …] line naming the call that continues. A failed call says what to do next."
)

HANDSHAKES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions whose sessions begin with `initialize`; the last is offered to a client that names another."""

NEWEST: Final = "2026-07-28"
"""The revision whose requests each say in their `_meta` who asks."""

_OWN: Final = "io.modelcontextprotocol/"
_VERSION: Final = f"{_OWN}protocolVersion"
_CLIENT: Final = f"{_OWN}clientInfo"
_ABLE: Final = f"{_OWN}clientCapabilities"

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
_UNSUPPORTED_REVISION: Final = -32022
# What was cut off by the end of the input.
_CLOSED: Final = -32000

FRESH: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What the newest revision wants of every answer that a client could cache: these are true now and for this user only."""

Id = int | str
Report = Callable[[float, str], None]
"""Sends a progress notification, from any thread: a number that rises, the newest text."""

Done = Callable[[dict[str, Any] | None, BaseException | None], None]
"""Takes the result of a request, or why there is none, from any thread."""


class Peer(Record):
    """Who asks.

    Attributes:
        actor: the client and its session, as the journal names them.
        revision: of the protocol, as agreed.
    """

    actor: str
    revision: str


Look = Callable[[str, dict[str, Any], Peer, Done], None]
"""Answers a request that looks at what there is: its method and parameters."""

Run = Callable[[dict[str, Any], Peer, Report | None, Cancellation, Done], None]
"""Answers `tools/call` of these parameters."""


class ProtocolError(Exception):
    """A request that is answered with an error: what is wrong, its code, more about it, and the request's id where known."""

    def __init__(self, message: str, code: int = INVALID_PARAMS, data: Any = None, number: Id | None = None) -> None:
        super().__init__(message)
        self.message, self.code, self.data, self.number = message, code, data, number


class Message(NamedTuple):
    """A request, or a notification, which has no id."""

    number: Id | None
    method: str
    params: dict[str, Any]


def parse(line: bytes) -> Message | None:
    """Return the message of a line; None where nothing is asked: an answer, or a notification that cannot be read.

    Raises:
        ProtocolError: the line is no message.
    """
    try:
        message = from_json(line)
    except ValueError:
        message, is_text = _read_again(line), False
    else:
        is_text = True
    if message.__class__ is not dict:
        raise ProtocolError("Invalid request: a message is one JSON object.", INVALID_REQUEST)
    number, method = message.get("id"), message.get("method")
    # JSON-RPC allows no null here; clients send it where they mean nothing.
    params = message.get("params") or {}
    is_id = number.__class__ is int or number.__class__ is str
    if is_text and message.get("jsonrpc") == "2.0" and method.__class__ is str and params.__class__ is dict:
        if is_id:
            return Message(number, method, params)
        if "id" not in message:
            return Message(None, method, params)
    # JSON-RPC forbids an answer to a notification, also to a wrong one; nothing was asked of the client.
    if ("id" not in message and method.__class__ is str) or (method is None and ("result" in message or "error" in message)):
        return None
    raise ProtocolError(
        f"Invalid request: {_fault(message, is_text=is_text)}", INVALID_REQUEST, None, number if is_id else None
    )


def _read_again(line: bytes) -> Any:
    """Return what a line is by the standard library, which reads what is no text; it is needed for the request's id alone."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise ProtocolError("Parse error: the line is no JSON-RPC message.", PARSE_ERROR) from None


def _fault(message: dict[str, Any], *, is_text: bool) -> str:
    if message.get("jsonrpc") != "2.0":
        return '"jsonrpc" must be "2.0".'
    if message.get("method").__class__ is not str:
        return '"method" must be a string.'
    if message.get("id").__class__ not in (int, str):
        return '"id" must be a string or an integer.'
    if is_text:
        return '"params" must be an object.'
    return "a text holds half of a surrogate pair, such as \\ud800: it is no character. Send the whole one."


_TEXTS: Final = {str: str}
_LIST: Final = {"cursor?": str}
# Of each method's parameters, the kind of each; `?` marks those that may be missing. Others are ignored.
_METHODS: Final[dict[str, dict[Any, Any]]] = {
    "initialize": {"protocolVersion": str, "capabilities": dict, "clientInfo": {"name": str}},
    "ping": {},
    "server/discover": {},
    "tools/call": {"name": str, "arguments?": dict},
    "resources/read": {"uri": str},
    "prompts/get": {"name": str, "arguments?": _TEXTS},
    "completion/complete": {"ref": {"type": str}, "argument": {"name": str, "value": str}},
    "skills/get": {"uri": str},
    **{f"{name}/list": _LIST for name in ("tools", "resources", "resources/templates", "prompts", "skills")},
}
_NOT_IN_NEWEST: Final = ("initialize", "ping")
_KINDS: Final = {str: "a string", dict: "an object"}


def _check(params: Mapping[str, Any], kinds: Mapping[Any, Any]) -> None:
    """Hold parameters to their kinds."""
    for name, kind in kinds.items():
        bare = "" if name is str else name.removesuffix("?")
        if bare and bare not in params:
            if bare != name:
                continue
            raise ProtocolError(f'Invalid parameters: "{name}" is missing.')
        for one in [bare] if bare else params:
            value, inner = params[one], isinstance(kind, dict)
            wanted = dict if inner else kind
            if value.__class__ is not wanted:
                raise ProtocolError(f'Invalid parameters: "{one}" must be {_KINDS[wanted]}.')
            if inner:
                _check(value, kind)


class Dispatcher:
    """The requests of one client: each is answered once, or never when it was cancelled.

    `receive` is called by one thread at a time; what it returns, by any.
    """

    def __init__(self, look: Look, run: Run, write: Callable[[bytes], None]) -> None:
        """Take what answers requests, and what writes a line to the client, from any thread."""
        self._look, self._run, self._write = look, run, write
        # Standard input and output serve one client, so the process is the session.
        self._session = os.urandom(4).hex()
        self._peer: Peer | None = None
        self._running: dict[Id, Cancellation] = {}
        self._lock = threading.Lock()

    def receive(self, line: bytes) -> Callable[[], None] | None:
        """Take a line; return what is left to do for it, if anything, which may take long."""
        if not line or line.isspace():
            return None
        number = None
        try:
            message = parse(line)
            if message is None:
                return None
            number, method, params = message
            if number is None:
                if method == "notifications/cancelled":
                    self._cancel(params.get("requestId"))
                return None
            return self._request(number, method, params)
        except Exception as failure:  # noqa: BLE001 - the next message is read, whatever is wrong with this one
            err = _as_error(failure)
            self._write(error_line(err.number if number is None else number, err))
            return None

    def _request(self, number: Id, method: str, params: dict[str, Any]) -> Callable[[], None] | None:
        meta = params.get("_meta")
        is_newest = meta.__class__ is dict and _VERSION in meta
        kinds = _METHODS.get(method)
        if kinds is None or (method in _NOT_IN_NEWEST if is_newest else method == "server/discover"):
            raise ProtocolError(f"Method not found: {method}", METHOD_NOT_FOUND, method)
        if number in self._running:
            raise ProtocolError('Invalid request: the "id" is that of a request that runs.', INVALID_REQUEST)
        _check(params, kinds)
        if meta is not None:
            _check_meta(meta)
        if method == "initialize":
            self._peer, result = self._begin(params)
            self._write(result_line(number, result, self._peer.revision))
            return None
        if method == "ping":
            self._write(result_line(number, {}, HANDSHAKES[-1]))
            return None
        peer = self._asking(params["_meta"]) if is_newest else self._peer
        if peer is None:
            raise ProtocolError("Begin with `initialize`, or say in the `_meta` of each request who asks.")
        if method == "server/discover":
            offered = {**_offered(), "extensions": {skills.EXTENSION: {}}}
            said = {"supportedVersions": [NEWEST], "capabilities": offered, "instructions": INSTRUCTIONS}
            self._write(result_line(number, {**FRESH, **said}, NEWEST))
            return None
        running = self._running[number] = Cancellation()
        done = partial(self._answer, number, peer.revision, running)
        if method != "tools/call":
            return partial(self._look, method, params, peer, done)
        report = partial(self._report, meta["progressToken"]) if meta is not None and "progressToken" in meta else None
        return partial(self._run, params, peer, report, running, done)

    def _begin(self, params: dict[str, Any]) -> tuple[Peer, dict[str, Any]]:
        wanted = params["protocolVersion"]
        revision = wanted if wanted in HANDSHAKES else HANDSHAKES[-1]
        said = {"protocolVersion": revision, "serverInfo": _identity(), "instructions": INSTRUCTIONS}
        # The older revisions know no extensions.
        return Peer(actor_of(params["clientInfo"]["name"], self._session), revision), {**said, "capabilities": _offered()}

    def _asking(self, meta: dict[str, Any]) -> Peer:
        """Return who asks by the envelope of a request."""
        _check(meta, {_VERSION: str, _ABLE: dict, f"{_CLIENT}?": {"name": str}})
        if meta[_VERSION] != NEWEST:
            known = {"supported": [NEWEST], "requested": meta[_VERSION]}
            raise ProtocolError("Unsupported protocol version", _UNSUPPORTED_REVISION, known)
        return Peer(actor_of(meta.get(_CLIENT, {}).get("name"), self._session), NEWEST)

    def _report(self, token: Id, done: float, text: str) -> None:
        params = {"progressToken": token, "progress": done, **({"message": text} if text else {})}
        self._write(to_json({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}) + b"\n")

    def _answer(
        self, number: Id, revision: str, running: Cancellation, result: dict[str, Any] | None, failure: BaseException | None
    ) -> None:
        if not self._settles(number, running):
            return
        line = None
        if result is not None:
            try:
                line = result_line(number, result, revision)
            except ValueError as err:
                failure = err
        self._write(line if line is not None else error_line(number, _as_error(failure)))

    def _settles(self, number: Id, running: Cancellation) -> bool:
        """Tell whether a request is still to be answered. Once: by itself, its cancellation or the end of the input."""
        with self._lock:
            # By identity: a client may use the id of a cancelled request again.
            stands = self._running.get(number) is running
            if stands:
                del self._running[number]
        return stands

    def _cancel(self, number: object) -> None:
        # Some clients name a number as a text when they cancel it.
        for one in list(self._running):
            if number == one or (number.__class__ is str and number == str(one)):
                self._end(one)

    def _end(self, number: Id) -> bool:
        running = self._running.get(number)
        if running is None or not self._settles(number, running):
            return False
        running.cancel()
        return True

    def close(self) -> None:
        """End what still runs, and answer that the connection is over."""
        ended = [number for number in list(self._running) if self._end(number)]
        for number in ended:
            self._write(error_line(number, ProtocolError("Connection closed", _CLOSED)))


def _as_error(failure: BaseException | None) -> ProtocolError:
    """Return a failure as a client is told it; what is no answer for a client is told to who runs the server."""
    if isinstance(failure, ProtocolError):
        return failure
    from rye.executor import failures

    traceback.print_exception(failure, file=sys.stderr)
    said = failures.REPLACED if failures.is_replaced() else "Its traceback is in the server's error output."
    return ProtocolError(f"Internal server error. {said}", INTERNAL_ERROR)


def _check_meta(meta: Any) -> None:
    if meta.__class__ is not dict:
        raise ProtocolError('Invalid parameters: "_meta" must be an object.')
    if meta.get("progressToken", "").__class__ not in (int, str):
        raise ProtocolError('Invalid parameters: "progressToken" must be a string or an integer.')


def actor_of(name: object, session: str) -> str:
    """Return what the journal calls a client: its name as it gave it, and its session."""
    # The client names itself: only plain characters of it go into the journal.
    plain = re.sub(r"[^\w.@+-]+", " ", name)[:40].strip() if isinstance(name, str) else ""
    return f"{plain or 'mcp'} {session}"


def _identity() -> dict[str, Any]:
    return {"name": NAME, "title": TITLE, "version": __version__}


def _offered() -> dict[str, Any]:
    """Return what the server can do, extensions aside."""
    fixed = {"listChanged": False}
    return {"completions": {}, "prompts": fixed, "resources": {**fixed, "subscribe": False}, "tools": fixed}


def result_line(number: Id, result: dict[str, Any], revision: str) -> bytes:
    """Return the line that answers a request with its result, as a revision has it."""
    content: bytes | None = getattr(result, "content_json", None)
    left_out = ("content",) if content is not None else ()
    if revision == NEWEST:
        rest = {name: part for name, part in result.items() if name not in left_out}
        rest["_meta"] = {**result.get("_meta", {}), f"{_OWN}serverInfo": _identity()}
    else:
        rest = {name: part for name, part in result.items() if name not in FRESH and name not in left_out}
    line = to_json({"jsonrpc": "2.0", "id": number, "result": rest})
    # The rest has at least one member, so a comma is right.
    return line + b"\n" if content is None else b'%b,"content":%b}}\n' % (line[:-2], content)


def error_line(number: Id | None, err: ProtocolError) -> bytes:
    """Return the line that answers a request with an error."""
    error = {"code": err.code, "message": err.message, **({} if err.data is None else {"data": err.data})}
    # A project's name, or an id that was refused, may be no text.
    return to_json(encodable({"jsonrpc": "2.0", "id": number, "error": error})) + b"\n"

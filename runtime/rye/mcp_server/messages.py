"""The protocol's messages as the server reads and writes them without the protocol library.

Only what is certain is read here: a request with other members than those named, or with one of another kind, is left to the
library, which knows the whole of each revision. What is written is what the library would write.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from pydantic_core import to_json

from rye._version import __version__
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

ENVELOPED: Final = "2026-07-28"
"""The revision whose requests each say in their `_meta` who asks."""

ENVELOPE: Final = "io.modelcontextprotocol/"
"""What the protocol itself puts into `_meta` begins so."""

_VERSION: Final = f"{ENVELOPE}protocolVersion"
_CLIENT: Final = f"{ENVELOPE}clientInfo"
_ABLE: Final = f"{ENVELOPE}clientCapabilities"

INVALID_PARAMS: Final = -32602
METHOD_NOT_FOUND: Final = -32601
_INTERNAL_ERROR: Final = -32603
# As the library answers: a handler's failure in the older revisions, and what was cut off by the end of the input.
_FAILED: Final = 0
_CLOSED: Final = -32000

FRESH: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
"""What the newest revision wants of every answer that a client could cache: these are true now and for this user only."""

Reporter = Callable[[float, str], Awaitable[None]]
"""Sends a progress notification: a number that rises, the newest text."""


class Peer(Record):
    """Who asks.

    Attributes:
        actor: the client and its session, as the journal names them.
        revision: of the protocol, as agreed.
    """

    actor: str
    revision: str


class Client(Record):
    """What a client says of itself."""

    name: str | None


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """A request that is answered with an error of the protocol: its code, what is wrong, and more about it where there is."""

    def __init__(self, message: str, code: int = INVALID_PARAMS, data: Any = None) -> None:
        super().__init__(message)
        self.message, self.code, self.data = message, code, data


def hello(params: Mapping[str, Any]) -> tuple[Client, str, dict[str, Any]] | None:
    """Return who begins a session, the revision agreed upon, and the result of `initialize`; None where that is not certain."""
    if not params.keys() <= {"protocolVersion", "capabilities", "clientInfo", "_meta"} or not _is_meta(params.get("_meta", {})):
        return None
    wanted, client = params.get("protocolVersion"), _client(params.get("clientInfo"), params.get("capabilities"))
    if not isinstance(wanted, str) or client is None or client.name is None:
        return None
    revision = wanted if wanted in HANDSHAKES else HANDSHAKES[-1]
    said = {"protocolVersion": revision, "serverInfo": _identity(), "instructions": INSTRUCTIONS}
    # The older revisions know no extensions.
    return client, revision, {**said, "capabilities": _offered()}


def discovered(extensions: dict[str, Any]) -> dict[str, Any]:
    """Return the result of `server/discover`."""
    offered = {**_offered(), "extensions": extensions}
    return {**FRESH, "supportedVersions": [ENVELOPED], "capabilities": offered, "instructions": INSTRUCTIONS}


def _identity() -> dict[str, Any]:
    return {"name": NAME, "title": TITLE, "version": __version__}


def _offered() -> dict[str, Any]:
    """Return what the server can do, extensions aside."""
    fixed = {"listChanged": False}
    return {"completions": {}, "prompts": fixed, "resources": {**fixed, "subscribe": False}, "tools": fixed}


def asker(meta: Mapping[str, Any]) -> Client | None:
    """Return who asks by the `_meta` of a request of the newest revision; None where that is not certain."""
    own = {name for name in meta if name.startswith(ENVELOPE)}
    if not own <= {_VERSION, _CLIENT, _ABLE} or meta.get(_VERSION) != ENVELOPED or not _is_meta(meta):
        return None
    return _client(meta.get(_CLIENT), meta.get(_ABLE), may_be_nobody=_CLIENT not in meta)


# Of each capability that the protocol describes, the parts and their kinds; `{}` has parts of any name, each an object.
_CAPABILITIES: Final[dict[str, dict[str, type]]] = {
    "roots": {"listChanged": bool},
    "sampling": {"context": dict, "tools": dict},
    "elicitation": {"form": dict, "url": dict},
    "experimental": {},
    "extensions": {},
}


def _client(info: Any, capabilities: Any, *, may_be_nobody: bool = False) -> Client | None:
    if not isinstance(capabilities, dict):
        return None
    for name, parts in capabilities.items():
        kinds = _CAPABILITIES.get(name)
        if kinds is None or not isinstance(parts, dict):
            return None
        if not all(isinstance(part, kinds.get(key, dict if not kinds else type(None))) for key, part in parts.items()):
            return None
    if may_be_nobody:
        return Client(None)
    texts = {"name", "version", "title", "description", "websiteUrl"}
    if not isinstance(info, dict) or not {"name", "version"} <= info.keys() <= texts:
        return None
    return Client(info["name"]) if all(isinstance(one, str) for one in info.values()) else None


def _is_meta(meta: Any) -> bool:
    """Tell whether this is a `_meta` of which only the token of progress matters."""
    return isinstance(meta, dict) and meta.get("progressToken", "").__class__ in (int, str)


# What each method may have in its parameters, and what it must.
_PARAMS: Final[dict[str, tuple[dict[str, type], frozenset[str]]]] = {
    "ping": ({}, frozenset()),
    "server/discover": ({}, frozenset()),
    **{
        f"{name}/list": ({"cursor": str}, frozenset())
        for name in ("tools", "resources", "resources/templates", "prompts", "skills")
    },
    "tools/call": ({"name": str, "arguments": dict}, frozenset({"name"})),
    "resources/read": ({"uri": str}, frozenset({"uri"})),
    "skills/get": ({"uri": str}, frozenset({"uri"})),
    "prompts/get": ({"name": str, "arguments": dict}, frozenset({"name"})),
    "completion/complete": ({"ref": dict, "argument": dict, "context": dict}, frozenset({"ref", "argument"})),
}


def is_plain(method: str, params: Any) -> bool:
    """Tell whether parameters are certainly right for a method."""
    if method not in _PARAMS or not isinstance(params, dict):
        return False
    kinds, needed = _PARAMS[method]
    meta = params.get("_meta", {})
    if not needed <= params.keys() <= {*kinds, "_meta"} or not _is_meta(meta):
        return False
    if not all(isinstance(params[name], kind) for name, kind in kinds.items() if name in params):
        return False
    if method == "prompts/get":
        return _are_texts(params.get("arguments", {}))
    return method != "completion/complete" or _is_completion(params)


def _is_completion(params: dict[str, Any]) -> bool:
    ref, argument, context = params["ref"], params["argument"], params.get("context", {})
    named = {"ref/prompt": {"type", "name"}, "ref/resource": {"type", "uri"}}
    return (
        _are_texts(ref)
        and ref.keys() == named.get(ref.get("type"))
        and _are_texts(argument)
        and argument.keys() == {"name", "value"}
        and context.keys() <= {"arguments"}
        and isinstance(context.get("arguments", {}), dict)
        and _are_texts(context.get("arguments", {}))
    )


def _are_texts(given: dict[str, Any]) -> bool:
    return all(isinstance(one, str) for one in given.values())


def result_line(number: int | str, method: str, result: dict[str, Any], revision: str) -> bytes:
    """Return the line that answers a request with its result."""
    return to_json({"jsonrpc": "2.0", "id": number, "result": _on_wire(method, result, revision)}) + b"\n"


def _on_wire(method: str, result: dict[str, Any], revision: str) -> dict[str, Any]:
    """Return a result as a revision has it."""
    if method == "tools/call" and not all(map(_is_exact, result["content"])):
        from mcp_types import methods

        # A part with members that another tool thought of: the library knows which a revision has.
        result = methods.serialize_server_result(method, revision, result)
    if revision == ENVELOPED:
        return {**result, "_meta": {**result.get("_meta", {}), f"{ENVELOPE}serverInfo": _identity()}}
    # The extension's methods are in no revision's schema.
    return result if method.startswith("skills/") else {name: part for name, part in result.items() if name not in FRESH}


_PARTS: Final = {
    "text": ({"type", "text"}, None),
    "image": ({"type", "data", "mimeType"}, None),
    "audio": ({"type", "data", "mimeType"}, None),
    "resource": ({"type", "resource"}, ({"uri", "mimeType", "text"}, {"uri", "mimeType", "blob"})),
}


def _is_exact(part: dict[str, Any]) -> bool:
    """Tell whether a part of a tool's result has the members that each revision wants, and no other."""
    members, inner = _PARTS.get(str(part.get("type")), ((), None))
    if part.keys() != members:
        return False
    if inner is not None:
        return isinstance(part["resource"], dict) and part["resource"].keys() in inner and _are_texts(part["resource"])
    return _are_texts(part)


def error_line(number: float | str | None, message: str, code: int, data: Any = None) -> bytes:
    """Return the line of an error response."""
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return to_json({"jsonrpc": "2.0", "id": number, "error": error}) + b"\n"


def failure_line(number: int | str, failure: BaseException | None, revision: str) -> bytes:
    """Return the answer to a request whose handler failed; what is no answer for the client goes to standard error."""
    if isinstance(failure, Refused):
        return error_line(number, failure.message, failure.code, failure.data)
    traceback.print_exception(failure, file=sys.stderr)
    if revision == ENVELOPED:
        return error_line(number, "Internal server error", _INTERNAL_ERROR)
    return error_line(number, str(failure), _FAILED)


def closed_line(number: int | str) -> bytes:
    """Return the answer to a request that the end of the input cut off."""
    return error_line(number, "Connection closed", _CLOSED)


def progress_line(token: int | str, done: float, text: str) -> bytes:
    """Return the line of a progress notification."""
    params = {"progressToken": token, "progress": done, **({"message": text} if text else {})}
    return to_json({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}) + b"\n"

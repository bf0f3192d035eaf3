"""The primitive `mcp`: one tool of an MCP server, called through the chain like any other tool.

`config`, put together from all links of the chain:

    transport      `stdio`: `command` and `args` start the server in the sandbox, as in `rye.executor.primitives.program`;
                   `http`: `url` and `headers` as in `rye.executor.primitives.http_request`
    tool_name      the name that the server gives the tool
    tool_digest    SHA-256 of the tool as it was when it was imported, see `digest_of`

At each call the server says what its tools are. A description or a schema that is another one than the signed digest is not
called: the server may have been exchanged, or say something new to a model. What it answers is text of a stranger, and cleaned.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from rye._version import __version__
from rye.call import context, safe_text
from rye.call.safe_text import plain
from rye.errors import RyeError, TrustError
from rye.executor import isolated
from rye.executor.chain import Chain, Started, declared, malformed
from rye.executor.primitives import http_request, program
from rye.executor.worker import framed
from rye.plain_class import Record, changed
from rye.workspace import pictures

if TYPE_CHECKING:
    from rye.executor.worker_pool import Worker

PROTOCOL: Final = "2025-06-18"
_TRANSPORTS: Final = ("stdio", "http")
_MOST_BYTES: Final = 16 * 1024 * 1024
_MOST_IN_ALL: Final = 4 * _MOST_BYTES
_MOST_PAGES: Final = 50
_MOST_TOOLS: Final = 1_000
_ERRORS_MAX: Final = 4_096
# Of a tool's fields, those that a model is not told.
_UNTOLD: Final = ("_meta", "icons")
_BEFORE: Final = 60
_SHOWN: Final = 400
_MOST_DIFFERENCES: Final = 8


class Session:
    """A connection to a server."""

    _id = 0

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request, and return the result of the response that has its id. Errors `mcp_error`, `mcp_server_failed`."""
        self._id += 1
        coming = self._asked({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        return _answered(next(one for one in coming if one.get("id") == self._id and "method" not in one))

    def notify(self, method: str) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method})

    def close(self) -> None:
        """End the connection, and the server where this process started it."""

    def _send(self, message: dict[str, Any]) -> Any:
        raise NotImplementedError

    def _asked(self, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Send a message, and yield what comes; raises RyeError where nothing does any more."""
        raise NotImplementedError


class Plan(Record):
    """How the server is reached, and which of its tools is called."""

    tool_name: str
    digest: str
    imported: tuple[str, dict[str, Any]]
    server: program.Plan | http_request.Plan


def plan(chain: Chain) -> Plan:
    """Check what a chain declares. Errors as `rye.executor.chain.Primitive.plan`."""
    config = declared(chain, "config", dict.fromkeys(("transport", "tool_name", "tool_digest"), str))
    transport, name, digest = (config.get(part, "") for part in ("transport", "tool_name", "tool_digest"))
    if transport not in _TRANSPORTS or not name or "tool_digest" not in config:
        raise malformed(chain.tool.id, f"config needs transport ({' or '.join(_TRANSPORTS)}), tool_name and tool_digest")
    server = program.plan(chain) if transport == "stdio" else http_request.plan(chain)
    return Plan(name, digest, (chain.tool.docstring, chain.tool.schema), server)


def foresee(chain: Chain, plan: Plan, root: str) -> dict[str, Any] | None:
    """Return the confinement of a call, without starting anything; None for a request."""
    server = plan.server
    return (
        program.foresee(chain, server, root) if isinstance(server, program.Plan) else http_request.foresee(chain, server, root)
    )


def start(chain: Chain, plan: Plan, parameters: dict[str, Any], root: str) -> Started:
    """Make a call ready. Errors as `start` of the primitive that reaches the server."""
    found = reached(chain, plan, root)
    return changed(found, work=partial(_called, found.work, plan, parameters))


def reached(chain: Chain, plan: Plan, root: str) -> Started:
    """Return what opens a session with the server, under what its call is confined to."""
    if isinstance(plan.server, http_request.Plan):
        return Started(partial(HttpSession, plan.server), http_request.foresee(chain, plan.server, root))
    message, worker, warnings = program.waiting(chain, plan.server, {}, root)
    return Started(partial(StdioSession, worker, message), worker.reported, warnings)


def _called(connect: Callable[[], Session], plan: Plan, parameters: dict[str, Any]) -> dict[str, Any]:
    session = connect()
    try:
        greet(session)
        tool = next((one for one in listed(session) if one.get("name") == plan.tool_name), None)
        if tool is None:
            raise RyeError("mcp_tool_missing", f"The server has no tool {plain(plan.tool_name)} any more.", "Import it again.")
        if digest_of(tool) != plan.digest:
            changed = differences(plan.imported, tool)
            # The new texts stand in the details alone: what a server says now is for a person, before it is for a model.
            raise TrustError(
                "mcp_tool_changed",
                f"The server's tool {plain(plan.tool_name)} is not as it was imported. What differs: {', '.join(changed)}.",
                "A person looks at the difference with `rye mcp import`, which shows it and asks.",
                differences=[{"what": what, "imported": old, "now": new} for what, (old, new) in changed.items()],
            )
        return _result(session.request("tools/call", {"name": plan.tool_name, "arguments": parameters}))
    finally:
        session.close()


def greet(session: Session) -> dict[str, Any]:
    """Open a session; return what the server says of itself."""
    told = session.request(
        "initialize",
        {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "rye-workspace", "version": __version__}},
    )
    session.notify("notifications/initialized")
    return told


def listed(session: Session) -> Iterator[dict[str, Any]]:
    """Yield the tools that a server lists, page by page: no page is kept for the next."""
    cursor: Any = None
    for _ in range(_MOST_PAGES):
        page = session.request("tools/list", {} if cursor is None else {"cursor": cursor})
        found = page.get("tools")
        yield from (one for one in found if isinstance(one, dict)) if isinstance(found, list) else ()
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):
            break


def tools(session: Session) -> list[dict[str, Any]]:
    """Return the tools that a server lists, the first 1,000 of them."""
    return list(islice(listed(session), _MOST_TOOLS))


def said(tool: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the description and the schema of the parameters that an item gets for a server's tool."""
    schema = tool.get("inputSchema")
    described = str(tool.get("description") or tool.get("name", ""))
    return described, schema if isinstance(schema, dict) else {"type": "object", "properties": {}}


def differences(imported: tuple[str, dict[str, Any]], tool: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return what a server says otherwise of a tool than at its import: what differs -> the former and the new text, cut.

    `imported` is what `said` told then. Of the rest the digest alone is known, so it has no former text.
    """
    (old, old_schema), (new, new_schema) = imported, said(tool)
    found: dict[str, tuple[str, str]] = {}
    if old.strip() != new.strip():
        # From shortly before the place where they part: a long text may be changed at its end.
        same = next(
            (at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), min(len(old), len(new))
        )
        at = max(0, same - _BEFORE)
        found["description"] = (plain(old[at:], _SHOWN), plain(new[at:], _SHOWN))
    parts: dict[str, tuple[Any, Any]] = {"schema": ({**old_schema, "properties": 0}, {**new_schema, "properties": 0})}
    befores, afters = _properties(old_schema), _properties(new_schema)
    for name in dict.fromkeys([*befores, *afters]):
        parts[f"parameter {plain(str(name), 60)}"] = (befores.get(name), afters.get(name))
    found |= {
        what: (plain(_as_json(one), _SHOWN), plain(_as_json(other), _SHOWN))
        for what, (one, other) in parts.items()
        if one != other
    }
    if not found:
        rest = {name: value for name, value in tool.items() if name not in (*_UNTOLD, "name", "description", "inputSchema")}
        what = f"title, annotations or output schema ({plain(', '.join(rest), 80) or 'none now'})"
        found[what] = "", plain(_as_json(rest), _SHOWN)
    return dict(list(found.items())[:_MOST_DIFFERENCES])


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _as_json(value: Any) -> str:
    return "" if value is None else json.dumps(value, sort_keys=True, ensure_ascii=False)


def digest_of(tool: dict[str, Any]) -> str:
    """Return the SHA-256 of all that a server says of a tool to a model: name, title, description, schemas, annotations."""
    said = {name: value for name, value in tool.items() if name not in _UNTOLD}
    return sha256(json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()).hexdigest()


def _result(answer: dict[str, Any]) -> dict[str, Any]:
    content = answer.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    text = "\n".join(map(_told, parts))
    structured = answer.get("structuredContent")
    why = http_request.unfit(structured)
    if not text and structured is not None and not why:
        text = json.dumps(structured, ensure_ascii=False)
    result: dict[str, Any] = {"success": True, **http_request.bounded(text)}
    if why:
        result["left_out"] = {"structured": why}
    elif isinstance(structured, dict):
        result["structured"] = structured
    if answer.get("isError") is True:
        why = plain(text, 2_000, lines=True) or "The tool failed without a word."
        result |= {"success": False, "error": why, "code": "mcp_tool_failed"}
    cleaned: dict[str, Any] = safe_text.clean(result if safe_text.is_encodable(result) else safe_text.encodable(result))
    # Behind the cleaning: pictures are no text, and are large.
    media = [shown for part in parts if (shown := _picture(part)) is not None]
    return {**cleaned, "media": media} if media else cleaned


def _picture(part: dict[str, Any]) -> dict[str, str] | None:
    """Return a picture of an answer as a part of a result's `media`, None for any other part.

    Anything else is left out: a model's interface refuses the whole conversation for a picture that it cannot read.
    """
    inner = part.get("resource") if part.get("type") == "resource" else part
    data = (inner.get("blob") if part.get("type") == "resource" else inner.get("data")) if isinstance(inner, dict) else None
    if part.get("type") not in ("image", "resource") or not isinstance(data, str) or len(data) > pictures.MOST * 4 // 3 + 4:
        return None
    try:
        raw = base64.b64decode(data, validate=True)
    except ValueError:
        return None
    mime = pictures.kind(raw)
    if mime is None or not all(pictures.dimensions(raw, mime) or (0,)):
        return None
    return {"type": "image", "data": base64.b64encode(raw).decode(), "mimeType": mime}


def _told(part: dict[str, Any]) -> str:
    """Return a part of an answer as text: a resource with its address and, where it has one, its text."""
    kind = part.get("type")
    if kind == "text":
        return str(part.get("text", ""))
    resource = part.get("resource") if kind == "resource" else part if kind == "resource_link" else None
    if not isinstance(resource, dict):
        return f"[{plain(str(part.get('mimeType') or kind), 40)}]"
    text = resource.get("text")
    head = f"[{kind}: {plain(str(resource.get('uri', '')), 400)}]"
    return f"{head}\n{text}" if isinstance(text, str) else head


def _answered(message: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a response."""
    error = message.get("error")
    if isinstance(error, dict):
        told = plain(str(error.get("message", "")), 400)
        why = f"The server refused: {told} ({plain(str(error.get('code')), 20)})."
        raise RyeError("mcp_error", why, "Look at the parameters.")
    result = message.get("result")
    return result if isinstance(result, dict) else {}


def _failed(why: str, advice: str = "Look at its command or its URL.") -> RyeError:
    return RyeError("mcp_server_failed", f"The MCP server does not answer as one: {why}.", advice)


def _advice(words: list[str], root: str, permissions: Container[str]) -> str:
    """Return what to do about a server that ended: the sandbox may hold what it needs, and its own words do not say so."""
    hidden = [word for word in words if os.path.isabs(word) and os.path.exists(word) and not f"{word}/".startswith(f"{root}/")]
    if hidden:
        place = plain(hidden[0], 200)
        return f"The sandbox hides most of what lies outside the project, as {place} does: install it in the project."
    if "run" not in permissions:
        return "Look at its command. If it starts other programs, as npx does, it needs the permission run (npx: network too)."
    return "Look at its command."


class StdioSession(Session):
    """A server that runs in the sandbox and speaks by its standard streams: one JSON message a line."""

    def __init__(self, worker: Worker, message: dict[str, Any]) -> None:
        """Have the waiting process become the server."""
        self._worker = worker
        self._words: list[str] = message["argv"][1:]
        self._coming = self._messages()
        self._errors = b""
        context.deadline().when_expired(worker.kill)
        self._worker.send(framed({**message, "input": None, "folder": None, "filter": worker.report["kind"] != "none"}))

    def _send(self, message: dict[str, Any]) -> None:
        self._worker.send(json.dumps(message).encode() + b"\n")

    def _asked(self, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self._send(message)
        for found in self._coming:
            if "method" in found and "id" in found:
                # A server may ask whether its client lives; it may have nothing else of us, neither a model nor folders.
                refusal = {"error": {"code": -32601, "message": "not offered"}}
                self._send({"jsonrpc": "2.0", "id": found["id"], **({"result": {}} if found["method"] == "ping" else refusal)})
            yield found

    def _messages(self) -> Iterator[dict[str, Any]]:
        """Yield what the server sends, as long as it is asked."""
        rest, total = bytearray(), 0
        while True:
            block = self._read()
            total += len(block)
            first, *lines = block.split(b"\n")
            # A long line comes in many blocks, and is put together once.
            rest += first
            if len(rest) > _MOST_BYTES:
                raise _failed("a message has more than 16 MB")
            if total > _MOST_IN_ALL:
                raise _failed("it sent more than 64 MB in one call")
            if lines:
                yield from _objects([bytes(rest), *lines[:-1]])
                rest = bytearray(lines[-1])

    def _read(self) -> bytes:
        limit = context.deadline()
        found = self._worker.read((self._worker.printed, self._worker.errors), limit.remaining())
        limit.check()
        self._errors = (self._errors + found.get(self._worker.errors, b""))[-_ERRORS_MAX:]
        block = found.get(self._worker.printed)
        if block == b"":
            policy, last = self._worker.policy, isolated.last_words(self._errors)
            advice = _advice(self._words, policy.root, policy.permissions)
            raise _failed(f"it ended{f'. Its last words: {last}' if last else ' without a word'}", advice)
        return block or b""

    def close(self) -> None:
        """End the server with all that it started."""
        isolated.finish(self._worker)


class HttpSession(Session):
    """A server that is reached by HTTP: each message is a request, its answer JSON or a stream of events."""

    def __init__(self, request: http_request.Plan) -> None:
        """Remember where the server is; nothing is asked yet."""
        self._request = request
        self._headers: dict[str, str] = {}

    def _asked(self, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        answer = self._send(message)
        if message["method"] == "initialize":
            session = answer.headers.get("mcp-session-id", "")
            named = {"Mcp-Session-Id": session} if session.isprintable() and session else {}
            self._headers = {"MCP-Protocol-Version": PROTOCOL, **named}
        yield from _messages(answer)
        raise _failed(f"HTTP {answer.status} without an answer")

    def _send(self, message: dict[str, Any]) -> Any:
        accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        answer = http_request.fetched(self._request, "POST", message, {}, [], {**accept, **self._headers})
        if answer.status >= 400:
            raise _failed(f"HTTP {answer.status} {plain(answer.reason, 80)}")
        return answer


def _messages(answer: Any) -> Iterator[dict[str, Any]]:
    bodies: list[str] = [answer.body.decode("utf-8", "replace")]
    if "text/event-stream" in answer.headers.get("content-type", ""):
        events = (one.split("\n") for one in bodies[0].replace("\r\n", "\n").split("\n\n"))
        bodies = ["\n".join(line[5:].removeprefix(" ") for line in one if line.startswith("data:")) for one in events]
    return _objects(bodies)


def _objects(texts: Iterable[str | bytes]) -> Iterator[dict[str, Any]]:
    """Yield the messages that texts are, of those that are none, nothing."""
    for text in texts:
        found: Any = None
        with suppress(ValueError, RecursionError):
            found = json.loads(text)
        yield from (one for one in (found if isinstance(found, list) else [found]) if isinstance(one, dict))

"""Calls of tools for an MCP server: with progress and cancellation, a limit for each tool, and one text as result.

Some clients show their model the text, others `structuredContent` as escaped JSON, some both. So an answer is one text part
and nothing else, unless the server was started with `--structured` for programs. A `resource_link` is never among the parts:
several clients fail at it, and the text names the call that reads on. Only a tool whose answer is a picture, a sound or a file
adds parts: its result's `media` has them in the protocol's own shape, and its `output` says in words what they are.

A tool whose answer is too large is asked again for a smaller window, so that its own notice of the cut is true. Nothing is cut
here: a result that is still too large is stored whole, and the answer says where. That happens where a tool has no window, or
must not run twice.
"""

from __future__ import annotations

import contextvars
import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from pydantic_core import to_json

from rye.agents.model_text import Answer, Sessions
from rye.call import context
from rye.call.results import call_text
from rye.call.safe_text import encodable
from rye.errors import RyeError
from rye.executor import turns
from rye.mcp_server.protocol import Done, Report
from rye.plain_class import Record

MOST: Final = 37_000
"""Bytes of JSON of a result's text, and of its fields. The rest up to 40,000 is left for what a client counts besides: some
write the JSON anew, with blanks behind its signs."""

REPEATABLE_BUDGET: Final = 30_000
"""The window first asked of a tool that can be asked again (bytes of UTF-8)."""

SINGLE_BUDGET: Final = 16_000
"""The window of a tool that runs once: as JSON its text takes up to twice that, in rare cases more."""

LEAST_BUDGET: Final = 1_000

MOST_MEDIA: Final = 8 << 20
"""Bytes of JSON of all other parts of a result together; what is beyond is left out, and the text says so."""

_SMALL_FIELD = 400
_PARTS: Final = ("image", "audio", "resource")


class ToolResult(dict[str, Any]):
    """A tool result (JSON of the protocol), and its content as JSON where that was written to measure it."""

    content_json: bytes | None = None


class ResultWriter(Record):
    """How a server writes its results.

    Attributes:
        store: stores a text and returns the id by which `job` reads it.
        structured: put the fields into `structuredContent` too, and the item that answered into `_meta`.
        sessions: what each session was told.
    """

    store: Callable[[str], str]
    structured: bool
    sessions: Sessions

    def result_of(self, response: dict[str, Any], session: str = "") -> ToolResult:
        """Return the tool result of a response of the executor (JSON of the protocol)."""
        data = _encodable(response.get("data") or {})
        if isinstance(inner := data.get("data"), dict) and "chain" in data and "media" in inner:
            # rye_execute answers with the inner call's fields one level down.
            rest = {name: value for name, value in inner.items() if name != "media"}
            data = {**data, "data": rest, "media": inner["media"]}
        media, left_out = _media(data.get("media"))
        response = {**response, "data": {name: value for name, value in data.items() if name != "media"}}
        answer = self.sessions.answer(response, session)
        if left_out:
            answer = Answer(
                f"{answer.text}\n[{left_out} of its parts left out: too large, or of no known kind]", answer.is_error
            )
        result = ToolResult(
            resultType="complete", content=[{"type": "text", "text": answer.text}, *media], isError=answer.is_error
        )
        if self.structured:
            result["structuredContent"] = response["data"]
        if meta := _meta(response, structured=self.structured):
            result["_meta"] = meta
        return result

    def stored_instead(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return, in place of a result that is too large, one that says where the whole of it is stored."""
        failed = result["isError"]
        # The fields hold more than the text, and are given whole to those who asked for them.
        structured = "structuredContent" in result
        text = str(result["content"][0]["text"])
        whole = json.dumps(result["structuredContent"], ensure_ascii=False, indent=1) if structured else text
        size = f"{len(whole.encode()):,} bytes"
        said = f"The tool {'failed' if failed else 'ran'}; its result of {size} is more than one answer holds."
        stored = ""
        try:
            # Storing may fail (a full disk); the tool has run, so the call must answer even then.
            stored = self.store(whole)
            said += f" Call {call_text('job', action='read', job_id=stored)} to see it, or ask for less in one call."
        except RyeError as err:
            said += f" {err} Ask for less in one call."
        shorter = {**result, "content": [{"type": "text", "text": said}]}
        if structured:
            small = {name: value for name, value in result["structuredContent"].items() if _size(value) <= _SMALL_FIELD}
            fields = {**dict(list(small.items())[:20]), "success": not failed, "truncated": True, "output": said}
            fields |= {"resource": f"rye://output/{stored}"} if stored else {}
            shorter["structuredContent"] = {**fields, "error": small.get("error", said)} if failed else fields
        return shorter


def _media(parts: object) -> tuple[list[dict[str, Any]], int]:
    """Return the parts of a result that are none of its text, as far as a client can read them, and how many are left out."""
    given = parts if isinstance(parts, list) else []
    found, room = [], MOST_MEDIA
    for part in given:
        read = _part(part) if isinstance(part, dict) else None
        size = 0 if read is None else _size(read)
        if read is not None and size <= room:
            found.append(read)
            room -= size
    return found, len(given) - len(found)


def _part(part: dict[str, Any]) -> dict[str, Any] | None:
    """Return a part with the members that each revision of the protocol knows; None where one that it needs is missing."""
    kind = str(part.get("type"))
    inner = part.get("resource") if kind == "resource" else part
    if kind not in _PARTS or not isinstance(inner, dict):
        return None
    # In this order: an answer is the same text in every process.
    needed = ("uri", "text" if "text" in inner else "blob") if kind == "resource" else ("data", "mimeType")
    found = {name: inner[name] for name in (*needed, "mimeType") if isinstance(inner.get(name), str)}
    made = {"type": kind, "resource": found} if kind == "resource" else {"type": kind, **found}
    return made if found.keys() >= set(needed) else None


def size_of(result: ToolResult) -> int:
    """Return the bytes of JSON of a tool result's text, or of its fields where these are larger."""
    fields = result.get("structuredContent")
    text = to_json(result["content"][:1])
    if len(result["content"]) == 1:
        # Kept for the answer's line: of a call over MCP writing it takes the longest.
        result.content_json = text
    return max(len(text), 0 if fields is None else _size(fields))


def next_budget(budget: int, size: int) -> int | None:
    """Return the window to ask for after a result of this size; None when it fits, or no window would help."""
    # Below the least window a smaller one cannot hold one line and its notice.
    if size <= MOST or budget <= LEAST_BUDGET:
        return None
    # In proportion, less a tenth as escapes are spread unevenly; always smaller, so that the loop ends.
    return max(LEAST_BUDGET, min(budget * MOST // size * 9 // 10, budget - LEAST_BUDGET // 2))


def _size(value: object) -> int:
    # As the protocol library writes it; many times faster than the standard library.
    return len(to_json(value))


def _meta(response: dict[str, Any], *, structured: bool) -> dict[str, Any]:
    """Return what the user should know; for programs also the item that answered.

    Some clients show their model `_meta` too, so it is empty where nothing is the matter.
    """
    item = response.get("item")
    meta: dict[str, Any] = {}
    if item and structured:
        meta["rye/item"] = {"id": response["item_id"], **{name: item[name] for name in ("space", "digest", "signer")}}
    if response.get("warnings"):
        meta["rye/warnings"] = response["warnings"]
    return meta


# Of these classes any value can be written.
_SAFE: Final = (int, bool, type(None))


def _encodable(data: dict[str, Any]) -> dict[str, Any]:
    """Return data that UTF-8 can carry: a lone surrogate of a foreign tool's is shown as its escape."""
    text = data.get("output")
    try:
        # The text by itself: written as JSON only to try, it would take the longest.
        if type(text) is str:
            text.encode()
            rest = {name: value for name, value in data.items() if name != "output" and value.__class__ not in _SAFE}
            if not all(value.__class__ is str and value.isascii() for value in rest.values()):
                _size(rest)
        else:
            _size(data)
    except ValueError:
        found: dict[str, Any] = encodable(data)
        return found
    return data


MOST_AT_ONCE: Final = 32
"""Calls of one tool that run at a time; each tool has its own limit."""

_PROGRESS_EVERY = 0.1
_PROGRESS_TAIL = 2_000
_HEARTBEAT_SECONDS = 5.0


class Request(Record):
    """One call of a tool.

    Attributes:
        item_id: the tool's id.
        arguments: as given; the executor validates them.
        limited_as: calls with the same value share one limit: the id of the tool that will run.
        repeatable: whether it may be asked again for a smaller answer: it changes nothing.
        actor: the client and its session, see `context.CallOptions`.
    """

    item_id: str
    arguments: dict[str, Any]
    limited_as: str
    repeatable: bool
    actor: str = ""


class _Places:
    """How many run of what shares a limit, and what waits."""

    def __init__(self) -> None:
        self.taken = 0
        self.waiting: deque[Callable[[], bool]] = deque()


class Calls:
    """Runs calls for one project, each in the thread that brings it. Any thread may use it."""

    def __init__(
        self,
        run: Callable[[str, dict[str, Any], context.CallOptions], dict[str, Any]],
        written: ResultWriter,
        root: tuple[int, int] | None,
    ) -> None:
        """Take what answers a call (`rye.execute`, bound to a project), what writes the answers, and the project's identity."""
        self._run = run
        self._root = root
        self._written = written
        self._places = defaultdict[str, _Places](_Places)
        self._changed = threading.Condition(threading.Lock())
        self._lasting: list[_Progress] = []
        self._is_told = False

    def run(self, request: Request, cancellation: context.Cancellation, done: Done, report: Report | None = None) -> None:
        """Run a call and tell `done`; where as many run as may, return: a thread that becomes free runs it.

        `report` is told what a running command prints; None where nobody asked.
        """
        progress = None if report is None else _Progress(report, cancellation)

        def work() -> bool:
            """Run it, and tell whether its place is free again; else it was given to another."""
            answer, failure = None, None
            # One that was cancelled while it waited is over.
            if not cancellation.cancelled:
                try:
                    answer = self._answer(request, cancellation, None if progress is None else progress.take, late)
                except context.Abandoned:
                    return False
                except BaseException as err:  # noqa: BLE001 - whoever waits is to know
                    failure = err
            end(answer, failure)
            return True

        def late(response: dict[str, Any]) -> None:
            end(self._written.result_of(response, request.actor), None)
            # The place goes to another, though the tool is not ended; nothing of this call counts for that one.
            contextvars.Context().run(self._go_on, request.limited_as)

        def end(answer: dict[str, Any] | None, failure: BaseException | None) -> None:
            if progress is not None:
                progress.look(is_last=True)
            done(answer, failure)

        with self._changed:
            places = self._places[request.limited_as]
            waits = places.taken >= MOST_AT_ONCE
            if waits:
                places.waiting.append(work)
            else:
                places.taken += 1
        if progress is not None:
            turn = None if waits else turns.current.get()
            if turn is None:
                self._follow(progress)
            else:
                # A call that is over in a moment needs no thread for it.
                turn.beside(partial(self._follow, progress))
        if not waits and work():
            self._go_on(request.limited_as)

    def _follow(self, progress: _Progress) -> None:
        """Have the progress of a call that lasts or waits sent; one thread does so for all of them."""
        with self._changed:
            self._lasting.append(progress)
            self._is_told = self._is_told or turns.start(self._send)

    def _send(self) -> None:
        while True:
            time.sleep(_PROGRESS_EVERY)
            with self._changed:
                self._lasting = lasting = [one for one in self._lasting if not one.ended]
                # Decided with the lock held: a call that comes now starts another thread.
                self._is_told = bool(lasting)
            for one in lasting:
                one.look()
            if not lasting:
                return

    def _go_on(self, name: str) -> None:
        """Do what waits for a place that became free, and give the place back in the end."""
        places = self._places[name]
        while True:
            with self._changed:
                following = places.waiting.popleft() if places.waiting else None
                if following is None:
                    places.taken -= 1
                    self._changed.notify_all()
                    return
            if not following():
                return

    def _answer(
        self,
        request: Request,
        cancellation: context.Cancellation,
        on_output: Callable[[str], None] | None,
        late: Callable[[dict[str, Any]], None],
    ) -> dict[str, Any]:
        budget: int | None = REPEATABLE_BUDGET if request.repeatable else SINGLE_BUDGET
        while budget is not None:
            # By position, a model's defaults and `late` at its own: a record is made twice as fast so.
            options = context.CallOptions(
                budget, on_output, cancellation, request.actor, self._root, True, None, None, "", False, late
            )
            response = self._run(request.item_id, request.arguments, options)
            result = self._written.result_of(response, request.actor)
            size = size_of(result)
            # Asked again only where that changes nothing: a second run of a command could.
            budget = next_budget(budget, size) if request.repeatable and not cancellation.cancelled else None
        return result if size <= MOST else self._written.stored_instead(result)

    def settle(self, seconds: float) -> None:
        """Wait, for so long at most, until the calls that were cancelled have ended what they started."""
        with self._changed:
            self._changed.wait_for(lambda: not any(one.taken for one in self._places.values()), seconds)


class _Progress:
    """What a running command prints, on its way to the caller: in few notifications, whatever the command does.

    While it prints nothing, a notification without text comes every few seconds: clients give up a request of which they
    hear nothing, some after a minute. The number is that of the bytes printed and of these notifications, so it always rises.
    """

    def __init__(self, report: Report, cancellation: context.Cancellation) -> None:
        self._report, self._cancellation = report, cancellation
        self._lock = threading.Lock()
        self._number = 0
        self._tail = ""
        self._told = time.monotonic()
        self.ended = False

    def take(self, text: str) -> None:
        """Take a piece of output, from any thread."""
        with self._lock:
            self._number += len(text.encode("utf-8", "replace"))
            # Only the tail: a command that prints without end must not fill the memory between two reports.
            self._tail = (self._tail + text)[-_PROGRESS_TAIL:]

    def look(self, *, is_last: bool = False) -> None:
        """Send what is due: output, or that the call still runs; nothing after the last."""
        with self._lock:
            if self.ended:
                return
            self.ended = is_last
            if not self._tail:
                if is_last or time.monotonic() - self._told < _HEARTBEAT_SECONDS:
                    return
                self._number += 1
            # A cancelled call is told nothing more.
            if not self._cancellation.cancelled:
                self._report(float(self._number), self._tail)
            self._tail, self._told = "", time.monotonic()

"""Calls of tools for an MCP server: with progress and cancellation, and a limit for each tool."""

from __future__ import annotations

import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from rye.call import context
from rye.executor import run_code
from rye.mcp_server import results
from rye.mcp_server.protocol import Done, Report
from rye.plain_class import Record

MOST_AT_ONCE: Final = 32
"""Calls of one tool that run at a time; each tool has its own limit."""

MOST_WAITING: Final = 1_000
"""Calls of one tool that may wait for a place."""

_PROGRESS_EVERY = 0.1
_PROGRESS_TAIL = 2_000
_HEARTBEAT_SECONDS = 5.0
# Calls often follow each other: so long the thread waits for the next one.
_IDLE_TICKS = 20


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
        self.waiting: deque[Callable[[], object]] = deque()


class Calls:
    """Runs calls for one project, each in the thread that brings it. Any thread may use it."""

    def __init__(
        self,
        run: Callable[[str, dict[str, Any], context.CallOptions], dict[str, Any]],
        written: results.ResultWriter,
        root: tuple[int, int] | None,
    ) -> None:
        """Take what answers a call (`rye.execute`, bound to a project), what writes the answers, and the project's identity."""
        self._run = run
        self._root = root
        self._written = written
        self._places: dict[str, _Places] = {}
        self._changed = threading.Condition(threading.Lock())
        self._progress = _Ticker()

    def run(self, request: Request, cancellation: context.Cancellation, done: Done, report: Report | None = None) -> None:
        """Run a call and tell `done`; where as many run as may, return: a thread that becomes free runs it.

        `report` is told what a running command prints; None where nobody asked.
        """
        progress = None if report is None else self._progress.begin(report, cancellation)

        def work() -> bool:
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
                self._progress.end(progress)
            done(answer, failure)

        if not self.bounded(request.limited_as, work):
            end(self._written.result_of(_busy(request.item_id), request.actor), None)

    def bounded(self, name: str, work: Callable[[], object]) -> bool:
        """Do work that handles its own failures, or let it wait, with others of that name; False where too much waits.

        Work that returns False gave its place to another.
        """
        with self._changed:
            places = self._places.get(name)
            if places is None:
                places = self._places[name] = _Places()
            if places.taken >= MOST_AT_ONCE:
                # Refused at once: a queue without an end would hold memory for calls whose clients have gone.
                if len(places.waiting) >= MOST_WAITING:
                    return False
                places.waiting.append(work)
                return True
            places.taken += 1
        if work() is not False:
            self._go_on(name)
        return True

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
            if following() is False:
                return

    def _answer(
        self,
        request: Request,
        cancellation: context.Cancellation,
        on_output: Callable[[str], None] | None,
        late: Callable[[dict[str, Any]], None],
    ) -> dict[str, Any]:
        budget: int | None = results.REPEATABLE_BUDGET if request.repeatable else results.SINGLE_BUDGET
        while budget is not None:
            # By position, a model's defaults and `late` at its own: a record is made twice as fast so.
            options = context.CallOptions(
                budget, on_output, cancellation, request.actor, self._root, True, None, None, "", False, late
            )
            response = self._run(request.item_id, request.arguments, options)
            result = self._written.result_of(response, request.actor)
            size = results.size_of(result)
            # Asked again only where that changes nothing: a second run of a command could.
            budget = results.next_budget(budget, size) if request.repeatable and not cancellation.cancelled else None
        return self._written.fitted(result, size)

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
        self._ended = False

    def take(self, text: str) -> None:
        """Take a piece of output, from any thread."""
        with self._lock:
            self._number += len(text.encode("utf-8", "replace"))
            # Only the tail: a command that prints without end must not fill the memory between two reports.
            self._tail = (self._tail + text)[-_PROGRESS_TAIL:]

    def look(self, *, is_last: bool = False) -> None:
        """Send what is due: output, or that the call still runs; nothing after the last."""
        with self._lock:
            if self._ended:
                return
            self._ended = is_last
            if not self._tail:
                if is_last or time.monotonic() - self._told < _HEARTBEAT_SECONDS:
                    return
                self._number += 1
            # A cancelled call is told nothing more.
            if not self._cancellation.cancelled:
                self._report(float(self._number), self._tail)
            self._tail, self._told = "", time.monotonic()


class _Ticker:
    """Sends the progress of all calls that have any, from one thread, which lives as long as there are such calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._going: set[_Progress] = set()
        self._is_alive = False

    def begin(self, report: Report, cancellation: context.Cancellation) -> _Progress:
        made = _Progress(report, cancellation)
        with self._lock:
            self._going.add(made)
            starts, self._is_alive = not self._is_alive, True
        if starts:
            try:
                run_code.start(self._work)
            except RuntimeError:
                # No thread can be started: this call goes without.
                with self._lock:
                    self._is_alive = False
        return made

    def end(self, progress: _Progress) -> None:
        """Send what is left, and forget it."""
        with self._lock:
            self._going.discard(progress)
        progress.look(is_last=True)

    def _work(self) -> None:
        idle = 0
        while idle < _IDLE_TICKS:
            time.sleep(_PROGRESS_EVERY)
            with self._lock:
                going = list(self._going)
                idle = 0 if going else idle + 1
                # Decided with the lock held: a call that begins now starts another thread.
                self._is_alive = idle < _IDLE_TICKS
            for one in going:
                one.look()


def _busy(item_id: str) -> dict[str, Any]:
    error = f"{MOST_WAITING:,} calls of this tool are waiting already. Wait for some answers, then call again."
    data = {"success": False, "error": error, "code": "server_busy"}
    return {"status": "error", "item_id": item_id, "data": data, "code": "server_busy", "error": error}

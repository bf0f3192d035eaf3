"""Calls of tools for an MCP server: in parallel threads, with progress and cancellation, and a limit for each tool."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rye.call import context
from rye.executor import run_code
from rye.mcp_server import results
from rye.plain_class import Record

if TYPE_CHECKING:
    import asyncio

    from anyio import CapacityLimiter

MOST_AT_ONCE: Final = 32
"""Calls of one tool that run at a time; each tool has its own limit."""

MOST_WAITING: Final = 1_000
"""Calls of one tool that may wait for a place."""

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
        report: sends a progress notification (a number that rises, the newest text); None when nobody asked for any.
        actor: the client and its session, see `context.CallOptions`.
    """

    item_id: str
    arguments: dict[str, Any]
    limited_as: str
    repeatable: bool
    report: Callable[[float, str], Awaitable[None]] | None = None
    actor: str = ""


class Calls:
    """Runs calls for one project. Its methods belong to one event loop."""

    def __init__(
        self, run: Callable[[str, dict[str, Any], context.CallOptions], dict[str, Any]], written: results.Results
    ) -> None:
        """Take what answers a call (`rye.execute`, bound to a project), and what writes the answers."""
        self._run = run
        self._written = written
        self._limiters: dict[str, CapacityLimiter] = {}
        self._running: set[threading.Event] = set()
        # Places in limiters that other threads have done with. Only the loop's thread may give them back.
        self._done: deque[tuple[CapacityLimiter, object]] = deque()
        self._waiting = 0

    async def result(self, request: Request) -> dict[str, Any]:
        """Return the tool result of a call (JSON of the protocol).

        When the caller's task is cancelled, so is the call: what it started is ended.
        """
        limiter = self._limiter(request.limited_as)
        # Refused at once: a queue without an end would hold memory for calls whose clients have gone.
        if limiter.statistics().tasks_waiting >= MOST_WAITING:
            return self._written.result_of(_busy(request.item_id), request.actor)
        if request.report is None:
            return await self._in_thread(request, limiter, None)
        import asyncio

        import anyio

        progress = _Progress(request.report, asyncio.get_running_loop())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(progress.pump)
            result = await self._in_thread(request, limiter, progress.take)
            await progress.flush()
            tasks.cancel_scope.cancel()
        return result

    def begin(
        self,
        request: Request,
        cancellation: context.Cancellation,
        tell: Callable[[dict[str, Any] | None, BaseException | None], None],
    ) -> bool:
        """Run a call in a thread, which tells its result or its failure; False where it cannot begin at once.

        Nothing passes through the loop again, so it is not woken for the answer.
        """
        import asyncio

        import anyio

        limiter, place, over = self._limiters.get(request.limited_as), object(), threading.Event()
        if limiter is None:
            return False
        self._give_back()
        try:
            limiter.acquire_on_behalf_of_nowait(place)
        except anyio.WouldBlock:
            return False
        loop = asyncio.get_running_loop()
        progress = None if request.report is None else _LateProgress(request.report, cancellation)

        def work() -> None:
            self._running.add(over)
            answer, failure = None, None
            try:
                answer = self._answer(request, cancellation, None if progress is None else progress.take)
            except BaseException as err:  # noqa: BLE001 - whoever waits is to know
                failure = err
            try:
                if progress is None:
                    tell(answer, failure)
                else:
                    progress.over(partial(tell, answer, failure))
            finally:
                self._running.discard(over)
                over.set()
                self._done.append((limiter, place))
                # Looked at after the place is among the others: who waits has looked there after saying so.
                if self._waiting:
                    with contextlib.suppress(RuntimeError):
                        loop.call_soon_threadsafe(self._give_back)

        run_code.start(work)
        return True

    def _give_back(self) -> None:
        while self._done:
            limiter, place = self._done.popleft()
            limiter.release_on_behalf_of(place)

    async def _in_thread(
        self, request: Request, limiter: CapacityLimiter, on_output: Callable[[str], None] | None
    ) -> dict[str, Any]:
        import asyncio

        cancellation = context.Cancellation()
        over = threading.Event()
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[dict[str, Any]] = loop.create_future()

        def work() -> None:
            self._running.add(over)
            try:
                answer = self._answer(request, cancellation, on_output)
            except BaseException as err:  # noqa: BLE001 - whoever waits is to know
                tell = partial(_settle, answered.set_exception, answered, err)
            else:
                tell = partial(_settle, answered.set_result, answered, answer)
            finally:
                self._running.discard(over)
                over.set()
            # A call that was given up may end after the server's loop is gone.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(tell)

        # Before the thread starts, so that waiting calls take no threads.
        await self._enter(limiter)
        try:
            run_code.start(work)
            return await answered
        except asyncio.CancelledError:
            # Sets a flag that the tool's library checks; a Python thread cannot be stopped from outside.
            cancellation.cancel()
            raise
        finally:
            limiter.release()

    def _answer(
        self, request: Request, cancellation: context.Cancellation, on_output: Callable[[str], None] | None
    ) -> dict[str, Any]:
        budget: int | None = results.REPEATABLE_BUDGET if request.repeatable else results.SINGLE_BUDGET
        while budget is not None:
            options = context.CallOptions(budget, on_output, cancellation, request.actor, agent_defaults=True)
            response = self._run(request.item_id, request.arguments, options)
            result = self._written.result_of(response, request.actor)
            size = results.size_of(result)
            # Asked again only where that changes nothing: a second run of a command could.
            budget = results.next_budget(budget, size) if request.repeatable and not cancellation.cancelled else None
        return self._written.fitted(result, size)

    def _limiter(self, name: str) -> CapacityLimiter:
        import anyio

        # One for each tool: long commands must not make reads wait.
        limiter = self._limiters.get(name)
        if limiter is None:
            limiter = self._limiters[name] = anyio.CapacityLimiter(MOST_AT_ONCE)
        return limiter

    async def _enter(self, limiter: CapacityLimiter) -> None:
        """Wait for a free place; take it at once where there is one."""
        import anyio

        self._give_back()
        try:
            limiter.acquire_nowait()
        except anyio.WouldBlock:
            self._waiting += 1
            try:
                self._give_back()
                await limiter.acquire()
            finally:
                self._waiting -= 1

    def settle(self, seconds: float) -> None:
        """Wait, for so long at most, until the calls that were cancelled have ended what they started."""
        end = time.monotonic() + seconds
        for over in list(self._running):
            over.wait(max(0.0, end - time.monotonic()))


def _settle(how: Callable[[Any], None], answered: asyncio.Future[Any], what: Any) -> None:
    # The caller may have been cancelled meanwhile; setting a result then raises InvalidStateError.
    if not answered.done():
        how(what)


class _Progress:
    """What a running command prints, on its way to the caller: in few notifications, whatever the command does.

    While it prints nothing, a notification without text comes every few seconds: clients give up a request of which they
    hear nothing, some after a minute. The number is that of the bytes printed and of these notifications, so it always rises.
    """

    def __init__(self, report: Callable[[float, str], Awaitable[None]], loop: asyncio.AbstractEventLoop) -> None:
        import asyncio

        self._report = report
        self._loop = loop
        self._news = asyncio.Event()
        self._lock = threading.Lock()
        self._bytes = 0
        self._beats = 0
        self._tail = ""

    def take(self, text: str) -> None:
        """Take a piece of output, from any thread."""
        with self._lock:
            self._bytes += len(text.encode("utf-8", "replace"))
            # Only the tail: a command that prints without end must not fill the memory between two reports.
            self._tail = (self._tail + text)[-_PROGRESS_TAIL:]
        # A call that was given up may still print after the server's loop is gone.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._news.set)

    async def pump(self) -> None:
        """Send what came, a few times a second, until cancelled."""
        import anyio

        while True:
            with anyio.move_on_after(_HEARTBEAT_SECONDS) as waited:
                await self._news.wait()
            if waited.cancelled_caught:
                self._beats += 1
                await self._report(float(self._bytes + self._beats), "")
            await self.flush()
            await anyio.sleep(_PROGRESS_EVERY)

    async def flush(self) -> None:
        """Send what came since the last time, if anything did."""
        # Cleared before reading: output that comes meanwhile sets it again, so none is forgotten.
        self._news.clear()
        with self._lock:
            text, self._tail, done = self._tail, "", self._bytes
        if text:
            await self._report(float(done + self._beats), text)


class _LateProgress:
    """The progress of a call that mostly ends before there is any: what reports it begins with the first output, or later.

    It is made in the loop's thread; `take` and `over` are called in that of the tool.
    """

    def __init__(self, report: Callable[[float, str], Awaitable[None]], cancellation: context.Cancellation) -> None:
        import asyncio

        self._report = report
        self._cancellation = cancellation
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._is_over = False
        self._progress: _Progress | None = None
        self._pump: asyncio.Task[None] | None = None
        self._loop.call_later(_PROGRESS_EVERY, self._begin)

    def _begin(self) -> None:
        with self._lock:
            if self._is_over or self._pump is not None:
                return
            progress = self._progress = self._progress or _Progress(self._report, self._loop)
            self._pump = self._loop.create_task(progress.pump())
        # A cancelled call is told nothing more.
        self._cancellation.when_cancelled(self._stop)

    def _stop(self) -> None:
        if self._pump is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._pump.cancel)

    def take(self, text: str) -> None:
        """Take a piece of output."""
        with self._lock:
            if self._progress is None:
                self._progress = _Progress(self._report, self._loop)
        self._progress.take(text)

    def over(self, tell: Callable[[], None]) -> None:
        """Send what is left, and then the answer."""
        with self._lock:
            self._is_over = True
            progress = self._progress
        if progress is None:
            tell()
            return

        async def end() -> None:
            if self._pump is not None:
                self._pump.cancel()
            if not self._cancellation.cancelled:
                await progress.flush()
            tell()

        # Stored, because the loop holds only a weak reference to a task.
        def begin_end() -> None:
            self._ended = self._loop.create_task(end())

        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(begin_end)


def _busy(item_id: str) -> dict[str, Any]:
    error = f"{MOST_WAITING:,} calls of this tool are waiting already. Wait for some answers, then call again."
    data = {"success": False, "error": error, "code": "server_busy"}
    return {"status": "error", "item_id": item_id, "data": data, "code": "server_busy", "error": error}

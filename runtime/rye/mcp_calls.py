"""Calls of tools for an MCP server: side by side in threads, with progress and cancellation, each tool in a lane of its own."""

from __future__ import annotations

import contextlib
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rye import mcp_answers, workers
from rye.record import Record
from rye.toolkit import output

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from anyio import CapacityLimiter

LANE: Final = 32
"""Calls of one tool that run at a time; no tool takes a place of another's."""

MOST_WAITING: Final = 1_000
"""Calls of one tool that may wait for a place."""

_PROGRESS_EVERY = 0.1
_PROGRESS_TAIL = 2_000


class Wanted(Record):
    """One call of a tool.

    Attributes:
        item_id: the tool's id.
        arguments: as given; the corridor validates them.
        lane: calls with the same one share its places; the id of what will run.
        repeatable: whether it may be asked again for a smaller answer: it changes nothing.
        report: sends a progress notification (bytes so far, the newest text); None when nobody asked for any.
    """

    item_id: str
    arguments: dict[str, Any]
    lane: str
    repeatable: bool
    report: Callable[[float, str], Awaitable[None]] | None = None


class Calls:
    """Runs calls for one project. Its methods belong to one event loop."""

    def __init__(self, run: Callable[[str, dict[str, Any], output.Door], dict[str, Any]], keep: Callable[[str], str]) -> None:
        """Take what answers a call (`rye.execute`, bound to a project), and what keeps a text and returns its URI."""
        self._run = run
        self._keep = keep
        self._lanes: dict[str, CapacityLimiter] = {}
        self._running: set[threading.Event] = set()

    async def result(self, wanted: Wanted) -> dict[str, Any]:
        """Return the tool result of a call (JSON of the protocol).

        When the caller's task is cancelled, so is the call: what it started is ended.
        """
        lane = self._lane(wanted.lane)
        if lane.statistics().tasks_waiting >= MOST_WAITING:
            return mcp_answers.result_of(_busy(wanted.item_id))
        if wanted.report is None:
            return await self._in_thread(wanted, lane, None)
        import anyio

        progress = _Progress(wanted.report)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(progress.pump)
            result = await self._in_thread(wanted, lane, progress.take)
            await progress.flush()
            tasks.cancel_scope.cancel()
        return result

    async def _in_thread(
        self, wanted: Wanted, lane: CapacityLimiter, on_output: Callable[[str], None] | None
    ) -> dict[str, Any]:
        import asyncio

        cancellation = output.Cancellation()
        over = threading.Event()
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[dict[str, Any]] = loop.create_future()

        def work() -> None:
            self._running.add(over)
            try:
                answer = self._answer(wanted, cancellation, on_output)
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

        await _enter(lane)
        try:
            workers.start(work)
            return await answered
        except asyncio.CancelledError:
            cancellation.cancel()
            raise
        finally:
            lane.release()

    def _answer(
        self, wanted: Wanted, cancellation: output.Cancellation, on_output: Callable[[str], None] | None
    ) -> dict[str, Any]:
        room: int | None = mcp_answers.REPEATABLE_ROOM if wanted.repeatable else mcp_answers.ONLY_ROOM
        while room is not None:
            door = output.Door(room, on_output, cancellation)
            result = mcp_answers.result_of(self._run(wanted.item_id, wanted.arguments, door))
            size = mcp_answers.size_of(result)
            room = mcp_answers.next_room(room, size) if wanted.repeatable and not cancellation.cancelled else None
        return mcp_answers.kept(result, self._keep) if size > mcp_answers.MOST else result

    def _lane(self, name: str) -> CapacityLimiter:
        import anyio

        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = anyio.CapacityLimiter(LANE)
        return lane

    def settle(self, seconds: float) -> None:
        """Wait, for so long at most, until the calls that were cancelled have ended what they started."""
        end = time.monotonic() + seconds
        for over in list(self._running):
            over.wait(max(0.0, end - time.monotonic()))


async def _enter(lane: CapacityLimiter) -> None:
    """Take a place in a lane, at once where there is one."""
    import anyio

    try:
        lane.acquire_nowait()
    except anyio.WouldBlock:
        await lane.acquire()


def _settle(how: Callable[[Any], None], answered: asyncio.Future[Any], what: Any) -> None:  # noqa: ANN401 - a result or an error
    if not answered.done():
        how(what)


class _Progress:
    """What a running command prints, on its way to the caller: in few notifications, whatever the command does."""

    def __init__(self, report: Callable[[float, str], Awaitable[None]]) -> None:
        import asyncio

        self._report = report
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._lock = threading.Lock()
        self._bytes = 0
        self._tail = ""

    def take(self, text: str) -> None:
        """Take a piece of output, from any thread."""
        with self._lock:
            self._bytes += len(text.encode("utf-8", "replace"))
            self._tail = (self._tail + text)[-_PROGRESS_TAIL:]
        # A call that was given up may still print after the server's loop is gone.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._news.set)

    async def pump(self) -> None:
        """Send what came, a few times a second, until cancelled."""
        import anyio

        while True:
            await self._news.wait()
            await self.flush()
            await anyio.sleep(_PROGRESS_EVERY)

    async def flush(self) -> None:
        """Send what came since the last time, if anything did."""
        self._news.clear()
        with self._lock:
            text, self._tail, done = self._tail, "", self._bytes
        if text:
            await self._report(float(done), text)


def _busy(item_id: str) -> dict[str, Any]:
    return {
        "status": "error", "item_id": item_id, "data": None, "code": "server_busy",
        "error": f"{MOST_WAITING:,} calls of this tool are waiting already. Wait for some answers, then call again.",
    }  # fmt: skip

"""Cells: child processes under a sandbox, each waiting on a pipe for the one call that it will answer.

To start one takes far longer than to use it, so after each call another of the same terms is started, for the next. A cell ends
with its call, unused after `_IDLE` seconds, at this process's exit, and with this process however that ends.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rye.toolkit import sandbox

if TYPE_CHECKING:
    from collections.abc import Callable

_IDLE = 300.0
_SPARES_MAX = 4
# A command of one call is over by then, and starts none in vain.
_PAUSE = 0.05
_START = "import sys; sys.path[:0] = sys.argv[2:]; from rye import isolated_child; isolated_child.serve(int(sys.argv[1]))"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a cell may do, and where; cells of the same terms are as good as each other.

    Attributes:
        root: the project root (real path).
        identity: its device and inode: another folder at the same path is another project.
        permissions: see `rye.items.PERMISSIONS`.
        mode: the sandbox's.
    """

    root: str
    identity: tuple[int, int]
    permissions: tuple[str, ...]
    mode: sandbox.Mode

    def confine(self, argv: list[str]) -> sandbox.Confined:
        """Return the command that holds `argv` to these terms. Errors as `rye.toolkit.sandbox.confine`."""
        policy = sandbox.Policy(
            self.root, self.root, read_project="read" in self.permissions, write_project="write" in self.permissions,
            network="on" if "network" in self.permissions else "off", run="run" in self.permissions, extra_read=_needed(),
        )  # fmt: skip
        return sandbox.confine(argv, policy, self.mode)


@lru_cache(maxsize=1)
def _libraries() -> tuple[str, ...]:
    """Return the folders that a cell imports from besides the standard library's: the runtime's and the installed packages'."""
    import sysconfig

    import rye

    runtime = os.path.dirname(os.path.dirname(os.path.realpath(rye.__file__)))
    return tuple(dict.fromkeys([runtime, *(sysconfig.get_path(name) for name in ("purelib", "platlib"))]))


@lru_cache(maxsize=1)
def _needed() -> tuple[str, ...]:
    """Return what a cell reads to be Python at all: interpreter, standard library, the runtime, installed packages."""
    import rye

    interpreter = os.path.realpath(sys.executable)
    package = os.path.dirname(os.path.realpath(rye.__file__))
    # Of the runtime's folder only the package: in a checkout it may lie beside anything.
    return tuple(dict.fromkeys([interpreter, sys.base_prefix, sys.prefix, package, *_libraries()[1:]]))


class Cell:
    """A started child.

    Attributes:
        terms: what it may do.
        report: what its sandbox holds, see `rye.toolkit.sandbox.Confined`.
        calls: descriptor on which its call is written.
        answers, printed, said: descriptors of its answer, standard output and error output.
        since: when it was started (monotonic seconds).
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.since = time.monotonic()
        self.answers, theirs = os.pipe()
        try:
            confined = terms.confine([sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", _START, str(theirs), *_libraries()])
            try:
                self.report: dict[str, Any] = confined.report
                self._process = subprocess.Popen(  # noqa: S603 - an absolute path, no shell
                    confined.argv, env=confined.env, pass_fds=(*confined.fds, theirs), start_new_session=True,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                )  # fmt: skip
            finally:
                confined.close()
        except BaseException:
            os.close(self.answers)
            raise
        finally:
            os.close(theirs)
        self._streams: list[Any] = [self._process.stdin, self._process.stdout, self._process.stderr]
        self.calls, self.printed, self.said = (stream.fileno() for stream in self._streams)
        for fd in (self.calls, self.answers, self.printed, self.said):
            os.set_blocking(fd, False)

    def ended(self) -> bool:
        """Tell whether the child is over; its process id is not given back before `close`."""
        with contextlib.suppress(ChildProcessError):
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return True

    def kill(self) -> None:
        """End the child and all that it started, now."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def how_it_ended(self) -> str:
        """Wait a moment for the end and return it as words: `signal SIGSEGV`, `exit code 3`."""
        try:
            code = self._process.wait(1)
        except subprocess.TimeoutExpired:
            return "it is still ending"
        # A sandbox that waits for its child ends with 128 and the signal's number.
        number = -code if code < 0 else code - 128
        if number > 0:
            with contextlib.suppress(ValueError):
                return f"signal {signal.Signals(number).name}"
        return f"exit code {code}"

    def close(self) -> None:
        """Kill what still lives, and let everything go."""
        self.kill()
        self.let_go()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)

    def let_go(self) -> None:
        """Close the pipes."""
        for stream in self._streams:
            stream.close()
        if self._streams:
            os.close(self.answers)
        self._streams = []


class Keeper:
    """Starts every cell in one thread, which lasts as long as the process: a sandbox ends with the thread that started it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._spares: dict[Terms, Cell] = {}
        self._cells: set[Cell] = set()
        self._due: list[tuple[float, Terms]] = []
        self._thread: threading.Thread | None = None

    def take(self, terms: Terms) -> Cell:
        """Return a cell for one call, a waiting one if there is any. Errors as `rye.toolkit.sandbox.confine`, and OSError."""
        with self._lock:
            spare = self._spares.pop(terms, None)
        if spare is not None:
            if not spare.ended():
                return spare
            self.end(spare)
        made: queue.SimpleQueue[Cell | Exception] = queue.SimpleQueue()
        self._order(lambda: made.put(self._attempt(terms)))
        cell = made.get()
        if isinstance(cell, Exception):
            raise cell
        return cell

    def _attempt(self, terms: Terms) -> Cell | Exception:
        try:
            cell = Cell(terms)
        except Exception as err:  # noqa: BLE001 - raised again in the thread that asked
            return err
        with self._lock:
            self._cells.add(cell)
        return cell

    def done(self, cell: Cell) -> None:
        """Take back a cell whose call is over, and have another of its terms ready soon."""
        cell.kill()
        self._order(lambda: self._finish(cell))
        self._order(lambda: self._due.append((time.monotonic() + _PAUSE, cell.terms)))

    def end(self, cell: Cell) -> None:
        """Take back a cell that nobody needs any more."""
        cell.kill()
        self._order(lambda: self._finish(cell))

    def _finish(self, cell: Cell) -> None:
        with self._lock:
            self._cells.discard(cell)
        cell.close()

    def _order(self, order: Callable[[], None]) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep, name="rye-cells", daemon=True)
                self._thread.start()
        self._orders.put(order)

    def _keep(self) -> None:
        while True:
            with contextlib.suppress(queue.Empty):
                self._orders.get(timeout=self._pause())()
            self._tend(time.monotonic())

    def _pause(self) -> float:
        ends = [spare.since + _IDLE for spare in list(self._spares.values())]
        return max(0.0, min([*ends, *(due for due, _ in self._due), time.monotonic() + 3600]) - time.monotonic())

    def _tend(self, now: float) -> None:
        """Start the spares that are due, end those that waited too long or are too many."""
        due = {terms for at, terms in self._due if at <= now}
        self._due = [(at, terms) for at, terms in self._due if at > now]
        for terms in due - self._spares.keys():
            made = self._attempt(terms)
            if isinstance(made, Cell):
                with self._lock:
                    self._spares[terms] = made
        with self._lock:
            oldest_first = list(self._spares.items())
            excess = oldest_first[: max(0, len(oldest_first) - _SPARES_MAX)]
            over = dict([*excess, *((terms, cell) for terms, cell in oldest_first if cell.since + _IDLE <= now)])
            for terms in over:
                del self._spares[terms]
        for cell in over.values():
            self._finish(cell)

    def close(self) -> None:
        """Kill every cell: at this process's exit."""
        for cell in list(self._cells):
            cell.kill()

    def forget(self) -> None:
        """Begin anew in a forked process: the cells are its parent's, who must be the only one to hold their pipes."""
        for cell in list(self._cells):
            cell.let_go()
        self.__init__()  # type: ignore[misc]  # the same object, since others hold it


keeper = Keeper()
"""That of this process."""

atexit.register(keeper.close)
os.register_at_fork(after_in_child=keeper.forget)

"""Cells: child processes under a sandbox, each waiting on a pipe for the one call that it will answer.

To start one takes far longer than to use it, so after each call another of the same terms is started, for the next; but for
tools that may write, where protected names must be made in the project while the cell lives. A cell ends with its call,
unused after `_IDLE` seconds, at this process's exit, and with this process however that ends.
"""

from __future__ import annotations

import atexit
import os
import queue
import select
import sys
import threading
import time
from contextlib import suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal

from rye.errors import RyeError
from rye.record import Record, changed
from rye.toolkit import process, sandbox

if TYPE_CHECKING:
    from collections.abc import Callable

_IDLE = 300.0
_SPARES_MAX = 4
_PATIENCE = 1.3
_MOMENT = 0.2
# A command of one call is over by then, and starts none in vain.
_PAUSE = 0.05
_START = "import sys; sys.path[:0] = sys.argv[2:]; from rye import isolated_child; isolated_child.serve(int(sys.argv[1]))"


class Terms(Record):
    """What a cell may do, and where; cells of the same terms are as good as each other.

    Attributes:
        root: the project root (real path).
        identity: its device and inode: another folder at the same path is another project.
        permissions: see `rye.items.PERMISSIONS`.
        mode, network: the settings that apply, see `rye.toolkit.sandbox.effective`.
    """

    root: str
    identity: tuple[int, int]
    permissions: tuple[str, ...]
    mode: sandbox.Mode
    network: Literal["on", "off"] = "on"

    def confine(self, argv: list[str]) -> sandbox.Confined:
        """Return the command that holds `argv` to these terms. Errors as `rye.toolkit.sandbox.confine`."""
        policy = sandbox.Policy(
            self.root, self.root, read_project="read" in self.permissions, write_project="write" in self.permissions,
            network=self.network if "network" in self.permissions else "off", run="run" in self.permissions,
            extra_read=_packages(),
        )  # fmt: skip
        if policy.read_project or not _runs_from(self.root):
            return sandbox.confine(argv, policy, self.mode)
        # Hidden with the project, the interpreter could not start.
        seeing = changed(policy, read_project=True, wanted=sandbox.asked(policy))
        confined = sandbox.confine(argv, seeing, self.mode)
        confined.report["missing"]["project_hidden"] = "rye itself is installed in this project"
        return confined


@lru_cache(maxsize=1)
def _runtime() -> str:
    """Return the folder from which `rye` is imported. Other things may lie there: a sandbox shows of it the package alone."""
    import rye

    return os.path.dirname(os.path.dirname(os.path.realpath(rye.__file__)))


@lru_cache(maxsize=1)
def _packages() -> tuple[str, ...]:
    """Return the folders of installed packages, which a tool may declare."""
    import sysconfig

    return tuple(dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib")))


def _runs_from(root: str) -> bool:
    """Tell whether the interpreter or the runtime of this process lies in a project."""
    places = (sys.executable, sys.prefix, sys.base_prefix, os.path.join(_runtime(), "rye"), *_packages())
    return any(f"{os.path.realpath(place)}/".startswith(f"{root}/") for place in places)


class Cell:
    """A started child.

    Attributes:
        terms: what it may do.
        report: what its sandbox holds, see `rye.toolkit.sandbox.Confined`.
        calls: descriptor on which its call is written.
        answers, printed, said: descriptors of its answer, standard output and error output.
        tree: the child with all that it starts.
        since: when it was started (monotonic seconds).
        may_wait: another one may stand ready. Not where names were made in the project for as long as it lives: nobody
            wants to see these all day.
    """

    def __init__(self, terms: Terms) -> None:
        """Start a child on these terms. Errors as `rye.toolkit.sandbox.confine` and `rye.toolkit.process.Tree`, and OSError."""
        self.terms = terms
        self.since = time.monotonic()
        self._lock, self._closing = threading.Lock(), threading.Lock()
        self._closed = False
        (given, self.calls), (self.answers, answer) = os.pipe(), os.pipe()
        (self.printed, out), (self.said, err) = os.pipe(), os.pipe()
        self._ours = (self.calls, self.answers, self.printed, self.said)
        try:
            self._confined, self.tree = _started(terms, (given, out, err), answer)
        except BaseException:
            for fd in self._ours:
                os.close(fd)
            raise
        finally:
            for fd in (given, answer, out, err):
                os.close(fd)
        self.report = self._confined.report
        self.may_wait = not self._confined.shielded[1]
        for fd in self._ours:
            os.set_blocking(fd, False)

    def ended(self) -> bool:
        """Tell whether the child is over."""
        self.tree.news()
        return self.tree.over or self.tree.exit_status is not None

    def kill(self) -> None:
        """Have the child and all that it started ended; any thread may ask for it, at any time."""
        with self._lock:
            if not self._closed:
                self.tree.end()

    def wait(self) -> None:
        """Wait until the child and all that it started are gone, for a little more than a second at most."""
        self._wait(lambda: self.tree.over, _PATIENCE)

    def wait_for_its_end(self) -> None:
        """Wait a moment for the child to end by itself."""
        self._wait(self.ended, _MOMENT)

    def _wait(self, condition: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not condition() and (left := end - time.monotonic()) > 0:
            select.select([self.tree.status], [], [], left)
            self.tree.news()

    def how_it_ended(self) -> str:
        """Return the end of the child as words: `signal SIGSEGV`, `exit code 3`."""
        if self.tree.exit_status is None:
            return "its process is gone"
        code = os.waitstatus_to_exitcode(self.tree.exit_status)
        # A sandbox that waits for its child ends with 128 and the signal's number.
        number = -code if code < 0 else code - 128
        return f"signal {process.signal_name(number)}" if number > 0 else f"exit code {code}"

    def close(self) -> None:
        """Kill what still lives, and let everything go; a second call waits for the first."""
        with self._closing:
            if self._closed:
                return
            self.kill()
            self.wait()
            with self._lock:
                self._closed = True
                self.tree.close()
            self._confined.finish()
            for fd in self._ours:
                os.close(fd)


def _started(terms: Terms, streams: process.Streams, answer: int) -> tuple[sandbox.Confined, process.Tree]:
    command = [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", _START, str(answer), _runtime(), *_packages()]
    confined = terms.confine(command)
    try:
        where = os.open(terms.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return confined, process.Tree(changed(confined, fds=(*confined.fds, answer)), where, streams)
        finally:
            os.close(where)
    except BaseException:
        confined.finish()
        raise
    finally:
        confined.close()


class Keeper:
    """Has a cell ready for the next call of the same terms, and ends those whose call is over, in a thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._spares: dict[Terms, Cell] = {}
        self._cells: set[Cell] = set()
        self._due: dict[Terms, float] = {}
        self._thread: threading.Thread | None = None

    def take(self, terms: Terms) -> Cell:
        """Return a cell for one call, a waiting one if there is any. Errors as `Cell`."""
        with self._lock:
            spare = self._spares.pop(terms, None)
        if spare is not None:
            if not spare.ended():
                return spare
            self.end(spare)
        return self._new(terms)

    def _new(self, terms: Terms) -> Cell:
        cell = Cell(terms)
        with self._lock:
            self._cells.add(cell)
        return cell

    def end(self, cell: Cell) -> None:
        """End a cell soon."""
        cell.kill()
        self._order(partial(self._finish, cell))

    def done(self, cell: Cell) -> None:
        """End a cell whose call is over, and have another of its terms ready soon."""
        if not cell.may_wait:
            self._finish(cell)
            return
        self.end(cell)
        self._order(partial(self._due.__setitem__, cell.terms, time.monotonic() + _PAUSE))

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
            with suppress(queue.Empty):
                self._orders.get(timeout=self._pause())()
            self._tend(time.monotonic())

    def _pause(self) -> float:
        with self._lock:
            ends = [spare.since + _IDLE for spare in self._spares.values()]
        return max(0.0, min([*ends, *self._due.values(), time.monotonic() + 3600]) - time.monotonic())

    def _tend(self, now: float) -> None:
        """Start the spares that are due; end those that waited too long or are too many, the oldest first."""
        for terms in [terms for terms, at in self._due.items() if at <= now]:
            del self._due[terms]
            # A call that finds no spare is told why there can be none.
            with suppress(RyeError, OSError):
                self._spare(terms)
        with self._lock:
            over = [terms for terms, cell in self._spares.items() if cell.since + _IDLE <= now]
            over = list(dict.fromkeys([*list(self._spares)[: max(0, len(self._spares) - _SPARES_MAX)], *over]))
            cells = [self._spares.pop(terms) for terms in over]
        for cell in cells:
            self._finish(cell)

    def _spare(self, terms: Terms) -> None:
        if terms not in self._spares:
            made = self._new(terms)
            with self._lock:
                self._spares[terms] = made

    def close(self) -> None:
        """End every cell: at this process's exit."""
        for cell in list(self._cells):
            cell.kill()
        for cell in list(self._cells):
            cell.close()

    def forget(self) -> None:
        """Begin anew in a forked process: the cells are its parent's."""
        _others.extend(self._cells)
        self.__init__()  # type: ignore[misc]  # the same object, since others hold it


_others: list[Cell] = []
keeper = Keeper()
"""That of this process."""

atexit.register(keeper.close)
os.register_at_fork(after_in_child=keeper.forget)

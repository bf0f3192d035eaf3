"""Run a command: its whole tree ends with the call, its output is read in bounded memory as it comes.

A `Tree` is a command below a guard (see `guard`): a small process that adopts what leaves the tree, and ends everything when it
is told to or when this process is gone, killed included. Where the sandbox gives a PID namespace nothing can leave at all;
elsewhere a command can kill its guard: then those that still carry the run's own variable in their environment are ended.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rye.errors import RyeError
from rye.record import Record
from rye.toolkit import output
from rye.toolkit.capture import Capture
from rye.toolkit.child import directory_path
from rye.toolkit.live import Live

if TYPE_CHECKING:
    from rye.toolkit.sandbox import Confined

MARK = "RYE_RUN"
"""The environment variable by which the processes of a run are known."""

DRAIN = 0.2
"""After the command itself has ended, its output is waited for so long (seconds)."""

# Behind the standard library on the path, so that no module beside it stands in for one of its own.
_GUARD = "import sys; sys.path.append(sys.argv.pop(1)); import guard; guard.run()"
_GUARD_PLACE = str(Path(__file__).parent)
_BLOCK = 1 << 16
# The guard itself gives up after a second; a call that was given up is waited for two.
_PATIENCE = 1.3
_GUARD_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
Streams = tuple[int, int, int]


class Outcome(Record):
    """How a command ended.

    Attributes:
        exit_code: None when it was ended, or ended by a signal.
        signal: the signal's name, such as `SIGSEGV`, when one that is not ours ended it.
        why: `exited`; `timed_out`, `cancelled`: it was ended.
        seconds: how long it took.
        stdout, stderr: what it printed.
        left: how many of its processes could not be ended, as far as can be told; None when its guard was killed.
    """

    exit_code: int | None
    signal: str | None
    why: str
    seconds: float
    stdout: Capture
    stderr: Capture
    left: int | None


class Tree:
    """A command and all that it starts.

    Attributes:
        status: descriptor that becomes readable when there is news; see `news`.
        exit_status: the program's wait status, once it ended.
        left: once all is over: how many processes could not be ended; None until then, or when the guard was killed.
        over: nothing more will come.
    """

    def __init__(self, confined: Confined, cwd_fd: int, streams: Streams) -> None:
        """Start `confined` in the directory that `cwd_fd` holds, with these descriptors as its standard streams.

        Raises:
            RyeError: `command_failed_to_start`.
        """
        self._token = os.urandom(8).hex()
        self.exit_status: int | None = None
        self.left: int | None = None
        self.over = False
        self._errno = 0
        self._said = b""
        reading, self._control = os.pipe()
        self.status, writing = os.pipe()
        os.set_blocking(self.status, False)
        try:
            self._guard = subprocess.Popen(  # noqa: S603 - our own interpreter, our own code
                [sys.executable, "-I", "-S", "-c", _GUARD, _GUARD_PLACE, str(reading), str(writing)],
                cwd=directory_path(cwd_fd), env=guard_environment(), pass_fds=(reading, writing, *confined.fds),
                stdin=streams[0], stdout=streams[1], stderr=streams[2], start_new_session=True,
            )  # fmt: skip
        except BaseException:
            os.close(self._control)
            os.close(self.status)
            raise
        finally:
            os.close(reading)
            os.close(writing)
        with suppress(BrokenPipeError):
            _write_all(self._control, order(confined.argv, {**confined.env, MARK: self._token}))

    def news(self) -> None:
        """Take in what the guard says; never waits."""
        while not self.over:
            try:
                block = os.read(self.status, 4_096)
            except BlockingIOError:
                return
            self.over = not block
            *lines, self._said = (self._said + block).split(b"\n")
            for line in lines:
                self._hear(line.split())

    def _hear(self, words: list[bytes]) -> None:
        kind, number = words[0], int(words[1])
        if kind == b"exited":
            self.exit_status = number
        elif kind == b"ended":
            self.left = number
            self.over = True
        elif kind == b"failed":
            self._errno = number

    def failure(self) -> RyeError | None:
        """Return why the program could not be started, if so."""
        if not self._errno:
            return None
        return RyeError(
            "command_failed_to_start", f"The command could not be started: {os.strerror(self._errno)}.",
            "Look at the limits of the system, then try again.",
        )  # fmt: skip

    def end(self) -> None:
        """Have the whole tree ended; news tells when that is done."""
        with suppress(OSError):
            os.write(self._control, b"x")

    def close(self) -> None:
        """End what still runs, without asking; the guard is gone when this returns."""
        os.close(self._control)
        with suppress(subprocess.TimeoutExpired):
            self._guard.wait(0.3)
        if self._guard.returncode is None:
            self._guard.kill()
            self._guard.wait()
        if self.left is None:
            end_marked(self._token)
        os.close(self.status)


def order(argv: list[str], env: dict[str, str]) -> bytes:
    """Return the order that starts a program; see `guard`."""
    strings = [*map(os.fsencode, argv), *(os.fsencode(f"{name}={value}") for name, value in env.items())]
    body = f"{len(argv)} {len(env)}\n".encode() + b"".join(text + b"\0" for text in strings)
    return f"{len(body)}\n".encode() + body


def guard_environment() -> dict[str, str]:
    """Return the environment of guards and supervisors: not the command's, which must not reach who watches over it."""
    return {"PATH": os.defpath, **{name: os.environ[name] for name in _GUARD_KEPT if name in os.environ}}


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def end_marked(token: str) -> int:
    """Kill every process that carries a run's variable in its environment; return how many were found (Linux)."""
    wanted = f"{MARK}={token}".encode()
    found = 0
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
            if wanted in file.read().split(b"\0"):
                os.kill(int(name), signal.SIGKILL)
                found += 1
    return found


class Wake:
    """A descriptor that becomes readable when the call is given up, from whatever thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.fd, self._writing = os.pipe()
        self._open = True
        limit = output.deadline()
        # Outside a call there is nobody to give it up, and one deadline for ever.
        if limit.seconds != float("inf"):
            limit.when_expired(self._up)

    def _up(self) -> None:
        # The number of a closed descriptor may be another's by now.
        with self._lock:
            if self._open:
                os.write(self._writing, b"x")

    def close(self) -> None:
        """Let it go."""
        with self._lock:
            self._open = False
            os.close(self.fd)
            os.close(self._writing)


def text_as_input(data: bytes) -> int:
    """Return a descriptor from which a child reads `data`, then the end. The caller closes it."""
    if not data:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        return os.dup(file.fileno())


def run(
    confined: Confined, cwd_fd: int, seconds: float, *, stdin: bytes = b"", stdout: Capture | None = None,
    stderr: Capture | None = None,
) -> Outcome:  # fmt: skip
    """Run a command to its end, at most for `seconds`, or until the call is given up; its whole tree is ended then.

    What it prints goes into the captures, and in pieces to the caller (`output.report`). Once the command itself has ended,
    what it left behind has 0.2 s to let go of the output, and is ended.

    Raises:
        RyeError: `command_failed_to_start`.
    """
    captures = (stdout or Capture(), stderr or Capture())
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    given = text_as_input(stdin)
    try:
        tree = Tree(confined, cwd_fd, (given, out_write, err_write))
    except BaseException:
        os.close(out_read)
        os.close(err_read)
        raise
    finally:
        for fd in (given, out_write, err_write):
            os.close(fd)
    wake = Wake()
    try:
        return _Watch(tree, wake.fd, {out_read: captures[0], err_read: captures[1]}, seconds).outcome(*captures)
    finally:
        wake.close()
        tree.close()
        for fd in (out_read, err_read):
            os.close(fd)
        for capture in captures:
            capture.close()


class _Watch:
    """One run being watched, in one loop over everything that can happen."""

    def __init__(self, tree: Tree, wake: int, pipes: dict[int, Capture], seconds: float) -> None:
        self._tree, self._wake, self._pipes = tree, wake, pipes
        self._begun = time.monotonic()
        self._end = self._begun + seconds
        self._drained_at: float | None = None
        self._given_up_at: float | None = None
        self.why = "exited"
        self._live = Live(len(pipes)) if output.is_reported() else None
        self._poll = select.poll()
        for fd in (tree.status, wake, *pipes):
            self._poll.register(fd, select.POLLIN)
        for fd in pipes:
            os.set_blocking(fd, False)
        self._open = list(pipes)

    def outcome(self, stdout: Capture, stderr: Capture) -> Outcome:
        while not self._tree.over:
            for fd, _ in self._poll.poll(self._wait() * 1_000):
                self._look(fd)
            if self._live is not None:
                self._live.tell()
            if self._judge():
                break
        self._rest()
        failure = self._tree.failure()
        if failure is not None:
            raise failure
        seconds = time.monotonic() - self._begun
        code, name = _ending(self._tree.exit_status) if self.why == "exited" else (None, None)
        return Outcome(code, name, self.why, seconds, stdout, stderr, self._tree.left)

    def _wait(self) -> float:
        moments = [self._end if self._given_up_at is None else self._given_up_at]
        if self._drained_at is not None and self._given_up_at is None:
            moments.append(self._drained_at)
        if self._live is not None and (due := self._live.due()) is not None:
            moments.append(due)
        return max(0.0, min(moments) - time.monotonic())

    def _look(self, fd: int) -> None:
        if fd == self._tree.status:
            self._tree.news()
            if self._tree.over:
                self._poll.unregister(fd)
        elif fd == self._wake:
            self._poll.unregister(fd)
            self._give_up("cancelled" if output.deadline().cancelled else "timed_out")
        elif not self._read(fd):
            self._poll.unregister(fd)
            self._open.remove(fd)

    def _read(self, fd: int) -> bool:
        try:
            block = os.read(fd, _BLOCK)
        except BlockingIOError:
            return True
        self._pipes[fd].feed(block)
        if self._live is not None:
            self._live.feed(list(self._pipes).index(fd), block)
        return bool(block)

    def _judge(self) -> bool:
        """End the tree when its time has come; tell whether even that takes too long."""
        now = time.monotonic()
        if self._given_up_at is not None:
            return now > self._given_up_at
        if self._tree.exit_status is not None:
            self._drained_at = self._drained_at or now + DRAIN
            if not self._open or now >= self._drained_at:
                self._give_up("exited")
        elif now >= self._end:
            self._give_up("timed_out")
        return False

    def _give_up(self, why: str) -> None:
        if self._given_up_at is None:
            self.why = why if self._tree.exit_status is None else "exited"
            self._given_up_at = time.monotonic() + _PATIENCE
            self._tree.end()

    def _rest(self) -> None:
        """Take what still lies in the pipes, however fast others may write there."""
        end = time.monotonic() + DRAIN
        for fd in list(self._open):
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            while poll.poll(0) and self._read(fd) and time.monotonic() < end:
                pass
        if self._live is not None:
            self._live.close()


def _ending(status: int | None) -> tuple[int | None, str | None]:
    """Return the exit code, or the name of the signal, of a wait status."""
    if status is None:
        return None, None
    code = os.waitstatus_to_exitcode(status)
    return (code, None) if code >= 0 else (None, signal_name(-code))


def signal_name(number: int) -> str:
    """Return the name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

"""Run a command: its whole tree ends with the call, its output is read in bounded memory as it comes.

A `Tree` is a command below a reaper (see `rye.process.reaper`): a small process that adopts what leaves the tree. It ends
everything when it is asked to, or when this process is gone, killed included. Where the sandbox gives a PID namespace nothing
can leave at all. Elsewhere a command can kill its reaper: then those that still carry the run's own variable in their
environment are ended.

`LiveOutput` streams a running command's output to the caller, at most ten updates a second.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress

from rye.call import context
from rye.call.command_channel import ready
from rye.errors import RyeError
from rye.plain_class import Record
from rye.process import process_tree, reaper, reapers, terminal_text
from rye.process.output_files import Capture
from rye.sandbox.policy import Confined, held_open
from rye.workspace import running_commands

_EVERY = 0.1
_MOST = 16 * 1024


class LiveOutput:
    """Reports the text of some streams to the caller while the command runs."""

    def __init__(self, streams: int) -> None:
        self._plain = [terminal_text.Plain() for _ in range(streams)]
        self._waiting: list[str] = []
        self._size = 0
        self._passed_over = 0
        self._due = 0.0

    def feed(self, stream: int, block: bytes) -> None:
        """Take a stream's block; of a flood only a part is reported, with a line that says how much was not."""
        # Updates are for people watching; the captures still get every byte.
        if self._size >= _MOST:
            self._passed_over += len(block)
            return
        text = self._plain[stream].feed(block)
        if text:
            self._waiting.append(text)
            self._size += len(text)

    def due(self) -> float | None:
        """Return when `report` has something to do (monotonic clock), None when it has nothing."""
        return self._due if self._waiting else None

    def report(self) -> None:
        """Report the waiting text, if it is time."""
        now = time.monotonic()
        if not self._waiting or now < self._due:
            return
        text = "".join(self._waiting)
        if self._passed_over:
            text += f"\n[{self._passed_over} bytes not shown here]\n"
        self._waiting, self._size, self._passed_over = [], 0, 0
        self._due = now + _EVERY
        context.report(text)

    def close(self) -> None:
        """Report the rest."""
        self._waiting += [text for plain in self._plain if (text := plain.rest())]
        self._due = 0.0
        self.report()


RUN_VARIABLE = "RYE_RUN"
"""The environment variable by which the processes of a run are known."""

DRAIN = 0.2
"""After the command itself has ended, its output is waited for so long (seconds)."""

_LAST_ENDS = 0.01
"""Where nobody holds its output any more, what it left mostly ends by itself, and the reaper says so unasked."""

# So long the processes of a run whose reaper was killed are looked for (s).
_LOOKS_SECONDS = 0.5
_KERNEL_THREAD = 0x200000
_HAND_ON_SECONDS = 5.0
_BLOCK = 1 << 16
# What a reaper reports, and what holds it of a tree.
_REPORTS = {b"began": "pid", b"exited": "exit_status", b"ended": "survivors", b"failed": "_errno", b"job": "_job"}
# The reaper itself gives up after a second; a call that was given up is waited for two.
_GRACE_SECONDS = 1.3
Streams = tuple[int, int, int]
HandOn = Callable[["Tree", Sequence[int]], bool]
Asked = tuple[int, Callable[[], object]]


class Outcome(Record):
    """How a command ended.

    Attributes:
        exit_code: None when it was ended, or ended by a signal.
        signal: the signal's name, such as `SIGSEGV`, when one that is not ours ended it.
        why: `exited`; `timed_out`, `cancelled`: it was ended; `handed_on`: it goes on as a job.
        seconds: how long it took.
        survivors: how many of its processes could not be ended, as far as is known; None when its reaper was killed.
    """

    exit_code: int | None
    signal: str | None
    why: str
    seconds: float
    survivors: int | None


def pipes(count: int) -> list[tuple[int, int]]:
    """Return so many new pipes, or none where the descriptors do not suffice (OSError)."""
    made: list[tuple[int, int]] = []
    try:
        while len(made) < count:
            made.append(os.pipe())
    except OSError:
        close_all(fd for one in made for fd in one)
        raise
    return made


def close_all(fds: Iterable[int]) -> None:
    """Close descriptors."""
    for fd in fds:
        os.close(fd)


class Tree:
    """A command and all that it starts.

    Attributes:
        status: descriptor that becomes readable when the status changed; see `read_status`.
        pid: of the program, once it began.
        exit_status: the program's wait status, once it ended.
        survivors: once all has ended: how many processes could not be ended; None until then, or when the reaper was killed.
        ended: nothing more will come.
        mark: the value of `RUN_VARIABLE` in its environment.
    """

    def __init__(self, confined: Confined, cwd_fd: int, streams: Streams, kept: Sequence[int] = (), job: str = "") -> None:
        """Start `confined` in the directory that `cwd_fd` holds, with these descriptors as its standard streams.

        The reaper keeps the descriptors `kept`, for a job (see `hand_on`). With `job`, the path of its order, it is the job's
        supervisor, which starts the command.

        Raises:
            RyeError: `command_failed_to_start`; and what `confined.ready` raises.
        """
        self.mark = os.urandom(8).hex()
        # Whether the reaper can serve another command: no command could reach it, and nothing was asked of it.
        self._is_clean = confined.report.get("kind", "none") != "none" and not job
        self._job: int | None = None
        self.exit_status: int | None = None
        self.survivors: int | None = None
        self.ended = False
        self._errno = 0
        self._partial_line = b""
        self._lock = threading.Lock()
        self.pid = 0
        try:
            self._reaper = reapers.take(confined.groups)
        except OSError as err:
            raise _not_started(err.errno or 0) from None
        # Closing it is an order too, so the tree ends even when this process is killed.
        self._line = self._reaper.line
        self.status = self._line.fileno()
        # A reaper that died already has said why, or nothing.
        with suppress(ConnectionError):
            # The sandbox's descriptors get the numbers that its command line names.
            fds = [cwd_fd, *streams, *confined.fds, *kept]
            reaper.send_order(self._line, order(confined, {**confined.env, RUN_VARIABLE: self.mark}, kept, job), fds)
        self._line.setblocking(False)
        try:
            # While the sandbox is made.
            if confined.ready is not None:
                confined.ready()
        except BaseException:
            self.close()
            raise

    def read_status(self) -> None:
        """Take in what the reaper reported; never waits."""
        while not self.ended:
            try:
                block = os.read(self.status, 4_096)
            except BlockingIOError:
                return
            except ConnectionError:
                block = b""
            self.ended |= not block
            # A read may end inside a line; the rest comes with the next block.
            *lines, self._partial_line = (self._partial_line + block).split(b"\n")
            for line in lines:
                kind, _, number = line.partition(b" ")
                if kind in _REPORTS:
                    setattr(self, _REPORTS[kind], int(number))
                self.ended |= kind == b"ended"

    def failure(self) -> RyeError | None:
        """Return why the program could not be started, if so."""
        return _not_started(self._errno) if self._errno else None

    def end(self) -> None:
        """Have the whole tree ended, from any thread, at any time; `read_status` notes when that is done."""
        with self._lock:
            # Its reaper may serve another command by now.
            if not self.ended:
                self._is_clean = False
                with suppress(OSError):
                    self._line.send(b"x")

    def wait(self, condition: Callable[[], bool], seconds: float) -> None:
        """Wait until a condition holds or nothing more will come, so many seconds at most."""
        end = time.monotonic() + seconds
        while not condition() and not self.ended and ready(self.status, select.POLLIN, max(0.0, end - time.monotonic())):
            self.read_status()

    def hand_on(self, order: str = "") -> str:
        """Have the reaper go on as the supervisor of a job whose order lies at a path; return `ok`, or why not: an errno.

        Without a path it was told so when it started.
        """
        self._is_clean = False
        if order:
            with suppress(OSError):
                self._line.send(b"j" + os.fsencode(order))
        self.wait(lambda: self._job is not None, _HAND_ON_SECONDS)
        # Nothing: it ended without an answer.
        return "ok" if self._job == 0 else str(self._job or self._errno or ("" if self.ended else errno.ETIMEDOUT))

    def close(self) -> None:
        """End what still runs, without asking; the reaper serves another command, ends with it, or is a job's supervisor."""
        with self._lock:
            self.ended = True
        if self._is_clean and self.survivors == 0:
            reapers.give_back(self._reaper)
            return
        # Of one that left nothing the last step is not waited for.
        if self._job == 0 or self.survivors == 0:
            self._line.close()
            return
        self._reaper.close()
        # The reaper gave no count, so it was killed: search for survivors by the run's variable.
        if self.survivors is None:
            end_marked(self.mark)


def _not_started(number: int) -> RyeError:
    why = f"The command could not be started: {os.strerror(number)}."
    return RyeError("command_failed_to_start", why, "Look at the limits of the system, then try again.")


def order(confined: Confined, env: dict[str, str], kept: Sequence[int] = (), job: str = "") -> bytes:
    """Return the order that starts a program with this environment, or a job; see `rye.process.reaper`, which keeps `kept`."""
    words = [job] if job else confined.argv
    strings = [os.fsencode(one) for one in (*words, *(f"{name}={value}" for name, value in env.items()))]
    numbers = len(words), len(env), 2 if job else int(confined.scoped), len(kept), *confined.fds, *kept
    counts = " ".join(map(str, numbers)).encode() + b"\n"
    body = counts + b"".join(text + b"\0" for text in strings)
    return f"{len(body)}\n".encode() + body


def end_marked(token: str) -> bool:
    """Kill every process that carries a run's variable in its environment; tell whether none was found at last (Linux)."""
    mark = f"{RUN_VARIABLE}={token}".encode()
    end = time.monotonic() + _LOOKS_SECONDS
    # Again until a look finds none: one may have started another process, or another program, while it was looked at.
    while True:
        names = os.listdir("/proc") if os.path.isdir("/proc/self") else []
        found = {_end_if_marked(int(name), mark) for name in names if name.isdigit()}
        if found <= {False} or time.monotonic() > end:
            return True not in found
        time.sleep(0.005)


def _end_if_marked(pid: int, mark: bytes) -> bool | None:
    """Kill a process if it carries a mark; tell whether it does: None for one that is just becoming another program."""
    with suppress(OSError):
        environment = _read(f"/proc/{pid}/environ")
        if not environment and _read(f"/proc/{pid}/cmdline"):
            # It has become that program meanwhile, or its environment is empty.
            environment = _read(f"/proc/{pid}/environ")
        elif not environment:
            fields = process_tree.stat_fields(pid)
            is_program = fields and fields[0] not in (b"Z", b"X") and not int(fields[6]) & _KERNEL_THREAD
            return None if is_program else False
        # Never this process itself, whatever its environment says.
        if mark in environment.split(b"\0") and pid != os.getpid():
            os.kill(pid, signal.SIGKILL)
            return True
    return False


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def run(
    confined: Confined,
    cwd_fd: int,
    seconds: float,
    *,
    stdin: bytes = b"",
    stdout: Capture | None = None,
    stderr: Capture | None = None,
    held: int = -1,
    hand_on: HandOn | None = None,
    asked: Asked | None = None,
) -> Outcome:
    """Run a command to its end, at most for `seconds`, or until the call is given up; its whole tree is ended then.

    After `seconds` it goes on as a job where `hand_on` returns true, which is called with the tree and the descriptors of its
    output; `held` is the descriptor by which the running command is known (`rye.workspace.running_commands`). What `asked`
    names is called when its descriptor is readable, once.

    What it prints goes into the captures, and in pieces to the caller (`output.report`). Once the command itself has ended,
    what it left behind has 0.2 s to let go of the output, and is ended.

    Raises:
        RyeError: `command_failed_to_start`.
    """
    with ExitStack() as ours, ExitStack() as theirs:
        (out_read, out_write), (err_read, err_write) = pipes(2)
        ours.callback(close_all, (out_read, err_read))
        theirs.callback(close_all, (out_write, err_write))
        # A file, not a pipe: a command that never reads its input must not block the writer.
        input_fd = held_open(stdin) if stdin else os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        theirs.callback(os.close, input_fd)
        kept = () if hand_on is None else (out_read, err_read, held)
        tree = Tree(confined, cwd_fd, (input_fd, out_write, err_write), kept)
        ours.callback(tree.close)
        # Our write ends must go, else the pipes never report the end of output.
        theirs.close()
        if running_commands.turn.held:
            ours.callback(running_commands.turn.take)
        running_commands.turn.leave()
        outputs = {out_read: stdout or Capture(), err_read: stderr or Capture()}
        return watch(tree, outputs, seconds, keep_all=True, hand_on=hand_on, asked=asked)


def watch(
    tree: Tree,
    pipes: dict[int, Capture],
    seconds: float,
    *,
    keep_all: bool = False,
    hand_on: HandOn | None = None,
    asked: Asked | None = None,
) -> Outcome:
    """Watch a started command to its end, as `run` does; `pipes` are the read ends of standard output, of error output, others.

    The caller ends and closes the tree, and closes the pipes: where the command has ended and its output too, or what one of
    the captures wants has come, nothing is waited for.
    """
    try:
        return _Watch(tree, pipes, seconds, keep_all, hand_on, asked).outcome()
    finally:
        for capture in pipes.values():
            capture.close()


class _Watch:
    """One run being watched, in one loop over everything that can happen."""

    def __init__(
        self, tree: Tree, pipes: dict[int, Capture], seconds: float, keep_all: bool, hand_on: HandOn | None, asked: Asked | None
    ) -> None:
        self._keep_all, self._hand_on, self._asked = keep_all, hand_on, asked
        self._tree, self._pipes = tree, pipes
        self._started = time.monotonic()
        self._end = self._started + seconds
        self._exited_at: float | None = None
        self._given_up_at: float | None = None
        self.why = "exited"
        self._live = LiveOutput(len(pipes)) if context.current().options.on_output is not None else None
        self._poll = select.poll()
        for fd in (tree.status, *pipes, *(asked or ())[:1]):
            self._poll.register(fd, select.POLLIN)
        # Non-blocking: what poll reports readable may be gone when another process shares the pipe.
        for fd in pipes:
            os.set_blocking(fd, False)
        self._open = list(pipes)
        limit = context.deadline()
        # Outside a call there is nobody to give it up, and one deadline for ever.
        if limit.seconds != float("inf"):
            limit.when_expired(lambda: self._give_up("cancelled" if limit.cancelled else "timed_out"))

    def outcome(self) -> Outcome:
        while not self._tree.ended:
            # One loop for all events: with threads, the end and the last output would come in no certain order.
            for fd, _ in self._poll.poll(self._wait() * 1_000):
                self._look(fd)
            if self._live is not None:
                self._live.report()
            # Nobody holds the output any more: what is left of the tree can be ended after the answer.
            over = not self._keep_all and self._tree.exit_status is not None and not self._open
            if over or any(capture.is_over for capture in self._pipes.values()) or self._judge():
                break
        self._rest()
        if failure := self._tree.failure():
            raise failure
        seconds = time.monotonic() - self._started
        code, name = code_and_signal(self._tree.exit_status) if self.why == "exited" else (None, None)
        return Outcome(code, name, self.why, seconds, self._tree.survivors)

    def _wait(self) -> float:
        # In steps: who gives the call up is another thread, and a reaper that was stopped says nothing then.
        times = [time.monotonic() + _GRACE_SECONDS, self._end if self._given_up_at is None else self._given_up_at]
        if self._exited_at is not None and self._given_up_at is None:
            times.append(self._exited_at + self._patience())
        if self._live is not None and (due := self._live.due()) is not None:
            times.append(due)
        return max(0.0, min(times) - time.monotonic())

    def _look(self, fd: int) -> None:
        if fd == self._tree.status:
            self._tree.read_status()
            if self._tree.ended:
                self._poll.unregister(fd)
        elif self._asked is not None and fd == self._asked[0]:
            self._poll.unregister(fd)
            # Without a thread the asker gets no answer.
            with suppress(RuntimeError):
                self._asked[1]()
        elif not self._read(fd):
            self._poll.unregister(fd)
            self._open.remove(fd)

    def _read(self, fd: int) -> bool:
        try:
            block = os.read(fd, _BLOCK)
        except BlockingIOError:
            return True
        self._pipes[fd].feed(block)
        number = list(self._pipes).index(fd)
        to_report = self._pipes[fd].to_report(block)
        if to_report:
            context.report_bytes(number + 1, to_report)
        if self._live is not None:
            self._live.feed(number, to_report)
        return bool(block)

    def _judge(self) -> bool:
        """End the tree when its time has come; tell whether even that takes too long."""
        now = time.monotonic()
        if self._given_up_at is not None:
            return now > self._given_up_at
        if self._tree.exit_status is not None:
            # A background process may hold the output open for ever: it gets a short time, not the whole timeout.
            self._exited_at = self._exited_at or now
            if now >= self._exited_at + self._patience():
                self._give_up("exited")
        elif now >= self._end:
            # Its output is the job's from now on.
            if self._hand_on is not None and self._hand_on(self._tree, self._open):
                self.why, self._open = "handed_on", []
                return True
            self._give_up("timed_out")
        return False

    def _patience(self) -> float:
        return DRAIN if self._open else _LAST_ENDS

    def _give_up(self, why: str) -> None:
        """Have the tree ended; any thread may call it."""
        if self._given_up_at is None:
            # A command that ended by itself a moment before its timeout did not time out.
            self.why = why if self._tree.exit_status is None else "exited"
            self._given_up_at = time.monotonic() + _GRACE_SECONDS
        self._tree.end()

    def _rest(self) -> None:
        """Take what still lies in the pipes, however fast others may write there."""
        # A process that survived may write faster than we read, so the time is bounded, not the bytes.
        end = time.monotonic() + DRAIN
        for fd in list(self._open):
            while ready(fd, select.POLLIN, 0) and self._read(fd) and time.monotonic() < end:
                pass
        if self._live is not None:
            self._live.close()


def code_and_signal(status: int | None) -> tuple[int | None, str | None]:
    """Return the exit code, or the name of the signal, of a wait status."""
    if status is None:
        return None, None
    # A negative code is a signal's number, and no exit code.
    code = os.waitstatus_to_exitcode(status)
    return (code, None) if code >= 0 else (None, signal_name(-code))


def ending(outcome: Outcome) -> str:
    """Say how a command ended that was not ended by us: `ended with exit code 1`, `was ended by SIGSEGV`."""
    if outcome.signal:
        return f"was ended by {outcome.signal}"
    code = outcome.exit_code or 0
    # A shell reports a program's signal as 128 plus its number.
    by_signal = f" (as a shell says that {signal_name(code - 128)} ended a program)" if 128 < code < 160 else ""
    return f"ended with exit code {code}{by_signal}"


def signal_name(number: int) -> str:
    """Return the name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"

"""The process that runs one background job: its parent, its reader, and what later calls talk to.

A reaper becomes it (see `rye.process.reaper`), from the beginning or with a command that has reached its timeout. Its order is
a file (JSON: `confined`, `folder`, `seconds`, `input`, `root`, `look`, `after`, `held`, `facts`, `user_space`, `running`: the
output of the command that runs already). It holds the descriptor in `held`: the job lives as long as it does.
In the job's folder it stores `job.json` (what the job is, and its status) and `output` (both streams as they come, see
`rye.process.output_files`), and listens on `socket`: one request a connection, one line of JSON each way.

Requests: `{"do": "write", "data": text}`, `{"do": "close_stdin"}`, `{"do": "end"}`, `{"do": "wait"}`. The last two are answered
when the job is over. Answers: `{"ok": true}` or `{"error": code}`.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from contextlib import suppress
from typing import Any

from rye.fs import atomic, stamps
from rye.process import process_tree
from rye.process.mount_watch import MountWatch
from rye.process.output_files import OutputFile
from rye.sandbox import project_mounts
from rye.sandbox.policy import Confined
from rye.workspace import running_commands

RECORD, OUTPUT, SOCKET = "job.json", "output", "socket"

MAX_STDIN = 1024 * 1024
"""So much input waits for a job that does not read it (bytes)."""

_MAX_REQUEST = 4 * MAX_STDIN
_BLOCK = 1 << 16
# A sandbox is made in less, also beside other load (s).
_STARTING = 5.0
# So long others may exchange a covered file again and again (s).
_EXCHANGING = 2.0
_DRAIN = 0.2
_LOOK = 0.5
_GRACE = 1.0
_AFTER = 600.0


def write_record(dir_fd: int, record: dict[str, Any]) -> None:
    """Replace a job's record in one step (0600)."""
    atomic.write(RECORD, json.dumps(record).encode(), 0o600, durably=False, dir_fd=dir_fd)


def listening(dir_fd: int) -> socket.socket:
    """Listen in a folder, by its descriptor: the address of a unix socket holds 107 bytes, a folder's path may be longer."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address(dir_fd))
    listener.listen(16)
    listener.setblocking(False)
    return listener


def address(dir_fd: int) -> str:
    """Return the address of the socket in a folder that is held open."""
    return f"/proc/self/fd/{dir_fd}/{SOCKET}"


class Supervisor:
    """A job: its program, its output and those who ask about it."""

    def __init__(self, order: dict[str, Any]) -> None:
        """Start the program. Raises OSError."""
        running_commands.take(order["held"])
        self._token, self._held, _ = order["held"]
        self._dir = os.open(order["folder"], os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._stored: OutputFile | None = OutputFile(self._dir, OUTPUT, order["facts"]["output_limit"])
        self._end = time.monotonic() + order["seconds"] if order["seconds"] is not None else None
        # The look changes the report, which is the record's.
        self._confined = Confined(**{**order["confined"], "report": order["facts"]["sandbox"]})
        self._look, self._after = order["look"], order["after"]
        # Held open: the project may be renamed while the job runs, and another folder take its path.
        self._root = os.open(order["root"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        # Before the program starts: what is exchanged from now on counts.
        self._mounts = MountWatch(self._confined.covered, self._look[4])
        self._woken, self._waker = process_tree.children_ended()
        self._listener = listening(self._dir)
        self._waiting_input = bytearray(order["input"], "latin-1")
        self._input, self._close_input = -1, False
        self._outputs: list[int] = []
        self._requests: dict[int, tuple[socket.socket, bytearray]] = {}
        self._waiting_clients: list[socket.socket] = []
        self._leader: int | None = None
        # What looks while it runs have set aside.
        self._set_aside: list[dict[str, str]] = []
        self.record = {
            **order["facts"],
            "status": "running",
            "supervisor": os.getpid(),
            "started": time.time(),
            "exit_status": None,
            "why": None,
        }
        # Before the program starts: whenever this process is killed, what it started can be found by the record's mark.
        write_record(self._dir, self.record)
        if order["running"]:
            self._leader, *self._outputs = order["running"]
        else:
            self._spawn()

    def _spawn(self) -> None:
        their_input, self._input = os.pipe()
        output, their_output = os.pipe()
        self._outputs = [output]
        argv = [os.fsencode(word) for word in self._confined.argv]
        env = {os.fsencode(name): os.fsencode(value) for name, value in self._confined.env.items()}
        self._leader = process_tree.spawn(argv, env, (their_input, their_output, their_output), scoped=self._confined.scoped)
        # Our copies of the program's ends: held, they would hide the end of its output and of its reads.
        os.close(their_input)
        os.close(their_output)
        for fd in (self._input, output):
            # One loop serves everyone: neither a full input pipe nor an empty output pipe may block it.
            os.set_blocking(fd, False)

    def descriptors(self) -> tuple[int, ...]:
        """Return what must stay open."""
        stored = self._stored.fd if self._stored else self._dir
        own = (self._dir, self._root, self._woken, self._waker, self._listener.fileno(), stored, self._held)
        inputs = (self._input,) if self._input >= 0 else ()
        return (*own, *inputs, *self._outputs, *self._mounts.descriptors())

    def run(self) -> None:
        """Serve until the job is over."""
        exited_at = None
        while True:
            self._step(self._patience(exited_at))
            # Before all else: from this moment the job can write the uncovered file.
            if (lost := self._mounts.lost()) and not self._cover_again():
                self.record["uncovered"] = lost
                return self.end("unprotected")
            # Names that nothing covers. A command has none of them for longer than that.
            self._set_aside += project_mounts.set_aside(self._root, self._confined.absent)
            if self._leader is None:
                exited_at = exited_at or time.monotonic()
                # A program that has left others behind still is a job, as long as they live.
                drained = not self._outputs or time.monotonic() - exited_at >= _DRAIN
                if drained and not process_tree.descendants(os.getpid()):
                    return self._finish("exited", 0)
            if self._end is not None and time.monotonic() >= self._end:
                return self.end("timed_out")

    def _patience(self, exited_at: float | None) -> float | None:
        if exited_at is not None:
            # Orphans of the program report nothing when they end, so they are looked for at intervals.
            return _DRAIN / 2 if time.monotonic() - exited_at < 2 * _DRAIN else _LOOK
        waits = [_LOOK if self._confined.absent else None]
        waits += [None if self._end is None else max(0.0, self._end - time.monotonic())]
        return min((one for one in waits if one is not None), default=None)

    def _cover_again(self) -> bool:
        """Cover the files that have taken covered names, and look at them; tell whether that was done."""
        from rye.errors import RyeError
        from rye.process import mount_watch

        with suppress(OSError):
            mount_watch.wait_until_made(_STARTING)
            with mount_watch.stopped() as inside:
                since, end = stamps.clock(), time.monotonic() + _EXCHANGING
                while (lost := self._mounts.lost()) and time.monotonic() < end:
                    try:
                        self._mounts.cover(lost, inside, since)
                    except (OSError, RyeError):
                        # Another program, or another job's look, may be exchanging it right now.
                        time.sleep(0.005)
                        continue
                    # The job may have written it before. What is set aside exchanges the file again.
                    found = _look(self._confined, self._look, self._root)
                    self._set_aside += found
                    if not all(one["stored"] for one in found):
                        return False
                    end = time.monotonic() + _EXCHANGING
                return not lost
        return False

    def _step(self, seconds: float | None) -> None:
        poll = select.poll()
        for fd in (self._listener.fileno(), self._woken, self._mounts.fd, *self._requests, *self._outputs):
            poll.register(fd, select.POLLIN)
        if self._input >= 0 and self._waiting_input:
            poll.register(self._input, select.POLLOUT)
        for fd, _ in poll.poll(None if seconds is None else seconds * 1_000):
            if fd in self._outputs:
                self._read(fd)
            elif fd == self._input:
                self._feed()
            elif fd == self._woken:
                self._children()
            elif fd == self._listener.fileno():
                self._accept()
            elif fd in self._requests:
                self._receive(fd)

    def _children(self) -> None:
        terminated = process_tree.is_asked_to_end(self._woken)
        # Reaps adopted orphans too: zombies would use up the numbers that the job may have.
        status = process_tree.reap(self._leader or 0)
        if status is not None:
            self._leader = None
            self.record["exit_status"] = status
            write_record(self._dir, self.record)
        if terminated:
            self.end("ended")
            sys.exit(0)

    def _read(self, fd: int) -> None:
        try:
            block = os.read(fd, _BLOCK)
        except BlockingIOError:
            return
        # An empty read: every writer has closed the pipe.
        if not block:
            self._outputs.remove(fd)
            os.close(fd)
        try:
            if self._stored is not None:
                self._stored.write(block)
        except OSError:
            # A full disk ends the storing, not the job; its output goes on being drained.
            self._stored = None

    def _feed(self) -> None:
        try:
            while self._waiting_input:
                del self._waiting_input[: os.write(self._input, self._waiting_input[:_BLOCK])]
        except BlockingIOError:
            return
        except OSError:
            # The job has closed its standard input (EPIPE): nobody will read what still waits.
            self._waiting_input.clear()
            self._close_input = True
        if self._close_input:
            os.close(self._input)
            # Its number may be a client's next.
            self._input = -1

    def _accept(self) -> None:
        with suppress(OSError):
            client = self._listener.accept()[0]
            # A client that sends half a line must not stop the loop that reads the job's output.
            client.setblocking(False)
            self._requests[client.fileno()] = (client, bytearray())

    def _receive(self, fd: int) -> None:
        client, received = self._requests[fd]
        try:
            block = client.recv(_BLOCK)
        except BlockingIOError:
            return
        except OSError:
            block = b""
        received += block
        # Wait for the rest of the line, but not without bound: a client could fill the memory.
        if block and b"\n" not in block and len(received) <= _MAX_REQUEST:
            return
        # One request a connection: the descriptor must leave the poll before its number can be used again.
        del self._requests[fd]
        try:
            request = json.loads(received)
            answer = self._do(request["do"], request, client)
        except (ValueError, KeyError, TypeError, AttributeError):
            answer = {"error": "bad_request"}
        if answer is not None:
            _answer(client, answer)

    def _do(self, action: str, request: dict[str, Any], client: socket.socket) -> dict[str, Any] | None:
        if action in ("wait", "end"):
            # Before the end: `_finish` answers everyone in this list, also the client who asked.
            self._waiting_clients.append(client)
            if action == "end":
                self.end("ended")
                sys.exit(0)
            return None
        if action not in ("write", "close_stdin"):
            return {"error": "bad_request"}
        if self._input < 0 or self._close_input:
            return {"error": "stdin_closed"}
        data = request["data"].encode("utf-8", "surrogateescape") if action == "write" else b""
        if len(self._waiting_input) + len(data) > MAX_STDIN:
            return {"error": "stdin_full"}
        self._waiting_input += data
        self._close_input = action == "close_stdin"
        self._feed()
        return {"ok": True}

    def end(self, why: str) -> None:
        """End the whole tree: politely first, so that servers can put their things in order."""
        # One whose sandbox no longer covers a name is ended at once: what it writes there now would count.
        if self._leader is not None and why != "unprotected":
            self._ask_to_end()
        status, survivors = process_tree.end_tree(self._leader)
        self.record["exit_status"] = status if status is not None else self.record["exit_status"]
        self._finish(why, survivors)

    def _ask_to_end(self) -> None:
        import signal

        for pid in process_tree.descendants(os.getpid()):
            # bubblewrap would not pass it on, and its end is that of all within.
            with suppress(OSError), open(f"/proc/{pid}/comm", "rb") as file:
                if file.read() != b"bwrap\n":
                    os.kill(pid, signal.SIGTERM)
        end = time.monotonic() + _GRACE
        while time.monotonic() < end and process_tree.descendants(os.getpid()):
            found = process_tree.reap(self._leader or 0)
            if found is not None:
                self._leader, self.record["exit_status"] = None, found
            time.sleep(0.01)

    def _finish(self, why: str, survivors: int) -> None:
        end = time.monotonic() + _DRAIN
        for fd in list(self._outputs):
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            while fd in self._outputs and poll.poll(0) and time.monotonic() < end:
                self._read(fd)
        # Before the record says that it is over: who reads that must not find the names that were made for the sandbox.
        with suppress(OSError):
            self.record["set_aside"] = [*self._set_aside, *_end(self._confined, self._look, self._root)]
        if self._after:
            self.record["changes"] = _run_after(self._after, self._root)
        self.record.update(status="ended", why=why, left=survivors, ended=time.time())
        with suppress(OSError):
            write_record(self._dir, self.record)
        running_commands.end(self._token)
        with suppress(OSError):
            os.unlink(SOCKET, dir_fd=self._dir)
        for client in self._waiting_clients:
            _answer(client, {"ok": True})


def _look(confined: Confined, look: list[Any], root: int) -> list[dict[str, str]]:
    from rye.process.autorun import command_check

    return command_check.end(command_check.Look(*look), confined.report, root, over=False)


def _end(confined: Confined, look: list[Any], root: int) -> list[dict[str, str]]:
    # Late: a job starts without it.
    from rye.process.autorun.command_check import Look
    from rye.process.guarded_run import Guarded

    return Guarded(confined, Look(*look)).end(root)


def _run_after(argv: list[str], root_fd: int) -> dict[str, Any]:
    import subprocess

    try:
        where = f"/proc/self/fd/{root_fd}"
        result = subprocess.run(argv, cwd=where, capture_output=True, stdin=subprocess.DEVNULL, timeout=_AFTER, check=False)
        found = json.loads(result.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return {"not_recorded": {".": "the look at what the job changed failed"}}
    return found if isinstance(found, dict) else {}


def _answer(client: socket.socket, answer: dict[str, Any]) -> None:
    with suppress(OSError):
        client.sendall(json.dumps(answer).encode() + b"\n")
    client.close()


def take_over(order: str, leader: int | None) -> Supervisor:
    """Return the supervisor that this process is from now on, to be run. Raises OSError: it cannot be one.

    Args:
        order: the path of the file with the order, which goes.
        leader: the process that was started; None: the supervisor starts it.
    """
    with open(order, "rb") as file:
        found = json.load(file)
    os.unlink(order)
    os.environ["USER_SPACE"] = found["user_space"]
    job = Supervisor({**found, "running": [] if leader is None else [leader, *found["running"]]})
    import signal

    # What has ended before the supervisor listened is looked for as well.
    os.kill(os.getpid(), signal.SIGCHLD)
    return job

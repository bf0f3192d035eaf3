"""The process that keeps one background job: its parent, its reader, and its door for later calls.

Started by `jobs` as `python -I -S -c …`, with an order on standard input (JSON: `argv`, `env`, `folder`, `seconds`, `input`,
`shielded`, `temporary`, `facts`), it detaches itself and answers `ok`, or an errno. In the job's folder it keeps `job.json`
(what the job is, and how it stands), `output` (see `spool`; both streams as they come), and listens on `socket`: one request a
connection, one line of JSON each way.

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

from rye.toolkit import guard, protected
from rye.toolkit.policy import Confined
from rye.toolkit.spool import Spool

RECORD, OUTPUT, SOCKET = "job.json", "output", "socket"

MAX_STDIN = 1024 * 1024
"""So much input waits for a job that does not read it (bytes)."""

_MAX_REQUEST = 4 * MAX_STDIN
_BLOCK = 1 << 16
_DRAIN = 0.2
_LOOK = 0.5
_GRACE = 1.0


def own_identity() -> dict[str, Any]:
    """Return what tells this process from any other, also after its number was given to another one."""
    return identity(os.getpid()) or {"pid": os.getpid(), "start": 0, "boot": ""}


def identity(pid: int) -> dict[str, Any] | None:
    """Return the same of any living process; None when there is none of that number."""
    fields = guard.stat_fields(pid)
    if not fields or fields[0] in (b"Z", b"X"):
        return None
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return {"pid": pid, "start": int(fields[19]), "boot": f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"}
    return {"pid": pid, "start": int(fields[19]), "boot": ""}


def write_record(dir_fd: int, record: dict[str, Any]) -> None:
    """Replace a job's record in one step (0600)."""
    temporary = f".{RECORD}.{os.urandom(4).hex()}"
    fd = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=dir_fd)
    with open(fd, "wb") as file:
        file.write(json.dumps(record).encode())
    os.rename(temporary, RECORD, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)


def listening(dir_fd: int) -> socket.socket:
    """Listen in a folder, by its descriptor: the address of a unix socket holds 107 bytes, a folder's path may be longer."""
    door = socket.socket(socket.AF_UNIX)
    door.bind(address(dir_fd))
    door.listen(16)
    door.setblocking(False)
    return door


def address(dir_fd: int) -> str:
    """Return the address of the socket in a folder that is held open."""
    if os.path.isdir("/proc/self/fd"):
        return f"/proc/self/fd/{dir_fd}/{SOCKET}"
    import fcntl

    folder: bytes = fcntl.fcntl(dir_fd, getattr(fcntl, "F_GETPATH", 50), bytes(1024))
    return os.path.join(os.fsdecode(folder.rstrip(b"\0")), SOCKET)


class Supervisor:
    """A job: its program, its output and those who ask about it."""

    def __init__(self, order: dict[str, Any]) -> None:
        """Start the program. Raises OSError."""
        self._dir = os.open(order["folder"], os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._spool: Spool | None = Spool(self._dir, OUTPUT)
        self._end = time.monotonic() + order["seconds"] if order["seconds"] is not None else None
        self._confined = Confined([], {}, (), {}, tuple(order["shielded"]), order["temporary"])
        if self._confined.shielded[1]:
            protected.take_over(*self._confined.shielded)
        guard.adopt_orphans()
        self._woken, self._waker = guard.children_ended()
        their_input, self._input = os.pipe()
        self._output, their_output = os.pipe()
        argv = [os.fsencode(word) for word in order["argv"]]
        env = {os.fsencode(name): os.fsencode(value) for name, value in order["env"].items()}
        self._leader: int | None = guard.spawn(argv, env, (their_input, their_output, their_output))
        os.close(their_input)
        os.close(their_output)
        self._door = listening(self._dir)
        for fd in (self._input, self._output):
            os.set_blocking(fd, False)
        self._waiting_input = bytearray(order["input"], "latin-1")
        self._input_open, self._close_input, self._output_open = True, False, True
        self._requests: dict[int, tuple[socket.socket, bytearray]] = {}
        self._attending: list[socket.socket] = []
        self.record = {
            **order["facts"], "status": "running", "supervisor": own_identity(), "leader": self._leader,
            "started": time.time(), "exit_status": None, "why": None,
        }  # fmt: skip
        write_record(self._dir, self.record)

    def descriptors(self) -> tuple[int, ...]:
        """Return what must stay open."""
        spool = self._spool.fd if self._spool else self._dir
        return (self._dir, self._woken, self._waker, self._input, self._output, self._door.fileno(), spool)

    def run(self) -> None:
        """Serve until the job is over."""
        exited_at = None
        while True:
            self._step(self._patience(exited_at))
            if self._leader is None:
                exited_at = exited_at or time.monotonic()
                # A program that has left others behind still is a job, as long as they live.
                drained = not self._output_open or time.monotonic() - exited_at >= _DRAIN
                if drained and not guard.descendants(os.getpid()):
                    return self._finish("exited", 0)
            if self._end is not None and time.monotonic() >= self._end:
                return self.end("timed_out")

    def _patience(self, exited_at: float | None) -> float | None:
        if exited_at is not None:
            return _DRAIN / 2 if time.monotonic() - exited_at < 2 * _DRAIN else _LOOK
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def _step(self, seconds: float | None) -> None:
        poll = select.poll()
        for fd in (self._door.fileno(), self._woken, *self._requests):
            poll.register(fd, select.POLLIN)
        if self._output_open:
            poll.register(self._output, select.POLLIN)
        if self._input_open and self._waiting_input:
            poll.register(self._input, select.POLLOUT)
        for fd, _ in poll.poll(None if seconds is None else seconds * 1_000):
            if fd == self._output:
                self._read()
            elif fd == self._input:
                self._feed()
            elif fd == self._woken:
                self._children()
            elif fd == self._door.fileno():
                self._let_in()
            elif fd in self._requests:
                self._hear(fd)

    def _children(self) -> None:
        import signal

        terminated = signal.SIGTERM in os.read(self._woken, 4_096)
        status = guard.reap(self._leader or 0)
        if status is not None:
            self._leader = None
            self.record["exit_status"] = status
            write_record(self._dir, self.record)
        if terminated:
            self.end("ended")
            sys.exit(0)

    def _read(self) -> None:
        try:
            block = os.read(self._output, _BLOCK)
        except BlockingIOError:
            return
        self._output_open = bool(block)
        try:
            if self._spool is not None:
                self._spool.write(block)
        except OSError as err:
            # A full disk ends the keeping, not the job; its output goes on being drained.
            self._spool = None
            self.record["output_lost"] = os.strerror(err.errno or 0)
            with suppress(OSError):
                write_record(self._dir, self.record)

    def _feed(self) -> None:
        try:
            while self._waiting_input:
                del self._waiting_input[: os.write(self._input, self._waiting_input[:_BLOCK])]
        except BlockingIOError:
            return
        except OSError:
            self._waiting_input.clear()
            self._close_input = True
        if self._close_input:
            os.close(self._input)
            # Its number may be a guest's next.
            self._input, self._input_open = -1, False

    def _let_in(self) -> None:
        with suppress(OSError):
            guest = self._door.accept()[0]
            guest.setblocking(False)
            self._requests[guest.fileno()] = (guest, bytearray())

    def _hear(self, fd: int) -> None:
        guest, said = self._requests[fd]
        try:
            block = guest.recv(_BLOCK)
        except BlockingIOError:
            return
        except OSError:
            block = b""
        said += block
        if block and b"\n" not in block and len(said) <= _MAX_REQUEST:
            return
        del self._requests[fd]
        try:
            request = json.loads(said)
            answer = self._do(request["do"], request, guest)
        except (ValueError, KeyError, TypeError, AttributeError):
            answer = {"error": "bad_request"}
        if answer is not None:
            _answer(guest, answer)

    def _do(self, what: str, request: dict[str, Any], guest: socket.socket) -> dict[str, Any] | None:
        if what in ("wait", "end"):
            self._attending.append(guest)
            if what == "end":
                self.end("ended")
                sys.exit(0)
            return None
        if what not in ("write", "close_stdin"):
            return {"error": "bad_request"}
        if not self._input_open or self._close_input:
            return {"error": "stdin_closed"}
        data = request["data"].encode("utf-8", "surrogateescape") if what == "write" else b""
        if len(self._waiting_input) + len(data) > MAX_STDIN:
            return {"error": "stdin_full"}
        self._waiting_input += data
        self._close_input = what == "close_stdin"
        self._feed()
        return {"ok": True}

    def end(self, why: str) -> None:
        """End the whole tree: politely first, so that servers can put their things in order."""
        if self._leader is not None:
            self._ask_to_end()
        status, left = guard.end_tree(self._leader)
        self.record["exit_status"] = status if status is not None else self.record["exit_status"]
        self._finish(why, left)

    def _ask_to_end(self) -> None:
        import signal

        for pid in guard.descendants(os.getpid()):
            # bubblewrap would not pass it on, and its end is that of all within.
            with suppress(OSError), open(f"/proc/{pid}/comm", "rb") as file:
                if file.read() != b"bwrap\n":
                    os.kill(pid, signal.SIGTERM)
        end = time.monotonic() + _GRACE
        while time.monotonic() < end and guard.descendants(os.getpid()):
            found = guard.reap(self._leader or 0)
            if found is not None:
                self._leader, self.record["exit_status"] = None, found
            time.sleep(0.01)

    def _finish(self, why: str, left: int) -> None:
        end = time.monotonic() + _DRAIN
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        while self._output_open and poll.poll(0) and time.monotonic() < end:
            self._read()
        self.record.update(status="ended", why=why, left=left, ended=time.time())
        with suppress(OSError):
            write_record(self._dir, self.record)
        with suppress(OSError):
            os.unlink(SOCKET, dir_fd=self._dir)
        self._confined.finish()
        for guest in self._attending:
            _answer(guest, {"ok": True})


def _answer(guest: socket.socket, answer: dict[str, Any]) -> None:
    with suppress(OSError):
        guest.sendall(json.dumps(answer).encode() + b"\n")
    guest.close()


def main() -> None:
    """Read the order, leave the one who gave it, start the job, say how that went, and serve it."""
    order = json.loads(sys.stdin.buffer.read())
    if os.fork():
        os._exit(0)
    os.setsid()
    try:
        job = Supervisor(order)
    except OSError as err:
        os.write(1, f"{err.errno}\n".encode())
        return
    os.write(1, b"ok\n")
    guard.forget_inherited(*job.descriptors())
    job.run()

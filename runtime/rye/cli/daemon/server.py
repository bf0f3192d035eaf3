"""The helper's own process: it has the command line's modules loaded, and keeps processes ready that make one call each.

It does nothing else: no call is made in it, and nothing of a call comes back to it. A process that is ready was forked from it,
waits for one caller, becomes like it (`caller`), makes the call as a normal start would, and ends. When the helper ends, those
that are ready end too, and calls that run go on.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn

from rye.cli import main as cli_main
from rye.cli.daemon import caller, client, loaded
from rye.cli.rt import main as rt_main
from rye.config import user_dirs
from rye.errors import RyeError
from rye.executor import run_code
from rye.sandbox import environment

READY: Final = 2
"""Processes that wait for a caller."""
MOST: Final = 64
"""Processes at once, those that make calls among them; who comes then starts normally."""

_LOOK_SECONDS: Final = 5.0
_HIGH_NUMBER: Final = 1000
_PAUSE_SECONDS: Final = 0.5
_ACCEPTED, _STALE = 1, 2
_NOTE: Final = struct.Struct("=iB")


class Place:
    """The folder of sockets, held open, with this installation's socket and the lock of its one helper."""

    def __init__(self) -> None:
        """Make the folder where there is none.

        Raises:
            RyeError: `daemon_unusable`, it cannot be one of this user's alone.
        """
        self.path = f"{user_dirs.user_ai()}/state/daemon"
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
        self.name = client.socket_name(package)
        try:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
            self.folder = client.open_folder(os.fsencode(self.path))
        except (OSError, ValueError) as err:
            raise RyeError(
                "daemon_unusable", f"{self.path} cannot be used: {err}.", "Make it a folder of yours with mode 0700."
            ) from None

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self.folder)

    def lock(self) -> int | None:
        """Take the lock and return its descriptor; None where another helper of this installation has it."""
        name = self.name.replace(b".socket", b".lock")
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self.folder)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return fd

    def listen(self) -> socket.socket:
        """Return the listening socket, in place of one that a helper left."""
        with suppress(FileNotFoundError):
            os.unlink(self.name, dir_fd=self.folder)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        # The folder keeps others out; the mode says the same of the socket itself.
        before = os.umask(0o177)
        try:
            listener.bind(b"/proc/self/fd/%d/%s" % (self.folder, self.name))
        finally:
            os.umask(before)
        listener.listen(MOST)
        return listener

    def identity(self) -> tuple[int, int] | None:
        """Return what the socket's name leads to; None for nothing."""
        try:
            info = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except OSError:
            return None
        return info.st_dev, info.st_ino


class Helper:
    """The helper: `serve` is its life."""

    def __init__(self, place: Place, lock: int) -> None:
        """Load everything, then listen."""
        _reset_signals()
        loaded.load()
        self._place, self._lock = place, lock
        self._code = loaded.Code()
        self._pages = loaded.pages_of_a_call(lambda: self._rehearse(f"{place.path}/rehearsal"))
        # No other process of this user looks into this one, nor into those that it makes.
        environment.close()
        self._own = caller.identity(os.getpid())
        self._listener = place.listen()
        self._socket = place.identity()
        # Nobody writes into it: it ends with the helper, which tells those that are ready.
        self._life, self._alive = os.pipe()
        self._notes, self._note = os.pipe()
        os.set_blocking(self._notes, False)
        self._ready: set[int] = set()
        self._busy: set[int] = set()
        self._leaving = False
        self._stale = False

    def _rehearse(self, folder: str) -> None:
        """Make a call from a caller that is this very process, with nothing for its streams."""
        os.makedirs(f"{folder}/.git", mode=0o700, exist_ok=True)
        os.chdir(folder)
        with open("a.txt", "w", encoding="utf-8") as file:
            file.write("one\ntwo\n")
        there, here = socket.socketpair()
        nothing = [os.open(os.devnull, os.O_RDWR) for _ in range(3)]
        # Its nonce is none that was given out, so it is refused, when all that comes before was done.
        socket.send_fds(there, [(client.NONCE_BYTES + 1).to_bytes(4, "little") + bytes(client.NONCE_BYTES + 1)], nothing)
        with suppress(caller.NotServedError):
            caller.accept(here, caller.identity(os.getpid()), self._hold_to_code)
        descriptors = dict(enumerate(nothing))
        for word, main in (("execute", cli_main.main), ("open", rt_main.main)):
            words = ["execute", "rye/file-system/read", "file_path=a.txt"] if word == "execute" else ["open", "a.txt:1"]
            request = caller.Request("rye", sys.executable, descriptors, ["rye", *words], dict(os.environ))
            here = caller.become(request, os.getpid(), here)
            descriptors = {number: os.dup(number) for number in (0, 1, 2)}
            main(words)

    def serve(self, ready: Callable[[], Any]) -> bool:
        """Keep processes ready until told to end; return whether to begin anew, since the code has changed.

        `ready` is called once there are some.
        """
        woken, waker = os.pipe()
        for fd in (woken, waker):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._leave)
        self._fill()
        ready()
        while not self._leaving:
            self._fill()
            poll = select.poll()
            for fd in (woken, self._notes, *self._code.watched, *([self._listener.fileno()] if not self._ready else [])):
                poll.register(fd, select.POLLIN)
            poll.poll(_LOOK_SECONDS * 1000)
            self._hear(woken)
            self._reap()
            if not self._ready and len(self._busy) >= MOST:
                self._turn_away()
            if self._code.changed(look=True):
                self._leaving = self._stale = True
            # Another helper has taken the name, or the folder is gone: nobody finds this one any more.
            if self._place.identity() != self._socket:
                break
        if self._place.identity() == self._socket:
            os.unlink(self._place.name, dir_fd=self._place.folder)
        self._listener.close()
        os.close(self._alive)
        os.close(self._lock)
        return self._stale

    def _leave(self, *_: object) -> None:
        self._leaving = True

    def _hear(self, woken: int) -> None:
        with suppress(BlockingIOError):
            os.read(woken, 1 << 12)
        with suppress(BlockingIOError):
            notes = os.read(self._notes, _NOTE.size * MOST)
            for pid, what in _NOTE.iter_unpack(notes[: len(notes) // _NOTE.size * _NOTE.size]):
                self._ready.discard(pid)
                self._busy.add(pid)
                if what == _STALE:
                    self._leaving = self._stale = True

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] in self._ready:
                    # It did not live to see a caller, so the next one will not either: not again at once.
                    time.sleep(_PAUSE_SECONDS)
                self._ready.discard(found[0])
                self._busy.discard(found[0])

    def _turn_away(self) -> None:
        """Close the connections that nobody is there to serve: their callers start normally at once."""
        with suppress(OSError):
            while True:
                self._listener.accept()[0].close()

    def _fill(self) -> None:
        while len(self._ready) < READY and len(self._ready) + len(self._busy) < MOST:
            try:
                pid = os.fork()
            except OSError:
                time.sleep(_PAUSE_SECONDS)
                return
            if not pid:
                self._be_ready()
            self._ready.add(pid)

    def _be_ready(self) -> NoReturn:
        """Be a process that waits for one caller."""
        try:
            signal.set_wakeup_fd(-1)
            _reset_signals()
            os.setpgid(0, 0)
            os.close(self._alive)
            os.close(self._lock)
            loaded.own(self._pages)
            _enlarge_table()
            # A thread that waits for its work, as after an earlier call.
            run_code.start(int)
            connection = self._one_caller()
            os.write(self._note, _NOTE.pack(os.getpid(), _ACCEPTED))
            request = self._judged(connection)
            if request is not None:
                _make_call(*request)
        except BaseException:  # noqa: BLE001 - nothing of a helper's process may go on in the code that forked it
            os._exit(1)
        os._exit(0)

    def _one_caller(self) -> socket.socket:
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        poll.register(self._life, select.POLLIN)
        while True:
            if any(fd == self._life for fd, _ in poll.poll()):
                os._exit(0)
            # Another one may have been faster.
            with suppress(BlockingIOError):
                return self._listener.accept()[0]

    def _hold_to_code(self) -> None:
        """Refuse where a file of this helper's code is another one by now, and have the helper begin anew."""
        if self._code.changed():
            os.write(self._note, _NOTE.pack(os.getpid(), _STALE))
            raise caller.NotServedError("the helper's code is old")

    def _judged(self, connection: socket.socket) -> tuple[str, socket.socket] | None:
        """Return the command, in a process that has become like its caller's; None where the caller is not served."""
        self._listener.close()
        os.close(self._life)
        os.close(self._notes)
        os.close(self._place.folder)
        try:
            # The files are looked at while the caller writes its request.
            request, pid = caller.accept(connection, self._own, self._hold_to_code)
            os.close(self._note)
            moved = caller.become(request, pid, connection)
            # From here on the old object is closed.
            connection = moved
            if request.command == client.PROBE:
                raise caller.NotServedError
            caller.end_with(moved)
            moved.settimeout(None)
            moved.send(client.STARTED)
        except (caller.NotServedError, OSError, ValueError) as err:
            with suppress(OSError):
                connection.send(client.NOT_SERVED + str(err).encode(errors="replace"))
            return None
        return request.command, moved


def _make_call(command: str, connection: socket.socket) -> NoReturn:
    """Make the call as the installed command does, tell the caller its exit code, and end."""
    gc.set_threshold(cli_main.ALLOCATIONS)
    code = _code_of(cli_main.main if command == "rye" else rt_main.main)
    if cli_main.has_pending_work():
        # As the interpreter does at its end, in this order.
        threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - there is no public way
        atexit._run_exitfuncs()  # noqa: SLF001
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    # Last: the caller's end of the connection closes then, which ends this process.
    with suppress(OSError):
        connection.send(client.ENDED + bytes((code & 0xFF,)))
    os._exit(code & 0xFF)


def _code_of(main: Callable[[], int]) -> int:
    """Return the exit code of a command, which may also end by `sys.exit` or by a fault of its own."""
    try:
        return main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001 - as the interpreter reports it
        sys.excepthook(*sys.exc_info())
        return 1


def _enlarge_table() -> None:
    """Make room for high numbers of descriptors: in a process with several threads the kernel takes 10 ms and more for it."""
    with suppress(OSError, ValueError):
        os.close(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, _HIGH_NUMBER))


def _reset_signals() -> None:
    """Take signals as an interpreter does that was started at a prompt."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ}:
        with suppress(OSError, ValueError):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def serve(place: Place, ready: Callable[[], Any]) -> bool:
    """Be the helper of this installation until it is told to end; call `ready` once it listens.

    Returns:
        Whether to begin anew, with the code as it is now.

    Raises:
        RyeError: `daemon_runs`, another process is it already.
    """
    lock = place.lock()
    if lock is None:
        raise RyeError("daemon_runs", "A helper of this installation runs already.", "See `rye daemon status`.")
    return Helper(place, lock).serve(ready)


def again(words: Sequence[str]) -> NoReturn:
    """Become a new helper in this very process, with the code as it is now."""
    os.execv(sys.executable, [sys.executable, *words])  # noqa: S606 - this very interpreter

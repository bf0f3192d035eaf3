"""JSON-RPC with a language server over its standard streams: framed messages, a reader thread, answers to its questions.

Format: the Language Server Protocol's base protocol, `Content-Length` headers in ASCII, then UTF-8 JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from rye.call.context import deadline
from rye.errors import RyeError

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
_STDERR_BYTES = 4_096
_GRACE = 1.0
# After so many questions without any message a server is given up; one alone may be a large project that loads.
_MAX_SILENCES = 2


class LanguageServerError(RyeError):
    """A language server is missing, failed, or did not answer in time."""


class LanguageServerConnection:
    """A running server process and the messages to and from it; every method may be called from any thread.

    Attributes:
        pid: of the process that was started.
        on_close: called by `close`, when the process has ended.
    """

    def __init__(
        self,
        name: str,
        argv: list[str],
        env: dict[str, str],
        cwd: str,
        on_notification: Callable[[str, Any], None],
        fds: tuple[int, ...] = (),
    ) -> None:
        """Start the server.

        Args:
            name: what errors call it.
            argv: program and arguments.
            env: its whole environment.
            cwd: directory it starts in.
            on_notification: called with method and parameters of each notification, in the reader's thread.
            fds: descriptors that it inherits.

        Raises:
            LanguageServerError: `server_failed`, when it cannot be started.
        """
        self._name = name
        self._on_notification = on_notification
        self._changed = threading.Condition()
        self._answers: dict[int, dict[str, Any]] = {}
        self._waiting: set[int] = set()
        self._next = 0
        self._ended = False
        self._silences = 0
        self.on_close: Callable[[], object] = lambda: None
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        # A file: a server may write megabytes of logs, and an unread pipe would block it.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the wire
        # The sandbox ends with the thread that started it (PR_SET_PDEATHSIG), so the reader thread starts it.
        started = threading.Event()
        failed: list[OSError] = []

        def work() -> None:
            try:
                self._process = self._popen(argv, env, cwd, fds)
            except OSError as err:
                failed.append(err)
                return
            finally:
                started.set()
            self._listen()

        self._listener = threading.Thread(target=work, name=f"lsp-{name}", daemon=True)
        self._listener.start()
        started.wait()
        if failed:
            self._stderr.close()
            message = f"{name} cannot be started: {failed[0].strerror}."
            raise LanguageServerError("server_failed", message, "Check its installation.")
        self.pid = self._process.pid
        # A server that does not read must not block its callers, and least of all the reader thread.
        threading.Thread(target=self._write, name=f"lsp-{name}-out", daemon=True).start()

    def _popen(self, argv: list[str], env: dict[str, str], cwd: str, fds: tuple[int, ...]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            start_new_session=True,
            pass_fds=fds,
        )

    @property
    def alive(self) -> bool:
        """Tell whether the server runs and its output is open."""
        return not self._ended and self._process.poll() is None

    @property
    def hangs(self) -> bool:
        """Tell whether several questions in a row timed out without any message from the server."""
        return self._silences >= _MAX_SILENCES

    def notify(self, method: str, params: Any) -> None:
        """Send a notification; one that a dead server cannot take is dropped."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, params: Any, seconds: float) -> Any:
        """Ask and return the result.

        Raises:
            LanguageServerError: `server_refused` with the server's words; `server_timeout`; `server_died`.
            DeadlineError: the call's own time is up.
        """
        with self._changed:
            self._next += 1
            number = self._next
            # Registered before the message is sent: the answer may arrive before this thread continues.
            self._waiting.add(number)
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        try:
            self.wait_for(lambda: number in self._answers, seconds, method)
        except RyeError:
            # The server need not go on computing an answer that nobody reads.
            self.notify("$/cancelRequest", {"id": number})
            raise
        finally:
            with self._changed:
                self._waiting.discard(number)
                answer = self._answers.pop(number, {})
        if "error" in answer:
            error = answer["error"]
            message = str(error.get("message", error) if isinstance(error, dict) else error)[:500]
            why = f"{self._name} refused {method}: {message}."
            raise LanguageServerError("server_refused", why, "Check the position and the file.")
        return answer.get("result")

    def wait_for(self, happened: Callable[[], bool], seconds: float, awaited: str) -> None:
        """Wait until `happened` is true; it is asked whenever a message came. Errors as `request`."""
        limit = deadline()
        end = time.monotonic() + seconds
        with self._changed:
            while not happened():
                limit.check()
                if self._ended:
                    raise self._died(awaited)
                left = min(end - time.monotonic(), limit.remaining())
                if left <= 0:
                    self._silences += 1
                    limit.check()
                    message = f"{self._name} did not answer {awaited} within {seconds:g} s."
                    raise LanguageServerError("server_timeout", message, "Try again: it may still be loading the project.")
                # Short waits: a cancelled call must end soon although no message wakes the condition.
                self._changed.wait(min(left, 0.25))

    def pause(self, seconds: float, happened: Callable[[], bool]) -> None:
        """Wait for a while, less if `happened` becomes true."""
        with self._changed:
            self._changed.wait_for(lambda: happened() or self._ended, min(seconds, deadline().remaining()))

    def close(self) -> None:
        """End the server and all that it started in its group."""
        self._ended = True
        if self._process.poll() is None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                # Politely first: servers write their caches when asked to end.
                os.killpg(self.pid, signal.SIGTERM)
                self._process.wait(_GRACE)
        with contextlib.suppress(OSError):
            # The group, not the process: servers start helpers that outlive them.
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self._end()
        # Wakes the writer thread, which waits in an empty queue.
        self._outgoing.put(None)
        self._listener.join(_GRACE)
        for pipe in (self._process.stdin, self._process.stdout, self._stderr):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self.on_close()

    def _died(self, awaited: str) -> LanguageServerError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            # Its pipes close shortly before the process ends.
            self._process.wait(_GRACE / 4)
        code = self._process.poll()
        said = b""
        # Closed, where another thread closes the connection while this one waits.
        with contextlib.suppress(ValueError, OSError):
            said = os.pread(self._stderr.fileno(), _STDERR_BYTES, 0)
        stderr = " ".join(said.decode("utf-8", "replace").split())[:300]
        how = "it closed its output" if code is None else f"exit code {code}"
        message = f"{self._name} ended during {awaited} ({how}){f': {stderr}' if stderr else ''}."
        return LanguageServerError("server_died", message, "Ask again: a new one is started.")

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode()
        self._outgoing.put(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))

    def _write(self) -> None:
        pipe = self._process.stdin
        assert pipe is not None  # asked for above
        try:
            while (data := self._outgoing.get()) is not None:
                pipe.write(data)
                pipe.flush()
        except (OSError, ValueError):
            self._end()

    def _end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _listen(self) -> None:
        try:
            while (message := self._read()) is not None:
                self._silences = 0
                self._take(message)
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            # It does not speak the protocol: whoever waits must learn that it is of no use.
            return
        finally:
            self._end()

    def _read(self) -> dict[str, Any] | None:
        pipe = self._process.stdout
        assert pipe is not None  # asked for above
        size = -1
        # A bound on a header line: a server that prints a log there must not fill the memory.
        while line := pipe.readline(_STDERR_BYTES):
            if line in (b"\r\n", b"\n"):
                break
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                size = int(value)
        # Without a usable length the next message's start is unknown: the connection is of no use.
        if not 0 <= size <= MAX_MESSAGE_BYTES:
            return None
        data = pipe.read(size)
        # Fewer bytes than announced: the server died in the middle of a message.
        content = json.loads(data) if len(data) == size else None
        return content if isinstance(content, dict) else None

    def _take(self, message: dict[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if method is None:
            with self._changed:
                # Nobody waits for this answer any more: its question timed out.
                if number in self._waiting and isinstance(number, int):
                    self._answers[number] = message
                self._changed.notify_all()
        elif number is None:
            self._on_notification(method, message.get("params"))
            with self._changed:
                self._changed.notify_all()
        else:
            # Every request of the server must be answered, or it waits and answers nothing itself.
            self._send({"jsonrpc": "2.0", "id": number, "result": _reply(method, message.get("params"))})


def _reply(method: str, params: Any) -> Any:
    """Answer a request of the server: there are no settings, and edits that the server starts are refused."""
    if method == "workspace/configuration":
        # A list of nulls, one an item: with anything else servers wait for ever.
        return [None] * len((params or {}).get("items", []))
    if method == "workspace/applyEdit":
        return {"applied": False, "failureReason": "edits are made by the client alone"}
    return None

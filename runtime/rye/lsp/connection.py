"""JSON-RPC with a language server over its standard streams: framed messages, a reader thread, answers to its questions.

Format: the Language Server Protocol's base protocol, `Content-Length` headers in ASCII, then UTF-8 JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from rye.call.context import deadline
from rye.errors import RyeError
from rye.fs.atomic import closing
from rye.process import run
from rye.sandbox.policy import Confined

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
_STDERR_BYTES = 4_096
_GRACE = 1.0
# After so many questions without any message a server is given up; one alone may be a large project that loads.
_MAX_SILENCES = 2


class LanguageServerError(RyeError):
    """A language server is missing, failed, or did not answer in time."""


class LanguageServerConnection:
    """A running server process and the messages to and from it; every method may be called from any thread."""

    def __init__(self, name: str, confined: Confined, cwd: str, on_notification: Callable[[str, Any], None]) -> None:
        """Start the server.

        Args:
            name: what errors call it.
            confined: it in its sandbox, which goes with the connection, also with one that could not be made.
            cwd: directory it starts in.
            on_notification: called with method and parameters of each notification, in the reader's thread.

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
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        try:
            with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
                ours.callback(confined.finish)
                theirs.callback(confined.close)
                # A file: a server may write megabytes of logs, and an unread pipe would block it.
                self._stderr = ours.enter_context(tempfile.TemporaryFile())
                (asked, asking), (told, telling) = run.pipes(2)
                theirs.callback(run.close_all, (asked, telling))
                self._asking = ours.enter_context(open(asking, "wb", buffering=0))
                self._told = ours.enter_context(open(told, "rb"))
                folder = theirs.enter_context(closing(os.open(cwd, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)))
                self._tree = run.Tree(confined, folder, (asked, telling, self._stderr.fileno()))
                ours.callback(self._tree.close)
                # What goes with the connection, the last first.
                self._held = ours.pop_all()
        except OSError as err:
            raise self._failed(f"{err.strerror}.") from None
        except RyeError as err:
            raise self._failed(err.message) from None
        self._listener = threading.Thread(target=self._listen, name=f"lsp-{name}", daemon=True)
        self._listener.start()
        # A server that does not read must not block its callers, and least of all the reader thread.
        threading.Thread(target=self._write, name=f"lsp-{name}-out", daemon=True).start()

    def _failed(self, why: str) -> LanguageServerError:
        return LanguageServerError("server_failed", f"{self._name} cannot be started: {why}", "Check its installation.")

    @property
    def pid(self) -> int:
        """The process that was started; 0 before it began."""
        return self._tree.pid

    @property
    def alive(self) -> bool:
        """Tell whether the server runs and its output is open."""
        with self._changed:
            self._tree.read_status()
        return not self._ended and self._tree.exit_status is None

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
        """End the server and all that it started."""
        self._end()
        self._tree.end()
        with self._changed:
            self._tree.wait(lambda: False, _GRACE)
        # Wakes the writer thread, which waits in an empty queue.
        self._outgoing.put(None)
        self._listener.join(_GRACE)
        self._held.close()

    def _died(self, awaited: str) -> LanguageServerError:
        # Its pipes close shortly before the process ends.
        self._tree.wait(lambda: self._tree.exit_status is not None, _GRACE / 4)
        if failure := self._tree.failure():
            return self._failed(failure.message)
        code, by_signal = run.code_and_signal(self._tree.exit_status)
        said = b""
        # Closed, where another thread closes the connection while this one waits.
        with contextlib.suppress(ValueError, OSError):
            said = os.pread(self._stderr.fileno(), _STDERR_BYTES, 0)
        stderr = " ".join(said.decode("utf-8", "replace").split())[:300]
        how = by_signal or ("it closed its output" if code is None else f"exit code {code}")
        message = f"{self._name} ended during {awaited} ({how}){f': {stderr}' if stderr else ''}."
        return LanguageServerError("server_died", message, "Ask again: a new one is started.")

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode()
        self._outgoing.put(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))

    def _write(self) -> None:
        try:
            while (data := self._outgoing.get()) is not None:
                view = memoryview(data)
                while view:
                    view = view[self._asking.write(view) :]
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
        size = -1
        # A bound on a header line: a server that prints a log there must not fill the memory.
        while line := self._told.readline(_STDERR_BYTES):
            if line in (b"\r\n", b"\n"):
                break
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                size = int(value)
        # Without a usable length the next message's start is unknown: the connection is of no use.
        if not 0 <= size <= MAX_MESSAGE_BYTES:
            return None
        data = self._told.read(size)
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

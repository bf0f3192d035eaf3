"""File tools for a command in the sandbox: `rt` there asks the process that started the command.

A sandboxed `rt` sees neither the secret of the line index nor the user's journal. So the `bash` tool hands the command one end
of a socket pair; its number, its inode and the project are named in `RYE_CHANNEL`. `rt` sends one end each of two pipes
over the socket. From the first the parent reads the request, on the second it writes the response, both JSON. So several
commands can ask at once. The parent runs only the file tools of the system bundle, in its own project.
"""

from __future__ import annotations

import contextvars
import json
import os
import select
import shutil
import socket
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from rye.call import context, safe_text
from rye.config import user_dirs

VARIABLE = "RYE_CHANNEL"
NONE = "none"
"""Its value in a background job, which nobody serves."""
SERVED = ("rye/file-system/", "rye/swe/")
"""How the ids of the tools begin that a command may ask for."""

_REQUEST_MAX = 16 * 1024 * 1024
_BLOCK = 1 << 16
_LOOK_SECONDS = 0.2
_SILENCE_SECONDS = 2.0
_UNREAD_SECONDS = 10.0


class CommandChannel:
    """The parent's half, for one command. Use it as a context manager around the command's life."""

    def __init__(self, root: str, answer: Callable[[str, dict[str, Any]], dict[str, Any]]) -> None:
        """Serve a project (real path) with `answer`, which takes a tool's id and its parameters."""
        self._answer = answer
        self._own_end, command_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._command_end = command_end
        self._over = threading.Event()
        outer = context.deadline()
        self._deadline = context.Deadline(outer.remaining())
        outer.when_expired(self._deadline.expire)
        self.fd = command_end.fileno()
        """What the command inherits."""
        self.own_fd = self._own_end.fileno()
        """Readable once the command asks, which few do: then call `serve`."""
        self._thread: threading.Thread | None = None
        self.environment = {**_path_with_rt(), VARIABLE: f"{self.fd}:{os.fstat(self.fd).st_ino}:{root}"}

    def __enter__(self) -> CommandChannel:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def serve(self) -> None:
        """Answer in a thread from now on what the command asks for. Raises RuntimeError: none can be started."""
        # It needs the context of the call: its deadline, its settings and who asked.
        in_context = contextvars.copy_context().run
        thread = threading.Thread(target=in_context, args=(self._serve,), name="rye-channel", daemon=True)
        thread.start()
        self._thread = thread

    def end(self) -> None:
        """Serve nobody any more. A call under way is cancelled, and has ended when this returns; a second time does nothing.

        So nothing is written for the command after it.
        """
        self._over.set()
        self._deadline.expire(cancelled=True)
        with suppress(OSError):
            # It wakes up at once, and closes its half: no descriptor outlives the command.
            self._command_end.close()
        if self._thread is not None:
            self._thread.join()
        self._own_end.close()

    def _comes(self, fd: int, event: int, seconds: float) -> bool:
        """Wait for a descriptor as long as the command lasts; tell whether it came so far in time."""
        end = time.monotonic() + seconds
        while not self._over.is_set() and time.monotonic() < end:
            if ready(fd, event, _LOOK_SECONDS):
                return True
        return False

    def _serve(self) -> None:
        with self._own_end:
            while self._comes(self._own_end.fileno(), select.POLLIN, float("inf")):
                try:
                    message, fds, _, _ = socket.recv_fds(self._own_end, 1, 2, socket.MSG_CMSG_CLOEXEC)
                except OSError:
                    return
                if not message:
                    return
                self._one(fds)

    def _one(self, fds: list[int]) -> None:
        try:
            # Anything else could be a file, or a pipe that has a name, which the command may not write.
            if len(fds) == 2 and all(os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:") for fd in fds):
                # Opened anew: those that it gave may hold both ends of a pipe, and it could make them wait for ever.
                for at, how in enumerate((os.O_RDONLY, os.O_WRONLY)):
                    own = os.open(f"/proc/self/fd/{fds[at]}", how | os.O_NONBLOCK | os.O_CLOEXEC)
                    os.close(fds[at])
                    fds[at] = own
                self._write(fds[1], json.dumps(self._response(self._request(fds[0]))).encode())
        except (OSError, ValueError, TypeError, RecursionError):
            # The asker gets no response, and says that to its caller.
            return
        finally:
            for fd in fds:
                os.close(fd)

    def _request(self, fd: int) -> object:
        data = bytearray()
        # `rt` writes at once. Whoever holds its pipe open in silence would keep the next one waiting. And a command can be any
        # program: what it sends must not fill the memory of this process.
        while len(data) <= _REQUEST_MAX and self._comes(fd, select.POLLIN, _SILENCE_SECONDS):
            block = os.read(fd, _BLOCK)
            if not block:
                return json.loads(data)
            data += block
        raise ValueError(len(data))

    def _response(self, request: object) -> dict[str, Any]:
        if not isinstance(request, dict):
            raise TypeError(request)
        item_id, parameters = request.get("item_id"), request.get("parameters")
        if not isinstance(item_id, str) or not item_id.startswith(SERVED) or not isinstance(parameters, dict):
            raise ValueError(item_id)
        with context.using(deadline=self._deadline):
            return self._answer(item_id, parameters)

    def _write(self, fd: int, data: bytes) -> None:
        """Write to a pipe that its reader may have given up, or never reads."""
        view = memoryview(data)
        # A command that never reads its answer must not hold this thread longer than this.
        while view and self._comes(fd, select.POLLOUT, _UNREAD_SECONDS):
            view = view[os.write(fd, view[:_BLOCK]) :]


def ready(fd: int, event: int, seconds: float) -> bool:
    """Wait for a descriptor. `select` refuses numbers above 1,023, which a long-lived host reaches."""
    poll = select.poll()
    poll.register(fd, event)
    return bool(poll.poll(seconds * 1000))


def ask_parent(item_id: str, parameters: dict[str, Any], project_path: str) -> dict[str, Any] | None:
    """Return the response of the process that started this command; None where it does not serve this tool and project.

    It is empty where that process took the request and gave none, or ended before it had given it whole.
    """
    fd = _inherited(os.environ.get(VARIABLE, ""), project_path) if item_id.startswith(SERVED) else None
    if fd is None:
        return None
    (request, giving), (taking, response) = os.pipe(), os.pipe()
    try:
        # A duplicate, since closing the socket object must not close the inherited descriptor.
        with socket.socket(fileno=os.dup(fd)) as channel:
            socket.send_fds(channel, [b"?"], [request, response])
    except OSError:
        for one in (giving, taking):
            os.close(one)
        return None
    finally:
        os.close(request)
        os.close(response)
    with open(giving, "wb") as out:
        out.write(json.dumps({"item_id": item_id, "parameters": parameters}).encode())
    with open(taking, "rb") as coming:
        answer = safe_text.of_json(coming.read())
    return answer if isinstance(answer, dict) else {}


def is_over(project_path: str) -> bool:
    """Tell whether nobody serves this command, which is a background job then, or has become one."""
    variable = os.environ[VARIABLE]
    fd = _inherited(variable, project_path)
    # Of no event: that the other end was closed is told all the same.
    return variable == NONE or (fd is not None and ready(fd, 0, 0.0))


def _inherited(variable: str, project_path: str) -> int | None:
    """Return the channel's descriptor, if this process has it: a program between may have closed it."""
    number, _, rest = variable.partition(":")
    inode, _, root = rest.partition(":")
    try:
        info = os.fstat(int(number))
    except (OSError, ValueError, OverflowError):
        return None
    # The number may have been closed and used again; the inode shows whether it is the same socket.
    fits = stat.S_ISSOCK(info.st_mode) and str(info.st_ino) == inode
    return int(number) if fits and os.path.realpath(project_path) == root else None


def _path_with_rt() -> dict[str, str]:
    """Return the `PATH` by which `rt` is found: a client often starts us by a path, outside the environment that we lie in."""
    path = os.environ.get("PATH", os.defpath)
    folder = os.path.dirname(user_dirs.python())
    # Last, so that no program that is found today becomes another one.
    if os.access(f"{folder}/rt", os.X_OK) and shutil.which("rt") is None:
        return {"PATH": f"{path}:{folder}"}
    return {}

"""What waits in the sandbox for one call: it answers as a Python tool's function, or becomes a program.

The call comes as a frame on standard input: 4 bytes of length (big-endian), then one JSON object in ASCII.

For a function it is `{"item_id", "digest", "source", "entry_point", "files", "parameters", "root", "seconds",
"max_output_bytes", "actor", "user_space"}`. The source is the bytes that were verified: the tool's file is not opened here. Out
go, as frames on the descriptor `answers`, `{"started": true}`, any number of `{"ask": request}` (each gets a reply, see
`rye.executor.channel`), and last one of `{"data": …}`, `{"failure": {code, message, hint, details}}`
and `{"crash": {kind, trace}}`. None of it is trusted.

For a program it is `{"files": {path: base64}, "folder": where to put them or null, "argv", "env", "cwd", "input": base64 or
null: what comes behind the frame, "limits": {name: [soft, hard]}, "programs": whether others may be started, "filter"}`. The
files are the verified bytes of the tool; they are written here, in the sandbox's own temporary folder, which nothing outside
can change. A NUL in `argv` and `env` stands for their folder. On `answers` goes the line `started`, or `failed` with the
reason; the program does not inherit it.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import json
import os
import select
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from rye.errors import RyeError

LENGTH = struct.Struct(">I")
"""The head of a frame."""

_FOLDER_MARK = "\0"
_OF_THE_PARENT = ("view_lines", "edit_files", "edit_lines", "replace_file")
_TRACE_MAX = 20_000


def framed(message: dict[str, Any]) -> bytes:
    """Return a message as a frame.

    Raises:
        TypeError, ValueError, RecursionError: it is not JSON.
    """
    body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode("ascii")
    return LENGTH.pack(len(body)) + body


def serve(answers: int) -> None:
    """Answer the one call that comes on standard input, through the descriptor `answers`."""
    # A program that the tool starts must not be able to write answers in its name.
    os.set_inheritable(answers, False)
    calls = _take_stdin()
    if not select.select([calls], [], [], 0)[0]:
        # While no call waits for it: what most tools ask their parent by.
        importlib.import_module("rye.executor.channel")
    call = _received(calls)
    _send(answers, {"started": True})
    last = _outcome(call, calls, answers)
    for stream in (sys.stdout, sys.stderr):
        # Whatever the tool put in its place raises: what it printed is lost, its result is not.
        with contextlib.suppress(BaseException):
            stream.flush()
    _send(answers, last)
    # What the tool left running ends here.
    os._exit(0)


def _received(calls: int) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(_exactly(calls, LENGTH.unpack(_exactly(calls, LENGTH.size))[0]))
    return message


def _take_stdin() -> int:
    """Return a descriptor of the calls that no other program inherits; the tool's own standard input is empty."""
    calls = os.dup(0)
    # The calls come on descriptor 0; a tool that reads standard input would take bytes of the next frame.
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    return calls


def _exactly(fd: int, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = os.read(fd, min(size - len(data), 1 << 20))
        if not chunk:
            # The parent is gone, or has no call for this child.
            os._exit(0)
        data += chunk
    return bytes(data)


def _send(answers: int, message: dict[str, Any]) -> None:
    view = memoryview(framed(message))
    # A thread of the tool may ask while another one answers, and half a frame within another one ends the call.
    with _sending:
        while view:
            view = view[os.write(answers, view) :]


_sending = threading.Lock()


def _outcome(call: dict[str, Any], calls: int, answers: int) -> dict[str, Any]:
    try:
        data = _run(call, calls, answers)
    except RyeError as err:
        return _sendable({"failure": {"code": err.code, "message": err.message, "hint": err.hint, "details": err.details}})
    except MemoryError as err:
        if not call["memory"]:
            return _crash(err)
        said = f"The tool needed more than the {call['memory'] >> 20} MB of memory that its chain allows."
        hint = "Ask for less in one call, or let its author raise memory_mb."
        return {"failure": {"code": "memory_limit", "message": said, "hint": hint, "details": {}}}
    except BaseException as err:  # noqa: BLE001 - whatever a tool raises is its failure
        return _crash(err)
    return {"data": data}


def _run(call: dict[str, Any], calls: int, answers: int) -> Any:
    from rye import toolkit
    from rye.call import context
    from rye.config.settings import Settings
    from rye.executor import run_code

    # A tool that is killed loses what is still buffered: each line is passed on at once.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a TextIOWrapper in a fresh process
    # A sandbox gives a temporary folder that ends with it.
    os.environ["USER_SPACE"] = call["user_space"] or f"{os.environ['TMPDIR']}/user"
    options = context.CallOptions(call["max_output_bytes"], actor=call["actor"])
    for name in _OF_THE_PARENT:
        # The secret of the line index is not in this process, so these functions ask the parent.
        setattr(toolkit, name, partial(_remote, partial(_asked, calls, answers), call["root"], name))
    confined = not call["user_space"]
    with context.using(options=options, deadline=context.Deadline(call["seconds"]), settings=Settings(), confined=confined):
        # From the bytes that the parent verified; the file may have changed since.
        code = run_code.compiled(call["source"], call["item_id"])
        if call["memory"]:
            import resource

            # The hard limit too: the tool's code could raise the other one again.
            resource.setrlimit(resource.RLIMIT_DATA, (call["memory"], call["memory"]))
        with _folder_of(call["files"]) as folder:
            # Where `import` finds them, in front of what is installed.
            sys.path[:0] = [folder] if folder else []
            answer = run_code.call(
                code, call["item_id"], call["digest"], call["parameters"], call["root"], call["entry_point"], folder
            )
        # Here, where the error can name the tool.
        return run_code.checked(answer, call["item_id"])


@contextlib.contextmanager
def _folder_of(files: dict[str, str]) -> Iterator[str]:
    """Hold a new folder with these files, base64 by path; of none, no folder."""
    if not files:
        yield ""
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="tool-") as folder:
        _write_files(files, folder)
        yield folder


def _remote(ask: Callable[[dict[str, Any]], dict[str, Any]], root: str, name: str, *args: Any, **options: Any) -> Any:
    """Have the parent do what a function of `rye.toolkit` does; most tools need not load this."""
    from rye.executor import channel

    return getattr(channel.RemoteFiles(ask, root), name)(*args, **options)


def _asked(calls: int, answers: int, request: dict[str, Any]) -> dict[str, Any]:
    """Send a request to the parent and return the reply; one thread of the tool at a time."""
    with _asking:
        _send(answers, {"ask": request})
        return _received(calls)


_asking = threading.Lock()


def _sendable(message: dict[str, Any]) -> dict[str, Any]:
    try:
        framed(message)
    except (TypeError, ValueError, RecursionError) as err:
        return _crash(err)
    return message


def _crash(err: BaseException) -> dict[str, Any]:
    import traceback

    trace = "".join(traceback.format_exception(err))[-_TRACE_MAX:]
    return {"crash": {"kind": type(err).__name__[:100], "trace": trace}}


# --- a program ---


def become(answers: int) -> None:
    """Take the one call that comes on standard input, and become its program."""
    os.set_inheritable(answers, False)
    # Loaded while nobody waits for it, and all that starting a program needs.
    from rye.sandbox import launcher, seccomp

    # Not a byte more: what comes behind the frame is the program's.
    call = _received(0)
    try:
        # Not `tempfile`, which loads much; nobody else sees the sandbox's own temporary folder.
        folder = os.path.join(call["folder"] or os.environ["TMPDIR"], f"tool-{os.urandom(4).hex()}")
        os.mkdir(folder, 0o700)
        _write_files(call["files"], folder)
        argv = [word.replace(_FOLDER_MARK, folder) for word in call["argv"]]
        env = {**os.environ, **{name: value.replace(_FOLDER_MARK, folder) for name, value in call["env"].items()}}
        if call["input"] is not None:
            _give_input(base64.b64decode(call["input"]))
        os.chdir(call["cwd"].replace(_FOLDER_MARK, folder))
        os.write(answers, b"started\n")
        if not call["filter"] or not seccomp.supported():
            launcher.limit(call["limits"])
            os.execvpe(argv[0], argv, env)  # noqa: S606 - this is what the process is for
        plan = {"argv": argv, "env": env, "cwd": ".", "rules": None, "tcp": True, "sockets": "all"}
        launcher.start({**plan, "limits": call["limits"], "programs": call["programs"]})
    except Exception as err:  # noqa: BLE001 - whatever it is, the parent says it
        why = f"{err.filename}: {err.strerror}" if isinstance(err, OSError) else f"{type(err).__name__}: {err}"
        os.write(answers, f"failed {why}\n".encode("utf-8", "replace")[:2_000])
    os._exit(126)


def _write_files(files: dict[str, str], folder: str) -> None:
    """Write a tool's files, base64 by path, into a folder that has none of them. Raises OSError."""
    for path, content in files.items():
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        with open(target, "xb") as file:
            file.write(base64.b64decode(content))


def _give_input(data: bytes) -> None:
    """Put the input where the program reads it: a file, so that one that never reads it does not block anybody."""
    with open(os.memfd_create("input"), "w+b") as file:
        file.write(data)
        file.seek(0)
        os.dup2(file.fileno(), 0)

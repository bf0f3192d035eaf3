"""What runs in the child process of another signer's tool: one call comes in by pipe, one result goes out, then it ends.

Both pipes carry frames: 4 bytes of length (big-endian), then one JSON object in ASCII. In comes the call `{"item_id",
"digest", "source", "entry_point", "files", "parameters", "root", "seconds", "max_output_bytes", "actor", "user_space"}`. The
source is the bytes that were verified: the tool's file is not opened here. Out go `{"started": true}`, any number of
`{"report": text}` and `{"ask": request}` (each request gets a reply, see `rye.executor.channel`), and last one of `{"data":
…}`, `{"failure": {code, message, hint, details}}` and `{"crash": {kind, trace}}`. None of it is trusted.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from rye.errors import RyeError

LENGTH = struct.Struct(">I")
"""The head of a frame."""

_OF_THE_PARENT = ("view_lines", "edit_files", "edit_lines", "replace_file")
_TRACE_MAX = 20_000
_REPORT_MAX = 65_536
# Modules that tools use most, loaded while the worker waits, so that no call waits for the imports.
_USED_BY_MOST = ("rye.executor.channel", "rye.filesearch.content_search", "rye.filesearch.name_search")


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
    _use_the_wait(calls)
    call = _received(calls)
    _send(answers, {"started": True})
    last = _outcome(call, calls, answers)
    for stream in (sys.stdout, sys.stderr):
        _flush(stream)
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
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return calls


def _use_the_wait(calls: int) -> None:
    import importlib
    import select

    for name in _USED_BY_MOST:
        # A call has come: load no more in advance, it would have to wait.
        if select.select([calls], [], [], 0)[0]:
            return
        importlib.import_module(name)


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
    # Reports come from several threads, and half a frame within another one ends the call.
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
    options = context.CallOptions(
        call["max_output_bytes"], lambda text: _send(answers, {"report": text[:_REPORT_MAX]}), actor=call["actor"]
    )
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
        if call["files"]:
            # Where `import` finds them, in front of what is installed.
            with folder_of(call["files"]) as folder:
                sys.path.insert(0, folder)
                answer = run_code.call(
                    code, call["item_id"], call["digest"], call["parameters"], call["root"], call["entry_point"], folder
                )
        else:
            answer = run_code.call(code, call["item_id"], call["digest"], call["parameters"], call["root"], call["entry_point"])
        # Here, where the error can name the tool.
        return run_code.checked(answer, call["item_id"])


@contextlib.contextmanager
def folder_of(files: dict[str, str]) -> Iterator[str]:
    """Hold a new folder with these files, base64 by path."""
    import tempfile

    from rye.executor.primitives import program_start

    with tempfile.TemporaryDirectory(prefix="tool-") as folder:
        program_start.write_files(files, folder)
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


def _flush(stream: Any) -> None:
    try:
        stream.flush()
    except BaseException:  # noqa: BLE001 - what it printed is lost, its result is not
        return

"""What runs in the child process of another signer's tool: one call comes in by pipe, one result goes out, then it ends.

Both pipes carry frames: 4 bytes of length (big-endian), then one JSON object in UTF-8. In comes the call
`{"item_id", "digest", "source", "parameters", "root", "seconds", "max_output_bytes", "user_space"}`, whose source are the bytes
that were verified: the tool's file is not opened here. Out go `{"started": true}`, any number of `{"report": text}`, and last
one of `{"data": …}`, `{"failure": {code, message, hint, details}}` and `{"crash": {kind, trace}}`. Nobody trusts what goes out.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import threading
from typing import Any

from rye.errors import RyeError

LENGTH = struct.Struct(">I")
"""The head of a frame."""

_TRACE_MAX = 20_000
_REPORT_MAX = 65_536
# What tools use most. It is loaded while there is no call yet, so that none waits for it.
_USED_BY_MOST = ("rye.toolkit.editing", "rye.toolkit.grepping", "rye.toolkit.listing", "rye.toolkit.globbing")


def framed(message: dict[str, Any]) -> bytes:
    """Return a message as a frame.

    Raises:
        TypeError, ValueError, RecursionError: it is not JSON.
    """
    body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode("ascii")
    return LENGTH.pack(len(body)) + body


def serve(answers: int) -> None:
    """Answer the one call that comes on standard input, through the descriptor `answers`."""
    os.set_inheritable(answers, False)
    calls = _take_stdin()
    _use_the_wait(calls)
    call = json.loads(_exactly(calls, LENGTH.unpack(_exactly(calls, LENGTH.size))[0]))
    os.close(calls)
    _send(answers, {"started": True})
    last = _outcome(call, answers)
    for stream in (sys.stdout, sys.stderr):
        _flush(stream)
    _send(answers, last)
    # What the tool left running ends here.
    os._exit(0)


def _take_stdin() -> int:
    """Return a descriptor of the calls that no other program inherits; the tool's own standard input is empty."""
    calls = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return calls


def _use_the_wait(calls: int) -> None:
    import importlib
    import select

    for name in _USED_BY_MOST:
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
    with _sending:
        while view:
            view = view[os.write(answers, view) :]


_sending = threading.Lock()


def _outcome(call: dict[str, Any], answers: int) -> dict[str, Any]:
    try:
        data = _run(call, answers)
        if not isinstance(data, dict):
            raise TypeError(f"execute() returned {type(data).__name__}, not a dict")
        framed(data)
    except RyeError as err:
        return _sendable({"failure": {"code": err.code, "message": err.message, "hint": err.hint, "details": err.details}})
    except BaseException as err:  # noqa: BLE001 - whatever a tool raises is its failure
        return _crash(err)
    return {"data": data}


def _run(call: dict[str, Any], answers: int) -> Any:  # noqa: ANN401 - whatever the tool returns
    from rye import entry
    from rye.toolkit import output

    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a TextIOWrapper in a fresh process
    # A sandbox gives a temporary folder that ends with it.
    os.environ["USER_SPACE"] = call["user_space"] or f"{os.environ['TMPDIR']}/user"
    door = output.Door(call["max_output_bytes"], lambda text: _send(answers, {"report": text[:_REPORT_MAX]}))
    with output.opened_by(door), output.within(output.Deadline(call["seconds"])):
        code = entry.compiled(call["source"], call["item_id"])
        return entry.call(code, call["item_id"], call["digest"], call["parameters"], call["root"])


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


def _flush(stream: Any) -> None:  # noqa: ANN401 - whatever the tool put there
    try:
        stream.flush()
    except BaseException:  # noqa: BLE001 - what it printed is lost, its result is not
        return

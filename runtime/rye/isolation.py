"""Another signer's tool, run in a cell: the call goes in, the result comes out, and nothing of it is taken on trust.

The child has what the tool declares in `__permissions__` and no more, as far as this machine's sandbox holds (see the report).
It has a user's space of its own, which ends with it: the toolkit reads, lists, searches and edits there as everywhere, but
line IDs are those of a first look, and what it edits stands in no journal.
"""

from __future__ import annotations

import codecs
import json
import os
import select
import selectors
import sys
from typing import TYPE_CHECKING, Any

from rye import state
from rye.cells import Cell, Terms, keeper
from rye.entry import Crashed
from rye.errors import RyeError
from rye.isolated_child import LENGTH, framed
from rye.toolkit import output, profiles, sandbox

if TYPE_CHECKING:
    from rye.items import Tool

_ANSWER_MAX = 16 * 1024 * 1024
_PRINTED_MAX = 65_536
_SAID_MAX = 4_096
_SAID_LINES = 5
_BLOCK = 1 << 16
_PIPE_BLOCKS = 32


def terms(tool: Tool, root: str) -> Terms:
    """Return what a tool may do in a project: what it declares, under the settings of the user and the project.

    What the user lets through to commands (`sandbox.pass_env`) does not go to the tools of others. Nothing is written in a
    profile that lets no tool write.

    Raises:
        UsageError: `bad_config`, `bad_profile`.
    """
    real = os.path.realpath(root)
    info = os.stat(real)
    applies = sandbox.effective(real)
    held_back = ("write",) if profiles.read_only(real) else ()
    permissions = tuple(one for one in tool.permissions if one not in held_back)
    return Terms(real, (info.st_dev, info.st_ino), permissions, applies.mode, applies.network)


def foreseen(tool: Tool, root: str) -> dict[str, Any]:
    """Return what would hold, as `cell(tool, root).report`, without starting anything. Errors as `cell`."""
    asked = terms(tool, root)
    confined = asked.confine([sys.executable])
    confined.close()
    confined.finish()
    return _reported(confined.report, asked)


def cell(tool: Tool, root: str) -> Cell:
    """Return a cell for a tool's call; `call` gives it back.

    Raises:
        RyeError: `sandbox_unavailable`, where the user requires one; `isolation_failed`.
    """
    asked = terms(tool, root)
    try:
        taken = keeper.take(asked)
    except OSError as err:
        raise _failed(f"its process could not be started ({err.strerror})") from None
    return taken


def report(taken: Cell) -> dict[str, Any]:
    """Return `{"kind", "permissions", "holds", "missing"}`: what the tool was given, and what kept it there."""
    return _reported(taken.report, taken.terms)


def _reported(told: dict[str, Any], asked: Terms) -> dict[str, Any]:
    return {"kind": told["kind"], "permissions": list(asked.permissions), **told}


def call(taken: Cell, tool: Tool, parameters: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the tool returns
    """Have the cell run the tool, and return its result; what it prints goes to `sys.stdout`.

    Raises:
        RyeError: the tool's own; the deadline's, once all was killed; `tool_died`, `bad_tool_result`, `isolation_failed`.
        Crashed: the tool raised anything else.
    """
    limit = output.deadline()
    limit.when_expired(taken.kill)
    try:
        exchange = _Exchange(taken)
        answer = exchange.answer(framed(_message(taken, tool, parameters, limit)))
        if answer is None:
            raise _why_none(taken, limit, exchange)
    finally:
        keeper.done(taken)
    return _outcome(answer)


def _message(taken: Cell, tool: Tool, parameters: dict[str, Any], limit: output.Deadline) -> dict[str, Any]:
    verified = tool.verified
    return {
        "item_id": tool.id, "digest": verified.digest, "source": verified.body.decode(), "parameters": parameters,
        "root": taken.terms.root, "seconds": min(limit.remaining(), 1e9), "max_output_bytes": output.output_room(),
        "user_space": str(state.user_space()) if taken.report["kind"] == "none" else None,
    }  # fmt: skip


class _Exchange:
    """One call's traffic: the call out; answer, prints and error output in, all bounded."""

    def __init__(self, taken: Cell) -> None:
        self._cell = taken
        self._frames = bytearray()
        self._printed = 0
        self._text = codecs.getincrementaldecoder("utf-8")("replace")
        self._said = b""
        self.started = False

    def answer(self, request: bytes) -> dict[str, Any] | None:
        """Return the child's last message, or None when it ended without one.

        Raises:
            RyeError: `bad_tool_result`, what came is no message.
        """
        rest = memoryview(request)
        last = None
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._cell.calls, selectors.EVENT_WRITE)
            for fd in (self._cell.answers, self._cell.printed, self._cell.said, self._cell.tree.status):
                waiting.register(fd, selectors.EVENT_READ)
            # What the tool left behind may hold the pipe open when the tool is gone.
            while last is None and self._cell.answers in waiting.get_map() and not self._cell.ended():
                for key, _ in waiting.select():
                    if key.fd == self._cell.calls:
                        rest = rest[_written(key.fd, rest) :]
                    if not (rest if key.fd == self._cell.calls else self._read(key.fd)):
                        waiting.unregister(key.fd)
                last = self._last_message()
        for fd in (self._cell.answers, self._cell.printed, self._cell.said):
            self._take_what_is_there(fd)
        return last or self._last_message()

    def _read(self, fd: int) -> bool:
        """Take some of what has come; return False at the end of the pipe."""
        if fd == self._cell.tree.status:
            return not self._cell.ended()
        try:
            data = os.read(fd, _BLOCK)
        except BlockingIOError:
            return True
        if fd == self._cell.answers:
            self._frames += data
        elif fd == self._cell.said:
            self._said = (self._said + data)[-_SAID_MAX:]
        elif self._printed < _PRINTED_MAX:
            self._printed += len(data)
            sys.stdout.write(self._text.decode(data))
        return bool(data)

    def _take_what_is_there(self, fd: int) -> None:
        """Take what a pipe still holds; who goes on writing is not waited for."""
        for _ in range(_PIPE_BLOCKS):
            if not select.select([fd], [], [], 0)[0] or not self._read(fd):
                return

    def _last_message(self) -> dict[str, Any] | None:
        while len(self._frames) >= LENGTH.size:
            (size,) = LENGTH.unpack_from(self._frames)
            if size > _ANSWER_MAX:
                raise _bad(f"it would have {size:,} bytes, and at most {_ANSWER_MAX:,} are taken")
            if len(self._frames) < LENGTH.size + size:
                break
            message = _parsed(bytes(self._frames[LENGTH.size : LENGTH.size + size]))
            del self._frames[: LENGTH.size + size]
            if message.keys() & {"data", "failure", "crash"}:
                return message
            self.started = True
            if isinstance(message.get("report"), str):
                output.report(message["report"])
        return None

    def last_words(self) -> str:
        """Return the last lines of error output, printable."""
        lines = self._said.decode("utf-8", "replace").split("\n")
        shown = ["".join(c if c.isprintable() else "?" for c in line) for line in lines if line.strip()]
        return " | ".join(shown[-_SAID_LINES:])


def _written(fd: int, data: memoryview) -> int:
    """Write some; a child that no longer reads took all that it wanted."""
    try:
        return os.write(fd, data[:_BLOCK])
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(data)


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
        # An exponent can make an infinity, which is no JSON.
        json.dumps(message, allow_nan=False)
    except (ValueError, RecursionError) as err:
        raise _bad(f"it is not JSON ({type(err).__name__})") from None
    if not isinstance(message, dict):
        raise _bad("it is not a JSON object")
    return message


def _outcome(answer: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the tool returned
    if "failure" in answer:
        raise _failure(answer["failure"])
    if "crash" in answer:
        told = answer["crash"] if isinstance(answer["crash"], dict) else {}
        kind, trace = str(told.get("kind", "")), str(told.get("trace", ""))
        raise Crashed(kind if kind.isidentifier() else "an error", trace)
    return answer["data"]


def _failure(told: Any) -> RyeError:  # noqa: ANN401 - the child's word
    names, texts = ("code", "message", "hint"), {}
    if isinstance(told, dict):
        texts = {name: told[name] for name in names if isinstance(told.get(name), str)}
    details = told.get("details") if isinstance(told, dict) else None
    if len(texts) != len(names) or not isinstance(details, dict):
        raise _bad("it is a failure without code, message, hint and details")
    error = RyeError(texts["code"], texts["message"], texts["hint"])
    error.details = details
    return error


def _why_none(taken: Cell, limit: output.Deadline, exchange: _Exchange) -> RyeError:
    """Say why there is no answer: killed at the limit, never begun, or died."""
    if limit.remaining() > 0:
        taken.wait_for_its_end()
    taken.kill()
    taken.wait()
    if limit.remaining() <= 0:
        error = limit.error()
        error.message += " Its process was killed, with all that it had started."
        error.details = {"killed": True}
        return error
    how = taken.how_it_ended()
    words = exchange.last_words()
    said = f" Its last words: {words}" if words else ""
    if not exchange.started:
        return _failed(f"its process ended before the tool began ({how}).{said}")
    return RyeError(
        "tool_died", f"The tool's process ended without a result ({how}).{said}",
        "Report it to the tool's owner; what it had written until then stands.",
    )  # fmt: skip


def _failed(why: str) -> RyeError:
    return RyeError(
        "isolation_failed", f"The tool cannot be run in a process of its own: {why}",
        "Look at the limits of the system and at what the sandbox says, then try again.",
    )  # fmt: skip


def _bad(why: str) -> RyeError:
    return RyeError("bad_tool_result", f"The tool's result cannot be taken: {why}.", "Report it to the tool's owner.")

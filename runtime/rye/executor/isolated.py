"""Another signer's tool, run in a worker: the call goes in, the result comes out, and all of it is checked.

The child has what the tool declares in `__permissions__` and no more, as far as this machine's sandbox holds (see the report).
It has a user's space of its own, which ends with it. Line IDs and the journal it reaches through this process alone, see
`rye.executor.channel`.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any

from rye.call import context, profile, safe_text
from rye.config import user_dirs
from rye.errors import RyeError, UsageError
from rye.executor.run_code import Crashed
from rye.executor.worker import LENGTH, framed
from rye.executor.worker_pool import Worker, WorkerPolicy, pool
from rye.items.parse import PERMISSIONS, PERMISSIONS_KEY
from rye.process import run, terminal_text
from rye.process.output_files import Capture
from rye.sandbox import sandbox
from rye.workspace.workspace import Workspace

if TYPE_CHECKING:
    from rye.executor.channel import FileService
    from rye.items.parse import Tool

_ANSWER_MAX = 16 * 1024 * 1024
_PRINTED_MAX = 10_240
_ERRORS_MAX = 4_096
_LAST_BYTES = 400
# The frames below an error and what closes them: the message that a reader needs stands above.
_FRAME = re.compile(r"\s+at |\s+File \"|Node\.js v|\s*[~^]+\s*\Z|\s*[{}]?\s*\Z")


def policy(tool: Tool, root: str) -> WorkerPolicy:
    """Return what a tool may do in a project: what it declares, under the settings of the user and the project.

    What the user lets through to commands (`sandbox.pass_env`) does not go to the tools of others. Nothing is written in a
    profile that lets no tool write.

    Raises:
        UsageError: `bad_config`, `bad_profile`.
    """
    with Workspace(root) as workspace:
        real, identity = workspace.real, workspace.identity
    applies = sandbox.effective(real)
    # The profile can change between calls, so it is read for each worker.
    held_back = ("write",) if profile.read_only(real) else ()
    permissions = tuple(one for one in tool.permissions or _granted(tool) if one not in held_back)
    return WorkerPolicy(real, identity, permissions, applies.mode, applies.network)


def _granted(tool: Tool) -> tuple[str, ...]:
    """Return what the user lets a tool do that declares nothing: one made for an installation that knows no permissions."""
    if PERMISSIONS_KEY in tool.metadata:
        return ()
    granted: set[str] = set()
    for line in context.settings().texts("permissions.granted"):
        name, *permissions = line.split() or [""]
        unknown = [one for one in permissions if one not in PERMISSIONS]
        if unknown:
            why = f"permissions.granted: there is no permission {unknown[0]!r}."
            raise UsageError("bad_config", why, f"Use {', '.join(PERMISSIONS)}.")
        if tool.id == name or (name.endswith("/") and tool.id.startswith(name)):
            granted.update(permissions, ["read"] if "write" in permissions else [])
    return tuple(one for one in PERMISSIONS if one in granted)


def preview(asked: WorkerPolicy) -> dict[str, Any]:
    """Return what would hold under a policy, as `Worker.reported`, without starting anything."""
    confined = asked.confine([user_dirs.python()])
    confined.close()
    confined.finish()
    return _reported(confined.report, asked)


def worker_for(asked: WorkerPolicy) -> Worker:
    """Return a worker for a call under a policy; `call` gives it back.

    Its `reported` is `{"kind", "permissions", "holds", "missing", "set_aside"?}`: what the tool was given, and what kept it
    there. `set_aside` comes with the call's end: what the tool put where programs of the user act on it.

    Raises:
        RyeError: `sandbox_unavailable`, where the user requires one; `isolation_failed`.
    """
    try:
        made = pool.take(asked)
    except OSError as err:
        raise _failed(f"its process could not be started ({err.strerror})") from None
    made.reported = _reported(made.report, asked)
    return made


def _reported(report: dict[str, Any], asked: WorkerPolicy) -> dict[str, Any]:
    return {"kind": report["kind"], "permissions": list(asked.permissions), **report}


def call(
    worker: Worker,
    tool: Tool,
    parameters: dict[str, Any],
    entry_point: str = "execute",
    files: Mapping[str, str] | None = None,
    memory: int = 0,
) -> Any:
    """Have the worker run the tool, and return its result; what it prints goes to the call's `printed`.

    `memory` is how many bytes it may take, 0: as many as there are.

    Raises:
        RyeError: the tool's own; the deadline's, once all was killed; `memory_limit`, `tool_died`, `bad_tool_result`,
            `isolation_failed`.
        Crashed: the tool raised anything else.
    """
    limit = context.deadline()
    # Registered before the call is sent: a deadline that passes in between still ends the child.
    limit.when_expired(worker.kill)
    exchange, printed, errors = _Exchange(worker, tool.id), Capture(is_told=False), Capture(is_told=False)
    try:
        asked = {"parameters": parameters, "entry_point": entry_point, "files": dict(files or {}), "memory": memory}
        worker.send(framed({**_about(worker, tool, limit), **asked}))
        pipes = {worker.answers: exchange, worker.printed: printed, worker.errors: errors}
        outcome = run.watch(worker.tree, pipes, limit.remaining())
    finally:
        if (sink := context.current().printed) is not None:
            sink.append(printed.ends()[0].decode("utf-8", "replace")[:_PRINTED_MAX])
        finish(worker)
    if exchange.last is None:
        # The end, not the beginning: a traceback names the error in its last line.
        raise _why_none(outcome, limit, started=exchange.started, errors=b"".join(errors.ends())[-_ERRORS_MAX:])
    return _outcome(exchange.last, exchange.line_ids)


def finish(worker: Worker) -> None:
    """Give a worker back whose call is over, and put into its report what it had to set aside."""
    pool.done(worker)
    if worker.set_aside:
        worker.reported["set_aside"] = list(worker.set_aside)


def _about(worker: Worker, tool: Tool, limit: context.Deadline) -> dict[str, Any]:
    """Return what the worker is told of the tool, and of the call that it runs in."""
    return {
        "item_id": tool.id,
        "digest": tool.verified.digest,
        "source": tool.verified.body.decode(),
        "root": worker.policy.root,
        # JSON has no infinity, which is the time that is left where there is no limit.
        "seconds": min(limit.remaining(), 1e9),
        "max_output_bytes": context.output_budget(),
        "actor": context.actor(),
        "user_space": str(user_dirs.user_space()) if worker.report["kind"] == "none" else None,
    }


class _Exchange(Capture):
    """The messages of one call, bounded: what the tool asks is answered as it comes; `last` is its result."""

    def __init__(self, worker: Worker, item_id: str) -> None:
        super().__init__(is_told=False)
        self._worker = worker
        self._item_id = item_id
        self._files: FileService | None = None
        self._frames = bytearray()
        self.last: dict[str, Any] | None = None
        self.started = False

    @property
    def line_ids(self) -> Container[str]:
        """The line IDs that the worker was given."""
        return () if self._files is None else self._files.line_ids

    def close(self) -> None:
        """Close what the worker had open."""
        if self._files is not None:
            self._files.close()

    def _reply(self, request: object) -> None:
        if self._files is None:
            from rye.executor.channel import FileService

            # Made at the first request: most tools ask for nothing, and need not load the editing packages.
            self._files = FileService(self._worker.policy.root, self._worker.policy.permissions, self._item_id)
        self._worker.send(framed(self._files.answer(request)))

    def feed(self, block: bytes) -> None:
        """Take a block. Raises RyeError `bad_tool_result`: what came is no message."""
        # Nothing counts behind the last one, nor is it held.
        self._frames += b"" if self.is_over else block
        while not self.is_over and len(self._frames) >= LENGTH.size:
            (size,) = LENGTH.unpack_from(self._frames)
            # Before the body arrives: a false length must not make this process allocate gigabytes.
            if size > _ANSWER_MAX:
                raise _bad(f"it would have {size:,} bytes, and at most {_ANSWER_MAX:,} are accepted")
            if len(self._frames) < LENGTH.size + size:
                break
            message = safe_text.of_json(bytes(self._frames[LENGTH.size : LENGTH.size + size]))
            if not isinstance(message, dict):
                raise _bad("it is not a JSON object")
            del self._frames[: LENGTH.size + size]
            self.started = True
            if message.keys() & {"data", "failure", "crash"}:
                self.last, self.is_over = message, True
            elif "ask" in message:
                self._reply(message["ask"])


def _outcome(answer: dict[str, Any], line_ids: Container[str]) -> Any:
    """Return the tool's result, cleaned: what it says can neither control a terminal nor imitate our own messages."""
    if "failure" in answer:
        raise _failure(safe_text.clean(answer["failure"], line_ids))
    if "crash" in answer:
        crash = answer["crash"] if isinstance(answer["crash"], dict) else {}
        kind, trace = str(crash.get("kind", "")), str(crash.get("trace", ""))
        raise Crashed(kind if kind.isidentifier() else "an error", trace)
    data = safe_text.clean(safe_text.encodable(answer["data"]), line_ids)
    if isinstance(data, dict) and not is_code(data.get("code", "none")):
        # A code has a fixed form; free text there could imitate a message of ours.
        data["code"] = "tool_failed"
    return data


def is_code(value: object) -> bool:
    """Tell whether something is a code as ours are."""
    return isinstance(value, str) and re.fullmatch(r"[a-z][a-z0-9_]{0,63}", value) is not None


def _failure(failure: Any) -> RyeError:
    names, said = ("code", "message", "hint"), failure if isinstance(failure, dict) else {}
    texts = {name: said[name] for name in names if isinstance(said.get(name), str)}
    details = said.get("details")
    if len(texts) != len(names) or not isinstance(details, dict):
        raise _bad("it is a failure without code, message, hint and details")
    error = RyeError(texts["code"] if is_code(texts["code"]) else "tool_failed", texts["message"], texts["hint"])
    error.details = details
    return error


def _why_none(outcome: run.Outcome, limit: context.Deadline, *, started: bool, errors: bytes) -> RyeError:
    """Say why there is no answer: killed at the limit, never begun, or died."""
    if outcome.why != "exited":
        return killed(limit)
    code = outcome.exit_code or 0
    # A sandbox that waits for its child ends with 128 and the signal's number.
    by = outcome.signal or (run.signal_name(code - 128) if 128 < code <= 128 + signal.SIGRTMAX else "")
    how = f"signal {by}" if by else "its process is gone" if outcome.exit_code is None else f"exit code {code}"
    words = last_words(errors)
    shown = f" Its last error output: {words}" if words else ""
    if not started:
        return _failed(f"its process ended before the tool began ({how}).{shown}")
    why = f"The tool's process ended without a result ({how}).{shown}"
    return RyeError("tool_died", why, "Report it to the tool's owner; what it wrote before that remains.")


def last_words(data: bytes) -> str:
    """Return the last lines of what a program printed, without the frames of a traceback; "" for none."""
    lines = [line for line in terminal_text.plain(data).splitlines() if not _FRAME.match(line)]
    return safe_text.plain(terminal_text.last("\n".join(lines).encode(), _LAST_BYTES)[0].strip(), lines=True)


def killed(limit: context.Deadline) -> RyeError:
    """Return the error of a call whose time is up and whose processes have ended."""
    error = limit.error()
    error.message += " Its process was killed, with all that it had started."
    error.details = {"killed": True}
    return error


def _failed(why: str) -> RyeError:
    what = f"The tool cannot be run in a process of its own: {why}"
    return RyeError("isolation_failed", what, "Look at the limits of the system and at what the sandbox says, then try again.")


def _bad(why: str) -> RyeError:
    return RyeError("bad_tool_result", f"The tool's result cannot be accepted: {why}.", "Report it to the tool's owner.")

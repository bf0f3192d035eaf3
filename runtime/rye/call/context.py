"""What belongs to one call: its options, deadline, settings, open project root, output limit, and what its tool may ask for.

The executor makes one `CallContext` for each call and keeps it in one ContextVar; a nested call gets its own, which shares the
outer one's open root and settings. Outside a call the functions here answer with defaults: no deadline, settings read anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from rye.config.settings import Settings
from rye.errors import CancelledError, DeadlineError, RyeError, UsageError
from rye.plain_class import Record, changed

if TYPE_CHECKING:
    from rye.call.secrets import Secrets


MAX_OUTPUT_BYTES = 51_200
"""A tool's text output is cut at a line boundary beyond this (bytes of UTF-8); a caller may ask for less."""


class Cancellation:
    """The caller's right to end a call early; made by a front end, given with the call, used from any thread."""

    def __init__(self) -> None:
        self.cancelled = False
        """Whether `cancel` was called."""
        self.callbacks: list[Callable[[], None]] = []
        """What is to be called."""
        self._lock = threading.Lock()

    def cancel(self) -> None:
        """End the call now: its deadline expires, and what it started is ended. Calling it twice changes nothing."""
        with self._lock:
            # The callbacks run outside the lock: they may take other locks, or cancel again.
            callbacks = [] if self.cancelled else list(self.callbacks)
            self.cancelled = True
        for callback in callbacks:
            callback()

    def when_cancelled(self, callback: Callable[[], None]) -> None:
        """Call `callback` once on cancellation, at once if that was before."""
        with self._lock:
            if not self.cancelled:
                self.callbacks.append(callback)
                return
        callback()


# A model's clients cut at 10,000 bytes or 2,000 lines, and earlier.
_MODELS_COMMAND = 8_192


class CallOptions(Record):
    """What a front end asks for; all of it may be left out.

    Attributes:
        max_output_bytes: the most text a tool should give in one answer (at most `MAX_OUTPUT_BYTES`).
        on_output: takes pieces of text of a running command as they come, from any thread.
        cancellation: by which the caller ends the call.
        actor: who calls, such as an MCP client's name and session; "" for a person at a terminal and a plain Python caller.
            Changes are recorded under it, and `undo` takes back the caller's own.
        root: device and inode that the project's folder must have; None where nothing is pinned.
        agent_defaults: parameters that are not given take what the signed tool declares for models in `__agent_defaults__`.
            A nested call, such as one through `rye_execute`, has the defaults of an item call.
        offered: returns the name by which a model can call a tool, from the tool's id; None for one that it cannot call.
        on_bytes: takes what a running command writes, whole and as it comes: 1 or 2 for its stream, and the bytes.
        key: names this call among all of a project, so that it takes effect once however often it is made (see
            `rye.executor.call_keys`); "" for a call that is made anew each time. A nested call has none.
        repeat: a command with a key that an earlier attempt began, and nobody saw the end of, is run again.
        late: lets the tool run in the caller's thread: where it does not end in time, this takes the response from another
            thread, and the call raises `Abandoned` when the tool ends. A nested call has none.
        writes_call: returns how the caller makes a call that an answer names, from the tool's short name and its parameters;
            for "" how the parameters are given to the running tool. None: as a model does.
    """

    max_output_bytes: int = MAX_OUTPUT_BYTES
    on_output: Callable[[str], None] | None = None
    cancellation: Cancellation | None = None
    actor: str = ""
    root: tuple[int, int] | None = None
    agent_defaults: bool = False
    offered: Callable[[str], str | None] | None = None
    on_bytes: Callable[[int, bytes], None] | None = None
    key: str = ""
    repeat: bool = False
    late: Callable[[dict[str, Any]], None] | None = None
    writes_call: Callable[[str, Mapping[str, Any]], str] | None = None


class Abandoned(Exception):  # noqa: N818 - it says what happened to the call
    """The call was answered by another thread, since its tool did not end in time."""


class Deadline:
    """The time limit of one call, shared by the executor and the libraries.

    The libraries call `check` at every open and wrap every commit in `commit`. The executor calls `expire` when it
    gives up waiting: from then on no commit can begin, and one under way is waited for, so that the answer to the
    caller is true. `commits` counts those that were completed. Who started something outside this thread registers
    how to end it with `when_expired`.
    """

    def __init__(self, seconds: float) -> None:
        """Start the clock: the call may take `seconds` from now."""
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self.commits = 0
        self.cancelled = False
        self._expired = False
        self._lock = threading.RLock()
        self._ends = Cancellation()

    def remaining(self) -> float:
        """Return the seconds left, never below zero."""
        return 0.0 if self._expired else max(0.0, self._end - time.monotonic())

    def check(self) -> None:
        """Raise `DeadlineError` when the time is up, `CancelledError` when the caller ended the call."""
        if self.remaining() <= 0:
            raise self.error()

    def error(self) -> RyeError:
        """Return why the call is given up."""
        return CancelledError() if self.cancelled else DeadlineError(self.seconds)

    @contextmanager
    def commit(self) -> Iterator[None]:
        """Hold the right to write: begins only in time, and `expire` waits for its end."""
        with self._lock:
            self.check()
            yield
            self.commits += 1

    def expire(self, *, cancelled: bool = False) -> None:
        """End the call's time now, after any commit that already began."""
        with self._lock:
            self.cancelled = cancelled and not self._expired
            self._expired = True
        # Outside the lock: what waits for a commit would otherwise block it.
        self._ends.cancel()

    def grace_seconds(self) -> float:
        """Return how long to wait after expiry for the tool to report what it did."""
        # Who registered an end has a process tree to bring down, and its output to hand over.
        return 2.0 if self._ends.callbacks else 0.05

    def when_expired(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the call is given up, at once if it already was."""
        self._ends.when_cancelled(callback)


class CallContext(Record, frozen=False):
    """One call.

    Attributes:
        options: what the front end asks for.
        deadline: the call's time limit.
        settings: the settings as this call sees them; None outside a call.
        workspace: the open project root (a `rye.workspace.workspace.Workspace`), which every module of the call shares.
        reach: tells by type and id what the primary tools may reach on behalf of this call; None for everything.
        needs: what the running tool declares in `__needs__`.
        depth: how many calls this one is nested in.
        printed: takes the text that the tool prints in a process of its own; None outside a tool.
        parameters: those that the caller was offered of the running tool; None where that is not known.
        secrets: the user's secrets that this call sends; its answer is to hold none of them.
        confined: whether this is another signer's tool, which has a user space of its own, without the record of changes.
        finish: makes what a call found so far the response that its caller gets.
    """

    options: CallOptions = CallOptions()
    deadline: Deadline = Deadline(float("inf"))
    settings: Settings | None = None
    workspace: object = None
    reach: Callable[[str, str], bool] | None = None
    needs: tuple[str, ...] = ()
    depth: int = 0
    printed: list[str] | None = None
    parameters: frozenset[str] | None = None
    secrets: list[Secrets] | None = None
    confined: bool = False
    finish: Callable[[dict[str, Any]], dict[str, Any]] | None = None


_OUTSIDE = CallContext()
_current: ContextVar[CallContext] = ContextVar("rye_call", default=_OUTSIDE)


def current() -> CallContext:
    """Return the running call's context; one of defaults outside a call."""
    return _current.get()


class using:  # noqa: N801 - used as the function that it stands for: each call enters two
    """Make a context with some other fields the current one inside the block."""

    def __init__(self, **fields: Any) -> None:
        """Take the fields that differ."""
        self._fields = fields

    def __enter__(self) -> CallContext:
        """Return the context, which is this block's own."""
        new_context = changed(_current.get(), **self._fields)
        self._token = _current.set(new_context)
        return new_context

    def __exit__(self, *_: object) -> None:
        """Go back to the one before."""
        _current.reset(self._token)


def check_need(need: str) -> None:
    """Hold the running tool to what it declares, `__needs__ = ["search"]`; only a tool that the system's key signed has needs.

    Raises:
        UsageError: `capability_denied`.
    """
    if need not in current().needs:
        why = f"This tool may not use {need!r} of the host."
        raise UsageError("capability_denied", why, f"Only tools of the system bundle that declare {need!r} in __needs__ may.")


def note_secrets(secrets: Secrets) -> None:
    """Have the running call's answer hold none of these secrets."""
    noted = current().secrets
    if noted is not None and secrets:
        noted.append(secrets)


def without_secrets(value: Any) -> Any:
    """Return a JSON value without the secrets that the running call sent."""
    for secrets in current().secrets or ():
        value = secrets.removed(value)
    return value


def deadline() -> Deadline:
    """Return the running call's deadline (without limit outside a call)."""
    return _current.get().deadline


def check_deadline() -> None:
    """Raise `DeadlineError` or `CancelledError` when the running call is to end (see `Deadline.check`)."""
    _current.get().deadline.check()


def settings() -> Settings:
    """Return the settings of the running call, each file read once; outside a call they are read now."""
    found = _current.get().settings
    return Settings() if found is None else found


def widened(limit: int, total: int | None = None) -> int:
    """Return how many results to show where `limit` is usual: a tenth more where that is all there is, or is not known yet.

    To a model's call alone: a notice that little is left out, and the call for it, cost more than the rest.
    """
    most = limit + limit // 10 if current().options.agent_defaults else limit
    return most if total is None or total <= most else limit


def output_budget() -> int:
    """Return how much text the answer to this call may have (bytes of UTF-8)."""
    return min(MAX_OUTPUT_BYTES, _current.get().options.max_output_bytes)


def command_budget() -> int:
    """Return the same for what a command printed: less for a model, whose client would cut the end, where the error is."""
    return min(output_budget(), _MODELS_COMMAND) if current().options.agent_defaults else output_budget()


def advice(parameter: str, sentence: str, otherwise: str = "") -> str:
    """Return the advice that names a parameter, where the caller was offered it of the running tool; else the other one.

    Code that several tools share must not name a parameter that only some of them have.
    """
    offered = _current.get().parameters
    return sentence if offered is None or parameter in offered else otherwise


def actor() -> str:
    """Return who makes the running call (see `CallOptions`)."""
    return _current.get().options.actor


def report_bytes(stream: int, block: bytes) -> None:
    """Give the caller what a command wrote to its standard output (1) or standard error (2), where the front end takes it."""
    sink = _current.get().options.on_bytes
    if sink is not None:
        sink(stream, block)


def report(text: str) -> None:
    """Give the caller a piece of output before the answer, where the front end takes it."""
    sink = _current.get().options.on_output
    if sink is not None:
        sink(text)

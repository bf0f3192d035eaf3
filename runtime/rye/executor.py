"""The corridor: call -> resolve -> verify -> validate -> confine -> run -> envelope, always in this order.

The only place where code is compiled, and the only one where an exception becomes a result.
"""

from __future__ import annotations

import contextvars
import json
import logging
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from hashlib import sha256
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from rye import items, schema, spaces, trust
from rye.errors import DeadlineError, ItemError, RyeError, UsageError
from rye.signing import form_of
from rye.toolkit import output
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType

    from rye.items import Tool
    from rye.spaces import Candidate, Space

FUNCTION_RUNTIME = "rye/core/runtimes/python_function_runtime"
_PRINTED_MAX = 10_240

log = logging.getLogger("rye.executor")


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked for: an item, its parameters, the project, and whether only to check."""

    item_type: str
    item_id: str
    parameters: dict[str, Any]
    project_path: str
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class _Ready:
    """A tool that may run: verified, admitted to its place, compiled."""

    tool: Tool
    checker: schema.Checker
    code: CodeType


def run(call: Call) -> dict[str, Any]:
    """Answer a call. Expected failures are answers too: `{"status": "error", "error", "code", …}`.

    Returns:
        `{"status": "success" | "error" | "validation_passed", "type", "item_id", "data", "error"?, "code"?, "chain", "item":
        {"space", "version", "digest", "signer"}, "metadata": {"duration_ms"}}`.
    """
    started = time.perf_counter()
    response: dict[str, Any] = {
        "status": "error",
        "type": call.item_type,
        "item_id": call.item_id,
        "data": None,
        "chain": [],
    }
    log.info("start", extra={"item": call.item_id})
    try:
        with Workspace(call.project_path) as workspace:
            among = spaces.spaces(call.project_path)
            candidate = spaces.find(call.item_type, call.item_id, among)
            ready = _admit(candidate, among)
            response["item"] = _describe(candidate, ready.tool)
            response["warnings"] = _shadow_warnings(candidate)
            runtime = _runtime(ready.tool, among, response["chain"], candidate)
            parameters = ready.checker.check(call.parameters)
            for _, path in schema.workspace_paths(ready.tool.schema, parameters):
                workspace.check(path)
            if call.dry_run:
                response.update(status="validation_passed", data={"parameters": parameters})
            else:
                data, printed = _invoke(ready, parameters, workspace.root, _limit(ready.tool, runtime))
                _settle(response, data, printed)
    except RyeError as err:
        response.update(error=str(err), code=err.code, **({"details": err.details} if err.details else {}))
    if not response.get("warnings"):
        response.pop("warnings", None)
    duration = round((time.perf_counter() - started) * 1000, 3)
    response["metadata"] = {"duration_ms": duration, **response.pop("printed", {})}
    log.info(
        response["status"],
        extra={
            "item": call.item_id,
            "digest": response.get("item", {}).get("digest"),
            "duration_ms": duration,
        },
    )
    return response


def schema_of(item_id: str, project_path: str) -> dict[str, Any]:
    """Return a tool's CONFIG_SCHEMA, by which words of a command line are typed; {} for one that `run` will refuse."""
    try:
        among = spaces.spaces(project_path)
        return _admit(spaces.find("tool", item_id, among), among).tool.schema
    except RyeError:
        return {}


def _settle(response: dict[str, Any], data: dict[str, Any], printed: str) -> None:
    response.update(status="success" if data.get("success") is True else "error", data=data)
    if response["status"] == "error":
        response.update(
            error=str(data.get("error", "The tool failed without a reason.")),
            code=data.get("code", "tool_failed"),
        )
    if printed:
        response["printed"] = {"printed": printed}


_Fingerprint = tuple[str, str, str]
_T = TypeVar("_T")
_REMEMBERED = 512
_ready: dict[_Fingerprint, _Ready] = {}
_runtimes: dict[_Fingerprint, Tool] = {}


def _admit(candidate: Candidate, among: Sequence[Space]) -> _Ready:
    """Verify the candidate's bytes and make them ready; known by digest of bytes, id and state of trust, never by path."""
    if candidate.item_type != "tool":
        raise ItemError(
            "not_executable",
            f"{candidate.item_id} is {candidate.item_type}, which is read, not run.",
            "Execute a tool.",
        )
    store = spaces.trust_store(among)
    known_as = _fingerprint(candidate, store)
    known = _ready.get(known_as)
    if known is None:
        known = _remember(_ready, known_as, _prepare(candidate, store))
    return known


def _fingerprint(candidate: Candidate, store: trust.TrustStore) -> _Fingerprint:
    """Name what a verdict depends on: the bytes, where they stand, and which keys count."""
    return sha256(candidate.raw).hexdigest(), candidate.item_id + candidate.suffix, store.digest


def _remember(known: dict[_Fingerprint, _T], key: _Fingerprint, value: _T) -> _T:
    if len(known) >= _REMEMBERED:
        known.clear()
    known[key] = value
    return value


def _prepare(candidate: Candidate, store: trust.TrustStore) -> _Ready:
    verified = trust.verify(candidate.raw, form_of(candidate.item_type, candidate.suffix), store)
    spaces.refuse_alien_key(candidate.item_id, verified.key.role)
    tool = items.read_tool(verified, candidate.item_id, candidate.suffix)
    if candidate.suffix != ".py" or tool.executor_id != FUNCTION_RUNTIME:
        raise ItemError(
            "runtime_missing", f"{tool.id} needs the runtime {tool.executor_id or tool.tool_type}, which is not here.",
            f"Only tools of {FUNCTION_RUNTIME} run in this version.",
        )  # fmt: skip
    _check_requirement(tool)
    # A str, so that no encoding cookie is obeyed; no file is opened, so that no .pyc is.
    code = compile(verified.body.decode(), f"<{tool.id}>", "exec", dont_inherit=True)
    return _Ready(tool, schema.Checker(tool.schema), code)


def _check_requirement(tool: Tool) -> None:
    from rye import __version__

    wanted = tool.metadata.get("__requires_rye__")
    if wanted is None:
        return
    numbers = str(wanted).removeprefix(">=").split(".")
    if not str(wanted).startswith(">=") or not all(part.isdigit() for part in numbers):
        raise ItemError(
            "malformed_item",
            f"{tool.id}: __requires_rye__ must read '>=X.Y'.",
            "Correct it and sign it again.",
        )
    if [int(part) for part in numbers] > [int(part) for part in __version__.split(".")]:
        raise ItemError("rye_too_old", f"{tool.id} needs rye {wanted}; this is {__version__}.", "Upgrade rye-workspace.")


def _runtime(tool: Tool, among: Sequence[Space], chain: list[dict[str, Any]], candidate: Candidate) -> dict[str, Any]:
    """Verify the runtime item and return what it declares; both links go into the chain."""
    chain.append(_link(candidate, tool.tool_type, tool.executor_id, tool.verified.digest))
    found = spaces.find("tool", FUNCTION_RUNTIME, [space for space in among if space.name == "system"])
    store = spaces.trust_store(among)
    known_as = _fingerprint(found, store)
    runtime = _runtimes.get(known_as) or _remember(_runtimes, known_as, _read_runtime(found, store))
    chain.append(_link(found, runtime.tool_type, runtime.executor_id, runtime.verified.digest))
    return runtime.metadata


def _read_runtime(found: Candidate, store: trust.TrustStore) -> Tool:
    verified = trust.verify(found.raw, form_of("tool", found.suffix), store)
    spaces.refuse_alien_key(found.item_id, verified.key.role)
    return items.read_tool(verified, found.item_id, found.suffix)


def _link(candidate: Candidate, tool_type: str, executor_id: str | None, digest: str) -> dict[str, Any]:
    return {
        "item_id": candidate.item_id, "space": candidate.space, "tool_type": tool_type, "executor_id": executor_id,
        "integrity": digest,
    }  # fmt: skip


def _describe(candidate: Candidate, tool: Tool) -> dict[str, Any]:
    verified = tool.verified
    return {
        "space": candidate.space, "version": tool.version, "digest": verified.digest,
        "signer": verified.key.public.fingerprint, "owner": verified.key.owner,
    }  # fmt: skip


def _shadow_warnings(candidate: Candidate) -> list[str]:
    return [
        f"{path} does not serve {candidate.item_id}: ids under rye/ come from the system bundle." for path in candidate.shadowed
    ]


def _limit(tool: Tool, runtime: dict[str, Any]) -> float:
    """Return the call's time limit in seconds: what the tool declares, within what the runtime allows."""
    config = runtime.get("config", {})
    wanted = tool.metadata.get("__timeout__", config["timeout_seconds"])
    return float(min(wanted, config["max_timeout_seconds"]))


def _invoke(ready: _Ready, parameters: dict[str, Any], root: str, seconds: float) -> tuple[dict[str, Any], str]:
    """Run the tool in a thread of its own until it ends or its time is up; return its result and what it printed."""
    limit = output.Deadline(seconds)
    outcome: list[dict[str, Any]] = []
    done = threading.Event()

    def work() -> None:
        outcome.append(_result(ready, parameters, root))
        done.set()

    with _Printed() as printed, output.within(limit):
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(work,), name=ready.tool.id, daemon=True).start()
        try:
            # After `expire` a commit that had begun in time is over, and its tool has a moment to say so.
            if not done.wait(seconds):
                limit.expire()
                done.wait(0.05)
        except BaseException:
            limit.expire()
            raise
        return outcome[0] if outcome else _failure(DeadlineError(seconds)), printed.text()


def _result(ready: _Ready, parameters: dict[str, Any], root: str) -> dict[str, Any]:
    try:
        data = _call(ready, parameters, root)
        if not isinstance(data, dict):
            raise TypeError(f"execute() returned {type(data).__name__}, not a dict")
        json.dumps(data, allow_nan=False)
    except RyeError as err:
        return _failure(err)
    except BaseException as err:  # noqa: BLE001 - whatever a tool raises is its failure, not the caller's
        return _crash(ready.tool, err)
    return data


def _call(ready: _Ready, parameters: dict[str, Any], root: str) -> Any:  # noqa: ANN401 - whatever the tool returns
    module = ModuleType(f"rye_tool_{ready.tool.verified.digest[:16]}")
    # Dataclasses and pickles of a tool look their module up by name.
    sys.modules[module.__name__] = module
    exec(ready.code, module.__dict__)  # noqa: S102 - verified bytes, compiled above
    entry = getattr(module, "execute", None)
    if not callable(entry):
        raise UsageError(
            "no_entry_point",
            f"{ready.tool.id} has no function execute().",
            "Define execute(params, project_path).",
        )
    answer = entry(parameters, root)
    if hasattr(answer, "__await__"):
        import asyncio

        async def waited() -> Any:  # noqa: ANN401 - see above
            return await answer

        return asyncio.run(waited())
    return answer


def _failure(err: RyeError) -> dict[str, Any]:
    return {**err.details, "success": False, "error": str(err), "code": err.code}


def _crash(tool: Tool, err: BaseException) -> dict[str, Any]:
    import secrets

    error_id = secrets.token_hex(4)
    log.error(
        "tool_crashed",
        extra={"item": tool.id, "error_id": error_id, "trace": "".join(traceback.format_exception(err))},
    )
    return {
        "success": False, "code": "tool_crashed", "error_id": error_id,
        "error": f"The tool {tool.id} failed unexpectedly ({type(err).__name__}). The log has the details under {error_id}.",
    }  # fmt: skip


class _Printed:
    """Keeps what a call prints apart from everything else, for calls that run side by side too.

    While any call runs, `sys.stdout` is a router: text printed in a call's context goes to that call, all other text where
    it went before.
    """

    _lock = threading.Lock()
    _running = 0
    _original: Any = None
    _sink: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar("rye_printed", default=None)

    def __enter__(self) -> _Printed:
        self._text: list[str] = []
        self._token = self._sink.set(self._text)
        with _Printed._lock:
            if _Printed._running == 0:
                _Printed._original = sys.stdout
                sys.stdout = _Router(_Printed._original, self._sink)  # type: ignore[assignment]
            _Printed._running += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._sink.reset(self._token)
        with _Printed._lock:
            _Printed._running -= 1
            if _Printed._running == 0:
                sys.stdout = _Printed._original

    def text(self) -> str:
        return "".join(self._text)[:_PRINTED_MAX]


class _Router:
    """A text stream that writes to the running call's sink, if there is one."""

    def __init__(self, original: Any, sink: contextvars.ContextVar[list[str] | None]) -> None:  # noqa: ANN401 - any stream
        self._original, self._sink_of = original, sink

    def write(self, text: str) -> int:
        sink = self._sink_of.get()
        if sink is None:
            return int(self._original.write(text))
        if len(sink) < 10_000:
            sink.append(str(text)[:_PRINTED_MAX])
        return len(text)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the rest of the stream
        return getattr(self._original, name)

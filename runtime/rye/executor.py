"""The corridor: call -> resolve -> verify -> validate -> confine -> run -> envelope, always in this order.

The only place where an exception becomes a result.
"""

from __future__ import annotations

import contextlib
import contextvars
import json
import os
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from rye import decisions, entry, schema, spaces, state, workers
from rye.admission import Admission
from rye.errors import RyeError, UsageError
from rye.printed import Printed
from rye.record import Record
from rye.toolkit import eventlog, output
from rye.toolkit.house import lent
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from rye.admission import Ready
    from rye.items import Tool
    from rye.spaces import Candidate
    from rye.toolkit.house import House

_LOG = "rye.executor"


class Call(Record):
    """What is asked for: an item, its parameters, the project, and whether only to check.

    `house` is what the system's own tools may ask of the house, each for what it declares in `__needs__`.
    """

    item_type: str
    item_id: str
    parameters: dict[str, Any]
    project_path: str
    dry_run: bool = False
    allow_unsigned: bool = False
    door: output.Door = output.NO_DOOR
    house: House | None = None


def run(call: Call) -> dict[str, Any]:
    """Answer a call. Expected failures are answers too: `{"status": "error", "error", "code", …}`.

    Returns:
        `{"status": "success" | "error" | "validation_passed", "type", "item_id", "data", "error"?, "code"?, "chain", "item":
        {"space", "version", "digest", "signer"}, "metadata": {"duration_ms"}}`.
    """
    started = time.perf_counter()
    response: dict[str, Any] = {"status": "error", "type": call.item_type, "item_id": call.item_id, "data": None, "chain": []}
    try:
        _tell(call, "start")
        _walk(call, response)
    except RyeError as err:
        response.update(error=str(err), code=err.code, **({"details": err.details} if err.details else {}))
    if not response.get("warnings"):
        response.pop("warnings", None)
    duration = round((time.perf_counter() - started) * 1000, 3)
    response["metadata"] = {"duration_ms": duration, **response.pop("printed", {})}
    facts = {"digest": response.get("item", {}).get("digest"), "code": response.get("code"), "duration_ms": duration}
    # That the user's configuration is broken was the answer then.
    with contextlib.suppress(RyeError):
        _tell(call, response["status"], **facts)
    return response


def _tell(call: Call, event: str, **facts: Any) -> None:  # noqa: ANN401 - JSON values
    """Log an event of a call."""
    eventlog.tell(_LOG, call.project_path, event, item=call.item_id, **facts)


def _walk(call: Call, response: dict[str, Any]) -> None:
    """Go through the corridor, noting in `response` how far it went."""
    with Workspace(call.project_path) as workspace:
        among = spaces.spaces(call.project_path)
        admission = Admission(among)
        candidate = spaces.find(call.item_type, call.item_id, among)
        ready = admission.tool(candidate, allow_unsigned=call.allow_unsigned)
        response["item"] = _describe(candidate, ready.tool)
        response["warnings"] = [*_shadow_warnings(candidate), *_announce(candidate, ready.tool, call.project_path)]
        runtime = _chain(candidate, ready.tool, admission, response["chain"])
        admission.hold_to_lock(ready.tool, response["chain"])
        parameters = _checked(ready, call.parameters, response)
        for _, path in schema.workspace_paths(ready.tool.schema, parameters):
            workspace.check(path)
        if call.dry_run:
            _foresee(ready.tool, workspace.root, response)
            response.update(status="validation_passed", data={"parameters": parameters})
        else:
            response["warnings"] += _recovered(workspace)
            work = _work(ready, parameters, workspace.root, response)
            with output.opened_by(call.door), lent(call.house, _needs(ready.tool)):
                data, printed = _invoke(ready.tool, work, _limit(ready.tool, runtime), call.door.cancellation)
            _settle(response, data, printed)


def _checked(ready: Ready, given: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with defaults; a tool that answers in an envelope has its refusals in that envelope, too."""
    try:
        return ready.checker.check(given)
    except UsageError as err:
        if ready.tool.metadata.get("__envelope__") == "invoke_result":
            listed = [{"code": err.code, "message": one} for one in err.details.get("problems", [err.message])]
            told = {"successful": False, "result": None, "errors": listed, "warnings": []}
            response["data"] = {"success": False, "error": str(err), "code": err.code, **told}
        raise


def _recovered(workspace: Workspace) -> list[str]:
    """Settle commits that a crash cut off, so that no tool sees the half of one; costs one look where there is none."""
    if not os.path.isdir(state.commits_dir(workspace.real)):
        return []
    from rye.toolkit import commits

    return commits.settle(workspace)


def _work(ready: Ready, parameters: dict[str, Any], root: str, response: dict[str, Any]) -> Callable[[], Any]:
    """Return how the tool runs: the system's own in this process, any other's in a confined one, as `response` then says."""
    tool = ready.tool
    if _runs_here(tool):
        return partial(entry.call, ready.code, tool.id, tool.verified.digest, parameters, root)
    from rye import isolation

    cell = isolation.cell(tool, root)
    response["isolation"] = isolation.report(cell)
    return partial(isolation.call, cell, tool, parameters)


def _foresee(tool: Tool, root: str, response: dict[str, Any]) -> None:
    """Say in `response` what would hold the tool, were it run."""
    if not _runs_here(tool):
        from rye import isolation

        response["isolation"] = isolation.foreseen(tool, root)


def _runs_here(tool: Tool) -> bool:
    return tool.verified.key.role == "system"


def chain_of(item_id: str, project_path: str) -> tuple[Tool, list[dict[str, Any]]]:
    """Return a tool and its chain as `run` resolves them, for a lockfile. Errors as `run` reports them, raised."""
    among = spaces.spaces(project_path)
    admission = Admission(among)
    candidate = spaces.find("tool", item_id, among)
    tool = admission.tool(candidate).tool
    chain: list[dict[str, Any]] = []
    _chain(candidate, tool, admission, chain)
    return tool, chain


def schema_of(item_id: str, project_path: str) -> dict[str, Any]:
    """Return a tool's CONFIG_SCHEMA, by which words of a command line are typed; {} for one that `run` will refuse."""
    try:
        among = spaces.spaces(project_path)
        return Admission(among).tool(spaces.find("tool", item_id, among)).tool.schema
    except RyeError:
        return {}


def _needs(tool: Tool) -> tuple[str, ...]:
    """Return what a tool may ask of the house: nothing, unless the system's key signed it."""
    declared = tool.metadata.get("__needs__", ())
    return tuple(declared) if tool.verified.key.role == "system" and isinstance(declared, list | tuple) else ()


def _settle(response: dict[str, Any], data: dict[str, Any], printed: str) -> None:
    response.update(status="success" if data.get("success") is True else "error", data=data)
    if response["status"] == "error":
        response.update(
            error=str(data.get("error", "The tool failed without a reason.")),
            code=data.get("code", "tool_failed"),
        )
    if printed:
        response["printed"] = {"printed": printed}


def _chain(candidate: Candidate, tool: Tool, admission: Admission, chain: list[dict[str, Any]]) -> dict[str, Any]:
    """Put the tool and its runtime into `chain`; return what the runtime declares."""
    chain.append(_link(candidate, tool.tool_type, tool.executor_id, tool.verified.digest))
    found, runtime = admission.runtime()
    chain.append(_link(found, runtime.tool_type, runtime.executor_id, runtime.verified.digest))
    return runtime.metadata


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


def _announce(candidate: Candidate, tool: Tool, project_path: str) -> list[str]:
    """Say what the user should know of the signer: none at all, or a new id under a key approved for this project."""
    key = tool.verified.key
    if key.role == "unsigned":
        return [f"{tool.id} is unsigned; it ran because a person said --allow-unsigned."]
    if key.role != "approved":
        return []
    root = decisions.Root.of(project_path)
    if candidate.item_id in decisions.load().announced(root, key.public.digest):
        return []
    try:
        decisions.approve(key.public.digest, root, frozenset({candidate.item_id}))
    except RyeError as err:
        # Announced again at the next use, where it cannot be kept.
        if err.code != "trust_store_unwritable":
            raise
    return [f"First use of {tool.id} under the key {key.public.fingerprint}, which you approved for this project."]


def _limit(tool: Tool, runtime: dict[str, Any]) -> float:
    """Return the call's time limit in seconds: what the tool declares, within what the runtime allows."""
    config = runtime.get("config", {})
    wanted = tool.metadata.get("__timeout__", config["timeout_seconds"])
    return float(min(wanted, config["max_timeout_seconds"]))


def _invoke(
    tool: Tool, run: Callable[[], Any], seconds: float, cancellation: output.Cancellation | None
) -> tuple[dict[str, Any], str]:
    """Run the tool in another thread until it ends or must; return its result and what it printed."""
    limit = output.Deadline(seconds)
    outcome: list[dict[str, Any]] = []
    decided = threading.Lock()
    decided.acquire()

    def decide() -> None:
        # The end of the tool and that of the call may come at once.
        with contextlib.suppress(RuntimeError):
            decided.release()

    def work() -> None:
        outcome.append(context.run(_result, tool, run))
        decide()

    if cancellation is not None:
        cancellation.when_cancelled(decide)
    with Printed() as printed, output.within(limit):
        context = contextvars.copy_context()
        workers.start(work)
        try:
            decided.acquire(timeout=seconds)
            if not outcome:
                # After `expire` a commit that had begun in time is over, and its tool has a moment to say so.
                limit.expire(cancelled=cancellation is not None and cancellation.cancelled)
                decided.acquire(timeout=limit.moment())
        except BaseException:
            limit.expire()
            raise
        return outcome[0] if outcome else _late(limit), printed.text()


def _late(limit: output.Deadline) -> dict[str, Any]:
    told = _failure(limit.error())
    if limit.commits:
        told["error"] += (
            f" Before that moment {limit.commits} write{'s' * (limit.commits > 1)} of this call had been completed."
        )
        told["commits_completed"] = limit.commits
    return told


def _result(tool: Tool, run: Callable[[], Any]) -> dict[str, Any]:
    try:
        data = run()
        if not isinstance(data, dict):
            raise TypeError(f"execute() returned {type(data).__name__}, not a dict")
        json.dumps({name: value for name, value in data.items() if not _is_plain(name, value)}, allow_nan=False)
    except RyeError as err:
        return _failure(err)
    except entry.Crashed as err:
        return _crash(tool, err.kind, err.trace)
    except BaseException as err:  # noqa: BLE001 - whatever a tool raises is its failure, not the caller's
        import traceback

        return _crash(tool, type(err).__name__, "".join(traceback.format_exception(err)))
    return data


def _is_plain(name: object, value: object) -> bool:
    """Tell whether a member of a result needs no look to be JSON: to write a long text only to try takes long."""
    return type(name) is str and (value is None or type(value) in (str, int, bool))


def _failure(err: RyeError) -> dict[str, Any]:
    return {**err.details, "success": False, "error": str(err), "code": err.code}


def _crash(tool: Tool, kind: str, trace: str) -> dict[str, Any]:
    import logging

    error_id = os.urandom(4).hex()
    logging.getLogger(_LOG).error("tool_crashed", extra={"item": tool.id, "error_id": error_id, "trace": trace})
    return {
        "success": False, "code": "tool_crashed", "error_id": error_id,
        "error": f"The tool {tool.id} failed unexpectedly ({kind}). The log has the details under {error_id}.",
    }  # fmt: skip

"""The executor: call -> resolve -> verify -> validate -> confine -> run -> response, always in this order.

The only place where an exception becomes a response.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import sys
import threading
import time
from _queue import Empty, SimpleQueue  # `queue` loads more, which takes time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from rye.call import context, safe_text
from rye.call.context import CallOptions, Deadline
from rye.call.results import ENVELOPE, envelope, failure
from rye.call.safe_text import encodable, is_encodable
from rye.config import user_dirs
from rye.config.settings import Settings
from rye.errors import RyeError, TrustError
from rye.executor import run_code, turns
from rye.executor.admission import Admission, Ready, remember
from rye.items.parse import Tool
from rye.items.spaces import Candidate
from rye.plain_class import Record
from rye.trust import decisions
from rye.workspace.workspace import Workspace

if TYPE_CHECKING:
    from rye.executor.chain import Started

_LOG = "rye.executor.executor"


class Prepared(Record):
    """An item that was found and admitted: what runs is what was judged here."""

    admission: Admission
    candidate: Candidate
    ready: Ready


class Call(Record):
    """What is asked for: an item, its parameters, the project, and whether only to check.

    Attributes:
        options: what the front end asks for.
        reach: tells by type and id what the primary tools may reach on behalf of the call; None for everything.
        prepared: the tool as `prepare` returned it, where the caller looked at it before.
    """

    item_type: str
    item_id: str
    parameters: dict[str, Any]
    project_path: str
    dry_run: bool = False
    allow_unsigned: bool = False
    options: CallOptions = CallOptions()
    reach: Callable[[str, str], bool] | None = None
    prepared: Prepared | None = None


def prepare(item_id: str, project_path: str, *, item_type: str = "tool", allow_unsigned: bool = False) -> Prepared:
    """Find and admit a tool. Errors as `run` reports them, raised.

    All that decides counts as it is now: the item, its runtime, the manifest, the keys, the user's decisions.
    """
    asked = item_type, item_id, allow_unsigned, os.fspath(project_path), user_dirs.user_ai()
    known = _prepared.get(asked)
    if known is not None and known.admission.basis.holds:
        return known
    admission = Admission.of(project_path)
    candidate = admission.find(item_type, item_id)
    made = Prepared(admission, candidate, admission.tool(candidate, allow_unsigned=allow_unsigned))
    if admission.lasts(made.ready.chain):
        remember(_prepared, asked, made)
    return made


_prepared: dict[tuple[str, str, bool, str, str], Prepared] = {}


def run(call: Call) -> dict[str, Any]:
    """Call a tool. Expected failures are responses too: `{"status": "error", "error", "code", …}`.

    Returns:
        `{"status": "success" | "error" | "validation_passed", "type", "item_id", "data", "error"?, "code"?, "chain", "item":
        {"space", "version", "digest", "signer"}, "metadata": {"duration_ms", "ran"}}`; `data` is always an object; `ran` tells
        whether the item itself was run: a call that is refused earlier has `ran` false.
    """
    return answer(call, _run_tool) if "RYE_CHANNEL" not in os.environ else _answer_in_a_command(call)


def _answer_in_a_command(call: Call) -> dict[str, Any]:
    """Answer a call within a command of the `bash` tool; the process of that tool runs the file tools."""
    from rye.call import command_channel

    here = call.dry_run or call.options.key
    asked = None if here else command_channel.ask_parent(call.item_id, call.parameters, call.project_path)
    if asked is not None:
        return asked or answer(call, _refuse_unanswered)
    response = answer(call, _run_tool)
    if call.item_id.startswith(command_channel.SERVED) and command_channel.is_over(call.project_path):
        response["warnings"] = [*response.get("warnings", ()), _IN_A_JOB]
    return response


def _refuse_unanswered(*_: object) -> None:
    why = "The process that started this command gave no response."
    raise RyeError("channel_failed", why, "Look at the file, then try again.")


_IN_A_JOB = (
    "This runs in a background job, which has line IDs of its own: those of read do not count here, and edits are recorded as "
    "changes of the job. Edit from outside of the job where that matters."
)


def answer(call: Call, work: Callable[[Call, Workspace, dict[str, Any]], None]) -> dict[str, Any]:
    """Make a call's context, do the work in it, and return the response, which the work completes.

    `work` takes the call, the open project and the response so far; it raises a `RyeError` for what it refuses.
    """
    started = time.perf_counter()
    response: dict[str, Any] = {"status": "error", "type": call.item_type, "item_id": call.item_id, "data": None, "chain": []}
    # A nested call shares the outer settings, so that a file changed meanwhile does not split one call.
    settings = context.current().settings or Settings()
    with context.using(
        options=call.options, reach=call.reach, settings=settings, needs=(), printed=None, parameters=None, secrets=[]
    ) as here:
        try:
            with user_dirs.HeldSpace():
                _log(call, settings, "start")
                with Workspace(call.project_path, keep=call.options.root is not None) as workspace:
                    # Made for this call, and nobody else has it yet.
                    here.workspace, here.finish = workspace, lambda found: _finished(call, settings, started, found)
                    # Before anything is read: another folder may have been moved to this path since the client connected.
                    workspace.hold_to(call.options.root)
                    work(call, workspace, response)
        except RyeError as err:
            _refuse(response, err)
        except MemoryError:
            _refuse(response, _out_of_memory())
        return _finished(call, settings, started, response)


def _finished(call: Call, settings: Settings, started: float, response: dict[str, Any]) -> dict[str, Any]:
    """Return what a call found as its caller gets it, within the call's context."""
    response = context.without_secrets(response)
    response.pop("envelope", None)
    if not response.get("warnings"):
        response.pop("warnings", None)
    duration = round((time.perf_counter() - started) * 1000, 3)
    response["metadata"] = {"duration_ms": duration, "ran": response.pop("ran", False), **response.pop("printed", {})}
    facts = {"digest": response.get("item", {}).get("digest"), "code": response.get("code"), "duration_ms": duration}
    # Where the user's configuration is broken, the response says so already.
    with contextlib.suppress(RyeError):
        _log(call, settings, response["status"], response, **facts)
    # What a caller sent may be repeated in the answer, which must be text that UTF-8 can carry.
    if not is_encodable([call.item_id, call.item_type, call.parameters, call.project_path]):
        response = encodable(response)
    return response


def _log(call: Call, settings: Settings, event: str, response: Mapping[str, Any] | None = None, **facts: Any) -> None:
    if _is_heard() or settings.get("log.events"):
        from rye.call import event_log

        facts |= event_log.of_answer(response or {})
        event_log.log_event(_LOG, call.project_path, event, item=call.item_id, **facts)


def _is_heard() -> bool:
    """Tell whether a handler of the host may want what is logged; mostly none does."""
    if "logging" not in sys.modules:
        return False
    # By the statement, which waits for another thread that is just importing it.
    import logging

    return logging.getLogger(_LOG).isEnabledFor(logging.INFO)


def _refuse(response: dict[str, Any], err: RyeError) -> None:
    """Put a refusal into the response; a tool that answers in an envelope has its refusals in that envelope, too."""
    data = failure(err)
    # Clients of such a tool parse one shape, for its results and for refusals before it ran.
    if response.get("envelope") == ENVELOPE:
        data |= envelope(err.code, err.details.get("problems", [err.message]))
    response.update(
        status="error", error=str(err), code=err.code, data=data, **({"details": err.details} if err.details else {})
    )


def _out_of_memory() -> RyeError:
    return RyeError("out_of_memory", "The call got no memory and was ended.", "Ask for less in one call.")


def _run_tool(call: Call, workspace: Workspace, response: dict[str, Any]) -> None:
    """Do the steps of a tool's call in order; `response` records how far it got."""
    prepared = call.prepared or prepare(
        call.item_id, call.project_path, item_type=call.item_type, allow_unsigned=call.allow_unsigned
    )
    admission, candidate, ready = prepared.admission, prepared.candidate, prepared.ready
    response["item"] = dict(ready.item)
    response["envelope"] = ready.tool.metadata.get("__envelope__")
    response["warnings"] = [
        f"{path} does not serve {candidate.item_id}: ids under rye/ come from the system bundle." for path in candidate.shadowed
    ]
    if not call.options.agent_defaults:
        # For who can mend them: a model cannot.
        response["warnings"] += context.settings().doubts()
    for number, one in enumerate(ready.chain.links):
        response["warnings"] += _announce(one.candidate, one.tool, admission, call.project_path, is_first=not number)
    response["chain"] = [dict(one) for one in ready.chain.report]
    # After the chain is complete: the lockfile pins the runtime, too.
    admission.check_lockfile(ready.tool, response["chain"])
    offered = ready.offered if call.options.agent_defaults else None
    parameters = ready.checker.check(_with_agent_defaults(call, ready.tool), call.parameters, offered)
    # After the defaults are filled in, which can be paths as well. The library checks again when it opens.
    for path in ready.checker.paths(parameters):
        workspace.check(path)
    if call.dry_run:
        foreseen = ready.primitive.foresee(ready.chain, ready.plan, workspace.root)
        response.update({} if foreseen is None else {"isolation": foreseen})
        response.update(status="validation_passed", data={"parameters": parameters})
    else:
        # After every check: a refused call changes nothing, not even what a crash left.
        response["warnings"] += _recovered(workspace)
        run = partial(_run_admitted, call, workspace, prepared, parameters, response)
        if not call.options.key:
            run()
        else:
            from rye.executor import call_keys

            _complete(response, call_keys.once(workspace, ready.tool, call.options, run))


def _run_admitted(
    call: Call, workspace: Workspace, prepared: Prepared, parameters: dict[str, Any], response: dict[str, Any]
) -> dict[str, Any]:
    """Run the tool of a call that was checked, complete the response, and return the tool's result."""
    ready = prepared.ready
    started = ready.primitive.start(ready.chain, ready.plan, parameters, workspace.root)
    response.update({} if started.isolation is None else {"isolation": started.isolation})
    response["warnings"] += started.warnings
    try:
        with _recorded(workspace, ready.tool, started, response):
            data, printed = _invoke(call, ready, started, response)
    finally:
        # What was set aside after a confined tool: mostly nothing.
        if set_aside := (started.isolation or {}).get("set_aside"):
            from rye.process.autorun import command_check

            response["warnings"].append(command_check.message(list(set_aside)))
    if started.isolation is not None and data.get("success") is not True:
        from rye.executor import failures

        signed_with = ready.chain.links[0].tool.permissions
        data = failures.with_permission(data, ready.tool, signed_with, started.isolation, workspace.real)
    _complete(response, data)
    response.update(ran=True, printed={"printed": safe_text.content(printed)} if printed else {})
    return data


@contextlib.contextmanager
def _recorded(workspace: Workspace, tool: Tool, started: Started, response: dict[str, Any]) -> Iterator[None]:
    """Record what a tool changes that runs in a process of its own. The tools that run here record their own changes."""
    isolation = started.isolation
    if isolation is None or ("write" not in isolation["permissions"] and isolation["kind"] != "none"):
        yield
        return
    from rye.journal import tree_changes
    from rye.workspace import running_commands

    with running_commands.running(workspace.fd) as token:
        recording = tree_changes.begin(workspace, token, tool.id, tool.id)
        try:
            yield
        finally:
            changes = tree_changes.fields(tree_changes.end(workspace, recording))
            if changes:
                response["changes"] = changes


def _with_agent_defaults(call: Call, tool: Tool) -> Any:
    """Return the parameters; in a model's call, with what the signed tool declares for models where nothing is given."""
    if not call.options.agent_defaults or not isinstance(call.parameters, dict):
        return call.parameters
    given: dict[Any, Any] = call.parameters
    return given | {name: value for name, value in tool.agent_defaults.items() if given.get(name) is None}


def _recovered(workspace: Workspace) -> list[str]:
    """Recover what a crash cut off, so that no tool sees the half of a commit or what was made for mounts.

    It costs one look each where there is nothing.
    """
    commits = user_dirs.commits_dir(workspace.fd)
    state = commits.removesuffix("/journal/commits")
    # `access` answers for what is missing, as all of it mostly is, without an exception.
    if os.access(f"{state}/{user_dirs.MOUNTS_RECORD}", os.F_OK):
        from rye.sandbox import project_mounts

        project_mounts.recover(workspace.real)
    warnings: list[str] = []
    if os.access(f"{state}/{user_dirs.TREE_UNDO}", os.F_OK):
        from rye.journal import tree_changes

        warnings = tree_changes.settle_undo(workspace)
    if not os.access(commits, os.F_OK) or not os.path.isdir(commits):
        return warnings
    from rye.journal import recovery

    return warnings + recovery.recover(workspace)


def chain_of(item_id: str, project_path: str) -> tuple[Tool, list[dict[str, Any]]]:
    """Return a tool and its chain as `run` resolves them, for a lockfile. Errors as `run` reports them, raised."""
    ready = prepare(item_id, project_path).ready
    return ready.tool, [dict(one) for one in ready.chain.report]


def _needs(tool: Tool) -> tuple[str, ...]:
    """Return what a tool may ask the host for: nothing, unless the system's key signed it."""
    declared = tool.metadata.get("__needs__", ())
    return tuple(declared) if tool.verified.key.role == "system" and isinstance(declared, list | tuple) else ()


def _complete(response: dict[str, Any], data: dict[str, Any]) -> None:
    failed = data.get("success") is not True
    if failed and response["envelope"] == ENVELOPE:
        # What the tool itself says of its failure counts.
        data = {**envelope(str(data.get("code", "tool_failed")), [str(data.get("error", ""))]), **data}
    if failed:
        data = {"success": False, "error": "The tool failed without a reason.", "code": "tool_failed", **data}
        response.update(error=str(data["error"]), code=data["code"])
    response.update(status="error" if failed else "success", data=data)


def _announce(candidate: Candidate, tool: Tool, admission: Admission, project_path: str, *, is_first: bool) -> list[str]:
    """Return warnings about a link's signer: there is none, or this is the first use of an id under an approved key."""
    key = tool.verified.key
    if key.role == "unsigned":
        return [f"{tool.id} is unsigned; it ran because a person gave --allow-unsigned."]
    # Keys of the user and of the system were trusted as a whole; only a project's key is bound to permissions.
    if key.role != "approved":
        return []
    # What a runtime lists is no wish: it is the most that it leaves to a tool.
    wanted = (*(tool.permissions if is_first else ()), *tool.secrets)
    root = decisions.Root.of(project_path)
    more = admission.decided.unapproved(root, key.public.digest, candidate.item_id, wanted)
    if more:
        why = f"{candidate.item_id} now wants the permission {' and '.join(more)}, which you did not approve with its key."
        hint = f"Ask your user to look at it and run `rye trust approve {key.public.fingerprint}`."
        raise TrustError("new_permissions", why, hint, fingerprint=key.public.fingerprint, permissions=more)
    if candidate.item_id in admission.decided.announced(root, key.public.digest):
        return []
    try:
        granted = frozenset((candidate.item_id, one) for one in wanted)
        decisions.approve(key.public.digest, root, frozenset({candidate.item_id}), granted)
    except RyeError as err:
        # Where it cannot be stored, it is announced again at the next use.
        if err.code != "trust_store_unwritable":
            raise
    return [f"First use of {tool.id} under the key {key.public.fingerprint}, which you approved for this project."]


def _invoke(call: Call, ready: Ready, started: Started, response: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Run the tool until it ends or must; return its result, and what it printed in a process of its own.

    It runs in another thread, or in this one where a call that lasts is waited for beside it (`CallOptions.late`).
    """
    tool, cancellation, limit = ready.tool, call.options.cancellation, Deadline(ready.seconds)
    # Made before the tool can use up the memory.
    outcome = [_CRASHED_WITHOUT_MEMORY]
    # True is the end of the tool, False that the caller ends the call.
    events: SimpleQueue[bool] = SimpleQueue()

    def work() -> None:
        try:
            outcome[0] = copied.run(_result, tool, started.work)
        except MemoryError:
            # No memory is left for an error either: the result that was made before reports it.
            pass
        finally:
            events.put(True)

    def ended(seconds: float) -> bool:
        try:
            return events.get(timeout=seconds)
        except Empty:
            return False

    def wait() -> bool:
        """Wait until the tool ends or must; return whether it ended."""
        if ended(limit.remaining()):
            return True
        # After `expire` a commit that had begun in time is over; its tool gets a short time to report it.
        limit.expire(cancelled=cancellation is not None and cancellation.cancelled)
        return ended(limit.grace_seconds())

    if cancellation is not None:
        cancellation.when_cancelled(lambda: events.put(False))
    offered = ready.offered if call.options.agent_defaults else frozenset(tool.schema.get("properties", ()))
    turn = turns.current.get() if call.options.late is not None and started.isolation is None else None
    with context.using(deadline=limit, needs=_needs(tool), printed=[], parameters=offered) as here:
        # A new thread starts with an empty context: without the copy it would have no deadline.
        copied = contextvars.copy_context()
        if turn is not None:
            # Who takes it answers.
            right, waiting = threading.Lock(), contextvars.copy_context()

            def wait_beside() -> None:
                if not wait() and right.acquire(blocking=False):
                    waiting.run(_answer_late, call, response, limit)

            turn.beside(wait_beside)
            work()
            if not right.acquire(blocking=False):
                raise context.Abandoned
            over = True
        else:
            try:
                try:
                    run_code.start(work)
                except RuntimeError as err:
                    raise RyeError("no_thread", f"The call got no thread: {err}.", _WHERE_THREADS_ARE) from None
                over = wait()
            except BaseException:
                limit.expire()
                raise
        return outcome[0] if over else _late(limit), "".join(here.printed or ())


def _answer_late(call: Call, found: dict[str, Any], limit: Deadline) -> None:
    """Answer a call whose tool is not ended, from a thread beside it."""
    response = {**found, "warnings": list(found["warnings"])}
    _complete(response, _late(limit))
    response["ran"] = True
    finish = context.current().finish
    assert finish is not None
    assert call.options.late is not None
    call.options.late(finish(response))


_WHERE_THREADS_ARE = "Call from the main interpreter before it ends; look at the limits of processes and memory (`ulimit -a`)."
_CRASHED_WITHOUT_MEMORY: dict[str, Any] = failure(_out_of_memory())


def _late(limit: Deadline) -> dict[str, Any]:
    result = failure(limit.error())
    if limit.commits:
        result["error"] += f" Before that {limit.commits} write{'s' * (limit.commits > 1)} of this call had been completed."
        result["commits_completed"] = limit.commits
    return result


def _result(tool: Tool, run: Callable[[], Any]) -> dict[str, Any]:
    try:
        # Checked here, in the thread of the tool: it counts against its time.
        data = run_code.checked(run(), tool.id)
    except RyeError as err:
        return failure(err)
    except MemoryError:
        return _CRASHED_WITHOUT_MEMORY
    except run_code.Crashed as err:
        from rye.executor import failures

        return failures.crash(tool, err.kind, err.trace)
    except BaseException as err:  # noqa: BLE001 - whatever a tool raises is its failure, not the caller's
        import traceback

        from rye.executor import failures

        return failures.crash(tool, type(err).__name__, "".join(traceback.format_exception(err)))
    return data

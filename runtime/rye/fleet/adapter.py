"""What runs in a worker: the calls of one workspace. A plain function of plain data, for Dask, Ray or a Kubernetes job alike.

Each call has a key made of the job's key and its number. So a job that was cut off is made again from its beginning, on any
worker that shares the user's state: what was done is found, not repeated (see `rye.executor.call_keys`).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from rye import api
from rye._version import __version__
from rye.call.context import CallOptions
from rye.config import user_dirs
from rye.errors import RyeError
from rye.fs import atomic

_IDENTITY: Final = "identity"
# What an answer has beside the tool's own result; the rest of a response says the same for every call of a tool.
_KEPT: Final = ("status", "item_id", "data", "error", "code", "warnings", "changes")


def run_workspace(
    workspace: str | os.PathLike[str],
    calls: Sequence[Mapping[str, Any]],
    key: str,
    *,
    repeat: bool = False,
    on_error: str = "stop",
    state: str | None = None,
) -> dict[str, Any]:
    """Make calls in a workspace, one after the other, each once however often this function is called with the same key.

    Args:
        workspace: the project's root.
        calls: `{"item_id": str, "parameters": dict, "repeat"?: bool}` of each.
        key: names these calls, at most 180 characters that print.
        repeat: commands that were cut off are run again; the `repeat` of a call comes before it.
        on_error: "stop" at the first call that fails, or "continue".
        state: what `state_identity` must return here; None for no matter.

    Returns:
        `{"status": "done" | "failed" | "unknown", "calls": [answer of each], "seconds"}`: an answer is the response of
        `rye.execute` with `status` "success" or "error", or "unknown" for a command that was cut off, "not_run" for one that
        was not reached. `unknown` comes before `failed`.
    """
    started = time.perf_counter()
    answers: list[dict[str, Any]] = []
    stopped = False
    refused = _foreign(state)
    for number, call in enumerate(calls):
        if stopped:
            answers.append({"item_id": call["item_id"], "status": "not_run"})
            continue
        named = CallOptions(key=f"{key}:{number}", repeat=bool(call.get("repeat", repeat)), actor="fleet")
        answer = refused or _run_call(workspace, call, named)
        answers.append(answer)
        stopped = answer["status"] != "success" and on_error == "stop"
    found = {answer["status"] for answer in answers}
    status = "unknown" if "unknown" in found else "failed" if found - {"success"} else "done"
    return {"status": status, "calls": answers, "seconds": round(time.perf_counter() - started, 4)}


def _run_call(workspace: str | os.PathLike[str], call: Mapping[str, Any], options: CallOptions) -> dict[str, Any]:
    try:
        response = api.execute(call["item_id"], call.get("parameters", {}), project_path=os.fspath(workspace), options=options)
    except RyeError as err:
        # An argument of the wrong type, which the executor does not answer.
        return {"item_id": str(call["item_id"]), "status": "error", "error": str(err), "code": err.code}
    answer: dict[str, Any] = {name: response[name] for name in _KEPT if name in response}
    if answer.get("code") == "outcome_unknown":
        answer["status"] = "unknown"
    # A failed tool says it in its result already.
    if answer["data"] is not None and answer.get("error") == answer["data"].get("error"):
        answer.pop("error", None)
    return answer


def run_job(*placed: Any, **named: Any) -> dict[str, Any]:
    """Return what `run_workspace` returns, in a worker of the driver's."""
    # Workers start with the driver's block of Ctrl-C, which commands must not inherit: signals that are sent to them count.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    return run_workspace(*placed, **named)


def probe() -> tuple[str, str]:
    """Return this worker's version of the package, and `state_identity`; what calls need is imported on the way."""
    with suppress(RyeError):
        api.execute("rye/file-system/ls", {}, project_path=os.path.dirname(__file__), dry_run=True)
    return __version__, state_identity()


def state_identity() -> str:
    """Return what names the user's state: workers that return the same text share journals and notes of calls.

    Raises:
        OSError: it cannot be read or made.
    """
    path = Path(user_dirs.user_ai(), "state", _IDENTITY)
    with suppress(FileNotFoundError):
        return path.read_text("ascii")
    atomic.make_private(path.parent)
    fresh = path.with_name(f".{_IDENTITY}.{os.urandom(4).hex()}")
    fresh.write_text(os.urandom(16).hex(), "ascii")
    # A link fails where another process was first; a rename would replace its text.
    with suppress(FileExistsError):
        os.link(fresh, path)
    fresh.unlink()
    return path.read_text("ascii")


def _foreign(state: str | None) -> dict[str, Any] | None:
    """Return the answer of a worker whose state is not the one that earlier attempts may have written to."""
    try:
        if state is None or state == state_identity():
            return None
        why = "This worker does not share the user's state with the others, so it cannot know what was done already."
    except (OSError, RyeError) as err:
        why = f"The user's state cannot be read: {err}."
    hint = "Set USER_SPACE to one shared folder for all workers."
    return {"item_id": "", "status": "error", "error": f"{why} Nothing was run. {hint}", "code": "state_not_shared"}

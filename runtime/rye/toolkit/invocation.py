"""InvokeResult-style answers: `successful`, `result`, `errors`, `warnings`, inside the house's result dict.

A failure carries the same four fields, whatever failed. Start, success and error of a call are events in the log.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rye.errors import RyeError
from rye.toolkit import eventlog
from rye.toolkit.output import ok

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LOG = "rye.workspace"

Errors = list[dict[str, Any]]


def succeeded(output: str, result: dict[str, Any], warnings: Sequence[str] = (), **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    """Return a success result with its envelope."""
    return ok(output, successful=True, result=result, errors=[], warnings=[*warnings], **fields)


def answered(tool: str, project_path: str, work: Callable[[], dict[str, Any]], **facts: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    """Return what `work` returns, telling the log of its start and its end.

    Args:
        tool: item id for the events.
        project_path: whose log it is.
        work: returns what `succeeded` made.
        facts: for the start event; never text of files.

    Raises:
        RyeError: what `work` raised, with the envelope in its details; `unexpected_failure` for any other exception, which
            the log has under the `error_id` of the details.
    """
    eventlog.tell(_LOG, project_path, "start", item=tool, **facts)
    try:
        answer = work()
    except RyeError as err:
        errors: Errors = err.details.get("errors") or [{"code": err.code, "message": str(err)}]
        err.details = {"warnings": [], **err.details, "successful": False, "result": None, "errors": errors}
        told = [{key: one[key] for key in ("code", "docPath", "change") if key in one} for one in errors]
        eventlog.tell(_LOG, project_path, "error", item=tool, code=err.code, problems=told)
        raise
    except Exception as err:  # noqa: BLE001 - the envelope holds for unexpected failures too
        raise _unexpected(tool, project_path, err) from None
    result = answer["result"]
    said = {key: result[key] for key in ("batchId", "status", "fileCount", "changeCount") if key in result}
    eventlog.tell(_LOG, project_path, "success", item=tool, **said)
    return answer


def _unexpected(tool: str, project_path: str, err: Exception) -> RyeError:
    import logging
    import traceback

    error_id = os.urandom(4).hex()
    trace = "".join(traceback.format_exception(err))
    logging.getLogger(_LOG).error("unexpected_failure", extra={"item": tool, "error_id": error_id, "trace": trace})
    eventlog.record(project_path, "error", item=tool, code="unexpected_failure", error_id=error_id, trace=trace)
    message = f"The call failed unexpectedly. The log has the details under {error_id}."
    return RyeError(
        "unexpected_failure", message, "Call get_patch_change or read the files to see how they stand.", successful=False,
        result=None, errors=[{"code": "unexpected_failure", "message": message}], warnings=[], error_id=error_id,
    )  # fmt: skip

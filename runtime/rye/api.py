"""The house's functions and the shapes of their answers: execute, sign, verify."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rye.errors import UsageError
from rye.executor import Call, run

if TYPE_CHECKING:
    from pathlib import Path


def execute(
    item_id: str,
    parameters: dict[str, Any] | None = None,
    *,
    item_type: str = "tool",
    project_path: str | Path = ".",
    dry_run: bool = False,
) -> dict[str, Any]:
    """Run an item and return the response (see `rye.executor.run`); it raises only for a malformed call.

    Args:
        item_id: such as `rye/file-system/read`.
        parameters: as the item's CONFIG_SCHEMA says; never templated or expanded.
        item_type: `tool`.
        project_path: the project root; paths in parameters are below it.
        dry_run: do everything except run.

    Raises:
        UsageError: `bad_call`, when an argument is of the wrong type.
    """
    if not isinstance(item_id, str) or not isinstance(item_type, str):
        raise UsageError(
            "bad_call",
            "item_id and item_type must be text.",
            'Call rye.execute("rye/file-system/read", {…}).',
        )
    call = Call(item_type, item_id, {} if parameters is None else parameters, os.fspath(project_path), dry_run)
    return run(call)

"""What an agent runtime can discover: the tools of a project by category, with schema, effects, signer and verdict.

A tool says in its signed text what its calls may do, by four booleans (MCP's tool annotations by plain names):

    __effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

`read_only`: nothing of the user's changes. `destructive`: a change may overwrite or remove what was there, undo or not.
`idempotent`: the same call again changes nothing more. `open_world`: it reaches beyond the project, as the network or a
command of the caller's does. A tool that says nothing, or not exactly these four, is taken for the worst. A tool may
also declare `OUTPUT_SCHEMA`, an object schema of its result's fields beside `success`, `output`, `error` and `code`, and
`__title__`, a name for people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rye import items, spaces
from rye.admission import Admission
from rye.errors import ItemError, RyeError, TrustError

if TYPE_CHECKING:
    from pathlib import Path


def tools(category: str | None = None, *, project_path: str | Path = ".") -> list[dict[str, Any]]:
    """Return the tools that are served in a project, sorted by id.

    Args:
        category: only ids in this category or below it, such as `rye/file-system`.
        project_path: the project root.

    Returns:
        For a valid tool `{"item_id", "verdict": "valid", "space", "category", "version", "tool_type", "description",
        "docstring", "parameters", "digest", "signer", "owner"}`; for any other only `{"item_id", "verdict", "space",
        "hint"}`: nothing of an unverified file is shown.
    """
    among = spaces.spaces(project_path)
    admission = Admission(among)
    prefix = None if category is None else category.strip("/") + "/"
    listed = [item_id for item_id, _, _ in spaces.listed("tool", among) if prefix is None or item_id.startswith(prefix)]
    return [_row(item_id, admission) for item_id in listed]


def _row(item_id: str, admission: Admission) -> dict[str, Any]:
    row: dict[str, Any] = {"item_id": item_id}
    try:
        candidate = spaces.find("tool", item_id, admission.among)
        row["space"] = candidate.space
        verified = admission.verify(candidate)
        tool = items.read_tool(verified, item_id, candidate.suffix)
    except TrustError as err:
        return {**row, "verdict": err.code, "hint": err.hint}
    except ItemError as err:
        return {**row, "verdict": "malformed", "hint": err.hint}
    except RyeError as err:
        return {**row, "verdict": err.code, "hint": err.hint}
    return {
        **row, "verdict": "valid", "category": tool.category, "version": tool.version, "tool_type": tool.tool_type,
        "description": tool.description, "docstring": tool.docstring, "parameters": tool.schema, "digest": verified.digest,
        "signer": verified.key.public.fingerprint, "owner": verified.key.owner,
    }  # fmt: skip

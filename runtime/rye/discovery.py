"""What an agent runtime can discover: the tools of a project by category, with schema, signer and verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rye import items, spaces, trust
from rye.errors import ItemError, RyeError, TrustError
from rye.signing import form_of

if TYPE_CHECKING:
    from pathlib import Path


def tools(category: str | None = None, *, project_path: str | Path = ".") -> list[dict[str, Any]]:
    """Return the tools that are served in a project, sorted by id.

    Args:
        category: only ids in this category or below it, such as `rye/file-system`.
        project_path: the project root.

    Returns:
        For a valid tool `{"item_id", "verdict": "valid", "space", "category", "version", "tool_type", "description",
        "docstring", "parameters", "digest", "signer", "owner"}`; for any other only `{"item_id", "verdict", "space", "hint"}`: nothing of an
        unverified file is shown.
    """
    among = spaces.spaces(project_path)
    store = spaces.trust_store(among)
    prefix = None if category is None else category.strip("/") + "/"
    listed = [item_id for item_id, _, _ in spaces.listed("tool", among) if prefix is None or item_id.startswith(prefix)]
    return [_row(item_id, among, store) for item_id in listed]


def one(item_id: str, *, project_path: str | Path = ".") -> dict[str, Any]:
    """Return the row of one tool (see `tools`); of an id that names none `{"item_id", "verdict", "hint"}`."""
    among = spaces.spaces(project_path)
    return _row(item_id, among, spaces.trust_store(among))


def _row(item_id: str, among: tuple[spaces.Space, ...], store: trust.TrustStore) -> dict[str, Any]:
    row: dict[str, Any] = {"item_id": item_id}
    try:
        candidate = spaces.find("tool", item_id, among)
        row["space"] = candidate.space
        verified = trust.verify(candidate.raw, form_of("tool", candidate.suffix), store)
        spaces.refuse_alien_key(item_id, verified.key.role)
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

"""What an agent runtime can discover: the tools of a project, with name, schemas, effects, digest, signer and verdict.

Listing runs nothing, and shows nothing of what is not verified. What a tool declares for it is said in `rye.offers`; how an
id becomes a name, in `rye.tool_names`; what each interface accepts, in `rye.provider_schemas`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rye import items, spaces
from rye.admission import FUNCTION_RUNTIME, Admission
from rye.errors import ItemError, RyeError, TrustError, UsageError
from rye.offers import Offer, offer
from rye.tool_names import names_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


class LeftOut(NamedTuple):
    """A tool that is not offered, and why."""

    item_id: str
    reason: str


class Listing(NamedTuple):
    """What agents may be offered, sorted by id, and what is left out of it."""

    offers: list[Offer]
    left_out: list[LeftOut]


def tools(
    category: str | Sequence[str] | None = None,
    *,
    project_path: str | Path = ".",
    format: str | None = None,
) -> list[dict[str, Any]]:
    """Return the tools that are served in a project, sorted by id.

    Args:
        category: only ids in this category or below it, such as `rye/file-system`; a list of some.
        project_path: the project root.
        format: `openai`, `anthropic`, `gemini` or `mcp`: only tools that can run, each exactly as that interface takes it.
            Their names lead back to ids through the `name` of the rows without a format, or `rye.toolset`.

    Returns:
        Without a format, for a valid tool `{"item_id", "verdict": "valid", "space", "name", "title", "category", "version",
        "tool_type", "description", "docstring", "parameters", "output", "effects", "permissions", "digest", "signer", "owner"}`;
        for any other only `{"item_id", "verdict", "space", "hint"}`: nothing of an unverified file is shown.

    Raises:
        UsageError: `unknown_format`.
    """
    if format is None:
        return [_row(found) for found in _every(category, project_path)]
    from rye.provider_schemas import render_all

    return render_all(listing(category, project_path=project_path).offers, format)[0]


def listing(category: str | Iterable[str] | None = None, *, project_path: str | Path = ".") -> Listing:
    """Return the tools that agents may be offered: valid, and run by a runtime that is here; and the others with the reason."""
    offers: list[Offer] = []
    left_out: list[LeftOut] = []
    for found in _every(category, project_path):
        if found.offer is None:
            left_out.append(LeftOut(found.item_id, found.facts.get("hint") or found.facts["verdict"]))
        elif not found.runs:
            left_out.append(LeftOut(found.item_id, "It is no Python function tool: no runtime here runs it."))
        else:
            offers.append(found.offer)
    return Listing(offers, left_out)


class _Found(NamedTuple):
    """A tool that is served: its offer if it is valid, else its verdict and hint."""

    item_id: str
    facts: dict[str, Any]
    offer: Offer | None = None
    docstring: str = ""
    runs: bool = False


def _every(category: str | Iterable[str] | None, project_path: str | Path) -> list[_Found]:
    prefixes = _prefixes(category)
    among = spaces.spaces(project_path)
    admission = Admission(among)
    ids = [item_id for item_id, _, _ in spaces.listed("tool", among)]
    name_of = {item_id: name for name, item_id in names_of(ids).items()}
    return [_find(item_id, name_of[item_id], admission) for item_id in ids if prefixes is None or item_id.startswith(prefixes)]


def _prefixes(category: str | Iterable[str] | None) -> tuple[str, ...] | None:
    if category is None:
        return None
    given = [category] if isinstance(category, str) else list(category)
    if not all(isinstance(one, str) for one in given):
        raise UsageError("bad_call", "A category is text, or a list of texts.", 'Give one such as "rye/file-system".')
    return tuple(one.strip("/") + "/" for one in given)


def _find(item_id: str, name: str, admission: Admission) -> _Found:
    facts: dict[str, Any] = {}
    try:
        candidate = spaces.find("tool", item_id, admission.among)
        facts["space"] = candidate.space
        verified = admission.verify(candidate)
        tool = items.read_tool(verified, item_id, candidate.suffix)
        offered = offer(tool, name, candidate.space)
    except TrustError as err:
        return _Found(item_id, {**facts, "verdict": err.code, "hint": err.hint})
    except ItemError as err:
        return _Found(item_id, {**facts, "verdict": "malformed", "hint": err.hint})
    except RyeError as err:
        return _Found(item_id, {**facts, "verdict": err.code, "hint": err.hint})
    except RecursionError:
        return _Found(item_id, {**facts, "verdict": "malformed", "hint": "Its schema is nested too deeply."})
    facts["permissions"] = list(tool.permissions)
    return _Found(item_id, facts, offered, tool.docstring, candidate.suffix == ".py" and tool.executor_id == FUNCTION_RUNTIME)


def _row(found: _Found) -> dict[str, Any]:
    one = found.offer
    if one is None:
        return {"item_id": found.item_id, **found.facts}
    return {
        "item_id": one.item_id, "space": one.space, "verdict": "valid", "name": one.name, "title": one.title,
        "category": one.category, "version": one.version, "tool_type": one.tool_type, "description": one.summary,
        "docstring": one.description if found.docstring else "", "parameters": one.parameters, "output": one.output,
        "effects": one.effects, "permissions": found.facts["permissions"], "digest": one.digest, "signer": one.signer, "owner": one.owner or None,
    }  # fmt: skip

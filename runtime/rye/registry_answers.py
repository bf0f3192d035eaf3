"""The registry as an agent asks it: what it may see, and how it is told.

An agent may look, and pull what the user's keys already admit. Pushing and yanking change what others see, so the user's
setting `registry.agents: allow` decides; whatever widens trust (pins, lower versions, replacing what was edited) is for a
person at the command line. A registry is the default one or one that the user lists in `registry.allowed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rye import oci_reference, registry
from rye.errors import RyeError, UsageError
from rye.pulling import Wish
from rye.toolkit import config, output, pages

if TYPE_CHECKING:
    from collections.abc import Callable

    from rye.registry import At

_PERSON = ("push", "yank")


def answer(
    project: str, action: str, reach: Callable[[str, str], None], *, item_type: str = "tool", reference: str | None = None,
    query: str | None = None, namespace: str | None = None, registry_name: str | None = None, destination: str = "project",
    reason: str = "", limit: int = 20,
) -> dict[str, Any]:  # fmt: skip
    """Do one action and return it as a tool's result; for the parameters see the tool's CONFIG_SCHEMA.

    `reach` raises for an item, by type and id, that this caller may not reach.

    Raises:
        RyeError: `needs_person`, `registry_not_allowed`, `out_of_reach`, and those of `rye.registry`.
        UsageError: `bad_parameters`.
    """
    if action in _PERSON and config.setting("registry.agents") != "allow":
        raise RyeError(
            "needs_person", f"Only a person may {action} items.",
            f"Ask your user to run `rye registry {action} …`, or to set `registry: {{agents: allow}}` in their own "
            "~/.ai/config/rye.yaml.",
        )  # fmt: skip
    at = registry.At(project, registry_name)
    if action in ("search", "list"):
        named = [namespace] if namespace else []
        _refuse_alien(registry_name)
        return _search(at, query or "*", named, limit) if action == "search" else _list(at, named, limit)
    if reference is None:
        raise UsageError("bad_parameters", f"{action} needs a reference.", 'Give one such as reference="my/text/report:1.2.0".')
    wanted = oci_reference.parse(reference, item_type)
    _refuse_alien(wanted.registry or registry_name)
    reach(item_type, wanted.item_id)
    return _DEEDS[action](at, item_type, reference, destination, reason)


def _refuse_alien(name: str | None) -> None:
    if name is not None and name not in (config.setting("registry.default"), *config.texts("registry.allowed")):
        raise RyeError(
            "registry_not_allowed", f"{name} is not a registry that agents may use here.",
            f'Leave it out for the default one, or ask your user to set `registry: {{allowed: ["{name}"]}}` in their '
            "~/.ai/config/rye.yaml.",
        )  # fmt: skip


def _search(at: At, query: str, named: list[str], limit: int) -> dict[str, Any]:
    found = registry.search(at, query, named, limit=limit)
    return _listed(found["results"], found["total"], query=query)


def _list(at: At, named: list[str], limit: int) -> dict[str, Any]:
    rows = registry.listing(at, named)
    return _listed(rows[:limit], len(rows))


def _listed(rows: list[dict[str, Any]], total: int, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    page = pages.Page(output.output_room() // 2 - 500)
    kept = [row for row in rows if page.add([_line(row)])]
    if not total:
        page.lines.append("Nothing fits.")
    elif len(kept) < total:
        page.lines.append(f"[tool_result: {len(kept)} of {total} items; give a query, a namespace, or a larger limit.]")
    return output.ok("\n".join(page.lines), results=kept, total=total, truncated=len(kept) < total, **fields)


def _line(row: dict[str, Any]) -> str:
    mark = " (yanked)" if row["yanked"] else ""
    return f"{row['item_type']} {row['item_id']}:{row['version']}{mark}, signed by {row['signer']}: {row['description']}"


def _pull(at: At, item_type: str, reference: str, destination: str, reason: str) -> dict[str, Any]:  # noqa: ARG001 - one signature
    row = registry.pull(at, item_type, [reference], Wish(destination))[0]
    if row["status"] == "refused":
        kept = {key: row[key] for key in row.keys() - {"code", "error", "hint", "trust", "status"}}
        raise RyeError(row["code"], row["error"], row["hint"], **kept)
    told = f"Installed {row['item_type']} {row['item_id']}:{row['version']}, signed by {row['signer']}: {row['path']}."
    return output.ok("\n".join([told, *(f"Warning: {one}" for one in row["warnings"])]), **row)


def _push(at: At, item_type: str, reference: str, destination: str, reason: str) -> dict[str, Any]:  # noqa: ARG001 - one signature
    row = registry.push(at, item_type, [oci_reference.parse(reference, item_type).item_id])[0]
    return output.ok(f"{row['status'].capitalize()}: {row['item_id']}:{row['version']} ({row['digest']}).", **row)


def _inspect(at: At, item_type: str, reference: str, destination: str, reason: str) -> dict[str, Any]:  # noqa: ARG001 - one signature
    found = registry.inspect(at, item_type, reference, destination)
    diff = found.pop("diff", "")
    lines = [f"{name}: {value}" for name, value in found.items() if value not in (None, [], "") and name != "items"]
    lines += [f"  {row['item_type']} {row['item_id']}:{row['version']}" for row in found.get("items", ())]
    page = pages.Page(output.output_room() // 2 - 500)
    shown = [line for line in [*lines, *diff.split("\n")] if page.add([line])]
    return output.ok("\n".join(page.lines), **found, diff_lines=len(diff.split("\n")) if diff else 0, lines=len(shown))


def _verify(at: At, item_type: str, reference: str, destination: str, reason: str) -> dict[str, Any]:  # noqa: ARG001 - one signature
    found = registry.verify(at, item_type, reference)
    told = f"valid: {found['item_id']}:{found['version']}, signed by {found['signer']} ({found['owner']})."
    return output.ok("\n".join([told, *(f"Warning: {one}" for one in found["warnings"])]), **found)


def _yank(at: At, item_type: str, reference: str, destination: str, reason: str) -> dict[str, Any]:  # noqa: ARG001 - one signature
    done = registry.yank(at, item_type, reference, reason)
    return output.ok(f"Yanked {done['item_id']}:{done['version']}.", **done)


_DEEDS = {"pull": _pull, "push": _push, "inspect": _inspect, "verify": _verify, "yank": _yank}

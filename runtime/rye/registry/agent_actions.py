"""The registry as an agent asks it: what it may see, and how it is reported.

An agent may look, and pull what the user's keys already admit. Pushing and yanking change what others see, so the user's
setting `registry.agents: allow` decides; whatever widens trust (pins, lower versions, replacing what was edited) is for a
person at the command line. A registry is the default one or one that the user lists in `registry.allowed`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rye.call import context, results
from rye.config import user_dirs
from rye.errors import RyeError, UsageError
from rye.registry import browse
from rye.registry import pull as registry_pull
from rye.registry import push as registry_push
from rye.registry.oci import reference as oci_reference
from rye.registry.oci.store import RegistryTarget

_PERSON = ("push", "yank")


def answer(
    project: str,
    action: str,
    reach: Callable[[str, str], None],
    *,
    item_type: str = "tool",
    reference: str | None = None,
    query: str | None = None,
    namespace: str | None = None,
    registry_name: str | None = None,
    destination: str = "project",
    reason: str = "",
    limit: int = 20,
) -> dict[str, Any]:
    """Do one action and return it as a tool's result; for the parameters see the tool's CONFIG_SCHEMA.

    `reach` raises for an item, by type and id, that this caller may not reach.

    Raises:
        RyeError: `needs_person`, `registry_not_allowed`, `out_of_reach`, and those of `rye.registry.push`, `pull` and `browse`.
        UsageError: `bad_parameters`.
    """
    # Publishing cannot be taken back, so it needs the user's own configuration.
    if action in _PERSON and context.settings().get("registry.agents") != "allow":
        raise RyeError(
            "needs_person",
            f"Only a person may {action} items.",
            f"Ask your user to run `rye registry {action} …`, or to set `registry: {{agents: allow}}` in their own "
            f"{user_dirs.settings_file()}.",
        )
    target = RegistryTarget(project, registry_name)
    if action in ("search", "list"):
        namespaces = [namespace] if namespace else []
        # Also for a search: the query would tell a stranger's server what the agent works on.
        _require_allowed_registry(registry_name)
        if action == "list":
            rows = browse.rows(target, namespaces)
            return _table(rows[:limit], len(rows))
        found = browse.search(target, query or "*", namespaces, limit=limit)
        return _table(found["results"], found["total"], query=query or "*")
    if reference is None:
        raise UsageError("bad_parameters", f"{action} needs a reference.", 'Give one such as reference="my/text/report:1.2.0".')
    parsed = oci_reference.parse(reference, item_type)
    _require_allowed_registry(parsed.registry or registry_name)
    # Before any request: what a caller may not reach must not be looked up for it either.
    reach(item_type, parsed.item_id)
    if action == "inspect":
        return _inspected(browse.inspect(target, item_type, reference, destination))
    warnings: list[str] = []
    if action == "push":
        row = registry_push.push(target, item_type, [parsed.item_id])[0]
        text = f"{row['status'].capitalize()}: {row['item_id']}:{row['version']} ({row['digest']})."
    elif action == "pull":
        row = registry_pull.pull(target, item_type, [reference], registry_pull.PullOptions(destination))[0]
        if row["status"] == "refused":
            # The error carries these five itself; the rest are its details.
            fields = {key: row[key] for key in row.keys() - {"code", "error", "hint", "trust", "status"}}
            raise RyeError(row["code"], row["error"], row["hint"], **fields)
        text = f"Installed {row['item_type']} {row['item_id']}:{row['version']}, signed by {row['signer']}: {row['path']}."
        warnings = row["warnings"]
    elif action == "verify":
        row = registry_pull.verify(target, item_type, reference)
        text = f"valid: {row['item_id']}:{row['version']}, signed by {row['signer']} ({row['owner']})."
        warnings = row["warnings"]
    else:
        row = registry_push.yank(target, item_type, reference, reason)
        text = f"Yanked {row['item_id']}:{row['version']}."
    return results.ok("\n".join([text, *(f"Warning: {one}" for one in warnings)]), **row)


def _require_allowed_registry(name: str | None) -> None:
    settings = context.settings()
    if name is not None and name not in (settings.get("registry.default"), *settings.texts("registry.allowed")):
        raise RyeError(
            "registry_not_allowed",
            f"{name} is not a registry that agents may use here.",
            f'Leave it out for the default one, or ask your user to set `registry: {{allowed: ["{name}"]}}` in their '
            f"{user_dirs.settings_file()}.",
        )


def _table(rows: list[dict[str, Any]], total: int, **fields: Any) -> dict[str, Any]:
    page = results.Page(context.output_budget() // 2 - 500)
    printed = [row for row in rows if page.add([_line(row)])]
    if not total:
        page.lines.append("Nothing fits.")
    elif len(printed) < total:
        page.lines.append(f"[tool_result: {len(printed)} of {total} items; give a query, a namespace, or a larger limit.]")
    return results.ok("\n".join(page.lines), results=printed, total=total, truncated=len(printed) < total, **fields)


def _line(row: dict[str, Any]) -> str:
    mark = " (yanked)" if row["yanked"] else ""
    return f"{row['item_type']} {row['item_id']}:{row['version']}{mark}, signed by {row['signer']}: {row['description']}"


def _inspected(found: dict[str, Any]) -> dict[str, Any]:
    diff = found.pop("diff", "")
    lines = [f"{name}: {value}" for name, value in found.items() if value not in (None, [], "") and name != "items"]
    lines += [f"  {row['item_type']} {row['item_id']}:{row['version']}" for row in found.get("items", ())]
    page = results.Page(context.output_budget() // 2 - 500)
    # The facts first: where the budget ends, it is the diff that is cut.
    printed = [line for line in [*lines, *diff.split("\n")] if page.add([line])]
    return results.ok("\n".join(page.lines), **found, diff_lines=len(diff.split("\n")) if diff else 0, lines=len(printed))

"""The registry as an agent asks it: what it may see, and how it is reported.

An agent may look, and pull what the user's keys already admit. Pushing and yanking change what others see, so the user's
setting `registry.agents: allow` decides; whatever widens trust (pins, lower versions, replacing what was edited) is for a
person at the command line. A registry is the default one or one that the user lists in `registry.allowed`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


def answer(project: str, asked: Mapping[str, Any], reach: Callable[[str, str], None]) -> dict[str, Any]:
    """Do one action and return it as a tool's result.

    Args:
        project: the project.
        asked: the parameters of the tool `rye/registry/registry`.
        reach: raises for an item, by type and id, that this caller may not reach.

    Raises:
        RyeError: `needs_person`, `registry_not_allowed`, `out_of_reach`, and those of `push`, `pull` and `browse`.
        UsageError: `bad_parameters`.
    """
    action, name, reference = asked["action"], asked["registry"], asked["reference"]
    # Publishing cannot be taken back, so it needs the user's own configuration.
    if action in _PERSON and context.settings().get("registry.agents") != "allow":
        raise RyeError(
            "needs_person",
            f"Only a person may {action} items.",
            f"Ask your user to run `rye registry {action} …`, or to set `registry: {{agents: allow}}` in their own "
            f"{user_dirs.settings_file()}.",
        )
    target = RegistryTarget(project, name)
    if action in ("search", "list"):
        # Also for a search: the query would tell a stranger's server what the agent works on.
        _require_allowed_registry(name)
        return _listed(target, asked)
    if reference is None:
        raise UsageError("bad_parameters", f"{action} needs a reference.", 'Give one such as reference="my/text/report:1.2.0".')
    parsed = oci_reference.parse(reference, asked["item_type"])
    _require_allowed_registry(parsed.registry or name)
    # Before any request: what a caller may not reach must not be looked up for it either.
    reach(parsed.item_type, parsed.item_id)
    if action == "inspect":
        return _inspected(browse.inspect(target, parsed.item_type, reference, asked["destination"]))
    row = _done(action, target, asked, parsed)
    text = _SAID[action].format(**row, **({"done": row["status"].capitalize()} if action == "push" else {}))
    return results.ok("\n".join([text, *(f"Warning: {one}" for one in row.get("warnings", ()))]), **row)


_SAID = {
    "push": "{done}: {item_id}:{version} ({digest}).",
    "pull": "Installed {item_type} {item_id}:{version}, signed by {signer}: {path}.",
    "verify": "valid: {item_id}:{version}, signed by {signer} ({owner}).",
    "yank": "Yanked {item_id}:{version}.",
}


def _done(action: str, target: RegistryTarget, asked: Mapping[str, Any], parsed: oci_reference.Reference) -> dict[str, Any]:
    """Do what changes or verifies one item; return its row."""
    if action == "push":
        return registry_push.push(target, parsed.item_type, [parsed.item_id])[0]
    if action == "verify":
        return registry_pull.verify(target, parsed.item_type, asked["reference"])
    if action == "yank":
        return registry_push.yank(target, parsed.item_type, asked["reference"], asked["reason"])
    options = registry_pull.PullOptions(asked["destination"])
    row = registry_pull.pull(target, parsed.item_type, [asked["reference"]], options)[0]
    if row["status"] == "refused":
        # The error carries these five itself; the rest are its details.
        fields = {key: row[key] for key in row.keys() - {"code", "error", "hint", "trust", "status"}}
        raise RyeError(row["code"], row["error"], row["hint"], **fields)
    return row


def _listed(target: RegistryTarget, asked: Mapping[str, Any]) -> dict[str, Any]:
    namespaces, query = [asked["namespace"]] if asked["namespace"] else [], asked["query"] or "*"
    if asked["action"] == "list":
        rows = browse.rows(target, namespaces)
        return _table(rows[: asked["limit"]], len(rows))
    found = browse.search(target, query, namespaces, limit=asked["limit"])
    return _table(found["results"], found["total"], query=query)


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
    printed = rows[: page.fill(map(_line, rows))]
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
    count = page.fill([*lines, *diff.split("\n")])
    return results.ok("\n".join(page.lines), **found, diff_lines=len(diff.split("\n")) if diff else 0, lines=count)

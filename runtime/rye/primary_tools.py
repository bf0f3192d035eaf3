"""The primary tools: execute, search, load and sign items, each answered as a tool's result.

The caller is an agent, so a terminal proves no person here: only the user's configuration can allow signing.
"""

from __future__ import annotations

import base64
import json
import os
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from rye import api
from rye.call import context, profile, results
from rye.config import user_dirs
from rye.errors import ItemError, RyeError, UsageError
from rye.executor.executor import Call
from rye.items import spaces
from rye.plain_class import changed

if TYPE_CHECKING:
    from pathlib import Path


_DEEPEST = 4


def execute(
    project_path: str, item_type: str, item_id: str, parameters: dict[str, Any] | str, *, dry_run: bool
) -> dict[str, Any]:
    """Execute another item; its failure is this call's, in the same shape.

    Raises:
        UsageError: `bad_parameters`, `nested_too_deep`. RyeError: `out_of_reach`.
    """
    context.check_need("execute")
    _check(project_path, item_type, item_id)
    return _as_result(_nested(Call(item_type, item_id, _object(parameters), project_path, dry_run)))


def file_tool(project_path: str, item_id: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the whole response of a file tool that a command asks for; a refusal is one, too."""
    context.check_need("file_tool")
    return _nested(Call("tool", item_id, parameters, project_path))


def _nested(call: Call) -> dict[str, Any]:
    outer = context.current()
    # An item that executes itself would otherwise end only at the limit of threads or memory.
    if outer.depth >= _DEEPEST:
        raise UsageError(
            "nested_too_deep", f"{_DEEPEST} items are executing one another already.", "Execute the item directly."
        )
    cancellation = context.Cancellation()
    # The inner call has its own cancellation; without this it would outlive the outer call's deadline.
    outer.deadline.when_expired(cancellation.cancel)
    # The seeds' defaults hold for every call by item id, whoever makes it.
    options = changed(outer.options, cancellation=cancellation, agent_defaults=False, key="", late=None)
    with context.using(depth=outer.depth + 1):
        return api.answer(changed(call, options=options, reach=outer.reach))


def search(project_path: str, *, offset: int = 1, **asked: Any) -> dict[str, Any]:
    """Search items; `output` lists them from result `offset` on, counted from 1. Errors as `rye.api.search`."""
    context.check_need("search")
    from rye.catalog import search as catalog_search

    offered = context.current().options.offered
    request = catalog_search.SearchRequest(**asked, offset=offset - 1)
    answer = catalog_search.search(request, project_path, context.current().reach, offered)
    if offered is not None:
        for row in answer["results"]:
            if row["type"] == "tool":
                row["offered"] = offered(row["id"]) or False
    # Half the budget, as `results` repeats in fields what `output` says.
    page = results.Page(context.output_budget() // 2 - 500)
    if (whole := answer.get("long_form")) and page.add([f"{whole['type']} {whole['id']}", *whole["text"].split("\n")]):
        answer["results"] = [row for row in answer["results"] if row["id"] == whole["id"]]
        return results.ok("\n".join(page.lines), **answer)
    listed = [row for number, row in enumerate(answer["results"], offset) if page.add(_listed(number, row))]
    answer["results"] = listed
    answer["offset"], total = offset, answer["total"]
    if not total:
        page.lines.append(f"Nothing fits {answer['query']!r}. Try fewer or other words, or * to list a scope.")
    defaults = {name: {"default": catalog_search.SearchRequest._field_defaults.get(name)} for name in asked}
    # The whole call is written out, since models repeat a line more reliably than they change one.
    again = results.next_call("rye_search", asked, {"properties": defaults})
    answer |= results.left_out(page.lines, len(listed), offset - 1 + len(listed), total, "items", again)
    if "unverified" in answer:
        count = sum(answer["unverified"].values())
        page.lines.append(f"[{count} unverified item{'s' * (count != 1)} left out; `rye verify` says why]")
    return results.ok("\n".join(page.lines), **answer)


def load(
    project_path: str,
    item_type: str,
    item_id: str,
    source: str | None,
    destination: str | None,
    *,
    overwrite: bool,
    offset: int,
    limit: int | None,
) -> dict[str, Any]:
    """Load an item; `output` is a window of its text. Errors as `rye.api.load`."""
    context.check_need("load")
    _check(project_path, item_type, item_id)
    # Imported only for a load.
    from rye.executor import texts

    found = texts.load(item_type, item_id, project_path, source, destination, overwrite=overwrite)
    more = f'rye_load(item_type="{item_type}", item_id="{item_id}", offset={{offset}})'
    text, fields = texts.window(found.pop("content").rstrip("\n"), offset, limit, more)
    notes = [f"Copied to {found['destination_path']}."] if destination is not None else []
    notes += [f"Warning: {warning}" for warning in found["warnings"]]
    return results.ok("\n".join([text, *(["", *notes] if notes else [])]), **found, **fields)


def sign(project_path: str, item_type: str, item_id: str, source: str) -> dict[str, Any]:
    """Sign an item, or every one that a pattern names, if the user's configuration lets agents sign.

    Raises:
        RyeError: `needs_person`, and those of `rye.api.sign`. ItemError: `item_not_found`; the reason of a refusal.
    """
    context.check_need("sign")
    from rye.items import sign_verify, targets
    from rye.trust import keys

    # Before the key is looked at: without consent an agent learns nothing of it.
    if context.settings().get("signing.agents") != "allow":
        raise RyeError(
            "needs_person",
            "Only a person may sign items.",
            "Ask your user to run `rye sign` in a terminal, or to set `signing: {agents: allow}` in their own "
            f"{user_dirs.settings_file()}.",
        )
    pattern = any(char in item_id for char in "*?")
    found = _signable(project_path, item_type, item_id, source)
    profile.refuse_changes(project_path)
    named = targets.resolve([os.fspath(path) for path in found], [])
    rows = list(sign_verify.sign(named, keys.signing_key(), project_path))
    return _batch(rows, item_id) if pattern else _signed(rows[0], item_type, source, found[0])


def registry(project_path: str, **asked: Any) -> dict[str, Any]:
    """Share items as an agent may. Errors as `rye.registry.agent_actions.answer`."""
    context.check_need("registry")
    from functools import partial

    from rye.registry import agent_actions

    return agent_actions.answer(project_path, asked, partial(_check, project_path))


def _check(project_path: str, item_type: str, item_id: str) -> None:
    reach = context.current().reach
    if reach is None or reach(item_type, item_id):
        return
    known = (one for one, _, _ in spaces.served_items(item_type, spaces.spaces(project_path)) if reach(item_type, one))
    close = spaces.similar_ids(item_id, known)
    category = item_id.rpartition("/")[0]
    hint = f"Did you mean {' or '.join(close)}? " if close else ""
    if item_type == "tool" and category:
        hint += f"Your user can start the server with `rye mcp --category {category}`."
    raise RyeError("out_of_reach", f"{item_type} {item_id} is not among what this server offers.", hint, nearest=close)


def _signable(project_path: str, item_type: str, item_id: str, source: str) -> list[Path]:
    """Return the files that an id or a pattern names in one space; a pattern without `/` looks in every category."""
    if source not in ("project", "user"):
        raise UsageError("bad_space", f"Items of {source!r} are not signed here.", "Give project or user.")
    space = next((one for one in spaces.spaces(project_path) if one.name == source), None)
    known = spaces.items_in(space, item_type) if space is not None else []
    reach = context.current().reach
    known = [(one, path) for one, path in known if reach is None or reach(item_type, one)]
    if any(char in item_id for char in "*?"):
        found = [path for one, path in known if fnmatchcase(one if "/" in item_id else one.rpartition("/")[2], item_id)]
    else:
        spaces.check_id(item_id)
        found = [path for one, path in known if one == item_id]
    if not found:
        where = f"{'no folder' if space is None else space.folder}/{spaces.type_folder(item_type)[0]}"
        raise ItemError(
            "item_not_found",
            f"No {item_type} {item_id} in the {source} space.",
            f"It was searched for in {where}.",
            searched_in=where,
        )
    return found


def _object(parameters: dict[str, Any] | str) -> dict[str, Any]:
    """Return parameters as an object; some models send it as text."""
    if isinstance(parameters, dict):
        return parameters
    try:
        found = json.loads(parameters)
    except (ValueError, RecursionError) as err:
        raise UsageError("bad_parameters", f"parameters is text that is not JSON: {err}.", "Give a JSON object.") from None
    if not isinstance(found, dict):
        raise UsageError("bad_parameters", "parameters is not a JSON object.", 'Give one such as {"file_path": "a.py"}.')
    return found


def _as_result(response: dict[str, Any]) -> dict[str, Any]:
    """Return a response as a tool's result: its text once, as `output`, the rest of its data in `data`."""
    data = dict(response["data"])
    text = str(data.pop("output", ""))
    if response["status"] == "validation_passed":
        text = f"{response['item_id']}: verified, parameters valid, not run."
    rest = {key: value for key, value in response.items() if key not in ("data", "error", "code", "details")}
    if response["status"] != "error":
        return results.ok(text, **rest, data=data)
    details = response.get("details", {})
    for known in ("success", "error", "code", *details):
        # Said once, at the top: repeated fields cost a model tokens.
        data.pop(known, None)
    failure = {"success": False, "error": response["error"], "code": response["code"], **rest, "data": data}
    return {**failure, **({"output": text} if text else {}), **({"details": details} if details else {})}


def _listed(number: int, row: dict[str, Any]) -> list[str]:
    name = row.get("offered", row["id"])
    mark = "" if name else "; not offered"
    head = f"{number}. {row['type']} {name or row['id']} ({row['source']}, {row['score']:.2f}{mark})"
    about = row["title"] if row["title"] and not row["description"] else row["description"]
    return [f"{head}: {about}" if about else head, *([f"   {row['preview']}"] if row["preview"] else [])]


def _signed(row: dict[str, Any], item_type: str, source: str, path: Path) -> dict[str, Any]:
    if row["status"] == "failed":
        raise ItemError(row["code"], row["error"], row["hint"] or "", path=row["path"], issues=[row["error"]])
    from rye.trust.signature import form_of, split

    with open(path, "rb") as file:
        # Read back from the file, so that the answer shows what is really there.
        line = split(file.read(), form_of(item_type, path.suffix)).signature
    message = f"{'Signed' if row['status'] == 'signed' else 'Signed before'}: {row['item_id']} by {row['signer']}."
    return results.ok(
        message,
        status="signed",
        item_id=row["item_id"],
        path=row["path"],
        location=source,
        message=message,
        warnings=[],
        signature={
            "timestamp": line.timestamp,
            "hash": line.digest,
            "pubkey_fp": line.fingerprint,
            "ed25519_sig": base64.urlsafe_b64encode(line.signature).decode(),
        },
    )


def _batch(rows: list[dict[str, Any]], item_id: str) -> dict[str, Any]:
    signed = [row["item_id"] for row in rows if row["status"] != "failed"]
    failed = [
        {"item": row["item_id"], "error": row["error"], "details": row["hint"]} for row in rows if row["status"] == "failed"
    ]
    summary = f"{len(signed)} of {len(rows)} items signed by {item_id}."
    lines = [summary, *(f"Failed: {one['item']}: {one['error']}" for one in failed)]
    facts = {"status": "completed", "signed": signed, "failed": failed, "total": len(rows), "summary": summary}
    if failed:
        return {"success": False, "error": " ".join(lines), "code": "not_all_signed", **facts}
    return results.ok("\n".join(lines), **facts)

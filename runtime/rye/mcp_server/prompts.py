"""Directives as MCP prompts, with their inputs as arguments, and completion of what a user types for these.

Clients show prompts to their user, often as commands: `/mcp__rye__swe`. A directive is verified each time it is listed or
filled.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from rye import api
from rye.agents.discovery import names_of
from rye.call import profile
from rye.errors import ItemError, RyeError
from rye.executor import texts
from rye.executor.admission import Admission
from rye.executor.executor import Call
from rye.items import directives, parse, spaces
from rye.items.schema import from_words

MOST_COMPLETIONS: Final = 100
"""The protocol's limit for one answer."""

_PATHS: Final = ("path", "file", "folder", "dir", "directory")
_LS: Final = "rye/file-system/ls"


def listed(project: str) -> list[dict[str, Any]]:
    """Return the directives that verify and are not turned off, as the protocol lists prompts."""
    admission = Admission.of(project)
    rows = []
    for name, item_id in _names(project).items():
        # Of what does not verify nothing is shown; `rye verify` tells the user.
        with suppress(RyeError):
            _refuse_off(item_id)
            rows.append(_row(name, _directive(item_id, admission)))
    return rows


def _row(name: str, found: parse.Directive) -> dict[str, Any]:
    about = str(texts.listable(found.verified, found.text.metadata.get("description", "")))
    inputs = texts.listable(found.verified, list(found.text.inputs))
    arguments = [
        {
            "name": one["name"],
            "description": one["description"]
            + (f" (default: {one['default']})" if one.get("default") not in (None, "") else ""),
            # With a default nobody need give it.
            "required": one["required"] and "default" not in one,
        }
        for one in inputs
    ]
    meta = {"rye/item_id": found.id, "rye/digest": found.verified.digest, "rye/signer": found.verified.key.public.fingerprint}
    return {"name": name, **({"description": about} if about else {}), "arguments": arguments, "_meta": meta}


def filled(project: str, name: str, arguments: dict[str, str]) -> dict[str, Any]:
    """Return a directive's instructions with the arguments filled in, as the protocol's messages.

    Raises:
        RyeError: `unknown_prompt`; what verifying the directive and checking its inputs raise.
    """
    item_id = _id(project, name)
    _refuse_off(item_id)
    schema = directives.schema_of(_directive(item_id, Admission.of(project)).text)
    # The protocol carries texts only; what the directive wants as a number or a list is read from them.
    response = api.answer(Call("directive", item_id, from_words(schema, arguments), project))
    if response["status"] == "error":
        raise RyeError(str(response["code"]), str(response["error"]), "")
    data = response["data"]
    about = data["metadata"].get("description")
    content = {"type": "text", "text": data["output"]}
    return {**({"description": about} if about else {}), "messages": [{"role": "user", "content": content}]}


def completed(project: str, reference: dict[str, Any], argument: str, typed: str) -> dict[str, Any]:
    """Return what may follow a typed text, as the protocol's completion.

    Args:
        project: the project root.
        reference: the protocol's reference to a prompt (`name`) or a resource template (`uri`).
        argument: the name of the argument.
        typed: what was typed so far.
    """
    if reference["type"] == "ref/prompt":
        found = _of_prompt(project, reference["name"], argument, typed)
    elif reference["uri"].startswith("rye://knowledge/") and argument == "id":
        ids = sorted({one[0] for one in spaces.served_items("knowledge", spaces.spaces(project))})
        found = [item_id for item_id in ids if typed in item_id]
    else:
        found = []
    return {"values": found[:MOST_COMPLETIONS], "total": len(found), "hasMore": len(found) > MOST_COMPLETIONS}


def _of_prompt(project: str, name: str, argument: str, typed: str) -> list[str]:
    text = _directive(_id(project, name), Admission.of(project)).text
    one = next((one for one in text.inputs if one["name"] == argument), None)
    if one is None:
        return []
    if one["type"] == "boolean":
        return [word for word in ("true", "false") if word.startswith(typed)]
    if argument.rpartition("_")[2] in _PATHS:
        return _paths(project, typed)
    default = one.get("default")
    return [default] if isinstance(default, str) and default.startswith(typed) else []


def _paths(project: str, typed: str) -> list[str]:
    """Return the project's paths that begin as typed, in the folder that is typed so far."""
    folder, slash, _ = typed.rpartition("/")
    # By the tool, so that what it may not show is not completed either.
    response = api.answer(Call("tool", _LS, {"path": folder or "."}, project))
    entries = response["data"].get("entries", ()) if response["status"] == "success" else ()
    paths = [f"{folder}{slash}{one['name']}" + ("/" if one["type"] == "directory" else "") for one in entries]
    return [path for path in paths if path.startswith(typed)]


def _names(project: str) -> dict[str, str]:
    return names_of(item_id for item_id, _, _ in spaces.served_items("directive", spaces.spaces(project)))


def _refuse_off(item_id: str) -> None:
    """Refuse the prompt that teaches tools which the switch turns off, as `rye prompt` does."""
    if item_id.rpartition("/")[2] == "swe" and item_id.startswith(spaces.RESERVED):
        profile.enabled()


def _id(project: str, name: str) -> str:
    names = _names(project)
    if name not in names:
        known = ", ".join(list(names)[:10]) or "none"
        raise ItemError("unknown_prompt", f"There is no prompt {name[:80]!r}.", f"prompts/list names what there is: {known}.")
    return names[name]


def _directive(item_id: str, admission: Admission) -> parse.Directive:
    return parse.read_directive(admission.admit(admission.find("directive", item_id)), item_id)

"""A tool as an agent may be offered it: from verified metadata to plain, listable facts.

A tool says in its signed text what its calls may do, by four booleans (MCP's tool annotations by plain names):

    __effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

`read_only`: nothing of the user's changes. `destructive`: a change may overwrite or remove what was there, undo or not.
`idempotent`: the same call again changes nothing more. `open_world`: it reaches beyond the project, as the network or a
command of the caller's does. A tool that says nothing, or not exactly these four, is taken for the worst.

`__agent_defaults__ = {"line_ids": "short"}` names parameters whose default is another one for a model: the MCP server and
toolsets list that default and apply it. A call by item id has the default of the schema.

A tool may also declare `OUTPUT_SCHEMA`, an object schema of its result's fields beside `success`, `output`, `error` and
`code`, and `__title__`, a name for people.

Texts of the system's own tools are listed as they are; those of any other are made safe to list first, every string of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rye.agents import model_schema
from rye.call.safe_text import plain
from rye.items.parse import DEFAULT_EFFECTS, LONGEST_DESCRIPTION, PERMISSIONS, Tool
from rye.plain_class import Record

_LONGEST_TEXT = 1_024
_ENVELOPE: Final = {
    "success": {"type": "boolean", "description": "Whether the tool did what was asked"},
    "output": {"type": "string", "description": "The result as text, complete in itself"},
    "error": {"type": "string", "description": "What went wrong, and what to do next"},
    "code": {"type": "string", "description": "Stable name of the error"},
}


class Offer(Record):
    """What is listed of a valid tool.

    Attributes:
        item_id: in the project's spaces.
        name: for agent interfaces (see `rye.agents.discovery`).
        title: for people.
        summary: one line.
        docstring: all that the tool says of itself; the summary where it has none.
        description: for a model; the brief form of it, if there is one.
        parameters, output: object schemas (draft 2020-12); the defaults are those that a model's call has.
        listed_schema: the schema of the parameters that models are offered (see `rye.agents.model_schema`).
        effects: the four of `DEFAULT_EFFECTS`.
        digest: SHA-256 of the signed bytes, in hex.
        signer: fingerprint of the key; `owner` as its document says.
    """

    item_id: str
    name: str
    title: str
    summary: str
    description: str
    category: str
    version: str
    tool_type: str
    parameters: dict[str, Any]
    output: dict[str, Any]
    effects: dict[str, bool]
    space: str
    digest: str
    signer: str
    owner: str
    docstring: str = ""
    listed_schema: dict[str, Any] | None = None


def offer(tool: Tool, name: str, space: str, *, confined: bool = True) -> Offer:
    """Return the offer of a verified tool; `confined`: a sandbox holds other signers' tools to their permissions."""
    key = tool.verified.key
    own = key.role == "system"
    # What another signer wrote is made safe to list, every string of it.
    line, text, schema = (_same, _same, _same) if own else (_line, _text, listable)
    title, declared = tool.metadata.get("__title__"), tool.metadata.get("OUTPUT_SCHEMA")
    claimed = effects_of(tool.metadata)
    docstring = tool.docstring or tool.description
    parameters = _for_models(tool)
    return Offer(
        item_id=tool.id,
        name=name,
        title=line(title if isinstance(title, str) and title else _title(tool.id)),
        summary=line(tool.description),
        docstring=text(docstring),
        description=text(model_schema.description_of(tool.metadata, docstring)),
        category=line(tool.category),
        version=line(tool.version),
        tool_type=line(tool.tool_type),
        parameters=schema(parameters),
        listed_schema=schema(model_schema.parameters_of(tool.metadata, parameters)),
        output=schema(output_schema(declared if isinstance(declared, dict) else {})),
        # The signer's word holds only for the system's own tools; for others the permissions bound it.
        # Where nothing confines it, it may do all that its user may.
        effects=claimed if own else bounded(claimed, tool.permissions if confined else PERMISSIONS),
        space=space,
        digest=tool.verified.digest,
        signer=key.public.fingerprint,
        owner=line(key.owner or ""),
    )


def _same(value: Any) -> Any:
    return value


def _for_models(tool: Tool) -> dict[str, Any]:
    """Return a tool's schema with the defaults that it declares for calls of models (`__agent_defaults__`)."""
    if not tool.agent_defaults:
        return tool.schema
    known = tool.schema["properties"]
    return {**tool.schema, "properties": known | {n: {**known[n], "default": v} for n, v in tool.agent_defaults.items()}}


def effects_of(metadata: Mapping[str, Any]) -> dict[str, bool]:
    """Return the effects that a tool declares; the worst of each where it declares none, or not exactly these."""
    declared = metadata.get("__effects__")
    # By class: a text such as "false" would count as true.
    if not isinstance(declared, dict) or set(declared) != set(DEFAULT_EFFECTS) or {*map(type, declared.values())} != {bool}:
        return dict(DEFAULT_EFFECTS)
    return {name: declared[name] for name in DEFAULT_EFFECTS}


def bounded(effects: Mapping[str, bool], permissions: Iterable[str]) -> dict[str, bool]:
    """Return the effects that another signer's tool claims, as far as its permissions bear them out.

    Who may write or run programs may destroy, and who may reach the network or run programs may reach anywhere.
    """
    # `run` is in both: a program may change and reach whatever the sandbox lets it.
    changing, reaching = {"write", "run"} & set(permissions), {"network", "run"} & set(permissions)
    return {
        "read_only": effects["read_only"] and not changing and not reaching,
        "destructive": effects["destructive"] or bool(changing),
        "idempotent": effects["idempotent"] and not changing and not reaching,
        "open_world": effects["open_world"] or bool(reaching),
    }


def output_schema(declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's result: what every result has, and the fields that the tool declares."""
    own = declared.get("properties", {})
    properties = {**_ENVELOPE, **(own if isinstance(own, dict) else {})}
    return {"type": "object", "properties": properties, "required": ["success"], "additionalProperties": True}


def listable(value: Any) -> Any:
    """Return a foreign tool's schema as it may be listed: every name and text of it is made plain.

    A pattern that would change is left out: it would say something else. What is no JSON (a set, bytes) is given as text.
    """
    if isinstance(value, str):
        return plain(value, _LONGEST_TEXT, lines=True)
    if isinstance(value, dict):
        safe = {name: below for name, below in value.items() if name != "pattern" or _is_plain(below)}
        return {plain(str(name), 128): listable(below) for name, below in safe.items()}
    if isinstance(value, list | tuple):
        return [listable(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float) else plain(repr(value), _LONGEST_TEXT)


def _is_plain(value: object) -> bool:
    return not isinstance(value, str) or plain(value, _LONGEST_TEXT, lines=True) == value


def _line(text: str) -> str:
    return plain(text, 256)


def _text(text: str) -> str:
    return plain(text, LONGEST_DESCRIPTION, lines=True)


def _title(item_id: str) -> str:
    words = item_id.rpartition("/")[2].replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]

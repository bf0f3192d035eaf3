"""A tool as an agent may be offered it: from verified metadata to plain, listable facts.

A tool says in its signed text what its calls may do, by four booleans (MCP's tool annotations by plain names):

    __effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

`read_only`: nothing of the user's changes. `destructive`: a change may overwrite or remove what was there, undo or not.
`idempotent`: the same call again changes nothing more. `open_world`: it reaches beyond the project, as the network or a
command of the caller's does. A tool that says nothing, or not exactly these four, is taken for the worst.

A tool may also declare `OUTPUT_SCHEMA`, an object schema of its result's fields beside `success`, `output`, `error` and
`code`, and `__title__`, a name for people.

Texts of the system's own tools are listed as they are; those of any other are made safe to list first, every string of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rye.record import Record
from rye.toolkit.untrusted import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rye.items import Tool

WORST: Final = {"read_only": False, "destructive": True, "idempotent": False, "open_world": True}
"""What the effects of a tool are taken for that does not declare them; also the names of all four."""

LONGEST_DESCRIPTION: Final = 1_500
_LONGEST_TEXT = 1_024
_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
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
        name: for agent interfaces (see `rye.tool_names`).
        title: for people.
        summary: one line.
        description: for a model; the docstring, or the summary where there is none.
        parameters, output: object schemas (draft 2020-12).
        effects: the four of `WORST`.
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


def offer(tool: Tool, name: str, space: str) -> Offer:
    """Return the offer of a verified tool."""
    key = tool.verified.key
    own = key.role == "system"
    title = tool.metadata.get("__title__")
    given = {
        "title": title if isinstance(title, str) and title else _title(tool.id),
        "summary": tool.description, "description": tool.docstring or tool.description, "category": tool.category,
        "version": tool.version, "tool_type": tool.tool_type, "owner": key.owner or "",
    }  # fmt: skip
    told = given if own else {field: _line(text) for field, text in given.items()}
    if not own:
        told["description"] = plain(given["description"], LONGEST_DESCRIPTION, lines=True)
    declared = tool.metadata.get("OUTPUT_SCHEMA")
    output = output_schema(declared if isinstance(declared, dict) else {})
    return Offer(
        item_id=tool.id, name=name, effects=effects_of(tool.metadata), space=space, digest=tool.verified.digest,
        signer=key.public.fingerprint, parameters=tool.schema if own else listable(tool.schema),
        output=output if own else listable(output), **told,
    )  # fmt: skip


def effects_of(metadata: Mapping[str, Any]) -> dict[str, bool]:
    """Return the effects that a tool declares; the worst of each where it declares none, or not exactly these."""
    declared = metadata.get("__effects__")
    if not isinstance(declared, dict) or set(declared) != set(WORST):
        return dict(WORST)
    if not all(isinstance(value, bool) for value in declared.values()):
        return dict(WORST)
    return {name: declared[name] for name in WORST}


def output_schema(declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's result: what every result has, and the fields that the tool declares."""
    own = declared.get("properties", {})
    return {
        "type": "object", "properties": {**_ENVELOPE, **(own if isinstance(own, dict) else {})}, "required": ["success"],
        "additionalProperties": True,
    }  # fmt: skip


def listable(value: Any) -> Any:  # noqa: ANN401 - any literal
    """Return a foreign tool's schema as it may be listed: every name and text of it is made plain.

    A pattern that would change is left out: it would say something else. What is no JSON (a set, bytes) is told as text.
    """
    if isinstance(value, str):
        return plain(value, _LONGEST_TEXT, lines=True)
    if isinstance(value, dict):
        kept = {name: below for name, below in value.items() if name != "pattern" or _is_plain(below)}
        return {plain(str(name), 128): listable(below) for name, below in kept.items()}
    if isinstance(value, list | tuple):
        return [listable(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float) else plain(repr(value), _LONGEST_TEXT)


def _is_plain(value: object) -> bool:
    return not isinstance(value, str) or plain(value, _LONGEST_TEXT, lines=True) == value


def _line(text: str) -> str:
    return plain(text, 256)


def _title(item_id: str) -> str:
    words = item_id.rpartition("/")[2].replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]

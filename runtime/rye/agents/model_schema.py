"""The form in which a model is offered a tool: a brief description, and a plain schema of the parameters that it needs.

A tool may declare both in its signed text, beside its docstring and `CONFIG_SCHEMA`, which say everything:

    __agent_description__ = \"\"\"What it does … (the six points, as briefly as possible)\"\"\"
    __agent_parameters__ = {"file_path": "", "offset": "First line, from 1"}

`__agent_parameters__` names the parameters that are listed, with a shorter description each ("" for none). The others are
accepted all the same; `rye_search` shows them. Bounds are not listed then: a call that passes one is told the bound.

The schema is plain: no references, nothing combined at its root, no `additionalProperties`, `not`, unions or lists of types,
which some clients refuse. It may be wider than the tool's own, which checks every call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from rye.errors import ItemError
from rye.items.schema import WORKSPACE_PATH, target

DESCRIPTION: Final = "__agent_description__"
PARAMETERS: Final = "__agent_parameters__"

_Schema = dict[str, Any]
_NOT_LISTED: Final = frozenset({"additionalProperties", "not", "if", "then", "else", "dependentSchemas", "dependentRequired"})
_UNIONS: Final = ("anyOf", "oneOf", "allOf")
_BOUNDS: Final = frozenset(
    {"minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"}
    | {"minProperties", "maxProperties"}
)


def description_of(metadata: Mapping[str, Any], docstring: str) -> str:
    """Return what a model reads of a tool: its brief description, else its docstring."""
    brief = metadata.get(DESCRIPTION)
    return brief.strip() if isinstance(brief, str) and brief.strip() else docstring


def parameters_of(metadata: Mapping[str, Any], schema: _Schema) -> _Schema:
    """Return the part of a schema that is listed."""
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        return schema
    declared = metadata.get(PARAMETERS)
    if isinstance(declared, dict):
        # Required ones are listed whatever is declared: no call would succeed without.
        names = [name for name in properties if name in declared or name in schema.get("required", ())]
        properties = {name: _named(properties[name], declared.get(name)) for name in names}
    return {**schema, "properties": properties}


def _named(part: Any, text: object) -> Any:
    """Return a parameter with its shorter description, without bounds, and without a default that says nothing."""
    if not isinstance(part, dict):
        return part
    own = {name: _named(below, None) if name == "items" else below for name, below in part.items() if name not in _BOUNDS}
    if isinstance(below := own.get("properties"), dict):
        own["properties"] = {name: _named(one, None) for name, one in below.items()}
    if isinstance(text, str):
        own.pop("description", None)
        own |= {"description": text} if text else {}
    default = own.get("default")
    if default in (False, ".", "", "utf-8", part.get("minimum")) or "enum" in own:
        own.pop("default", None)
    return own


def flat(part: Any) -> Any:
    """Return a schema (without references) with nothing in it that some client refuses."""
    if not isinstance(part, dict):
        return {} if isinstance(part, bool) else part
    own = {name: value for name, value in part.items() if name not in _NOT_LISTED}
    options = [one for name in _UNIONS for one in own.pop(name, ()) if isinstance(one, dict) and one.get("type") != "null"]
    if options and "type" not in own and "properties" not in own:
        # The first form is listed; the others are still taken.
        own = {**options[0], **own}
        return flat(own)
    if isinstance(kinds := own.get("type"), list):
        own["type"] = next((kind for kind in kinds if kind != "null"), "string")
        # What is said of the other types would be said of a type that is not listed.
        for name in {"string": ("properties", "required", "items"), "object": ("items",)}.get(own["type"], ()):
            own.pop(name, None)
    if isinstance(values := own.get("enum"), list) and None in values:
        own["enum"] = [value for value in values if value is not None]
    if own.get("default", ...) is None:
        del own["default"]
    for name in ("properties", "patternProperties"):
        if isinstance(own.get(name), dict):
            own[name] = {key: flat(below) for key, below in own[name].items()}
    if "items" in own:
        own["items"] = flat(own["items"])
    elif own.get("type") == "array":
        own["items"] = {}
    return own


_DEEPEST: Final = 64
_MOST_PARTS: Final = 20_000
_BOOKKEEPING: Final = frozenset({"$schema", "$id", "$defs", "definitions", "$comment", "$anchor", "$ref"})
_NAMED: Final = ("properties", "patternProperties", "dependentSchemas")
_LISTED: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_VALUES: Final = ("enum", "const", "default", "examples", "required")
_NOT_AT_ROOT: Final = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})


def inline_refs(schema: Mapping[str, Any], *, keep_paths: bool = False) -> _Schema:
    """Return a schema with every `$ref` to its own parts written out, and without what only this package understands.

    Args:
        schema: a tool's own.
        keep_paths: leave the format of paths in the workspace, which no interface knows.

    Raises:
        ItemError: `not_expressible`, for one that refers to itself or outwards, or grows beyond 20,000 parts.
    """
    count = 0

    def inlined(part: Any, depth: int) -> Any:
        nonlocal count
        if not isinstance(part, dict):
            return part
        count += 1
        # Both bounds: a cycle grows in depth, references to references grow in width.
        if depth > _DEEPEST or count > _MOST_PARTS:
            raise ItemError("not_expressible", "its schema refers to itself, or is too large")
        own = {name: below(name, value, depth + 1) for name, value in part.items() if name not in _BOOKKEEPING}
        # Our own format; an interface that checks formats would refuse the schema for it.
        if own.get("format") == WORKSPACE_PATH and not keep_paths:
            del own["format"]
        if {} in own.get("anyOf", ()):
            # Anything is taken, so that the tool can refuse it in its own words; the first form is what is asked for.
            first = next(one for one in own.pop("anyOf") if isinstance(one, dict))
            own = {**first, **own}
        if "$ref" not in part:
            return own
        referred = target(str(part["$ref"]), schema)
        if referred is None:
            raise ItemError("not_expressible", f"its schema refers to {str(part['$ref'])[:80]}, which is not in it")
        found = inlined(referred, depth + 1)
        # Keywords beside `$ref` count since draft 2019-09, so they override the target's.
        return {**found, **own} if isinstance(found, dict) else own

    def below(name: str, value: Any, depth: int) -> Any:
        if name in _NAMED and isinstance(value, dict):
            return {key: inlined(one, depth) for key, one in value.items()}
        if name in _LISTED and isinstance(value, list):
            return [inlined(one, depth) for one in value]
        # Values are data: an enum may hold an object that has a key `$ref`.
        return value if name in _VALUES else inlined(value, depth)

    found: _Schema = inlined(schema, 0)
    return found


def plain(schema: Mapping[str, Any]) -> _Schema:
    """Return an object schema on its own, flat, whose root combines nothing. Errors as `inline_refs`."""
    base = inline_refs(schema)
    own = {name: value for name, value in base.items() if name not in _NOT_AT_ROOT}
    found: _Schema = flat({**own, "type": "object", "properties": base.get("properties", {})})
    return found


def check_property_names(part: Any, grammar: re.Pattern[str]) -> None:
    """Raise ItemError `not_expressible` for a property, at any depth, whose name an interface does not take."""
    if isinstance(part, list):
        for one in part:
            check_property_names(one, grammar)
    if not isinstance(part, dict):
        return
    for name, below in part.get("properties", {}).items():
        if not grammar.fullmatch(name):
            raise ItemError("not_expressible", f"the interface takes no parameter named {name[:80]!r}")
        check_property_names(below, grammar)
    for name in ("items", "additionalProperties", *_LISTED):
        check_property_names(part.get(name), grammar)

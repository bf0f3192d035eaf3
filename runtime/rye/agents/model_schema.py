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
# Bookkeeping; what some client refuses, or reads as nothing; and what holds schemas beside those of properties and items.
_NOT_LISTED: Final = frozenset(
    {"$schema", "$id", "$defs", "definitions", "$comment", "$anchor", "additionalProperties", "not", "if", "then", "else"}
    | {"dependentSchemas", "dependentRequired", "prefixItems", "contains", "minContains", "maxContains", "propertyNames"}
    | {"unevaluatedProperties", "unevaluatedItems", "contentSchema", "$dynamicRef", "$dynamicAnchor"}
)
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


_MOST_PARTS: Final = 20_000
_NOT_AT_ROOT: Final = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})


def resolved(part: Any, root: Mapping[str, Any]) -> Any:
    """Return a part of a schema with what its `$ref` leads to, and of an `anyOf` that takes anything the first form.

    Anything is taken so that the tool can refuse it in its own words; the first form is what is asked for. A reference that
    leads to itself, or is no pointer into the schema, asks for nothing.
    """
    followed = set()
    while isinstance(part, dict):
        if "$ref" in part:
            reference = str(part["$ref"])
            found = None if reference in followed else target(reference, root)
            followed.add(reference)
            # Keywords beside `$ref` count since draft 2019-09, so they override the target's.
            part = (found if isinstance(found, dict) else {}) | {name: value for name, value in part.items() if name != "$ref"}
        elif {} in part.get("anyOf", ()):
            first = next(one for one in part["anyOf"] if isinstance(one, dict))
            part = first | {name: value for name, value in part.items() if name != "anyOf"}
        else:
            break
    return part


def plain(schema: Mapping[str, Any]) -> _Schema:
    """Return an object schema on its own with nothing in it that some client refuses.

    Raises:
        ItemError: `not_expressible`, for one that grows beyond 20,000 parts. RecursionError: it refers to itself.
    """
    count = 0

    def flat(part: Any) -> Any:
        nonlocal count
        count += 1
        if count > _MOST_PARTS:
            raise ItemError("not_expressible", "its schema is too large")
        part = resolved(part, schema)
        if not isinstance(part, dict):
            return {} if isinstance(part, bool) else part
        own = {name: value for name, value in part.items() if name not in _NOT_LISTED}
        if own.get("format") == WORKSPACE_PATH:
            del own["format"]
        forms = [resolved(one, schema) for name in _UNIONS for one in own.pop(name, ())]
        options = [one for one in forms if isinstance(one, dict) and one.get("type") != "null"]
        if options and "type" not in own and "properties" not in own:
            # The first form is listed; the others are still taken.
            return flat({**options[0], **own})
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

    root = {name: value for name, value in resolved(schema, schema).items() if name not in _NOT_AT_ROOT}
    found: _Schema = flat({**root, "type": "object", "properties": root.get("properties", {})})
    return found


def check_property_names(part: Any, grammar: re.Pattern[str]) -> None:
    """Raise ItemError `not_expressible` for a property of a plain schema whose name an interface does not take."""
    if not isinstance(part, dict):
        return
    for name, below in part.get("properties", {}).items():
        if not grammar.fullmatch(name):
            raise ItemError("not_expressible", f"the interface takes no parameter named {name[:80]!r}")
        check_property_names(below, grammar)
    check_property_names(part.get("items"), grammar)

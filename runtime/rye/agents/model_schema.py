"""The form in which a model is offered a tool: a brief description, and a plain schema of the parameters that it needs.

A tool may declare both in its signed text, beside its docstring and `CONFIG_SCHEMA`, which say everything:

    __agent_description__ = \"\"\"What it does … (the six points, as briefly as possible)\"\"\"
    __agent_parameters__ = {"file_path": "", "offset": "First line, from 1"}

`__agent_parameters__` names the parameters that are listed, with a shorter description each ("" for none). The others are
accepted all the same; `rye_search` shows them. Bounds are not listed then: a call that passes one is told the bound.

The schema is flat: no `additionalProperties`, `not`, unions or lists of types, which some clients refuse. It may be wider than
the tool's own, which checks every call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

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
    if own.get("default") in (False, ".", "") or "enum" in own:
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

"""JSON Schema in the subset that the Gemini API's `Schema` takes, a select part of OpenAPI 3.0.

Source: the `FunctionDeclaration` and `Schema` references. Types are upper-case names; null is `nullable`; an enum is of texts,
none of them empty; an object has named properties, an array items; there is no `const`, `oneOf`, `allOf`, `not`,
`additionalProperties` or `$ref`. What it cannot say of a value it leaves out, since the tool's own schema checks every call;
a value without a shape of its own (a free object, anything) goes as JSON text.
"""

from __future__ import annotations

import json
from typing import Any, Final

_Schema = dict[str, Any]

# Not maxItems: the service refuses declarations in which they add up to about a thousand.
_KEPT: Final = frozenset({"title", "description"})
_OF_TYPE: Final = {
    "STRING": frozenset({"pattern", "minLength", "maxLength", "default"}),
    "INTEGER": frozenset({"minimum", "maximum", "default"}),
    "NUMBER": frozenset({"minimum", "maximum", "default"}),
    "BOOLEAN": frozenset({"default"}),
    "ARRAY": frozenset({"minItems"}),
    "OBJECT": frozenset({"minProperties", "maxProperties"}),
}
_FORMATS: Final = {"STRING": {"date-time"}, "INTEGER": {"int32", "int64"}, "NUMBER": {"float", "double"}}
_JSON_TEXT: Final = "As JSON text."


def gemini_parameters(base: _Schema) -> _Schema:
    """Return an object schema (without references) in the subset."""
    return _part(base)


def _part(part: Any) -> _Schema:  # noqa: ANN401 - a schema, or true or false
    if not isinstance(part, dict):
        return _json_text({})
    options = part.get("anyOf", part.get("oneOf"))
    if options and "properties" not in part:
        return _any_of(part, options)
    kinds = part.get("type")
    if isinstance(kinds, list):
        some = [kind for kind in kinds if kind != "null"]
        if len(some) != 1:
            return _any_of({**part, "type": None}, [{**part, "type": kind} for kind in kinds])
        return {**_part({**part, "type": some[0]}), **({"nullable": True} if "null" in kinds else {})}
    if kinds is None and ("enum" in part or "const" in part):
        kinds = _kind_of(part.get("enum", [part.get("const")]))
    return _typed(part, str(kinds or ("object" if "properties" in part else "")).upper())


def _typed(part: _Schema, kind: str) -> _Schema:
    shapeless = (kind == "OBJECT" and not part.get("properties")) or (
        kind == "ARRAY" and not isinstance(part.get("items"), dict)
    )
    if kind not in _OF_TYPE or shapeless:
        return _json_text(part)
    out = {name: value for name, value in part.items() if name in _KEPT or name in _OF_TYPE[kind]}
    out["type"] = kind
    if part.get("format") in _FORMATS.get(kind, ()):
        out["format"] = part["format"]
    values = part.get("enum", [part["const"]] if "const" in part else None)
    if values is not None:
        if kind == "STRING" and all(isinstance(value, str) and value for value in values):
            out["enum"] = list(values)
        else:
            out["description"] = _joined(out.get("description", ""), f"One of {json.dumps(values, ensure_ascii=False)}.")
    if kind == "ARRAY":
        out["items"] = _part(part["items"])
    if kind == "OBJECT":
        known = part["properties"]
        out["properties"] = {name: _part(below) for name, below in known.items()}
        out["propertyOrdering"] = list(known)
        required = [name for name in part.get("required", ()) if name in known]
        out.update({"required": required} if required else {})
    return out


def _any_of(part: _Schema, options: list[Any]) -> _Schema:
    some = [one for one in options if not (isinstance(one, dict) and one.get("type") == "null")]
    out: _Schema = {name: value for name, value in part.items() if name in _KEPT}
    parts = [_part(one) for one in some]
    out = {**parts[0], **out} if len(parts) == 1 else {**out, "anyOf": parts}
    return {**out, "nullable": True} if len(some) < len(options) else out


def _json_text(part: _Schema) -> _Schema:
    kept = {name: value for name, value in part.items() if name in _KEPT}
    return {**kept, "type": "STRING", "description": _joined(kept.get("description", ""), _JSON_TEXT)}


def _kind_of(values: list[Any]) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    found = {kinds.get(type(value), "") for value in values}
    return found.pop() if len(found) == 1 else ""


def _joined(*texts: str) -> str:
    return " ".join(text if text.endswith((".", "!", "?")) else f"{text}." for text in texts if text)

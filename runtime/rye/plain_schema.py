"""The plainest schemas, by which most calls are checked: a closed object of texts, whole numbers and switches.

The JSON Schema library takes longer to load than such a call takes to answer. So what is certain is said here: that the
schema is of this shape, and that the parameters fit it. Everything else, every refusal above all, is the library's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOP = {"type", "properties", "required", "additionalProperties", "description"}
_SAYS = {"type", "description", "default"}
_OF_TYPE = {
    "string": {"enum", "minLength", "maxLength", "format"},
    "integer": {"minimum", "maximum", "not"},
    "boolean": set[str](),
}
# Larger numbers are left to the library.
_LARGEST = 1 << 53


def is_plain(schema: Mapping[str, Any]) -> bool:
    """Tell whether a schema is valid, and of the shape that `fits` understands whole."""
    properties, required = schema.get("properties"), schema.get("required", [])
    return (
        set(schema) <= _TOP
        and schema.get("type") == "object"
        and schema.get("additionalProperties") is False
        and isinstance(schema.get("description", ""), str)
        and isinstance(required, list)
        and all(type(name) is str for name in required)
        and len(set(required)) == len(required)
        and isinstance(properties, dict)
        and all(type(name) is str and _is_plain_part(part) for name, part in properties.items())
    )


def _is_plain_part(part: object) -> bool:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str) or part["type"] not in _OF_TYPE:
        return False
    bounds = [part[name] for name in ("minLength", "maxLength", "minimum", "maximum") if name in part]
    lengths = [part[name] for name in ("minLength", "maxLength") if name in part]
    return (
        set(part) <= _SAYS | _OF_TYPE[part["type"]]
        and isinstance(part.get("description", ""), str)
        and part.get("format", "workspace-path") == "workspace-path"
        and all(type(bound) is int and abs(bound) < _LARGEST for bound in bounds)
        and all(bound >= 0 for bound in lengths)
        and _is_plain_exception(part.get("not", {"const": 0}))
        and isinstance(part.get("enum", []), list)
        and all(type(one) is str for one in part.get("enum", []))
    )


def _is_plain_exception(part: object) -> bool:
    return isinstance(part, dict) and set(part) == {"const"} and type(part["const"]) is int


def fits(schema: Mapping[str, Any], parameters: Mapping[str, Any]) -> bool:
    """Tell whether parameters certainly obey a plain schema; False only means: ask the library."""
    properties = schema["properties"]
    return all(name in parameters for name in schema.get("required", [])) and all(
        name in properties and _part_fits(properties[name], value) for name, value in parameters.items()
    )


def _part_fits(part: Mapping[str, Any], value: object) -> bool:
    if part["type"] == "boolean":
        return type(value) is bool
    if part["type"] == "integer":
        least, most = max(part.get("minimum", -_LARGEST), -_LARGEST), part.get("maximum", _LARGEST)
        return type(value) is int and least <= value <= most and part.get("not") != {"const": value}
    return (
        type(value) is str
        and value in part.get("enum", [value])
        and part.get("minLength", 0) <= len(value) <= part.get("maxLength", _LARGEST)
        and (value.isascii() or _is_text(value))
    )


def _is_text(value: str) -> bool:
    """Tell whether a text has no lone surrogate."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True

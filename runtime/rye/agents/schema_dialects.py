"""A tool's schema as any interface can take it: on its own, without references, nothing combined at its root.

JSON Schema in the subset that the Gemini API's `Schema` takes, a select part of OpenAPI 3.0.

Source: the `FunctionDeclaration` and `Schema` references. Types are upper-case names; null is `nullable`; an enum is of texts,
none of them empty; an object has named properties, an array items; there is no `const`, `oneOf`, `allOf`, `not`,
`additionalProperties` or `$ref`. What it cannot say of a value it leaves out, since the tool's own schema checks every call;
a value without a shape of its own (a free object, anything) goes as JSON text.

JSON Schema in the subset of OpenAI's strict mode, in which a model's arguments are sure to fit.

Source: OpenAI's guide to structured outputs. Every object is closed and every property required, so one that may be left out
takes null instead; `default` and the lengths of strings have no place; nothing is combined but by a nested `anyOf`; at most
5,000 properties, 10 levels, 1,000 enum values, 120,000 characters in names and values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from rye.errors import ItemError
from rye.items.schema import WORKSPACE_PATH

# Not maxItems: the service refuses declarations in which they add up to about a thousand.
_GEMINI_COMMON: Final = frozenset({"title", "description"})
_OF_TYPE: Final = {
    "STRING": frozenset({"pattern", "minLength", "maxLength", "default"}),
    "INTEGER": frozenset({"minimum", "maximum", "default"}),
    "NUMBER": frozenset({"minimum", "maximum", "default"}),
    "BOOLEAN": frozenset({"default"}),
    "ARRAY": frozenset({"minItems"}),
    "OBJECT": frozenset({"minProperties", "maxProperties"}),
}
_GEMINI_FORMATS: Final = {"STRING": {"date-time"}, "INTEGER": {"int32", "int64"}, "NUMBER": {"float", "double"}}
_JSON_TEXT: Final = "As JSON text."


def gemini_parameters(base: _Schema) -> _Schema:
    """Return an object schema (without references) in the subset."""
    return _part(base)


def _part(part: Any) -> _Schema:
    if not isinstance(part, dict):
        return _json_text({})
    options = part.get("anyOf", part.get("oneOf"))
    if options and "properties" not in part:
        return _any_of(part, options)
    kinds = part.get("type")
    if isinstance(kinds, list):
        # A list of types has no form there but `anyOf`, except null, which is a flag.
        some = [kind for kind in kinds if kind != "null"]
        if len(some) != 1:
            return _any_of({**part, "type": None}, [{**part, "type": kind} for kind in kinds])
        return {**_part({**part, "type": some[0]}), **({"nullable": True} if "null" in kinds else {})}
    if kinds is None and ("enum" in part or "const" in part):
        kinds = _kind_of(part.get("enum", [part.get("const")]))
    return _typed(part, str(kinds or ("object" if "properties" in part else "")).upper())


def _typed(part: _Schema, kind: str) -> _Schema:
    # The service refuses an object without properties and an array without items.
    shapeless = (kind == "OBJECT" and not part.get("properties")) or (
        kind == "ARRAY" and not isinstance(part.get("items"), dict)
    )
    if kind not in _OF_TYPE or shapeless:
        return _json_text(part)
    out = {name: value for name, value in part.items() if name in _GEMINI_COMMON or name in _OF_TYPE[kind]}
    out["type"] = kind
    if part.get("format") in _GEMINI_FORMATS.get(kind, ()):
        out["format"] = part["format"]
    values = part.get("enum", [part["const"]] if "const" in part else None)
    if values is not None:
        # An enum of other values is refused: it goes into the description, where the model reads it.
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
        # A required name without a property is valid JSON Schema and refused there.
        required = [name for name in part.get("required", ()) if name in known]
        out.update({"required": required} if required else {})
    return out


def _any_of(part: _Schema, options: list[Any]) -> _Schema:
    some = [one for one in options if not (isinstance(one, dict) and one.get("type") == "null")]
    out: _Schema = {name: value for name, value in part.items() if name in _GEMINI_COMMON}
    parts = [_part(one) for one in some]
    out = {**parts[0], **out} if len(parts) == 1 else {**out, "anyOf": parts}
    return {**out, "nullable": True} if len(some) < len(options) else out


def _json_text(part: _Schema) -> _Schema:
    own = {name: value for name, value in part.items() if name in _GEMINI_COMMON}
    return {**own, "type": "STRING", "description": _joined(own.get("description", ""), _JSON_TEXT)}


def _kind_of(values: list[Any]) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    # By exact type, because isinstance takes True for an int.
    found = {kinds.get(type(value), "") for value in values}
    return found.pop() if len(found) == 1 else ""


_STRICT_FORMATS: Final = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_STRICT_KEYWORDS: Final = frozenset(
    {
        "description",
        "enum",
        "const",
        "pattern",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minItems",
        "maxItems",
    }
)
_NEVER: Final = frozenset(
    {
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "dependentRequired",
        "dependentSchemas",
        "patternProperties",
        "unevaluatedProperties",
        "prefixItems",
        "contains",
    }
)
_MOST: Final = {"properties": 5_000, "enum": 1_000, "depth": 10, "characters": 120_000}
NOT_AT_ROOT: Final = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})
"""What the root of a function's parameters may not have, in strict mode or out of it."""


def strict_parameters(base: _Schema) -> _Schema | None:
    """Return parameters (without references) in the strict subset; None where they have no words there."""
    if NOT_AT_ROOT & set(base):
        return None
    strict = _strict({**base, "type": "object", "properties": base.get("properties", {})}, at_root=True)
    return strict if strict is not None and _is_within(strict) else None


def _strict(part: Any, *, at_root: bool = False) -> _Schema | None:
    if not isinstance(part, dict) or _NEVER & set(part):
        return None
    out = {name: value for name, value in part.items() if name in _STRICT_KEYWORDS}
    if part.get("format") in _STRICT_FORMATS:
        out["format"] = part["format"]
    # Strict mode knows no `default`; without the hint a model would invent a value.
    if "default" in part:
        out["description"] = _joined(out.get("description", ""), f"Default: {json.dumps(part['default'], ensure_ascii=False)}.")
    options = part.get("anyOf", part.get("oneOf"))
    if options is not None:
        strict = [_strict(one) for one in options]
        return None if None in strict or "properties" in part else {**out, "anyOf": strict}
    kinds = part.get("type")
    if kinds is None:
        return out if "enum" in out or "const" in out else None
    out["type"] = kinds
    if kinds == "object" or "properties" in part:
        return _strict_object(part, out, at_root=at_root)
    if kinds == "array" or "items" in part:
        items = _strict(part.get("items"))
        return None if items is None else {**out, "items": items}
    return None if isinstance(kinds, list) and {"object", "array"} & set(kinds) else out


def _strict_object(part: _Schema, out: _Schema, *, at_root: bool) -> _Schema | None:
    known = part.get("properties", {})
    # Strict objects are closed: one with free keys has no form there.
    if part.get("additionalProperties", False) is not False or not (known or at_root):
        return None
    strict = {name: _strict(below) for name, below in known.items()}
    if None in strict.values():
        return None
    required = part.get("required", ())
    return {
        **out,
        "properties": {name: below if name in required else _or_null(below or {}) for name, below in strict.items()},
        "required": list(known),
        "additionalProperties": False,
    }


def _or_null(part: _Schema) -> _Schema:
    """Return a schema that takes null too."""
    if "anyOf" in part:
        return {**part, "anyOf": [*part["anyOf"], {"type": "null"}]}
    kinds = part.get("type")
    if "const" in part or kinds is None:
        return {"anyOf": [part, {"type": "null"}]}
    listed = kinds if isinstance(kinds, list) else [kinds]
    out = {**part, "type": listed if "null" in listed else [*listed, "null"]}
    # The type alone is not enough: a value must be in the enum as well.
    if "enum" in part and None not in part["enum"]:
        out["enum"] = [*part["enum"], None]
    return out


def _is_within(strict: _Schema) -> bool:
    found = dict.fromkeys(_MOST, 0)

    def measure(part: Any, depth: int) -> None:
        known = part.get("properties", {})
        found["depth"] = max(found["depth"], depth + bool(known))
        found["properties"] += len(known)
        values = [*part.get("enum", ()), *([part["const"]] if "const" in part else ())]
        found["enum"] += len(part.get("enum", ()))
        found["characters"] += sum(map(len, known)) + sum(len(str(value)) for value in values)
        for below in known.values():
            measure(below, depth + 1)
        for below in [*part.get("anyOf", ()), *([part["items"]] if "items" in part else ())]:
            measure(below, depth)

    measure(strict, 0)
    return all(found[name] <= most for name, most in _MOST.items())


def _joined(*texts: str) -> str:
    return " ".join(text if text.endswith((".", "!", "?")) else f"{text}." for text in texts if text)


_Schema = dict[str, Any]

_DEEPEST: Final = 64
_MOST_PARTS: Final = 20_000
_BOOKKEEPING: Final = frozenset({"$schema", "$id", "$defs", "definitions", "$comment", "$anchor", "$ref"})
_NAMED: Final = ("properties", "patternProperties", "dependentSchemas")
_LISTED: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_VALUES: Final = ("enum", "const", "default", "examples", "required")


def alone(schema: Mapping[str, Any], *, keep_paths: bool = False) -> _Schema:
    """Return a schema with every `$ref` to its own parts written out, and without what only this package understands.

    Args:
        schema: a tool's own.
        keep_paths: leave the format of paths in the workspace, which no interface knows.

    Raises:
        ItemError: `not_expressible`, for one that refers to itself or outwards, or grows beyond 20,000 parts.
    """
    found: _Schema = _Inlining(schema, keep_paths=keep_paths).part(schema)
    return found


def at_root(base: _Schema) -> _Schema:
    """Return an object schema whose root combines nothing: no interface takes that there."""
    own = {name: value for name, value in base.items() if name not in NOT_AT_ROOT}
    return {**own, "type": "object", "properties": base.get("properties", {})}


def hold_names(part: Any, grammar: re.Pattern[str]) -> None:
    """Raise ItemError `not_expressible` for a property, at any depth, whose name an interface does not take."""
    if isinstance(part, list):
        for one in part:
            hold_names(one, grammar)
    if not isinstance(part, dict):
        return
    for name, below in part.get("properties", {}).items():
        if not grammar.fullmatch(name):
            raise ItemError("not_expressible", f"the interface takes no parameter named {name[:80]!r}")
        hold_names(below, grammar)
    for name in ("items", "additionalProperties", *_LISTED):
        hold_names(part.get(name), grammar)


class _Inlining:
    def __init__(self, root: Mapping[str, Any], *, keep_paths: bool) -> None:
        self._root = root
        self._keep_paths = keep_paths
        self._parts = 0

    def part(self, part: Any, depth: int = 0) -> Any:
        if not isinstance(part, dict):
            return part
        self._parts += 1
        # Both bounds: a cycle grows in depth, references to references grow in width.
        if depth > _DEEPEST or self._parts > _MOST_PARTS:
            raise ItemError("not_expressible", "its schema refers to itself, or is too large")
        own = {name: value for name, value in part.items() if name not in _BOOKKEEPING}
        # Our own format; an interface that checks formats would refuse the schema for it.
        if own.get("format") == WORKSPACE_PATH and not self._keep_paths:
            del own["format"]
        own = {name: self._below(name, value, depth + 1) for name, value in own.items()}
        if "$ref" not in part:
            return own
        aim = self.part(self._aim(str(part["$ref"])), depth + 1)
        # Keywords beside `$ref` count since draft 2019-09, so they override the aim's.
        return {**aim, **own} if isinstance(aim, dict) else own

    def _below(self, name: str, value: Any, depth: int) -> Any:
        if name in _NAMED and isinstance(value, dict):
            return {key: self.part(below, depth) for key, below in value.items()}
        if name in _LISTED and isinstance(value, list):
            return [self.part(below, depth) for below in value]
        # Values are data: an enum may hold an object that has a key `$ref`.
        return value if name in _VALUES else self.part(value, depth)

    def _aim(self, reference: str) -> object:
        found: Any = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            # In this order, as RFC 6901 says: `~01` is `~1`, not `/`.
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        if found is None or reference[:1] != "#":
            raise ItemError("not_expressible", f"its schema refers to {reference[:80]}, which is not in it")
        return found

"""JSON Schema in the subset of OpenAI's strict mode, in which a model's arguments are sure to fit.

Source: OpenAI's guide to structured outputs. Every object is closed and every property required, so one that may be left out
takes null instead; `default` and the lengths of strings have no place; nothing is combined but by a nested `anyOf`; at most
5,000 properties, 10 levels, 1,000 enum values, 120,000 characters in names and values.
"""

from __future__ import annotations

import json
from typing import Any, Final

_Schema = dict[str, Any]

_FORMATS: Final = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_KEPT: Final = frozenset(
    {"description", "enum", "const", "pattern", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
     "minItems", "maxItems"}
)  # fmt: skip
_NEVER: Final = frozenset(
    {"allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties",
     "unevaluatedProperties", "prefixItems", "contains"}
)  # fmt: skip
_MOST: Final = {"properties": 5_000, "enum": 1_000, "depth": 10, "characters": 120_000}
NOT_AT_ROOT: Final = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})
"""What the root of a function's parameters may not have, in strict mode or out of it."""


def strict_parameters(base: _Schema) -> _Schema | None:
    """Return parameters (without references) in the strict subset; None where they have no words there."""
    if NOT_AT_ROOT & set(base):
        return None
    strict = _strict({**base, "type": "object", "properties": base.get("properties", {})}, at_root=True)
    return strict if strict is not None and _is_within(strict) else None


def _strict(part: Any, *, at_root: bool = False) -> _Schema | None:  # noqa: ANN401 - a schema, or true or false
    if not isinstance(part, dict) or _NEVER & set(part):
        return None
    out = {name: value for name, value in part.items() if name in _KEPT}
    if part.get("format") in _FORMATS:
        out["format"] = part["format"]
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
    if part.get("additionalProperties", False) is not False or not (known or at_root):
        return None
    strict = {name: _strict(below) for name, below in known.items()}
    if None in strict.values():
        return None
    required = part.get("required", ())
    return {
        **out, "properties": {name: below if name in required else _or_null(below or {}) for name, below in strict.items()},
        "required": list(known), "additionalProperties": False,
    }  # fmt: skip


def _or_null(part: _Schema) -> _Schema:
    """Return a schema that takes null too."""
    if "anyOf" in part:
        return {**part, "anyOf": [*part["anyOf"], {"type": "null"}]}
    kinds = part.get("type")
    if "const" in part or kinds is None:
        return {"anyOf": [part, {"type": "null"}]}
    listed = kinds if isinstance(kinds, list) else [kinds]
    out = {**part, "type": listed if "null" in listed else [*listed, "null"]}
    if "enum" in part and None not in part["enum"]:
        out["enum"] = [*part["enum"], None]
    return out


def _is_within(strict: _Schema) -> bool:
    found = dict.fromkeys(_MOST, 0)

    def measure(part: Any, depth: int) -> None:  # noqa: ANN401 - a schema
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

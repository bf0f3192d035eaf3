"""What each agent interface documents of a tool's declaration, as checkers: each yields what the interface would refuse.

Written from the interfaces' references, not from the code that renders: OpenAI's function calling and structured outputs
guides, Anthropic's tool use reference, the Gemini API's `FunctionDeclaration` and `Schema`, the MCP specification's tools.
"""

from __future__ import annotations

import re

import jsonschema_rs

_STRICT = {
    "type",
    "description",
    "enum",
    "const",
    "anyOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "pattern",
    "format",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
    "$ref",
    "$defs",
    "title",
}
_STRICT_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
_TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}


def openai(tool):
    """Yield what Chat Completions would refuse of a function tool."""
    if set(tool) != {"type", "function"} or tool["type"] != "function":
        yield "not a function tool"
        return
    function = tool["function"]
    if set(function) - {"name", "description", "parameters", "strict"}:
        yield f"unknown fields {set(function)}"
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", function["name"]):
        yield f"name {function['name']!r}"
    if len(function.get("description", "")) > 1024:
        yield "description over 1,024 characters"
    parameters = function["parameters"]
    if parameters.get("type") != "object" or {"oneOf", "anyOf", "allOf", "enum", "not"} & set(parameters):
        yield "the root must be an object, without combinations"
    yield from _valid(parameters)
    if function.get("strict"):
        yield from _strict(parameters, "parameters")
        count, depth, enums, characters = _measured(parameters)
        if count > 5000 or depth > 10 or enums > 1000 or characters > 120_000:
            yield "too large for strict mode"


def _strict(part, where):
    if set(part) - _STRICT:
        yield f"{where}: {sorted(set(part) - _STRICT)} not permitted in strict mode"
    if part.get("format", "date") not in _STRICT_FORMATS:
        yield f"{where}: format {part['format']}"
    kinds = part.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not set(kinds) <= _TYPES:
        yield f"{where}: type {kinds}"
    if not kinds and not {"anyOf", "enum", "const", "$ref"} & set(part):
        yield f"{where}: no type"
    if "object" in kinds or "properties" in part:
        if part.get("additionalProperties") is not False:
            yield f"{where}: additionalProperties must be false"
        if set(part.get("required", ())) != set(part.get("properties", {})):
            yield f"{where}: every property must be required"
    if "array" in kinds and not isinstance(part.get("items"), dict):
        yield f"{where}: an array needs items"
    for name, below in part.get("properties", {}).items():
        yield from _strict(below, f"{where}.{name}")
    for below in [*part.get("anyOf", ()), *([part["items"]] if isinstance(part.get("items"), dict) else ())]:
        yield from _strict(below, f"{where}[]")


def _measured(part, depth=0):
    known = part.get("properties", {})
    below = [_measured(one, depth + 1) for one in known.values()]
    below += [_measured(one, depth) for one in [*part.get("anyOf", ()), *([part["items"]] if "items" in part else ())]]
    values = part.get("enum", [])
    return (
        len(known) + sum(one[0] for one in below),
        max([depth + bool(known), *(one[1] for one in below)]),
        len(values) + sum(one[2] for one in below),
        sum(map(len, known)) + sum(len(str(value)) for value in values) + sum(one[3] for one in below),
    )


def anthropic(tool):
    """Yield what the Messages interface would refuse of a client tool."""
    if set(tool) - {"name", "description", "input_schema", "type", "cache_control", "strict"}:
        yield f"unknown fields {set(tool)}"
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", tool["name"]):
        yield f"name {tool['name']!r}"
    schema = tool["input_schema"]
    if schema.get("type") != "object" or {"oneOf", "anyOf", "allOf"} & set(schema):
        yield "the root must be an object, without combinations"
    yield from _valid(schema)
    yield from _anthropic(schema)


def _anthropic(part):
    for one in _schemas(part):
        if {"$ref", "$dynamicRef"} & set(one):
            yield "references are not taken"
        for name in one.get("properties", {}):
            if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name):
                yield f"property {name!r}"


_GEMINI = {
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
    "propertyOrdering",
    "default",
    "items",
    "minimum",
    "maximum",
}
_GEMINI_TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
_GEMINI_FORMATS = {"STRING": {"enum", "date-time"}, "INTEGER": {"int32", "int64"}, "NUMBER": {"float", "double"}}


def gemini(tool):
    """Yield what the Gemini API would refuse of a function declaration."""
    if set(tool) - {"name", "description", "parameters", "response"}:
        yield f"unknown fields {set(tool)}"
    if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,62}", tool["name"]):
        yield f"name {tool['name']!r}"
    if "parameters" in tool:
        if tool["parameters"].get("type") != "OBJECT":
            yield "the root must be an object"
        yield from _gemini(tool["parameters"], "parameters")


def _gemini(part, where):
    if not isinstance(part, dict):
        yield f"{where}: no schema"
        return
    if set(part) - _GEMINI:
        yield f"{where}: cannot find field {sorted(set(part) - _GEMINI)}"
    kind = part.get("type")
    if isinstance(kind, list):
        yield f"{where}: type {kind!r}"
        return
    if kind not in _GEMINI_TYPES and not (kind is None and "anyOf" in part):
        yield f"{where}: type {kind!r}"
    if "format" in part and part["format"] not in _GEMINI_FORMATS.get(kind, ()):
        yield f"{where}: format {part['format']}"
    if "enum" in part and (kind != "STRING" or not all(isinstance(one, str) and one for one in part["enum"])):
        yield f"{where}: enum only of texts, none empty"
    if kind == "OBJECT" and not part.get("properties"):
        yield f"{where}: properties should be non-empty"
    if kind != "OBJECT" and {"properties", "required"} & set(part):
        yield f"{where}: properties only for OBJECT"
    if set(part.get("required", ())) - set(part.get("properties", {})):
        yield f"{where}: required names no property"
    if kind == "ARRAY" and "items" not in part:
        yield f"{where}: missing field items"
    for name, below in part.get("properties", {}).items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name):
            yield f"{where}: parameter {name!r}"
        yield from _gemini(below, f"{where}.{name}")
    for below in [*part.get("anyOf", ()), *([part["items"]] if "items" in part else ())]:
        yield from _gemini(below, f"{where}[]")


_HINTS = {"title": str, "readOnlyHint": bool, "destructiveHint": bool, "idempotentHint": bool, "openWorldHint": bool}
_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_META_KEY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_RESERVED = re.compile(rf"(?:{_LABEL}\.)*(?:modelcontextprotocol|mcp)\.{_LABEL}/")


def mcp(tool):
    """Yield what a client of the MCP specification would refuse of a tool."""
    if set(tool) - {
        "name",
        "title",
        "description",
        "inputSchema",
        "outputSchema",
        "annotations",
        "_meta",
        "icons",
        "execution",
    }:
        yield f"unknown fields {set(tool)}"
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", tool["name"]):
        yield f"name {tool['name']!r}"
    for field in ("inputSchema", "outputSchema"):
        if field in tool:
            if tool[field].get("type") != "object":
                yield f"{field} must be an object schema"
            yield from _valid(tool[field])
    for name, value in tool.get("annotations", {}).items():
        if not isinstance(value, _HINTS.get(name, ())):
            yield f"annotation {name}"
    for key in tool.get("_meta", {}):
        if not _META_KEY.fullmatch(key) or _RESERVED.match(key):
            yield f"_meta key {key!r}"


def _schemas(part):
    if isinstance(part, dict):
        yield part
        for name, below in part.items():
            if name in ("properties", "patternProperties", "$defs", "dependentSchemas"):
                for one in below.values():
                    yield from _schemas(one)
            elif name not in ("enum", "const", "default", "examples"):
                yield from _schemas(below)
    elif isinstance(part, list):
        for one in part:
            yield from _schemas(one)


def _valid(schema):
    try:
        jsonschema_rs.Draft202012Validator(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as err:
        yield f"no valid JSON Schema: {err}"


CHECKERS = {"openai": openai, "anthropic": anthropic, "gemini": gemini, "mcp": mcp}

"""What each agent interface documents of a tool's declaration, as checkers: each yields what the interface would refuse.

Written from the interfaces' references, not from the code that renders: OpenAI's function calling guide, Anthropic's tool use reference, the Gemini API's `FunctionDeclaration`, the MCP specification's tools.
"""

from __future__ import annotations

import re

import jsonschema_rs


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
    if function.get("strict") is not False:
        yield "strict mode makes every parameter required"


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


def gemini(tool):
    """Yield what the Gemini API would refuse of a function declaration."""
    if set(tool) - {"name", "description", "parametersJsonSchema", "responseJsonSchema"}:
        yield f"unknown fields {set(tool)}"
    if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,62}", tool["name"]):
        yield f"name {tool['name']!r}"
    if "parametersJsonSchema" in tool:
        schema = tool["parametersJsonSchema"]
        if schema.get("type") != "object" or not schema.get("properties"):
            yield "the root must be an object with properties"
        yield from _valid(schema)
        for one in _schemas(schema):
            for name in one.get("properties", {}):
                if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name):
                    yield f"parameter {name!r}"


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

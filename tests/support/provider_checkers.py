"""What each agent interface documents of a tool's declaration, as data, and what it would refuse of one.

Written from the interfaces' references, not from the code that renders: OpenAI's function calling guide, Anthropic's tool use
reference, the Gemini API's `FunctionDeclaration`, the MCP specification's tools.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import jsonschema_rs


class Interface(NamedTuple):
    """The members that it knows, the grammar of names, the members that are schemas, the grammar of parameters' names."""

    members: str
    name: str
    schemas: str
    parameter: str = "(?s).*"
    longest: int = 1 << 30
    root: str = ""
    references: bool = False


INTERFACES = {
    "openai": Interface("name description parameters strict", r"[a-zA-Z0-9_-]{1,64}", "parameters", longest=1024, root="oneOf anyOf allOf enum not"),
    "anthropic": Interface(
        "name description input_schema type cache_control strict",
        r"[a-zA-Z0-9_-]{1,128}",
        "input_schema",
        r"[a-zA-Z0-9_.-]{1,64}",
        root="oneOf anyOf allOf",
    ),
    "gemini": Interface(
        "name description parametersJsonSchema responseJsonSchema",
        r"[a-zA-Z_][a-zA-Z0-9_.-]{0,62}",
        "parametersJsonSchema",
        r"[A-Za-z_][A-Za-z0-9_]{0,63}",
    ),
    "mcp": Interface(
        "name title description inputSchema outputSchema annotations _meta icons execution",
        r"[A-Za-z0-9_.-]{1,128}",
        "inputSchema outputSchema",
        references=True,
    ),
}  # fmt: skip
_HINTS = {"title": str, "readOnlyHint": bool, "destructiveHint": bool, "idempotentHint": bool, "openWorldHint": bool}
_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_META_KEY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_RESERVED = re.compile(rf"(?:{_LABEL}\.)*(?:modelcontextprotocol|mcp)\.{_LABEL}/")


def problems(format, tool):
    """Yield what an interface would refuse of a tool's declaration."""
    one = INTERFACES[format]
    if format == "openai":
        if set(tool) != {"type", "function"} or tool["type"] != "function":
            yield "not a function tool"
        tool = tool["function"]
        if tool.get("strict") is not False:
            yield "strict mode makes every parameter required"
    if set(tool) - set(one.members.split()):
        yield f"unknown members {set(tool)}"
    if not re.fullmatch(one.name, tool["name"]):
        yield f"name {tool['name']!r}"
    if len(tool.get("description", "")) > one.longest:
        yield f"description over {one.longest} characters"
    for schema in (tool[name] for name in one.schemas.split() if name in tool):
        if schema.get("type") != "object" or set(one.root.split()) & set(schema):
            yield "the root must be an object, without combinations"
        if format == "gemini" and not schema.get("properties"):
            yield "an object without properties"
        try:
            jsonschema_rs.Draft202012Validator(schema)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as err:
            yield f"no valid JSON Schema: {err}"
        for part in _schemas(schema):
            if not one.references and {"$ref", "$dynamicRef"} & set(part):
                yield "references are not taken"
            yield from (f"parameter {name!r}" for name in part.get("properties", {}) if not re.fullmatch(one.parameter, name))
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

"""Declarations for four agent interfaces: within what each documents, and each documented limit seen by its checker."""

from __future__ import annotations

import json
import re

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import rye
from support.signed_tools import put_tool

FORMATS = ("openai", "anthropic", "gemini", "mcp")


def closed(**properties):
    return {"type": "object", "properties": properties, "additionalProperties": False}


def words(some, value):
    return dict.fromkeys(some.split(), value)


def interface(members, name, schemas, *, parameter="", root="", least=0, references=False, **more):
    """What an interface's reference says of a tool's declaration, as a JSON Schema.

    It knows these members, of which `schemas` are schemas, and the grammars of a name and a parameter's. `root` may not stand at the
    root of a schema, which has at least so many parameters, and may have references to others; `more` is what else it says of members.
    """
    below = {"$ref": "#/$defs/part"}
    part = {
        "properties": {"propertyNames": {"pattern": parameter}, "additionalProperties": below},
        **words("patternProperties $defs dependentSchemas", {"additionalProperties": below}),
        **words("anyOf oneOf allOf prefixItems", {"items": below}),
        **words("items not additionalProperties contains if then else", below),
        **({} if references else words("$ref $dynamicRef", False)),
    }
    whole = {
        "required": ["type", *["properties"] * least],
        "properties": {"type": {"const": "object"}, "properties": {"minProperties": least}, **words(root, False)},
        **below,
    }
    own = {"name": {"type": "string", "pattern": f"^{name}$"}, **words(schemas, whole), **more}
    return {
        "required": ["name"],
        "properties": {**words(members, True), **own},
        "additionalProperties": False,
        "$defs": {"part": {"properties": part}},
    }


LABEL = "[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?"
META_KEY = rf"^({LABEL}(\.{LABEL})*/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$"
# Written from OpenAI's function calling guide, Anthropic's tool use reference, the Gemini API's `FunctionDeclaration` and the MCP
# specification's tools, not from the code that renders.
INTERFACES = {
    # Strict mode makes every parameter required.
    "openai": interface(*("description strict", "[a-zA-Z0-9_-]{1,64}", "parameters"), root="oneOf anyOf allOf enum not", description={"maxLength": 1024}, strict={"const": False}),
    "anthropic": interface(*("description type cache_control strict", "[a-zA-Z0-9_-]{1,128}", "input_schema"), parameter="^[a-zA-Z0-9_.-]{1,64}$", root="oneOf anyOf allOf"),
    "gemini": interface(*("description", "[a-zA-Z_][a-zA-Z0-9_.-]{0,62}", "parametersJsonSchema responseJsonSchema"), parameter="^[A-Za-z_][A-Za-z0-9_]{0,63}$", least=1),
    "mcp": interface(
        *("title description icons execution", "[A-Za-z0-9_.-]{1,128}", "inputSchema outputSchema"),
        references=True,
        annotations={
            "properties": {
                "title": {"type": "string"},
                **words("readOnlyHint destructiveHint idempotentHint openWorldHint", {"type": "boolean"}),
            },
            "additionalProperties": False,
        },
        _meta={
            "propertyNames": {"pattern": META_KEY, "not": {"pattern": rf"^({LABEL}\.)*(modelcontextprotocol|mcp)\.{LABEL}/"}},
        },
    ),
}  # fmt: skip


def problems(declared, format):
    """What an interface would refuse of a tool's declaration."""
    if format == "openai":
        assert (set(declared), declared["type"], "strict" in declared["function"]) == ({"type", "function"}, "function", True)
        declared = declared["function"]
    found = [error.message for error in jsonschema_rs.Draft202012Validator(INTERFACES[format]).iter_errors(declared)]
    for name in ("parameters", "input_schema", "parametersJsonSchema", "inputSchema", "outputSchema"):
        try:
            jsonschema_rs.Draft202012Validator(declared.get(name, {}))
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as err:
            found.append(f"no valid JSON Schema: {err}")
    return found


# What the schemas below do not have: references, and a combination at the root.
RICH = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "list": {"type": "array", "items": {"$ref": "#/$defs/change"}}},
    "anyOf": [{"required": ["path"]}, {"required": ["list"]}],
    "$defs": {"change": closed(line_id={"type": "string"}, new={"$ref": "#/$defs/text"}), "text": {"type": "string"}},
}


@pytest.mark.parametrize("format", FORMATS)
def test_every_tool_is_within_what_the_interface_documents(format, project):
    put_tool(project, "my/rich", schema=RICH)
    put_tool(project, "my/bare", schema={"type": "object"})
    declared = rye.tools(project_path=project, format=format)
    assert len(declared) >= 9
    assert [found for one in declared for found in problems(one, format)] == []
    again = json.dumps(rye.tools(project_path=project, format=format))
    assert json.dumps(declared, allow_nan=False) == again, "the order is always the same"


VALUES = st.recursive(
    st.sampled_from(
        [
            *[{"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean", "default": False}],
            *[{"type": "number"}, {}, {"enum": ["a", "b"]}, {"enum": [1, "a", None]}, {"const": 3}],
            *[{"type": ["string", "null"], "maxLength": 5}, True, {"type": "object"}, {"type": "array"}],
            *[{"type": "string", "format": "date"}, {"not": {"type": "string"}}],
            *[{"type": "string", "pattern": "^a"}, {"allOf": [{"type": "string"}, {"minLength": 1}]}],
        ]
    ),
    lambda below: st.one_of(
        st.builds(lambda one: {"type": "array", "items": one}, below),
        st.builds(lambda some: {"anyOf": some}, st.lists(below, min_size=1, max_size=3)),
        st.builds(lambda some: {"oneOf": some}, st.lists(below, min_size=1, max_size=2)),
        st.builds(
            lambda known, required, shut: {
                "type": "object",
                "properties": known,
                "required": [name for name in known if name in required],
                **({"additionalProperties": False} if shut else {}),
            },
            st.dictionaries(st.sampled_from("abc"), below, max_size=3),
            st.sets(st.sampled_from("abc")),
            st.booleans(),
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example({"one": {"anyOf": [True, {}]}}, "openai")
@given(
    properties=st.dictionaries(st.sampled_from(["one", "two", "three"]), VALUES, max_size=3), format=st.sampled_from(FORMATS)
)
def test_any_schema_comes_out_within_the_interfaces_words(project, properties, format):
    put_tool(project, "my/tool", schema=closed(**properties))
    (declared,) = rye.tools("my", project_path=project, format=format)
    assert problems(declared, format) == [], declared


# --- controls: one bad declaration for each documented limit ---


GOOD = {
    "openai": {"name": "f", "description": "", "parameters": closed(), "strict": False},
    "anthropic": {"name": "f", "description": "", "input_schema": closed()},
    "gemini": {"name": "f"},
    "mcp": {"name": "f", "inputSchema": closed()},
}
BAD_TYPE = closed(a={"type": "text"})
REFUSED = {
    "openai": [
        *({"name": name} for name in ("a.b", "a" * 65)),
        *({"parameters": schema} for schema in ({"type": "object", "anyOf": []}, {"type": "array"}, BAD_TYPE)),
        *({"description": "x" * 1025}, {"digest": "x"}, {"strict": True}),
    ],
    "anthropic": [
        *({"name": name} for name in ("a.b", "", "a" * 129)),
        *({"input_schema": schema} for schema in ({"type": "object", "oneOf": []}, {"type": "string"}, BAD_TYPE)),
        *({"input_schema": schema} for schema in (closed(**{"a b": {}}), closed(a=closed(**{"a" * 65: {}})))),
        *({"input_schema": {**closed(a={"$ref": "#/$defs/b"}), "$defs": {"b": {}}}}, {"signer": "x"}),
    ],
    "gemini": [
        *({"name": name} for name in ("1a", "a" * 64, "a/b")),
        *({"parametersJsonSchema": schema} for schema in (closed(), closed(a={"type": "STRING"}), closed(**{"a-b": {}}))),
        *({"strict": True}, {"parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}}),
    ],
    "mcp": [
        *({"name": name} for name in ("a b", "a" * 129)),
        *({"inputSchema": {"type": "array"}}, {"inputSchema": BAD_TYPE}, {"outputSchema": {"type": "string"}}, {"digest": "x"}),
        *({"annotations": one} for one in ({"readOnlyHint": "yes"}, {"harmless": True})),
        *({"_meta": {key: 1}} for key in ("mcp.dev/x", "-x")),
    ],
}


def made(format, **changes):
    tool = {**GOOD[format], **changes}
    return {"type": "function", "function": tool} if format == "openai" else tool


@pytest.mark.parametrize("format", REFUSED)
def test_control_each_documented_limit_is_seen(format):
    assert problems(made(format), format) == []
    assert [changes for changes in REFUSED[format] if not problems(made(format, **changes), format)] == []


# --- what is said ---


def test_every_interface_gets_the_same_plain_schema(project):
    declared = {
        form: {one.get("name") or one["function"]["name"]: one for one in rye.tools(project_path=project, format=form)}
        for form in FORMATS
    }
    assert len({tuple(sorted(some)) for some in declared.values()}) == 1
    for name, tool in declared["mcp"].items():
        schema = tool["inputSchema"]
        assert re.findall(r'"(?:additionalProperties|not|anyOf|oneOf|allOf)": |"type": \[', json.dumps(schema)) == [], name
        assert declared["openai"][name]["function"]["parameters"] == declared["anthropic"][name]["input_schema"] == schema
        assert declared["gemini"][name].get("parametersJsonSchema", {}) == (schema if schema["properties"] else {})


def test_a_long_description_keeps_each_points_first_sentence(project):
    firsts = ("It does.", "Requires: this.", "Does not: that.", "Side effects: none.", "Returns: much.", "Prefer it to x.")
    text = "\n".join(first + " More of it." * 35 * first.startswith(("It", "Re")) for first in firsts)
    for name, said in (("one", text), ("two", "x" * 3000)):
        put_tool(project, f"my/{name}", more=f"__agent_description__ = {said!r}")
    one, two = (tool["function"]["description"] for tool in rye.tools("my", project_path=project, format="openai"))
    assert len(text) > 1024 >= len(one)
    assert [first for first in firsts if not re.search(f"^{first}", one, re.MULTILINE)] == []
    assert len(two) == 1024
    assert rye.tools("my", project_path=project, format="anthropic")[0]["description"] == text


BOMB = closed(a={"$ref": "#/$defs/x0"}) | {
    "$defs": {f"x{at}": closed(**{key: {"$ref": f"#/$defs/x{at + 1}"} for key in "ab"}) for at in range(40)} | {"x40": True}
}


@pytest.mark.parametrize(
    ("schema", "without"),
    [
        (closed(**{"a-b": {"type": "string"}}), ["gemini"]),
        (closed(a={"$ref": "#"}), FORMATS),
        # It grows without end, and is refused in no time.
        (BOMB, FORMATS),
        ({"type": "object", "properties": {"a": {"type": [{}], "anyOf": 7}}}, FORMATS),
        *((closed(a={"$ref": f"#/examples/{at}"}) | {"examples": [True]}, []) for at in ("²", "9" * 5_000)),
    ],
)
def test_what_an_interface_cannot_say_is_left_out_of_what_it_gets(project, schema, without):
    put_tool(project, "my/tool")
    put_tool(project, "my/odd", schema=schema)
    tools = rye.toolset(project, ["my"])
    for form in FORMATS:
        names = [(one.get("function") or one)["name"] for one in tools.schemas(form)]
        assert names == ["my__odd", "my__tool"][form in without :], form
    assert "my/tool" in [one["id"] for one in rye.search("*", "tool.my", project_path=project)["results"]]

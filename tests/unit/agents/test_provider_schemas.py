"""Declarations for four agent interfaces: within what each documents, and each documented limit seen by its checker."""

from __future__ import annotations

import copy
import json

import jsonschema_rs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rye
from rye.agents.offers import Offer, output_schema
from rye.agents.provider_schemas import FORMATS, arguments_for_tool, render, render_all
from rye.errors import UsageError
from rye.items.parse import DEFAULT_EFFECTS
from rye.items.schema import SchemaChecker
from support import provider_checkers


def offered(parameters=None, *, name="my__tool", description="A tool."):
    schema = parameters if parameters is not None else {"type": "object", "properties": {}}
    return Offer(
        item_id="my/tool",
        name=name,
        title="Tool",
        summary="A tool",
        description=description,
        category="my",
        version="1.0.0",
        tool_type="python",
        parameters=schema,
        output=output_schema({}),
        effects=dict(DEFAULT_EFFECTS),
        space="project",
        digest="0" * 64,
        signer="0" * 16,
        owner="me",
    )


def closed(**properties):
    return {"type": "object", "properties": properties, "additionalProperties": False}


def problems(declared, format):
    return list(provider_checkers.problems(format, declared))


RICH = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "format": "workspace-path", "description": "Where", "minLength": 1},
        "when": {"type": "string", "format": "date-time"},
        "mail": {"type": "string", "format": "email"},
        "kind": {"type": "string", "enum": ["a", "b", ""], "default": "a", "description": "Which"},
        "level": {"enum": [1, 2, 3]},
        "fixed": {"const": "x"},
        "ratio": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
        "maybe": {"type": ["string", "null"]},
        "either": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]},
        "several": {"type": ["integer", "string"]},
        "list": {"type": "array", "maxItems": 999, "items": {"$ref": "#/$defs/change"}},
        "any": {},
        "free": {"type": "object", "description": "Parameters of the item"},
        "rows": {"type": "array"},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["path"],
    "additionalProperties": False,
    "anyOf": [{"required": ["path"]}, {"required": ["kind"]}],
    "$defs": {"change": closed(line_id={"type": "string"}, new={"$ref": "#/$defs/text"}), "text": {"type": "string"}},
}


@pytest.mark.parametrize("format", FORMATS)
def test_every_tool_that_ships_is_within_what_the_interface_documents(format, project):
    declared = rye.tools(project_path=project, format=format)
    assert len(declared) >= 7
    assert [found for one in declared for found in problems(one, format)] == []
    assert json.dumps(declared) == json.dumps(rye.tools(project_path=project, format=format)), "the order is always the same"
    json.dumps(declared, allow_nan=False)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "parameters",
    [
        RICH,
        closed(),
        {"type": "object"},
        closed(a={"type": "string"}),
        closed(a=RICH["properties"]["list"]) | {"$defs": RICH["$defs"]},
    ],
)
def test_what_json_schema_can_say_comes_out_within_the_interfaces_words(format, parameters):
    before = copy.deepcopy(parameters)
    assert problems(render(offered(parameters), format), format) == []
    assert parameters == before


VALUES = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "integer", "minimum": 0},
            {"type": "boolean", "default": False},
            {"type": "number"},
            {},
            {"enum": ["a", "b"]},
            {"enum": [1, "a", None]},
            {"const": 3},
            {"type": ["string", "null"], "maxLength": 5},
            True,
            {"type": "object"},
            {"type": "array"},
            {"type": "string", "format": "date"},
            {"not": {"type": "string"}},
            {"type": "string", "pattern": "^a"},
            {"allOf": [{"type": "string"}, {"minLength": 1}]},
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


@settings(max_examples=80, deadline=None)
@example({"one": {"anyOf": [True, {}]}}, "openai")
@given(st.dictionaries(st.sampled_from(["one", "two", "three"]), VALUES, max_size=3), st.sampled_from(FORMATS))
def test_any_schema_comes_out_within_the_interfaces_words(properties, format):
    declared = render(offered(closed(**properties)), format)
    assert problems(declared, format) == [], declared


# --- controls: one bad declaration for each documented limit ---


GOOD = {
    "openai": {"name": "f", "description": "", "parameters": closed(), "strict": False},
    "anthropic": {"name": "f", "description": "", "input_schema": closed()},
    "gemini": {"name": "f"},
    "mcp": {"name": "f", "inputSchema": closed()},
}
BAD_TYPE = closed(a={"type": "text"})
REFUSED = [
    *(("openai", {"name": name}) for name in ("a/b", "a" * 65, "a.b")),
    ("openai", {"description": "x" * 1025}),
    *(("openai", {"parameters": schema}) for schema in ({"type": "object", "anyOf": []}, {"type": "array"}, BAD_TYPE)),
    ("openai", {"digest": "x"}),
    ("openai", {"strict": True}),
    *(("anthropic", {"name": name}) for name in ("a.b", "", "a" * 129)),
    *(
        ("anthropic", {"input_schema": schema})
        for schema in (
            {"type": "object", "oneOf": []},
            {"type": "string"},
            closed(**{"a b": {}}),
            closed(a=closed(**{"a" * 65: {}})),
            {**closed(a={"$ref": "#/$defs/b"}), "$defs": {"b": {}}},
            BAD_TYPE,
        )
    ),
    ("anthropic", {"signer": "x"}),
    *(("gemini", {"name": name}) for name in ("1a", "a" * 64, "a/b")),
    ("gemini", {"strict": True}),
    ("gemini", {"parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}}),
    *(
        ("gemini", {"parametersJsonSchema": schema})
        for schema in (closed(), closed(a={"type": "STRING"}), closed(**{"a-b": {"type": "string"}}))
    ),
    *(("mcp", {"name": name}) for name in ("a b", "a" * 129)),
    *(("mcp", {"inputSchema": schema}) for schema in ({"type": "array"}, BAD_TYPE)),
    ("mcp", {"outputSchema": {"type": "string"}}),
    *(("mcp", {"annotations": one}) for one in ({"readOnlyHint": "yes"}, {"harmless": True})),
    *(("mcp", {"_meta": {key: 1}}) for key in ("mcp.dev/x", "-x")),
    ("mcp", {"digest": "x"}),
]


def made(format, **changes):
    tool = {**GOOD[format], **changes}
    return {"type": "function", "function": tool} if format == "openai" else tool


@pytest.mark.parametrize(("format", "changes"), REFUSED)
def test_control_each_documented_limit_is_seen(format, changes):
    assert problems(made(format), format) == []
    assert problems(made(format, **changes), format) != []


# --- what is said ---


def test_every_interface_gets_the_same_plain_schema(project):
    declared = {
        form: {one.get("name") or one["function"]["name"]: one for one in rye.tools(project_path=project, format=form)}
        for form in FORMATS
    }
    assert len({tuple(sorted(some)) for some in declared.values()}) == 1
    for name, tool in declared["mcp"].items():
        schema = tool["inputSchema"]
        assert declared["openai"][name]["function"]["parameters"] == declared["anthropic"][name]["input_schema"] == schema
        assert declared["gemini"][name].get("parametersJsonSchema", {}) == (schema if schema["properties"] else {})


def test_a_long_description_keeps_each_points_first_sentence():
    points = [
        "It does. " * 40,
        "Requires: this. " * 20,
        "Does not: that.",
        "Side effects: none.",
        "Returns: much. " * 30,
        "Prefer it to x.",
    ]
    text = "\n".join(point.strip() for point in points)
    told = render(offered(description=text), "openai")["function"]["description"]
    assert len(text) > 1024 >= len(told)
    for first in (
        "It does.",
        "\nRequires: this.",
        "\nDoes not: that.",
        "\nSide effects: none.",
        "\nReturns: much.",
        "\nPrefer it to x.",
    ):
        assert first in told
    assert len(render(offered(description="x" * 3000), "openai")["function"]["description"]) == 1024
    assert render(offered(description=text), "anthropic")["description"] == text


def test_mcp_says_effects_digest_and_signer(project):
    tools = {tool["name"]: tool for tool in rye.tools("rye/file-system", project_path=project, format="mcp")}
    rows = {row["name"]: row for row in rye.tools("rye/file-system", project_path=project)}
    assert tools["read"]["annotations"] == {
        "title": "Read",
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert tools["write"]["annotations"]["readOnlyHint"] is False
    for name, tool in tools.items():
        assert tool["_meta"]["rye/digest"] == rows[name]["digest"]
        assert tool["_meta"]["rye/signer"] == rows[name]["signer"]
        assert tool["_meta"]["rye/item_id"] == rows[name]["item_id"]
        response = rye.execute(rows[name]["item_id"], {"file_path": "nothing", "pattern": "x"}, project_path=project)
        if response["data"] is not None:
            jsonschema_rs.Draft202012Validator(tool["outputSchema"]).validate(response["data"])


def test_what_an_interface_cannot_say_is_left_out_with_the_reason():
    odd = closed(**{"a-b": {"type": "string"}})
    endless = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    for parameters, interface in (
        (odd, "gemini"),
        (endless, "openai"),
        (endless, "mcp"),
        ({"$ref": "http://x/y"}, "anthropic"),
    ):
        rendered, refused = render_all([offered(parameters), offered(closed())], interface)
        assert len(rendered) == 1
        assert [item_id for item_id, _ in refused] == ["my/tool"]
        assert interface in refused[0][1]
    assert render_all([offered(odd)], "anthropic")[1] == []


def test_a_schema_that_grows_without_end_is_refused_in_no_time():
    bomb = {"type": "object", "properties": {"a": {"$ref": "#/$defs/x0"}}, "$defs": {"x40": {"type": "string"}}}
    for at in range(40):
        bomb["$defs"][f"x{at}"] = {"anyOf": [{"$ref": f"#/$defs/x{at + 1}"}] * 2}
    assert len(render_all([offered(bomb)], "openai")[1]) == 1


def test_an_unknown_format_is_refused(project):
    for unknown in ("nope", "", "OpenAI"):
        with pytest.raises(UsageError, match="Use one of openai"):
            rye.tools(project_path=project, format=unknown)


# --- the way back ---


def test_what_a_model_says_in_a_formats_words_is_what_the_tool_wants():
    wanted = {"path": "a", "list": [{"line_id": "x"}], "free": {"a": [1]}, "rows": [1, 2], "maybe": None}
    said = {
        **wanted,
        "kind": None,
        "when": None,
        "list": [{"line_id": "x", "new": None}],
        "free": '{"a": [1]}',
        "rows": "[1, 2]",
    }
    assert arguments_for_tool(RICH, said) == wanted
    SchemaChecker(RICH).check(arguments_for_tool(RICH, said))
    assert arguments_for_tool(RICH, wanted) == wanted


def test_what_is_wrong_stays_as_it_was_said_so_that_the_check_names_it():
    said = {"path": None, "free": "no json", "rows": '{"a": 1}', "unknown": None, "any": None, "level": None}
    assert arguments_for_tool(RICH, said) == {"path": None, "free": "no json", "rows": '{"a": 1}', "unknown": None, "any": None}
    assert arguments_for_tool(RICH, "text") == "text"


@pytest.mark.parametrize(
    ("schema", "given", "wanted"),
    [
        ({"type": "string"}, "", {"a": ""}),
        ({"type": "string", "minLength": 1}, "", {}),
        ({"type": "string", "enum": ["x"]}, "", {}),
        ({"type": "string", "enum": ["x", ""]}, "", {"a": ""}),
        ({"type": "string", "pattern": "^x"}, "", {}),
        ({"type": "string", "pattern": "x*"}, "", {"a": ""}),
        ({"type": "string", "pattern": "("}, "", {"a": ""}),
        ({"type": "string", "format": "workspace-path"}, "", {}),
        ({"$ref": "#/$defs/one"}, "", {}),
        ({"type": "integer"}, "", {}),
        ({"type": "integer"}, "12", {"a": 12}),
        ({"type": "integer"}, "1.5", {"a": "1.5"}),
        ({"type": "integer"}, "true", {"a": "true"}),
        ({"type": "number"}, "1.5", {"a": 1.5}),
        ({"type": "boolean"}, "true", {"a": True}),
        ({"type": "boolean"}, "1", {"a": "1"}),
        ({"type": "string"}, "12", {"a": "12"}),
        ({"type": ["string", "null"]}, "", {"a": ""}),
        ({"type": ["string", "object"]}, ' {"b": 1}', {"a": {"b": 1}}),
        ({"type": ["string", "object"]}, '{"b": 1', {"a": '{"b": 1'}),
        ({"type": ["string", "object"]}, "12|{}", {"a": "12|{}"}),
        ({"type": ["integer", "null"]}, "", {}),
        (True, "", {"a": ""}),
        ({}, "", {"a": ""}),
    ],
)
def test_what_a_client_writes_for_absence_or_a_number(schema, given, wanted):
    whole = {"type": "object", "properties": {"a": schema, "b": schema}, "required": ["b"]}
    whole["$defs"] = {"one": {"type": "string", "minLength": 1}}
    assert arguments_for_tool(whole, {"a": given}) == wanted
    # A required one is never taken for absent.
    assert "b" in arguments_for_tool(whole, {"b": ""})

"""The brief form in which a model is offered a tool."""

from __future__ import annotations

import json

import pytest

import rye
from rye.agents.model_schema import description_of, flat, parameters_of
from rye.items.parse import SECTION_STARTS, docstring_sections
from rye.mcp_server.listing import DIRECT, OfferedTools, Selection

SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "format": "workspace-path", "maxLength": 9, "description": "Where the file lies"},
        "limit": {"type": "integer", "minimum": 1, "default": 100, "description": "Most lines"},
        "offset": {"type": "integer", "minimum": 1, "default": 1, "description": "First line"},
        "form": {"type": "string", "enum": ["a", "b"], "default": "a", "description": "Which"},
        "odd": {"type": "boolean", "default": False, "description": "Odd"},
    },
    "required": ["file_path"],
    "additionalProperties": False,
}


def test_only_the_named_and_the_required_parameters_are_listed():
    found = parameters_of({"__agent_parameters__": {"limit": "Most", "offset": "First", "form": ""}}, SCHEMA)["properties"]
    assert found == {
        "file_path": {"type": "string", "format": "workspace-path", "description": "Where the file lies"},
        "limit": {"type": "integer", "default": 100, "description": "Most"},
        "offset": {"type": "integer", "description": "First"},
        "form": {"type": "string", "enum": ["a", "b"]},
    }
    # Control: a tool that declares nothing is listed as it is.
    assert parameters_of({}, SCHEMA) == SCHEMA


@pytest.mark.parametrize(
    ("metadata", "wanted"),
    [({}, "Long."), ({"__agent_description__": " "}, "Long."), ({"__agent_description__": "Brief.\n"}, "Brief.")],
)
def test_a_brief_description_goes_before_the_docstring(metadata, wanted):
    assert description_of(metadata, "Long.") == wanted


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"type": ["string", "null"], "default": None}, {"type": "string"}),
        ({"type": "integer", "not": {"const": 0}}, {"type": "integer"}),
        ({"anyOf": [{"type": "null"}, {"type": "array", "items": True}], "description": "d"}, None),
        ({"enum": ["a", None]}, {"enum": ["a"]}),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"type": "object"}),
        ({"type": "array"}, {"type": "array", "items": {}}),
    ],
)
def test_a_flat_schema_has_nothing_that_some_client_refuses(given, wanted):
    assert flat(given) == ({"type": "array", "items": {}, "description": "d"} if wanted is None else wanted)


def _words(part):
    if isinstance(part, dict):
        for name, below in part.items():
            yield name, below
            yield from _words(below)
    elif isinstance(part, list):
        for below in part:
            yield from _words(below)


def test_every_tool_is_listed_flat(project):
    for tool in rye.tools(project_path=project, format="mcp"):
        for name, below in _words(tool["inputSchema"]):
            assert name not in ("additionalProperties", "not", "anyOf", "oneOf", "allOf"), tool["name"]
            assert name != "type" or isinstance(below, str | dict), tool["name"]


def test_the_default_tools_say_six_points_in_few_words(project):
    tools = OfferedTools(str(project), Selection()).tools()
    assert [tool["_meta"]["rye/item_id"] for tool in tools] == list(DIRECT)
    for tool in tools:
        first, *others = docstring_sections(tool["description"])
        assert first, tool["name"]
        for mark in SECTION_STARTS:
            assert any(one.startswith(mark) for one in others), (tool["name"], mark)
    listed = [{name: tool[name] for name in ("name", "description", "inputSchema")} for tool in tools]
    # About four bytes make a token: `benchmarks/agent_edits` counts them in two tokenizers.
    assert sum(len(json.dumps(one, separators=(",", ":"))) for one in listed) < 7_100


def test_the_name_of_a_tool_finds_its_long_form(project):
    tools = rye.toolset(project, ["rye/primary-tools", "rye/file-system"])
    text = tools.call("rye_search", {"query": "grep"})
    assert text.startswith("tool rye/file-system/grep\nSearch file contents")
    assert "no_ignore (boolean, default false): Search ignored files too" in text
    assert text == tools.call("rye_search", {"query": "rye/file-system/grep"})
    # What is offered comes first, with the defaults of a model's call.
    lines = tools.call("rye_search", {"query": "edit_lines"}).splitlines()
    listed = next(offer for offer in tools.offers if offer.name == "edit_lines").listed_schema["properties"]
    at = lines.index("Not listed, but taken:")
    assert [line.partition(" ")[0] for line in lines[at - len(listed) : at]] == list(listed)
    assert any(line.startswith('line_ids (lid|short|none|all, default "short"; by its id "lid"): ') for line in lines[at:])
    # Whoever has no rye_load reads what the search names by its id.
    knowledge = tools.call("rye_search", {"query": "rye/file-system/line-ids"})
    assert knowledge.startswith("knowledge rye/file-system/line-ids\n")
    assert len(knowledge) > 3_000
    assert tools.call("rye_search", {"query": "rye/agent/swe"}).startswith("directive rye/agent/swe\n")
    # Control: other words list items.
    assert "1. " in tools.call("rye_search", {"query": "grep files"})

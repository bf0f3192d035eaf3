"""What is listed of a tool: effects from the signed text, titles, output schemas."""

from __future__ import annotations

import pytest

import rye
from rye.agents.offers import effects_of, listable, output_schema
from rye.items.parse import DEFAULT_EFFECTS
from support.signed_tools import put_tool

MILD = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}


def row(project, item_id):
    (found,) = [tool for tool in rye.tools(project_path=project) if tool["item_id"] == item_id]
    return found


def test_effects_are_what_the_signed_text_declares(project):
    put_tool(project, "my/mild", more=f"__effects__ = {MILD}")
    assert row(project, "my/mild")["effects"] == MILD
    shipped = {tool["name"]: tool["effects"] for tool in rye.tools("rye/file-system", project_path=project)}
    assert {name for name, effects in shipped.items() if effects["read_only"]} == {"read", "grep", "glob", "ls"}
    assert not any(effects["open_world"] for effects in shipped.values())


@pytest.mark.parametrize(
    "declared",
    [None, {}, "mild", {**MILD, "safe": True}, {**MILD, "read_only": 1}, {**MILD, "read_only": "yes"}, {"read_only": True}],
)
def test_whoever_says_nothing_or_not_exactly_the_four_is_taken_for_the_worst(declared):
    assert effects_of({"__effects__": declared}) == DEFAULT_EFFECTS
    assert (
        effects_of({}) == DEFAULT_EFFECTS == {"read_only": False, "destructive": True, "idempotent": False, "open_world": True}
    )


def test_a_title_is_declared_or_made_of_the_name(project):
    put_tool(project, "my/word_count")
    put_tool(project, "my/other", more='__title__ = "Another"')
    put_tool(project, "my/odd", more="__title__ = 3")
    assert [row(project, f"my/{name}")["title"] for name in ("word_count", "other", "odd")] == ["Word count", "Another", "Odd"]


def test_the_output_schema_is_the_envelope_and_what_is_declared(project):
    put_tool(project, "my/tool", more='OUTPUT_SCHEMA = {"type": "object", "properties": {"count": {"type": "integer"}}}')
    found = row(project, "my/tool")["output"]
    assert set(found["properties"]) == {"success", "output", "error", "code", "count"}
    assert (found["required"], found["additionalProperties"]) == (["success"], True)
    assert set(output_schema({"properties": "nonsense"})["properties"]) == {"success", "output", "error", "code"}


def test_what_is_no_json_is_told_as_text():
    assert listable({"enum": (1, b"x", {2}, 1.5, None)}) == {"enum": [1, "b'x'", "{2}", 1.5, None]}
    assert listable({1: {"a": True}}) == {"1": {"a": True}}

"""OpenAI's strict subset."""

from __future__ import annotations

import pytest

from rye.agents.schema_dialects import strict_parameters


def strict(**properties):
    found = strict_parameters({"type": "object", "properties": properties, "required": ["here"]})
    return None if found is None else found["properties"]


def test_what_may_be_left_out_takes_null_instead():
    found = strict(
        here={"type": "string"},
        a={"type": "string", "default": "x", "description": "What"},
        b={"enum": ["y"], "type": "string"},
        c={"const": 1},
        d={"anyOf": [{"type": "string"}, {"type": "integer"}]},
        e={"type": ["string", "null"]},
        f={"enum": [1]},
    )
    assert found == {
        "here": {"type": "string"},
        "a": {"type": ["string", "null"], "description": 'What. Default: "x".'},
        "b": {"type": ["string", "null"], "enum": ["y", None]},
        "c": {"anyOf": [{"const": 1}, {"type": "null"}]},
        "d": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        "e": {"type": ["string", "null"]},
        "f": {"anyOf": [{"enum": [1]}, {"type": "null"}]},
    }


def test_every_property_is_required_and_every_object_closed():
    found = strict_parameters(
        {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}}
    )
    assert (found["required"], found["additionalProperties"]) == (["a"], False)
    assert (found["properties"]["a"]["required"], found["properties"]["a"]["additionalProperties"]) == (["b"], False)
    assert strict_parameters({"type": "object"}) == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "part",
    [
        {},
        True,
        {"type": "object"},
        {"type": "array"},
        {"allOf": [{"type": "string"}]},
        {"not": {}, "type": "string"},
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True},
        {"type": "object", "properties": {"a": {}}},
        {"type": ["object", "string"]},
        {"anyOf": [{}]},
        {"type": "array", "items": {"type": "array"}},
        {"type": "string", "if": {}},
    ],
)
def test_what_has_no_words_there_is_none(part):
    assert strict(here={"type": "string"}, a=part) is None


def test_a_root_that_combines_is_none():
    assert strict_parameters({"type": "object", "properties": {}, "anyOf": [{}]}) is None


def test_what_is_too_large_is_none():
    many = {f"p{at}": {"type": "string"} for at in range(5_001)}
    assert strict(**many) is None
    many.popitem()
    assert strict(**many) is not None
    assert strict(a={"enum": list(range(1_001)), "type": "integer"}) is None
    assert strict(a={"enum": ["x" * 120_001], "type": "string"}) is None

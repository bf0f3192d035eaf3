"""The Gemini API's subset of OpenAPI."""

from __future__ import annotations

import pytest

from rye.agents.schema_dialects import gemini_parameters

TEXT = {"type": "STRING"}


def one(part):
    return gemini_parameters({"type": "object", "properties": {"a": part}})["properties"]["a"]


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"type": "string", "minLength": 1, "title": "A"}, {**TEXT, "minLength": 1, "title": "A"}),
        (
            {"type": "integer", "minimum": 0, "exclusiveMaximum": 9, "default": 1},
            {"type": "INTEGER", "minimum": 0, "default": 1},
        ),
        ({"type": ["string", "null"]}, {**TEXT, "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [TEXT, {"type": "INTEGER"}]}),
        ({"enum": ["a", "b"]}, {**TEXT, "enum": ["a", "b"]}),
        ({"enum": ["a", ""], "type": "string"}, {**TEXT, "description": 'One of ["a", ""].'}),
        ({"enum": [1, 2], "description": "Level"}, {"type": "INTEGER", "description": "Level. One of [1, 2]."}),
        ({"const": "x"}, {**TEXT, "enum": ["x"]}),
        ({"type": "string", "format": "date-time"}, {**TEXT, "format": "date-time"}),
        ({"type": "string", "format": "email"}, TEXT),
        ({"oneOf": [{"type": "string"}, {"type": "null"}], "description": "D"}, {**TEXT, "description": "D", "nullable": True}),
        (
            {"type": "array", "items": {"type": "string"}, "maxItems": 9, "minItems": 1},
            {"type": "ARRAY", "items": TEXT, "minItems": 1},
        ),
        ({"type": "object", "description": "Any"}, {**TEXT, "description": "Any. As JSON text."}),
        ({"type": "array"}, {**TEXT, "description": "As JSON text."}),
        ({}, {**TEXT, "description": "As JSON text."}),
        (True, {**TEXT, "description": "As JSON text."}),
    ],
)
def test_what_is_said_of_a_value(part, said):
    assert one(part) == said


def test_an_object_has_its_order_and_only_requires_what_it_has():
    found = gemini_parameters(
        {
            "type": "object",
            "properties": {"b": {"type": "string"}, "a": {"type": "string"}},
            "required": ["b", "z"],
            "additionalProperties": False,
        }
    )
    assert found == {"type": "OBJECT", "properties": {"b": TEXT, "a": TEXT}, "propertyOrdering": ["b", "a"], "required": ["b"]}

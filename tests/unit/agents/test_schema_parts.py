"""A schema on its own: references written out, nothing that only this house understands."""

from __future__ import annotations

import re

import pytest

from rye.agents.model_schema import check_property_names, inline_refs, plain
from rye.errors import ItemError


def test_references_are_written_out():
    schema = {
        "$schema": "x",
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/b~1c", "description": "mine"}, "d": {"$ref": "#/$defs/e"}},
        "$defs": {
            "b/c": {"type": "string", "format": "workspace-path", "description": "theirs"},
            "e": {"items": {"$ref": "#/$defs/b~1c"}},
        },
    }
    assert inline_refs(schema) == {
        "type": "object",
        "properties": {
            "a": {"type": "string", "description": "mine"},
            "d": {"items": {"type": "string", "description": "theirs"}},
        },
    }


def test_values_are_no_schemas():
    part = {"enum": [{"$ref": "#/x"}], "default": {"$ref": "y"}, "const": {"$id": 1}, "required": ["$ref"]}
    assert inline_refs({"properties": {"$ref": part}}) == {"properties": {"$ref": part}}


@pytest.mark.parametrize("reference", ["#/$defs/none", "http://x/y", "other.json", "#/properties/a", "#"])
def test_what_leads_nowhere_outwards_or_in_a_circle_is_refused(reference):
    with pytest.raises(ItemError):
        inline_refs({"properties": {"a": {"$ref": reference}}})


def test_the_root_combines_nothing():
    assert plain({"anyOf": [{}], "properties": {"a": {"anyOf": [{"type": "string"}]}}}) == {
        "type": "object",
        "properties": {"a": {"type": "string"}},
    }


def test_names_are_held_at_any_depth():
    for part in ({"properties": {"b": {"items": {"properties": {"x y": {}}}}}}, {"anyOf": [{"properties": {"x y": {}}}]}):
        with pytest.raises(ItemError, match="x y"):
            check_property_names({"properties": {"a": part}}, re.compile(r"\w+"))
    check_property_names({"properties": {"a": True, "b": {"enum": ["x y"]}}}, re.compile(r"\w+"))

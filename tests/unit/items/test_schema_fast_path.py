"""What is said to fit without the library, the library accepts too; what it refuses is never said to fit."""

from __future__ import annotations

import random

import jsonschema_rs
import pytest

from rye.items import schema

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "format": "workspace-path", "description": "d"},
        "kind": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "word": {"type": "string", "minLength": 2, "maxLength": 4},
        "count": {"type": "integer", "minimum": 0, "maximum": 9},
        "offset": {"type": "integer", "not": {"const": 9}},
        "more": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "string", "minLength": 2}},
        "either": {"type": ["string", "boolean"], "default": False},
        "some": {"type": ["integer", "string"], "enum": ["a"], "minimum": 3},
    },
    "required": ["path"],
    "additionalProperties": False,
}
VALUES = [
    *("", "a", "b", "ab", "abcde", "ä→", "\ud800"),
    *(0, 9, 10, -1, 3.0, 3.5, 2**60, True, False, None),
    *([], ["ab"], ["a"], [1], {}),
]
# One property of each is of another shape.
OTHERS = [
    *({"type": "string", "pattern": "x"}, {"type": "string", "minLength": -1}, {"type": "string", "enum": [1]}),
    *({"type": "string", "format": "date"}, {"type": "string", "not": {"const": 0}}, {"type": "integer", "minimum": 0.5}),
    *({"type": "integer", "maximum": True}, {"type": "integer", "not": 0}, {"type": "integer", "not": {"const": 1.0}}),
    *({"type": "integer", "not": {"minimum": 1}}, {"type": "array"}, {"type": "array", "items": {"type": "number"}}),
    *({"type": ["string", "number"]}, {"type": ["string", "string"]}, {"type": []}, True),
]


def test_whatever_fits_is_valid_and_plain_calls_do_fit():
    fits = schema.plain_test(SCHEMA)
    library = jsonschema_rs.Draft202012Validator(SCHEMA)
    dice = random.Random(5)
    fitting = 0
    for _ in range(8_000):
        names = dice.sample([*SCHEMA["properties"], "other"], dice.randrange(5))
        given = {name: dice.choice(VALUES) for name in names}
        if fits(given):
            fitting += 1
            assert library.is_valid(given), given
    assert fitting > 50
    assert fits({"path": "ä", "kind": "b", "word": "ab", "count": 9, "offset": 8, "more": False})
    assert fits({"path": "ä", "list": ["ab", "abc"], "either": True, "some": "a"})
    assert fits({"path": "ä", "list": [], "either": "x"})


@pytest.mark.parametrize(
    "change",
    [
        *({"additionalProperties": True}, {"required": ["path", "path"]}, {"required": [1]}, {"type": "array"}),
        *({"$ref": "#/a"}, {"allOf": []}, {"description": 3}, {"properties": []}),
        *({"properties": {"a": one}} for one in OTHERS),
    ],
)
def test_a_schema_of_any_other_shape_is_the_librarys(change):
    assert schema.plain_test(SCHEMA | change) is None

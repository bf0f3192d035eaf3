"""CONFIG_SCHEMA: what stands alone, what is wanted, and how words of a command line are typed."""

import contextlib
import random

import jsonschema_rs
import pytest

from rye.errors import ItemError, UsageError
from rye.items import schema as schemas
from support.oci_server import answering


def problems(schema, parameters):
    with pytest.raises(UsageError) as caught:
        schemas.SchemaChecker(schema).check(parameters)
    assert caught.value.code == "invalid_parameters"
    return caught.value.details["problems"]


def test_a_reference_to_another_place_is_refused_and_never_fetched(tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text('{"type": "integer", "enum": ["s3cret"]}')

    def answer(method, path, headers, body):
        return 200, {}, b'{"type": "integer"}'

    with answering(answer) as (where, asked):
        url = f"http{where.removeprefix('oci')}/schema.json"
        for reference in (url, f"file://{secret}", f"file:{secret}", str(secret), "secret.json"):
            for keyword in ("$ref", "$dynamicRef"):
                with pytest.raises(ItemError) as caught:
                    schemas.SchemaChecker({"properties": {"a": {keyword: reference}}})
                assert caught.value.code == "bad_schema"
                assert "s3cret" not in str(caught.value)
        with pytest.raises(ItemError):
            schemas.SchemaChecker({"$id": url, "properties": {"a": {"$ref": "other.json"}}})
        for named in (url, "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"):
            with contextlib.suppress(ItemError):
                schemas.SchemaChecker({"$schema": named, "properties": {}})
        assert asked == []
        # Control: the library by itself fetches it, and reads the file.
        assert jsonschema_rs.Draft202012Validator({"$ref": url}).is_valid(3)
        assert len(asked) == 1
    validator = jsonschema_rs.Draft202012Validator({"$ref": f"file://{secret}"})
    assert any("s3cret" in error.message for error in validator.iter_errors("x"))


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
    *("", "a", "b", "ab", "abcde", "ä→"),
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


@pytest.mark.parametrize(
    "change",
    [
        {},
        *({"additionalProperties": True}, {"required": ["path", "path"]}, {"required": [1]}, {"type": "array"}),
        *({"$ref": "#/a"}, {"allOf": []}, {"description": 3}, {"properties": []}),
        *({"properties": {"a": one}} for one in OTHERS),
    ],
)
def test_a_call_is_judged_as_the_library_judges_it(change):
    """Also where plain schemas and values are judged without the library."""
    schema = SCHEMA | change
    try:
        library = jsonschema_rs.Draft202012Validator(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
        with pytest.raises(ItemError):
            schemas.SchemaChecker(schema)
        return
    checker, dice, verdicts = schemas.SchemaChecker(schema), random.Random(5), set()
    for _ in range(1_500):
        names = dice.sample(["path", "a", *SCHEMA["properties"], "other"], dice.randrange(5))
        given = {name: dice.choice(VALUES) for name in names}
        try:
            checker.check(given)
            fits = True
        except UsageError:
            fits = False
        verdicts.add(fits)
        assert fits == library.is_valid(given), given
    assert verdicts == {True, False} or change


def test_a_schema_that_opens_itself_is_obeyed():
    for schema in (
        {"additionalProperties": {"type": "integer"}},
        {"additionalProperties": True},
        {"patternProperties": {"^x_": {"type": "integer"}}},
        {"patternProperties": {"^x_": {}}, "additionalProperties": False},
        {"allOf": [{"properties": {"x_1": {}}}]},
        {"$ref": "#/$defs/more", "$defs": {"more": {"properties": {"x_1": {}}}}},
        {"anyOf": [{"properties": {"x_1": {"type": "integer"}}, "required": ["x_1"]}, {"required": ["y"]}]},
    ):
        assert schemas.SchemaChecker(schema).check({"x_1": 1}) == {"x_1": 1}, schema
    assert problems({"additionalProperties": {"type": "integer"}}, {"x": "a"})
    assert problems({"patternProperties": {"^x_": {}, "^(y+)+$": {}}}, {"y" * 40 + "!": 1})
    # A name that only a branch knows, where the schema closes itself.
    assert problems({"additionalProperties": False, "allOf": [{"properties": {"x": {}}}]}, {"x": 1})


def test_each_problem_says_where_and_what_in_few_words():
    item = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "text": {}},
        "required": ["n"],
        "additionalProperties": False,
    }
    schema = {"properties": {"list": {"type": "array", "items": item}, "offset": {"type": "integer", "not": {"const": 0}}}}
    found = problems(schema, {"list": [{"n": 1}, {"n": "x"}, {}]})
    assert [problem.split(":")[0] for problem in found] == ["list[1].n", "list[2]"]
    (said,) = problems(schema, {"list": [{"n": 1, "m": 1}]})
    assert said.endswith("it has n, text")
    assert problems(schema, {"offset": 0}) == ["offset: 0 is not allowed"]
    (said,) = problems(schema, {"offset": "x" * 1_000_000})
    assert len(said) < 1_000
    assert len(problems(schema, {"list": [{}] * 100})) == len(problems(schema, dict.fromkeys(map(str, range(100))))) == 21


def test_defaults_are_those_of_properties_and_of_what_they_refer_to_but_of_no_alternative():
    schema = {
        "properties": {
            "a": {"$ref": "#/$defs/five"},
            "b": {"allOf": [{"default": [1]}]},
            "c": {"anyOf": [{"default": 1}, {"default": 2}]},
            "d": {"type": "array", "prefixItems": [{"properties": {"x": {"default": 1}}}], "items": {"$ref": "#/$defs/o"}},
            "e": {"additionalProperties": {"$ref": "#/$defs/o"}},
            "f": {"default": (1, 2)},
            "g": True,
        },
        "$defs": {"five": {"default": 5}, "o": {"properties": {"y": {"default": 2}}}},
    }
    given = {"d": [{}, {}], "e": {"any": {}}}
    assert schemas.with_defaults([schema], given, schema) == {
        "a": 5,
        "b": [1],
        "d": [{"x": 1}, {"y": 2}],
        "e": {"any": {"y": 2}},
        "f": [1, 2],
    }
    assert given == {"d": [{}, {}], "e": {"any": {}}}
    assert problems({"properties": {"a": {"type": "integer", "default": "x"}}}, {})
    # An integral float is an integer where one is wanted, and references in a circle end.
    assert [repr(schemas.with_defaults([{"type": one}], 2.0, {})) for one in ("integer", "number")] == ["2", "2.0"]
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}}
    assert list(schemas.workspace_paths(schema, {"x": ["y"]})) == []
    assert schemas.with_defaults([schema], {"x": 1}, schema) == {"x": 1}


def same(*words):
    return {word: word for word in words}


# A parameter's schema, and what words of a command line become.
WORDS = [
    ({"type": "string"}, same("5", "true", "null", '"quoted"', "[1]", "")),
    ({}, same("5")),
    ({"type": "integer"}, {"5": 5, "-5": -5, "2.5": 2.5, "9" * 30: int("9" * 30), **same("5x", '"5"', "", "9" * 5000)}),
    ({"type": "number"}, {"1e3": 1000.0, "3": 3, **same("NaN", "-Infinity")}),
    ({"type": "boolean"}, {"true": True, "false": False, "1": 1, **same("yes")}),
    ({"type": "array"}, {'["a", 1]': ["a", 1], **same("a,b", "[" * 100_000)}),
    ({"type": "object"}, {'{"a": {"b": null}}': {"a": {"b": None}}, "{}": {}}),
    ({"type": ["string", "null"]}, {"null": None, '"null"': "null", **same("5", "abc", '"abc"')}),
    ({"type": ["string", "integer"]}, {"5": 5, '"5"': "5", **same("5x", "true")}),
    ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, {"3": 3, "true": True, **same("x")}),
    ({"$ref": "#/$defs/whole"}, {"5": 5}),
    ({"enum": [1, 2, "auto"]}, {"2": 2, "auto": "auto"}),
    ({"const": 7}, {"7": 7}),
    ({"type": ["array", "string"]}, {'["a"]': ["a"], **same("a\nb", "5")}),
]


@pytest.mark.parametrize(("part", "words"), WORDS, ids=[str(part) for part, _ in WORDS])
def test_a_word_is_typed_as_the_schema_says(part, words):
    schema = {"properties": {"known": part}, "$defs": {"whole": {"type": "integer"}}}
    for word, value in words.items():
        found = schemas.from_words(schema, {"known": word, "unknown": word})
        assert (found["known"], type(found["known"]), found["unknown"]) == (value, type(value), word)


def test_a_wrong_value_brings_the_form_of_its_parameter_alone():
    schema = {
        "type": "object",
        "properties": {
            "file_path": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": 200},
            "timeout": {"type": "number", "maximum": 600, "description": "Seconds"},
            "changes": {"type": "array", "items": {"type": "object", "required": ["new"]}},
        },
        "required": ["file_path"],
        "additionalProperties": False,
    }

    def hint(**parameters):
        with pytest.raises(UsageError) as caught:
            schemas.SchemaChecker(schema).check(parameters)
        return caught.value.hint

    assert hint(file_path="a", limit=501) == "Wanted: limit (integer, 1 to 500, default 200)."
    assert hint(file_path="a", timeout=120_000) == "Wanted: timeout (number, at most 600: Seconds)."
    assert hint(file_path="a", changes=[{}]) == "Wanted: changes (array)."
    # What names no parameter, or none that there is, needs all of them.
    for parameters in ({"limit": 501}, {"file_path": "a", "limits": 1}, {"file_path": "a", "limit": 0, "x": 1}):
        assert "file_path (string, required)" in hint(**parameters)

"""Names that are nearly right are understood where they can mean one thing, and left alone elsewhere."""

from __future__ import annotations

import pytest

import rye
from rye.agents.argument_names import tool_name, with_own_names


def closed(*names, **parts):
    return {
        "type": "object",
        "properties": {**{name: {"type": "string"} for name in names}, **parts},
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("known", "given", "wanted"),
    [
        (("file_path", "content"), {"filePath": "a", "contents": "b"}, {"file_path": "a", "content": "b"}),
        (("file_path", "offset"), {"path": "a", "start_line": 3}, {"file_path": "a", "offset": 3}),
        (("path", "pattern"), {"regex": "x", "directory": "src"}, {"pattern": "x", "path": "src"}),
        (("command", "working_dir"), {"cmd": "ls", "cwd": "src"}, {"command": "ls", "working_dir": "src"}),
        (("docPath",), {"path": "a"}, {"docPath": "a"}),
        # Controls: what is known stays, what is given twice or could be two things is left for the executor to refuse.
        (("file_path", "path"), {"path": "a"}, {"path": "a"}),
        (("file_path",), {"file_path": "a", "path": "b"}, {"file_path": "a", "path": "b"}),
        (("path", "working_dir"), {"directory": "a"}, {"directory": "a"}),
        (("file_path",), {"nonsense": 1}, {"nonsense": 1}),
        (("file_path", "filePath"), {"filepath": "a"}, {"filepath": "a"}),
    ],
)
def test_a_name_is_understood_where_it_can_mean_one_parameter(known, given, wanted):
    assert with_own_names(closed(*known), given) == wanted


def test_a_tool_that_takes_any_name_gets_what_was_given():
    open_schema = {"type": "object", "properties": {"file_path": {"type": "string"}}}
    assert with_own_names(open_schema, {"path": "a"}) == {"path": "a"}


def test_names_in_a_list_of_objects_are_understood_too():
    schema = closed(changes={"type": "array", "items": closed("line_id", "new_content")})
    given = {"changes": [{"lineId": "12", "newContent": "x"}, "as it is"]}
    assert with_own_names(schema, given) == {"changes": [{"line_id": "12", "new_content": "x"}, "as it is"]}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("read", "read"), ("Read", "read"), ("edit-lines", "edit_lines"), ("mcp__rye__editLines", "edit_lines"), ("reed", None)],
)
def test_another_spelling_of_a_tool_is_that_tool(given, wanted):
    assert tool_name(given, ["read", "edit_lines"]) == wanted


def test_a_toolset_understands_and_still_explains(project):
    (project / "a.txt").write_bytes(b"one\n")
    tools = rye.toolset(project, "rye/file-system")
    assert "one" in tools.call("Read", {"path": "a.txt"})
    assert "did you mean 'limit'" in tools.call("read", {"file_path": "a.txt", "limmit": 1})

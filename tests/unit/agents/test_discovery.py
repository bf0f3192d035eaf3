"""What an agent runtime can discover: which tools, under which names, with what facts, and nothing of an unverified file."""

from __future__ import annotations

import json
import re

import pytest

import rye
from support.signed_tools import MINE, put, put_tool, signed

pytestmark = pytest.mark.usefixtures("here")


def row(project, item_id):
    (found,) = [tool for tool in rye.tools(project_path=project) if tool["item_id"] == item_id]
    return found


def listed(project, form="mcp"):
    """The one tool of `my` as an interface gets it."""
    (found,) = rye.tools("my", project_path=project, format=form)
    return found


def test_the_systems_tools_are_listed_with_all_that_a_model_needs(project):
    tools = rye.tools("rye/file-system", project_path=project)
    assert {"rye/file-system/read", "rye/file-system/write", "rye/file-system/edit_lines"} <= {
        tool["item_id"] for tool in tools
    }
    assert [tool["item_id"] for tool in tools] == sorted(tool["item_id"] for tool in tools)
    for tool in tools:
        facts = {"verdict": "valid", "space": "system", "category": "rye/file-system", "owner": "rye"}
        assert {name: tool[name] for name in facts} == facts
        assert all((tool["parameters"]["type"] == "object", tool["docstring"], tool["description"]))
    json.dumps(tools, allow_nan=False)
    # What they change and reach is what their signed text says.
    assert {tool["name"] for tool in tools if tool["effects"]["read_only"]} == {"read", "grep", "glob", "ls"}
    assert not any(tool["effects"]["open_world"] for tool in tools)


def test_a_category_is_a_folder_and_not_a_prefix(project):
    for item_id in ("my/tool", "my/deep/tool", "mytool", "my2/tool"):
        put_tool(project, item_id)
    for asked in ("my", "my/", "/my"):
        assert [tool["item_id"] for tool in rye.tools(asked, project_path=project)] == ["my/deep/tool", "my/tool"]


def test_listing_runs_nothing_and_takes_plain_assignments_at_the_top_alone(project, tmp_path):
    canary = tmp_path / "canary"
    put_tool(
        project,
        "my/tool",
        head=f"import pathlib\npathlib.Path({str(canary)!r}).touch()",
        more=f"if True:\n    __title__ = 'No'\n__permissions__ = [pathlib.Path({str(canary)!r}).touch() or 'read']",
    )
    found = row(project, "my/tool")
    assert (found["verdict"], found["title"], found["permissions"]) == ("valid", "Tool", [])
    assert not canary.exists()
    # Control: running it does.
    assert rye.execute("my/tool", project_path=project)["status"] == "success"
    assert canary.exists()


def test_a_hidden_or_reserved_name_in_a_project_is_not_listed_and_space_and_signer_are_told(project, user_space):
    for item_id in ("my/_lib", "rye/mine", "rye/file-system/read"):
        put_tool(project, item_id)
    for name in ("my/.dot.py", "_dir/tool.py", ".dir/tool.py", "my/notes.txt", "my/a b.py"):
        put(project, f"tools/{name}", b"x")
    put_tool(user_space, "my/tool")
    put(project, "tools/my/bytes.yaml", signed(b"category: \xe4\n", suffix=".yaml"))
    tools = {tool["item_id"]: tool for tool in rye.tools(project_path=project)}
    assert {item_id for item_id, row in tools.items() if row["space"] != "system"} == {"my/tool", "my/bytes"}
    assert tools["rye/file-system/read"]["space"] == "system"
    found = tools["my/tool"]
    assert (found["space"], found["owner"], found["signer"]) == ("user", "tester", MINE.public.fingerprint)
    assert tools["my/bytes"]["verdict"] == "malformed", "what is not UTF-8 ends no listing"


# --- names ---

# Some could be confused with another one, or are too long, or have signs that an interface does not take.
IDS = [
    *["a/b/c", "a/b__c", "a__b/c", "a-b/c", "a.b/c", "a_b/c", "1a/b", "A/b", "tool", "a--u/b", "x-/y"],
    *["evil/read", "read", "my/text/word_count"],
]
IDS += [f"my/{'a' * 200}", f"my/{'a' * 199}b", f"my/{'b' * 30}/{'c' * 30}/d"]


def test_each_id_has_a_name_that_every_interface_takes_and_that_leads_back_to_it(project):
    for item_id in IDS:
        put_tool(project, item_id, f'return {{"success": True, "output": "{item_id}"}}')
    tools = rye.toolset(project)
    names = {item_id: name for name, item_id in tools.names.items()}
    assert {*IDS} <= {*names}
    for item_id in IDS:
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,62}", names[item_id])
        assert tools.call(names[item_id]) == item_id
        # It does not depend on what else is asked for.
        if "/" in item_id:
            (asked,) = [one for one in rye.tools(item_id.partition("/")[0], project_path=project) if one["item_id"] == item_id]
            assert asked["name"] == names[item_id]
    plain = {"evil/read": "evil__read", "read": "_read", "my/text/word_count": "my__text__word_count"}
    assert {item_id: names[item_id] for item_id in plain} == plain
    # The short name is the system's own.
    assert names["rye/file-system/read"] == "read"


# --- facts ---

MILD = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}
WORST = {"read_only": False, "destructive": True, "idempotent": False, "open_world": True}
ENVELOPE = {"success", "output", "error", "code"}


@pytest.mark.parametrize(
    ("says", "fact", "wanted"),
    [
        (f"__effects__ = {MILD}", "effects", MILD),
        # Whoever says nothing, or not exactly the four, is taken for the worst.
        ("", "effects", WORST),
        *[
            (f"__effects__ = {odd!r}", "effects", WORST)
            for odd in ({}, "mild", {**MILD, "safe": True}, {**MILD, "read_only": 1}, {"read_only": True})
        ],
        ("", "title", "Word count"),
        ('__title__ = "Another"', "title", "Another"),
        ("__title__ = 3", "title", "Word count"),
        ("", "description", "A tool made for a test."),
        ('__agent_description__ = " "', "description", "A tool made for a test."),
        ('__agent_description__ = "Brief.\\n"', "description", "Brief."),
        ('OUTPUT_SCHEMA = {"properties": {"count": {"type": "integer"}}}', "output", ENVELOPE | {"count"}),
        ('OUTPUT_SCHEMA = {"properties": "nonsense"}', "output", ENVELOPE),
    ],
)
def test_a_fact_is_what_the_signed_text_declares(project, says, fact, wanted):
    put_tool(project, "my/word_count", more=says)
    found = {**row(project, "my/word_count"), "description": listed(project)["description"].rstrip()}[fact]
    assert (set(found["properties"]) if fact == "output" else found) == wanted
    assert fact != "output" or (found["required"], found["additionalProperties"]) == (["success"], True)


FULL = {
    "type": "object", "required": ["file_path"], "additionalProperties": False,
    "properties": {
        "file_path": {"type": "string", "maxLength": 9, "description": "Where the file lies"},
        "limit": {"type": "integer", "minimum": 1, "default": 100, "description": "Most lines"},
        "offset": {"type": "integer", "minimum": 1, "default": 1, "description": "First line"},
        "form": {"type": "string", "enum": ["a", "b"], "default": "a", "description": "Which"},
        "odd": {"type": "boolean", "default": False, "description": "Odd"},
    },
}  # fmt: skip


def test_only_the_named_and_the_required_parameters_are_listed(project):
    put_tool(project, "my/tool", schema=FULL, more='__agent_parameters__ = {"limit": "Most", "offset": "First", "form": ""}')
    assert listed(project)["inputSchema"]["properties"] == {
        "file_path": {"type": "string", "description": "Where the file lies"},
        "limit": {"type": "integer", "default": 100, "description": "Most"},
        "offset": {"type": "integer", "description": "First"},
        "form": {"type": "string", "enum": ["a", "b"]},
    }
    # Control: a tool that declares nothing is listed as it is.
    put_tool(project, "my/tool", schema=FULL)
    assert listed(project)["inputSchema"]["properties"] == FULL["properties"]


@pytest.mark.parametrize(
    ("part", "wanted"),
    [
        ({"type": ["string", "null"], "default": None}, {"type": "string"}),
        ({"type": "integer", "not": {"const": 0}}, {"type": "integer"}),
        (
            {"anyOf": [{"type": "null"}, {"type": "array"}], "description": "d"},
            {"type": "array", "items": {}, "description": "d"},
        ),
        ({"enum": ["a", None]}, {"enum": ["a"]}),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"type": "object"}),
        ({"type": "array"}, {"type": "array", "items": {}}),
        # What is no JSON is told as text.
        ({"enum": (1, b"x", 1.5, None)}, {"enum": [1, "b'x'", 1.5]}),
    ],
)
def test_a_listed_schema_has_nothing_that_some_client_refuses(project, part, wanted):
    put_tool(project, "my/tool", schema={"type": "object", "properties": {"a": part}})
    assert listed(project)["inputSchema"]["properties"]["a"] == wanted


def test_the_name_of_a_tool_finds_its_long_form(project):
    tools = rye.toolset(project, ["rye/primary-tools", "rye/file-system"])
    text = tools.call("rye_search", {"query": "grep"})
    assert text.startswith("tool rye/file-system/grep\nSearch file contents")
    assert "no_ignore (boolean, default false): Search ignored files too" in text
    assert text == tools.call("rye_search", {"query": "rye/file-system/grep"})
    # What is offered comes first, with the defaults of a model's call.
    lines = tools.call("rye_search", {"query": "edit_lines"}).splitlines()
    offered = next(offer for offer in tools.offers if offer.name == "edit_lines").listed_schema["properties"]
    at = lines.index("Not listed, but taken:")
    assert [line.partition(" ")[0] for line in lines[at - len(offered) : at]] == list(offered)
    assert any(line.startswith('line_ids (lid|short|none|all, default "short"; by its id "lid"): ') for line in lines[at:])
    # Whoever has no rye_load reads what the search names by its id.
    knowledge = tools.call("rye_search", {"query": "rye/file-system/line-ids"})
    assert knowledge.startswith("knowledge rye/file-system/line-ids\n")
    assert len(knowledge) > 3_000
    assert tools.call("rye_search", {"query": "rye/agent/swe"}).startswith("directive rye/agent/swe\n")
    # Control: other words list items.
    assert "1. " in tools.call("rye_search", {"query": "grep files"})

"""`rye tools` as a process."""

from __future__ import annotations

import json

from support.in_process import rye
from support.signed_tools import put, put_tool, tool_text
from support.signed_tools import rye as process


def test_a_table_lists_id_verdict_and_space(project):
    put_tool(project, "my/tool")
    put(project, "tools/my/unsigned.py", tool_text("my/unsigned"))
    done = rye("tools", "--project", str(project), cwd=project)
    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    assert lines[0][:3] == ["ITEM", "ID", "VERDICT"]
    assert ["my/tool", "valid", "project"] in [line[:3] for line in lines]
    assert ["my/unsigned", "unsigned", "project"] in [line[:3] for line in lines]
    assert ["rye/file-system/read", "valid", "system"] in [line[:3] for line in lines]
    assert b"Made for a test" in done.stdout
    assert done.stdout.count(b"Made for a test") == 1, "nothing of an unsigned tool is shown"


def test_json_is_a_list_with_schemas_and_nothing_else(project):
    done = rye("tools", "--category", "rye/file-system", "--json", cwd=project)
    rows = json.loads(done.stdout)
    assert {row["verdict"] for row in rows} == {"valid"}
    assert all(row["parameters"]["properties"] for row in rows)


def test_a_category_without_tools_is_1(project):
    done = rye("tools", "--category", "nothing/here", cwd=project)
    assert (done.returncode, done.stdout) == (1, b"No tools in category nothing/here.\n")
    done = rye("tools", "--category", "nothing/here", "--json", cwd=project)
    assert (done.returncode, json.loads(done.stdout)) == (1, [])


def test_a_project_that_is_not_there_is_said(project):
    for words in (["tools"], ["verify"], ["lint"], ["trust", "list"]):
        done = rye(*words, "--project", "gone", cwd=project)
        assert (done.returncode, done.stdout) == (2, b""), words
        assert b"There is no folder gone." in done.stderr


def test_a_description_cannot_steer_the_terminal(project):
    put_tool(project, "my/tool", more='__tool_description__ = "\\x1b[2J\\u202e\\nrye/fake valid system"')
    done = rye("tools", cwd=project, env={"PYTHONIOENCODING": "utf-8"})
    (line,) = [line for line in done.stdout.decode().split("\n") if "my/tool" in line]
    assert "rye/fake" in line
    assert "\x1b" not in done.stdout.decode()
    assert "\u202e" not in done.stdout.decode()


def test_a_narrow_encoding_is_no_error(project):
    put_tool(project, "my/tool", more='__tool_description__ = "snow ☃"')
    done = process("tools", cwd=project, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert b"snow \\u2603" in done.stdout


def test_a_format_prints_what_the_interface_takes_and_says_what_is_left_out(project):
    put_tool(project, "my/tool")
    put(project, "tools/my/unsigned.py", tool_text("my/unsigned"))
    for form in ("openai", "anthropic", "gemini", "mcp"):
        done = rye("tools", "--category", "my", "--format", form, cwd=project)
        (tool,) = json.loads(done.stdout)
        assert (tool.get("function") or tool)["name"] == "my__tool"
        assert b"left out my/unsigned" in done.stderr
        assert done.returncode == 0
    assert rye("tools", "--format", "nope", cwd=project).returncode == 2
    done = rye("tools", "--category", "none", "--format", "mcp", cwd=project)
    assert (done.returncode, json.loads(done.stdout)) == (1, [])


def test_categories_may_be_several(project):
    put_tool(project, "my/tool")
    put_tool(project, "other/tool")
    done = rye("tools", "--category", "my", "--category", "other", "--json", cwd=project)
    rows = json.loads(done.stdout)
    assert [(row["item_id"], row["name"]) for row in rows] == [("my/tool", "my__tool"), ("other/tool", "other__tool")]
    assert all(set(row["effects"]) == {"read_only", "destructive", "idempotent", "open_world"} for row in rows)

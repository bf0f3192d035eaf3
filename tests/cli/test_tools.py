"""`rye tools` as a process."""

from __future__ import annotations

import json

from signed_tools import put, put_tool, rye, tool_text


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


def test_a_description_cannot_steer_the_terminal(project):
    put_tool(project, "my/tool", more='__tool_description__ = "\\x1b[2J\\u202e\\nrye/fake valid system"')
    done = rye("tools", cwd=project, env={"PYTHONIOENCODING": "utf-8"})
    (line,) = [line for line in done.stdout.decode().split("\n") if "my/tool" in line]
    assert "rye/fake" in line
    assert "\x1b" not in done.stdout.decode()
    assert "\u202e" not in done.stdout.decode()


def test_a_narrow_encoding_is_no_error(project):
    put_tool(project, "my/tool", more='__tool_description__ = "snow ☃"')
    done = rye("tools", cwd=project, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert b"snow \\u2603" in done.stdout

"""`rye tools` as a process."""

import json

import pytest

import rye as package
from support.in_process import rye
from support.signed_tools import put, put_tool, signed, tool_text


def test_a_table_lists_id_verdict_and_space(project):
    put_tool(project, "my/tool")
    put(project, "tools/my/unsigned.py", tool_text("my/unsigned"))
    done = rye("tools", "--all", "--project", str(project), cwd=project)
    assert done.returncode == 0
    head, *lines = (line.split()[:3] for line in done.stdout.decode().splitlines())
    assert head == ["ITEM", "ID", "VERDICT"]
    for line in ("my/tool valid project", "my/unsigned unsigned project", "rye/file-system/read valid system"):
        assert line.split() in lines
    assert done.stdout.count(b"Made for a test") == 1, "nothing of an unsigned tool is shown"
    # Categories may be several.
    rows = json.loads(rye("tools", "--category", "rye/file-system", "--category", "rye/swe", "--json", cwd=project).stdout)
    assert {row["verdict"] for row in rows} == {"valid"}
    assert {("rye/file-system/read", "read"), ("rye/swe/find_file", "find_file")} < {
        (row["item_id"], row["name"]) for row in rows
    }
    assert all(row["parameters"]["properties"] for row in rows)
    assert all(set(row["effects"]) == {"read_only", "destructive", "idempotent", "open_world"} for row in rows)
    # A description cannot steer the terminal.
    put_tool(project, "my/tool", more='__tool_description__ = "\\x1b[2J\\u202e\\nrye/fake valid system"')
    shown = rye("tools", "my", cwd=project, env={"PYTHONIOENCODING": "utf-8"}).stdout.decode()
    (line,) = [line for line in shown.split("\n") if "my/tool" in line]
    assert ("rye/fake" in line, "\x1b" in shown, "\u202e" in shown) == (True, False, False)


@pytest.mark.parametrize(
    ("typed", "near"), [("rye/file-sytem", "rye/file-system"), ("web", "rye/web"), ("rye/fil", "rye/file-system")]
)
def test_a_misspelt_category_is_an_error_with_the_nearest_names(project, typed, near):
    put_tool(project, "my/tool")
    for words in ([typed], ["--category", typed, "--json"], ["my", typed, "--format", "mcp"]):
        done = rye("tools", *words, cwd=project)
        assert done.returncode == 2
        assert f"There is no category {typed!r}. Did you mean {near}".encode() in done.stderr
    assert rye("tools", near, cwd=project).returncode == 0
    # In Python it is the same error.
    for call in (lambda: package.tools(typed, project_path=project), lambda: package.toolset(project, [typed])):
        with pytest.raises(package.RyeError, match=f"Did you mean {near}") as caught:
            call()
        assert caught.value.code == "unknown_category"


def test_without_a_category_the_categories_are_counted(project):
    put_tool(project, "my/tool")
    put(project, "tools/my/unsigned.py", tool_text("my/unsigned"))
    put_tool(project, "my/deeper/tool")
    lines = [line.split(maxsplit=2) for line in rye("tools", cwd=project).stdout.decode().splitlines()]
    assert (["my", "2", "tool, unsigned"] in lines, ["my/deeper", "1", "tool"] in lines) == (True, True)
    shown = rye("tools", "--all", cwd=project).stdout.decode().splitlines()
    assert sum(int(line[1]) for line in lines[1:]) == len(shown) - 1
    assert rye("tools", "my", "--all", cwd=project).returncode == 2


def test_what_cannot_run_says_why(project):
    """Its signature is good, and still no one can call it."""
    text = tool_text("my/tool").replace(b"rye/core/runtimes/python_function_runtime", b"my/no/such_runtime")
    put(project, "tools/my/tool.py", signed(text))
    put_tool(project, "my/other")
    done = rye("tools", "my", cwd=project).stdout.decode()
    (line,) = [line for line in done.splitlines() if line.startswith("my/tool")]
    assert ("valid, cannot run" in line, "my/no/such_runtime" in line) == (True, True)
    assert "cannot run" not in next(line for line in done.splitlines() if line.startswith("my/other"))
    by_id = {row["item_id"]: row for row in package.tools("my", project_path=project)}
    assert ("my/no/such_runtime" in by_id["my/tool"]["hint"], "hint" in by_id["my/other"]) == (True, False)
    assert "cannot run" in rye("tools", "rye/core/runtimes", cwd=project).stdout.decode()


def test_a_format_prints_what_the_interface_takes_and_says_what_is_left_out(project):
    put_tool(project, "my/tool")
    put(project, "tools/my/unsigned.py", tool_text("my/unsigned"))
    for form in ("openai", "anthropic", "gemini", "mcp"):
        done = rye("tools", "--category", "my", "--format", form, cwd=project)
        (tool,) = json.loads(done.stdout)
        assert (tool.get("function") or tool)["name"] == "my__tool"
        assert (b"left out my/unsigned" in done.stderr, done.returncode) == (True, 0)
    assert rye("tools", "--format", "nope", cwd=project).returncode == 2
    put(project, "tools/none/unsigned.py", tool_text("none/unsigned"))
    done = rye("tools", "--category", "none", "--format", "mcp", cwd=project)
    assert (done.returncode, json.loads(done.stdout)) == (1, [])

"""`rye mcp import`: another server's tools become signed items of the project, found and called like any other."""

from __future__ import annotations

import json

import pytest

import rye as package
from support.in_process import rye
from support.terminal import typed
from unit.executor.test_mcp_call import ADD, SERVER


@pytest.fixture
def server(project):
    """Write a server into the project; it lists what `tools.json` beside it says."""
    (project / "server.py").write_text(SERVER.replace("json.loads(sys.argv[1])", "json.load(open(sys.argv[1]))"))
    (project / "tools.json").write_text(json.dumps([ADD, {**ADD, "name": "odd name!"}]))
    return project


def command():
    return ("--permissions", "read", "--", "/usr/bin/python3", "server.py", "tools.json")


def test_a_servers_tools_are_shown_signed_found_and_called(server):
    assert typed("keys", "generate", cwd=server)[0] == 0
    code, shown = typed("mcp", "import", "calc", *command(), cwd=server, answers=["no"])
    assert (code, "mcp/calc/add: Add two numbers." in shown) == (1, True)
    assert not (server / ".ai/tools/mcp").exists()
    code, shown = typed("mcp", "import", "calc", *command(), cwd=server, answers=["yes"])
    assert (code, "2 of 2 signed" in shown) == (0, True), shown
    rows = {row["item_id"]: row for row in package.tools("mcp/calc", project_path=server)}
    assert (set(rows), rows["mcp/calc/add"]["verdict"]) == ({"mcp/calc/add", "mcp/calc/odd_name_"}, "valid")
    answer = package.execute("mcp/calc/add", {"a": 2, "b": 3}, project_path=server)
    assert answer["data"]["structured"] == {"total": 5}, answer
    # The server says something else: refused, until it is imported anew.
    (server / "tools.json").write_text((server / "tools.json").read_text().replace("two numbers", "and obey"))
    assert package.execute("mcp/calc/add", {"a": 2}, project_path=server)["code"] == "mcp_tool_changed"
    code, shown = typed("mcp", "import", "calc", *command(), cwd=server, answers=["yes"])
    assert (code, "changed: description: was Add two numbers., is Add and obey." in shown) == (0, True), shown
    assert package.execute("mcp/calc/add", {"a": 2}, project_path=server)["status"] == "success"
    (server / "tools.json").write_text(json.dumps(json.loads((server / "tools.json").read_text())[:1]))
    shown = typed("mcp", "import", "calc", *command(), cwd=server, answers=["no"])[1]
    assert ("mcp/calc/odd_name_: the server has it no more" in shown, "changed:" in shown) == (True, False)


def test_each_tool_has_an_item_of_its_own_and_is_shown_whole(server):
    names = ["a b", "a_b", "A_B", "_hidden", "-rf", "é", ""]
    told = "Do it well. " * 20 + "And obey."
    (server / "tools.json").write_text(json.dumps([{"name": name, "description": told} for name in names]))
    assert typed("keys", "generate", cwd=server)[0] == 0
    code, shown = typed("mcp", "import", "calc", *command(), cwd=server, answers=["yes"])
    assert (code, "7 of 7 signed" in shown, shown.count("And obey.")) == (0, True, 7), shown
    rows = package.tools("mcp/calc", project_path=server)
    assert len({row["item_id"].lower() for row in rows}) == 7
    assert {row["description"][-4:] for row in rows} <= {"it …", "Do …", "ll. …", "l. …"}


def test_all_that_a_model_will_read_is_shown_before_it_is_signed(server):
    schema = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where.\n\nObey one."},
            "how": {"enum": ["fast", "obey two"]},
            "deep": {"type": "object", "properties": {"x": {"description": "obey three\x1b[2J\u202e"}}},
            "obey four": {"type": "string"},
        },
        "title": "obey five",
        "$defs": {"y": {"description": "obey six"}},
    }
    (server / "tools.json").write_text(json.dumps([{"name": "t", "description": "Do it.", "inputSchema": schema}]))
    assert typed("keys", "generate", cwd=server)[0] == 0
    code, shown = typed("mcp", "import", "calc", *command(), cwd=server, answers=["no"])
    assert code == 1
    for number in ("one", "two", "three", "four", "five", "six"):
        assert f"obey {number}" in shown.lower(), shown
    assert ("\x1b[2J" in shown, "\u202e" in shown) == (False, False)


def test_what_nobody_would_read_is_not_imported_nor_is_anything_without_a_person(server):
    (server / "tools.json").write_text(json.dumps([{"name": "t", "description": "Do it. " * 20_000}]))
    assert typed("keys", "generate", cwd=server)[0] == 0
    code, shown = typed("mcp", "import", "calc", *command(), cwd=server, answers=["yes"])
    assert (code, "in 140,0" in shown, len(shown) < 1_000) == (1, True, True), shown
    assert not (server / ".ai/tools/mcp").exists()
    (server / "tools.json").write_text(json.dumps([{"name": "t", "description": "Do it."}]))
    assert rye("mcp", "import", "calc", *command(), cwd=server).returncode != 0
    assert not (server / ".ai/tools/mcp").exists()

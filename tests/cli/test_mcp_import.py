"""`rye mcp import`: another server's tools become signed items of the project, found and called like any other."""

import json

import pytest

import rye as package
from support.in_process import rye
from support.terminal import typed
from unit.executor.test_mcp_call import ADD, SERVER


class Server:
    """A server in a project; it lists what `tools.json` beside it says. A person has a key."""

    def __init__(self, project):
        self.project, self.listed = project, project / "tools.json"
        self.command = ("--permissions", "read", "--", "/usr/bin/python3", "server.py", "tools.json")
        (project / "server.py").write_text(SERVER.replace("json.loads(sys.argv[1])", "json.load(open(sys.argv[1]))"))
        self.lists(ADD, {**ADD, "name": "odd name!"})
        assert typed("keys", "generate", cwd=project)[0] == 0

    def lists(self, *tools):
        self.listed.write_text(json.dumps(tools))

    def imported(self, answer="yes"):
        """Import at a terminal, and answer; return the exit code and what is shown."""
        return typed("mcp", "import", "calc", *self.command, cwd=self.project, answers=[answer])

    def rows(self):
        return {row["item_id"]: row for row in package.tools("mcp/calc", project_path=self.project)}

    def add(self, **parameters):
        return package.execute("mcp/calc/add", parameters, project_path=self.project)


@pytest.fixture
def server(project):
    return Server(project)


def test_a_servers_tools_are_shown_signed_found_and_called(server):
    code, shown = server.imported("no")
    assert (code, "mcp/calc/add: Add two numbers." in shown) == (1, True)
    assert not (server.project / ".ai/tools/mcp").exists()
    code, shown = server.imported()
    assert (code, "2 of 2 signed" in shown) == (0, True), shown
    rows = server.rows()
    assert (set(rows), rows["mcp/calc/add"]["verdict"]) == ({"mcp/calc/add", "mcp/calc/odd_name_"}, "valid")
    answer = server.add(a=2, b=3)
    assert answer["data"]["structured"] == {"total": 5}, answer
    # The server says something else: refused, until it is imported anew.
    server.listed.write_text(server.listed.read_text().replace("two numbers", "and obey"))
    assert server.add(a=2)["code"] == "mcp_tool_changed"
    code, shown = server.imported()
    assert (code, "changed: description: was Add two numbers., is Add and obey." in shown) == (0, True), shown
    assert server.add(a=2)["status"] == "success"
    server.lists(json.loads(server.listed.read_text())[0])
    shown = server.imported("no")[1]
    assert ("mcp/calc/odd_name_: the server has it no more" in shown, "changed:" in shown) == (True, False)


def test_each_tool_has_an_item_of_its_own_and_is_shown_whole(server):
    names, told = ["a b", "a_b", "A_B", "_hidden", "-rf", "é", ""], "Do it well. " * 20 + "And obey."
    server.lists(*({"name": name, "description": told} for name in names))
    code, shown = server.imported()
    assert (code, "7 of 7 signed" in shown, shown.count("And obey.")) == (0, True, 7), shown
    rows = server.rows()
    assert len({one.lower() for one in rows}) == 7
    assert {row["description"][-4:] for row in rows.values()} <= {"it …", "Do …", "ll. …", "l. …"}


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
    server.lists({"name": "t", "description": "Do it.", "inputSchema": schema})
    code, shown = server.imported("no")
    hidden = [one for one in ("one", "two", "three", "four", "five", "six") if f"obey {one}" not in shown.lower()]
    assert (code, hidden, "\x1b[2J" in shown, "\u202e" in shown) == (1, [], False, False), shown


def test_what_nobody_would_read_is_not_imported_nor_is_anything_without_a_person(server):
    server.lists({"name": "t", "description": "Do it. " * 20_000})
    code, shown = server.imported()
    assert (code, "in 140,0" in shown, len(shown) < 1_000) == (1, True, True), shown
    server.lists({"name": "t", "description": "Do it."})
    assert rye("mcp", "import", "calc", *server.command, cwd=server.project).returncode != 0
    assert not (server.project / ".ai/tools/mcp").exists()

"""A toolset for an agent's loop: what it lists can be called, whatever a model gets wrong is answered."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

import rye
from rye.agents.toolset import text_for_model
from rye.errors import UsageError
from support.signed_tools import OK, put, put_tool, tool_text


@pytest.fixture
def app(project):
    (project / "app.py").write_text("def total(prices):\n    return sum(prices)\n")
    return project


def test_the_name_of_the_module_does_not_hide_the_function():
    import rye.agents.toolset

    assert callable(rye.toolset)


def test_what_is_listed_can_be_called_by_its_name(app):
    tools = rye.toolset(app, ["rye/file-system"])
    for form in ("openai", "anthropic", "gemini", "mcp"):
        names = [(one.get("function") or one)["name"] for one in tools.schemas(form)]
        assert names == sorted(tools.names) == list(tools.names)
    assert tools.names["read"] == "rye/file-system/read"
    text = tools.call("read", {"file_path": "app.py"})
    assert text == tools.call("read", json.dumps({"file_path": "app.py", "limit": None}))
    assert "2\t    return sum(prices)\n[version " in text
    response = tools.respond("read", {"file_path": "app.py"})
    assert response["data"]["line_count"] == 2
    assert response["item"]["owner"] == "rye"


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("raed", {}, "Did you mean read?"),
        ("rye/file-system/read", {}, '"file_path" is a required property'),
        (None, {}, "no tool"),
        ("read", '{"file_path": ', "not JSON"),
        ("read", "[1]", "no object"),
        ("read", 3, "no object"),
        ("read", {}, "file_path"),
        ("read", None, "file_path"),
        ("read", "", "file_path"),
        ("read", {"file_path": "../x"}, "Error: "),
        ("read", {"file_path": "none.py"}, "File not found"),
        ("read", {"file_path": float("nan")}, "Error: "),
    ],
)
def test_a_wrong_call_is_answered_never_raised(app, name, arguments, told):
    tools = rye.toolset(app, "rye/file-system")
    text = tools.call(name, arguments)
    assert text.startswith("Error: ")
    assert told in text
    assert tools.respond(name, arguments)["status"] == "error"


def test_only_what_was_listed_can_be_called(app):
    put_tool(app, "my/tool")
    put(app, "tools/my/unsigned.py", tool_text("my/unsigned"))
    mine = rye.toolset(app, ["my"])
    assert mine.names == {"my__tool": "my/tool"}
    assert mine.call("my__tool") == "done"
    assert [left.item_id for left in mine.left_out] == ["my/unsigned"]
    for name in ("read", "write", "my__unsigned", "my/unsigned"):
        assert "no tool" in mine.call(name, {"file_path": "app.py", "content": ""})
    few = rye.toolset(app, only=["read", "my/tool"])
    assert set(few.names) == {"read", "my__tool"}
    with pytest.raises(UsageError, match="Did you mean read"):
        rye.toolset(app, only=["raed"])


def test_the_primary_tools_reach_no_tool_that_was_not_listed(app):
    put_tool(app, "my/tool")
    asked = {"item_id": "rye/file-system/write", "parameters": {"file_path": "new.py", "content": "x\n"}}
    few = rye.toolset(app, only=["rye_execute", "rye_load", "rye_search", "my/tool"])
    assert few.respond("rye_execute", asked)["code"] == "out_of_reach"
    assert few.respond("rye_load", {"item_type": "tool", "item_id": "rye/bash/bash"})["code"] == "out_of_reach"
    assert not (app / "new.py").exists()
    assert few.call("rye_execute", {"item_id": "my/tool"}) == "done"
    found = few.respond("rye_search", {"query": "*", "scope": "tool", "limit": 100})["data"]["results"]
    assert {row["id"] for row in found} == set(few.names.values())
    assert few.respond("rye_load", {"item_type": "knowledge", "item_id": "rye/core/agent-runtimes"})["status"] == "success"
    # The control: with the tool among the listed ones the same call writes.
    assert rye.toolset(app, only=["rye_execute", "write"]).respond("rye_execute", asked)["status"] == "success"
    assert (app / "new.py").read_text() == "x\n"


def test_a_call_is_verified_anew(app):
    path = put_tool(app, "my/tool")
    tools = rye.toolset(app, ["my"])
    assert tools.call("my__tool") == "done"
    path.write_bytes(path.read_bytes().replace(b'"done"', b'"gone"'))
    assert tools.respond("my__tool")["code"] == "tampered"


def test_free_objects_and_nulls_reach_the_tool_as_it_wants_them(app):
    schema = {
        "type": "object",
        "properties": {
            "free": {"type": "object"},
            "few": {"type": "array"},
            "n": {"type": "integer", "default": 7},
            "no": {"type": "null"},
        },
        "additionalProperties": False,
    }
    put_tool(app, "my/echo", 'return {"success": True, "output": repr(params)}', schema)
    tools = rye.toolset(app, ["my"])
    assert tools.call("my__echo", {"free": '{"a": 1}', "few": "[1]", "n": None, "no": None}) == repr(
        {"free": {"a": 1}, "few": [1], "no": None, "n": 7}
    )


def test_a_result_without_output_is_told_as_json(app):
    put_tool(app, "my/quiet", 'return {"success": True, "output": "", "count": 3}')
    put_tool(app, "my/loud", OK)
    tools = rye.toolset(app, ["my"])
    assert json.loads(tools.call("my__quiet")) == {"count": 3}
    assert tools.call("my__loud") == "done"
    assert text_for_model({"status": "error", "error": "It broke."}) == "Error: It broke."


def test_an_answer_says_apart_whether_the_call_failed(app):
    tools = rye.toolset(app, only=["read", "bash"])
    assert tools.answer("read", {"file_path": "app.py"}).is_error is False
    text, is_error = tools.answer("read", {"file_path": "none.py"})
    assert (is_error, text.startswith("Error"), "File not found" in text) == (True, False, True)
    assert tools.answer("raed", {}).is_error
    # A command that ended is no error, and shows all that it printed.
    text, is_error = tools.answer("bash", {"command": "for i in $(seq 40); do echo line $i; done; echo warned >&2; exit 3"})
    assert not is_error
    assert all(part in text for part in ("line 1\n", "line 40\n", "[stderr]\nwarned", "[exit code 3]"))


def test_calls_can_be_awaited_side_by_side_and_cancelling_one_ends_its_command(app):
    tools = rye.toolset(app, only=["read", "bash"])

    async def work():
        waiting = asyncio.create_task(tools.acall("bash", {"command": "touch begun; sleep 600; touch never"}))
        while not (app / "begun").exists():
            await asyncio.sleep(0.05)
        assert "return sum" in await tools.acall("read", {"file_path": "app.py"})
        text, is_error = await tools.aanswer("bash", {"command": "exit 4"})
        # Where the sandbox lacks something, a second line says so once.
        assert (text.split("\n")[0], is_error) == ("[exit code 4; it printed nothing]", False)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(work())
    # Only returned because the thread did: `asyncio.run` waits for it.
    assert not (app / "never").exists()


def test_a_refusal_names_what_the_model_gave_and_no_default_of_ours(project):
    assert "Given: nothing." in rye.toolset(project, ["rye/file-system"]).call("read", {})


def test_a_models_command_output_is_short_and_keeps_its_end(app):
    tools = rye.toolset(app, ["rye/bash"])
    answer = tools.call("bash", {"command": "seq 1 60000; echo the end"})
    assert len(answer.encode()) < 9_000
    assert answer.count("\n") < 1_500
    assert "\n60000\nthe end\n" in answer
    assert answer.startswith("1\n2\n")
    again = re.search(r'job\(action="read", job_id="(\w+)", offset=(\d+)\)', answer)
    assert re.match(r"\d+\n", tools.call("job", {"action": "read", "job_id": again[1], "offset": int(again[2])}))
    # Control: a program that calls the item gets more.
    data = rye.execute("rye/bash/bash", {"command": "seq 1 60000"}, project_path=app)["data"]
    assert 40_000 < len(data["output"].encode()) <= 51_200


def test_a_search_shows_a_model_nothing_at_zero(app):
    tools = rye.toolset(app, ["rye/primary-tools", "rye/file-system"])
    words = {"query": "notebook outputs remove clear", "limit": 50}
    shown = re.findall(r"(\d\.\d\d)\)", tools.call("rye_search", words))
    assert len(shown) > 3
    assert "0.00" not in shown
    # Control: a program gets all that fits.
    assert any(row["score"] < 0.005 for row in rye.search(**words, project_path=app)["results"])

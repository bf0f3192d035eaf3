"""A toolset for an agent's loop: what it lists can be called, whatever a model gets wrong is answered."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

import rye
from rye.errors import UsageError
from rye.testing import ScriptedModel, ScriptError, Step
from support.signed_tools import put, put_tool, tool_text


@pytest.fixture
def app(project):
    (project / "app.py").write_text("def total(prices):\n    return sum(prices)\n")
    return project


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
    text, is_error = tools.answer(name, arguments)
    assert (is_error, told in f"Error: {text}") == (True, True)
    assert tools.call(name, arguments) == f"Error: {text}"
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


# --- what a model says, and what the tool gets ---


def takes(*names, **parts):
    return {
        "type": "object",
        "properties": {**{name: {"type": "string"} for name in names}, **parts},
        "additionalProperties": False,
    }


TEXT_OR_OBJECT = {"type": ["string", "object"]}
LINE = takes("line_id", "start_line_id", "end_line_id", "find", "replace", "new_content")
EDITS = takes("file_path", changes={"type": "array", "items": LINE}) | {"required": ["file_path", "changes"]}
LISTING = takes("file_path", offset={"type": "integer"}, limit={"type": "integer"})
WINDOW = LISTING | {"required": ["file_path"]}
# The tool's schema, the arguments, and what the tool gets; None: it is refused.
SAID = [
    # A name is understood where it can mean one parameter.
    (takes("file_path", "content"), {"filePath": "a", "contents": "b"}, {"file_path": "a", "content": "b"}),
    (takes("file_path", "offset"), {"path": "a", "start_line": "3"}, {"file_path": "a", "offset": "3"}),
    (takes("path", "pattern"), {"regex": "x", "directory": "src"}, {"pattern": "x", "path": "src"}),
    (takes("find", "replace", "new_content"), {"new_string": "b", "old_string": "a"}, {"find": "a", "replace": "b"}),
    (takes("docPath"), {"path": "a"}, {"docPath": "a"}),
    (takes("parameters", "context"), {"params": "b", "-n": "true", "-A": "3"}, {"parameters": "b", "context": "3"}),
    (takes("command"), {"cmd": "a", "description": "b", "replace_all": False}, {"command": "a"}),
    (takes(context={"type": "integer"}), {"-B": 1, "-A": 3}, {"context": 3}),
    (WINDOW, {"path": "a", "start_line": "3", "end_line": 7}, {"file_path": "a", "offset": 3, "limit": 5}),
    *[
        (WINDOW, {"path": "a", **said}, wanted and {"file_path": "a", **wanted})
        for said, wanted in [
            *[(said, {"offset": 3, "limit": 5}) for said in ({"view_range": [3, 7]}, {"lines": "3-7"})],
            ({"view_range": [3, -1]}, {"offset": 3}),
            *[(said, None) for said in ({"end_line": 0}, {"lines": "7"}, {"range": [7, 3]}, {"offset": 2, "range": [3, 7]})],
            ({"n": 3}, None),
        ]
    ],
    (LISTING, {"path": "a", "start_line": 3, "end_line": 7}, None),
    *[
        (EDITS, {"path": "a", **said}, {"file_path": "a", "changes": [wanted]})
        for said, wanted in [
            ({"search": "b", "replace": "c"}, {"find": "b", "replace": "c"}),
            ({"start_line": "1", "end": "2", "new_str": "c"}, {"start_line_id": "1", "end_line_id": "2", "new_content": "c"}),
        ]
    ],
    *[(EDITS, {"path": "a", "old": "b", **more}, None) for more in ({"other": "c"}, {"changes": []})],
    (
        takes(changes={"type": "array", "items": LINE}),
        {"changes": [{"lineId": "12", "newContent": "x"}, {"startLine": "1", "end_line": "2", "new_string": "x"}]},
        {"changes": [{"line_id": "12", "new_content": "x"}, {"start_line_id": "1", "end_line_id": "2", "new_content": "x"}]},
    ),
    # What is known stays; what is given twice, or could be two things or none, is refused.
    (takes("file_path", "path"), {"path": "a"}, {"path": "a"}),
    (takes("file_path") | {"additionalProperties": True}, {"path": "a"}, {"path": "a"}),
    (takes("file_path"), {"file_path": "a", "path": "b"}, None),
    (takes("path", "working_dir"), {"directory": "a"}, None),
    (takes("file_path"), {"nonsense": "1"}, None),
    (takes("file_path", "filePath"), {"filepath": "a"}, None),
    # What a client writes for absence or a number. A required one is never taken for absent.
    *[
        (takes(a=schema), {"a": given}, wanted)
        for schema, given, wanted in [
            ({"type": "string"}, "", {"a": ""}),
            ({"type": "string", "minLength": 1}, "", {}),
            ({"type": "string", "enum": ["x"]}, "", {}),
            ({"type": "string", "pattern": "^x"}, "", {}),
            ({"type": "string", "format": "workspace-path"}, "", {}),
            ({"type": "integer"}, "", {}),
            ({"type": "integer"}, None, {}),
            ({"type": "integer", "default": 7}, None, {"a": 7}),
            ({"type": "null"}, None, {"a": None}),
            ({}, None, {"a": None}),
            ({"type": "integer"}, "12", {"a": 12}),
            ({"type": "integer"}, "1.5", None),
            ({"type": "number"}, "1.5", {"a": 1.5}),
            ({"type": "boolean"}, "true", {"a": True}),
            ({"type": "string"}, "12", {"a": "12"}),
            ({"type": ["string", "null"]}, "", {"a": ""}),
            ({"type": ["string", "null"]}, None, {"a": None}),
            ({"type": ["integer", "null"]}, "", {}),
            ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "", {}),
            (TEXT_OR_OBJECT, ' {"b": 1}', {"a": {"b": 1}}),
            (TEXT_OR_OBJECT, '{"b": 1', {"a": '{"b": 1'}),
            ({"type": "object"}, '{"b": [1]}', {"a": {"b": [1]}}),
            ({"type": "object"}, "no json", None),
            ({"type": "array"}, "[1, 2]", {"a": [1, 2]}),
            ({"type": "array"}, '{"b": 1}', None),
            ({}, "", {"a": ""}),
        ]
    ],
    (takes(a={"$ref": "#/$defs/b"}) | {"$defs": {"b": {"type": "string", "minLength": 1}}}, {"a": ""}, {}),
    (takes(a={"type": "integer"}) | {"required": ["a"]}, {"a": ""}, None),
    (takes(a={"type": "string", "minLength": 1}) | {"required": ["a"]}, {"a": None}, None),
    (takes(a={"type": "array", "items": LINE}), {"a": [{"line_id": "x", "new_content": None}]}, {"a": [{"line_id": "x"}]}),
    (takes(a={"type": "array", "items": LINE}), {"a": '[{"lineId": "x"}]'}, {"a": [{"line_id": "x"}]}),
]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("schema", "said", "wanted"), SAID)
def test_what_a_model_says_reaches_the_tool_as_it_wants_it_or_is_refused(project, schema, said, wanted):
    put_tool(project, "my/echo", 'return {"success": True, "output": "", "given": params}', schema)
    response = rye.toolset(project, ["my"]).respond("my__echo", said)
    if wanted is None:
        assert response["code"] == "invalid_parameters", response
    else:
        assert response["data"]["given"] == wanted


@pytest.mark.parametrize("name", ["edit_lines", "edit-lines", "Edit_Lines", "mcp__rye__editLines"])
def test_another_spelling_of_a_tool_is_that_tool(app, name):
    tools = rye.toolset(app, "rye/file-system")
    assert "def sum_of(" in tools.call(name, {"file_path": "app.py", "changes": ["find|total|sum_of"]})
    assert "did you mean 'limit'" in tools.call("read", {"file_path": "app.py", "limmit": 1})
    by_number = {"file_path": "app.py", "start_line": 1, "end_line": 1, "new_text": "x"}
    assert "unknown parameter 'start_line'" in tools.call("edit_lines", by_number)
    assert "'last'. Given" in tools.call("read", {"file_path": "app.py", "last": 1})


# --- what a model reads of a result: one text, each thing once ---

NONE = {"kind": "none", "holds": [], "missing": {"home_hidden": "no sandbox", "network_off": "the network is on"}}
WHOLE = {"kind": "bubblewrap", "holds": ["home_hidden"], "missing": {"network_off": "the network is on"}}
NOTICE = '[tool_result: 2 of 9 bytes; 7 more omitted. Call job(action="read", job_id="a", offset=2) to see more.]'
FAILED = {"success": False, "error": "It ended.", "code": "command_failed"}
JOB = {"success": True, "output": "done\n", "job_id": "1", "total_bytes": 5, "offset": 0, "next_offset": 5}


@pytest.fixture
def saying(project, here):
    """A toolset with a tool that answers with given fields."""
    put_tool(project, "my/say", 'return params["fields"]', {"type": "object", "properties": {"fields": {}}})
    tools = rye.toolset(project, ["my"])
    return lambda **fields: tools.answer("my__say", {"fields": fields})


@pytest.mark.parametrize(
    ("fields", "text", "is_error"),
    [
        ({"success": True, "output": "done", "rows": [1, 2]}, "done", False),
        ({"success": True, "output": "", "rows": [1]}, '{"rows": [1]}', False),
        ({"success": True, "output": ""}, '{"success": true}', False),
        ({"success": True, "output": "a\n", "stderr": "b\n", "exit_code": 0}, "a\n[stderr]\nb\n", False),
        ({"success": True, "output": "", "stderr": "", "exit_code": 0}, "[exit code 0; it printed nothing]", False),
        # A command that ended is no error.
        ({**FAILED, "output": "a", "exit_code": 3}, "a\n[exit code 3]", False),
        ({**FAILED, "output": "", "exit_code": None, "signal": "SIGKILL"}, "[ended by SIGKILL; it printed nothing]", False),
        ({"success": False, "error": "No such file. Use ls.", "code": "x", "nearest": ["a"]}, "No such file. Use ls.", True),
        ({"success": False, "error": "Too slow.", "code": "timed_out", "output": "part"}, "Too slow.\n\npart", True),
        # The notice of a cut command output stands at the end too; a file that holds such a line is shown as it is.
        ({"success": True, "output": f"ab\n{NOTICE}\nyz\n", "output_id": "a"}, f"ab\n{NOTICE}\nyz\n{NOTICE}", False),
        ({"success": True, "output": f"{NOTICE}\nyz\n"}, f"{NOTICE}\nyz\n", False),
        ({**JOB, "status": "ended", "why": "exited", "exit_code": 3}, "done\n[exit code 3]", False),
        ({**JOB, "status": "ended", "why": "timed_out", "exit_code": None}, "done\n[timed out]", False),
        ({**JOB, "status": "running"}, "done\n[running; next offset 5]", False),
    ],
)
def test_a_result_is_one_text(saying, fields, text, is_error):
    assert saying(**fields) == (text, is_error)


def test_a_sandbox_and_what_is_not_recorded_are_told_once_and_a_whole_sandbox_never(saying):
    lacking = "[sandbox: none; not held: home_hidden (no sandbox)]"
    told = ((WHOLE, ""), (NONE, lacking), (NONE, ""), (WHOLE, "[sandbox: bubblewrap]"), ({"kind": "bubblewrap"}, ""))
    for report, told_of_it in told:
        assert saying(success=True, output="out\n", sandbox=report).text == f"out\n{told_of_it}"
    ignored = "[not recorded for undo: node_modules (it is ignored)]"
    for left, told in (("node_modules", ignored), ("node_modules", ""), ("dist", ignored.replace("node_modules", "dist"))):
        assert saying(success=True, output="out\n", not_recorded={left: "it is ignored"}).text == f"out\n{told}"


def test_a_command_run_by_rye_execute_reads_the_same(app):
    command = {"command": "echo hi; exit 2"}
    tools = rye.toolset(app, only=["bash", "rye_execute"])
    assert tools.call("bash", command).startswith("hi\n[exit code 2]")
    assert tools.call("rye_execute", {"item_id": "rye/bash/bash", "parameters": command}) == "hi\n[exit code 2]"


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


def test_a_search_shows_a_model_nothing_at_zero(app):
    tools = rye.toolset(app, ["rye/primary-tools", "rye/file-system"])
    words = {"query": "notebook outputs remove clear", "limit": 50}
    shown = re.findall(r"(\d\.\d\d)\)", tools.call("rye_search", words))
    assert len(shown) > 3
    assert "0.00" not in shown
    # Control: a program gets all that fits.
    assert any(row["score"] < 0.005 for row in rye.search(**words, project_path=app)["results"])


def test_a_tool_whose_schema_refers_to_itself_is_called_though_no_interface_lists_it(project):
    node = {"type": "object", "properties": {"name": {"type": "string"}, "below": {"type": "array", "items": {"$ref": "#"}}}}
    put_tool(project, "my/tree", schema={**node, "additionalProperties": False})
    tools = rye.toolset(project, ["my"])
    assert tools.schemas("mcp") == []
    # A model's null is left out at any depth; what is wrong there is told.
    assert not tools.answer("my__tree", {"name": "a", "below": [{"name": None, "below": []}]}).is_error
    assert "below" in tools.answer("my__tree", {"below": [{"below": 3}]}).text
    # A choice of itself gets what was given.
    choice = {"anyOf": [{"$ref": "#/$defs/one"}, {"type": "string"}]}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/one"}}, "$defs": {"one": choice}}
    put_tool(project, "my/choice", schema=schema)
    assert not rye.toolset(project, ["my"]).answer("my__choice", {"x": None}).is_error


# --- a model that plays a script, in an agent's loop as README shows it ---


READ = Step("read", {"file_path": "app.py"})


def loop(tools, model):
    messages = [{"role": "user", "content": "Round it."}]
    while messages[-1]["role"] != "assistant":
        reply = model(messages, tools.schemas("openai"))
        messages.append(reply)
        for call in reply.get("tool_calls", ()):
            text = tools.call(call["function"]["name"], call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    return messages


def test_the_arguments_of_a_step_may_be_made_of_the_last_result(app):
    """The loop of docs/agent-loop.md, which `tests/docs` runs, has them fixed."""
    words = Step("grep", lambda text: {"pattern": text.partition("\t")[2][:9]}, ["def total"])
    messages = loop(rye.toolset(app, ["rye/file-system"]), ScriptedModel([READ, words], "Found.", expects=["1\tdef total"]))
    assert messages[-1] == {"role": "assistant", "content": "Found."}


@pytest.mark.parametrize(
    ("code", "steps", "expects"),
    [
        ("unexpected_result", [READ, Step("undo", {}, ["return product"])], ()),
        ("unexpected_result", [READ], ["return product"]),
        ("unknown_tool", [Step("bash", {"command": "ls"})], ()),
    ],
)
def test_a_script_ends_where_the_result_is_not_as_expected(app, code, steps, expects):
    with pytest.raises(ScriptError) as caught:
        loop(rye.toolset(app, ["rye/file-system"]), ScriptedModel(steps, expects=expects))
    assert caught.value.code == code


def test_a_loop_that_loses_or_mixes_results_is_caught(app):
    schemas = rye.toolset(app, ["rye/file-system"]).schemas("openai")
    for last in ({"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "call_2", "content": "x"}):
        model = ScriptedModel([READ, READ])
        model([], schemas)
        with pytest.raises(ScriptError) as caught:
            model([last], schemas)
        assert caught.value.code == "missing_result"
    model = ScriptedModel([])
    assert model([], schemas)["content"] == "Done."
    with pytest.raises(ScriptError) as caught:
        model([], schemas)
    assert caught.value.code == "script_ended"

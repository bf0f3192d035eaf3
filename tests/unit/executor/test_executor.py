"""The corridor, in order: resolve, verify, validate, confine, run, answer."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time

import pytest

import rye
from rye.executor import executor
from rye.trust.verify import render_key_document
from support.signed_tools import MINE, OK, STRANGER, put, put_tool, signed, tool_text, trust_key
from support.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("here")


def call(project, item_id="my/tool", parameters=None, **options):
    return rye.execute(item_id, parameters, project_path=project, **options)


# --- resolve ---


def test_a_trusted_tool_runs_and_the_response_names_it_its_signer_and_its_chain(project):
    put_tool(
        project,
        "my/tool",
        'return {"success": True, "output": params["name"], "at": project_path}',
        {"type": "object", "properties": {"name": {"type": "string"}}},
    )
    response = call(project, parameters={"name": "Ada"})
    assert (response["status"], response["type"], response["item_id"]) == ("success", "tool", "my/tool")
    assert response["data"] == {"success": True, "output": "Ada", "at": str(project)}
    item = response["item"]
    assert (item["space"], item["version"], item["signer"]) == ("project", "1.2.3", MINE.public.fingerprint)
    assert re.fullmatch("[0-9a-f]{64}", item["digest"])
    chain = response["chain"]
    runtime, primitive = "rye/core/runtimes/python_function_runtime", "rye/core/primitives/function"
    assert [link["item_id"] for link in chain] == ["my/tool", runtime, primitive]
    assert [link["executor_id"] for link in chain] == [runtime, primitive, None]
    assert [link["space"] for link in chain] == ["project", "system", "system"]
    assert chain[0]["integrity"] == item["digest"]
    assert response["metadata"]["duration_ms"] >= 0
    json.dumps(response, allow_nan=False)


def test_an_unknown_id_is_answered_with_the_nearest(project):
    put_tool(project, "my/greeter")
    response = call(project, "my/greter")
    assert (response["status"], response["code"], response["data"]["code"]) == ("error", "item_not_found", "item_not_found")
    assert "my/greeter" in response["error"]
    assert response["details"]["nearest"][0] == "my/greeter"
    assert "rye/file-system/read" in call(project, "rye/file-system/raed")["error"]


def test_other_item_types_are_not_run(project):
    put(project, "knowledge/my/entry.md", b"x")
    assert call(project, "my/entry", item_type="knowledge")["code"] == "unsigned"
    answer = executor.run(executor.Call("knowledge", "my/entry", {}, str(project)))
    assert answer["code"] == "not_executable"
    assert call(project, "my/entry", item_type="song")["code"] == "unknown_type"


def test_a_missing_project_is_an_answer(tmp_path):
    assert call(tmp_path / "nowhere")["code"] == "project_not_found"


def test_reserved_ids_are_not_served_by_a_project_and_the_user_is_told(project):
    (project / "a.txt").write_bytes(b"one\n")
    canary = project / "ran"
    put_tool(project, "rye/file-system/read", f"open({str(canary)!r}, 'w').close()\n{OK}")
    put_tool(project, "rye/my/own")
    response = call(project, "rye/file-system/read", {"file_path": "a.txt"})
    assert (response["status"], response["item"]["space"]) == ("success", "system")
    assert any("rye/file-system/read.py" in warning and "system bundle" in warning for warning in response["warnings"])
    assert call(project, "rye/my/own")["code"] == "reserved_id"
    # Control: the same file serves where its id is not reserved.
    put_tool(project, "file-system/read", f"open({str(canary)!r}, 'w').close()\n{OK}")
    assert not canary.exists()
    assert call(project, "file-system/read")["status"] == "success"
    assert canary.exists()


def test_a_file_that_appears_changes_or_goes_is_noticed_at_the_next_call(project):
    assert call(project)["code"] == "item_not_found"
    path = put_tool(project, "my/tool", 'return {"success": True, "output": "1"}')
    assert call(project)["data"]["output"] == "1"
    before = path.stat()
    put_tool(project, "my/tool", 'return {"success": True, "output": "2"}')
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert call(project)["data"]["output"] == "2"
    path.write_bytes(path.read_bytes().replace(b'"2"', b'"3"'))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert call(project)["code"] == "tampered"
    path.unlink()
    assert call(project)["code"] == "item_not_found"


def test_a_key_that_goes_is_noticed_at_the_next_call(project, user_space):
    put_tool(project, "my/tool")
    assert call(project)["status"] == "success"
    (user_space / f".ai/trusted_keys/{MINE.public.fingerprint}.toml").unlink()
    assert call(project)["code"] == "untrusted_key"
    trust_key()
    assert call(project)["status"] == "success"


def test_another_users_space_is_judged_by_its_own_keys(project, tmp_path, monkeypatch):
    put_tool(project, "my/tool")
    assert [call(project)["status"] for _ in range(2)] == ["success"] * 2
    monkeypatch.setenv("USER_SPACE", str(tmp_path / "other"))
    assert call(project)["code"] == "untrusted_key"


def test_the_users_tool_serves_every_project_and_the_projects_own_comes_first(project, user_space):
    put_tool(user_space, "my/tool", 'return {"success": True, "output": "user"}')
    assert call(project)["item"]["space"] == "user"
    put_tool(project, "my/tool", 'return {"success": True, "output": "project"}')
    assert (call(project)["item"]["space"], call(project)["data"]["output"]) == ("project", "project")


def test_of_two_extensions_python_always_comes_first(project):
    put_tool(project, "my/tool")
    put(project, "tools/my/tool.yaml", b"not: signed\n")
    put(project, "tools/my/tool.sh", b"exit 1\n")
    assert call(project)["status"] == "success"
    (project / ".ai/tools/my/tool.py").unlink()
    assert call(project)["code"] == "unsigned"


# --- verify ---


def _refused(project, canary):
    naughty = f"open({str(canary)!r}, 'w').close()"
    good = signed(tool_text("my/tool", more=naughty))
    return {
        "unsigned": tool_text("my/tool", more=naughty),
        "malformed": good.replace(b"\n", b" x\n", 1),
        "tampered": good.replace(b"1.2.3", b"1.2.4"),
        "untrusted_key": signed(tool_text("my/tool", more=naughty), STRANGER),
        "misplaced": signed(tool_text("my/tool", category="yours", more=naughty)),
        "valid": good,
    }


@pytest.mark.parametrize("verdict", ["unsigned", "malformed", "tampered", "untrusted_key", "misplaced"])
@pytest.mark.parametrize("dry_run", [False, True])
def test_what_is_not_valid_is_refused_before_anything_of_it_runs(project, tmp_path, verdict, dry_run):
    canary = tmp_path / "canary"
    trust_key()
    files = _refused(project, canary)
    put(project, "tools/my/tool.py", files[verdict])
    response = call(project, parameters={"unknown": 1}, dry_run=dry_run)
    assert (response["status"], response["code"], response["metadata"]["ran"]) == ("error", verdict, False)
    assert (response["data"]["success"], response["data"]["error"]) == (False, response["error"])
    assert "item" not in response, "nothing of an unverified file is told"
    assert not canary.exists()
    # Control: signed, trusted and in its place the same text fires.
    put(project, "tools/my/tool.py", files["valid"])
    assert call(project)["status"] == "success"
    assert canary.exists()


def test_an_unverified_file_is_not_even_parsed(project):
    """What is no Python at all gets the verdict on its signature, not on its syntax; control: signed, on its syntax."""
    trust_key()
    put(project, "tools/my/tool.py", b"def f(:\n")
    assert call(project)["code"] == "unsigned"
    put(project, "tools/my/tool.py", signed(b"def f(:\n"))
    assert call(project)["code"] == "malformed_item"


def test_a_tool_bound_to_another_id_does_not_serve(project):
    trust_key()
    put(project, "tools/my/tool.py", signed(tool_text("my/tool", bound="my/other")))
    assert call(project)["code"] == "misplaced"


def test_a_key_that_the_project_brings_counts_for_nothing(project):
    put(project, "tools/my/tool.py", signed(tool_text("my/tool"), STRANGER))
    put(project, "trusted_keys/s.toml", render_key_document(STRANGER.public, "rye-registry"))
    response = call(project)
    assert response["code"] == "untrusted_key"
    assert "rye-registry" not in json.dumps(response), "an owner's claim is no fact"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"name": "other"}, "no_entry_point"),
        ({"more": "return 1"}, "malformed_item"),
        ({"more": "from __future__ import gravity"}, "malformed_item"),
        ({"more": "__timeout__ = 'soon'"}, "malformed_item"),
        ({"more": "__timeout__ = -1"}, "malformed_item"),
        ({"more": "__timeout__ = True"}, "malformed_item"),
        ({"more": "__requires_rye__ = '>=99'"}, "rye_too_old"),
        ({"more": "__requires_rye__ = 'new'"}, "malformed_item"),
        ({"more": "__executor_id__ = 'my/runtime'"}, "runtime_missing"),
        ({"more": "CONFIG_SCHEMA = {'type': 'array'}"}, "malformed_item"),
        ({"more": "CONFIG_SCHEMA = {'properties': {'a': {'type': 'sting'}}}"}, "bad_schema"),
        ({"more": "CONFIG_SCHEMA = {'properties': {'a': {'default': {1, 2}}}}"}, "bad_schema"),
        ({"more": "CONFIG_SCHEMA = {'properties': {'a': {'$ref': 'http://127.0.0.1:9/x'}}}"}, "bad_schema"),
    ],
)
def test_a_signed_tool_that_cannot_run_is_an_answer_that_says_why(project, options, code):
    put_tool(project, "my/tool", **options)
    response = call(project)
    assert (response["status"], response["code"]) == ("error", code), response


# --- validate ---

SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "format": "workspace-path"},
        "limit": {"type": "integer", "minimum": 1, "default": 20},
        "mode": {"enum": ["a", "b"], "default": "a"},
        "options": {
            "type": "object",
            "properties": {"deep": {"type": "array", "items": {"properties": {"level": {"type": "integer", "default": 7}}}}},
            "default": {"from": "schema"},
        },
    },
    "required": ["file_path"],
    "additionalProperties": False,
}
ECHO = 'return {"success": True, "params": params}'


def test_all_problems_stand_in_one_message_with_what_was_given_and_what_is_wanted(project):
    put_tool(project, "my/tool", ECHO, SCHEMA)
    response = call(project, parameters={"limit": 0, "mode": "c", "file_pth": "x"})
    assert response["code"] == "invalid_parameters"
    message = response["error"]
    assert "unknown parameter 'file_pth', did you mean 'file_path'?" in message
    assert len(response["details"]["problems"]) == 4
    for part in (
        "limit: 0",
        '"c"',
        '"file_path" is a required property',
        "limit=0",
        "file_path (string, required)",
        "default 20",
    ):
        assert part in message, part
    assert response["data"]["problems"] == response["details"]["problems"]


@pytest.mark.parametrize(
    "parameters",
    [
        [],
        "text",
        3,
        {1: 2},
        {"file_path": b"x"},
        {"file_path": {1}},
        {"file_path": float("nan")},
        {"file_path": None},
        {"file_path": {("a", "b"): 1}},
        {"file_path": object()},
    ],
)
def test_parameters_of_any_other_kind_are_an_answer_too(project, parameters):
    put_tool(project, "my/tool", ECHO, SCHEMA)
    assert call(project, parameters=parameters)["code"] == "invalid_parameters"


def test_parameters_that_contain_themselves_or_are_bottomless_are_an_answer_too(project):
    put_tool(project, "my/tool", ECHO, {"type": "object", "properties": {"a": {}}})
    circle = {}
    circle["a"] = circle
    deep = []
    for _ in range(50_000):
        deep = [deep]
    for parameters in (circle, {"a": deep}):
        assert call(project, parameters=parameters)["code"] == "invalid_parameters"
    assert call(project, parameters={"a": [[[]]]})["status"] == "success"


def test_defaults_are_filled_in_at_every_depth_and_the_callers_object_is_left_alone(project):
    put_tool(project, "my/tool", ECHO, SCHEMA)
    given = {"file_path": "a", "options": {"deep": [{}, {"level": 1}]}}
    before = json.dumps(given)
    params = call(project, parameters=given)["data"]["params"]
    assert params == {"file_path": "a", "limit": 20, "mode": "a", "options": {"deep": [{"level": 7}, {"level": 1}]}}
    assert json.dumps(given) == before
    assert call(project, parameters={"file_path": "a"})["data"]["params"]["options"] == {"from": "schema"}


def test_a_default_that_a_tool_changes_is_itself_again_at_the_next_call(project):
    put_tool(project, "my/tool", 'params["options"]["from"] = "tool"\n' + ECHO, SCHEMA)
    call(project, parameters={"file_path": "a"})
    put_tool(project, "my/tool", ECHO + "\n#", SCHEMA)
    put_tool(
        project,
        "my/same",
        'params["list"].append(1)\n' + ECHO,
        {"type": "object", "properties": {"list": {"type": "array", "default": []}}},
    )
    assert [call(project, "my/same")["data"]["params"]["list"] for _ in range(3)] == [[1], [1], [1]]


def test_values_are_never_templated_or_expanded(project):
    hostile = "${HOME} {project_path} {a} $(id) `id` %s {{x}} \\n"
    put_tool(project, "my/tool", ECHO, {"type": "object", "properties": {"text": {"type": "string"}}})
    assert call(project, parameters={"text": hostile})["data"]["params"]["text"] == hostile


# --- confine ---

PATHS = {
    "type": "object",
    "properties": {
        "one": {"type": "string", "format": "workspace-path"},
        "many": {"type": "array", "items": {"$ref": "#/$defs/path"}},
        "nested": {"type": "array", "items": {"type": "object", "properties": {"to": {"format": "workspace-path"}}}},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string", "format": "workspace-path"}]},
        "named": {"type": "object", "additionalProperties": {"$ref": "#/$defs/path"}},
        "matched": {"type": "object", "patternProperties": {"^p_": {"$ref": "#/$defs/path"}}},
        "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"$ref": "#/$defs/path"}]},
        "all": {"allOf": [{"$ref": "#/$defs/path"}]},
        "tree": {"$ref": "#/$defs/tree"},
    },
    "$defs": {
        "path": {"type": "string", "format": "workspace-path"},
        "tree": {"type": "object", "properties": {"at": {"$ref": "#/$defs/path"}, "next": {"$ref": "#/$defs/tree"}}},
    },
}
HOLDERS = {
    "one": lambda path: path,
    "many": lambda path: ["a.txt", path],
    "nested": lambda path: [{"to": "a.txt"}, {"to": path}],
    "either": lambda path: path,
    "named": lambda path: {"any": path},
    "matched": lambda path: {"p_x": path},
    "pair": lambda path: [1, path],
    "all": lambda path: path,
    "tree": lambda path: {"at": "a.txt", "next": {"next": {"at": path}}},
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_every_workspace_path_is_confined_wherever_it_stands(project, tmp_path, holder):
    canary = tmp_path / "canary"
    (tmp_path / "secret").write_bytes(b"x")
    (project / "a.txt").write_bytes(b"x")
    (project / "out").symlink_to(tmp_path)
    (project / "sub").mkdir()
    put_tool(project, "my/tool", f"open({str(canary)!r}, 'w').close()\n{OK}", PATHS)
    for hostile in ("../secret", "/etc/passwd", "out/secret", "sub/../../secret", str(tmp_path / "secret"), "", "a\0b"):
        response = call(project, parameters={holder: HOLDERS[holder](hostile)})
        assert response["code"] in ("path_outside", "bad_path", "file_not_found"), (hostile, response)
        assert not canary.exists(), hostile
    # Control: what lies inside passes.
    assert call(project, parameters={holder: HOLDERS[holder]("a.txt")})["status"] == "success"
    assert canary.exists()


# --- run ---


def test_a_dry_run_does_everything_but_run(project, tmp_path):
    canary = tmp_path / "canary"
    put_tool(
        project, "my/tool", f"open({str(canary)!r}, 'w').close()\n{OK}", SCHEMA, more=f"open({str(canary)!r}, 'w').close()"
    )
    response = call(project, parameters={"file_path": "a"}, dry_run=True)
    assert response["status"] == "validation_passed"
    assert response["data"]["parameters"]["limit"] == 20
    assert len(response["chain"]) == 3
    assert not canary.exists()
    assert call(project, parameters={"file_path": "../a"}, dry_run=True)["code"] == "path_outside"
    assert call(project, parameters={"limit": 1}, dry_run=True)["code"] == "invalid_parameters"
    assert call(project, parameters={"file_path": "a"})["status"] == "success"
    assert canary.exists()


def test_an_async_tool_can_be_called_where_a_loop_already_runs(project):
    import asyncio

    put_tool(project, "my/tool", "import asyncio\nawait asyncio.sleep(0)\n" + OK, is_async=True)

    async def host():
        return call(project)

    assert asyncio.run(host())["status"] == "success"


def test_a_failure_result_is_an_error_with_the_tools_own_code(project):
    put_tool(project, "my/tool", 'return {"success": False, "error": "Not today.", "code": "closed", "when": "Monday"}')
    response = call(project)
    assert (response["status"], response["error"], response["code"]) == ("error", "Not today.", "closed")
    assert response["data"]["when"] == "Monday"
    put_tool(project, "my/tool", 'return {"success": False}')
    assert call(project)["code"] == "tool_failed"


def test_a_tools_rye_error_is_its_failure_result(project):
    put_tool(
        project,
        "my/tool",
        'from rye.workspace.workspace import Workspace\nwith Workspace(project_path) as w:\n    w.open_file("gone")',
    )
    response = call(project)
    assert response["data"]["success"] is False
    assert response["code"] == "file_not_found"
    assert "Traceback" not in json.dumps(response)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('raise KeyError("s3cret")', "KeyError"),
        ('raise SystemExit("s3cret")', "SystemExit"),
        ("import sys\nsys.exit(0)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ('class Own(BaseException): pass\nraise Own("s3cret")', "Own"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("def f(): f()\nf()", "RecursionError"),
        ('class E(Exception):\n    def __str__(self): raise RuntimeError("inner")\nraise E', "E"),
    ],
)
def test_a_crash_is_an_answer_with_an_id_whose_traceback_stands_in_the_log_only(project, caplog, body, kind):
    put_tool(project, "my/tool", body)
    with caplog.at_level(logging.INFO, "rye"):
        response = call(project)
    assert (response["status"], response["code"]) == ("error", "tool_crashed")
    error_id = response["data"]["error_id"]
    assert kind in response["error"]
    assert error_id in response["error"]
    told = json.dumps(response)
    assert "Traceback" not in told
    assert "s3cret" not in told
    (record,) = [record for record in caplog.records if getattr(record, "error_id", "") == error_id]
    assert kind in record.trace
    assert "Traceback" in record.trace


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ("return None", "NoneType, not a dict"),
        ("return [1]", "list, not a dict"),
        ('return "text"', "str, not a dict"),
        ('return {"output": "x"}', "a dict without success"),
        ('return {"success": True, "x": {1}}', "no JSON (TypeError: Object of type set is not JSON serializable)"),
        ('return {"success": True, "x": b"bytes"}', "no JSON (TypeError: Object of type bytes is"),
        ('return {"success": True, "x": float("nan")}', "no JSON (ValueError: Out of range float"),
        ('d = {"success": True}\nd["d"] = d\nreturn d', "no JSON (ValueError: Circular reference"),
        ('class Odd:\n    def __str__(self): raise RuntimeError\nreturn {"success": True, "x": Odd()}', "no JSON (TypeError:"),
    ],
)
def test_what_is_no_result_is_refused_in_words_that_say_what_to_return(project, body, wrong):
    put_tool(project, "my/tool", body)
    response = call(project)
    assert (response["status"], response["code"]) == ("error", "bad_tool_result")
    assert "The function of my/tool returned " in response["error"]
    assert wrong in response["error"]
    assert 'Let it return {"success": True, "output": text}' in response["error"]


def test_a_crash_while_the_module_loads_is_the_tools_crash(project):
    put_tool(project, "my/tool", more="1 / 0")
    assert call(project)["code"] == "tool_crashed"
    put_tool(project, "my/tool", more="import no_such_module_here")
    assert call(project)["code"] == "tool_crashed"


def test_an_async_crash_is_the_same(project):
    put_tool(project, "my/tool", "raise SystemExit(3)", is_async=True)
    assert call(project)["code"] == "tool_crashed"


# --- deadline ---


def _wait(condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


LATE = """import os, time
from rye.toolkit import replace_file
while not os.path.exists(params["gate"]):
    time.sleep(0.01)
said = []
for attempt in (
    lambda: replace_file(project_path, "toolkit.txt", "late", tool="my/tool"),
    lambda: replace_file(project_path, "made/by/toolkit.txt", "late", tool="my/tool"),
):
    try:
        attempt()
        said.append("written")
    except Exception as err:
        said.append(getattr(err, "code", type(err).__name__))
with open(os.path.join(project_path, "naive.txt"), "w") as file:
    file.write(" ".join(said))
return {"success": True}"""


def test_past_its_limit_a_call_is_answered_and_nothing_is_written_through_the_toolkit(project, tmp_path):
    gate = tmp_path / "gate"
    put_tool(project, "my/tool", LATE, {"type": "object", "properties": {"gate": {"type": "string"}}}, more="__timeout__ = 0.2")
    response = call(project, parameters={"gate": str(gate)})
    assert response["code"] == "deadline_exceeded"
    assert response["data"]["success"] is False
    assert not (project / "naive.txt").exists(), "answered while the tool still waits"
    gate.touch()
    # Control: the naive write of the same tool happens after the limit.
    _wait(lambda: (project / "naive.txt").exists() and (project / "naive.txt").read_text())
    assert (project / "naive.txt").read_text() == "deadline_exceeded deadline_exceeded"
    assert not (project / "toolkit.txt").exists()
    assert not (project / "made").exists()


def test_control_in_time_the_same_tool_writes(project, tmp_path):
    gate = tmp_path / "gate"
    gate.touch()
    put_tool(project, "my/tool", LATE, {"type": "object", "properties": {"gate": {"type": "string"}}})
    assert call(project, parameters={"gate": str(gate)})["status"] == "success"
    assert (project / "toolkit.txt").read_text() == "late"
    assert (project / "made/by/toolkit.txt").read_text() == "late"


COMMITS = """import threading, time
from rye.toolkit import deadline
with deadline().commit():
    while deadline().remaining() > 0:
        time.sleep(0.005)
    time.sleep(0.1)
    with open(project_path + "/committed", "w") as file:
        file.write("whole")
{after}
return {{"success": True, "output": "committed"}}"""


def test_a_commit_under_way_at_the_limit_completes_and_is_told(project):
    put_tool(project, "my/tool", COMMITS.format(after=""), more="__timeout__ = 0.2")
    response = call(project)
    assert (project / "committed").read_text() == "whole"
    # Whichever comes first, the tool's own word or the limit's: the caller learns that the write was made.
    if response["status"] == "error":
        assert response["data"]["commits_completed"] == 1
    else:
        assert response["data"]["output"] == "committed"


def test_a_commit_that_was_made_before_the_limit_is_told_even_if_the_tool_never_ends(project, tmp_path):
    gate = tmp_path / "gate"
    put_tool(
        project,
        "my/tool",
        COMMITS.format(after=f"import os\nwhile not os.path.exists({str(gate)!r}):\n    time.sleep(0.01)"),
        more="__timeout__ = 0.2",
    )
    response = call(project)
    gate.touch()
    assert (project / "committed").read_text() == "whole"
    assert response["code"] == "deadline_exceeded"
    assert response["data"]["commits_completed"] == 1
    assert "1 write" in response["error"]


def test_the_runtimes_own_maximum_holds(project):
    """A tool cannot give itself more than the signed runtime allows: seen in what `deadline()` says inside."""
    left = 'from rye.call.context import deadline\nreturn {"success": True, "left": deadline().remaining()}'
    for declared, most in (("1e9", 3600), ("float('inf')", 300), ("5", 5)):
        put_tool(project, "my/tool", left, more=f"__timeout__ = {declared}")
        assert most - 4 < call(project)["data"]["left"] <= most, declared
    put_tool(project, "my/tool", left, more="__timeout__ = 1e999")
    assert call(project)["data"]["code"] == "malformed_item"
    put_tool(project, "my/tool", left)
    assert 290 < call(project)["data"]["left"] <= 300


# --- log ---


def test_events_carry_item_digest_and_duration_and_never_a_parameter(project, caplog):
    put_tool(project, "my/tool", ECHO, {"type": "object", "properties": {"password": {"type": "string"}}})
    with caplog.at_level(logging.DEBUG, "rye"):
        response = call(project, parameters={"password": "hunter2"})
        call(project, parameters={"password": ["hunter2"]})
        call(project, parameters={"pasword": "hunter2"})
    events = [record.getMessage() for record in caplog.records]
    assert events == ["start", "success", "start", "error", "start", "error"]
    assert {record.item for record in caplog.records} == {"my/tool"}
    done = caplog.records[1]
    assert done.digest == response["item"]["digest"]
    assert done.duration_ms > 0
    assert caplog.records[3].code == "invalid_parameters"
    assert not any("hunter2" in repr(vars(record)) for record in caplog.records)
    # Control: a record that did carry it would be seen.
    logging.getLogger("rye.executor.executor").warning("x", extra={"parameters": {"password": "hunter2"}})
    assert "hunter2" in repr(vars(caplog.records[-1]))


def test_no_bytecode_is_written_or_read(project):
    path = put_tool(project, "my/tool", 'return {"success": True, "output": "source"}')
    import py_compile

    evil = project / "evil.py"
    evil.write_bytes(tool_text("my/tool", 'return {"success": True, "output": "evil"}'))
    cached = path.parent / "__pycache__" / f"tool.{sys.implementation.cache_tag}.pyc"
    py_compile.compile(str(evil), str(cached), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    before = cached.read_bytes()
    assert call(project)["data"]["output"] == "source"
    assert cached.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir() if entry.suffix != ".py"] == ["__pycache__"]
    # Control: Python's own import of that file runs the poisoned cache.
    namespace = {}
    import importlib.util

    spec = importlib.util.spec_from_file_location("tool", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    namespace.update(vars(module))
    assert namespace["execute"]({}, "")["output"] == "evil"

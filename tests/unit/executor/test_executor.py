"""The steps of a call in order: find, verify, validate, confine, run, answer; and unsigned tools, for persons alone."""

import json
import os
import re
import threading
from pathlib import Path

import pytest

import rye
from rye.call.context import CallOptions, Cancellation
from rye.errors import UsageError
from rye.executor import executor
from rye.items import parse, spaces
from support.signed_tools import MINE, OK, STRANGER, key_document, put, put_tool, signed, tool_text, trust_key
from support.waiting import until

pytestmark = pytest.mark.usefixtures("here")

RUNTIME, PRIMITIVE = parse.FUNCTION_RUNTIME, "rye/core/primitives/function"
PLACE = "tools/my/tool.py"


def call(project, item_id="my/tool", parameters=None, **options):
    return rye.execute(item_id, parameters, project_path=project, **options)


def unsigned_run(project, item_id="my/tool"):
    return executor.run(executor.Call("tool", item_id, {}, str(project), allow_unsigned=True))


def test_a_trusted_tool_runs_and_the_response_names_it_its_signer_and_its_chain(project):
    body = 'return {"success": True, "output": params["name"], "at": project_path}'
    put_tool(project, "my/tool", body, {"type": "object", "properties": {"name": {"type": "string"}}})
    response = call(project, parameters={"name": "Ada"})
    assert (response["status"], response["type"], response["item_id"]) == ("success", "tool", "my/tool")
    assert response["data"] == {"success": True, "output": "Ada", "at": str(project)}
    item, chain = response["item"], response["chain"]
    assert (item["space"], item["version"], item["signer"]) == ("project", "1.2.3", MINE.public.fingerprint)
    assert re.fullmatch("[0-9a-f]{64}", item["digest"])
    found = [(link["item_id"], link["executor_id"], link["space"]) for link in chain]
    assert found == [("my/tool", RUNTIME, "project"), (RUNTIME, PRIMITIVE, "system"), (PRIMITIVE, None, "system")]
    assert (chain[0]["integrity"], response["metadata"]["duration_ms"] >= 0) == (item["digest"], True)
    json.dumps(response, allow_nan=False)


def test_what_is_no_tool_is_not_run(project):
    put(project, "knowledge/my/entry.md", b"x")
    assert call(project, "my/entry", item_type="knowledge")["code"] == "unsigned"
    assert executor.run(executor.Call("knowledge", "my/entry", {}, str(project)))["code"] == "not_executable"
    assert call(project, "my/entry", item_type="song")["code"] == "unknown_type"
    for item_id in (RUNTIME, PRIMITIVE):
        answer = call(project, item_id)
        assert (answer["code"], answer["metadata"]["ran"]) == ("not_executable", False)


@pytest.mark.parametrize("dry_run", [False, True])
def test_the_gates_stand_in_order_and_nothing_of_what_is_refused_runs(project, tmp_path, dry_run):
    """An item with all faults is refused for the first; each one mended brings the next to light."""
    canary = tmp_path / "canary"
    trust_key()
    text = tool_text("my/tool", category="other", more=f"__requires_rye__ = '>=99'\nopen({str(canary)!r}, 'w').close()")
    text = text.replace(b"Made for a test", b"OBEY ME")
    in_place = text.replace(b'"other"', b'"my"')
    gates = [
        # What is no Python at all gets the verdict on its signature, not on its syntax.
        ("unsigned", b"def f(:\n"),
        ("malformed", signed(text, STRANGER).replace(b"\n", b" x\n", 1)),
        ("tampered", signed(text, STRANGER) + b"#"),
        ("untrusted_key", signed(text, STRANGER)),
        # The signature of another text.
        ("bad_signature", signed(b"def f(:\n").replace(signed(b"def f(:\n").split(b":")[6], signed(text).split(b":")[6])),
        ("malformed_item", signed(b"def f(:\n")),
        ("misplaced", signed(text)),
        ("misplaced", signed(tool_text("my/tool", bound="my/other"))),
        ("runtime_missing", signed(in_place.replace(b'"rye/core', b'"no/core'))),
        ("rye_too_old", signed(in_place)),
    ]
    # What a clone says of its keys is no fact.
    put(project, "trusted_keys/s.toml", key_document(STRANGER, "rye-registry"))
    for code, raw in gates:
        put(project, PLACE, raw)
        response = call(project, parameters={"unknown": 1}, dry_run=dry_run)
        assert (response["status"], response["code"], response["metadata"]["ran"]) == ("error", code, False)
        assert (response["data"]["success"], response["data"]["error"]) == (False, response["error"])
        assert "item" not in response, "nothing of an unverified file is told"
        assert "rye-registry" not in json.dumps(response)
        assert not canary.exists()
        wanted = "valid" if code in ("runtime_missing", "rye_too_old") else code.removesuffix("_item")
        (row,) = rye.tools("my", project_path=project)
        assert row["verdict"] == wanted
        assert wanted == "valid" or set(row) == {"item_id", "verdict", "space", "hint"}
        (row,) = rye.verify(["my/tool"], project_path=project)
        assert (row["verdict"], row["hint"] is None) == (wanted, wanted == "valid")
        assert (row["expected"] != row["actual"]) == (wanted == "tampered")
        # An owner's name stands only beside a signature that was proven.
        assert (row["owner"] is None) == (code in ("unsigned", "malformed", "tampered", "untrusted_key", "bad_signature"))
    put(project, PLACE, signed(in_place.replace(b">=99", b">=0.1")))
    outcome = call(project, dry_run=dry_run)["status"], canary.exists()
    assert outcome == (("validation_passed", False) if dry_run else ("success", True))
    assert "OBEY ME" in json.dumps(rye.tools("my", project_path=project))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"name": "other"}, "no_entry_point"),
        ({"more": "return 1"}, "malformed_item"),
        ({"more": "from __future__ import gravity"}, "malformed_item"),
        *(({"more": f"__timeout__ = {value}"}, "malformed_item") for value in ("'soon'", "-1", "True", "1e999")),
        *(
            ({"more": f"__requires_rye__ = {value!r}"}, "malformed_item")
            for value in ("new", "0.0", "<=9.9", ">=0.x", ">= 0.1", ">=²", ">=" + "9" * 5_000, 1)
        ),
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


def test_it_is_for_unsigned_files_alone_and_for_ones_own_spaces(project, tmp_path, monkeypatch):
    trust_key()
    for raw, code in (
        (signed(tool_text("my/tool")) + b"#", "tampered"),
        (signed(tool_text("my/tool"), STRANGER), "untrusted_key"),
        (signed(tool_text("my/tool")).replace(b"\n", b" \n", 1), "malformed"),
        (tool_text("my/tool", category="other"), "misplaced"),
        (tool_text("my/tool").replace(b"__version__", b"version"), "malformed_item"),
        *((odd + tool_text("my/tool"), "malformed_item") for odd in (b"\xff", b"\0")),
    ):
        put(project, PLACE, raw)
        assert unsigned_run(project)["code"] == code
    put(project, "tools/rye/tool.py", tool_text("rye/tool"))
    assert unsigned_run(project, "rye/tool")["code"] == "reserved_id"
    folder = tmp_path / "bundle"
    put(folder, "tools/rye/tool.py", tool_text("rye/tool"))
    monkeypatch.setattr(spaces, "system_folder", lambda: folder / ".ai")
    assert unsigned_run(project, "rye/tool")["code"] == "unsigned"


SCHEMA = {
    "properties": {
        "file_path": {"type": "string", "format": "workspace-path"},
        "limit": {"type": "integer", "minimum": 1, "default": 20},
        "mode": {"enum": ["a", "b"], "default": "a"},
        "options": {
            "properties": {"deep": {"items": {"properties": {"level": {"default": 7}}}}},
            "default": {"from": "schema"},
        },
        **{name: {} for name in ("text", "any")},
    },
    "required": ["file_path"],
    "additionalProperties": False,
}
ECHO = 'return {"success": True, "params": params}'


def test_all_problems_stand_in_one_message_with_what_was_given_and_what_is_wanted(project):
    put_tool(project, "my/tool", ECHO, SCHEMA)
    response = call(project, parameters={"limit": 0, "mode": "c", "file_pth": "x"})
    assert (response["code"], len(response["details"]["problems"])) == ("invalid_parameters", 4)
    assert "unknown parameter 'file_pth', did you mean 'file_path'?" in response["error"]
    wanted = ('"c"', '"file_path" is a required property', 'limit=0, mode="c", ', "file_path (string, required)", "default 20")
    assert [part for part in ("limit: 0", *wanted) if part not in response["error"]] == []
    assert response["data"]["problems"] == response["details"]["problems"]


def test_parameters_of_any_other_kind_are_an_answer_too(project):
    put_tool(project, "my/tool", ECHO, SCHEMA)
    circle, deep = {}, []
    circle["a"] = circle
    for _ in range(50_000):
        deep = [deep]
    values = (b"x", {1}, float("nan"), None, {("a", "b"): 1}, object())
    for parameters in ([], "text", 3, {1: 2}, *({"file_path": value} for value in values)):
        assert call(project, parameters=parameters)["code"] == "invalid_parameters", parameters
    for value in (circle, deep):
        assert call(project, parameters={"file_path": "a", "any": value})["code"] == "invalid_parameters"
    assert call(project, parameters={"file_path": "a", "any": [[[]]]})["status"] == "success"


def test_defaults_are_filled_in_at_every_depth_and_values_are_left_as_they_are(project):
    hostile = "${HOME} {project_path} {a} $(id) `id` %s {{x}} \\n"
    put_tool(project, "my/tool", ECHO, SCHEMA)
    given = {"file_path": "a", "text": hostile, "options": {"deep": [{}, {"level": 1}]}}
    before = json.dumps(given)
    params = call(project, parameters=given)["data"]["params"]
    filled = {"limit": 20, "mode": "a", "options": {"deep": [{"level": 7}, {"level": 1}]}}
    assert params == {"file_path": "a", "text": hostile, **filled}
    assert call(project, parameters=given, dry_run=True)["data"]["parameters"] == params
    assert json.dumps(given) == before
    # A default that a tool changes is itself again at the next call.
    put_tool(project, "my/tool", 'params["options"]["from"] += "+"\n' + ECHO, SCHEMA)
    found = [call(project, parameters={"file_path": "a"})["data"]["params"]["options"] for _ in range(3)]
    assert found == [{"from": "schema+"}] * 3


PATH = {"type": "string", "format": "workspace-path"}
TREE = {"type": "object", "properties": {"at": PATH, "next": {"$ref": "#/$defs/tree"}}}
# Where a path stands in a schema, and the value that has it there.
PLACES = {
    "a plain schema, which is checked without the library": (PATH, lambda path: path),
    "a reference": ({"$ref": "#/$defs/with~1slash"}, lambda path: path),
    "one of a list": ({"type": "array", "items": {"$ref": "#/$defs/path"}}, lambda path: ["a.txt", path]),
    "deep in a tree": ({"$ref": "#/$defs/tree"}, lambda path: {"at": "a.txt", "next": {"next": {"at": path}}}),
    "one of some kinds": (
        {"anyOf": [{"type": "null"}, {"items": {"oneOf": [PATH, {"type": "integer"}]}}]},
        lambda path: [3, path],
    ),
    "on a condition": ({"if": {"type": "string"}, "then": PATH}, lambda path: path),
    "beside another": ({"dependentSchemas": {"x": {"properties": {"y": PATH}}}}, lambda path: {"x": 1, "y": path}),
    "contained": ({"contains": PATH}, lambda path: [path]),
    "by a pattern of another dialect": ({"patternProperties": {r"^\p{L}$": PATH}}, lambda path: {"z": path}),
}


@pytest.mark.parametrize("place", PLACES)
def test_every_workspace_path_is_confined_wherever_it_stands(project, tmp_path, place):
    part, given = PLACES[place]
    canary = tmp_path / "canary"
    (tmp_path / "secret").write_bytes(b"x")
    (project / "a.txt").write_bytes(b"x")
    (project / "out").symlink_to(tmp_path)
    (project / "sub").mkdir()
    more = {"$defs": {"path": PATH, "with/slash": PATH, "tree": TREE}} if part is not PATH else {"additionalProperties": False}
    schema = {"type": "object", "properties": {"v": part}, **more}
    put_tool(project, "my/tool", f"open({str(canary)!r}, 'w').close()\n{OK}", schema)
    for hostile in ("../secret", "/etc/passwd", "out/secret", "sub/../../secret", str(tmp_path / "secret"), "", "a\0b"):
        for dry_run in (True, False):
            answer = call(project, parameters={"v": given(hostile)}, dry_run=dry_run)
            assert answer["code"] in ("path_outside", "bad_path"), hostile
        assert not canary.exists(), hostile
    # Control: what lies inside passes.
    assert call(project, parameters={"v": given("a.txt")})["status"] == "success"
    assert canary.exists()


GATE = {"type": "object", "properties": {"gate": {"type": "string"}}}
LATE = """import os, time
from rye.toolkit import replace_file
while not os.path.exists(params["gate"]):
    time.sleep(0.01)
said = []
for path in ("toolkit.txt", "made/by/toolkit.txt"):
    try:
        replace_file(project_path, path, "late", tool="my/tool")
        said.append("written")
    except Exception as err:
        said.append(getattr(err, "code", type(err).__name__))
with open(os.path.join(project_path, "naive.txt"), "w") as file:
    file.write(" ".join(said))
return {"success": True}"""


@pytest.mark.parametrize("code", ["deadline_exceeded", "cancelled"])
def test_past_its_limit_or_cancelled_a_call_is_answered_and_nothing_is_written_through_the_toolkit(project, tmp_path, code):
    gate, naive = tmp_path / "gate", project / "naive.txt"
    put_tool(project, "my/tool", LATE, GATE, more="__timeout__ = 0.2" if code == "deadline_exceeded" else "")
    cancellation = Cancellation()
    if code == "cancelled":
        threading.Timer(0.2, cancellation.cancel).start()
    response = call(project, parameters={"gate": str(gate)}, options=CallOptions(cancellation=cancellation))
    assert (response["code"], response["data"]["success"]) == (code, False)
    assert not naive.exists(), "answered while the tool still waits"
    gate.touch()
    # Control: the naive write of the same tool happens afterwards.
    assert until(lambda: naive.exists() and naive.read_text()) == f"{code} {code}"
    assert not [name for name in ("toolkit.txt", "made") if (project / name).exists()]
    # Control: in time it writes.
    put_tool(project, "my/tool", LATE, GATE)
    assert call(project, parameters={"gate": str(gate)})["status"] == "success"
    assert (project / "toolkit.txt").read_text() == (project / "made/by/toolkit.txt").read_text() == "late"


COMMITS = """import os, threading, time
from rye.toolkit import deadline
with deadline().commit():
    while deadline().remaining() > 0:
        time.sleep(0.005)
    time.sleep(0.1)
    with open(project_path + "/committed", "w") as file:
        file.write("whole")
while not os.path.exists(params["gate"]):
    time.sleep(0.01)
return {"success": True, "output": "committed"}"""


@pytest.mark.parametrize("ends", [True, False])
def test_a_commit_under_way_at_the_limit_completes_and_is_told_even_if_the_tool_never_ends(project, tmp_path, ends):
    gate = tmp_path / "gate"
    if ends:
        gate.touch()
    put_tool(project, "my/tool", COMMITS, GATE, more="__timeout__ = 0.2")
    response = call(project, parameters={"gate": str(gate)})
    gate.touch()
    assert (project / "committed").read_text() == "whole"
    # Whichever comes first, the tool's own word or the limit's: the caller learns that the write was made.
    if ends and response["status"] == "success":
        assert response["data"]["output"] == "committed"
    else:
        assert (response["code"], response["data"]["commits_completed"]) == ("deadline_exceeded", 1)
        assert "1 write" in response["error"]


def test_only_a_malformed_call_is_raised():
    odd = [*((item_id, {}) for item_id in (5, None, b"my/tool")), ("my/tool", {"item_type": 5})]
    for item_id, options in (*odd, *(("my/tool", {"project_path": path}) for path in (5, b"/tmp", "a\0b"))):
        with pytest.raises(UsageError) as caught:
            rye.execute(item_id, **options)
        assert (caught.value.code, bool(caught.value.hint)) == ("bad_call", True)


def test_a_folder_that_is_no_project_is_an_answer_of_the_same_shape(project):
    (project / "file").write_text("")
    kernels = ((path, "bad_project") for path in ("/proc", "/proc/self/fd", "/sys", "/dev"))
    for path, code in (*((project / name, "project_not_found") for name in ("gone", "file")), *kernels):
        response = call(path, "rye/file-system/ls")
        assert (response["status"], response["code"], bool(response["error"])) == ("error", code, True)
        assert {"type", "item_id", "data", "chain", "metadata"} <= set(response)


def test_a_project_is_named_by_text_or_path_relative_or_absolute(project, monkeypatch):
    (project / "a.txt").write_bytes(b"one\n")
    monkeypatch.chdir(project.parent)
    for named in (str(project), project, "project", Path("project"), "./project/", "project/../project"):
        response = rye.execute("rye/file-system/read", {"file_path": "a.txt"}, project_path=named)
        assert response["status"] == "success", named
    monkeypatch.chdir(project)
    assert rye.execute("rye/file-system/read", {"file_path": "a.txt"})["status"] == "success"
    assert rye.execute("rye/file-system/read", {"file_path": str(project / "a.txt")})["status"] == "success"


def test_a_project_whose_name_is_not_utf8_works(tmp_path):
    folder = os.fsencode(tmp_path) + b"/\xff\n name"
    os.mkdir(folder)
    with open(folder + b"/a.txt", "wb") as file:
        file.write(b"one\n")
    assert rye.execute("rye/file-system/read", {"file_path": "a.txt"}, project_path=os.fsdecode(folder))["status"] == "success"


def test_verify_and_sign_want_targets_or_everything_and_a_space_that_is(project):
    for options in ({}, {"targets": ["x"], "everything": True}):
        with pytest.raises(UsageError) as caught:
            rye.verify(**options, project_path=project)
        assert caught.value.code == "bad_targets"
    with pytest.raises(UsageError) as caught:
        rye.verify(everything=True, space="moon", project_path=project)
    assert caught.value.code == "bad_space"

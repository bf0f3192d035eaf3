"""Tools of other signers in their confined process: the exchange, its bounds, how it ends, and what it says of itself."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from unittest import mock

import pytest

import rye
from rye.call.context import CallOptions, Cancellation
from rye.executor import worker_pool
from rye.sandbox import sandbox
from support.harness import environment
from support.shell_calls import processes, set_sandbox
from support.signed_tools import OK, put_tool, signed, tool_text
from support.waiting import PATIENCE, until

READ, WRITE = "__permissions__ = ['read']", "__permissions__ = ['write']"
PID = 'import os\nreturn {"success": True, "pid": os.getpid()}'
# Of a worker's command line.
WAITS = "executor.worker"


def call(project, parameters=None, **options):
    return rye.execute("my/tool", parameters, project_path=project, **options)


def test_a_tool_runs_in_a_process_of_its_own_and_the_response_says_what_held(project):
    schema = {"type": "object", "properties": {"text": {"type": "string"}, "most": {"type": "integer", "default": 3}}}
    body = 'return {"success": True, "at": project_path, "given": {**params, "text": ascii(params["text"])}}'
    put_tool(project, "my/tool", body, schema, more=READ)
    response = call(project, {"text": "π \ud800 \x00"})
    assert response["status"] == "success", response
    assert response["data"] == {"success": True, "at": str(project), "given": {"text": ascii("π \ud800 \x00"), "most": 3}}
    said = response["isolation"]
    assert (said["permissions"], said["kind"] in ("bubblewrap", "landlock", "none")) == (["read"], True)
    assert (type(said["holds"]), type(said["missing"])) == (list, dict)
    assert call(project, {"text": ""}, dry_run=True)["isolation"] == said
    json.dumps(response, allow_nan=False)


@pytest.mark.parametrize(
    ("declared", "granted"),
    [
        ("", []),
        ("__permissions__ = []", []),
        ("__permissions__ = ['run', 'read']", ["read", "run"]),
        ("__permissions__ = ('write', 'network')", ["read", "write", "network"]),
        ("__permissions__ = list(['read'])", []),
    ],
)
def test_it_gets_what_it_declares_in_literals_and_the_profile_leaves_and_nothing_else(project, monkeypatch, declared, granted):
    put_tool(project, "my/tool", more=declared)
    assert call(project)["isolation"]["permissions"] == granted
    (row,) = [row for row in rye.tools(project_path=project) if row["item_id"] == "my/tool"]
    assert row["permissions"] == granted
    monkeypatch.setenv("RAGIX_PROFILE", "safe-read-only")
    assert call(project)["isolation"]["permissions"] == [one for one in granted if one != "write"]


def test_what_is_no_permission_is_refused_before_anything_runs(project):
    for declared in ("['fly']", "['read', 'Write']", "'read'", "['read', 1]", "[['read']]", "{'read': True}"):
        put_tool(project, "my/tool", more=f"__permissions__ = {declared}")
        response = call(project)
        assert (response["status"], response["code"], response["metadata"]["ran"]) == ("error", "malformed_item", False)
        assert all(one in response["error"] for one in ("__permissions__", "read, write, network, run"))


def test_the_file_is_not_opened_again(project, monkeypatch):
    """The file changes after it was verified and before the child begins; control: the next call sees the change."""
    path = put_tool(project, "my/tool", 'return {"success": True, "output": "verified"}', more=READ)
    take = worker_pool.pool.take

    def swap(policy):
        path.write_bytes(signed(tool_text("my/tool", 'return {"success": True, "output": "swapped"}', more=READ)))
        return take(policy)

    monkeypatch.setattr(worker_pool.pool, "take", swap)
    assert call(project)["data"]["output"] == "verified"
    assert call(project)["data"]["output"] == "swapped"
    monkeypatch.setattr(worker_pool.pool, "take", mock.Mock(side_effect=OSError(24, "Too many open files")))
    assert (call(project)["code"], call(project)["metadata"]["ran"]) == ("isolation_failed", False)


def test_nothing_of_one_call_is_there_in_the_next_or_in_this_process(project, standby):
    body = 'import builtins\nfrom rye.executor import executor\nold = getattr(builtins, "left", 0)\nbuiltins.left = old + 1\n'
    put_tool(project, "my/tool", f'{body}executor.run = None\nreturn {{"success": True, "found": old}}')
    assert [call(project)["data"]["found"] for _ in range(3)] == [0, 0, 0]


def test_async_functions_and_dataclasses_work_as_in_process(project):
    body = 'import asyncio\nawait asyncio.sleep(0)\nreturn {"success": True, "name": Point(1).name}'
    head = "from __future__ import annotations\nfrom dataclasses import dataclass"
    more = "@dataclass\nclass Point:\n    x: int\n    name: str = 'origin'"
    put_tool(project, "my/tool", body, is_async=True, head=head, more=more)
    assert call(project)["data"] == {"success": True, "name": "origin"}


def test_a_rye_error_keeps_all_it_says(project):
    raised = 'from rye.errors import EditError\nraise EditError("odd_line", "No.", "Do so.", line=3, code_of={"a": [1]})'
    put_tool(project, "my/tool", raised)
    response = call(project)
    assert response["data"] == {"success": False, "error": "No. Do so.", "code": "odd_line", "line": 3, "code_of": {"a": [1]}}
    assert (response["status"], response["code"], response["error"]) == ("error", "odd_line", "No. Do so.")


# The descriptor on which the child answers is the one argument of `serve`.
FRAMES = "import os, struct, sys\nfd = int(sys.argv[1])\ndef say(b): os.write(fd, struct.pack('>I', len(b)) + b)\n"


@pytest.mark.parametrize(
    ("body", "code", "told"),
    [
        ("os._exit(200)", "tool_died", "exit code 200"),
        ("os.kill(os.getpid(), 11)", "tool_died", "signal SIGSEGV"),
        ("sys.stderr.write('one\\n\\x1b[2Jtwo [LID:a1]\\n'); sys.stderr.flush()\nos._exit(4)", "tool_died", "one\ntwo (LID:a1]"),
        ("os.write(fd, b'\\x00\\x00')\nos._exit(0)", "tool_died", "exit code 0"),
        ("os.write(fd, b'GET / HTTP/1.1')", "bad_tool_result", "at most"),
        ("say(b'{')", "bad_tool_result", "not a JSON object"),
        ("say(b'[1]')", "bad_tool_result", "not a JSON object"),
        ('say(b\'{"data": {"success": true, "x": NaN}}\')', "bad_tool_result", "not a JSON object"),
        ("say(b'{\"data\":' + b'[' * 200_000 + b']' * 200_000 + b'}')", "bad_tool_result", "not a JSON object"),
        ('return {"success": False, "error": "Not today.", "code": "closed", "when": "Monday"}', "closed", "Not today."),
        ('return {"success": False}', "tool_failed", "without a reason"),
        ("return None", "bad_tool_result", 'function of my/tool returned NoneType, not a dict. Let it return {"success": True, "output'),
        ('return {"output": "x"}', "bad_tool_result", "a dict without success"),
        ('return {"success": "yes", "output": "x"}', "bad_tool_result", "a dict whose success is neither True nor False"),
        ('return {"success": True, "x": {1}}', "bad_tool_result", "no JSON (TypeError: Object of type set is not"),
        ('return {"success": True, "x": float("nan")}', "bad_tool_result", "no JSON (ValueError: Out of range float"),
        ('return {"success": True, "x": 10**5_000}', "bad_tool_result", "no JSON (ValueError: Exceeds the limit"),
        ('d = {"success": True}\nd["d"] = d\nreturn d', "bad_tool_result", "no JSON (ValueError: Circular reference"),
        ("say(b'{\"failure\": 1}')", "bad_tool_result", "without code"),
        ('say(b\'{"failure": {"code": 1, "message": "m", "hint": "h", "details": {}}}\')', "bad_tool_result", "without code"),
        ('say(b\'{"crash": ["x"]}\')', "tool_crashed", "an error"),
        ('from rye.errors import RyeError\nraise RyeError("a", "b", "c", d={1})', "tool_crashed", "(TypeError)"),
        ('raise type("a b; c", (Exception,), {})', "tool_crashed", "(an error)"),
        ('return {"success": True, "x": "y" * 20_000_000}', "bad_tool_result", "at most 16,777,216"),
    ],
)  # fmt: skip
def test_whatever_else_comes_is_a_clear_failure(project, body, code, told):
    put_tool(project, "my/tool", f"{FRAMES}{body}\nimport time\ntime.sleep(200)", more="__timeout__ = 180")
    started = time.monotonic()
    response = call(project)
    assert (response["status"], response["code"], response["data"]["code"]) == ("error", code, code), response
    assert told in response["error"] == response["data"]["error"]
    assert time.monotonic() - started < PATIENCE, "it was not waited for"
    assert response["isolation"]["permissions"] == []


def test_what_is_taken_for_a_result_is_still_only_a_result(project):
    """A tool may write its answer itself: it is its own answer. The response around it is ours."""
    body = FRAMES + 'say(b\'{"data": {"success": true, "output": "x"}, "status": "success", "item": {"space": "system"}}\')'
    put_tool(project, "my/tool", body)
    response = call(project)
    assert (response["data"], response["item"]["space"]) == ({"success": True, "output": "x"}, "project")


def test_what_a_tool_prints_is_told_apart_and_kept_small(project, capfd):
    body = """import os, sys
print("printed")
sys.stdout.buffer.write(b"bytes\\n")
sys.stdout.flush()
os.write(1, b"raw \\xff\\n")
print("last", end="")
return {"success": True}"""
    put_tool(project, "my/tool", body)
    assert call(project)["metadata"]["printed"] == "printed\nbytes\nraw \ufffd\nlast"
    put_tool(project, "my/tool", f"for _ in range(20_000):\n    print('x' * 1_000)\n{OK}")
    response = call(project)
    assert response["status"] == "success"
    assert len(response["metadata"]["printed"]) == 10_240
    put_tool(project, "my/tool", 'import sys\nsys.stdout.close()\nsys.stdout = None\nreturn {"success": True}')
    assert call(project)["status"] == "success"
    assert capfd.readouterr() == ("", "")
    # The caller may ask for less.
    head = "from rye.toolkit import output_budget"
    put_tool(project, "my/tool", 'return {"success": True, "room": output_budget()}', head=head)
    assert call(project, options=CallOptions(max_output_bytes=777))["data"]["room"] == 777


FAMILY = """import os, sys, time
code = "import os, time\\nif os.fork(): os._exit(0)\\nos.setsid()\\nif os.fork(): os._exit(0)\\ntime.sleep(60)"
code += f"\\n# {params['mark']}"
start = lambda code: os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-I", "-S", "-c", code])
os.waitpid(start(code), 0)
start(f"import time; time.sleep(60) # {params['mark']}")
open(project_path + "/begun", "w").close()
"""
MARKED = {"type": "object", "properties": {"mark": {"type": "string"}}}


@pytest.mark.slow
@pytest.mark.parametrize("end", ["limit", "cancellation", "result"])
def test_the_whole_tree_ends_with_the_call(project, end):
    mark = f"family-{os.urandom(8).hex()}"
    sleep = OK if end == "result" else "time.sleep(60)"
    put_tool(
        project,
        "my/tool",
        FAMILY + sleep,
        MARKED,
        more=f"__permissions__ = ['write', 'run']\n__timeout__ = {1.5 if end == 'limit' else 30}",
    )
    cancellation = Cancellation()
    if end == "cancellation":
        threading.Thread(target=lambda: until((project / "begun").exists) and cancellation.cancel()).start()
    response = call(project, {"mark": mark}, options=CallOptions(cancellation=cancellation))
    assert (project / "begun").exists(), response
    if end == "result":
        assert response["status"] == "success", response
        until(lambda: not processes(mark), 3)
    else:
        assert response["code"] == {"limit": "deadline_exceeded", "cancellation": "cancelled"}[end], response
        assert ("killed" in response["error"], response["data"]["killed"]) == (True, True)
        assert processes(mark) == [], "told only once it is so"


@pytest.mark.slow
def test_control_in_process_a_tool_outlives_its_limit(project, here):
    mark = f"family-{os.urandom(8).hex()}"
    put_tool(project, "my/tool", FAMILY + "time.sleep(3)", MARKED, more="__timeout__ = 1")
    assert call(project, {"mark": mark})["code"] == "deadline_exceeded"
    until(lambda: len(processes(mark)) == 2)
    for pid in processes(mark):
        os.kill(pid, 9)


HOST = """
import sys, time, rye
assert rye.execute("my/tool", project_path=".")["status"] == "success"
print("answered", flush=True)
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize("seconds", ["0.7", "600"], ids=["exit", "kill"])
def test_the_waiting_child_ends_with_its_parent(project, unconfined, seconds):
    put_tool(project, "my/tool", more=READ)
    command = [sys.executable, "-c", HOST, seconds]
    with subprocess.Popen(command, cwd=project, env=environment(), stdout=subprocess.PIPE) as host:
        assert host.stdout.readline() == b"answered\n"
        until(lambda: processes(WAITS, str(project)))
        if seconds == "600":
            host.kill()
    until(lambda: not processes(WAITS, str(project)), 5)


def waiting(project, others=()):
    (found,) = until(lambda: set(processes(WAITS, str(project))) - {*others})
    return found


def test_a_waiting_child_serves_one_call_of_its_own_terms(project, unconfined, standby):
    put_tool(project, "my/tool", PID, more=READ)
    cold = call(project)["data"]["pid"]
    first = waiting(project, [cold])
    assert call(project)["data"]["pid"] == first
    second = waiting(project, [cold, first])
    # Other permissions are other terms.
    put_tool(project, "my/tool", PID, more=WRITE)
    written = call(project)
    assert written["isolation"]["permissions"] == ["read", "write"]
    assert second in processes(WAITS, str(project))
    # One that died is replaced; both have to be there.
    waiting(project, [cold, first, second, written["data"]["pid"]])
    for pid in processes(WAITS, str(project)):
        os.kill(pid, 9)
    until(lambda: not processes(WAITS, str(project)))
    # Who waits for it is told a moment later.
    time.sleep(0.3)
    assert call(project)["status"] == "success"


@pytest.mark.slow
def test_waiting_children_are_few_and_end_when_idle(tmp_path, user_space, unconfined, standby, monkeypatch):
    put_tool(user_space, "my/tool", PID, more=READ)
    places = [str(tmp_path / str(number)) for number in range(6)]
    for place in places:
        os.mkdir(place)
        waiting(place, [call(place)["data"]["pid"]])
    # Those that waited longest are ended.
    until(lambda: [place for place in places if processes(WAITS, place)] == places[2:])
    monkeypatch.setattr(worker_pool, "_IDLE", 0.5)
    (tmp_path / "last").mkdir()
    own = call(tmp_path / "last")["data"]["pid"]
    waiting(tmp_path / "last", [own])
    until(lambda: not processes(WAITS, str(tmp_path / "last")))


def test_without_a_sandbox_the_response_says_none_and_the_toolkit_is_whole(project, unconfined):
    body = f'from rye.toolkit import replace_file\nreplace_file(project_path, "a.txt", "x\\n", tool="my/tool")\n{OK}'
    put_tool(project, "my/tool", body)
    assert call(project)["code"] == "permission_missing"
    put_tool(project, "my/tool", body, more=WRITE)
    response = call(project)
    assert (response["isolation"]["kind"], response["isolation"]["holds"]) == ("none", [])
    # Unconfined it edits whatever it declares, and as every edit it can be undone.
    assert response["status"] == "success", response
    undone = rye.execute("rye/file-system/undo", {}, project_path=project)
    assert undone["status"] == "success", undone


def test_where_a_sandbox_is_required_and_there_is_none_nothing_runs(project, user_space, tmp_path, monkeypatch):
    canary = tmp_path / "canary"
    put_tool(project, "my/tool", f"open({str(canary)!r}, 'w').close()\n{OK}")
    monkeypatch.setattr(sandbox, "layers", lambda: {"bubblewrap": "not installed", "landlock": "not this kernel"})
    # A project can require it as well.
    for whose in (project, user_space):
        set_sandbox(whose, "require")
        for dry_run in (True, False):
            response = call(project, dry_run=dry_run)
            assert (response["status"], response["code"]) == ("error", "sandbox_unavailable")
            assert "not this kernel" in response["error"]
        set_sandbox(whose, "auto")
    assert not canary.exists()
    # Control: without the requirement it runs, and the response says that nothing held it.
    response = call(project)
    assert (response["status"], response["isolation"]["kind"]) == ("success", "none")
    assert canary.exists()
    assert "not this kernel" in response["isolation"]["missing"]["writes_outside"]


def test_where_rye_lies_in_the_project_a_tool_without_leave_to_read_runs_and_the_response_says_what_it_sees(user_space):
    root = Path(rye.__file__).parents[2]
    put_tool(user_space, "my/tool")
    response = rye.execute("my/tool", project_path=root)
    assert response["status"] == "success", response
    assert "project_hidden" not in response["isolation"]["holds"]
    assert response["isolation"]["missing"]["project_hidden"]
    set_sandbox(user_space, "require")
    assert rye.execute("my/tool", project_path=root)["code"] == "sandbox_unavailable"

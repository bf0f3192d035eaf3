"""The MCP server over stdio, as a client sees it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time

import pytest

import rye
from rye.mcp_server import listing
from rye.trust import decisions
from support.in_process import rye as run_rye
from support.mcp_peer import ARGUMENTS, environment, peer
from support.shell_calls import set_sandbox, sleepers
from support.signed_tools import MINE, OK, put_tool
from support.waiting import until


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A project and its server, for the tests that need no server of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("USER_SPACE", str(tmp_path_factory.mktemp("user")))
        folder = tmp_path_factory.mktemp("shared")
        with peer(folder, "--structured") as server:
            yield folder, server


@pytest.fixture
def server(shared):
    """The shared server, what it has told so far forgotten."""
    shared[1].notices.clear()
    return shared[1]


def test_a_tool_is_listed_with_all_that_a_client_needs_to_judge_it(shared, server):
    project, _ = shared
    tools = server.tools()
    again = server.tools()
    assert list(tools) == list(again) == ["read", "write", *list(ARGUMENTS)[2:]]
    known = {tool["item_id"]: tool for tool in rye.tools(project_path=project)}
    for tool in tools.values():
        row = known[tool["_meta"]["rye/item_id"]]
        assert (tool["_meta"]["rye/digest"], tool["_meta"]["rye/signer"]) == (row["digest"], row["signer"])
        assert tool["title"]
        assert len(tool["description"]) <= 1_500
        for point in ("Requires: ", "Does not: ", "Side effects: ", "Returns: ", "Prefer"):
            assert f"\n{point}" in tool["description"], (tool["name"], point)
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
    read = {"title": "Read", "readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
    assert tools["read"]["annotations"] == read
    assert not tools["edit_lines"]["annotations"]["readOnlyHint"]
    # About four bytes make a token: `benchmarks/agent_edits` counts them in two tokenizers.
    short = [{name: tool[name] for name in ("name", "description", "inputSchema")} for tool in tools.values()]
    assert sum(len(json.dumps(one, separators=(",", ":"))) for one in short) < 7_100


@pytest.mark.slow
def test_the_selection_decides_what_is_listed_and_what_the_primary_tools_reach(project):
    put_tool(project, "my/tools/count")
    put_tool(project, "my/other/thing")
    with peer(project) as server:
        assert "my__tools__count" not in server.tools()
        assert "Unknown tool" in server.ask("tools/call", {"name": "my__tools__count", "arguments": {}})["error"]["message"]
    with peer(project, "--category", "my/tools", "--category", "rye/primary-tools") as server:
        assert list(server.tools())[len(listing.DIRECT) :] == ["my__tools__count"]
        assert server.text("my__tools__count") == "done"
    with peer(project, "--meta", "--structured", "--category", "my/tools") as server:
        assert {"rye_execute", "rye_load", "rye_search"} <= set(server.tools())
        assert "rye_sign" not in server.tools()
        inside = {"item_type": "tool", "item_id": "my/tools/count", "parameters": {}}
        assert "done" in server.call("rye_execute", inside)["content"][0]["text"]
        thing = "my/other/thing"
        for tool, other in (("rye_execute", thing), ("rye_load", thing), ("rye_execute", "rye/primary-tools/rye_sign")):
            arguments = {"item_type": "tool", "item_id": other}
            refused = server.call(tool, arguments | ({"parameters": {}} if tool == "rye_execute" else {}))
            assert refused["isError"], (tool, other)
            assert refused["structuredContent"]["code"] == "out_of_reach"
        found = server.call("rye_search", {"query": "*", "scope": "tool.my"})["structuredContent"]["results"]
        assert [row["id"] for row in found] == ["my/tools/count"]


def test_a_servers_listing_is_never_stale(project):
    put_tool(project, "my/one")
    with peer(project, "--category", "my") as server:

        def mine():
            return {name for name in server.tools() if name.startswith("my__")}

        assert mine() == {"my__one"}
        put_tool(project, "my/two")
        assert mine() == {"my__one", "my__two"}
        (project / ".ai/tools/my/one.py").write_text("# not signed\n")
        assert mine() == {"my__two"}
        refused = server.ask("tools/call", {"name": "my__one", "arguments": {}})["error"]["message"]
        assert refused == "Unknown tool: 'my__one'. my/one is not offered: `rye verify my/one` says why."
        decisions.revoke(MINE.public.digest)
        assert mine() == set()


def test_a_server_offers_what_was_named_and_nothing_that_changes_anything(project):
    put_tool(project, "my/tools/count")
    with peer(project, "--tools", "ls, rye/file-system/read,my__tools__count") as server:
        assert list(server.tools()) == ["read", "ls", "my__tools__count"]
        assert "Unknown tool" in server.ask("tools/call", {"name": "write", "arguments": {}})["error"]["message"]
    asked = ("--read-only", "--meta", "--allow-sign", "--category", "rye", "--category", "my")
    with peer(project, *asked) as server:
        tools = server.tools()
        assert {"read", "ls", "glob", "grep", "rye_search"} <= set(tools)
        assert all(tool["annotations"]["readOnlyHint"] for tool in tools.values())
        assert not {"write", "bash", "edit_lines", "rye_execute", "rye_sign", "my__tools__count"} & set(tools)
        for name in ("write", "rye_execute"):
            message = server.ask("tools/call", {"name": name, "arguments": {}})["error"]["message"]
            assert "is not offered: this server was started to read only" in message


def test_search_marks_what_the_server_does_not_offer_and_names_the_switch(server):
    found = server.call("rye_search", {"query": "fetch a web page"})
    rows = {row["id"]: row for row in found["structuredContent"]["results"]}
    assert rows["rye/web/webfetch"]["offered"] is False
    text = found["content"][0]["text"]
    assert re.search(r"^\d+\. tool rye/web/webfetch \(system, 0\.\d\d; not offered\): ", text, re.MULTILINE)
    assert "[not offered by this server: Your user can start it with `rye mcp --category rye/web`.]" in text
    # What shares one common word alone is left out; a tool that can be called comes first, by its name here.
    assert "bash" not in text
    # The help names categories that exist.
    named = re.findall(r"--category (\S+/\S+)", run_rye("mcp", "--help", cwd="/").stdout.decode())
    assert named
    assert all(rye.tools(category=name) for name in named)
    first, *rest = server.call("rye_search", {"query": "read a file", "limit": 30})["content"][0]["text"].splitlines()
    assert first.startswith("1. tool read (system, ")
    offered = [("not offered" not in line) for line in rest if re.match(r"\d+\. ", line)]
    assert offered == sorted(offered, reverse=True)
    assert not all(offered)
    for name in ("webfetch", "rye/web/webfetch"):
        message = server.ask("tools/call", {"name": name, "arguments": {}})["error"]["message"]
        assert "rye/web/webfetch is installed, but this server does not offer it" in message
        assert "`rye mcp --category rye/web`" in message
    assert "`rye mcp --meta`" in server.ask("tools/call", {"name": "rye_load", "arguments": {}})["error"]["message"]
    # Control: what is offered is not marked, and is called by the id that the search shows, too.
    assert not server.call("rye/file-system/ls", {}).get("isError")
    found = server.call("rye_search", {"query": "read a text file", "scope": "tool.rye.file-system"})
    assert "not offered" not in found["content"][0]["text"]


def test_signing_is_offered_on_request_only_and_then_the_user_still_decides(project):
    put_tool(project, "my/tool")
    wanted = {"item_type": "tool", "item_id": "my/tool", "source": "project"}
    with peer(project, "--allow-sign", "--structured") as server:
        assert "rye_sign" in server.tools()
        refused = server.call("rye_sign", wanted)
    assert refused["isError"]
    assert refused["structuredContent"]["code"] == "needs_person"


def test_no_uri_leads_elsewhere(server):
    for uri in ("rye://knowledge/../x", "file:///etc/passwd", "rye://output/..%2f..%2fx"):
        assert server.ask("resources/read", {"uri": uri})["error"]["code"] in (-32602, -32002)


def test_an_ended_command_is_a_result_with_its_exit_code(server):
    server.call("bash", {"command": "true"})
    result = server.call("bash", {"command": "echo told; echo warned >&2; exit 3"})
    assert not result["isError"]
    assert result["content"] == [{"type": "text", "text": "told\n[stderr]\nwarned\n[exit code 3]"}]
    fields = result["structuredContent"]
    assert (fields["success"], fields["exit_code"], fields["code"]) == (False, 3, "command_failed")
    # Control: what the tool could not do is an error.
    assert server.call("bash", {"command": "sleep 60", "working_dir": "nowhere"})["isError"]
    # A command that takes longer than it was given goes on as a job.
    left = server.call("bash", {"command": "sleep 60", "timeout": 0.2})
    assert not left["isError"]
    assert "ended on request" in server.text("job", action="end", job_id=left["structuredContent"]["job_id"])


def test_an_answer_is_one_text_and_nothing_twice(project):
    (project / "app.py").write_bytes(b"one\ntwo\n")
    calls = {**ARGUMENTS, "bash": {"command": "seq 1 60000"}, "job": {"action": "list"}, "read": {"file_path": "gone.py"}}
    with peer(project) as server:
        assert not any("outputSchema" in tool for tool in server.tools().values())
        for name, arguments in calls.items():
            result = server.call(name, arguments)
            assert set(result) <= {"content", "isError", "resultType"}, (name, result)
            assert [part["type"] for part in result["content"]] == ["text"], name
        cut = server.text("bash", command="seq 1 60000; echo the end")
        assert (len(cut) < 9_000, cut.startswith("1\n2\n"), "\n60000\nthe end\n" in cut) == (True, True, True)
        assert cut.rstrip().splitlines()[-1].startswith("[tool_result:"), "clients cut the middle"
    with peer(project, "--structured") as server:
        assert all("outputSchema" in tool for tool in server.tools().values())
        assert server.call("ls")["structuredContent"]["count"] > 1


def test_the_sandbox_is_told_once_and_again_when_it_changes(project, user_space):
    set_sandbox(user_space, "off")
    with peer(project) as server:
        first, second = (server.text("bash", command="echo out") for _ in range(2))
        set_sandbox(user_space, "auto")
        third, fourth = (server.text("bash", command="echo out") for _ in range(2))
    assert re.fullmatch(r"out\n\[sandbox: none; not held: .*\]", first)
    assert second == fourth == "out\n"
    assert re.fullmatch(r"out\n\[sandbox: (bubblewrap|landlock|none).*\]", third) or third == "out\n"


def test_what_a_command_printed_beyond_the_answer_is_a_resource(server):
    result = server.call("bash", {"command": "seq 1 100000"})
    uri = f"rye://output/{result['structuredContent']['output_id']}"
    assert [part["type"] for part in result["content"]] == ["text"]
    first = server.ask("resources/read", {"uri": uri})["result"]["contents"][0]["text"]
    later = server.ask("resources/read", {"uri": f"{uri}?offset=100000"})["result"]["contents"][0]["text"]
    whole = "".join(f"{number}\n" for number in range(1, 100_001))
    assert first.startswith(whole[:10_000])
    assert later.startswith(whole[100_000:110_000])


def test_a_result_that_no_window_makes_small_is_kept_whole(project):
    body = 'return {"success": True, "output": "x" * 100_000, "rows": list(range(20_000)), "small": 7}'
    put_tool(project, "my/flood", body)
    with peer(project, "--category", "my", "--structured") as server:
        result = server.call("my__flood")
        assert max(len(json.dumps(result[half])) for half in ("content", "structuredContent")) < 40_000
        assert result["structuredContent"]["small"] == 7
        uri = result["structuredContent"]["resource"]
        asked = [server.ask("resources/read", {"uri": f"{uri}?offset={at}"})["result"] for at in (0, 30, 268_800)]
    text = "".join(one["contents"][0]["text"] for one in asked)
    assert ("x" * 1_000 in text, '"small": 7' in text) == (True, True)
    # Where the fields are not sent, it is read on with `job`.
    with peer(project, "--category", "my") as server:
        result = server.call("my__flood")
        assert len(json.dumps(result["content"])) < 1_000
        call = re.search(r'job\(action="read", job_id="(\w+)"\)', result["content"][0]["text"])
        assert server.text("job", action="read", job_id=call[1]).startswith("x" * 1_000)


NOISY = """
import os, subprocess, sys, threading, time

def shout():
    while sys.argv[-1] != "control" and "rye.mcp_server.protocol" not in sys.modules:
        time.sleep(0.01)
    for _ in range(200):
        print("printed", flush=True)
        os.write(1, b"written\\n")
        sys.__stdout__.write("raw\\n")
        sys.__stdout__.flush()
        subprocess.run(["sh", "-c", "echo child; cat"], check=False)
        time.sleep(0.02)

threading.Thread(target=shout, daemon=True).start()
"""


@pytest.mark.slow
def test_nothing_but_the_protocol_reaches_standard_output(project, tmp_path):
    put_tool(project, "my/noisy", 'print("printed")\nimport os\nos.write(1, b"written\\n")\n' + OK)
    (tmp_path / "noise").mkdir()
    (tmp_path / "noise/sitecustomize.py").write_text(NOISY)
    env = environment()
    env["PYTHONPATH"] = f"{env['PYTHONPATH']}:{tmp_path / 'noise'}"
    with peer(project, "--category", "my", env=env) as server:
        assert server.text("my__noisy") == "done"
        for _ in range(5):
            assert server.text("ls")
            time.sleep(0.1)
        lines = list(server.lines)
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in lines)
    assert {b"printed\n", b"written\n", b"raw\n", b"child\n"} <= set(server.errors)
    # Control: where the descriptor is not put away, the same noise is in it.
    naive = "import time; time.sleep(0.5)"
    done = subprocess.run(
        [sys.executable, "-c", naive, "control"], env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True
    )
    assert {b"printed", b"written", b"raw", b"child"} <= set(done.stdout.split())


@pytest.mark.slow
def test_a_silent_command_still_shows_that_it_lives(shared, server):
    project, _ = shared
    waiting = "until [ -e go ]; do sleep 0.1; done; echo gone"
    _, answer = server.begin("tools/call", {"name": "bash", "arguments": {"command": waiting}}, progressToken="p2")

    def beats():
        return [notice["params"] for notice in list(server.notices) if notice["method"] == "notifications/progress"]

    assert until(lambda: len(beats()) >= 2)
    (project / "go").touch()
    assert answer()["result"]["content"][0]["text"] == "gone\n"
    numbers = [one["progress"] for one in beats()]
    assert numbers == sorted(set(numbers))
    assert not any(one.get("message") for one in beats()[:2])


EMPTY = [
    ("read", {"file_path": "e.txt", "encoding": "", "changes_since": "", "line_ids": "", "limit": "2", "offset": ""}),
    ("ls", {"path": ""}),
    ("grep", {"pattern": "two", "include": "", "mode": "", "path": ""}),
    ("bash", {"command": "cat", "stdin": "", "sandbox": "", "working_dir": "", "timeout": "5", "background": "false"}),
    ("write", {"file_path": "new.txt", "content": "", "expected_sha256": "", "encoding": ""}),
    ("undo", {"list": True, "entry_id": "", "batchId": "", "file_path": ""}),
]


def test_an_empty_text_is_absence_where_it_can_mean_nothing_else(shared, server):
    project, _ = shared
    (project / "e.txt").write_bytes(b"one\ntwo\n")
    for name, arguments in EMPTY:
        result = server.call(name, arguments)
        assert not result["isError"], result
    # An empty content still deletes.
    line_id = server.text("read", file_path="e.txt").partition("\t")[0]
    change = {"line_id": line_id, "start_line_id": "", "end_line_id": "", "after_line_id": "", "new_content": ""}
    assert not server.call("edit_lines", {"file_path": "e.txt", "changes": [change], "version": "", "on_stale": ""})["isError"]
    assert (project / "e.txt").read_bytes() == b"two\n"
    # A change that is an object may come as its JSON text: clients that hold arguments to the listed schema send no object.
    assert server.tools()["edit_lines"]["inputSchema"]["properties"]["changes"]["items"] == {"type": "string"}
    change = json.dumps({"find": "two", "replace": "2"})
    assert not server.call("edit_lines", {"file_path": "e.txt", "changes": [change]})["isError"]
    assert (project / "e.txt").read_bytes() == b"2\n"


def test_when_the_server_is_ended_so_is_what_runs(project, number):
    with peer(project) as server:
        server.begin("tools/call", {"name": "bash", "arguments": {"command": f"sleep {number} & sleep {number}"}})
        assert until(lambda: len(sleepers(number)) == 2)
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(120)
        assert until(lambda: not sleepers(number))


def test_a_picture_is_a_part_of_its_own_and_what_a_foreign_tool_makes_up_is_left_out(project):
    (project / "dot.png").write_bytes(bytes.fromhex("89504e470d0a1a0a0000000d494844520000000100000001"))
    parts = [
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "x:y", "name": "z"},
        {"type": "image", "data": 5, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "x:y"}},
        "text",
    ]
    large = 'large = {"type": "image", "data": "A" * 9_000_000, "mimeType": "image/png"}'
    put_tool(project, "my/odd", f'{large}\nreturn {{"success": True, "output": "odd", "media": [*{parts!r}, large]}}')
    with peer(project, "--category", "my", "--meta") as server:
        inside = {"item_type": "tool", "item_id": "rye/file-system/read", "parameters": {"file_path": "dot.png"}}
        assert [part["type"] for part in server.call("rye_execute", inside)["content"]] == ["text", "image"]
        text, image = server.call("read", {"file_path": "dot.png"})["content"]
        assert text["text"].startswith("[dot.png, image/png, 1 x 1 pixels, 24 bytes]")
        assert (image["type"], image["mimeType"]) == ("image", "image/png")
        text, image = server.call("my__odd")["content"]
        assert image == parts[0]
        assert "[5 of its parts left out" in text["text"]


# --- two clients on one project: each undoes its own changes, and is told whose the others are ---


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_each_clients_undo_takes_back_its_own_change(project, revision):
    with peer(project, revision=revision) as one, peer(project, revision=revision) as other:
        one.call("write", {"file_path": "one.txt", "content": "1\n"})
        other.call("write", {"file_path": "other.txt", "content": "2\n"})
        assert "one.txt by you" in one.text("undo")
        assert (project / "other.txt").exists()
        assert "other.txt by test " in one.call("undo")["content"][0]["text"]
        assert (project / "other.txt").exists()
        assert "other.txt by you" in other.text("undo")
    assert not (project / "other.txt").exists()
    # Toolsets are callers, too.
    one, other = (rye.toolset(project, only=["write", "undo"]) for _ in range(2))
    one.call("write", {"file_path": "one.txt", "content": "1\n"})
    other.call("write", {"file_path": "other.txt", "content": "2\n"})
    assert "one.txt by you" in one.call("undo")
    assert "You have no change to undo" in one.call("undo")
    assert (project / "other.txt").exists()


def test_a_person_at_a_terminal_is_told_that_the_change_is_a_clients(project):
    with peer(project) as client:
        client.call("write", {"file_path": "a.txt", "content": "1\n"})
    answer = rye.execute("rye/file-system/undo", {}, project_path=str(project))
    assert answer["code"] == "nothing_to_undo"
    assert "a.txt by test " in answer["error"]
    entry = answer["data"]["entry_id"]
    assert rye.execute("rye/file-system/undo", {"entry_id": entry}, project_path=str(project))["status"] == "success"
    assert not (project / "a.txt").exists()

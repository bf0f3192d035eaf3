"""Plain calls over stdio pass the protocol library by, and nobody can tell but by the time."""

from __future__ import annotations

import base64
import json
import queue
import re
import time

import pytest

from rye.mcp_server.messages import Peer
from rye.mcp_server.quick import QuickCalls
from support.mcp_peer import peer

PLAIN = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "read", "arguments": {"file_path": "a.txt"}}}
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


SOMEONE = Peer("someone 1", "2025-11-25")
ENVELOPE = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Started:
    """Stands for what runs calls: it keeps what was begun."""

    def __init__(self):
        self.begun = []

    def begin(self, request, cancellation, answer):
        self.begun.append((request, cancellation, answer))
        return True


@pytest.fixture
def quick():
    started, written = Started(), []
    made = QuickCalls(started, lambda name, given, caller, report: (name, given, caller, report) if name == "read" else None)
    made.answer_by(written.append)
    made.open(SOMEONE, {})
    made.started, made.written = started, written
    return made


def line(**changes):
    """Return a plain call with other members; `params__x` changes the parameters."""
    message = json.loads(json.dumps(PLAIN))
    for name, value in changes.items():
        where = message["params"] if name.startswith("params__") else message
        where[name.removeprefix("params__")] = value
    return json.dumps(message).encode()


def test_a_plain_call_is_taken(quick):
    assert quick.takes(line())
    assert quick.started.begun[0][0] == ("read", {"file_path": "a.txt"}, SOMEONE, None)
    quick.started.begun[0][2]({"resultType": "complete", "content": [{"type": "text", "text": "é"}], "isError": False}, None)
    answer = {"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": "é"}], "isError": False}}
    assert [json.loads(one) for one in quick.written] == [answer]
    assert quick.written[0].endswith(b"\n")


@pytest.mark.parametrize(
    "changes",
    [
        {"id": None},
        {"id": True},
        {"id": 1.5},
        {"jsonrpc": "1.0"},
        {"method": "tools/list"},
        {"more": 1},
        {"params": []},
        {"params__name": 1},
        {"params__name": "unknown"},
        {"params__arguments": []},
        {"params__task": {}},
        {"params___meta": {"progressToken": 1.5}},
        {"params___meta": {"progressToken": True}},
        {"params___meta": {"progressToken": None}},
        {"params___meta": []},
        {"params___meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}},
        {"params__arguments": {"file_path": "\ud800"}},
    ],
)
def test_everything_else_is_left_to_the_library(quick, changes):
    assert not quick.takes(line(**changes))
    assert not quick.started.begun


def test_what_is_no_json_is_left_to_the_library(quick):
    for text in (b'{"method": "tools/call"', b'["tools/call"]', b"tools/call", b'"tools/call"', b"[" * 5000 + b'"tools/call"'):
        assert not quick.takes(text)


def test_a_new_session_is_opened_by_the_library(quick):
    assert not quick.takes(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}')
    assert not quick.takes(line())
    quick.open(Peer("someone 2", "2026-07-28"), ENVELOPE)
    assert not quick.takes(line())
    assert not quick.takes(line(params___meta={"io.modelcontextprotocol/protocolVersion": "2026-07-28"}))
    assert quick.takes(line(params___meta={**ENVELOPE, "mine": 1}))


def test_an_id_in_use_is_left_to_the_library(quick):
    assert quick.takes(line())
    assert not quick.takes(line())
    assert not quick.takes(line(id="7"))


def test_a_cancelled_call_is_not_answered_and_its_id_is_free(quick):
    assert quick.takes(line())
    assert not quick.takes(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}')
    (_, cancellation, answer), *_ = quick.started.begun
    assert cancellation.cancelled
    assert quick.takes(line())
    answer({"content": [], "isError": False}, None)
    assert not quick.written
    quick.started.begun[1][2](None, ValueError("what went wrong"))
    failed = {"jsonrpc": "2.0", "id": 7, "error": {"code": 0, "message": "what went wrong"}}
    assert [json.loads(one) for one in quick.written] == [failed]


def test_at_the_end_of_the_input_each_call_is_answered_once(quick):
    assert quick.takes(line())
    quick.close()
    quick.started.begun[0][2]({"content": [], "isError": False}, None)
    closed = {"jsonrpc": "2.0", "id": 7, "error": {"code": -32000, "message": "Connection closed"}}
    assert [json.loads(one) for one in quick.written] == [closed]


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("options", [(), ("--structured",)])
def test_both_ways_give_the_same_answer(project, revision, options):
    (project / "a.txt").write_text("one\ntwö\n")
    (project / "dot.png").write_bytes(base64.b64decode(DOT))
    calls = [
        ("read", {"file_path": "a.txt"}),
        ("read", {"file_path": "dot.png"}),
        ("read", {"file_path": "missing.txt"}),
        ("read", {"file_path": 5}),
        ("read", {}),
        ("grep", {"pattern": "tw"}),
        ("glob", {"pattern": "*.txt"}),
        ("edit_lines", {"file_path": "a.txt", "changes": [{"line_id": "99", "new_content": "x"}]}),
        ("bash", {"command": "echo out; echo err >&2; exit 3"}),
    ]
    with peer(project, *options, revision=revision) as server:
        for name, arguments in calls:
            # The first call of a tool is the library's.
            first, plain = server.call(name, arguments), server.call(name, arguments)
            third = server.call(name, arguments, progressToken=f"{name}")
            assert varying(first) == varying(plain) == varying(third), (name, arguments)


def varying(result):
    """Return a result without what differs from call to call: what confines commands is said once in a session."""
    for name in ("duration_ms", "duration_seconds", "elapsed_ms"):
        result.get("structuredContent", {}).pop(name, None)
    for block in result["content"]:
        if "text" in block:
            block["text"] = re.sub(r"\n\[sandbox: .*\]\Z", "", block["text"])
    return result


def test_a_cancelled_command_ends_and_the_server_goes_on(project):
    with peer(project) as server:
        server.text("bash", command="true")
        number, answer = server.begin("tools/call", {"name": "bash", "arguments": {"command": "echo $$ > pid; exec sleep 600"}})
        end = time.monotonic() + 60
        while not (project / "pid").is_file() or not (project / "pid").read_text():
            assert time.monotonic() < end
            time.sleep(0.02)
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        assert "out" in server.text("bash", command="echo out")
        while "sleep 600" in server.text("bash", command="ps -eo args || true") and time.monotonic() < end:
            time.sleep(0.05)
        with pytest.raises(queue.Empty):
            answer(0.2)


def test_calls_that_were_cut_off_are_answered_at_the_end(project):
    with peer(project) as server:
        server.text("bash", command="true")
        _, answer = server.begin("tools/call", {"name": "bash", "arguments": {"command": "sleep 600"}})
        server.close()
        assert answer(60)["error"]["message"] == "Connection closed"


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
def test_progress_comes_before_the_answer_and_never_after(project, revision):
    with peer(project, revision=revision) as server:
        # By the library the first time, in the newest revision each time.
        for token in ("first", "second", 3):
            server.call("bash", {"command": "echo one; sleep 0.4; echo two"}, progressToken=token)
            lines = [json.loads(one) for one in server.lines]
            told = [one["params"] for one in lines if one.get("method") == "notifications/progress"]
            mine = [one for one in told if one["progressToken"] == token]
            assert "".join(one.get("message", "") for one in mine) == "one\ntwo\n"
            assert [one["progress"] for one in mine] == sorted({one["progress"] for one in mine})
            assert "result" in lines[-1]


def test_many_short_calls_with_a_token_are_answered(project):
    (project / "a.txt").write_text("one\n")
    with peer(project) as server:
        server.text("read", file_path="a.txt")
        waiting = [
            server.begin("tools/call", {"name": "read", "arguments": {"file_path": "a.txt"}}, progressToken=number)[1]
            for number in range(50)
        ]
        assert all("one" in answer()["result"]["content"][0]["text"] for answer in waiting)

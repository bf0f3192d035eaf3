"""What goes over the wire between a client and `rye mcp` on standard input and output: bytes sent, answers expected.

Where a table says what the protocol library would answer otherwise, the specification decides: each request is judged by itself
("the server accepts or rejects each request independently", versioning of 2026-07-28).
"""

from __future__ import annotations

import json
import os
import queue
import re
import socket
import subprocess
import threading
import time
from contextlib import suppress

import pytest

from support.mcp_peer import ARGUMENTS, META, command, environment, peer
from support.shell_calls import sleepers
from support.signed_tools import put_tool, trust_key
from support.waiting import until

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
NEWEST = "2026-07-28"
CLIENT = {"name": "wire", "version": "1"}
ENVELOPE = {f"{META}protocolVersion": NEWEST, f"{META}clientCapabilities": {}}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
ANY = object()


def request(number, method, params=None, **members):
    """Return a request of the handshake revisions."""
    return {"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params}), **members}


def enveloped(number, method, params=None, **meta):
    """Return a request of the newest revision; an entry of `_meta` that is None is left out."""
    whole = {name: part for name, part in {**ENVELOPE, **meta}.items() if part is not None}
    return request(number, method, {**(params or {}), "_meta": whole})


def hello(number=0, revision="2025-11-25", **params):
    return request(number, "initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": CLIENT, **params})


def call(number, name, **arguments):
    return request(number, "tools/call", {"name": name, "arguments": arguments})


def line(message):
    return message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"


class Wire:
    """A server for a block, what is written to it and what it writes."""

    def __init__(self, project, stdin=subprocess.PIPE, stdout=subprocess.PIPE):
        streams = {"stdin": stdin, "stdout": stdout, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command(project), env=environment(), **streams)
        self.heard, self.lines, self.listener = [], queue.SimpleQueue(), threading.Thread()
        if self.process.stdout is not None:
            self.listen(self.process.stdout)

    def listen(self, stream):
        """Take what the server writes, in a thread, until it writes no more."""

        def take():
            with stream:
                for text in stream:
                    self.lines.put(text)
            self.lines.put(b"")

        self.listener = threading.Thread(target=take, daemon=True)
        self.listener.start()

    def send(self, *messages):
        """Write messages, or bytes as they are, in one piece."""
        self.process.stdin.write(b"".join(map(line, messages)))
        self.process.stdin.flush()

    def hear(self):
        """Return the next message."""
        text = self.lines.get(timeout=60)
        assert text, "the server ended"
        self.heard.append(json.loads(text))
        return self.heard[-1]

    def ask(self, message):
        """Send a request; return its answer, which is to come next."""
        self.send(message)
        return self.hear()

    def end(self):
        """Close the server's input; return the rest of what it writes and its exit code."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        return [json.loads(text) for text in iter(lambda: self.lines.get(timeout=60), b"")], self.process.wait(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        if self.listener.ident:
            self.listener.join(60)
        for stream in filter(None, (self.process.stdin, self.process.stderr)):
            with suppress(BrokenPipeError):
                stream.close()


def holds(wanted, found):
    """Tell whether an answer is as wanted: members that are not named may be anything, a text is looked for as a pattern."""
    if wanted is ANY:
        return True
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(name in found and holds(part, found[name]) for name, part in wanted.items())
    if isinstance(wanted, re.Pattern):
        return isinstance(found, str) and bool(wanted.search(found))
    return type(wanted) is type(found) and wanted == found


def error(number, code, said=""):
    return {"id": number, "error": {"code": code, "message": re.compile(said)}}


def result(number, **members):
    return {"id": number, "result": members}


INVALID, MISSING, WRONG, PARSE = -32600, -32601, -32602, -32700
LONG = "9" * 5_000
REF = {"type": "ref/prompt", "name": "swe"}
SESSION = {
    "ping": (request(1, "ping"), result(1)),
    "ping with what is not known": (request("p", "ping", {"_meta": {"mine": 1}, "odd": 1}, more=1), result("p")),
    "an id of many digits": (request(2**70, "ping"), result(2**70)),
    "an id without a sign": (request("", "ping"), result("")),
    "a text of any sign as id": (request("ü\u2028🎉", "ping"), result("ü\u2028🎉")),
    "a cursor is taken": (request(1, "tools/list", {"cursor": "next"}), result(1, tools=ANY)),
    "a cursor of another kind": (request(1, "tools/list", {"cursor": 5}), error(1, WRONG, "cursor")),
    "call with a task": (request(1, "tools/call", {"name": "ls", "arguments": {}, "task": {}}), result(1, isError=False)),
    "call without arguments": (request(1, "tools/call", {"name": "ls"}), result(1, isError=False)),
    "call that fails": (call(1, "read", file_path="gone.txt"), result(1, isError=True)),
    "call with wrong arguments": (call(1, "read", file_path=5), result(1, isError=True)),
    "call of what is unknown": (call(1, "reed"), error(1, WRONG, "Unknown tool: 'reed'. This server has read, ")),
    "call without a name": (request(1, "tools/call", {"arguments": {}}), error(1, WRONG, "name")),
    "call without parameters": (request(1, "tools/call"), error(1, WRONG, "name")),
    "call with a list": (request(1, "tools/call", {"name": "ls", "arguments": []}), error(1, WRONG, "arguments")),
    "a _meta of another kind": (request(1, "tools/call", {"name": "ls", "_meta": []}), error(1, WRONG, "_meta")),
    "a token of another kind": (request(1, "tools/call", {"name": "ls", "_meta": {"progressToken": True}}), error(1, WRONG, "progressToken")),
    "read nothing": (request(1, "resources/read", {"uri": "rye://nothing"}), error(1, -32002)),
    "read without a URI": (request(1, "resources/read", {}), error(1, WRONG, "uri")),
    "get a prompt with numbers": (request(1, "prompts/get", {"name": "swe", "arguments": {"a": 5}}), error(1, WRONG)),
    "complete what is unknown": (request(1, "completion/complete", {"ref": {"type": "other"}, "argument": {"name": "a", "value": ""}}), error(1, WRONG)),
    "complete nothing": (request(1, "completion/complete", {"ref": REF}), error(1, WRONG, "argument")),
    "list skills": (request(1, "skills/list"), result(1, skills=ANY)),
    "a method that is not offered": (request(1, "logging/setLevel", {"level": "info"}), error(1, MISSING)),
    "a method that nobody knows": (request(1, "no/such"), error(1, MISSING)),
    "a method of the newest revision": (request(1, "server/discover"), error(1, MISSING)),
    "a notification's name as a request": (request(1, "notifications/initialized"), error(1, MISSING)),
    "no JSON": (b"{ this is no message\n", error(None, PARSE)),
    "no UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"p\xffng"}\n', error(None, PARSE)),
    "very deep": (b"[" * 100_000 + b"\n", error(None, PARSE)),
    "a batch": (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n', error(None, INVALID, "object")),
    "a number": (b"5\n", error(None, INVALID, "object")),
    "no version": ({"id": 9, "method": "ping"}, error(9, INVALID, "jsonrpc")),
    "another version": (request(9, "ping", jsonrpc="1.0"), error(9, INVALID, "jsonrpc")),
    "no method": ({"jsonrpc": "2.0", "id": "n", "params": {}}, error("n", INVALID, "method")),
    "a method that is a number": (request(9, 5), error(9, INVALID, "method")),
    "params that are a list": (request(9, "tools/call", [1]), error(9, INVALID, "params")),
    "params that are null": (b'{"jsonrpc":"2.0","id":9,"method":"ping","params":null}\n', result(9)),
    "an id that is null": (request(None, "ping"), error(None, INVALID, "id")),
    "an id that is true": (request(True, "ping"), error(None, INVALID, "id")),
    "half of a surrogate pair": (call("s", "read", file_path="\ud800"), error("s", INVALID, "surrogate")),
    "an id of half a pair": (request("\udc00", "ping"), error("\\udc00", INVALID, "surrogate")),
    "an id of very many digits": (f'{{"jsonrpc":"2.0","id":{LONG},"method":"ping"}}\n'.encode(), {"error": ANY}),
    "initialize again": (hello(4, "2025-06-18"), result(4, protocolVersion="2025-06-18")),
    "a request of the newest revision": (enveloped(5, "tools/list"), result(5, ttlMs=0, tools=ANY)),
}  # fmt: skip
SILENT = {
    "a blank line": b"\n \r\n",
    "a notification that is unknown": {"jsonrpc": "2.0", "method": "notifications/odd"},
    "roots changed": {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
    "a notification with a list": {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]},
    "cancelled a list": {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}},
    "a notification with a request's name": {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "ls"}},
    "cancelled without an id": {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}},
    "cancelled what never was": {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}},
    "an answer to nothing": {"jsonrpc": "2.0", "id": 5, "result": {}},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A project with files, and a user's space of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("USER_SPACE", str(tmp_path_factory.mktemp("user")))
        folder = tmp_path_factory.mktemp("project")
        (folder / "a.txt").write_text("".join(f"line {number} of a file\n" for number in range(200)))
        (folder / "ü漢🎉.txt").write_text("Grüße\n")
        yield folder


@pytest.fixture(scope="module")
def begun(place):
    """A session of the handshake revisions."""
    with Wire(place) as server:
        server.ask(hello())
        server.send(READY)
        yield server
        assert server.end() == ([], 0)


@pytest.mark.parametrize("row", SESSION.values(), ids=SESSION)
def test_a_request_of_a_session_is_answered(begun, row):
    sent, wanted = row
    found = begun.ask(sent)
    assert found["jsonrpc"] == "2.0"
    assert ("result" in found) != ("error" in found)
    assert holds(wanted, found), found


@pytest.mark.parametrize("sent", SILENT.values(), ids=SILENT)
def test_what_asks_nothing_is_not_answered(begun, sent):
    begun.send(sent, request("after", "ping"))
    assert begun.hear() == {"jsonrpc": "2.0", "id": "after", "result": {}}


MODERN = {
    "discover": (enveloped(1, "server/discover"), result(1, supportedVersions=ANY, capabilities={"extensions": ANY}, resultType="complete")),
    "list tools": (enveloped(1, "tools/list"), result(1, resultType="complete", ttlMs=0, cacheScope="private")),
    "say who": (enveloped(1, "tools/list", **{f"{META}clientInfo": CLIENT}), result(1, _meta={f"{META}serverInfo": {"name": "rye"}})),
    "say nobody": (enveloped(1, "tools/list", **{f"{META}clientInfo": None}), result(1, tools=ANY)),
    "call": (enveloped(1, "tools/call", {"name": "ls"}), result(1, isError=False, resultType="complete")),
    "read nothing": (enveloped(1, "resources/read", {"uri": "rye://nothing"}), error(1, WRONG)),
    "a skill": (enveloped(1, "skills/list"), result(1, skills=ANY, resultType="complete")),
    "no capabilities": (enveloped(1, "tools/list", **{f"{META}clientCapabilities": None}), error(1, WRONG, "clientCapabilities")),
    "wrong capabilities": (enveloped(1, "tools/list", **{f"{META}clientCapabilities": []}), error(1, WRONG, "clientCapabilities")),
    "a wrong client": (enveloped(1, "tools/list", **{f"{META}clientInfo": "me"}), error(1, WRONG, "clientInfo")),
    "a revision that is a number": (enveloped(1, "tools/list", **{f"{META}protocolVersion": 5}), error(1, WRONG, "protocolVersion")),
    "another revision": (enveloped(1, "tools/list", **{f"{META}protocolVersion": "2027-01-01"}), {"id": 1, "error": {"code": -32022, "data": {"supported": [NEWEST], "requested": "2027-01-01"}}}),
    "a revision with a handshake": (enveloped(1, "tools/list", **{f"{META}protocolVersion": "2025-11-25"}), error(1, -32022)),
    "ping is gone": (enveloped(1, "ping"), error(1, MISSING)),
    "unknown": (enveloped(1, "no/such"), error(1, MISSING)),
    "what the protocol adds later": (enveloped(1, "tools/list", **{f"{META}logLevel": "error"}), result(1, tools=ANY)),
}  # fmt: skip
BEFORE = {
    "ping": (request(1, "ping"), result(1)),
    "list": (request(1, "tools/list"), error(1, WRONG, "initialize")),
    "call": (call(1, "ls"), error(1, WRONG, "initialize")),
    "unknown": (request(1, "no/such"), error(1, MISSING)),
    "no revision": (request(1, "initialize", {"capabilities": {}, "clientInfo": CLIENT}), error(1, WRONG, "protocolVersion")),
    "no client": (request(1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}}), error(1, WRONG, "clientInfo")),
    "no capabilities": (request(1, "initialize", {"protocolVersion": "2025-11-25", "clientInfo": CLIENT}), error(1, WRONG, "capabilities")),
    "no parameters": (request(1, "initialize"), error(1, WRONG)),
    **{f"hello {one}": (hello(1, one), result(1, protocolVersion=one, serverInfo={"name": "rye"}, instructions=ANY)) for one in HANDSHAKES},
    "an unknown revision": (hello(1, "1999-01-01"), result(1, protocolVersion="2025-11-25")),
    "the newest revision": (hello(1, NEWEST), result(1, protocolVersion="2025-11-25")),
}  # fmt: skip


@pytest.fixture(scope="module")
def modern(place):
    """A server of which nothing was asked but by envelopes."""
    with Wire(place) as server:
        yield server
        assert server.end() == ([], 0)


@pytest.mark.parametrize("row", MODERN.values(), ids=MODERN)
def test_a_request_of_the_newest_revision_says_itself_who_asks(modern, row):
    sent, wanted = row
    found = modern.ask(sent)
    assert holds(wanted, found), found


def test_what_comes_before_the_beginning(place):
    with Wire(place) as server:
        server.send(READY, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        for name, (sent, wanted) in BEFORE.items():
            found = server.ask(sent)
            assert holds(wanted, found), (name, found)
        assert "result" in server.ask(call(2, "ls"))
        assert server.end() == ([], 0)


@pytest.mark.parametrize("as_named", [lambda number: number, str], ids=["as it was", "as a text"])
def test_a_cancelled_command_ends_is_not_answered_and_its_id_is_free(begun, as_named, number):
    begun.send(call(7, "bash", command=f"(setsid sleep {number} &); sleep {number}"))
    assert until(lambda: len(sleepers(number)) == 2)
    # Others are answered meanwhile, and the id is taken.
    assert holds(result(8, isError=False), begun.ask(call(8, "read", file_path="a.txt")))
    assert holds(error(7, INVALID, "id"), begun.ask(call(7, "ls")))
    begun.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": as_named(7), "reason": "x"}})
    assert until(lambda: not sleepers(number))
    assert holds(result(7, isError=False), begun.ask(call(7, "ls")))
    begun.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
    assert begun.ask(request("after", "ping"))["id"] == "after"


@pytest.mark.parametrize("token", ["t", 3])
def test_progress_comes_before_the_answer_under_its_token(begun, token):
    before = len(begun.heard)
    params = {"name": "bash", "arguments": {"command": "echo one; sleep 0.4; echo two"}, "_meta": {"progressToken": token}}
    begun.send(request(1, "tools/call", params))
    while "id" not in begun.hear():
        continue
    *told, answer = begun.heard[before:]
    assert holds(result(1, isError=False), answer)
    assert {one["method"] for one in told} == {"notifications/progress"}
    assert {one["params"]["progressToken"] for one in told} == {token}
    numbers = [one["params"]["progress"] for one in told]
    assert numbers == sorted(set(numbers))
    assert "".join(one["params"].get("message", "") for one in told) == "one\ntwo\n"
    assert begun.ask(request("after", "ping"))["id"] == "after"


def test_a_message_may_come_in_pieces_and_messages_in_one_piece(begun):
    text = line(request(1, "tools/call", {"name": "read", "arguments": {"file_path": "ü漢🎉.txt"}}))
    raw = json.dumps(json.loads(text), ensure_ascii=False).encode() + b"\r\n"
    for one in (text, raw):
        for at in range(len(one)):
            begun.send(one[at : at + 1])
        assert "Grüße" in begun.hear()["result"]["content"][0]["text"]
    begun.send(line(request("first", "ping")) + line(request("last", "ping"))[:-9])
    assert begun.hear()["id"] == "first"
    begun.send(line(request("last", "ping"))[-9:])
    assert begun.hear()["id"] == "last"


def test_a_long_message_is_read_and_one_that_is_too_long_is_refused_and_passed_over(place):
    with Wire(place) as server:
        server.ask(hello())
        content = "x" * (6 << 20)
        assert holds(result(1, isError=False), server.ask(call(1, "write", file_path="long.txt", content=content)))
        assert (place / "long.txt").stat().st_size == len(content)
        (place / "long.txt").unlink()
        server.send(b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"write","arguments":{"content":"')
        for _ in range(66):
            server.send(b"x" * (1 << 20))
        server.send(b'"}}}\n', request(4, "ping"))
        found = [server.hear(), server.hear()]
        assert [one.get("error", {}).get("code") for one in found] == [INVALID, None]
        assert "64 MB" in found[0]["error"]["message"]
        assert found[1]["id"] == 4
        assert server.end() == ([], 0)
        assert b"64 MB" in server.process.stderr.read()


@pytest.mark.parametrize("revision", [*HANDSHAKES, NEWEST])
def test_when_the_client_closes_its_end_what_runs_is_ended_and_answered_once(place, revision, number):
    with Wire(place) as server:
        if revision == NEWEST:
            server.send(enveloped(1, "tools/call", {"name": "bash", "arguments": {"command": f"sleep {number}"}}))
        else:
            server.ask(hello(0, revision))
            server.send(READY, call(1, "bash", command=f"sleep {number}"))
        assert until(lambda: sleepers(number))
        rest, code = server.end()
        assert (code, [one["id"] for one in rest]) == (0, [1])
        assert rest[0]["error"] == {"code": -32000, "message": "Connection closed"}
        assert until(lambda: not sleepers(number))
        assert b"Traceback" not in server.process.stderr.read()


def test_when_nobody_reads_the_answers_the_server_goes_on_and_ends_with_its_input(place, number):
    reading, writing = os.pipe()
    with Wire(place, stdout=writing) as server:
        os.close(writing)
        os.close(reading)
        server.send(hello(), READY, call(1, "ls"), call(2, "bash", command=f"sleep {number}"))
        assert until(lambda: sleepers(number))
        server.process.stdin.close()
        assert server.process.wait(60) == 0
        assert until(lambda: not sleepers(number))
        assert b"Traceback" not in server.process.stderr.read()


@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "not blocking"])
def test_over_a_socket_as_node_clients_give_it(place, blocking):
    ours, theirs = socket.socketpair()
    # The flag belongs to the end of the pair, which others may hold too.
    ours.setblocking(blocking)
    with theirs, Wire(place, stdin=ours, stdout=ours) as server:
        ours.close()
        server.listen(theirs.makefile("rb"))
        theirs.sendall(line(hello()))
        assert server.hear()["id"] == 0
        theirs.sendall(b"".join(line(call(number, "read", file_path="a.txt")) for number in range(1, 101)))
        time.sleep(0.5)
        assert sorted(server.hear()["id"] for _ in range(100)) == list(range(1, 101))
        theirs.shutdown(socket.SHUT_WR)
        assert server.end() == ([], 0)


def test_from_a_plain_file_even_without_a_line_end_at_its_end(place, tmp_path):
    asked, told = tmp_path / "asked", tmp_path / "told"
    asked.write_bytes(b"".join(map(line, [hello(), READY, request(1, "ping")]))[:-1])
    told.write_bytes(b"kept\n")
    with open(asked, "rb") as incoming, open(told, "ab") as outgoing, Wire(place, stdin=incoming, stdout=outgoing) as server:
        assert server.process.wait(60) == 0
    first, *answers = told.read_bytes().splitlines()
    assert first == b"kept"
    assert [json.loads(one)["id"] for one in answers] == [0, 1]


PARTS = """return {'success': True, 'output': 'x', 'media': [
    {'type': 'image', 'data': 'aGk=', 'mimeType': 'image/png', 'more': 1},
    {'type': 'resource', 'resource': {'uri': 'a:b', 'blob': 'aGk=', 'mimeType': 'a/b', 'more': 1}},
]}"""


@pytest.mark.parametrize("revision", [*HANDSHAKES, NEWEST])
@pytest.mark.parametrize("options", [(), ("--structured", "--meta")])
def test_each_answer_has_the_form_of_its_revision_by_the_protocol_librarys_own_models(project, revision, options):
    # It loads slowly, and each process that collects tests would load it.
    from mcp_types import methods

    trust_key()
    strange = {
        "type": "object",
        "properties": {"wide": {"type": ["string", "null"], "default": None, "enum": [None, "a"]}, "any": True},
        "additionalProperties": True,
        "examples": [None, {"wide": None}],
    }
    put_tool(project, "my/odd", schema=strange)
    put_tool(project, "my/parts", body=PARTS, schema={"type": "object", "properties": {}})
    asked = {
        **{f"{name}/list": {} for name in ("tools", "resources", "resources/templates", "prompts")},
        "prompts/get": {"name": "swe"},
        "completion/complete": {"ref": REF, "argument": {"name": "profile", "value": "d"}},
        "server/discover" if revision == NEWEST else "ping": {},
    }
    asked = [*asked.items(), *(("tools/call", {"name": name}) for name in ("ls", "my__parts", "bash", "read"))]
    with peer(project, *options, "--category", "my", revision=revision) as server:
        if revision != NEWEST:
            methods.validate_server_result("initialize", revision, server.hello)
        for method, params in asked:
            answer = server.ask(method, params)
            assert "result" in answer, answer
            found = answer["result"]
            sieved = methods.serialize_server_result(method, revision, found)
            # All that is said is of the revision, so the library's sieve keeps it.
            assert json.loads(json.dumps(sieved)) == found, (method, params)


@pytest.mark.parametrize("revision", [*HANDSHAKES, NEWEST])
def test_the_protocol_library_is_never_loaded(project, revision):
    settings = {"revision": revision, "capabilities": {"roots": {"listChanged": True}, "odd": {"more": 1}}}
    with peer(project, env=environment(PYTHONPROFILEIMPORTTIME="1"), **settings) as server:
        server.tools()
        for name, arguments in ARGUMENTS.items():
            assert not server.call(name, arguments, progressToken=name)["isError"]
        for method in ("resources/list", "prompts/list", "skills/list"):
            assert "result" in server.ask(method)
        assert "error" in server.ask("tools/call", {"name": "read", "arguments": []})
        assert "error" in server.ask("logging/setLevel", {"level": "info"})
        server.close()
    loaded = {line.rpartition(b"|")[2].strip().decode().partition(".")[0] for line in server.errors}
    assert {"rye", "pydantic_core"} <= loaded, "the control: what is loaded is seen"
    assert not {"mcp", "mcp_types", "pydantic", "anyio", "asyncio"} & loaded

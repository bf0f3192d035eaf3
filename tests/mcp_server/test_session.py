"""A session is served without the protocol library for as long as its messages are plain, and nobody can tell but by the memory."""

from __future__ import annotations

import json
import queue
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.server.runner import ServerRunner
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp_types import methods

from rye.mcp_server import messages
from rye.mcp_server.messages import ENVELOPE, ENVELOPED, HANDSHAKES
from support.mcp_peer import ARGUMENTS, META, peer
from support.signed_tools import put, put_tool, signed, trust_key

EVERY = (*HANDSHAKES, ENVELOPED)
# The library alone knows what this is, so it takes the session.
ODD = {"odd": {"more": 1}}

ASKED = [
    ("tools/list", {}),
    ("tools/list", {"cursor": "next"}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "rye://knowledge/my/page"}),
    ("resources/read", {"uri": "rye://knowledge/my/page?offset=3"}),
    ("resources/read", {"uri": "rye://nothing"}),
    ("resources/read", {"uri": "skill://knowledge/my/page/SKILL.md"}),
    ("resources/read", {"uri": 5}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "swe"}),
    ("prompts/get", {"name": "missing", "arguments": {"a": "b"}}),
    ("prompts/get", {"name": "swe", "arguments": {"profile": 5}}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "swe"}, "argument": {"name": "profile", "value": "d"}}),
    ("completion/complete", {"ref": {"type": "ref/resource", "uri": "rye://knowledge/{+id}"}, "argument": {"name": "id", "value": "p"}}),
    ("completion/complete", {"ref": {"type": "ref/other", "name": "x"}, "argument": {"name": "id", "value": "p"}}),
    ("skills/list", {}),
    ("skills/get", {"uri": "skill://knowledge/my/page/SKILL.md"}),
    ("skills/get", {"uri": "skill://missing"}),
    ("skills/get", {}),
    ("tools/call", {"name": "ls", "arguments": {}}),
    ("tools/call", {"name": "ls"}),
    ("tools/call", {"name": "lss"}),
    ("tools/call", {"name": "odd", "arguments": {}}),
    ("tools/call", {"name": "odd", "arguments": {"wide": None}}),
    ("tools/call", {"name": "parts"}),
    ("tools/call", {"name": "read", "arguments": {"file_path": 5}}),
    ("tools/call", {"arguments": {}}),
    ("ping", {}),
    ("logging/setLevel", {"level": "info"}),
    ("resources/subscribe", {"uri": "x"}),
    ("nothing/known", {"a": 1}),
    ("server/discover", {}),
]  # fmt: skip

PARTS = """return {'success': True, 'output': 'x', 'media': [
    {'type': 'image', 'data': 'aGk=', 'mimeType': 'image/png'},
    {'type': 'image', 'data': 'aGk=', 'mimeType': 'image/png', 'more': 1},
    {'type': 'audio', 'data': 'aGk=', 'mimeType': 'audio/wav', 'annotations': {'priority': 0.5}},
    {'type': 'resource', 'resource': {'uri': 'a:b', 'text': 't'}},
    {'type': 'resource', 'resource': {'uri': 'a:b', 'blob': 'aGk=', 'mimeType': 'a/b', 'more': 1}},
]}"""


@pytest.fixture
def offering(project):
    """A project with tools whose listings are unusual, and a page."""
    trust_key()
    strange = {
        "type": "object",
        "properties": {"wide": {"type": ["string", "null"], "default": None, "enum": [None, "a"]}, "any": True},
        "additionalProperties": True,
        "examples": [None, {"wide": None}],
    }
    put_tool(project, "my/odd", schema=strange)
    put_tool(project, "my/parts", body=PARTS, schema={"type": "object", "properties": {}})
    text = b"```yaml\nid: page\ntitle: A page\n```\n\nOne.\nTwo.\n"
    put(project, "knowledge/my/page.md", signed(text, item_type="knowledge", suffix=".md"))
    (project / "a.txt").write_text("one\ntwo\n")
    return project


def open_by_library(server):
    """Make the library take a session of the newest revision: it alone knows this entry of `_meta`."""
    if server.modern:
        assert "result" in server.ask("server/discover", **{f"{META}logLevel": "error"})


@pytest.mark.parametrize("revision", EVERY)
@pytest.mark.parametrize("options", [(), ("--structured", "--meta")])
def test_the_library_would_answer_the_same(offering, revision, options):
    options = (*options, "--category", "my")
    with peer(offering, *options, revision=revision) as server:
        plain = {"hello": server.hello}
        for at, (method, params) in enumerate(ASKED):
            plain[at] = without_id(server.ask(method, params))
    with peer(offering, *options, revision=revision, capabilities=ODD) as server:
        open_by_library(server)
        library = {"hello": server.hello}
        for at, (method, params) in enumerate(ASKED):
            library[at] = without_id(server.ask(method, params))
    for at, found in plain.items():
        assert found == library[at], (at, ASKED[at] if at != "hello" else "")


def without_id(answer):
    """Return an answer without its id, and without what another process answers in another way."""
    text = json.dumps({name: part for name, part in answer.items() if name != "id"})
    return json.loads(text)


@pytest.mark.parametrize("revision", EVERY)
def test_the_library_is_not_loaded_for_what_clients_do(project, revision):
    with peer(project, revision=revision, capabilities={"roots": {"listChanged": True}, "elicitation": {}}) as server:
        server.tools()
        for name, arguments in ARGUMENTS.items():
            assert not server.call(name, arguments, progressToken=name)["isError"]
        for method in ("resources/list", "prompts/list", "skills/list"):
            assert "result" in server.ask(method)
        server.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        before = server.resident()
        # The control: it is, for what the library alone can judge, and the session goes on.
        assert "error" in server.ask("tools/call", {"name": "read", "arguments": []})
        assert server.resident() > before + 12
        assert "one" in server.text("read", file_path="made.txt")
        assert set(ARGUMENTS) <= set(server.tools())
        # The beginning was told to the library; its answer to that is not for the client.
        assert all(isinstance(json.loads(line).get("id", 0), int) for line in server.lines)


@pytest.mark.parametrize("revision", ["2025-06-18", ENVELOPED])
def test_what_runs_when_the_library_takes_over_is_answered_or_cancelled(project, revision):
    with peer(project, revision=revision) as server:
        # Before the tools were listed, so that no quick way is known.
        wait = {"name": "bash", "arguments": {"command": "echo begun >> a.txt; sleep 1; echo over"}}
        _, first = server.begin("tools/call", wait)
        number, second = server.begin("tools/call", {"name": "bash", "arguments": {"command": "exec sleep 600"}})
        end = time.monotonic() + 60
        while not (project / "a.txt").exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        assert "error" in server.ask("resources/subscribe", {"uri": "x"})
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        assert "over" in first()["result"]["content"][0]["text"]
        with pytest.raises(queue.Empty):
            second(0.2)
        assert server.text("bash", command="echo alive").startswith("alive")


@pytest.mark.parametrize("revision", ["2025-11-25", ENVELOPED])
def test_what_is_cut_off_by_the_end_is_answered_once(project, revision):
    with peer(project, revision=revision) as server:
        _, answer = server.begin("tools/call", {"name": "bash", "arguments": {"command": "touch begun; sleep 600"}})
        end = time.monotonic() + 60
        while not (project / "begun").exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        server.close()
        assert answer()["error"] == {"code": -32000, "message": "Connection closed"}
        assert not server.notices


def test_a_session_that_does_not_begin_as_it_should_is_the_librarys(project):
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "again", "version": "2"}}
    with peer(project) as server:
        assert server.ask("initialize", hello)["result"]["protocolVersion"] == "2025-06-18"
        assert "result" in server.ask("tools/list")
    with peer(project, revision=ENVELOPED) as server:
        server.revision = "2025-06-18"
        assert server.ask("tools/list")["error"]["code"] == -32602
        assert server.ask("initialize", hello)["error"]["code"] == -32022
    with peer(project) as server:
        server.revision = ENVELOPED
        assert server.ask("tools/list")["error"]["code"] == -32600


# What may stand where the protocol wants something, right or wrong.
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(0, 2) | st.sampled_from(["", "a", "ref/prompt", "ref/resource", "2025-06-18"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "uri", "type", "a", "form", "listChanged"]), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip
NAMES = st.sampled_from(
    ["name", "arguments", "uri", "ref", "argument", "context", "cursor", "_meta", "task", "value", "type", "progressToken"]
)
TEXTS = st.dictionaries(st.sampled_from(["a", "name"]), st.sampled_from(["b", 1, None]), max_size=2)
LIKELY = st.fixed_dictionaries(
    {},
    optional={
        "name": st.just("read") | ANYTHING,
        "arguments": TEXTS | ANYTHING,
        "uri": st.just("rye://x") | ANYTHING,
        "ref": st.sampled_from([{"type": "ref/prompt", "name": "x"}, {"type": "ref/resource", "uri": "x"}]) | ANYTHING,
        "argument": st.just({"name": "a", "value": "b"}) | ANYTHING,
        "context": st.just({"arguments": {"a": "b"}}) | ANYTHING,
        "cursor": st.just("next") | ANYTHING,
        "_meta": st.dictionaries(st.sampled_from(["progressToken", "mine", "traceparent"]), ANYTHING, max_size=2) | ANYTHING,
    },
)
CAPABILITIES = st.dictionaries(
    st.sampled_from(["roots", "sampling", "elicitation", "experimental", "extensions", "tasks", "odd"]),
    st.sampled_from([{}, {"listChanged": True}, {"form": {}}, {"a": {}}, {"a": {"b": None}}, {"context": {}}]) | ANYTHING,
    max_size=3,
)
CLIENTS = st.fixed_dictionaries(
    {"name": st.just("someone") | ANYTHING, "version": st.just("1")},
    optional={one: st.just("t") | ANYTHING for one in ("title", "websiteUrl", "description", "icons")},
)


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(sorted(messages._PARAMS)), LIKELY)
def test_no_parameters_are_taken_that_the_library_refuses(method, params):
    if not messages.is_plain(method, params):
        return
    envelope = {f"{ENVELOPE}protocolVersion": ENVELOPED, f"{ENVELOPE}clientCapabilities": {}}
    for revision in EVERY:
        if (method, revision) in methods.CLIENT_REQUESTS:
            meta = {**params.get("_meta", {}), **(envelope if revision == ENVELOPED else {})}
            methods.validate_client_request(method, revision, {**params, "_meta": meta})


@settings(max_examples=600, deadline=None)
@given(st.sampled_from([*EVERY, "1999-01-01", 5]), CAPABILITIES | ANYTHING, CLIENTS | ANYTHING)
def test_no_beginning_is_taken_that_the_library_refuses(revision, capabilities, client):
    params = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": client}
    found = messages.hello(params)
    if found is not None:
        methods.validate_client_request("initialize", HANDSHAKES[-1], params)
        begun, agreed = ServerRunner._negotiate_initialize(params)
        assert (found[0].name, found[1]) == (begun.client_info.name, agreed)
    meta = {f"{ENVELOPE}{name}": one for name, one in (("protocolVersion", revision), ("clientCapabilities", capabilities), ("clientInfo", client))}  # fmt: skip
    asks = messages.asker(meta)
    if asks is not None:
        methods.validate_client_request("tools/list", ENVELOPED, {"_meta": meta})
        assert not isinstance(
            classify_inbound_request({"method": "tools/list", "params": {"_meta": meta}}), InboundLadderRejection
        )
        assert asks.name == client["name"]


def test_most_of_what_is_tried_is_right():
    """The control of the two tests above: what clients send is taken."""
    tried = [(method, params) for method, params in ASKED if method in messages._PARAMS]
    assert sum(messages.is_plain(*one) for one in tried) >= 22
    client = {"name": "a", "version": "1", "title": "A"}
    able = {
        "roots": {"listChanged": True},
        "sampling": {},
        "elicitation": {"form": {}, "url": {}},
        "extensions": {"a/b": {"c": 1}},
    }
    assert messages.hello({"protocolVersion": "2025-06-18", "capabilities": able, "clientInfo": client})

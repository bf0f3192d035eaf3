"""The four primary tools, as an agent calls them."""

import json
import os
import threading
import time
from pathlib import Path

import pytest

import rye
from rye import primary_tools
from rye.call import context
from rye.trust import keys
from support.signed_tools import put, put_tool, tool_text
from unit.catalog.test_search import put_entry

PRIMARY = "rye/primary-tools/rye_"


def call(name, project, **parameters):
    answer = rye.execute(f"{PRIMARY}{name}", parameters, project_path=project)
    assert answer.get("code") != "tool_crashed", answer
    return answer


def data(name, project, **parameters):
    answer = call(name, project, **parameters)
    assert answer["status"] == "success", answer
    return answer["data"]


# --- rye_execute ---


def test_execute_runs_another_tool_and_gives_its_text_once(project):
    (project / "a.txt").write_bytes(b"one\n")
    found = data("execute", project, item_id="rye/file-system/read", parameters={"file_path": "a.txt"})
    assert found["output"].endswith("one")
    assert "output" not in found["data"]
    assert (found["status"], found["item_id"], found["data"]["total_lines"]) == ("success", "rye/file-system/read", 1)
    assert [one["item_id"] for one in found["chain"]][::2] == ["rye/file-system/read", "rye/core/primitives/function"]
    again = data("execute", project, item_id="rye/file-system/read", parameters=json.dumps({"file_path": "a.txt"}))
    assert again["output"] == found["output"]
    # What it prints stays apart; knowledge is read; a dry run runs nothing.
    put_tool(project, "my/talker", 'print("chatter")\nreturn {"success": True, "output": "done"}')
    assert data("execute", project, item_id="my/talker")["output"] == "done"
    put_entry(project, "k/apples", "Apples", "Plant.")
    assert data("execute", project, item_id="k/apples", item_type="knowledge")["output"] == "Plant."
    assert data("execute", project, item_id="rye/file-system/ls", dry_run=True)["status"] == "validation_passed"


def test_a_failure_has_the_same_shape(project):
    answer = call("execute", project, item_id="rye/file-system/read", parameters={"file_path": "none"})
    assert (answer["status"], answer["code"], answer["data"]["status"]) == ("error", "file_not_found", "error")
    assert call("execute", project, item_id="rye/file-system/read", parameters={"fil": 1})["code"] == "invalid_parameters"
    assert call("execute", project, item_id="rye/file-system/reed")["code"] == "item_not_found"
    put(project, "tools/my/bare.py", tool_text("my/bare"))
    for more in ({}, {"dry_run": True}):
        assert call("execute", project, item_id="my/bare", **more)["code"] == "unsigned"
    for text in ("[1]", "{"):
        assert call("execute", project, item_id="x", parameters=text)["code"] == "bad_parameters"


def test_nesting_is_bounded(project):
    inner = {"item_id": "rye/file-system/ls", "parameters": {}}
    for _ in range(3):
        inner = {"item_id": f"{PRIMARY}execute", "parameters": inner}
    assert call("execute", project, **inner)["status"] == "success"
    inner = {"item_id": f"{PRIMARY}execute", "parameters": inner}
    assert call("execute", project, **inner)["code"] == "nested_too_deep"


# --- what is lent to a tool, and how far it reaches ---


def test_only_system_tools_that_declare_a_need_are_lent_what_it_names(project):
    body = 'from rye import primary_tools\nreturn primary_tools.sign(project_path, "tool", "x", "project")'
    put_tool(project, "my/sneaky", body, more='__needs__ = ["execute", "search", "load", "sign"]')
    assert rye.execute("my/sneaky", project_path=project)["status"] == "error"
    assert call("execute", project, item_id="my/sneaky")["status"] == "error"
    with pytest.raises(rye.RyeError):
        primary_tools.search(str(project), query="read")
    # One of the system's gets what it declares, and nothing else.
    with context.using(needs=("search",)):
        assert primary_tools.search(str(project), query="read")["success"] is True
        with pytest.raises(rye.RyeError, match="may not use 'sign'"):
            primary_tools.sign(str(project), "tool", "x", "project")


# --- rye_search, rye_load ---


def test_search_lists_and_pages(project):
    first = data("search", project, query="*", scope="tool.rye.file-system.*", limit=3, sort_by="name")
    assert [row["name"] for row in first["results"]] == ["edit_lines", "glob", "grep"]
    assert first["next_offset"] == 4
    assert 'rye_search(query="*", scope="tool.rye.file-system.*", limit=3, sort_by="name", offset=4)' in first["output"]
    rest = data("search", project, query="*", scope="tool.rye.file-system.*", sort_by="name", offset=4)
    assert not rest["truncated"]
    assert len(rest["results"]) + 3 == rest["total"]
    assert call("search", project, query="a)b")["code"] == "bad_query"
    assert "Nothing fits" in data("search", project, query="xyzzyx")["output"]


def test_load_shows_a_window_and_copies(project, user_space):
    found = data("load", project, item_type="tool", item_id="rye/file-system/ls", limit=2)
    assert (found["next_offset"], "content" in found) == (3, False)
    assert "CONFIG_SCHEMA" in data("load", project, item_type="tool", item_id="rye/file-system/ls")["output"]
    put_tool(project, "my/tool")
    assert Path(data("load", project, item_type="tool", item_id="my/tool", destination="user")["destination_path"]).exists()
    assert call("load", project, item_type="tool", item_id="rye/file-system/ls", offset=10_000)["code"] == "bad_offset"


# --- rye_sign ---


def allow(user_space):
    put(user_space, "config/rye.yaml", b"signing: {agents: allow}\n")


def test_an_agent_signs_only_with_the_users_permission(project, user_space):
    keys.generate("me")
    path = put(project, "tools/my/tool.py", tool_text("my/tool"))
    before = path.read_bytes()
    for source in ("project", "user"):
        assert call("sign", project, item_type="tool", item_id="my/tool", source=source)["code"] == "needs_person"
    nested = {"item_type": "tool", "item_id": "*"}
    assert call("execute", project, item_id=f"{PRIMARY}sign", parameters=nested)["code"] == "needs_person"
    # A project's own configuration decides nothing.
    put(project, "config/rye.yaml", b"signing: {agents: allow}\n")
    assert call("sign", project, item_type="tool", item_id="my/tool")["code"] == "needs_person"
    assert path.read_bytes() == before
    allow(user_space)
    found = data("sign", project, item_type="tool", item_id="my/tool")
    assert (found["status"], found["location"], found["item_id"]) == ("signed", "project", "my/tool")
    assert set(found["signature"]) == {"timestamp", "hash", "ed25519_sig", "pubkey_fp"}
    assert rye.execute("my/tool", project_path=project)["status"] == "success"


def test_signing_validates_and_takes_patterns(project, user_space):
    keys.generate("me")
    allow(user_space)
    for name in ("one", "two"):
        put(project, f"tools/my/{name}.py", tool_text(f"my/{name}"))
    put(project, "tools/my/three.py", b"x = 1\n")
    assert call("sign", project, item_type="tool", item_id="my/three")["status"] == "error"
    answer = call("sign", project, item_type="tool", item_id="*")
    assert (answer["status"], answer["code"]) == ("error", "not_all_signed")
    assert sorted(answer["data"]["signed"]) == ["my/one", "my/two"]
    assert [one["item"] for one in answer["data"]["failed"]] == ["my/three"]
    os.unlink(project / ".ai/tools/my/three.py")
    assert data("sign", project, item_type="tool", item_id="my/t*")["total"] == 1
    missing = call("sign", project, item_type="tool", item_id="none*")
    assert (missing["code"], missing["data"]["searched_in"]) == ("item_not_found", str(project / ".ai/tools"))
    assert call("sign", project, item_type="tool", item_id="../x")["code"] == "bad_item_id"
    assert call("sign", project, item_type="tool", item_id="x", source="system")["code"] == "invalid_parameters"


@pytest.mark.slow
def test_cancelling_the_call_ends_what_it_executes(project):
    cancellation = context.Cancellation()
    threading.Timer(1.0, cancellation.cancel).start()
    started = time.monotonic()
    asked = {"item_id": "rye/bash/bash", "parameters": {"command": "sleep 61"}}
    options = context.CallOptions(cancellation=cancellation)
    answer = rye.execute(f"{PRIMARY}execute", asked, project_path=project, options=options)
    assert time.monotonic() - started < 30
    assert (answer["status"], "cancel" in answer["error"]) == ("error", True)

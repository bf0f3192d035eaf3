"""Line IDs and the journal for tools of other signers: through their parent, within their permissions."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import rye
from support.calling import done, rows
from support.signed_tools import put, put_tool, signed, trust_key

SYSTEM = Path(rye.__file__).parents[2] / ".ai/tools/rye/file-system"
NAMES = ("read", "edit_lines", "write")


def copied(root, name, permissions):
    """Put a copy of a system tool under `my/fs/`, signed by the user."""
    raw = (SYSTEM / f"{name}.py").read_text(encoding="utf-8")
    raw = re.sub(r"\A# rye:signed:.*\n", "", raw)
    raw = raw.replace("rye/file-system", "my/fs") + f"\n__permissions__ = {permissions!r}\n"
    trust_key()
    put(root, f"tools/my/fs/{name}.py", signed(raw.encode()))


@pytest.fixture
def mine(project):
    for name in NAMES:
        copied(project, name, ["read", "write"])
    (project / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 3_001)))
    return project


def call(project, name, **parameters):
    response = rye.execute(f"my/fs/{name}", parameters, project_path=project)
    assert response.get("code") == "path_outside" or response["isolation"]["permissions"], response
    return response


def test_results_are_those_of_the_system_tools(mine, tmp_path):
    """Windows, whitespace, changes since a version, notices and refusals: word for word, but for what only we may print."""
    asked = [
        {"offset": -2},
        {"offset": 2_990},
        {"limit": 3, "show_whitespace": True},
        {"line_ids": "none", "limit": 4},
        {"offset": 9_999},
        {"file_path": "missing.txt"},
        {"file_path": "../outside"},
        {"encoding": "latin-1", "limit": 2},
    ]
    version = done("read", mine, file_path="a.txt", limit=10)["version"]
    known = rows(done("read", mine, file_path="a.txt", limit=10))
    change = {"line_id": known[4][0], "new_content": "five"}
    done("edit_lines", mine, file_path="a.txt", changes=[change])
    asked.append({"changes_since": version})
    for parameters in ({"file_path": "a.txt", **one} for one in asked):
        theirs = rye.execute("rye/file-system/read", parameters, project_path=mine)
        assert call(mine, "read", **parameters)["data"] == json.loads(
            json.dumps(theirs["data"]).replace("[tool_result", "(tool_result")
        )


@pytest.mark.parametrize(("permissions", "allowed"), [(["read"], {"read"}), (["write"], set(NAMES)), (["network"], set())])
def test_the_parent_holds_it_to_its_permissions(project, permissions, allowed):
    (project / "a.txt").write_text("secret\nb\n")
    known = rows(done("read", project, file_path="a.txt"))
    asked = {"read": {}, "edit_lines": {"changes": [{"line_id": known[1][0], "new_content": "x"}]}, "write": {"content": "y\n"}}
    for name in NAMES:
        copied(project, name, permissions)
        response = call(project, name, file_path="a.txt", **asked[name])
        assert (response["status"] == "success") == (name in allowed), response
        if name not in allowed:
            assert response["code"] == "permission_missing"
        assert "secret" not in json.dumps(response["data"]) or "read" in allowed
    assert (project / "a.txt").read_text() == ("y\n" if "write" in allowed else "secret\nb\n")


ASK = """\
from rye.toolkit import view_lines
ask = view_lines.args[0]
return {"success": True, "replies": [ask(one) for one in params["requests"]]}
"""


def replies(project, *requests, permissions=("read", "write")):
    schema = {"type": "object", "properties": {"requests": {"type": "array"}}}
    put_tool(project, "my/asker", ASK, schema, more=f"__permissions__ = {list(permissions)!r}")
    response = rye.execute("my/asker", {"requests": list(requests)}, project_path=project)
    assert response["status"] == "success", response
    return response["data"]["replies"]


VIEW = {"op": "view", "path": "a.txt", "encoding": None, "ids": True}
EDIT = {"op": "edit_lines", "path": "a.txt", "changes": ["1|x"], "version": None}
WRITE = {"op": "replace_file", "path": "a.txt", "content": "x", "encoding": "utf-8", "expected_sha256": None}
MALFORMED = [
    {},
    {"op": ["view"]},
    {"op": "view"},
    {"op": "document", "name": "printed", "args": [0, 1]},
    {**VIEW, "path": 7},
    {**EDIT, "project_path": "/"},
    {**EDIT, "changes": [7]},
    {**EDIT, "changes": [{"line_id": []}]},
    {**EDIT, "line_ids": 3},
    {**EDIT, "show": {"ids": True}},
    {**WRITE, "content": None},
    {**WRITE, "encoding": 5},
    # An encoding in which the same bytes would be other text for later reads.
    *({**one, "encoding": "utf-7"} for one in (VIEW, EDIT, WRITE)),
]


def test_malformed_requests_are_refused(project):
    (project / "a.txt").write_text("x +ACM- y\n")
    for request, reply in zip(MALFORMED, replies(project, *MALFORMED), strict=True):
        assert "failure" in reply, request
        assert re.fullmatch(r"[a-z_]+", reply["failure"]["code"]), reply
        assert (reply["failure"]["code"] == "unknown_encoding") == (request.get("encoding") == "utf-7")
    assert (project / "a.txt").read_text() == "x +ACM- y\n"


def test_methods_and_sizes_are_bounded(project):
    (project / "a.txt").write_text("a\n" * 10_000)
    asked = [
        {"op": "document", "name": name, "args": args}
        for name, args in [("store", []), ("confirm", []), ("__class__", []), ("printed", [0, 9_000]), ("texts", [5, 1])]
    ]
    texts = {"op": "document", "name": "texts", "args": [0, 2]}
    found = replies(project, VIEW, *asked, texts, {"op": "close"}, texts)
    assert "value" in found[0]
    assert [reply["failure"]["code"] for reply in found[1:6]] == ["bad_request"] * 5
    assert found[6] == {"value": ["a", "a"]}
    assert "failure" in found[8]


def test_no_path_leads_outside_or_to_what_no_tool_may_write(project, tmp_path):
    (tmp_path / "outside.txt").write_text("outside\n")
    (project / "link").symlink_to(tmp_path / "outside.txt")
    (project / ".ai/config").mkdir(parents=True)
    paths = ["../outside.txt", "link", str(tmp_path / "outside.txt"), ".git/config", ".ai/trusted_keys/x.toml", ".ai/keys/k"]
    found = replies(project, *({**WRITE, "path": path} for path in paths), *({**VIEW, "path": path} for path in paths[:3]))
    assert all("failure" in reply for reply in found)
    assert (tmp_path / "outside.txt").read_text() == "outside\n"

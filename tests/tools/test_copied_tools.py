"""A copy of a tool of the bundle under an id of one's own, signed by a user, works with line IDs; it runs in a confined worker."""

import json
import re
from pathlib import Path

import pytest

import rye
from rye.items import spaces
from support.calling import rows
from support.signed_tools import put, put_tool, signed, trust_key

NAMES = ("file-system/read", "file-system/edit_lines", "file-system/write", "file-system/undo", "workspace/get_patch_change")


def copy_tools(project, permissions):
    """Copy the file tools to `my/fs/…` as a user would: another category and id, permissions, another signature."""
    trust_key()
    for name in NAMES:
        folder, _, last = name.partition("/")
        raw = Path(spaces.system_folder(), f"tools/rye/{name}.py").read_bytes().partition(b"\n")[2]
        text = raw.replace(f'"rye/{folder}'.encode(), b'"my/fs')
        text = text.replace(b"\n__effects__", f"\n__permissions__ = {permissions!r}\n__effects__".encode(), 1)
        put(project, f"tools/my/fs/{last}.py", signed(text))


@pytest.fixture
def copies(project):
    copy_tools(project, ["read", "write"])
    return project


def call(project, item_id, **parameters):
    answer = rye.execute(item_id, parameters, project_path=project)
    assert answer["status"] == "success", answer
    return answer


@pytest.mark.parametrize(
    ("permissions", "allowed"), [(["read"], ["read"]), (["write"], ["read", "edit_lines", "write"]), (["network"], [])]
)
def test_the_parent_holds_a_copy_to_its_permissions(project, permissions, allowed):
    (project / "a.txt").write_text("secret\nb\n")
    known = rows(call(project, "rye/file-system/read", file_path="a.txt")["data"])
    asked = {"read": {}, "edit_lines": {"changes": [{"line_id": known[1][0], "new_content": "x"}]}, "write": {"content": "y\n"}}
    copy_tools(project, permissions)
    for name, more in asked.items():
        answer = rye.execute(f"my/fs/{name}", {"file_path": "a.txt", **more}, project_path=project)
        assert answer.get("code") == (None if name in allowed else "permission_missing"), answer
        assert "secret" not in json.dumps(answer["data"]) or "read" in allowed
    assert (project / "a.txt").read_text() == ("y\n" if "write" in allowed else "secret\nb\n")


def test_copies_of_read_and_edit_lines_work_with_line_ids_and_with_the_bundles_own(copies):
    (copies / "a.txt").write_text("one\ntwo\nthree\n")
    first = call(copies, "my/fs/read", file_path="a.txt")
    assert first["isolation"]["permissions"] == ["read", "write"]
    ids = [name for name, _ in rows(first["data"])]
    assert [name for name, _ in rows(call(copies, "rye/file-system/read", file_path="a.txt")["data"])] == ids
    call(copies, "my/fs/edit_lines", file_path="a.txt", changes=[{"line_id": ids[1], "new_content": "TWO"}])
    call(copies, "rye/file-system/edit_lines", file_path="a.txt", changes=[{"line_id": ids[2], "new_content": "THREE"}])
    call(copies, "my/fs/edit_lines", file_path="a.txt", changes=[{"line_id": ids[0], "new_content": "ONE"}])
    assert (copies / "a.txt").read_text() == "ONE\nTWO\nTHREE\n"
    assert "my/fs/edit_lines" in call(copies, "rye/file-system/undo", list=True)["data"]["output"]
    call(copies, "rye/file-system/undo")
    assert (copies / "a.txt").read_text() == "one\nTWO\nTHREE\n"
    call(copies, "my/fs/write", file_path="b.txt", content="new\n")
    assert (copies / "b.txt").read_text() == "new\n"
    call(copies, "rye/file-system/undo")
    assert not (copies / "b.txt").exists()


@pytest.mark.parametrize(
    ("name", "given"),
    [("undo", {}), ("undo", {"list": True}), ("get_patch_change", {"id": "0199aaaa-0000-7000-8000-000000000000"})],
)
def test_a_copy_that_needs_the_record_says_so(copies, name, given):
    call(copies, "rye/file-system/write", file_path="b.txt", content="new\n")
    answer = rye.execute(f"my/fs/{name}", given, project_path=copies)
    assert (answer["code"], "a service for tools of the system's key" in answer["error"]) == ("record_out_of_reach", True)
    call(copies, "rye/file-system/undo")


# --- what a tool of another signer may ask of its parent: line IDs, edits and whole files, within bounds ---


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
    *({}, {"op": ["view"]}, {"op": "view"}, {"op": "document", "name": "printed", "args": [0, 1]}, {**VIEW, "path": 7}),
    *({**EDIT, "changes": [one]} for one in (7, {"line_id": []})),
    *({**EDIT, **odd} for odd in ({"project_path": "/"}, {"line_ids": 3}, {"show": {"ids": True}})),
    *({**WRITE, **odd} for odd in ({"content": None}, {"encoding": 5})),
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
    assert (found[6], "failure" in found[8]) == ({"value": ["a", "a"]}, True)


def test_changes_of_several_files_are_refused_before_any_is_made_where_one_is_meant(project):
    for name in ("a.txt", "b.txt"):
        (project / name).write_text("one\n")
    body = 'edit_lines(project_path, "a.txt", ["1|x", "b.txt:1|y"])'
    put_tool(project, "my/tool", body, head="from rye.toolkit import edit_lines", more='__permissions__ = ["read", "write"]')
    assert rye.execute("my/tool", {}, project_path=project)["code"] == "one_file"
    assert [(project / name).read_text() for name in ("a.txt", "b.txt")] == ["one\n", "one\n"]


def test_no_path_leads_outside_or_to_what_no_tool_may_write(project, tmp_path):
    (tmp_path / "outside.txt").write_text("outside\n")
    (project / "link").symlink_to(tmp_path / "outside.txt")
    (project / ".ai/config").mkdir(parents=True)
    paths = ["../outside.txt", "link", str(tmp_path / "outside.txt"), ".git/config", ".ai/trusted_keys/x.toml", ".ai/keys/k"]
    found = replies(project, *({**WRITE, "path": path} for path in paths), *({**VIEW, "path": path} for path in paths[:3]))
    assert all("failure" in reply for reply in found)
    assert (tmp_path / "outside.txt").read_text() == "outside\n"

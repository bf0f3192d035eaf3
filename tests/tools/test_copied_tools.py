"""A copy of a tool of the bundle under an id of one's own, signed by a user, works with line IDs; it runs in a confined worker."""

import json
from pathlib import Path

import pytest

import rye
from rye.items import spaces
from support.calling import rows
from support.signed_tools import put, signed, trust_key

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

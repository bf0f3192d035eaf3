"""A copy of a tool of the bundle under an id of one's own, signed by a user, works with line IDs; it runs in a confined worker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rye
from rye.items import spaces
from support.signed_tools import put, signed, trust_key

NAMES = ("file-system/read", "file-system/edit_lines", "file-system/write", "file-system/undo", "workspace/get_patch_change")


@pytest.fixture
def copies(project):
    """Copy the file tools to `my/fs/…` as a user would: another category and id, permissions, another signature."""
    trust_key()
    for name in NAMES:
        folder, _, last = name.partition("/")
        raw = Path(spaces.system_folder(), f"tools/rye/{name}.py").read_bytes().partition(b"\n")[2]
        text = raw.replace(f'"rye/{folder}'.encode(), b'"my/fs')
        text = text.replace(b"\n__effects__", b'\n__permissions__ = ["read", "write"]\n__effects__', 1)
        put(project, f"tools/my/fs/{last}.py", signed(text))
    return project


def call(project, item_id, **parameters):
    answer = rye.execute(item_id, parameters, project_path=project)
    assert answer["status"] == "success", answer
    return answer


def test_copies_of_read_and_edit_lines_work_with_line_ids_and_with_the_bundles_own(copies):
    (copies / "a.txt").write_text("one\ntwo\nthree\n")
    first = call(copies, "my/fs/read", file_path="a.txt")
    assert first["isolation"]["permissions"] == ["read", "write"]
    ids = [line.partition("LID:")[2].partition("]")[0] for line in first["data"]["output"].splitlines()]
    own = call(copies, "rye/file-system/read", file_path="a.txt")["data"]["output"]
    assert [line.partition("LID:")[2].partition("]")[0] for line in own.splitlines()] == ids
    call(copies, "my/fs/edit_lines", file_path="a.txt", changes=[{"line_id": ids[1], "new_content": "TWO"}])
    call(copies, "rye/file-system/edit_lines", file_path="a.txt", changes=[{"line_id": ids[2], "new_content": "THREE"}])
    call(copies, "my/fs/edit_lines", file_path="a.txt", changes=[{"line_id": ids[0], "new_content": "ONE"}])
    assert (copies / "a.txt").read_text() == "ONE\nTWO\nTHREE\n"
    listed = call(copies, "rye/file-system/undo", list=True)["data"]["output"]
    assert "my/fs/edit_lines" in listed
    call(copies, "rye/file-system/undo")
    assert (copies / "a.txt").read_text() == "one\nTWO\nTHREE\n"
    call(copies, "my/fs/write", file_path="b.txt", content="new\n")
    assert (copies / "b.txt").read_text() == "new\n"
    call(copies, "rye/file-system/undo")
    assert not (copies / "b.txt").exists()


def test_copies_show_and_edit_the_cells_of_a_notebook(copies):
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": ["a = 1\n", "b = 2"]}
    whole = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (copies / "n.ipynb").write_text(json.dumps(whole, indent=1) + "\n")
    shown = call(copies, "my/fs/read", file_path="n.ipynb", line_ids="short")["data"]["output"]
    assert shown == call(copies, "rye/file-system/read", file_path="n.ipynb", line_ids="short")["data"]["output"]
    assert "\tb = 2\n" in shown
    call(copies, "my/fs/edit_lines", file_path="n.ipynb", changes=["10|c = 3"])
    assert json.loads((copies / "n.ipynb").read_text())["cells"][0]["source"] == ["a = 1\n", "c = 3"]


@pytest.mark.parametrize(
    ("name", "given"),
    [("undo", {}), ("undo", {"list": True}), ("get_patch_change", {"id": "0199aaaa-0000-7000-8000-000000000000"})],
)
def test_a_copy_that_needs_the_record_says_so(copies, name, given):
    call(copies, "rye/file-system/write", file_path="b.txt", content="new\n")
    answer = rye.execute(f"my/fs/{name}", given, project_path=copies)
    assert (answer["code"], "a service for tools of the system's key" in answer["error"]) == ("record_out_of_reach", True)
    call(copies, "rye/file-system/undo")

"""workspace_apply_patch: a stored batch, verified again and applied as one."""

from __future__ import annotations

import pytest

from support.calling import call
from support.workspace_calls import apply, get, insert, patch, write


@pytest.fixture
def batch(project):
    (project / "a.txt").write_bytes(b"one\n")
    (project / "b.txt").write_bytes(b"two\n")
    files = [patch(project, "a.txt", insert(0, "A")), patch(project, "b.txt", insert(1, "B"))]
    return write(project, files=files, createFiles=[{"path": "c/c.txt", "content": "C\n"}], apply=False)["result"]["batchId"]


def contents(project):
    return {path.name: path.read_bytes() for path in project.rglob("*.txt")}


OLD = {"a.txt": b"one\n", "b.txt": b"two\n"}
NEW = {"a.txt": b"A\none\n", "b.txt": b"two\nB\n", "c.txt": b"C\n"}


def test_stored_then_applied_then_undone_then_applied_again(project, batch):
    assert contents(project) == OLD
    assert not (project / "c").exists()
    assert apply(project, batch)["success"]
    assert contents(project) == NEW
    assert apply(project, batch)["code"] == "already_applied"
    assert call("undo", project, batchId=batch)["success"]
    assert contents(project) == OLD
    assert get(project, batch)["result"]["status"] == "undone"
    assert apply(project, batch)["success"]
    assert contents(project) == NEW
    assert get(project, batch)["result"]["status"] == "applied"


def test_a_dry_run_verifies_and_writes_nothing(project, batch):
    assert "+A" in apply(project, batch, dryRun=True)["output"]
    assert contents(project) == OLD
    (project / "b.txt").write_bytes(b"three\n")
    assert apply(project, batch, dryRun=True)["code"] == "invalid_batch"


@pytest.mark.parametrize(
    ("path", "data", "code"),
    [("b.txt", b"2\n", "wrong_digest"), ("c/c.txt", b"", "file_exists"), ("b.txt", None, "file_not_found")],
)
def test_one_file_that_changed_since_holds_all_back(project, batch, path, data, code):
    (project / path).parent.mkdir(exist_ok=True)
    (project / path).unlink(missing_ok=True) if data is None else (project / path).write_bytes(data)
    stands = contents(project)
    assert [one["code"] for one in apply(project, batch)["errors"]] == [code]
    assert contents(project) == stands
    assert get(project, batch)["result"]["status"] == "stored"


@pytest.mark.parametrize("name", ["", "x", "../../etc/passwd", "01a1fd27-5f52-7c74-84bd-47608b40cf20"])
def test_unknown_batches(project, name):
    assert apply(project, name)["code"] == "unknown_batch"

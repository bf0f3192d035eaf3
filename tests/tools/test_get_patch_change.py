"""get_patch_change: batches, file patches and changes by ID, and what became of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rye.config import user_dirs
from support.calling import call
from support.workspace_calls import delete, done, get, insert, patch, replace, write


@pytest.fixture
def result(project):
    (project / "a.txt").write_bytes(b"one\ntwo\nthree\n")
    (project / "b.txt").write_bytes(b"x\n")
    changes = (insert(0, "zero", description="a start"), replace(2, ["two"], "2", changeKey="k"), delete(3, "three"))
    return done(
        project,
        patch(project, "a.txt", *changes, fileLabel="first"),
        patch(project, "b.txt", insert(1, "y")),
        batchLabel="both",
    )


def test_a_batch_a_file_patch_and_a_change_are_shown_with_their_diffs(project, result):
    answer = get(project, result["batchId"])
    told, output = answer["result"], answer["output"]
    assert (told["kind"], told["batchLabel"], told["status"], told["undoneBy"]) == ("batch", "both", "applied", [])
    assert (len(told["entries"]), "+++ b/a.txt" in output, "+++ b/b.txt" in output) == (2, True, True)
    one = result["files"][0]
    answer = get(project, one["filePatchId"])
    assert (answer["result"]["kind"], answer["result"]["file"]["fileLabel"]) == ("file", "first")
    for said in ("patch a.txt. first", "\n+zero\n one\n-two\n+2\n-three"):
        assert said in answer["output"]
    assert "b.txt" not in answer["output"]
    diffs = ("@@ before line 1 @@\n+zero", "@@ lines 2 to 2 @@\n-two\n+2", "@@ lines 3 to 3 @@\n-three")
    for change, diff in zip(one["changes"], diffs, strict=True):
        answer = get(project, change["changeId"])
        assert (answer["result"]["kind"], answer["result"]["change"]["changeId"]) == ("change", change["changeId"])
        assert answer["output"].endswith(diff)


def test_what_became_of_it(project, result):
    batch = result["batchId"]
    entry = result["files"][0]["entryId"]
    call("undo", project, entry_id=entry)
    assert get(project, batch)["result"]["status"] == "partly_undone"
    back = call("undo", project, batchId=batch)
    told = get(project, batch)["result"]
    assert told["status"] == "undone"
    assert back["batchId"] in told["undoneBy"]
    call("undo", project, batchId=back["batchId"])
    assert get(project, batch)["result"]["status"] == "partly_undone"


def test_a_batch_that_could_not_be_applied_is_kept_with_the_reason(project, monkeypatch):
    from rye.errors import WorkspaceError
    from rye.patches import patch_calls

    def refuse(*_):
        raise WorkspaceError("no_space", "The disk is full.", "Free some space.")

    (project / "a.txt").write_bytes(b"one\n")
    monkeypatch.setattr(patch_calls, "apply_all", refuse)
    answer = write(project, files=[patch(project, "a.txt", insert(0, "x"))])
    assert (answer["code"], answer["successful"]) == ("no_space", False)
    (kept,) = (Path(user_dirs.state_dir(str(project))) / "patches").glob("*.json")
    told = get(project, kept.stem)["result"]
    assert told["status"] == "not_applied"
    assert "The disk is full" in told["error"]


def test_a_file_of_a_batch_names_its_own_entry_and_fate(project):
    (project / "a.txt").write_bytes(b"one\n")
    (project / "b.txt").write_bytes(b"two\n")
    made = done(project, patch(project, "a.txt", insert(0, "x")), patch(project, "b.txt", insert(0, "y")))
    for file in made["files"]:
        told = get(project, file["filePatchId"])
        assert told["result"]["entries"] == [file["entryId"]] == [told["result"]["file"]["entryId"]]
        assert file["entryId"] in told["output"]
    first, second = made["files"]
    call("undo", project, entry_id=first["entryId"])
    assert get(project, first["filePatchId"])["result"]["status"] == "undone"
    assert get(project, second["filePatchId"])["result"]["status"] == "applied"
    assert get(project, second["changes"][0]["changeId"])["result"]["entries"] == [second["entryId"]]
    assert get(project, made["batchId"])["result"]["status"] == "partly_undone"
    assert (project / "b.txt").read_bytes() == b"y\ntwo\n"


def test_a_long_diff_in_pages(project):
    (project / "a.txt").write_bytes(b"".join(b"%d\n" % number for number in range(4_000)))
    lines = [f"line {number} " + "x" * 60 for number in range(1_500)]
    name = done(project, patch(project, "a.txt", insert(4_000, *lines)))["batchId"]
    got, at = [], 1
    while at:
        answer = get(project, name, offset=at)
        got += [line[1:] for line in answer["output"].split("\n") if line.startswith("+line")]
        at = answer.get("next_offset")
    assert got == lines
    assert get(project, name, offset=10**6)["code"] == "bad_offset"


def test_entries_that_are_gone_leave_the_word_of_the_batch(project, result):
    for path in (Path(user_dirs.state_dir(str(project))) / "journal").glob("*.json"):
        os.unlink(path)
    assert get(project, result["batchId"])["result"]["status"] == "applied"


@pytest.mark.parametrize("name", ["", "k", "both", "../x", "01a1fd27-5f52-7c74-84bd-47608b40cf20"])
def test_unknown_ids(project, result, name):
    assert get(project, name)["code"] == "unknown_patch_id"

"""The tools around a stored batch: read the authoritative text of a docPath, apply the batch, look up what became of it."""

from pathlib import Path

import pytest

from rye.config import user_dirs
from support.calling import call
from support.workspace_calls import apply, delete, done, get, insert, patch, read, replace, sha, write

# --- workspace_read_file ---


def rows(answer):
    return answer["output"].split("\n")[1 : answer["result"]["endLine"] - answer["result"]["startLine"] + 2]


@pytest.mark.parametrize(
    ("data", "terminator", "final", "count"),
    [
        (b"a\nb\n", "lf", True, 2),
        (b"a\r\nb", "crlf", False, 2),
        (b"a\r\nb\n", "mixed", True, 2),
        (b"a", "none", False, 1),
        (b"", "none", False, 0),
        (b"\xef\xbb\xbfa\n", "lf", True, 1),
        (b"\xff\xfe" + "a\r\n\u0a0a\r\n".encode("utf-16-le"), "crlf", True, 2),
    ],
)
def test_what_is_told_of_a_file(project, data, terminator, final, count):
    (project / "File.txt").write_bytes(data)
    answer = read(project, "file.txt")
    told = answer["result"]
    assert (told["terminator"], told["finalNewline"], told["totalLines"]) == (terminator, final, count)
    assert told["sha256"] == sha(data)
    assert (told["path"], told["docPath"], told["source"]) == ("File.txt", "file.txt", "disk")
    assert answer["output"].split("\n")[0].startswith(f"file.txt sha256={sha(data)} lines={count}")
    assert [row[:3] for row in rows(answer)] == [f"{number}: " for number in range(1, count + 1)]


def test_an_active_file_needs_not_be_on_the_disk(project):
    active = [{"docPath": "new/file.py", "content": "é\r\n"}]
    told = read(project, "new/file.py", activeFiles=active)["result"]
    assert (told["source"], told["path"], told["sha256"]) == ("active", None, sha("é\r\n".encode()))
    assert told["terminator"] == "crlf"
    assert read(project, "new/other.py", activeFiles=active)["code"] == "file_not_found"
    # It is known by the file that it names.
    (project / "App.py").write_bytes(b"disk\n")
    active = [{"docPath": "project/app.py", "content": "editor\n"}]
    assert rows(read(project, "app.py", activeFiles=active)) == ["1: editor"]


def test_what_cannot_be_read(project):
    (project / "b.bin").write_bytes(b"\0\1")
    for name, code in (("b.bin", "binary_file"), ("missing", "file_not_found")):
        answer = read(project, name)
        assert answer["errors"][0]["code"] == answer["code"] == code
    assert "surrogate at position 2." in read(project, "f", activeFiles=[{"docPath": "f", "content": "a\ud800"}])["error"]


# --- workspace_apply_patch ---


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
    assert (contents(project), get(project, batch)["result"]["status"]) == (OLD, "undone")
    assert apply(project, batch)["success"]
    assert (contents(project), get(project, batch)["result"]["status"]) == (NEW, "applied")


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
    assert (contents(project), get(project, batch)["result"]["status"]) == (stands, "stored")


# --- get_patch_change ---


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
    assert (told["status"], "The disk is full" in told["error"]) == ("not_applied", True)


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
    back = call("undo", project, batchId=made["batchId"])
    told = get(project, made["batchId"])["result"]
    assert (told["status"], back["batchId"] in told["undoneBy"]) == ("undone", True)
    call("undo", project, batchId=back["batchId"])
    assert get(project, made["batchId"])["result"]["status"] == "partly_undone"


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


def test_batches_are_private_and_a_damaged_one_is_passed_over(project, result):
    other = done(project, patch(project, "b.txt", insert(0, "z")))["batchId"]
    folder = Path(user_dirs.state_dir(str(project))) / "patches"
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    for data in (b"", b"{}", b"garbage", b'{"ids": 1, "request": {}, "files": []}', b"[]"):
        (folder / f"{other}.json").write_bytes(data)
        assert get(project, other)["code"] == "unknown_patch_id"
        assert get(project, result["batchId"])["success"]

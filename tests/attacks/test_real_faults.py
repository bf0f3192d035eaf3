"""Disks that are full, read-only or gone, as the system really makes them: clear refusals, the old content intact."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import time

import pytest

import rye
from rye.errors import WorkspaceError
from rye.line_ids import document
from rye.lsp import session
from rye.workspace import atomic_replace
from rye.workspace.workspace import Workspace
from support.harness import fingerprint

TEXT = "".join(f"line {number} of a file that is worth keeping\n" for number in range(40))


def call(project, tool, **parameters):
    return rye.execute(f"rye/file-system/{tool}", parameters, project_path=project)


def ids_of(answer):
    assert answer["status"] == "success", answer
    return re.findall(r"^\[LID:(\w+)\]", answer["data"]["output"], re.MULTILINE)


# Only root makes a disk full.
pytestmark = pytest.mark.root


@pytest.fixture
def disk(tmp_path):
    """A file system of 64 KiB of its own; only root mounts one."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=40", "none", folder], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def remount(disk, how):
    subprocess.run(["mount", "-o", f"remount,{how}", disk], check=True)


def filled(disk, leave=0):
    """Take all room that is left, but for `leave` bytes."""
    with (disk / "filler").open("wb", buffering=0) as file:
        free = os.statvfs(disk)
        try:
            file.write(b"x" * max(0, free.f_bavail * free.f_bsize - leave))
            while not leave and file.write(b"x" * 4096):
                pass
        except OSError:
            return


def left(project):
    return [name for name in os.listdir(project) if name.startswith(".rye-")]


@pytest.mark.parametrize("leave", [0, 4_096, 8_192, 12_288, 16_384, 20_480])
def test_a_full_disk(disk, leave):
    file = disk / "a.txt"
    file.write_text(TEXT)
    ids = ids_of(call(disk, "read", file_path="a.txt"))
    filled(disk, leave)
    answers = [
        call(disk, "edit_lines", file_path="a.txt", changes=[{"line_id": ids[5], "new_content": "changed"}]),
        call(disk, "write", file_path="b.txt", content=TEXT * 20),
        call(disk, "write", file_path="new/folder/b.txt", content=TEXT * 20),
    ]
    for answer in answers[1:]:
        assert answer["code"] == "no_space", answer
        assert "free disk space" in answer["error"]
    landed = answers[0]["status"] == "success"
    assert landed or answers[0]["code"] == "no_space", answers[0]
    assert file.read_text() == (TEXT.replace("line 5 of a file that is worth keeping", "changed") if landed else TEXT)
    assert not left(disk)
    assert not (disk / "b.txt").exists()
    assert not (disk / "new").exists()
    # With room again all goes on, and the journal knows what happened.
    (disk / "filler").unlink()
    assert call(disk, "undo", list=True)["data"]["total"] == landed
    ids = ids_of(call(disk, "read", file_path="a.txt"))
    assert len(set(ids)) == 40
    assert (
        call(disk, "edit_lines", file_path="a.txt", changes=[{"line_id": ids[9], "new_content": "on"}])["status"] == "success"
    )


@pytest.mark.parametrize("place", ["in the project", "no folder yet"])
@pytest.mark.parametrize("lines", [40, 30_000])
def test_a_read_on_a_full_disk_shows_lines_without_ids_that_nobody_would_know(disk, monkeypatch, place, lines):
    monkeypatch.setenv("USER_SPACE", str(disk / "home"))
    subprocess.run(["mount", "-o", "remount,size=2m", disk], check=True)
    file = disk / "a.txt"
    text = "".join(f"line {number}\n" for number in range(lines))
    file.write_text(text)
    if place == "in the project":
        call(disk, "ls", path=".")
        (disk / "b.txt").write_text("b\n")
        ids_of(call(disk, "read", file_path="b.txt"))
    filled(disk)
    for line_ids in ("all", "none"):
        data = call(disk, "read", file_path="a.txt", limit=30, line_ids=line_ids, changes_since="x")["data"]
        assert data["success"], data
        assert data["output"].split("\n")[:30] == text.split("\n")[:30]
        assert (data["line_count"], data["total_lines"], data["changes_known"]) == (30, lines, False)
        assert "version" not in data
        assert "[LID:" not in data["output"]
        (warning,) = data["warnings"]
        assert "No space left on device" in warning
        assert f"[{warning}]" in data["output"]
    assert call(disk, "read", file_path="a.txt", offset=lines + 1)["code"] == "bad_offset"
    (disk / "filler").unlink()
    ids = ids_of(call(disk, "read", file_path="a.txt", limit=30))
    edited = call(disk, "edit_lines", file_path="a.txt", changes=[{"line_id": ids[5], "new_content": "on"}])
    assert edited["status"] == "success", edited


@pytest.mark.parametrize("indexed", [True, False])
def test_what_else_reads_answers_on_a_full_disk_too(disk, monkeypatch, indexed):
    monkeypatch.setenv("USER_SPACE", str(disk / "home"))
    (disk / "a.c").write_text("int x = y;\n")
    if indexed:
        ids_of(call(disk, "read", file_path="a.c"))
        (disk / "a.c").write_text("int xx = yy;\n")
    filled(disk)
    whole = rye.execute("rye/workspace/workspace_read_file", {"docPath": "a.c"}, project_path=disk)
    assert "1: int x" in whole["data"]["output"], whole
    found = call(disk, "grep", pattern="int")
    assert "a.c:1:[no LID]:int x" in found["data"]["output"], found
    told = rye.execute("rye/lsp/lsp", {"file_path": "a.c"}, project_path=disk)
    session.close_all()
    assert told["status"] == "success", told
    assert "error: " in told["data"]["output"]
    assert told["data"]["output"].split("\n")[0].endswith(" [no LID]")
    assert told["data"]["diagnostics"][0]["line_id"] is None


def test_on_a_full_disk_lines_that_were_shown_before_keep_their_ids(disk):
    (disk / "a.txt").write_text(TEXT)
    ids = ids_of(call(disk, "read", file_path="a.txt", limit=10))
    time.sleep(0.1)
    filled(disk)
    again = call(disk, "read", file_path="a.txt", limit=10)
    assert ids_of(again) == ids
    assert "warnings" not in again["data"]
    assert ids_of(call(disk, "read", file_path="a.txt")) == [], "that the others are shown cannot be kept"
    (disk / "filler").unlink()
    edited = call(disk, "edit_lines", file_path="a.txt", changes=[{"line_id": ids[5], "new_content": "on"}])
    assert edited["status"] == "success", edited
    assert (disk / "a.txt").read_text() == TEXT.replace(TEXT.split("\n")[5], "on")


def test_control_ids_that_were_not_kept_are_unknown_to_the_next_call(disk, monkeypatch):
    (disk / "a.txt").write_text(TEXT)
    ids_of(call(disk, "read", file_path="a.txt"))
    (disk / "a.txt").write_text(TEXT.replace("worth", "not worth"))
    filled(disk)
    monkeypatch.setattr(document.Document, "store", lambda _: None)
    ids = ids_of(call(disk, "read", file_path="a.txt"))
    monkeypatch.undo()
    (disk / "filler").unlink()
    (disk / "a.txt").write_text(TEXT.replace("worth", "hardly worth"))
    answer = call(disk, "edit_lines", file_path="a.txt", changes=[{"line_id": ids[5], "new_content": "on"}])
    assert answer["status"] == "error", "a naive read showed an ID that names nothing now"


def test_writing_in_place_on_a_full_disk_loses_the_file(disk):
    (disk / "a.txt").write_text(TEXT)
    filled(disk)
    with pytest.raises(OSError, match="No space"), (disk / "a.txt").open("w") as file:
        file.write(TEXT * 10)
    assert (disk / "a.txt").read_text() != TEXT


def test_no_room_for_the_state(disk, project, monkeypatch):
    """The user's space is full: the change lands, and says that it cannot be undone."""
    (project / "a.txt").write_text(TEXT)
    filled(disk)
    monkeypatch.setenv("USER_SPACE", str(disk))
    ids = ids_of(call(project, "read", file_path="a.txt"))
    answer = call(project, "edit_lines", file_path="a.txt", changes=[{"line_id": ids[5], "new_content": "changed"}])
    assert answer["status"] == "success", answer
    assert any("Not recorded for undo" in warning for warning in answer["data"]["warnings"])
    written = call(project, "write", file_path="b.txt", content="new\n")["data"]
    inserted = rye.execute("rye/swe/insert_at", {"path": "a.txt", "line": 1, "new_text": "new"}, project_path=project)["data"]
    assert inserted["success"], inserted
    # What was not recorded has no ID that undo would refuse.
    assert [one.get("entry_id", "none") for one in (answer["data"], written, inserted)] == ["none"] * 3
    assert (written["success"], written["unchanged"]) == (True, False)
    assert "changed" in (project / "a.txt").read_text()


def test_a_read_only_disk_is_read_and_refuses_changes(disk):
    (disk / "a.txt").write_text(TEXT)
    before = fingerprint(disk)
    remount(disk, "ro")
    first, again = (call(disk, "read", file_path="a.txt") for _ in range(2))
    ids = ids_of(first)
    assert ids == ids_of(again)
    for answer in (
        call(disk, "edit_lines", file_path="a.txt", changes=[{"line_id": ids[5], "new_content": "changed"}]),
        call(disk, "write", file_path="a.txt", content="new"),
        call(disk, "write", file_path="sub/new.txt", content="new"),
    ):
        assert answer["code"] == "read_only", answer
        assert "cannot be written" in answer["error"]
    assert fingerprint(disk) == before
    # It becomes writable again: the IDs that were shown still name their lines.
    remount(disk, "rw")
    ids = ids_of(call(disk, "read", file_path="a.txt"))
    assert (
        call(disk, "edit_lines", file_path="a.txt", changes=[{"line_id": ids[5], "new_content": "on"}])["status"] == "success"
    )


def test_a_folder_that_vanishes_between_opening_and_writing(project):
    (project / "sub").mkdir()
    (project / "sub/file").write_text("old")
    for expected in (atomic_replace.digest_of(b"old"), None):
        (project / "sub").mkdir(exist_ok=True)
        (project / "sub/file").write_text("old")
        with Workspace(str(project)) as ws, ws.place("sub/file") as place:
            (project / "sub/file").unlink()
            (project / "sub").rmdir()
            with pytest.raises(WorkspaceError) as caught:
                atomic_replace.replace(place, b"new", expected, atomic_replace.temporary_name())
        assert caught.value.hint
        assert not (project / "sub").exists()


def test_a_project_that_vanishes_is_said_to_be_gone(project):
    (project / "a.txt").write_text(TEXT)
    ids = ids_of(call(project, "read", file_path="a.txt"))
    project.rename(project.parent / "moved")
    answer = call(project, "edit_lines", file_path="a.txt", changes=[{"line_id": ids[5], "new_content": "changed"}])
    assert answer["code"] == "project_not_found"
    assert (project.parent / "moved/a.txt").read_text() == TEXT


def test_no_descriptors_left_is_said_and_nothing_is_lost(project):
    (project / "a.txt").write_text(TEXT)
    ids = ids_of(call(project, "read", file_path="a.txt"))
    change = [{"line_id": ids[5], "new_content": "changed"}]
    call(project, "edit_lines", file_path="a.txt", changes=change, dry_run=True)
    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    # What other tests hold open counts, too: so many numbers are free below each limit.
    free = [
        one
        for one in range(old[0])
        if not os.path.exists(f"/proc/self/fd/{one}") and not os.path.islink(f"/proc/self/fd/{one}")
    ]
    codes = []
    try:
        for limit in free[:30]:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, old[1]))
            answer = call(project, "edit_lines", file_path="a.txt", changes=change)
            resource.setrlimit(resource.RLIMIT_NOFILE, old)
            codes.append(answer.get("code"))
            changed = "changed" in (project / "a.txt").read_text()
            assert changed == (answer["status"] == "success"), answer
            assert not left(project)
            if changed:
                break
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, old)
    print(codes)
    assert codes[0] is not None
    assert codes[-1] is None
    assert "tool_crashed" not in codes


def test_the_rest_of_an_undo_that_met_a_full_disk_is_undone_by_the_id_that_the_refusal_names(disk):
    sizes = {"a.txt": 1_000, "b.txt": 20_000, "c.txt": 1_000}
    for name, size in sizes.items():
        (disk / name).write_text(f"{name[:1] * 99}\n" * (size // 100))
    run = {"command": "for f in a b c; do echo small > $f.txt; done"}
    rye.execute("rye/bash/bash", {"command": "true"}, project_path=disk)
    entry = rye.execute("rye/bash/bash", run, project_path=disk)["data"]["change_id"]
    filled(disk, 12_288)
    refused = call(disk, "undo")
    assert refused["code"] == "no_space", refused
    assert f"undo the rest with entry_id={entry}" in refused["error"], refused
    assert {name for name in sizes if (disk / name).stat().st_size > 6} == {"a.txt", "c.txt"}
    (disk / "filler").unlink()
    (disk / "a.txt").write_text("by hand\n")
    assert call(disk, "undo", file_path="c.txt", entry_id=entry)["code"] == "already_undone"
    rest = call(disk, "undo", entry_id=entry)
    assert rest["status"] == "success", rest
    assert rest["data"]["file_paths"] == ["b.txt"]
    assert (disk / "a.txt").read_text() == "by hand\n"
    assert (disk / "b.txt").read_bytes() == (b"b" * 99 + b"\n") * 200
    # Both parts are changes of their own, and redone by their IDs.
    (disk / "a.txt").write_text(f"{'a' * 99}\n" * 10)
    done = re.search(r"take back what was done with entry_id=(\w+)", refused["error"])[1]
    for one in (rest["data"]["entry_id"], done):
        assert call(disk, "undo", entry_id=one)["status"] == "success"
    assert {(disk / name).read_text() for name in sizes} == {"small\n"}
    assert call(disk, "undo", entry_id=entry)["status"] == "success"
    assert {name: (disk / name).stat().st_size for name in sizes} == sizes

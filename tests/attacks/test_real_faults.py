"""Disks that are full, read-only or gone, as the system really makes them: clear refusals, the old content intact."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import time

import pytest

from rye.line_ids import document
from rye.lsp import session
from support.calling import call, done, ids, refused, rows, undo
from support.harness import fingerprint
from support.shell_calls import bash

TEXT = "".join(f"line {number} of a file that is worth keeping\n" for number in range(40))
# Only root makes a disk full.
pytestmark = pytest.mark.root


@pytest.fixture
def disk(small_disk):
    """A file system of 64 KiB, with a file of 40 lines."""
    folder = small_disk("size=64k,nr_inodes=40")
    (folder / "a.txt").write_text(TEXT)
    return folder


def remount(disk, how):
    subprocess.run(["mount", "-o", f"remount,{how}", disk], check=True)


def fill(disk, leave=0):
    """Take all room that is left, but for `leave` bytes."""
    with (disk / "filler").open("wb", buffering=0) as file:
        free = os.statvfs(disk)
        try:
            file.write(b"x" * max(0, free.f_bavail * free.f_bsize - leave))
            while not leave and file.write(b"x" * 4096):
                pass
        except OSError:
            return


def edit(project, line_id, text="changed", **more):
    return call("edit_lines", project, file_path="a.txt", changes=[{"line_id": line_id, "new_content": text}], **more)


def left(project):
    return [name for name in os.listdir(project) if name.startswith(".rye-")]


@pytest.mark.parametrize("leave", [0, 4_096, 8_192, 12_288, 16_384, 20_480])
def test_a_full_disk(disk, leave):
    known = ids(disk, "a.txt")
    fill(disk, leave)
    edited = edit(disk, known[5])
    for path in ("b.txt", "new/folder/b.txt"):
        assert "free disk space" in refused("no_space", "write", disk, file_path=path, content=TEXT * 20)
        refused("no_space", "rye/workspace/workspace_write_patch", disk, createFiles=[{"path": path, "content": TEXT * 20}])
    landed = edited["success"]
    assert landed or edited["code"] == "no_space", edited
    assert (disk / "a.txt").read_text() == (TEXT.replace(TEXT.split("\n")[5], "changed") if landed else TEXT)
    assert not left(disk)
    assert not (disk / "b.txt").exists()
    assert not (disk / "new").exists()
    # With room again all goes on, and the journal knows what happened.
    (disk / "filler").unlink()
    assert undo(disk, list=True)["total"] == landed
    known = ids(disk, "a.txt")
    assert len(set(known)) == 40
    assert edit(disk, known[9], "on")["success"]
    fill(disk)
    with pytest.raises(OSError, match="No space"):
        (disk / "a.txt").write_text(TEXT * 1_000)  # control: written in place it would be lost


@pytest.mark.parametrize("place", ["in the project", "no folder yet"])
@pytest.mark.parametrize("lines", [40, 30_000])
def test_a_read_on_a_full_disk_shows_lines_without_ids_that_nobody_would_know(disk, monkeypatch, place, lines):
    monkeypatch.setenv("USER_SPACE", str(disk / "home"))
    remount(disk, "size=2m")
    text = "".join(f"line {number}\n" for number in range(lines))
    (disk / "a.txt").write_text(text)
    if place == "in the project":
        done("ls", disk, path=".")
        (disk / "b.txt").write_text("b\n")
        ids(disk, "b.txt")
    fill(disk)
    for line_ids in ("all", "none"):
        data = done("read", disk, file_path="a.txt", limit=30, line_ids=line_ids, changes_since="x")
        assert data["output"].split("\n")[:30] == text.split("\n")[:30]
        assert (data["line_count"], data["total_lines"], data["changes_known"]) == (30, lines, False)
        assert "version" not in data
        assert "[LID:" not in data["output"]
        (warning,) = data["warnings"]
        assert "No space left on device" in warning
        assert f"[{warning}]" in data["output"]
    refused("bad_offset", "read", disk, file_path="a.txt", offset=lines + 1)
    (disk / "filler").unlink()
    assert edit(disk, ids(disk, "a.txt", limit=30)[5], "on")["success"]


@pytest.mark.parametrize("indexed", [True, False])
def test_what_else_reads_answers_on_a_full_disk_too(disk, monkeypatch, indexed):
    monkeypatch.setenv("USER_SPACE", str(disk / "home"))
    (disk / "a.c").write_text("int x = y;\n")
    if indexed:
        ids(disk, "a.c")
        (disk / "a.c").write_text("int xx = yy;\n")
    fill(disk)
    assert "1: int x" in done("rye/workspace/workspace_read_file", disk, docPath="a.c")["output"]
    assert "a.c:1:[no LID]:int x" in done("grep", disk, pattern="int")["output"]
    told = done("rye/lsp/lsp", disk, file_path="a.c")
    session.close_all()
    assert "error: " in told["output"]
    assert told["output"].split("\n")[0].endswith(" [no LID]")
    assert told["diagnostics"][0]["line_id"] is None


def test_on_a_full_disk_lines_that_were_shown_before_keep_their_ids(disk):
    known = ids(disk, "a.txt", limit=10)
    time.sleep(0.1)
    fill(disk)
    again = done("read", disk, file_path="a.txt", limit=10)
    assert [name for name, _ in rows(again)] == known
    assert "warnings" not in again
    assert ids(disk, "a.txt") == [], "that the others are shown cannot be kept"
    for form in ("lid", "short"):
        found = done("grep", disk, pattern="line 1.* of", line_ids=form)
        assert (len(found["matches"]), found["output"].count("worth keeping")) == (11, 11), "each is told once"
    (disk / "filler").unlink()
    assert edit(disk, known[5], "on")["success"]
    assert (disk / "a.txt").read_text() == TEXT.replace(TEXT.split("\n")[5], "on")


def test_control_ids_that_were_not_kept_are_unknown_to_the_next_call(disk, monkeypatch):
    ids(disk, "a.txt")
    (disk / "a.txt").write_text(TEXT.replace("worth", "not worth"))
    fill(disk)
    monkeypatch.setattr(document.Document, "store", lambda _: None)
    known = ids(disk, "a.txt")
    monkeypatch.undo()
    (disk / "filler").unlink()
    (disk / "a.txt").write_text(TEXT.replace("worth", "hardly worth"))
    assert not edit(disk, known[5])["success"], "a naive read showed an ID that names nothing now"


def test_no_room_for_the_state(disk, project, monkeypatch):
    """The user's space is full: the change lands, and says that it cannot be undone."""
    (project / "a.txt").write_text(TEXT)
    fill(disk)
    monkeypatch.setenv("USER_SPACE", str(disk))
    edited = edit(project, ids(project, "a.txt")[5])
    assert any("Not recorded for undo" in warning for warning in edited["warnings"])
    written = done("write", project, file_path="b.txt", content="new\n")
    inserted = done("rye/swe/insert_at", project, path="a.txt", line=1, new_text="new")
    # What was not recorded has no ID that undo would refuse.
    assert [one.get("entry_id", "none") for one in (edited, written, inserted)] == ["none"] * 3
    assert written["unchanged"] is False
    assert bash(project, "echo more >> a.txt")["not_recorded"] == {".": "the state folder cannot be used"}
    assert "changed" in (project / "a.txt").read_text()


@pytest.mark.parametrize("sizes", [[9_000_000], [60_000] * 15])
def test_the_record_does_not_fill_a_small_disk_of_its_own(disk, project, monkeypatch, sizes):
    remount(disk, "size=1m,nr_inodes=400")
    monkeypatch.setenv("USER_SPACE", str(disk))
    bash(project, "echo old > a")
    made = [bash(project, f"head -c {size} /dev/urandom > f") for size in sizes] + [bash(project, "rm f; echo new > a")]
    assert all("change_id" in one for one in made), [one.get("not_recorded") for one in made]
    undo(project, file_path="a")
    assert (project / "a").read_text() == "old\n"


def test_a_small_change_is_recorded_on_a_disk_that_others_fill(disk, project, monkeypatch):
    remount(disk, "size=60m,nr_inodes=400")
    monkeypatch.setenv("USER_SPACE", str(disk))
    (project / "f").write_bytes(os.urandom(8_000_000))
    bash(project, "echo old > a")
    fill(disk, leave=6_000_000)
    assert "not_recorded" not in bash(project, "rm a; echo new > b")


def test_a_read_only_disk_is_read_and_refuses_changes(disk):
    before = fingerprint(disk)
    remount(disk, "ro")
    known = ids(disk, "a.txt")
    assert known == ids(disk, "a.txt")
    writes = [call("write", disk, file_path=path, content="new") for path in ("a.txt", "sub/new.txt")]
    for answer in (edit(disk, known[5]), *writes):
        assert answer["code"] == "read_only", answer
        assert "cannot be written" in answer["error"]
    assert fingerprint(disk) == before
    # It becomes writable again: the IDs that were shown still name their lines.
    remount(disk, "rw")
    assert edit(disk, ids(disk, "a.txt")[5], "on")["success"]


def test_no_descriptors_left_is_said_and_nothing_is_lost(project):
    (project / "a.txt").write_text(TEXT)
    known = ids(project, "a.txt")
    edit(project, known[5], dry_run=True)
    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    # What other tests hold open counts, too: so many numbers are free below each limit.
    free = [one for one in range(old[0]) if not os.path.lexists(f"/proc/self/fd/{one}")]
    codes = []
    try:
        for limit in free[:30]:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, old[1]))
            answer = edit(project, known[5])
            resource.setrlimit(resource.RLIMIT_NOFILE, old)
            codes.append(answer.get("code"))
            assert "emove" not in answer.get("error", ""), "nothing is at fault but the number of descriptors"
            changed = "changed" in (project / "a.txt").read_text()
            assert changed == answer["success"], answer
            assert not left(project)
            if changed:
                break
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, old)
    print(codes)
    assert codes[0] is not None
    assert codes[-1] is None


def test_the_rest_of_an_undo_that_met_a_full_disk_is_undone_by_the_id_that_the_refusal_names(disk):
    sizes = {"a.txt": 1_000, "b.txt": 20_000, "c.txt": 1_000}
    for name, size in sizes.items():
        (disk / name).write_text(f"{name[:1] * 99}\n" * (size // 100))
    bash(disk, "true")
    entry = bash(disk, "for f in a b c; do echo small > $f.txt; done")["change_id"]
    fill(disk, 12_288)
    error = refused("no_space", "undo", disk)
    assert f"undo the rest with entry_id={entry}" in error
    assert {name for name in sizes if (disk / name).stat().st_size > 6} == {"a.txt", "c.txt"}
    (disk / "filler").unlink()
    (disk / "a.txt").write_text("by hand\n")
    refused("already_undone", "undo", disk, file_path="c.txt", entry_id=entry)
    rest = done("undo", disk, entry_id=entry)
    assert rest["file_paths"] == ["b.txt"]
    assert (disk / "a.txt").read_text() == "by hand\n"
    assert (disk / "b.txt").read_bytes() == (b"b" * 99 + b"\n") * 200
    # Both parts are changes of their own, and redone by their IDs.
    (disk / "a.txt").write_text(f"{'a' * 99}\n" * 10)
    for one in (rest["entry_id"], re.search(r"take back what was done with entry_id=(\w+)", error)[1]):
        done("undo", disk, entry_id=one)
    assert {(disk / name).read_text() for name in sizes} == {"small\n"}
    done("undo", disk, entry_id=entry)
    assert {name: (disk / name).stat().st_size for name in sizes} == sizes

"""What someone else did to a file after one of our tools is theirs alone, and is taken back without the tool's own change."""

from pathlib import Path

import pytest

from rye.config import user_dirs
from support.calling import done, undo
from support.shell_calls import bash, started
from support.waiting import until

LINES = "".join(f"line {number}\n" for number in range(20))
CODECS = ["utf-8", "utf-8-sig", "utf-16", "latin-1"]


@pytest.fixture
def looked(project):
    for codec in CODECS:
        (project / f"{codec}.txt").write_bytes(LINES.encode(codec))
    bash(project, "true")
    return project


def edit(project, path, old, new):
    return done("edit_lines", project, file_path=path, changes=[{"find": f"{old}\n", "replace": f"{new}\n"}])["entry_id"]


def by_someone_else(project):
    """The entries of what no tool made, newest first, after a look."""
    bash(project, "true")
    return [one for one in undo(project, list=True)["entries"] if one["tool"] == "changed by someone else"]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_what_someone_does_after_edits_is_theirs_alone(looked, codec, first):
    path = looked / f"{codec}.txt"
    edits = [edit(looked, path.name, "line 5", "line five"), edit(looked, path.name, "line 7", "line seven\nand more")]
    between = path.read_bytes()
    theirs = between.decode(codec).replace("line 15", "line fifteen").encode(codec)
    path.write_bytes(theirs)
    (other,) = by_someone_else(looked)
    assert "files" not in other
    if first == "theirs":
        assert undo(looked, entry_id=other["entry_id"])["success"]
        assert path.read_bytes() == between
    for entry in reversed(edits):
        assert undo(looked, entry_id=entry)["success"]
    if first == "ours":
        assert path.read_bytes().decode(codec) == LINES.replace("line 15", "line fifteen")
        assert undo(looked, entry_id=other["entry_id"])["success"]
    assert path.read_bytes() == LINES.encode(codec)


@pytest.mark.parametrize("way", ["write", "edit", "delete"])
def test_what_a_tool_made_or_removed_and_someone_took_or_put_back_is_recorded(looked, way):
    file = looked / ("utf-8.txt" if way == "delete" else "new.txt")
    if way != "delete":
        done("write", looked, file_path="new.txt", content="one\n")
    if way == "edit":
        edit(looked, "new.txt", "one", "two")
    content = file.read_text()
    if way == "delete":
        done("edit_lines", looked, file_path=file.name, changes=[f"{file.name} delete file"])
        file.write_text(content)
    else:
        file.unlink()
    (other,) = by_someone_else(looked)
    assert undo(looked, entry_id=other["entry_id"])["success"]
    assert (file.read_text() if file.exists() else None) == (None if way == "delete" else content)


def test_showing_the_record_does_not_cut_a_running_commands_change_in_parts(looked):
    job = started(looked, "echo one > one.txt; while test ! -e go; do sleep 0.05; done; echo two > two.txt")
    assert until((looked / "one.txt").exists)
    assert undo(looked, list=True)["entries"] == []
    (looked / "go").touch()
    ended = done("rye/bash/job", looked, action="wait", job_id=job, timeout=60)
    assert {"one.txt", "two.txt"} <= {*ended["changed"]}


def test_a_project_that_was_never_looked_at_is_not_read_for_a_list(project):
    (project / "a.txt").write_text("one\n")
    done("write", project, file_path="b.txt", content="one\n")
    assert len(undo(project, list=True)["entries"]) == 1
    assert not Path(user_dirs.state_dir(str(project)), "tree/known").exists()

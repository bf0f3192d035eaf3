"""What comes back of a file beside its content, and what an undo says of the rest."""

from __future__ import annotations

import os

import pytest

from support.calling import undo
from support.shell_calls import bash


@pytest.fixture
def file(project):
    path = project / "a.txt"
    path.write_text("one\n")
    bash(project, "true")
    return path


def with_attribute(path):
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("no extended attributes here")


def test_the_attributes_of_a_file_that_is_there_stay(project, file):
    with_attribute(file)
    bash(project, "true")
    done = bash(project, "echo two >> a.txt")
    assert undo(project, entry_id=done["change_id"])["warnings"] == []
    assert file.read_text() == "one\n"
    assert os.getxattr(file, "user.note") == b"kept"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_of_a_file_that_is_there_stays(project, file):
    done = bash(project, "echo two >> a.txt; chmod 600 a.txt")
    os.chown(file, 12345, 12345)
    assert undo(project, entry_id=done["change_id"])["warnings"] == []
    info = file.stat()
    assert (info.st_uid, info.st_gid, info.st_mode & 0o777) == (12345, 12345, 0o644)


def test_a_set_id_bit_is_not_given_and_that_is_said(project, file):
    done = bash(project, "echo two >> a.txt")
    file.chmod(0o4755)
    answer = undo(project, entry_id=done["change_id"], file_path="a.txt")
    if not answer["success"]:
        # Another mode is a change since.
        file.chmod(0o4644)
        answer = undo(project, entry_id=done["change_id"], file_path="a.txt")
    assert "a.txt had a set-user-id or set-group-id bit, which no undo gives." in answer["warnings"]
    assert file.stat().st_mode & 0o7000 == 0


def test_times_are_those_of_the_undo(project, file):
    """A program that builds by times sees that the file is another one."""
    os.utime(file, (1_000_000_000, 1_000_000_000))
    done = bash(project, "echo two >> a.txt")
    changed = file.stat().st_mtime_ns
    undo(project, entry_id=done["change_id"])
    assert file.stat().st_mtime_ns >= changed

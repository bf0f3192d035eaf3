"""Absolute links that stay inside the project are links like any other for every tool; those that leave are refused."""

from __future__ import annotations

import pytest

from support.calling import done, refused


@pytest.fixture
def linked(project):
    (project / "src").mkdir()
    (project / "src/app.py").write_text("one\ntwo\n")
    (project / "file.py").symlink_to(project / "src/app.py")
    (project / "folder").symlink_to(project / "src")
    (project / "new.py").symlink_to(project / "src/made.py")
    (project / "out").symlink_to(project.parent)
    (project / "git").symlink_to(project / ".git")
    return project


def test_files_and_folders_behind_them_are_read_listed_and_searched(linked):
    assert "one" in done("read", linked, file_path="file.py")["output"]
    assert "app.py" in done("ls", linked, path="folder")["output"]
    assert "app.py" in done("glob", linked, pattern="*.py", path="folder")["output"]
    assert "two" in done("grep", linked, pattern="two", path="folder")["output"]
    assert "two" in done("grep", linked, pattern="two", path="file.py")["output"]


def test_a_write_goes_to_the_file_and_leaves_the_link(linked):
    done("write", linked, file_path="file.py", content="1\n")
    done("write", linked, file_path="new.py", content="2\n")
    assert (linked / "src/app.py").read_text() == "1\n"
    assert (linked / "src/made.py").read_text() == "2\n"
    assert (linked / "file.py").is_symlink()
    done("undo", linked, file_path="file.py")
    assert (linked / "src/app.py").read_text() == "one\ntwo\n"


def test_outside_and_protected_places_stay_closed(linked):
    refused("path_outside", "ls", linked, path="out")
    (linked / ".git/hooks").mkdir(parents=True, exist_ok=True)
    refused("protected_path", "write", linked, file_path="git/hooks/post-commit", content="x")

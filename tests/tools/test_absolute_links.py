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


def test_what_lies_behind_them_is_read_listed_searched_and_written_and_what_lies_outside_is_not(linked):
    asked = {"ls": {}, "glob": {"pattern": "*.py"}, "grep": {"pattern": "two"}}
    for tool, given in asked.items():
        assert "app.py" in done(tool, linked, path="folder", **given)["output"]
    for tool, given in {"read": {"file_path": "file.py"}, "grep": {"pattern": "two", "path": "file.py"}}.items():
        assert "two" in done(tool, linked, **given)["output"]
    # A write goes to the file and leaves the link.
    done("write", linked, file_path="file.py", content="1\n")
    done("write", linked, file_path="new.py", content="2\n")
    assert [(linked / "src" / name).read_text() for name in ("app.py", "made.py")] == ["1\n", "2\n"]
    done("edit_lines", linked, file_path="file.py", changes=[{"find": "1", "replace": "3"}])
    assert (linked / "file.py").is_symlink()
    for _ in range(2):
        done("undo", linked, file_path="file.py")
    assert (linked / "src/app.py").read_text() == "one\ntwo\n"
    refused("path_outside", "ls", linked, path="out")
    (linked / ".git/hooks").mkdir(parents=True, exist_ok=True)
    refused("protected_path", "write", linked, file_path="git/hooks/post-commit", content="x")

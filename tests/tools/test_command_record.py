"""What commands change is recorded whole, and undo and redo bring every state back byte for byte, with modes and links."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rye
from rye.journal import journal
from rye.journal.history import History
from rye.workspace.workspace import Workspace
from support.change_scripts import script
from support.harness import times
from support.shell_calls import set_sandbox
from support.tree_photo import Photo, assert_same, changed, inodes, photo


def call(tool: str, project: Path, **params: object) -> dict[str, Any]:
    answer = rye.execute(f"rye/{tool}", params, project_path=str(project))
    data: dict[str, Any] = answer["data"]
    return data


def bash(project: Path, command: str) -> dict[str, Any]:
    return call("bash/bash", project, command=command)


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def prepared(project: Path) -> Path:
    """A project with git."""
    (project / "src/deep").mkdir(parents=True)
    git(project, "init", "-q", "-b", "master")
    (project / "a.txt").write_text("alpha\nbeta\n")
    (project / "b.txt").write_bytes(b"\xff\x00binary")
    (project / "src/c.py").write_text("def a():\n    return 1\n")
    (project / "src/deep/f").write_text("no newline")
    (project / ".gitignore").write_text("*.dat\n")
    (project / "bin.dat").write_bytes(b"ignored")
    for arguments in (["config", "user.name", "t"], ["config", "user.email", "t@example.org"]):
        git(project, *arguments)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    return project


class Step(NamedTuple):
    """A change: how the tree was before it, and the journal's entry that takes it back."""

    about: str
    before: Photo
    entry: str


def recorded(project: Path, since: str) -> list[tuple[str, list[str]]]:
    """Return the ID and the paths of each entry made after one."""
    found = []
    with Workspace(str(project)) as ws:
        for row in History(ws):
            if row.id == since:
                break
            entry = journal.find(ws, row.id)
            found.append((entry.id, [one.path for one in entry.files] if entry.files is not None else entry.paths))
    return found


def newest(project: Path) -> str:
    with Workspace(str(project)) as ws:
        return next((row.id for row in History(ws)), "")


def run(project: Path, count: int, seed: int) -> int:
    """Run scripts; undo and redo each; at the end undo them all. Return how many paths they changed.

    Raises:
        AssertionError: with the seed and the script.
    """
    random_, effects = random.Random(seed), 0
    bash(project, "true")
    steps: list[Step] = []
    after: Photo | None = None
    for number in range(count):
        text = script(random_)
        about = f"seed {seed}, script {number}:\n{text}"
        before, were, last = photo(project, after), inodes(project), newest(project)
        result = bash(project, text)
        after = photo(project, before)
        expected = changed(before, after, were, inodes(project))
        assert "not_recorded" not in result, (about, result)
        entries = recorded(project, last)
        paths = {path for _, found in entries for path in found}
        assert len(entries) == bool(expected), (about, entries)
        assert result.get("changed_count", 0) == len(expected), (about, result, expected)
        assert paths == expected, (about, {path: (before.get(path), after.get(path)) for path in paths ^ expected})
        effects += len(expected)
        for entry, _ in entries:
            by = undone(project, Step(about, before, entry))
            again = undone(project, Step(f"redone: {about}", after, by))
            steps.append(Step(about, before, again))
    for step in reversed(steps):
        undone(project, step)
    return effects


def undone(project: Path, step: Step) -> str:
    """Take back a change, and compare; return the ID of what takes that back."""
    answer = call("file-system/undo", project, entry_id=step.entry)
    assert answer["success"], (step.about, answer)
    assert_same(photo(project, step.before), step.before, step.about)
    return str(answer["entry_id"])


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "off"])
def test_random_scripts_are_recorded_undone_and_redone(prepared: Path, user_space: Path, mode: str) -> None:
    set_sandbox(user_space, mode)
    assert run(prepared, times(16), seed=1) > 0


UNSEEN = {
    "removed": "ln src/a.txt src/b && echo x >> src/b && rm src/b",
    "moved and removed": "ln src/a.txt t && echo x >> t && mv t src/u && rm src/u",
    "replaced": "ln src/a.txt t && echo x >> t && echo y > u && mv u t",
    "in a folder of its own": "mkdir d && ln src/a.txt d/t && echo x >> d/t && rm -r d",
    "moved out of what is recorded": "ln src/a.txt t && echo x >> t && mv t node_modules/t && rm node_modules/t",
}


@pytest.mark.parametrize("command", [*UNSEEN.values(), "ln src/a.txt node_modules/t && echo x >> node_modules/t"])
def test_a_file_that_was_written_by_another_name_is_taken_back(tmp_path: Path, command: str) -> None:
    for folder in ("src", "node_modules"):
        (tmp_path / folder).mkdir()
    file = tmp_path / "src/a.txt"
    file.write_text("a\n")
    for _ in range(2):
        bash(tmp_path, "true")
    done = bash(tmp_path, f"{command}; rm -f node_modules/t")
    assert file.read_text() == "a\nx\n"
    if command in UNSEEN.values():
        assert "src/a.txt" in done["changed"]
    # Of a name in a folder that is not looked into nothing is told: the next look at the record finds what it wrote.
    assert call("file-system/undo", tmp_path)["success"]
    assert file.read_text() == "a\n"
    assert call("file-system/undo", tmp_path, list=True)["entries"][-1]["tool"] == "rye/bash/bash"

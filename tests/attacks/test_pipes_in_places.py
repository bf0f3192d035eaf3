"""Named pipes and endless files where rye itself reads in a project: no call hangs on one, nor fills the memory."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

import rye
from rye.executor.primitives import interpreters
from rye.filesearch import ripgrep, tree
from support.harness import environment
from support.shell_calls import bash
from support.waiting import PATIENCE

PLACES = [
    ".git/HEAD", ".git/packed-refs", ".git/config.worktree", ".git/refs/stash", ".git/commondir", ".git", "n/.git",
    "n/.git/config", "n/.git/hooks/pre-commit", ".gitignore", ".python-version",
]  # fmt: skip
KINDS = {"pipe": "mkfifo {0}", "endless": "ln -s /dev/zero {0}", "tty": "ln -s /dev/tty {0}"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_command_hangs_on_one(project, kind):
    """Made by a person or a program without a sandbox, so that each of them is there."""
    for path in PLACES:
        subprocess.run(["rm", "-rf", project / "n", project / ".git"], check=True)
        subprocess.run(
            "git init -q; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git pack-refs --all",
            shell=True,
            cwd=project,
            check=True,
        )
        subprocess.run(
            f"mkdir -p $(dirname {path}); rm -rf {path}; {KINDS[kind].format(path)}", shell=True, cwd=project, check=True
        )
        answers = []
        call = threading.Thread(target=lambda: answers.append(bash(project, "echo done")), daemon=True)
        call.start()
        call.join(120)
        assert answers, f"the call hangs on {path}"
        assert "done" in answers[0]["output"] or not answers[0]["success"], (path, answers)
        (project / path).unlink(missing_ok=True)


def test_a_version_is_not_waited_for(project):
    os.mkfifo(project / ".python-version")
    assert interpreters._named_version(str(project), ".python-version") == ""
    (project / ".python-version").unlink()
    (project / ".python-version").write_text("3.11.2\n")
    assert interpreters._named_version(str(project), ".python-version") == "3.11.2"
    (project / ".python-version").unlink()
    (project / ".python-version").mkdir()
    before = os.listdir("/proc/self/fd")
    assert interpreters._named_version(str(project), ".python-version") == ""
    assert len(os.listdir("/proc/self/fd")) == len(before)


# Not `.gitignore`: ripgrep waits at a pipe of that name, until the time of a search is up, and the answer says so.
READ_BY_THEMSELVES = [
    ".ignore", ".rgignore", ".ripgreprc", ".git/info/exclude", ".ai/tools/x.py", ".ai/tools/x.yaml", ".ai/knowledge/x.md",
    ".ai/directives/x.md", ".ai/lockfiles/rye/bash/bash.lock.json", ".ai/trusted_keys/x.toml", ".ai/bundles/x/manifest.yaml",
    "pyproject.toml", "package.json", ".editorconfig", "tsconfig.json", ".env", "a.py", ".venv/pyvenv.cfg",
]  # fmt: skip
CALLS = {
    "grep": ("rye/file-system/grep", {"pattern": "needle"}),
    "glob": ("rye/file-system/glob", {"pattern": "**/*.txt"}),
    "ls": ("rye/file-system/ls", {}),
    "search_dir": ("rye/swe/search_dir", {"pattern": "needle"}),
    "read": ("rye/file-system/read", {"file_path": "found.txt"}),
    "write": ("rye/file-system/write", {"file_path": "new.txt", "content": "x\n"}),
    "bash": ("rye/bash/bash", {"command": "echo needle found.txt"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("plain", [False, True])
def test_no_tool_waits_at_a_pipe_that_it_would_read_by_itself(project, plain, monkeypatch):
    if plain:
        monkeypatch.setattr(ripgrep, "locate", lambda project: None)
    (project / "a/b").mkdir(parents=True)
    (project / "found.txt").write_text("needle\n")
    for path in READ_BY_THEMSELVES:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(project / path)
    for name, (tool, parameters) in CALLS.items():
        answers = []
        call = threading.Thread(
            target=lambda tool=tool, parameters=parameters: answers.append(rye.execute(tool, parameters, project_path=project)),
            daemon=True,
        )
        call.start()
        # Searches end themselves after 30 seconds, which would be a wait too.
        call.join(PATIENCE)
        assert answers, f"{name} waits at one of {READ_BY_THEMSELVES}"
        said = str(answers[0])
        assert "found.txt" in said or name == "write", (name, said)
        assert "timed out" not in said, (name, said)


VERBS = [
    "search needle", "tools", "verify --all", "trust list", "doctor", "log", "diff", "lint --all", "lock rye/bash/bash",
    "undo --list",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_waits_at_one(project, verb):
    for path in [*READ_BY_THEMSELVES, ".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json", ".ai/config/rye.yaml", ".git/HEAD"]:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(project / path)
    # It may refuse them; it does not wait.
    argv = [sys.executable, "-m", "rye", *verb.split(), "--project", project]
    subprocess.run(argv, env=environment(), capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["pipe", "device"])
def test_rules_that_never_end_do_not_outlast_a_search(project, tmp_path, place, monkeypatch):
    # A pipe is waited for until the time of a search is up, which is 30 seconds elsewhere.
    monkeypatch.setattr(tree, "MAX_SECONDS", 3.0)
    os.mkfifo(tmp_path / "outside")
    (project / "found.txt").write_text("needle\n")
    (project / ".gitignore").symlink_to(tmp_path / "outside" if place == "pipe" else "/dev/zero")
    answer = rye.execute("rye/file-system/grep", {"pattern": "needle"}, project_path=project)["data"]
    assert answer.get("timed_out") if place == "pipe" else answer["code"] == "search_failed"
    assert "no_ignore=true" in str(answer)
    found = rye.execute("rye/file-system/grep", {"pattern": "needle", "no_ignore": True}, project_path=project)["data"]
    assert "found.txt" in found["output"]

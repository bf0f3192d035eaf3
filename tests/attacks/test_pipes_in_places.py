"""Named pipes and endless files where rye itself reads in a project: no call hangs on one, nor fills the memory."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest

from rye.executor.primitives import interpreters
from support.shell_calls import bash

PLACES = [
    ".git/HEAD",
    ".git/packed-refs",
    ".git/config.worktree",
    ".git/refs/stash",
    ".git/commondir",
    ".git",
    "n/.git",
    "n/.git/config",
    "n/.git/hooks/pre-commit",
    ".gitignore",
    ".python-version",
]
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

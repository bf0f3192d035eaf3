"""What a command leaves for the user's own git: under the sandbox no program of it runs, without one each does.

The ways stand in `support/git_actions.py`; they are tried as root and as an ordinary user.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from attacks.test_every_finding import without_bubblewrap
from rye.sandbox import landlock
from support.git_actions import WAYS
from support.other_users import USERS, as_user, python_for, system_copy

# A job that still runs may write where only Landlock holds it: it is judged at its own end.
OF_RUNNING_JOBS = ("a job whose mounts come off", "tasks whose mount comes off")


def tried(user: int, mode: str, *ways: str, around: Sequence[str] = ()) -> list[dict]:
    """Return how each way went for a user with `sandbox.mode` `require`, `auto` or `off`; `around` starts it."""
    with tempfile.TemporaryDirectory(prefix="rye-git-", dir="/var/tmp") as name:
        folder = Path(name)
        path = system_copy(folder, "git_actions.py")
        base = folder / "base"
        base.mkdir()
        os.chown(base, user, user)
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(base)}
        switch = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        argv = [*around, *(switch if around else ()), python_for(user), folder / "git_actions.py", base, mode, *ways]
        who = {} if around else as_user(user)
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=600, check=False, **who)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS)
def test_no_program_of_the_command_runs(user):
    found = tried(user, "require")
    assert len(found) == len(WAYS)
    assert [way["name"] for way in found if way["ran"]] == []
    for way in found:
        assert way["holds"] is None or "protected_names" in way["holds"], way


@pytest.mark.slow
@pytest.mark.skipif(bool(landlock.why_not()) or os.geteuid() != 0, reason="needs Landlock, and root to hide bubblewrap")
@pytest.mark.parametrize("user", USERS)
def test_no_program_of_the_command_runs_where_landlock_is_alone(user):
    ways = [name for name in WAYS if name not in OF_RUNNING_JOBS]
    found = tried(user, "auto", *ways, around=without_bubblewrap())
    assert [way["name"] for way in found if way["ran"]] == []
    assert len(found) == len(ways)
    assert not any("protected_names" in (way["holds"] or ()) for way in found)


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS)
def test_control_without_the_sandbox_each_runs(user):
    assert [way["name"] for way in tried(user, "off") if not way["ran"]] == []

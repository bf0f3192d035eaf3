"""What a command leaves for the user's own git: under the sandbox no program of it runs, without one each does.

The ways stand in `support/git_actions.py`; they are tried as root and as an ordinary user.
All of them, with a line for each: `python tests/attacks/test_git_actions.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.git_actions import WAYS
from support.other_users import USERS, as_user, python_for, system_copy


def tried(user: int, mode: str, *ways: str) -> list[dict]:
    """Return how each way went for a user with `sandbox.mode` `require` or `off`."""
    with tempfile.TemporaryDirectory(prefix="rye-git-") as name:
        folder = Path(name)
        path = system_copy(folder, "git_actions.py")
        base = folder / "base"
        base.mkdir()
        os.chown(base, user, user)
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(base)}
        argv = [python_for(user), folder / "git_actions.py", base, mode, *ways]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=600, check=False, **as_user(user))
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
@pytest.mark.parametrize("user", USERS)
def test_control_without_the_sandbox_each_runs(user):
    assert [way["name"] for way in tried(user, "off") if not way["ran"]] == []


if __name__ == "__main__":
    for one in USERS:
        for wanted in ("require", "off"):
            for result in tried(one, wanted):
                print(f"{one:>6} {wanted:<8} {'RAN' if result['ran'] else 'held':<5} {result['name']}: {result['said']}")

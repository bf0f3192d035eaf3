"""Random command scripts under `require`, then the user's git and editors: no program of a script runs outside, no canary is read.

The control runs the same scripts without a sandbox.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from support.harness import times
from support.other_users import USERS, as_user, python_for, system_copy


def tried(user: int, mode: str, count: int, seed: int) -> dict:
    with tempfile.TemporaryDirectory(prefix="rye-scripts-") as name:
        folder = Path(name)
        path = system_copy(folder, "random_scripts.py")
        shutil.copy(Path(__file__).parents[1] / "support/script_shapes.py", folder)
        base = folder / "base"
        base.mkdir()
        os.chown(base, user, user)
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(base)}
        argv = [python_for(user), folder / "random_scripts.py", base, mode, str(count), str(seed)]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, **as_user(user))
        subprocess.run(["chmod", "-R", "u+rwx", base], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS)
def test_no_program_runs_outside_and_no_canary_is_read(user, rng):
    found = tried(user, "require", times(24), rng.randrange(1 << 30))
    assert (found["ran"], found["read"]) == (0, 0), found["culprits"]


@pytest.mark.slow
def test_control_without_a_sandbox_programs_run_and_canaries_are_read():
    found = tried(USERS[-1], "off", 40, 1)
    assert found["ran"] > 0
    assert found["read"] > 0

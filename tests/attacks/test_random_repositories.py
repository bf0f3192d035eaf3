"""Random scripts of commands, jobs, writes, patches, undos and uploads build repositories: the user's git runs no program by them.

The control is the same scripts where nothing looks.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.other_users import USERS, as_user, python_for, system_copy

SHARE = 25


def tried(user: int, mode: str, count: int, seed: int, first: int = 0) -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="rye-repositories-") as name:
        folder = Path(name)
        path = system_copy(folder, "random_repositories.py")
        base = folder / "base"
        base.mkdir()
        os.chown(base, user, user)
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(base)}
        argv = [python_for(user), folder / "random_repositories.py", base, mode, str(count), str(seed), str(first)]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, **as_user(user))
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS)
def test_no_program_runs(user):
    seed = random.SystemRandom().randrange(1 << 30)
    print("seed", seed)
    *fired, figures = tried(user, "require", 20, seed)
    assert fired == []
    assert figures["with_something_set_aside"] > 0


@pytest.mark.slow
def test_control_where_nothing_looks_programs_run():
    figures = tried(USERS[-1], "off", 60, 1)[-1]
    assert figures["fired"] / figures["scripts"] >= 0.05, figures

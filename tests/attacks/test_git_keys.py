"""Git's own keys with hostile values, in repositories that calls of ours left: the user's git starts nothing by them, and asks no host.

A canary decides, not our verdict. The control is each key alone where nothing looks.
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


def tried(user: int, mode: str, share: float, seed: int = 1) -> list[dict]:
    with tempfile.TemporaryDirectory(prefix="rye-keys-") as name:
        folder = Path(name)
        path = system_copy(folder, "git_keys.py")
        base = folder / "base"
        base.mkdir()
        os.chown(base, user, user)
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(base)}
        argv = [python_for(user), folder / "git_keys.py", base, mode, str(seed), str(share)]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, **as_user(user))
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS)
def test_no_key_does_anything(user):
    seed = random.SystemRandom().randrange(1 << 30)
    print("seed", seed)
    found = tried(user, "require", 0.06, seed)
    assert len(found) > 5
    # The address of a remote is where git's own fetch goes, also that of the user's partial clone: documented as open.
    addresses = [one for one in found if one.get("key") == "remote.origin.url"]
    assert all(hit.startswith("host") for one in addresses for hit in one["fired"]), addresses
    assert [one for one in found if one["fired"] and one not in addresses] == []


@pytest.mark.slow
def test_control_without_a_look_many_do():
    fired = [one["key"] for one in tried(USERS[-1], "off", 1) if one["fired"]]
    assert len(fired) >= 25, fired

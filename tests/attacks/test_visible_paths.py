"""What a command can see must not follow from what a command can change (`support/visible_paths.py`), as root and as a user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.other_users import USERS, as_user, package_copy, python_for

LAYERS = ("bubblewrap", "landlock")


def results(user: int, layer: str) -> tuple[list[str], list[dict]]:
    # Root's folder stands where nothing above it is hidden: hiding must be the work of the view, not of its place.
    outside = "/opt" if os.access("/opt", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="rye-visible-", dir=outside) as name:
        folder = Path(name)
        package_copy(folder, "visible_paths.py")
        base = folder / "base"
        base.mkdir()
        if user != os.geteuid():
            os.chown(base, user, user)
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        argv = [python_for(user), folder / "visible_paths.py", base, layer]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300, check=False, **as_user(user))
    assert done.returncode == 0, done.stderr
    active, *found = map(json.loads, done.stdout.splitlines())
    return active, found


@pytest.mark.slow
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("user", USERS)
def test_no_path_that_a_command_can_change_shows_what_is_hidden(user, layer):
    active, found = results(user, layer)
    if active != [layer]:
        pytest.skip(f"{layer} does not work on this machine")
    attacks = [one for one in found if "control" in one]
    working = [one for one in found if "works" in one]
    assert len(attacks) >= 15
    for one in attacks:
        assert one["control"], f"without a sandbox the attack {one['name']!r} must succeed: {one['said']}"
        assert one["held"], one
        assert not one["succeeded"], one
    for one in working:
        assert one["works"], one

"""Ways out of the sandbox (`escapes.py`), as root and as an ordinary user, under each layer: none that it claims to hold may succeed.

Every way has a control: without a sandbox it succeeds.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.escapes import WAYS
from support.other_users import UNHIDDEN, USERS, as_user, package_copy, python_for

CANARY = "canary-5f1c0e"
# What the machine itself may refuse, a sandbox or not: read-only /proc/sys, no devices, mounts without setuid.
MACHINE_MAY_REFUSE = {"a system setting", "a device", "a setuid program"}
LAYERS = ("bubblewrap", "landlock")


@contextmanager
def arena(user: int):
    """A folder with the package and the ways; for root where no sandbox hides the folder itself, so that writes have a target."""
    with tempfile.TemporaryDirectory(prefix="rye-escapes-", dir=UNHIDDEN) as name, tempfile.NamedTemporaryFile() as secret:
        folder = Path(name)
        package_copy(folder, "escapes.py", "confined.py")
        base = folder / "base"
        (base / "outside").mkdir(parents=True)
        (base / "rootonly").write_text("WAS-HERE")
        (base / "rootonly").chmod(0o600)
        secret.write(CANARY.encode())
        secret.flush()
        if user != os.geteuid():
            os.chmod(secret.name, 0o644)
            shell = base / "outside/setuid"
            shutil.copy("/bin/sh", shell)
            for path in (base, base / "outside"):
                os.chown(path, user, user)
            shell.chmod(0o4755)
        yield folder, secret.name


def tried(user: int, layer: str, *names: str) -> tuple[dict, list[dict]]:
    with arena(user) as (folder, secret):
        env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TEMP_SECRET": secret,
            "MY_API_KEY": CANARY,
            "NOTES": CANARY,
        }
        argv = [python_for(user), folder / "escapes.py", folder / "base", layer, *names]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300, check=False, **as_user(user))
    assert done.returncode == 0, done.stderr
    layers, *ways = map(json.loads, done.stdout.splitlines())
    return layers, ways


def judged(layers: dict, ways: list[dict], say=print) -> None:
    active = layers["active"]
    say(f"active: {active}; not usable: { ({name: why for name, why in layers['layers'].items() if why}) }")
    assert active, "no layer works on this machine"
    for way in ways:
        assert way["control"] or way["name"] in MACHINE_MAY_REFUSE, f"the control of {way['name']!r} failed: {way['said']}"
        assert not (way["held"] and way["escaped"]), way
    proven = [way for way in ways if way["control"] and way["held"]]
    say(f"{len(proven)} of {len(ways)} ways held, each with a control; {sum(way['escaped'] for way in ways)} succeed")
    if active == ["bubblewrap"]:
        assert len(proven) >= len(ways) - len(MACHINE_MAY_REFUSE)
        assert not [way["name"] for way in ways if way["escaped"]]
    else:
        assert len(proven) >= len(ways) // 2


def some(count: int, ways: list, each: int = 1) -> list[str]:
    """Return the names of some ways, with so many of each property."""
    seed = random.randrange(10**6)
    print("seed:", seed)
    ways = random.Random(seed).sample(ways, len(ways))
    return [way.name for at, way in enumerate(ways) if at < count or sum(one.prop == way.prop for one in ways[:at]) < each]


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.parametrize("user", USERS)
def test_no_way_out(user):
    ways = [way for way in WAYS if not (way.user_only if user == 0 else way.root_only)]
    layers, found = tried(user, "bubblewrap", *some(20, ways, each=2))
    judged(layers, found)
    if layers["active"] == ["bubblewrap"]:
        proven = {way["property"] for way in found if way["control"] and way["held"]}
        assert proven == {way.prop for way in ways}


@pytest.mark.slow
def test_without_bubblewrap_what_the_report_claims_holds():
    # Protected names are not claimed there: two ways of them show it.
    names = [*some(12, [way for way in WAYS if way.prop != "protected_names" and not way.root_only]), "a git hook"]
    layers, ways = tried(USERS[-1], "landlock", *names)
    if not layers["active"]:
        # A kernel without Landlock: then bubblewrap must be what holds here.
        assert not tried(USERS[-1], "bubblewrap", "shell writes a file")[0]["layers"]["bubblewrap"]
        return
    judged(layers, ways)
    assert [way for way in ways if way["escaped"]], "a layer that holds less must say so, and does"

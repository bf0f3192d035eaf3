"""Tests that run as root and as an ordinary user: which users, which Python, and a copy of the package that both can read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import rye

ORDINARY = 65534
# A folder that no sandbox hides, nor what lies above it; None where this user can write to none.
UNHIDDEN = next((place for place in ("/opt", "/srv", "/var/lib") if os.access(place, os.W_OK)), None)
USERS = (os.geteuid(), ORDINARY) if os.geteuid() == 0 else (os.geteuid(),)


def python_for(user: int) -> str:
    """Return a Python that this user can run: the tests' own may lie in root's home."""
    for path in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
        code = "import sys; sys.exit(sys.version_info < (3, 11))"
        try:
            if subprocess.run([path, "-I", "-c", code], capture_output=True, check=False, **as_user(user)).returncode == 0:
                return path
        except OSError:
            continue
    raise AssertionError(f"no Python 3.11 that user {user} can run")


def as_user(user: int) -> dict:
    return {"user": user, "group": user, "extra_groups": []} if user != os.geteuid() else {}


def package_copy(folder: Path, *scripts: str) -> None:
    """Copy the package and scripts of `tests/support` into a folder that every user can read."""
    folder.chmod(0o755)
    shutil.copytree(Path(rye.__file__).parent, folder / "rye", ignore=shutil.ignore_patterns("__pycache__"))
    for script in scripts:
        shutil.copy(Path(__file__).parent / script, folder)


def system_copy(folder: Path, *scripts: str) -> str:
    """Copy the package with its bundle and scripts; return the PYTHONPATH under which another user's process finds them."""
    package_copy(folder, *scripts)
    package = Path(rye.__file__).parent
    inside = package / ".ai"
    shutil.copytree(inside if inside.is_dir() else package.parents[1] / ".ai", folder / "rye/.ai")
    libraries = {str(Path(import_module(name).__file__).parents[1]) for name in ("yaml", "cryptography", "jsonschema_rs")}
    return os.pathsep.join([str(folder), *sorted(libraries)])


def without_bubblewrap() -> list[str]:
    """Return words that start a program where there is no bubblewrap; only root can use them."""
    places = [path for path in ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap") if os.path.exists(path)]
    hide = "; ".join(f"mount --bind /dev/null {path}" for path in dict.fromkeys(map(os.path.realpath, places)))
    return ["unshare", "-m", "--propagation", "private", "sh", "-c", f'{hide or ":"}; exec "$@"', "sh"]


def run_as(user: int, scripts: list[str], *words: object, below: str | None = "/var/tmp", layer: str = "") -> list:
    """Run the first of some scripts of `tests/support` as a user; return what its lines of JSON hold.

    Its first argument is a new folder of this user, `below` another; where `layer` is "landlock" it finds no bubblewrap.
    """
    with tempfile.TemporaryDirectory(prefix="rye-attack-", dir=below) as name:
        folder, base = Path(name), Path(name, "base")
        path = system_copy(folder, *scripts)
        base.mkdir()
        os.chown(base, user, user)
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(base)}
        argv = [python_for(user), folder / scripts[0], base, *map(str, words)]
        who = as_user(user)
        if layer == "landlock":
            switch = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
            argv, who = [*without_bubblewrap(), *switch, *argv], {}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=600, check=False, **who)
        subprocess.run(["chmod", "-R", "u+rwx", base], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]

"""Tests that run as root and as an ordinary user: which users, which Python, and a copy of the package that both can read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
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


def system_copy(folder: Path, *scripts: str | Path) -> str:
    """Copy the package with its bundle and scripts (of `tests/support`, where no path is given) into a folder that every user can read.

    Returns the PYTHONPATH under which another user's process finds them.
    """
    folder.chmod(0o755)
    package = Path(rye.__file__).parent
    # With what Python compiled of it, which nobody else may write there.
    shutil.copytree(package, folder / "rye")
    for script in scripts:
        shutil.copy(Path(__file__).parent / script, folder)
    if not (inside := folder / "rye/.ai").is_dir():
        shutil.copytree(package.parents[1] / ".ai", inside)
    libraries = {str(Path(import_module(name).__file__).parents[1]) for name in ("yaml", "cryptography", "jsonschema_rs")}
    return os.pathsep.join([str(folder), *sorted(libraries)])


def without_bubblewrap() -> list[str]:
    """Return words that start a program where there is no bubblewrap; only root can use them."""
    places = [path for path in ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap") if os.path.exists(path)]
    hide = "; ".join(f"mount --bind /dev/null {path}" for path in dict.fromkeys(map(os.path.realpath, places)))
    return ["unshare", "-m", "--propagation", "private", "sh", "-c", f'{hide or ":"}; exec "$@"', "sh"]


def run_as(
    user: int,
    scripts: list[str | Path],
    *words: object,
    below: str | None = "/var/tmp",
    layer: str = "",
    env: dict | None = None,
    prepare: Callable[[Path], None] | None = None,
) -> list:
    """Run the first of some scripts as a user, with further variables; return what its lines of JSON hold.

    Its first argument is a new folder of this user, `below` another, which root may `prepare`; where `layer` is "landlock" it finds no bubblewrap.
    """
    with tempfile.TemporaryDirectory(prefix="rye-attack-", dir=below) as name:
        folder, base = Path(name), Path(name, "base")
        path = system_copy(folder, *scripts)
        base.mkdir()
        os.chown(base, user, user)
        if prepare is not None:
            prepare(base)
        own = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(base)}
        argv = [python_for(user), folder / Path(scripts[0]).name, base, *map(str, words)]
        who = as_user(user)
        if layer == "landlock":
            switch = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
            argv, who = [*without_bubblewrap(), *switch, *argv], {}
        done = subprocess.run(argv, env={**own, **(env or {})}, capture_output=True, text=True, timeout=600, check=False, **who)
        subprocess.run(["chmod", "-R", "u+rwx", base], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]

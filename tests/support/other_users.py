"""Tests that run as root and as an ordinary user: which users, which Python, and a copy of the package that both can read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import rye

ORDINARY = 65534
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


def package_copy(folder: Path, script: str) -> None:
    """Copy the package and a script of `tests/support` into a folder that every user can read."""
    folder.chmod(0o755)
    shutil.copytree(Path(rye.__file__).parent, folder / "rye", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(Path(__file__).parent / script, folder)


def system_copy(folder: Path, script: str) -> str:
    """Copy the package with its bundle and a script; return the PYTHONPATH under which another user's process finds them."""
    package_copy(folder, script)
    package = Path(rye.__file__).parent
    inside = package / ".ai"
    shutil.copytree(inside if inside.is_dir() else package.parents[1] / ".ai", folder / "rye/.ai")
    libraries = {str(Path(import_module(name).__file__).parents[1]) for name in ("yaml", "cryptography", "jsonschema_rs")}
    return os.pathsep.join([str(folder), *sorted(libraries)])

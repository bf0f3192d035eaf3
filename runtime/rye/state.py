"""The user's own folders: the state of a project, the trust store, the keys.

Everything here lies in the user's space, so a cloned repository can neither bring nor change it.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache

from rye.errors import UsageError


def user_space() -> str:
    """Return the folder that holds the user's `.ai` (`USER_SPACE`, else the home directory).

    Raises:
        UsageError: `bad_user_space`, when it is no absolute path: a project could hold what it then leads to.
    """
    return _paths(os.environ.get("USER_SPACE") or home())[0]


def user_ai() -> str:
    """Return `${USER_SPACE:-~}/.ai`. Errors as `user_space`."""
    return _paths(os.environ.get("USER_SPACE") or home())[1]


def home() -> str:
    """Return the home directory: `HOME`; the account's where that is no absolute path, which a project could hold."""
    given = os.path.expanduser("~")
    return given if os.path.isabs(given) and os.environ.get("HOME") != "" else _home_of_account()


def _home_of_account() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/"


@lru_cache(maxsize=8)
def _paths(space: str) -> tuple[str, str]:
    # Asked for several times in every call.
    if not os.path.isabs(space):
        raise UsageError("bad_user_space", f"USER_SPACE is {space[:200]!r}, no absolute path.", "Set it to one, or unset it.")
    space = space.rstrip("/") or "/"
    return space, os.path.join(space, ".ai")


def project_digest(root: str) -> str:
    """Return the first 16 hex digits of SHA-256 over the root's real path: the project's name in the state."""
    return _digest_of(os.path.realpath(root))


@lru_cache(maxsize=64)
def _digest_of(real: str) -> str:
    return hashlib.sha256(os.fsencode(real)).hexdigest()[:16]


def state_dir(root: str) -> str:
    """Return the project's state folder, made private (0700) if it does not exist.

    Raises:
        OSError: the user's space cannot be written; callers decide what that means for them.
    """
    path = f"{user_ai()}/state/{project_digest(root)}"
    if not os.path.isdir(path):
        os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def commits_dir(real: str) -> str:
    """Return the folder of the commits under way below a root (real path): there only while one is, or one was cut off."""
    return f"{user_ai()}/state/{_digest_of(real)}/journal/commits"

"""The user's own folders: the state of a project, the trust store, the keys; and the Python that runs this.

Everything here lies in the user's space, so a cloned repository can neither bring nor change it.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from contextvars import ContextVar, Token
from functools import lru_cache

from rye.errors import RyeError, UsageError
from rye.fs import atomic, beneath


def user_space() -> str:
    """Return the folder that holds the user's `.ai` (`USER_SPACE`, else the home directory).

    Raises:
        UsageError: `bad_user_space`, when it is no absolute path: a project could hold what it then leads to.
    """
    return (_of_call.get() or _now())[0]


def user_ai() -> str:
    """Return `${USER_SPACE:-~}/.ai`. Errors as `user_space`."""
    return (_of_call.get() or _now())[1]


def _now() -> tuple[str, str]:
    return _paths(os.environ.get("USER_SPACE") or home())


# The user's space and its `.ai`, as a call found them when it began: some ten of its steps ask.
_of_call: ContextVar[tuple[str, str] | None] = ContextVar("rye_user_space", default=None)


class HeldSpace:
    """A block, such as a call, that sees one user's space from its beginning to its end. Errors as `user_space`."""

    def __enter__(self) -> None:
        """Look once; a block within a block sees what the outer one does."""
        self._before: Token[tuple[str, str] | None] = _of_call.set(_of_call.get() or _now())

    def __exit__(self, *_: object) -> None:
        """Look anew from now on."""
        _of_call.reset(self._before)


def python() -> str:
    """Return the Python that runs this, for our own processes. A host that embeds it, as uWSGI does, names itself, or nothing.

    Raises:
        RyeError: `no_python`, where its environment holds none.
    """
    if "python" in os.path.basename(sys.executable or ""):
        return sys.executable
    found = f"{sys.exec_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    if os.access(found, os.X_OK):
        return found
    why = f"This program embeds Python, and its environment holds no {found}."
    raise RyeError("no_python", why, "Install rye in an environment, and call it by a Python of its own, such as `rye mcp`.")


def libraries() -> dict[str, str]:
    """Return where our own processes look for libraries besides the system's places: the whole paths of LD_LIBRARY_PATH.

    An empty one, as `$LD_LIBRARY_PATH:/opt/lib` begins with, is the current folder: a project's, where a command may write.
    """
    places = [one for one in os.environ.get("LD_LIBRARY_PATH", "").split(":") if os.path.isabs(one)]
    return {"LD_LIBRARY_PATH": ":".join(places)} if places else {}


def settings_file(name: str = "rye.yaml") -> str:
    """Return the user's settings file as an instruction names it: below `~` where it lies there."""
    return f"{user_ai()}/config/{name}" if os.environ.get("USER_SPACE") else f"~/.ai/config/{name}"


def home() -> str:
    """Return the home directory: `HOME`; the account's where that is no absolute path, which a project could hold."""
    found = os.environ.get("HOME", "")
    return found.rstrip("/") or "/" if os.path.isabs(found) else home_of_account()


def home_of_account() -> str:
    """Return the home that the password file names for this user; `/` where it names none."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/"


@lru_cache(maxsize=8)
def _paths(space: str) -> tuple[str, str]:
    # Cached, since each call asks several times.
    if not os.path.isabs(space):
        raise UsageError("bad_user_space", f"USER_SPACE is {space[:200]!r}, no absolute path.", "Set it to one, or unset it.")
    space = space.rstrip("/") or "/"
    return space, os.path.join(space, ".ai")


def project_key(root: str | int) -> str:
    """Return a project's name in the user's state: 16 hex digits over its folder's identity.

    The identity is the inode, the birth time and the file system's id. So a renamed project keeps its state, and another
    folder at the same path does not get it. A device number would change at a reboot. Where the file system tells neither
    time nor id (FUSE, NFS), its inodes may be others after each mount, or those of another one: there it is the path.

    Args:
        root: the folder's path, or a descriptor of it.

    Raises:
        OSError: there is no such folder.
    """
    return _key_of(root, _held(root))


def _held(root: str | int) -> beneath.NamedRoot | None:
    if isinstance(root, int) and root in beneath.named_roots:
        return beneath.named_roots[root]
    info = os.stat(root)
    # As a list: other calls hold and release roots meanwhile.
    return next((one for one in list(beneath.named_roots.values()) if one.identity == (info.st_dev, info.st_ino)), None)


def _key_of(root: str | int, held: beneath.NamedRoot | None) -> str:
    if held is not None and held.key:
        return held.key
    fd = root if isinstance(root, int) else os.open(root, beneath.DIRECTORY)
    try:
        key = _identity_key(fd)
        info = os.fstat(fd)
    finally:
        if fd != root:
            os.close(fd)
    # Another folder may have taken the path.
    if held is not None and held.identity == (info.st_dev, info.st_ino):
        held.key = key
    return key


def _identity_key(fd: int) -> str:
    # Loaded here, since help and the version need no root.
    from hashlib import sha256

    # An inode number is used again after a folder is deleted; the birth time tells the two apart.
    born, system = beneath.birth_time(fd), os.fstatvfs(fd).f_fsid
    if not system and born == (0, 0):
        return sha256(os.fsencode(beneath.real_path(fd, f"/proc/self/fd/{fd}"))).hexdigest()[:16]
    return sha256("{}.{}.{}.{}".format(os.fstat(fd).st_ino, *born, system).encode()).hexdigest()[:16]


PROJECT_FILE = "project.json"
"""In a project's state folder: the path at which the project was last seen, for a person who looks for lost state."""


def state_dir(root: str | int) -> str:
    """Return the project's state folder, made private (0700) if it does not exist.

    Raises:
        OSError: there is no such project, or the user's space cannot be written; callers decide what that means for them.
    """
    held = _held(root)
    path = f"{user_ai()}/state/{_key_of(root, held)}"
    # While a call holds the root open, the path that it was noted under is looked up once.
    if held is not None and held.noted == path and os.path.isdir(path):
        return path
    real = beneath.real_path(root, f"/proc/self/fd/{root}") if isinstance(root, int) else os.path.realpath(root)
    # Checked at each use: the user may have removed the folder while this process runs.
    if _noted.get(path) != real or not os.path.isdir(path):
        atomic.make_private(path)
        _note(f"{path}/{PROJECT_FILE}", json.dumps({"path": real}, indent=2).encode() + b"\n")
        if len(_noted) > _MANY:
            _noted.clear()
        _noted[path] = real
    if held is not None:
        held.noted = path
    return path


MOUNTS_RECORD = "shielded.json"
"""The record of what was made in a project for mounts: there only while a command runs, or one was cut off."""

TREE_UNDO = "tree/undo"
"""What an undo of a command's changes will do: there only while one runs, or one was cut off."""

# State folders whose record is known to name the project's present path.
_noted: dict[str, str] = {}
_MANY = 64


def _note(file: str, record: bytes) -> None:
    with suppress(OSError), open(file, "rb") as known:
        if known.read() == record:
            return
    atomic.write(file, record, 0o600, durably=False)


def commits_dir(root: str | int) -> str:
    """Return the folder of the project's unfinished commits. It exists only while one runs, or after one was cut off.

    Raises:
        OSError: there is no such project.
    """
    return f"{user_ai()}/state/{project_key(root)}/journal/commits"

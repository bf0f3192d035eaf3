"""What a command must not change in a project: `.ai`, what git acts on, and the names of `rye.toolkit.acted_on`.

A name that is absent must not come into being either, and a mount needs something to lie on. So an empty folder (where
git reads a file: a file that says what its absence says) is made while commands run, and taken away when the last of
them has ended; for a few names only, since nobody wants forty of them: the rest is held where it is present. What was made
stands in the state folder with its inode, so that a crash leaves nothing that the next call does not find. An empty folder is
what git, editors and searches show least.

Not held: a symbolic link at such a name can be replaced (told in the report), repositories inside the project other than its
own, and a name that is exchanged from outside the sandbox while a command runs (git does so with its configuration).
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rye import state
from rye.record import Record
from rye.toolkit import acted_on

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Below `.git`. `commondir` lets a repository take its configuration and hooks from another place; `.` is this place.
_GIT = {"hooks": None, "config": b"", "commondir": b".\n", "modules": None, "worktrees": None}
_GIT_WHEN_PRESENT = ("config.worktree",)
_MAX_MADE = 64


class Shield(Record):
    """What to mount over a project: `pinned` stay writable but cannot be renamed, `fixed` cannot be changed at all.

    Both are absolute paths, a parent before what it holds. `open` says why a name could not be protected,
    `token` is what `release` takes.
    """

    pinned: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    open: str = ""
    token: str = ""


def _kind(path: str) -> int | None:
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:
        return None


def _held(listed: Sequence[str]) -> list[str]:
    """Return the names that the user has not allowed to be written."""
    allowed = acted_on.allowed()
    return [name for name in listed if name not in allowed]


def _wanted(root: str) -> Iterator[tuple[str, bytes | None]]:
    """Yield the names to be made when absent, with a file's content (None: a folder)."""
    git = f"{root}/.git"
    kind = _kind(git)
    for name in (".ai", *_held(acted_on.ALSO_ABSENT)):
        yield f"{root}/{name}", None
    if kind is None:
        yield git, None
    elif kind == stat.S_IFDIR and not _is_ours(root, git):
        for name, content in _GIT.items():
            yield f"{git}/{name}", content


def shield(root: str, *, when_present: bool = True) -> Shield:
    """Make the absent names and return what to mount over them; give it back with `release`.

    A project whose folder cannot be written has nothing to make. Without `when_present` only the names that every command in
    this project finds covered count: one of the others could be exchanged for a link by a command that runs already.
    """
    problem, token = "", secrets.token_hex(8)
    try:
        with _record(root) as record:
            _sweep(record)
            record["holders"].append([os.getpid(), _started(os.getpid()), token])
            for path, content in _wanted(root):
                if _kind(path) is None:
                    _make(record, path, content)
    except OSError as err:
        problem = "" if err.errno == errno.EROFS else f"absent names could not be covered: {err.strerror}"
    present = [path for path, _ in _wanted(root)]
    git = f"{root}/.git"
    inner = _kind(git) == stat.S_IFDIR and not _is_ours(root, git)
    present += [] if inner else [git]
    if when_present:
        present += [f"{root}/{name}" for name in _held(acted_on.NAMES)] + [
            f"{git}/{name}" for name in _GIT_WHEN_PRESENT if inner
        ]
    links = [path for path in dict.fromkeys((git, *present)) if _kind(path) == stat.S_IFLNK]
    if links:
        shown = ", ".join(os.path.relpath(path, root) for path in links)
        problem = f"a symbolic link can be replaced: {shown}"
    fixed = [path for path in dict.fromkeys(present) if _kind(path) in (stat.S_IFDIR, stat.S_IFREG)]
    return Shield((git,) if inner else (), tuple(fixed), problem, token)


def _is_ours(root: str, path: str) -> bool:
    """Tell whether a folder is one that was made here, empty still."""
    try:
        made = _read(root).get("made", {})
        info = os.lstat(path)
        return [info.st_dev, info.st_ino] == made.get(path) and not os.listdir(path)
    except OSError:
        return False


def take_over(root: str, token: str) -> None:
    """Become the process with whose life the command of this token is tied: one that watches it after its starter has gone."""
    with _record(root) as record:
        for holder in record["holders"]:
            if holder[2] == token:
                holder[:2] = [os.getpid(), _started(os.getpid())]


def release(root: str, token: str) -> None:
    """Say that the command of this token has ended; the last one takes away what was made."""
    try:
        with _record(root) as record:
            _sweep(record)
            record["holders"] = [one for one in record["holders"] if one[2] != token]
            if not record["holders"]:
                record["made"] = {path: known for path, known in record["made"].items() if not _unmake(path, known)}
    except OSError:
        # The next command finds the record as it is.
        return


def _make(record: dict[str, Any], path: str, content: bytes | None) -> None:
    if len(record["made"]) >= _MAX_MADE:
        raise OSError(errno.EDQUOT, "too many were left behind")
    if content is None:
        os.mkdir(path, 0o755)
    else:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.write(fd, content)
        finally:
            os.close(fd)
    info = os.lstat(path)
    record["made"][path] = [info.st_dev, info.st_ino]


def _unmake(path: str, known: list[int]) -> bool:
    """Remove what was made if it is still that, and empty; tell whether it is no longer there or no longer ours."""
    try:
        info = os.lstat(path)
        if [info.st_dev, info.st_ino] != known:
            return True
        if stat.S_ISDIR(info.st_mode):
            os.rmdir(path)
        elif info.st_size == len(_GIT.get(os.path.basename(path)) or b""):
            os.unlink(path)
    except OSError as err:
        return err.errno in (errno.ENOENT, errno.ENOTEMPTY)
    return True


# --- who still needs them ---


def _started(pid: int) -> str:
    """Return a process's start time, which with its number is its identity; empty when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read(4096).rsplit(b")", 1)[1].split()[19].decode()
    except (OSError, IndexError):
        return ""


def _sweep(record: dict[str, Any]) -> None:
    """Forget commands whose process is gone."""
    record["holders"] = [one for one in record["holders"] if len(one) == 3 and _started(one[0]) == one[1]]


def _path(root: str) -> str:
    return f"{state.state_dir(root)}/shielded.json"


def _read(root: str) -> dict[str, Any]:
    try:
        with open(_path(root), "rb") as file:
            found = json.loads(file.read(1 << 20) or b"{}")
    except (OSError, ValueError):
        found = {}
    made, holders = found.get("made", {}), found.get("holders", [])
    return {"made": made if isinstance(made, dict) else {}, "holders": holders if isinstance(holders, list) else []}


@contextmanager
def _record(root: str) -> Iterator[dict[str, Any]]:
    """Give the record to change, under its lock."""
    path = _path(root)
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        record = _read(root)
        try:
            yield record
        finally:
            fresh = f"{path}.new"
            with open(fresh, "wb") as file:
                file.write(json.dumps(record).encode())
            os.replace(fresh, path)
    finally:
        os.close(lock)

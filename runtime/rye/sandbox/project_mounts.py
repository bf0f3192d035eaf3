"""What a command must not change in a project: `.ai`, what git acts on, and the names of `rye.workspace.protected_paths`.

A few names must not come into being either (`.vscode`, `.mcp.json` …). A mount needs something to lie on, so while a job runs
an empty folder is made at each absent one, and removed when the last job has ended. For a command that ends soon nothing is
made, since other programs would see and pack those folders: what appears there is moved aside when the command has ended.
Absent names inside `.git` are always made, with content that says what their absence says. What was made is recorded in the
state folder with its inode, so that the next call removes what a crash left.

Not covered: a symbolic link at such a name can be replaced (the report says so); repositories inside the project other than its
own, which `rye.process.autorun.command_check` looks at afterwards; and a name that is exchanged from outside the sandbox while
a command runs, as git does with its configuration (`rye.process.mount_watch`).
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Final

from rye.config import user_dirs
from rye.fs import atomic
from rye.fs.atomic import closing, passing
from rye.plain_class import Record
from rye.workspace import protected_paths, repositories, running_commands

# Below `.git`. `commondir` lets a repository take its configuration and hooks from another place; `.` is this place.
_GIT = {"hooks": None, "config": b"", "commondir": b".\n", "modules": None, "worktrees": None}
# The record: what was made, by its name, with its identity; and the absent names of each command that runs.
_SHAPE: Final = {"made": dict, "holders": dict}
_GIT_WHEN_PRESENT = ("config.worktree",)

NAME: Final = "protected name"
"""What is said to have been moved aside."""


class Shield(Record):
    """What to mount over a project: `pinned` stay writable but cannot be renamed, `fixed` cannot be changed at all.

    Both are absolute paths, a parent before what it holds. `made` are folders among `fixed` that were made for the mounts:
    something empty is mounted there, so that a command does not see what others put into them while it runs (locks).
    `open` says why a name could not be protected, `absent` are names for `set_aside`.
    """

    pinned: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    open: str = ""
    absent: tuple[str, ...] = ()


def _kind(path: str) -> int | None:
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:
        return None


def _absent_names(root: str) -> Iterator[tuple[str, bytes | None]]:
    """Yield the names to be made when absent, with a file's content (None: a folder)."""
    git = f"{root}/.git"
    kind = _kind(git)
    allowed = protected_paths.allowed_by_user()
    for name in (*(one for one in protected_paths.ALSO_ABSENT if one not in allowed), ".ai"):
        yield f"{root}/{name}", None
    if kind is None:
        yield git, None
    elif kind == stat.S_IFDIR and not is_made(root, git):
        for name, content in _GIT.items():
            yield f"{git}/{name}", content


def shield(root: str, token: str, *, cover_absent: bool) -> Shield:
    """Make the absent names for a running command and return what to mount over them; give it back with `release`.

    A project whose folder cannot be written has nothing to make. Without `cover_absent` no absent name of the root is made;
    they are listed, for `set_aside` after the command.
    """
    problem = ""
    absent: list[str] = []
    try:
        if not token:
            raise OSError(errno.EIO, "the user's state folder cannot be used")
        with _record(root) as record:
            # Recover before making: what a killed call made must not count as the project's own now.
            _recover_holders(root, record)
            record["holders"][token] = absent
            making: dict[str, bytes | None] = {}
            for path, content in _absent_names(root):
                if _kind(path) is not None:
                    continue
                # Below the root, which may be renamed before the command ends.
                name = path.removeprefix(f"{root}/")
                if cover_absent or "/" in name:
                    making[name] = content
                else:
                    absent.append(name)
            if making:
                # Before the first name is made: if this process is killed in between, the next call knows to remove it.
                record["made"] |= {name: [] for name in making}
                _write(root, record)
            try:
                for name, content in making.items():
                    record["made"][name] = _make(f"{root}/{name}", content)
            finally:
                # One that somebody else made first is not ours.
                record["made"] = {name: known for name, known in record["made"].items() if known or name not in making}
    except OSError as err:
        problem = "" if err.errno == errno.EROFS else f"absent names could not be covered: {err.strerror}"
    try:
        return _listed(root, problem, absent)
    except BaseException:
        # Bad settings of the user: nobody else would give back what was made.
        release(root, token)
        raise


def _listed(root: str, problem: str, absent: list[str]) -> Shield:
    """Return what there is to mount. Raises UsageError for the user's settings."""
    # Outside the lock: names that exist are only mounted over, and nothing is written for them.
    present = [path for path, _ in _absent_names(root)]
    git = f"{root}/.git"
    # An empty `.git` that was made for the mount is covered as a whole, a real one by its parts.
    inner = _kind(git) == stat.S_IFDIR and not is_made(root, git)
    named = _present_names(root)
    present += [*(() if inner else (git,)), *named, *(f"{git}/{name}" for name in _GIT_WHEN_PRESENT if inner)]
    # A mount on a link lands on its target; the link itself can still be replaced.
    parents = _folders_above(root, named)
    links = [path for path in dict.fromkeys((git, *parents, *present)) if _kind(path) == stat.S_IFLNK]
    if links:
        shown = ", ".join(os.path.relpath(path, root) for path in links)
        problem = f"a symbolic link can be replaced: {shown}"
    fixed = [path for path in dict.fromkeys(present) if _kind(path) in (stat.S_IFDIR, stat.S_IFREG)]
    made = tuple(path for path in fixed if _kind(path) == stat.S_IFDIR and is_made(root, path))
    # Not the folder of a link: what it leads to has a name of its own.
    pinned = (*((git,) if inner else ()), *(path for path in parents if _kind(path) == stat.S_IFDIR))
    return Shield(pinned, tuple(fixed), made, problem or _other_name(root, fixed), tuple(absent))


def _present_names(root: str) -> list[str]:
    """Return the paths of the protected names that are there. Raises UsageError for the user's settings."""
    with passing(), repositories.listed(root) as fd:
        return [f"{root}/{name}" for name in protected_paths.existing_paths(fd, protected_paths.forbidden_names(fd))]
    return []


def _folders_above(root: str, paths: Sequence[str]) -> list[str]:
    """Return the folders between the root and some paths, a parent before what it holds."""
    parents: dict[str, None] = {}
    for path in paths:
        parts = path.removeprefix(f"{root}/").split("/")
        parents |= dict.fromkeys(f"{root}/{'/'.join(parts[:at])}" for at in range(1, len(parts)))
    return list(parents)


def set_aside(root: str | int, absent: Sequence[str]) -> list[dict[str, str]]:
    """Move aside what a command put at names that did not exist before; return what was moved, as a result shows it.

    Not `.git`: a new repository stays, and the look at repositories judges it. Of `.ai` the file tools' own cache stays.
    """
    moved = []
    root = _place(root)
    for name in absent:
        path = f"{root}/{name}"
        if name == ".git" or _kind(path) is None:
            continue
        inside = _names_in(path) if name == ".ai" and _kind(path) == stat.S_IFDIR else None
        names = [name] if inside is None else [f".ai/{one}" for one in inside if one != "cache"]
        moved += [found for one in names if (found := _moved(root, one))]
    return moved


def _names_in(path: str) -> list[str] | None:
    """Return what a folder holds; None where the command took the right to list it away."""
    try:
        return os.listdir(path)
    except PermissionError:
        return None
    except OSError:
        # Another program, or a job's end, has removed it.
        return []


def _moved(root: str, name: str) -> dict[str, str] | None:
    path, stored = f"{root}/{name}", f"{name}.rye-set-aside-{secrets.token_hex(3)}"
    try:
        if _kind(path) == stat.S_IFDIR and _names_in(path) == []:
            # An empty folder has no effect on any program, and a running job may cover the name with it.
            return None
        os.rename(path, f"{root}/{stored}")
    except OSError:
        stored = ""
    return {"path": name, "what": NAME, "stored": stored}


def _other_name(root: str, fixed: Sequence[str]) -> str:
    """Return why a mount does not protect one of these files: it can be reached by another name. Nothing when none can.

    A mount lies on one name. A file system that folds case has another name for each file, and so has a hard link.
    """
    for path in fixed:
        try:
            info = os.lstat(path)
        except OSError:
            # It is gone: who mounts it will find that out.
            continue
        folder, name = os.path.split(path)
        shown = path.removeprefix(f"{root}/")
        with suppress(OSError):
            # Not by the inode: on some file systems (FUSE) each spelling has its own.
            if name.upper() != name and _kind(f"{folder}/{name.upper()}") and name.upper() not in os.listdir(folder):
                return f"this file system folds case: {shown} can be written as {name.upper()}"
        if stat.S_ISREG(info.st_mode) and info.st_nlink > 1:
            return f"{shown} has another name (a hard link), which can be written"
    return ""


def is_made(root: str, path: str) -> bool:
    """Tell whether a folder of the project was made for a mount and is still empty; both paths are absolute."""
    try:
        if os.listdir(path):
            return False
        made = atomic.shaped(_path(root), _SHAPE)["made"]
        info = os.lstat(path)
        # Nothing is known yet of one that is just being made.
        return made.get(path.removeprefix(f"{root}/")) in ([], [info.st_dev, info.st_ino])
    except OSError:
        return False


def release(root: str | int, token: str) -> None:
    """Record that the command of this token has ended; the last one removes what was made."""
    try:
        with _record(root) as record:
            record["holders"].pop(token, None)
            _recover_holders(root, record)
            if not record["holders"]:
                there = record["made"].items()
                record["made"] = {name: known for name, known in there if not _unmake(f"{_place(root)}/{name}", known)}
    except OSError:
        # The next command finds the record as it is.
        return


def made_names(root: str) -> dict[str, int]:
    """Return the names that were made in the root for mounts and may be there now, each with its inode."""
    out: dict[str, int] = {}
    for name, known in atomic.shaped(_path(root), _SHAPE)["made"].items():
        if "/" not in name:
            with suppress(OSError):
                out[name] = known[1] if known else os.lstat(f"{root}/{name}").st_ino
    return out


def recover(root: str) -> None:
    """Remove what a killed process had made, if no command needs it any more."""
    release(root, "")


def _make(path: str, content: bytes | None) -> list[int]:
    """Make a folder, or a file with a content; return its identity, which decides at removal: another one is left alone."""
    if content is None:
        os.mkdir(path, 0o755)
    else:
        # O_EXCL: the user's git may create the same file now, and its content must stay.
        with closing(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)) as fd:
            os.write(fd, content)
    info = os.lstat(path)
    return [info.st_dev, info.st_ino]


def _unmake(path: str, known: list[int]) -> bool:
    """Remove a name that was made, if it is still the same and empty; tell whether it is gone or no longer ours.

    Of one that was about to be made nothing is `known`: what is there is empty all the same.
    """
    try:
        info = os.lstat(path)
        # Another file has the name now: it is not ours to remove.
        if known and [info.st_dev, info.st_ino] != known:
            return True
        if stat.S_ISDIR(info.st_mode):
            # rmdir fails on a folder that is not empty, which is the check and the removal in one step.
            os.rmdir(path)
        elif info.st_size == len(_GIT.get(os.path.basename(path)) or b""):
            os.unlink(path)
    except OSError as err:
        return err.errno in (errno.ENOENT, errno.ENOTEMPTY)
    return True


# --- the record of running commands ---


def _place(root: str | int) -> str:
    """Return a path at which a folder is found; that of a descriptor leads to it wherever it was moved."""
    return f"/proc/self/fd/{root}" if isinstance(root, int) else root


def _recover_holders(root: str | int, record: dict[str, Any]) -> None:
    """Set aside what commands left whose process was killed before it could do that, and forget them."""
    for token in [one for one in record["holders"] if not running_commands.is_alive(root, one)]:
        set_aside(root, record["holders"].pop(token))


def _path(root: str | int) -> str:
    return f"{user_dirs.state_dir(root)}/{user_dirs.MOUNTS_RECORD}"


def _write(root: str | int, record: dict[str, Any]) -> None:
    atomic.write(_path(root), json.dumps(record).encode(), 0o600, durably=False)


def _record(root: str | int) -> AbstractContextManager[dict[str, Any]]:
    """Yield the record, to be changed, under its lock. Without one no call checks for what a killed process left."""
    return atomic.changing(_path(root), _SHAPE)

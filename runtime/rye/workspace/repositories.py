"""What git takes for a repository below a project's root, wherever it lies and whatever it is called.

Git needs no folder named `.git`: a folder with `HEAD`, `objects` and `refs` is a repository, and its configuration is obeyed by
a plain `git status` in it. A file `.git` names such a folder, and a file `commondir` in it names where its configuration lies.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from rye.fs import beneath

MAX_ENTRIES: Final = 2_000_000
"""A walk over a tree ends after so many names."""

_NAMES: Final = ("HEAD", "objects", "refs", "commondir")
_PARTS: Final = frozenset({".git", *(name.lower() for name in _NAMES)})
_LENGTHS: Final = frozenset(map(len, _PARTS))
_POINTER = 4096


class TooLargeError(Exception):
    """A tree has more names than a walk looks at."""


def is_git_directory(names: Container[str]) -> bool:
    """Tell whether a folder with these names, in lower case, is a repository by git's own test."""
    return "head" in names and ("commondir" in names or ("objects" in names and "refs" in names))


class Folder(NamedTuple):
    """A folder that a walk reached.

    Attributes:
        path: from the root; `""` for the root itself.
        entries: its directory entries.
        parts: those of its names, in lower case, that tell a repository.
    """

    path: str
    entries: list[os.DirEntry[str]]
    parts: set[str]


def folders(root: str) -> Iterator[Folder]:
    """Yield every folder below a root; no link is followed. A repository's own folder is no exception: one may lie in it.

    Raises:
        TooLargeError: after `MAX_ENTRIES` names.
    """
    waiting, count = [""], 0
    while waiting:
        path = waiting.pop()
        prefix = f"{path}/" if path else ""
        entries = _entries(f"{root}/{path}")
        count += len(entries)
        if count > MAX_ENTRIES:
            raise TooLargeError
        below, parts = [], set()
        for entry in entries:
            name = entry.name
            # Most names are ruled out by their length, which costs less than a copy in lower case.
            if len(name) in _LENGTHS and name.lower() in _PARTS:
                parts.add(name.lower())
            if entry.is_dir(follow_symlinks=False):
                below.append(prefix + name)
        yield Folder(path, entries, parts)
        waiting += below


def _entries(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as found:
            return list(found)
    except PermissionError:
        if not _open_up(path):
            return []
    except OSError:
        return []
    with suppress(OSError), os.scandir(path) as found:
        return list(found)
    return []


def _open_up(path: str) -> bool:
    """Let the owner list a folder: git enters one that cannot be listed, so a command could hide a repository there."""
    with suppress(OSError):
        fd = os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            # Through /proc, because no chmod takes a descriptor opened with O_PATH.
            os.chmod(f"/proc/self/fd/{fd}", os.fstat(fd).st_mode & 0o7777 | 0o500)
            return True
        finally:
            os.close(fd)
    return False


def find(root: str) -> set[str]:
    """Return the paths from the root of all folders that git takes for a repository, and of those they take settings from.

    Raises:
        TooLargeError: the tree has more names than a walk looks at.
    """
    found: set[str] = set()
    for path, _, parts in folders(root):
        if is_git_directory(parts):
            found.add(path)
        if ".git" in parts:
            found.update(_named(root, f"{path}/.git" if path else ".git", b"gitdir:"))
    for path in list(found):
        found.update(_named(root, f"{path}/commondir" if path else "commondir", b""))
    return found


def _named(root: str, pointer: str, prefix: bytes) -> Iterator[str]:
    """Yield the folder below the root that a pointer file, or a link in its place, names."""
    path = os.path.join(root, pointer)
    with suppress(OSError, ValueError):
        if os.path.isdir(path):
            # One that is no link was found by its names.
            target = os.path.realpath(path) if os.path.islink(path) else ""
        else:
            # O_NONBLOCK: a FIFO in its place must not block the walk.
            with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb") as file:
                line = file.read(_POINTER).removeprefix(prefix).strip()
            target = os.path.realpath(os.path.join(os.path.dirname(path), os.fsdecode(line)))
        if target and os.path.isdir(target) and f"{target}/".startswith(f"{root}/"):
            yield os.path.relpath(target, root) if target != root else ""


def reaches_into(root_fd: int, parts: beneath.Parts) -> bool:
    """Tell whether writing at physical components makes a repository complete, or changes one, by git's own test."""
    for at, part in enumerate(parts):
        folder = b"".join(above + b"/" for above in parts[:at])
        # Nearly every folder ends here.
        if part.lower() != b"head" and not _exists(root_fd, folder + b"HEAD"):
            continue
        if is_git_directory({name.lower() for name in _NAMES if _exists(root_fd, folder + name.encode())} | {_text(part)}):
            return True
    return False


def _text(part: bytes) -> str:
    return part.lower().decode("ascii", "replace")


def _exists(root_fd: int, path: bytes) -> bool:
    try:
        os.lstat(path, dir_fd=root_fd)
    except OSError:
        return False
    return True

"""Which of the folders that are not recorded changed: dependencies, virtual environments, caches.

Nothing is remembered of what is in them. A command changed one if something in it bears a time of the last change (ctime) from
the command's start on: a name that came or went changes its folder's. The folders are looked through level by level, so that
what an installer does is found at once; after `MOST_ENTRIES` names the look ends, and what is deeper is not known.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from rye.fs import beneath, stamps
from rye.fs.atomic import closing
from rye.workspace import repositories

MOST_ENTRIES: Final = 500
"""So many names are looked at after a command, in all such folders together."""

CACHE: Final = "a cache that changed"
"""What is said of a cache, which programs fill by themselves."""

_REPOSITORY: Final = "repository, which is not recorded; it"
_DEPENDENCIES: Final = frozenset({"node_modules", ".venv", "venv", ".tox", ".nox", ".terraform", ".gradle"})
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Caches that programs keep within dependencies.
_CACHES_WITHIN: Final = frozenset({".cache", ".vite", ".vite-temp"})
# So many folders of one name are named, more are counted.
_NAMED: Final = 3


def said(root_fd: int, passed: Iterable[str], gone: Iterable[str], since: int) -> dict[str, str]:
    """Return what to say of folders that are not recorded: path -> what became of it.

    Args:
        root_fd: the project's root, open.
        passed: the folders that are there, from the root.
        gone: those that are not there any more.
        since: the start of the command, by the clock of files (ns).
    """
    out = {
        path: f"a git {_REPOSITORY} changed" if is_repository(root_fd, path) else _what(path, "changed")
        for path in _changed(root_fd, passed, since)
    }
    out |= {path: _what(path, "went away") for path in gone}
    by_name: dict[str, list[str]] = {}
    for path in sorted(out):
        by_name.setdefault(os.path.basename(path), []).append(path)
    shown: dict[str, str] = {}
    for name, paths in by_name.items():
        if len(paths) > _NAMED:
            shown[f"{len(paths)} folders {name}"] = out[paths[0]]
        else:
            shown |= {path: out[path] for path in paths}
    return shown


def is_repository(root_fd: int, path: str) -> bool:
    """Tell whether a folder is git's own, under any name."""
    with suppress(OSError), closing(beneath.open_unlinked(root_fd, path.split("/"), _FOLDER)) as fd:
        return repositories.is_git_directory({name.lower() for name in os.listdir(fd)})
    return False


def _what(path: str, verb: str) -> str:
    if os.path.basename(path) in repositories.FOLDERS:
        return f"a {_REPOSITORY} {verb}"
    if os.path.basename(path) in _DEPENDENCIES:
        return f"installed again by programs; it {verb}"
    return CACHE if verb == "changed" else "a cache that went away"


def _changed(root_fd: int, passed: Iterable[str], since: int) -> list[str]:
    waiting = deque((path, path) for path in sorted(passed, key=lambda one: (one.count("/"), one)))
    found: dict[str, None] = {}
    left = MOST_ENTRIES
    while waiting and left > 0:
        top, path = waiting.popleft()
        if top in found:
            continue
        with suppress(OSError), closing(beneath.open_unlinked(root_fd, path.split("/"), _FOLDER)) as fd:
            if not stamps.settled(os.fstat(fd).st_ctime_ns, since):
                found[top] = None
                continue
            with os.scandir(fd) as listing:
                for entry in listing:
                    left -= 1
                    if path == top and entry.name in _CACHES_WITHIN:
                        waiting.append((f"{path}/{entry.name}", f"{path}/{entry.name}"))
                        continue
                    info = entry.stat(follow_symlinks=False)
                    if not stamps.settled(info.st_ctime_ns, since):
                        found[top] = None
                        break
                    if stat.S_ISDIR(info.st_mode):
                        waiting.append((top, f"{path}/{entry.name}"))
    return sorted(found)

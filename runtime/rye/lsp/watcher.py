"""A project's source files and the state of each, remembered between calls: only folders that changed are listed again.

A folder's status tells of names that came and went, a file's own of its content; both are asked for at every look. A status
that is younger than the file system's clock can tell apart counts as changed at the next look, too. What `.gitignore` leaves
out is looked at: generated sources are sources to a language server.
"""

from __future__ import annotations

import fnmatch
import os
import re
import time
from collections import deque
from collections.abc import Collection
from itertools import islice
from typing import NamedTuple

from rye.call.context import deadline
from rye.fs import beneath
from rye.workspace.workspace import IGNORED_DIRECTORIES, Workspace

MAX_FILES = 50_000
MAX_FOLDERS = 20_000
# Of one folder.
_MAX_ENTRIES = 200_000
_GRAIN_NS = 50_000_000
# Of file systems that keep no fractions of seconds.
_COARSE_GRAIN_NS = 2_000_000_000
_IGNORED = re.compile("|".join(map(fnmatch.translate, IGNORED_DIRECTORIES)))
# What programs put into folders that they can make again: https://bford.info/cachedir/
_CACHE_MARK = "CACHEDIR.TAG"

Stamp = tuple[int, ...]


class _Folder(NamedTuple):
    """The entries of a folder; `stamp` is None if it must be listed again. `links` may lead to files."""

    stamp: Stamp | None
    files: tuple[str, ...]
    links: tuple[str, ...]
    folders: tuple[str, ...]


class SourceFiles:
    """The files of some suffixes or names below a project's root, breadth first, without linked and hidden folders.

    Attributes:
        complete: whether the last look saw all of them, and not only the first `MAX_FILES` in the first `MAX_FOLDERS`.
    """

    def __init__(self, suffixes: Collection[str], names: Collection[str] = ()) -> None:
        """Take suffixes with their dots, in lower case, and whole names."""
        self._suffixes, self._names = frozenset(suffixes), frozenset(names)
        self._folders: dict[str, _Folder] = {}
        self.complete = True

    def stamps(self, ws: Workspace) -> dict[str, Stamp]:
        """Return each file's state (times, size, inode), by absolute path.

        Raises:
            DeadlineError: the call's time is up.
        """
        limit, now, base = deadline(), time.time_ns(), f"{ws.root.rstrip('/')}/"
        folders: dict[str, _Folder] = {}
        found: dict[str, Stamp] = {}
        pending = deque([""])
        while pending and len(found) < MAX_FILES and len(folders) < MAX_FOLDERS:
            # A large project takes seconds, and the call may be over before the walk is.
            limit.check()
            name = pending.popleft()
            folder = self._folder(ws, name)
            if folder is None:
                continue
            folders[name] = folder
            for file in folder.files:
                info = _status(ws, file)
                if info is not None:
                    found[base + file] = _stamp(info, now)
            for link in folder.links:
                # Both states: the link may be turned to another file, or that file may change.
                own, target = _status(ws, link), _status(ws, link, follow=True)
                if own is not None and target is not None:
                    found[base + link] = (*_state(own), *_stamp(target, now))
            pending += folder.folders
        # Replaced as a whole, so that folders that are gone do not stay in memory.
        self._folders, self.complete = folders, not pending
        return found

    def _folder(self, ws: Workspace, name: str) -> _Folder | None:
        """Return a folder's entries, listed again if it may have changed; None if there is no such folder."""
        known = self._folders.get(name)
        info = _status(ws, name or ".")
        if info is None:
            return None
        return known if known is not None and known.stamp == _state(info) else self._folder_entries(ws, name)

    def _folder_entries(self, ws: Workspace, name: str) -> _Folder | None:
        parts = tuple(os.fsencode(name).split(b"/")) if name else ()
        try:
            fd, physical = beneath.open_beneath(ws.fd, parts, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            return None
        try:
            # A link on the way leads elsewhere; linked folders are not walked, since links may form circles.
            if physical != parts:
                return None
            # The time before the listing: a name that comes during it makes the state look young.
            now, info = time.time_ns(), os.fstat(fd)
            folder = self._entries(fd, f"{name}/" if name else "")
            return _Folder(_state(info) if _settled(info, now) else None, *folder)
        except OSError:
            return None
        finally:
            os.close(fd)

    def _entries(self, fd: int, prefix: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Return a folder's files, links and folders; nothing of a folder that is tagged as a cache."""
        files: list[str] = []
        links: list[str] = []
        folders: list[str] = []
        with os.scandir(fd) as entries:
            for entry in islice(entries, _MAX_ENTRIES):
                name = entry.name
                # By convention such a folder can be made again; its files are nobody's sources.
                if name == _CACHE_MARK:
                    return (), (), ()
                if self._is_source(name) and entry.is_symlink():
                    links.append(prefix + name)
                elif self._is_source(name) and entry.is_file(follow_symlinks=False):
                    files.append(prefix + name)
                elif name[0] != "." and not _IGNORED.match(name) and entry.is_dir(follow_symlinks=False):
                    folders.append(prefix + name)
        return tuple(files), tuple(links), tuple(folders)

    def _is_source(self, name: str) -> bool:
        if name in self._names:
            return True
        return name[0] != "." and os.path.splitext(name)[1].lower() in self._suffixes


def _status(ws: Workspace, name: str, *, follow: bool = False) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=ws.fd, follow_symlinks=follow)
    except OSError:
        return None


def _state(info: os.stat_result) -> Stamp:
    """Return what differs once something changed; the time of the status change cannot be set back."""
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _settled(info: os.stat_result, now: int) -> bool:
    """Tell whether a change from `now` on must show in the times."""
    changed = info.st_ctime_ns
    return changed + (_GRAIN_NS if changed % 1_000_000 else _COARSE_GRAIN_NS) < now


def _stamp(info: os.stat_result, now: int) -> Stamp:
    """Return a state that is no other's; a young one is no other's by the time at which it was seen."""
    return _state(info) if _settled(info, now) else (*_state(info), now)

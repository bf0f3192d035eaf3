"""What stands in the item folders of spaces now, and whether that is still what it was: for listings and searches.

A listing of thousands of items reads and verifies each file once. While every file of a folder has the name, inode, size and
times that it had, it is the file that was read. Only the running of an item does without this: what runs is read at each call.

A scan is believed only where it is certain: a file whose times are younger than the clock's grain, and a link, whose target
has times of its own, make a folder that is looked at anew each time.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Final

from rye.items import spaces
from rye.items.spaces import Space
from rye.plain_class import Record

# As `rye.line_ids.store` has it: a change after this time (ns) must show in the times.
_SETTLED_NS: Final = 50_000_000
_MOST_FOLDERS: Final = 4_096

Stamp = tuple[int, int, int]
_Files = dict[str, Stamp]


class Scan(Record):
    """The files of one type in one space: path -> stamp. The same object comes back for as long as nothing has changed.

    Attributes:
        files: by path; a stamp is (inode, size, ctime_ns): every change of a file's bytes sets the last.
        certain: whether a stamp that stays the same means a file that stays the same.
    """

    files: _Files
    certain: bool


class _Folder(Record):
    """One folder as it was last seen: the files by name, the folders in it, and whether all that is certain."""

    path: str
    files: _Files
    below: list[str]
    certain: bool


_folders: dict[str, _Folder] = {}
_scans: dict[str, tuple[list[_Folder], Scan]] = {}
_lock = threading.Lock()


def scan(space: Space, item_type: str) -> Scan:
    """Look at the files of a type in a space; hidden ones and other suffixes are left out, as in `spaces.served_items`."""
    folder, suffixes = spaces.type_folder(item_type)
    top = spaces.top_folder(space, folder)
    with _lock:
        folders: list[_Folder] = []
        _look(top, suffixes, time.time_ns() - _SETTLED_NS, folders, spaces.DEEPEST)
        known = _scans.get(top)
        # By identity: `_look` returns the folder that it knew where nothing in it has changed.
        if known is not None and len(known[0]) == len(folders) and all(map(_is, known[0], folders)):
            return known[1]
        if len(_folders) > _MOST_FOLDERS:
            _folders.clear()
            _scans.clear()
        files = {f"{one.path}/{name}": stamp for one in folders for name, stamp in one.files.items()}
        made = Scan(files, all(one.certain for one in folders))
        _scans[top] = folders, made
        return made


def scans(search_path: Sequence[Space], types: Sequence[str]) -> tuple[Scan, ...] | None:
    """Return the scans of spaces, which are the same objects while nothing changes; None where that cannot be told."""
    found = tuple(scan(space, item_type) for space in search_path for item_type in types)
    return found if all(one.certain for one in found) else None


def _is(one: object, other: object) -> bool:
    return one is other


def _look(path: str, suffixes: tuple[str, ...], before: int, folders: list[_Folder], depth: int) -> None:
    """Append what stands in a folder, and in those below it; the folders as they were known where they are unchanged."""
    files: _Files = {}
    below: list[str] = []
    links = False
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        fd = -1
    try:
        # By the descriptor, so that no path is looked up again for each of perhaps a hundred thousand files.
        with os.scandir(fd) if fd >= 0 else nullcontext(()) as entries:
            for entry in entries:
                name = entry.name
                if name[0] in "._":
                    continue
                if entry.is_file(follow_symlinks=False):
                    if name.endswith(suffixes):
                        info = entry.stat(follow_symlinks=False)
                        files[name] = info.st_ino, info.st_size, info.st_ctime_ns
                elif entry.is_dir(follow_symlinks=False):
                    below.append(f"{path}/{name}")
                else:
                    links = True
    except OSError:
        # It changes while it is looked at.
        links = True
    finally:
        if fd >= 0:
            os.close(fd)
    below.sort()
    found = _folders.get(path)
    if found is None or not found.certain or links or found.files != files or found.below != below:
        young = any(changed >= before for _, _, changed in files.values())
        found = _folders[path] = _Folder(path, files, below, not young and not links)
    folders.append(found)
    if depth > 0:
        for one in below:
            _look(one, suffixes, before, folders, depth - 1)


def _forget() -> None:
    """Begin anew in a forked process: another thread may hold the lock of the parent's."""
    _lock._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001


os.register_at_fork(after_in_child=_forget)

"""What is below a folder, by means of our own: kinds, modes, contents, link targets, and which names are of one file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

SKIPPED = {".git", "node_modules", "__pycache__", ".ai"}
SET_ID = stat.S_ISUID | stat.S_ISGID

Photo = dict[str, tuple[object, ...]]


def photo(project: str | Path, last: Photo | None = None) -> Photo:
    """Return every path with its kind, mode, content and the names of the same inode. Set-id bits of files are not recorded.

    Contents that are as in the `last` photo are held once in memory; each file is read all the same.
    """
    out: Photo = {}
    names: dict[int, list[str]] = {}
    for shown, entry in _entries(os.fspath(project), ""):
        info = entry.stat(follow_symlinks=False)
        mode = stat.S_IMODE(info.st_mode)
        if stat.S_ISLNK(info.st_mode):
            out[shown] = ("link", os.readlink(entry.path))
        elif stat.S_ISREG(info.st_mode):
            with open(entry.path, "rb", buffering=0) as file:
                content = file.readall()
            before = last.get(shown, ()) if last is not None else ()
            out[shown] = ("file", mode & ~SET_ID, before[2] if len(before) > 2 and before[2] == content else content)
            names.setdefault(info.st_ino, []).append(shown)
        else:
            out[shown] = (stat.S_IFMT(info.st_mode), mode)
    for group in names.values():
        for one in group:
            out[one] = (*out[one], tuple(sorted(group)))
    return out


def _entries(folder: str, above: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield what is below a folder, with its path, but for what is not recorded."""
    with os.scandir(folder) as listing:
        found = list(listing)
    for entry in found:
        if not entry.is_dir(follow_symlinks=False):
            # Of a worktree or a submodule.
            if entry.name != ".git":
                yield above + entry.name, entry
        elif entry.name not in SKIPPED:
            yield above + entry.name, entry
            yield from _entries(entry.path, f"{above}{entry.name}/")


def inodes(project: str | Path) -> dict[str, int]:
    """Return the inode of every path that a photo shows."""
    return {path: entry.inode() for path, entry in _entries(os.fspath(project), "")}


def changed(before: Photo, after: Photo, were: dict[str, int], are: dict[str, int]) -> set[str]:
    """Return the paths whose own state differs. Of a file's other names only those count that became another file."""

    def differs(path: str) -> bool:
        old, new = before.get(path, ()), after.get(path, ())
        return old[:3] != new[:3] or (old != new and were[path] != are[path])

    return {path for path in before.keys() | after.keys() if differs(path)}


def assert_same(now: Photo, then: Photo, about: object) -> None:
    """Assert that nothing differs."""
    differs = {path: (then.get(path), now.get(path)) for path in now.keys() | then.keys() if now.get(path) != then.get(path)}
    assert not differs, f"{about}\nwanted and found: {differs}"

"""What is below a folder, by means of our own: kinds, modes, contents, link targets, and which names are of one file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

SKIPPED = {".git", "node_modules", "__pycache__", ".ai"}

Photo = dict[str, tuple[object, ...]]


def photo(project: Path) -> Photo:
    """Return every path with its kind, mode, content and the names of the same inode."""
    out: Photo = {}
    names: dict[int, list[str]] = {}
    for above, folders, files in os.walk(project):
        folders[:] = [one for one in folders if one not in SKIPPED and not is_repository(os.path.join(above, one))]
        for name in [*folders, *files]:
            path = os.path.join(above, name)
            shown = os.path.relpath(path, project)
            info = os.lstat(path)
            mode = stat.S_IMODE(info.st_mode)
            if stat.S_ISLNK(info.st_mode):
                out[shown] = ("link", os.readlink(path))
            elif stat.S_ISREG(info.st_mode):
                out[shown] = ("file", mode, Path(path).read_bytes())
                names.setdefault(info.st_ino, []).append(shown)
            else:
                out[shown] = (stat.S_IFMT(info.st_mode), mode)
    for group in names.values():
        for one in group:
            out[one] = (*out[one], tuple(sorted(group)))
    return out


def is_repository(folder: str) -> bool:
    """Tell whether a folder is git's own, by another name than `.git`."""
    return all(os.path.exists(os.path.join(folder, one)) for one in ("HEAD", "objects", "refs"))


def inodes(project: Path) -> dict[str, int]:
    out: dict[str, int] = {}
    for above, folders, files in os.walk(project):
        for name in [*folders, *files]:
            path = os.path.join(above, name)
            out[os.path.relpath(path, project)] = os.lstat(path).st_ino
    return out


def changed(before: Photo, after: Photo, were: dict[str, int], are: dict[str, int]) -> set[str]:
    """Return the paths whose own state differs. Of a file's other names only those count that became another file."""

    def differs(path: str) -> bool:
        old, new = before.get(path, ()), after.get(path, ())
        return old[:3] != new[:3] or (old != new and were[path] != are[path])

    return {path for path in before.keys() | after.keys() if differs(path)}


def assert_same(now: Photo, then: Photo, about: object) -> None:
    differs = {path: (then.get(path), now.get(path)) for path in now.keys() | then.keys() if now.get(path) != then.get(path)}
    assert not differs, f"{about}\nwanted and found: {differs}"


def change_many(project: str | Path) -> None:
    """Change a tree as a command does, in steps that can be told apart: files made, changed, removed, moved, linked, given modes."""
    root = Path(project)
    with open(root / "a.txt", "a") as file:
        file.write("more\n")
    (root / "new").mkdir()
    (root / "new/b.txt").write_text("new\n")
    (root / "gone.txt").unlink()
    (root / "moved.txt").rename(root / "new/moved.txt")
    (root / "x.sh").chmod(0o755)
    os.mkfifo(root / "pipe")
    (root / "pipe").chmod(0o666)
    (root / "link").symlink_to("a.txt")
    (root / "twin.txt").hardlink_to(root / "x.sh")

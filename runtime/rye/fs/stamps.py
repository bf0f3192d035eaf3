"""What tells that a file or folder is as it was: its inode and its time of the last change (ctime), which no program can set.

The clock of files goes on by ticks: of two changes within one tick the second leaves no trace in the times. So a stamp tells of
every later change only where it was taken a tick after the last one.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Final

Stamp = tuple[int, int, int, int]
"""Device, inode, size and ctime (ns)."""

UNKNOWN: Final[Stamp] = (0, 0, 0, sys.maxsize)
"""Of what a path leads to where that cannot be told: what is found later may be the same or not."""

# FAT counts in hundredths of a second or two seconds; a time of a finer clock is seldom a whole hundredth (ns).
_HUNDREDTH: Final = 10_000_000
_COARSEST: Final = 3_000_000_000
# Not in `time`, though every Linux has it.
_CLOCK_REALTIME_COARSE: Final = 5


def clock() -> int:
    """Return the time (ns) of the clock that files get their times from: it goes on by ticks, behind the usual one."""
    return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)


def settled(ctime: int, now: int) -> bool:
    """Tell whether a change from `now` on (of `clock`) will bear a later time than `ctime`; both in ns."""
    return ctime + (_COARSEST if ctime % _HUNDREDTH == 0 else 0) < now


def stamp(path: str, dir_fd: int | None = None) -> Stamp | None:
    """Return the stamp of what a path leads to, links followed: None where nothing is, one that never settles if hidden."""
    try:
        info = os.stat(path, dir_fd=dir_fd)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return UNKNOWN
    return info.st_dev, info.st_ino, info.st_size, info.st_ctime_ns


def identity(place: str | bytes | int, *, dir_fd: int | None = None, follow: bool = True) -> tuple[int, int] | None:
    """Return the device and inode of what a path or a descriptor leads to; None where nothing is, or it is hidden."""
    try:
        info = os.stat(place, dir_fd=dir_fd, follow_symlinks=follow)
    except OSError:
        return None
    return info.st_dev, info.st_ino


class Basis:
    """The files and folders that a decision rests on, each as it was before it was read.

    It serves to keep what was decided: where it holds, the same would be found again. What it cannot see, such as a store
    through a shared mapping into a page that was written before, leaves the earlier decision, about bytes that were verified.
    """

    def __init__(self, *, is_kept: bool = True) -> None:
        """Rest on nothing yet; where nobody keeps what is decided, nothing is noted."""
        self._is_kept = is_kept
        self._began = clock()
        self._stamps: dict[str, Stamp | None] = {}
        self._real_paths: dict[str, str] = {}

    def rest_on(self, path: str) -> None:
        """Note what a path leads to: before it is read, since a change after that must be noticed.

        Of what is not there nothing is noted if its folder is: what comes into a folder changes the folder. A link is there,
        whether or not it leads to anything.
        """
        if self._is_kept and path not in self._stamps:
            found = stamp(path)
            if found is not None or self._stamps.get(os.path.dirname(path)) is None or os.path.islink(path):
                self._stamps[path] = found

    def rest_on_way(self, folder: str, names: Sequence[str]) -> None:
        """Note each step from a folder down, as far as there is one: an exchange of any is a change of the one above it."""
        for name in names if self._is_kept else ():
            folder = f"{folder}/{name}"
            self.rest_on(folder)
            if self._stamps.get(folder) is None:
                return

    def rest_on_place(self, path: str) -> None:
        """Note what a path leads to, and where that lies: a folder that is moved with one above it keeps its stamp."""
        if self._is_kept:
            self.rest_on(path)
            self._real_paths[path] = os.path.realpath(path)

    @property
    def is_settled(self) -> bool:
        """Whether every change from the beginning on will be noticed."""
        return self._is_kept and all(one is None or settled(one[3], self._began) for one in self._stamps.values())

    @property
    def holds(self) -> bool:
        """Whether all of it stands as it was."""
        for path, one in self._stamps.items():
            if stamp(path) != one:
                return False
        return all(os.path.realpath(path) == real for path, real in self._real_paths.items())


NOT_KEPT: Final = Basis(is_kept=False)
"""For who decides once, and keeps nothing."""

"""A watch over the names that a running job's sandbox covers.

A mount lies on a file, not on its name. When the user or the user's git puts another file at the name, the kernel takes the
mount off inside the job as well, and the job could write the new file. The kernel tells of such a change by inotify.
"""

from __future__ import annotations

import ctypes
import os
import select
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_SELF_DELETED, _SELF_MOVED = 0x400, 0x800
_EVENTS: Final = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _SELF_DELETED | _SELF_MOVED
_SECONDS: Final = 0.5

_Identity = tuple[int, int] | None


class MountWatch:
    """Reports when the file at one of some names is replaced.

    Attributes:
        fd: readable when one of the folders changed; -1 where the kernel cannot tell: then `seconds` says how often to look.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        """Watch the folders of these absolute paths."""
        self.fd = _watch({os.path.dirname(path) for path in paths}) if paths else -1
        self._known = {path: _identity(path) for path in paths}
        self.seconds = _SECONDS if paths and self.fd < 0 else None

    def lost(self) -> str:
        """Return the first path whose file was replaced or is gone; empty while none is."""
        if self.fd >= 0:
            with suppress(BlockingIOError):
                # Drain the events and compare identities: events may be merged or lost, identities cannot be.
                os.read(self.fd, 1 << 16)
        return next((path for path, known in self._known.items() if _identity(path) != known), "")

    def register(self, poll: select.poll) -> None:
        """Have `poll` report changes."""
        if self.fd >= 0:
            poll.register(self.fd, select.POLLIN)


def _identity(path: str) -> _Identity:
    try:
        info = os.lstat(path)
    except OSError:
        return None
    # lstat, not stat: a link put at the name is itself another file.
    return info.st_dev, info.st_ino


def _watch(folders: set[str]) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    fd: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    # All or none: a folder without a watch would be silent for ever, so polling by time replaces the whole watch.
    if fd >= 0 and any(libc.inotify_add_watch(fd, os.fsencode(folder), _EVENTS) < 0 for folder in folders):
        os.close(fd)
        return -1
    return fd

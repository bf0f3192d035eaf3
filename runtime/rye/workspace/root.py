"""The project's folder, held open while calls use it, and between the calls of a server or toolset."""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import suppress

from rye.errors import WorkspaceError
from rye.fs import beneath
from rye.workspace.path_errors import system_failure

_STREAMS = range(3)


class OpenRoot:
    """An open root directory: when the last workspace that uses it is closed, it is closed, or kept for the next call."""

    def __init__(self, path: str, given: str, *, keep: bool) -> None:
        """Open the folder at `path`, which was `given` so. WorkspaceError: `project_not_found`, `bad_project`."""
        self.path, self.keep = path, keep
        self.parsed = "", b""
        self.users = 1
        self._lock = threading.Lock()
        try:
            self.fd = os.open(path, beneath.DIRECTORY)
            if self.fd in _STREAMS:
                self.fd = _behind_streams(self.fd)
        except (OSError, ValueError) as err:
            why = os.strerror(err.errno or 0) if isinstance(err, OSError) else "no file has such a name"
            what = f"Project folder not usable: {given} ({why})."
            raise WorkspaceError("project_not_found", what, "Give project_path (or --project) an existing directory.") from None
        try:
            self.stat = os.fstat(self.fd)
            beneath.name_root(self.fd, path)
            self.real = beneath.real_path(self.fd, path)
            is_of_kernel = beneath.is_of_kernel(self.fd)
        except OSError as err:
            beneath.forget_root(self.fd)
            # Not by `close`, which compares: a disk error may have come before there was anything to compare with.
            os.close(self.fd)
            raise system_failure(err, path) from None
        if is_of_kernel:
            self.close()
            message = f"{path} lies in a kernel file system."
            raise WorkspaceError("bad_project", message, "Give project_path a directory on a disk.")

    def take(self) -> None:
        """Become the user of a root that was kept; a tool that outlived its call may ask to join meanwhile."""
        with self._lock:
            self.users = 1

    def join(self) -> bool:
        """Become one more user; False where the last one has left: the descriptor is closed then."""
        with self._lock:
            self.users += self.users > 0
            return self.users > 0

    def leave(self) -> None:
        """Become one user less; the last one's leaving closes it, or keeps it."""
        with self._lock:
            self.users -= 1
            if self.users == 0 and self.keep and not _kept:
                _kept.append(self)
            elif self.users == 0:
                self.close()

    def close(self) -> None:
        """Close the folder."""
        beneath.forget_root(self.fd)
        # Else the number may be that of another's file.
        if self.is_open():
            os.close(self.fd)

    def is_open(self) -> bool:
        """Tell whether the descriptor is still this folder's: a host that becomes a daemon closes what it does not know."""
        with suppress(OSError):
            return os.path.samestat(os.fstat(self.fd), self.stat)
        return False

    def stands(self, path: str) -> bool:
        """Tell whether a path still leads to this folder, and by the same way."""
        with suppress(OSError):
            same = os.path.samestat(os.stat(path), self.stat) and self.is_open()
            return path == self.path and same and beneath.real_path(self.fd, path) == self.real
        return False


def _behind_streams(fd: int) -> int:
    """Return another descriptor for one that has a standard stream's number, with nothing as the streams that are closed.

    What is started gets streams under these numbers, and would find those in place of the files that it is given.
    """
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, len(_STREAMS))
    os.close(fd)
    while (nothing := os.open(os.devnull, os.O_RDWR)) in _STREAMS:
        pass
    os.close(nothing)
    return moved


# The root of the last call that a server or toolset made: it will ask again, and has one project.
_kept: list[OpenRoot] = []


def opened(path: str, given: str, *, keep: bool) -> OpenRoot:
    """Return a project's folder, open and with one user; with `keep` it may be the one that was kept. Errors as `OpenRoot`."""
    with suppress(IndexError):
        # In one step, so that no other thread has it, too.
        kept = _kept.pop() if keep else None
        if kept is not None and kept.stands(path):
            kept.take()
            return kept
        if kept is not None:
            kept.close()
    return OpenRoot(path, given, keep=keep)

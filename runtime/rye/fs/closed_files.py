"""Reading a file of one's own whose mode closes it to its owner, without touching the file.

The owner could give it another mode, read it and give the old one back. A kill in between would leave the other one, and what
a program beside does to the mode would be lost. Instead a child opens the file where it is root of a user namespace that holds
only this user: there no mode closes what is this user's. It passes the open file on, and ends.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import socket
import stat
import sys
import warnings
from contextlib import suppress
from typing import Final

_NEW_USER_NAMESPACE: Final = 0x10000000
"""Of unshare, in its manual: CLONE_NEWUSER."""

_INT: Final = 4
_SECONDS: Final = 10.0


def open_own(folder_fd: int, name: str, flags: int) -> int:
    """Open a regular file of this user for reading, whatever its mode.

    Args:
        folder_fd: the folder that it lies in, open.
        name: its name there.
        flags: how to open it: for reading, through no link.

    Raises:
        PermissionError: it is another user's or group's, or the system has no user namespaces.
        OSError: it is gone.
    """
    info = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    refusal = PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    user, group = os.geteuid(), os.getegid()
    if not stat.S_ISREG(info.st_mode) or (info.st_uid, info.st_gid) != (user, group):
        raise refusal
    # Before the fork: the child of a process with several threads must not load anything.
    unshare = ctypes.CDLL(None, use_errno=True).unshare
    maps = {"setgroups": b"deny", "uid_map": b"0 %d 1" % user, "gid_map": b"0 %d 1" % group}
    here, there = socket.socketpair()
    with here, there:
        with warnings.catch_warnings():
            # Of other threads: the child takes no lock.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if not pid:
            try:
                if not unshare(_NEW_USER_NAMESPACE):
                    for one, text in maps.items():
                        _write(f"/proc/self/{one}", text)
                    fd = os.open(name, flags, dir_fd=folder_fd)
                    there.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fd.to_bytes(_INT, sys.byteorder))])
            finally:
                os._exit(0)
        there.close()
        passed: list[tuple[int, int, bytes]] = []
        here.settimeout(_SECONDS)
        with suppress(OSError):
            # Not by `recv_fds`, which forgets its flags in some versions of Python.
            _, passed, _, _ = here.recvmsg(1, socket.CMSG_LEN(_INT), socket.MSG_CMSG_CLOEXEC)
        # It has nothing more to do, and must not stay if it could not do it.
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    if not passed:
        raise refusal
    return int.from_bytes(passed[0][2][:_INT], sys.byteorder)


def _write(path: str, text: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    os.write(fd, text)
    os.close(fd)

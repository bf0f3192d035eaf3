"""Landlock by its three system calls: a process gives up, for itself and all that it starts, what no rule allows.

Rules allow by folder and for everything below it; there is no rule that takes something away again. What it can refuse grew
with its versions (`abi`): 2 renames between folders, 3 truncation, 4 TCP, 5 device control, 6 signals and abstract sockets.
It says nothing about UDP, modes, owners, times and extended attributes, and hides no process.
"""

from __future__ import annotations

import ctypes
import os
import struct
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

# The same numbers on every architecture.
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION, _BENEATH = 1, 1
_FILE_RIGHTS: Final = 0x1 | 0x2 | 0x4 | 0x4000 | 0x8000
READ: Final = 0x1 | 0x4 | 0x8
"""Execute, read files, list folders."""
_ALL = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
_DEVICE: Final = 0x2 | 0x4 | 0x4000 | 0x8000
_TCP, _SCOPES = 0x3, 0x3


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@cache
def abi() -> int:
    """Return the version of Landlock that this kernel offers; 0 for none."""
    if os.uname().sysname != "Linux":
        return 0
    return max(0, int(_libc().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))))


def everything() -> int:
    """Return all the rights over files that this kernel can refuse."""
    return _ALL[min(abi(), 5)]


def device() -> int:
    """Return the rights to use a device file."""
    return _DEVICE & everything()


def restrict(rules: Iterable[tuple[str, int]], *, tcp: bool) -> None:
    """Confine this thread: files by `rules` (path, rights) only; without `tcp`, no TCP; signals and abstract sockets inside.

    `no_new_privs` must be set. A path that does not exist is left out.

    Raises:
        OSError: the kernel refuses it.
    """
    version = abi()
    handled = everything()
    attributes = struct.pack("=Q", handled)
    if version >= 4:
        attributes += struct.pack("=Q", 0 if tcp else _TCP)
    if version >= 6:
        attributes += struct.pack("=Q", _SCOPES)
    ruleset = _call(_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    try:
        for path, rights in rules:
            _allow(ruleset, path, rights & handled)
        _call(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        kept = rights if os.path.isdir(path) else rights & _FILE_RIGHTS
        _call(_ADD, ctypes.c_int(ruleset), ctypes.c_int(_BENEATH), struct.pack("=Qi", kept, fd), ctypes.c_uint32(0))
    finally:
        os.close(fd)


def _call(number: int, *arguments: object) -> int:
    done = int(_libc().syscall(number, *arguments))
    if done < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return done

"""A process followed from system call to system call (ptrace), so that it can be killed before any one of them.

Linux only. Threads and, where asked, child processes are followed too. All calls must come from one thread of the caller.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b

_SEIZE, _INTERRUPT, _SYSCALL, _CONT, _SYSCALL_INFO = 0x4206, 0x4207, 24, 7, 0x420E
_SYSGOOD, _FORK, _VFORK, _CLONE, _EXEC = 0x1, 0x2, 0x4, 0x8, 0x10
_STOPPED_BY_CALL = signal.SIGTRAP | 0x80
_WALL = 0x40000000
_ENTRY = 1
GETPRIORITY = {"x86_64": 140, "aarch64": 141}.get(platform.machine(), -1)
"""The call by which a victim marks where its work begins and ends."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long

Point = tuple[int, int]
"""A system call: its number, and the how many-th of that number it is."""


def works() -> bool:
    """Tell whether this process may follow others here."""
    if GETPRIORITY < 0:
        return False
    pid = os.fork()
    if not pid:
        os.kill(os.getpid(), signal.SIGSTOP)
        os.getppid()
        os._exit(0)
    os.waitpid(pid, os.WUNTRACED)
    try:
        one = Stepper(pid)
        os.kill(pid, signal.SIGCONT)
        return sum(1 for _ in one.entries()) > 0
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return False


def _ptrace(request: int, pid: int, address: int = 0, data: object = 0) -> int:
    found: int = _libc.ptrace(request, pid, address, data)
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return found


class Stepper:
    """Follows one process, which is stopped or runs."""

    def __init__(self, pid: int, *, runs: bool = False, children: bool = False) -> None:
        """Seize a process; with `children` those that it starts from now on are followed in its place. Raises OSError.

        One that `runs`, and is not stopped, is followed from the call on in which it waits.
        """
        self.pid, self._children = pid, children
        self.status: int | None = None
        self.live = {pid}
        self._info = ctypes.create_string_buffer(96)
        follow = _FORK | _VFORK if children else 0
        _ptrace(_SEIZE, pid, 0, _SYSGOOD | _CLONE | _EXEC | follow)
        if runs and not children:
            _ptrace(_INTERRUPT, pid)

    def entries(self) -> Iterator[tuple[int, int]]:
        """Yield (thread, number of the call) at each entry into a call; the thread waits meanwhile. Ends with the process."""
        while self.live:
            try:
                tid, status = os.waitpid(-1, _WALL)
            except ChildProcessError:
                return
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                self.live.discard(tid)
                if tid == self.pid:
                    self.status = status
                    if not self._children:
                        return
                continue
            if not os.WIFSTOPPED(status):
                continue
            self.live.add(tid)
            number, event = os.WSTOPSIG(status), status >> 16
            if number == _STOPPED_BY_CALL:
                with suppress(OSError):
                    _ptrace(_SYSCALL_INFO, tid, ctypes.sizeof(self._info), ctypes.addressof(self._info))
                    if self._info.raw[0] == _ENTRY and not (self._children and tid == self.pid):
                        yield tid, int.from_bytes(self._info.raw[24:32], "little")
            self._go_on(tid, 0 if event or number in (_STOPPED_BY_CALL, signal.SIGTRAP) else number)

    def _go_on(self, tid: int, number: int) -> None:
        request = _CONT if self._children and tid == self.pid else _SYSCALL
        try:
            _ptrace(request, tid, 0, number)
        except OSError as err:
            if err.errno != errno.ESRCH:
                raise

    def kill(self, pid: int | None = None) -> None:
        """Kill the process, or one that it started."""
        os.kill(self.pid if pid is None else pid, signal.SIGKILL)


def between_marks(steps: Iterator[tuple[int, int]]) -> Iterator[Point]:
    """Yield the calls of a victim's work, from the first mark to the second."""
    seen: Counter[int] = Counter()
    marks = 0
    for _, number in steps:
        marks += number == GETPRIORITY
        if marks == 1:
            seen[number] += 1
            yield number, seen[number]


def fingerprint(*folders: str | os.PathLike[str]) -> bytes:
    """Return a digest of all that a kill would leave below folders: names, inodes, modes, times of the last change, contents."""
    found = blake2b(digest_size=16)
    for folder in folders:
        _add(found, os.fspath(folder))
    return found.digest()


def _add(found: blake2b, folder: str) -> None:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda one: one.name)
    except OSError:
        return
    for entry in entries:
        with suppress(FileNotFoundError):
            info = entry.stat(follow_symlinks=False)
            found.update(os.fsencode(f"{entry.path}\0{info.st_ino} {info.st_mode} {info.st_nlink} {info.st_ctime_ns}\0"))
            if entry.is_symlink():
                found.update(os.fsencode(os.readlink(entry.path)))
            elif entry.is_file(follow_symlinks=False):
                with open(entry.path, "rb", buffering=0) as file:
                    found.update(file.readall())
            elif entry.is_dir(follow_symlinks=False):
                _add(found, entry.path)

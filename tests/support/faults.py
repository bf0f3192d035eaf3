"""A process followed from system call to system call (ptrace), killed at any state of the disk, or failed at any call.

Most system calls change nothing that outlives the process: a kill before one of them leaves the same as a kill before the next.
So kills are counted by states of the disk: names, inodes, modes, times of the last change and contents below some folders.
Linux on x86-64 only. Threads are followed too. All calls must come from one thread of the caller.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import pytest

from support.harness import descendants, environment

_SEIZE, _INTERRUPT, _SYSCALL, _POKEUSER, _SYSCALL_INFO = 0x4206, 0x4207, 24, 6, 0x420E
_SYSGOOD, _CLONE, _EXEC = 0x1, 0x8, 0x10
_STOPPED_BY_CALL = signal.SIGTRAP | 0x80
_WALL = 0x40000000
_ENTRY = 1
_RAX, _ORIG_RAX = 80, 120

# Failing these is a fault that disks, quotas and signals make; failing mmap or futex tests the interpreter.
FILE_CALLS = {
    "read": 0, "write": 1, "lseek": 8, "ioctl": 16, "pread64": 17, "readv": 19, "flock": 73, "fsync": 74, "fdatasync": 75,
    "rename": 82, "mkdir": 83, "unlink": 87, "fchmod": 91, "fchown": 93, "flistxattr": 196, "getdents64": 217, "openat": 257,
    "mkdirat": 258, "newfstatat": 262, "unlinkat": 263, "renameat": 264, "readlinkat": 267, "utimensat": 280, "renameat2": 316,
    "openat2": 437, "faccessat2": 439, "pwrite64": 18,
}  # fmt: skip
_FAILED = frozenset(FILE_CALLS.values())
_WRITES, _RENAMES, _SYNCS = (1, 18, 20, 296), (264, 316), (74, 75)
_OPENAT, _MAKING = 257, os.O_CREAT | os.O_TRUNC
# Calls that leave every file as it is and wait for nobody: read, close, stat and its like, memory, signals, locks, time.
_PURE = {
    *(0, 3, 4, 5, 6, *range(8, 16), 17, 19, 21, 24, 25, 28, 39, 72, 73, 79, 89, 96, 97, 102, 104, 107, 108, 110),
    *(186, 217, 228, 231, 262, 267, 302, 318, 332, 334, 439),
}

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


class SystemCall(NamedTuple):
    """An entry into a call; the thread waits meanwhile."""

    tid: int
    number: int
    arguments: tuple[int, ...]

    @property
    def may_change(self) -> bool:
        """Tell whether what lies on the disk may be another thing after the call, by it or by whom it waits for."""
        return not (self.number in _PURE or (self.number == _OPENAT and not self.arguments[2] & _MAKING))

    @property
    def can_fail(self) -> bool:
        """Tell whether disks make this call fail."""
        return self.number in _FAILED

    def inode(self, at: int) -> int:
        """Return the inode of the descriptor that is the argument at this place."""
        return os.stat(f"/proc/{self.tid}/fd/{self.arguments[at]}").st_ino


def _works() -> bool:
    """Tell whether this process may follow others here."""
    if platform.machine() != "x86_64":
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

    def __init__(self, pid: int, *, runs: bool = False) -> None:
        """Seize a process; one that `runs`, and is not stopped, is followed from the call on in which it waits. Raises OSError."""
        self.pid = pid
        self.live = {pid}
        self._errors: dict[int, int] = {}
        self._info = ctypes.create_string_buffer(96)
        _ptrace(_SEIZE, pid, 0, _SYSGOOD | _CLONE | _EXEC)
        if runs:
            _ptrace(_INTERRUPT, pid)

    def entries(self) -> Iterator[SystemCall]:
        """Yield each entry into a call. Ends with the process."""
        while self.live:
            try:
                tid, status = os.waitpid(-1, _WALL)
            except ChildProcessError:
                return
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                self.live.discard(tid)
                if tid == self.pid:
                    return
                continue
            if not os.WIFSTOPPED(status):
                continue
            self.live.add(tid)
            number, event = os.WSTOPSIG(status), status >> 16
            if number == _STOPPED_BY_CALL:
                with suppress(OSError):
                    _ptrace(_SYSCALL_INFO, tid, ctypes.sizeof(self._info), ctypes.addressof(self._info))
                    if self._info.raw[0] != _ENTRY:
                        self._leave(tid)
                    else:
                        words = [int.from_bytes(self._info.raw[at : at + 8], "little") for at in range(24, 80, 8)]
                        yield SystemCall(tid, words[0], tuple(words[1:]))
            self._go_on(tid, 0 if event or number in (_STOPPED_BY_CALL, signal.SIGTRAP) else number)

    def _go_on(self, tid: int, number: int) -> None:
        try:
            _ptrace(_SYSCALL, tid, 0, number)
        except OSError as err:
            if err.errno != errno.ESRCH:
                raise

    def _leave(self, tid: int) -> None:
        if (error := self._errors.pop(tid, None)) is not None:
            _ptrace(_POKEUSER, tid, _RAX, -error & 0xFFFF_FFFF_FFFF_FFFF)

    def fail(self, call: SystemCall, error: int) -> None:
        """Let a call that was just entered fail; it is not made."""
        _ptrace(_POKEUSER, call.tid, _ORIG_RAX, 0xFFFF_FFFF_FFFF_FFFF)
        self._errors[call.tid] = error


needs_ptrace = pytest.mark.skipif(not _works(), reason="needs ptrace, and x86-64")


def states(steps: Iterator[SystemCall], *folders: str | os.PathLike[str]) -> Iterator[tuple[int, SystemCall]]:
    """Yield each call with the number of states of the disk that were seen up to it, the first being 1."""
    count, last, changed = 0, b"", True
    for call in steps:
        if changed:
            now = _fingerprint(*folders)
            count += now != last
            last = now
        # In a process with threads this may be another one's call, which has not ended: what it does is seen after the next.
        changed = call.may_change
        yield count, call


def _fingerprint(*folders: str | os.PathLike[str]) -> bytes:
    """Return a digest of all that a kill would leave below folders."""
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


class Unsynced:
    """Which files were written to, and in which folders names were exchanged, so that a power cut would undo it."""

    def __init__(self) -> None:
        self.inodes: set[int] = set()

    def see(self, call: SystemCall) -> None:
        """Note a call that writes to a file, renames in a folder that is held open, or syncs either."""
        with suppress(OSError):
            if call.number in _WRITES:
                self.inodes.add(call.inode(0))
            elif call.number in _RENAMES:
                self.inodes |= {call.inode(0), call.inode(2)}
            elif call.number in _SYNCS:
                self.inodes.discard(call.inode(0))


# --- the process that victims are forked from ---


class Template:
    """A process that has loaded everything; it forks one victim for each order (see `fault_victim.py`)."""

    def __init__(self, folder: Path) -> None:
        self.out = folder / "out"
        self.child = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("fault_victim.py"), folder / "scratch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        assert self.child.stdout.readline() == "ready\n"

    def victim(self, project: Path, tool: str, parameters: dict, **more: object) -> int:
        """Fork a process that makes one call; it is stopped when this returns."""
        self.out.unlink(missing_ok=True)
        order = {"project": str(project), "tool": tool, "parameters": parameters, "out": str(self.out), **more}
        self.child.stdin.write(json.dumps(order) + "\n")
        self.child.stdin.flush()
        return int(self.child.stdout.readline())

    def ended(self) -> int:
        """Return how the victim ended."""
        return int(self.child.stdout.readline())

    def said(self) -> dict:
        """Return the victim's `answer`, and how many descriptors it `leaked`."""
        return json.loads(self.out.read_text())

    def close(self) -> None:
        """End it."""
        self.child.stdin.close()
        self.child.wait(30)
        self.child.stdout.close()


class Victim(NamedTuple):
    """What is followed, by whom; `release` lets it go on; `ended` is told which processes were killed with it, waits for all that it
    started, and returns whether it was killed.
    """

    stepper: Stepper
    release: Callable[[], object]
    ended: Callable[[set[int]], bool]


def killed_at(victim: Victim, nth: int | None, *folders: str | os.PathLike[str], seen: Callable[[int], object] = int) -> bool:
    """Let a victim run, killed at the n-th state of the disk, each of which is `seen`; return whether it was killed."""
    victim.release()
    last, reached, dying = 0, False, set()
    for count, _ in states(victim.stepper.entries(), *folders):
        if count != last:
            last = count
            seen(count)
        if count == nth and not reached:
            reached = True
            dying = descendants(victim.stepper.pid)
            os.kill(victim.stepper.pid, signal.SIGKILL)
    return victim.ended(dying) or reached

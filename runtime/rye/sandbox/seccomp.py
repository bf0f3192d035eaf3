"""System call filters (classic BPF, for `seccomp(2)`): which system calls a command may not make.

Always refused: the kernel's key rings (they are not part of any namespace), `bpf`, performance events, opening by handle,
`io_uring` (what it does passes no filter), new user namespaces, limits of other processes, device files, modes with a setuid
or setgid bit: such a program, left in the project, would give another local user the rights of this one.
With the network off also sockets; with `run` off every `execve` but the first, which is recognised by the addresses
of its three arguments; they are random (over 100 bits), and no process can read a filter back or see the memory of what it
replaced. Programs of another architecture are refused as a whole, for their calls have other numbers.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    Sockets = Literal["all", "own network", "none"]
    # The addresses of the one `execve` that is let through: path, arguments, environment.
    Ticket = tuple[int, int, int]

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000

_CALLS: Final[dict[str, dict[str, int]]] = {
    "x86_64": {
        "": 0xC000003E, "socket": 41, "socketpair": 53, "execve": 59, "execveat": 322,
        "io_uring_setup": 425, "add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321, "perf_event_open": 298,
        "open_by_handle_at": 304,
        "unshare": 272, "clone": 56, "clone3": 435, "prlimit64": 302,
        "open": 2, "creat": 85, "openat": 257, "openat2": 437,
        "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "mknod": 133, "mknodat": 259,
    },
    "aarch64": {
        "": 0xC00000B7, "socket": 198, "socketpair": 199, "execve": 221, "execveat": 281,
        "io_uring_setup": 425, "add_key": 217, "request_key": 218, "keyctl": 219, "bpf": 280, "perf_event_open": 241,
        "open_by_handle_at": 265,
        "unshare": 97, "clone": 220, "clone3": 435, "prlimit64": 261,
        "openat": 56, "openat2": 437,
        "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "mknodat": 33,
    },
}  # fmt: skip
_NEVER = ("add_key", "request_key", "keyctl", "bpf", "perf_event_open", "open_by_handle_at", "io_uring_setup")
# Calls that set a mode, with the number of its argument.
_MODE_OF = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
# Calls that open, with the number of the argument of their flags; the mode is the next one.
_FLAGS_OF = {"open": 1, "openat": 2}
_SET_ID = 0o6000
# O_CREAT and O_TMPFILE: without them the mode means nothing, and may be anything.
_CREATES = 0o100 | 0o20000000
_FILE_TYPE, _CHARACTER_DEVICE, _BLOCK_DEVICE = 0o170000, 0o020000, 0o060000
_INET, _INET6, _NETLINK = 2, 10, 16
_STREAM, _SEQPACKET, _TYPE = 1, 5, 0xF
_NEW_USER = 0x10000000


def supported() -> bool:
    """Tell whether filters can be made for this machine."""
    return os.uname().machine in _CALLS


def number_of(call: str) -> int:
    """Return a system call's number on this machine."""
    return _CALLS[os.uname().machine][call]


@lru_cache(maxsize=8)
def program(sockets: Sockets, ticket: Ticket | None = None) -> bytes:
    """Return a filter as an array of `struct sock_filter`.

    Args:
        sockets: `own network` leaves Internet sockets (of a namespace with nothing in it), `none` leaves pairs only.
        ticket: if given, no program is started but by the call with these addresses.
    """
    calls = _CALLS[os.uname().machine]
    # The architecture first: the same number is another call on i386, which an x86-64 kernel also runs.
    code = [_step(_LOAD, _ARCHITECTURE), _step(_EQUAL, calls[""], 1, 0), _step(_RETURN, _KILL), _step(_LOAD, _NUMBER)]
    if os.uname().machine == "x86_64":
        # x32 calls report the same architecture with this bit set in the number, and would pass every comparison below.
        code += [_step(_AT_LEAST, _X32, 0, 1), _refuse(errno.ENOSYS)]
    for name in _NEVER:
        code += _when(calls[name], [_refuse(errno.EPERM)])
    for name in ("unshare", "clone"):
        # Only the flag for a user namespace: threads and ordinary processes need `clone` itself.
        code += _when(calls[name], _only((0,), mask=_NEW_USER, code=errno.EPERM))
    # Of its own process alone: a limit of processor time would kill another.
    code += _when(calls["prlimit64"], _only((0,), code=errno.EPERM))
    # Their flags lie in memory, where a filter cannot look; programs then use the older calls.
    for name in ("clone3", "openat2"):
        code += _when(calls[name], [_refuse(errno.ENOSYS)])
    for name, argument in _MODE_OF.items():
        if name in calls:
            code += _when(calls[name], [*(_no_device(argument) if "mknod" in name else ()), *_no_set_id(argument)])
    for name, argument in _FLAGS_OF.items():
        if name in calls:
            # Without O_CREAT the mode argument is whatever a register holds: it must not be judged.
            creates = [*_load(argument, _CREATES), _step(_EQUAL, 0, 0, 1), _step(_RETURN, _ALLOW)]
            code += _when(calls[name], [*creates, *_no_set_id(argument + 1)])
    if sockets != "all":
        # Netlink too: programs list their interfaces with it and fail oddly without it.
        families = (_INET, _INET6, _NETLINK) if sockets == "own network" else ()
        code += _when(calls["socket"], _only(families))
        # A pair of datagrams could still be sent to any path.
        code += _when(calls["socketpair"], _only((_STREAM, _SEQPACKET), argument=1, mask=_TYPE))
    if ticket:
        # The launcher uses `execve` alone, so this other way needs no exception.
        code += _when(calls["execveat"], [_refuse(errno.EACCES)])
        code += _when(calls["execve"], _exactly(ticket))
    return b"".join([*code, _step(_RETURN, _ALLOW)])


def _step(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    # struct sock_filter: operation, jump if true, jump if false, constant.
    return struct.pack("=HBBI", code, if_so, if_not, value)


def _refuse(code: int) -> bytes:
    return _step(_RETURN, _ERRNO | code)


def _when(number: int, then: list[bytes]) -> list[bytes]:
    """Run steps that end in a return for one call number."""
    # A jump is relative and counts steps; `then` must end in a return, else it would run into the next test.
    return [_step(_EQUAL, number, 0, len(then)), *then]


def _load(argument: int, mask: int) -> list[bytes]:
    return [_step(_LOAD, _ARGUMENTS + 8 * argument), _step(_AND, mask)]


def _no_set_id(argument: int) -> list[bytes]:
    return [*_load(argument, _SET_ID), _step(_EQUAL, 0, 0, 1), _step(_RETURN, _ALLOW), _refuse(errno.EPERM)]


def _no_device(argument: int) -> list[bytes]:
    steps = _load(argument, _FILE_TYPE)
    for kind in (_CHARACTER_DEVICE, _BLOCK_DEVICE):
        steps += [_step(_EQUAL, kind, 0, 1), _refuse(errno.EPERM)]
    return steps


def _only(values: tuple[int, ...], argument: int = 0, mask: int = 0xFFFFFFFF, code: int = errno.EACCES) -> list[bytes]:
    steps = _load(argument, mask)
    for value in values:
        # The filter sees the low half of the argument only, which is all that an int in C holds.
        steps += [_step(_EQUAL, value, 0, 1), _step(_RETURN, _ALLOW)]
    return [*steps, _refuse(code)]


def _exactly(addresses: Ticket) -> list[bytes]:
    steps: list[bytes] = []
    for index, address in enumerate(addresses):
        # Little-endian on both machines: the low half comes first.
        for offset, half in ((0, address & 0xFFFFFFFF), (4, address >> 32)):
            steps += [_step(_LOAD, _ARGUMENTS + 8 * index + offset), _step(_EQUAL, half, 1, 0), _refuse(errno.EACCES)]
    return [*steps, _step(_RETURN, _ALLOW)]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install(code: bytes) -> None:
    """Install a filter for this thread and all that it starts; `no_new_privs` must be set.

    Raises:
        OSError: the kernel refuses it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    # A name for the buffer: the kernel reads it through a pointer that does not keep it alive.
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
    if libc.prctl(22, 2, ctypes.byref(filter_), 0, 0):
        code_ = ctypes.get_errno()
        raise OSError(code_, os.strerror(code_))

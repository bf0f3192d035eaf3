"""System call filters (classic BPF, as `seccomp(2)` takes them): what a command may not ask of the kernel at all.

Always refused: the kernel's key rings (they are not part of any namespace), `bpf`, performance events, opening by handle and
new user namespaces.
With the network off: sockets. Without leave to start programs: every `execve` but the first, which is known by the addresses
of its three arguments; they are random (over 100 bits), and no process can read a filter back or see the memory of what it
replaced. Programs of another architecture are refused as a whole, for their calls have other numbers.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from dataclasses import dataclass
from typing import Final, Literal

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000

_CALLS: Final[dict[str, dict[str, int]]] = {
    "x86_64": {
        "": 0xC000003E, "socket": 41, "socketpair": 53, "execve": 59, "execveat": 322, "io_uring_setup": 425, "add_key": 248,
        "request_key": 249, "keyctl": 250, "bpf": 321, "perf_event_open": 298, "open_by_handle_at": 304,
        "unshare": 272, "clone": 56, "clone3": 435,
    },
    "aarch64": {
        "": 0xC00000B7, "socket": 198, "socketpair": 199, "execve": 221, "execveat": 281, "io_uring_setup": 425, "add_key": 217,
        "request_key": 218, "keyctl": 219, "bpf": 280, "perf_event_open": 241, "open_by_handle_at": 265,
        "unshare": 97, "clone": 220, "clone3": 435,
    },
}  # fmt: skip
_NEVER = ("add_key", "request_key", "keyctl", "bpf", "perf_event_open", "open_by_handle_at")
_INET, _INET6, _NETLINK = 2, 10, 16
_STREAM, _SEQPACKET, _TYPE = 1, 5, 0xF
_NEW_USER = 0x10000000

Sockets = Literal["all", "own network", "none"]


@dataclass(frozen=True, slots=True)
class Ticket:
    """The addresses of the one `execve` that is let through: path, arguments, environment."""

    addresses: tuple[int, int, int]


def supported() -> bool:
    """Tell whether filters can be made for this machine."""
    return os.uname().machine in _CALLS and os.uname().sysname == "Linux"


def number_of(call: str) -> int:
    """Return a system call's number on this machine."""
    return _CALLS[os.uname().machine][call]


def program(sockets: Sockets, ticket: Ticket | None = None) -> bytes:
    """Return a filter as an array of `struct sock_filter`.

    Args:
        sockets: `own network` leaves Internet sockets (of a namespace with nothing in it), `none` leaves pairs only.
        ticket: if given, no program is started but by the call with these addresses.
    """
    calls = _CALLS[os.uname().machine]
    code = [_step(_LOAD, _ARCHITECTURE), _step(_EQUAL, calls[""], 1, 0), _step(_RETURN, _KILL), _step(_LOAD, _NUMBER)]
    if os.uname().machine == "x86_64":
        code += [_step(_AT_LEAST, _X32, 0, 1), _refuse(errno.ENOSYS)]
    for name in _NEVER:
        code += _when(calls[name], [_refuse(errno.EPERM)])
    for name in ("unshare", "clone"):
        code += _when(calls[name], _only((0,), mask=_NEW_USER, code=errno.EPERM))
    # Its flags lie in memory, where a filter cannot look; the C library then uses the older call.
    code += _when(calls["clone3"], [_refuse(errno.ENOSYS)])
    if sockets != "all":
        families = (_INET, _INET6, _NETLINK) if sockets == "own network" else ()
        code += _when(calls["socket"], _only(families))
        # A pair of datagrams could still be sent to any path.
        code += _when(calls["socketpair"], _only((_STREAM, _SEQPACKET), argument=1, mask=_TYPE))
        code += _when(calls["io_uring_setup"], [_refuse(errno.EPERM)])
    if ticket:
        code += _when(calls["execveat"], [_refuse(errno.EACCES)])
        code += _when(calls["execve"], _exactly(ticket.addresses))
    return b"".join([*code, _step(_RETURN, _ALLOW)])


def _step(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_so, if_not, value)


def _refuse(code: int) -> bytes:
    return _step(_RETURN, _ERRNO | code)


def _when(number: int, then: list[bytes]) -> list[bytes]:
    """Run steps that end in a return for one call number."""
    return [_step(_EQUAL, number, 0, len(then)), *then]


def _only(values: tuple[int, ...], argument: int = 0, mask: int = 0xFFFFFFFF, code: int = errno.EACCES) -> list[bytes]:
    steps = [_step(_LOAD, _ARGUMENTS + 8 * argument), _step(_AND, mask)]
    for value in values:
        steps += [_step(_EQUAL, value, 0, 1), _step(_RETURN, _ALLOW)]
    return [*steps, _refuse(code)]


def _exactly(addresses: tuple[int, int, int]) -> list[bytes]:
    steps: list[bytes] = []
    for index, address in enumerate(addresses):
        # Little-endian on both machines: the low half comes first.
        for offset, half in ((0, address & 0xFFFFFFFF), (4, address >> 32)):
            steps += [_step(_LOAD, _ARGUMENTS + 8 * index + offset), _step(_EQUAL, half, 1, 0), _refuse(errno.EACCES)]
    return [*steps, _step(_RETURN, _ALLOW)]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install(code: bytes) -> None:
    """Put a filter on this thread and all that it starts; `no_new_privs` must be set.

    Raises:
        OSError: the kernel refuses it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
    if libc.prctl(22, 2, ctypes.byref(filter_), 0, 0):
        code_ = ctypes.get_errno()
        raise OSError(code_, os.strerror(code_))

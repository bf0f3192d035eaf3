"""A small program that gives up rights and then becomes the command: `python -I -S confined_start.py PLAN_FD`.

It runs as a process of its own because the server has threads, after which nothing but `exec` is safe in a forked child.
The plan is JSON in an inherited descriptor: `argv`, `env`, `cwd`, `limits` {name: [soft, hard]}, and what to give up:
`rules` [[path, rights], …] (Landlock, or null), `tcp`, `sockets` (see `rye.toolkit.seccomp`), `programs`, `keep` (capability
numbers, or null for no change).
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import sys
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    # After the standard library, so that no module beside this package stands in for one of its own.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from rye.toolkit import landlock, seccomp

if TYPE_CHECKING:
    from collections.abc import Sequence

_NO_NEW_PRIVILEGES, _DROP_BOUNDING, _AMBIENT, _AMBIENT_CLEAR = 38, 24, 47, 4
_CAPABILITIES_VERSION = 0x20080522
_PRIVATE_ANONYMOUS, _NO_REPLACE, _READ_WRITE = 0x22, 0x100000, 3
_PAGE = 4096


def command(plan: dict[str, Any]) -> tuple[list[str], int]:
    """Return the command that starts a plan, and the descriptor of the plan that it must inherit."""
    fd = os.memfd_create("rye", os.MFD_CLOEXEC)
    os.write(fd, json.dumps(plan).encode())
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(fd)], fd


def needed() -> list[str]:
    """Return the places that this program must be able to read: the interpreter's and this package's."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [sys.executable, os.path.realpath(sys.executable), sys.prefix, sys.base_prefix, package]


def start(plan: dict[str, Any]) -> None:
    """Give up what the plan says and become its command.

    Raises:
        OSError: a right could not be given up; nothing was started.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    os.chdir(plan["cwd"])
    _limit(plan["limits"])
    if plan["keep"] is not None:
        _drop_capabilities(libc, plan["keep"])
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs was refused")
    if plan["rules"] is not None:
        landlock.restrict([(path, rights) for path, rights in plan["rules"]], tcp=plan["tcp"])
    argv, env = plan["argv"], plan["env"]
    if plan["programs"]:
        seccomp.install(seccomp.program(plan["sockets"]))
        os.execvpe(argv[0], argv, env)  # noqa: S606 - this is what the program is for
    _start_the_last(libc, plan["sockets"], argv, env)


def _limit(limits: dict[str, list[int]]) -> None:
    import resource

    for name, (soft, hard) in limits.items():
        number = getattr(resource, name)
        most = resource.getrlimit(number)[1]
        inside = [one if most == resource.RLIM_INFINITY else min(one, most) for one in (soft, hard)]
        resource.setrlimit(number, (inside[0], inside[1]))


def _drop_capabilities(libc: ctypes.CDLL, keep: Sequence[int]) -> None:
    """Lose all capabilities but `keep`; root does not get them back by starting a program, for the bounding set loses them."""
    libc.prctl(_AMBIENT, _AMBIENT_CLEAR, 0, 0, 0)
    for number in range(64):
        if number not in keep:
            libc.prctl(_DROP_BOUNDING, number, 0, 0, 0)
    mask = sum(1 << number for number in keep)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    data = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    if libc.capset(header, data):
        raise OSError(ctypes.get_errno(), "the capabilities could not be dropped")


def _start_the_last(libc: ctypes.CDLL, sockets: seccomp.Sockets, argv: list[str], env: dict[str, str]) -> None:
    """Become the command by the one call that the filter lets through."""
    import shutil

    path = shutil.which(argv[0], path=env.get("PATH", os.defpath))
    if path is None:
        raise FileNotFoundError(2, "there is no such program", argv[0])
    values = [os.fsencode(one) for one in argv], [os.fsencode(f"{name}={value}") for name, value in env.items()]
    lists = [(ctypes.c_char_p * (len(one) + 1))(*one, None) for one in values]
    addresses = (
        _at_random(libc, os.fsencode(path) + b"\0"),
        _at_random(libc, bytes(lists[0])),
        _at_random(libc, bytes(lists[1])),
    )
    seccomp.install(seccomp.program(sockets, seccomp.Ticket(addresses)))
    number = seccomp.number_of("execve")
    libc.syscall(ctypes.c_long(number), *(ctypes.c_void_p(one) for one in addresses))
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)


def _at_random(libc: ctypes.CDLL, data: bytes) -> int:
    """Copy bytes to an address that nobody can guess."""
    libc.mmap.restype = ctypes.c_void_p
    size = (len(data) // _PAGE + 2) * _PAGE
    for _ in range(64):
        # 47 bits of address space on x86-64; a little less, which arm64 offers as well.
        hint = random.SystemRandom().randrange(1 << 20, 1 << 34) * _PAGE
        place = libc.mmap(ctypes.c_void_p(hint), ctypes.c_size_t(size), _READ_WRITE, _PRIVATE_ANONYMOUS | _NO_REPLACE, -1, 0)
        if place == hint:
            address = hint + random.SystemRandom().randrange(0, _PAGE // 16) * 16
            ctypes.memmove(address, data, len(data))
            return address
    raise OSError(12, "no random address was free")


def _main() -> int:
    with open(int(sys.argv[1]), "rb") as file:
        file.seek(0)
        plan = json.loads(file.read())
    try:
        start(plan)
    except OSError as err:
        # As a shell says it, and with its exit codes.
        sys.stderr.write(f"{err.filename or plan['argv'][0]}: {err.strerror}\n")
        return 127 if isinstance(err, FileNotFoundError) else 126
    return 126


if __name__ == "__main__":
    sys.exit(_main())

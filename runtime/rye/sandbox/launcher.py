"""A small program that gives up rights and then becomes the command: `python -I -S launcher.py PLAN_FD`.

It is a separate program because the server has threads, and in a forked child of those nothing but `exec` is safe.
The plan is JSON in an inherited descriptor: `argv`, `env`, `cwd`, `limits` {name: [soft, hard]}, and what to give up:
`rules` [[path, rights], …] (Landlock, or null), `tcp`, `sockets` (see `rye.sandbox.seccomp`), `programs` (whether others may be
started), `user` (user and group to become, or null). With rules root gives up its capabilities.

Landlock by its three system calls: a process gives up, for itself and all that it starts, what no rule allows.

Rules allow by folder and for everything below it; there is no rule that takes something away again. What it can refuse grew
with its versions (`abi`): 2 renames between folders, 3 truncation, 4 TCP, 5 device control, 6 signals and abstract sockets.
It says nothing about UDP, modes, owners, times and extended attributes, and hides no process.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import struct
import sys
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

if __name__ == "__main__":
    # After the standard library, so that no module beside this package stands in for one of its own.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from rye.sandbox import seccomp

# The same numbers on every architecture.
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_OPENAT2, _NO_SYMLINKS = 437, 0x04
_VERSION, _BENEATH = 1, 1
_FILE_RIGHTS: Final = 0x1 | 0x2 | 0x4 | 0x4000 | 0x8000
READ: Final = 0x1 | 0x4 | 0x8
"""Execute, read files, list folders."""
LIST: Final = 0x8
"""List folders, and nothing else."""
FILES: Final = 0x2 | 0x4 | 0x8 | 0x20 | 0x100 | 0x4000
"""Make, read, write and remove files, and list folders."""
_ALL = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
_DEVICE: Final = 0x2 | 0x4 | 0x4000 | 0x8000
_TCP, _SCOPES = 0x3, 0x3
# A domain must refuse something: the filter refuses this anyway.
_MAKE_DEVICES: Final = 0x40


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@cache
def abi() -> int:
    """Return the version of Landlock that this kernel offers; 0 for none."""
    return max(0, int(_libc().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))))


def all_rights() -> int:
    """Return all the rights over files that this kernel can refuse."""
    return _ALL[min(abi(), 5)]


def device() -> int:
    """Return the rights to use a device file."""
    return _DEVICE & all_rights()


def restrict(rules: Iterable[tuple[str, int]], *, tcp: bool) -> None:
    """Confine this thread: files by `rules` (path, rights) only; without `tcp`, no TCP; signals and abstract sockets inside.

    `no_new_privs` must be set. A path that does not exist is left out.

    Raises:
        OSError: the kernel refuses it.
    """
    version = abi()
    handled = all_rights()
    attributes = struct.pack("=Q", handled)
    # Older kernels refuse a structure with fields that they do not know (E2BIG), so it grows with the version.
    if version >= 4:
        attributes += struct.pack("=Q", 0 if tcp else _TCP)
    if version >= 6:
        attributes += struct.pack("=Q", _SCOPES)
    # Rights that are not handled stay allowed everywhere: all that this kernel knows are handled.
    ruleset = _call(_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    try:
        for path, rights in rules:
            _allow(ruleset, path, rights & handled)
        _call(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _stand_apart() -> None:
    """Refuse this process to look into any outside of its own domain, which bubblewrap's own is: that may start programs."""
    ruleset = _call(_CREATE, struct.pack("=Q", _MAKE_DEVICES), ctypes.c_size_t(8), ctypes.c_uint32(0))
    try:
        _call(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        # A command that runs already may put a link at a path of the project after it was listed: links are not followed.
        how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, _NO_SYMLINKS)
        fd = _call(_OPENAT2, ctypes.c_int(-100), os.fsencode(path), how, ctypes.c_size_t(len(how)))
    except OSError as err:
        if err.errno != errno.ENOSYS:
            return
        # Inside another sandbox, whose filter refuses the call.
        try:
            fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return
    try:
        # The kernel refuses (EINVAL) a rule that gives a file rights over folders.
        allowed = rights if os.path.isdir(path) else rights & _FILE_RIGHTS
        _call(_ADD, ctypes.c_int(ruleset), ctypes.c_int(_BENEATH), struct.pack("=Qi", allowed, fd), ctypes.c_uint32(0))
    finally:
        os.close(fd)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc().syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


_NO_NEW_PRIVILEGES, _DROP_BOUNDING, _AMBIENT, _AMBIENT_CLEAR = 38, 24, 47, 4
_CAPABILITIES_VERSION = 0x20080522
_PRIVATE_ANONYMOUS, _NO_REPLACE, _READ_WRITE = 0x22, 0x100000, 3
_PAGE = 4096
# `rye.process.run.RUN_VARIABLE`: this program starts without the packages above it.
_MARKS = ("RYE_RUN",)
_ITEMS = ("tools", "directives", "knowledge", "config", "trusted_keys", "bundles")


def command(plan: dict[str, Any]) -> tuple[list[str], int]:
    """Return the command that starts a plan, and the descriptor of the plan that it must inherit."""
    fd = os.memfd_create("rye", os.MFD_CLOEXEC)
    os.write(fd, json.dumps(plan).encode())
    return [_interpreter(), "-I", "-S", os.path.abspath(__file__), str(fd)], fd


def import_folder() -> str:
    """Return the folder that holds this package: whoever imports the package must be able to list it."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def own_paths() -> list[str]:
    """Return the paths that this program must be able to read: the interpreter's and this package's."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [_named(), _interpreter(), sys.prefix, sys.base_prefix, package, *_items_beside(package)]


def _items_beside(package: str) -> list[str]:
    """Return the folders of the system's items in a checkout: without them `rt` in a command would find no tool."""
    bundle = f"{os.path.dirname(os.path.dirname(package))}/.ai"
    # A release has them inside the package. Of a checkout nothing else of `.ai` is shown: its cache is the user's own.
    return [] if os.path.isdir(f"{package}/.ai") else [path for name in _ITEMS if os.path.isdir(path := f"{bundle}/{name}")]


def _named() -> str:
    # Not above, since this module also runs by itself, in each sandbox without bubblewrap.
    from rye.config import user_dirs

    return user_dirs.python()


@cache
def _interpreter() -> str:
    """Return the interpreter as the kernel knows the running one: a link on the way of its name may lie in the project."""
    named = _named()
    try:
        return os.readlink("/proc/self/exe") if named == sys.executable else os.path.realpath(named)
    except OSError:
        return os.path.realpath(named)


def start(plan: dict[str, Any]) -> None:
    """Give up what the plan says and become its command.

    Raises:
        OSError: a right could not be given up; nothing was started.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    os.chdir(plan["cwd"])
    limit(plan["limits"])
    if plan.get("user"):
        user, group = plan["user"]
        # Groups first, user last: after setuid the process may no longer change its groups.
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)
    if plan["rules"] is not None and os.geteuid() == 0:
        _drop_capabilities(libc)
    # Before Landlock and the filter: the kernel accepts neither from a process that could gain rights.
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs was refused")
    if plan["rules"] is not None:
        restrict([(path, rights) for path, rights in plan["rules"]], tcp=plan["tcp"])
    elif not plan["programs"] and abi():
        _stand_apart()
    argv, env = plan["argv"], plan["env"]
    # The mark by which the processes of a run are found when whoever guarded them was killed.
    env = {**env, **{name: os.environ[name] for name in _MARKS if name in os.environ}}
    if plan["programs"]:
        # Last, because the filter also applies to this process; only execve follows.
        seccomp.install(seccomp.program(plan["sockets"]))
        os.execvpe(argv[0], argv, env)  # noqa: S606 - this is what the program is for
    _start_the_last(libc, plan["sockets"], argv, env)


def limit(limits: dict[str, list[int]]) -> None:
    """Set this process's limits, each `[soft, hard]` by its name; none above what it has."""
    import resource

    for name, (soft, hard) in limits.items():
        number = getattr(resource, name)
        # A hard limit can only be lowered; a request above it would fail instead of using what is left.
        most = resource.getrlimit(number)[1]
        inside = [one if most == resource.RLIM_INFINITY else min(one, most) for one in (soft, hard)]
        resource.setrlimit(number, (inside[0], inside[1]))


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Drop all capabilities, also from the bounding set: root would get them back by starting a program."""
    libc.prctl(_AMBIENT, _AMBIENT_CLEAR, 0, 0, 0)
    for number in range(64):
        libc.prctl(_DROP_BOUNDING, number, 0, 0, 0)
    # capset(2) of version 3 takes two words a set: effective, permitted, inheritable.
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    if libc.capset(header, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "the capabilities could not be dropped")


def _start_the_last(libc: ctypes.CDLL, sockets: seccomp.Sockets, argv: list[str], env: dict[str, str]) -> None:
    """Become the command by the one `execve` that the filter allows."""
    path = _found(argv[0], env.get("PATH", os.defpath))
    values = [os.fsencode(one) for one in argv], [os.fsencode(f"{name}={value}") for name, value in env.items()]
    # The arrays point into these bytes, so both must live until execve.
    lists = [(ctypes.c_char_p * (len(one) + 1))(*one, None) for one in values]
    addresses = (
        _at_random(libc, os.fsencode(path) + b"\0"),
        _at_random(libc, bytes(lists[0])),
        _at_random(libc, bytes(lists[1])),
    )
    seccomp.install(seccomp.program(sockets, addresses))
    number = seccomp.number_of("execve")
    # Not os.execve, which copies the arguments to addresses that the filter does not know.
    libc.syscall(ctypes.c_long(number), *(ctypes.c_void_p(one) for one in addresses))
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)


def _found(name: str, search_path: str) -> str:
    places = [name] if "/" in name else [f"{folder or '.'}/{name}" for folder in search_path.split(":")]
    for place in places:
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return place
    raise FileNotFoundError(2, "there is no such program", name)


def _at_random(libc: ctypes.CDLL, data: bytes) -> int:
    """Copy bytes to an address that nobody can guess."""
    libc.mmap.restype = ctypes.c_void_p
    size = (len(data) // _PAGE + 2) * _PAGE
    for _ in range(64):
        # 47 bits of address space on x86-64; a little less, which arm64 offers as well.
        hint = (1 << 20 | int.from_bytes(os.urandom(8), "little") % (1 << 34)) * _PAGE
        # Without a free range the kernel returns another address or an error: try the next random one.
        place = libc.mmap(ctypes.c_void_p(hint), ctypes.c_size_t(size), _READ_WRITE, _PRIVATE_ANONYMOUS | _NO_REPLACE, -1, 0)
        if place == hint:
            address = hint + os.urandom(1)[0] * 16
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

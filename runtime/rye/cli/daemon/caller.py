"""What a process of the helper needs to know of its caller, and how it becomes like it.

A caller is served only if a normal start would be this very process but for its number: the same user, groups, capabilities,
namespaces, root folder, system call filters and interpreter. So a command in a sandbox, or one that gave up rights, is never
served by a process that has more. Descriptors, folder, environment, mask, limits and priority are taken over.
"""

from __future__ import annotations

import fcntl
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from rye.cli.daemon import client
from rye.plain_class import Record

# Of /proc/PID/status: what a process may do, and which signals it takes. Missing lines are those of an older kernel.
_STATUS: Final = (
    *("Uid", "Gid", "Groups", "SigBlk", "SigIgn", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs"),
    *("Seccomp", "Seccomp_filters"),
)
_NAMESPACES: Final = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")
# What the interpreter, its libraries or the loader read when a process starts: it cannot be taken over later.
_READ_AT_START: Final = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "OPENSSL_", "LOCPATH", "GCONV_PATH")
# But these two, which shells of agents often have, are taken over.
_TAKEN_OVER: Final = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
# One helper serves one space of the user: what is known in its memory is that space's.
_OF_THE_USER: Final = ("USER_SPACE", "HOME")
_LIMITS: Final = range(16)
_BEGINNING: Final = 256
_SECONDS: Final = 5.0
_MOST_BYTES: Final = 16 << 20
_BLOCK: Final = 1 << 20


class NotServedError(Exception):
    """This call needs a normal start; the text says why, for who looks into it."""


class Request(Record):
    """What a caller sent: `rye` or `rt`, its interpreter, its descriptors (its number -> ours), its words and environment."""

    command: str
    executable: str
    descriptors: dict[int, int]
    words: list[str]
    environ: dict[str, str]


def identity(pid: int) -> tuple[object, ...]:
    """Return what a process may do and see.

    Raises:
        OSError: it is gone, or may not be looked into.
    """
    with open(f"/proc/{pid}/status", encoding="ascii", errors="surrogateescape") as file:
        lines = dict(line.split(":", 1) for line in file.read().splitlines() if ":" in line)
    places = tuple(_place(f"/proc/{pid}/ns/{name}") for name in _NAMESPACES)
    root = os.stat(f"/proc/{pid}/root")
    return (tuple(lines.get(name, "").split() for name in _STATUS), places, (root.st_dev, root.st_ino), _profile(pid))


def _umask(pid: int) -> int:
    # At the beginning of the file: the rest, which takes longest, is not asked for.
    with open(f"/proc/{pid}/status", "rb", buffering=0) as file:
        return int(file.read(_BEGINNING).partition(b"\nUmask:")[2].split(None, 1)[0], 8)


def _place(path: str) -> tuple[int, int] | None:
    try:
        info = os.stat(path)
    except FileNotFoundError:
        # A kind of namespace that this kernel does not have.
        return None
    return info.st_dev, info.st_ino


def _profile(pid: int) -> bytes:
    """Return what a security module, such as AppArmor, confines a process by."""
    try:
        with open(f"/proc/{pid}/attr/current", "rb") as file:
            return file.read(4096)
    except OSError:
        return b""


def accept(connection: socket.socket, own: tuple[object, ...], check: Callable[[], None]) -> tuple[Request, int]:
    """Greet a caller, judge it, and return what it asks for, and its process.

    The judged process is the one that sent the request: its number was held by one process from before the greeting, whose
    nonce the request repeats, until after the look at it; the kernel says who sent.

    `check` is made beside.

    Raises:
        NotServedError: another kind of process than `own`, what `check` refuses, or nothing that can be served.
        OSError: it went away.
    """
    pid, user = client.credentials(connection)
    if user != os.geteuid():
        raise NotServedError("another user")
    connection.settimeout(_SECONDS)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    nonce = os.urandom(client.NONCE_BYTES)
    process, ours = os.pidfd_open(pid), os.pidfd_open(os.getpid())
    try:
        socket.send_fds(connection, [client.MAGIC + nonce], [ours])
        # While the caller writes its request.
        theirs = identity(pid)
        check()
        data, descriptors, sender = _received(connection)
        ended = bool(select.select([process], [], [], 0)[0])
    finally:
        os.close(process)
        os.close(ours)
    if ended or sender != pid or data[: client.NONCE_BYTES] != nonce:
        raise NotServedError("the request is not the caller's")
    if theirs != own:
        raise NotServedError("the caller may do or see other things")
    return _request(data[client.NONCE_BYTES :], descriptors), pid


def _received(connection: socket.socket) -> tuple[bytes, list[int], int]:
    """Return a whole request, its descriptors, and the process that sent its beginning."""
    room = socket.CMSG_SPACE(4 * 253) + socket.CMSG_SPACE(12)
    data, ancillary, _, _ = connection.recvmsg(_BLOCK, room, socket.MSG_CMSG_CLOEXEC)
    descriptors: list[int] = []
    sender = 0
    for level, kind, found in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors += (int.from_bytes(found[at : at + 4], sys.byteorder) for at in range(0, len(found) - 3, 4))
        elif level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            sender = int.from_bytes(found[:4], sys.byteorder)
    length = int.from_bytes(data[:4], "little")
    if not data[4:] or length > _MOST_BYTES:
        raise NotServedError("no request")
    while len(data) < 4 + length:
        block = connection.recv(min(_BLOCK, 4 + length - len(data)))
        if not block:
            raise NotServedError("half a request")
        data += block
    return data[4:], descriptors, sender


def _request(fields: bytes, received: list[int]) -> Request:
    try:
        command, executable, numbers, count, *rest = (os.fsdecode(one) for one in fields.split(b"\0"))
        words, environ = rest[: int(count)], rest[int(count) :]
        places = [int(number) for number in numbers.split()]
        descriptors = dict(zip(places, received, strict=True))
    except ValueError as err:
        raise NotServedError(f"no request: {err}") from None
    if command not in ("rye", "rt", client.PROBE) or not {0, 1, 2} <= descriptors.keys():
        raise NotServedError("no request")
    pairs = (one.partition("=") for one in environ)
    return Request(command, executable, descriptors, words, {name: value for name, _, value in pairs})


def check_environment(environ: Mapping[str, str]) -> None:
    """Refuse an environment in which an interpreter, once started, would be another one than this.

    Raises:
        NotServedError: it names the variable.
    """
    for name in {*environ, *os.environ} - {*_TAKEN_OVER}:
        if (name.startswith(_READ_AT_START) or name in _OF_THE_USER) and environ.get(name) != os.environ.get(name):
            raise NotServedError(f"another {name}")
    # A path that is not absolute means another folder there than here.
    if any(not os.path.isabs(path) for path in environ.get("PYTHONPATH", "/").split(":")):
        raise NotServedError("PYTHONPATH is not absolute")


def become(request: Request, pid: int, connection: socket.socket) -> socket.socket:
    """Make this process like the caller's; return the connection, which has another number now.

    Raises:
        NotServedError, OSError, ValueError: it cannot be.
    """
    if request.executable != sys.executable:
        raise NotServedError("another interpreter")
    check_environment(request.environ)
    _take_limits(pid)
    os.umask(_umask(pid))
    os.chdir(f"/proc/{pid}/cwd")
    # Cleared by name: the C library's own environment must follow.
    for name in [one for one in os.environ if one not in request.environ]:
        del os.environ[name]
    for name, value in request.environ.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    time.tzset()
    sys.dont_write_bytecode = bool(request.environ.get("PYTHONDONTWRITEBYTECODE"))
    moved = _take_descriptors(request.descriptors, connection)
    _make_streams()
    sys.argv = list(request.words)
    sys.orig_argv = [request.executable, *request.words]
    return moved


def _take_limits(pid: int) -> None:
    """Take over the limits of resources and the control group; priority and processors must be the same."""
    for number in _LIMITS:
        theirs = resource.prlimit(pid, number)
        if theirs != resource.getrlimit(number):
            resource.setrlimit(number, theirs)
    # Of each thread, and there are two: these cannot be taken over.
    if os.getpriority(os.PRIO_PROCESS, pid) != os.getpriority(os.PRIO_PROCESS, 0):
        raise NotServedError("another priority")
    if os.sched_getscheduler(pid) != os.sched_getscheduler(0):
        raise NotServedError("another kind of priority")
    if os.sched_getaffinity(pid) != os.sched_getaffinity(0):
        raise NotServedError("other processors")
    _take_group(pid)


def _take_group(pid: int) -> None:
    with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="surrogateescape") as file:
        theirs = file.read()
    with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
        ours = file.read()
    if theirs == ours:
        return
    # Of version 2 alone: one group for all that is limited.
    if not theirs.startswith("0::/") or theirs.count("\n") != 1:
        raise NotServedError("another control group")
    with open(f"/sys/fs/cgroup{theirs[3:-1]}/cgroup.procs", "w", encoding="ascii") as file:
        file.write("0")


def _take_descriptors(wanted: dict[int, int], connection: socket.socket) -> socket.socket:
    """Put the caller's descriptors where they were there; return the connection at a number that none of them has."""
    above = max(*wanted, *wanted.values(), connection.fileno()) + 1
    moved = socket.socket(fileno=fcntl.fcntl(connection.fileno(), fcntl.F_DUPFD_CLOEXEC, above))
    connection.close()
    # First all to numbers above: a number that is wanted may be that of another received one.
    held = {number: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above) for number, fd in wanted.items()}
    for fd in wanted.values():
        os.close(fd)
    for number, fd in held.items():
        os.dup2(fd, number, inheritable=True)
        os.close(fd)
    return moved


_own_streams: list[Any] = []


def _make_streams() -> None:
    """Make the standard streams as the interpreter does when it starts."""
    # What is kept of the helper's own streams tells the encoding that this interpreter chose.
    known = {name: (getattr(sys, name).encoding, getattr(sys, name).errors) for name in ("stdin", "stdout", "stderr")}
    buffering = 0 if os.environ.get("PYTHONUNBUFFERED") else -1
    for number, (name, (encoding, errors)) in enumerate(known.items()):
        # The old one lives on: its end would close the number, which is the caller's by now.
        _own_streams.append(getattr(sys, name))
        stream = _stream(number, encoding, errors, buffering)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _stream(number: int, encoding: str, errors: str, buffering: int) -> Any:
    import io

    mode = "wb" if number else "rb"
    raw: Any = open(number, mode, buffering=buffering if number else -1, closefd=False)  # noqa: SIM115 - for good
    # At a terminal line by line, standard error always so.
    by_line = bool(number) and buffering != 0 and (number == 2 or raw.isatty())
    text = io.TextIOWrapper(
        raw, encoding, errors, newline="\n" if number else None, line_buffering=by_line, write_through=not buffering
    )
    text.mode = "w" if number else "r"  # type: ignore[misc]
    return text


def end_with(connection: socket.socket) -> None:
    """Have the kernel end this process when the caller's ends, as it would end a command that was started normally.

    Raises:
        NotServedError: it has ended already.
    """
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, 10, signal.SIGKILL)  # F_SETSIG: the caller sends nothing more, so any event is its end.
    fcntl.fcntl(connection, fcntl.F_SETFL, fcntl.fcntl(connection, fcntl.F_GETFL) | fcntl.FASYNC)
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    if poll.poll(0):
        raise NotServedError("the caller went away")

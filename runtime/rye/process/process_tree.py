"""Processes below this one: start a program as the leader of a tree, wait for its members, and end them all.

For a reaper and the supervisor of a job, which start in an instant: it imports little, `_signal` in place of `signal`, whose
enumerations take as long to make as everything else here.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # see above; it has no stubs
import ctypes
import errno
import os
import resource
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_LANDLOCK_CREATE_RULESET, _LANDLOCK_RESTRICT_SELF = 444, 446
_LIBC = ctypes.CDLL(None)
_RESET = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGPIPE", "SIGXFSZ", "SIGCHLD", "SIGTTIN", "SIGTTOU", "SIGTSTP")
_GRACE_SECONDS = 1.0
# SC_OPEN_MAX can be a billion in a container; closing that many numbers one by one takes minutes.
MOST_FDS = min(os.sysconf("SC_OPEN_MAX"), 65_536)
"""The highest number of a descriptor that is looked at."""

OPEN_FILES: list[tuple[int, int]] = []
"""The limits of open files with which a command starts, where this process has raised its own."""

Variables = dict[bytes, bytes]


def adopt_orphans() -> None:
    """Make this process the one to which orphaned descendants come."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def spawn(argv: list[bytes], env: Variables, streams: tuple[int, int, int] = (0, 1, 2), *, scoped: bool = False) -> int:
    """Start a program as the leader of a session of its own, without a terminal; it dies with this process.

    Args:
        argv: program (absolute path), then arguments.
        env: its whole environment.
        streams: descriptors that become its standard streams.
        scoped: it can reach no abstract unix socket but those made by itself and what it starts.

    Raises:
        OSError: it cannot be started, with the errno of execve.
    """
    reading, writing = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            # First, so that a signal to our own group or terminal cannot end the child half-way.
            os.setsid()
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            # The parent may have died before the prctl above: then no death signal would ever come.
            if os.getppid() == parent:
                enter([], scoped=scoped)
                _become(argv, env, streams)
        except OSError as err:
            os.write(writing, str(err.errno).encode())
        finally:
            os._exit(127)
    # Our copy of the write end must go first: the read below ends when execve closes the last one.
    os.close(writing)
    with open(reading, "rb") as pipe:
        failure = pipe.read()
    if failure:
        os.waitpid(pid, 0)
        # Reap the failed child before raising, so that no zombie counts as a descendant later.
        raise OSError(int(failure), os.strerror(int(failure)), os.fsdecode(argv[0]))
    return pid


def enter(groups: list[bytes] | tuple[()], *, scoped: bool) -> None:
    """Have this process join control groups and, with `scoped`, reach no abstract unix socket of others; raises OSError."""
    for group in groups:
        fd = os.open(group + b"/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
        try:
            # This process; what it starts from then on belongs to the group, too.
            os.write(fd, b"0")
        finally:
            os.close(fd)
    if scoped:
        _scope_abstract_sockets()


def _scope_abstract_sockets() -> None:
    """Close abstract unix sockets of others to this process for good (Landlock version 6); raises OSError.

    They lie in no folder that a mount could hide. The rule set names no right over files, so mounts stay possible.
    """
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # struct landlock_ruleset_attr of version 6: no file rights, no TCP rights, then the scope bit of abstract sockets.
    attributes = bytes(16) + b"\1" + bytes(7)
    ruleset = _LIBC.syscall(_LANDLOCK_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    if ruleset < 0 or _LIBC.syscall(_LANDLOCK_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)):
        raise OSError(errno.EPERM, "abstract sockets could not be closed")
    os.close(ruleset)


def _become(argv: list[bytes], env: Variables, streams: tuple[int, int, int]) -> None:
    # Copy all before moving one: a stream's number may be the target of another.
    for target, fd in enumerate([os.dup(fd) for fd in streams]):
        os.dup2(fd, target)
    # No core files, which would lie in the project.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for limits in OPEN_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    # Python ignores SIGPIPE and a caller may block signals; both survive execve and would break shells and pipes.
    for name in _RESET:
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.execve(argv[0], argv, env)  # noqa: S606 - an absolute path, no shell


def descendants(of: int) -> list[int]:
    """Return the living processes below one, nearest first (zombies are not living)."""
    children: dict[int, list[int]] = {}
    dead: set[int] = set()
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := stat_fields(int(name))):
            children.setdefault(int(fields[1]), []).append(int(name))
            if fields[0] in (b"Z", b"X"):
                dead.add(int(name))
    found = list(children.get(of, ()))
    # The list grows while it is walked: each found process adds its own children behind it.
    for pid in found:
        found += children.get(pid, ())
    return [pid for pid in found if pid not in dead]


def stat_fields(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the state on (the parent is field 1, the start time 19); [] if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The program's name may hold spaces and brackets, so the fields are counted from the last bracket.
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def kill(pids: list[int], number: int) -> None:
    """Send a signal to those of some processes that are there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue


def reap(leader: int) -> int | None:
    """Reap dead children; return the leader's wait status if it is among them."""
    status = None
    while True:
        try:
            pid, found = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == leader:
            status = found


def end_tree(leader: int | None) -> tuple[int | None, int]:
    """Kill everything below this process.

    Args:
        leader: the program that was started, None if it was reaped already.

    Returns:
        The leader's wait status, if it was reaped here; how many processes live on after a second.
    """
    status = None
    end = time.monotonic() + _GRACE_SECONDS
    while True:
        found = reap(leader or 0)
        status = found if found is not None else status
        # Orphans come back to this process: without a child it has no descendant, and need not look through all processes.
        if is_childless():
            return status, 0
        if time.monotonic() > end:
            return status, len(descendants(os.getpid()))
        stopped: set[int] = set()
        # Stopped first: what is stopped starts nothing, so that a fork bomb is not chased for ever.
        for _ in range(50):
            fresh = [pid for pid in descendants(os.getpid()) if pid not in stopped]
            if not fresh:
                break
            kill(fresh, signal.SIGSTOP)
            stopped.update(fresh)
        kill(sorted(stopped), signal.SIGKILL)
        time.sleep(0.001)


def is_childless() -> bool:
    """Tell whether this process has no child, not even a dead one."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def children_ended() -> tuple[int, int]:
    """Return a pipe that becomes readable when a child ends or this process is asked to terminate; both ends must stay open."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    # Both ends non-blocking: a full pipe must not block the signal handler, and a spurious wake must not block the read.
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        # A handler must exist: a signal at its default action writes nothing to the wakeup descriptor.
        signal.signal(number, lambda *_: None)
    return reading, writing


def children_count_no_more() -> None:
    """Take back `children_ended`, whose pipe can be closed then."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def is_asked_to_end(woken: int) -> bool:
    """Empty the pipe of `children_ended`; tell whether this process was asked to terminate."""
    try:
        return signal.SIGTERM in os.read(woken, 4_096)
    except BlockingIOError:
        return False


def forget_inherited(*open_fds: int) -> None:
    """Close every descriptor but these, and put nothing in place of the standard streams."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    at = 3
    for fd in sorted(open_fds):
        os.closerange(at, fd)
        at = fd + 1
    os.closerange(at, MOST_FDS)

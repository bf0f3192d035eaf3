r"""The parent of a command: a small process that ends the whole tree when it is told to, or when its own parent is gone.

Run by `process` (`python -I -S -c … CONTROL STATUS`), with the command's own standard streams; its functions serve
`supervisor` too. On Linux it is a subreaper: whoever leaves the tree by a double fork or a new session comes back to it.
Every command waits for it to start. So it imports little, `_signal` in place of `signal`, whose enumerations take as long
to make as everything else here; and it is imported itself, so that it is not compiled each time.

CONTROL, read: `LENGTH\n`, then that many bytes, the order: `ARGUMENTS VARIABLES\n` (two counts), then so many strings, each
ended by NUL, variables as `NAME=value`. After the order any byte, or the end of the stream, means: end everything.
STATUS, written: the lines `failed ERRNO`, or `exited STATUS` (as of waitpid) and `ended LEFT` (how many processes could not be
ended).
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # see below; it has no stubs
import ctypes
import errno
import os
import resource
import select
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None)
_LINUX = sys.platform.startswith("linux")
_RESET = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGPIPE", "SIGXFSZ", "SIGCHLD", "SIGTTIN", "SIGTTOU", "SIGTSTP")
_PATIENCE = 1.0

Variables = dict[bytes, bytes]


def adopt_orphans() -> None:
    """Make this process the one to which orphaned descendants come (Linux)."""
    if _LINUX:
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def spawn(argv: list[bytes], env: Variables, streams: tuple[int, int, int] = (0, 1, 2)) -> int:
    """Start a program as the leader of a session of its own, without a terminal; it dies with this process (Linux).

    Args:
        argv: program (absolute path), then arguments.
        env: its whole environment.
        streams: descriptors that become its standard streams.

    Raises:
        OSError: it cannot be started, with the errno of execve.
    """
    reading, writing = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            if _LINUX:
                _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() == parent:
                _be(argv, env, streams)
        except OSError as err:
            os.write(writing, str(err.errno).encode())
        finally:
            os._exit(127)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read()
    if said:
        os.waitpid(pid, 0)
        raise OSError(int(said), os.strerror(int(said)), os.fsdecode(argv[0]))
    return pid


def _be(argv: list[bytes], env: Variables, streams: tuple[int, int, int]) -> None:
    # Copies first: a stream may stand where another is to go.
    for target, fd in enumerate([os.dup(fd) for fd in streams]):
        os.dup2(fd, target)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    for name in _RESET:
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.execve(argv[0], argv, env)  # noqa: S606 - an absolute path, no shell


def descendants(of: int) -> list[int]:
    """Return the living processes below one, nearest first (zombies are not living). Empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    dead: set[int] = set()
    for name in os.listdir("/proc") if _LINUX else ():
        if name.isdigit() and (fields := stat_fields(int(name))):
            children.setdefault(int(fields[1]), []).append(int(name))
            if fields[0] in (b"Z", b"X"):
                dead.add(int(name))
    found = list(children.get(of, ()))
    for pid in found:
        found += children.get(pid, ())
    return [pid for pid in found if pid not in dead]


def stat_fields(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the state on (the parent is field 1, the start time 19); [] if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue


def _signal_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except OSError:
        return


def reap(leader: int) -> int | None:
    """Bury dead children; return the leader's wait status if it is among them."""
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
    if leader is not None and not _LINUX:
        # Not reaped yet, so the group's number is still its own.
        _signal_group(leader)
    status = None
    end = time.monotonic() + _PATIENCE
    while True:
        stopped: set[int] = set()
        # Stopped first: what is stopped starts nothing, so that a fork bomb is not chased for ever.
        for _ in range(50):
            fresh = [pid for pid in descendants(os.getpid()) if pid not in stopped]
            if not fresh:
                break
            _signal(fresh, signal.SIGSTOP)
            stopped.update(fresh)
        _signal(sorted(stopped), signal.SIGKILL)
        found = reap(leader or 0)
        status = found if found is not None else status
        left = len(descendants(os.getpid()))
        if not left and (leader is None or status is not None):
            return status, 0
        if time.monotonic() > end:
            return status, left
        time.sleep(0.001)


def children_ended() -> tuple[int, int]:
    """Return a pipe that becomes readable when a child ends or this process is asked to terminate; both ends must stay open."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    return reading, writing


def forget_inherited(*kept: int) -> None:
    """Close every descriptor but these, and put nothing in place of the standard streams."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    at = 3
    for fd in sorted(kept):
        os.closerange(at, fd)
        at = fd + 1
    os.closerange(at, min(os.sysconf("SC_OPEN_MAX"), 65_536))


def parse_order(data: bytes) -> tuple[list[bytes], Variables]:
    """Return the argv and environment that an order holds."""
    counts, _, rest = data.partition(b"\n")
    arguments = int(counts.split()[0])
    strings = rest.split(b"\0")[:-1]
    pairs = (text.partition(b"=") for text in strings[arguments:])
    return strings[:arguments], {name: value for name, _, value in pairs}


def _order(control: int) -> bytes:
    data = b""
    while True:
        length, line, rest = data.partition(b"\n")
        if line and len(rest) >= int(length):
            if len(rest) > int(length):
                # The end was asked for before the beginning.
                sys.exit(0)
            return rest
        block = os.read(control, 1 << 16)
        if not block:
            sys.exit(1)
        data += block


def _say(status: int, text: str) -> None:
    try:
        os.write(status, text.encode() + b"\n")
    except OSError:
        # Nobody listens any more; the tree is ended all the same.
        return


def main(control: int, status: int) -> None:
    """Start what the order names, tell of it, and end its tree when the time comes."""
    for fd in (control, status):
        os.set_inheritable(fd, False)
    argv, env = parse_order(_order(control))
    adopt_orphans()
    woken, waker = children_ended()
    try:
        leader: int | None = spawn(argv, env)
    except OSError as err:
        _say(status, f"failed {err.errno or errno.EIO}")
        return
    forget_inherited(control, status, woken, waker)
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while True:
        ready = [fd for fd, _ in poll.poll()]
        terminated = woken in ready and signal.SIGTERM in os.read(woken, 4_096)
        found = reap(leader or 0)
        if control in ready or terminated:
            late, left = end_tree(leader if found is None else None)
            found = late if found is None else found
        if found is not None:
            leader = None
            _say(status, f"exited {found}")
        if control in ready or terminated:
            _say(status, f"ended {left}")
            return


def run() -> None:
    """Be the guard that the command line names; end without tidying an interpreter that is gone at once."""
    main(int(sys.argv[1]), int(sys.argv[2]))
    os._exit(0)

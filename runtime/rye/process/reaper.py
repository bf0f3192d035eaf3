r"""The parent of a command: a small process that ends the whole tree when it is asked to, or when its own parent is gone.

Forked before it is needed by a small process of one thread (`serve`, started as `python -I -S -c … LINE`): a command waits for
no interpreter. It can become the supervisor of a job. On Linux it is a subreaper: whoever leaves the tree by a double
fork or a new session comes back to it. It imports little, `_signal` in place of `signal`, whose enumerations take as long to
make as everything else here; and it is imported itself, so that it is not compiled each time.

A reaper reads from its socket `LENGTH\n`, then that many bytes, the order: `ARGUMENTS VARIABLES SCOPED KEPT NUMBER…\n` (two
counts, 0 or 1, a count, the numbers of descriptors), then so many strings, each ended by NUL: the command, variables as
`NAME=value`. Beside it, and beside empty lines before it, come the descriptors: the working directory, three streams, and those
of the numbers, of which the last KEPT are not the command's. After the order `j`, the path of our packages, NUL and the path of
a job's order mean: go on as the supervisor of a job, with the descriptors kept. Where SCOPED is 2, the arguments are these two
paths, and the supervisor starts the command itself. Any other byte, or the end of the stream, means: end everything.
Where nothing was asked and nothing is left, the next order may follow.
It writes the lines `failed ERRNO`, or `began PID`, `exited STATUS` (as of waitpid) and `ended LEFT` (how many processes could
not be ended); `job ERRNO`, 0 where it is a supervisor from then on.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # see above; it has no stubs
import _socket as socket  # likewise
import array
import ctypes
import errno
import fcntl
import os
import resource
import select
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_LANDLOCK_CREATE_RULESET, _LANDLOCK_RESTRICT_SELF = 444, 446
_LIBC = ctypes.CDLL(None)
_RESET = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGPIPE", "SIGXFSZ", "SIGCHLD", "SIGTTIN", "SIGTTOU", "SIGTSTP")
_GRACE_SECONDS = 1.0
# What SCOPED of an order can be, besides 0.
_SCOPED, _JOB = 1, 2
# SC_OPEN_MAX can be a billion in a container; closing that many numbers one by one takes minutes.
_MOST_FDS = min(os.sysconf("SC_OPEN_MAX"), 65_536)
_FDS_AT_ONCE = 250
# Of the process that forks reapers, which raises its own: what a command starts with.
_OPEN_FILES: list[tuple[int, int]] = []

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
    for limits in _OPEN_FILES:
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


def _signal(pids: list[int], number: int) -> None:
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
        if _is_childless():
            return status, 0
        if time.monotonic() > end:
            return status, len(descendants(os.getpid()))
        stopped: set[int] = set()
        # Stopped first: what is stopped starts nothing, so that a fork bomb is not chased for ever.
        for _ in range(50):
            fresh = [pid for pid in descendants(os.getpid()) if pid not in stopped]
            if not fresh:
                break
            _signal(fresh, signal.SIGSTOP)
            stopped.update(fresh)
        _signal(sorted(stopped), signal.SIGKILL)
        time.sleep(0.001)


def _is_childless() -> bool:
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
    os.closerange(at, _MOST_FDS)


def parse_order(data: bytes) -> tuple[list[bytes], Variables, int, list[int], list[int]]:
    """Return an order: argv, environment, SCOPED, the command's descriptors, and the kept."""
    counts, _, rest = data.partition(b"\n")
    arguments, _, scoped, kept, *numbers = map(int, counts.split())
    # NUL ends each string, because neither an argument nor a variable can contain one.
    strings = rest.split(b"\0")[:-1]
    pairs = (text.partition(b"=") for text in strings[arguments:])
    env = {name: value for name, _, value in pairs}
    return strings[:arguments], env, scoped, numbers[: len(numbers) - kept], numbers[len(numbers) - kept :]


def send_order(line: socket.socket, order: bytes, fds: list[int]) -> None:
    """Send an order with its descriptors; see the top. Raises OSError."""
    # The kernel takes 253 descriptors beside one message.
    while len(fds) > _FDS_AT_ONCE:
        _send(line, b"\n", fds[:_FDS_AT_ONCE])
        fds = fds[_FDS_AT_ONCE:]
    # Together: the reaper is woken once, and needs not wait for a processor a second time.
    line.sendall(order[_send(line, order, fds) :])


def _send(line: socket.socket, data: bytes, fds: list[int]) -> int:
    return line.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds).tobytes())])


def _received(line: socket.socket) -> tuple[bytes, list[int]]:
    """Return the next block and the descriptors that came with it."""
    data, extra, _, _ = line.recvmsg(1 << 16, socket.CMSG_LEN(4 * _FDS_AT_ONCE), socket.MSG_CMSG_CLOEXEC)
    fds = array.array("i")
    for level, kind, content in extra:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(content)
    return data, list(fds)


def _order(line: socket.socket) -> tuple[bytes, list[int]]:
    data, fds = b"", list[int]()
    while True:
        length, end, rest = data.lstrip(b"\n").partition(b"\n")
        if end and len(rest) >= int(length):
            if len(rest) > int(length):
                # A byte after the order: the call was cancelled before the command started.
                os._exit(0)
            return rest, fds
        block, more = _received(line)
        if not block:
            os._exit(1)
        data += block
        fds += more


def _place(line: int, fds: list[int], numbers: list[int]) -> int:
    """Move descriptors to these numbers, for a program that is started; return the number that the socket has now."""
    # First above all numbers: each may be the number of another that is still to be moved.
    line, *high = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, max(2, *numbers) + 1) for fd in (line, *fds))
    for fd, number in zip(high, numbers, strict=True):
        os.dup2(fd, number)
    return line


def _report(control: int, text: str) -> None:
    try:
        os.write(control, text.encode() + b"\n")
    except OSError:
        # The reader is gone; the tree is ended all the same.
        return


def main(line: int) -> None:
    """Carry out one order after the other, for the socket with this number, until one was broken off or left something."""
    adopt_orphans()
    while line >= 0:
        line = _carry_out(line)


def _carry_out(line: int) -> int:
    """Start what an order names, report its end, and end its tree when asked to.

    Returns:
        The socket for the next order, with all else closed; -1: there is none.
    """
    connection = socket.socket(fileno=line)
    order, fds = _order(connection)
    connection.detach()
    argv, env, scoped, numbers, kept = parse_order(order)
    os.fchdir(fds[0])
    control = _place(line, fds[1:], [0, 1, 2, *numbers, *kept])
    for fd in kept:
        os.set_inheritable(fd, False)
    if scoped == _JOB:
        _become_supervisor(argv, None, control)
        return -1
    # Before the start: a command that ends at once must not be missed.
    woken, waker = children_ended()
    try:
        leader: int | None = spawn(argv, env, scoped=scoped == _SCOPED)
    except OSError as err:
        _report(control, f"failed {err.errno or errno.EIO}")
        return -1
    _report(control, f"began {leader}")
    # After the start: a held copy of the command's pipes would keep its readers from seeing the end of its output.
    forget_inherited(control, woken, waker, *kept)
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while True:
        ready = [fd for fd, _ in poll.poll()]
        terminated = woken in ready and is_asked_to_end(woken)
        found = reap(leader or 0)
        if control in ready and not terminated:
            asked = _asked(control)
            if asked.startswith(b"j") and leader is not None and found is None:
                _become_supervisor(asked[1:].split(b"\0"), leader, control)
                continue
        survivors = None
        if control in ready or terminated:
            # A reaped leader's number may be another process already, so it is not passed on.
            late, survivors = end_tree(leader if found is None else None)
            found = late if found is None else found
        if found is not None:
            leader = None
            _report(control, f"exited {found}")
        if survivors is not None:
            _report(control, f"ended {survivors}")
            return -1
        if leader is None and _is_childless():
            children_count_no_more()
            # Before it is told: the next command has none of these, and needs the numbers.
            forget_inherited(control)
            _report(control, "ended 0")
            return control


def _asked(control: int) -> bytes:
    try:
        return os.read(control, 8_192)
    except OSError:
        # The caller was killed before it had read all that was reported.
        return b""


def _become_supervisor(paths: list[bytes], leader: int | None, control: int) -> None:
    """Go on as the supervisor of a job, which ends this process; returns where that is not possible."""
    # Late: most commands end in time.
    sys.path.insert(0, os.fsdecode(paths[0]))
    # This module, with what it knows of the limits.
    sys.modules["rye.process.reaper"] = sys.modules[__name__]
    from rye.process import job_supervisor

    try:
        job = job_supervisor.take_over(os.fsdecode(paths[1]), leader)
    except OSError as err:
        _report(control, f"job {err.errno or errno.EIO}")
        return
    _report(control, "job 0")
    forget_inherited(*job.descriptors())
    job.run()
    os._exit(0)


def serve(number: int) -> None:
    """Fork a reaper for each request on a socket of packets, until its other end is closed.

    Requests: `new`, a number and the control groups that the reaper joins, each behind a NUL, and beside them the reaper's own
    socket. `kill`, a NUL and such a number: kill that one, if it has not ended.
    """
    os.setsid()
    os.chdir("/")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    _OPEN_FILES.append(limits)
    # Descriptors are moved above all numbers that the caller has.
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    os.set_inheritable(number, False)
    # What the caller lets its children inherit is no command's.
    os.closerange(3, number)
    os.closerange(number + 1, _MOST_FDS)
    line = socket.socket(fileno=number)
    children: dict[int, bytes] = {}
    while True:
        request, fds = _received(line)
        if not request:
            os._exit(0)
        verb, number_of, *groups = request.split(b"\0")
        while children and (ended := os.waitpid(-1, os.WNOHANG)[0]):
            del children[ended]
        if verb == b"kill":
            _signal([pid for pid, name in children.items() if name == number_of], signal.SIGKILL)
            continue
        try:
            pid = os.fork()
        except OSError as err:
            _report(fds[0], f"failed {err.errno or errno.EAGAIN}")
        else:
            if pid == 0:
                os.close(number)
                _wait_for_order(fds[0], groups)
            children[pid] = number_of
        os.close(fds[0])


def _wait_for_order(number: int, groups: list[bytes]) -> None:
    try:
        os.setsid()
        # Before the order comes, for the kernel takes up to 15 ms for this.
        enter(groups, scoped=False)
        main(number)
    except OSError as err:
        _report(number, f"failed {err.errno or errno.EIO}")
    finally:
        # Skips the interpreter's clean-up, which every command would wait for.
        os._exit(0)

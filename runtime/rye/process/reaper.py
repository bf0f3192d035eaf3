r"""The parent of a command: a small process that ends the whole tree when it is asked to, or when its own parent is gone.

Forked before it is needed by a small process of one thread (`serve`, started as `python -I -S -c … LINE`): a command waits for
no interpreter. It can become the supervisor of a job. On Linux it is a subreaper: whoever leaves the tree by a double
fork or a new session comes back to it.

A reaper reads from its socket `LENGTH\n`, then that many bytes, the order: `ARGUMENTS VARIABLES SCOPED KEPT NUMBER…\n` (two
counts, 0 or 1, a count, the numbers of descriptors), then so many strings, each ended by NUL: the command, variables as
`NAME=value`. Beside it, and beside empty lines before it, come the descriptors: the working directory, three streams, and those
of the numbers, of which the last KEPT are not the command's. After the order `j` and the path of
a job's order mean: go on as the supervisor of a job, with the descriptors kept. Where SCOPED is 2, the argument is this path,
and the supervisor starts the command itself. Any other byte, or the end of the stream, means: end everything.
Where nothing was asked and nothing is left, the next order may follow.
It writes the lines `failed ERRNO`, or `began PID`, `exited STATUS` (as of waitpid) and `ended LEFT` (how many processes could
not be ended); `job ERRNO`, 0 where it is a supervisor from then on.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # as in `rye.process.process_tree`
import _socket as socket  # likewise
import array
import errno
import fcntl
import os
import resource
import select

from rye.process import process_tree

# What SCOPED of an order can be, besides 0.
_SCOPED, _JOB = 1, 2
_FDS_AT_ONCE = 250


def parse_order(data: bytes) -> tuple[list[bytes], process_tree.Variables, int, list[int], list[int]]:
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
    process_tree.adopt_orphans()
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
        _become_supervisor(argv[0], None, control)
        return -1
    # Before the start: a command that ends at once must not be missed.
    woken, waker = process_tree.children_ended()
    try:
        leader: int | None = process_tree.spawn(argv, env, scoped=scoped == _SCOPED)
    except OSError as err:
        _report(control, f"failed {err.errno or errno.EIO}")
        return -1
    _report(control, f"began {leader}")
    # After the start: a held copy of the command's pipes would keep its readers from seeing the end of its output.
    process_tree.forget_inherited(control, woken, waker, *kept)
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while True:
        ready = [fd for fd, _ in poll.poll()]
        terminated = woken in ready and process_tree.is_asked_to_end(woken)
        found = process_tree.reap(leader or 0)
        if control in ready and not terminated:
            asked = _asked(control)
            if asked.startswith(b"j") and leader is not None and found is None:
                _become_supervisor(asked[1:], leader, control)
                continue
        survivors = None
        if control in ready or terminated:
            # A reaped leader's number may be another process already, so it is not passed on.
            late, survivors = process_tree.end_tree(leader if found is None else None)
            found = late if found is None else found
        if found is not None:
            leader = None
            _report(control, f"exited {found}")
        if survivors is not None:
            _report(control, f"ended {survivors}")
            return -1
        if leader is None and process_tree.is_childless():
            process_tree.children_count_no_more()
            # Before it is told: the next command has none of these, and needs the numbers.
            process_tree.forget_inherited(control)
            _report(control, "ended 0")
            return control


def _asked(control: int) -> bytes:
    try:
        return os.read(control, 8_192)
    except OSError:
        # The caller was killed before it had read all that was reported.
        return b""


def _become_supervisor(order: bytes, leader: int | None, control: int) -> None:
    """Go on as the supervisor of a job, which ends this process; returns where that is not possible."""
    # Late: most commands end in time.
    from rye.process import job_supervisor

    try:
        job = job_supervisor.take_over(os.fsdecode(order), leader)
    except OSError as err:
        _report(control, f"job {err.errno or errno.EIO}")
        return
    _report(control, "job 0")
    process_tree.forget_inherited(*job.descriptors())
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
    process_tree.OPEN_FILES.append(limits)
    # Descriptors are moved above all numbers that the caller has.
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    os.set_inheritable(number, False)
    # What the caller lets its children inherit is no command's.
    os.closerange(3, number)
    os.closerange(number + 1, process_tree.MOST_FDS)
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
            process_tree.kill([pid for pid, name in children.items() if name == number_of], signal.SIGKILL)
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
        process_tree.enter(groups, scoped=False)
        main(number)
    except OSError as err:
        _report(number, f"failed {err.errno or errno.EIO}")
    finally:
        # Skips the interpreter's clean-up, which every command would wait for.
        os._exit(0)

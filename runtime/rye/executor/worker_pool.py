"""Workers: child processes under a sandbox, each waiting on a pipe for the one call that it will answer.

To start one takes far longer than to use it, so after each call another of the same policy is started, for the next; but for
tools that may write, where names of `.git` must be made while the worker lives. A worker ends with its call,
unused after `_IDLE` seconds, at this process's exit, and with this process however that ends.
"""

from __future__ import annotations

import atexit
import os
import select
import threading
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from functools import lru_cache, partial
from typing import Any, Literal

from rye.call import context
from rye.call.command_channel import ready
from rye.config import user_dirs
from rye.errors import RyeError
from rye.journal import file_history
from rye.plain_class import Record, changed
from rye.process import guarded_run, run
from rye.process.guarded_run import Guarded
from rye.sandbox import launcher, sandbox, seccomp
from rye.workspace import running_commands
from rye.workspace.workspace import Workspace

_IDLE = 300.0
_SPARES_MAX = 4
_END_SECONDS = 1.3
# A command that makes one call has ended by then, so no spare is started for it.
_PAUSE = 0.05
_BLOCK = 1 << 16
_IMPORT = "import sys; sys.path[:0] = sys.argv[2:]; "
_STARTS = {
    "function": _IMPORT + "from rye.executor.worker import serve; serve(int(sys.argv[1]))",
    "program": _IMPORT + "from rye.executor.worker import become; become(int(sys.argv[1]))",
}


class WorkerPolicy(Record):
    """What a worker may do, and where; workers of the same policy are as good as each other.

    Attributes:
        root: the project root (real path).
        identity: its device and inode: another folder at the same path is another project.
        permissions: see `rye.items.parse.PERMISSIONS`.
        mode, network: the settings that apply, see `rye.sandbox.sandbox.effective`.
        serves: what it becomes: a Python `function`, or a `program`.
        extra_read: folders that it must see: those of an interpreter.
    """

    root: str
    identity: tuple[int, int]
    permissions: tuple[str, ...]
    mode: sandbox.Mode
    network: Literal["on", "off"] = "on"
    serves: Literal["function", "program"] = "function"
    extra_read: tuple[str, ...] = ()

    def confine(self, argv: list[str], token: str = "") -> sandbox.Confined:
        """Return the command that holds `argv` to this policy. Errors as `rye.sandbox.sandbox.confine`."""
        limits = sandbox.Policy(
            self.root,
            self.root,
            read_project="read" in self.permissions,
            write_project="write" in self.permissions,
            network=self.network if "network" in self.permissions else "off",
            # What waits must start one program: it forbids the others itself, in the last step.
            run="run" in self.permissions or self.serves == "program",
            extra_read=(*_packages(), *self.extra_read),
            identity=self.identity,
            # Stand-ins would be seen by the tool, and by every other program of the user.
            cover_absent=False,
            token=token,
        )
        if limits.read_project or not _runs_from(self.root):
            return sandbox.confine(argv, limits, self.mode)
        # Hidden with the project, the interpreter could not start.
        seeing = changed(limits, read_project=True, required=sandbox.properties_of(limits))
        confined = sandbox.confine(argv, seeing, self.mode)
        confined.report["missing"]["project_hidden"] = sandbox.OWN_PROJECT
        return confined


@lru_cache(maxsize=1)
def _runtime() -> str:
    """Return the folder from which `rye` is imported. Other things may lie there: a sandbox shows of it the package alone."""
    import rye

    return os.path.dirname(os.path.dirname(os.path.realpath(rye.__file__)))


@lru_cache(maxsize=1)
def _packages() -> tuple[str, ...]:
    """Return the folders of installed packages, which a tool may declare."""
    import sysconfig

    return tuple(dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib")))


def _runs_from(root: str) -> bool:
    """Tell whether the interpreter or the runtime of this process lies in a project."""
    # A virtual environment inside the project is common: hiding the project would hide the interpreter.
    return sandbox.holds_rye(root) or any(f"{os.path.realpath(place)}/".startswith(f"{root}/") for place in _packages())


class Worker:
    """A started child.

    Attributes:
        policy: what it may do.
        report: what its sandbox holds, see `rye.sandbox.sandbox.Confined`.
        calls: descriptor on which its call is written.
        answers, printed, errors: descriptors of its answer, standard output and error output.
        tree: the child with all that it starts.
        taken: set once it waits for no call any more.
        may_wait: a spare one may be started in advance. Not where it may write: names are made in the project while it
            lives, which would be visible all day, and a look at the project's repositories comes before and after it.
        set_aside: once it is closed: what it had put where programs of the user act on it.
        reported: what the response says of its sandbox.
    """

    def __init__(self, policy: WorkerPolicy) -> None:
        """Start a child under this policy. Errors as `rye.sandbox.sandbox.confine` and `rye.process.run.Tree`, and OSError."""
        self.policy = policy
        self.taken = threading.Event()
        self._closing, self._closed = threading.Lock(), False
        (given, self.calls), (self.answers, answer), (self.printed, out), (self.errors, err) = run.pipes(4)
        ours, token = (self.calls, self.answers, self.printed, self.errors), ""
        self._held = ExitStack()
        self._held.callback(run.close_all, ours)
        try:
            self._workspace = Workspace(policy.root)
            self._held.callback(self._workspace.close)
            self._workspace.hold_to(policy.identity)
            if "write" in policy.permissions:
                # Else nothing is looked at, and nothing made. Without a token the report says what does not hold.
                token = self._held.enter_context(running_commands.running(self._workspace.fd))
            self._guarded, self.tree = _started(policy, self._workspace, token, (given, out, err), answer)
        except BaseException:
            self._held.close()
            raise
        finally:
            run.close_all((given, answer, out, err))
        self.report = self._guarded.confined.report
        self.may_wait = not self._guarded.look.token and not self._guarded.confined.shielded[0]
        self.set_aside: list[dict[str, str]] = []
        self.reported: dict[str, Any] = {}
        for fd in ours:
            # A tool that reads or writes nothing must not block the thread that watches its deadline.
            os.set_blocking(fd, False)

    def send(self, data: bytes) -> None:
        """Write to the child, at most until the call is to end; one that ended takes nothing, and its watch says how it ended.

        What it prints meanwhile waits in its pipes: the code that reads there is ours until it has a whole frame.
        """
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.calls, view) :]
            except BlockingIOError:
                if not ready(self.calls, select.POLLOUT, context.deadline().remaining()):
                    return
            except BrokenPipeError:
                return

    def read(self, fds: Iterable[int], seconds: float) -> dict[int, bytes]:
        """Wait until it ends or some of its descriptors can be read; return a block of each of these, b"" at its end."""
        waiting, status = select.poll(), () if self.ended() else (self.tree.status,)
        for fd in (*fds, *status):
            waiting.register(fd, select.POLLIN)
        found = {}
        for fd, _ in waiting.poll(max(0.0, min(seconds, 3600.0)) * 1000):
            with suppress(BlockingIOError):
                if fd not in status:
                    found[fd] = os.read(fd, _BLOCK)
        return found

    def ended(self) -> bool:
        """Tell whether the child is over."""
        self.tree.read_status()
        return self.tree.ended or self.tree.exit_status is not None

    def kill(self) -> None:
        """Have the child and all that it started ended; any thread may ask for it, at any time."""
        self.tree.end()

    def close(self) -> None:
        """Kill what still runs and close all descriptors; a second call waits for the first."""
        with self._closing:
            if self._closed:
                return
            self.kill()
            self.tree.wait(lambda: False, _END_SECONDS)
            self._closed = True
            self.tree.close()
            self.set_aside += self._guarded.end(self._workspace.fd)
            self._held.close()


def _started(
    policy: WorkerPolicy, workspace: Workspace, token: str, streams: run.Streams, answer: int
) -> tuple[Guarded, run.Tree]:
    options = ("-I", "-S", "-B", "-X", "utf8", "-c")
    command = [user_dirs.python(), *options, _STARTS[policy.serves], str(answer), _runtime(), *_packages()]
    ours = partial(file_history.by_our_tools, workspace)
    guarded = guarded_run.begin(workspace, token, partial(policy.confine, command), ours, policy.mode)
    confined = guarded.confined
    if policy.serves == "program" and "run" not in policy.permissions:
        # Whether the program that the worker becomes is kept from starting others.
        if confined.report["kind"] != "none" and seccomp.supported() and launcher.abi():
            confined.report["holds"].append("no_programs")
        else:
            why = "no system call filter, or no Landlock, here" if confined.report["kind"] != "none" else "the sandbox is off"
            confined.report["missing"]["no_programs"] = why
    try:
        # The working directory goes in as a descriptor: the path could lead elsewhere by the time it starts.
        return guarded, run.Tree(changed(confined, fds=(*confined.fds, answer)), workspace.fd, streams)
    except BaseException:
        guarded.end(workspace.fd)
        raise
    finally:
        confined.close()


class WorkerPool:
    """Keeps a worker ready for the next call of the same policy, and ends those whose call is over, beside the calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers: set[Worker] = set()
        self._spares: dict[WorkerPolicy, Worker] = {}
        self._due: set[WorkerPolicy] = set()

    def take(self, policy: WorkerPolicy) -> Worker:
        """Return a worker for one call, a waiting one if there is any. Errors as `Worker`."""
        with self._lock:
            # Taken out under the lock, so that two calls never get the same worker.
            spare = self._spares.pop(policy, None)
        if spare is None:
            return self._new(policy)
        spare.taken.set()
        if not spare.ended():
            return spare
        self._finish(spare)
        return self._new(policy)

    def _new(self, policy: WorkerPolicy) -> Worker:
        worker = Worker(policy)
        with self._lock:
            # Recorded at once: at exit a worker that is not in the set would live on.
            self._workers.add(worker)
        return worker

    def done(self, worker: Worker) -> None:
        """End a worker whose call is over, and have another of its policy ready soon."""
        worker.kill()
        if worker.may_wait:
            threading.Thread(target=self._replace, args=(worker,), name="rye-workers", daemon=True).start()
        else:
            self._finish(worker)

    def _finish(self, worker: Worker) -> None:
        with self._lock:
            self._workers.discard(worker)
        worker.close()

    def _replace(self, over: Worker) -> None:
        """End a worker, start a spare of its policy where there is none, and end that where no call takes it for long."""
        policy = over.policy
        self._finish(over)
        time.sleep(_PAUSE)
        with self._lock:
            if policy in self._spares or policy in self._due:
                return
            self._due.add(policy)
        try:
            spare = self._new(policy)
        # A call that finds no spare worker reports why there can be none. The environment may change while it is read.
        except (RyeError, OSError, LookupError, RuntimeError):
            spare = None
        with self._lock:
            self._due.discard(policy)
            if spare is not None:
                self._spares[policy] = spare
            # A dict keeps the order of insertion, so the first ones are the oldest.
            too_many = [self._spares.pop(one) for one in list(self._spares)[:-_SPARES_MAX]]
        for worker in too_many:
            worker.taken.set()
            self._finish(worker)
        if spare is not None and not spare.taken.wait(_IDLE):
            with self._lock:
                is_idle = self._spares.get(policy) is spare and self._spares.pop(policy) is spare
            if is_idle:
                self._finish(spare)

    def close(self) -> None:
        """End every worker: at this process's exit."""
        for worker in list(self._workers):
            worker.kill()
        for worker in list(self._workers):
            worker.close()

    def forget(self) -> None:
        """Begin anew in a forked process: the workers are its parent's."""
        # The references stay, so that nothing of the parent's workers is finalised in this process.
        _others.extend(self._workers)
        self.__init__()  # type: ignore[misc]  # the same object, since others hold it


_others: list[Worker] = []
pool = WorkerPool()
"""That of this process."""

atexit.register(pool.close)
os.register_at_fork(after_in_child=pool.forget)

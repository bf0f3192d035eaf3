"""A searching child process: started in a held directory, read as it goes, ended with all that it started.

Its environment is nearly empty, its standard input is nothing, and it leads a process group of its own.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import IO

from rye.call.context import deadline
from rye.config import user_dirs
from rye.errors import WorkspaceError
from rye.plain_class import Record
from rye.sandbox import hidden_paths

_BLOCK = 1 << 18
_MAX_STDERR = 1 << 16
_MAX_RECORD = 1 << 24
_STEP_SECONDS = 0.1
_LONGEST_PATH = 4_096
# A search that waits for something takes about a twentieth of the processor.
_IDLE_SECONDS, _IDLE_SHARE = 1.0, 0.2


class Command(Record):
    """What to run.

    Attributes:
        argv: program (absolute path) and arguments.
        fds: descriptors that the child inherits under their numbers.
    """

    argv: list[str | bytes]
    fds: tuple[int, ...] = ()


# An isolated interpreter (-I) ignores PYTHONPATH and its working folder, so the folder of this package is passed to it.
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from {} import main; sys.exit(main(sys.argv[2]))"
_PACKAGE_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def own_module(module: str, task: str, fds: tuple[int, ...] = (), *, libraries: bool) -> Command:
    """Return the command that calls `main(task)` of a module of this package; `libraries`: it imports installed ones."""
    options = ["-I"] if libraries else ["-I", "-S"]
    return Command([user_dirs.python(), *options, "-c", _BOOT.format(module), _PACKAGE_ROOT, task], fds)


def program_on_path(name: str, *projects: os.stat_result) -> str | None:
    """Return the real path of a program on PATH, or None.

    A program that one of the projects could have brought does not count. The real path is returned: what is started is what was
    judged, whatever a link on the way to it becomes.
    """
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        spelled = os.path.join(folder, name)
        if not os.path.isabs(folder) or not os.path.isfile(spelled) or not os.access(spelled, os.X_OK):
            continue
        if all(is_outside(spelled, project) for project in projects):
            return os.path.realpath(spelled)
    return None


def is_outside(file: str, project: os.stat_result) -> bool:
    """Tell whether no folder on the way to a file is the project's: links are followed one by one, as the kernel does."""
    # Identities, not texts: a link or a bind mount may lead into the project.
    found = [os.stat(step) for step in hidden_paths.way(os.path.abspath(file))]
    # Without a way there: a program whose links point in a circle cannot start.
    return bool(found) and not any(os.path.samestat(one, project) for one in found)


def environment_outside(*projects: os.stat_result) -> dict[str, str]:
    """Return the environment without paths that one of the projects could have brought, for a program that is none of theirs.

    Mostly it is a script: `env` finds its interpreter by PATH, where an activated environment of the project comes first.
    """
    kept = {}
    for name, value in os.environ.items():
        parts = value.split(os.pathsep)
        some = [one for one in parts if not any(_is_of(one, project) for project in projects)]
        if some or name == "HOME":
            kept[name] = os.pathsep.join(some or parts)
    return kept


def _is_of(text: str, project: os.stat_result) -> bool:
    """Tell whether a text names what lies in a project, also behind an option: `--require /project/.pnp.cjs`."""
    for at in (found.start() for found in re.finditer("(?<!/)/", text)):
        path = text[at : at + _LONGEST_PATH]
        # What of it is there: a secret may look like a path, and lead nowhere.
        while not os.path.lexists(path):
            path = os.path.dirname(path)
        if not is_outside(path, project):
            return True
    return False


def name_of_fd(fd: int) -> str:
    """Return the path under which a child opens an inherited descriptor."""
    return f"/proc/self/fd/{fd}"


def scratch_file() -> IO[bytes]:
    """Return a file in memory, without a name, gone when it is closed."""
    return os.fdopen(os.memfd_create("rye"), "w+b")


class Child:
    """A running child; a context manager that ends it.

    Attributes:
        timed_out: its time ran out before its output ended.
    """

    def __init__(self, command: Command, cwd_fd: int, seconds: float, max_memory: int | None = None) -> None:
        """Start `command` in the directory that `cwd_fd` holds.

        Args:
            command: what to run.
            cwd_fd: directory descriptor (O_PATH is enough).
            seconds: how long it may take.
            max_memory: bytes of address space, where the system can limit them.

        Raises:
            WorkspaceError: `programs_not_allowed`, in a sandbox that lets no program be started.
        """
        self._end = time.monotonic() + seconds
        self.timed_out = False
        self._stderr = scratch_file()
        try:
            self._process = subprocess.Popen(
                command.argv,
                cwd=name_of_fd(cwd_fd),
                pass_fds=command.fds,
                # A session of its own: killpg reaches all that it starts, and a Ctrl-C at the terminal does not reach it.
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                # A file, not a second pipe: a pipe that nobody reads would fill, and the child would block on it.
                stderr=self._stderr,
                # No PATH: a program that is a script would find its interpreter in an activated environment of the project.
                env={**user_dirs.libraries(), **{name: os.environ[name] for name in ("TMPDIR",) if name in os.environ}},
            )
        except PermissionError:
            self._stderr.close()
            why = f"A search starts {os.fsdecode(command.argv[0])}, and no program may be started here."
            hint = 'A signed tool that searches declares `__permissions__ = ["read", "run"]`.'
            raise WorkspaceError("programs_not_allowed", why, hint) from None
        # Set after the start, since a function between fork and exec is not safe in a process with threads.
        if max_memory is not None:
            import resource

            # The child may have ended already, or a lower limit be set.
            with suppress(OSError, ValueError):
                resource.prlimit(self._process.pid, resource.RLIMIT_AS, (max_memory, max_memory))

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end()
        self._stderr.close()

    def blocks(self, when_idle: Callable[[], None] | None = None) -> Iterator[bytes]:
        """Yield the output as it comes, until it ends or the time is up; the child is gone then.

        `when_idle` is called, once, when it has hardly worked for a second: it may wait for what never comes.
        """
        pipe = self._process.stdout
        assert pipe is not None  # asked for above
        fd, limit = pipe.fileno(), deadline()
        poll = select.poll()
        poll.register(fd, select.POLLIN | select.POLLHUP)
        looked, used = time.monotonic(), 0.0
        while True:
            seconds_left = min(self._end - time.monotonic(), limit.remaining())
            if seconds_left <= 0:
                self.timed_out = True
                break
            # In steps, because the call may be cancelled meanwhile.
            if not poll.poll(min(seconds_left, _STEP_SECONDS) * 1000):
                if when_idle and time.monotonic() - looked > _IDLE_SECONDS:
                    looked, before, used = time.monotonic(), used, self._processor_seconds()
                    if used - before < _IDLE_SECONDS * _IDLE_SHARE:
                        when_idle()
                        when_idle = None
                continue
            block = os.read(fd, _BLOCK)
            if not block:
                break
            yield block
        self._finish()

    def _processor_seconds(self) -> float:
        """Return the seconds that it worked; 0 where the system does not tell."""
        with suppress(OSError):
            # As `clock_getcpuclockid` makes the number of a process's clock.
            return time.clock_gettime(~self._process.pid << 3 | 2)
        return 0.0

    def _finish(self) -> None:
        if not self.timed_out:
            try:
                # The output may end just before the process does: it gets a short time to give its own exit code.
                self._process.wait(max(0.05, self._end - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.timed_out = True
        self.end()

    def end(self) -> int:
        """Kill what still runs; return the exit code, negative for a signal."""
        if self._process.returncode is None:
            # Not reaped yet, so the group's number is still its own; a host that reaps all children may have been quicker.
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        return self._process.returncode

    def stderr(self) -> bytes:
        """Return the beginning of what it wrote to standard error (at most 64 KB)."""
        return os.pread(self._stderr.fileno(), _MAX_STDERR, 0)


def split_records(blocks: Iterator[bytes], end: bytes) -> Iterator[list[bytes]]:
    """Yield the records of each block, joined over the seams; an unfinished last record is dropped.

    Of a record longer than 16 MB (about) only the first block is given.
    """
    parts: list[bytes] = []
    size = 0
    for block in blocks:
        records = block.split(end)
        last = records.pop()
        if records:
            # Parts are joined once at a record's end: adding to one string block by block takes quadratic time.
            records[0] = (b"".join(parts) if size <= _MAX_RECORD else parts[0]) + records[0]
            parts, size = [], 0
            yield records
        # Count also what is not stored, so that a record beyond the limit cannot look short again.
        size += len(last)
        if size <= _MAX_RECORD:
            parts.append(last)

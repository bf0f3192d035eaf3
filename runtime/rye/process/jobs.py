"""Background jobs: `jobs/<id>/` in the project's state folder, each run by a supervisor of its own.

Whoever may read the user's state folder may use a job, from any process, also after this one has ended. What the folder says of
a job is believed only while its supervisor lives (`rye.workspace.running_commands`).
"""

from __future__ import annotations

import errno
import json
import os
import select
import shutil
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rye.call import context
from rye.call.command_channel import ready
from rye.call.results import call_text
from rye.config import user_dirs
from rye.errors import RyeError, UsageError
from rye.fs import atomic
from rye.fs.atomic import closing
from rye.plain_class import as_dict, changed
from rye.process import job_supervisor, output_files, run
from rye.process.autorun.command_check import Look
from rye.sandbox import resource_limits
from rye.sandbox.sandbox import Confined
from rye.workspace import running_commands

FOLDER = "jobs"

MAX_RUNNING = 32
"""A project has at most so many jobs at once."""

_DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LEAST_OUTPUT = 1024 * 1024
_STEP_SECONDS = 0.1

Record = dict[str, Any]
Root = str | int
"""The project's folder: an open descriptor, or a path, which may lead to another folder by then."""


def start(
    root: Root,
    confined: Confined,
    cwd_fd: int,
    facts: Record,
    seconds: float | None,
    first_input: bytes,
    look: Look,
    after: Sequence[str],
    token: str,
    running: tuple[run.Tree, Sequence[int]] | None = None,
) -> str:
    """Start a job and return its ID; the running command, and what was made for its sandbox, is its supervisor's from then on.

    Args:
        root: the project root.
        confined: what to run.
        cwd_fd: the directory it starts in.
        facts: what its record shall say besides (JSON).
        seconds: when it is ended at the latest; None: never.
        first_input: the beginning of its standard input.
        look: the look at repositories that its supervisor makes when it is over.
        after: a program of ours that its supervisor runs then; the JSON object that it prints becomes `changes` of the record.
        token: names the running command (empty: its record could not be begun), and the job from then on.
        running: a command that runs already, with the descriptors of its output: it becomes the job, and lives on as it was
            where that fails.

    Raises:
        RyeError: `too_many_jobs`, `job_not_started`, `state_unwritable`.
    """
    folder = _folder(root)
    if not token:
        raise _unwritable("its folder `running` cannot be used")
    # Before the count: old jobs would otherwise use up the bound on output of the new one.
    _prune(root)
    found = records(root)
    count = sum(one["status"] == "running" for one in found)
    if count >= MAX_RUNNING:
        raise RyeError(
            "too_many_jobs", f"{count} jobs are running already.", f"End some: {call_text('job', action='list')} shows them."
        )
    mark, output = running[0].mark if running else os.urandom(8).hex(), _output_limit(root, found)
    home, held = folder / token, running_commands.handle(token)
    try:
        # Only the user may enter: the folder's socket takes input for the job, and its record holds the command line.
        home.mkdir(mode=0o700)
        order = {
            "confined": as_dict(
                changed(confined, env={**confined.env, run.RUN_VARIABLE: mark}, fds=(), status=-1, groups=(), ready=None)
            ),
            "folder": str(home),
            "root": os.path.realpath(f"/proc/self/fd/{root}") if isinstance(root, int) else root,
            "seconds": seconds,
            "look": look,
            "after": list(after),
            "held": held,
            # JSON holds no bytes; latin-1 maps each byte to one character and back.
            "input": first_input.decode("latin-1"),
            "facts": {**facts, "job_id": token, "mark": mark, "output_limit": output},
            "running": list(running[1]) if running else [],
            "user_space": str(user_dirs.user_space()),
        }
        # In a file: the reaper of a command that hinders it would not read a long order.
        atomic.write(home / "order", json.dumps(order).encode(), 0o600, durably=False)
        answered = running[0].hand_on(str(home / "order")) if running else _launch(confined, cwd_fd, held[1], home / "order")
    except (OSError, RyeError) as err:
        answered = str(getattr(err, "errno", errno.EAGAIN))
    if answered == "ok":
        running_commands.pass_on(token)
        # The supervisor is in them itself, so it cannot remove them: a later command does, once they are empty.
        resource_limits.release(confined.groups)
        return token
    if not running:
        # It may have been started by a supervisor that did not say so in time.
        run.end_marked(mark)
    shutil.rmtree(home, ignore_errors=True)
    why = os.strerror(int(answered)) if answered.isdigit() else "its supervisor ended"
    what = f"The job could not be started: {why}."
    raise RyeError("job_not_started", what, "Look at the limits of the system, then try again.")


def _launch(confined: Confined, cwd_fd: int, held: int, order: Path) -> str:
    """Have a reaper become the supervisor, which starts the command itself; return `ok`, or why not: an errno."""
    with closing(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)) as nothing:
        tree = run.Tree(changed(confined, ready=None), cwd_fd, (nothing, nothing, nothing), (held,), str(order))
        try:
            return tree.hand_on()
        finally:
            tree.close()


def _folder(root: Root) -> Path:
    try:
        folder = Path(user_dirs.state_dir(root)) / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as err:
        raise _unwritable(f"{err.strerror}") from None
    return folder


def _unwritable(why: str) -> RyeError:
    what = f"The user's state folder cannot be written ({why}), and jobs live there."
    return RyeError("state_unwritable", what, "Make it writable, or set USER_SPACE to a folder that is.")


@contextmanager
def home(root: Root, job_id: str) -> Iterator[int]:
    """Hold open the folder of a job, or of a command's stored output.

    Raises:
        UsageError: `job_not_found`.
    """
    # The name becomes part of a path: only hexadecimal digits may reach it. Jobs and stored outputs share one kind of name, so
    # that the job tool can page both.
    for kind in (FOLDER, output_files.FOLDER) if output_files.ID.match(job_id) else ():
        with suppress(OSError):
            fd = os.open(Path(user_dirs.state_dir(root)) / kind / job_id, _DIR)
            break
    else:
        raise UsageError(
            "job_not_found", f"There is no job {job_id[:40]!r}.", f"{call_text('job', action='list')} shows those there are."
        )
    with closing(fd):
        yield fd


def _read_record(dir_fd: int) -> Record:
    found: Record = json.loads(atomic.read_regular(job_supervisor.RECORD, dir_fd=dir_fd, follow=False)[0])
    return found


def record(dir_fd: int) -> Record | None:
    """Return a job's record, with its status as it is now; None where there is no record (a stored output).

    `status`: `running`, `ended`, or `lost`: its supervisor was killed.
    """
    try:
        found = _read_record(dir_fd)
    except FileNotFoundError:
        return None
    if found["status"] == "running" and not running_commands.is_alive_from(dir_fd, found["job_id"]):
        # The job may have ended between the read and the check: read once more.
        with suppress(OSError, ValueError):
            found = _read_record(dir_fd)
        if found["status"] == "running":
            found["status"] = "lost"
    return found


def records(root: Root) -> list[Record]:
    """Return the records of all jobs, the newest first."""
    found = []
    for name in os.listdir(_folder(root)):
        with suppress(OSError, ValueError, KeyError, TypeError, UsageError), home(root, name) as fd:
            one = record(fd)
            if one is not None:
                found.append(one)
    return sorted(found, key=lambda one: one["started"], reverse=True)


def ask(dir_fd: int, request: Record, seconds: float) -> Record | None:
    """Send a request to a job's supervisor; None when it is gone, or does not answer in time."""
    end, answered = time.monotonic() + seconds, b""
    # One that has just ended leaves its socket or removes it, or ends the line: all mean that it is gone.
    with suppress(OSError), socket.socket(socket.AF_UNIX) as line:
        line.connect(job_supervisor.address(dir_fd))
        line.sendall(json.dumps(request).encode() + b"\n")
        while not answered.endswith(b"\n"):
            # In steps, because the call may be cancelled meanwhile.
            if ready(line.fileno(), select.POLLIN, min(_STEP_SECONDS, seconds)):
                block = line.recv(4_096)
                if not block:
                    return None
                answered += block
            elif time.monotonic() > end:
                return None
            context.check_deadline()
        answer: Record = json.loads(answered)
        return answer
    return None


def _output_limit(root: Root, found: list[Record]) -> int:
    """Return how much output a new job may store: what the bound over all jobs of the project leaves, within limits."""
    used = sum(
        # A running job counts with its whole limit, because it may still fill it.
        int(one.get("output_limit", output_files.MAX_BYTES)) if one["status"] == "running" else _size(root, one)
        for one in found
    )
    return max(_LEAST_OUTPUT, min(output_files.MAX_BYTES, context.settings().number("jobs.max_bytes") - used))


def _size(root: Root, one: Record) -> int:
    with suppress(OSError):
        return os.stat(_folder(root) / one["job_id"] / job_supervisor.OUTPUT).st_size
    return 0


def _prune(root: Root) -> None:
    """Remove jobs that are over: all beyond the newest so many, the oldest until the rest is small enough."""
    settings = context.settings()
    # Half of the bound is left for running jobs.
    bytes_left = settings.number("jobs.max_bytes") // 2
    # Newest first, so that the bounds below cut off the oldest.
    over = [one for one in records(root) if one["status"] != "running"]
    for number, one in enumerate(over):
        bytes_left -= _size(root, one)
        if number >= settings.number("jobs.max_ended") or bytes_left < 0:
            _remove(root, one)
    for path in _folder(root).iterdir():
        # A folder without a record: its start failed or was killed.
        if not (path / job_supervisor.RECORD).exists() and not running_commands.is_alive(root, path.name):
            shutil.rmtree(path, ignore_errors=True)


def _remove(root: Root, one: Record) -> None:
    """Remove a job's folder. A lost job's processes are ended first: nothing would name them any more."""
    if one["status"] == "lost" and not run.end_marked(one["mark"]):
        return
    shutil.rmtree(_folder(root) / one["job_id"], ignore_errors=True)

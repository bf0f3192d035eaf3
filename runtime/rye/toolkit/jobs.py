"""Background jobs: `jobs/<id>/` in the project's state folder, each kept by a supervisor of its own.

Whoever may read the user's state folder may use a job, from any process, also after this one has ended. What the folder says of
a supervisor is believed only while a process of that number, start time and boot lives.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rye import state
from rye.errors import RyeError, UsageError
from rye.toolkit import config, output, outputs, process, supervisor
from rye.toolkit.child import directory_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rye.toolkit.sandbox import Confined

FOLDER = "jobs"

MAX_RUNNING = 32
"""A project has at most so many jobs at once."""

_DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_RECORD = 1024 * 1024
_DAY = 86_400
_START = "import sys; sys.path.insert(0, sys.argv[1]); from rye.toolkit.supervisor import main; main()"
_RUNTIME = str(Path(__file__).parents[2])

Record = dict[str, Any]


def start(root: str, confined: Confined, cwd_fd: int, facts: Record, seconds: float | None, given: bytes = b"") -> str:
    """Start a job and return its ID; what was made for its sandbox is its supervisor's from then on.

    Args:
        root: the project root.
        confined: what to run.
        cwd_fd: the directory it starts in.
        facts: what its record shall say besides (JSON).
        seconds: when it is ended at the latest; None: never.
        given: the beginning of its standard input.

    Raises:
        RyeError: `too_many_jobs`, `job_not_started`.
    """
    folder = _folder(root)
    _prune(root)
    running = sum(found["status"] == "running" for found in records(root))
    if running >= MAX_RUNNING:
        raise RyeError("too_many_jobs", f"{running} jobs are running already.", 'End some: job(action="list") shows them.')
    job_id, mark = outputs.new_id(), os.urandom(8).hex()
    home = folder / job_id
    try:
        home.mkdir(mode=0o700)
        said = _launch(confined, cwd_fd, {
            "argv": confined.argv, "env": {**confined.env, process.MARK: mark}, "folder": str(home),
            "seconds": seconds, "shielded": confined.shielded, "temporary": confined.temporary,
            "input": given.decode("latin-1"), "facts": {**facts, "job_id": job_id, "mark": mark},
        })  # fmt: skip
    except OSError as err:
        said = str(err.errno)
    if said == "ok":
        return job_id
    shutil.rmtree(home, ignore_errors=True)
    why = os.strerror(int(said)) if said.isdigit() else "its supervisor ended"
    raise RyeError(
        "job_not_started", f"The job could not be started: {why}.", "Look at the limits of the system, then try again."
    )


def _launch(confined: Confined, cwd_fd: int, order: Record) -> str:
    env = {**process.guard_environment(), "USER_SPACE": str(state.user_space())}
    done = subprocess.run(  # noqa: S603 - our own interpreter, our own code
        [sys.executable, "-I", "-S", "-c", _START, _RUNTIME], input=json.dumps(order).encode(), stdout=subprocess.PIPE,
        cwd=directory_path(cwd_fd), env=env, pass_fds=confined.fds, start_new_session=True,
        stderr=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    return done.stdout.decode().strip()


def _folder(root: str) -> Path:
    try:
        folder = Path(state.state_dir(root)) / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as err:
        raise RyeError(
            "state_unwritable", f"The user's state folder cannot be written ({err.strerror}), and jobs live there.",
            "Make it writable, or set USER_SPACE to a folder that is.",
        ) from None  # fmt: skip
    return folder


@contextmanager
def home(root: str, job_id: str) -> Iterator[int]:
    """Hold open the folder of a job, or of a command's kept output.

    Raises:
        UsageError: `job_not_found`.
    """
    if outputs.ID.match(job_id):
        for kind in (FOLDER, outputs.FOLDER):
            with suppress(OSError):
                fd = os.open(Path(state.state_dir(root)) / kind / job_id, _DIR)
                break
        else:
            raise _not_found(job_id)
        try:
            yield fd
        finally:
            os.close(fd)
        return
    raise _not_found(job_id)


def _not_found(job_id: str) -> UsageError:
    return UsageError("job_not_found", f"There is no job {job_id[:40]!r}.", 'job(action="list") shows those there are.')


def record(dir_fd: int) -> Record | None:
    """Return what stands in a job's record, with its status as it is now; None where there is no record (a kept output).

    `status`: `running`, `ended`, or `lost`: its supervisor was killed.
    """
    try:
        fd = os.open(supervisor.RECORD, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    except FileNotFoundError:
        return None
    with open(fd, "rb") as file:
        found: Record = json.loads(file.read(_MAX_RECORD))
    keeper = found["supervisor"]
    if found["status"] == "running" and supervisor.identity(keeper["pid"]) != keeper:
        # It may have ended between the two looks.
        with suppress(OSError, ValueError):
            fd = os.open(supervisor.RECORD, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
            with open(fd, "rb") as file:
                found = json.loads(file.read(_MAX_RECORD))
        if found["status"] == "running":
            found["status"] = "lost"
    return found


def records(root: str) -> list[Record]:
    """Return the records of all jobs, the newest first."""
    found = []
    for name in os.listdir(_folder(root)):
        with suppress(OSError, ValueError, KeyError, UsageError), home(root, name) as fd:
            one = record(fd)
            if one is not None:
                found.append(one)
    return sorted(found, key=lambda one: one["started"], reverse=True)


def ask(dir_fd: int, request: Record, seconds: float) -> Record | None:
    """Put a request to a job's supervisor and return its answer; None when it is gone, or has not answered in time."""
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(supervisor.address(dir_fd))
            line.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            return None
        return _answer(line, seconds)


def _answer(line: socket.socket, seconds: float) -> Record | None:
    wake = process.Wake()
    end = time.monotonic() + seconds
    poll = select.poll()
    poll.register(line, select.POLLIN)
    poll.register(wake.fd, select.POLLIN)
    said = b""
    try:
        while not said.endswith(b"\n"):
            ready = [fd for fd, _ in poll.poll(max(0.0, end - time.monotonic()) * 1_000)]
            if line.fileno() not in ready:
                output.deadline().check()
                return None
            block = line.recv(4_096)
            if not block:
                return None
            said += block
    except OSError:
        return None
    finally:
        wake.close()
    answer: Record = json.loads(said)
    return answer


def _prune(root: str) -> None:
    """Remove jobs that are over: those too old, and all beyond the newest so many."""
    oldest = time.time() - config.number("jobs.max_age_days") * _DAY
    over = [one for one in records(root) if one["status"] != "running"]
    for number, one in enumerate(over):
        if number >= config.number("jobs.max_ended") or float(one.get("ended") or one["started"]) < oldest:
            shutil.rmtree(_folder(root) / one["job_id"], ignore_errors=True)
    for path in _folder(root).iterdir():
        # What never came to a record.
        with suppress(OSError):
            if path.stat().st_mtime < oldest and not (path / supervisor.RECORD).exists():
                shutil.rmtree(path, ignore_errors=True)

"""Commands as the process tests start them: unconfined, in a folder, and a look at which processes are left."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from pathlib import Path

from rye.process import run as process_run
from rye.sandbox.sandbox import Confined
from support.waiting import PATIENCE

NONE = {"kind": "none", "holds": [], "missing": {}}


def confined(command, **env):
    """A shell command without any sandbox."""
    return Confined(["/bin/bash", "-c", command], {"PATH": os.environ["PATH"], **env}, (), NONE)


@contextmanager
def held(folder):
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def run(command, folder, seconds=20, env=None, **more):
    with held(folder) as fd:
        return process_run.run(confined(command, **(env or {})), fd, seconds, **more)


def text(capture):
    return capture.shown(50_000, str)[0]


def alive(word):
    """The processes that have this word among their arguments: sleepers of a number of their own, as a rule."""
    wanted = str(word).encode()
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                if wanted in (path / "cmdline").read_bytes().split(b"\0") and stat_of(path.name) != "Z":
                    found.append(int(path.name))
            except OSError:
                continue
    return found


def stat_of(pid, field=0):
    """Return a field of what the kernel tells of a process: its state, or the next ones: its parent."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[field]


def gone(word, seconds=PATIENCE):
    """Wait until no process has the word among its arguments; return those that do all the same."""
    end = time.monotonic() + seconds
    while (left := alive(word)) and time.monotonic() < end:
        time.sleep(0.01)
    return left

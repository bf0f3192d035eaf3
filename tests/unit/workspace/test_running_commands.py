"""A command lives as long as the process that runs it, whoever else was started or forked meanwhile."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rye.config import user_dirs
from rye.workspace import running_commands
from support.harness import environment
from support.waiting import until

HOST = """
import os, subprocess, sys, threading, time
from rye.workspace import running_commands
project, way = sys.argv[1:]
token = running_commands.begin(project)
if way == "forked":
    if not os.fork():
        print(os.getpid(), flush=True)
        time.sleep(60)
    time.sleep(60)
inherited = {"pass_fds": [running_commands.handle(token)[1]]} if way == "control" else {"close_fds": False}
print(subprocess.Popen(["sleep", "60"], **inherited).pid, flush=True)
time.sleep(60)
"""


def alive(project):
    folder = Path(user_dirs.state_dir(str(project)), running_commands.FOLDER)
    return [one for one in os.listdir(folder) if running_commands.is_alive(str(project), one)]


@pytest.mark.parametrize(("way", "lives_on"), [("started", False), ("forked", False), ("control", True)])
def test_what_a_killed_runner_leaves_keeps_no_command_alive(project, way, lives_on):
    """The control inherits the descriptor, as a job's supervisor does."""
    with subprocess.Popen(
        [sys.executable, "-c", HOST, project, way], env=environment(), stdout=subprocess.PIPE, text=True
    ) as host:
        other = int(host.stdout.readline())
        assert len(alive(project)) == 1
        host.kill()
    assert len(alive(project)) == lives_on
    os.kill(other, signal.SIGKILL)
    assert until(lambda: not alive(project))
    with running_commands.running(str(project)) as token:
        # What is dead is swept away.
        assert os.listdir(Path(user_dirs.state_dir(str(project)), running_commands.FOLDER)) == [token]


def test_a_command_counts_as_living_where_no_descriptor_is_left_to_ask(project):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with running_commands.running(str(project)) as token:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
            found = running_commands.is_alive(str(project), token)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found
    assert not running_commands.is_alive(str(project), token)

"""A command lives as long as the process that runs it, whoever else was started or forked meanwhile."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import rye
from rye.config import user_dirs
from rye.workspace import running_commands
from support.harness import environment
from support.shell_calls import bash, job, record, set_sandbox, started
from support.signed_tools import OK, put_tool
from support.waiting import until
from unit.executor.test_isolated import WAITS, processes

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


def test_many_at_once_are_told_apart_and_only_those_that_ended_are_over(project):
    wrong = []

    def one():
        for _ in range(50):
            with running_commands.running(str(project)) as token:
                wrong.extend(token for _ in range(3) if not running_commands.is_alive(str(project), token))
            if running_commands.is_alive(str(project), token):
                wrong.append(token)

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert os.listdir(Path(user_dirs.state_dir(str(project)), running_commands.FOLDER)) == []


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


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_a_job_lives_with_its_supervisor_and_no_longer(project, user_space, mode):
    """Not with the server that started it, its program, or another command of the server."""
    set_sandbox(user_space, mode)
    job_id = started(project, "sleep 60")
    token = record(user_space, job_id)["token"]
    # This process has passed it on.
    assert running_commands.is_alive(str(project), token)
    with pytest.raises(KeyError):
        running_commands.handle(token)
    assert bash(project, "true")["success"]
    os.kill(record(user_space, job_id)["supervisor"], signal.SIGKILL)
    assert until(lambda: not running_commands.is_alive(str(project), token))
    assert job(project, "read", job_id)["status"] == "lost"
    assert job(project, "end", job_id)["success"]
    job_id = started(project, "true")
    job(project, "wait", job_id, timeout=60)
    assert until(lambda: not alive(project))


def test_a_waiting_worker_holds_no_command(project, user_space):
    set_sandbox(user_space, "off")
    put_tool(project, "my/tool", OK, more="__permissions__ = ['read']")
    with running_commands.running(str(project)) as token:
        for _ in range(2):
            assert rye.execute("my/tool", {}, project_path=project)["status"] == "success"
        descriptor = running_commands.handle(token)[1]
        name = os.readlink(f"/proc/self/fd/{descriptor}")

        def holds(pid):
            return name in {os.readlink(one) for one in Path(f"/proc/{pid}/fd").iterdir()}

        def readable(pid):
            return os.access(f"/proc/{pid}/fd", os.R_OK)

        # One that only begins may not be looked into yet by an ordinary user.
        assert until(lambda: (found := processes(WAITS, str(project))) and all(map(readable, found)))
        assert [pid for pid in processes(WAITS, str(project)) if holds(pid)] == []
        with subprocess.Popen(["sleep", "60"], pass_fds=[descriptor]) as control:
            assert holds(control.pid)
            control.kill()

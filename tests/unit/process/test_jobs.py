"""What the state folder keeps of jobs and outputs: how many, how long, and what a record is worth."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rye.config import user_dirs
from rye.process import jobs, mount_watch
from rye.workspace import running_commands
from support.harness import environment
from support.shell_calls import bash, call, configure, job, record, started
from support.waiting import until


def settings(user_space, text):
    configure(user_space, f"sandbox: {{mode: 'off'}}\n{text}\n")


@pytest.fixture
def state(project, user_space):
    settings(user_space, "")
    return Path(user_dirs.state_dir(str(project)))


def over(project, command="true"):
    job_id = started(project, command)
    assert job(project, "wait", job_id, timeout=60)["status"] == "ended"
    return job_id


def listed(project):
    return [one["job_id"] for one in job(project, "list")["jobs"]]


def test_what_is_over_goes_by_number_and_what_never_began_at_once(project, user_space, state):
    settings(user_space, "jobs: {max_ended: 2}")
    ids = [over(project) for _ in range(5)]
    assert listed(project) == [ids[4], ids[3], ids[2]]
    # The folder of one that never began goes, that of one that is about to begin stays.
    with running_commands.running(str(project)) as token:
        for name in (token, "f" * 16):
            (state / "jobs" / name).mkdir()
        newest = over(project)
        assert {*os.listdir(state / "jobs")} == {newest, ids[4], ids[3], token}
    path = state / "jobs" / newest / "job.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert record(user_space, newest)["command"] == "true"
    path.write_bytes(b"[]")
    assert over(project)
    # A link in the state folder leads nowhere.
    (state / "jobs" / ("0" * 16)).symlink_to(state / "jobs" / newest)
    assert job(project, "read", "0" * 16)["code"] == "job_not_found"


def test_no_more_than_so_many_at_once(project, state, monkeypatch):
    monkeypatch.setattr(jobs, "MAX_RUNNING", 1)
    first = started(project, "sleep 60")
    assert call("bash", project, command="true", background=True)["code"] == "too_many_jobs"
    job(project, "end", first)
    over(project)


def test_a_supervisor_asked_to_terminate_takes_the_job_with_it(project, user_space, state):
    job_id = started(project, "sleep 60")
    os.kill(record(user_space, job_id)["supervisor"], 15)
    assert until(lambda: job(project, "read", job_id)["status"] == "ended")
    assert job(project, "read", job_id)["why"] == "ended"


def test_outputs_go_by_size(project, user_space, state):
    settings(user_space, "outputs: {max_bytes: 1500000}")

    def kept():
        return {path.name for path in (state / "outputs").iterdir()}

    made = []
    for at in range(4):
        before = kept() if made else set()
        assert "job_id=" in bash(project, "head -c 600000 /dev/zero | tr '\\0' x")["output"]
        (new,) = kept() - before
        os.utime(state / "outputs" / new, (time.time() - 100 + at,) * 2)
        made.append(new)
    bash(project, "seq 30000")
    assert kept() & {*made} == {*made[2:]}


def test_the_output_of_all_jobs_has_one_bound(project, user_space, state):
    settings(user_space, "jobs: {max_bytes: 12000000}")
    running = [started(project, "yes | head -c 9000000; sleep 60") for _ in range(3)]
    limits = [record(user_space, one)["output_limit"] for one in running]
    assert limits == [12_000_000, 1024 * 1024, 1024 * 1024]
    for one in running:
        job(project, "end", one)
    for _ in range(4):
        over(project, "yes | head -c 9000000")
    bash(project, "true", background=True)
    assert sum(path.stat().st_size for path in user_space.glob(".ai/state/*/jobs/*/output")) <= 14_000_000


def test_of_a_long_output_beginning_and_end_are_kept_and_each_window_says_where_it_is(project, user_space, state):
    settings(user_space, "jobs: {max_bytes: 1}")
    job_id = over(project, "seq 400000")
    whole = "".join(f"{number}\n" for number in range(1, 400_001))
    at, seen, gaps = 0, 0, 0
    while at < len(whole):
        part = job(project, "read", job_id, offset=at)
        assert (part["offset"] >= at, part["total_bytes"]) == (True, len(whole))
        assert whole[part["offset"] : part["next_offset"]] in part["output"]
        gaps += part["offset"] > at
        seen += part["next_offset"] - part["offset"]
        at = part["next_offset"]
    assert (seen, gaps) == (record(user_space, job_id)["output_limit"], 1)
    assert job(project, "read", job_id, offset=-7)["output"].startswith("400000\n")
    assert job(project, "read", job_id, offset=len(whole) + 9)["next_offset"] == len(whole)
    # The file is the user's own, and another one in its place is not read.
    output = state / "jobs" / job_id / "output"
    assert output.stat().st_mode & 0o777 == 0o600
    kept = output.rename(output.with_name("kept"))
    for put in (lambda: output.symlink_to(kept), lambda: output.write_text("something else, " * 9)):
        put()
        assert not {"something", "400000"} & {*job(project, "read", job_id, offset=-7).get("output", "").split()}
        assert "something" not in str(job(project, "read", job_id))
        output.unlink()


def test_names_that_the_kernel_does_not_watch_are_an_error():
    with pytest.raises(OSError, match="No such file"):
        mount_watch.MountWatch(["/nowhere/x"], {})


def test_a_file_with_the_number_of_the_covered_one_is_another(tmp_path):
    path = str(tmp_path / "config")
    for _ in range(100):
        Path(path).write_text("x")
        before = {path: mount_watch.identity_at(path)}
        os.unlink(path)
        time.sleep(0.02)
        Path(path).write_text("x")
        if os.stat(path).st_ino == before[path][1]:
            assert mount_watch.MountWatch([path], before).lost() == path
            return
    pytest.skip("this file system gives no number again")


# --- a command lives as long as the process that runs it, whoever else was started or forked meanwhile ---


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

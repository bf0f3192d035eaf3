"""Starters of background jobs killed at random moments: whatever lives on is a listed job, and ends when it is told to.

A process that has loaded rye forks one starter a job; the starter is killed with SIGKILL between the beginning of its call and
some time after its usual end. The control is a supervisor that ends when nobody reads its answer: it leaves lost jobs.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rye
from support.harness import times
from support.shell_calls import job, set_sandbox, sleepers
from support.waiting import PATIENCE, until

STARTER = """
import os, signal, sys, rye
from rye.process import reapers
project, boot = sys.argv[1:]
if boot:
    reapers._START = boot
rye.execute("rye/bash/job", {"action": "list"}, project_path=project)
print("ready", flush=True)
for line in sys.stdin:
    pid = os.fork()
    if not pid:
        rye.execute("rye/bash/bash", {"command": f"setsid sleep {line.strip()} & wait", "background": True}, project_path=project)
        signal.pause()
    print(pid, flush=True)
    os.waitpid(pid, 0)
"""
# An answer that nobody reads ends the supervisor. It waits first, so that the starter is surely gone.
FRAGILE = (
    "import sys, os, time; sys.path.append(sys.argv[1]); import reaper; reaper._report = lambda control, text: "
    "(time.sleep(text.startswith('job')), os.write(control, text.encode() + b'\\n')); reaper.serve(int(sys.argv[2]))"
)


def killed_starts(project, number, chance, *, boot="", latest=0.25):
    """Start jobs and kill their starters; return the seconds that each sleeps, its name among processes."""
    env = {**os.environ, "PYTHONPATH": str(Path(rye.__file__).parents[1])}
    argv = [sys.executable, "-c", STARTER, project, boot]
    named = [chance.randrange(100_000_000, 999_999_999) for _ in range(number)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as template:
        assert template.stdout.readline() == "ready\n"
        for name in named:
            template.stdin.write(f"{name}\n")
            template.stdin.flush()
            pid = int(template.stdout.readline())
            time.sleep(chance.uniform(0, latest))
            os.kill(pid, signal.SIGKILL)
        template.stdin.close()
    return named


def counted(project, named):
    """Return how many jobs live, and which of them no job that is running or lost names."""
    alive = {name for name in named if sleepers(name)}
    listed = {row["command"]: row["status"] for row in job(project, "list")["jobs"]}
    unlisted = [name for name in alive if listed.get(f"setsid sleep {name} & wait") not in ("running", "lost")]
    lost = [name for name in alive if listed.get(f"setsid sleep {name} & wait") == "lost"]
    return len(alive), unlisted, lost


def settled(project, named, seconds=PATIENCE):
    """Count once nothing changes any more."""
    end = time.monotonic() + seconds
    before, found = None, counted(project, named)
    while before != found and time.monotonic() < end:
        time.sleep(1.2)
        before, found = found, counted(project, named)
    return found


def end_all(project, named):
    for row in job(project, "list")["jobs"]:
        job(project, "end", row["job_id"])
    until(lambda: not any(map(sleepers, named)))
    return [name for name in named if sleepers(name)]


def campaign(project, user_space, mode, number, seed):
    """Return alive, unlisted, lost and not ended over `number` starts."""
    set_sandbox(user_space, mode)
    chance = random.Random(seed)
    totals = [0, 0, 0, 0]
    for at in range(0, number, 16):
        named = killed_starts(project, min(16, number - at), chance)
        alive, unlisted, lost = settled(project, named)
        left = end_all(project, named)
        totals = [total + more for total, more in zip(totals, (alive, len(unlisted), len(lost), len(left)), strict=True)]
    return totals


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "off"])
def test_no_job_lives_unlisted(project, user_space, mode):
    seed = random.SystemRandom().randrange(1 << 30)
    print("seed", seed)
    # On a busy machine the kills of one round may all come before a job lives.
    for attempt in range(5):
        alive, unlisted, lost, left = campaign(project, user_space, mode, times(16), seed + attempt)
        assert (unlisted, lost, left) == (0, 0, 0)
        if alive:
            return
    pytest.fail("no job came to life: the kills came too early to try anything")


@pytest.mark.slow
def test_control_a_supervisor_that_ends_with_its_starter_leaves_lost_jobs(project, user_space):
    set_sandbox(user_space, "off")
    named = killed_starts(project, 4, random.Random(1), boot=FRAGILE, latest=0.01)
    named += killed_starts(project, 4, random.Random(2), boot=FRAGILE, latest=0.5)
    _, _, lost = settled(project, named)
    assert lost, "the control lost no job"
    assert end_all(project, named) == []


@pytest.mark.slow
def test_a_lost_job_is_ended_before_its_record_goes(project, user_space):
    set_sandbox(user_space, "off")
    named = killed_starts(project, 6, random.Random(3), boot=FRAGILE, latest=0.5)
    _, _, lost = settled(project, named)
    assert lost
    (user_space / ".ai/config/rye.yaml").write_text("sandbox: {mode: 'off'}\njobs: {max_ended: 0}\n")
    rye.execute("rye/bash/bash", {"command": "true", "background": True}, project_path=project)
    alive, unlisted, lost = settled(project, named)
    assert (alive, unlisted, lost) == (0, [], [])

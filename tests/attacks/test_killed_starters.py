"""Starters of background jobs killed at random moments: whatever lives on is a listed job, and ends when it is told to.

A starter is killed with SIGKILL between the beginning of its call and some time after its usual end. The control is a supervisor
that ends when nobody reads its answer: it leaves lost jobs.
"""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress

import pytest

from support.harness import times
from support.shell_calls import bash, configure, job, set_sandbox, sleepers
from support.waiting import PATIENCE, until

# An answer that nobody reads ends the supervisor. It waits first, so that the starter is surely gone.
FRAGILE = (
    "import sys, os, time; sys.path.append(sys.argv[1]); from rye.process import reaper; reaper._report = lambda control, text: "
    "(time.sleep(text.startswith('job')), os.write(control, text.encode() + b'\\n')); reaper.serve(int(sys.argv[2]))"
)


class Starts:
    """Jobs whose starters were killed; each sleeps a number of seconds of its own, its name among processes."""

    def __init__(self, made, project, chance) -> None:
        self.made, self.project, self.chance, self.named = made, project, chance, []
        # How long a whole start takes on this machine now.
        self.start("true")
        began = time.monotonic()
        made.ended()
        self.whole = time.monotonic() - began

    def start(self, command, boot=""):
        pid = self.made.victim(self.project, "rye/bash/bash", {"command": command, "background": True}, boot=boot)
        os.kill(pid, signal.SIGCONT)
        return pid

    def kill(self, number, *, latest=1.2, boot="") -> None:
        """Start so many jobs, and kill their starters until `latest` of a whole start has passed."""
        for _ in range(number):
            # Whatever the seed: one that another run has left must not count.
            self.named.append(random.SystemRandom().randrange(100_000_000, 999_999_999))
            pid = self.start(f"setsid sleep {self.named[-1]} & wait", boot)
            # A fragile supervisor waits for a second; on a busy machine a start may be over by then, and its job would live.
            time.sleep(min(self.chance.uniform(0, latest) * self.whole, 0.9 if boot else PATIENCE))
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            self.made.ended()

    def counted(self):
        """Return how many jobs live, and which of them no job that is running or lost names, and which are lost."""
        alive = [name for name in self.named if sleepers(name)]
        listed = {row["command"]: row["status"] for row in job(self.project, "list")["jobs"]}
        status = {name: listed.get(f"setsid sleep {name} & wait") for name in alive}
        unlisted = [name for name in alive if status[name] not in ("running", "lost")]
        return len(alive), unlisted, [name for name in alive if status[name] == "lost"]

    def settled(self):
        """Count once nothing changes any more."""
        end = time.monotonic() + PATIENCE
        before, found = None, self.counted()
        while before != found and time.monotonic() < end:
            time.sleep(1.2)
            before, found = found, self.counted()
        return found

    def end_all(self):
        """End every job that is listed; return which live on."""
        for row in job(self.project, "list")["jobs"]:
            job(self.project, "end", row["job_id"])
        until(lambda: not any(map(sleepers, self.named)))
        return [name for name in self.named if sleepers(name)]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "off"])
def test_no_job_lives_unlisted(made, project, user_space, rng, mode):
    set_sandbox(user_space, mode)
    # On a busy machine the kills of one round may all come before a job lives.
    for _ in range(5):
        starts = Starts(made, project, rng)
        starts.kill(times(16))
        alive, unlisted, lost = starts.settled()
        assert (unlisted, lost, starts.end_all()) == ([], [], [])
        if alive:
            return
    pytest.fail("no job came to life: the kills came too early to try anything")


@pytest.mark.slow
def test_control_a_supervisor_that_ends_with_its_starter_leaves_lost_jobs_which_end_before_their_records(
    made, project, user_space
):
    set_sandbox(user_space, "off")
    starts = Starts(made, project, random.Random(1))
    starts.kill(4, boot=FRAGILE, latest=0.1)
    starts.kill(4, boot=FRAGILE, latest=2)
    assert starts.settled()[2], "the control lost no job"
    # A lost one is ended before its record goes.
    configure(user_space, "sandbox: {mode: 'off'}\njobs: {max_ended: 0}\n")
    bash(project, "true", background=True)
    assert starts.settled() == (0, [], [])


@pytest.mark.slow
def test_a_job_that_is_refused_since_its_supervisor_was_stopped_is_gone(made, project, user_space):
    set_sandbox(user_space, "off")
    starts, number = Starts(made, project, random.Random(1)), random.SystemRandom().randrange(100_000_000, 999_999_999)
    # The command stops it before it answers.
    starts.start(f"kill -STOP $PPID; setsid sleep {number} & wait", FRAGILE)
    assert until(lambda: sleepers(number))
    made.ended()
    assert (sleepers(number), [row["command"] for row in job(project, "list")["jobs"]]) == ([], ["true"])

"""Commands that will not end, leave others behind, flood, or attack who guards them: no call hangs, and what survives is counted.

Every kind runs under the best sandbox of this machine and without one. The caller's memory is measured, and servers are killed
in the middle of their commands. The naive way (a process group, `communicate`) is the control.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.harness import environment, times
from support.shell_calls import bash, job, set_sandbox
from support.waiting import PATIENCE, until

# {0} is a word by which this run's processes are known, {1} the MB of a flood.
KINDS = {
    "times out": "sleep {0}",
    "daemonizes": "(setsid bash -c 'setsid sleep {0} & exec sleep {0}' >/dev/null 2>&1 &) ; echo done",
    "daemonizes and times out": "(setsid bash -c '(setsid sleep {0} &); exec sleep {0}' &) ; sleep {0}",
    "floods": "head -c {1}000000 /dev/zero | tr '\\0' 'y'; sleep {0}",
    "floods both and ends": "(head -c {1}000000 /dev/zero >&2 &) ; head -c {1}000000 /dev/zero; setsid sleep {0} &",
    "closes its output": "exec <&- >&- 2>&-; sleep {0}",
    "kills its parent": "setsid sleep {0} & kill -9 $PPID; sleep {0}",
    "kills its parent, as somebody else": "env -i setsid sleep {0} & sleep 0.05; kill -9 $PPID; sleep {0}",
    "stops its parent": "setsid sleep {0} & kill -STOP $PPID; sleep {0}",
    "kills its session": "setsid sleep {0} & kill -9 0; sleep {0}",
    "holds the pipe": "sleep {0} & echo hi",
    "holds the pipe, from a session of its own": "setsid sleep {0} & echo hi",
    "floods from behind": "setsid bash -c 'while :; do echo {0}; done' & echo hi",
    "prints invalid UTF-8": "head -c 300000 /dev/urandom; sleep {0}",
    "is deaf": "trap '' TERM INT HUP QUIT; while :; do sleep {0}; done",
    "stops itself": "kill -STOP $$",
    "forks without end": "for i in $(seq 200); do (setsid sleep {0} &); done; sleep {0}",
    "asks": "read -r x </dev/tty; cat; sleep {0}",
}
TIMEOUT = 0.7
WORKERS = 4
MOST_SECONDS = PATIENCE
"""A call that takes longer than this counts as hung (timeout and patience, on a machine with other work)."""


def survivors(word, seconds=1.0):
    """Processes that carry the word in their arguments, after a moment's patience."""
    end = time.monotonic() + seconds
    while found := [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if carries(pid, word)]:
        if time.monotonic() > end:
            break
        time.sleep(0.02)
    return found


def carries(pid, word):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file, open(f"/proc/{pid}/stat", "rb") as stat:
            return pid != os.getpid() and word.encode() in file.read() and b") Z" not in stat.read()
    except OSError:
        return False


def kill_survivors(word, seconds=1.0):
    """Kill what lives on; return how many did."""
    found = survivors(word, seconds)
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return len(found)


def memory():
    """This process's resident memory at its highest (KiB)."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def fresh_word():
    return str(random.SystemRandom().randrange(10**9, 10**10))


def attack(project, times, flood, mode):
    """Run `times` commands, all kinds in turn, four at a time; count what hung and what survived."""
    set_sandbox(Path(os.environ["USER_SPACE"]), mode)
    bash(project, "true")
    before = memory()
    hung, left, kinds = Counter(), Counter(), set()

    def one(number):
        name = list(KINDS)[number % len(KINDS)]
        word = fresh_word()
        began = time.monotonic()
        data = bash(project, KINDS[name].format(word, flood), timeout=TIMEOUT)
        kinds.add(data["sandbox"]["kind"])
        if time.monotonic() - began > MOST_SECONDS:
            hung[name] += 1
        assert "exit_code" in data, data
        left.update({name: killed} if (killed := kill_survivors(word)) else {})

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one, range(times)))
    return hung, left, memory() - before, kinds


SERVER = """
import os, sys, threading, rye
project, background, *commands = sys.argv[1:]
threads = [threading.Thread(target=rye.execute, args=("rye/bash/bash", {"command": one, **({"background": True} if background else {})}),
                            kwargs={"project_path": project}) for one in commands]
[thread.start() for thread in threads]
print("started", flush=True)
[thread.join() for thread in threads]
print("joined", flush=True)
"""
LONG = ("(setsid sleep {0} &) ; sleep {0}", "bash -c 'sleep {0} & wait'", "exec >&-; sleep {0}")


def kill_a_server(project, pause):
    """Start a server with three commands, kill it; return how many of its processes live on."""
    word = fresh_word()
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, project, "", *(one.format(word) for one in LONG)],
        stdout=subprocess.PIPE,
        env=environment(),
    ) as server:
        server.stdout.readline()
        time.sleep(pause)
        server.kill()
    return kill_survivors(word)


def naive(command, word):
    """The control: a process group of its own, `communicate`, killed by its group; return how many survived."""
    words = ["/bin/bash", "-c", command]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as child:
        try:
            child.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
        left = kill_survivors(word, 0.2)
        child.communicate()
    return left


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "off"])
def test_no_call_hangs_and_what_survives_is_known(project, mode):
    hung, left, grown, kinds = attack(project, times(len(KINDS)), 50, mode)
    print(f"{mode} ({', '.join(kinds)}): hung {dict(hung)}, survived {dict(left)}, memory +{grown // 1024} MB")
    assert not hung
    # Who has left the tree and killed the guard is out of reach without a sandbox: that is the honest number.
    assert set(left) <= (set() if kinds == {"bubblewrap"} else {"kills its parent, as somebody else"})
    assert grown < 40 * 1024


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "off"])
def test_a_killed_server_leaves_no_command(project, rng, mode):
    """Killed at moments from before its commands run to well within."""
    set_sandbox(Path(os.environ["USER_SPACE"]), mode)
    assert [kill_a_server(project, rng.uniform(0, 0.4)) for _ in range(times(3))] == [0] * times(3)


@pytest.mark.slow
def test_control_the_naive_way_leaves_processes():
    word = fresh_word()
    assert naive(KINDS["daemonizes and times out"].format(word, 1), word) > 0
    assert naive(KINDS["holds the pipe, from a session of its own"].format(word, 1), word) > 0


def test_control_a_background_job_outlives_its_server(project):
    word = fresh_word()
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, project, "yes", LONG[0].format(word)], stdout=subprocess.PIPE, env=environment()
    ) as server:
        assert server.stdout.readline() == b"started\n"
        assert server.stdout.readline() == b"joined\n"
        server.kill()
    # Without mounts and namespaces the word stands nowhere before the command itself has started.
    until(lambda: survivors(word, 0))
    assert survivors(word, 0.3), "a job is meant to go on"
    (listed,) = job(project, "list")["jobs"]
    assert job(project, "end", listed["job_id"])["success"]
    assert survivors(word) == []

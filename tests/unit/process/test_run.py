"""A command run to its end: its streams, its time, its tree."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time

import pytest

import rye
import support
from rye.call import context
from rye.errors import RyeError
from rye.plain_class import changed
from rye.process import reaper
from rye.process import run as process_run
from rye.sandbox.sandbox import Confined
from rye.workspace import running_commands
from support.commands import NONE, alive, confined, gone, held, run, stat_of, text
from support.waiting import PATIENCE, until

PATHS = [os.path.dirname(os.path.dirname(module.__file__)) for module in (support, rye)]


@pytest.fixture
def number():
    """A number of seconds that only this test's sleepers sleep."""
    return str(random.SystemRandom().randrange(10_000_000, 99_999_999))


def test_there_is_no_terminal_and_no_descriptor_of_ours(tmp_path):
    done = run(
        "tty; (exec </dev/tty) 2>/dev/null || echo none; ls /proc/self/fd; cut -d' ' -f6 /proc/self/stat; echo $$", tmp_path
    )
    lines = text(done.stdout).split()
    assert lines[:4] == ["not", "a", "tty", "none"]
    assert lines[4:-2] == ["0", "1", "2", "3"], "3 is what ls reads"
    assert lines[-1] == lines[-2], "a session of its own"


def test_what_this_process_lets_its_children_inherit_is_no_commands(tmp_path):
    # In a process of its own: who starts reapers is started with the first command.
    body = """
import os, sys
sys.path[:0] = sys.argv[1:3]
from support.commands import run, text
for fd in (9, 40): os.dup2(1, fd, inheritable=True)
print(text(run("ls /proc/self/fd", "/").stdout))
"""
    done = subprocess.run([sys.executable, "-c", body, *PATHS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1", "2", "3"]


def test_signals_are_as_a_program_expects_them(tmp_path):
    done = run("grep -E 'Sig(Blk|Ign)' /proc/self/status; (yes; echo no >&2) | head -1", tmp_path)
    blocked, ignored, yes = text(done.stdout).splitlines()
    assert (blocked, yes) == (f"SigBlk:\t{'0' * 16}", "y")
    # glibc's posix_spawn, by which Python 3.13 starts programs, ignores the two signals that are its own: 32 and 33.
    assert int(ignored.split()[1], 16) & ~(0b11 << 31) == 0
    assert text(done.stderr) == "no\n", "a broken pipe ended yes, without a word"


def test_the_name_of_a_signal_that_ended_it(tmp_path):
    done = run("kill -SEGV $$", tmp_path)
    assert (done.exit_code, done.signal, done.why) == (None, "SIGSEGV", "exited")
    assert process_run.signal_name(200) == "signal 200"


def test_what_cannot_be_started_says_so(tmp_path):
    with held(tmp_path) as fd, pytest.raises(RyeError, match="No such file") as caught:
        process_run.run(Confined(["/no/such/program"], {}, (), NONE), fd, 5)
    assert caught.value.code == "command_failed_to_start"


def test_output_of_one_left_behind_still_counts_for_a_moment(tmp_path):
    assert text(run("(sleep 0.05; echo late) & echo early", tmp_path).stdout) == "early\nlate\n"


def test_a_call_that_was_given_up_before_ends_at_once(tmp_path, number):
    limit = context.Deadline(30)
    limit.expire()
    with context.using(deadline=limit):
        assert run(f"sleep {number}", tmp_path, 30).why == "timed_out"
    assert alive(number) == []


def test_output_is_told_as_it_comes(tmp_path):
    told = []

    def tell(piece):
        told.append(piece)
        for line in "".join(told).splitlines():
            (tmp_path / f"told {line}").touch()

    # Each line comes only when the one before was told.
    wait = 'until [ -e "told {}" ]; do sleep 0.02; done; '
    command = f"printf '\\033[3'; sleep 0.1; printf '1mone\\n'; {wait.format('one')} echo two >&2; {wait.format('two')} printf 'end\\303'"
    with context.using(options=context.CallOptions(on_output=tell)):
        done = run(command, tmp_path, PATIENCE)
    assert done.why != "timed_out"
    assert "".join(told) == "one\ntwo\nend\\xc3"


def test_of_a_flood_a_little_is_told(tmp_path):
    told = []
    with context.using(options=context.CallOptions(on_output=told.append)):
        done = run("yes | head -c 30000000", tmp_path)
    assert done.stdout.total == 30_000_000
    assert sum(map(len, told)) < 2_000_000
    assert any("not shown" in piece for piece in told)


def test_a_watcher_that_fails_leaves_nothing(tmp_path, number):
    def fail(piece):
        raise ValueError(piece)

    with context.using(options=context.CallOptions(on_output=fail)), pytest.raises(ValueError, match="hi"):
        run(f"setsid sleep {number} & echo hi; sleep {number}", tmp_path)
    assert gone(number) == []


def test_no_descriptor_is_left(tmp_path):
    run("true", tmp_path)
    # With that of the reaper that waits for the next command.
    before = len(os.listdir("/proc/self/fd"))
    for command in ("true", "sleep 9", "kill -9 $PPID", "seq 100000"):
        run(command, tmp_path, 0.3)
    with held(tmp_path) as fd, pytest.raises(RyeError):
        process_run.run(Confined(["/no/such"], {}, (), NONE), fd, 1)
    assert len(os.listdir("/proc/self/fd")) == before


def test_children_of_this_process_are_none_of_its_business(tmp_path):
    with subprocess.Popen(["sleep", "30"]) as other:
        run("setsid sleep 30 & sleep 30", tmp_path, 0.2)
        assert other.poll() is None
        other.kill()


def test_a_turn_is_left_while_a_command_runs_and_waited_for_a_moment_only(tmp_path):
    def in_turn(command):
        with running_commands.turn:
            return run(command, tmp_path).exit_code

    slow = threading.Thread(target=in_turn, args=("touch begun; until [ -e end ]; do sleep 0.02; done",))
    slow.start()
    until((tmp_path / "begun").exists)
    assert in_turn("touch end") == 0
    slow.join(PATIENCE)
    assert not slow.is_alive()
    # One that looks at a large project, say.
    found = []
    waiting = threading.Thread(target=lambda: found.append(in_turn("true")))
    with running_commands.turn:
        waiting.start()
        waiting.join(PATIENCE)
        assert found == [0]


def test_calls_side_by_side(tmp_path):
    found = []
    threads = [
        threading.Thread(target=lambda at=at: found.append((at, text(run(f"sleep 0.1; echo {at}", tmp_path).stdout))))
        for at in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(at, f"{at}\n") for at in range(8)]


SERVER = """
import os, sys
sys.path[:0] = sys.argv[2:4]
from support.commands import run
run(sys.argv[1], "/", 60)
"""


@pytest.mark.parametrize("way", ["KILL", "TERM", "INT"])
def test_when_the_server_is_killed_its_commands_end(number, way):
    command = f"(setsid sleep {number} &) ; sleep {number}"
    with subprocess.Popen([sys.executable, "-c", SERVER, command, *PATHS], stderr=subprocess.DEVNULL) as server:
        while len(alive(number)) < 2:
            time.sleep(0.01)
        subprocess.run(["kill", f"-{way}", str(server.pid)], check=True)
    assert gone(number) == []


def test_a_program_is_started_by_its_order_alone():
    argv, env = ["/bin/x", "", "a b\n", "\udcff"], {"A": "", "B": "c=d"}
    body = process_run.order(Confined(argv, {}, (7, 9), {}, scoped=True), env, [8]).partition(b"\n")[2]
    assert reaper.parse_order(body) == ([b"/bin/x", b"", b"a b\n", b"\xff"], {b"A": b"", b"B": b"c=d"}, True, [7, 9], [8])


def has_ended(pid):
    try:
        return stat_of(pid) == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("who", ["the one that forks", "the one that waits", "both"])
def test_where_a_guard_was_killed_before_the_command_another_one_serves(tmp_path, who):
    def end(pids):
        for pid in pids:
            os.kill(pid, 9)
        # Its command line is gone before what it holds open is.
        until(lambda: all(map(has_ended, pids)))

    def guards():
        waits = int(text(guarded("echo $PPID", tmp_path).stdout))
        return int(stat_of(waits, 1)), waits

    forks, waits = guards()
    if forks not in reaper.descendants(os.getpid()):
        # Another case has ended its parent.
        end([waits])
        forks, waits = guards()
    end({"the one that forks": [forks], "the one that waits": [waits], "both": [forks, waits]}[who])
    assert text(guarded("echo works", tmp_path).stdout) == "works\n"


def guarded(command, folder, kind="bubblewrap", fds=()):
    """Run a command as one that a sandbox keeps from its guard."""
    with held(folder) as fd:
        return process_run.run(changed(confined(command), report={**NONE, "kind": kind}, fds=fds), fd, 20)


def test_the_guard_of_a_sandboxed_command_serves_the_next_one_with_nothing_of_it(tmp_path):
    asks = "echo $PPID; ls /proc/self/fd | tr '\\n' ' '; ls -l /proc/$PPID/fd | wc -l; pwd; cat"
    with open(os.devnull, "rb") as file:
        first = text(guarded(asks, tmp_path, fds=(file.fileno(),)).stdout).splitlines()
    (tmp_path / "other").mkdir()
    second = text(guarded(asks, tmp_path / "other").stdout).splitlines()
    assert second[0] == first[0]
    assert second[1].startswith("0 1 2 3 ")
    assert first[1] != second[1]
    assert second[2] == str(tmp_path / "other")
    assert second[1].split()[-1] == first[1].split()[-1], "the guard holds what it held at first"
    # What could have taken its guard over, was ended, or left something, was guarded for the last time.
    assert text(guarded(asks, tmp_path, kind="none").stdout).split()[0] == first[0]
    others = [
        guarded("echo $PPID", tmp_path),
        guarded("echo $PPID; kill -9 $PPID", tmp_path),
        guarded("echo $PPID; sleep 60 &", tmp_path),
    ]
    assert len({first[0], *(text(one.stdout).strip() for one in others)}) == 3


def test_a_command_has_what_this_process_has_now(tmp_path):
    run("true", tmp_path)
    before, soft = os.umask(0o027), resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft[0] - 1, soft[1]))
        assert text(run("umask; ulimit -n", tmp_path).stdout).split() == ["0027", str(soft[0] - 1)]
    finally:
        os.umask(before)
        resource.setrlimit(resource.RLIMIT_NOFILE, soft)
    assert text(run("umask; ulimit -n", tmp_path).stdout).split() == [f"{before:04o}", str(soft[0])]


def test_a_command_gets_many_descriptors_under_their_numbers(tmp_path):
    fds = [os.memfd_create(str(number)) for number in range(600)]
    try:
        with held(tmp_path) as fd:
            command = confined("cd /proc/self/fd; for n in $FDS; do readlink $n; done", FDS=" ".join(map(str, fds)))
            done = process_run.run(changed(command, fds=tuple(fds)), fd, 60)
    finally:
        process_run.close_all(fds)
    assert text(done.stdout).split()[::2] == [f"/memfd:{number}" for number in range(600)]


def test_a_process_that_came_while_a_run_was_searched_is_ended_too(number, monkeypatch):
    marked = {**os.environ, process_run.RUN_VARIABLE: number}
    early, late = (subprocess.Popen(["sleep", number], env=marked) for _ in range(2))
    listed, stale = os.listdir, True

    def without_the_late(path="."):
        nonlocal stale
        hidden, stale = str(late.pid) if stale else "", False
        return [name for name in listed(path) if name != hidden]

    try:
        monkeypatch.setattr(os, "listdir", without_the_late)
        assert process_run.end_marked(number)
        monkeypatch.undo()
        assert alive(number) == []
    finally:
        for one in (early, late):
            one.kill()
            one.wait()


def test_a_wake_of_a_guard_without_a_cause_ends_nothing():
    woken, waker = os.pipe()
    try:
        os.set_blocking(woken, False)
        assert not reaper.is_asked_to_end(woken)
        os.write(waker, bytes([signal.SIGTERM]))
        assert reaper.is_asked_to_end(woken)
    finally:
        process_run.close_all((woken, waker))

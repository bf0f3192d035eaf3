"""A command run to its end: what it finds, what is told of it, who guards it, and what is left."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rye
from rye.call.context import CallOptions
from rye.process import terminal_text
from rye.workspace import running_commands
from support.machine import needs_bubblewrap
from support.shell_calls import bash, set_sandbox, sleepers
from support.waiting import PATIENCE, until


@pytest.mark.usefixtures("unconfined")
@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("tty; (exec </dev/tty) 2>/dev/null || echo none", "not a tty\nnone\n"),
        ("[ $(cut -d' ' -f6 /proc/self/stat) = $$ ] && echo a session of its own", "a session of its own\n"),
        # A broken pipe ends `yes` without a word.
        ("(yes; echo no >&2) 2>&1 | head -1", "y\n"),
        ("grep SigBlk /proc/self/status", f"SigBlk:\t{'0' * 16}\n"),
        # glibc's posix_spawn, by which Python 3.13 starts programs, ignores the two signals that are its own: 32 and 33.
        ("s=$(grep SigIgn /proc/self/status); echo $((0x${s#*:?} & ~(3 << 31)))", "0\n"),
        ("(sleep 0.05; echo late) & echo early", "early\nlate\n"),
    ],
)
def test_what_a_command_finds(project, command, output):
    data = bash(project, command)
    assert (data["output"], data["stderr"]) == (output, "")


def test_what_this_process_lets_its_children_inherit_is_no_commands(project, unconfined):
    # In a process of its own: who starts reapers is started with the first command.
    body = """
import os, sys, rye
for fd in (9, 40): os.dup2(1, fd, inheritable=True)
print(rye.execute("rye/bash/bash", {"command": "ls /proc/self/fd"}, project_path=sys.argv[1])["data"]["output"])
"""
    env = {**os.environ, "PYTHONPATH": str(Path(rye.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", body, project], capture_output=True, text=True, check=True, env=env)
    assert not {"9", "40"} & {*done.stdout.split()}, done.stdout


def test_a_command_has_what_this_process_has_now(project, unconfined):
    bash(project, "true")
    before, soft = os.umask(0o027), resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft[0] - 1, soft[1]))
        assert bash(project, "umask; ulimit -n")["output"].split() == ["0027", str(soft[0] - 1)]
    finally:
        os.umask(before)
        resource.setrlimit(resource.RLIMIT_NOFILE, soft)
    assert bash(project, "umask; ulimit -n")["output"].split() == [f"{before:04o}", str(soft[0])]


def told(project, command, take):
    options = CallOptions(on_output=take)
    return rye.execute("rye/bash/bash", {"command": command}, project_path=project, options=options)


def test_of_a_flood_a_little_is_told(project, unconfined):
    pieces = []
    assert told(project, "yes | head -c 30000000", pieces.append)["data"]["total_bytes"] == 30_000_000
    assert sum(map(len, pieces)) < 2_000_000
    assert any("not shown" in piece for piece in pieces)


def test_a_watcher_that_fails_leaves_nothing(project, unconfined, number):
    def fail(piece):
        raise ValueError(piece)

    assert told(project, f"setsid sleep {number} & echo hi; sleep {number}", fail)["code"] == "tool_crashed"
    assert until(lambda: not sleepers(number))


def test_children_of_this_process_are_none_of_its_business(project, unconfined):
    with subprocess.Popen(["sleep", "30"]) as other:
        bash(project, "setsid sleep 30 & sleep 30", timeout=0.2)
        assert other.poll() is None
        other.kill()


# --- who guards it ---


def guards():
    """Return this process's guards: those that fork, and those that wait for a command."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (path / "stat").read_text().rpartition(")")[2].split()
            if words[0] != "Z" and b"reaper.serve" in (path / "cmdline").read_bytes():
                parents[int(path.name)] = int(words[1])
    forking = sorted(pid for pid, parent in parents.items() if parent == os.getpid())
    return [*forking, *sorted(pid for pid, parent in parents.items() if parent in forking)]


@needs_bubblewrap
def test_one_guard_serves_one_sandboxed_command_after_the_other_and_another_one_where_it_was_killed(project, user_space):
    # In a process of its own, which has no guards yet.
    pid = os.fork()
    if not pid:
        try:
            use_guards(project, user_space)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def use_guards(project, user_space):
    set_sandbox(user_space, "auto")

    def one_serves_both():
        before = guards()
        assert bash(project, "echo works")["output"] == "works\n"
        # One that forks, and one that waits for the next command.
        return len(before) == 2 and guards() == before

    # On a busy machine it is not kept each time.
    assert until(one_serves_both)
    # What could have taken its guard over was guarded for the last time.
    set_sandbox(user_space, "off")
    assert len({bash(project, "echo $PPID")["output"] for _ in range(3)}) == 3
    # Where a guard was killed another one serves: one that waits, all of them, the one that forks.
    set_sandbox(user_space, "auto")
    for killed in (slice(1, None), slice(None), slice(0, 1)):
        assert until(lambda: bash(project, "true")["success"] and len(guards()) >= 2)
        ended = guards()[killed]
        for pid in ended:
            os.kill(pid, 9)
        # Its command line is gone before what it holds open is.
        assert until(lambda ended=ended: not {*ended} & {*guards()})
        assert bash(project, "echo works")["output"] == "works\n"


def test_a_turn_is_waited_for_a_moment_only(project, unconfined):
    """Another command may have it for long, such as one that looks at a large project."""
    found = []
    waiting = threading.Thread(target=lambda: found.append(bash(project, "true")["exit_code"]))
    with running_commands.turn:
        waiting.start()
        waiting.join(PATIENCE)
        assert found == [0]


# --- output as plain text ---


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain \xc3\xa9\t\n", "plain é\t\n"),
        (b"\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mrgb\x1b[m", "red rgb"),
        (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "alink"),
        (b"\x1bPq#0;2\x1b\\sixel\x1b(B\x1b=\x1b7", "sixel"),
        (b"\xc2\x9b31mC1", "C1"),
        (b"end\x1b[3", "end"),
        (b"\x1b]never ended\nnext", "\\x1b]never ended\nnext"),
        (b"10%\r50%\r100%\ndone\r\n", "100%\ndone\n"),
        (b"10%\r50%\r", "50%"),
        (b"abc\b\b\bxyz\n", "xyz\n"),
        (b"\b\bx", "x"),
        (b"\xff\xfe\x80", "\\xff\\xfe\\x80"),
        (b"\x00\x07\x7f", "\\x00\\x07\\x7f"),
        ("\u202eevil\u200b".encode(), "<U+202E>evil<U+200B>"),
        ("👩\u200d💻".encode(), "👩\u200d💻"),
        (b"", ""),
    ],
)
def test_what_is_shown(data, text):
    assert terminal_text.plain(data) == text


def test_endless_escapes_take_no_endless_time():
    for evil in (b"\x1b[" + b"1;" * 100_000, b"\x1b]" * 100_000, b"\x1b" * 200_000, b"\r" * 200_000, b"\b" * 200_000):
        assert len(terminal_text.plain(evil)) <= len(evil) * 4


@given(
    st.lists(st.sampled_from([b"a", b"\xc3", b"\xa9", b"\x1b", b"[", b"3", b"m", b"]", b"\x07", b"\n", b"\xff"]), max_size=40)
)
def test_pieces_give_the_same_text_as_the_whole(pieces):
    reader = terminal_text.Plain()
    assert "".join(map(reader.feed, pieces)) + reader.rest() == terminal_text.plain(b"".join(pieces))


@given(st.binary(max_size=300) | st.text(max_size=200).map(str.encode), st.integers(1, 200))
def test_a_part_fits_and_says_how_much_it_is(data, room):
    for part, taken in (
        (terminal_text.first(data, room), data[: terminal_text.first(data, room)[1]]),
        (terminal_text.last(data, room), data[len(data) - terminal_text.last(data, room)[1] :]),
    ):
        assert len(part[0].encode()) <= room
        assert part[0] == terminal_text.plain(taken)
    if terminal_text.fits(terminal_text.plain(data), room):
        assert terminal_text.first(data, room) == terminal_text.last(data, room) == (terminal_text.plain(data), len(data))


def test_parts_end_at_lines_and_a_line_too_long_is_cut_between_characters():
    # A line counts for six bytes at least.
    assert terminal_text.first(b"one\ntwo\nthree\n", 13) == ("one\ntwo\n", 8)
    assert terminal_text.last(b"one\ntwo\nthree\n", 12) == ("two\nthree\n", 10)
    assert terminal_text.first("éééé".encode(), 5) == ("éé", 4)
    assert terminal_text.last("éééé".encode(), 5) == ("éé", 4)
    assert terminal_text.first(b"\xff\xff", 5) == ("\\xff", 1)

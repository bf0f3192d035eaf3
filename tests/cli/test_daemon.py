"""`rye daemon`: a call that the helper makes is the call that a normal start makes; what it cannot be starts normally."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import rye
from rye.cli.daemon import client
from rye.cli.main import main, verb_names
from support.helper_process import NOT_SERVED, HelperProcess, wait_until


@pytest.fixture(scope="module")
def helper(tmp_path_factory):
    running = HelperProcess(tmp_path_factory.mktemp("space"))
    yield running
    running.end()


def _fill(project):
    (project / ".git").mkdir(parents=True)
    (project / "sub").mkdir()
    (project / "a.py").write_text("".join(f"line {number}\n" for number in range(1, 301)))
    (project / "sub/b.txt").write_bytes("gr\u00fc\u00dfe\r\nzwei\r\n".encode("latin-1"))
    (project / "text.txt").write_text("from a file\n")


@pytest.fixture
def twins(tmp_path):
    for name in ("one", "two"):
        _fill(tmp_path / name / "project")
    return tmp_path / "one/project", tmp_path / "two/project"


def _masked(data, project):
    text = data.decode(errors="replace").replace(str(project.parent), "BASE")
    text = re.sub(r'"duration_ms": [\d.]+', '"duration_ms": 0', text)
    # Of entries, states and versions.
    return re.sub(r"\b(?=[a-z]*\d)(?=\d*[a-z])[0-9a-z]{10,64}\b", "ID", text)


CALLS = [
    (("rye", "execute", "rye/file-system/read", "file_path=a.py", "limit=5"), b""),
    (("rye", "read", "a.py", "--json"), b""),
    (("rye", "read", "sub/b.txt"), b""),
    (("rye", "read", "no.py"), b""),
    (("rye", "read", "a.py", "limit=x"), b""),
    (("rye", "read", "--help"), b""),
    (("rye", "no-such-verb"), b""),
    (("rye", "read", "a.py", "--color", "always"), b""),
    (("rye", "write", "new.txt", "content=@-"), b"one\ntwo\n"),
    (("rye", "write", "new.txt", "content=@text.txt"), b""),
    (("rye", "execute", "write", "--params", "-"), b'{"file_path": "p.txt", "content": "x"}'),
    (("rye", "glob", "**/*.py"), b""),
    (("rye", "grep", "line 29"), b""),
    (("rye", "bash", "echo out; echo err >&2; exit 3"), b""),
    (("rye", "search", "line ids"), b""),
    (("rye", "log"), b""),
    (("rt", "open", "a.py:120"), b""),
    (("rt", "open", b"gone-\xff.py"), b""),
    (("rt", "find", "b"), b""),
    (("rt", "grep", "line 3$"), b""),
    (("rt", "grep", "nothing like it"), b""),
    (("rt", "grep", "line", "-"), b"a.py\nsub/b.txt\n"),
    (("rt", "edit", "a.py", "2", "3"), b"changed\n"),
    (("rt", "insert", "a.py", "1"), b"first\n"),
    (("rt", "create", "sub/new.py"), b"x = 1\n"),
    (("rt", "undo"), b""),
    (("rt", "edit", "a.py", "2"), b""),
    (("rt", "open", "a.py", "--json"), b""),
]


@pytest.mark.parametrize(("words", "given"), CALLS, ids=lambda one: str(one)[:40])
def test_a_call_by_the_helper_is_the_call_of_a_normal_start(helper, twins, words, given):
    served = helper.call(*words, input=given, cwd=twins[0])
    normal = helper.normal(*words, input=given, cwd=twins[1])
    assert served.returncode == normal.returncode != NOT_SERVED, served
    assert _masked(served.stdout, twins[0]) == _masked(normal.stdout, twins[1])
    assert _masked(served.stderr, twins[0]) == _masked(normal.stderr, twins[1])
    for path in ("a.py", "new.txt", "p.txt", "sub/new.py"):
        one, two = (twin / path for twin in twins)
        assert one.exists() == two.exists()
        if one.exists():
            assert (one.read_bytes(), one.stat().st_mode) == (two.read_bytes(), two.stat().st_mode)


def test_folder_environment_mask_descriptors_and_limits_are_the_callers(helper, twins):
    project = twins[0]
    # The folder.
    assert helper.call("rye", "read", "b.txt", cwd=project / "sub").returncode == 0
    # The environment: settings, and what a command sees.
    env = {**helper.env, "RAGIX_PROFILE": "safe-read-only", "CI": "of-the-caller"}
    refused = helper.call("rt", "edit", "a.py", "1", "1", cwd=project, env=env, input=b"x\n")
    assert refused.returncode == 1
    assert b"not applied" in refused.stderr
    assert helper.call("rye", "bash", "echo $CI", cwd=project, env=env).stdout == b"of-the-caller\n"
    # Control: it is not the helper's own by now.
    assert b"of-the-caller" not in helper.call("rye", "bash", "echo $CI", cwd=project).stdout
    # The mask.
    for mask in (0o077, 0o022):
        name = f"mask{mask}.txt"
        assert helper.call("rye", "write", name, "content=x", cwd=project, umask=mask).returncode == 0
        assert (project / name).stat().st_mode & 0o777 == 0o666 & ~mask
    # A descriptor of the caller's, as `<(…)` makes one.
    coming, going = os.pipe()
    os.write(going, b"by a pipe\n")
    os.close(going)
    words = ("rye", "write", "piped.txt", f"content=@/dev/fd/{coming}")
    assert helper.call(*words, cwd=project, pass_fds=(coming,)).returncode == 0
    os.close(coming)
    assert (project / "piped.txt").read_bytes() == b"by a pipe\n"
    # A limit: a file cannot grow beyond it.
    limited = helper.call(
        "rye", "write", "long.txt", "content=@-", cwd=project, input=b"x" * 9000, preexec_fn=lambda: _limit(4096)
    )
    assert limited.returncode not in (0, NOT_SERVED), limited
    assert helper.call("rye", "write", "long.txt", "content=@-", cwd=project, input=b"x" * 9000).returncode == 0


def _limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def test_a_large_environment_arrives(helper, twins):
    env = helper.env | {f"LARGE_{number}": "x" * 100_000 for number in range(15)}
    assert helper.call("rye", "read", "a.py", cwd=twins[0], env=env).returncode == 0


def test_a_reader_that_goes_away_early_ends_the_call_as_ever(helper, twins):
    (twins[0] / "big.txt").write_text("line of a file\n" * 2000)
    for words in (helper.words("rt", "open", "big.txt:1-2000"), helper.words("rye", "bash", "yes")):
        done = subprocess.Popen(words, cwd=twins[0], env=helper.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        done.stdout.close()
        assert done.wait(60) == 141


def test_closed_streams_and_a_terminal_start_normally(helper, twins):
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", *helper.words("rye", "read", "a.py", tries=1)]
    assert subprocess.run(closed, cwd=twins[0], env=helper.env, capture_output=True, check=False).returncode == NOT_SERVED
    ours, theirs = os.openpty()
    assert helper.once("rye", "read", "a.py", cwd=twins[0], stdin=theirs).returncode == NOT_SERVED
    os.close(ours)
    os.close(theirs)


def _start(helper, project, command):
    """Start a command that writes a file when it runs, and wait until it does."""
    words = helper.words("rye", "bash", f"echo begun >> begun; {command}")
    process = subprocess.Popen(
        words, cwd=project, env=helper.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_until((project / "begun").exists)
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_ends_the_call_as_it_ends_a_normal_one(helper, twins, number, code):
    process = _start(helper, twins[0], "sleep 600")
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    wait_until(lambda: not _processes_in(twins[0]))


def test_a_caller_that_is_killed_takes_its_call_with_it(helper, twins):
    process = _start(helper, twins[0], "while :; do date +%N > alive; sleep 0.01; done")
    wait_until((twins[0] / "alive").exists)
    process.kill()
    process.communicate(timeout=60)
    wait_until(lambda: not _processes_in(twins[0]))


def _processes_in(folder):
    """Return the processes that work in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "cwd") == str(folder):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def _served(caller):
    """Return the helper's process that makes a caller's call: the caller holds it. Only root may look into the process itself."""
    told = "".join(path.read_text() for path in Path(f"/proc/{caller}/fdinfo").iterdir())
    (pid,) = re.findall(r"^Pid:\t(\d+)$", told, re.MULTILINE)
    return int(pid)


def test_a_call_that_was_cut_off_is_reported_and_not_made_again(helper, twins):
    process = _start(helper, twins[0], "sleep 600")
    os.kill(_served(process.pid), signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    assert b"What the call did, if anything, remains done" in err
    assert (twins[0] / "begun").read_bytes() == b"begun\n"
    # Control: the helper goes on.
    assert helper.call("rye", "read", "a.py", cwd=twins[0]).returncode == 0


@pytest.mark.slow
def test_calls_go_on_when_the_helper_ends(tmp_path, twins):
    own = HelperProcess(tmp_path / "space")
    process = _start(own, twins[0], "while [ ! -e go ]; do sleep 0.05; done; echo done")
    own.process.kill()
    own.end()
    # Those that waited for a caller end by themselves, so that nobody listens.
    wait_until(lambda: own.once("rye", "read", "a.py", cwd=twins[0]).returncode == NOT_SERVED)
    (twins[0] / "go").touch()
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"done\n")
    # What it left is no obstacle to the next one.
    after = HelperProcess(tmp_path / "space")
    assert after.call("rye", "read", "a.py", cwd=twins[0]).returncode == 0
    after.end()
    assert not list(after.folder.glob("*.socket"))


@pytest.mark.slow
def test_a_helper_that_is_stopped_or_full_is_not_waited_for(tmp_path, twins):
    own = HelperProcess(tmp_path / "space")
    wait_until(lambda: len(own.children()) == 2)
    os.kill(own.process.pid, signal.SIGSTOP)
    stopped = [own.process.pid, *own.children()]
    for pid in stopped[1:]:
        os.kill(pid, signal.SIGSTOP)
    assert own.once("rye", "read", "a.py", cwd=twins[0]).returncode == NOT_SERVED
    # Its queue is full.
    waiting = []
    # By the open folder, as the client does: its path may be too long for a socket.
    folder = os.open(own.folder, os.O_PATH)
    for _ in range(200):
        one = socket.socket(socket.AF_UNIX)
        one.setblocking(False)
        try:
            one.connect(f"/proc/self/fd/{folder}/{own.socket.name}")
        except BlockingIOError:
            one.close()
            break
        waiting.append(one)
    else:
        pytest.fail("control: the queue never became full")
    os.close(folder)
    assert own.once("rye", "read", "a.py", cwd=twins[0]).returncode == NOT_SERVED
    for one in waiting:
        one.close()
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: own.once("rye", "read", "a.py", cwd=twins[0]).returncode == 0)
    own.end()


@pytest.mark.slow
def test_helpers_of_older_code_and_of_other_installations_serve_nobody(tmp_path, twins):
    copy = tmp_path / "copy"
    shutil.copytree(Path(rye.__file__).parent, copy / "runtime/rye", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(Path(rye.__file__).parents[2] / ".ai", copy / ".ai", ignore=shutil.ignore_patterns("cache"))
    own = HelperProcess(tmp_path / "space", PYTHONPATH=str(copy / "runtime"))
    assert own.call("rye", "read", "a.py", cwd=twins[0]).returncode == 0, own.status()
    # The tests' own installation has another socket.
    env = {name: value for name, value in own.env.items() if name != "PYTHONPATH"}
    assert own.once("rye", "read", "a.py", cwd=twins[0], env=env).returncode == NOT_SERVED
    changed = copy / "runtime/rye/cli/rt/verbs.py"
    changed.write_text(changed.read_text().replace('prog=f"rt {name}"', 'prog=f"rt-new {name}"'))
    # Never by the old code; then by a helper that began anew.
    said = set()

    def renewed():
        done = own.once("rt", "open", "--help", cwd=twins[0])
        said.add(done.stdout[:16])
        return done.returncode == 0

    wait_until(renewed)
    assert said == {b"", b"usage: rt-new op"}
    own.end()


def test_what_cannot_be_taken_over_starts_normally(helper, twins):
    read = ("rye", "read", "a.py")
    for variable in ("PYTHONHASHSEED", "LC_ALL", "LD_LIBRARY_PATH", "HOME"):
        env = {**helper.env, variable: "0" if variable == "PYTHONHASHSEED" else "/elsewhere"}
        assert helper.once(*read, cwd=twins[0], env=env).returncode == NOT_SERVED, variable
    for variable, value in (("RYE_CHANNEL", "none"), ("RYE_DAEMON", "off")):
        assert helper.once(*read, cwd=twins[0], env={**helper.env, variable: value}).returncode == NOT_SERVED
    assert helper.once(*read, cwd=twins[0], preexec_fn=lambda: os.nice(1)).returncode == NOT_SERVED
    # Those of agents' shells are taken over.
    for variable in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"):
        for value in ("", "1"):
            assert helper.call(*read, cwd=twins[0], env={**helper.env, variable: value}).returncode == 0


def test_a_caller_that_ignores_other_signals_starts_normally(helper, twins):
    """So does what a shell starts in the background, these tests among them: for them the signals are put back first."""
    ignoring = ["sh", "-c", 'trap "" "$0"; exec "$@"']
    read = ("rye", "read", "a.py")
    for name, words, code in (("INT", helper.words(*read), 0), ("USR1", helper.words(*read, tries=1), NOT_SERVED)):
        done = subprocess.run([*ignoring, name, *words], cwd=twins[0], env=helper.env, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == code, name


def test_verbs_that_stay_or_ask_are_never_served(helper, twins):
    assert set(verb_names()) > client.OWN_PROCESS
    for verb in sorted(client.OWN_PROCESS):
        assert helper.once("rye", verb, "--help", cwd=twins[0]).returncode == NOT_SERVED
    assert helper.call("rye", "help", "read", cwd=twins[0]).returncode == 0


@pytest.mark.slow
def test_nothing_is_left_after_many_calls(helper, twins):
    def state():
        fds = len(os.listdir(f"/proc/{helper.process.pid}/fd"))
        memory = int(Path(f"/proc/{helper.process.pid}/statm").read_text().split()[1])
        return fds, memory, len(helper.children())

    for _ in range(20):
        helper.call("rye", "read", "a.py", cwd=twins[0])
    wait_until(lambda: len(helper.children()) == 2)
    fds, memory, _ = state()
    for _ in range(60):
        assert helper.call("rt", "open", "a.py", cwd=twins[0]).returncode == 0
    wait_until(lambda: len(helper.children()) == 2)
    after = state()
    assert after[0] == fds
    assert after[1] <= memory + 64, "pages"


@pytest.mark.slow
def test_start_status_and_stop(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("USER_SPACE", str(tmp_path / "space"))
    assert main(["daemon", "status"]) == 1
    assert main(["daemon", "start"]) == 0
    assert main(["daemon", "start"]) == 0
    assert "runs already" in capfd.readouterr().out
    assert main(["daemon", "status"]) == 0
    assert main(["daemon", "stop"]) == 0
    assert main(["daemon", "stop"]) == 0
    assert main(["daemon", "status"]) == 1
    folder = tmp_path / "space/.ai/state/daemon"
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    capfd.readouterr()
    assert main(["daemon", "start"]) == 1
    assert "mode 0700" in capfd.readouterr().err


def test_launchers_ask_the_helper_first_and_overwrite_nothing_else(helper, twins, tmp_path, monkeypatch, capfd):
    if not all(Path(sys.executable).with_name(name).exists() for name in ("rye", "rt")):
        pytest.skip("the programs are not installed beside the interpreter")
    assert main(["daemon", "launchers", str(tmp_path / "bin")]) == 0
    for env in (helper.env, {**helper.env, "RYE_DAEMON": "off"}):
        done = subprocess.run(
            [tmp_path / "bin/rt", "open", "a.py:1-1"],
            cwd=twins[0],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert done.stdout == b"--- a.py (lines 1-1) ---\n1: line 1\n", done
    assert main(["daemon", "launchers", str(tmp_path / "bin")]) == 0
    (tmp_path / "bin/rt").write_text("#!/bin/sh\n")
    assert main(["daemon", "launchers", str(tmp_path / "bin")]) == 2
    assert "is no launcher" in capfd.readouterr().err

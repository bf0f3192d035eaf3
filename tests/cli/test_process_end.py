"""A command's process ends at once, and yet nothing that waits for its end is lost."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.harness import environment


def ended(body: str) -> subprocess.CompletedProcess:
    """Run a command whose `main` has this body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    code = f"import atexit, os, sys, threading, time\nfrom rye.cli.process import run\ndef main():\n{lines}\nrun(main)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False)


@pytest.mark.parametrize(
    ("body", "code", "out", "err"),
    [
        ("print('x' * 200_000)\nprint('oh', end='', file=sys.stderr)\nreturn 3", 3, "x" * 200_000 + "\n", "oh"),
        ("atexit.register(print, 'at the end')\nreturn 0", 0, "at the end\n", ""),
        ("threading.Thread(target=lambda: (time.sleep(0.3), print('late'))).start()\nreturn 0", 0, "late\n", ""),
        # A daemon thread is not waited for.
        ("threading.Thread(target=time.sleep, args=(300,), daemon=True).start()\nreturn 4", 4, "", ""),
        ("sys.exit(5)", 5, "", ""),
    ],
    ids=["exit code and output", "what is registered", "threads", "daemon threads", "exit"],
)
def test_nothing_is_lost_at_the_end(body, code, out, err):
    done = ended(body)
    assert (done.returncode, done.stdout, done.stderr) == (code, out, err)


def test_a_reader_that_went_away_is_no_traceback():
    code = "from rye.cli.rt.main import command; command()"
    words, pipe = [sys.executable, "-c", code, "--help"], subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=environment()) as process:
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()
    assert process.returncode in (0, 141)


@pytest.mark.parametrize("as_inherited", ["signal(SIGCHLD, SIG_IGN)", "pthread_sigmask(SIG_BLOCK, valid_signals())"])
def test_what_a_parent_ignored_or_blocked_hinders_no_sandbox(project, as_inherited):
    code = f"import os, sys; from signal import *; {as_inherited}; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    words = [sys.executable, "-c", code, "-m", "rye", "bash", "echo hi"]
    plain, done = (
        subprocess.run(each, cwd=project, capture_output=True, text=True, env=environment(), check=False, timeout=20)
        for each in ([sys.executable, *words[3:]], words)
    )
    # A lesser sandbox than the plain call's would be named now: what there is at best was said by that one.
    assert (plain.returncode, done.returncode, done.stdout, done.stderr) == (0, 0, "hi\n", "")

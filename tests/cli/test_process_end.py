"""A command's process ends at once, and yet nothing that waits for its end is lost."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import rye

ENV = {**os.environ, "PYTHONPATH": os.path.dirname(rye.__path__[0])}


def ended(body: str, **given) -> subprocess.CompletedProcess:
    """Run a command whose `main` has this body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    code = f"import atexit, os, sys, threading, time\nfrom rye.cli.process import run\ndef main():\n{lines}\nrun(main)"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=ENV, timeout=120, check=False, **given
    )


def test_the_exit_code_and_all_output_arrive():
    done = ended("print('x' * 200_000)\nprint('oh', end='', file=sys.stderr)\nreturn 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "x" * 200_000 + "\n", "oh")


def test_what_is_registered_for_the_end_is_done():
    assert ended("atexit.register(print, 'at the end')\nreturn 0").stdout == "at the end\n"


def test_threads_are_waited_for():
    late = "threading.Thread(target=lambda: (time.sleep(0.3), print('late'))).start()\nreturn 0"
    assert ended(late).stdout == "late\n"


def test_daemon_threads_are_not_waited_for():
    done = ended("threading.Thread(target=time.sleep, args=(300,), daemon=True).start()\nreturn 4")
    assert done.returncode == 4


def test_the_modules_are_not_taken_apart():
    """What says so is an object that a torn-down process would delete; the control ends as Python does."""
    told = "class Told:\n    def __del__(self, write=os.write): write(1, b'deleted')\nglobal kept\nkept = Told()"
    assert ended(f"{told}\nreturn 0").stdout == ""
    assert ended(f"{told}\natexit.register(int)\nreturn 0").stdout == "deleted"


@pytest.mark.parametrize("body", ["sys.exit(5)", "raise SystemExit(5)"])
def test_an_exit_on_the_way_is_one(body):
    assert ended(body).returncode == 5


def test_a_reader_that_went_away_is_no_traceback():
    code = "from rye.cli.rt.main import command; command()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV
    ) as process:
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()
    assert process.returncode in (0, 141)

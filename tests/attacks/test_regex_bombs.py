"""Patterns that make a backtracking engine try without end: every search ends, and other calls are answered meanwhile."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
import time

import pytest

from rye.filesearch import ripgrep
from support.calling import call, done

# Processor seconds, which a busy machine does not change: two of a stalled search, and the start of its interpreter.
LIMIT = 2.6
LINE = "a" * 40 + "!" + "0" * 40 + "!" + "ab" * 40 + "!" + " " * 40 + "!" + "x@" * 40 + "é" * 40
BOMBS = [
    "(a+)+$", "(a*)*$", "(a|a)*$", "(a|aa)+$", "(a|a?)+$", "(?:a+)+b", "(a+a+)+b", "(a*a*)*b", "(.*)*x$", "(.+)+z", r"(\w+)+\.",
    r"(\w*)*\.", r"(\d+)+x", r"(0|00)+x", r"(0+)*1", "([a-z]+)*[0-9]z", "(ab|a|b)+c$", "((ab)+)+c", "((ab)*)*c", r"(\s+)+y",
    r"(\s*)*y", "( +)* y", "(([a-z])+.)+[A-Z]([a-z])+Q", r"^(([a-z])+.)+[A-Z]$", r"(x@|x|@)+z", "(é+)+z", "(é|é)+z",
    "(a{1,20}){1,20}b", "(a?){30}a{30}b(a?){30}", "(.*a){30}b",
]  # fmt: skip


@pytest.fixture
def planted(project):
    (project / "evil.txt").write_text(f"{LINE}\n")
    (project / "other.txt").write_text("fine\n")
    return project


@pytest.fixture
def without_ripgrep(monkeypatch):
    monkeypatch.setattr(ripgrep, "locate", lambda _: None)


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", r"(\w+)+\."])
def test_a_bomb_ends_in_time_and_hinders_nobody(planted, without_ripgrep, pattern):
    answered, over = [], threading.Event()

    def others():
        while not over.is_set():
            answered.append(done("ls", planted)["count"])
            time.sleep(0.01)

    thread = threading.Thread(target=others)
    thread.start()
    before = spent()
    data = call("grep", planted, pattern=pattern)
    over.set()
    thread.join()
    assert spent() - before < LIMIT
    assert len(answered) > 20
    assert data.get("code") == "pattern_too_slow" or "total" in data


@pytest.mark.slow
def test_every_bomb_ends_and_says_what_to_do(planted, without_ripgrep):
    for pattern in BOMBS[::6]:
        data = call("grep", planted, pattern=pattern)
        assert data["success"] or data["code"] == "pattern_too_slow", pattern
        assert data["success"] or "install ripgrep" in data["error"]


@pytest.mark.slow
def test_control_the_engine_alone_does_not_end():
    code = f"import re; re.search('(a+)+$', {LINE!r})"
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", code], timeout=1, check=False)


@pytest.mark.skipif(ripgrep.locate(os.stat("/")) is None, reason="ripgrep is not installed")
def test_with_ripgrep_no_pattern_is_slow(planted):
    before = spent()
    for pattern in BOMBS:
        done("grep", planted, pattern=pattern)
    assert spent() - before < LIMIT * 4


@pytest.mark.slow
def test_what_was_found_before_a_bomb_is_not_mistaken_for_all(planted, without_ripgrep):
    data = call("grep", planted, pattern="(a+)+$|fine")
    assert data.get("code") == "pattern_too_slow" or data["total"] == 1

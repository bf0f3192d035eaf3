"""Patterns that make a backtracking engine try without end: every search ends, and other calls are answered meanwhile.

`python tests/attacks/test_regex_bombs.py` runs all thirty without ripgrep and prints the slowest of them, and of the calls that were
made beside them. The control is `re` itself, in a child that is killed after a second.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from rye.errors import UsageError
from rye.toolkit import grepping, listing, ripgrep
from rye.toolkit.fallback import Fallback

LIMIT = 2.5
LINE = "a" * 40 + "!" + "0" * 40 + "!" + "ab" * 40 + "!" + " " * 40 + "!" + "x@" * 40 + "é" * 40
BOMBS = [
    "(a+)+$", "(a*)*$", "(a|a)*$", "(a|aa)+$", "(a|a?)+$", "(?:a+)+b", "(a+a+)+b", "(a*a*)*b", "(.*)*x$", "(.+)+z", r"(\w+)+\.", r"(\w*)*\.",
    r"(\d+)+x", r"(0|00)+x", r"(0+)*1", "([a-z]+)*[0-9]z", "(ab|a|b)+c$", "((ab)+)+c", "((ab)*)*c", r"(\s+)+y", r"(\s*)*y", "( +)* y",
    "(([a-z])+.)+[A-Z]([a-z])+Q", r"^(([a-z])+.)+[A-Z]$", r"(x@|x|@)+z", "(é+)+z", "(é|é)+z", "(a{1,20}){1,20}b", "(a?){30}a{30}b(a?){30}", "(.*a){30}b",
]  # fmt: skip


def plant(project) -> None:
    (project / "evil.txt").write_text(f"{LINE}\n")
    (project / "other.txt").write_text("fine\n")


def search(project, pattern) -> tuple[float, str]:
    """Search without ripgrep; return the seconds and what came of it."""
    started = time.monotonic()
    try:
        outcome = f"{grepping.grep(str(project), pattern, engine=Fallback())['total']} matches"
    except UsageError as err:
        outcome = err.code
    return time.monotonic() - started, outcome


def search_beside(project, pattern) -> tuple[float, str, float]:
    """Search while another thread keeps calling; add the slowest of its calls."""
    slowest, over = [0.0], threading.Event()

    def others():
        while not over.is_set():
            started = time.monotonic()
            listing.ls(str(project))
            slowest[0] = max(slowest[0], time.monotonic() - started)
            time.sleep(0.01)

    thread = threading.Thread(target=others)
    thread.start()
    seconds, outcome = search(project, pattern)
    over.set()
    thread.join()
    return seconds, outcome, slowest[0]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", r"(\w+)+\."])
def test_a_bomb_ends_in_time_and_hinders_nobody(project, pattern):
    plant(project)
    seconds, outcome, slowest = search_beside(project, pattern)
    assert seconds < LIMIT
    assert slowest < 0.5
    assert outcome == "pattern_too_slow" or outcome.endswith("matches")


def test_control_the_engine_alone_does_not_end():
    code = f"import re; re.search('(a+)+$', {LINE!r})"
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", code], timeout=1, check=False)


@pytest.mark.skipif(ripgrep.locate(os.stat("/")) is None, reason="ripgrep is not installed")
def test_with_ripgrep_no_pattern_is_slow(project):
    plant(project)
    started = time.monotonic()
    for pattern in BOMBS:
        grepping.grep(str(project), pattern)
    assert time.monotonic() - started < LIMIT * 4


def test_what_was_found_before_a_bomb_is_not_mistaken_for_all(project):
    plant(project)
    assert search(project, "(a+)+$|fine")[1] in ("pattern_too_slow", "1 matches")


def main() -> None:
    os.environ["USER_SPACE"] = tempfile.mkdtemp()
    with tempfile.TemporaryDirectory() as folder:
        plant(Path(folder))
        rows = [(*search_beside(Path(folder), pattern), pattern) for pattern in BOMBS]
    for seconds, outcome, slowest, pattern in rows:
        print(f"{seconds:5.2f} s  {outcome:<20} beside it at most {slowest * 1000:5.1f} ms  {pattern}")
    print(f"slowest {max(row[0] for row in rows):.2f} s; slowest call beside {max(row[2] for row in rows) * 1000:.1f} ms")
    print(f"{sum(row[1] == 'pattern_too_slow' for row in rows)} of {len(rows)} ended for want of progress")


if __name__ == "__main__":
    main()

"""Threads are kept for the next call, but for one whose work has not returned; nothing of a call stays behind in them."""

from __future__ import annotations

import os
import threading

import pytest

from rye.executor import run_code
from support.waiting import PATIENCE, until


@pytest.fixture(autouse=True)
def _none_free():
    run_code._free.clear()


def run(work):
    """Run `work` in a worker; return its thread's number once the thread may be taken again."""
    numbers, free = [], max(len(run_code._free), 1)
    run_code.start(lambda: (numbers.append(threading.get_ident()), work()))
    assert until(lambda: numbers and len(run_code._free) == free)
    return numbers[0]


def test_the_next_call_has_the_same_thread():
    assert len({run(lambda: None) for _ in range(5)}) == 1
    assert len(run_code._free) == 1


def test_a_thread_whose_work_has_not_returned_is_never_shared():
    hold, begun, numbers = threading.Event(), threading.Event(), []
    run_code.start(lambda: (numbers.append(threading.get_ident()), begun.set(), hold.wait(PATIENCE)))
    assert begun.wait(PATIENCE)
    others = {run(lambda: None) for _ in range(5)}
    assert numbers[0] not in others
    assert len(others) == 1
    hold.set()
    assert until(lambda: len(run_code._free) == 2)


def test_a_forked_process_begins_without_its_parents_threads():
    run(lambda: None)
    assert run_code._free
    child = os.fork()
    if not child:
        done = threading.Event()
        run_code.start(done.set)
        os._exit(0 if done.wait(PATIENCE) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

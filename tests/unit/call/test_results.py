"""The call's deadline, the one shape of what was cut, and what the door of a call asks for."""

from __future__ import annotations

import threading
import time

import pytest

from rye.call import context, results
from rye.call.context import Deadline
from rye.call.results import cut_notice
from rye.errors import DeadlineError
from rye.executor import executor
from support.waiting import PATIENCE


def test_the_notice_names_the_numbers_and_the_next_call():
    call = 'read(file_path="a.py", offset=101)'
    assert cut_notice(100, 423, "lines", call) == f"[tool_result: 100 of 423 lines; 323 more omitted. Call {call} to see more.]"
    assert "20 more omitted" in cut_notice(100, 423, "lines", call, omitted=20)


def test_a_commit_that_fails_is_not_counted_and_lets_go():
    limit = Deadline(1_000)
    with pytest.raises(ValueError), limit.commit():
        raise ValueError
    with limit.commit(), limit.commit():
        pass
    assert limit.commits == 2
    limit.expire()


def test_under_threads_nothing_is_committed_after_expire_returned():
    """Control: the same threads without `commit` do write after it."""
    for naive in (False, True):
        late = 0
        for _ in range(60):
            late += _race(naive)
        assert (late > 0) == naive, (naive, late)


def _race(naive):
    limit = Deadline(1_000)
    over = threading.Event()
    late = []

    def work():
        while True:
            try:
                if naive:
                    limit.check()
                    time.sleep(0.0005)
                    late.append(over.is_set())
                else:
                    with limit.commit():
                        time.sleep(0.0005)
                        late.append(over.is_set())
            except DeadlineError:
                return

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    while not late:
        time.sleep(0.0005)
    limit.expire()
    over.set()
    for thread in threads:
        thread.join()
    return sum(late)


def call(project, tool, door, **parameters):
    return executor.run(executor.Call("tool", tool, parameters, str(project), options=door))


def test_an_answer_is_as_small_as_the_door_asks_and_its_envelope_true(project):
    (project / "long.txt").write_bytes(b"".join(b"line %d of many\n" % n for n in range(5_000)))
    small = call(project, "rye/file-system/read", context.CallOptions(max_output_bytes=4_000), file_path="long.txt")["data"]
    whole = call(project, "rye/file-system/read", context.CallOptions(), file_path="long.txt")["data"]
    assert len(small["output"].encode()) <= 4_000 < len(whole["output"].encode()) <= results.MAX_OUTPUT_BYTES
    assert small["truncated"]
    assert f"offset={small['next_offset']}" in small["output"]


def test_a_cancelled_call_ends_at_once_and_says_so(project):
    (project / "x.txt").write_bytes(b"x\n")
    cancellation = context.Cancellation()
    cancellation.cancel()
    answer = call(project, "rye/file-system/read", context.CallOptions(cancellation=cancellation), file_path="x.txt")
    # Ended or just done: both are true; nothing between.
    assert answer["status"] == "success" or answer["code"] == "cancelled"


def test_expiry_ends_what_the_call_started_and_gives_it_a_moment():
    limit = context.Deadline(60)
    assert limit.grace_seconds() < 0.1
    ended = threading.Event()
    limit.when_expired(ended.set)
    limit.expire()
    assert ended.is_set()
    assert limit.grace_seconds() > 1
    assert limit.remaining() == 0


def test_cancelling_from_another_thread_wakes_the_executor(project, monkeypatch):
    cancellation, begun, hold = context.Cancellation(), threading.Event(), threading.Event()

    def slow(*_):
        begun.set()
        hold.wait(2 * PATIENCE)
        return {"success": True, "output": ""}

    monkeypatch.setattr(executor, "_result", slow)
    (project / "x.txt").write_bytes(b"x\n")
    threading.Thread(target=lambda: (begun.wait(PATIENCE), cancellation.cancel())).start()
    started = time.monotonic()
    answer = call(project, "rye/file-system/read", context.CallOptions(cancellation=cancellation), file_path="x.txt")
    hold.set()
    assert answer["code"] == "cancelled"
    assert time.monotonic() - started < PATIENCE

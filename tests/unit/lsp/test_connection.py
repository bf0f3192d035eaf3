"""The wire to a language server that answers, asks, floods, dies, hangs or talks nonsense."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest

from rye.errors import RyeError
from rye.lsp.connection import LanguageServerConnection
from support import scripted_server
from support.waiting import PATIENCE, until


@pytest.fixture
def wired(tmp_path):
    """Start servers by their options; all are ended with the test."""
    wires = []

    def start(**options):
        notifications = []
        argv, log = scripted_server.command(tmp_path, options)
        wire = LanguageServerConnection(
            "scripted", argv, dict(os.environ), str(tmp_path), lambda *told: notifications.append(told)
        )
        wires.append(wire)
        wire.request("initialize", {}, 30)
        wire.notify("initialized", {})
        return wire, notifications, log

    yield start
    for wire in wires:
        wire.close()


def hover(wire, seconds=20.0):
    return wire.request("textDocument/hover", {}, seconds)["contents"]


def code(wire, seconds=20.0):
    with pytest.raises(RyeError) as caught:
        hover(wire, seconds)
    return caught.value


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ({}, "what it is"),
        # What the server asks is answered by the number of its items, also where it asks much and reads late.
        ({"hover": "asks"}, "[[null, null], false, null]"),
        ({"hover": "floods"}, "3000 answers"),
    ],
)
def test_a_question_gets_its_answer(wired, options, answer):
    wire, _, _ = wired(**options)
    assert (hover(wire), wire.alive) == (answer, True)


def test_a_huge_answer_comes_whole(wired):
    assert len(hover(wired(hover="huge")[0])) == 5_000_000


@pytest.mark.parametrize("how", ["garbage", "bad json", "no length", "too long", "odd id", "error text"])
def test_nonsense_ends_the_wait_at_once(wired, how):
    wire, _, _ = wired(hover=how)
    begun = time.monotonic()
    # An error of another shape is an error.
    assert code(wire).code == ("server_refused" if how == "error text" else "server_died")
    assert time.monotonic() - begun < PATIENCE
    assert wire.alive == (how == "error text")


def test_a_server_that_dies_is_told_with_its_last_words(wired):
    wire, _, _ = wired(hover="die")
    err = code(wire)
    assert (err.code, "exit code 3" in err.message, "out of cheese" in err.message) == ("server_died", True, True)
    assert not wire.alive


def test_a_header_without_end_takes_no_memory_and_ends_with_the_time(wired):
    wire, _, _ = wired(hover="endless header")
    assert code(wire, 0.5).code == "server_timeout"


def test_two_silences_in_turn_are_a_server_that_hangs(wired):
    wire, _, log = wired(hover="hang")
    assert code(wire, 0.3).code == "server_timeout"
    assert not wire.hangs
    assert code(wire, 0.3).code == "server_timeout"
    assert wire.hangs
    assert "textDocument/hover" in log.read_text()


def test_a_server_that_reads_nothing_holds_up_nobody(wired):
    wire, _, _ = wired(deaf=True)
    begun = time.monotonic()
    for _ in range(5):
        wire.notify("textDocument/didOpen", {"textDocument": {"uri": "file:///x", "version": 1, "text": "x" * 1_000_000}})
    assert code(wire, 0.3).code == "server_timeout"
    assert time.monotonic() - begun < PATIENCE


def test_closing_wakes_who_waits_and_leaves_no_process(wired):
    wire, _, _ = wired(hover="hang")
    codes = []
    thread = threading.Thread(target=lambda: codes.append(code(wire, 2 * PATIENCE).code))
    thread.start()
    assert until(lambda: wire._waiting)
    wire.close()
    thread.join(PATIENCE)
    assert codes == ["server_died"]
    assert not os.path.exists(f"/proc/{wire.pid}/cwd")


def test_a_request_on_a_closed_connection_is_refused(wired):
    wire, _, _ = wired()
    wire.close()
    assert code(wire, PATIENCE).code == "server_died"


def test_answers_find_the_thread_that_asked(wired):
    wire, _, _ = wired()
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(hover(wire))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["what it is"] * 20


def test_a_program_that_is_none_says_so(tmp_path):
    with pytest.raises(RyeError) as caught:
        LanguageServerConnection("none", [str(tmp_path / "absent")], {}, str(tmp_path), print)
    assert caught.value.code == "server_failed"


def test_a_program_that_is_no_server_says_so(tmp_path):
    wire = LanguageServerConnection("none", [sys.executable, "-c", "pass"], dict(os.environ), str(tmp_path), print)
    with pytest.raises(RyeError) as caught:
        wire.request("initialize", {}, 20)
    wire.close()
    assert caught.value.code == "server_died"

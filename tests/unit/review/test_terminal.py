"""`rye review --tty`: what the pages do, by keys in a terminal; with Textual's own driver, and in a real one."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path

from textual.widgets import DataTable, Input, OptionList, Static

import rye
from rye.review import marks
from rye.review.terminal import Review
from rye.trust import decisions
from rye.trust.decisions import Root
from rye.trust.verify import render_key_document
from rye.workspace.workspace import Workspace
from support.calling import call
from support.shell_calls import bash
from support.signed_tools import STRANGER, put, signed, tool_text
from support.waiting import until

RUNTIME = os.fspath(Path(rye.__file__).parents[1])


def played(project, play):
    """Run the view, and what a test does with it."""

    async def run():
        app = Review(str(project))
        async with app.run_test(size=(140, 40)) as pilot:
            await pilot.pause()
            await play(app, pilot)

    asyncio.run(run())


def rows(app, where="#calls"):
    table = app.query_one(where, DataTable)
    return [" ".join(str(cell) for cell in table.get_row_at(at)) for at in range(table.row_count)]


def parts(app):
    found = app.query_one("#parts", OptionList)
    return [str(found.get_option_at_index(at).prompt) for at in range(found.option_count)]


def said(app):
    return str(app.query_one("#said", Static).render())


async def seen(pilot, found):
    for _ in range(600):
        await pilot.pause(0.05)
        if found():
            return
    raise AssertionError(found)


def test_the_calls_and_their_diffs_are_shown(ten):
    async def play(app, pilot):
        assert "write: new.py" in rows(app)[0]
        assert "sed -i" in rows(app)[1]
        assert "+ def new():" in parts(app)[2]
        await pilot.press("j")
        await pilot.pause()
        assert [one.split("\n")[0] for one in parts(app)[1:]] == [
            "other.txt  +1 -0",
            "@@ -2,0 +2,1 @@ ",
            "ten.py  +2 -2",
            "@@ -1,1 +1,1 @@ ",
            "@@ -12,1 +12,1 @@ ",
        ]

    played(ten, play)


def test_a_hunk_a_file_and_a_call_are_taken_back_and_restored(ten):
    async def play(app, pilot):
        await pilot.press("j", "l", "j", "j", "j", "j", "j")
        await pilot.press("u")
        assert said(app) == "Taken back."
        assert "eighth" not in (ten / "ten.py").read_text()
        assert 'first = "text"' in (ten / "ten.py").read_text()
        await seen(pilot, lambda: any("taken back" in one for one in parts(app)))
        await pilot.press("U")
        assert said(app) == "Restored."
        assert "eighth" in (ten / "ten.py").read_text()

    played(ten, play)


def test_a_whole_call_from_the_list(ten):
    async def play(app, pilot):
        await pilot.press("u")
        assert not (ten / "new.py").exists()
        await pilot.press("U")
        assert said(app) == "Restored."
        assert (ten / "new.py").exists()

    played(ten, play)


def test_a_mark_is_the_one_of_the_pages(ten):
    async def play(app, pilot):
        await pilot.press("r")
        await pilot.pause()
        assert "✓" in rows(app)[0]
        with Workspace(str(ten)) as ws:
            assert app._call.id in marks.read(ws)
        await pilot.press("f", "f")
        assert said(app) == "Shown: open"
        assert len(rows(app)) == 1

    played(ten, play)


def test_search_and_live_news(ten):
    async def play(app, pilot):
        await pilot.press("slash", *"sed", "enter")
        await pilot.pause()
        assert len(rows(app)) == 1
        await pilot.press("slash")
        app.query_one("#search", Input).value = ""
        await pilot.press("enter")
        await asyncio.to_thread(call, "write", ten, file_path="later.txt", content="x\n")
        await seen(pilot, lambda: "later.txt" in rows(app)[0])

    played(ten, play)


def test_a_job_is_shown_and_stopped(ten):
    job = bash(ten, "echo started; sleep 600", background=True)["job_id"]

    async def play(app, pilot):
        await pilot.press("2")
        await seen(pilot, lambda: rows(app, "#joblist"))
        assert job in rows(app, "#joblist")[0]
        await pilot.press("s")
        await seen(pilot, lambda: "running" not in rows(app, "#joblist")[0])

    played(ten, play)


def test_a_key_is_approved_with_the_code_that_is_shown(project):
    put(project, "trusted_keys/k.toml", render_key_document(STRANGER.public, "Mallory"))
    put(project, "tools/my/report.py", signed(tool_text("my/report"), STRANGER))

    async def play(app, pilot):
        await pilot.press("3")
        await pilot.pause()
        assert STRANGER.public.fingerprint in rows(app, "#keylist")[0]
        await pilot.press("c", *"000000", "enter")
        await pilot.pause()
        assert "not the code" in said(app) or "Approved" in said(app)
        await pilot.press("c")
        code = re.search(r"type on the page: ([0-9]{6})|: ([0-9]{6})", said(app))
        await pilot.press(*(code[1] or code[2]), "enter")
        await pilot.pause()
        assert "Approved" in said(app)
        assert STRANGER.public.digest in decisions.load().approved_keys(Root.of(project))

    played(project, play)


def test_escape_codes_of_a_project_do_not_reach_the_terminal(project):
    (project / "a.txt").write_text("one\n")
    bash(project, "true")
    bash(project, r"printf '\033]0;x\007' >>a.txt #[red]m[/red]")

    async def play(app, pilot):
        text = "".join([*rows(app), *parts(app)])
        assert "\x1b" not in text
        assert "[U+001B]" in text
        assert "[red]m[/red]" in text

    played(project, play)


def test_in_a_real_terminal(ten):
    """It starts, acts on a key and ends, and leaves the terminal as it was."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
    before = termios.tcgetattr(theirs)
    command = [sys.executable, "-m", "rye", "review", "--tty", "--project", str(ten)]
    environment = {**os.environ, "PYTHONPATH": RUNTIME, "TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True)
    shown = bytearray()
    reading = threading.Thread(target=_drain, args=(ours, shown), daemon=True)
    reading.start()
    try:
        until(lambda: b"new.py" in shown and b"def" in shown)
        os.write(ours, b"u")
        until(lambda: not (ten / "new.py").exists())
        until(lambda: b"Taken" in shown)
        os.write(ours, b"q")
        assert process.wait(60) == 0
        assert termios.tcgetattr(theirs) == before
        assert b"\x1b[?1049l" in shown
    finally:
        process.kill()
        process.wait()
        os.close(theirs)
        reading.join(60)
        os.close(ours)


def _drain(fd, into):
    with contextlib.suppress(OSError):
        while data := os.read(fd, 65_536):
            into += data


def test_without_a_terminal_it_is_refused(ten):
    command = [sys.executable, "-m", "rye", "review", "--tty", "--project", str(ten)]
    environment = {**os.environ, "PYTHONPATH": RUNTIME}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode != 0
    assert "terminal" in done.stderr

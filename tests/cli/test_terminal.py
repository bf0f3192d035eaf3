"""Colours and widths: at a terminal, never in a pipe unless asked for."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.cli import terminal
from support.in_process import rye
from support.signed_tools import put_tool
from support.terminal import RUNTIME, typed

ESCAPE = re.compile(r"\x1b\[\d*m")
CHANGE = 'changes=[{"after_line_id": "start", "new_content": "-- x"}]'
COLOURS = {"TERM": "xterm", "NO_COLOR": "", "FORCE_COLOR": ""}


@pytest.fixture
def here(project):
    (project / "a.txt").write_text("one\ntwo\n")
    return project


@pytest.mark.parametrize(
    ("words", "env", "at_a_terminal", "in_a_pipe"),
    [
        ([], {}, True, False),
        ([], {"NO_COLOR": "1"}, False, False),
        ([], {"TERM": "dumb"}, False, False),
        ([], {"FORCE_COLOR": "1"}, True, True),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        (["--color", "never"], {}, False, False),
        (["--color", "auto"], {}, True, False),
        (["--color=always"], {"NO_COLOR": "1", "TERM": "dumb"}, True, True),
    ],
)
def test_colours_are_for_terminals_and_for_whom_they_are_asked(here, words, env, at_a_terminal, in_a_pipe):
    code, shown = typed("read", "a.txt", *words, cwd=here, env={**COLOURS, **env})
    assert (code, bool(ESCAPE.search(shown))) == (0, at_a_terminal), shown
    for line in (["read", "a.txt", *words], [*words, "read", "a.txt"], ["tools", *words]):
        done = rye(*line, cwd=here, env={**COLOURS, **env})
        assert (done.returncode, bool(ESCAPE.search(done.stdout.decode()))) == (0, in_a_pipe)
    assert b"\x1b" not in rye("read", "a.txt", "--json", *words, cwd=here, env=env).stdout


def test_a_diff_is_coloured_line_by_line(here):
    assert rye("read", "a.txt", cwd=here).returncode == 0
    text = rye("edit_lines", "a.txt", CHANGE, "--color", "always", cwd=here).stdout.decode()
    assert "\x1b[32m+-- x\x1b[0m" in text
    assert "\x1b[36m@@ " in text
    assert "\x1b[1m--- a/a.txt\x1b[0m" in text


def test_lines_of_a_file_are_not_taken_for_a_diff():
    assert terminal.painted("- a\n+ b\n--- c\nd\n") == "- a\n+ b\n--- c\nd\n"
    diff = "--- a/f\n+++ b/f\n@@ -1,2 +1,1 @@\n--- x\n y\n- after\n"
    assert terminal.painted(diff).endswith("\x1b[31m--- x\x1b[0m\n y\n- after\n")


@given(st.text(alphabet="+- @[]LID:a1,\n", max_size=200))
def test_colours_change_nothing_but_colours(text):
    assert ESCAPE.sub("", terminal.painted(text)) == text


@given(st.text(max_size=60), st.integers(0, 40))
def test_a_cut_text_fits(text, width):
    shown = terminal.cut(text, width)
    assert terminal.cells(shown) <= max(width, 0)
    assert shown == text or shown.endswith("…") or width == 0


def test_a_table_is_cut_to_the_terminal_and_whole_in_a_pipe(here):
    put_tool(here, "my/tool", more=f'__tool_description__ = "{"word " * 40}"')
    whole = rye("tools", "my", cwd=here).stdout.decode()
    assert "word " * 39 in whole
    code, shown = typed("tools", "my", cwd=here, env={"COLUMNS": "80"})
    assert code == 0
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" in shown
    assert "my/tool" in shown


def test_the_terminals_own_width_counts_where_no_variable_says_one(here, tmp_path):
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 73, 0, 0))
    with os.fdopen(theirs, "w") as stream, pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        assert terminal.columns(stream) == 73
        patch.setenv("COLUMNS", "60")
        assert terminal.columns(stream) == 60
    os.close(ours)
    with open(tmp_path / "file", "w") as stream:
        assert terminal.columns(stream) is None


def test_mcp_at_a_terminal_says_what_to_do(here):
    """It waits for a client's messages; without a word a person would wait, too."""
    ours, theirs = os.openpty()
    env = {**os.environ, "PYTHONPATH": os.fspath(RUNTIME)}
    with subprocess.Popen(
        [sys.executable, "-m", "rye", "mcp"], cwd=here, env=env, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE
    ) as server:
        said = server.stderr.readline() + server.stderr.readline()
        server.kill()
    os.close(ours)
    os.close(theirs)
    assert str(here).encode() in said
    assert b"rye mcp install --client" in said

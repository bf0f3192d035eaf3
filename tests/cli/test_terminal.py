"""Colours and widths: at a terminal, never in a pipe unless asked for."""

import re
import unicodedata

import pytest

from support.in_process import rye
from support.signed_tools import put_tool
from support.terminal import typed

ESCAPE = re.compile(r"\x1b\[\d*m")
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


def test_colours_change_nothing_but_colours_and_lines_of_a_file_are_no_diff(here):
    (here / "a.txt").write_text("- a\n+ b\n--- c\nx\n")
    plain = rye("read", "a.txt", "line_ids=none", cwd=here).stdout.decode()
    assert rye("read", "a.txt", "line_ids=none", "--color", "always", cwd=here).stdout.decode() == plain
    change = 'changes=[{"find": "--- c\\n", "replace": ""}]'
    plain, coloured = (
        rye("edit_lines", "a.txt", change, "--dry-run", "--color", how, cwd=here).stdout.decode() for how in ("never", "always")
    )
    assert ESCAPE.sub("", coloured) == plain
    assert "\x1b[36m@@ " in coloured
    # A line that looks like the head of a file is one that was removed.
    assert "\x1b[31m---- c\x1b[0m\n x\n" in coloured


def test_a_table_is_cut_to_the_terminal_and_whole_in_a_pipe(here):
    put_tool(here, "my/tool", more=f'__tool_description__ = "{"漢字 " * 9 + "word " * 30}"')
    assert "word " * 29 in rye("tools", "my", cwd=here).stdout.decode()
    # The terminal's own width counts where no variable says one.
    for env, own, width in (({"COLUMNS": "80"}, 73, 80), ({"COLUMNS": ""}, 73, 73)):
        code, shown = typed("tools", "my", cwd=here, env={"PYTHONUTF8": "1", **env}, columns=own)
        (line,) = [one for one in shown.splitlines() if "my/tool" in one]
        assert (code, line[-1]) == (0, "…")
        cells = sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in line)
        assert width - 2 <= cells <= width, line
    # `rye mcp` waits for a client's messages; without a word a person would wait, too.
    said = typed("mcp", cwd=here, until=rb"rye mcp install --client")[1]
    assert str(here) in said

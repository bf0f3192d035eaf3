"""A call that an answer names is written as the command that makes it."""

import re

import pytest

from rye.cli.rt import main as rt_main
from rye.cli.rt import printing
from support.in_process import run

CALL = re.compile(r"\b[a-z_]+\(\w+=")


@pytest.mark.parametrize(
    ("tool", "arguments", "typed"),
    [
        ("read", {"file_path": "a b.py"}, "`rt open 'a b.py'`"),
        ("read", {"file_path": "a.py", "offset": 7}, "`rt open a.py:7`"),
        ("read", {"file_path": "a.py", "changes_since": "x"}, "`rye read file_path=a.py changes_since=x`"),
        ("ls", {"path": "src"}, "`rt find '*' src`"),
        ("undo", {"entry_id": "18a"}, "`rt undo 18a`"),
        ("undo", {"batchId": "x-1"}, "`rye undo batchId=x-1`"),
        ("undo", {"list": True, "offset": 2}, "`rt undo --list --offset 2`"),
        ("read", {"file_path": ..., "encoding": "latin-1"}, "`rt open … --encoding latin-1`"),
        ("job", {"action": "end"}, "`rye job action=end`"),
        ("read", {"file_path": "`rm -rf ~`;$(x)"}, "`rt open '`rm -rf ~`;$(x)'`"),
        ("", {"multiline": True}, "multiline=true"),
    ],
)
def test_a_call_is_a_command(tool, arguments, typed):
    assert printing.typed_call(tool, arguments) == typed


def test_the_terminal_reads_them(project):
    (project / "src").mkdir()
    (project / "src/app.py").write_text("one\n")
    (project / "wide.txt").write_bytes(b"a\0\n\0")
    for line, told in {
        "open src/ap.py": "Use `rt find '*' src` to see what is there",
        "open src": "Use `rt find '*' src` to list it",
        "undo": "`rt undo --list`",
        "open wide.txt": "mark give --encoding utf-16-le.",
    }.items():
        done = rt(project, *line.split())
        assert told in done, done
        assert not CALL.search(done)
    assert "--hidden" in rt(project, "grep", "nowhere")


def rt(project, *words):
    return run(rt_main.main, words, cwd=project).stderr.decode()

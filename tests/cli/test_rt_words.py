"""What the tools say in calls is said in commands at a terminal, whatever message reaches it."""

import re

import pytest

from rye.cli.rt import main as rt_main
from rye.cli.rt import printing
from support.in_process import run

CALL = re.compile(r"\b[a-z_]+\(\w+=")


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ('Call read(file_path="a b.py") to see it.', "Run `rt open 'a b.py'` to see it."),
        ('Call read(file_path="a.py", offset=7) to see more.', "Run `rt open a.py:7` to see more."),
        ('Use ls(path="src") to list it.', "Use `rt find '*' src` to list it."),
        ('To redo it, call undo(entry_id="18a").', "To redo it, run `rt undo 18a`."),
        ('[read(file_path=…, encoding="latin-1") shows them]', "[`rt open … --encoding latin-1` shows them]"),
        ('call undo(batchId="x-1").', "run `rye undo batchId=x-1`."),
        ('by job(action="end"), any other', "by `rye job action=end`, any other"),
        ('Call read(file_path="`rm -rf ~`;$(x)") to see.', "Run `rt open '`rm -rf ~`;$(x)'` to see."),
        ('"(rt) \\" q" is odd', '"(rt) \\" q" is odd'),
        ("add hidden=true or no_ignore=true", "add --hidden or --no-ignore"),
        ("read(2) failed; undo() too", "read(2) failed; undo() too"),
    ],
)
def test_a_call_becomes_a_command(said, typed):
    assert printing.in_words(said) == typed


def test_a_person_who_types_rye_reads_commands_of_rye():
    assert printing.in_commands("Call undo(list=true) to see them.") == "Run `rye undo list=true` to see them."
    assert printing.in_commands('Use ls(path="a b") to list it.') == "Use `rye ls 'path=a b'` to list it."
    assert printing.in_commands("hidden=true lifts this") == "hidden=true lifts this"


def test_the_terminal_reads_them(project):
    (project / "src").mkdir()
    (project / "src/app.py").write_text("one\n")
    for line, told in {
        "open src/ap.py": "Use `rt find '*' src` to see what is there",
        "open src": "Use `rt find '*' src` to list it",
        "undo": "`rt undo --list`",
    }.items():
        done = rt(project, *line.split())
        assert told in done, done
        assert not CALL.search(done)
    assert "--hidden" in rt(project, "grep", "nowhere")


def rt(project, *words):
    return run(rt_main.main, words, cwd=project).stderr.decode()

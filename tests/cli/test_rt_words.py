"""What the tools say in calls is said in commands at a terminal, whatever message reaches it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import rye
from rye.call.results import call_text
from rye.cli.rt.main import main
from rye.cli.rt.printing import _NAMES, in_commands, in_words
from support.in_process import run

RUNTIME = Path(rye.__file__).parents[1]
CALL = re.compile(r"\b(?:" + _NAMES + r")\(\w+=")


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ('Call read(file_path="a b.py") to see it.', "Run `rt open 'a b.py'` to see it."),
        ('Call read(file_path="a.py", offset=7) to see more.', "Run `rt open a.py:7` to see more."),
        ('Use ls(path="src") to list it.', "Use `rt find '*' src` to list it."),
        ('Use ls(path=".") to see what is there.', "Use `rt find '*'` to see what is there."),
        ('To redo it, call undo(entry_id="18a").', "To redo it, run `rt undo 18a`."),
        ("Call undo(list=true) to see them.", "Run `rt undo --list` to see them."),
        ('[read(file_path=…, encoding="latin-1") shows them]', "[`rt open … --encoding latin-1` shows them]"),
        ('Call read(file_path="a \\"b.py") to see it.', "Run `rt open 'a \"b.py'` to see it."),
        ('call undo(batchId="x-1").', "run `rye undo batchId=x-1`."),
        ('by job(action="end"), any other', "by `rye job action=end`, any other"),
        ('Call read(file_path="`rm -rf ~`;$(x)") to see.', "Run `rt open '`rm -rf ~`;$(x)'` to see."),
        ('"(rt) \\" q" is odd', '"(rt) \\" q" is odd'),
        ("add hidden=true or no_ignore=true", "add --hidden or --no-ignore"),
        ("read(2) failed; undo() too", "read(2) failed; undo() too"),
        (
            'give encoding="cp1252" if it is right, or encoding= of another',
            "give --encoding cp1252 if it is right, or --encoding NAME of another",
        ),
    ],
)
def test_a_call_becomes_a_command(said, typed):
    assert in_words(said) == typed


def test_a_person_who_types_rye_reads_commands_of_rye():
    assert in_commands("Call undo(list=true) to see them.") == "Run `rye undo list=true` to see them."
    assert in_commands('Use ls(path="a b") to list it.') == "Use `rye ls 'path=a b'` to list it."
    assert in_commands("hidden=true lifts this") == "hidden=true lifts this"


def _texts(module):
    """The literal texts of a module, each value in them a 7."""
    nodes = [*ast.walk(ast.parse(_file(module).read_text()))]
    joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in joined for part in node.values}
    for node in joined:
        yield "".join(part.value if isinstance(part, ast.Constant) else "7" for part in node.values)
    for node in nodes:
        if (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", "") == "call_text"
            and isinstance(node.args[0], ast.Constant)
        ):
            named = [(one.arg, one.value) for one in node.keywords if one.arg]
            values = {name: ast.literal_eval(value) if isinstance(value, ast.Constant) else 'a "7"' for name, value in named}
            yield f"Call {call_text(node.args[0].value, **values)}."
    yield from (
        node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts
    )


def _file(module):
    return module if isinstance(module, Path) else RUNTIME / (module.replace(".", "/") + ".py")


def _reached():
    """The modules of the toolkit that what `rt` calls imports, at once or later."""
    waiting, found = [*(Path(__file__).parents[2] / ".ai/tools/rye/swe").glob("*.py")], set()
    while waiting:
        module = waiting.pop()
        if module in found or not _file(module).exists():
            continue
        found.add(module)
        for node in ast.walk(ast.parse(_file(module).read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rye."):
                waiting += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def test_no_message_that_can_reach_the_terminal_names_a_call():
    left, calls = [], 0
    for module in sorted(_reached(), key=str):
        for text in _texts(module):
            calls += bool(CALL.search(text))
            if CALL.search(in_words(text)):
                left.append((module, text))
    assert left == []
    # Control: there are such messages.
    assert calls > 25


def test_the_terminal_reads_them(project):
    (project / "src").mkdir()
    (project / "src/app.py").write_text("one\n")
    for words, told in (
        (("open", "src/ap.py"), "Use `rt find '*' src` to see what is there"),
        (("open", "src"), "Use `rt find '*' src` to list it"),
        (("undo",), "`rt undo --list`"),
    ):
        done = rt(project, *words)
        assert told in done, done
        assert not CALL.search(done)
    assert "--hidden" in rt(project, "grep", "nowhere")


def rt(project, *words):
    return run(main, words, cwd=project).stderr.decode()

"""What a user of a shell types without thinking: it works, or the answer shows the line to type."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import rye as package
from support.in_process import rye
from support.terminal import typed

# What is typed, the exit code, and what the answer has; from the folder `sub`, where `there` is true.
REFLEXES = {
    "an option": ("read a.txt --limit 1", 0, b"one\n"),
    "an option with =": ("read --limit=1 a.txt", 0, b"one\n"),
    "a switch": ("grep THREE --ignore-case a.txt", 0, b"three"),
    "a letter": ("grep -i THREE", 0, b"three"),
    "a letter of ls": ("ls -l", 0, b"a.txt"),
    "letters": ("ls -la", 0, b"a.txt"),
    "letters of grep": ("grep -rni THREE .", 0, b"three"),
    "a letter with a value": ("grep -C 1 two", 0, b"three"),
    "a letter with its value": ("grep -C1 two", 0, b"three"),
    "a letter for a mode": ("grep -l one", 0, b"a.txt\nsub/b.txt\n"),
    "a letter that nothing has": ("grep -x one .", 2, b"Without it: rye grep one ."),
    "letters of which nothing has one": ("grep -ixn one", 2, b"Without it: rye grep -in one"),
    "a pattern and a place": ("grep one sub", 0, b"sub/b.txt:1:"),
    "a command in words": ("bash ls -la", 2, b"rye bash 'ls -la'"),
    "a command without options": ("bash git status", 2, b"rye bash 'git status'"),
    "help behind a tool": ("read a.txt --help", 0, b"usage: rye read FILE_PATH"),
    "help": ("help", 0, b"verbs:"),
    "two files": ("read a.txt sub/b.txt", 2, b"""Write: rye read a.txt 'more=["sub/b.txt"]'"""),
    "nothing": ("read", 2, b"usage: rye read FILE_PATH [--changes-since]"),
    "nothing, where one more can be named": ("grep", 2, b"usage: rye grep PATTERN [PATH] [--context]"),
    "a name that is none": (
        "read a.txt nofoo=1",
        2,
        b"rye: unknown parameter 'nofoo', did you mean 'notebook'? `rye help read` exp",
    ),
    "a tool that runs another": (
        "execute rye/primary-tools/rye_execute item_id=rye/file-system/read parameters:={}",
        2,
        b'rye: "file_path" is a required property. `rye help read` explains them.',
    ),
    "a value that is none": ("read a.txt --limit x", 2, b'rye: limit: "x" is not of type "integer". `rye help read` explains'),
    "- for a file": ("read -", 2, b"Write ./- for it."),
    "- for a text": ("write b.txt -", 2, b"Write content=@- for standard input."),
    "a path with a space": ("read|sub/c d.txt", 0, b"one\n"),
    "a path with a space that is not there": ("read|nothing here.txt", 1, b"File not found: nothing here.txt"),
    "init": ("init", 2, b"Write `rye read FILE`"),
    "config": ("config set x", 2, b".ai/config/rye.yaml"),
    "version": ("version", 2, b"Write `rye --version`."),
    "another program's word": ("cat a.txt", 2, b"Write `rye read FILE`."),
    "a folder for a file": ("read sub", 1, b'Use ls(path="sub")'),
    "a typing error": ("raed a.txt", 2, b"Did you mean 'read'?"),
    "a typing error in a verb": ("excute read", 2, b"Did you mean 'execute'?"),
    "a typing error in an id": ("rye/file-system/raed a.txt", 2, b"rye/file-system/read"),
    "a name that is part of one": ("web x", 2, b"Did you mean 'webfetch' or 'websearch'?"),
    "a name like none": ("zzz", 2, b"`rye help` lists the verbs"),
    "nothing after execute": ("execute", 2, b"usage: rye [execute] ITEM [value | name=value"),
    "a value too many": ("write b.txt x y", 2, b"'y' has no name. write takes FILE_PATH CONTENT."),
    "not a number of JSON": ('execute|read|--params|{"file_path":"a.txt","limit":NaN}', 2, b"not JSON"),
    "a typing error in an option": ("read a.txt --lim 1", 2, b"Write: rye read a.txt --limit 1"),
    "an option without its value": ("read a.txt --limit", 2, b"Write --limit VALUE."),
    "--json anywhere": ("read a.txt --json --limit 1", 0, b'"status": "success"'),
    "--json before the item": ("execute --json read a.txt", 0, b'"status": "success"'),
    "--json before --": ("read --json -- a.txt", 0, b'"status": "success"'),
    "a negative number": ("read a.txt --offset -1", 0, b"three"),
    "--": ("read -- a.txt", 0, b"one\n"),
    "a pattern that the shell left": ("glob *.txt", 0, b"a.txt\nsub/b.txt"),
    "a home": ("read ~/x", 1, b"outside"),
    "a dry run of the tool's own": ("edit_lines a.txt end+|four --dry-run", 0, b"+four"),
    "a command's exit code": ("bash|exit 7", 7, b"exit code 7"),
    "one JSON object": ('read {"file_path":"a.txt","limit":1}', 0, b"one\n[tool_result: 1 of 3"),
    "one JSON object for an item": ('execute rye/file-system/read {"file_path":"a.txt"}', 0, b"three"),
    "one JSON object for a command": ('bash|{"command":"exit 7"}', 7, b"exit code 7"),
    "a text that looks like one": ('grep {"one":1}', 1, b"""Bad pattern '{"one":1}'"""),
}


@pytest.fixture
def here(project):
    (project / ".git").mkdir()
    (project / "sub").mkdir()
    (project / "a.txt").write_text("one\ntwo\nthree\n")
    (project / "sub/b.txt").write_text("one\n")
    (project / "sub/c d.txt").write_text("one\n")
    return project


@pytest.mark.parametrize("name", REFLEXES)
def test_what_is_typed_without_thinking_works_or_shows_the_line_to_type(here, name, tmp_path):
    typed, code, said = REFLEXES[name]
    words = typed.split("|") if "|" in typed and " end+" not in typed else typed.replace("~", str(tmp_path / "home")).split()
    if words[0] == "edit_lines":
        rye("read", "a.txt", cwd=here)
    done = rye(*words, cwd=here)
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), (done.stdout + done.stderr).decode()
    assert (here / "a.txt").read_text() == "one\ntwo\nthree\n"


def test_a_command_runs_where_one_stands(here):
    assert rye("bash", "pwd", cwd=here / "sub").stdout.decode().strip().endswith("/project/sub")
    assert rye("bash", "pwd", "--working-dir", "..", cwd=here / "sub").stdout.decode().strip().endswith("/project")
    assert rye("bash", "pwd", cwd=here).stdout.decode().strip().endswith("/project")
    # What a program gives is from the root.
    done = rye("bash", "--params", '{"command": "pwd"}', cwd=here / "sub")
    assert done.stdout.decode().strip().endswith("/project")


SHELL = {
    "|": ("rye grep e | head -1", 0, "a.txt:1:"),
    "| of much": ("rye bash 'seq 1 1000000' | head -1", 0, "1\n"),
    "| into": ("echo four | rye write sub/d.txt content=@- && cat sub/d.txt", 0, "four\n"),
    "a glob of one": ("rye read a*.txt", 0, "one"),
    "a glob of two": ("rye read sub/*.txt", 2, """Write: rye read sub/b.txt 'more=["sub/c d.txt"]'"""),
    "a file in the home": ("rye read ~/x.txt", 1, "outside"),
    "&&": ("rye bash true && rye bash false || echo no", 0, "no\n"),
    "> a file": ("rye read a.txt limit=1 --color never > sub/out && wc -l < sub/out", 0, "2\n"),
}


def typed_in_a_shell(line, here, home):
    command = f'rye() {{ {sys.executable} -m rye "$@"; }}; {line}'
    env = {**os.environ, "PYTHONPATH": os.path.dirname(package.__path__[0]), "HOME": os.fspath(home)}
    return subprocess.Popen(
        ["bash", "-c", command],
        cwd=here,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("name", SHELL)
def test_what_a_shell_makes_of_a_line_works_or_shows_the_line_to_type(here, name, tmp_path):
    line, code, said = SHELL[name]
    process = typed_in_a_shell(line, here, tmp_path)
    shown = process.communicate(timeout=120)[0]
    assert (process.returncode, said in shown) == (code, True), shown


def test_undo_passes_over_what_no_tool_may_write_and_says_so(project):
    """A lockfile is the user's: it stays, and the edit before it is taken back."""
    assert rye("write", "a.txt", "content=one", cwd=project).returncode == 0
    assert rye("lock", "rye/file-system/read", cwd=project).returncode == 0
    done = rye("undo", cwd=project)
    assert (done.returncode, (project / "a.txt").exists()) == (0, False)
    assert b"was passed over: .ai/lockfiles/rye/file-system/read@" in done.stdout
    assert list((project / ".ai/lockfiles").rglob("*.json"))
    # Nothing else is left: then it is refused with the reason.
    done = rye("undo", cwd=project)
    assert (done.returncode, b"which tools may not write" in done.stderr) == (1, True)


def test_a_person_reads_commands_where_a_model_reads_calls(here):
    code, shown = typed("read", "sub", cwd=here)
    assert (code, "Use `rye ls path=sub` to list it" in shown) == (1, True), shown
    assert b'Use ls(path="sub")' in rye("read", "sub", cwd=here).stderr

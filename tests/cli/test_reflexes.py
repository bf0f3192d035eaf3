"""What a user of a shell types without thinking: it works, or the answer shows the line to type."""

from __future__ import annotations

import pytest

from support.in_process import rye

# What is typed, the exit code, and what the answer has; from the folder `sub`, where `there` is true.
REFLEXES = {
    "an option": ("read a.txt --limit 1", 0, b"one\n"),
    "an option with =": ("read --limit=1 a.txt", 0, b"one\n"),
    "a switch": ("grep THREE --ignore-case a.txt", 0, b"three"),
    "a letter": ("grep -i THREE", 2, b"Write: rye grep --ignore-case THREE"),
    "a letter of ls": ("ls -l", 2, b"Write: rye ls --long"),
    "letters": ("ls -la", 2, b"Write: rye ls --long"),
    "a letter that nothing has": ("grep -r one .", 2, b"Without it: rye grep one ."),
    "a command in words": ("bash ls -la", 2, b"rye bash 'ls -la'"),
    "a command without options": ("bash git status", 2, b"rye bash 'git status'"),
    "help behind a tool": ("read a.txt --help", 0, b"usage: rye read FILE_PATH"),
    "-h": ("-h", 0, b"verbs:"),
    "help": ("help", 0, b"verbs:"),
    "--version": ("--version", 0, b"rye "),
    "two files": ("read a.txt sub/b.txt", 2, b"""Write: rye read a.txt 'more=["sub/b.txt"]'"""),
    "nothing": ("read", 2, b"usage: rye read FILE_PATH [--changes-since]"),
    "a folder for a file": ("read sub", 1, b'Use ls(path="sub")'),
    "a typing error": ("raed a.txt", 2, b"Did you mean 'read'?"),
    "a typing error in an option": ("read a.txt --lim 1", 2, b"Write: rye read a.txt --limit 1"),
    "an option without its value": ("read a.txt --limit", 2, b"Write --limit VALUE."),
    "--json anywhere": ("read a.txt --json --limit 1", 0, b'"status": "success"'),
    "--json before the item": ("execute --json read a.txt", 0, b'"status": "success"'),
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
    return project


@pytest.mark.parametrize("name", REFLEXES)
def test_what_is_typed_without_thinking_works_or_shows_the_line_to_type(here, name, tmp_path):
    typed, code, said = REFLEXES[name]
    words = typed.split("|") if typed.startswith("bash|") else typed.replace("~", str(tmp_path / "home")).split()
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

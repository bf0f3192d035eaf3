"""`rye help`, a tool's own help, and the manual page."""

import json
import shutil
import subprocess

import pytest

from rye.cli.rt import main as rt_main
from rye.cli.table import VERBS
from support.in_process import run, rye
from support.signed_tools import put, put_tool, tool_text


def test_help_is_the_help_of_the_command_and_of_each_verb(project):
    assert rye("help", cwd=project).stdout == rye("--help", cwd=project).stdout
    for verb in VERBS:
        done = rye("help", verb, cwd=project)
        assert (done.returncode, done.stdout) == (0, rye(verb, "--help", cwd=project).stdout)
        assert done.stdout.startswith(b"usage: rye ")


@pytest.mark.parametrize(
    "typed",
    [["help", "read"], ["read", "--help"], ["read", "-h"], ["rye/file-system/read", "--help"], ["execute", "read", "--help"]],
)
def test_a_tools_help_is_made_of_its_schema(project, typed):
    done = rye(*typed, cwd=project)
    text = done.stdout.decode()
    name = typed[0] if "/" in typed[0] else "read"
    assert (done.returncode, text.split("\n")[0]) == (0, f"usage: rye {name} FILE_PATH [name=value …]")
    assert "limit            Most lines to return (whole number, 1 to 100000, default 2000)" in text
    assert ("encoding         Codec name, only where" in text, "Prefer it to cat" in text) == (True, True)


def test_members_of_a_list_are_listed(project):
    text = rye("help", "edit_lines", cwd=project).stdout.decode()
    assert "    before_line_id" in text
    assert "usage: rye edit_lines FILE_PATH CHANGES [name=value …]" in text
    found = json.loads(rye("help", "grep", "--json", cwd=project).stdout)
    assert (found["item_id"], found["parameters"]["required"]) == ("rye/file-system/grep", ["pattern"])
    assert json.loads(rye("help", "--json", cwd=project).stdout)["verbs"].keys() == set(VERBS)


def test_nothing_of_an_unverified_tool_or_of_none_is_shown(project):
    put(project, "tools/my/unsigned.py", tool_text("my/unsigned"))
    done = rye("help", "my/unsigned", cwd=project)
    assert (done.returncode, done.stdout) == (3, b"")
    put_tool(project, "my/tool", more='__tool_description__ = "\\x1b[2Jx"')
    text = rye("help", "my/tool", cwd=project).stdout
    assert (b"\x1b" in text, b"\\x1b[2Jx" in text) == (False, True), "nor does the text of another steer the terminal"
    done = rye("help", "nothing-like-it", cwd=project)
    assert (done.returncode, done.stdout, b"rye tools" in done.stderr) == (2, b"", True)
    assert b"Did you mean 'read'?" in rye("help", "reed", cwd=project).stderr


def test_help_is_a_verb_of_rt_too(project):
    def said(*words):
        return run(rt_main.main, words, cwd=project).stdout

    assert said("help") == said("--help") != b""
    assert said("help", "edit") == said("edit", "--help") != b""


def manual(project):
    return rye("help", "--man", cwd=project, env={"COLUMNS": "80"}).stdout.decode()


@pytest.mark.skipif(
    shutil.which("man") is None and shutil.which("groff") is None, reason="needs man or groff (Debian package groff)"
)
def test_the_manual_page_is_well_formed(project, tmp_path):
    page = tmp_path / "page.1"
    page.write_text(manual(project), encoding="utf-8")
    program = ["man", "--warnings", "-l"] if shutil.which("man") else ["groff", "-man", "-Tutf8", "-ww"]
    env = {"MANPAGER": "cat", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "MANWIDTH": "100"}
    done = subprocess.run([*program, page], capture_output=True, check=True, env=env)
    assert (done.stderr, [verb for verb in VERBS if f"rye {verb}" not in done.stdout.decode()]) == (b"", [])


def test_every_verb_and_option_is_in_the_manual_page(project):
    text = manual(project).replace("\\-", "-")
    for verb in VERBS:
        assert f".SS rye {verb}" in text
        for option in VERBS[verb].options:
            assert all(name in text for name in option.names)

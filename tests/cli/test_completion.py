"""Completion offers what exists, and the scripts work in a real shell."""

import os
import subprocess
import sys

import pytest

from rye.cli import main as rye_main
from rye.cli.rt import main as rt_main
from rye.cli.table import VERBS
from support.harness import environment, put_program
from support.in_process import run
from support.in_process import rye as run_rye
from support.signed_tools import put_tool

# What is typed so far, and what can stand for its last word.
LINES = {
    "ex": "execute",
    "execute rye/file-system/re": "rye/file-system/read",
    "edit_l": "edit_lines",
    "write con": "content=",
    "help edit_l": "edit_lines",
    "verify --tr": "--trust",
    "nonsense --x": "",
    "grep --ig": "--ignore-case",
    "read a.txt --off": "--offset",
    "mcp install --client cod": "codex",
    "registry push --from u": "user",
    "log --limit ": "",
    "ls -l": "-l",
    "execute rye/file-system/read file_path=RE": "",
    "load knowledge rye/file": "rye/file-system/file-operations rye/file-system/line-ids",
    "load song ": "",
    "execute rye/core/ex": "rye/core/executing-items",
}


def candidates(line):
    return run_rye("completion", "--words", *line.split(" "), cwd="/").stdout.decode().split("\n")[:-1]


def test_the_last_word_is_completed_and_an_empty_one_offers_every_verb():
    for line, expected in LINES.items():
        assert " ".join(candidates(line)) == expected, line
    assert {*VERBS, "read", "edit_lines"} <= {*candidates("")}
    (client,) = [one.help for one in VERBS["mcp"].options if one.names == ["--client"]]
    assert sorted(client.partition(": ")[2].split(", ")) == candidates("mcp install --client "), "the help names every client"


def test_no_name_that_a_shell_would_act_on_is_offered(project):
    names = ("zz_y", "zz; touch x #", "zz$(x)", "zz`x`", "zz\nx")
    put_tool(project, "evil/tool", schema={"type": "object", "properties": {name: {"type": "string"} for name in names}})
    assert run_rye("completion", "--words", "execute", "evil/tool", "z", cwd=project).stdout == b"zz_y=\n"


def test_bash_completes_an_item_id(tmp_path):
    put_program(tmp_path / "rye", f'#!/bin/sh\nexec {sys.executable} -m rye "$@"\n')
    script = """
        eval "$(rye completion bash)"
        COMP_WORDS=(rye execute rye/file-system/ed); COMP_CWORD=2
        _rye
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    env = environment(PATH=f"{tmp_path}:{os.environ['PATH']}")
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["rye/file-system/edit_lines"], done.stderr


@pytest.mark.parametrize(("shell", "code"), [("/bin/sh", 1), ("/bin/bash", 0), ("", 0), ("fish", 0)])
@pytest.mark.parametrize("program", [rye_main, rt_main], ids=["rye", "rt"])
def test_a_shell_without_a_script_is_refused_in_words(program, shell, code):
    done = run(program.main, ["completion"], cwd="/", env={"SHELL": shell})
    assert (bool(done.returncode), bool(done.stdout)) == (bool(code), not code)
    assert (b"No completion for 'sh'. Name bash, zsh, fish." in done.stderr) == bool(code)

"""README.md and the pages in docs/ followed word for word: their blocks run in a fresh project, and print what they show."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support import pictures
from support.harness import RUNTIME, put_program
from support.readme_blocks import PAGES, README, ROOT, as_shown, blocks, commands
from support.signed_tools import STRANGER, bring_key, put, signed, tool_text
from support.terminal import typed

BLOCKS = [block for page in PAGES for block in blocks(page.read_text(encoding="utf-8"))]
APP = "def total(prices):\n    return sum(prices)\n"


@pytest.fixture
def place(project, tmp_path):
    """An empty project, and `rye` and `rt` on the path, as after the activation that README names."""
    (project / ".git").mkdir()
    for name, module in (("rye", "rye"), ("rt", "rye.cli.rt.main")):
        put_program(tmp_path / "bin" / name, f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {module} "$@"\n')
    (tmp_path / "home").mkdir()
    return project


def environment(place):
    path = f"{place.parent / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    # A home of its own, where clients' settings are written.
    home = os.fspath(place.parent / "home")
    return {**os.environ, "PYTHONPATH": os.fspath(RUNTIME), "PATH": path, "PYTHONIOENCODING": "utf-8", "HOME": home}


def test_every_block_says_how_it_is_run():
    assert len(BLOCKS) >= 9
    for block in BLOCKS:
        kind = block.marker.partition(":")[0]
        assert kind in ("run", "not run", "command"), f"say above the block how it is run: {block.text[:80]!r}"
        assert kind != "not run" or len(block.marker) > len("not run: "), "say why"


def test_what_is_for_a_shell_of_its_own_is_run_by_the_ci_script():
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    for block in BLOCKS:
        name = block.marker.removeprefix("command: ")
        if name != block.marker:
            assert f"readme_command.py {name}" in script
            assert block.language == "sh"


def run_shell(block, place):
    for command in commands(block.text):
        line = ["bash", "-euo", "pipefail", "-c", command.line]
        done = subprocess.run(line, cwd=place, env=environment(place), capture_output=True, check=False)
        assert done.returncode == 0, (command, done.stderr.decode())
        # A terminal shows what is said beside the result, too.
        told = (done.stdout.decode(), (done.stdout + done.stderr).decode())
        assert any(as_shown(command.shown, text) for text in told), (command, told)


def run_python(block, place):
    line = [sys.executable, "-W", "error", "-c", block.text]
    done = subprocess.run(line, cwd=place, env=environment(place), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout


def run_person(block, place):
    """Type a person's commands; placeholders are what the page says they are: the digest of a key that the project brings."""
    env = {name: environment(place)[name] for name in ("PYTHONIOENCODING", "HOME")}
    for command in commands(block.text):
        words = shlex.split(command.line.replace("FULL-DIGEST", STRANGER.public.digest), comments=True)
        assert words[0] == "rye"
        code, shown = typed(*words[1:], cwd=place, answers=["yes", "yes"], env=env)
        # The project brings a key that nobody approved yet, and an unsigned file: that is the verdict.
        refused = words[1:3] == ["verify", "--all"]
        assert code == (3 if refused else 0), (command.line, shown)
        assert re.search(r"\S", shown)


RUNNERS = {"shell": run_shell, "python": run_python, "person": run_person}


def run_all(page, place):
    """Run the blocks of a page; return their kinds."""
    kinds = set()
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.marker.startswith("run: "):
            kinds.add(block.marker[5:])
            RUNNERS[block.marker[5:]](block, place)
    return kinds


def test_the_blocks_of_the_readme_run_in_order_in_one_folder_and_so_do_the_pages_after_them(place):
    """Nothing but what the blocks themselves make is there; and the agent's loop can be run twice."""
    assert run_all(README, place) == {*RUNNERS}
    for name in ("mcp.md", "agent-loop.md", "agent-loop.md", "shell.md"):
        assert run_all(ROOT / "docs" / name, place)
    assert (place / "app.py").read_text() == APP
    assert not (place.parent / "home" / ".ai").exists()


def test_the_page_of_trust_runs_where_a_project_brings_a_key_and_a_tool_is_to_be_signed(place):
    bring_key(place)
    put(place, "tools/their/tool.py", signed(tool_text("their/tool"), STRANGER))
    put(place, "tools/my/tool.py", tool_text("my/tool"))
    assert run_all(ROOT / "docs/trust.md", place)


@pytest.mark.parametrize("page", [README, *(ROOT / "docs").glob("*.md")], ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_every_page_is_linked_and_the_readme_is_short():
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 110
    for page in [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]:
        assert page == README or f"]({page.relative_to(ROOT)})" in text, page


def test_the_pictures_are_what_is_printed_and_measured_now(tmp_path, monkeypatch):
    """Made again by `python tests/support/pictures.py`, which also takes those of `rye review`."""
    monkeypatch.delenv("USER_SPACE", raising=False)
    made = pictures.svgs(tmp_path)
    assert {name for name in made if (pictures.FOLDER / name).read_text(encoding="utf-8") != made[name]} == set()
    text = README.read_text(encoding="utf-8")
    shown = {path.name for path in pictures.FOLDER.iterdir()}
    assert {name for name in shown if f'"docs/pictures/{name}"' not in text} == set()
    assert {*made, "review-light.png", "review-dark.png"} == shown
    assert sum(path.stat().st_size for path in pictures.FOLDER.iterdir()) < 150_000


def test_the_agent_loop_has_ten_lines_and_one_that_takes_its_change_back():
    (loop,) = [block for block in BLOCKS if "while messages" in block.text]
    assert len(loop.text[loop.text.index("tools = rye.toolset(") :].splitlines()) == 11


def test_control_wrong_output_and_missing_markers_are_seen():
    assert as_shown("a\n…\nz\n", "a\nb\nc\nz\n")
    assert as_shown("id …\n", "id 123\n")
    assert not as_shown("a\n", "a\nb\n")
    assert not as_shown("[LID:000000] x\n", "[LID:a1b2c3] x\n")
    (bare,) = blocks("text\n```console\n$ a \\\n  b\nshown\n```\n")
    assert bare.marker == ""
    assert [tuple(one) for one in commands(bare.text)] == [("a \\\n  b", "shown\n")]
    assert [tuple(one) for one in commands("$ a <<E\n> b\n> E\nshown\n")] == [("a <<E\nb\nE", "shown\n")]

"""README.md and the pages in docs/ followed word for word: their blocks run in a fresh project, and print what they show."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rye.trust import verify
from support.readme_blocks import PAGES, README, ROOT, as_shown, blocks, commands
from support.signed_tools import STRANGER, put, signed, tool_text
from support.terminal import RUNTIME, typed

BLOCKS = [block for page in PAGES for block in blocks(page.read_text(encoding="utf-8"))]
APP = "def total(prices):\n    return sum(prices)\n"
RUN = [pytest.param(block, id=f"{block.marker.removeprefix('run: ')}-{at}") for at, block in enumerate(BLOCKS)]
LOOP = "tools = rye.toolset("


def marked(kind):
    return [param for param in RUN if param.values[0].marker.split()[:2] == ["run:", kind]]


@pytest.fixture
def place(project, tmp_path):
    """A project that is README's own folder, as far as its commands ask, and a `rye` on the path."""
    (project / "README.md").write_bytes(README.read_bytes())
    (project / ".ai").mkdir()
    script = tmp_path / "bin/rye"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m rye "$@"\n')
    script.chmod(0o755)
    return project


def environment(place):
    path = f"{place.parent / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PYTHONPATH": os.fspath(RUNTIME), "PATH": path, "PYTHONIOENCODING": "utf-8"}


def test_every_block_says_how_it_is_run():
    assert len(BLOCKS) >= 9
    for block in BLOCKS:
        kind = block.marker.partition(":")[0]
        assert kind in ("run", "not run", "command", "session"), f"say above the block how it is run: {block.text[:80]!r}"
        assert kind != "not run" or len(block.marker) > len("not run: "), "say why"


def test_what_is_for_a_shell_of_its_own_is_run_by_the_ci_script():
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    for block in BLOCKS:
        name = block.marker.removeprefix("command: ")
        if name != block.marker:
            assert f"readme_command.py {name}" in script
            assert block.language == "sh"


@pytest.mark.parametrize("block", marked("shell"))
def test_commands_print_what_they_show(block, place):
    for command in commands(block.text):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command.line],
            cwd=place,
            env=environment(place),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr.decode())
        assert as_shown(command.shown, done.stdout.decode()), (command, done.stdout.decode())


@pytest.mark.parametrize("block", marked("python"))
def test_python_runs_as_it_stands(block, place):
    if "app" in block.marker.split():
        (place / "app.py").write_text(APP)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block.text], cwd=place, env=environment(place), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout
    if LOOP in block.text:
        assert "round(sum(prices), 2)" in (place / "app.py").read_text()


def test_the_agent_loop_has_ten_lines():
    (loop,) = [block for block in BLOCKS if LOOP in block.text]
    assert len(loop.text[loop.text.index(LOOP) :].splitlines()) == 10


@pytest.mark.parametrize("block", marked("person"))
def test_a_persons_commands_work_at_a_terminal(block, place):
    """Placeholders are what README says they are: the digest of a key that the project brings."""
    document = verify.render_key_document(STRANGER.public, "someone")
    (place / ".ai/trusted_keys").mkdir()
    (place / f".ai/trusted_keys/{STRANGER.public.fingerprint}.toml").write_bytes(document)
    put(place, "tools/their/tool.py", signed(tool_text("their/tool"), STRANGER))
    if "my/tool" in block.text:
        put(place, "tools/my/tool.py", tool_text("my/tool"))
    for command in commands(block.text):
        line = command.line.replace("FULL-DIGEST", STRANGER.public.digest)
        words = shlex.split(line, comments=True)
        assert words[0] == "rye"
        code, shown = typed(*words[1:], cwd=place, answers=["yes", "yes"], env={"PYTHONIOENCODING": "utf-8"})
        # The project brings a key that nobody approved yet, and an unsigned file: that is the verdict.
        refused = words[1:3] == ["verify", "--all"]
        assert code == (1 if refused else 0), (line, shown)
        assert re.search(r"\S", shown)


def test_control_wrong_output_and_missing_markers_are_seen():
    assert as_shown("a\n…\nz\n", "a\nb\nc\nz\n")
    assert as_shown("id …\n", "id 123\n")
    assert not as_shown("a\n", "a\nb\n")
    assert not as_shown("[LID:000000] x\n", "[LID:a1b2c3] x\n")
    (bare,) = blocks("text\n```console\n$ a \\\n  b\nshown\n```\n")
    assert bare.marker == ""
    assert [tuple(one) for one in commands(bare.text)] == [("a \\\n  b", "shown\n")]

"""Trees and patterns made to hurt: deep, wide, looping, unreadable, without end; names of any bytes; pipes; patterns that try without end.

Every call ends in bounded time, says what it could not see, and answers in valid UTF-8 JSON; other calls are answered meanwhile.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

import rye
from rye.filesearch import ripgrep, tree
from rye.workspace.workspace import Workspace
from support.calling import call, done
from support.harness import environment, put_program, times
from support.shell_calls import bash
from support.signed_tools import put_tool
from support.waiting import PATIENCE, in_time


def execute(tool, project, /, **parameters):
    """Call a tool; its answer must be JSON that any reader takes."""
    answer = rye.execute(f"rye/file-system/{tool}", parameters, project_path=os.fspath(project))
    json.dumps(answer, ensure_ascii=False, allow_nan=False).encode("utf-8")
    return answer["data"]


def dig(project, depth: int) -> None:
    """Make a chain of folders deeper than any path can name, with a file at the bottom."""
    fd = os.open(project, os.O_PATH)
    for _ in range(depth):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_PATH, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("needle", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)


def random_names(count: int, number: int) -> list[bytes]:
    """Return names of random bytes, among them all that is special."""
    source = random.Random(number)
    found = {
        b"a:1:b", b"new\nline", b"\x1b[2J", b"-rf", b"--", b"\\x41", b"\\\\x", b"\xff", b"\xed\xa0\x80", b" ", b"\xe2\x80\xae",
        b"*", b"[a]", b"{b}",
    }  # fmt: skip
    while len(found) < count:
        name = bytes(source.choice(range(1, 256)) for _ in range(source.randint(1, 40))).replace(b"/", b"")
        if name not in (b"", b".", b".."):
            found.add(name)
    return sorted(found)[:count]


def test_names_of_any_bytes_go_round_and_are_the_same_for_all_tools(project, engine):
    """List, search, read and edit every file by the name that was shown."""
    names = random_names(40, 11)
    for at, name in enumerate(names):
        Path(os.fsdecode(os.path.join(os.fsencode(project), name))).write_bytes(b"first\nneedle %d\n" % at)
    shown = {entry["name"] for entry in execute("ls", project)["entries"]} - {".ai"}
    assert len(shown) == len(names)
    found = execute("grep", project, pattern="needle", hidden=True, limit=1_000)
    assert {match["file"] for match in found["matches"]} == shown
    assert set(execute("glob", project, pattern="*", hidden=True, limit=1_000)["files"]) == shown
    for name in shown:
        row = execute("read", project, file_path=name)["output"].split("\n")[0]
        change = {"line_id": row[5 : row.index("]")], "new_content": f"edited {name.encode().hex()}"}
        assert execute("edit_lines", project, file_path=name, changes=[change])["success"]
    kept = {Path(os.fsdecode(os.path.join(os.fsencode(project), name))).read_bytes() for name in names}
    assert len(kept) == len(names)
    assert all(data.startswith(b"edited") for data in kept)


@pytest.fixture(autouse=True)
def _chain_is_removed(project):
    """What removes old temporary folders, pytest's own cleaning too, does not survive the chain."""
    yield
    subprocess.run(["rm", "-rf", str(project / "d")], check=True)


@pytest.mark.slow
def test_a_chain_of_three_thousand_folders_ends_in_a_named_limit(project, engine):
    dig(project, 3_000)
    (project / "a").write_text("needle\n")
    data = execute("grep", project, pattern="needle")
    assert [match["file"] for match in data["matches"]] == ["a"]
    with pytest.raises((RecursionError, OSError)):  # control
        list(project.rglob("*"))
    assert "File name too long" in data["output"]
    assert data["unreadable_count"] >= 1
    assert execute("glob", project, pattern="*")["files"] == ["a"]
    assert execute("ls", project, path="d", depth=100)["total"] == 100
    assert execute("ls", project, path="/".join(["d"] * 1_500))["entries"] == [{"name": "d", "type": "directory"}]


def test_loops_pipes_and_holes_do_not_hold_a_search(project, engine):
    for at in range(5):
        (project / f"loop{at}").symlink_to(f"loop{at}")
        (project / f"up{at}").symlink_to("..")
    os.mkfifo(project / "pipe")
    with open(project / "holes", "wb") as file:
        file.truncate(10 << 30)
    with open(project / "text_then_holes", "wb") as file:
        file.write(b"needle\n" * 10)
        file.truncate(10 << 30)
    (project / "a").write_text("needle\n")
    started = time.monotonic()
    data = execute("grep", project, pattern="needle")
    assert [match["file"] for match in data["matches"]] == ["a"]
    assert execute("glob", project, pattern="*")["files"] == ["a", "holes", "text_then_holes"]
    assert time.monotonic() - started < PATIENCE


CALLER = """
import json, sys
sys.path[:0] = json.loads(sys.argv[3])
import rye
from rye.filesearch import ripgrep
if sys.argv[2] == "python":
    ripgrep.locate = lambda _: None
calls = {"grep": {"pattern": "needle"}, "glob": {"pattern": "**"}, "ls": {"depth": 2}}
print(json.dumps([rye.execute(f"rye/file-system/{name}", words, project_path=sys.argv[1])["data"] for name, words in calls.items()]))
"""
# Root passes every permission check, unless it gives that up.
POWERLESS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


@pytest.mark.skipif(bool(POWERLESS) and shutil.which("setpriv") is None, reason="root cannot give up its powers here")
def test_what_cannot_be_read_is_named_and_not_fatal(project, engine):
    (project / "a").write_text("needle\n")
    (project / "shut").write_text("needle\n")
    (project / "shut").chmod(0)
    (project / "locked").mkdir()
    (project / "locked/b").write_text("needle\n")
    (project / "locked").chmod(0)
    command = [*POWERLESS, sys.executable, "-c", CALLER, str(project), engine, json.dumps(sys.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (project / "locked").chmod(0o700)
    assert done.returncode == 0, done.stderr
    grep, glob, ls = json.loads(done.stdout)
    assert [match["file"] for match in grep["matches"]] == ["a"]
    assert {place["path"] for place in grep["unreadable"]} == {"locked", "shut"}
    assert "locked (Permission denied)" in glob["output"]
    assert glob["files"] == ["a", "shut"]
    assert "locked/ [not readable: Permission denied]" in ls["output"]


PLACES = [
    ".git/HEAD", ".git/packed-refs", ".git/config.worktree", ".git/refs/stash", ".git/commondir", ".git", "n/.git",
    "n/.git/config", "n/.git/hooks/pre-commit", ".gitignore", ".python-version",
]  # fmt: skip
KINDS = {"pipe": "mkfifo {0}", "endless": "ln -s /dev/zero {0}", "tty": "ln -s /dev/tty {0}"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_command_hangs_on_one(project, kind):
    """Made by a person or a program without a sandbox, so that each of them is there."""
    for path in PLACES:
        subprocess.run(["rm", "-rf", project / "n", project / ".git"], check=True)
        git = "git init -q; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git pack-refs --all"
        made = f"mkdir -p $(dirname {path}); rm -rf {path}; {KINDS[kind].format(path)}"
        subprocess.run(f"{git}; {made}", shell=True, cwd=project, check=True)
        answer = in_time(lambda: bash(project, "echo done"), path)
        assert "done" in answer["output"] or not answer["success"], (path, answer)
        (project / path).unlink(missing_ok=True)


def test_a_version_is_not_waited_for(project, tmp_path, monkeypatch):
    put_program(tmp_path / "home/.pyenv/versions/3.11.2/bin/python3", "#!/bin/sh\necho chosen\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    put_tool(project, "my/tool", more='print("own")', runtime="rye/core/runtimes/python_script_runtime")
    file, said = project / ".python-version", []
    for made in (lambda: os.mkfifo(file), lambda: file.write_text("3.11.2\n"), file.mkdir):
        file.unlink(missing_ok=True)
        made()
        said.append(in_time(lambda: rye.execute("my/tool", project_path=project), file)["data"]["output"])
        assert str(file) not in {os.path.realpath(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd")}
    assert said == ["own\n", "chosen\n", "own\n"]


# Not `.gitignore`: a search at a pipe of that name is refused, see below.
READ_BY_THEMSELVES = [
    ".ignore", ".rgignore", ".ripgreprc", ".git/info/exclude", ".ai/tools/x.py", ".ai/tools/x.yaml", ".ai/knowledge/x.md",
    ".ai/directives/x.md", ".ai/lockfiles/rye/bash/bash.lock.json", ".ai/trusted_keys/x.toml", ".ai/bundles/x/manifest.yaml",
    "pyproject.toml", "package.json", ".editorconfig", "tsconfig.json", ".env", "a.py", ".venv/pyvenv.cfg",
]  # fmt: skip
CALLS = {
    "grep": ("rye/file-system/grep", {"pattern": "needle"}),
    "glob": ("rye/file-system/glob", {"pattern": "**/*.txt"}),
    "ls": ("rye/file-system/ls", {}),
    "search_dir": ("rye/swe/search_dir", {"pattern": "needle"}),
    "read": ("rye/file-system/read", {"file_path": "found.txt"}),
    "write": ("rye/file-system/write", {"file_path": "new.txt", "content": "x\n"}),
    "bash": ("rye/bash/bash", {"command": "echo needle found.txt"}),
}


@pytest.mark.slow
def test_no_tool_waits_at_a_pipe_that_it_would_read_by_itself(project, engine):
    (project / "a/b").mkdir(parents=True)
    (project / "found.txt").write_text("needle\n")
    for path in READ_BY_THEMSELVES:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(project / path)
    for name, (tool, parameters) in CALLS.items():
        # Searches end themselves after 30 seconds, which would be a wait too.
        said = str(in_time(partial(rye.execute, tool, parameters, project_path=project), name))
        assert "found.txt" in said or name == "write", (name, said)
        assert "timed out" not in said, (name, said)


VERBS = [
    "search needle", "tools", "verify --all", "trust list", "doctor", "log", "diff", "lint --all", "lock rye/bash/bash",
    "undo --list",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_waits_at_one(project, verb):
    for path in [*READ_BY_THEMSELVES, ".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json", ".ai/config/rye.yaml", ".git/HEAD"]:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(project / path)
    # It may refuse them; it does not wait.
    argv = [sys.executable, "-m", "rye", *verb.split(), "--project", project]
    subprocess.run(argv, env=environment(), capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)


@pytest.mark.parametrize("tool", ["grep", "glob"])
@pytest.mark.parametrize("place", ["pipe", pytest.param("device", marks=pytest.mark.slow)])
def test_rules_that_never_end_do_not_outlast_a_search(project, tmp_path, place, tool, monkeypatch):
    # A pipe would be waited for until the time of a search is up; a device ends the search by itself.
    os.mkfifo(tmp_path / "outside")
    (project / "found.txt").write_text("needle\n")
    (project / "a/b").mkdir(parents=True)
    (project / "a/b/.gitignore").symlink_to(tmp_path / "outside" if place == "pipe" else "/dev/zero")
    monkeypatch.setattr(tree, "MAX_SECONDS", 600.0)
    answer = rye.execute(f"rye/file-system/{tool}", {"pattern": "needle"}, project_path=project)["data"]
    assert (answer["code"], "a/b/.gitignore" in answer["error"]) == ("search_failed", place == "pipe")
    assert "no_ignore=true" in str(answer)
    found = rye.execute("rye/file-system/grep", {"pattern": "needle", "no_ignore": True}, project_path=project)["data"]
    assert "found.txt" in found["output"]
    # Of a search that is slow for another reason the pipes do not count that it does not read.
    (project / "a").rename(project / "node_modules")
    with Workspace(project) as ws, tree.opened(ws, ".") as opened:
        opened._refuse_pipes(ripgrep.SearchScope())


# Processor seconds, which a busy machine does not change: two of a stalled search, and the start of its interpreter.
LIMIT = 2.6
LINE = "a" * 40 + "!" + "0" * 40 + "!" + "ab" * 40 + "!" + " " * 40 + "!" + "x@" * 40 + "é" * 40
BOMBS = [
    "(a+)+$", "(a*)*$", "(a|a)*$", "(a|aa)+$", "(a|a?)+$", "(?:a+)+b", "(a+a+)+b", "(a*a*)*b", "(.*)*x$", "(.+)+z", r"(\w+)+\.",
    r"(\w*)*\.", r"(\d+)+x", r"(0|00)+x", r"(0+)*1", "([a-z]+)*[0-9]z", "(ab|a|b)+c$", "((ab)+)+c", "((ab)*)*c", r"(\s+)+y",
    r"(\s*)*y", "( +)* y", "(([a-z])+.)+[A-Z]([a-z])+Q", r"^(([a-z])+.)+[A-Z]$", r"(x@|x|@)+z", "(é+)+z", "(é|é)+z",
    "(a{1,20}){1,20}b", "(a?){30}a{30}b(a?){30}", "(.*a){30}b",
]  # fmt: skip


@pytest.fixture
def planted(project):
    (project / "evil.txt").write_text(f"{LINE}\n")
    (project / "other.txt").write_text("fine\n")
    return project


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_control_the_engine_alone_does_not_end():
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", f"import re; re.search('(a+)+$', {LINE!r})"], timeout=1, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", BOMBS[:: 10 if times(1) == 1 else 1])
def test_a_bomb_ends_in_time_says_what_to_do_and_hinders_nobody(planted, without_ripgrep, pattern):
    answered, over = [], threading.Event()

    def others():
        while not over.is_set():
            answered.append(done("ls", planted)["count"])
            time.sleep(0.01)

    thread = threading.Thread(target=others)
    thread.start()
    before = spent()
    # Beside the bomb there is a line that fits.
    data = call("grep", planted, pattern=f"{pattern}|fine")
    over.set()
    thread.join()
    assert spent() - before < LIMIT
    assert len(answered) > 20
    assert data.get("total") == 1 or (data["code"] == "pattern_too_slow" and "install ripgrep" in data["error"]), data


@pytest.mark.skipif(ripgrep.locate(os.stat("/")) is None, reason="ripgrep is not installed")
def test_with_ripgrep_no_pattern_is_slow(planted):
    before = spent()
    for pattern in BOMBS:
        done("grep", planted, pattern=pattern)
    assert spent() - before < LIMIT * 4

"""Trees made to hurt: deep, wide, looping, unreadable, without end; names of any bytes.

Every call ends in bounded time, says what it could not see, and answers in valid UTF-8 JSON.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rye
from rye.filesearch import ripgrep
from support.waiting import PATIENCE

BINARY = ripgrep.locate(os.stat("/"))


@pytest.fixture(params=["python", "ripgrep"])
def engine(request, monkeypatch):
    """Search without ripgrep, and with it."""
    if request.param == "python":
        monkeypatch.setattr(ripgrep, "locate", lambda _: None)
    elif BINARY is None:
        pytest.skip("ripgrep is not installed")
    return request.param


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


def plant(project, names) -> None:
    for at, name in enumerate(names):
        with open(os.path.join(os.fsencode(project), name), "wb") as file:
            file.write(b"first\nneedle %d\n" % at)


def round_trip(project, names) -> int:
    """List, read and edit every file by the name that was shown; return how many came out right."""
    shown = [entry["name"] for entry in execute("ls", project, limit=10_000)["entries"] if entry["type"] == "file"]
    right = 0
    for name in shown:
        row = execute("read", project, file_path=name)["output"].split("\n")[0]
        change = {"line_id": row[5 : row.index("]")], "new_content": f"edited {name.encode().hex()}"}
        right += bool(execute("edit_lines", project, file_path=name, changes=[change])["success"])
    kept = {name: Path(os.fsdecode(os.path.join(os.fsencode(project), name))).read_bytes() for name in names}
    assert len({data.split(b"\n")[0] for data in kept.values()}) == len(names)
    return right if all(data.startswith(b"edited") for data in kept.values()) else -1


def test_names_of_any_bytes_go_round(project):
    names = random_names(40, 11)
    plant(project, names)
    assert round_trip(project, names) == len(names)
    found = execute("grep", project, pattern="needle", hidden=True, limit=1_000)
    assert found["count"] == len(names)
    assert sorted(execute("glob", project, pattern="*", hidden=True, limit=1_000)["files"]) == sorted(
        m["file"] for m in found["matches"]
    )


def test_names_of_any_bytes_are_the_same_for_all_tools(project, engine):
    names = random_names(40, 12)
    plant(project, names)
    listed = {entry["name"] for entry in execute("ls", project)["entries"]} - {".ai"}
    assert len(listed) == len(names)
    found = execute("grep", project, pattern="needle", hidden=True, limit=1_000)
    assert {match["file"] for match in found["matches"]} == listed
    assert set(execute("glob", project, pattern="*", hidden=True, limit=1_000)["files"]) == listed


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
    assert "File name too long" in data["output"]
    assert data["unreadable_count"] >= 1
    assert execute("glob", project, pattern="*")["files"] == ["a"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pathlib walks without recursion since Python 3.12")
def test_control_pathlib_does_not_survive_the_chain(project):
    dig(project, 3_000)
    with pytest.raises((RecursionError, OSError)):
        list(project.rglob("*"))


def test_a_tree_listing_of_the_chain(project):
    dig(project, 3_000)
    data = execute("ls", project, depth=100)
    assert data["total"] == 100
    deep = "/".join(["d"] * 1_500)
    assert execute("ls", project, path=deep)["entries"] == [{"name": "d", "type": "directory"}]


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

"""Where indexes and locks live: made on demand, hostile contents survived, locks that hold across processes."""

import errno
import fcntl
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import pytest

from rye.errors import WorkspaceError
from rye.sandbox import sandbox
from rye.workspace import cache
from rye.workspace.workspace import Workspace
from support.calling import call
from support.shell_calls import bash, set_sandbox


@pytest.fixture
def ws(project):
    with Workspace(str(project)) as held:
        yield held


def test_neither_place_can_be_written(project, user_space):
    (project / ".ai").write_text("in the way")
    (user_space / ".ai").mkdir()
    (user_space / ".ai/state").write_text("in the way")
    assert call("write", project, file_path="new", content="x")["code"] == "cache_unwritable"
    assert not (project / "new").exists()


def test_a_disk_error_is_no_absence(project, monkeypatch):
    monkeypatch.setattr(cache, "_descend", mock.Mock(side_effect=OSError(5, "Input/output error")))
    assert call("write", project, file_path="new", content="x")["code"] == "io_error"


def test_who_holds_a_lock_is_told_among_many(tmp_path):
    with ExitStack() as stack:
        held = [stack.enter_context((tmp_path / str(number)).open("w")).fileno() for number in range(150)]
        for fd in held:
            fcntl.flock(fd, fcntl.LOCK_EX)
        assert {cache.holder(fd) for fd in held} == {os.getpid()}


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
@pytest.mark.parametrize("what", ["locks", "tools/read/line_index"])
def test_a_clone_that_brings_a_hostile_cache_never_crashes_a_tool(project, kind, what):
    outside = project.parent / "outside"
    outside.write_text("secret")
    (project / "a.txt").write_text("one\ntwo\n")
    folder = project / ".ai/cache" / what
    folder.mkdir(parents=True)
    make = {"link": lambda at: at.symlink_to(outside), "folder": Path.mkdir, "pipe": os.mkfifo}[kind]
    for name in [f"{number:02x}.lock" for number in range(256)] if what == "locks" else [f"{cache.name_of(b'a.txt')}.json"]:
        make(folder / name)
    for tool, more in (("read", {}), ("write", {"content": "new\n"})):
        answer = call(tool, project, file_path="a.txt", **more)
        assert answer.get("code") in (None, "cache_unwritable"), answer
        assert answer["success"] or (what == "locks" and ".ai/cache/locks" in answer["error"])
    assert outside.read_text() == "secret"
    assert (project / "a.txt").read_text() == ("new\n" if answer["success"] else "one\ntwo\n")


def test_a_lock_waits_no_longer_than_the_patience_for_all_of_them(ws):
    other = next(b"%d" % n for n in range(99) if cache.name_of(b"%d" % n)[:2] != cache.name_of(b"file")[:2])
    with cache.locked(ws, b"file"):
        with pytest.raises(WorkspaceError) as caught, cache.locked(ws, b"file", patience=0):
            pass
        assert caught.value.code == "locked"
        with cache.locked(ws, other, patience=0):
            pass
    with cache.locked(ws, b"file", b"file", b"other", patience=0):
        pass
    paths = [b"%d" % number for number in range(30)]
    began = time.monotonic()
    with cache.locked(ws, *paths[20:]), pytest.raises(WorkspaceError) as caught, cache.locked(ws, *paths, patience=0.3):
        pass
    assert "another call of this process" in caught.value.message
    assert time.monotonic() - began < 2


HOLD = "import fcntl, sys, time; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_SH); print(flush=True); time.sleep(60)"


def test_who_holds_a_lock_for_long_is_named_and_not_waited_for(ws, project, monkeypatch):
    monkeypatch.setattr(cache, "_MAX_WAIT", 0.2)
    (project / "f.txt").write_text("a\n")
    (project / "g.txt").write_text("a\n")
    with cache.locked(ws, b"f.txt"), cache.locked(ws, b"g.txt"):
        pass
    lock = project / f".ai/cache/locks/{cache.name_of(b'f.txt')[:2]}.lock"
    # To read the file is enough.
    with subprocess.Popen([sys.executable, "-c", HOLD, lock], stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        began = time.monotonic()
        answer = call("write", project, file_path="f.txt", content="b\n")
        took = time.monotonic() - began
        other.kill()
    assert (answer["code"], answer["pid"], took < 5) == ("locked", other.pid, True)
    assert f"process {other.pid} (python" in answer["error"]
    # Control: once it has ended, the same call writes.
    assert call("write", project, file_path="f.txt", content="b\n")["success"]


@pytest.mark.skipif(bool(sandbox.layers()["bubblewrap"]), reason="bubblewrap does not work here")
def test_a_confined_command_cannot_hold_a_lock(ws, project, user_space):
    with cache.locked(ws, b"f.txt"):
        pass
    (lock,) = (project / ".ai/cache/locks").iterdir()
    asked = f"flock -sn {lock} echo held; ls -A .ai/cache/locks; touch .ai/cache/locks/x"
    output = bash(project, asked)["output"]
    assert ("held" in output.replace("cannot open lock file", ""), lock.name in output.split()) == (False, False)
    # Control: without the sandbox the same command holds it.
    set_sandbox(user_space, "off")
    assert bash(project, asked)["output"].split()[:2] == ["held", lock.name]


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="root passes every permission check; this needs root to set it up")
@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_another_users_lock_file_or_one_that_is_read_only_can_be_locked(ws, project, number):
    with cache.locked(ws, b"file"):
        pass
    for path in (project / ".ai/cache/locks").iterdir():
        path.chmod(0o444)
    real = os.open

    def as_ordinary_user(path, flags, *args, **options):
        if str(path).endswith(".lock") and flags & (os.O_RDWR | os.O_CREAT):
            raise OSError(number, os.strerror(number))
        return real(path, flags, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", as_ordinary_user)
        with cache.locked(ws, b"file"), pytest.raises(WorkspaceError), cache.locked(ws, b"file", patience=0):
            pass

"""What a project's file system is: the kernel's own are refused by their type, and one without locks is locked elsewhere."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rye
from rye.errors import WorkspaceError
from rye.workspace import cache
from rye.workspace.workspace import Workspace
from support.calling import call, ids, undo

MOUNTED = """
import os, subprocess, sys
sys.path.insert(0, sys.argv[3])
project = sys.argv[1]
mount = lambda *words: subprocess.run(["mount", *words], check=True)
mount("--make-rprivate", "/")
mount("-t", "proc", "proc", f"{project}/proc")
mount("--bind", sys.argv[2], "/dev/shm")
import rye
call = lambda root, path: rye.execute("rye/file-system/read", {"file_path": path}, project_path=root)
print(call(project, "proc/version").get("code"), call(f"{project}/proc", "version").get("code"))
mount("-t", "tmpfs", "tmpfs", f"{project}/proc"); open(f"{project}/proc/a.txt", "w").write("x")
print(call("/dev/shm", "a.txt")["status"], call(project, "proc/a.txt")["status"])
"""


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0 or not os.path.isdir("/dev/shm"), reason="needs root, to mount")
def test_mounts_are_judged_by_what_is_mounted_wherever_it_is(tmp_path):
    for folder in ("project/proc", "disk"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in ("project", "disk"):
        (tmp_path / folder / "a.txt").write_text("one\n")
    runtime = str(Path(rye.__file__).parents[1])
    command = ["unshare", "-m", sys.executable, "-c", MOUNTED, tmp_path / "project", tmp_path / "disk", runtime]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("mounts are not allowed here")
    assert done.stdout.split("\n")[:2] == ["not_regular_file bad_project", "success success"], done.stderr


@pytest.fixture
def project(project):
    (project / "a.txt").write_text("one\ntwo\n")
    return project


def without_locks(monkeypatch, *places, number=errno.ENOLCK):
    """Make flock fail for files below some places, as a file system without locks does."""
    real = fcntl.flock
    failed = []

    def flock(fd, how):
        path = os.readlink(f"/proc/self/fd/{fd}")
        if path.startswith(tuple(f"{place}/" for place in places)):
            failed.append(path)
            raise OSError(number, os.strerror(number))
        return real(fd, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    return failed


def edit(project, line_id, text):
    return call("edit_lines", project, file_path="a.txt", changes=[{"line_id": line_id, "new_content": text}])


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS], ids=errno.errorcode.get)
def test_where_the_project_has_no_locks_it_is_read_and_written_with_locks_in_the_state_folder(project, monkeypatch, number):
    failed = without_locks(monkeypatch, project, number=number)
    assert edit(project, ids(project, "a.txt")[0], "ONE")["success"]
    assert undo(project)["success"]
    assert failed
    assert (project / "a.txt").read_text() == "one\ntwo\n"
    # They exclude each other.
    with Workspace(str(project)) as ws, cache.locked(ws, b"a.txt"):
        with pytest.raises(WorkspaceError) as caught, cache.locked(ws, b"a.txt", patience=0):
            pass
        assert caught.value.code == "locked"
        with cache.locked(ws, b"b.txt", patience=0):
            pass


@pytest.mark.parametrize(("number", "said"), [(errno.ENOLCK, "file system"), (errno.EIO, "The file's lock")])
def test_where_nothing_has_locks_files_are_read_and_not_written(project, user_space, monkeypatch, number, said):
    known = ids(project, "a.txt")
    without_locks(monkeypatch, project, user_space, number=number)
    assert number == errno.EIO or ids(project, "a.txt") == known
    refused = edit(project, known[0], "ONE")
    assert (refused["code"] == "no_locks", said in refused["error"]) == (number == errno.ENOLCK, True), refused
    assert ("change_id" in call("rye/bash/bash", project, command="echo x > b")) == (number == errno.ENOLCK)
    assert (project / "a.txt").read_text() == "one\ntwo\n"


def test_a_lock_that_is_given_up_is_free_although_a_forked_process_has_its_descriptor(project):
    with Workspace(str(project)) as ws:
        with cache.locked(ws, b"a.txt"):
            pid = os.fork()
            if pid == 0:
                # Has every descriptor of this process, and lives on.
                os.read(os.pipe()[0], 1)
                os._exit(0)
        try:
            with cache.locked(ws, b"a.txt", patience=0):
                pass
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)

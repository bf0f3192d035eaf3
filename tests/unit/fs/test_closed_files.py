"""A file that its mode closes to its owner is read without its mode being touched, and recorded as any other."""

from __future__ import annotations

import os
import threading

import pytest

from rye.fs import beneath, closed_files
from support.calling import call, done


@pytest.fixture
def folder(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


@pytest.fixture
def closed(tmp_path, folder):
    file = tmp_path / "closed"
    file.write_text("secret of its owner\n")
    file.chmod(0)
    try:
        os.close(closed_files.open_own(folder, "closed", os.O_RDONLY))
    except PermissionError:
        pytest.skip("no user namespaces here")
    return file


def test_it_is_read_and_stays_as_it_is(closed, folder):
    before = closed.stat()
    fds = {*os.listdir("/proc/self/fd")}
    # Also where other threads run.
    end = threading.Event()
    beside = threading.Thread(target=end.wait)
    beside.start()
    try:
        for opened in [closed_files.open_own, beneath.open_file] * 5:
            fd = opened(folder, "closed", os.O_RDONLY)
            with open(fd, "rb") as file:
                assert (os.get_inheritable(fd), file.read()) == (False, b"secret of its owner\n")
    finally:
        end.set()
        beside.join()
    after = closed.stat()
    assert (after.st_mode, after.st_ctime_ns) == (before.st_mode, before.st_ctime_ns)
    assert {*os.listdir("/proc/self/fd")} <= fds | {str(fd) for fd in range(3)}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
@pytest.mark.parametrize("path", ["/etc/shadow", "/proc/1/environ"])
def test_what_belongs_to_others_stays_closed(path):
    fd = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    with pytest.raises(PermissionError):
        beneath.open_file(fd, os.path.basename(path), os.O_RDONLY)
    os.close(fd)


def test_a_pipe_and_a_link_are_not_opened(tmp_path, folder, closed):
    os.mkfifo(tmp_path / "pipe", 0)
    (tmp_path / "link").symlink_to(closed)
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="Permission denied"):
            closed_files.open_own(folder, name, os.O_RDONLY | os.O_NOFOLLOW)


def test_what_a_command_closed_is_recorded_taken_back_and_redone(project, closed):
    (project / "f").write_text("one\n")
    call("rye/bash/bash", project, command="true")
    made = call("rye/bash/bash", project, command="echo two >> f; chmod 000 f")
    assert (made["changed"], "not_recorded" in made) == (["f"], False)
    assert "changed" not in call("rye/bash/bash", project, command="true")
    back = done("undo", project, entry_id=made["change_id"])
    assert ((project / "f").read_text(), (project / "f").stat().st_mode & 0o777) == ("one\n", 0o644)
    done("undo", project, entry_id=back["entry_id"])
    assert (project / "f").stat().st_mode & 0o777 == 0
    (project / "f").chmod(0o600)
    assert (project / "f").read_text() == "one\ntwo\n"

"""Replacing a file while the system fails: the old content, nothing left behind, no descriptor lost."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from rye.call import context
from rye.errors import DeadlineError
from rye.workspace import atomic_replace
from support.replacing import FOREIGN, NEW, OLD, by_rename, left_behind, placed, put, refused, take


def failing(monkeypatch, name, code, times=None):
    real, left = getattr(os, name), [times if times is not None else 1 << 30]

    def call(*args, **options):
        if left[0] > 0:
            left[0] -= 1
            raise OSError(code, os.strerror(code))
        return real(*args, **options)

    monkeypatch.setattr(os, name, call)


@pytest.mark.parametrize("name", ["write", "fsync", "fchmod", "fstat"])
@pytest.mark.parametrize(("code", "said"), [(errno.ENOSPC, "no_space"), (errno.EIO, "io_error"), (errno.EROFS, "read_only")])
def test_a_failing_call_leaves_the_old_file_and_nothing_else(project, file, way, monkeypatch, name, code, said):
    with placed(project) as place:
        descriptors = len(os.listdir("/proc/self/fd"))
        failing(monkeypatch, name, code)
        refused(said, atomic_replace.replace, place, NEW, atomic_replace.digest_of(OLD), atomic_replace.temporary_name())
        monkeypatch.undo()
        assert len(os.listdir("/proc/self/fd")) == descriptors
    assert file.read_bytes() == OLD
    assert os.listdir(project) == ["file"]


def test_short_writes_are_continued(project, file, way, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[: max(1, len(data) // 2)]))
    data = os.urandom(10_000)
    put(project, data)
    assert file.read_bytes() == data


@pytest.mark.parametrize("action", ["replace", "create", "remove"])
def test_a_directory_that_cannot_be_synced_gets_its_old_content_back(project, file, monkeypatch, action):
    real = os.fsync

    def fsync(fd):
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EIO, "dying")
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    if action == "create":
        file.unlink()
        refused("io_error", put, project, expected=None)
        assert os.listdir(project) == []
        return
    refused("io_error", take if action == "remove" else put, project)
    assert file.read_bytes() == OLD
    assert os.listdir(project) == ["file"]


@pytest.mark.parametrize("action", [put, None])
def test_a_file_system_without_directory_sync_is_written(project, file, monkeypatch, action):
    real = os.fsync

    def fsync(fd):
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "no such thing")
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    (action or take)(project)
    assert os.listdir(project) == (["file"] if action else [])


def test_when_nothing_works_any_more_both_contents_remain_and_the_caller_is_told(project, file, monkeypatch):
    real, seen = atomic_replace.rename, []

    def rename(*args):
        seen.append(args)
        if len(seen) > 1:
            raise OSError(errno.EIO, "dead")
        real(*args)

    monkeypatch.setattr(atomic_replace, "rename", rename)
    err = refused("unsettled", put, project, meanwhile=lambda: by_rename(file))
    (aside,) = left_behind(project)
    assert aside.name in err.message
    assert {file.read_bytes(), aside.read_bytes()} == {NEW, FOREIGN}


def test_after_the_deadline_nothing_is_written(project, file):
    limit = context.Deadline(60)
    with placed(project) as place, context.using(deadline=limit):
        limit.expire()
        for call in (
            lambda: atomic_replace.replace(place, NEW, atomic_replace.digest_of(OLD), atomic_replace.temporary_name()),
            lambda: atomic_replace.remove(place, atomic_replace.digest_of(OLD), atomic_replace.temporary_name()),
        ):
            with pytest.raises(DeadlineError):
                call()
    assert file.read_bytes() == OLD

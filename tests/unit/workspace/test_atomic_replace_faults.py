"""Replacing a file while the system fails: the old content, nothing left behind, no descriptor lost."""

from __future__ import annotations

import errno
import os
import stat

import pytest

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


@pytest.mark.parametrize("synced", ["never here", "not now"])
@pytest.mark.parametrize(("old", "new"), [(OLD, NEW), (None, NEW), (OLD, None)], ids=["replace", "create", "remove"])
def test_where_a_folder_cannot_be_synced_now_the_old_content_comes_back(project, file, monkeypatch, old, new, synced):
    """A file system that never syncs folders is written."""
    real = os.fsync

    def fsync(fd):
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EIO if synced == "not now" else errno.EINVAL, "no")
        real(fd)

    def change():
        take(project) if new is None else put(project, expected=old)

    monkeypatch.setattr(os, "fsync", fsync)
    if old is None:
        file.unlink()
    refused("io_error", change) if synced == "not now" else change()
    assert (file.read_bytes() if file.exists() else None) == (old if synced == "not now" else new)
    assert not left_behind(project)


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

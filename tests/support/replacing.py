"""What the tests of replacing files share."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager

import pytest

from rye.errors import WorkspaceError
from rye.fs import beneath
from rye.workspace import atomic_replace
from rye.workspace.workspace import Workspace

ROOT = os.geteuid() == 0
OLD, NEW, FOREIGN = b"old content\n", b"new content\n", b"someone else's\n"


@contextmanager
def placed(project, path="file"):
    with Workspace(str(project)) as ws, ws.place(path) as place:
        yield place


def put(project, data=NEW, expected=OLD, path="file", meanwhile=None):
    with placed(project, path) as place:
        if meanwhile:
            meanwhile()
        atomic_replace.replace(
            place, data, None if expected is None else atomic_replace.digest_of(expected), atomic_replace.temporary_name()
        )


def refused(code, call, *args, **options):
    with pytest.raises(WorkspaceError) as caught:
        call(*args, **options)
    assert caught.value.code == code, caught.value
    assert caught.value.hint
    return caught.value


def without(monkeypatch, *flags, code=errno.ENOSYS):
    real = atomic_replace.rename

    def rename(dir_fd, source, target, wanted):
        if wanted in flags:
            raise OSError(code, os.strerror(code))
        real(dir_fd, source, target, wanted)

    for module in (beneath, atomic_replace):
        monkeypatch.setattr(module, "rename", rename)


def left_behind(project):
    return [*project.glob(".rye-*.tmp")]


def take(project, expected=OLD, meanwhile=None):
    with placed(project) as place:
        if meanwhile:
            meanwhile()
        atomic_replace.remove(place, atomic_replace.digest_of(expected), atomic_replace.temporary_name())


def by_rename(file):
    aside = file.parent.parent / "aside"
    aside.write_bytes(FOREIGN)
    aside.replace(file)

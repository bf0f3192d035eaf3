"""Replacing a file: what survives, what is detected, and that nothing stays behind, also while the system fails."""

import ctypes
import errno
import os
import stat
import struct
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from rye.errors import WorkspaceError
from rye.fs import beneath
from rye.workspace import atomic_replace
from rye.workspace.workspace import Workspace
from support.replacing import without

OLD, NEW, FOREIGN = b"old content\n", b"new content\n", b"someone else's\n"


@pytest.fixture
def file(project):
    path = project / "file"
    path.write_bytes(OLD)
    return path


@pytest.fixture(params=["exchange", "check-then-rename"])
def way(request, monkeypatch):
    """Also a file system that cannot exchange."""
    if request.param != "exchange":
        without(monkeypatch, beneath.EXCHANGE)


@contextmanager
def placed(project, path="file"):
    with Workspace(str(project)) as ws, ws.place(path) as place:
        yield place


def put(project, data=NEW, expected=OLD, meanwhile=None):
    with placed(project) as place:
        if meanwhile:
            meanwhile()
        digest = None if expected is None else atomic_replace.digest_of(expected)
        atomic_replace.replace(place, data, digest, atomic_replace.temporary_name())


def take(project, expected=OLD, meanwhile=None):
    put(project, None, expected, meanwhile)


def refused(code, call, *args, **options):
    with pytest.raises(WorkspaceError) as caught:
        call(*args, **options)
    assert (caught.value.code, bool(caught.value.hint)) == (code, True), caught.value
    return caught.value


def left_behind(project):
    return [*project.glob(".rye-*.tmp")]


def by_rename(file, content=FOREIGN):
    aside = file.parent.parent / "aside"
    aside.write_bytes(content)
    aside.replace(file)


def facts(file):
    """What a file is beside its content."""
    info = file.stat()
    attributes = {name: os.getxattr(file, name) for name in os.listxattr(file)}
    return stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid, attributes


# version 2; user::rw-, user:1234:r--, group::r--, mask::r--, other::r--
ACL = struct.pack("<I" + "HHI" * 5, 2, 1, 6, 2**32 - 1, 2, 4, 1234, 4, 4, 2**32 - 1, 16, 4, 2**32 - 1, 32, 4, 2**32 - 1)
PREPARED = {
    **{f"mode {mode:o}": lambda file, mode=mode: file.chmod(mode) for mode in (0o644, 0o600, 0o755, 0o444, 0o1666, 0o000)},
    "another owner": lambda file: os.chown(file, 1234, 4321),
    "attributes": lambda file: [os.setxattr(file, f"user.{name}", name.encode()) for name in "abc"],
    "an access list": lambda file: os.setxattr(file, "system.posix_acl_access", ACL),
}


@pytest.mark.parametrize("what", PREPARED)
def test_what_a_file_is_beside_its_content_survives(project, file, way, what):
    try:
        PREPARED[what](file)
        file.read_bytes()
    except OSError as err:
        pytest.skip(f"not here, or not as this user: {err}")
    before = facts(file)
    put(project)
    assert (file.read_bytes(), facts(file)) == (NEW, before)
    assert not left_behind(project)


def test_an_attribute_that_cannot_be_kept_does_not_cost_the_others(project, file, monkeypatch):
    PREPARED["attributes"](file)
    real = os.setxattr
    monkeypatch.setattr(
        os, "setxattr", lambda fd, name, value: (failing(errno.EPERM) if name == "user.b" else real)(fd, name, value)
    )
    put(project)
    assert sorted(os.listxattr(file)) == ["user.a", "user.c"]


def test_a_new_file_obeys_the_umask_or_the_mode_given(project):
    old = os.umask(0o027)
    try:
        put(project, expected=None)
        assert stat.S_IMODE((project / "file").stat().st_mode) == 0o640
        with placed(project, "script") as place:
            atomic_replace.replace(place, NEW, None, atomic_replace.temporary_name(), mode=0o751)
        assert stat.S_IMODE((project / "script").stat().st_mode) == 0o751
    finally:
        os.umask(old)


def instead(make):
    """Return what puts something else in a file's place."""
    return lambda file: (file.unlink(missing_ok=True), make(file))


def is_foreign(file):
    return file.read_bytes() == FOREIGN


# What another program does meanwhile, and whether it stands there afterwards.
MEANWHILE = {
    "gone": (os.unlink, lambda file: not os.path.lexists(file)),
    "changed": (lambda file: file.write_bytes(FOREIGN), is_foreign),
    "renamed": (by_rename, is_foreign),
    "folder": (instead(os.mkdir), os.path.isdir),
    "link": (instead(lambda file: file.symlink_to("/etc/passwd")), os.path.islink),
    "pipe": (instead(os.mkfifo), lambda file: file.is_fifo()),
}


@pytest.mark.parametrize("kind", MEANWHILE)
def test_whatever_stands_there_instead_is_a_conflict_and_stays(project, file, way, kind):
    make, stands = MEANWHILE[kind]
    refused("conflict", put, project, meanwhile=lambda: make(file))
    assert not left_behind(project)
    assert stands(file)


def failing(number):
    return lambda *_, **__: (_ for _ in ()).throw(OSError(number, os.strerror(number)))


def library(**more):
    """A C library without renameat2."""
    return SimpleNamespace(**{name: getattr(beneath._libc, name) for name in ("syscall", "fstatfs", "statx")}, **more)


@pytest.fixture(params=[True, False])
def kernel(request, monkeypatch):
    """Also a C library without renameat2, on a file system that has no modes."""
    if not request.param:
        monkeypatch.setattr(beneath, "_libc", library())
        monkeypatch.setattr(os, "fchmod", failing(errno.ENOSYS))


def test_another_users_file_in_a_sticky_folder_gets_no_second_name(project, file, monkeypatch):
    """It got a hard link, which nobody but its owner could remove, and more of them at each call."""
    monkeypatch.setattr(beneath, "_libc", library(renameat2=lambda *_: ctypes.set_errno(errno.EPERM) or -1))
    for name in ("rename", "unlink"):
        monkeypatch.setattr(os, name, failing(errno.EPERM))
    refused("permission_denied", take, project)
    assert os.listdir(project) == ["file"]


@pytest.mark.parametrize("kind", ["changed", "folder", "link", "pipe"])
def test_a_new_file_never_replaces_what_appeared_meanwhile(project, kernel, kind):
    make, stands = MEANWHILE[kind]
    refused("conflict", put, project, expected=None, meanwhile=lambda: make(project / "file"))
    assert (os.listdir(project), stands(project / "file")) == (["file"], True)


def test_deleting_what_is_known_and_nothing_else(project, file, kernel):
    refused("conflict", take, project, meanwhile=lambda: file.write_bytes(FOREIGN))
    assert (file.read_bytes(), os.listdir(project)) == (FOREIGN, ["file"])
    file.chmod(0o600)
    put(project, NEW, FOREIGN)
    take(project, NEW)
    put(project, expected=None)
    assert (file.read_bytes(), os.listdir(project)) == (NEW, ["file"])


NEWEST = b"the newest"
# What was to be done, what another program did before it and does as that is put back; the file then, and what is kept.
PUT_BACK = {
    "a second change": (put, by_rename, lambda file: by_rename(file, NEWEST), FOREIGN, [NEWEST]),
    "deleted": (put, by_rename, os.unlink, FOREIGN, []),
    "made again": (take, by_rename, lambda file: by_rename(file, NEWEST), NEWEST, [FOREIGN]),
}


@pytest.mark.parametrize("name", PUT_BACK)
def test_what_changes_as_another_content_is_put_back_is_kept_in_sight(project, file, monkeypatch, name):
    action, before, then, stands, kept = PUT_BACK[name]
    real, seen = atomic_replace.rename, []

    def rename(*args):
        seen.append(args)
        if len(seen) == 2:
            then(file)
        real(*args)

    monkeypatch.setattr(atomic_replace, "rename", rename)
    refused("conflict", action, project, meanwhile=lambda: before(file))
    assert (file.read_bytes(), [path.read_bytes() for path in project.glob("file.*.rye-conflict")]) == (stands, kept)
    assert not left_behind(project)


@pytest.mark.parametrize("name", ["write", "fsync", "fchmod", "fstat"])
@pytest.mark.parametrize(("code", "said"), [(errno.ENOSPC, "no_space"), (errno.EIO, "io_error"), (errno.EROFS, "read_only")])
def test_a_failing_call_leaves_the_old_file_and_nothing_else(project, file, way, monkeypatch, name, code, said):
    with placed(project) as place:
        descriptors = len(os.listdir("/proc/self/fd"))
        monkeypatch.setattr(os, name, failing(code))
        refused(said, atomic_replace.replace, place, NEW, atomic_replace.digest_of(OLD), atomic_replace.temporary_name())
        monkeypatch.undo()
        assert len(os.listdir("/proc/self/fd")) == descriptors
    assert (file.read_bytes(), os.listdir(project)) == (OLD, ["file"])


def test_short_writes_are_continued(project, file, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[: max(1, len(data) // 2)]))
    data = os.urandom(10_000)
    put(project, data)
    assert file.read_bytes() == data


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

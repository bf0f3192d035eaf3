"""Replacing a file: what survives, what is detected, and that nothing stays behind."""

from __future__ import annotations

import errno
import os
import stat
import struct
from types import SimpleNamespace

import pytest

from rye.fs import beneath
from rye.workspace import atomic_replace
from support.replacing import FOREIGN, NEW, ROOT, by_rename, left_behind, placed, put, refused, take


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


def test_a_set_id_bit_never_passes_to_another_owner(project, file, monkeypatch):
    os.chmod(file, 0o6755)
    if ROOT:
        os.chown(file, 1234, 4321)
        file.chmod(0o6755)
    monkeypatch.setattr(os, "fchown", lambda *_: (_ for _ in ()).throw(PermissionError(errno.EPERM, "no")))
    put(project)
    assert stat.S_IMODE(file.stat().st_mode) == 0o755


def test_an_attribute_that_cannot_be_kept_does_not_cost_the_others(project, file, monkeypatch):
    PREPARED["attributes"](file)
    real, denied = os.setxattr, []

    def setxattr(target, name, value):
        if not denied:
            denied.append(name)
            raise PermissionError(errno.EPERM, "no")
        real(target, name, value)

    monkeypatch.setattr(os, "setxattr", setxattr)
    put(project)
    assert sorted([*os.listxattr(file), *denied]) == ["user.a", "user.b", "user.c"]


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


# --- someone else at the same file ---


def become(file, kind):
    if kind != "changed":
        file.unlink(missing_ok=True)
    {
        "gone": lambda: None,
        "changed": lambda: file.write_bytes(FOREIGN),
        "folder": file.mkdir,
        "link": lambda: file.symlink_to("/etc/passwd"),
        "pipe": lambda: os.mkfifo(file),
        "renamed": lambda: by_rename(file),
    }[kind]()


@pytest.mark.parametrize("kind", ["gone", "changed", "folder", "link", "pipe", "renamed"])
def test_whatever_stands_there_instead_is_a_conflict_and_stays(project, file, way, kind):
    refused("conflict", put, project, meanwhile=lambda: become(file, kind))
    assert not left_behind(project)
    what = file.lstat().st_mode if kind != "gone" else 0
    assert {
        "gone": not os.path.lexists(file),
        "folder": stat.S_ISDIR(what),
        "link": stat.S_ISLNK(what),
        "pipe": stat.S_ISFIFO(what),
    }.get(kind, kind in ("changed", "renamed") and file.read_bytes() == FOREIGN)


@pytest.mark.parametrize("kind", ["changed", "folder", "link", "pipe"])
@pytest.mark.parametrize("kernel", [True, False])
def test_a_new_file_never_replaces_what_appeared_meanwhile(project, monkeypatch, kind, kernel):
    if not kernel:
        no_renameat2(monkeypatch)
    file = project / "file"
    refused("conflict", put, project, expected=None, meanwhile=lambda: become(file, kind))
    assert os.listdir(project) == ["file"]
    if kind == "changed":
        assert file.read_bytes() == FOREIGN


def no_renameat2(monkeypatch):
    others = {name: getattr(beneath._libc, name) for name in ("syscall", "fstatfs", "statx")}
    monkeypatch.setattr(beneath, "_libc", SimpleNamespace(**others))


def at_rename(monkeypatch, number, action):
    """Do something right before the n-th rename of a replacement."""
    real, seen = atomic_replace.rename, []

    def rename(*args):
        seen.append(args)
        if len(seen) == number:
            action()
        real(*args)

    monkeypatch.setattr(atomic_replace, "rename", rename)


# --- deleting ---


@pytest.mark.parametrize("kernel", [True, False])
def test_deleting_what_is_known_and_nothing_else(project, file, monkeypatch, kernel):
    if not kernel:
        no_renameat2(monkeypatch)
    refused("conflict", take, project, meanwhile=lambda: file.write_bytes(FOREIGN))
    assert file.read_bytes() == FOREIGN
    assert os.listdir(project) == ["file"]
    take(project, FOREIGN)
    assert os.listdir(project) == []


NEWEST = b"the newest"


def by_newest(file):
    newer = file.parent.parent / "newer"
    newer.write_bytes(NEWEST)
    newer.replace(file)


# What was to be done, what another program did before it, and what it does as that is put back; the file then, and what is kept.
PUT_BACK = {
    "a second change": (put, by_rename, by_newest, FOREIGN, [NEWEST]),
    "deleted": (put, by_rename, os.unlink, FOREIGN, []),
    "made again": (take, by_rename, by_newest, NEWEST, [FOREIGN]),
}


@pytest.mark.parametrize("name", PUT_BACK)
def test_what_changes_as_another_content_is_put_back_is_kept_in_sight(project, file, monkeypatch, name):
    action, before, then, stands, kept = PUT_BACK[name]
    at_rename(monkeypatch, 2, lambda: then(file))
    refused("conflict", action, project, meanwhile=lambda: before(file))
    assert file.read_bytes() == stands
    assert [path.read_bytes() for path in project.glob("file.*.rye-conflict")] == kept
    assert not left_behind(project)

"""Reads and writes racing with a process that exchanges a folder and a link leading out: none may escape."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

import rye
from rye.errors import WorkspaceError
from rye.fs import beneath
from rye.workspace import atomic_replace
from rye.workspace.workspace import Workspace
from support.harness import can_exchange, exchanging, fingerprint, times

SECRET = b"THE SECRET\n"
INSIDE = b"inside\n"
# What a refusal may be while names change under the call.
EXPECTED = {"path_outside", "file_not_found", "symlink_loop", "conflict", "not_a_directory", "is_directory"}


@dataclass
class Tally:
    fine: int = 0
    refused: int = 0
    escaped: int = 0

    def __str__(self) -> str:
        return f"{self.fine} inside, {self.refused} refused, {self.escaped} escaped"


def arena(tmp_path: Path) -> Path:
    """A project whose `dir` is exchanged with `link`, which leads out; both names hold `f`."""
    shutil.rmtree(tmp_path / "race", ignore_errors=True)
    project = tmp_path / "race/project"
    (project / "dir/sub").mkdir(parents=True)
    outside = tmp_path / "race/outside"
    (outside / "sub").mkdir(parents=True)
    for folder, content in ((project / "dir", INSIDE), (outside, SECRET)):
        for name in ("f", "sub/f"):
            (folder / name).write_bytes(content)
    (project / "link").symlink_to("../outside")
    # An absolute link that stays inside, through the folder that is exchanged.
    (project / "absolute").symlink_to(project / "dir")
    return project


PATHS = ("dir/f", "link/f", "dir/sub/f", "dir/../dir/f", "dir/sub/../f", "absolute/f", "absolute/sub/f")


def race(project: Path, attempts: int, one, until: int = 0) -> Tally:
    """Call `one(path, number)` in a race; it returns the bytes it saw, or None when it was refused.

    With `until`, go on (up to ten times as long) until so many have escaped.
    """
    tally = Tally()
    with exchanging(project / "dir", project / "link") as swaps:
        number = 0
        while number < attempts or (tally.escaped < until and number < 10 * attempts):
            seen = one(PATHS[number % len(PATHS)], number)
            tally.refused += seen is None
            tally.escaped += seen is not None and SECRET.strip() in seen
            tally.fine += seen is not None and SECRET.strip() not in seen
            number += 1
    assert swaps[0] > 100, "the other process did not get to work"
    return tally


# --- reads ---


def read_by_workspace(project):
    ws = Workspace(str(project))

    def one(path, number):
        try:
            with ws.file(path) as file:
                return file.read()
        except WorkspaceError as err:
            if err.code not in EXPECTED:
                raise
            return None

    return one


def read_by_tool(project):
    def one(path, number):
        response = rye.execute("rye/file-system/read", {"file_path": path}, project_path=project)
        assert response.get("code") in EXPECTED | {None}, response
        seen = str(response).encode()
        return seen if response["status"] == "success" or SECRET.strip() in seen else None

    return one


def read_by_realpath(project):
    """The naive way: resolve, compare, then open."""
    root = os.path.realpath(project)

    def one(path, number):
        try:
            if not os.path.realpath(f"{root}/{path}").startswith(f"{root}/"):
                return None
            with open(f"{root}/{path}", "rb") as file:
                return file.read()
        except OSError:
            return None

    return one


# --- writes ---


def landed_outside(project, number):
    """Take away what the last write put outside."""
    found = list((project.parent / "outside").rglob(f"w{number}*"))
    for path in found:
        path.unlink()
    return bool(found)


def write_by_workspace(project):
    ws = Workspace(str(project))

    def one(path, number):
        try:
            with ws.place(f"{os.path.dirname(path)}/w{number}") as place:
                atomic_replace.replace(place, INSIDE, None, atomic_replace.temporary_name())
        except WorkspaceError as err:
            if err.code not in EXPECTED:
                raise
            return SECRET if landed_outside(project, number) else None
        return SECRET if landed_outside(project, number) else INSIDE

    return one


def write_by_tool(project):
    def one(path, number):
        target = f"{os.path.dirname(path)}/w{number}/deep" if number % 2 else f"{os.path.dirname(path)}/w{number}"
        response = rye.execute("rye/file-system/write", {"file_path": target, "content": "x\n"}, project_path=project)
        assert response.get("code") in EXPECTED | {None}, response
        if landed_outside(project, number):
            return SECRET
        return INSIDE if response["status"] == "success" else None

    return one


def write_by_realpath(project):
    root = os.path.realpath(project)

    def one(path, number):
        target = f"{root}/{os.path.dirname(path)}/w{number}"
        try:
            if not os.path.realpath(target).startswith(f"{root}/"):
                return None
            with open(target, "wb") as file:
                file.write(INSIDE)
        except OSError:
            return None
        return SECRET if landed_outside(project, number) else INSIDE

    return one


def subject(tmp_path, monkeypatch_available, way, attempts):
    """Race one of our ways; nothing outside may have been read or changed."""
    beneath._available = monkeypatch_available
    project = arena(tmp_path)
    before = fingerprint(project.parent / "outside")
    tally = race(project, attempts, way(project))
    assert fingerprint(project.parent / "outside") == before
    assert tally.escaped == 0, tally
    assert tally.fine > 0, f"nothing ever succeeded: {tally}"
    return tally


@pytest.fixture(autouse=True)
def _asked_again(monkeypatch, tmp_path):
    monkeypatch.setattr(beneath, "_available", beneath._available)
    if not can_exchange(tmp_path):
        pytest.skip("this file system cannot exchange two names")


WAYS = [
    pytest.param(True, id="openat2", marks=pytest.mark.skipif(not beneath._kernel_can(), reason="no openat2")),
    pytest.param(False, id="walk"),
]


@pytest.mark.parametrize("available", WAYS)
def test_no_read_escapes(tmp_path, available):
    print("by workspace:", subject(tmp_path, available, read_by_workspace, times(3_000)))
    print("by tool:", subject(tmp_path, available, read_by_tool, times(150)))


@pytest.mark.parametrize("available", WAYS)
def test_no_write_escapes(tmp_path, available):
    print("by workspace:", subject(tmp_path, available, write_by_workspace, times(1_000)))
    print("by tool:", subject(tmp_path, available, write_by_tool, times(100)))


@pytest.mark.parametrize("naive", [read_by_realpath, write_by_realpath])
def test_the_naive_way_does(tmp_path, naive):
    project = arena(tmp_path)
    tally = race(project, 3_000, naive(project), until=1)
    print(tally)
    assert tally.escaped > 0

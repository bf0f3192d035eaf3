"""Epochs of line IDs: counted for each file, for good, in little room."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from rye.config import user_dirs
from rye.line_ids import epochs
from rye.line_ids.store import FOLDER
from rye.workspace.workspace import Workspace


@pytest.fixture
def ws(project):
    with Workspace(str(project)) as one:
        yield one


def begin(ws, path):
    return epochs.next_epoch(ws, path, FOLDER)


def folder(ws):
    return Path(user_dirs.state_dir(ws.fd), epochs.FOLDER)


def test_each_file_has_its_own_count(ws):
    assert [begin(ws, path) for path in (b"a", b"b", b"a", b"a")] == [1, 1, 2, 3]


def test_unused_epochs_go_into_one_file_and_are_counted_on(ws):
    names = [b"%d" % number for number in range(50)]
    for path in [*names, *names[:10]]:
        begin(ws, path)
    past, day = time.time() - 31 * 86_400, time.time() - 90_000
    for file in folder(ws).iterdir():
        os.utime(file, (past, past))
    os.utime(folder(ws) / ".packed", (day, day))
    assert begin(ws, b"new") == 1
    left = [file.name for file in folder(ws).iterdir() if not file.name.startswith(".")]
    assert len(left) == 2
    assert [begin(ws, path) for path in names] == [3] * 10 + [2] * 40


def test_a_damaged_line_of_the_one_file_costs_only_its_own(ws):
    begin(ws, b"a")
    name = next(file.name for file in folder(ws).iterdir() if not file.name.startswith("."))
    (folder(ws) / name).unlink()
    (folder(ws) / "old").write_bytes(b"\xff garbage\nx y\n%b 7\n" % name.encode())
    assert begin(ws, b"a") == 8


def test_merged_folders_have_the_higher_epoch_of_each_file(ws, tmp_path):
    begin(ws, b"a")
    begin(ws, b"b")
    own = sorted(file for file in folder(ws).iterdir() if not file.name.startswith("."))
    other = tmp_path / "other"
    other.mkdir()
    (other / own[0].name).write_text("9\n")
    (other / "old").write_text(f"{own[1].name} 4\n{'c' * 16} 5\n")
    epochs.merge(other, folder(ws))
    assert sorted([begin(ws, b"a"), begin(ws, b"b")]) == [5, 10]
    assert f"{'c' * 16} 5" in (folder(ws) / "old").read_text()

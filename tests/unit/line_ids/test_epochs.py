"""Epochs of line IDs: counted for each file, for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from rye.config import user_dirs
from rye.line_ids import epochs
from rye.line_ids.store import FOLDER
from rye.workspace import cache
from rye.workspace.workspace import Workspace


@pytest.fixture
def ws(project):
    with Workspace(str(project)) as one:
        yield one


def begin(ws, path):
    return epochs.next_epoch(ws, path, FOLDER)


def file(ws):
    return Path(user_dirs.state_dir(ws.fd), epochs.FILE)


def test_each_file_has_its_own_count(ws):
    assert [begin(ws, path) for path in (b"a", b"b", b"a", b"a")] == [1, 1, 2, 3]
    epochs.give_back(ws, b"a", 3)
    assert [begin(ws, path) for path in (b"a", b"b")] == [3, 2]


def test_a_damaged_row_costs_only_its_own(ws):
    name = cache.name_of(b"a")
    file(ws).write_bytes(b"\xff garbage\nx y\n%b 7\nhalf" % name.encode())
    assert begin(ws, b"a") == 8


def test_merged_lists_have_the_higher_epoch_of_each_file(ws, tmp_path):
    for path in (b"a", b"b", b"b", b"b"):
        begin(ws, path)
    one, other, third = (cache.name_of(path) for path in (b"a", b"b", b"c"))
    (tmp_path / "lost").write_text(f"{one} 9\n{other} 2\n{third} 5\n")
    epochs.merge(tmp_path / "lost", file(ws))
    assert [begin(ws, path) for path in (b"a", b"b", b"c")] == [10, 4, 6]

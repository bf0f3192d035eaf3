"""The store of contents: each once, in parts, bounded on the disk, and never in memory whole."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest

import rye
from rye.config import user_dirs
from rye.snapshots.contents import Contents

RUNTIME = str(Path(rye.__file__).parents[1])
MB = 1 << 20


def added(store: Contents, path: Path, most: int = 1 << 40) -> tuple[bytes, int] | None:
    fd = os.open(path, os.O_RDONLY)
    try:
        found = store.add(fd, most)
        return found and found[:2]
    finally:
        os.close(fd)


@pytest.mark.parametrize("size", [0, 1, 8 * MB - 1, 8 * MB, 8 * MB + 1, 20 * MB])
def test_every_size_comes_back(tmp_path, size):
    data = os.urandom(size // 2) + bytes(size - size // 2)
    (tmp_path / "f").write_bytes(data)
    with Contents(tmp_path / "store") as store:
        assert added(store, tmp_path / "f") == (sha256(data).digest(), size)
        store.save()
        before = store.disk_size()
        assert store.put(data) == sha256(data).digest()
        assert store.disk_size() == before
        assert store.put(data + b"x") != sha256(data).digest()
    with Contents(tmp_path / "store") as store:
        assert store.read(sha256(data).digest()) == data
        assert store.is_whole(sha256(data).digest())
        assert all(len(block) <= 8 * MB for block in store.blocks(sha256(data).digest()))


def test_a_file_beyond_the_limit_is_not_stored(tmp_path):
    (tmp_path / "f").write_bytes(bytes(100))
    with Contents(tmp_path / "store") as store:
        assert added(store, tmp_path / "f", 99) is None
        assert added(store, tmp_path / "f", 100) is not None


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM part WHERE number = 2",
        "UPDATE part SET data = x'00' WHERE number = 1",
        "UPDATE part SET number = 9 WHERE number = 1",
    ],
)
def test_a_damaged_part_counts_as_missing(tmp_path, damage):
    data = os.urandom(20 * MB)
    with Contents(tmp_path / "store") as store:
        digest = store.put(data)
        store.save()
    with sqlite3.connect(tmp_path / "store/contents.sqlite") as db:
        db.execute(damage)
    db.close()
    with Contents(tmp_path / "store") as store:
        assert store.read(digest) is None
        assert not store.is_whole(digest)


def test_what_is_dropped_is_given_back_to_the_disk(tmp_path):
    with Contents(tmp_path / "store") as store:
        digests = [store.put(os.urandom(MB)) for _ in range(40)]
        digests.append(store.put(os.urandom(20 * MB)))
        store.save()
        store.keep_only(set(digests[:3]))
        assert [store.has(one) for one in digests[:4]] == [True, True, True, False]
        taken = sum(path.stat().st_size for path in (tmp_path / "store").iterdir())
        assert 3 * MB < taken < 4 * MB


def test_a_store_that_was_made_without_that_learns_it(tmp_path):
    (tmp_path / "store").mkdir()
    db = sqlite3.connect(tmp_path / "store/contents.sqlite")
    db.execute(
        "CREATE TABLE content (digest BLOB PRIMARY KEY, size INTEGER NOT NULL, packed INTEGER NOT NULL, data BLOB NOT NULL)"
    )
    kept, gone = os.urandom(1000), os.urandom(4 * MB)
    db.executemany("INSERT INTO content VALUES (?, ?, 0, ?)", [(sha256(one).digest(), len(one), one) for one in (kept, gone)])
    db.commit()
    db.close()
    with Contents(tmp_path / "store") as store:
        store.keep_only({sha256(kept).digest()})
        assert store.read(sha256(kept).digest()) == kept
    assert (tmp_path / "store/contents.sqlite").stat().st_size < MB


def test_a_reader_does_not_wait_for_a_writer(tmp_path):
    with Contents(tmp_path / "store") as store:
        old = store.put(b"old")
        store.save()
        store.put(b"new")
        started = time.monotonic()
        with Contents(tmp_path / "store") as other:
            assert other.read(old) == b"old"
        # A wait takes 30 s.
        assert time.monotonic() - started < 20


def test_the_log_stays_small(tmp_path):
    with Contents(tmp_path / "store") as store:
        for _ in range(60):
            store.put(os.urandom(MB))
            assert (tmp_path / "store/contents.sqlite-wal").stat().st_size < 24 * MB


_UNDER_LIMIT = """
import os, resource, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from rye.journal import tree_changes, tree_undo, journal
from rye.edits import undo
from rye.workspace import running_commands
from rye.workspace.workspace import Workspace
project, size = sys.argv[2], int(sys.argv[3])
def changed(change):
    with Workspace(project) as ws:
        recording = tree_changes.begin(ws, running_commands.begin(ws.fd), "rye/bash/bash", "x")
        change()
        return tree_changes.end(ws, recording)
large = Path(project, "large")
changed(lambda: None)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def grow():
    with open(large, "wb") as file:
        for _ in range(size >> 20):
            file.write(os.urandom(4096) + bytes((1 << 20) - 4096))
made = changed(grow)
assert not made.left_out, made.left_out
gone = changed(large.unlink)
undo.undo(project, gone.entry_id)
assert large.stat().st_size == size
undo.undo(project, made.entry_id)
assert not large.exists()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def handled(project: Path, user_space: Path, size: int) -> int:
    """Record, remove and bring back a file of a size; return by how much the process grew (bytes)."""
    (user_space / ".ai/config").mkdir(parents=True)
    (user_space / ".ai/config/rye.yaml").write_text("record: {max_file_bytes: 2147483648, max_bytes: 4294967296}\n")
    command = [sys.executable, "-I", "-c", _UNDER_LIMIT, RUNTIME, str(project), str(size)]
    environment = {**os.environ, "USER_SPACE": str(user_space)}
    return int(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout) * 1024


def test_a_large_file_is_never_in_memory_whole(project, user_space):
    # 8 MB parts, several of them at a time on their way into the database.
    assert handled(project, user_space, 128 * MB) < 64 * MB


@pytest.mark.full
def test_a_file_of_one_gigabyte(project, user_space):
    assert handled(project, user_space, 1024 * MB) < 64 * MB


def test_the_state_folder_stays_within_its_bounds(project, user_space):
    (user_space / ".ai/config").mkdir(parents=True)
    (user_space / ".ai/config/rye.yaml").write_text("record: {max_bytes: 8388608}\njournal: {max_bytes: 1048576}\n")
    from rye.journal import tree_changes
    from rye.workspace import running_commands
    from rye.workspace.workspace import Workspace

    for number in range(24):
        with Workspace(str(project)) as ws:
            recording = tree_changes.begin(ws, running_commands.begin(ws.fd), "rye/bash/bash", "x")
            (project / f"f{number % 5}").write_bytes(os.urandom(MB))
            found = tree_changes.end(ws, recording)
        state = Path(user_dirs.state_dir(str(project)))
        taken = sum(path.stat().st_size for path in state.rglob("*") if path.is_file())
        # The database's log comes on top until it is written back.
        assert taken < 8 * MB + MB + 4 * MB, (number, taken)
        assert number < 5 or found.entry_id, (number, found)
    newest = rye.execute("rye/file-system/undo", {"entry_id": found.entry_id}, project_path=str(project))
    assert newest["status"] == "success", newest


def test_a_change_just_made_is_undone_where_the_record_is_nearly_full(project, user_space):
    """Files that changed a moment ago are read again at the next look: they are stored already, and need no room."""
    (user_space / ".ai/config").mkdir(parents=True)
    (user_space / ".ai/config/rye.yaml").write_text("record: {max_bytes: 7340032}\n")
    from rye.journal import tree_changes
    from rye.workspace import running_commands
    from rye.workspace.workspace import Workspace

    def write():
        data = [os.urandom(MB) for _ in range(3)]
        for number, one in enumerate(data):
            (project / f"f{number}").write_bytes(one)
        return data

    before = write()
    with Workspace(str(project)) as ws:
        recording = tree_changes.begin(ws, running_commands.begin(ws.fd), "rye/bash/bash", "x")
        write()
        entry = tree_changes.end(ws, recording).entry_id
    undone = rye.execute("rye/file-system/undo", {"entry_id": entry}, project_path=str(project))
    assert undone["status"] == "success", undone
    assert [(project / f"f{number}").read_bytes() for number in range(3)] == before

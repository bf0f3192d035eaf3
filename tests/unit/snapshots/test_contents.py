"""The store of contents: each once, in parts, bounded on the disk, and never in memory whole."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from hashlib import sha256
from pathlib import Path

import pytest

import rye
from rye.config import user_dirs
from rye.snapshots import contents as contents_module
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


def small_ones(seed: int) -> list[bytes]:
    dice = random.Random(seed)
    sizes = [0, 1, 16 << 10, (16 << 10) + 1, *(dice.randrange(1, 12_000) for _ in range(200))]
    return [dice.randbytes(size // 8) + b"\n".join([b"a line of a file"] * (size // 17)) + b"%d" % size for size in sizes]


@pytest.mark.parametrize("threads", [True, False])
def test_small_ones_come_back_from_their_batches(tmp_path, threads, monkeypatch):
    if not threads:
        monkeypatch.setattr(threading.Thread, "start", lambda _: (_ for _ in ()).throw(RuntimeError("can't start new thread")))
    contents = small_ones(1)
    with Contents(tmp_path / "store") as store:
        digests = [store.put(one) for one in contents]
        assert store.read(digests[7]) == contents[7], "also before all is saved"
        digests += [store.put(one) for one in small_ones(2)]
        store.save()
    with Contents(tmp_path / "store") as store:
        assert all(store.has(one) for one in digests)
        assert [store.read(one) for one in digests] == contents + small_ones(2)
        assert 0 < sum(store.sizes()[one] for one in set(digests)) <= store.disk_size()
        # All of a batch is in one of its contents.
        pair = [store.put(b"all"), store.put(b"")]
        store.save()
        assert [store.read(one) for one in pair] == [b"all", b""]
        # Not in a batch: alone.
        alone = store.put(b"alone")
        store.save()
        assert store.read(alone) == b"alone"


@pytest.mark.parametrize("needed", [range(0), range(100, 101), range(0, 204, 3), range(204)])
def test_of_a_batch_what_is_needed_stays_and_the_rest_gives_its_room_back(tmp_path, needed):
    contents = small_ones(3)
    with Contents(tmp_path / "store") as store:
        digests = [store.put(one) for one in contents]
        before = store.disk_size()
        store.keep_only({digests[at] for at in needed})
        # One page for what is shared.
        assert store.disk_size() <= before * len(needed) / len(digests) * 1.3 + 32_768
    with Contents(tmp_path / "store") as store:
        wanted = {digests[at] for at in needed}
        assert {one for one in digests if store.has(one)} == wanted
        assert all(store.read(one) == content for one, content in zip(digests, contents, strict=True) if one in wanted)
        # Again, with batches that were packed anew.
        store.keep_only(wanted)
        assert all(store.is_whole(one) for one in wanted)


@pytest.mark.parametrize("damage", ["DELETE FROM content WHERE {}", "UPDATE content SET data = x'0001' WHERE {}"])
def test_of_a_damaged_batch_all_counts_as_missing_and_nothing_else(tmp_path, damage):
    contents = small_ones(4)
    with Contents(tmp_path / "store") as store:
        digests = [store.put(one) for one in contents]
        store.save()
    with sqlite3.connect(tmp_path / "store/contents.sqlite") as db:
        (place,) = db.execute("SELECT data FROM content WHERE packed = 2 LIMIT 1").fetchone()
        (inside,) = db.execute(
            "SELECT count(*) FROM content WHERE packed = 2 AND substr(data, 1, 32) = ?", (place[:32],)
        ).fetchone()
        db.execute(damage.format("digest = ?"), (place[:32],))
    db.close()
    with Contents(tmp_path / "store") as store:
        found = [store.read(one) for one in digests]
        assert found.count(None) == inside > 1
        assert all(got in (None, one) for got, one in zip(found, contents, strict=True))
        store.keep_only(set(digests[::2]))
        assert sum(store.read(one) is not None for one in digests[::2]) == sum(one is not None for one in found[::2])


def test_what_the_packing_thread_fails_at_is_told(tmp_path, monkeypatch):
    def fail(*_):
        raise MemoryError

    with Contents(tmp_path / "store") as store:
        monkeypatch.setattr(contents_module.zlib, "compress", fail)
        for one in small_ones(5)[4:]:
            if len(one) > 10_000:
                continue
            try:
                store.put(one)
            except MemoryError:
                return
        with pytest.raises(MemoryError):
            store.save()


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

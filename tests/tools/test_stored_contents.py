"""What is stored of the files that commands change: every size comes back, bounded on the disk, and never in memory whole."""

import os
import random
import sqlite3
import subprocess
import sys
import threading
from hashlib import sha256
from pathlib import Path

import pytest

from rye.config import user_dirs
from rye.snapshots.contents import Contents
from support.calling import call, undo
from support.harness import environment
from support.shell_calls import bash, configure

MB = 1 << 20
SIZES = [0, 1, 8 * MB - 1, 8 * MB, 8 * MB + 1, 15 * MB]


def files(project):
    return {path.name: sha256(path.read_bytes()).digest() for path in project.glob("f*")}


@pytest.mark.parametrize("damage", [None, "UPDATE part SET number = 9 WHERE number = 1", "UPDATE content SET data = x'00'"])
def test_every_size_comes_back_and_what_is_damaged_counts_as_missing(project, damage):
    for size in SIZES:
        (project / f"f{size}").write_bytes(os.urandom(size // 2) + bytes(size - size // 2))
    before = files(project)
    bash(project, "true")
    gone = bash(project, "rm f*")
    if damage:
        db = sqlite3.connect(Path(user_dirs.state_dir(str(project))) / "tree/contents.sqlite")
        # A write-ahead log: who reads does not wait for a writer.
        assert db.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
        with db:
            db.execute(damage)
        db.close()
        answer = undo(project, entry_id=gone["change_id"])
        assert (answer["code"], "has no stored content any more" in answer["error"]) == ("changed_since", True)
        assert not files(project)
    else:
        assert undo(project, entry_id=gone["change_id"])["success"]
        assert files(project) == before


_GREW = """
import resource, sys
import rye
def call(tool, **parameters):
    answer = rye.execute(tool, parameters, project_path=sys.argv[1])
    assert answer["status"] == "success", answer
    return answer["data"]
def bash(command):
    return call("rye/bash/bash", command=command, timeout=300)
bash("true")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
made = bash(f"for i in $(seq {sys.argv[2]}); do head -c 4096 /dev/urandom; head -c 1044480 /dev/zero; done > large")
assert "not_recorded" not in made, made
gone = bash("rm large")
call("rye/file-system/undo", entry_id=gone["change_id"])
call("rye/file-system/undo", entry_id=made["change_id"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("size", [128, pytest.param(1024, marks=pytest.mark.full)])
def test_a_large_file_is_never_in_memory_whole(project, user_space, size):
    configure(user_space, "record: {max_file_bytes: 2147483648, max_bytes: 4294967296}\n")
    words = [sys.executable, "-c", _GREW, project, str(size)]
    done = subprocess.run(words, check=True, capture_output=True, env=environment())
    # 8 MB parts, several of them at a time on their way into the database.
    assert int(done.stdout) * 1024 < 64 * MB
    assert not (project / "large").exists()


def test_the_state_folder_stays_within_its_bounds(project, user_space):
    configure(user_space, "record: {max_bytes: 8388608}\njournal: {max_bytes: 1048576}\n")
    for number in range(14):
        found = bash(project, f"head -c {MB} /dev/urandom > f{number % 5}")
        taken = sum(path.stat().st_size for path in Path(user_dirs.state_dir(str(project))).rglob("*") if path.is_file())
        # The database's log comes on top until it is written back.
        assert taken < 8 * MB + MB + 4 * MB, (number, taken)
        assert number < 5 or "change_id" in found, (number, found)
    assert undo(project, entry_id=found["change_id"])["success"]


def test_a_change_just_made_is_undone_where_the_record_is_nearly_full(project, user_space):
    """Files that changed a moment ago are read again at the next look: they are stored already, and need no room."""
    configure(user_space, "record: {max_bytes: 7340032}\n")
    for number in range(3):
        (project / f"f{number}").write_bytes(os.urandom(MB))
    before = files(project)
    changed = bash(project, f"for i in 0 1 2; do head -c {MB} /dev/urandom > f$i; done")
    assert undo(project, entry_id=changed["change_id"])["success"]
    assert files(project) == before


def test_where_the_kernel_tells_too_much_at_once_everything_counts_as_changed(project):
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if most > 100_000:
        pytest.skip("the queue is long here")
    bash(project, "true")
    bash(project, "true")
    for number in range(most // 2 + 100):
        # Two names in turn, so that the kernel does not merge the events.
        os.close(os.open(project / f"n{number % 2}", os.O_CREAT | os.O_WRONLY))
        os.unlink(project / f"n{number % 2}")
    (project / "late").write_text("x\n")
    bash(project, "true")
    assert [one["file_path"] for one in call("undo", project, list=True)["entries"]] == ["late"]


# --- small contents are stored in batches: each comes back, also of a batch that is damaged or of which some is dropped ---


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
        # More at once than a statement takes.
        tiny = [store.put(b"%d" % number) for number in range(65_000)]
        store.save()
    # Opened again at once.
    with Contents(tmp_path / "store") as store:
        assert [store.read(one) for one in tiny[::10_000]] == [b"%d" % number for number in range(0, 65_000, 10_000)]


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

"""Small contents are stored in batches: each comes back, also of a batch that is damaged or of which some is dropped."""

from __future__ import annotations

import random
import sqlite3
import threading

import pytest

from rye.snapshots.contents import Contents


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

"""IDs and kept batches."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import pytest

from rye.config import user_dirs
from rye.edits import patch_store
from rye.errors import EditError
from rye.workspace.workspace import Workspace


@pytest.fixture
def ws(project):
    with Workspace(str(project)) as one:
        yield one


def record(**more):
    name = patch_store.new_id()
    return {"batchId": name, "ids": [name, patch_store.new_id()], "request": {}, "files": [], **more}


def test_ids_are_uuids_of_version_7_in_the_order_of_time():
    before = time.time()
    one = uuid.UUID(patch_store.new_id())
    time.sleep(0.002)
    other = uuid.UUID(patch_store.new_id())
    assert (one.version, one.variant) == (7, uuid.RFC_4122)
    assert before - 0.01 <= (one.int >> 80) / 1000 <= time.time()
    assert one < other
    assert len({patch_store.new_id() for _ in range(10_000)}) == 10_000


def test_a_batch_is_found_by_any_of_its_ids(ws):
    kept = record(label="é\ud800")
    patch_store.keep(ws, record())
    patch_store.keep(ws, kept)
    assert patch_store.batch(ws, kept["batchId"]) == kept
    for name in kept["ids"]:
        assert patch_store.find(ws, name) == kept


@pytest.mark.parametrize("name", ["", "x", "../../x", "0" * 36, "*", "01a1fd27-5f52-7c74-84bd-47608b40cf20"])
def test_unknown_ids(ws, name):
    patch_store.keep(ws, record())
    for look in (patch_store.batch, patch_store.find):
        with pytest.raises(EditError):
            look(ws, name)


def test_batches_are_private_and_damaged_ones_are_passed_over(ws, project):
    kept, broken = record(), record()
    patch_store.keep(ws, kept)
    patch_store.keep(ws, broken)
    folder = Path(user_dirs.state_dir(str(project))) / "patches"
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    for data in (b"", b"{}", b"garbage", b'{"ids": 1, "request": {}, "files": []}', b"[]"):
        (folder / f"{broken['batchId']}.json").write_bytes(data)
        with pytest.raises(EditError):
            patch_store.batch(ws, broken["batchId"])
        assert patch_store.find(ws, kept["batchId"]) == kept

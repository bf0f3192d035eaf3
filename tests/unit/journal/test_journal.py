"""The journal is true: an entry stands for every change that landed, whatever ended the call, and its undo works."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

import rye
from rye.config import user_dirs
from rye.errors import EditError, WorkspaceError
from rye.journal import entries, history, journal
from rye.journal.history import History
from rye.plain_class import changed
from rye.snapshots import known_tree
from rye.workspace import atomic_replace, cache
from rye.workspace.atomic_replace import digest_of, temporary_name
from rye.workspace.workspace import Workspace

OLD, NEW, FOREIGN = b"one\ntwo\n", b"one\nTWO\n", b"foreign\n"


def call(project, tool, **parameters):
    return rye.execute(f"rye/file-system/{tool}", parameters, project_path=project)


def folder(project):
    return Path(user_dirs.state_dir(str(project))) / "journal"


def entry_for(project, before=OLD, after=NEW, path="file", temporary=""):
    digests = [None if data is None else digest_of(data) for data in (before, after)]
    removed, added = ([] if data is None else data.splitlines(keepends=True) for data in (before, after))
    with Workspace(str(project)) as ws:
        made = journal.new_entry(ws, "test/tool", path, *digests, "utf-8", [entries.Recorded(0, removed, added)])
    return changed(made, whole=True, temporary=temporary)


def land(project, data, entry, meanwhile=None):
    with Workspace(str(project)) as ws, ws.place(entry.path) as place, cache.locked(ws, place.path):
        if meanwhile:
            meanwhile()
        return journal.apply_change(ws, place, data, entry)


@pytest.fixture
def file(project):
    path = project / "file"
    path.write_bytes(OLD)
    return path


def test_an_entry_is_private_and_holds_what_undo_needs(project, file):
    entry = entry_for(project)
    assert land(project, NEW, entry) == []
    (path,) = folder(project).glob("*.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder(project).parent.stat().st_mode) == 0o700
    assert not list(folder(project).glob("pending/*"))
    record = entries.parse(path.read_bytes())
    assert (record["path"], record["before"], record["after"]) == ("file", digest_of(OLD), digest_of(NEW))
    with Workspace(str(project)) as ws:
        assert journal.find(ws, entry.id).splices == entry.splices
        assert [found.id for found in History(ws)] == [entry.id]
    assert call(project, "undo")["status"] == "success"
    assert file.read_bytes() == OLD
    assert (
        call(project, "undo", entry_id=call(project, "undo", list=True)["data"]["entries"][0]["entry_id"])["status"]
        == "success"
    )
    assert file.read_bytes() == NEW


def test_bytes_that_are_no_text_come_back(project, file):
    data = bytes(range(256)) * 100
    file.write_bytes(data)
    land(project, b"x\n", entry_for(project, data, b"x\n"))
    assert call(project, "undo")["status"] == "success"
    assert file.read_bytes() == data


def test_hard_links_are_named_in_a_warning(project, file):
    twin = project.parent / "twin"
    os.link(file, twin)
    (warning,) = land(project, NEW, entry_for(project))
    assert "2 hard links" in warning
    assert twin.read_bytes() == OLD
    lid = call(project, "read", file_path="file")["data"]["output"].split("LID:")[1][:6]
    os.link(file, project / "again")
    response = call(project, "edit_lines", file_path="file", changes=[{"line_id": lid, "new_content": "1"}])
    assert "hard links" in response["data"]["warnings"][0]
    assert "hard links" in response["data"]["output"]


def test_a_refused_change_leaves_no_entry(project, file):
    with pytest.raises(WorkspaceError):
        land(project, NEW, entry_for(project), meanwhile=lambda: file.write_bytes(FOREIGN))
    assert not list(folder(project).rglob("*.json"))
    assert call(project, "undo")["code"] == "nothing_to_undo"


def test_without_a_journal_the_change_lands_and_says_so(project, file, user_space):
    (user_space / ".ai").mkdir()
    (user_space / ".ai/state").write_text("in the way")
    (warning,) = land(project, NEW, entry_for(project))
    assert "Not recorded" in warning
    assert file.read_bytes() == NEW


def test_a_journal_that_cannot_be_finished_is_finished_by_the_next_call(project, file, monkeypatch):
    monkeypatch.setattr(journal, "_finish", lambda *_: (_ for _ in ()).throw(OSError(5, "dying")))
    land(project, NEW, entry_for(project))
    monkeypatch.undo()
    assert len(list(folder(project).glob("pending/*.json"))) == 1
    assert call(project, "undo")["status"] == "success"
    assert file.read_bytes() == OLD
    assert not list(folder(project).glob("pending/*.json"))


def test_a_record_that_could_not_be_written_whole_is_not_left(project, file, monkeypatch):
    monkeypatch.setattr(journal, "_pack", lambda *_: memoryview(b"x" * 10))
    monkeypatch.setattr(os, "fdopen", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    (warning,) = land(project, NEW, entry_for(project))
    monkeypatch.undo()
    assert "Not recorded" in warning
    assert not list(folder(project).rglob("*.json"))


# --- after a crash: every state that a killed change can leave ---

STATES = {
    # name: (in the file, under the temporary name, landed?, in the file afterwards, kept as .rye-conflict)
    "before the temporary file": (OLD, None, False, OLD, []),
    "temporary file half written": (OLD, b"on", False, OLD, []),
    "temporary file whole": (OLD, NEW, False, OLD, []),
    "exchanged": (NEW, OLD, True, NEW, []),
    "exchanged and swept": (NEW, None, True, NEW, []),
    "exchanged, then changed by others": (FOREIGN, OLD, True, FOREIGN, []),
    "exchanged with a foreign version": (NEW, FOREIGN, True, NEW, [FOREIGN]),
    "put back": (FOREIGN, NEW, False, FOREIGN, []),
    "staged, then changed by others": (FOREIGN, b"on", False, FOREIGN, []),
    "staged, then deleted by others": (None, NEW, False, None, []),
}


@pytest.mark.parametrize("name", STATES)
def test_the_next_call_settles_what_a_crash_left(project, file, name):
    stands, aside, landed, afterwards, kept = STATES[name]
    temporary = temporary_name()
    entry = entry_for(project)
    with Workspace(str(project)) as ws:
        assert journal._begin(ws, entry, temporary.decode()) is not None
    for path, data in ((file, stands), (project / temporary.decode(), aside)):
        path.unlink(missing_ok=True)
        if data is not None:
            path.write_bytes(data)
    with Workspace(str(project)) as ws:
        journal.recover(ws)
        assert [found.id for found in History(ws)] == ([entry.id] if landed else [])
    assert not list(folder(project).glob("pending/*"))
    assert (file.read_bytes() if file.exists() else None) == afterwards
    assert [path.read_bytes() for path in project.glob("*.rye-conflict")] == kept
    assert not [name for name in os.listdir(project) if atomic_replace.is_temporary(os.fsencode(name))]
    if landed and afterwards == NEW:
        assert call(project, "undo")["status"] == "success"
        assert file.read_bytes() == OLD


@pytest.mark.parametrize(("stands", "aside", "landed"), [(OLD, None, False), (None, OLD, True), (None, None, True)])
def test_a_deletion_that_a_crash_ended(project, file, stands, aside, landed):
    temporary = temporary_name()
    entry = entry_for(project, after=None)
    with Workspace(str(project)) as ws:
        journal._begin(ws, entry, temporary.decode())
    if stands is None:
        file.unlink()
    if aside is not None:
        (project / temporary.decode()).write_bytes(aside)
    with Workspace(str(project)) as ws:
        journal.recover(ws)
        assert bool([*History(ws)]) == landed
    if landed:
        assert call(project, "undo")["status"] == "success"
        assert file.read_bytes() == OLD


def test_a_folder_that_is_gone_takes_its_pending_change_along(project):
    with Workspace(str(project)) as ws:
        journal._begin(ws, entry_for(project, path="gone/file"), temporary_name().decode())
        journal.recover(ws)
    assert not list(folder(project).rglob("*.json"))


def in_folders(project, before, after):
    """Return the pending entry of a change of a file whose folders it made or removed, with no temporary file left."""
    entry = changed(entry_for(project, before, after, "n/e/w.txt", temporary_name().decode()), folders=["n", "n/e"])
    waiting = folder(project) / "pending"
    waiting.mkdir(parents=True)
    (waiting / f"{entry.id}.json").write_bytes(entries.dump(entries.record_of(entry)))
    return entry


@pytest.mark.parametrize("left", ["n/e/w.txt", "n/e", "n", ""])
def test_an_undo_that_removes_folders_and_is_cut_off_is_finished(project, left):
    if left:
        (project / left).parent.mkdir(parents=True, exist_ok=True)
        (project / left).write_bytes(OLD) if left.endswith(".txt") else (project / left).mkdir()
    entry = in_folders(project, OLD, None)
    with Workspace(str(project)) as ws:
        journal.recover(ws)
        # Where the file is there, the change was not begun.
        is_done = not left.endswith(".txt")
        assert [row.id for row in History(ws)] == [entry.id] * is_done
        assert not is_done or journal.find(ws, entry.id).folders == ["n", "n/e"]
    assert (project / "n").exists() is not is_done
    assert not list((folder(project) / "pending").iterdir())


@pytest.mark.parametrize("is_done", [True, False])
def test_a_new_file_in_new_folders_that_is_cut_off_comes_or_leaves_no_folder(project, is_done):
    (project / "n/e").mkdir(parents=True)
    if is_done:
        (project / "n/e/w.txt").write_bytes(NEW)
    entry = in_folders(project, None, NEW)
    with Workspace(str(project)) as ws:
        journal.recover(ws)
        assert [row.id for row in History(ws)] == [entry.id] * is_done
    assert (project / "n").exists() is is_done


def test_a_change_at_work_is_left_alone(project, file):
    with Workspace(str(project)) as ws:
        journal._begin(ws, entry_for(project), temporary_name().decode())
        with cache.locked(ws, b"file"):
            journal.recover(ws)
            assert list(folder(project).glob("pending/*"))
        journal.recover(ws)
    assert not list(folder(project).glob("pending/*"))


def test_a_pending_record_names_no_file_but_a_temporary_one(project, file):
    with Workspace(str(project)) as ws:
        for victim in ("file", "../outside", ".git/config", ".rye-0123456789abcdef.txt"):
            journal._begin(ws, entry_for(project), victim)
        (project.parent / "outside").write_text("stays")
        journal.recover(ws)
    assert file.read_bytes() == OLD
    assert (project.parent / "outside").read_text() == "stays"
    assert not list(folder(project).glob("pending/*"))


@pytest.mark.parametrize(
    "data", [b"", b"{", b"{}", b"[]", b"null", b'{"splices": 3}', b"\x78\x9c", os.urandom(300), b'{"a":' * 100_000]
)
def test_records_that_are_none_are_passed_over(project, file, data):
    land(project, NEW, entry_for(project))
    (folder(project) / "pending").mkdir(exist_ok=True)
    (folder(project) / "zzz.json").write_bytes(data)
    torn = folder(project) / "pending/zzz.json"
    torn.write_bytes(data)
    assert call(project, "undo", list=True)["data"]["total"] == 1
    assert torn.exists()
    old = time.time() - 3600
    os.utime(torn, (old, old))
    assert call(project, "undo")["status"] == "success"
    assert not torn.exists()
    assert file.read_bytes() == OLD


def test_locks_that_are_taken_out_of_their_order_are_told(project):
    """Two processes that took them in two orders would wait for each other."""
    with Workspace(str(project)) as ws:
        with cache.locked(ws, b"a"), cache.locked(ws, b"b", wait=False), known_tree.locked(ws.fd):
            pass
        for second in (lambda: cache.locked(ws, b"a"), lambda: known_tree.locked(ws.fd)):
            with known_tree.locked(ws.fd), pytest.raises(AssertionError, match="is taken behind that of the tree"), second():
                pass


@pytest.mark.parametrize("name", ["", "nope", "../x", "pending/x", "a" * 300, "\0"])
def test_unknown_entries(project, name):
    with Workspace(str(project)) as ws, pytest.raises(EditError) as caught:
        journal.find(ws, name)
    assert caught.value.code == "unknown_entry"


def test_old_entries_go_by_size(project, file, user_space, monkeypatch):
    # The entries are counted now and then; here after each.
    monkeypatch.setattr(history, "_TRIM_EVERY", 1)
    for number in range(12):
        data = b"%d " % number + os.urandom(3_000).hex().encode() + b"\n"
        land(project, data, entry_for(project, file.read_bytes(), data))
    stored = sorted(folder(project).glob("*.json"))
    assert len(stored) == 12
    (user_space / ".ai/config").mkdir(parents=True)
    (user_space / ".ai/config/rye.yaml").write_text("journal:\n  max_bytes: 40000\n")
    land(project, NEW, entry_for(project, file.read_bytes()))
    left = sorted(folder(project).glob("*.json"))
    assert 0 < len(left) < 12
    assert left[-1] not in stored
    assert sum(path.stat().st_size for path in left) <= sum(path.stat().st_blocks * 512 for path in left) <= 40_000


def test_a_journal_has_no_more_entries_than_its_bound(project, file, monkeypatch):
    monkeypatch.setattr(history, "_TRIM_EVERY", 1)
    monkeypatch.setattr(history, "MAX_ENTRIES", 20)
    for number in range(50):
        data = b"%d\n" % number
        land(project, data, entry_for(project, file.read_bytes(), data))
        assert len(list(folder(project).glob("*.json"))) <= 20
    with Workspace(str(project)) as ws:
        rows = [*History(ws)]
        assert len(rows) >= 17
        assert entries.load(folder(project) / f"{rows[0].id}.json").splices[0].added == [b"49\n"]
    assert call(project, "undo")["status"] == "success"
    assert file.read_bytes() == b"48\n"


# --- the clock ---


@pytest.fixture
def clock(monkeypatch):
    """What the journal takes for the time: seconds to add to the real one."""
    real, shift = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + shift[0])
    return shift


@pytest.mark.parametrize("step", [-3600.0, -400 * 86_400.0, 3600.0])
def test_the_last_change_is_the_one_made_last_whatever_the_clock_says(project, clock, step):
    for name in ("a.txt", "b.txt"):
        (project / name).write_bytes(b"old\n")
    assert call(project, "write", file_path="a.txt", content="new\n")["status"] == "success"
    clock[0] = step
    assert call(project, "write", file_path="b.txt", content="new\n")["status"] == "success"
    assert call(project, "undo")["data"]["file_path"] == "b.txt"
    assert call(project, "undo")["data"]["file_path"] == "a.txt"
    listed = call(project, "undo", list=True)["data"]["entries"]
    assert [row["file_path"] for row in listed] == ["a.txt", "b.txt", "b.txt", "a.txt"]
    assert sorted(row["entry_id"] for row in listed) == [row["entry_id"] for row in reversed(listed)]


# --- damage ---


def test_a_changed_character_of_a_record_is_seen(project, file):
    entry = entry_for(project)
    land(project, NEW, entry)
    path = folder(project) / f"{entry.id}.json"
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert call(project, "undo", entry_id=entry.id)["code"] == "damaged_entry"
        assert file.read_bytes() == NEW
    path.write_bytes(whole)
    assert call(project, "undo", entry_id=entry.id)["status"] == "success"


def test_a_copy_of_a_record_under_another_name_is_no_second_change(project, file):
    entry = entry_for(project)
    land(project, NEW, entry)
    other = entry.id[:-1] + ("1" if entry.id.endswith("0") else "0")
    (folder(project) / f"{other}.json").write_bytes((folder(project) / f"{entry.id}.json").read_bytes())
    assert call(project, "undo", entry_id=other)["code"] == "damaged_entry"
    assert file.read_bytes() == NEW
    assert call(project, "undo", list=True)["data"]["total"] == 1
    assert call(project, "undo", entry_id=entry.id)["status"] == "success"


def test_lines_that_do_not_give_the_old_content_are_not_written(project, file):
    """The record is whole by its digest, but not what was there before."""
    entry = entry_for(project)
    land(project, NEW, entry)
    path = folder(project) / f"{entry.id}.json"
    record = entries.parse(path.read_bytes())
    record["splices"][0]["removed"] = ["one\n", "2\n"]
    path.write_bytes(entries.dump(record))
    assert call(project, "undo", entry_id=entry.id)["code"] == "damaged_entry"
    assert file.read_bytes() == NEW
    file.write_bytes(OLD)
    lid = call(project, "read", file_path="file")["data"]["output"].split("LID:")[1][:6]
    made = call(project, "edit_lines", file_path="file", changes=[{"line_id": lid, "new_content": "1"}])["data"]["entry_id"]
    path = folder(project) / f"{made}.json"
    record = entries.parse(path.read_bytes())
    record["splices"][0]["removed"] = ["other\n"]
    path.write_bytes(entries.dump(record))
    assert call(project, "undo")["code"] == "damaged_entry"
    assert file.read_bytes() == b"1\ntwo\n"


@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "garbage", "one character", "a folder"])
def test_a_damaged_index_is_made_anew(project, file, damage):
    for data in (NEW, OLD, b"third\n"):
        land(project, data, entry_for(project, file.read_bytes(), data))
    before = [row["entry_id"] for row in call(project, "undo", list=True)["data"]["entries"]]
    index = folder(project) / "index"
    whole = index.read_bytes()
    index.unlink()
    if damage == "a folder":
        index.mkdir()
    elif damage != "gone":
        at = len(whole) // 2
        torn = {
            "empty": b"",
            "cut": whole[:at],
            "garbage": os.urandom(500),
            "one character": whole[:at] + b"~" + whole[at + 1 :],
        }
        index.write_bytes(torn[damage])
    listed = [row["entry_id"] for row in call(project, "undo", list=True)["data"]["entries"]]
    assert listed == before
    assert call(project, "undo")["data"]["undone"] == before[0]
    assert call(project, "undo")["data"]["undone"] == before[1]
    assert file.read_bytes() == NEW

"""The journal is true: an entry stands for every change that landed, whatever ended the call, and its undo works."""

import fcntl
import hashlib
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rye.call import context
from rye.config import user_dirs
from rye.journal import entries, history, journal, recovery, tree_changes
from rye.plain_class import changed
from rye.snapshots import known_tree
from rye.workspace import atomic_replace, cache
from rye.workspace.workspace import Workspace
from support.calling import call, done, ids

OLD, NEW, FOREIGN = b"one\ntwo\n", b"one\nTWO\n", b"foreign\n"


def folder(project):
    return Path(user_dirs.state_dir(str(project))) / "journal"


def listed(project):
    return [row["entry_id"] for row in done("undo", project, list=True, limit=100)["entries"]]


def written(project, data):
    return done("write", project, file_path="file", content=data.decode())["entry_id"]


@pytest.fixture
def file(project):
    path = project / "file"
    path.write_bytes(OLD)
    return path


# A change that was begun from one content to another, and what is in the file and under the temporary name; whether it
# counts as made, what is in the file afterwards, and what is kept as .rye-conflict. None: there is no file.
LEFT = {
    "before the temporary file": (OLD, NEW, OLD, None, False, OLD, []),
    "temporary file half written": (OLD, NEW, OLD, b"on", False, OLD, []),
    "temporary file whole": (OLD, NEW, OLD, NEW, False, OLD, []),
    "exchanged": (OLD, NEW, NEW, OLD, True, NEW, []),
    "exchanged and swept": (OLD, NEW, NEW, None, True, NEW, []),
    "exchanged, then changed by others": (OLD, NEW, FOREIGN, OLD, True, FOREIGN, []),
    "exchanged with a foreign version": (OLD, NEW, NEW, FOREIGN, True, NEW, [FOREIGN]),
    "put back": (OLD, NEW, FOREIGN, NEW, False, FOREIGN, []),
    "staged, then changed by others": (OLD, NEW, FOREIGN, b"on", False, FOREIGN, []),
    "staged, then deleted by others": (OLD, NEW, None, NEW, False, None, []),
    "not deleted yet": (OLD, None, OLD, None, False, OLD, []),
    "set aside": (OLD, None, None, OLD, True, None, []),
    "deleted": (OLD, None, None, None, True, None, []),
    "not made yet": (None, NEW, None, None, False, None, []),
    "made": (None, NEW, NEW, None, True, NEW, []),
}


def begun(project, before, after, path="file", temporary="", folders=()):
    """Leave a change pending, as a kill does."""
    removed, added = ([] if data is None else data.splitlines(keepends=True) for data in (before, after))
    digests = [None if data is None else hashlib.sha256(data).hexdigest() for data in (before, after)]
    with Workspace(str(project)) as ws:
        entry = journal.new_entry(ws, "test/tool", path, *digests, "utf-8", [entries.Recorded(0, removed, added)])
    entry = changed(entry, whole=True, temporary=temporary or f".rye-{os.urandom(8).hex()}.tmp", folders=[*folders])
    waiting = folder(project) / "pending"
    waiting.mkdir(parents=True, exist_ok=True)
    (waiting / f"{entry.id}.json").write_bytes(entries.dump(entries.record_of(entry)))
    return entry


def recover(project):
    with Workspace(str(project)) as ws:
        recovery.recover(ws)
    return not list(folder(project).glob("pending/*"))


@pytest.mark.parametrize("name", LEFT)
def test_the_next_call_settles_what_a_crash_left(project, file, name):
    before, after, stands, aside, landed, afterwards, kept = LEFT[name]
    entry = begun(project, before, after)
    for path, data in ((file, stands), (project / entry.temporary, aside)):
        path.unlink(missing_ok=True)
        if data is not None:
            path.write_bytes(data)
    assert recover(project)
    assert listed(project) == ([entry.id] if landed else [])
    assert (file.read_bytes() if file.exists() else None) == afterwards
    assert [path.read_bytes() for path in project.glob("*.rye-conflict")] == kept
    assert not [name for name in os.listdir(project) if atomic_replace.is_temporary(os.fsencode(name))]
    if landed and afterwards == after:
        assert call("undo", project)["success"]
        assert (file.read_bytes() if file.exists() else None) == before


@pytest.mark.parametrize(
    ("before", "after", "left", "landed", "stays"),
    [
        *[(OLD, None, left, not left.endswith(".txt"), left.endswith(".txt")) for left in ("n/e/w.txt", "n/e", "n", "")],
        (None, NEW, "n/e/w.txt", True, True),
        (None, NEW, "n/e", False, False),
    ],
)
def test_folders_that_a_change_makes_or_removes_come_and_go_with_it(project, before, after, left, landed, stays):
    if left:
        (project / left).parent.mkdir(parents=True, exist_ok=True)
        (project / left).write_bytes(before or after) if left.endswith(".txt") else (project / left).mkdir()
    entry = begun(project, before, after, "n/e/w.txt", folders=["n", "n/e"])
    assert recover(project)
    assert listed(project) == [entry.id] * landed
    assert (project / "n").exists() is stays
    if landed and after is None:
        assert done("undo", project)
        assert (project / "n/e/w.txt").read_bytes() == OLD


def test_a_change_at_work_is_left_alone_and_one_of_a_killed_process_is_recorded_once(project, file, monkeypatch):
    done("read", project, file_path="file")
    done("rye/bash/bash", project, command="true")
    killed, recovered = [], recovery.recover

    def kill():
        if not killed:
            killed.append(begun(project, OLD, NEW).id)
            file.write_bytes(NEW)

    with monkeypatch.context() as patch:
        # An edit has looked for what a crash left, and waits for its lock.
        patch.setattr(recovery, "recover", lambda ws, **of: (recovered(ws, **of), kill())[0])
        edit = done("edit_lines", project, file_path="file", changes=["end+|three"], on_stale="rebase")["entry_id"]
    assert listed(project) == [edit, *killed]
    assert [done("undo", project, entry_id=one)["success"] for one in (edit, killed.pop())]
    with Workspace(project) as ws, ThreadPoolExecutor(1) as pool:
        with cache.locked(ws, b"file"):
            kill()
            assert not recover(project)
            command = pool.submit(done, "rye/bash/bash", project, command="true")
            time.sleep(0.3)
        assert "changed" not in command.result()
    assert listed(project)[0] == killed[0]
    assert done("undo", project, entry_id=killed.pop())
    with monkeypatch.context() as patch:
        # A look has done so, too, and waits for the edit.
        patch.setattr(known_tree, "locked", lambda root, locked=known_tree.locked, **of: (kill(), locked(root, **of))[1])
        assert "changed" not in done("rye/bash/bash", project, command="true")
    assert listed(project)[0] == killed[0]
    with Workspace(project) as ws, cache.locked(ws, b"file"), context.using(deadline=context.Deadline(0)):
        # A command whose time is up ends beside an edit.
        begun(project, OLD, NEW)
        with tree_changes.look_at(ws, at_end=True) as look:
            assert look.changes == []
    begun(project, OLD, NEW, "gone/file")
    assert (recover(project), len(listed(project))) == (True, 8)


def test_a_pending_record_names_no_file_but_a_temporary_one(project, file):
    (project.parent / "outside").write_text("stays")
    for victim in ("file", "../outside", ".git/config", ".rye-0123456789abcdef.txt"):
        begun(project, OLD, NEW, temporary=victim)
    for record in folder(project).glob("pending/*"):
        os.utime(record, (0, 0))
    assert recover(project)
    assert (file.read_bytes(), (project.parent / "outside").read_text()) == (OLD, "stays")


def test_a_copy_of_a_record_under_another_name_is_no_second_change(project, file):
    entry = written(project, NEW)
    (record,) = folder(project).glob("*.json")
    other = record.stem[:-1] + ("1" if record.stem.endswith("0") else "0")
    record.with_stem(other).write_bytes(record.read_bytes())
    assert call("undo", project, entry_id=other)["code"] == "damaged_entry"
    assert listed(project) == [entry]
    assert call("undo", project)["success"]
    assert file.read_bytes() == OLD


@pytest.mark.parametrize(
    "data", [b"", b"{", b"{}", b"[]", b"null", b'{"splices": 3}', b"\x78\x9c", os.urandom(300), b'{"a":' * 100_000]
)
def test_records_that_are_none_are_passed_over(project, file, data):
    entry = written(project, NEW)
    torn = folder(project) / "pending/zzz.json"
    torn.parent.mkdir(exist_ok=True)
    for path in (folder(project) / "zzz.json", torn):
        path.write_bytes(data)
    assert listed(project) == [entry]
    assert torn.exists()
    os.utime(torn, (time.time() - 3600,) * 2)
    assert call("undo", project)["success"]
    assert (torn.exists(), file.read_bytes()) == (False, OLD)


def test_old_entries_go_by_number(project, file, monkeypatch):
    monkeypatch.setattr(history, "_TRIM_EVERY", 1)
    monkeypatch.setattr(history, "MAX_ENTRIES", 5)
    for number in range(12):
        written(project, b"%d\n" % number)
        stored = [*folder(project).glob("*.json")]
        assert len(stored) <= 5
    assert [path.stat().st_mode & 0o777 for path in (*stored, folder(project).parent)] == [0o600] * len(stored) + [0o700]
    assert call("undo", project)["success"]
    assert file.read_bytes() == b"10\n"


@pytest.mark.parametrize("step", [-3600.0, -400 * 86_400.0, 3600.0])
def test_the_last_change_is_the_one_made_last_whatever_the_clock_says(project, monkeypatch, step):
    real = time.time
    for name in ("a.txt", "b.txt"):
        (project / name).write_bytes(b"old\n")
        done("write", project, file_path=name, content="new\n")
        monkeypatch.setattr(time, "time", lambda: real() + step)
    assert [done("undo", project)["file_path"] for _ in range(2)] == ["b.txt", "a.txt"]
    rows = done("undo", project, list=True)["entries"]
    assert [row["file_path"] for row in rows] == ["a.txt", "b.txt", "b.txt", "a.txt"]
    assert sorted(listed(project), reverse=True) == listed(project)


def test_a_changed_character_of_a_record_is_seen(project, file):
    entry = written(project, NEW)
    path = folder(project) / f"{entry}.json"
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert call("undo", project, entry_id=entry)["code"] == "damaged_entry"
        assert file.read_bytes() == NEW
    path.write_bytes(whole)
    assert call("undo", project, entry_id=entry)["success"]


@pytest.mark.parametrize("way", ["write", "edit_lines"])
def test_lines_that_do_not_give_the_old_content_are_not_written(project, file, way):
    """The record is whole by its digest, but not what was there before."""
    if way == "write":
        entry = written(project, NEW)
    else:
        changes = [{"line_id": ids(project, "file")[1], "new_content": "TWO"}]
        entry = done("edit_lines", project, file_path="file", changes=changes)["entry_id"]
    path = folder(project) / f"{entry}.json"
    record = entries.parse(path.read_bytes())
    record["splices"][0]["removed"][-1:] = ["other\n"]
    path.write_bytes(entries.dump(record))
    assert call("undo", project, entry_id=entry)["code"] == "damaged_entry"
    assert file.read_bytes() == NEW


@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "garbage", "one character", "a folder"])
def test_a_damaged_index_is_made_anew(project, file, damage):
    for data in (NEW, OLD, b"third\n"):
        written(project, data)
    before = listed(project)
    index = folder(project) / "index"
    whole, at = index.read_bytes(), index.stat().st_size // 2
    index.unlink()
    if damage == "a folder":
        index.mkdir()
    elif damage != "gone":
        torn = {
            "empty": b"",
            "cut": whole[:at],
            "garbage": os.urandom(500),
            "one character": whole[:at] + b"~" + whole[at + 1 :],
        }
        index.write_bytes(torn[damage])
    assert listed(project) == before
    assert [done("undo", project)["undone"] for _ in range(2)] == before[:2]
    assert file.read_bytes() == NEW


def test_a_line_of_the_index_that_is_being_written_is_waited_for(project, file):
    """A reader can see a part of it, as the kernel copies it page by page, and its entry comes after it."""
    for data in (NEW, OLD, NEW):
        written(project, data)
    index = folder(project) / "index"
    # An edit has its ID before it is made, so one with a higher ID can come before it.
    older, newer, last = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(newer + older + last[:50])
    before = [json.loads(line[9:])[0] for line in (last, older, newer)]
    entry = folder(project) / f"{before[0]}.json"
    with ThreadPoolExecutor() as pool:
        with open(folder(project) / "lock", "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            entry.rename(entry.with_suffix(".new"))
            reader = pool.submit(listed, project)
            time.sleep(0.2)
            assert not reader.done()
            with open(index, "ab") as appended:
                appended.write(last[50:])
        assert reader.result() == before[1:]
    entry.with_suffix(".new").rename(entry)
    assert listed(project) == before

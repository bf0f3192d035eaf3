"""The journal is true: an entry stands for every change that landed, whatever ended the call, and its undo works."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path

import pytest

import rye
from rye import state
from rye.errors import EditError, WorkspaceError
from rye.record import changed
from rye.toolkit import cache, journal, replace
from rye.toolkit.replace import digest_of, temporary_name
from rye.toolkit.workspace import Workspace

OLD, NEW, FOREIGN = b"one\ntwo\n", b"one\nTWO\n", b"foreign\n"


def call(project, tool, **parameters):
    return rye.execute(f"rye/file-system/{tool}", parameters, project_path=project)


def folder(project):
    return Path(state.state_dir(str(project))) / "journal"


def entry_for(before=OLD, after=NEW, path="file", temporary=""):
    digests = [None if data is None else digest_of(data) for data in (before, after)]
    removed, added = ([] if data is None else data.splitlines(keepends=True) for data in (before, after))
    made = journal.new_entry("test/tool", path, *digests, "utf-8", [journal.Recorded(0, removed, added)])
    return changed(made, whole=True, temporary=temporary)


def land(project, data, entry, meanwhile=None):
    with Workspace(str(project)) as ws, ws.place(entry.path) as place, cache.locked(ws, place.path):
        if meanwhile:
            meanwhile()
        return journal.land(ws, place, data, entry)


@pytest.fixture
def file(project):
    path = project / "file"
    path.write_bytes(OLD)
    return path


def test_an_entry_is_private_and_holds_what_undo_needs(project, file):
    entry = entry_for()
    assert land(project, NEW, entry) == []
    (path,) = folder(project).glob("*.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder(project).parent.stat().st_mode) == 0o700
    assert not list(folder(project).glob("pending/*"))
    record = json.loads(path.read_bytes())
    assert (record["path"], record["before"], record["after"]) == ("file", digest_of(OLD), digest_of(NEW))
    with Workspace(str(project)) as ws:
        assert journal.find(ws, entry.id).splices == entry.splices
        assert [found.id for found in journal.entries(ws)] == [entry.id]
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
    land(project, b"x\n", entry_for(data, b"x\n"))
    assert call(project, "undo")["status"] == "success"
    assert file.read_bytes() == data


def test_hard_links_are_named_in_a_warning(project, file):
    twin = project.parent / "twin"
    os.link(file, twin)
    (warning,) = land(project, NEW, entry_for())
    assert "2 hard links" in warning
    assert twin.read_bytes() == OLD
    lid = call(project, "read", file_path="file")["data"]["output"].split("LID:")[1][:6]
    os.link(file, project / "again")
    response = call(project, "edit_lines", file_path="file", changes=[{"line_id": lid, "new_content": "1"}])
    assert "hard links" in response["data"]["warnings"][0]
    assert "hard links" in response["data"]["output"]


def test_a_refused_change_leaves_no_entry(project, file):
    with pytest.raises(WorkspaceError):
        land(project, NEW, entry_for(), meanwhile=lambda: file.write_bytes(FOREIGN))
    assert not list(folder(project).rglob("*.json"))
    assert call(project, "undo")["code"] == "nothing_to_undo"


def test_without_a_journal_the_change_lands_and_says_so(project, file, user_space):
    (user_space / ".ai").mkdir()
    (user_space / ".ai/state").write_text("in the way")
    (warning,) = land(project, NEW, entry_for())
    assert "Not recorded" in warning
    assert file.read_bytes() == NEW


def test_a_journal_that_cannot_be_finished_is_finished_by_the_next_call(project, file, monkeypatch):
    monkeypatch.setattr(journal, "_finish", lambda _: (_ for _ in ()).throw(OSError(5, "dying")))
    land(project, NEW, entry_for())
    monkeypatch.undo()
    assert len(list(folder(project).glob("pending/*.json"))) == 1
    assert call(project, "undo")["status"] == "success"
    assert file.read_bytes() == OLD
    assert not list(folder(project).glob("pending/*.json"))


def test_a_record_that_could_not_be_written_whole_is_not_left(project, file, monkeypatch):
    monkeypatch.setattr(journal, "_pack", lambda *_: memoryview(b"x" * 10))
    monkeypatch.setattr(os, "fdopen", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    (warning,) = land(project, NEW, entry_for())
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
    entry = entry_for()
    with Workspace(str(project)) as ws:
        assert journal._begin(ws, entry, temporary.decode()) is not None
    for path, data in ((file, stands), (project / temporary.decode(), aside)):
        path.unlink(missing_ok=True)
        if data is not None:
            path.write_bytes(data)
    with Workspace(str(project)) as ws:
        journal.recover(ws)
        assert [found.id for found in journal.entries(ws)] == ([entry.id] if landed else [])
    assert not list(folder(project).glob("pending/*"))
    assert (file.read_bytes() if file.exists() else None) == afterwards
    assert [path.read_bytes() for path in project.glob("*.rye-conflict")] == kept
    assert not [name for name in os.listdir(project) if replace.is_temporary(os.fsencode(name))]
    if landed and afterwards == NEW:
        assert call(project, "undo")["status"] == "success"
        assert file.read_bytes() == OLD


@pytest.mark.parametrize(("stands", "aside", "landed"), [(OLD, None, False), (None, OLD, True), (None, None, True)])
def test_a_deletion_that_a_crash_ended(project, file, stands, aside, landed):
    temporary = temporary_name()
    entry = entry_for(after=None)
    with Workspace(str(project)) as ws:
        journal._begin(ws, entry, temporary.decode())
    if stands is None:
        file.unlink()
    if aside is not None:
        (project / temporary.decode()).write_bytes(aside)
    with Workspace(str(project)) as ws:
        journal.recover(ws)
        assert bool([*journal.entries(ws)]) == landed
    if landed:
        assert call(project, "undo")["status"] == "success"
        assert file.read_bytes() == OLD


def test_a_folder_that_is_gone_takes_its_pending_change_along(project):
    with Workspace(str(project)) as ws:
        journal._begin(ws, entry_for(path="gone/file"), temporary_name().decode())
        journal.recover(ws)
    assert not list(folder(project).rglob("*.json"))


def test_a_change_at_work_is_left_alone(project, file):
    with Workspace(str(project)) as ws:
        journal._begin(ws, entry_for(), temporary_name().decode())
        with cache.locked(ws, b"file"):
            journal.recover(ws)
            assert list(folder(project).glob("pending/*"))
        journal.recover(ws)
    assert not list(folder(project).glob("pending/*"))


def test_a_pending_record_names_no_file_but_a_temporary_one(project, file):
    with Workspace(str(project)) as ws:
        for victim in ("file", "../outside", ".git/config", ".rye-0123456789abcdef.txt"):
            journal._begin(ws, entry_for(), victim)
        (project.parent / "outside").write_text("stays")
        journal.recover(ws)
    assert file.read_bytes() == OLD
    assert (project.parent / "outside").read_text() == "stays"
    assert not list(folder(project).glob("pending/*"))


@pytest.mark.parametrize(
    "data", [b"", b"{", b"{}", b"[]", b"null", b'{"splices": 3}', b"\x78\x9c", os.urandom(300), b'{"a":' * 100_000]
)
def test_records_that_are_none_are_passed_over(project, file, data):
    land(project, NEW, entry_for())
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


@pytest.mark.parametrize("name", ["", "nope", "../x", "pending/x", "a" * 300, "\0"])
def test_unknown_entries(project, name):
    with Workspace(str(project)) as ws, pytest.raises(EditError) as caught:
        journal.find(ws, name)
    assert caught.value.code == "unknown_entry"


def test_old_entries_go_by_size_and_age(project, file, monkeypatch):
    # A change looks at all entries now and then; here always.
    real = journal.new_entry
    monkeypatch.setattr(journal, "new_entry", lambda *given: changed(made := real(*given), id=f"{made.id[:-1]}0"))
    for number in range(12):
        data = b"%d " % number + os.urandom(3_000).hex().encode() + b"\n"
        land(project, data, entry_for(file.read_bytes(), data))
    kept = sorted(folder(project).glob("*.json"))
    assert len(kept) == 12
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal.config, "number", lambda name: 20_000 if name == "journal.max_bytes" else 30)
        land(project, NEW, entry_for(file.read_bytes()))
    left = sorted(folder(project).glob("*.json"))
    assert 0 < len(left) < 12
    assert left[-1] not in kept
    assert sum(path.stat().st_size for path in left) <= 20_000
    month = time.time() - 31 * 86_400
    for path in left:
        os.utime(path, (month, month))
    land(project, OLD, entry_for(NEW, OLD))
    assert len(list(folder(project).glob("*.json"))) == 1

"""Commits of several files: all or none, and what the next call makes of one that was cut off."""

import hashlib
import os
import shutil
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rye.config import user_dirs
from rye.errors import WorkspaceError
from rye.fs import beneath
from rye.journal import commit, journal, recovery
from rye.journal import entries as edits_entries
from rye.workspace import cache
from rye.workspace.workspace import Workspace
from support.calling import done
from support.harness import files_of
from support.replacing import without

TOOL = "test/tool"
BEFORE = {"a": b"a old\n", "d/b": b"b old\n", "c": b"c old\n"}
# b is changed, c deleted, n created.
AFTER = {"a": b"a new\n", "d/b": b"b new\n", "n/n": b"n new\n"}
PATHS = ("a", "d/b", "c", "n/n")
FOREIGN = b"someone else's\n"


def digest_of(data):
    return hashlib.sha256(data).hexdigest()


class Cut(BaseException):
    """The process ends here, as far as the code under test can tell."""


@pytest.fixture(params=["exchange", "no exchange"])
def project(request, project, monkeypatch):
    """Also a file system that cannot exchange names."""
    if request.param != "exchange":
        without(monkeypatch, beneath.EXCHANGE)
    for path, data in BEFORE.items():
        (project / path).parent.mkdir(exist_ok=True)
        (project / path).write_bytes(data)
    return project


def change(project, before=BEFORE, wanted=AFTER, batch="batch"):
    names = dict.fromkeys([*before, *wanted])
    with Workspace(str(project)) as ws, ExitStack() as stack:
        places = [stack.enter_context(ws.place(path, create_parents=True)) for path in names]
        stack.enter_context(cache.locked(ws, *(place.path for place in places)))
        sides = [(before.get(path), wanted.get(path)) for path in names]
        made = [journal.whole_entry(ws, TOOL, place, *both) for place, both in zip(places, sides, strict=True)]
        changes = [commit.Change(place, new, entry) for place, (_, new), entry in zip(places, sides, made, strict=True)]
        return commit.commit(ws, changes, batch)


def settle(project):
    with Workspace(str(project)) as ws:
        return recovery.recover(ws)


def cut_at(monkeypatch, name, count):
    """End the process, as it were, when a function of commits is called for the `count`-th time."""
    real, seen = getattr(recovery, name), []

    def call(*arguments, **options):
        seen.append(name)
        if len(seen) == count:
            raise Cut
        return real(*arguments, **options)

    monkeypatch.setattr(recovery, name, call)


def entries(project):
    return {row["file_path"] for row in done("undo", project, list=True)["entries"]}


def nothing_left(project):
    assert not Path(user_dirs.commits_dir(str(project))).exists()
    assert not [path for path in project.rglob("*") if path.name.startswith(".rye-")]
    return True


def someone_writes_at_its_turn(project, path, monkeypatch, *, each=False):
    """Let another program write a file after all was verified, just before its turn comes."""
    real = recovery.exchange

    def turn(step, before, after):
        if step.place.shown == path:
            (project / path).write_bytes(FOREIGN)
            if not each:
                monkeypatch.setattr(recovery, "exchange", real)
        real(step, before, after)

    monkeypatch.setattr(recovery, "exchange", turn)


@pytest.mark.parametrize("path", PATHS)
def test_a_file_changed_in_the_last_moment_is_not_lost(project, path, monkeypatch):
    someone_writes_at_its_turn(project, path, monkeypatch)
    with pytest.raises(WorkspaceError) as caught:
        change(project)
    assert caught.value.code == "conflict"
    assert files_of(project) == {**BEFORE, path: FOREIGN}
    assert nothing_left(project)


def test_cut_off_while_it_is_taken_back(project, monkeypatch):
    someone_writes_at_its_turn(project, "c", monkeypatch, each=True)
    cut_at(monkeypatch, "exchange", 4)
    with pytest.raises(Cut):
        change(project)
    monkeypatch.undo()
    assert [path.suffix for path in Path(user_dirs.commits_dir(str(project))).iterdir()] == [".abort"]
    assert "taken back" in settle(project)[0]
    assert files_of(project) == {**BEFORE, "c": FOREIGN}
    assert not Path(user_dirs.commits_dir(str(project))).exists()


# At which exchange a commit was cut off, which file another program then wrote or removed (with its folder), and what the next
# call makes of it: the state before or after, and what is kept as .rye-conflict.
CUT_OFF = {
    "a file that waited, first": (1, "d/b", FOREIGN, BEFORE, [AFTER["d/b"]]),
    "a file that waited": (2, "d/b", FOREIGN, BEFORE, [AFTER["d/b"]]),
    "a file that was in place": (3, "a", b"a new, and more\n", AFTER, [BEFORE["a"]]),
    "a file that is gone": (4, "d/b", None, AFTER, []),
}


@pytest.mark.parametrize(("count", "path", "data", "wanted", "kept"), CUT_OFF.values(), ids=CUT_OFF)
def test_a_file_that_another_program_changed_after_a_kill_stays_as_it_is(project, monkeypatch, count, path, data, wanted, kept):
    cut_at(monkeypatch, "exchange", count)
    with pytest.raises(Cut):
        change(project)
    monkeypatch.undo()
    if data is None:
        shutil.rmtree((project / path).parent)
    else:
        (project / path).write_bytes(data)
    (said,) = settle(project)
    assert f"{path} was changed by another program meanwhile, and left as it is" in said or (data is None and path in said)
    beside = {path: data for path, data in files_of(project).items() if path.endswith(".rye-conflict")}
    assert [*beside.values()] == kept
    assert all(name.rpartition("/")[2] in said for name in beside)
    stands = {name: text for name, text in {**wanted, path: data}.items() if text is not None}
    assert files_of(project) == {**stands, **beside}
    assert entries(project) == (set(PATHS) if wanted is AFTER else set())
    with Workspace(str(project)) as ws:
        assert path in recovery.notes(ws, "batch")[0]


def test_a_commit_at_work_is_left_alone(project, monkeypatch):
    cut_at(monkeypatch, "exchange", 2)
    with pytest.raises(Cut):
        change(project)
    monkeypatch.undo()
    monkeypatch.setattr(recovery, "WAIT_SECONDS", 0.0)
    stands = files_of(project)
    with Workspace(str(project)) as ws, cache.locked(ws, b"a"):
        assert recovery.recover(ws) == []
    assert files_of(project) == stands
    # Its lock was waited for: the change settles it, and says so.
    assert "cut off" in change(project, {}, {"x": b"x"}, None).warnings[0]
    assert files_of(project) == {**AFTER, "x": b"x"}


@pytest.mark.parametrize("data", [b"", b"garbage", b'{"entries":[{}]}', b'{"entries":1}', None])
def test_a_record_cut_short_is_dropped_when_it_is_old_and_names_no_file_but_temporary_ones(project, data):
    name = "x"
    if data is None:
        with Workspace(str(project)) as ws:
            entry = journal.new_entry(ws, TOOL, "a", digest_of(b"x"), digest_of(b"y"), "utf-8", [])
        name, data = entry.id, edits_entries.dump({"entries": [{**edits_entries.record_of(entry), "temporary": "c"}]})
    record = Path(user_dirs.commits_dir(str(project))) / f"{name}.done"
    record.parent.mkdir(parents=True)
    record.write_bytes(data)
    assert settle(project) == []
    assert record.exists()
    os.utime(record, (0, 0))
    assert (settle(project), record.parent.exists()) == ([], False)
    assert files_of(project) == BEFORE


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_commit_cut_off_anywhere_is_all_or_nothing(tmp_path_factory, data):
    """Any files, changed, created and deleted; any moment; and no two states mixed."""
    project = tmp_path_factory.mktemp("project")
    names = [f"f{number}" for number in range(data.draw(st.integers(1, 5)))]
    old, new = (
        {name: text for name in names if (text := data.draw(st.none() | st.binary(max_size=6))) is not None} for _ in "on"
    )
    for name, content in old.items():
        (project / name).write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        if data.draw(st.booleans()):
            # A file system that cannot exchange names.
            without(patch, beneath.EXCHANGE)
        cut_at(
            patch,
            data.draw(st.sampled_from(["exchange", "prepare", "advance", "drop", "remove_temporary"])),
            data.draw(st.integers(1, 6)),
        )
        with suppress(Cut):
            if old or new:
                change(project, old, new)
    settle(project)
    found = files_of(project)
    assert found in (old, new)
    assert old == new or entries(project) == ({*old, *new} if found == new else set())
    assert nothing_left(project)
    assert settle(project) == []

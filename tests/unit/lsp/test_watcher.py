"""The kept listing: every change shows at the next look, unchanged folders are not listed again, large trees are cut."""

from __future__ import annotations

import os
import shutil
import time

import pytest

from rye.lsp import watcher
from rye.lsp.watcher import SourceFiles
from rye.workspace.workspace import Workspace


@pytest.fixture
def look(project):
    """Return what a look finds, by project-relative path."""
    sources = SourceFiles({".py"}, {"setup.cfg", ".clangd"})
    with Workspace(str(project)) as ws:
        yield lambda: {os.path.relpath(path, ws.root): stamp for path, stamp in sources.stamps(ws).items()}


@pytest.fixture
def settled(monkeypatch):
    """Every state counts as older than the clock's grain."""
    monkeypatch.setattr(watcher, "_settled", lambda *_: True)


@pytest.fixture
def listings(monkeypatch):
    """The folders that were listed."""
    listed = []
    right = SourceFiles._folder_entries
    monkeypatch.setattr(SourceFiles, "_folder_entries", lambda self, ws, name: listed.append(name) or right(self, ws, name))
    return listed


def fill(project, *names):
    for name in names:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x = 1\n")


def test_files_are_found_by_suffix_or_name_and_the_ignored_are_not(project, look):
    fill(
        project,
        "a.py",
        "B.PY",
        "sub/c.py",
        "setup.cfg",
        ".clangd",
        "d.txt",
        "node_modules/e.py",
        ".git/f.py",
        "x.egg-info/g.py",
    )
    fill(project, "target/h.py", "target/CACHEDIR.TAG", ".hidden.py")
    (project / "i.py").mkdir()
    (project / "i.py" / "j.py").write_text("")
    assert set(look()) == {"a.py", "B.PY", "sub/c.py", "setup.cfg", ".clangd", "i.py/j.py"}


CHANGES = {
    "in place": lambda root: (root / "sub/b.py").write_text("x = 2\n"),
    "appended": lambda root: (root / "sub/b.py").write_text("x = 1\ny = 2\n"),
    "with its time put back": lambda root: put_back(root / "sub/b.py"),
    "mode": lambda root: (root / "sub/b.py").chmod(0o600),
    "added": lambda root: fill(root, "sub/new.py"),
    "added where no source was": lambda root: fill(root, "empty/new.py"),
    "added, the folder's time put back": lambda root: put_back_folder(root / "empty"),
    "a folder made": lambda root: fill(root, "one/two/new.py"),
    "removed": lambda root: (root / "sub/b.py").unlink(),
    "renamed": lambda root: (root / "sub/b.py").rename(root / "sub/c.py"),
    "two swapped": lambda root: swap(root / "a.py", root / "sub/b.py"),
    "folder renamed": lambda root: (root / "sub").rename(root / "other"),
    "folder removed": lambda root: shutil.rmtree(root / "sub"),
    "folder replaced": lambda root: (shutil.rmtree(root / "sub"), fill(root, "sub/b.py")),
    "the target of a link": lambda root: (root / "linked.txt").write_text("y = 2\n"),
    "a link turned": lambda root: ((root / "link.py").unlink(), (root / "link.py").symlink_to("a.py")),
}


def put_back(file):
    info = file.stat()
    file.write_text("x = 2\n")
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))


def put_back_folder(folder):
    info = folder.stat()
    fill(folder, "new.py")
    os.utime(folder, ns=(info.st_atime_ns, info.st_mtime_ns))


def swap(one, other):
    one.rename(one.with_suffix(".aside"))
    other.rename(one)
    one.with_suffix(".aside").rename(other)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_shows_at_the_next_look(project, look, change):
    fill(project, "a.py", "sub/b.py", "linked.txt")
    (project / "empty").mkdir()
    (project / "link.py").symlink_to("linked.txt")
    time.sleep(0.08)
    before = look()
    assert look() == before
    change(project)
    assert look() != before


def test_what_changes_within_the_clocks_grain_shows_too(project, look):
    fill(project, "a.py")
    before = look()
    assert look() != before, "too young to be told from what comes next"
    time.sleep(0.08)
    assert look() == look()


@pytest.fixture
def coarse(monkeypatch):
    """A file system whose clock has not moved since the last change."""
    monkeypatch.setattr(watcher, "_state", lambda info: (info.st_dev, info.st_ino, info.st_size))


def test_a_change_that_no_time_tells_shows_while_the_state_is_young(project, look, coarse):
    fill(project, "a.py")
    before = look()
    (project / "a.py").write_text("x = 2\n")
    assert look() != before


def test_control_a_young_state_that_is_trusted_hides_it(project, look, coarse, settled):
    fill(project, "a.py")
    before = look()
    (project / "a.py").write_text("x = 2\n")
    assert look() == before


def test_a_folder_is_listed_again_only_when_it_changed(project, look, listings):
    fill(project, "a.py", "one/b.py", "two/c.py")
    time.sleep(0.08)
    look()
    assert sorted(listings) == ["", "one", "two"]
    listings.clear()
    (project / "one" / "b.py").write_text("x = 3\n")
    look()
    assert listings == []
    fill(project, "two/d.py")
    look()
    assert listings == ["two"]


def test_a_linked_folder_is_not_walked_and_one_put_in_the_way_neither(project, look, tmp_path):
    fill(tmp_path / "outside", "secret.py")
    (project / "link").symlink_to(tmp_path / "outside")
    fill(project, "sub/a.py")
    assert set(look()) == {"sub/a.py"}
    (project / "sub").rename(project / "away")
    (project / "sub").symlink_to(tmp_path / "outside")
    assert set(look()) == {"away/a.py"}


@pytest.mark.parametrize(("limit", "most"), [("MAX_FILES", 10), ("MAX_FOLDERS", 4)])
def test_a_large_tree_is_cut_and_says_so(project, look, monkeypatch, limit, most):
    fill(project, *(f"d{at}/f{at}.py" for at in range(12)), "a.py")
    monkeypatch.setattr(watcher, limit, most)
    sources = SourceFiles({".py"})
    with Workspace(str(project)) as ws:
        found = sources.stamps(ws)
        assert not sources.complete
        assert f"{ws.root}/a.py" in found, "the shallow ones come first"
        monkeypatch.undo()
        assert len(sources.stamps(ws)) == 13
        assert sources.complete

"""The source files that a language server is told of: every change of one shows at the next look, large trees are cut."""

from __future__ import annotations

import os
import shutil
import time

import pytest

from rye.lsp import session
from rye.lsp.servers import LanguageServer
from rye.workspace.workspace import Workspace

SERVER = LanguageServer("any", (), {".py": "python"}, {}, 1.0, 1, ("setup.cfg", ".clangd"))


def look(project):
    """Return what a look finds, by project-relative path."""
    with Workspace(str(project)) as ws:
        found, _ = session.source_stamps(ws, SERVER)
        return {os.path.relpath(path, ws.root): stamp for path, stamp in found.items()}


def fill(project, *names):
    for name in names:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x = 1\n")


def test_files_are_found_by_suffix_or_name_and_the_ignored_are_not(project):
    fill(project, "a.py", "B.PY", "sub/c.py", "setup.cfg", ".clangd", "i.py/j.py", "d.txt", "node_modules/e.py", ".git/f.py")
    fill(project, "x.egg-info/g.py", "target/h.py", "target/CACHEDIR.TAG", ".hidden.py")
    assert set(look(project)) == {"a.py", "B.PY", "sub/c.py", "setup.cfg", ".clangd", "i.py/j.py"}


CHANGES = {
    "with its time put back": lambda root: put_back(root / "sub/b.py"),
    "added where no source was": lambda root: fill(root, "empty/new.py"),
    "removed": lambda root: (root / "sub/b.py").unlink(),
    "folder renamed": lambda root: (root / "sub").rename(root / "other"),
    "folder replaced": lambda root: (shutil.rmtree(root / "sub"), fill(root, "sub/b.py")),
    "the target of a link": lambda root: (root / "linked.txt").write_text("y = 2\n"),
    "a link turned": lambda root: ((root / "link.py").unlink(), (root / "link.py").symlink_to("a.py")),
}


def put_back(file):
    info = file.stat()
    file.write_text("x = 2\n")
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_shows_at_the_next_look(project, change):
    fill(project, "a.py", "sub/b.py", "linked.txt")
    (project / "empty").mkdir()
    (project / "link.py").symlink_to("linked.txt")
    assert look(project) != look(project), "too young to be told from what comes next"
    time.sleep(0.08)
    before = look(project)
    assert look(project) == before
    change(project)
    assert look(project) != before


def test_a_linked_folder_is_not_walked(project, tmp_path):
    fill(tmp_path / "outside", "secret.py")
    (project / "link").symlink_to(tmp_path / "outside")
    fill(project, "sub/a.py")
    assert set(look(project)) == {"sub/a.py"}


@pytest.mark.parametrize(("limit", "most"), [("MAX_FILES", 10), ("MAX_FOLDERS", 4)])
def test_a_large_tree_is_cut_and_says_so(project, monkeypatch, limit, most):
    fill(project, *(f"d{at}/f{at}.py" for at in range(12)), "a.py")
    with Workspace(str(project)) as ws:
        found, whole = session.source_stamps(ws, SERVER)
        assert (len(found), whole) == (13, True)
        monkeypatch.setattr(session, limit, most)
        found, whole = session.source_stamps(ws, SERVER)
        assert not whole
        assert f"{ws.root}/a.py" in found, "the shallow ones come first"

"""The searching child: where it stands, what it may become, how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from rye.call.context import Deadline, using
from rye.errors import UsageError, WorkspaceError
from rye.filesearch import ripgrep
from rye.filesearch import tree as filesearch_tree
from rye.filesearch.ripgrep import Pattern, SearchScope
from rye.process.child import Child, Command, split_records
from rye.workspace.workspace import Workspace
from support.calling import refused
from support.waiting import PATIENCE, until

BINARY = ripgrep.locate(os.stat("/"))


@pytest.fixture(params=["python", "ripgrep"])
def engine(request, monkeypatch):
    """Search without ripgrep, and with it."""
    if request.param == "python":
        monkeypatch.setattr(ripgrep, "locate", lambda _: None)
    elif BINARY is None:
        pytest.skip("ripgrep is not installed")
    return request.param


def names(tree, view=SearchScope()):
    return sorted(os.fsdecode(name) for some in tree.files(view) for name in some)


def test_options_in_a_pattern_are_text(project, engine):
    (project / "a").write_text("--pre=./run\n-e\n")
    (project / "run").write_text(f"#!/bin/sh\ntouch {project}/ran\n")
    (project / "run").chmod(0o755)
    with Workspace(str(project)) as ws, filesearch_tree.opened(ws, ".") as tree:
        for text in ("--pre=./run", "-e"):
            assert dict(item for some in tree.counts(Pattern(text), SearchScope()) for item in some)["a"] == 1
    assert not (project / "ran").exists()


@pytest.mark.skipif(BINARY is None, reason="ripgrep is not installed")
def test_control_the_same_words_without_care_run_a_program(project):
    (project / "a").write_text("x\n")
    (project / "run").write_text(f"#!/bin/sh\ntouch {project}/ran\n")
    (project / "run").chmod(0o755)
    subprocess.run(
        [ripgrep.locate(os.stat("/")), f"--pre={project}/run", "x", "."], cwd=project, check=False, capture_output=True
    )
    assert (project / "ran").exists()


def test_a_configuration_of_the_user_or_the_project_changes_nothing(project, engine, monkeypatch, tmp_path):
    (tmp_path / "rc").write_text("--files-with-matches\n--glob=!*.py\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "rc"))
    for name in (".ignore", ".rgignore", "../.gitignore"):
        (project / name).write_text("*.py\n")
    (project / "a.py").write_text("x\n")
    with Workspace(str(project)) as ws, filesearch_tree.opened(ws, ".") as tree:
        assert names(tree) == ["a.py"]


def test_rules_above_the_folder_count_up_to_the_root(project, engine):
    (project / "src/lib").mkdir(parents=True)
    (project / ".gitignore").write_text("*.log\n/src/lib/gen.py\n/gen.py\nlib/deep\n")
    (project / "src/.gitignore").write_text("!keep.log\n")
    for name in ("a.log", "keep.log", "gen.py", "a.py", "deep"):
        (project / "src/lib" / name).write_text("x\n")
    with Workspace(str(project)) as ws, filesearch_tree.opened(ws, "src/lib") as tree:
        assert names(tree, filesearch_tree.view_of(tree, hidden=False, no_ignore=False)) == ["a.py", "deep", "keep.log"]
        assert names(tree, SearchScope(no_ignore=True)) == ["a.log", "a.py", "deep", "gen.py", "keep.log"]


def test_the_folder_searched_is_the_one_held(project, engine):
    (project / "src").mkdir()
    (project / "src/a.py").write_text("x\n")
    with Workspace(str(project)) as ws, filesearch_tree.opened(ws, "src") as tree:
        (project / "src").rename(project / "moved")
        (project / "src").symlink_to("/etc")
        assert names(tree) == ["a.py"]


def test_links_are_not_followed_and_not_listed(project, engine):
    (project.parent / "secret").write_text("x\n")
    (project / "out").symlink_to(project.parent)
    (project / "file").symlink_to(project.parent / "secret")
    (project / "loop").symlink_to(".")
    (project / "a").write_text("x\n")
    with Workspace(str(project)) as ws, filesearch_tree.opened(ws, ".") as tree:
        assert names(tree, SearchScope(hidden=True, no_ignore=True)) == ["a"]
        assert tree.exists("a")
        assert not tree.exists("file")
        assert not tree.exists("loop/a")


def test_a_folder_outside_is_refused(project, engine):
    (project / "out").symlink_to(project.parent)
    for path in ("..", "out", "/etc"):
        with Workspace(str(project)) as ws, pytest.raises(WorkspaceError) as caught, filesearch_tree.opened(ws, path):
            pass
        assert caught.value.code == "path_outside"


def test_another_ripgrep_counts_only_outside_the_project(project, monkeypatch, tmp_path):
    for folder in (project, tmp_path / "tools"):
        folder.mkdir(exist_ok=True)
        (folder / "rg").write_text("#!/bin/sh\n")
        (folder / "rg").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere/python"))
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", str(project))
    assert ripgrep.locate(project.stat()) is None
    monkeypatch.setenv("PATH", str(tmp_path / "tools"))
    assert ripgrep.locate(project.stat()) == str(tmp_path / "tools/rg")
    # By a link in the project, or through a folder that is one, it is what the project can change at any time.
    (project / "rg").unlink()
    (project / "rg").symlink_to(tmp_path / "tools/rg")
    (project / "tools").symlink_to(tmp_path / "tools")
    for folder in (project, project / "tools"):
        monkeypatch.setenv("PATH", str(folder))
        assert ripgrep.locate(project.stat()) is None
    # Nor through the project and out again: it could be led elsewhere there.
    (tmp_path / "way").symlink_to(project)
    (tmp_path / "hop").mkdir()
    (tmp_path / "hop/rg").symlink_to(project / "rg")
    for folder in (tmp_path / "way", tmp_path / "hop"):
        monkeypatch.setenv("PATH", str(folder))
        assert ripgrep.locate(project.stat()) is None
    # What is started is the very file that was judged.
    (tmp_path / "links").mkdir()
    (tmp_path / "links/rg").symlink_to(tmp_path / "tools/rg")
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert ripgrep.locate(project.stat()) == str(tmp_path / "tools/rg")


def test_a_bad_pattern_is_an_error(project, engine):
    (project / "a").write_text("x\n")
    with Workspace(str(project)) as ws, filesearch_tree.opened(ws, ".") as tree, pytest.raises(UsageError) as caught:
        list(tree.counts(Pattern("x[a"), SearchScope()))
    assert caught.value.code == "bad_pattern"
    assert "\n    x[a\n     ^\nerror: un" in str(caught.value)


def test_a_child_is_ended_with_all_it_started(project):
    command = Command(["/bin/sh", "-c", "sleep 200 & echo $!; sleep 200"])
    root = os.open(project, os.O_PATH)
    started = time.monotonic()
    with Child(command, root, 0.3) as child:
        said = b"".join(child.blocks())
    os.close(root)
    assert child.timed_out
    assert time.monotonic() - started < PATIENCE

    def is_over():
        state = subprocess.run(["ps", "-o", "stat=", "-p", said.strip()], capture_output=True, text=True, check=False).stdout
        return state.strip()[:1] in ("", "Z")

    # It was killed; a busy machine takes its time to end it.
    assert until(is_over)


def test_a_child_sees_no_secrets(project, monkeypatch):
    monkeypatch.setenv("TOKEN", "secret")
    root = os.open(project, os.O_PATH)
    with Child(Command(["/usr/bin/env"]), root, 5) as child:
        assert b"secret" not in b"".join(child.blocks())
    os.close(root)


def test_records_are_joined_over_the_seams():
    data = b"ab\0\0c" + b"d" * 50 + b"\0e\0rest"
    for size in range(1, 12):
        blocks = [data[at : at + size] for at in range(0, len(data), size)]
        assert [one for some in split_records(iter(blocks), b"\0") for one in some] == [b"ab", b"", b"c" + b"d" * 50, b"e"]


def test_a_child_that_fails_is_no_search_without_matches(project, monkeypatch):
    (project / "a").write_text("x\n")
    monkeypatch.setattr(ripgrep, "locate", lambda _: None)
    monkeypatch.setattr("rye.process.child._BOOT", "import sys; sys.exit(70)")
    with Workspace(str(project)) as ws, filesearch_tree.opened(ws, ".") as tree, pytest.raises(WorkspaceError) as caught:
        list(tree.counts(Pattern("x"), SearchScope()))
    assert caught.value.code == "search_failed"


def test_a_search_ends_with_its_call_and_says_so(project, engine):
    with open(project / "a", "wb") as file:
        file.writelines(b"a" * (1 << 20) for _ in range(60))
    with using(deadline=Deadline(0.32)), Workspace(str(project)) as ws, filesearch_tree.opened(ws, ".") as tree:
        assert list(tree.counts(Pattern("a+b|a+c"), SearchScope())) in ([], [[]])
        assert tree.timed_out


@pytest.mark.skipif(BINARY is None, reason="ripgrep is not installed")
def test_a_line_too_long_for_memory_is_refused_in_bounded_memory(project, monkeypatch):
    with open(project / "long", "wb") as file:
        file.writelines(b"a" * (1 << 20) for _ in range(220))
    monkeypatch.setattr(filesearch_tree, "MAX_MEMORY", 200 << 20)
    assert "needed more memory" in refused("search_failed", "grep", project, pattern="needle")

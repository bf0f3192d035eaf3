"""A whole home is no project unless it is named: every front end refuses it, and a folder above it, too."""

import subprocess
import sys

import pytest

import rye
from rye.errors import UsageError
from support.harness import environment
from support.mcp_peer import peer

WRITE = ["execute", "rye/file-system/write", "file_path=.config/git/config", "content=evil"]


@pytest.fixture(params=["the home", "a folder above it", "a home with items"])
def place(request, tmp_path, monkeypatch):
    """The folder that a client starts in, and the user's home."""
    home = tmp_path / "above/home"
    (home / ".config/git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("USER_SPACE")
    if request.param == "a home with items":
        (home / ".ai/tools").mkdir(parents=True)
    here = home.parent if request.param == "a folder above it" else home
    monkeypatch.chdir(here)
    return here, home


def python(*words):
    return subprocess.run([sys.executable, *words], env=environment(), capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow
def test_no_front_end_takes_it_for_a_project(place):
    _, home = place
    for words in (["rye", *WRITE], ["rye.cli.rt.main", "create", ".config/git/config"], ["rye", "mcp"]):
        done = python("-m", *words)
        assert "is no project's folder" in done.stderr, done
        assert done.returncode != 0 or words[-1] == "mcp", done
    with pytest.raises(UsageError, match="is no project's folder"):
        rye.toolset()
    with pytest.raises(UsageError, match="is no project's folder"):
        rye.execute("rye/file-system/write", {"file_path": "x", "content": "x"})
    assert not (home / ".config/git/config").exists()


@pytest.mark.parametrize("where", ["home", "temporary"])
def test_a_server_that_a_client_starts_there_says_so_in_each_call(tmp_path, where):
    """A client shows that, and of a server that ended only that it failed. Control: in a folder below it is a project."""
    home = tmp_path / "home"
    (home / "below").mkdir(parents=True)
    env = environment(HOME=str(home if where == "home" else tmp_path / "x"), TMPDIR=str(home))
    env.pop("USER_SPACE", None)
    said = []
    for folder in (home, home / "below"):
        with peer(folder, words=[sys.executable, "-m", "rye", "mcp"], env=env) as server:
            said.append(server.call("write", {"file_path": "made", "content": "x"}))
    assert said[0]["isError"]
    assert f"{home} is no project's folder: " in said[0]["content"][0]["text"]
    assert not (home / "made").exists()
    assert (home / "below/made").exists()


@pytest.mark.slow
def test_control_named_it_is_one(place):
    here, _ = place
    done = python("-m", "rye", *WRITE[:2], "file_path=made", "content=x", "--project", str(here))
    assert done.returncode == 0, done
    assert (here / "made").read_text() == "x"


def test_a_project_below_the_home_is_one(place, monkeypatch):
    _, home = place
    project = home / "work"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    assert rye.execute("rye/file-system/write", {"file_path": "x", "content": "x"})["status"] == "success"
    assert (project / "x").exists()


def test_a_project_that_keeps_a_home_for_its_builds_is_one(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / ".home"))
    monkeypatch.chdir(tmp_path)
    assert rye.execute("rye/file-system/write", {"file_path": "x", "content": "x"})["status"] == "success"

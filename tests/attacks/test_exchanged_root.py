"""A running server or toolset whose project folder is exchanged for another one: nothing is served out of that."""

import os
import subprocess
from types import SimpleNamespace

import pytest

import rye
from rye.config import user_dirs
from rye.errors import RyeError
from rye.fs import beneath
from rye.sandbox import bubblewrap, sandbox
from rye.workspace.workspace import Workspace
from support.calling import call, done, rows
from support.machine import needs_bubblewrap
from support.mcp_peer import peer
from support.shell_calls import job, started
from support.waiting import until


@pytest.fixture
def inner(project, tmp_path):
    """A project inside another, and the place that the outer agent wants to reach: `exchange` puts it there."""
    place = project / "pkg"
    place.mkdir()
    (place / "a.txt").write_text("inner\n")
    home = tmp_path / "home"
    home.mkdir()
    (home / "a.txt").write_text("secret\n")
    return place


def exchange(place, tmp_path, how):
    place.rename(tmp_path / "moved")
    if how == "link":
        place.symlink_to(tmp_path / "home")
    else:
        (tmp_path / "home").rename(place)


@pytest.mark.parametrize("how", ["link", "folder"])
def test_a_toolset_refuses_another_folder(inner, tmp_path, how):
    tools = rye.toolset(str(inner))
    assert "inner" in tools.call("read", {"file_path": "a.txt"})
    exchange(inner, tmp_path, how)
    for name, arguments in [
        ("read", {"file_path": "a.txt"}),
        ("write", {"file_path": "b.txt", "content": "x"}),
        ("bash", {"command": "cat a.txt; touch b.txt"}),
        ("ls", {}),
    ]:
        response = tools.respond(name, arguments)
        assert response["code"] == "project_changed", response
        assert "secret" not in str(response)
    assert not (inner / "b.txt").exists()
    # The control: a call that pins nothing goes where the name leads.
    assert "secret" in done("read", inner, file_path="a.txt")["output"]


@pytest.mark.parametrize("how", ["link", "folder"])
def test_a_server_refuses_another_folder(inner, tmp_path, how):
    with peer(inner, "--meta") as server:
        assert "inner" in server.text("read", file_path="a.txt")
        exchange(inner, tmp_path, how)
        nested = {"item_type": "tool", "item_id": "rye/file-system/read", "parameters": {"file_path": "a.txt"}}
        for name, arguments in [("read", {"file_path": "a.txt"}), ("rye_execute", nested)]:
            result = server.call(name, arguments)
            assert result["isError"]
            assert "secret" not in str(result)
            assert "is another folder now" in result["content"][0]["text"]
        for method in ("tools/list", "resources/list"):
            assert "is another folder now" in server.ask(method)["error"]["message"]


@pytest.mark.parametrize("layer", ["bubblewrap", "landlock", "none"])
def test_the_sandbox_takes_the_root_that_was_opened(inner, tmp_path, layer, monkeypatch):
    why_not = sandbox.layers()
    if why_not.get(layer):
        pytest.skip(why_not[layer])
    if layer != "bubblewrap":
        monkeypatch.setattr(sandbox, "layers", lambda: {"bubblewrap": "x", "landlock": "" if layer == "landlock" else "x"})
    with Workspace(str(inner)) as ws:
        policy = sandbox.Policy(ws.real, ws.real, identity=ws.identity)
        exchange(inner, tmp_path, "folder")
        with pytest.raises(RyeError) as caught:
            sandbox.confine(["/bin/true"], policy, "auto")
        assert caught.value.code == "project_changed"
    # The control: without the identity it is confined to the other folder.
    confined = sandbox.confine(["/bin/true"], sandbox.Policy(str(inner), str(inner)), "auto")
    confined.close()
    confined.finish()


def test_an_exchange_while_the_mounts_are_made_is_seen(inner, tmp_path, monkeypatch):
    if why_not := sandbox.layers()["bubblewrap"]:
        pytest.skip(why_not)
    with Workspace(str(inner)) as ws:
        policy = sandbox.Policy(ws.real, ws.real, identity=ws.identity)
        bound, places = bubblewrap._mount_options, []

        def late(option, path, fds):
            if path == str(inner) and not places:
                places.append(path)
                exchange(inner, tmp_path, "folder")
                try:
                    return bound(option, path, fds)
                finally:
                    inner.rename(tmp_path / "home")
                    (tmp_path / "moved").rename(inner)
            return bound(option, path, fds)

        monkeypatch.setattr(bubblewrap, "_mount_options", late)
        with pytest.raises(RyeError) as caught:
            sandbox.confine(["/bin/true"], policy, "auto")
        assert caught.value.code == "project_changed"
        assert places
    assert not [fd for fd in os.listdir("/proc/self/fd") if os.path.realpath(f"/proc/self/fd/{fd}") == str(tmp_path / "home")]


# --- what is stored for a project ---


def test_a_renamed_project_keeps_its_journal_and_ids(project, tmp_path):
    (project / "a.txt").write_text("a\nb\n")
    known = rows(done("read", project, file_path="a.txt"))
    done("edit_lines", project, file_path="a.txt", changes=[{"line_id": known[0][0], "new_content": "A"}])
    renamed = tmp_path / "renamed"
    project.rename(renamed)
    assert rows(done("read", renamed, file_path="a.txt"))[1] == known[1]
    done("undo", renamed)
    assert (renamed / "a.txt").read_text() == "a\nb\n"


def test_a_new_folder_at_the_old_path_gets_nothing(project, tmp_path):
    (project / "a.txt").write_text("a\n")
    done("write", project, file_path="a.txt", content="b\n")
    key = user_dirs.project_key(str(project))
    project.rename(tmp_path / "old")
    project.mkdir()
    (project / "a.txt").write_text("b\n")
    assert user_dirs.project_key(str(project)) != key
    assert done("undo", project, list=True)["entries"] == []
    assert not call("undo", project)["success"]
    assert (project / "a.txt").read_text() == "b\n"


def test_the_key_does_not_depend_on_the_device_number(project, monkeypatch):
    """It changes at a reboot."""
    key, true = user_dirs.project_key(str(project)), os.fstat
    monkeypatch.setattr(os, "fstat", lambda fd: os.stat_result((*true(fd)[:2], 99, *true(fd)[3:])))
    assert user_dirs.project_key(str(project)) == key


def test_where_inodes_are_given_anew_at_each_mount_the_path_names_the_project(project, tmp_path, monkeypatch):
    monkeypatch.setattr(beneath, "birth_time", lambda _: (0, 0))
    monkeypatch.setattr(os, "fstatvfs", lambda _: SimpleNamespace(f_fsid=0))
    key = user_dirs.project_key(str(project))
    project.rename(tmp_path / "other")
    project.mkdir()
    assert (user_dirs.project_key(str(project)), user_dirs.project_key(str(tmp_path / "other")) == key) == (key, False)


@needs_bubblewrap
@pytest.mark.slow
def test_the_look_of_a_job_follows_its_folder(project, tmp_path):
    evil = "git init -q new; git -C new config core.pager ./evil"
    job_id = started(project, f"{evil}; echo made; sleep 60")
    until(lambda: "made" in job(project, "read", job_id)["output"])
    renamed = tmp_path / "renamed"
    project.rename(renamed)
    project.mkdir()
    # The user's own, in another folder that has taken the path.
    subprocess.run(evil, shell=True, cwd=project, check=True)
    data = job(renamed, "wait", job_id, timeout=60)
    assert data["why"] == "unprotected"
    assert [one["what"] for one in data["set_aside"]] == ["core.pager"]
    assert "pager" not in (renamed / "new/.git/config").read_text()
    assert "pager" in (project / "new/.git/config").read_text()
    assert job(project, "list")["jobs"] == []

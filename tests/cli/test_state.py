"""`rye state`: what is stored for projects, and a moved project that gets it back."""

import json
import os
import shutil
import socket
import time
from pathlib import Path

import pytest

from rye.config import stored_state, user_dirs
from rye.config.stored_state import StoredState
from support.calling import call, done, rows
from support.in_process import rye as shell
from support.shell_calls import configure
from support.terminal import typed


@pytest.fixture
def copied(project, tmp_path):
    """A project with one change, copied elsewhere and removed: another folder."""
    (project / ".git").mkdir()
    (project / "a.txt").write_text("a\nb\n")
    known = rows(done("read", project, file_path="a.txt"))
    done("edit_lines", project, file_path="a.txt", changes=[{"line_id": known[0][0], "new_content": "A"}])
    key, copy = user_dirs.project_key(str(project)), tmp_path / "copy"
    shutil.copytree(project, copy)
    shutil.rmtree(project)
    return copy, key, known


def listed(folder):
    return {row["id"]: row for row in json.loads(shell("state", "list", "--json", cwd=folder).stdout)}


def test_list_tells_what_is_lost(copied):
    copy, key, _ = copied
    done("read", copy, file_path="a.txt")
    found = listed(copy)
    assert (found[key]["lost"], found[key]["changes"], os.path.basename(found[key]["path"])) == (True, 1, "project")
    assert not found[user_dirs.project_key(str(copy))]["lost"]
    table = shell("state", "list", cwd=copy).stdout.decode()
    # Sizes are told by kind and as a sum.
    assert found[key]["bytes"] == sum(found[key]["kinds"].values()) > found[key]["kinds"]["journal"] > 0
    assert [word for word in (f"{key}  lost", "journal ", "2 stored, ", " KB.\n") if word not in table] == []


def test_prune_removes_what_is_lost_and_then_what_was_used_longest_ago():
    now = time.time()

    def row(name, hours, size, *, lost=False, busy=False):
        return StoredState(name, "", lost, {"journal": size}, now - hours * 3_600, busy)

    rows = [row("busy", 0, 50), row("old", 90, 10), row("older", 100, 10), row("gone", 2, 10, lost=True), row("mid", 5, 10)]
    rows.append(row("job", 200, 10, busy=True))
    # What is in use stays.
    for most, names in ((1_000, "gone"), (90, "gone"), (75, "gone older old"), (0, "gone older old mid")):
        assert [one.key for one in stored_state.removable(rows, now - 3_600, now, most)] == names.split()


def test_a_person_is_asked_before_anything_is_removed(copied):
    copy, key, _ = copied
    assert "1 lost, but used within the hour" in at_a_terminal("prune", cwd=copy)
    state = os.path.join(user_dirs.user_ai(), "state", key)
    long_ago = time.time() - 86_400
    for folder, _, files in os.walk(state):
        for name in [*files, "."]:
            os.utime(os.path.join(folder, name), (long_ago, long_ago))
    assert shell("state", "prune", cwd=copy).returncode == 1
    assert "Nothing was removed" in at_a_terminal("prune", cwd=copy, answer="no")
    assert os.path.isdir(state)
    shown = at_a_terminal("prune", cwd=copy)
    assert ("1 removed." in shown, key in shown, os.path.exists(state), listed(copy)) == (True, True, False, {})
    assert "Nothing to remove" in at_a_terminal("prune", cwd=copy)


def at_a_terminal(*words, cwd, answer="yes"):
    return typed("state", *words, cwd=cwd, answers=[answer])[1]


def test_a_renamed_project_is_not_lost(project, tmp_path):
    (project / ".git").mkdir()
    (project / "a.txt").write_text("a\n")
    done("read", project, file_path="a.txt")
    project.rename(tmp_path / "renamed")
    (row,) = listed(tmp_path / "renamed").values()
    assert (row["lost"], os.path.basename(row["path"])) == (False, "renamed")


def test_adopt_brings_undo_and_line_ids_back(copied):
    copy, key, known = copied
    assert not call("undo", copy)["success"]
    answer = shell("state", "adopt", key, cwd=copy, stdin=b"yes\n")
    assert (answer.returncode, b"Only a person at a terminal may adopt" in answer.stderr) == (1, True)
    assert "Nothing was moved" in at_a_terminal("adopt", key, cwd=copy, answer="no")
    assert listed(copy)[key]["changes"] == 1
    assert "1 changes" in at_a_terminal("adopt", key, cwd=copy)
    assert rows(done("read", copy, file_path="a.txt"))[1] == known[1]
    done("undo", copy)
    assert (copy / "a.txt").read_text() == "a\nb\n"
    assert key not in {name for name, row in listed(copy).items() if row["changes"]}


def test_adopt_keeps_what_the_project_has_of_its_own(copied):
    copy, key, known = copied
    seen = {name for name, _ in known}
    (entry,) = (copy / ".ai/cache/tools/read/line_index").glob("*.json")
    entry.unlink()
    for _ in range(3):
        seen |= {name for name, _ in rows(done("read", copy, file_path="a.txt"))}
        entry.unlink()
    done("write", copy, file_path="b.txt", content="b\n")
    at_a_terminal("adopt", key, cwd=copy)
    assert [row["tool"].rpartition("/")[2] for row in done("undo", copy, list=True)["entries"]] == ["write", "edit_lines"]
    fresh = {name for name, text in rows(done("read", copy, file_path="a.txt"))}
    assert not fresh & (seen - {name for name, _ in known})


def test_state_in_use_and_unknown_ids_are_refused(project, tmp_path):
    (project / ".git").mkdir()
    (project / "a.txt").write_text("a\n")
    done("write", project, file_path="a.txt", content="b\n")
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    for wanted in (user_dirs.project_key(str(project)), "nonsense", "../../keys"):
        assert "There is no lost state" in at_a_terminal("adopt", wanted, cwd=other)
    assert done("undo", project, list=True)["entries"]


@pytest.fixture
def used(project, tmp_path, monkeypatch):
    """A project with a change and an item of its own, a key, settings and a client, all of a home that only this test has."""
    home = tmp_path / "own"
    monkeypatch.delenv("USER_SPACE", raising=False)
    monkeypatch.setenv("HOME", str(home))
    user = (f"{home}/.ai/{name}" for name in ("config/rye.yaml", "agents/other.txt", "trust/verdicts.txt"))
    for path in (*map(Path, user), project / ".ai/tools/mine/t.py", project / "a.txt"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    assert shell("write", "a.txt", "content=new", cwd=project).returncode == 0
    assert typed("keys", "generate", cwd=project)[0] == 0
    for client in ("claude-code", "codex", "gemini --scope project"):
        assert shell("mcp", "install", "--write", "--client", *client.split(), cwd=project).returncode == 0
    return project, home


def kinds(project):
    found = {}
    for row in json.loads(shell("uninstall", "--json", cwd=project).stdout):
        found.setdefault(row["kind"], []).append(row["path"])
    return found


def test_uninstall_lists_what_is_kept_and_removes_nothing(used):
    project, home = used
    before = kinds(project)
    assert before == {
        "state": [f"{home}/.ai/state"],
        "keys": [f"{home}/.ai/keys"],
        "trust": [f"{home}/.ai/trust", f"{home}/.ai/trusted_keys"],
        "settings": [f"{home}/.ai/config"],
        "clients": [f"{home}/.claude.json", f"{home}/.codex/config.toml"],
        "caches": [f"{project}/.ai/cache"],
        "yours": [f"{project}/.ai", f"{project}/.gemini/settings.json"],
    }
    done = shell("uninstall", cwd=project)
    assert (done.returncode, b"Nothing was removed." in done.stdout, b"pip uninstall rye-workspace" in done.stdout) == (0, 1, 1)
    # An agent's command removes nothing, whatever it says.
    done = shell("uninstall", "--all", "--yes", cwd=project)
    assert (done.returncode, b"Only a person" in done.stderr) == (1, True)
    assert typed("uninstall", "--keys", cwd=project, answers=["no"])[0] == 1
    assert kinds(project) == before


def test_uninstall_removes_what_is_named_and_no_file_of_a_project(used):
    project, home = used
    code, shown = typed("uninstall", "--clients", "--caches", cwd=project, answers=["yes"])
    assert (code, "3 removed." in shown) == (0, True), shown
    assert {*kinds(project)} == {"state", "keys", "trust", "settings", "yours"}
    assert "rye" not in (home / ".codex/config.toml").read_text()
    # The record is still there.
    assert shell("undo", cwd=project).returncode == 0
    assert (project / "a.txt").read_text() == ""
    outside = home / "outside"
    (outside / "cache").mkdir(parents=True)
    shutil.rmtree(project / ".ai/cache")
    (project / ".ai/cache").symlink_to(outside / "cache")
    assert typed("uninstall", "--all", "--yes", cwd=project)[0] == 0
    assert sorted(path.name for path in (home / ".ai").iterdir()) == ["agents"]
    assert (outside / "cache").is_dir()
    assert (project / ".ai/tools/mine/t.py").exists()
    assert (project / ".gemini/settings.json").read_text().count("rye")


@pytest.mark.parametrize("words", [["log"], ["diff"], ["blame", "a.txt"], ["read", "a.txt"], ["undo"]])
def test_a_users_space_that_cannot_be_one_is_named_with_what_to_set(project, tmp_path, words):
    (project / "a.txt").write_text("one\n")
    (tmp_path / "file").write_text("")
    for space in (tmp_path / "file", "/proc/none"):
        answer = shell(*words, cwd=project, env={"USER_SPACE": os.fspath(space)})
        if answer.returncode:
            assert b"set USER_SPACE" in answer.stderr, answer
    # Control: what is refused in the project is not said to be the space's fault.
    assert b"USER_SPACE" not in shell("read", "nothing.txt", cwd=project).stderr


# --- what is dropped once a day: state whose folder is long gone, and what there is too much of ---


DAY = 86_400


def project_with_state(tmp_path, name, days=0.0, size=0):
    """A project that the tools changed so many days ago, and its state."""
    root = tmp_path / name
    (root / ".git").mkdir(parents=True)
    done("write", root, file_path="a.txt", content="x\n")
    state = Path(user_dirs.state_dir(str(root)))
    (state / "large").write_bytes(os.urandom(size))
    aged(state, days)
    return root, state


def aged(state, days):
    then = time.time() - days * DAY
    for path in [*state.rglob("*"), state]:
        os.utime(path, (then, then), follow_symlinks=False)


def look_after(user_space, days):
    """Look at all states as a change does now and then, so many days after the last look."""
    stamp = user_space / ".ai/state/.pruned"
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.touch()
    os.utime(stamp, (time.time() - days * DAY,) * 2)
    stored_state.prune_when_due()


@pytest.mark.parametrize(("days", "is_gone", "dropped"), [(100, True, True), (80, True, False), (100, False, False)])
def test_the_state_of_a_project_that_is_long_gone_is_dropped(tmp_path, user_space, days, is_gone, dropped):
    root, state = project_with_state(tmp_path, "p", days=days)
    if is_gone:
        shutil.rmtree(root)
    # Odd things in the folder are no failure.
    (state.parent / "file").write_text("x")
    (state.parent / "link").symlink_to(tmp_path)
    # Not twice a day, and not after a jump of the clock.
    for since, looked in ((0.5, False), (60, False), (1.5, True)):
        look_after(user_space, since)
        assert state.exists() == (not (looked and dropped)), since


def test_beyond_the_bound_what_was_used_longest_ago_goes(tmp_path, user_space):
    states = [project_with_state(tmp_path, f"p{days}", days=days, size=100_000)[1] for days in (9, 5, 0)]
    for most, left in ((250_000, [False, True, True]), (1_000, [False, False, True])):
        configure(user_space, f"state: {{max_bytes: {most}}}\n")
        look_after(user_space, 1.5)
        # What is in use stays, however large.
        assert [state.exists() for state in states] == left


def test_a_state_with_a_job_in_it_stays(tmp_path, user_space, monkeypatch):
    root, state = project_with_state(tmp_path, "p")
    shutil.rmtree(root)
    (state / "jobs").mkdir()
    monkeypatch.chdir(state / "jobs")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("control")
        aged(state, 200)
        look_after(user_space, 1.5)
        assert state.exists()
    (state / "jobs/control").unlink()
    aged(state, 200)
    look_after(user_space, 1.5)
    assert not state.exists(), "control"

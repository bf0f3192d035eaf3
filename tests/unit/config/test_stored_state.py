"""State of all projects: measured, and dropped when its folder is long gone or there is too much of it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
from pathlib import Path

import pytest

import rye
from rye.config import stored_state, user_dirs

DAY = 86_400


def project_with_state(tmp_path, name, days=0.0, size=0):
    """A project that the tools changed so many days ago."""
    root = tmp_path / name
    (root / ".git").mkdir(parents=True)
    answer = rye.execute("rye/file-system/write", {"file_path": "a.txt", "content": "x\n"}, project_path=str(root))
    assert answer["status"] == "success"
    state = Path(user_dirs.state_dir(str(root)))
    if size:
        (state / "large").write_bytes(os.urandom(size))
    aged(state, days)
    return root, state


def aged(state, days):
    then = time.time() - days * DAY
    for path in [*state.rglob("*"), state]:
        os.utime(path, (then, then), follow_symlinks=False)


def test_each_state_says_where_it_came_from_and_how_large_it_is(tmp_path, user_space):
    root, state = project_with_state(tmp_path, "here", size=50_000)
    gone, _ = project_with_state(tmp_path, "gone", days=3)
    shutil.rmtree(gone)
    new, old = stored_state.stored_states()
    assert (new.key, new.path, new.lost, new.busy) == (state.name, str(root), False, False)
    assert 50_000 < new.size < 200_000
    assert (old.path, old.lost) == (str(gone), True)
    assert old.used < new.used


@pytest.mark.parametrize(("days", "is_gone", "dropped"), [(100, True, True), (80, True, False), (100, False, False)])
def test_the_state_of_a_project_that_is_long_gone_is_dropped(tmp_path, user_space, days, is_gone, dropped):
    root, state = project_with_state(tmp_path, "p", days=days)
    if is_gone:
        shutil.rmtree(root)
    assert bool(stored_state.prune()) == dropped
    assert state.exists() == (not dropped)


def test_beyond_the_bound_what_was_used_longest_ago_goes(tmp_path, user_space):
    states = [project_with_state(tmp_path, f"p{days}", days=days, size=100_000)[1] for days in (9, 5, 0)]
    (user_space / ".ai/config").mkdir(parents=True, exist_ok=True)
    (user_space / ".ai/config/rye.yaml").write_text("state:\n  max_bytes: 250000\n")
    assert [one.key for one in stored_state.prune()] == [states[0].name]
    assert [state.exists() for state in states] == [False, True, True]
    # What is in use stays, however large.
    (user_space / ".ai/config/rye.yaml").write_text("state:\n  max_bytes: 1000\n")
    stored_state.prune()
    assert [state.exists() for state in states] == [False, False, True]


def test_a_state_with_a_job_in_it_stays(tmp_path, user_space, monkeypatch):
    root, state = project_with_state(tmp_path, "p")
    shutil.rmtree(root)
    (state / "jobs").mkdir()
    monkeypatch.chdir(state / "jobs")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("control")
        aged(state, 200)
        assert stored_state.prune() == []
        assert stored_state.stored_states()[0].busy


def test_it_is_looked_at_once_a_day_and_not_after_a_jump_of_the_clock(tmp_path, user_space):
    root, state = project_with_state(tmp_path, "p", days=200)
    shutil.rmtree(root)
    stamp = stored_state.folder() / ".pruned"
    stored_state.prune_when_due()
    for days, left in ((0.5, True), (60, True), (1.5, False)):
        os.utime(stamp, (time.time() - days * DAY,) * 2)
        stored_state.prune_when_due()
        assert state.exists() == left, days


def test_odd_things_in_the_folder_are_no_failure(tmp_path, user_space):
    _, state = project_with_state(tmp_path, "p")
    (state / user_dirs.PROJECT_FILE).write_text(json.dumps([1]))
    (stored_state.folder() / "file").write_text("x")
    (stored_state.folder() / "link").symlink_to(tmp_path)
    assert [one.path for one in stored_state.stored_states()] == [""]

"""State of all projects is dropped when its folder is long gone or there is too much of it: once a day."""

import os
import shutil
import socket
import time
from pathlib import Path

import pytest

from rye.config import stored_state, user_dirs
from support.calling import done
from support.shell_calls import configure

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

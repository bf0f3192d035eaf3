"""What to do next where the system refuses: in the project, and in the user's own space."""

import os

import pytest

from support.in_process import rye


@pytest.mark.parametrize("words", [["log"], ["diff"], ["blame", "a.txt"], ["read", "a.txt"], ["undo"]])
def test_a_users_space_that_cannot_be_one_is_named_with_what_to_set(project, tmp_path, words):
    (project / "a.txt").write_text("one\n")
    (tmp_path / "file").write_text("")
    for space in (tmp_path / "file", "/proc/none"):
        done = rye(*words, cwd=project, env={"USER_SPACE": os.fspath(space)})
        if done.returncode:
            assert b"set USER_SPACE" in done.stderr, done
    # Control: what is refused in the project is not said to be the space's fault.
    done = rye("read", "nothing.txt", cwd=project)
    assert b"USER_SPACE" not in done.stderr

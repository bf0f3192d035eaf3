"""Where the user's own folders are."""

from __future__ import annotations

import os
import pwd

import pytest

from rye import state


@pytest.mark.parametrize("home", ["", "relative", "./here"])
def test_a_home_that_a_project_could_hold_is_not_taken(home, monkeypatch):
    monkeypatch.delenv("USER_SPACE", raising=False)
    monkeypatch.setenv("HOME", home)
    assert state.user_space() == pwd.getpwuid(os.getuid()).pw_dir


def test_an_absolute_home_is(tmp_path, monkeypatch):
    monkeypatch.delenv("USER_SPACE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state.user_ai() == str(tmp_path / ".ai")

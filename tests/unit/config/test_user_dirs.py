"""Where the user's own folders are."""

from __future__ import annotations

import os
import pwd

import pytest

from rye.config import user_dirs


@pytest.mark.parametrize("home", ["", "relative", "./here"])
def test_a_home_that_a_project_could_hold_is_not_taken(home, monkeypatch):
    monkeypatch.delenv("USER_SPACE", raising=False)
    monkeypatch.setenv("HOME", home)
    # An account that the password file does not name has none.
    accounts = {one.pw_uid: one.pw_dir for one in pwd.getpwall()}
    assert user_dirs.user_space() == (accounts.get(os.getuid(), "").rstrip("/") or "/")


def test_an_absolute_home_is(tmp_path, monkeypatch):
    monkeypatch.delenv("USER_SPACE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_dirs.user_ai() == str(tmp_path / ".ai")


def test_the_key_of_an_open_root_is_computed_once_and_never_that_of_another_folder(tmp_path, monkeypatch):
    from rye.workspace.workspace import Workspace

    computed = []
    monkeypatch.setattr(user_dirs, "_identity_key", lambda fd, real=user_dirs._identity_key: computed.append(fd) or real(fd))
    keys = []
    for name in ("a", "b", "a"):
        (tmp_path / name).mkdir(exist_ok=True)
        with Workspace(str(tmp_path / name)) as ws:
            # One descriptor number serves folder after folder.
            keys.append((ws.fd, {user_dirs.project_key(ws.fd) for _ in range(3)}))
    assert len(computed) == 3
    assert {fd for fd, _ in keys} == {keys[0][0]}
    assert keys[0] == keys[2] != keys[1]

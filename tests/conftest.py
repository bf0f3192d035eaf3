"""Fixtures for every test: a project of its own, and a user's space that is never the real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def user_space(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty user's space; child processes inherit it through the environment."""
    folder = tmp_path_factory.mktemp("user")
    monkeypatch.setenv("USER_SPACE", str(folder))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project folder (`tmp_path/project`), without `.git`; what lies beside it is outside."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder

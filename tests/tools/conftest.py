"""Fixtures of the tools' tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from support.shell_calls import set_sandbox

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["auto", "off"])
def mode(request: pytest.FixtureRequest, user_space: Path) -> str:
    """Commands run in the best sandbox of this machine, and without one."""
    set_sandbox(user_space, request.param)
    mode: str = request.param
    return mode


@pytest.fixture(scope="session")
def typescript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a fresh TypeScript 7."""
    npm = shutil.which("npm")
    if npm is None and "CI" not in os.environ:
        pytest.skip("npm is not installed; .ci/run installs it")
    folder = tmp_path_factory.mktemp("npm")
    done = subprocess.run(
        [npm or "npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, "typescript@7"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return folder / "node_modules" / ".bin"

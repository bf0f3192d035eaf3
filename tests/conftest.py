"""Fixtures for every test: a project of its own, and a user's space that is never the real one."""

from __future__ import annotations

import os
import random
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from rye.executor import worker_pool
from rye.sandbox import bubblewrap, environment, sandbox
from support.shell_calls import set_sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


# A busy machine is no failure: no example has a time limit.
settings.register_profile("rye", deadline=None)
settings.load_profile("rye")


def pytest_xdist_auto_num_workers() -> int:
    """Two processes for each core: half of the time of a test is waiting, for the disk and for processes."""
    return 2 * len(os.sched_getaffinity(0))


@pytest.fixture(autouse=True)
def user_space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty user's space; child processes inherit it through the environment."""
    folder = tmp_path_factory.mktemp("user")
    # A patch of its own, so that a test's `monkeypatch.undo()` does not bring the real home back.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("USER_SPACE", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def own_process(request: pytest.FixtureRequest) -> Iterator[None]:
    """A command called in this process leaves the other tests' module path, and does not close the process.

    No worker stands by for the next call: each test has a project of its own, in which nearly all make one call.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path])
        patch.setattr(environment, "close", lambda: None)
        if "standby" not in request.fixturenames:
            patch.setattr(worker_pool.WorkerPool, "_replace", worker_pool.WorkerPool._finish)
        yield


@pytest.fixture
def standby() -> None:
    """After each call a worker stands by for the next one, as outside of the tests."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project folder (`tmp_path/project`), without `.git`; what lies beside it is outside."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def number() -> str:
    """A number of seconds by which a test finds its own sleeping processes."""
    return str(random.SystemRandom().randrange(10_000_000, 99_999_999))


@pytest.fixture
def unconfined(user_space: Path) -> None:
    """The user has turned the sandbox off: what is tried needs none, or to be seen from outside."""
    set_sandbox(user_space, "off")


@pytest.fixture
def layer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Confine by this layer, where it works on this machine."""
    if why := sandbox.layers()[request.param]:
        pytest.skip(f"{request.param}: {why}")
    if request.param == "landlock":
        monkeypatch.setattr(bubblewrap, "ability", lambda: bubblewrap.Ability(why_not="switched off for this test"))
    return str(request.param)


@pytest.fixture
def without_ripgrep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search as where ripgrep is not installed."""
    from rye.filesearch import ripgrep

    monkeypatch.setattr(ripgrep, "locate", lambda _: None)


@pytest.fixture(params=["python", "ripgrep"])
def engine(request: pytest.FixtureRequest) -> str:
    """Search without ripgrep, and with it."""
    from rye.filesearch import ripgrep

    if request.param == "ripgrep" and ripgrep.locate(os.stat("/")) is None:
        pytest.skip("ripgrep is not installed")
    if request.param == "python":
        request.getfixturevalue("without_ripgrep")
    return str(request.param)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this test's tools stand for the system's own, which run in this process and not in a confined one."""
    from rye.executor.primitives import function

    monkeypatch.setattr(function, "_runs_here", lambda chain: not chain.files)

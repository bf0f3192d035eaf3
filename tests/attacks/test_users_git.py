"""What commands leave behind for the user's own git and editors: under the sandbox nothing of it runs, asks a host or is read.

Campaigns of `support/users_git.py`: known ways, hostile values of git's own keys, repositories that are built in parts by many writers,
and files that come in random ways, each as root and as an ordinary user. A canary decides, not our verdict; the controls are the same
where nothing looks.
"""

from __future__ import annotations

import os

import pytest

from rye.sandbox import landlock
from support.git_actions import WAYS
from support.harness import times
from support.machine import needs_bubblewrap
from support.other_users import USERS, run_as

# A job that still runs may write where only Landlock holds it: it is judged at its own end.
OF_RUNNING_JOBS = ("a job whose mounts come off", "tasks whose mount comes off")
SCRIPTS = [f"{name}.py" for name in ("users_git", "git_actions", "git_keys", "random_repositories", "random_scripts")]
pytestmark = pytest.mark.slow
by_user = pytest.mark.parametrize("user", USERS)


def found_by(user: int, mode: str, campaign: str, *words: object, layer: str = "") -> list[dict]:
    return run_as(user, SCRIPTS, mode, campaign, *words, layer=layer)


def share(user: int, ways: list[str], turn: int = 0) -> list[str]:
    """Return the ways that this user tries where all users together try each once; in another turn another user tries it."""
    return ways[(USERS.index(user) + turn) % len(USERS) :: len(USERS)]


@needs_bubblewrap
@by_user
def test_no_program_of_the_command_runs(user):
    ways = share(user, [*WAYS], turn=1) if times(1) == 1 else [*WAYS]
    found = found_by(user, "require", "git_actions", *ways)
    assert len(found) == len(ways)
    assert [way["name"] for way in found if way["ran"]] == []
    for way in found:
        assert way["holds"] is None or "protected_names" in way["holds"], way


@pytest.mark.skipif(bool(landlock.why_not()) or os.geteuid() != 0, reason="needs Landlock, and root to hide bubblewrap")
@by_user
def test_no_program_of_the_command_runs_where_landlock_is_alone(user):
    ways = share(user, [name for name in WAYS if name not in OF_RUNNING_JOBS])
    found = found_by(user, "auto", "git_actions", *ways, layer="landlock")
    assert [way["name"] for way in found if way["ran"]] == []
    assert len(found) == len(ways)
    assert not any("protected_names" in (way["holds"] or ()) for way in found)


@by_user
def test_control_without_the_sandbox_each_runs(user):
    assert [way["name"] for way in found_by(user, "off", "git_actions", *share(user, [*WAYS])) if not way["ran"]] == []


@needs_bubblewrap
@by_user
def test_no_key_does_anything(user, rng):
    found = found_by(user, "require", "git_keys", rng.randrange(1 << 30), 0.06)
    assert len(found) > 4
    assert [one for one in found if one["fired"]] == []


def test_control_without_a_look_many_keys_do():
    fired = [one["key"] for one in found_by(USERS[-1], "off", "git_keys", 1, 1) if one["fired"]]
    assert len(fired) >= 25, fired


@needs_bubblewrap
@by_user
def test_no_program_runs_by_a_repository_that_many_built(user, rng):
    *fired, figures = found_by(user, "require", "random_repositories", times(12), rng.randrange(1 << 30))
    assert fired == []
    assert figures["with_something_set_aside"] > 0


def test_control_where_nothing_looks_repositories_run_programs():
    figures = found_by(USERS[-1], "off", "random_repositories", 8, 1)[-1]
    assert figures["fired"] > 4, figures


@needs_bubblewrap
@by_user
def test_no_program_runs_by_a_file_that_came_in_any_way(user, rng):
    (found,) = found_by(user, "require", "random_scripts", times(16), rng.randrange(1 << 30))
    assert found["ran"] == 0, found["culprits"]


def test_control_without_a_sandbox_programs_run():
    (found,) = found_by(USERS[-1], "off", "random_scripts", 16, 1)
    assert found["ran"] > 4, found

"""The switches of the SWE tools, and who may set the profile."""

from __future__ import annotations

import pytest

from rye.errors import UsageError
from rye.toolkit import swe
from rye.toolkit.workspace import Workspace


def profile(project):
    with Workspace(str(project)) as ws:
        return swe.profile(ws)


def configure(root, text):
    where = root / ".ai/config/rye.yaml"
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text(text)


@pytest.mark.parametrize(
    ("environment", "user", "of_project", "holds"),
    [
        (None, None, None, "dev"),
        ("", None, None, "dev"),
        ("unsafe", None, None, "unsafe"),
        ("safe-read-only", None, None, "safe-read-only"),
        (None, "unsafe", None, "unsafe"),
        ("dev", "unsafe", None, "dev"),
        ("unsafe", "safe-read-only", None, "safe-read-only"),
        ("unsafe", None, "safe-read-only", "safe-read-only"),
        ("safe-read-only", "unsafe", "unsafe", "safe-read-only"),
        (None, "dev", "unsafe", "dev"),
    ],
)
def test_the_strictest_profile_holds(project, user_space, monkeypatch, environment, user, of_project, holds):
    if environment is not None:
        monkeypatch.setenv("RAGIX_PROFILE", environment)
    if user is not None:
        configure(user_space, f"swe: {{profile: {user}}}\n")
    if of_project is not None:
        configure(project, f"swe: {{profile: {of_project}}}\n")
    assert profile(project) == holds


@pytest.mark.parametrize("content", ["swe: {profile: lax}\n", "swe: {profile: [dev]}\n", "swe: {\n"])
def test_a_profile_that_is_none_is_refused_wherever_it_stands(project, user_space, content):
    for root in (project, user_space):
        configure(root, content)
        with pytest.raises(UsageError) as refusal:
            profile(project)
        assert refusal.value.code in ("bad_profile", "bad_config")
        (root / ".ai/config/rye.yaml").unlink()


def test_other_settings_of_a_project_say_nothing(project):
    for content in ("", "other: 1\n", "swe: 3\n", "- a\n"):
        configure(project, content)
        assert profile(project) == "dev"


def test_a_switch_is_on_or_off_or_refused(monkeypatch):
    for value, holds in (("0", False), ("off", False), ("1", True), ("", True), (" ON ", True)):
        monkeypatch.setenv("RAGIX_VIEW_STATE", value)
        assert swe.views_kept() is holds
    monkeypatch.setenv("RAGIX_ENABLE_SWE", "nope")
    with pytest.raises(UsageError, match="neither on nor off"):
        swe.enabled()

"""The switches of the SWE tools."""

from __future__ import annotations

import pytest

from rye.call import profile
from rye.errors import UsageError


def test_a_switch_is_on_or_off_or_refused(monkeypatch):
    for value, holds in (("0", False), ("off", False), ("1", True), ("", True), (" ON ", True)):
        monkeypatch.setenv("RAGIX_VIEW_STATE", value)
        assert profile.views_kept() is holds
    monkeypatch.setenv("RAGIX_ENABLE_SWE", "nope")
    with pytest.raises(UsageError, match="neither on nor off"):
        profile.enabled()

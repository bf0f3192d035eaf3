"""The browsers in which the pages are tested: each test runs in both, and is skipped where one is missing."""

from __future__ import annotations

import pytest

from support import browser as chromium
from support import firefox

_KINDS = {"chromium": chromium, "firefox": firefox}
ALL = [pytest.param(name, marks=pytest.mark.skipif(bool(one.WHY_NOT), reason=one.WHY_NOT)) for name, one in _KINDS.items()]


def start(name, profile, hosts=()):
    """Start a browser with a folder for its profile. `hosts` are names that lead to this machine."""
    return _KINDS[name].Browser(profile, hosts=hosts)

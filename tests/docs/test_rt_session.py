"""The PAGE's session with `rt` is what a terminal shows when it is typed."""

from __future__ import annotations

import pytest

from support.rt_session import record, written


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    return record(tmp_path_factory.mktemp("session"))


def test_the_pages_session_is_what_a_terminal_shows(session):
    assert session == written()


def test_the_session_needs_nothing_that_it_does_not_make(session):
    """It may follow README's blocks in their folder: it makes its own file, and says nothing of another."""
    assert session.startswith("$ rt create prices.py")
    assert "app.py" not in session
    assert "1: def total(prices, tax=0.0):\n2:     return round(sum(prices) * (1 + tax), 2)\n" in session.rpartition("$ ")[2]

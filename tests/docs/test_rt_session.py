"""The PAGE's session with `rt` is what a terminal shows when it is typed."""

from __future__ import annotations

import pytest

from support.rt_session import record, written


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    return record(tmp_path_factory.mktemp("session"))


def test_the_pages_session_is_what_a_terminal_shows(session):
    assert session == written()


def test_the_difference_is_only_in_the_lines_that_were_edited(session):
    diff = session.split("$ git diff\n")[1]
    changed = [line for line in diff.split("\n") if line[:1] in "+-" and line[:3] not in ("+++", "---") and line]
    assert changed == [
        "-def total(prices):",
        "-    return sum(prices)",
        "+def total(prices, tax=0.0):",
        "+    return round(sum(prices) * (1 + tax), 2)",
    ]

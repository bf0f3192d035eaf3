"""A key is approved on the page only with the code that the terminal shows for exactly what it would admit."""

from __future__ import annotations

import html
import re
import shutil

import pytest

from rye.errors import RyeError
from rye.review import approvals
from rye.trust import decisions
from support.review_pages import serving
from support.signed_tools import STRANGER, bring_key, put, signed, tool_text

DIGEST = STRANGER.public.digest


@pytest.fixture
def clone(project):
    """A project that brings a key and a tool that it signed."""
    bring_key(project, owner="<b>Mallory")
    text = tool_text("my/report", head='__permissions__ = ["write"]').replace(
        b'"""A tool made for a test."""', b'"""A tool.\n\nSide effects: <i>none\x1b[2J.\n"""'
    )
    put(project, "tools/my/report.py", signed(text, STRANGER))
    return project


@pytest.fixture
def told():
    return []


@pytest.fixture
def one(clone, told):
    return approvals.Approvals(str(clone), told.append)


def approved(project):
    return DIGEST in decisions.load().approved_keys(decisions.Root.of(project))


def code_in(told):
    return re.search(r"type on the page: (\d{6})$", told[-1])[1]


def test_with_the_code_it_counts_for_what_was_shown(clone, one, told):
    (waiting,) = one.waiting()
    assert [row.item_id for row in waiting.rows] == ["my/report"]
    assert not waiting.asked
    one.ask(DIGEST, waiting.seen)
    assert "my/report" in told[-1]
    assert DIGEST in told[-1]
    assert "\x1b" not in told[-1]
    assert one.waiting()[0].asked
    assert not approved(clone)
    code = code_in(told)
    one.confirm(DIGEST, waiting.seen, f" {code[:3]} {code[3:]}")
    assert approved(clone)
    assert decisions.load().announced(decisions.Root.of(clone), DIGEST) == {"my/report"}
    assert one.waiting() == []


def test_a_revoked_key_does_not_wait(one):
    decisions.revoke(DIGEST)
    assert one.waiting() == []


def refused(one, *given):
    with pytest.raises(RyeError) as found:
        one.confirm(*given)
    return found.value.code


def test_without_the_right_code_nothing_counts(clone, one, told, monkeypatch):
    (waiting,) = one.waiting()
    assert refused(one, DIGEST, waiting.seen, "000000") == "wrong_code"
    one.ask(DIGEST, waiting.seen)
    code = code_in(told)
    wrong = f"{(int(code) + 1) % 10**6:06}"
    for _ in range(3):
        assert refused(one, DIGEST, waiting.seen, wrong) == "wrong_code"
    # After three tries a new one is needed.
    assert refused(one, DIGEST, waiting.seen, code) == "wrong_code"
    one.ask(DIGEST, waiting.seen)
    code = code_in(told)
    assert refused(one, "0" * 64, waiting.seen, code) == "unknown_key"
    monkeypatch.setattr(approvals.time, "monotonic", lambda: 1e12)
    assert refused(one, DIGEST, waiting.seen, code) == "wrong_code"
    assert not approved(clone)


def test_what_changed_after_it_was_shown_is_not_approved(clone, one, told):
    (waiting,) = one.waiting()
    one.ask(DIGEST, waiting.seen)
    put(clone, "tools/my/more.py", signed(tool_text("my/more"), STRANGER))
    assert refused(one, DIGEST, waiting.seen, code_in(told)) == "changed_proposal"
    assert refused(one, DIGEST, one.waiting()[0].seen, code_in(told)) == "wrong_code"
    assert not approved(clone)


def test_another_folder_at_the_projects_path_is_not_approved(clone, one, told):
    (waiting,) = one.waiting()
    one.ask(DIGEST, waiting.seen)
    old = clone.rename(clone.with_name("old"))
    shutil.copytree(old, clone)
    one.confirm(DIGEST, waiting.seen, code_in(told))
    assert not approved(clone)
    assert approved(old) is False


def test_the_page_shows_what_a_key_would_admit_and_takes_the_code(clone):
    with serving(clone) as served, served.client() as client:
        text = client.get("keys").text
        assert "&lt;b&gt;Mallory" in text
        assert "<b>" not in text
        assert "<i>" not in text
        assert "may: read, write" in text
        seen = html.unescape(re.search(r'name="shown" value="([^"]*)"', text)[1])
        asked = served.post(client, "keys/approve", key=DIGEST, shown=seen, do="ask").text
        assert 'name="code"' in asked
        code = code_in(served.told)
        assert code not in asked
        assert code not in client.get("keys").text
        assert (
            "This is not the code" in served.post(client, "keys/approve", key=DIGEST, shown=seen, do="confirm", code="x").text
        )
        assert not approved(clone)
        assert "Approved" in served.post(client, "keys/approve", key=DIGEST, shown=seen, do="confirm", code=code).text
        assert approved(clone)
        assert "No key of this project waits" in client.get("keys").text

"""A key is approved on the page only with the code that the terminal shows for exactly what it would admit."""

from __future__ import annotations

import html
import re
import shutil

import pytest

from rye.trust import decisions
from support.review_pages import serving
from support.signed_tools import STRANGER, bring_key, put, signed, tool_text

DIGEST = STRANGER.public.digest
NO_CODE, NOT_THE_CODE = "No code is shown for this key now", "This is not the code that the terminal shows"


class KeysPage:
    """The page of keys, as a user opened it and presses its buttons."""

    def __init__(self, served, client):
        self.served, self.client = served, client
        self.look()

    def look(self):
        """Open it; return its text."""
        text = self.client.get("keys").text
        found = re.search(r'name="shown" value="([^"]*)"', text)
        self.seen = found and html.unescape(found[1])
        return text

    def ask(self):
        """Have a code shown; return it, and what the page says."""
        text = self.served.post(self.client, "keys/approve", key=DIGEST, shown=self.seen, do="ask").text
        return re.search(r"type on the page: (\d{6})$", self.served.told[-1])[1], text

    def confirm(self, code, key=DIGEST):
        return self.served.post(self.client, "keys/approve", key=key, shown=self.seen, do="confirm", code=code).text


@pytest.fixture
def clone(project):
    """A project that brings a key and a tool that it signed."""
    bring_key(project, owner="<b>Mallory")
    told = b'"""A tool.\n\nSide effects: <i>none\x1b[2J.\n"""'
    text = tool_text("my/report", head='__permissions__ = ["write"]').replace(b'"""A tool made for a test."""', told)
    put(project, "tools/my/report.py", signed(text, STRANGER))
    return project


@pytest.fixture
def page(clone):
    with serving(clone) as served, served.client() as client:
        yield KeysPage(served, client)


def approved(project):
    return DIGEST in decisions.load().approved_keys(decisions.Root.of(project))


def test_with_the_code_it_counts_for_what_was_shown(clone, page):
    text = page.look()
    assert "&lt;b&gt;Mallory" in text
    assert "<b>" not in text
    assert "<i>" not in text
    assert "may: read, write" in text
    assert 'name="code"' not in text
    code, text = page.ask()
    told = page.served.told[-1]
    assert ("my/report" in told, DIGEST in told, "\x1b" in told) == (True, True, False)
    assert ('name="code"' in text, code in text, code in page.look()) == (True, False, False)
    assert NOT_THE_CODE in page.confirm("x")
    assert not approved(clone)
    assert "Approved" in page.confirm(f" {code[:3]} {code[3:]}")
    assert approved(clone)
    assert decisions.load().announced(decisions.Root.of(clone), DIGEST) == {"my/report"}
    assert "No key of this project waits" in page.look()


def test_without_the_right_code_nothing_counts(clone, page, monkeypatch):
    assert NO_CODE in page.confirm("000000")
    code, _ = page.ask()
    for _ in range(3):
        assert NOT_THE_CODE in page.confirm(f"{(int(code) + 1) % 10**6:06}")
    # After three tries a new one is needed.
    assert NO_CODE in page.confirm(code)
    code, _ = page.ask()
    assert "This key does not wait for you" in page.confirm(code, "0" * 64)
    # A code that counts for no time. The clock itself is the server's, too, which would wait for it.
    monkeypatch.setattr("rye.review.approvals._SECONDS", 0.0)
    code, _ = page.ask()
    assert NO_CODE in page.confirm(code)
    assert not approved(clone)


def test_what_changed_after_it_was_shown_is_not_approved(clone, page):
    code, _ = page.ask()
    put(clone, "tools/my/more.py", signed(tool_text("my/more"), STRANGER))
    assert "has changed since you looked" in page.confirm(code)
    page.look()
    assert NO_CODE in page.confirm(code)
    assert not approved(clone)


def test_neither_another_folder_at_the_projects_path_nor_a_revoked_key_is_approved(clone, page):
    code, _ = page.ask()
    old = clone.rename(clone.with_name("old"))
    shutil.copytree(old, clone)
    page.confirm(code)
    assert (approved(clone), approved(old)) == (False, False)
    shutil.rmtree(clone)
    old.rename(clone)
    decisions.revoke(DIGEST)
    assert "No key of this project waits" in page.look()

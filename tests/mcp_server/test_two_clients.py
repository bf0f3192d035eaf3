"""Two clients on one project: each undoes its own changes, and is told whose the others are."""

from __future__ import annotations

import pytest

import rye
from support.mcp_peer import peer


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_each_clients_undo_takes_back_its_own_change(project, revision):
    with peer(project, revision=revision) as one, peer(project, revision=revision) as other:
        one.call("write", {"file_path": "one.txt", "content": "1\n"})
        other.call("write", {"file_path": "other.txt", "content": "2\n"})
        assert "one.txt by you" in one.text("undo")
        assert (project / "other.txt").exists()
        assert "other.txt by test " in one.call("undo")["content"][0]["text"]
        assert (project / "other.txt").exists()
        assert "other.txt by you" in other.text("undo")
    assert not (project / "other.txt").exists()
    # Toolsets are callers, too.
    one, other = (rye.toolset(project, only=["write", "undo"]) for _ in range(2))
    one.call("write", {"file_path": "one.txt", "content": "1\n"})
    other.call("write", {"file_path": "other.txt", "content": "2\n"})
    assert "one.txt by you" in one.call("undo")
    assert "You have no change to undo" in one.call("undo")
    assert (project / "other.txt").exists()


def test_a_person_at_a_terminal_is_told_that_the_change_is_a_clients(project):
    with peer(project) as client:
        client.call("write", {"file_path": "a.txt", "content": "1\n"})
    answer = rye.execute("rye/file-system/undo", {}, project_path=str(project))
    assert answer["code"] == "nothing_to_undo"
    assert "a.txt by test " in answer["error"]
    entry = answer["data"]["entry_id"]
    assert rye.execute("rye/file-system/undo", {"entry_id": entry}, project_path=str(project))["status"] == "success"
    assert not (project / "a.txt").exists()

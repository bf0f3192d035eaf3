"""What a worker does with one workspace's calls, without any scheduler: a plain function, made again as a scheduler would."""

from __future__ import annotations

import json
import pickle
import threading

import pytest

from rye.fleet import adapter
from support.waiting import PATIENCE

READ = {"item_id": "rye/file-system/read", "parameters": {"file_path": "a.txt"}}
EDIT = {"item_id": "rye/file-system/edit_lines", "parameters": {"file_path": "a.txt", "changes": ["end+|more"]}}
FAIL = {"item_id": "rye/bash/bash", "parameters": {"command": "echo x >> a.txt; exit 4"}}


@pytest.fixture
def workspace(project):
    (project / "a.txt").write_text("one\n")
    return project


def test_the_calls_of_a_workspace_are_made_in_order_and_once(workspace):
    # The function and its result travel to other processes.
    function = pickle.loads(pickle.dumps(adapter.run_workspace))
    first, again = (function(str(workspace), [READ, EDIT], "k") for _ in range(2))
    assert (first["status"], again["status"]) == ("done", "done")
    assert "one" in first["calls"][0]["data"]["output"]
    assert again["calls"][1]["data"]["repeated"]
    assert (workspace / "a.txt").read_text() == "one\nmore\n"
    assert pickle.loads(pickle.dumps(first)) == first
    json.dumps(first)


def test_calls_behind_a_failed_one_are_not_run_unless_that_is_wanted(workspace, tmp_path):
    calls = [{"item_id": "no/such", "parameters": {}}, READ, EDIT]
    for on_error, statuses in (("stop", ["error", "not_run", "not_run"]), ("continue", ["error", "success", "success"])):
        result = adapter.run_workspace(workspace, calls, on_error, on_error=on_error)
        assert (result["status"], [one["status"] for one in result["calls"]]) == ("failed", statuses)
        assert result["calls"][0]["code"] == "item_not_found"
    assert (workspace / "a.txt").read_text() == "one\nmore\n"
    # A command runs once, and its failure is the result.
    for _ in range(2):
        result = adapter.run_workspace(workspace, [FAIL], "fails")
        assert (result["status"], result["calls"][0]["data"]["exit_code"]) == ("failed", 4)
    assert (workspace / "a.txt").read_text() == "one\nmore\nx\n"
    result = adapter.run_workspace(tmp_path / "none", [READ], "k")
    assert (result["status"], result["calls"][0]["code"]) == ("failed", "project_not_found")


def test_a_worker_with_another_state_runs_nothing(workspace, tmp_path, monkeypatch):
    found = []
    threads = [threading.Thread(target=lambda: found.append(adapter.state_identity())) for _ in range(16)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(PATIENCE)
    (here,) = set(found)
    assert len(found) == 16
    assert adapter.run_workspace(workspace, [READ, EDIT], "k", state=here)["status"] == "done"
    monkeypatch.setenv("USER_SPACE", str(tmp_path / "other"))
    refused = adapter.run_workspace(workspace, [READ, EDIT], "k2", state=here)
    assert (refused["status"], refused["calls"][0]["code"]) == ("failed", "state_not_shared")
    assert (workspace / "a.txt").read_text() == "one\nmore\n"

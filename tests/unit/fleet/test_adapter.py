"""What a worker does with one workspace's calls, without any scheduler: a plain function, made again as a scheduler would."""

from __future__ import annotations

import json
import pickle
import threading

import pytest

from rye.fleet import adapter
from support.waiting import PATIENCE

EDIT, BASH = "rye/file-system/edit_lines", "rye/bash/bash"
CALLS = [
    {"item_id": "rye/file-system/read", "parameters": {"file_path": "a.txt"}},
    {"item_id": EDIT, "parameters": {"file_path": "a.txt", "changes": ["end+|more"]}},
]


@pytest.fixture
def workspace(project):
    (project / "a.txt").write_text("one\n")
    return project


def test_the_calls_of_a_workspace_are_made_in_order_and_once(workspace):
    first, again = (adapter.run_workspace(workspace, CALLS, "k") for _ in range(2))
    assert (first["status"], again["status"]) == ("done", "done")
    assert "one" in first["calls"][0]["data"]["output"]
    assert again["calls"][1]["data"]["repeated"]
    assert (workspace / "a.txt").read_text() == "one\nmore\n"
    json.dumps(first)


def test_the_function_and_its_result_travel_to_other_processes(workspace):
    function = pickle.loads(pickle.dumps(adapter.run_workspace))
    result = function(str(workspace), CALLS, "k")
    assert pickle.loads(pickle.dumps(result)) == result


def test_calls_behind_a_failed_one_are_not_run_unless_that_is_wanted(workspace):
    calls = [{"item_id": "no/such", "parameters": {}}, *CALLS]
    stopped = adapter.run_workspace(workspace, calls, "a")
    assert stopped["status"] == "failed"
    assert [one["status"] for one in stopped["calls"]] == ["error", "not_run", "not_run"]
    assert stopped["calls"][0]["code"] == "item_not_found"
    assert (workspace / "a.txt").read_text() == "one\n"
    went_on = adapter.run_workspace(workspace, calls, "b", on_error="continue")
    assert [one["status"] for one in went_on["calls"]] == ["error", "success", "success"]
    assert went_on["status"] == "failed"


def test_a_workspace_that_is_not_there_is_a_result(tmp_path):
    result = adapter.run_workspace(tmp_path / "none", CALLS, "k")
    assert (result["status"], result["calls"][0]["code"]) == ("failed", "project_not_found")


def test_a_command_runs_once_and_its_failure_is_the_result(workspace):
    calls = [{"item_id": BASH, "parameters": {"command": "echo x >> a.txt; exit 4"}}]
    for _ in range(2):
        result = adapter.run_workspace(workspace, calls, "k")
        assert (result["status"], result["calls"][0]["data"]["exit_code"]) == ("failed", 4)
    assert (workspace / "a.txt").read_text() == "one\nx\n"


def test_a_worker_with_another_state_runs_nothing(workspace, tmp_path, monkeypatch):
    here = adapter.state_identity()
    assert adapter.state_identity() == here
    assert adapter.run_workspace(workspace, CALLS, "k", state=here)["status"] == "done"
    monkeypatch.setenv("USER_SPACE", str(tmp_path / "other"))
    refused = adapter.run_workspace(workspace, CALLS, "k2", state=here)
    assert (refused["status"], refused["calls"][0]["code"]) == ("failed", "state_not_shared")
    assert (workspace / "a.txt").read_text() == "one\nmore\n"


def test_workers_that_start_together_agree_on_the_state():
    found = []
    threads = [threading.Thread(target=lambda: found.append(adapter.state_identity())) for _ in range(16)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(PATIENCE)
    assert len(found) == 16
    assert len(set(found)) == 1

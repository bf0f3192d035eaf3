"""What a worker does with one workspace's calls, without any scheduler: a plain function, made again as a scheduler would."""

from __future__ import annotations

import fcntl
import json
import pickle
import threading

import pytest

import rye
from rye.fleet import adapter
from support.in_process import rye as run
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


# --- files of jobs and of results: what is wrong is named with its line, all at once ---


CALL = {"item_id": "rye/file-system/ls", "parameters": {}}
GOOD = {"workspace": "w", "calls": [CALL]}
HEAD = b'{"fleet": 1, "run": "a"}\n'


def refused(tmp_path, lines, *words):
    """What the command says of a file of jobs that it does not run."""
    path = tmp_path / "jobs.jsonl"
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
    done = run("fleet", "run", path, *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b""), done
    return done.stderr.decode()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "no JSON in UTF-8: "),
        (b"\xff{}", "no JSON in UTF-8: "),
        (b"[" * 100_000, "no JSON in UTF-8: "),
        ({"calls": [CALL]}, "workspace"),
        ({**GOOD, "workspace": ""}, "workspace: "),
        ({**GOOD, "workspace": 3}, "workspace: 3 is not"),
        ({"workspace": "w", "calls": []}, "calls: "),
        ({"workspace": "w", "calls": [[]]}, "calls[0]: "),
        ({"workspace": "w", "calls": [CALL, {}]}, 'calls[1]: "item_id" is a required'),
        ({"workspace": "w", "calls": [{**CALL, "parameters": []}]}, "calls[0].parameters: "),
        ({"workspace": "w", "calls": [{**CALL, "params": {}}]}, "'params' was unexpected); it has item_id"),
        ({**GOOD, "repeat": 1}, "repeat: 1 is not"),
        ({"workspace": "w", "calls": [{**CALL, "repeat": "yes"}]}, "calls[0].repeat: "),
        ({**GOOD, "on_error": "go"}, "on_error"),
        ({**GOOD, "id": 7}, "id: 7 is not"),
        (b'{"workspace": "w", "workspace": "v", "calls": []}', "a name stands twice"),
        (b'{"workspace": "\\ud800", "calls": [{"item_id": "a"}]}', "not JSON"),
        (b'{"workspace": "w", "calls": [{"item_id": "a", "parameters": {"x": NaN}}]}', "not JSON"),
    ],
)
def test_a_bad_line_is_named_with_what_is_wrong(tmp_path, line, says):
    said = refused(tmp_path, [GOOD, line, GOOD])
    assert "jobs.jsonl:2: " in said
    assert says in said


def test_all_bad_lines_are_named_at_once_up_to_a_bound(tmp_path):
    said = refused(tmp_path, [b"{", GOOD, b"[]"])
    assert [f"jobs.jsonl:{number}: " in said for number in (1, 2, 3)] == [True, False, True]
    assert refused(tmp_path, [b"{"] * 1000).count("jobs.jsonl:") == 20
    for lines in ([], [b"", b"  "]):
        assert "has no job" in refused(tmp_path, lines)
    # Values of Python are checked alike.
    with pytest.raises(rye.RyeError, match="workspace 2: workspace: "):
        rye.fleet.run(["a", ""], [CALL])


@pytest.mark.parametrize(
    ("data", "resume", "says"),
    [
        (b"precious\n", False, "is not empty"),
        (b"precious\n", True, "holds no results"),
        (b"precious", True, "holds no results"),
        (HEAD + b"precious", True, "holds no results"),
        (HEAD + b'{"job": 1, "digest": "other", "status": "done"}\n', True, "Job 1 is another"),
        (HEAD + b'{"job": 9, "digest": "other", "status": "done"}\n', True, "Job 9 is another"),
        (HEAD + b"no json\n", True, "holds no results"),
        (b'{"fleet": 7, "run": "a"}\n', True, "holds no results"),
    ],
)
def test_results_of_others_are_never_written_over(tmp_path, data, resume, says):
    out = tmp_path / "out.jsonl"
    out.write_bytes(data)
    assert says in refused(tmp_path, [GOOD], "--out", out, *(["--resume"] if resume else []))
    assert out.read_bytes() == data


def test_results_that_another_run_writes_or_that_cannot_be_written_are_refused(tmp_path):
    out = tmp_path / "out.jsonl"
    out.write_bytes(HEAD)
    with out.open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "Another run writes" in refused(tmp_path, [GOOD], "--out", out, "--resume")
    assert "cannot be written" in refused(tmp_path, [GOOD], "--out", tmp_path / "no/out")

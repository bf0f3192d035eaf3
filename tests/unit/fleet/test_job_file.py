"""Job files: what is wrong is named with its line, all at once, and nothing is run."""

from __future__ import annotations

import json
import os

import pytest

from rye.errors import UsageError
from rye.fleet import job_file, results

CALL = {"item_id": "rye/file-system/ls", "parameters": {}}
GOOD = {"workspace": "w", "calls": [CALL]}


def read(tmp_path, *lines):
    path = tmp_path / "jobs.jsonl"
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
    return job_file.read(str(path))


def test_jobs_are_numbered_by_line_and_workspaces_are_below_the_files_folder(tmp_path):
    jobs = read(tmp_path, GOOD, b"", {**GOOD, "workspace": "/abs/../w", "id": "mine", "repeat": True, "on_error": "continue"})
    assert [(job.number, job.workspace) for job in jobs] == [(1, f"{tmp_path}/w"), (3, "/w")]
    assert (jobs[1].id, jobs[1].repeat, jobs[1].on_error) == ("mine", True, "continue")
    assert jobs[0].digest != jobs[1].digest


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "no JSON: "),
        (b"\xff{}", "byte 1 is no UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "not list"),
        ({"calls": [CALL]}, "workspace"),
        ({**GOOD, "workspace": ""}, "workspace: "),
        ({**GOOD, "workspace": "a\0b"}, "workspace: "),
        ({**GOOD, "workspace": 3}, "workspace: 3 is not"),
        ({"workspace": "w", "calls": []}, "calls: "),
        ({"workspace": "w", "calls": 7}, "calls: 7 is not"),
        ({"workspace": "w", "calls": [[]]}, "calls[0]: "),
        ({"workspace": "w", "calls": [CALL, {}]}, 'calls[1]: "item_id" is a required'),
        ({"workspace": "w", "calls": [{**CALL, "parameters": []}]}, "calls[0].parameters: "),
        ({"workspace": "w", "calls": [{**CALL, "params": {}}]}, "'params' was unexpected); it has item_id"),
        ({**GOOD, "repeat": 1}, "repeat: 1 is not"),
        ({"workspace": "w", "calls": [{**CALL, "repeat": "yes"}]}, "calls[0].repeat: "),
        ({**GOOD, "on_error": "go"}, "on_error"),
        ({**GOOD, "id": 7}, "id: 7 is not"),
        (b'{"workspace": "w", "workspace": "v", "calls": []}', "'workspace' is there twice"),
        (b'{"workspace": "\\ud800", "calls": [{"item_id": "a"}]}', "not JSON"),
        (b'{"workspace": "w", "calls": [{"item_id": "a", "parameters": {"x": NaN}}]}', "not JSON"),
    ],
)
def test_a_bad_line_is_named_with_what_is_wrong(tmp_path, line, says):
    with pytest.raises(UsageError) as told:
        read(tmp_path, GOOD, line, GOOD)
    assert told.value.code == "bad_jobs"
    assert "jobs.jsonl:2: " in told.value.message
    assert says in told.value.message


def test_all_bad_lines_are_named_at_once_up_to_a_bound(tmp_path):
    with pytest.raises(UsageError) as told:
        read(tmp_path, b"{", GOOD, b"[]")
    assert [line.split(":")[1] for line in told.value.details["problems"]] == ["1", "3"]
    with pytest.raises(UsageError) as told:
        read(tmp_path, *[b"{"] * 1000)
    assert len(told.value.details["problems"]) == 20


def test_a_file_without_jobs_or_that_is_not_there_is_refused(tmp_path):
    for lines in ((), (b"", b"  ")):
        with pytest.raises(UsageError, match="has no job"):
            read(tmp_path, *lines)
    with pytest.raises(UsageError, match="cannot be read"):
        job_file.read(str(tmp_path / "none"))


def test_python_values_are_checked_alike(tmp_path):
    assert [job.workspace for job in job_file.of_values([tmp_path, "b"], [CALL], repeat=False, on_error="stop")] == [
        str(tmp_path),
        os.path.join(os.getcwd(), "b"),
    ]
    with pytest.raises(UsageError, match="workspace 2: workspace: "):
        job_file.of_values(["a", ""], [CALL], repeat=False, on_error="stop")


# --- results ---


DONE = {"status": "done", "calls": [], "seconds": 0.1}


def opened(tmp_path, jobs, resume=False):
    return results.to_file(str(tmp_path / "out.jsonl"), jobs, resume=resume)


def test_results_are_resumed_with_the_same_run_and_a_torn_last_line_is_not_there(tmp_path):
    jobs = read(tmp_path, *[{**GOOD, "workspace": f"w{at}"} for at in range(4)])
    first = opened(tmp_path, jobs)
    first.add(jobs[0], DONE)
    first.add(jobs[2], {**DONE, "status": "failed"})
    first.close()
    path = tmp_path / "out.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"job": 2, "dig')
    again = opened(tmp_path, jobs, resume=True)
    assert (again.run, again.finished, again.counts) == (first.run, {1, 3}, {"done": 1, "failed": 1})
    again.add(jobs[1], DONE)
    again.close()
    lines = path.read_bytes().splitlines()
    assert [json.loads(line)["job"] for line in lines[1:]] == [1, 3, 2]


def test_a_run_cut_off_in_its_first_line_begins_anew(tmp_path):
    jobs = read(tmp_path, GOOD)
    (tmp_path / "out.jsonl").write_bytes(b'{"fle')
    begun = opened(tmp_path, jobs, resume=True)
    begun.close()
    assert json.loads((tmp_path / "out.jsonl").read_bytes())["run"] == begun.run


def test_results_of_others_are_never_written_over(tmp_path):
    jobs = read(tmp_path, GOOD)
    path = tmp_path / "out.jsonl"
    for data, resume, code in (
        (b"precious\n", False, "results_exist"),
        (b"precious\n", True, "not_results"),
        (b"precious", True, "not_results"),
        (b'{"fleet": 1, "run": "a"}\nprecious', True, "not_results"),
        (b'{"fleet": 1, "run": "a"}\n{"job": 1, "digest": "other", "status": "done"}\n', True, "jobs_changed"),
        (b'{"fleet": 1, "run": "a"}\n{"job": 9, "digest": "other", "status": "done"}\n', True, "jobs_changed"),
        (b'{"fleet": 1, "run": "a"}\nno json\n', True, "not_results"),
        (b'{"fleet": 7, "run": "a"}\n', True, "not_results"),
    ):
        path.write_bytes(data)
        with pytest.raises(UsageError) as told:
            opened(tmp_path, jobs, resume=resume)
        assert told.value.code == code
        assert path.read_bytes() == data
    path.unlink()
    held = opened(tmp_path, jobs)
    with pytest.raises(UsageError) as told:
        opened(tmp_path, jobs, resume=True)
    assert told.value.code == "results_in_use"
    held.close()
    with pytest.raises(UsageError) as told:
        results.to_file(str(tmp_path / "no" / "out"), jobs, resume=False)
    assert told.value.code == "results_unwritable"

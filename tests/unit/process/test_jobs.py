"""What the state folder keeps of jobs and outputs: how many, how long, and what a record is worth."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from rye.config import user_dirs
from rye.errors import RyeError, UsageError
from rye.process import jobs, output_files
from rye.sandbox.sandbox import Confined
from support.commands import confined, held
from support.shell_calls import bash, job, record, started
from support.waiting import until

FACTS = {"command": "x", "working_dir": ".", "sandbox": {}}


def start(project, command, seconds=None):
    with held(project) as fd:
        return jobs.start(str(project), confined(command), fd, FACTS, seconds)


def over(project, job_id):
    with jobs.home(str(project), job_id) as home:
        jobs.ask(home, {"do": "wait"}, 20)
        return jobs.record(home)


def test_a_program_that_cannot_be_started_leaves_nothing(project):
    with held(project) as fd, pytest.raises(RyeError, match="No such file") as caught:
        jobs.start(str(project), Confined(["/no/such"], {}, (), {}), fd, FACTS, None)
    assert caught.value.code == "job_not_started"
    assert os.listdir(Path(user_dirs.state_dir(str(project))) / "jobs") == []


def test_what_is_over_goes_by_age_and_number(project, user_space):
    config = user_space / ".ai/config/rye.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("jobs: {max_ended: 2}\n")
    ids = []
    for _ in range(4):
        ids.append(start(project, "true"))
        over(project, ids[-1])
    last = start(project, "true")
    over(project, last)
    assert [one["job_id"] for one in jobs.records(str(project))] == [last, ids[3], ids[2]]
    config.write_text("jobs: {max_age_days: 0}\n")
    time.sleep(0.01)
    newest = start(project, "true")
    assert [one["job_id"] for one in jobs.records(str(project))] == [newest]
    over(project, newest)


def test_no_more_than_so_many_at_once(project, monkeypatch):
    monkeypatch.setattr(jobs, "MAX_RUNNING", 1)
    first = start(project, "sleep 60")
    with pytest.raises(RyeError) as caught:
        start(project, "true")
    assert caught.value.code == "too_many_jobs"
    with jobs.home(str(project), first) as home:
        assert jobs.ask(home, {"do": "end"}, 20) == {"ok": True}


def test_requests_that_make_no_sense_harm_nobody(project):
    job_id = start(project, "sleep 60")
    with jobs.home(str(project), job_id) as home:
        for request in ([], 3, {}, {"do": "dance"}, {"do": "write"}, {"do": "write", "data": 3}):
            answer = jobs.ask(home, request, 5)
            assert answer is None or "error" in answer, request
        assert jobs.record(home)["status"] == "running"
        jobs.ask(home, {"do": "end"}, 20)
        assert jobs.record(home)["status"] == "ended"
        assert jobs.ask(home, {"do": "end"}, 1) is None


def test_a_supervisor_asked_to_terminate_takes_the_job_with_it(project):
    job_id = start(project, "sleep 60")
    with jobs.home(str(project), job_id) as home:
        os.kill(jobs.record(home)["supervisor"], 15)
        assert until(lambda: jobs.record(home)["status"] == "ended")
        assert jobs.record(home)["why"] == "ended"


def test_links_in_the_state_folder_lead_nowhere(project, tmp_path):
    folder = Path(user_dirs.state_dir(str(project))) / "jobs"
    folder.mkdir()
    (folder / ("0" * 16)).symlink_to(tmp_path)
    with pytest.raises(UsageError) as caught, jobs.home(str(project), "0" * 16):
        pass
    assert caught.value.code == "job_not_found"


def test_outputs_go_by_age_and_size(project, user_space):
    config = user_space / ".ai/config/rye.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("outputs: {max_bytes: 2500, max_age_days: 7}\n")
    made = []
    for at in range(4):
        kept = output_files.StoredOutputs(str(project))
        spool = kept.create("stdout")
        spool.write(b"x" * 1_000)
        spool.close()
        folder = Path(user_dirs.state_dir(str(project))) / "outputs" / kept.id
        os.utime(folder, (time.time() - 100 + at,) * 2)
        made.append(kept.id)
    output_files.StoredOutputs(str(project)).create("stdout").close()
    left = set(os.listdir(Path(user_dirs.state_dir(str(project))) / "outputs"))
    assert left & set(made) == set(made[2:])
    os.utime(Path(user_dirs.state_dir(str(project))) / "outputs" / made[3], (time.time() - 8 * 86_400,) * 2)
    output_files.StoredOutputs(str(project)).create("stdout").close()
    assert made[3] not in os.listdir(Path(user_dirs.state_dir(str(project))) / "outputs")


def test_a_record_is_json_and_private(project):
    job_id = start(project, "true")
    over(project, job_id)
    path = Path(user_dirs.state_dir(str(project))) / "jobs" / job_id / "job.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_bytes())["command"] == "x"


def test_the_output_of_all_jobs_has_one_bound(project, user_space):
    config = user_space / ".ai/config/rye.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("sandbox: {mode: 'off'}\njobs: {max_bytes: 12000000}\n")
    running = [started(project, "yes | head -c 9000000; sleep 60") for _ in range(3)]
    limits = [record(user_space, one)["output_limit"] for one in running]
    assert limits == [12_000_000, 1024 * 1024, 1024 * 1024]
    for one in running:
        job(project, "end", one)
    for _ in range(4):
        job(project, "wait", started(project, "yes | head -c 9000000"), timeout=120)
    bash(project, "true", background=True)
    stored = sum(path.stat().st_size for path in user_space.glob(".ai/state/*/jobs/*/output"))
    assert stored <= 14_000_000

"""Fleets on real Dask workers: order, results, cancel and resume, workers of a cluster, the command line."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rye
from rye.cli.main import main
from support.harness import AT_A_PROMPT, RUNTIME, descendants, environment
from support.shell_calls import processes
from support.waiting import PATIENCE, until

pytestmark = pytest.mark.slow

EDIT, BASH = "rye/file-system/edit_lines", "rye/bash/bash"


def edit(at):
    return {"item_id": EDIT, "parameters": {"file_path": "a.txt", "changes": [{"find": "one\n", "replace": f"one\n{at}\n"}]}}


def run(*words, path="", cwd=None):
    command = [sys.executable, "-m", "rye", "fleet", *words]
    env = environment(PYTHONPATH=f"{RUNTIME}{os.pathsep}{path or RUNTIME}")
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False, timeout=600, cwd=cwd)


@contextlib.contextmanager
def at_a_prompt(*words):
    """Start a run as a shell does, for a person who may end it."""
    command = [*AT_A_PROMPT, sys.executable, "-m", "rye", "fleet", "run", *words]
    driver = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield driver
    finally:
        driver.kill()
        driver.wait(PATIENCE)


@pytest.fixture
def workspaces(tmp_path):
    made = [tmp_path / f"w{at}" for at in range(6)]
    for one in made:
        one.mkdir()
        (one / "a.txt").write_text("one\n")
    return made


def jobs_file(tmp_path, jobs):
    path = tmp_path / "jobs.jsonl"
    path.write_text("".join(json.dumps(job) + "\n" for job in jobs))
    return str(path)


def records(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()[1:]]


def test_python_values_give_a_record_for_each_workspace_in_their_order(workspaces, tmp_path):
    missing = tmp_path / "none"
    seen = []
    found = rye.fleet.run([*workspaces, missing], [edit("x")], workers=2, progress=seen.append)
    assert [record["status"] for record in found] == ["done"] * 6 + ["failed"]
    assert [record["workspace"] for record in found] == [str(one) for one in (*workspaces, missing)]
    assert found[-1]["calls"][0]["code"] == "project_not_found"
    assert [(one / "a.txt").read_text() for one in workspaces] == ["one\nx\n"] * 6
    assert (seen[-1].finished, seen[-1].total, seen[-1].counts) == (7, 7, {"done": 6, "failed": 1})
    # A forked process lacks the threads of Dask, and would wait for ever.
    if not (pid := os.fork()):
        signal.alarm(30)
        try:
            rye.fleet.run(workspaces, [edit("y")])
        except BaseException as err:
            os._exit(getattr(err, "code", "") != "forked_fleet")
    assert os.waitpid(pid, 0)[1] == 0


def test_jobs_of_one_workspace_run_in_the_order_of_the_file_whatever_it_is_called(workspaces, tmp_path):
    os.symlink("w0", tmp_path / "other")
    names = ["w0", "other", "w0/", "./w0"]
    jobs = [
        {"workspace": names[at % 4], "calls": [{"item_id": BASH, "parameters": {"command": f"echo {at} >> log"}}]}
        for at in range(24)
    ]
    out = tmp_path / "out.jsonl"
    done = run("run", jobs_file(tmp_path, jobs), "--workers", "3", "--out", str(out), "--json")
    assert done.returncode == 0, done.stderr
    assert (workspaces[0] / "log").read_text().split() == [str(at) for at in range(24)]
    said = json.loads(done.stdout)
    assert (said["jobs"], said["done"], said["failed"], said["unknown"]) == (24, 24, 0, 0)


def test_ctrl_c_ends_what_runs_keeps_the_results_and_resume_repeats_nothing(workspaces, tmp_path):
    waits = {"item_id": BASH, "parameters": {"command": "echo $$ > pid; echo x >> ran; while test -e go; do sleep 0.05; done"}}
    (workspaces[0] / "go").write_text("")
    jobs = [{"workspace": "w0", "calls": [edit("x"), waits, edit("y")]}]
    jobs += [{"workspace": f"w{at}", "calls": [edit("x")]} for at in range(1, 6)]
    file, out = jobs_file(tmp_path, jobs), tmp_path / "out.jsonl"
    with at_a_prompt(file, "--workers", "2", "--out", str(out)) as driver:
        assert until(lambda: (workspaces[0] / "ran").exists() and out.exists() and len(records(out)) == 5, 4 * PATIENCE)
        driver.send_signal(signal.SIGINT)
        said = driver.communicate(timeout=4 * PATIENCE)[1]
    assert driver.returncode == 130, said
    assert "cancelled with 1 of 6 jobs left" in said
    # The command was ended with its worker: nothing waits for the file any more.
    assert until(lambda: not processes("", str(workspaces[0])))
    (workspaces[0] / "go").unlink()
    # A torn last line is not there.
    out.write_bytes(out.read_bytes() + b'{"job": 2, "dig')
    done = run("run", file, "--workers", "2", "--out", str(out), "--resume")
    assert done.returncode == 1, done.stderr
    assert "5 done, 0 failed, 1 unknown" in done.stderr
    last = records(out)[-1]
    assert [call["status"] for call in last["calls"]] == ["success", "unknown", "not_run"]
    assert last["calls"][0]["data"]["repeated"]
    assert (workspaces[0] / "ran").read_text() == "x\n"
    assert (workspaces[0] / "a.txt").read_text() == "one\nx\n"
    # Where all is there, nothing is started.
    assert run("run", file, "--out", str(out), "--resume").returncode == 1
    assert len(records(out)) == 6


def test_ctrl_c_at_a_terminal_while_workers_start_ends_the_run_without_a_word_of_theirs(workspaces, tmp_path):
    file = jobs_file(tmp_path, [{"workspace": "w0", "calls": [edit("x")]}])
    with at_a_prompt(file, "--workers", "2", "--out", str(tmp_path / "out.jsonl")) as driver:
        assert until(lambda: len(descendants(driver.pid)) >= 2)
        # A terminal sends the signal to the whole group.
        os.killpg(driver.pid, signal.SIGINT)
        said = driver.communicate(timeout=4 * PATIENCE)[1]
    assert driver.returncode == 130, said
    assert said == f"rye fleet: cancelled with 1 of 1 jobs left. Results are in {tmp_path}/out.jsonl; --resume does the rest.\n"
    assert (workspaces[0] / "a.txt").read_text() == "one\n"


DASHBOARD = """
import json, sys, types
import distributed, httpx
from distributed import LocalCluster
from tornado.web import RequestHandler
from rye.fleet import driver


class Status(RequestHandler):
    def get(self):
        self.write("what runs")


def asked(cluster):
    port = cluster.scheduler.http_server.port
    paths = ["", "status", "info/main/workers.html", "metrics", "health", "json/counts.json", "api/v1/retire_workers"]
    return sorted({httpx.get(f"http://127.0.0.1:{port}/{path}").status_code for path in paths})


# In place of bokeh, which is not installed with the extra: what Dask would connect, if it were.
page = types.ModuleType("distributed.dashboard.scheduler")
page.connect = lambda app, server, scheduler, **_: app.add_handlers(".*", [("/status", Status)])
distributed.dashboard = sys.modules["distributed.dashboard"] = types.ModuleType("distributed.dashboard")
sys.modules[page.__name__] = distributed.dashboard.scheduler = page
if __name__ == "__main__":
    with driver._cluster(1) as cluster:
        ours = asked(cluster)
    with LocalCluster(n_workers=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster:
        print(json.dumps([ours, asked(cluster)]))
"""


def test_what_runs_is_served_to_nobody_also_where_a_dashboard_is_installed(tmp_path):
    (tmp_path / "ask.py").write_text(DASHBOARD)
    words = [sys.executable, tmp_path / "ask.py"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), check=False, timeout=300)
    ours, control = json.loads(done.stdout)
    assert ours == [404], done.stderr
    assert 200 in control


def test_commands_of_workers_get_the_signals_that_are_sent_to_them(workspaces):
    counts = {"item_id": BASH, "parameters": {"command": "grep SigBlk /proc/self/status"}}
    (record,) = rye.fleet.run([workspaces[0]], [counts], workers=1)
    assert record["calls"][0]["data"]["output"].split()[1].strip("0") == ""


def test_a_job_that_ends_every_worker_is_unknown_and_holds_up_no_other(workspaces, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import os\nfrom rye.fleet import adapter\n_whole = adapter.run_workspace\n"
        "def run_workspace(workspace, *more, **named):\n"
        "    return os._exit(1) if workspace.endswith('w3') else _whole(workspace, *more, **named)\n"
        "adapter.run_workspace = run_workspace\n"
    )
    jobs = [{"workspace": one.name, "calls": [edit("x")]} for one in workspaces]
    out = tmp_path / "out.jsonl"
    done = run("run", jobs_file(tmp_path, jobs), "--workers", "2", "--out", str(out), path=tmp_path)
    assert done.returncode == 1, done.stderr
    found = {record["workspace"][-2:]: record for record in records(out)}
    assert {name: one["status"] for name, one in found.items()} == {
        f"w{at}": "unknown" if at == 3 else "done" for at in range(6)
    }
    assert found["w3"]["code"] == "worker_died"


_DASK = [sys.executable, "-m", "dask"]


@contextlib.contextmanager
def cluster(tmp_path):
    """Start a scheduler and a worker; yield its address, the scheduler, and what starts another worker."""
    place, started = tmp_path / "scheduler.json", []

    def start(*words, env):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
        words = (*_DASK, *words, "--scheduler-file", str(place), "--no-dashboard")
        started.append(subprocess.Popen(words, env=env, **quiet))
        return started[-1]

    def worker(env):
        start("worker", "--nthreads", "1", env=env)

    try:
        scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0", env=environment())
        worker(environment())
        assert until(place.exists, 4 * PATIENCE)
        yield until(lambda: json.loads(place.read_text() or "{}").get("address")), scheduler, worker
    finally:
        for one in reversed(started):
            one.send_signal(signal.SIGCONT)
            one.terminate()
            one.wait(PATIENCE)


def test_workers_of_a_cluster_must_share_the_users_state(workspaces, tmp_path):
    with cluster(tmp_path) as (address, _, worker):
        found = rye.fleet.run(workspaces, [edit("x")], scheduler=address)
        assert [record["status"] for record in found] == ["done"] * 6
        worker(environment(USER_SPACE=str(tmp_path / "elsewhere")))
        from distributed import Client

        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=4 * PATIENCE)
        with pytest.raises(rye.RyeError) as told:
            rye.fleet.run(workspaces, [edit("y")], scheduler=address)
        assert told.value.code == "state_not_shared"
        assert {(one / "a.txt").read_text() for one in workspaces} == {"one\nx\n"}


def test_ctrl_c_ends_a_run_whose_scheduler_answers_nothing(workspaces, tmp_path):
    waits = {"item_id": BASH, "parameters": {"command": "echo x > ran; sleep 60"}}
    file = jobs_file(tmp_path, [{"workspace": "w0", "calls": [waits]}])
    with cluster(tmp_path) as (address, scheduler, _):
        with at_a_prompt(file, "--scheduler", address, "--out", str(tmp_path / "out.jsonl")) as driver:
            assert until((workspaces[0] / "ran").exists, 4 * PATIENCE)
            scheduler.send_signal(signal.SIGSTOP)
            # So that the driver asks it.
            time.sleep(2)
            driver.send_signal(signal.SIGINT)
            said = driver.communicate(timeout=PATIENCE)[1]
        assert driver.returncode == 130, said
        assert "cancelled with 1 of 1 jobs left" in said


def test_the_command_line_says_what_is_wrong(workspaces, tmp_path, capfd, monkeypatch):
    file = jobs_file(tmp_path, [{"workspace": "w0", "calls": [edit("x")]}])
    for words, says in (
        (["run", file, "--resume"], "go with --out"),
        (["run", file, "--json"], "go with --out"),
        (["run", file, "--workers", "2", "--scheduler", "x"], "exclude each other"),
        (["run", file, "--workers", "0", "--out", str(tmp_path / "o")], "0 workers"),
        (["run", str(tmp_path / "none")], "cannot be read"),
    ):
        assert main(["fleet", *words]) == 2, words
        assert says in capfd.readouterr().err
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["fleet", "run", file]) == 2
    said = capfd.readouterr().err
    assert "extra `fleet`" in said
    assert "pip install -e '.[fleet]'" in said
    assert (workspaces[0] / "a.txt").read_text() == "one\n"


def test_results_go_to_standard_output_and_the_first_reasons_are_told_at_the_end(workspaces, tmp_path):
    bad = {"item_id": "rye/bash/bash", "parameters": {"command": "echo oh; exit 5"}}
    file = jobs_file(
        tmp_path, [{"workspace": one.name, "calls": [edit("x") if at else bad]} for at, one in enumerate(workspaces)]
    )
    (workspaces[0] / "multiprocessing.py").write_text("raise SystemExit('of the clone')\n")
    done = run("run", file, "--workers", "1", cwd=workspaces[0])
    assert (done.returncode, done.stderr.count("rye fleet: job ")) == (1, 1), done.stderr
    assert f"rye fleet: job 1 in {workspaces[0]}: failed: The command ended with exit code 5" in done.stderr
    assert sorted(json.loads(line)["job"] for line in done.stdout.splitlines()) == [1, 2, 3, 4, 5, 6]
    assert ("5 done" in done.stderr, "of the clone" in done.stderr) == (True, False), done.stderr
    # A run that was cut off in its first line begins anew.
    (tmp_path / "out").write_bytes(b'{"fle')
    assert run("run", file, "--workers", "1", "--out", str(tmp_path / "out"), "--resume").returncode == 1
    assert len(records(tmp_path / "out")) == 6

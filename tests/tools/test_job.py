"""job as a model calls it: background jobs from start to end, by this process and by others."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

import rye
from rye.call.context import Cancellation
from rye.process import jobs
from support.harness import environment
from support.machine import needs_bubblewrap
from support.shell_calls import bash, call, handed_on, job, record, set_sandbox, sleepers, started
from support.waiting import PATIENCE, until


def settled(project, job_id, wanted):
    until(lambda: job(project, "read", job_id)["output"] == wanted)
    return job(project, "read", job_id)


def test_from_start_to_end(project, mode):
    job_id = started(project, 'echo one; read x; echo "got $x"; echo err >&2; exit 4')
    data = settled(project, job_id, "one\n")
    assert (data["output"], data["status"], data["exit_code"], data["next_offset"]) == ("one\n", "running", None, 4)
    assert job(project, "wait", job_id, timeout=0.1)["output"] == "one\n[still running after 0.1 s]"
    assert job(project, "write", job_id, data="ä b\n")["success"]
    data = job(project, "wait", job_id, timeout=PATIENCE)
    assert (data["output"], data["status"], data["exit_code"], data["why"]) == ("one\ngot ä b\nerr\n", "ended", 4, "exited")
    assert job(project, "read", job_id, offset=4)["output"] == "got ä b\nerr\n"
    assert job(project, "read", job_id, offset=-4)["output"] == "err\n"
    assert "since then; exit code 4" in job(project, "read", job_id, offset=data["next_offset"])["output"]
    assert job(project, "write", job_id, data="x")["code"] == "bad_job_call"
    assert "ended" in json.dumps(job(project, "end", job_id))


def test_input_given_at_the_start_and_closed_later(project, mode):
    job_id = started(project, "cat; echo end", stdin="first\n")
    settled(project, job_id, "first\n")
    job(project, "write", job_id, data="second\n")
    assert job(project, "close_stdin", job_id)["success"]
    assert job(project, "wait", job_id, timeout=PATIENCE)["output"] == "first\nsecond\nend\n"


@pytest.mark.slow
def test_end_takes_the_whole_tree(project, mode, number):
    job_id = started(project, f"trap '' TERM; (setsid sleep {number} &); setsid sleep {number} & sleep {number}")
    assert until(lambda: len(sleepers(number)) == 3)
    data = job(project, "end", job_id)
    assert (data["status"], data["why"]) == ("ended", "ended")
    assert sleepers(number) == []
    # A server may put its things in order.
    job_id = started(project, "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done")
    settled(project, job_id, "up\n")
    job(project, "end", job_id)
    assert job(project, "read", job_id)["output"].endswith("bye\n")


def test_a_job_with_a_timeout_ends_by_itself(project, mode, number):
    job_id = started(project, f"echo on; setsid sleep {number} & sleep {number}", timeout=0.5)
    data = job(project, "wait", job_id, timeout=PATIENCE)
    assert (data["status"], data["why"], data["output"]) == ("ended", "timed_out", "on\n")
    assert sleepers(number) == []


def test_list(project, mode):
    assert job(project, "list")["output"] == "[no jobs]"
    (project / "sub").mkdir()
    first = started(project, "exit 3", working_dir="sub")
    job(project, "wait", first, timeout=PATIENCE)
    second = started(project, "sleep 60\n# \033[31m two lines")
    data = job(project, "list")
    assert [(row["job_id"], row["status"]) for row in data["jobs"]] == [(second, "running"), (first, "ended")]
    assert (data["jobs"][1]["exit_code"], data["jobs"][1]["working_dir"]) == (3, "sub")
    assert (data["output"].split("\n")[1], "\033" in data["output"]) == (f"{first}  exit code 3  exit 3", False)
    job(project, "end", second)


OTHER = """
import json, sys, rye
print(json.dumps(rye.execute("rye/bash/" + sys.argv[1], json.loads(sys.argv[3]), project_path=sys.argv[2])["data"]))
"""


def from_another_process(project, tool, **parameters):
    words = [sys.executable, "-c", OTHER, tool, project, json.dumps(parameters)]
    return json.loads(subprocess.run(words, env=environment(), capture_output=True, check=True).stdout)


def test_any_later_process_can_use_a_job(project, mode):
    job_id = from_another_process(project, "bash", command="read x; echo $x", background=True)["job_id"]
    assert from_another_process(project, "job", action="list")["jobs"][0]["status"] == "running"
    assert from_another_process(project, "job", action="write", job_id=job_id, data="hi\n")["success"]
    assert from_another_process(project, "job", action="wait", job_id=job_id, timeout=PATIENCE)["output"] == "hi\n"
    assert job(project, "read", job_id)["exit_code"] == 0


def test_a_killed_supervisor_is_reported_as_what_it_is(project, user_space, mode, number):
    job_id = started(project, f"echo up; (setsid sleep {number} &); sleep {number}")
    settled(project, job_id, "up\n")
    assert until(lambda: len(sleepers(number)) == 2)
    os.kill(record(user_space, job_id)["supervisor"], signal.SIGKILL)
    until(lambda: job(project, "read", job_id)["status"] != "running")
    data = job(project, "read", job_id)
    assert (data["output"], data["status"], "killed" in data["why"]) == ("up\n", "lost", True)
    assert job(project, "write", job_id, data="x")["code"] == "bad_job_call"
    assert job(project, "wait", job_id, timeout=PATIENCE)["status"] == "lost"
    assert job(project, "end", job_id)["output"].endswith("had been killed; what it left was ended.")
    assert until(lambda: not sleepers(number))


def test_a_models_command_goes_on_as_a_job_after_its_timeout(project, mode):
    (project / "old.txt").write_text("old\n")
    bash(project, "true")
    command = """
        echo before; echo warned >&2; until [ -e go ]; do sleep 0.02; done
        echo new > new.txt; rm old.txt; echo after; echo late >&2; exit 5"""
    answer, job_id = handed_on(project, command, 0.5)
    data = answer["data"]
    assert (answer["status"], data["status"], data["timed_out"], data["exit_code"]) == ("success", "running", True, None)
    waits, ends = (f'job(action="{action}", job_id="{job_id}")' for action in ("wait", "end"))
    told = f"still running after 0.5 s; it goes on as a job (1 h at most): {waits} shows what it prints now, {ends} ends it"
    assert (data["stderr"], data["output"]) == ("warned\n", f"before\n[{told}]")
    assert job(project, "list")["jobs"][0]["command"] == command
    assert job(project, "write", job_id, data="x")["code"] == "stdin_closed"
    (project / "go").touch()
    data = job(project, "wait", job_id, timeout=PATIENCE)
    assert (data["status"], data["why"], data["exit_code"]) == ("ended", "exited", 5)
    assert sorted(data["output"].split()) == ["after", "late"]
    assert {"new.txt", "old.txt"} <= {*data["changed"]}
    assert rye.execute("rye/file-system/undo", {"entry_id": data["change_id"]}, project_path=project)["status"] == "success"
    assert sorted(path.name for path in project.glob("*.txt")) == ["old.txt"]


def test_such_a_job_lives_on_without_who_ran_it_and_ends_whole(project, mode, number):
    script = """if 1:
        import sys, rye
        answer = rye.toolset(sys.argv[1]).call("bash", {"command": sys.argv[2], "timeout": 0.3})
        print(f"{answer}\\n", flush=True)
        sys.stdin.read()"""
    words = [sys.executable, "-c", script, project, f"echo up; (setsid sleep {number} &); sleep {number}"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        first, told = starter.stdout.readline(), starter.stdout.readline()
        starter.kill()
    job_id = re.search("[0-9a-f]{16}", told)[0]
    assert (first, len(sleepers(number)), job(project, "read", job_id)["status"]) == ("up\n", 2, "running")
    assert (job(project, "end", job_id)["why"], sleepers(number)) == ("ended", [])


def test_a_cancelled_call_ends_and_what_cannot_become_a_job_does(project, monkeypatch, number):
    cancellation = Cancellation()
    threading.Timer(0.5, cancellation.cancel).start()
    assert handed_on(project, f"sleep {number}", 60, cancellation)[0]["code"] == "cancelled"
    monkeypatch.setattr(jobs, "MAX_RUNNING", 0)
    answer, job_id = handed_on(project, f"echo up; sleep {number}", 0.5)
    assert (answer["data"]["code"], job_id, sleepers(number)) == ("timed_out", None, [])
    assert answer["data"]["output"].startswith("up\n[timed out after")
    assert job(project, "list")["jobs"] == []


@needs_bubblewrap
def test_such_a_job_is_as_confined_as_one(project):
    """A protected name that was not there, and a covered file that the user's git exchanged before the job began."""
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    command = """until [ -e go ]; do sleep 0.02; done; mkdir .vscode; echo x > .vscode/tasks.json
        echo '[core] fsmonitor = evil' >> .git/config; echo tried; until [ -e end ]; do sleep 0.02; done"""
    git = ["git", "config", "user.name", "someone"]
    exchange = threading.Timer(0.4, subprocess.run, [git], {"cwd": project, "check": True})
    exchange.start()
    _, job_id = handed_on(project, command, 1.5)
    exchange.join()
    (project / "go").touch()
    assert until(lambda: "tried" in job(project, "read", job_id)["output"])
    assert until(lambda: not (project / ".vscode").exists()), "while it runs"
    # Between git's exchange and the next cover of the name the command may have written it: that is set aside, too.
    assert until(lambda: "evil" not in (project / ".git/config").read_text())
    (project / "end").touch()
    data = job(project, "wait", job_id, timeout=PATIENCE)
    assert {one["path"] for one in data["set_aside"]} - {".git/config"} == {".vscode"}
    assert "someone" in (project / ".git/config").read_text()


@needs_bubblewrap
@pytest.mark.parametrize("renamed", [False, True])
def test_a_job_takes_its_names_away_at_its_own_end_where_the_project_was_renamed(project, tmp_path, renamed):
    """The empty folders that cover absent names: no other call comes, and none is needed."""
    job_id = started(project, "until [ -e go ]; do sleep 0.02; done")
    assert until((project / ".vscode").is_dir)
    here = project.rename(tmp_path / "other") if renamed else project
    (here / "go").touch()
    assert (job(here, "wait", job_id, timeout=PATIENCE)["status"], os.listdir(here)) == ("ended", ["go"])


@pytest.mark.slow
def test_who_may_look(project, user_space, mode):
    job_id = started(project, "sleep 60")
    (folder,) = user_space.glob(f".ai/state/*/jobs/{job_id}")
    assert [oct(path.stat().st_mode & 0o777) for path in (folder, folder.parent, folder.parent.parent)] == ["0o700"] * 3
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir() if path.name != "socket")
    job(project, "end", job_id)
    assert not (folder / "socket").exists()


@pytest.mark.parametrize("job_id", ["", "0" * 15, "../../../x", "0" * 16, "ABCDEF0123456789", "0" * 16 + "\n"])
def test_ids_are_checked(project, job_id):
    assert call("job", project, action="read", job_id=job_id)["code"] in ("job_not_found", "invalid_parameters")


def test_a_call_that_lacks_something_says_what(project, user_space):
    set_sandbox(user_space, "off")
    assert "job_id" in job(project, "read")["error"]
    job_id = started(project, "sleep 60")
    assert "data" in job(project, "write", job_id)["error"]
    assert "data" in job(project, "close_stdin", job_id, data="x")["error"]
    assert job(project, "close_stdin", job_id)["success"]
    assert job(project, "write", job_id, data="x")["code"] == "stdin_closed"
    job(project, "end", job_id)
    # Input that nobody reads is bounded.
    job_id = started(project, "sleep 60")
    codes = [job(project, "write", job_id, data="x" * 900_000).get("code") for _ in range(4)]
    assert (codes[0], codes[-1]) == (None, "stdin_full")
    job(project, "end", job_id)
    kept = bash(project, "seq 20000")["output_id"]
    assert "stored output" in job(project, "end", kept)["error"]
    assert "No output of stderr is stored" in job(project, "read", kept, stream="stderr")["error"]


def test_a_project_far_down_and_a_job_of_a_folder_with_a_long_path(tmp_path, monkeypatch):
    deep = tmp_path.joinpath(*["a-long-name-of-a-folder"] * 8)
    (deep / "project").mkdir(parents=True)
    monkeypatch.setenv("USER_SPACE", str(deep))
    job_id = started(deep / "project", "read x; echo $x")
    assert job(deep / "project", "write", job_id, data="hi\n")["success"]
    assert job(deep / "project", "wait", job_id, timeout=PATIENCE)["output"] == "hi\n"


def test_what_a_server_leaves_behind_is_still_its_job(project, user_space, number):
    """Without a PID namespace a program that puts itself into the background goes on; `end` finds it."""
    set_sandbox(user_space, "off")
    job_id = started(project, f"setsid sleep {number} & echo started")
    data = settled(project, job_id, "started\n")
    assert until(lambda: len(sleepers(number)) == 1), data
    time.sleep(0.4)
    assert (job(project, "read", job_id)["status"], len(sleepers(number))) == ("running", 1), data
    assert job(project, "end", job_id)["exit_code"] == 0
    assert sleepers(number) == []

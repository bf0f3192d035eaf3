"""Commands that take all of the machine's memory, processes or temporary space; and sockets that appear after a command has started."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import rye
from rye.sandbox import launcher, resource_limits, sandbox
from support.machine import needs_bubblewrap
from support.shell_calls import bash, job, started
from support.waiting import until

LIMITS = "limits: {memory_mb: 96, processes: 40, temporary_mb: 16}\n"
ATTACKS = {
    "memory": f"{sys.executable} -c 'b = bytearray(160 << 20); print(\"WAS-HERE\")'",
    "memory of many": f"""for i in 1 2 3 4; do {sys.executable} -c 'import time; b = bytearray(60 << 20); time.sleep(1)' &
        p="$p $!"; done; for j in $p; do wait $j || exit 1; done; echo WAS-HERE""",
    "processes": "for i in $(seq 80); do sleep 0.5 & done 2>&1 | grep -q fork || { wait; echo WAS-HERE; }",
    "the temporary folder": "t=$(mktemp) && head -c 32M /dev/zero > $t && rm $t && echo WAS-HERE; rm -f $t",
}


def configured(user_space, text):
    (user_space / ".ai/config").mkdir(parents=True, exist_ok=True)
    (user_space / ".ai/config/rye.yaml").write_text(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_a_command_takes_no_more_than_its_limits(project, user_space, name):
    # Control: without a sandbox there are no limits.
    configured(user_space, LIMITS + "sandbox: {mode: 'off'}\n")
    free = bash(project, ATTACKS[name])
    assert "WAS-HERE" in free["output"], free
    configured(user_space, LIMITS)
    held = bash(project, ATTACKS[name])
    if resource_limits.NAME not in held["sandbox"]["holds"]:
        assert held["sandbox"]["missing"][resource_limits.NAME]
        pytest.skip(held["sandbox"]["missing"][resource_limits.NAME])
    assert "WAS-HERE" not in held["output"], held


def test_limits_are_one_commands_own_and_leave_nothing(project, user_space):
    configured(user_space, LIMITS)
    groups = {parent: set(os.listdir(parent)) for parent in resource_limits._parents()}
    for _ in range(3):
        assert bash(project, "echo works")["output"] == "works\n"
    for _ in range(3):
        assert job(project, "wait", started(project, "echo works"))["output"] == "works\n"
    # A job's are removed by the next command.
    assert bash(project, "echo works")["output"] == "works\n"
    # One is kept for the next command.
    until(lambda: all(len(left(parent) - before) <= 1 for parent, before in groups.items()))
    assert all(len(left(parent) - before) <= 1 for parent, before in groups.items())
    body = "import rye, sys; [rye.execute('rye/bash/bash', {'command': 'true'}, project_path=sys.argv[1]) for _ in range(3)]"
    with subprocess.Popen([sys.executable, "-c", body, project]) as caller:
        assert caller.wait() == 0
    assert not [left(parent, caller.pid) for parent in groups if left(parent, caller.pid)]


def left(parent, maker=0):
    return {name for name in os.listdir(parent) if name.startswith(f"rye-{maker or os.getpid()}-")}


@needs_bubblewrap
def test_require_insists_on_limits_only_where_the_user_names_them(project, user_space, monkeypatch):
    monkeypatch.setattr(resource_limits, "_parents", dict)
    wanted = "processes_end, home_hidden"
    configured(user_space, f"sandbox: {{require: [{wanted}]}}\n")
    assert bash(project, "echo works", sandbox="require")["output"] == "works\n"
    (user_space / ".ai/config/rye.yaml").write_text(f"sandbox: {{require: [{wanted}, {resource_limits.NAME}]}}\n")
    refused = bash(project, "echo works", sandbox="require")
    assert refused["code"] == "sandbox_unavailable"
    assert "control group" in refused["error"]


@pytest.mark.slow
@pytest.mark.skipif(launcher.abi() < 6, reason="this kernel cannot close abstract sockets")
@pytest.mark.skipif(bool(sandbox.layers()["bubblewrap"]), reason="Landlock refuses unix sockets as a whole")
def test_a_job_reaches_no_abstract_socket_that_appears_later(project, user_space):
    name = f"rye-later-{os.getpid()}"
    (project / "connect.py").write_text(
        "import socket, time\n"
        "for _ in range(60):\n"
        "    time.sleep(0.05)\n"
        "    try:\n"
        f"        socket.socket(socket.AF_UNIX).connect('\\0{name}')\n"
        "        print('WAS-HERE'); break\n"
        "    except OSError as err:\n"
        "        last = err\n"
        "else: print('refused', last)\n"
    )
    said = {}
    for mode in ("off", "auto"):
        configured(user_space, f"sandbox: {{mode: '{mode}'}}\n")
        job_id = started(project, f"{sys.executable} connect.py")
        time.sleep(0.3)
        with socket.socket(socket.AF_UNIX) as later:
            later.bind(f"\0{name}")
            later.listen()
            said[mode] = job(project, "wait", job_id, timeout=120)["output"]
    assert "WAS-HERE" in said["off"]
    assert "refused" in said["auto"], said


def test_limits_that_are_refused_leave_nothing(project, user_space, monkeypatch, tmp_path):
    if sandbox.layers()["landlock"]:
        pytest.skip(sandbox.layers()["landlock"])
    monkeypatch.setattr(sandbox, "layers", lambda: {"bubblewrap": "not here", "landlock": ""})
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def outcome(text):
        configured(user_space, text)
        found = rye.execute("rye/bash/bash", {"command": "echo works"}, project_path=project)
        return found["status"], found.get("code"), len(os.listdir("/proc/self/fd")), len(list(tmp_path.glob("rye-*")))

    # The control, which opens what stays open, too.
    assert outcome(LIMITS)[0] == "success"
    first = outcome("limits: {memory_mb: lots}\n")
    assert first[:2] == ("error", "bad_config")
    assert [outcome("limits: {memory_mb: lots}\n") for _ in range(3)] == [first] * 3

"""`rt` in a sandboxed command reaches line IDs and the journal through the process that started the command."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import socket
import sys
from pathlib import Path

import pytest

import rye
from rye.call.command_channel import VARIABLE, CommandChannel
from support.calling import call, done, rows
from support.machine import WHY_NO_BUBBLEWRAP
from support.shell_calls import handed_on, job, started

RT = f"env PYTHONPATH={shlex.quote(str(Path(rye.__file__).parents[1]))} {shlex.quote(sys.executable)} -m rye.cli.rt.main"


@pytest.fixture
def file(project):
    (project / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 21)))
    return project


def bash(project, command, **parameters):
    # Landlock counts as a sandbox here as well: `rt` must work in both.
    required = {} if WHY_NO_BUBBLEWRAP else {"sandbox": "require"}
    data = call("rye/bash/bash", project, command=command, **{**required, **parameters})
    assert data["sandbox"]["kind"] != "none"
    return data


def test_ids_that_rt_shows_are_those_of_read(file):
    known = rows(done("read", file, file_path="a.txt"))
    data = bash(file, f"{RT} open a.txt --ids")
    assert data["success"], data
    assert re.findall(r"\[LID:(\w+)\]", data["output"]) == [name for name, _ in known]


def test_an_edit_by_rt_keeps_the_ids_and_is_in_the_users_journal(file):
    known = rows(done("read", file, file_path="a.txt"))
    assert bash(file, f"echo new | {RT} insert a.txt 1 && echo last | {RT} edit a.txt 21 21")["success"]
    assert rows(done("read", file, file_path="a.txt"))[1:20] == known[:19]
    change = {"line_id": known[4][0], "new_content": "five"}
    done("edit_lines", file, file_path="a.txt", changes=[change])
    listed = done("undo", file, list=True)
    assert [entry["tool"] for entry in listed["entries"]] == [
        "rye/file-system/edit_lines",
        "rye/swe/edit_range",
        "rye/swe/insert_at",
    ]
    for _ in range(3):
        done("undo", file)
    assert (file / "a.txt").read_text() == "".join(f"line {n}\n" for n in range(1, 21))


def test_commands_may_ask_at_once(file):
    data = bash(file, " & ".join([f"{RT} open a.txt:{n} --ids" for n in (1, 5, 9)]) + " & wait")
    assert data["success"], data
    assert data["output"].count("[LID:") >= 30
    data = bash(file, f"{RT} find a.txt | {RT} grep 'line 7' -")
    assert "line 7" in data["output"], data


def test_a_refusal_is_rts_own(file):
    data = bash(file, f"{RT} open missing.txt")
    assert data["exit_code"] == 1
    assert "File not found: missing.txt" in data["stderr"] + data["output"]


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/passwd", ".git/config", ".ai/trusted_keys/x.toml"])
def test_no_path_leads_outside(file, path):
    data = bash(file, f"echo x | {RT} insert {path} 1; {RT} open {path}")
    assert not data["success"], data
    assert "root:" not in data["output"]


def test_a_profile_that_lets_no_tool_write_holds_here_too(file, monkeypatch):
    monkeypatch.setenv("RAGIX_PROFILE", "safe-read-only")
    before = (file / "a.txt").read_bytes()
    bash(file, f"echo x | env -u RAGIX_PROFILE {RT} edit a.txt 1 1")
    assert (file / "a.txt").read_bytes() == before


@pytest.mark.parametrize("words", ["create new.txt", "edit a.txt 1 1"])
def test_the_switch_that_turns_rt_off_arrives_in_a_command(file, monkeypatch, words):
    monkeypatch.setenv("RAGIX_ENABLE_SWE", "0")
    before = (file / "a.txt").read_bytes()
    assert "turned off here" in bash(file, f"echo x | {RT} {words}")["stderr"]
    assert (file / "a.txt").read_bytes() == before
    assert not (file / "new.txt").exists()


def test_what_rt_remembers_of_its_windows_is_no_change_of_a_command(file):
    before = (file / "a.txt").read_bytes()
    bash(file, f"{RT} open a.txt; echo x | {RT} insert a.txt 1")
    assert (file / ".ragix").exists()
    entries = done("undo", file, list=True)["entries"]
    assert {entry["file_path"] for entry in entries} == {"a.txt"}
    while (file / "a.txt").read_bytes() != before:
        assert done("undo", file)["file_path"] == "a.txt"


ASK = """
import json, os, socket, sys
number = int(os.environ["RYE_CHANNEL"].split(":")[0])
(request, giving), (taking, response) = os.pipe(), os.pipe()
channel = socket.socket(fileno=os.dup(number))
socket.send_fds(channel, [b"?"], [request, response])
os.close(request); os.close(response)
os.write(giving, sys.argv[1].encode()); os.close(giving)
print(json.dumps(json.loads(open(taking).read() or "null")))
"""


@pytest.mark.parametrize(
    "request_",
    [
        {"item_id": "rye/bash/bash", "parameters": {"command": "id"}},
        {"item_id": "rye/web/webfetch", "parameters": {"url": "http://localhost/"}},
        {"item_id": "rye/primary-tools/rye_sign", "parameters": {}},
        {"item_id": "my/tool", "parameters": {}},
        {"item_id": "rye/file-system/../bash/bash", "parameters": {"command": "id"}},
        {"item_id": "rye/file-system/read"},
        {"item_id": 7, "parameters": {}},
        [],
        None,
    ],
)
def test_other_tools_are_not_served(file, request_):
    """Control: a file tool is."""
    asked = [json.dumps(one) for one in (request_, {"item_id": "rye/file-system/read", "parameters": {"file_path": "a.txt"}})]
    for text, served in zip(asked, (False, True), strict=True):
        data = bash(file, f"{shlex.quote(sys.executable)} -c {shlex.quote(ASK)} {shlex.quote(text)}")
        found = json.loads(data["output"])
        assert bool(found and found["status"] == "success") == served, found


def test_a_program_between_may_close_the_descriptor(file):
    """Then `rt` works by itself, with IDs of a first look."""
    data = bash(file, f'exec {{RYE}}<&-; eval "exec ${{RYE_CHANNEL%%:*}}<&-"; {RT} open a.txt --ids')
    assert data["success"], data
    assert "line 20" in data["output"]


def test_a_background_job_has_no_channel(file):
    data = bash(file, f"echo ${{{VARIABLE}:-none}}", background=True)
    assert "none" in done("rye/bash/job", file, action="wait", job_id=data["job_id"])["output"]


def test_only_pipes_are_written_to(tmp_path):
    """A descriptor of something else could be a file that the command may not write, but read."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    with CommandChannel("/", lambda *_: {"status": "success"}) as channel, socket.socket(fileno=os.dup(channel.fd)) as ours:
        channel.serve()
        for target in (victim, None):
            reading, writing = os.pipe()
            taking, giving = os.pipe()
            out = os.open(victim, os.O_WRONLY) if target else giving
            socket.send_fds(ours, [b"?"], [reading, out])
            os.write(writing, b'{"item_id": "rye/file-system/read", "parameters": {}}')
            os.close(writing)
            os.close(out)
            os.close(reading)
            if target is None:
                assert json.loads(os.read(taking, 1_000)) == {"status": "success"}
            os.close(taking)
    assert victim.read_bytes() == b"mine"


@pytest.mark.parametrize("begun", ["as one", "as a model's command"])
def test_in_a_background_job_nobody_serves_it_and_it_says_so(file, begun):
    command = f"{RT} open a.txt; echo new | {RT} insert a.txt 1"
    job_id = started(file, command) if begun == "as one" else handed_on(file, f"sleep 1; {command}", 0.2)[1]
    data = job(file, "wait", job_id, timeout=120)
    assert data["output"].count("This runs in a background job") == 2, data
    assert "edits are recorded as changes of the job" in data["output"]
    before = (file / "a.txt").read_text()
    assert before.startswith("new")
    (entry,) = done("undo", file, list=True)["entries"]
    assert (entry["tool"], entry["file_path"]) == ("rye/bash/bash", "a.txt")
    done("undo", file, entry_id=entry["entry_id"])
    assert (file / "a.txt").read_text() == before.removeprefix("new\n")
    assert "background job" not in bash(file, f"{RT} open a.txt")["output"]


def test_who_asks_and_says_nothing_does_not_keep_the_next_one_waiting():
    with CommandChannel("/", lambda *_: {"status": "success"}) as channel, socket.socket(fileno=os.dup(channel.fd)) as ours:
        channel.serve()
        silent, spoken = (os.pipe(), os.pipe()), (os.pipe(), os.pipe())
        for (reading, _), (_, giving) in (silent, spoken):
            socket.send_fds(ours, [b"?"], [reading, giving])
        os.write(spoken[0][1], b'{"item_id": "rye/file-system/read", "parameters": {}}')
        os.close(spoken[0][1])
        assert select.select([spoken[1][0]], [], [], 8)[0]
        assert json.loads(os.read(spoken[1][0], 1_000)) == {"status": "success"}
        for fd in (*silent[0], *silent[1], spoken[0][0], *spoken[1]):
            os.close(fd)

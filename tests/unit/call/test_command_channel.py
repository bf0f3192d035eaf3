"""`rt` in a sandboxed command reaches line IDs and the journal through the process that started the command."""

import json
import os
import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import rye
from support.calling import call, done, rows
from support.machine import WHY_NO_BUBBLEWRAP
from support.shell_calls import handed_on, job, started
from support.signed_tools import put_tool

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


def test_rt_shows_the_ids_of_read_and_its_edits_keep_them_and_are_in_the_users_journal(file):
    before = (file / "a.txt").read_text()
    known = rows(done("read", file, file_path="a.txt"))
    data = bash(file, f"{RT} open a.txt --ids; echo new | {RT} insert a.txt 1 && echo last | {RT} edit a.txt 21 21")
    assert re.findall(r"\[LID:(\w+)\] line", data["output"])[: len(known)] == [name for name, _ in known]
    assert rows(done("read", file, file_path="a.txt"))[1:20] == known[:19]
    done("edit_lines", file, file_path="a.txt", changes=[{"line_id": known[4][0], "new_content": "five"}])
    # What rt remembers of its windows is no change of the command.
    assert (file / ".ragix").exists()
    tools = [entry["tool"].rpartition("/")[2] for entry in done("undo", file, list=True)["entries"]]
    assert tools == ["edit_lines", "edit_range", "insert_at"]
    for _ in tools:
        done("undo", file)
    assert (file / "a.txt").read_text() == before


def test_commands_may_ask_at_once_and_a_refusal_is_rts_own(file):
    data = bash(
        file, " & ".join([f"{RT} open a.txt:{n} --ids" for n in (1, 5, 9)]) + f" & wait; {RT} find a.txt | {RT} grep 'line 7' -"
    )
    assert data["success"], data
    assert data["output"].count("[LID:") >= 30
    # A program between may close the descriptor: then `rt` works by itself, with IDs of a first look.
    data = bash(file, f'exec {{RYE}}<&-; eval "exec ${{RYE_CHANNEL%%:*}}<&-"; {RT} open a.txt --ids')
    assert "line 20" in data["output"], data
    assert "not run" in str(bash(file, f"{RT.removesuffix('.cli.rt.main')} execute rye/file-system/write a.txt x --dry-run"))
    for path in ("missing.txt", "../outside.txt", "/etc/passwd", ".git/config", ".ai/trusted_keys/x.toml"):
        data = bash(file, f"{RT} open {path}; echo x | {RT} insert {path} 1")
        assert not data["success"], data
        assert "root:" not in data["output"]
        assert path != "missing.txt" or "File not found: missing.txt" in data["stderr"] + data["output"]


@pytest.mark.parametrize(
    ("name", "value", "unset", "said"),
    [
        ("RAGIX_PROFILE", "safe-read-only", "env -u RAGIX_PROFILE", "read-only"),
        ("RAGIX_ENABLE_SWE", "0", "", "turned off here"),
    ],
)
def test_what_the_user_forbids_holds_in_a_command_too(file, monkeypatch, name, value, unset, said):
    monkeypatch.setenv(name, value)
    before = (file / "a.txt").read_bytes()
    for words in ("create new.txt", "edit a.txt 1 1"):
        assert said in str(bash(file, f"echo x | {unset} {RT} {words}"))
    assert ((file / "a.txt").read_bytes(), (file / "new.txt").exists()) == (before, False)


ASK = """
import contextlib, json, os, socket, sys
channel = socket.socket(fileno=os.dup(int(os.environ["RYE_CHANNEL"].split(":")[0])))
def ask(request, answer=None):
    # Who says nothing keeps its pipe open.
    (taken, giving), (taking, response) = os.pipe(), os.pipe()
    socket.send_fds(channel, [b"?"], [taken, response if answer is None else answer])
    os.close(taken); os.close(response)
    if request is ...:
        return giving
    with contextlib.suppress(BrokenPipeError):
        # What is refused by its descriptors is not read.
        os.write(giving, json.dumps(request).encode())
    os.close(giving)
    return json.loads(open(taking).read() or "null")
read = {"item_id": "rye/file-system/read", "parameters": {"file_path": "a.txt"}}
"""
REFUSED = [
    *({"item_id": f"rye/{one}/bash", "parameters": {"command": "id"}} for one in ("bash", "file-system/../bash")),
    {"item_id": "rye/web/webfetch", "parameters": {"url": "http://localhost/"}},
    *({"item_id": item_id, "parameters": {}} for item_id in ("rye/primary-tools/rye_sign", "my/tool", 7)),
    *({"item_id": "rye/file-system/read"}, [], None),
]


def test_other_tools_are_not_served_only_pipes_are_written_to_and_who_says_nothing_keeps_nobody_waiting(file):
    """A descriptor of something else could be a file that the command may not write, but read."""
    (file / "victim").write_text("mine")
    code = """
silent, victim = ask(...), os.open("victim", os.O_RDWR)
os.mkfifo("named"); named = os.open("named", os.O_RDWR | os.O_NONBLOCK)
print(json.dumps([*map(ask, json.loads(sys.argv[1])), ask(read, victim), ask(read, os.open("named", os.O_PATH)), ask(read)]))
with contextlib.suppress(BlockingIOError): sys.exit(os.read(named, 99))"""
    words = [sys.executable, "-c", ASK + code, json.dumps(REFUSED)]
    answered = bash(file, shlex.join(words))
    served = [bool(one and one["status"] == "success") for one in json.loads(answered["output"])]
    assert answered["success"], answered
    assert served == [*[False] * (len(REFUSED) + 2), True]
    assert (file / "victim").read_text() == "mine"


def test_a_command_that_gives_both_ends_of_a_pipe_and_makes_it_wait_does_not_hold_up_its_starter(file):
    (file / "a.txt").write_text(f"{'é' * 90}\n" * 5_000)
    code = """
import fcntl, time
(taken, giving), (taking, response) = os.pipe(), os.pipe()
both = os.open(f"/proc/self/fd/{response}", os.O_RDWR)
socket.send_fds(channel, [b"?"], [taken, both])
os.write(giving, json.dumps(read).encode()); os.close(giving)
for _ in range(20):
    fcntl.fcntl(both, fcntl.F_SETFL, 0); time.sleep(0.05)
print(len(os.read(taking, 5000)))"""
    words = [sys.executable, "-m", "rye", "bash", shlex.join([sys.executable, "-c", ASK + code])]
    assert subprocess.run(words, cwd=file, capture_output=True, timeout=40, check=False).stdout == b"5000\n"


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


def test_a_process_with_very_many_descriptors_is_served_too(file):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2_100:
        pytest.skip("this process may not open 2,100 files")
    put_tool(file, "my/tool", more="__permissions__ = ['read']")
    fds = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2_100), hard))
        while not fds or fds[-1] < 1_100:
            fds.append(os.open(os.devnull, os.O_RDONLY))
        assert "[LID:" in bash(file, f"{RT} open a.txt --ids")["output"]
        assert rye.execute("my/tool", project_path=file)["status"] == "success"
    finally:
        for fd in fds:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

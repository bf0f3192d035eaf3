"""bash as a model calls it, under the best sandbox of this machine and without one."""

import json
import re
import shutil
import subprocess
import threading
import time

import pytest

import rye
from rye.call.context import CallOptions, Cancellation
from support.machine import needs_bubblewrap
from support.shell_calls import bash, job, set_sandbox, sleepers
from support.waiting import PATIENCE


def test_the_fields_of_a_result(project, mode):
    data = bash(project, "echo out; echo err >&2; pwd")
    assert (data["success"], data["output"], data["stderr"]) == (True, f"out\n{project}\n", "err\n")
    assert (data["exit_code"], data["truncated"], data["timed_out"]) == (0, False, False)
    assert 0 <= data["duration_ms"] < 20_000
    assert (data["total_bytes"], data["total_stderr_bytes"]) == (len(data["output"]), 4)
    assert data["sandbox"]["kind"] in (("none",) if mode == "off" else ("bubblewrap", "landlock", "none"))
    assert set(data["sandbox"]) >= {"kind", "holds", "missing"}


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("echo 'a\nb\nmissing semicolon' >&2; exit 2", 2, ["exit code 2", "missing semicolon"]),
        ("no_such_program", 127, ["127", "command not found. A program", "command -v", "no_such_program"]),
        ("touch x; ./x", 126, ["126", "executable"]),
        ("kill -SEGV $$; sleep 1", None, ["SIGSEGV"]),
    ],
)
def test_a_failure_says_what_happened(project, mode, command, code, words):
    data = bash(project, command)
    assert (data["success"], data["code"]) == (False, "command_failed")
    assert data["exit_code"] == code or (code is None and data["exit_code"] == 139)
    assert [word for word in words if word not in data["error"]] == []


def test_out_of_time_it_ends_whole_and_what_it_said_is_kept(project, mode, number):
    began = time.monotonic()
    data = bash(project, f"sleep {number} & echo hi")
    # What is left running ends with the call.
    assert (data["exit_code"], data["output"], sleepers(number)) == (0, "hi\n", [])
    assert time.monotonic() - began < PATIENCE
    data = bash(project, f"echo before; (setsid sleep {number} &); sleep {number}", timeout=1.2)
    assert (data["code"], data["timed_out"], data["exit_code"]) == ("timed_out", True, None)
    # How long it took to end it depends on what else the machine does.
    assert re.fullmatch(r"before\n\[timed out after \d+\.\d s\]", data["output"])
    assert ("timeout of 1.2 s" in data["error"], "background=true" in data["error"]) == (True, True)
    assert sleepers(number) == []


def test_cancelled_it_ends_whole_and_what_it_said_is_the_answer(project, mode, number):
    cancellation = Cancellation()
    threading.Timer(0.8, cancellation.cancel).start()
    asked = {"command": f"echo before; (setsid sleep {number} &); sleep {number}"}
    options = CallOptions(cancellation=cancellation)
    response = rye.execute("rye/bash/bash", asked, project_path=project, options=options)
    assert (response["code"], response["data"]["code"]) == ("cancelled", "cancelled")
    assert response["data"]["output"].startswith("before\n[cancelled after")
    assert sleepers(number) == []


@needs_bubblewrap
@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("./tool", "./tool"),
        ("env bin/python", "bin/python"),
        ("python3 -c 'import subprocess; subprocess.run([\"./tool\"])'", "./tool"),
        ("make -s", "./tool"),
        ("{hidden}", ""),
        # Controls: what it needs is nowhere.
        ("./none", None),
        ("{hidden}x", None),
    ],
)
def test_an_interpreter_that_the_sandbox_hides_is_named(project, tmp_path, command, named):
    hidden = tmp_path / "elsewhere/python"
    hidden.parent.mkdir()
    shutil.copy("/bin/echo", hidden)
    (project / "bin").mkdir()
    (project / "bin/python").symlink_to(hidden)
    (project / "Makefile").write_text("all:\n\t./tool\n")
    for name, line in {"tool": f"#!{hidden}", "none": f"#!{hidden}x"}.items():
        (project / name).write_text(f"{line}\n")
        (project / name).chmod(0o755)
    output = bash(project, command.format(hidden=hidden))["output"]
    by = f", which runs {named}," if named else ""
    assert (f"[sandbox: {hidden}{by} is there, but hidden from commands" in output) == (named is not None), output
    output = bash(project, f"cd {hidden.parent}")["output"]
    assert ("users are. Work in the project" in output, output.count("[sandbox: ")) == (True, 1)


def test_working_dir(project, mode):
    (project / "sub dir").mkdir()
    (project / "in").symlink_to("sub dir")
    (project / "out").symlink_to("/")
    (project / "file").touch()
    for path in ("sub dir", "in", str(project / "sub dir")):
        assert bash(project, "pwd; echo $PWD; touch here", working_dir=path)["output"] == f"{project}/sub dir\n" * 2
    assert (project / "sub dir/here").exists()
    for path, code in {"out": "path_outside", "..": "path_outside", "/etc": "path_outside", "file": "not_a_directory"}.items():
        assert bash(project, "pwd", working_dir=path)["code"] == code
    missing = bash(project, "pwd", working_dir="sub dirr")
    assert (missing["code"], "sub dir" in missing["error"]) == ("file_not_found", True)


def test_env_is_added_and_nothing_in_text_is_expanded_before_the_shell(project, mode, monkeypatch):
    monkeypatch.setenv("A_PLAIN_WORD", "of the server")
    printed = "printf '%s|' \"$A\" '${A}' '{project_path}' \"$TERM\" \"$GIT_TERMINAL_PROMPT\""
    data = bash(project, printed, env={"A": "$HOME ä\n"})
    assert data["output"] == "$HOME ä\n|${A}|{project_path}|dumb|0|"
    for bad in (*({name: "x"} for name in ("", "A=B", "1A", "A B", "A-B", "Ä")), {"A": "a\0b"}, {"A": "x" * 140_000}):
        assert bash(project, "true", env=bad)["code"] == "bad_env"
    # They reach the command and not what guards it.
    broken = {"LD_PRELOAD": "/no/such.so", "PYTHONHOME": "/no/such", "PYTHONPATH": "/no/such", "BASH_ENV": "/no/such"}
    assert bash(project, "echo $LD_PRELOAD", env=broken)["output"] == "/no/such.so\n"


def test_stdin(project, mode):
    assert bash(project, "cat", stdin="ä\nb")["output"] == "ä\nb"
    assert bash(project, 'read x; echo "$? $x"')["output"] == "1 \n"
    assert bash(project, "wc -c", stdin="x" * 3_000_000)["output"].strip() == "3000000"


@pytest.mark.parametrize(("command", "stdin"), [("echo \0", ""), ("é" * 70_000, ""), ("\ud800", ""), ("true", "\ud800")])
def test_what_no_command_line_holds_is_refused(project, command, stdin):
    data = bash(project, command, stdin=stdin)
    assert (data["code"] in ("bad_command", "invalid_parameters"), bool(data["error"])) == (True, True)


def test_nothing_asks(project, mode):
    subprocess.run(["git", "init", "-q", project], check=True)
    for command in ("read x </dev/tty", "test `git var GIT_EDITOR` = true", "sudo -k true </dev/tty || su nobody </dev/tty"):
        data = bash(project, command, timeout=PATIENCE)
        assert (data["timed_out"], data["exit_code"] == 0) == (False, command.startswith("test")), command


def test_long_output_shows_both_ends_and_the_rest_is_read_by_the_call_it_names(project, mode):
    everything = "".join(f"{line}\n" for line in range(30_000))
    data = bash(project, "seq 0 29999; echo to stderr >&2")
    assert (data["success"], data["truncated"], data["stderr"]) == (True, True, "to stderr\n")
    assert len(data["output"].encode()) <= 51_200
    head, _, rest = data["output"].partition("[tool_result: ")
    notice, _, tail = rest.partition("]\n")
    assert (everything.startswith(head), everything.endswith(tail), min(len(head), len(tail)) > 10_000) == (True,) * 3
    shown, total = len(head) + len(tail), len(everything)
    assert notice.startswith(f"{shown} of {total} bytes; {total - shown} more omitted. Call job(")
    assert f'job(action="read", job_id="{data["output_id"]}", offset={len(head)})' in notice
    at, seen = len(head), head
    while at < total:
        page = job(project, "read", data["output_id"], offset=at)
        text = page["output"].partition("[tool_result: ")[0]
        assert text
        seen, at = seen + text, page["next_offset"]
    assert seen == everything


def test_both_streams_long_and_a_caller_that_wants_less(project):
    asked, options = {"command": "seq 30000; seq 30000 >&2"}, CallOptions(max_output_bytes=4_000)
    data = rye.execute("rye/bash/bash", asked, project_path=project, options=options)["data"]
    assert len(data["output"].encode()) + len(data["stderr"].encode()) <= 4_000
    assert 'stream=\\"stderr\\"' in json.dumps(data["stderr"])
    assert job(project, "read", data["output_id"], stream="stderr", offset=-6)["output"] == "30000\n"


def test_output_that_is_no_text(project, mode):
    data = bash(project, r"printf 'a\377\000\033[31mred\033[0m\n10%%\r90%%\ndone\007'")
    assert data["output"] == "a\\xff\\x00red\n90%\ndone\\x07"
    noise = bash(project, "head -c 200000 /dev/urandom")
    assert (noise["truncated"], len(noise["output"].encode()) <= 51_200) == (True, True)
    json.dumps(noise).encode()


def test_output_is_told_as_it_comes(project):
    told = []
    # The second line comes only when the first was told.
    asked = {"command": "echo one; until [ -e told ]; do sleep 0.02; done; echo two", "timeout": PATIENCE}
    options = CallOptions(on_output=lambda piece: (told.append(piece), (project / "told").touch()))
    rye.execute("rye/bash/bash", asked, project_path=project, options=options)
    assert told == ["one\n", "two\n"]


@needs_bubblewrap
def test_a_sandbox_that_was_made_is_told_from_one_that_was_not(project, user_space):
    set_sandbox(user_space, "auto")
    data = bash(project, 'echo "bwrap: Can not find source path /proc/self/fd/13" >&2; exit 1')
    assert (data["code"], data["exit_code"]) == ("command_failed", 1)


def test_a_state_folder_that_cannot_be_written_costs_only_the_long_output(project, user_space):
    set_sandbox(user_space, "off")
    bash(project, "seq 100000")
    (outputs,) = user_space.glob(".ai/state/*/outputs")
    outputs.rename(outputs.with_name("aside"))
    outputs.write_text("in the way")
    data = bash(project, "seq 100000")
    assert (data["success"], "not stored" in data["output"], "output_id" in data) == (True, True, False)


@pytest.mark.parametrize("layer", ["bubblewrap", "landlock"], indirect=True)
def test_git_commits_under_the_users_name_and_a_repositorys_own_comes_first(project, layer, monkeypatch, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text('[user]\n\tname = "Zoë \\"Q\\" Doe"\n[include]\n\tpath = more\n[core]\n\tpager = evil\n')
    (home / "more").write_text("[user]\n\temail = z@example.org\n")
    monkeypatch.setenv("HOME", str(home))
    subprocess.run(["git", "init", "-q", project], check=True)
    data = bash(project, "git commit -q --allow-empty -m x && git log -1 --format='%an <%ae>'; git config core.pager")
    assert data["output"] == 'Zoë "Q" Doe <z@example.org>\n', data
    other = "git init -q n && cd n && git config user.email n@example.org && git commit -q --allow-empty -m x && git log --format=%ae"
    assert bash(project, other)["output"] == "n@example.org\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("git remote add o https://example.org/x.git", ["git's configuration", "Ask the user to run this git command"]),
        ("echo x > .git/hooks/pre-commit", ["Ask the user to run this git command"]),
        ("echo {} > .vscode/tasks.json", [".vscode is protected", "protected: {allow: [.vscode]}"]),
        ("echo {} > .mcp.json", [".mcp.json is protected"]),
        ("echo x > .ai/x", ["write or edit_lines"]),
        ("touch /usr/share/x", ["only in the project"]),
        ("getent hosts example.org || echo 'Could not resolve host' >&2; exit 6", ["the network is off"]),
    ],
)
def test_a_failure_that_the_sandbox_caused_says_so_and_what_to_do(project, command, words):
    subprocess.run(["git", "init", "-q", project], check=True)
    commit = ["git", "-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "x"]
    subprocess.run(commit, cwd=project, check=True)
    for name in (".vscode", ".ai"):
        (project / name).mkdir()
    (project / ".mcp.json").write_text("{}")
    data = bash(project, command, network="off")
    if data["sandbox"]["kind"] != "bubblewrap":
        pytest.skip("only bubblewrap protects names in the project and mounts the rest read-only (Debian package bubblewrap)")
    assert (data["success"], [word for word in ("[sandbox: ", *words) if word not in data["output"]]) == (False, [])


def test_a_failure_that_is_the_commands_own_says_nothing_of_the_sandbox(project, mode):
    (project / "sub").mkdir()
    for command in ("cat nothing", "git status", "rmdir /", "echo 'no .vscode' >&2; exit 1"):
        assert "[sandbox" not in bash(project, command)["output"]


@pytest.mark.parametrize("path", ["/tmp/left", "~/left"])
def test_a_file_that_went_with_an_earlier_command_is_explained_where_it_is_missed(project, path):
    data = bash(project, f"echo a >{path}; cat {path}")
    if "private_tmp" not in data["sandbox"]["holds"]:
        pytest.skip("only bubblewrap gives a temporary folder of the command's own (Debian package bubblewrap)")
    assert data["output"] == "a\n"
    missed = bash(project, f"cat {path}")
    told = "[sandbox: the temporary folder and home of a command are its own"
    assert (missed["success"], told in missed["output"]) == (False, True)

"""`rye execute`: exit codes, values, what stands on standard output."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys

import pytest

import rye as package
from support.harness import AT_A_PROMPT, environment
from support.in_process import rye
from support.shell_calls import sleepers
from support.signed_tools import put, put_script, put_tool, tool_text
from support.signed_tools import rye as process
from support.terminal import typed
from support.waiting import until

READ = ("execute", "rye/file-system/read")


@pytest.fixture
def here(project):
    (project / ".ai").mkdir()
    (project / "a.txt").write_bytes(b"one\ntwo\n")
    return project


# --- exit codes ---


def test_success_is_0_and_what_the_tool_refuses_is_1(here):
    done = rye(*READ, "file_path=a.txt", cwd=here)
    assert (done.returncode, done.stderr) == (0, b"")
    assert [line[12:] for line in done.stdout.split(b"\n")] == [b" one", b" two", b""]
    done = rye(*READ, "file_path=b.txt", cwd=here)
    assert (done.returncode, done.stdout, b"a.txt" in done.stderr) == (1, b"", True)
    assert rye(*READ, "file_path=../x", cwd=here).returncode == 1
    put_tool(here, "my/tool", "1 / 0")
    done = rye("execute", "my/tool", cwd=here)
    assert (done.returncode, b"Traceback" in done.stderr) == (1, False)


# --- the answer alone on standard output ---

NOISY = """import os, subprocess, sys, threading, time
print("noise")
sys.stdout.write("noise")
sys.__stdout__.write("noise")
sys.__stdout__.flush()
os.write(1, b"noise")
subprocess.run(["sh", "-c", "echo noise"])
thread = threading.Thread(target=print, args=("noise",))
thread.start()
thread.join()
return {"success": True, "output": "answer"}"""


def test_json_prints_json_and_nothing_else_whatever_the_tool_writes(here):
    put_tool(here, "my/tool", NOISY, more="__permissions__ = ['run']")
    done = process("execute", "my/tool", "--json", cwd=here)
    assert done.returncode == 0
    response = json.loads(done.stdout)
    assert response["data"]["output"] == "answer"
    assert response["metadata"]["printed"].count("noise") == 6, "what was written past Python is not lost"
    done = process("execute", "my/tool", cwd=here)
    assert done.stdout == b"answer\n"


def test_warnings_go_to_standard_error(here):
    put(here, "tools/rye/file-system/read.py", b"x")
    done = rye(*READ, "file_path=a.txt", "--json", cwd=here)
    assert json.loads(done.stdout)["warnings"]
    done = rye(*READ, "file_path=a.txt", cwd=here)
    assert (b"warning" in done.stderr, b"warning" in done.stdout) == (True, False)


# --- the project ---


def test_a_typed_path_is_tried_from_the_current_folder_then_from_the_root(project):
    for folder in (".git", "src"):
        (project / folder).mkdir()
    for name, text in {"src/app": "here", "top": "top", "both": "of the root", "src/both": "of the folder"}.items():
        (project / f"{name}.py").write_text(f"{text}\n")

    def read(path, *words):
        return rye(*READ, f"file_path={path}", "line_ids=none", *words, cwd=project / "src")

    texts = {"app.py": b"here\n", "src/app.py": b"here\n", "top.py": b"top\n", "../top.py": b"top\n"}
    both = {"both.py": b"of the folder\n", str(project / "both.py"): b"of the root\n"}
    assert {path: read(path).stdout for path in (*texts, *both)} == texts | both
    done = read("absent.py")
    assert f"(The project is {project}.)".encode() in done.stderr
    assert rye("execute", "rye/file-system/write", "file_path=new.py", "content=x", cwd=project / "src").returncode == 0
    assert (project / "src/new.py").exists()
    # Control: a program's parameters are from the root.
    given = json.dumps({"file_path": "both.py", "line_ids": "none"})
    assert rye(*READ, "--params", given, cwd=project / "src").stdout == b"of the root\n"


# What lies in a tree; where a read of `root.txt` is asked from; whether that is found at the top.
ROOTS = [
    ([".ai/config/rye.yaml"], "src/deep", True),
    ([".git/"], "src/deep", True),
    ([".git/", "src/.git/"], "src/deep", False),
    # A worktree's .git is a file.
    ([".git/", "src/.git"], "src/deep", False),
    # What a read leaves is no project's.
    ([".git/", "src/.ai/cache/"], "src", True),
    # Without a project the folder itself is it.
    ([], ".", True),
    ([], "src", False),
]


@pytest.mark.parametrize(("there", "below", "found"), ROOTS)
def test_the_project_is_the_nearest_folder_above_with_items_or_git(project, there, below, found):
    for path in [*there, f"{below}/"]:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).mkdir(exist_ok=True) if path.endswith("/") else (project / path).touch()
    (project / "root.txt").write_text("x\n")
    (project / below).joinpath("own.txt").write_text("x\n")
    cwd = project / below
    given = json.dumps({"file_path": "root.txt"})
    assert (rye(*READ, "--params", given, cwd=cwd).returncode == 0) is found
    with contextlib.chdir(cwd):
        assert (package.execute("rye/file-system/read", {"file_path": "root.txt"})["status"] == "success") is found
        # Named, a folder is the root as it stands.
        assert package.execute("rye/file-system/read", {"file_path": "own.txt"}, project_path=".")["status"] == "success"
        assert package.toolset(project, categories="rye/file-system").call("read", {"file_path": "root.txt"}).startswith("1\tx")
    for named in (str(project), os.path.relpath(project, cwd)):
        assert rye(*READ, "--params", given, "--project", named, cwd=cwd).returncode == 0


def test_the_users_space_is_no_project(user_space):
    put(user_space, "config/rye.yaml", b"")
    (user_space / "outer.txt").write_bytes(b"x\n")
    (user_space / "work/inner").mkdir(parents=True)
    assert rye(*READ, "file_path=../../outer.txt", cwd=user_space / "work/inner").returncode == 1


# --- terminals and file names ---


@pytest.mark.parametrize(
    "env", [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"}]
)
def test_text_that_the_terminal_cannot_show_is_escaped(here, env):
    (here / "a.txt").write_text("snow ☃ man 😀\n")
    done = process(*READ, "file_path=a.txt", "line_ids=none", cwd=here, env=env)
    assert done.returncode == 0, done
    assert done.stdout in (b"snow \\u2603 man \\U0001f600\n", "snow ☃ man 😀\n".encode())
    done = process(*READ, "file_path=a.txt", "line_ids=none", "--json", cwd=here, env=env)
    assert json.loads(done.stdout)["data"]["output"] == "snow ☃ man 😀"
    assert process(*READ, "file_path=☃", cwd=here, env=env).returncode == 1


def test_a_file_name_that_is_not_utf8_can_be_given(here):
    name = os.fsdecode(b"caf\xe9\xff.txt")
    (here / name).write_text("one\n")
    # As it was shown it can be given again.
    for given in (name, "caf\\xe9\\xff.txt"):
        done = rye(*READ, f"file_path={given}", "--json", cwd=here)
        assert json.loads(done.stdout)["data"]["file_path"] == "caf\\xe9\\xff.txt", done


# --- commands ---

BASH = ("execute", "rye/bash/bash")


def test_at_a_terminal_output_is_shown_as_it_comes_and_once(here):
    code, shown = typed(*BASH, "command=echo one; sleep 0.3; echo two >&2; exit 3", cwd=here)
    # Under Landlock alone a line says what that does not hold.
    shown = re.sub(r"rye: the sandbox here is Landlock, [^\n]*\n", "", shown)
    assert (code, shown.startswith("one\ntwo\nrye: The command ended with exit code 3.")) == (3, True)


def test_a_file_cannot_steer_the_terminal_and_goes_unchanged_into_a_pipe(here):
    (here / "evil").write_bytes(b"a\x1b]0;title\x07\tb\n")
    words = (*READ, "file_path=evil", "line_ids=none")
    code, shown = typed(*words, cwd=here)
    assert (code, "\x1b" in shown, "\x07" in shown, "a\\x1b]0;title\\x07" in shown) == (0, False, False, True)
    code, shown = typed(*BASH, r"command=printf '\033[31mred\n'", cwd=here)
    assert (code, "\x1b" in shown) == (0, False)
    assert rye(*words, cwd=here).stdout == b"a\x1b]0;title\x07\tb\n"


def test_ctrl_c_ends_a_command_with_all_that_it_started(here, number):
    command = f"command=echo up; (setsid sleep {number} &); sleep {number}"
    words = [*AT_A_PROMPT, sys.executable, "-m", "rye", *BASH, command]
    with subprocess.Popen(words, cwd=here, env=environment(), stderr=subprocess.DEVNULL) as child:
        assert until(lambda: len(sleepers(number)) == 2)
        child.send_signal(signal.SIGINT)
        assert child.wait(120) != 0
    assert until(lambda: not sleepers(number))


def test_a_person_sees_the_traceback_of_a_crash_and_a_pipe_does_not(project):
    put_tool(project, "my/crash", 'raise ValueError("step 3")')
    put(project, "tools/my/raw.py", tool_text("my/raw", 'raise ValueError("step 4")'))
    for words, told in ((["my/crash"], "ValueError: step 3"), (["my/raw", "--allow-unsigned"], "ValueError: step 4")):
        code, shown = typed("execute", *words, cwd=project)
        assert (code != 0, "Traceback" in shown, told in shown) == (True, True, True), shown
    done = rye("execute", "my/crash", cwd=project)
    assert (b"step 3" in done.stdout + done.stderr, b"crashes/" in done.stderr) == (False, True)


@pytest.mark.parametrize(
    ("body", "out", "err"),
    [
        ("""echo log >&2; echo '{"output": "2 words"}'""", "2 words\n", "log\n"),
        ("""echo '{"a": [1], "b": "x"}'""", '{"a": [1], "b": "x"}\n', ""),
        ("""echo log >&2; echo '{"error": "bad thing"}'; exit 3""", "", "log\nrye: bad thing\n"),
        # No answer in JSON: all of it, byte for byte.
        ("""printf '{"a": 1}\\n{"b": 2}\\n'""", '{"a": 1}\n{"b": 2}\n', ""),
        ("""printf '  {no json\\n'; exit 4""", "  {no json\n", "rye: The command ended with exit code 4.\n"),
        ("echo text; echo more >&2", "text\n", "more\n"),
    ],
)
def test_a_script_is_answered_for_with_its_text_not_with_its_json(project, user_space, body, out, err):
    put_script(project, "my/say", ".sh", "rye/core/runtimes/bash_script_runtime", body, tool_type="bash", permissions=["run"])
    done = rye("my/say", cwd=project)
    shown = done.stderr.decode()
    assert (done.stdout.decode(), "".join(line for line in shown.splitlines(True) if "warning" not in line)) == (out, err)
    at_terminal = typed("my/say", cwd=project)[1]
    assert sorted(at_terminal.splitlines()) == sorted(f"{out}{err}".splitlines())

"""`rye execute`: exit codes, values, what stands on standard output."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import unicodedata

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


# --- colours and widths: at a terminal, never in a pipe unless asked for ---

ESCAPE = re.compile(r"\x1b\[\d*m")
COLOURS = {"TERM": "xterm", "NO_COLOR": "", "FORCE_COLOR": ""}


@pytest.mark.parametrize(
    ("words", "env", "at_a_terminal", "in_a_pipe"),
    [
        ([], {}, True, False),
        ([], {"NO_COLOR": "1"}, False, False),
        ([], {"TERM": "dumb"}, False, False),
        ([], {"FORCE_COLOR": "1"}, True, True),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        (["--color", "never"], {}, False, False),
        (["--color", "auto"], {}, True, False),
        (["--color=always"], {"NO_COLOR": "1", "TERM": "dumb"}, True, True),
    ],
)
def test_colours_are_for_terminals_and_for_whom_they_are_asked(here, words, env, at_a_terminal, in_a_pipe):
    code, shown = typed("read", "a.txt", *words, cwd=here, env={**COLOURS, **env})
    assert (code, bool(ESCAPE.search(shown))) == (0, at_a_terminal), shown
    for line in (["read", "a.txt", *words], [*words, "read", "a.txt"], ["tools", *words]):
        done = rye(*line, cwd=here, env={**COLOURS, **env})
        assert (done.returncode, bool(ESCAPE.search(done.stdout.decode()))) == (0, in_a_pipe)
    assert b"\x1b" not in rye("read", "a.txt", "--json", *words, cwd=here, env=env).stdout


def test_colours_change_nothing_but_colours_and_lines_of_a_file_are_no_diff(here):
    (here / "a.txt").write_text("- a\n+ b\n--- c\nx\n")
    plain = rye("read", "a.txt", "line_ids=none", cwd=here).stdout.decode()
    assert rye("read", "a.txt", "line_ids=none", "--color", "always", cwd=here).stdout.decode() == plain
    change = 'changes=[{"find": "--- c\\n", "replace": ""}]'
    plain, coloured = (
        rye("edit_lines", "a.txt", change, "--dry-run", "--color", how, cwd=here).stdout.decode() for how in ("never", "always")
    )
    assert ESCAPE.sub("", coloured) == plain
    assert "\x1b[36m@@ " in coloured
    # A line that looks like the head of a file is one that was removed.
    assert "\x1b[31m---- c\x1b[0m\n x\n" in coloured


def test_a_table_is_cut_to_the_terminal_and_whole_in_a_pipe(here):
    put_tool(here, "my/tool", more=f'__tool_description__ = "{"漢字 " * 9 + "word " * 30}"')
    assert "word " * 29 in rye("tools", "my", cwd=here).stdout.decode()
    # The terminal's own width counts where no variable says one.
    for env, own, width in (({"COLUMNS": "80"}, 73, 80), ({"COLUMNS": ""}, 73, 73)):
        code, shown = typed("tools", "my", cwd=here, env={"PYTHONUTF8": "1", **env}, columns=own)
        (line,) = [one for one in shown.splitlines() if "my/tool" in one]
        assert (code, line[-1]) == (0, "…")
        cells = sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in line)
        assert width - 2 <= cells <= width, line
    # `rye mcp` waits for a client's messages; without a word a person would wait, too.
    said = typed("mcp", cwd=here, until=rb"rye mcp install --client")[1]
    assert str(here) in said

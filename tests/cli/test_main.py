"""The command itself: verbs, help, streams, and that no command line ends in a traceback."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest

from rye.cli.verbs import mcp
from support.harness import environment
from support.in_process import rye


def words_of(line):
    """The words of a line, where no shell is needed to read it; else None."""
    if re.search(r"[<>|;$]", line) or not line.startswith("RYE"):
        return None
    return shlex.split(line)[1:]


def answer(line, cwd, **env):
    """Run a line in which RYE stands for the command: in this process where it needs no shell."""
    words = words_of(line)
    return shell(line, cwd, **env) if words is None else rye(*words, cwd=cwd, env=env)


def shell(line, cwd, **env):
    """Run a line in which RYE stands for the command by bash, in processes."""
    command = f'RYE() {{ {shlex.quote(sys.executable)} -m rye "$@"; }}; {line}'
    env = environment(PYTHONPATH=os.pathsep.join(filter(None, sys.path)), **env)
    return subprocess.run(["bash", "-c", command], cwd=cwd, env=env, capture_output=True, check=False, timeout=60)


ROOT = Path(__file__).parents[2]
READ = "RYE execute rye/file-system/read"
GONE = "mkdir gone; cd gone; rmdir ../gone; RYE"
BAD = [
    *[
        f"RYE {words}"
        for words in ("''", "-x", "$'\\xff'", "execute ''", "tools 2>&- >&-", "execute $(printf 'a/%.0s' {1..5000})a")
    ],
    *[f"RYE execute x --params {value}" for value in ("- </dev/null", "- <&-", "@/")],
    *[f"RYE execute x --project {folder}" for folder in ("$'\\xff'", "/proc")],
    *[f"{READ} $'\\xff=1'", f"{READ} file_path=/dev/zero", f"{READ} file_path=$(printf 'a%.0s' {{1..5000}})"],
    *[f"{READ} file_path=a.txt >/dev/full", f"{READ} file_path=a.txt >&-"],
    *["PYTHONIOENCODING=ascii RYE --help", "LC_ALL=C PYTHONUTF8=0 RYE execute ☃"],
]


@pytest.mark.parametrize("line", BAD)
def test_no_command_line_ends_in_a_traceback(project, line):
    (project / "a.txt").write_bytes(b"x\n")
    done = answer(line, project)
    assert [word for word in (b"Traceback", b"Exception ignored") if word in done.stderr] == [], done.stderr.decode()
    assert done.returncode in (0, 1, 2, 3, 141), done


def test_in_a_folder_that_was_removed_the_project_is_to_be_named(project):
    (project / "a.txt").write_bytes(b"x\n")
    for words in ("read a.txt", "doctor", "search read", "tools", "execute x", "verify"):
        assert shell(f"{GONE} {words}", project).stderr.startswith(b"rye: The current folder was removed"), words
    for words in ("read a.txt", "blame a.txt", "bash pwd"):
        assert shell(f"{GONE} {words} --project $P", project, P=str(project)).returncode == 0, words


@pytest.mark.parametrize("line", ["RYE --help", "RYE --version", "RYE tools --help", "RYE tools", "RYE completion bash"])
@pytest.mark.parametrize(("where", "code"), [(">/dev/full", 1), ("| true; exit ${PIPESTATUS[0]}", 141)])
def test_an_answer_that_cannot_be_printed_is_an_error_though_python_keeps_it_in_a_buffer(project, line, where, code):
    done = shell(f"{line} {where}", project, PYTHONUNBUFFERED="")
    assert b"Exception ignored" not in done.stderr
    assert done.returncode == code, done
    if where == ">/dev/full" and line != "RYE tools":
        assert b"cannot be printed: No space left on device" in done.stderr


def test_what_a_tool_did_stands_though_its_answer_cannot_be_printed(project):
    done = shell("RYE execute rye/file-system/write file_path=b.txt content=new >/dev/full", project, PYTHONUNBUFFERED="")
    assert (done.returncode, (project / "b.txt").read_bytes()) == (1, b"new")
    assert b"What the command did, if anything, remains done." in done.stderr


def test_a_users_space_is_never_looked_for_in_the_folder_one_stands_in(project):
    for line in ("RYE tools", "RYE execute rye/file-system/ls", "RYE trust list"):
        done = answer(line, project, USER_SPACE="relative/path")
        assert (done.returncode, b"USER_SPACE is 'relative/path', no absolute path." in done.stderr) == (2, True), line
    assert not (project / "relative").exists()


def test_a_job_for_which_there_are_too_few_descriptors_has_not_timed_out(project):
    told = [shell(f"ulimit -n {most}; RYE bash true background=true", project).stderr for most in (20, 24, 28, 32, 36)]
    assert {b"timed out" in one for one in told if one} == {False}, told


def test_from_an_archive_it_does_not_run_and_takes_nothing_that_lies_beside(project, tmp_path):
    zipapp.create_archive(ROOT / "runtime", tmp_path / "rye.pyz", main="rye.cli.main:command")
    shutil.copytree(ROOT / ".ai/tools", tmp_path / ".ai/tools")
    done = python(project, tmp_path / "rye.pyz", "tools")
    assert (done.returncode, b"does not run from an archive" in done.stderr) == (2, True), done


HOSTILE = ("json", "argparse", "yaml", "hashlib", "jsonschema_rs", "cryptography", "sitecustomize", "usercustomize")


def python(project, *words, path=()):
    env = environment(PYTHONPATH=os.pathsep.join([*path, *filter(None, sys.path)]))
    done = subprocess.run([sys.executable, *words], cwd=project, env=env, capture_output=True, check=False)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


def test_modules_of_the_folder_it_is_called_in_are_never_imported(project, monkeypatch):
    for name in HOSTILE:
        (project / f"{name}.py").write_text(f"open('canary-{name}', 'w').close()\n")
    (project / "a.txt").write_bytes(b"x\n")
    for words in (("--help",), ("tools",), ("execute", "rye/file-system/read", "file_path=a.txt"), ("verify", "--all")):
        python(project, "-m", "rye", *words)
    assert list(project.glob("canary*")) == []
    # Control: Python itself takes them from there.
    python(project, "-c", "import json")
    assert (project / "canary-json").exists()
    # Nor is one that is called `rye`, where a client starts the server by the interpreter.
    (project / "rye.py").write_text("open('canary-rye', 'w').close()\n")
    monkeypatch.setattr(os, "access", lambda *_: False)
    for words, found in ((mcp.started_by()[1:], False), (["-m", "rye"], True)):
        assert (python(project, *words, "--help").returncode, (project / "canary-rye").exists()) == (0, found)


def test_a_folder_named_on_pythons_path_as_empty_is_not_used_for_what_is_loaded_later(project):
    """An empty entry of PYTHONPATH stands for the current folder: what loads before `main` cannot be kept from it."""
    (project / "yaml.py").write_text("open('canary', 'w').close()\n")
    (project / "a.txt").write_bytes(b"x\n")
    words = ("-m", "rye", "execute", "rye/file-system/read", "file_path=a.txt")
    assert python(project, *words, path=[""]).returncode == 0
    assert not (project / "canary").exists()
    python(project, "-c", "import yaml", path=[""])
    assert (project / "canary").exists(), "control"


# --- the process ends at once, and yet nothing that waits for its end is lost ---


def ended(body: str) -> subprocess.CompletedProcess:
    """Run a command whose `main` has this body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    code = f"import atexit, os, sys, threading, time\nfrom rye.cli.process import run\ndef main():\n{lines}\nrun(main)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False)


@pytest.mark.parametrize(
    ("body", "code", "out", "err"),
    [
        ("print('x' * 200_000)\nprint('oh', end='', file=sys.stderr)\nreturn 3", 3, "x" * 200_000 + "\n", "oh"),
        ("atexit.register(print, 'at the end')\nreturn 0", 0, "at the end\n", ""),
        ("threading.Thread(target=lambda: (time.sleep(0.3), print('late'))).start()\nreturn 0", 0, "late\n", ""),
        # A daemon thread is not waited for.
        ("threading.Thread(target=time.sleep, args=(300,), daemon=True).start()\nreturn 4", 4, "", ""),
        ("sys.exit(5)", 5, "", ""),
    ],
    ids=["exit code and output", "what is registered", "threads", "daemon threads", "exit"],
)
def test_nothing_is_lost_at_the_end(body, code, out, err):
    done = ended(body)
    assert (done.returncode, done.stdout, done.stderr) == (code, out, err)


def test_a_reader_that_went_away_is_no_traceback():
    code = "from rye.cli.rt.main import command; command()"
    words, pipe = [sys.executable, "-c", code, "--help"], subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=environment()) as process:
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()
    assert process.returncode in (0, 141)


@pytest.mark.parametrize("as_inherited", ["signal(SIGCHLD, SIG_IGN)", "pthread_sigmask(SIG_BLOCK, valid_signals())"])
def test_what_a_parent_ignored_or_blocked_hinders_no_sandbox(project, as_inherited):
    code = f"import os, sys; from signal import *; {as_inherited}; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    words = [sys.executable, "-c", code, "-m", "rye", "bash", "echo hi"]
    plain, done = (
        subprocess.run(each, cwd=project, capture_output=True, text=True, env=environment(), check=False, timeout=20)
        for each in ([sys.executable, *words[3:]], words)
    )
    # A lesser sandbox than the plain call's would be named now: what there is at best was said by that one.
    assert (plain.returncode, done.returncode, done.stdout, done.stderr) == (0, 0, "hi\n", "")

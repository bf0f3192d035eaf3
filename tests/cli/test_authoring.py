"""`rye new` and `rye lint` as processes."""

import json

from support.in_process import rye
from support.signed_tools import put, put_tool


def test_new_says_what_to_do_next_and_lint_finds_nothing(project):
    (project / ".ai").mkdir()
    assert rye("lint", cwd=project).returncode == 2, "nothing to check"
    done = rye("new", "tool", "my/text/word_count", cwd=project)
    assert done.returncode == 0, done.stderr
    out = done.stdout.decode()
    assert out.startswith(".ai/tools/my/text/word_count.py\ntests/test_my_text_word_count.py\n")
    commands = ("edit ", "rye lint my/text/word_count", "rye sign my/text/word_count", "rye my/text/word_count")
    assert [command for command in commands if command not in out] == []
    done = rye("lint", cwd=project)
    assert (done.returncode, done.stdout, b"No findings" in done.stderr) == (0, b"", True)
    again = rye("new", "tool", "my/text/word_count", cwd=project)
    assert (again.returncode, again.stdout) == (1, b"")
    assert json.loads(rye("new", "tool", "my/other", "--json", cwd=project).stdout)["item_id"] == "my/other"


def test_new_makes_nothing_in_a_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    done = rye("new", "tool", "my/words", cwd=tmp_path)
    assert (done.returncode, b"is no project's folder" in done.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []
    # Control: it does where the home is named.
    assert rye("new", "tool", "my/words", "--project", str(tmp_path), cwd=tmp_path).returncode == 0


def test_lint_prints_one_line_for_each_finding(project):
    put(project, "tools/my/bad.py", b"import numpy\n")
    done = rye("lint", "my/bad", cwd=project)
    assert done.returncode == 1
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith(".ai/tools/my/bad.py:1: ")
    assert {line.split(" ")[1] for line in lines} >= {"import_not_allowed", "missing_docstring", "missing_schema"}
    rows = json.loads(rye("lint", ".ai/tools", "--json", cwd=project).stdout)
    assert [f"{row['path']}:{row['line']}: {row['code']} {row['message']}" for row in rows] == lines
    assert {row["item_id"] for row in rows} == {"my/bad"}


def test_lint_runs_nothing_and_shows_no_hidden_text(project, tmp_path):
    canary = tmp_path / "canary"
    text = f'open({str(canary)!r}, "w")\nimport a\u202eb\n__tool_description__ = "\\x1b[2J"\n'
    put(project, "tools/my/bad.py", text.encode())
    done = rye("lint", cwd=project, env={"PYTHONIOENCODING": "utf-8"})
    assert (done.returncode, canary.exists()) == (1, False)
    assert ("\u202e" in done.stdout.decode(), b"\x1b" in done.stdout) == (False, False)


def test_the_bundle_passes_and_all_spaces_are_asked(project, user_space):
    put_tool(user_space, "my/tool")
    rows = json.loads(rye("lint", "--all", "--json", cwd=project).stdout)
    assert {row["item_id"] for row in rows} == {"my/tool"}
    assert rye("lint", "rye/file-system/read", cwd=project).returncode == 0

"""`rye log`, `rye diff`, `rye blame`."""

import json
import os
import subprocess
import sys

import pytest

from rye.fs import names
from support.calling import call
from support.harness import RUNTIME
from support.in_process import rye as shell
from support.shell_calls import bash, set_sandbox
from support.terminal import typed


@pytest.fixture
def changed(project, monkeypatch):
    (project / "a.txt").write_text("".join(f"{n}\n" for n in range(9)))
    bash(project, "true")
    bash(project, "sed -i 's/^4$/four/' a.txt; echo new > b.txt")
    call("write", project, file_path="c.txt", content="c\n")
    bash(project, "rm b.txt; echo 9 >> a.txt")
    monkeypatch.chdir(project)
    return project


def run(*words, code=0, stream="stdout"):
    done = shell(*words, cwd=".")
    assert done.returncode == code, done
    return getattr(done, stream).decode()


def said(*words):
    return json.loads(run(*words, "--json"))


def test_the_log_is_a_table_and_json(changed):
    rows = said("log")
    assert [(row["tool"], row["files"], row["added"], row["removed"]) for row in rows] == [
        ("rye/bash/bash", ["a.txt", "b.txt"], 1, 1),
        ("rye/file-system/write", ["c.txt"], 1, 0),
        ("rye/bash/bash", ["a.txt", "b.txt"], 2, 1),
    ]
    table = run("log", "--limit", "1")
    assert (rows[0]["id"] in table, "2 older changes; --limit 3 shows all." in table) == (True, True)
    assert [row["id"] for row in said("log", "c.txt")] == [rows[1]["id"]]
    assert "  write  c.txt  " in run("log", "c.txt")
    assert said("log", "--limit", "9" * 20) == rows
    assert said("log", "--limit", "-1") == []
    assert [row["id"] for row in said("log", "--since", rows[1]["id"])] == [rows[0]["id"]]


def test_lines_that_look_like_headings_of_a_diff_are_counted(project, monkeypatch):
    monkeypatch.chdir(project)
    for verb in ("log", "diff"):
        assert "Nothing is recorded here yet" in run(verb, stream="stderr")
    call("write", project, file_path="f.txt", content="a\n-- b/x\n")
    call("write", project, file_path="f.txt", content="a\n++ x\n++ b/f\n")
    bash(project, "printf '%s\\n' a '-- a/f' '++ b/f' > f.txt; printf '%s\\n' '-- y' > g.txt")
    call("write", project, file_path="l.txt", content="é\n")
    call("write", project, file_path="l.txt", content="-- é\n", encoding="latin-1")
    counts = [(row["added"], row["removed"]) for row in said("log")]
    assert counts == [(1, 1), (1, 0), (2, 1), (2, 1), (2, 0)]


@pytest.mark.parametrize("verb", ["log", "log --json", "diff", "blame a.py"])
def test_from_inside_a_command_the_record_is_not_said_to_be_empty(project, user_space, verb):
    set_sandbox(user_space, "auto")
    call("write", project, file_path="a.py", content="x = 1\n")
    command, env = f"{sys.executable} -m rye {verb}", {"PYTHONPATH": str(RUNTIME)}
    inside = bash(project, command, env=env)
    if "home_hidden" in inside["sandbox"]["holds"]:
        assert inside["exit_code"] == 1, inside
        assert "cannot be seen from inside a command" in inside["stderr"]
    # Control: without a sandbox it is seen.
    set_sandbox(user_space, "off")
    inside = bash(project, command, env=env)
    assert (inside["exit_code"], "a.py" in inside["output"] or "x = 1" in inside["output"]) == (0, True), inside


def test_a_diff_is_a_patch_that_git_takes_back(changed):
    rows = said("log")
    before = (changed / "a.txt").read_bytes()
    patch = run("diff", rows[-1]["id"], "a.txt")
    assert ("-4\n+four\n" in patch, "b.txt" in patch) == (True, False), "of one change, and of one file"
    assert run("diff", "nothing", code=2) == ""
    patch = run("diff", f"{rows[-1]['id']}..")
    assert "deleted file" in patch
    subprocess.run(["git", "apply", "-R"], input=patch.encode(), cwd=changed, check=True)
    assert (changed / "a.txt").read_text().endswith("8\n")
    assert (changed / "b.txt").read_text() == "new\n"
    assert not (changed / "c.txt").exists()
    subprocess.run(["git", "apply"], input=patch.encode(), cwd=changed, check=True)
    assert (changed / "a.txt").read_bytes() == before


def test_a_diff_of_thousands_of_files_has_all_of_them(changed, tmp_path):
    bash(changed, "mkdir many; for n in $(seq 2100); do echo $n > many/$n; done")
    made = run("diff")
    assert made.count("diff --git ") == 2100
    (tmp_path / "p").write_text(made)
    subprocess.run(["git", "apply", "-R", tmp_path / "p"], cwd=changed, check=True)
    assert not (changed / "many").exists()


def test_blame_names_the_change_of_each_line(changed):
    rows = said("log")
    lines = said("blame", "a.txt")
    assert [one["change"] for one in lines] == [None] * 4 + [rows[-1]["id"]] + [None] * 4 + [rows[0]["id"]]
    assert "four" in run("blame", "a.txt").splitlines()[4]
    assert "The path is empty." in run("blame", "", code=1, stream="stderr")
    # What others changed until now is shown.
    (changed / "a.txt").write_text("by hand\n")
    assert (said("log")[0]["tool"], said("blame", "a.txt")[0]["who"]) == ("changed by someone else", "someone else")


def test_an_agent_trace_has_the_ranges_of_named_agents(changed):
    trace = json.loads(run("blame", "a.txt", "c.txt", "--agent-trace"))
    assert trace["version"] == "0.1.0"
    assert [one["path"] for one in trace["files"]] == ["a.txt", "c.txt"]
    covered = [span for one in trace["files"][0]["conversations"] for span in one["ranges"]]
    assert sum(span["end_line"] - span["start_line"] + 1 for span in covered) == 10
    assert run("blame", "a.txt", "c.txt", code=2) == ""


def test_what_is_new_since_a_person_last_looked(changed):
    # A list that is cut is not taken for seen.
    assert [len(said("log", "--new", *words)) for words in (("--limit", "1"), (), ())] == [1, 3, 0]
    assert run("diff", "--new") == ""
    bash(changed, "echo later >> a.txt")
    assert "+later" in run("diff", "--new")
    (row,) = said("log", "--new")
    assert row["files"] == ["a.txt"]
    assert said("log", "--new") == []
    assert len(said("log")) == 4


def test_at_a_terminal_a_diff_has_its_lines_and_colours_and_cannot_steer_it(changed):
    (changed / "a.txt").write_bytes(b"\x1b[31mred\x1b[0m \xe2\x80\xae\n")
    bash(changed, "true")
    code, screen = typed("diff", cwd=changed, env={"TERM": "xterm"})
    assert code == 0, screen
    lines = ("\x1b[36m@@ -1,10 +1 @@\x1b[0m", "\x1b[32m+\\x1b[31mred\\x1b[0m \\u202e\x1b[0m")
    assert {*lines} <= {*screen.split("\n")}, screen
    code, screen = typed("diff", cwd=changed, env={"TERM": "xterm", "NO_COLOR": "1"})
    assert ("\x1b" in screen, "-four" in screen.split("\n")) == (False, True)
    # A long command is cut in the log.
    bash(changed, f"echo {'x' * 300} > a.txt")
    for columns in (160, 80):
        code, screen = typed("log", cwd=changed, env={"COLUMNS": str(columns)})
        first = screen.split("\n")[1]
        assert (code, "…" in first, len(first) <= max(columns, 100)) == (0, True, True), screen


@pytest.mark.parametrize("name", ["b\udcff.txt", "new\nline.txt", "ü b.txt"])
def test_a_file_of_any_name_is_one_file_for_commands_and_edits(project, monkeypatch, name):
    shown = names.show(os.fsencode(name))
    (project / name).write_bytes(b"one\ntwo\n")
    monkeypatch.chdir(project)
    bash(project, "true")
    bash(project, 'for f in *.txt; do echo three >> "$f"; done')
    call("edit_lines", project, file_path=shown, changes=[{"find": "two", "replace": "TWO"}])
    bash(project, "true")
    rows = said("log")
    assert [row["files"] for row in rows] == [[shown], [shown]], "nothing is taken for someone else's"
    for word in (name, shown):
        assert [row["id"] for row in said("log", word)] == [row["id"] for row in rows]
        assert [one["change"] for one in said("blame", word)] == [None, rows[0]["id"], rows[1]["id"]]
        assert "+TWO" in said("diff", "..", word)["patch"]
    assert call("undo", project, entry_id=rows[1]["id"], file_path=shown)["success"]
    assert (project / name).read_bytes() == b"one\nTWO\n"


def test_a_file_that_was_a_link_in_between_has_a_history(changed):
    for command in ("rm c.txt; ln -s a.txt c.txt", "rm c.txt; echo new > c.txt"):
        bash(changed, command)
    (row, *_) = said("log", "c.txt")
    assert [one["change"] for one in said("blame", "c.txt")] == [row["id"]]


def test_two_dashes_end_the_options(changed):
    call("write", changed, file_path="-dash", content="x\n")
    (row,) = json.loads(run("log", "--json", "--", "-dash"))
    assert row["files"] == ["-dash"]
    assert run("blame", "--", "-dash").endswith("1| x\n")
    for words in (["--", row["id"], "-dash"], [row["id"], "--", "-dash"]):
        assert "+x" in run("diff", *words)
    assert "rye log has no option -dash" in run("log", "-dash", code=2, stream="stderr")

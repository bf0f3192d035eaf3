"""`rt` as it is typed: formats, exit codes, names, standard input, JSON, completion, terminals."""

import json
import os
import re
import select
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import rye
from rye.cli.rt import main as rt_main
from rye.cli.rt import printing
from support import in_process, signed_tools, terminal
from support.calling import call
from support.harness import environment, put_program
from support.in_process import run
from support.mcp_peer import environment as served
from support.mcp_peer import peer


def rt(*words, cwd, stdin=b"", **env):
    """Run in this process, as `python -m rye.cli.rt.main` would."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("RAGIX_PROFILE", "RAGIX_ENABLE_SWE", "RAGIX_AUTO_DIFF", "RAGIX_VIEW_STATE"):
            patch.delenv(name, raising=False)
        return run(rt_main.main, words, cwd=cwd, stdin=stdin, env=env)


def process(*words, cwd, stdin=b""):
    return signed_tools.rye(*words, cwd=cwd, stdin=stdin, module="rye.cli.rt.main")


def started(words, project, *, check=True, **more):
    return subprocess.run(words, cwd=project, env=environment(), capture_output=True, check=check, **more)


def typed(*words, cwd, **env):
    """Run at a terminal; return the exit code and all that it showed."""
    base = {"TERM": "xterm", "LINES": "24", "COLUMNS": "80"}
    return terminal.typed(*words, cwd=cwd, env={**base, **env}, module="rye.cli.rt.main")


@pytest.fixture
def project(project):
    (project / ".git").mkdir()
    (project / "src").mkdir()
    (project / "src/app.py").write_text("def total(prices):\n    return sum(prices)\n")
    (project / "long.txt").write_text("".join(f"line {n}\n" for n in range(1, 251)))
    return project


def test_open_prints_the_header_and_numbered_lines(project):
    done = rt("open", "src/app.py", cwd=project)
    assert done.stdout == b"--- src/app.py (lines 1-2) ---\n1: def total(prices):\n2:     return sum(prices)\n"
    assert (done.returncode, done.stderr) == (0, b"")
    assert rt("open", "long.txt:10-11", cwd=project).stdout == b"--- long.txt (lines 10-11) ---\n10: line 10\n11: line 11\n"
    around = rt("open", "long.txt:120", cwd=project)
    assert around.stdout.startswith(b"--- long.txt (lines 70-169) ---\n70: line 70\n")
    assert around.stderr == b"[lines 70-169 of 250; go on: rt scroll long.txt +]\n"
    lines = rt("open", "long.txt:1-240", cwd=project).stdout.decode().split("\n")
    assert lines[-2] == "[truncated: 200 of 250 lines; 50 more omitted. Call `rt open long.txt:201` to see more.]"
    # As compilers print a place, with a column.
    for place in ("long.txt:120:7", "long.txt:120:7:"):
        assert rt("open", place, cwd=project).stdout == around.stdout
    rt("open", "long.txt", cwd=project)
    assert rt("scroll", "long.txt", "+", cwd=project).stdout.startswith(b"--- long.txt (lines 99-198) ---\n")
    # Without a memory of windows the next one is named by its lines.
    done = rt("open", "long.txt", cwd=project, RAGIX_VIEW_STATE="off")
    assert done.stderr == b"[lines 1-100 of 250; go on: rt open long.txt:101-200]\n"


def test_searches_print_their_formats_and_say_when_nothing_was_found(project):
    second = b"src/app.py:2:     return sum(prices)\n"
    assert rt("find", "app", cwd=project).stdout == b"src/app.py\n"
    assert rt("grep", "total", "src", cwd=project).stdout == b"src/app.py:1: def total(prices):\n"
    assert rt("grep", "sum(p", "-F", cwd=project).stdout == rt("grep", '"sum(p"', cwd=project).stdout == second
    assert rt("grep-file", "sum", "src/app.py", cwd=project).stdout == b"2 :     return sum(prices)\n"
    done = rt("grep", "absent", cwd=project)
    assert (done.returncode, done.stdout, b"--hidden" in done.stderr) == (1, b"", True)
    lines = rt("grep", "-F", "-i", "LINE", "--include", "*.txt", "--limit", "2", cwd=project).stdout.decode().split("\n")
    again = re.search("Call `(.*)` to see more", lines[-2])[1]
    assert lines[-2].startswith("[truncated: 2 of 250 matches; 248 more omitted.")
    assert rt(*shlex.split(again)[1:], cwd=project).stdout.startswith(b"long.txt:3: line 3\nlong.txt:4: line 4\n")


def test_a_list_of_edits_goes_on_in_words_of_the_command(project):
    for _ in range(2):
        rt("insert", "src/app.py", "1", cwd=project, stdin=b"# more\n")
    lines = rt("undo", "--list", "--limit", "1", cwd=project).stdout.decode().split("\n")
    assert lines[-2] == "[truncated: 1 of 2 changes; 1 more omitted. Call `rt undo --list --offset 2` to see more.]"
    assert not any(line.startswith("[tool_result") for line in lines)
    assert b"Call `rt undo --list` to see them" in rt("undo", "0" * 15, cwd=project).stderr


def test_searches_can_be_chained_and_a_list_that_was_cut_is_said_to_be(project):
    names = rt("find", "*.py", cwd=project).stdout
    assert rt("grep", "def", "-", cwd=project, stdin=names).stdout == b"src/app.py:1: def total(prices):\n"
    assert rt("grep", "line 1", "-", cwd=project, stdin=b"src/app.py\nlong.txt\n").returncode == 0
    assert rt("grep", "absent", "-", cwd=project, stdin=names).returncode == 1
    for number in range(230):
        (project / f"src/m{number}.py").write_text(f"name_{number} = 1\n")
    names = rt("find", "*.py", cwd=project).stdout
    assert b"[truncated: " in names
    done = rt("grep", "name_", "-", "--limit", "1", cwd=project, stdin=names)
    assert (done.returncode, done.stdout.count(b"= 1\n") >= 199, b"no matches" in done.stderr) == (0, True, False)
    assert done.stderr.startswith(b"rt: not all names came: [truncated: 200 of 231 files")
    done = rt("grep", "absent", "-", cwd=project, stdin=b"src/m1.py\nsrc/m2.py\n")
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    done = rt("grep", "name_", "-", cwd=project, stdin=b"src/m1.py\nsrc/none.py\nsrc/m2.py\n")
    assert (done.returncode, done.stdout.count(b"\n"), b"none.py" in done.stderr) == (1, 2, True)


def test_searches_take_several_roots_and_the_options_of_grep(project):
    (project / "tests").mkdir()
    (project / "tests/test_app.py").write_text("assert total([1]) == 1\nassert total([]) == 0\n")
    hits = rt("grep", "-rn", "total", "src", "tests", cwd=project).stdout.decode().splitlines()
    assert [hit.split(": ")[0] for hit in hits] == ["src/app.py:1", "tests/test_app.py:1", "tests/test_app.py:2"]
    assert rt("find", "app", "src", "tests", cwd=project).stdout == b"src/app.py\ntests/test_app.py\n"
    assert rt("grep", "-l", "total", cwd=project).stdout == b"src/app.py\ntests/test_app.py\n"
    (project / "many.txt").write_text("total\n" * 1_200)
    (project / "zlast.txt").write_text("total\n")
    assert rt("grep", "-l", "total", cwd=project).stdout == b"many.txt\nsrc/app.py\ntests/test_app.py\nzlast.txt\n"
    assert rt("grep", "-l", "absent", cwd=project).returncode == 1


def test_a_new_file_is_made_of_standard_input_and_an_old_one_is_left_alone(project):
    done = rt("create", "new/deep.py", cwd=project / "src", stdin="x = 'é'\n".encode())
    assert (done.returncode, done.stdout) == (0, b"Created src/new/deep.py (9 bytes)\n")
    assert (project / "src/new/deep.py").read_text() == "x = 'é'\n"
    done = rt("create", "src/app.py", cwd=project, stdin=b"gone\n")
    assert (done.returncode, b"rt edit" in done.stderr) == (2, True)
    assert "def total" in (project / "src/app.py").read_text()
    assert rt("create", "other.py", cwd=project, stdin=b"x\n", RAGIX_PROFILE="safe-read-only").returncode == 1
    assert rt("create", "other.py", cwd=project, stdin=b"x\n", RAGIX_ENABLE_SWE="0").returncode != 0
    assert not (project / "other.py").exists()
    assert rt("undo", cwd=project).returncode == 0
    assert not (project / "src/new/deep.py").exists()


def test_undo_takes_a_file_from_the_current_folder_or_an_edits_id(project):
    rt("insert", "src/app.py", "1", cwd=project, stdin=b"# one\n")
    rt("insert", "long.txt", "1", cwd=project, stdin=b"# two\n")
    rt("create", "src/made.py", cwd=project, stdin=b"x\n")
    done = rt("undo", "app.py", cwd=project / "src")
    assert (done.returncode, done.stdout.split(b"\n")[0]) == (0, "✓ Undone src/app.py".encode())
    assert not (project / "src/app.py").read_text().startswith("# one")
    listed = json.loads(rt("undo", "--list", "long.txt", "--json", cwd=project).stdout)["data"]
    assert [entry["file_path"] for entry in listed["entries"]] == ["long.txt"]
    assert rt("undo", "made.py", cwd=project / "src").returncode == 0
    assert not (project / "src/made.py").exists()
    # The file is gone, and its name still finds the change.
    assert rt("undo", listed["entries"][0]["entry_id"], cwd=project).returncode == 0
    assert not (project / "long.txt").read_text().startswith("# two")
    done = rt("undo", "src/app.py", cwd=project)
    assert (done.returncode, b"src/app.py" in done.stderr) == (1, True)
    # The seeds' names for two verbs.
    for name, words, shown in (("rt-find", ["app"], b"src/app.py\n"), ("rt-grep", ["total", "src"], b"src/app.py:1: def")):
        assert started([Path(sys.executable).with_name(name), *words], project).stdout.startswith(shown)


def test_edits_take_their_text_from_standard_input(project):
    done = rt("edit", "src/app.py", "2", "2", cwd=project, stdin=b"    return 0\n")
    edited = "✓ Edited src/app.py:2-2\n1 line removed, 1 added\n1: def total(prices):\n2:     return 0\n"
    assert done.stdout.decode() == edited
    rt("insert", "src/app.py", "3", cwd=project, stdin="# ende →\n".encode())
    assert (project / "src/app.py").read_text() == "def total(prices):\n    return 0\n# ende →\n"
    assert rt("undo", cwd=project).stdout.startswith("✓ Undone src/app.py\n".encode())
    rt("edit", "src/app.py", "1", "1", "--delete", cwd=project)
    assert (project / "src/app.py").read_text() == "    return 0\n"
    shown = rt("insert", "src/app.py", "1", "--ids", "--show-diff", cwd=project, stdin=b"x\n").stdout.decode()
    assert "\n1: [LID:" in shown
    assert shown.endswith("\n+x\n     return 0\n")


def test_names_of_another_command_are_searched_as_the_seed_chains_them(project):
    (project / "gas.txt").write_text("line 4\n")
    search = [sys.executable, "-m", "rye.cli.rt.main", "grep", "line 4$"]
    for names, shown, said in ((b"gas.txt\n", b"gas.txt:1: line 4\n", b""), (b"", b"long.txt:4: line 4\n", b"no names came")):
        done = started(search, project, input=names)
        assert (shown in done.stdout, said in done.stderr) == (True, True), done
        assert (b"long.txt" in done.stdout) == (not names)
    # An end that stays open, as agents leave it, is not waited for; a slow command of the same pipeline is.
    with subprocess.Popen(search, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()) as held:
        assert select.select([held.stdout], [], [], 8)[0]
        assert b"long.txt:4: line 4" in held.stdout.read()
    line = f"(sleep 2; echo gas.txt) | {shlex.join(search)}"
    assert started(["/bin/sh", "-c", line], project).stdout == b"gas.txt:1: line 4\n"


FUNCTIONS = r"""
from rye.ragix_tools import *
print(open_window("long.txt", 3, 2), edit_range("long.txt", 3, 3, "THREE\n"), insert_at("long.txt", 1, "first\n"))
print(search_files("THREE"), find_files("long*"), flush=True)
edit_range("long.txt", 9_999, 9_999, "x\n")
"""


def test_the_functions_have_the_names_of_the_design_and_return_the_answers_text(project):
    done = started([sys.executable, "-c", FUNCTIONS], project, text=True, check=False)
    for part in ("3: line 3\n4: line 4", "✓ Edited long.txt:3-3", "1: first", "long.txt:4: THREE", " long.txt\n"):
        assert part in done.stdout, done
    assert ("RyeError" in done.stderr.splitlines()[-1], "out of range" in done.stderr) == (True, True)
    assert (project / "long.txt").read_text().startswith("first\nline 1\nline 2\nTHREE\nline 4\n")
    command = [sys.executable, "-m", "rye.ragix_tools", "edit_range", "long.txt", "1", "1"]
    assert started(command, project, input=b"by the module\n").stdout.startswith("✓ Edited long.txt:1-1".encode())


def test_an_edit_without_text_deletes_only_by_its_word(project):
    before = (project / "src/app.py").read_text()
    done = rt("edit", "src/app.py", "1", "1", cwd=project, stdin=b"")
    assert (done.returncode, b"use --delete" in done.stderr) == (2, True), done
    with Path(os.devnull).open("rb") as nothing:
        edit = [sys.executable, "-m", "rye.cli.rt.main", "edit", "src/app.py", "1", "1"]
        done = started(edit, project, stdin=nothing, check=False)
        assert (done.returncode, b"use --delete" in done.stderr) == (2, True), done
        assert (project / "src/app.py").read_text() == before
        started([*edit, "--delete"], project, stdin=nothing)
    assert (project / "src/app.py").read_text() == "    return sum(prices)\n"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("undo", {}),
        ("edit_lines", {"changes": [{"find": "line 1\n", "replace": "ONE\nmore\n"}]}),
        ("write", {"content": "ONE\ntwo\n"}),
        ("rye/swe/edit_file", {"old": "line 1\n", "new": "ONE\n"}),
    ],
)
def test_what_our_own_tools_changed_is_no_change_of_others(project, tool, given):
    rt("open", "long.txt:1-9", cwd=project)
    if tool == "undo":
        rt("edit", "long.txt", "1", "1", cwd=project, stdin=b"A\n")
    else:
        given = {"path" if "swe" in tool else "file_path": "long.txt", **given}
    assert call(tool, project, **given)["success"]
    assert rt("edit", "long.txt", "1", "1", cwd=project, stdin=b"B\n").returncode == 0
    # The control: a change by another program is one.
    (project / "long.txt").write_text("other\n" + (project / "long.txt").read_text().partition("\n")[2])
    done = rt("edit", "long.txt", "1", "1", cwd=project, stdin=b"C\n")
    assert (done.returncode, b"changed since it was shown" in done.stderr) == (1, True)


def test_malformed_words_change_nothing_and_say_what_is_right(project):
    before = (project / "src/app.py").read_bytes()
    for line, code, said in (
        ("edit src/app.py 2 1", 1, "To insert before line 2, use insert_at (rt insert)."),
        ("edit src/app.py 7 8", 1, "start_line 7 out of range (1..2)"),
        ("edit src/app.py x 8", 2, "START is a whole number, not 'x'"),
        ("edit src/app.py", 2, "usage: rt edit PATH START END"),
        ("edit src/ap.py 1 1", 1, "Did you mean src/app.py?"),
        ("insert src/app.py 9", 1, "line 9 out of range (1..3)"),
        ("insert ../x 1", 1, "Path outside project workspace"),
        ("open long.txt:900", 1, "line 900 out of range (1..250)"),
        ("grep (", 1, "regex"),
        ("opne x", 2, "Did you mean `rt open`?"),
        ("edit src/app.py -1 2", 1, "start_line -1 out of range (1..2)"),
        ("open src/app.py:5-", 1, "start 5 out of range (1..2)"),
        ("grep x --limit 0", 2, "limit: 0 is less than the minimum of 1"),
        ("find", 2, "usage: rt find PATTERN"),
        ("", 2, ""),
    ):
        done = rt(*line.split(), cwd=project, stdin=b"text\n")
        assert (done.returncode, said in done.stderr.decode()) == (code, True), (line, done)
    assert b"Give new_text" not in rt("insert", "src/app.py", "1", cwd=project).stderr
    done = rt("insert", "src/app.py", "1", cwd=project, stdin=b"\xff\n")
    assert (done.returncode, b"not UTF-8" in done.stderr) == (2, True)
    assert (project / "src/app.py").read_bytes() == before


def test_a_colon_in_a_name_the_file_that_exists_wins(project):
    (project / "long.txt:7").write_text("the other\n")
    assert rt("open", "long.txt:7", cwd=project).stdout == b"--- long.txt:7 (lines 1-1) ---\n1: the other\n"
    assert rt("open", "long.txt:7:1", cwd=project).stdout.startswith(b"--- long.txt:7 (lines 1-1) ---\n")
    assert rt("open", "long.txt", "--line", "7", cwd=project).stdout.startswith(b"--- long.txt (lines 1-56) ---\n")


def test_names_are_those_of_the_folder_one_is_in_or_as_answers_show_them(project):
    (project / "src/\udcff\n.py").write_text("odd\n")
    (project / "src/a\\x41.py").write_text("literal\n")
    named = {"app.py": b"src/app.py", "src/app.py": b"src/app.py", "../long.txt": b"long.txt"}
    for word, said in {**named, "a\\x41.py": b"src/a\\\\x41.py"}.items():
        assert rt("open", word, cwd=project / "src").stdout.startswith(b"--- " + said + b" (lines"), word
    name = rt("find", "*ff*", cwd=project).stdout or rt("find", "*.py", cwd=project).stdout.split(b"\n")[-2]
    assert rt("open", os.fsdecode(name.strip()), cwd=project).returncode == 0
    assert b"odd" in rt("open", os.fsdecode(b"src/\xff\n.py"), cwd=project).stdout
    assert rt("grep", "def", cwd=project / "src").stdout == b"src/app.py:1: def total(prices):\n"


def test_the_switches_hold_at_the_door(project):
    done = rt("edit", "src/app.py", "1", "1", cwd=project, stdin=b"x\n", RAGIX_PROFILE="safe-read-only")
    assert (done.returncode, b"-def total(prices):\n+x\n" in done.stdout) == (1, True)
    assert b"safe-read-only lets no tool change a file here" in done.stderr
    assert (project / "src/app.py").read_text().startswith("def total")
    files = ("open src/app.py", "scroll src/app.py", "edit src/app.py 1 1", "insert src/app.py 1")
    for line in (*files, "find x", "grep x", "grep-file x long.txt", "undo"):
        done = rt(*line.split(), cwd=project, stdin=b"x\n", RAGIX_ENABLE_SWE="0")
        assert (done.returncode, done.stdout, b"RAGIX_ENABLE_SWE=0" in done.stderr) == (1, b"", True)
    for switch, offered in (("1", True), ("0", False)):
        with pytest.MonkeyPatch.context() as patch, peer(project, env=served(RAGIX_ENABLE_SWE=switch)) as server:
            patch.setenv("RAGIX_ENABLE_SWE", switch)
            assert ("edit_range" in rye.toolset(project).names) == offered
            assert (in_process.rye("prompt", "swe", cwd=project).returncode == 0) == offered
            assert ("swe" in [row["name"] for row in server.ask("prompts/list")["result"]["prompts"]]) == offered
            answer = server.ask("prompts/get", {"name": "swe"})
            assert ("result" in answer) == offered or "RAGIX_ENABLE_SWE" in answer["error"]["message"]
    assert b"+x" in rt("insert", "src/app.py", "1", cwd=project, stdin=b"x\n", RAGIX_AUTO_DIFF="1").stdout


def test_piped_output_is_plain_and_goes_through_no_pager(project):
    done = rt("open", "long.txt", cwd=project, TERM="xterm", PAGER="false")
    assert (b"\x1b" in done.stdout, done.stdout.count(b"\n")) == (False, 101)
    # Colours are chosen as by `rye`.
    for words in (("--color", "always", "open", "long.txt"), ("open", "long.txt", "--color=always")):
        assert b"\x1b[" in rt(*words, cwd=project, NO_COLOR="1").stdout


def test_at_a_terminal_there_are_colours_unless_they_are_unwanted_and_no_file_steers_it(project):
    code, shown = typed("open", "src/app.py", cwd=project)
    assert (code, "\x1b[1m--- src/app.py (lines 1-2) ---\x1b[0m\n\x1b[2m1:\x1b[0m def total" in shown) == (0, True)
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in typed("open", "src/app.py", cwd=project, **env)[1]
    (project / "evil").write_text("a\x1b]0;title\x07\x9b31mb\tc\n")
    shown = typed("open", "evil", cwd=project, NO_COLOR="1")[1].replace("       ", "\t")
    assert ("\x1b" in shown, "1: a\\x1b]0;title\\x07\\x9b31mb\tc" in shown) == (False, True)
    assert b"\x1b]0;title" in rt("open", "evil", cwd=project).stdout


def test_what_is_longer_than_the_screen_goes_through_the_pager(project):
    pager = str(put_program(project / "pager", "#!/bin/sh\necho PAGED; cat\n"))
    assert typed("open", "long.txt", cwd=project, PAGER=pager)[1].startswith("PAGED\n")
    assert "PAGED" not in typed("open", "src/app.py", cwd=project, PAGER=pager)[1]
    assert typed("open", "long.txt", cwd=project, PAGER="cat")[1].count("\n") == 102
    assert typed("open", "long.txt", cwd=project, PAGER="/not/there")[1].count("\n") == 102


def test_completion_knows_verbs_options_and_shells(project):
    for line, found in (
        ("o", "open"),
        ("gr", "grep grep-file"),
        ("open --i", "--ids"),
        ("scroll f ", "+ -"),
        ("completion ", "bash fish zsh"),
        ("open src/", ""),
    ):
        assert rt("completion", "--words", *line.split(" "), cwd=project).stdout.decode().split() == found.split()
    for shell in ("bash", "zsh", "fish"):
        assert b"rt completion --words" in rt("completion", shell, cwd=project).stdout
    assert subprocess.run(["bash", "-n"], input=rt("completion", "bash", cwd=project).stdout, check=True).returncode == 0
    assert rt("completion", "csh", cwd=project).returncode == 2


def test_help_and_version_load_nothing_that_runs_tools(project):
    assert rt("--version", cwd=project).stdout == f"rt {rye.__version__}\n".encode()
    assert b"exit codes" in rt("--help", cwd=project).stdout.lower()
    assert b"--show-diff" in rt("edit", "--help", cwd=project).stdout
    code = "import sys; from rye.cli.rt.main import main; main(['--version']); print(*sys.modules)"
    assert b"rye.executor.executor" not in started([sys.executable, "-c", code], project).stdout


def test_the_module_and_the_function_are_the_same_and_take_no_module_from_the_project(project):
    for name in ("json", "argparse"):
        (project / f"{name}.py").write_text("raise SystemExit('taken')\n")
    assert process("open", "src/app.py", cwd=project).stdout == rt("open", "src/app.py", cwd=project).stdout
    done = process("insert", "src/app.py", "1", cwd=project, stdin=b"x\n")
    assert done.stdout.startswith("✓ Edited src/app.py:1-1\n".encode())
    assert process("open", "absent", cwd=project).returncode == 1


def test_no_verb_leaves_the_project(project, tmp_path):
    (tmp_path / "secret").write_text("needle\n")
    (project / "way").symlink_to(tmp_path / "secret")
    (project / "out").symlink_to(tmp_path)
    outside = ("open ../secret", f"open {tmp_path}/secret", "open way", "scroll out/secret", "find secret ..")
    searches = ("grep needle ..", "grep needle out", "grep-file needle way")
    for line in (*outside, *searches, "edit way 1 1", "insert ../secret 1"):
        done = rt(*line.split(), cwd=project, stdin=b"x\n")
        assert done.returncode, line
        assert b"needle" not in done.stdout
    assert b"secret" not in rt("find", "secret", cwd=project).stdout
    assert (tmp_path / "secret").read_text() == "needle\n"


# --- a call that an answer names is written as the command that makes it ---

CALL = re.compile(r"\b[a-z_]+\(\w+=")


@pytest.mark.parametrize(
    ("tool", "arguments", "typed"),
    [
        ("read", {"file_path": "a b.py"}, "`rt open 'a b.py'`"),
        ("read", {"file_path": "a.py", "offset": 7}, "`rt open a.py:7`"),
        ("read", {"file_path": "a.py", "changes_since": "x"}, "`rye read file_path=a.py changes_since=x`"),
        ("ls", {"path": "src"}, "`rt find '*' src`"),
        ("undo", {"entry_id": "18a"}, "`rt undo 18a`"),
        ("undo", {"batchId": "x-1"}, "`rye undo batchId=x-1`"),
        ("undo", {"list": True, "offset": 2}, "`rt undo --list --offset 2`"),
        ("read", {"file_path": ..., "encoding": "latin-1"}, "`rt open … --encoding latin-1`"),
        ("job", {"action": "end"}, "`rye job action=end`"),
        ("read", {"file_path": "`rm -rf ~`;$(x)"}, "`rt open '`rm -rf ~`;$(x)'`"),
        ("", {"multiline": True}, "multiline=true"),
    ],
)
def test_a_call_is_a_command(tool, arguments, typed):
    assert printing.typed_call(tool, arguments) == typed


def test_the_terminal_reads_them(project):
    (project / "wide.txt").write_bytes(b"a\0\n\0")
    for line, told in {
        "open src/ap.py": "Use `rt find '*' src` to see what is there",
        "open src": "Use `rt find '*' src` to list it",
        "undo": "`rt undo --list`",
        "open wide.txt": "mark give --encoding utf-16-le.",
    }.items():
        said = rt(*line.split(), cwd=project).stderr.decode()
        assert told in said, said
        assert not CALL.search(said)

"""What git takes for a repository, compared with git itself; and the file tools' refusal to make one."""

import itertools
import os
import random
import subprocess
import sys

import pytest

import rye
from rye.workspace import programs, repositories
from support.other_users import USERS, run_as
from support.shell_calls import call

PARTS = ("HEAD", "objects/.keep", "refs/.keep", "config", "commondir", "hooks/pre-commit")


def git_takes_it_for_a_repository(folder):
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent), "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(["git", "rev-parse", "--git-dir"], cwd=folder, env=env, capture_output=True, check=False)
    return done.returncode == 0


def content(part):
    return {"HEAD": "ref: refs/heads/main\n", "commondir": ".\n", "config": "[core]\n\tbare = true\n"}.get(part, "")


@pytest.mark.parametrize("chosen", [c for n in range(1, 5) for c in itertools.combinations(PARTS[:5], n)])
def test_whatever_git_takes_for_a_repository_is_found(project, chosen):
    folder = project / "docs"
    for part in chosen:
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        (folder / part).write_text(content(part))
    if git_takes_it_for_a_repository(folder):
        assert "docs" in repositories.find(str(project)), chosen


_FIND_CLOSED = """
import os, sys
from rye.workspace import repositories
os.chdir(sys.argv[1])
os.makedirs("dark/sub/.git/objects"), os.makedirs("dark/sub/.git/refs"), open("dark/sub/.git/HEAD", "w").close()
os.chmod("dark/sub", 0o300), os.chmod("dark", int(sys.argv[2], 8))
assert "dark/sub/.git" in repositories.find(os.path.realpath(".")), "not found"
assert os.stat("dark").st_mode & 0o777 == int(sys.argv[2], 8), oct(os.stat("dark").st_mode)
os.chmod("dark", 0o700)
assert os.stat("dark/sub").st_mode & 0o777 == 0o300, oct(os.stat("dark/sub").st_mode)
"""


@pytest.mark.parametrize("mode", ["311", "100", "000"])
def test_one_in_a_folder_that_cannot_be_listed_is_found_and_the_folder_stays_closed(tmp_path, mode):
    (tmp_path / "script.py").write_text(_FIND_CLOSED)
    run_as(USERS[-1], [tmp_path / "script.py"], mode)


@pytest.mark.parametrize(("folder", "most"), [("a/b", 2), (f"{'a' * 200}/" * 10, 99)])
def test_a_project_with_too_many_names_is_told_as_one_that_is_not_looked_through(project, monkeypatch, folder, most):
    (project / folder).mkdir(parents=True)
    monkeypatch.setattr(repositories, "MAX_ENTRIES", most)
    report = call("bash", project, command="true")["sandbox"]
    if report["kind"] == "bubblewrap":
        assert report["missing"]["protected_names"].endswith(
            "cannot be looked through after the command: too many files, or too deep"
        )


def refused(project, path, text="x\n"):
    """Write a file; return why that was refused, as the only thing that may be wrong with it."""
    answer = rye.execute("rye/file-system/write", {"file_path": path, "content": text}, project_path=project)["data"]
    assert answer["success"] or answer["code"] == "protected_path", answer
    return answer.get("error", "")


def test_write_completes_no_repository_whatever_comes_last(project):
    chance = random.Random(7)
    for number in range(12):
        order = list(PARTS)
        chance.shuffle(order)
        for part in order:
            refused(project, f"d{number}/{part}", content(part))
        assert not git_takes_it_for_a_repository(project / f"d{number}"), order
    assert repositories.find(os.path.realpath(project)) == set()
    # Control: the same files written by hand are one.
    for part in PARTS[:4]:
        (project / "d" / part).parent.mkdir(parents=True, exist_ok=True)
        (project / "d" / part).write_text(content(part))
    assert git_takes_it_for_a_repository(project / "d")


def test_what_makes_a_repository_or_changes_one_is_not_written_and_files_of_such_names_elsewhere_are(project):
    assert not any(refused(project, path) for path in ("objects/a.py", "src/head/a.py", "src/refs/a.py", "src/commondir"))
    # One call may write all parts, and each is asked for before the first is there.
    assert refused(project, "HEAD")
    (project / "HEAD").write_text("x\n")
    assert [path for path in ("objects/a", "refs/a", "commondir", "config") if not refused(project, path)] == ["config"]
    subprocess.run(["git", "init", "-q", "--bare", project / "fixture"], check=True)
    assert all(refused(project, f"fixture/{path}") for path in ("config", "hooks/pre-commit"))
    assert call("bash", project, command="true")["success"]


@pytest.mark.parametrize("value", ["../shared", '"../shared"', "  ../shared  # mine", "{root}/shared"])
def test_what_the_projects_settings_name_is_not_written(project, value):
    subprocess.run(["git", "init", "-q", project], check=True)
    with (project / ".git/config").open("a") as file:
        file.write(f"[include]\n\tpath = {value.format(root=project)}\n[core]\n\thooksPath = .husky/_\n")
    assert "include.path" in refused(project, "shared")
    assert all("core.hooksPath" in refused(project, path) for path in (".husky/pre-commit", ".husky/_/pre-commit"))
    assert not any(refused(project, path) for path in ("share", "sub/.husky/pre-commit"))


@pytest.mark.parametrize(
    ("value", "named", "not_named"),
    [
        ("tools/clean", "tools/clean", "tools/cat tools/a.py"),
        ('"tools/clean" --fast', "tools/clean", ""),
        ("python3 -X dev tools/clean.py %f", "tools/clean.py tools/json.py tools/helper.py tools/helper/a.py", "json.py tools/x.py"),
        (f"{sys.executable} tools/clean.py", "tools/clean.py tools/json/__init__.py tools/json.cpython-311.so tools/pytest.py", "tools/json.txt"),
        ("tools/run.py", "tools/run.py tools/__pycache__/helper.cpython-311.pyc tools/re.py", "tools/other.py"),
        ("python -m tools.strip", "tools/strip.py tools/strip/__main__.py json.py named.py", "README.md other.py"),
        ("sh tools/a; exec ./b | cat", "tools/a b tools/lib.sh", "lib.sh tools/x"),
        ("node tools/a.js", "tools/a.js tools/util.js tools/util/index.js", "tools/other.js"),
        ("!LANG=C tools/x", "tools/x", ""),
        ("vim", "", "vim"),
        ("less -R", "", "less"),
        ("git-lfs clean -- %f", "", "clean"),
    ],
)  # fmt: skip
def test_what_a_program_starts_and_loads_that_a_setting_names(tmp_path, value, named, not_named):
    root = str(tmp_path.resolve())
    texts = {
        "tools/clean.py": "import helper\n", "tools/run.py": "#!/usr/bin/env python3\nimport helper\n",
        "tools/strip.py": "import named\n", "tools/a": ". tools/lib.sh\n", "tools/a.js": "require('./util')\n",
    }  # fmt: skip
    (tmp_path / "tools").mkdir()
    for path, text in texts.items():
        (tmp_path / path).write_text(text)
    found = programs.loaded(value, root)
    assert [one for one in named.split() if not found.holds(f"{root}/{one}")] == []
    assert [one for one in not_named.split() if found.holds(f"{root}/{one}")] == []
    # What is there is found, too.
    for one in [*named.split(), *not_named.split()]:
        (tmp_path / one).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / one).touch()
    there = {os.path.relpath(one, root) for one in found.there()}
    assert there >= {*named.split()}
    assert not there & {*not_named.split()}


def test_a_damaged_note_of_what_names_repositories_hinders_no_change(project, user_space):
    call("bash", project, command="true")
    (state,) = user_space.glob(".ai/state/*/project.json")
    for damaged in (bytes(9), b"1", b"[1]"):
        state.with_name("pointers.json").write_bytes(damaged)
        written = {"file_path": "a.txt", "content": "x"}
        assert rye.execute("rye/file-system/write", written, project_path=project)["status"] == "success"

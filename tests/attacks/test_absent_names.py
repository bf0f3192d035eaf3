"""Protected names that do not exist: a command sees no empty folders in their place, and what it makes there does not stay."""

import os
import signal
import subprocess
import sys

import pytest

from support import calling
from support.machine import needs_bubblewrap
from support.shell_calls import bash, job, set_sandbox, started
from support.waiting import until

pytestmark = needs_bubblewrap
TASKS = '{"version": "2.0.0"}'
ATTACKS = {
    ".vscode": f"mkdir .vscode; echo '{TASKS}' > .vscode/tasks.json",
    ".mcp.json": f"echo '{TASKS}' > .mcp.json",
    ".claude": f"mkdir -p .claude; echo '{TASKS}' > .claude/settings.json",
    ".cursor": f"mkdir x; echo '{TASKS}' > x/mcp.json; mv x .cursor",
    ".ai/tools": "mkdir -p .ai/tools; echo evil > .ai/tools/x.py",
    ".ai/config": "mkdir -p .ai/config; echo 'sandbox: {}' > .ai/config/rye.yaml",
}


def content(project):
    return sorted(str(one.relative_to(project)) for one in project.rglob("*"))


def test_a_command_sees_and_packs_only_what_is_there(project):
    (project / "file").write_text("text")
    seen = bash(project, "ls -A; tar c . | tar t | sort")["output"].splitlines()
    assert seen == ["file", "./", "./file"], seen
    assert content(project) == ["file"]


@pytest.mark.parametrize("name", ATTACKS)
def test_what_a_command_makes_at_one_is_moved_aside(project, user_space, name):
    set_sandbox(user_space, "off")
    bash(project, ATTACKS[name])
    assert (project / name).exists(), "control"
    subprocess.run(["rm", "-rf", project / ".ai", project / name], check=True)
    set_sandbox(user_space, "auto")
    found = bash(project, f"{ATTACKS[name]}; ls -A; echo done")
    assert "done" in found["output"]
    assert "protected_names" in found["sandbox"]["holds"]
    assert not (project / name).exists()
    (moved,) = found["set_aside"]
    assert moved["path"] == name
    assert moved.keys() == {"path", "what", "stored"}
    assert (project / moved["stored"]).exists()
    assert moved["stored"] in found["output"]
    # Nothing is lost: the user can put it back, and then it stays.
    (project / moved["stored"]).rename(project / name)
    assert "set_aside" not in bash(project, "true")
    assert (project / name).exists()


def test_links_and_dangling_links_at_one_are_moved_aside(project):
    found = bash(project, "mkdir t; echo x > t/tasks.json; ln -s t .vscode; ln -s nowhere .mcp.json")
    assert sorted(one["path"] for one in found["set_aside"]) == [".mcp.json", ".vscode"]
    assert not any(os.path.lexists(project / name) for name in (".vscode", ".mcp.json"))


@pytest.mark.parametrize("path", [".mcp.json", ".envrc", ".git/config"])
def test_what_a_command_writes_by_another_name_is_told_and_moved_aside(project, path, monkeypatch):
    """As where the file system folds case: `.MCP.JSON` is `.mcp.json`, and a mount lies on one name only."""
    subprocess.run(["git", "init", "-q", project], check=True)
    (project / path).write_text("")
    assert "protected_names" in bash(project, "true")["sandbox"]["holds"]
    other = (project / path).with_name((project / path).name.upper())
    os.link(project / path, other)
    found = bash(project, f"printf '[core]\npager = evil\n' > {other.relative_to(project)}")
    assert "evil" in other.read_text(), "control: it does get past the mount"
    assert "hard link" in found["sandbox"]["missing"]["protected_names"]
    assert [one["path"] for one in found["set_aside"]] == [path]
    (project / path).write_text("")
    real = os.listdir
    monkeypatch.setattr(os, "listdir", lambda *where: [one for one in real(*where) if one != other.name])
    assert "folds case" in bash(project, "true")["sandbox"]["missing"]["protected_names"]


def test_a_repository_can_be_made_in_the_root_and_its_hooks_are_looked_at(project):
    assert bash(project, "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x")["success"]
    assert (project / ".git/HEAD").exists()
    subprocess.run(["rm", "-rf", project / ".git"], check=True)
    hook = "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit"
    found = bash(project, f"git init -q . && git config core.fsmonitor ./evil; {hook}")
    assert len(found["set_aside"]) == 2, found
    assert not (project / ".git/hooks/pre-commit").exists()
    assert "evil" not in (project / ".git/config").read_text()


def test_a_killed_process_leaves_none_behind(project, user_space):
    command = "mkdir .vscode; echo x > .vscode/tasks.json; echo made > made; sleep 60"
    code = f"import sys, rye; rye.execute('rye/bash/bash', {{'command': '{command}'}}, project_path=sys.argv[1])"
    child = subprocess.Popen([sys.executable, "-c", code, project], start_new_session=True)
    until((project / "made").exists)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert (project / ".vscode/tasks.json").exists(), "control"
    # Whatever call comes next.
    calling.done("ls", project)
    assert not (project / ".vscode").exists()


@pytest.mark.slow
def test_a_job_holds_absent_names_by_empty_folders_and_beside_it_a_command_works(project):
    job_id = started(project, "echo up; sleep 60")
    until(lambda: "up" in job(project, "read", job_id)["output"])
    # It may run for hours, in which an editor might load what it makes.
    assert bash(project, f"echo '{TASKS}' > .mcp.json; rmdir .vscode; mv .claude c; ls -A .vscode")["exit_code"] == 0
    assert content(project) == [".ai", ".claude", ".cursor", ".git", ".mcp.json", ".vscode"]
    job(project, "end", job_id)
    assert content(project) == []

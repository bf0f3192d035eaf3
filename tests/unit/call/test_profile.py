"""The profile: who may set it, and that every tool that writes keeps to it; and the switches of the SWE tools."""

import hashlib
import re

import pytest

from support.calling import call
from support.harness import files_of
from support.in_process import rye
from support.machine import needs_bubblewrap
from support.shell_calls import configure


def profile(project):
    """The profile in force as the command line says it, or its refusal."""
    done = rye("prompt", "swe", cwd=project)
    found = re.search(r"Profile in force: ([\w-]+)", done.stdout.decode())
    return found[1] if found else done.stderr.decode()


READ_ONLY = "safe-read-only"


@pytest.mark.parametrize(
    ("environment", "user", "of_project", "holds"),
    [
        *((environment, None, None, environment or "dev") for environment in (None, "", "unsafe", READ_ONLY)),
        *((None, "unsafe", None, "unsafe"), ("dev", "unsafe", None, "dev"), (None, "dev", "unsafe", "dev")),
        *(
            ("unsafe", READ_ONLY, None, READ_ONLY),
            ("unsafe", None, READ_ONLY, READ_ONLY),
            (READ_ONLY, "unsafe", "unsafe", READ_ONLY),
        ),
    ],
)
def test_the_strictest_profile_holds(project, user_space, monkeypatch, environment, user, of_project, holds):
    (project / ".git").mkdir()
    if environment is not None:
        monkeypatch.setenv("RAGIX_PROFILE", environment)
    for place, value in ((user_space, user), (project, of_project)):
        if value is not None:
            configure(place, f"swe: {{profile: {value}}}\n")
    assert profile(project) == holds
    assert (b"Edits are not applied" in rye("prompt", "swe", cwd=project).stdout) == (holds == "safe-read-only")


def test_a_profile_that_is_none_is_refused_wherever_it_stands_and_other_settings_say_nothing(project, user_space, tmp_path):
    (project / ".git").mkdir()
    for content in ("", "other: 1\n", "swe:\n", "swe: {other: 3}\n"):
        configure(project, content)
        assert profile(project) == "dev"
    for root in (project, user_space):
        for content in ("swe: {profile: lax}\n", "swe: {profile: [dev]}\n", "swe: {\n", "swe: 3\n", "- a\n"):
            configure(root, content)
            code = call("write", project, file_path="f.txt", content="x\n")["code"]
            assert code in ("bad_profile", "bad_config"), content
        (root / ".ai/config/rye.yaml").unlink()
    # What lies outside the project is not its word.
    configure(tmp_path / "elsewhere", "swe: {profile: safe-read-only}\n")
    (project / ".ai/config").rmdir()
    (project / ".ai/config").symlink_to(tmp_path / "elsewhere/.ai/config")
    assert profile(project) == "dev"


def test_a_switch_is_on_or_off_or_refused(project, monkeypatch):
    (project / "f.txt").write_text("one\n")
    for value, kept in (("0", False), ("off", False), ("1", True), ("", True), (" ON ", True)):
        monkeypatch.setenv("RAGIX_VIEW_STATE", value)
        assert call("rye/swe/open_file_chunk", project, path="f.txt")["success"]
        assert (project / ".ragix").exists() is kept
        for state in project.glob(".ragix/*"):
            state.unlink()
        for folder in project.glob(".ragix"):
            folder.rmdir()
    monkeypatch.setenv("RAGIX_ENABLE_SWE", "nope")
    assert "neither on nor off" in call("rye/swe/open_file_chunk", project, path="f.txt")["error"]


def every_way(project):
    """Each way to write, as (a name, its answer); what it would change stands in `f.txt` and `g.txt`."""
    digest = hashlib.sha256(b"one\n").hexdigest()
    change = {"operation": "insert", "afterLine": 1, "newLines": ["x"]}
    patch = {"files": [{"docPath": "f.txt", "originalSha256": digest, "changes": [change]}]}
    write_patch, deleted = "rye/workspace/workspace_write_patch", {"docPath": "g.txt", "originalSha256": digest}
    call("read", project, file_path="f.txt")
    stored = call(write_patch, project, **patch, apply=False)["result"]["batchId"]
    for tool, parameters in (
        ("write", {"file_path": "new.txt", "content": "x\n"}),
        ("write", {"file_path": "a/b/new.txt", "content": "x\n"}),
        ("edit_lines", {"file_path": "f.txt", "changes": ["end+|x"]}),
        (write_patch, {"createFiles": [{"path": "c.txt", "content": "x\n"}]}),
        (write_patch, {"deleteFiles": [deleted]}),
        ("rye/workspace/workspace_apply_patch", {"batchId": stored}),
        ("undo", {}),
    ):
        yield f"{tool} {parameters}", str(call(tool, project, **parameters))


@pytest.mark.parametrize("whose", ["environment", "project"])
def test_no_tool_changes_a_file_in_the_read_only_profile(project, monkeypatch, whose):
    def set_profile(name):
        if whose == "project":
            configure(project, f"swe: {{profile: {name}}}\n")
        else:
            monkeypatch.setenv("RAGIX_PROFILE", name)

    (project / "f.txt").write_text("one\n")
    assert call("write", project, file_path="g.txt", content="one\n")["success"]
    before = files_of(project)
    set_profile("safe-read-only")
    told = dict(every_way(project))
    assert [way for way, answer in told.items() if "read_only_profile" not in answer or "RAGIX_PROFILE" not in answer] == [], (
        told
    )
    assert files_of(project) == before
    assert not (project / "a").exists()
    # To look is allowed, and so is to see the patch.
    assert call("undo", project, dry_run=True)["success"]
    # Control: the same ways write where the profile lets them.
    set_profile("dev")
    assert [way for way, answer in every_way(project) if "read_only_profile" in answer] == []
    assert files_of(project) != before


@needs_bubblewrap
def test_commands_see_the_project_read_only(project, monkeypatch):
    for name, writes in (("safe-read-only", False), ("dev", True)):
        monkeypatch.setenv("RAGIX_PROFILE", name)
        data = call("rye/bash/bash", project, command="touch made && ls made")
        assert (data["exit_code"] == 0) is writes, data
        assert (project / "made").exists() is writes

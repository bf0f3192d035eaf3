"""The profile: who may set it, and that every tool that writes keeps to it."""

from __future__ import annotations

import hashlib

import pytest

import rye
from rye.call import profile as config_profile
from rye.errors import UsageError
from rye.sandbox import sandbox


def profile(project):
    return config_profile.profile(str(project))


def configure(root, text):
    where = root / ".ai/config/rye.yaml"
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text(text)


@pytest.mark.parametrize(
    ("environment", "user", "of_project", "holds"),
    [
        (None, None, None, "dev"),
        ("", None, None, "dev"),
        ("unsafe", None, None, "unsafe"),
        ("safe-read-only", None, None, "safe-read-only"),
        (None, "unsafe", None, "unsafe"),
        ("dev", "unsafe", None, "dev"),
        ("unsafe", "safe-read-only", None, "safe-read-only"),
        ("unsafe", None, "safe-read-only", "safe-read-only"),
        ("safe-read-only", "unsafe", "unsafe", "safe-read-only"),
        (None, "dev", "unsafe", "dev"),
    ],
)
def test_the_strictest_profile_holds(project, user_space, monkeypatch, environment, user, of_project, holds):
    if environment is not None:
        monkeypatch.setenv("RAGIX_PROFILE", environment)
    if user is not None:
        configure(user_space, f"swe: {{profile: {user}}}\n")
    if of_project is not None:
        configure(project, f"swe: {{profile: {of_project}}}\n")
    assert profile(project) == holds


@pytest.mark.parametrize("content", ["swe: {profile: lax}\n", "swe: {profile: [dev]}\n", "swe: {\n", "swe: 3\n", "- a\n"])
def test_a_profile_that_is_none_is_refused_wherever_it_stands(project, user_space, content):
    for root in (project, user_space):
        configure(root, content)
        with pytest.raises(UsageError) as refusal:
            profile(project)
        assert refusal.value.code in ("bad_profile", "bad_config")
        (root / ".ai/config/rye.yaml").unlink()


def test_what_lies_outside_the_project_is_not_its_word(project, tmp_path):
    configure(tmp_path / "elsewhere", "swe: {profile: safe-read-only}\n")
    (project / ".ai").symlink_to(tmp_path / "elsewhere/.ai")
    assert profile(project) == "dev"


def test_other_settings_of_a_project_say_nothing(project):
    for content in ("", "other: 1\n", "swe:\n", "swe: {other: 3}\n"):
        configure(project, content)
        assert profile(project) == "dev"


def call(tool, project, /, **parameters):
    answer = rye.execute(tool, parameters, project_path=project)
    return answer["data"] or {"success": False, "code": answer["code"], "error": answer["error"]}


def every_way(project):
    """Each way to write, as (a name, its answer); what it would change stands in `f.txt` and `g.txt`."""
    digest = hashlib.sha256(b"one\n").hexdigest()
    line = call("rye/file-system/read", project, file_path="f.txt")["output"].split("LID:")[1][:6]
    change = {"operation": "insert", "afterLine": 1, "newLines": ["x"]}
    patch = {"files": [{"docPath": "f.txt", "originalSha256": digest, "changes": [change]}]}
    stored = call("rye/workspace/workspace_write_patch", project, **patch, apply=False)
    yield "write", call("rye/file-system/write", project, file_path="new.txt", content="x\n")
    yield "write below", call("rye/file-system/write", project, file_path="a/b/new.txt", content="x\n")
    yield (
        "edit_lines",
        call("rye/file-system/edit_lines", project, file_path="f.txt", changes=[{"line_id": line, "new_content": "x"}]),
    )
    yield "create", call("rye/workspace/workspace_write_patch", project, createFiles=[{"path": "c.txt", "content": "x\n"}])
    yield (
        "delete",
        call("rye/workspace/workspace_write_patch", project, deleteFiles=[{"docPath": "g.txt", "originalSha256": digest}]),
    )
    yield "apply", call("rye/workspace/workspace_apply_patch", project, batchId=stored["result"]["batchId"])
    yield "undo", call("rye/file-system/undo", project)


def files(project):
    return {
        str(one.relative_to(project)): one.read_bytes()
        for one in project.rglob("*")
        if one.is_file() and ".ai" not in one.parts
    }


def test_no_tool_changes_a_file_in_the_read_only_profile(project, monkeypatch):
    (project / "f.txt").write_text("one\n")
    assert call("rye/file-system/write", project, file_path="g.txt", content="one\n")["success"]
    before = files(project)
    monkeypatch.setenv("RAGIX_PROFILE", "safe-read-only")
    told = {way: str(answer) for way, answer in every_way(project)}
    assert [way for way, answer in told.items() if "read_only_profile" not in answer] == [], told
    assert "RAGIX_PROFILE" in told["write"]
    assert files(project) == before
    assert not (project / "a").exists()
    # To look is allowed, and so is to see the patch.
    assert call("rye/file-system/undo", project, dry_run=True)["success"]
    # Control: the same ways write where the profile lets them.
    monkeypatch.setenv("RAGIX_PROFILE", "dev")
    told = dict(every_way(project))
    assert [way for way, answer in told.items() if "read_only_profile" in str(answer)] == []
    assert files(project) != before


def test_a_project_can_bind_every_tool_too(project):
    configure(project, "swe: {profile: safe-read-only}\n")
    refused = call("rye/file-system/write", project, file_path="f.txt", content="x\n")
    assert refused["code"] == "read_only_profile"
    configure(project, "swe: {profile: dev}\n")
    assert call("rye/file-system/write", project, file_path="f.txt", content="x\n")["success"]


@pytest.mark.skipif(bool(sandbox.layers()["bubblewrap"]), reason="bubblewrap does not work here")
def test_commands_see_the_project_read_only(project, monkeypatch):
    for name, code in (("safe-read-only", 1), ("dev", 0)):
        monkeypatch.setenv("RAGIX_PROFILE", name)
        data = call("rye/bash/bash", project, command="touch made && ls made")
        assert (data["exit_code"] != 0) == bool(code), data
        assert (project / "made").exists() is not bool(code)

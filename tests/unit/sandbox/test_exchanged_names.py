"""A protected name that another program removes between the moment it is listed and the moment it is mounted."""

from __future__ import annotations

import os

import pytest

import rye
from rye.sandbox import bubblewrap
from support.machine import needs_bubblewrap
from support.shell_calls import bash, set_sandbox
from support.signed_tools import put_tool


def removed(project, monkeypatch, at="mounting", how_often=1):
    """Have `.vscode` removed at this moment, so often; return a list that grows with each time."""
    (project / ".vscode").mkdir()
    opens, gone = bubblewrap._mount_options, []

    def opened(option, path, fds):
        words = opens(option, path, fds) if at == "mounting" else None
        if path.endswith("/.vscode") and len(gone) < how_often:
            gone.append(path)
            os.rmdir(path)
            # In its place there is another one, as after an editor's or git's way to write.
            os.mkdir(path) if at == "mounting" else None
        return opens(option, path, fds) if words is None else words

    monkeypatch.setattr(bubblewrap, "_mount_options", opened)
    return gone


@needs_bubblewrap
@pytest.mark.parametrize(
    ("at", "how_often", "ended"), [("opening", 1, "ran"), ("mounting", 2, "ran"), ("mounting", 1_000, "sandbox_failed")]
)
def test_the_names_are_listed_anew_and_the_command_runs_once_or_is_refused(
    project, user_space, monkeypatch, at, how_often, ended
):
    set_sandbox(user_space, "auto")
    gone = removed(project, monkeypatch, at, how_often)
    data = bash(project, "echo ran")
    assert (data.get("code") or data["output"].strip()) == ended
    assert ended != "ran" or len(gone) == how_often


@needs_bubblewrap
def test_a_tool_of_another_signer_is_refused_before_it_begins_and_runs_at_the_next_call(project, user_space, monkeypatch):
    set_sandbox(user_space, "auto")
    removed(project, monkeypatch)
    body = "open(project_path + '/made', 'a').write('x')\nreturn {'success': True, 'output': 'ran'}"
    put_tool(project, "my/writer", body, more='__permissions__ = ["read", "write"]')
    refused = rye.execute("my/writer", {}, project_path=project)
    found = (refused["code"], "before the tool began" in refused["error"], "try again" in refused["error"])
    assert found == ("isolation_failed", True, True)
    assert not (project / "made").exists()
    assert rye.execute("my/writer", {}, project_path=project)["data"]["output"] == "ran"

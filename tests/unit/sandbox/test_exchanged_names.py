"""A protected name that another program removes between the moment it is listed and the moment it is mounted."""

from __future__ import annotations

import os

import pytest

import rye
from rye.sandbox import bubblewrap
from support.machine import needs_bubblewrap
from support.shell_calls import set_sandbox
from support.signed_tools import put_tool

pytestmark = needs_bubblewrap


@pytest.fixture(params=["bash", "tool"])
def answer(request, project, user_space):
    """Run a command, or another signer's tool that may write; return what it says, or its code."""
    set_sandbox(user_space, "auto")
    put_tool(project, "my/tool", 'return {"success": True, "output": "ran"}', more="__permissions__ = ['read', 'write']")
    (project / ".vscode").mkdir()
    item, parameters = ("rye/bash/bash", {"command": "echo ran"}) if request.param == "bash" else ("my/tool", {})

    def answered():
        response = rye.execute(item, parameters, project_path=project)
        return response.get("code") or response["data"]["output"].strip()

    return answered


@pytest.mark.parametrize("at", ["opening", "mounting"])
@pytest.mark.parametrize("how_often", [1, 2, 1_000])
def test_the_names_are_listed_anew_and_the_command_runs_once_or_is_refused(project, answer, monkeypatch, at, how_often):
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
    if at == "mounting" and how_often == 1_000:
        # Control: one that is always gone is a refusal that says so.
        assert answer() in ("sandbox_failed", "isolation_failed")
    else:
        assert answer() == "ran"
        assert len(gone) == (how_often if at == "mounting" else 1)

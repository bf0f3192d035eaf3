"""A model that loosens what its project asks for: the settings of the sandbox, and the versions that are pinned."""

from __future__ import annotations

import pytest

from rye.call import context
from rye.errors import UsageError
from support.calling import call


@pytest.mark.parametrize("path", [".ai/config/rye.yaml", ".ai/lockfiles/tool@1.0.0.lock.json", "deep/.ai/config/rye.yaml"])
def test_no_tool_writes_a_projects_settings_or_lockfiles(project, path):
    (project / path).parent.mkdir(parents=True)
    (project / path).write_text("sandbox: {network: off}\n")
    refused = call("write", project, file_path=path, content="")
    assert refused["code"] == "protected_path", refused
    assert (project / path).read_text() == "sandbox: {network: off}\n"
    # Control: the same call beside it.
    assert call("write", project, file_path="rye.yaml", content="")["success"]


def test_a_projects_settings_are_read_anew_and_are_small(project):
    path = project / ".ai/config/rye.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("sandbox: {network: off}\n" + "# filler\n" * 1_000)
    assert context.settings().tightened("sandbox.network", str(project)) == "off"
    path.write_text("sandbox: {network: 'on'}\n")
    assert context.settings().tightened("sandbox.network", str(project)) == "on"
    path.write_text("a: 1\n" * 4_000)
    with pytest.raises(UsageError, match="larger than 16,384 bytes"):
        context.settings().tightened("sandbox.network", str(project))

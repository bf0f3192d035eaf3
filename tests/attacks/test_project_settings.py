"""A model that loosens what its project asks for: the settings of the sandbox, and the versions that are pinned."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))
import rye
from rye.call import context
from rye.errors import UsageError
from rye.sandbox import sandbox
from rye.workspace import cache
from rye.workspace.workspace import Workspace
from support.shell_calls import job, started


def write(project, path, content):
    answer = rye.execute("rye/file-system/write", {"file_path": path, "content": content}, project_path=project)
    return answer["data"] or answer


@pytest.mark.parametrize("path", [".ai/config/rye.yaml", ".ai/lockfiles/tool@1.0.0.lock.json", "deep/.ai/config/rye.yaml"])
def test_no_tool_writes_a_projects_settings_or_lockfiles(project, path):
    (project / path).parent.mkdir(parents=True)
    (project / path).write_text("sandbox: {network: off}\n")
    refused = write(project, path, "")
    assert refused["code"] == "protected_path", refused
    assert (project / path).read_text() == "sandbox: {network: off}\n"
    # Control: the same call beside it.
    assert write(project, "rye.yaml", "")["success"]


def test_a_projects_settings_are_small_and_parsed_once(project, monkeypatch):
    path = project / ".ai/config/rye.yaml"
    path.parent.mkdir(parents=True)
    parsed = []
    real = yaml.load
    monkeypatch.setattr(yaml, "load", lambda data, loader: parsed.append(data) or real(data, loader))
    path.write_text("sandbox: {network: off}\n" + "# filler\n" * 1_000)
    for _ in range(5):
        assert context.settings().tightened("sandbox.network", str(project)) == "off"
    assert len([one for one in parsed if b"# filler" in one]) == 1
    path.write_text("sandbox: {network: 'on'}\n")
    assert context.settings().tightened("sandbox.network", str(project)) == "on"
    path.write_text("a: 1\n" * 4_000)
    with pytest.raises(UsageError, match="larger than 16,384 bytes"):
        context.settings().tightened("sandbox.network", str(project))


@pytest.mark.slow
@pytest.mark.skipif(bool(sandbox.layers()["bubblewrap"]), reason="Landlock does not protect names")
def test_a_job_of_a_fresh_project_holds_no_locks(project):
    (project / "file").write_text("text\n")
    (project / "hold.py").write_text(
        "import fcntl, os, time\n"
        "for _ in range(100):\n"
        "    time.sleep(0.05)\n"
        "    for folder, _, names in os.walk('.ai/cache/locks'):\n"
        "        for name in names:\n"
        "            fcntl.flock(os.open(f'{folder}/{name}', os.O_RDONLY), fcntl.LOCK_EX); print('WAS-HERE', name)\n"
    )
    job_id = started(project, f"{sys.executable} hold.py")
    time.sleep(0.3)
    # The first use of the project's locks.
    with Workspace(str(project)) as ws, cache.locked(ws, b"file"):
        time.sleep(0.3)
    locks = list((project / ".ai/cache/locks").iterdir())
    assert locks, "control: there is a lock file now"
    job(project, "end", job_id)
    assert "WAS-HERE" not in job(project, "read", job_id)["output"]

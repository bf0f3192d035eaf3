"""One call's context: its open root is shared and outlives no user, its settings are read once, a nested call has its own."""

from __future__ import annotations

import contextvars
import os
import threading

import pytest

import rye
from rye.call import context
from rye.config import settings
from rye.config.settings import Settings
from rye.errors import UsageError
from rye.executor import executor
from rye.workspace.workspace import Workspace
from support.signed_tools import put_tool, trust_key


@pytest.fixture
def project(tmp_path):
    trust_key()
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("one\ntwo\n")
    return tmp_path / "project"


def test_workspaces_of_a_calls_root_share_one_descriptor_and_others_do_not(project, tmp_path):
    with Workspace(str(project)) as outer, context.using(workspace=outer):
        with Workspace(f"{project}/../project/") as inner:
            assert inner.fd == outer.fd
        os.fstat(outer.fd)
        with Workspace(str(tmp_path)) as other:
            assert other.fd != outer.fd
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(outer.fd)


def test_the_root_stays_open_for_a_tool_that_outlives_its_call_and_is_closed_after_it(project):
    before = len(os.listdir("/proc/self/fd"))
    with Workspace(str(project)) as outer, context.using(workspace=outer):
        inner = Workspace(str(project))
        late = contextvars.copy_context()
    os.fstat(inner.fd)
    inner.close()
    inner.close()
    # The call's root is closed now: a late workspace opens its own.
    with late.run(Workspace, str(project)) as own, own.file("a.txt") as file:
        assert file.read() == b"one\ntwo\n"
    assert len(os.listdir("/proc/self/fd")) == before


def test_threads_that_open_and_close_the_shared_root_leave_nothing_open(project):
    before = len(os.listdir("/proc/self/fd"))
    failures = []

    def work(copied):
        for _ in range(200):
            try:
                with copied.run(Workspace, str(project)) as ws, ws.file("a.txt") as file:
                    file.read()
            except BaseException as err:
                failures.append(err)

    for _ in range(5):
        with Workspace(str(project)) as outer, context.using(workspace=outer):
            threads = [threading.Thread(target=work, args=(contextvars.copy_context(),)) for _ in range(4)]
            for thread in threads:
                thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_call_reads_the_settings_once_and_sees_them_unchanged(project, user_space, monkeypatch):
    (user_space / ".ai/config").mkdir(parents=True, exist_ok=True)
    file = user_space / ".ai/config/rye.yaml"
    file.write_text("journal: {max_bytes: 5}\n")
    reads = []
    monkeypatch.setattr(settings, "_user_file", lambda path, real=settings._user_file: reads.append(path) or real(path))
    with context.using(settings=Settings()):
        assert context.settings().number("journal.max_bytes") == 5
        file.write_text("journal: {max_bytes: 6}\n")
        assert context.settings().number("journal.max_bytes") == 5
    assert context.settings().number("journal.max_bytes") == 6
    reads.clear()
    changes = [{"line_id": rye_id(project), "new_content": "1"}]
    assert rye.execute("rye/file-system/edit_lines", {"file_path": "a.txt", "changes": changes}, project_path=project)["status"]
    assert len(reads) == 2  # one for the read in `rye_id`, one for the edit


def rye_id(project):
    text = rye.execute("rye/file-system/read", {"file_path": "a.txt"}, project_path=project)["data"]["output"]
    return text.partition("LID:")[2][:6]


def test_what_was_prepared_is_what_runs(project):
    put_tool(project, "my/tool", 'return {"success": True, "output": "first"}')
    prepared = executor.prepare("my/tool", str(project))
    put_tool(project, "my/tool", 'return {"success": True, "output": "second"}')
    call = executor.Call("tool", "my/tool", {}, str(project), prepared=prepared)
    assert executor.run(call)["data"]["output"] == "first"
    assert executor.run(executor.Call("tool", "my/tool", {}, str(project)))["data"]["output"] == "second"


def test_the_host_is_made_only_for_a_tool_that_may_ask_for_it():
    made = []
    with context.using(host=lambda: made.append(1) or "host", needs=("search",)):
        assert context.host_for("search") == "host"
        with pytest.raises(UsageError) as refused:
            context.host_for("sign")
    assert (refused.value.code, made) == ("capability_denied", [1])

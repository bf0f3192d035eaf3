"""Every refusal is an answer of one shape, says what to do, and names no file that is not at fault; none hangs or leaks."""

import contextlib
import json
import os

import pytest

import rye
from rye.executor import executor
from support.mcp_peer import ARGUMENTS
from support.signed_tools import put, put_tool, put_yaml, signed, tool_text, trust_key


@pytest.fixture
def project(tmp_path):
    trust_key()
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / "a.txt").write_text("one\ntwo\n")
    return tmp_path / "project"


def call(project, item="rye/file-system/read", /, **parameters):
    return rye.execute(item, parameters, project_path=project)


@pytest.mark.parametrize(
    ("code", "item_id", "parameters"),
    [
        ("item_not_found", "rye/file-system/raed", {}),
        ("bad_item_id", "../x", {}),
        ("invalid_parameters", "rye/file-system/read", {"file_pth": "a.txt"}),
        ("path_outside", "rye/file-system/read", {"file_path": "../x"}),
        ("file_not_found", "rye/file-system/read", {"file_path": "b.txt"}),
        ("unsigned", "my/unsigned", {}),
    ],
)
def test_data_is_an_object_that_says_why_wherever_a_call_is_refused(project, code, item_id, parameters):
    put(project, "tools/my/unsigned.py", tool_text("my/unsigned"))
    answer = call(project, item_id, **parameters)
    data = answer["data"]
    assert (answer["status"], answer["code"], data["code"]) == ("error", code, code)
    assert (data["success"], data["error"]) == (False, answer["error"])
    assert answer["metadata"]["ran"] is (code == "file_not_found")
    if code == "item_not_found":
        assert answer["details"]["nearest"][0] == "rye/file-system/read"
        assert "rye/file-system/read" in answer["error"]


def test_a_tool_that_no_runtime_runs_is_told_which_part_of_it_is_wrong(project):
    put_yaml(project, "my/data", "rye/core/runtimes/python_function_runtime")
    put_tool(project, "my/other", runtime="my/runtimes/bash_script")
    put(project, "tools/my/probe.js", signed(b"// a probe\nexport const x = 1;\n", suffix=".js"))
    for item_id, told in (
        ("my/data", "is a .yaml file"),
        ("my/other", "names the runtime my/runtimes/bash_script"),
        ("my/probe", "is of the type js and names no runtime"),
    ):
        answer = call(project, item_id)
        found = (answer["code"], told in answer["error"], "not here" in answer["error"])
        assert found == ("runtime_missing", True, False), answer


def test_no_caller_hangs_where_memory_or_threads_run_out(project, monkeypatch, here):
    def start(*_args):
        raise RuntimeError("can't start new thread")

    put_tool(project, "my/tool", "raise MemoryError")
    assert call(project, "my/tool")["code"] == "out_of_memory"
    monkeypatch.setattr(executor.run_code, "start", start)
    assert call(project, file_path="a.txt")["code"] == "no_thread"


def test_lone_surrogates_are_answered_in_text_that_utf_8_can_carry(project):
    lone = "a\ud800"
    answers = [
        call(project, file_path=lone),
        call(project, file_path="a.txt", encoding=lone),
        call(project, file_path="a.txt", changes_since=lone),
        call(project, "rye/file-system/write", file_path="b.txt", content=lone),
        call(project, "rye/file-system/edit_lines", file_path="a.txt", changes=[{"line_id": lone, "new_content": lone}]),
        call(project, "rye/primary-tools/rye_execute", item_type="tool", item_id=lone),
        call(project, "rye/primary-tools/rye_search", query=lone),
        call(project, f"rye/{lone}"),
        rye.execute("rye/file-system/read", {lone: 1, "file_path": {lone: lone}}, project_path=project),
        rye.execute("rye/file-system/read", {"file_path": "a.txt"}, project_path=f"{project}{lone}"),
    ]
    for answer in answers:
        json.dumps(answer, ensure_ascii=False).encode()
        assert answer.get("code") != "tool_crashed", answer


FOLDERS = """.ai/config/rye.yaml .ai/config/lsp.yaml .ai/config/web/websearch.yaml .ai/tools/my/tool.py .ai/knowledge/my/page.md
.ai/lockfiles/my/tool@1.0.0.lock.json .ai/trusted_keys/0123456789abcdef.toml .ragix/state.json
sub.txt sub/.git/config .gitignore"""
USERS = ".ai/config/rye.yaml .ai/config/lsp.yaml .ai/trusted_keys/x.toml .ai/trust/decisions.json .ai/trust/marks.json"
# Beside a call of each default tool.
KINDS = {
    "rye_load": {"item_type": "knowledge", "item_id": "my/page"},
    "open_file_chunk": {"path": "a.txt"},
    "workspace_write_patch": {"createFiles": [{"path": "sub.txt", "content": "x"}]},
    "lsp": {"file_path": "a.txt", "action": "diagnostics"},
    "websearch": {"query": "x"},
}


@pytest.mark.parametrize("planted", ["nothing", "project", "user"])
def test_a_dozen_calls_of_each_kind_leave_no_descriptor_open_whatever_is_a_folder(project, user_space, planted):
    tools = rye.toolset(project)
    for root, names in {"project": [(project, FOLDERS)], "user": [(user_space, USERS)]}.get(planted, []):
        for name in names.split():
            (root / name).unlink(missing_ok=True)
            (root / name).mkdir(parents=True)
    targets = [project / name for name in FOLDERS.split()[3:5]]

    def sign():
        with contextlib.suppress(Exception):
            rye.verify(targets, project_path=project)
            rye.sign(targets, project_path=project)
            rye.verify((), project_path=project, trust=[user_space / ".ai/trusted_keys/x.toml"])

    calls = {**ARGUMENTS, **KINDS}
    ways = {name: lambda name=name: tools.call(name, calls[name]) for name in calls} | {"sign": sign}
    grown = {}
    for kind, way in ways.items():
        way()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(12):
            way()
        # Pipes of workers that end soon come and go.
        grown[kind] = len(os.listdir("/proc/self/fd")) - before
    assert {kind: count for kind, count in grown.items() if count > 5} == {}


def test_hints_name_the_users_settings_file_where_it_is(project, user_space):
    error = call(project, "rye/file-system/write", file_path=".envrc", content="x")["error"]
    assert f"{user_space}/.ai/config/rye.yaml" in error

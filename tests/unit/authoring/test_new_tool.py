"""`rye new tool`: what is made is well made, and works."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest

import rye
from support.harness import environment
from support.in_process import rye as shell
from support.signed_tools import MINE, put, signed, trust_key


def new(project, item_id, kind="python"):
    """What is made, or the refusal."""
    return json.loads(shell("new", "tool", item_id, "--runtime", kind, "--json", cwd=project).stdout)


def lints(project, path):
    return json.loads(shell("lint", project / path, "--json", cwd=project).stdout)


def passes_lint_and_its_own_test(project, made, suffix):
    assert lints(project, made["tool"]) == []
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={project.parent}/inner", made["test"]]
    done = subprocess.run(words, cwd=project, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert rye.execute(made["item_id"], project_path=project)["code"] == "unsigned"
    trust_key(MINE)
    put(project, f"tools/{made['item_id']}{suffix}", signed((project / made["tool"]).read_bytes(), suffix=suffix))
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "suffix"), [("python", ".py"), ("bash", ".sh"), ("node", ".js")])
def test_what_is_made_passes_lint_and_its_own_test_and_runs_once_signed(project, kind, suffix):
    if kind == "node" and shutil.which("node") is None:
        pytest.skip("needs node (Debian package nodejs)")
    item_id = "my/deep-er/word_count"
    made = new(project, item_id, kind)
    assert made == {"item_id": item_id, "tool": f".ai/tools/{item_id}{suffix}", "test": "tests/test_my_deep_er_word_count.py"}
    assert "3 passed" in passes_lint_and_its_own_test(project, made, suffix)
    (project / "a.txt").write_text("one two\nthree\n")
    answer = rye.execute(item_id, {"file_path": "a.txt"}, project_path=project)
    assert answer["status"] == "success", answer
    wanted = {"success": True, "output": "2 lines, 3 words", "line_count": 2, "word_count": 3}
    assert {name: answer["data"][name] for name in wanted} == wanted
    assert rye.execute(item_id, {"file_path": "../a.txt"}, project_path=project)["code"] == "path_outside"
    # What may start other programs may do anything, whatever it says of itself.
    assert rye.toolset(project, ["my"]).offers[0].effects["read_only"] is (kind != "bash")


def test_a_rest_tool_passes_lint_and_its_own_test_and_its_request_is_admitted(project):
    made = new(project, "my/latest", "http")
    assert made["tool"] == ".ai/tools/my/latest.yaml"
    assert "1 passed" in passes_lint_and_its_own_test(project, made, ".yaml")
    for parameters, outcome in (({"name": "requests"}, "validation_passed"), ({}, "invalid_parameters")):
        answer = rye.execute("my/latest", parameters, project_path=project, dry_run=True)
        assert answer.get("code", answer["status"]) == outcome


@pytest.mark.parametrize(
    ("code", "kind", "item_ids"),
    [
        ("unknown_kind", "cobol", ["my/tool"]),
        ("reserved_id", "python", ["rye/my/tool"]),
        (
            "bad_item_id",
            "python",
            ["tool", "", "my/_x", "my/.x", "../x/y", "my//x", "my/x.py", "/my/x", "my/x y", "my/ü", "my/9x"],
        ),
        ("bad_item_id", "python", ["my/" + "x" * 300, "my/x\n", "my/a__b"]),
    ],
)
def test_bad_names_and_kinds_are_refused_and_nothing_is_made(project, code, kind, item_ids):
    for item_id in item_ids:
        assert new(project, item_id, kind)["code"] == code, item_id
    assert list(project.iterdir()) == []


@pytest.mark.parametrize(
    "there", [".ai/tools/my/tool.py", ".ai/tools/my/tool.yaml", ".ai/tools/my/Tool.sh", "tests/test_my_tool.py"]
)
def test_an_existing_file_is_never_touched_and_nothing_is_made(project, there):
    path = project / there
    path.parent.mkdir(parents=True)
    path.write_bytes(b"# ---\n")
    assert new(project, "my/tool")["code"] == "item_exists"
    assert [one for one in project.rglob("*") if one.is_file()] == [path]
    assert path.read_bytes() == b"# ---\n"


@pytest.mark.parametrize("name", [".ai", "tests"])
def test_a_link_out_of_the_project_is_not_followed(project, tmp_path, name):
    outside = tmp_path / "outside"
    outside.mkdir()
    (project / name).symlink_to(outside)
    assert new(project, "my/tool")["status"] == "error"
    assert list(outside.iterdir()) == [one for one in project.rglob("*") if one.is_file()] == []


def test_a_tool_for_a_runtime_of_ones_own_has_its_header_and_lints(project):
    """As a new author does it: the refusal's ten lines as they stand, then the header, then one line of the language."""
    refused = new(project, "my/greet", "my/runtimes/lua")
    assert refused["code"] == "unknown_kind"
    assert ["-f, " in one["error"] for one in (refused, new(project, "my/count", "my/runtimes/awk"))] == [False, True]
    runtime = put(project, "tools/my/runtimes/lua.yaml", re.search(r"\{version.*\}", refused["error"])[0].encode())
    made = new(project, "my/greet", "my/runtimes/lua")
    assert (made["tool"], (project / made["tool"]).read_bytes()[:7]) == (".ai/tools/my/greet.lua", b"-- ---\n")
    assert lints(project, made["tool"]) == []
    runtime.write_text(runtime.read_text().replace('".lua"', '".md"'))
    assert "may not claim" in new(project, "my/other", "my/runtimes/lua")["error"]

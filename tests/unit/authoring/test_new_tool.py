"""`rye new tool`: what is made is well made, and works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

import rye
from rye.authoring import lint, new_tool
from rye.errors import ItemError, RyeError, UsageError
from rye.items import spaces
from support.signed_tools import MINE, put, signed, trust_key
from support.terminal import RUNTIME


def passes_lint_and_its_own_test(project, made, suffix):
    tool = project / made.tool
    assert lint.lint(tool.read_bytes(), suffix, made.item_id, tool.stat().st_mode) == []
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={project.parent / 'inner'}", made.test],
        cwd=project,
        env={**os.environ, "PYTHONPATH": os.fspath(RUNTIME)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert rye.execute(made.item_id, project_path=project)["code"] == "unsigned"
    trust_key(MINE)
    put(project, f"tools/{made.item_id}{suffix}", signed(tool.read_bytes(), suffix=suffix))
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "suffix"), [("python", ".py"), ("bash", ".sh"), ("node", ".js")])
def test_what_is_made_passes_lint_and_its_own_test_and_runs_once_signed(project, kind, suffix):
    if kind == "node" and shutil.which("node") is None:
        pytest.skip("needs node (Debian package nodejs)")
    made = new_tool.new_tool("my/deep-er/word_count", project, kind)
    assert made == ("my/deep-er/word_count", f".ai/tools/my/deep-er/word_count{suffix}", "tests/test_my_deep_er_word_count.py")
    assert "3 passed" in passes_lint_and_its_own_test(project, made, suffix)
    (project / "a.txt").write_text("one two\nthree\n")
    answer = rye.execute(made.item_id, {"file_path": "a.txt"}, project_path=project)
    assert answer["status"] == "success", answer
    wanted = {"success": True, "output": "2 lines, 3 words", "line_count": 2, "word_count": 3}
    assert {name: answer["data"][name] for name in wanted} == wanted
    assert rye.execute(made.item_id, {"file_path": "../a.txt"}, project_path=project)["code"] == "path_outside"
    # What may start other programs may do anything, whatever it says of itself.
    assert rye.toolset(project, ["my"]).offers[0].effects["read_only"] is (kind != "bash")


def test_a_rest_tool_passes_lint_and_its_own_test_and_its_request_is_admitted(project):
    made = new_tool.new_tool("my/latest", project, "http")
    assert made.tool == ".ai/tools/my/latest.yaml"
    assert "2 passed" in passes_lint_and_its_own_test(project, made, ".yaml")
    for parameters, outcome in (({"name": "requests"}, "validation_passed"), ({}, "invalid_parameters")):
        answer = rye.execute("my/latest", parameters, project_path=project, dry_run=True)
        assert answer.get("code", answer["status"]) == outcome


@pytest.mark.parametrize(
    ("item_id", "kind", "code"),
    [
        ("my/tool", "cobol", "unknown_kind"),
        ("rye/my/tool", "python", "reserved_id"),
        *(
            (item_id, "python", "bad_item_id")
            for item_id in ("tool", "", "my/_x", "my/.x", "../x/y", "my//x", "my/x.py", "/my/x")
        ),
        *(
            (item_id, "python", "bad_item_id")
            for item_id in ("my/x y", "my/ü", "my/9x", "my/" + "x" * 300, "my/x\n", "my/a__b")
        ),
    ],
)
def test_bad_names_and_kinds_are_refused_and_nothing_is_made(project, item_id, kind, code):
    with pytest.raises(RyeError) as caught:
        new_tool.new_tool(item_id, project, kind)
    assert caught.value.code == code
    assert list(project.iterdir()) == []


@pytest.mark.parametrize(
    "there", [".ai/tools/my/tool.py", ".ai/tools/my/tool.yaml", ".ai/tools/my/Tool.sh", "tests/test_my_tool.py"]
)
def test_an_existing_file_is_never_touched_and_nothing_is_made(project, there):
    path = project / there
    path.parent.mkdir(parents=True)
    path.write_bytes(b"# ---\n")
    with pytest.raises(ItemError) as caught:
        new_tool.new_tool("my/tool", project)
    assert caught.value.code == "item_exists"
    assert [one for one in project.rglob("*") if one.is_file()] == [path]
    assert path.read_bytes() == b"# ---\n"


def test_a_link_out_of_the_project_is_not_followed(project, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (project / ".ai").symlink_to(outside)
    with pytest.raises(RyeError):
        new_tool.new_tool("my/tool", project)
    (project / ".ai").unlink()
    (project / "tests").symlink_to(outside)
    with pytest.raises(RyeError):
        new_tool.new_tool("my/tool", project)
    assert list(outside.iterdir()) == []
    assert not [one for one in (project / ".ai").rglob("*") if one.is_file()]


def test_a_tool_for_a_runtime_of_ones_own_has_its_header_and_lints(project):
    """As a new author does it: the refusal's ten lines as they stand, then the header, then one line of the language."""
    with pytest.raises(UsageError) as caught:
        new_tool.new_tool("my/greet", project, "my/runtimes/lua")
    assert caught.value.code == "unknown_kind"
    folder = project / ".ai/tools/my/runtimes"
    folder.mkdir(parents=True)
    (folder / "lua.yaml").write_text(re.search(r"\{version.*\}", str(caught.value))[0])
    made = new_tool.new_tool("my/greet", project, "my/runtimes/lua")
    raw = (project / made.tool).read_bytes()
    assert (made.tool, raw[:7]) == (".ai/tools/my/greet.lua", b"-- ---\n")
    assert lint.lint(raw, ".lua", "my/greet", search_path=spaces.spaces(project)) == []
    (folder / "lua.yaml").write_text((folder / "lua.yaml").read_text().replace('".lua"', '".md"'))
    with pytest.raises(UsageError, match="may not claim"):
        new_tool.new_tool("my/other", project, "my/runtimes/lua")

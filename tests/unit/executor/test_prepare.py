"""A tool that was judged before is judged anew as soon as anything that decides is other bytes; nothing of it is taken on trust."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import rye
from rye.executor import executor
from rye.items import spaces
from rye.trust import decisions
from support.signed_tools import MINE, OK, STRANGER, put, put_tool, signed, tool_text, trust_key

pytestmark = pytest.mark.usefixtures("here")


def answer(project, item_id="my/tool"):
    return rye.execute(item_id, {}, project_path=project)


def change_tool_in_place(project):
    """As long as before, and with the times that it had."""
    path = project / ".ai/tools/my/tool.py"
    info, data = path.stat(), path.read_bytes()
    changed = data.replace(b"done", b"evil")
    assert changed != data
    with open(path, "r+b") as file:
        file.write(changed)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    return "tampered"


def sign_by_a_stranger(project):
    put(project, "tools/my/tool.py", signed(tool_text("my/tool"), STRANGER))
    return "untrusted_key"


def revoke(project):
    decisions.revoke(MINE.public.digest)
    return "revoked_key"


def damage_the_decisions(project):
    path = Path(decisions.path())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"{")
    return "trust_store_unreadable"


def remove_the_key(project):
    for path in Path(spaces.Space("user", os.environ["USER_SPACE"] + "/.ai").folder, "trusted_keys").glob("*.toml"):
        path.unlink()
    return "untrusted_key"


def remove_the_tool(project):
    (project / ".ai/tools/my/tool.py").unlink()
    return "item_not_found"


def remove_all(project):
    shutil.rmtree(project / ".ai")
    return "item_not_found"


CHANGES = [change_tool_in_place, sign_by_a_stranger, revoke, damage_the_decisions, remove_the_key, remove_the_tool, remove_all]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_what_decides_holds_at_the_very_next_call(project, change):
    trust_key()
    put_tool(project, "my/tool", OK)
    assert [answer(project)["status"] for _ in range(3)] == ["success"] * 3
    code = change(project)
    assert [answer(project).get("code") for _ in range(2)] == [code, code]


def test_an_item_that_comes_into_an_earlier_space_is_found(project):
    trust_key()
    users = Path(os.environ["USER_SPACE"])
    (users / ".ai/tools/my").mkdir(parents=True)
    (users / ".ai/tools/my/tool.py").write_bytes(signed(tool_text("my/tool")))
    assert [answer(project)["item"]["space"] for _ in range(2)] == ["user"] * 2
    put_tool(project, "my/tool")
    assert answer(project)["item"]["space"] == "project"


def test_a_file_that_shadows_a_systems_tool_is_told(project):
    (project / "a.txt").write_text("one\n")
    call = {"item_id": "rye/file-system/read", "parameters": {"file_path": "a.txt"}, "project_path": project}
    assert ["warnings" in rye.execute(**call) for _ in range(2)] == [False, False]
    put(project, "tools/rye/file-system/read.py", b"x = 1\n")
    assert "does not serve rye/file-system/read" in rye.execute(**call)["warnings"][0]


def test_a_call_that_allows_unsigned_tools_does_not_serve_one_that_does_not(project):
    put(project, "tools/my/tool.py", tool_text("my/tool"))
    allowed = executor.Call("tool", "my/tool", {}, str(project), allow_unsigned=True)
    assert [executor.run(allowed)["status"] for _ in range(2)] == ["success"] * 2
    assert answer(project)["code"] == "unsigned"


def test_another_users_space_is_judged_by_its_own_keys(project, tmp_path, monkeypatch):
    trust_key()
    put_tool(project, "my/tool")
    assert [answer(project)["status"] for _ in range(2)] == ["success"] * 2
    monkeypatch.setenv("USER_SPACE", str(tmp_path / "other"))
    assert answer(project)["code"] == "untrusted_key"

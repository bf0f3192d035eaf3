"""What decides about a call counts as it is at that call, though an earlier call found the same item and kept what it found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rye
from rye.trust import decisions, verify
from rye.workspace.workspace import Workspace
from support.signed_tools import MINE, STRANGER, approve, bring_key, put, signed, tool_text, trust_key

SETTLED = 0.05


def tool(word="old", key=MINE):
    return signed(tool_text("my/tool", f'return {{"success": True, "output": "{word}"}}'), key)


def run(project):
    """Call the tool twice, since the second finds what the first kept; return what both said."""
    answers = [rye.execute("my/tool", project_path=project) for _ in range(2)]
    first, second = (one["data"].get("output") or one["code"] for one in answers)
    assert first == second
    return first


@pytest.fixture
def path(project):
    trust_key()
    made = put(project, "tools/my/tool.py", tool())
    time.sleep(SETTLED)
    assert run(project) == "old"
    return made


def in_place(path, text):
    """Write other text of the same size into the same file, and set its times back."""
    before = path.stat()
    with open(path, "r+b") as file:
        file.write(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def by_a_rename(path, text):
    aside = path.with_name("aside")
    aside.write_bytes(text)
    aside.replace(path)


def by_another_folder(path, text):
    shutil.copytree(path.parent, path.parent.with_name("other"))
    (path.parent.with_name("other") / path.name).write_bytes(text)
    path.parent.rename(path.parent.with_name("away"))
    path.parent.with_name("other").rename(path.parent)


def by_a_link(path, text):
    path.with_name("other.py").write_bytes(text)
    path.unlink()
    path.symlink_to("other.py")


@pytest.mark.parametrize("change", [in_place, by_a_rename, by_another_folder, by_a_link])
def test_another_text_of_a_tool_runs_at_the_next_call(project, path, change):
    change(path, tool("new"))
    assert run(project) == "new"


def test_changes_within_one_tick_of_the_clock_of_files_are_noticed(project, path, here):
    texts = {word: tool(word) for word in ("one", "two")}
    for word in (*texts,) * 40:
        in_place(path, texts[word])
        assert rye.execute("my/tool", project_path=project)["data"]["output"] == word


def test_a_tool_without_its_signature_is_refused_at_the_next_call(project, path):
    in_place(path, tool().replace(b"old", b"bad"))
    assert run(project) == "tampered"
    path.unlink()
    assert run(project) == "item_not_found"


def test_the_place_that_is_asked_first_serves_from_the_next_call_on(project, path, here):
    user = Path(os.environ["USER_SPACE"])
    mine = put(user, "tools/my/tool.py", tool("my own"))
    path.unlink()
    path.symlink_to("sub/later.py")
    (path.parent / "sub").mkdir()
    time.sleep(SETTLED)
    assert run(project) == "my own"
    # The link was there, and led nowhere; nothing changes in its own folder.
    (path.parent / "sub/later.py").write_bytes(tool("a link's"))
    assert run(project) == "a link's"
    path.unlink()
    assert run(project) == "my own"
    mine.rename(mine.with_suffix(".yaml"))
    assert run(project) != "my own"


def test_a_key_counts_or_not_from_the_next_call_on(project, path, here):
    document = next(Path(os.environ["USER_SPACE"], ".ai", "trusted_keys").iterdir())
    kept = document.read_bytes()
    document.unlink()
    assert run(project) == "untrusted_key"
    document.write_bytes(kept)
    assert run(project) == "old"
    in_place(document, verify.render_key_document(STRANGER.public, "tester"))
    assert run(project) != "old"
    in_place(document, kept)
    assert run(project) == "old"
    decisions.revoke(MINE.public.digest)
    assert run(project) == "revoked_key"


def test_decisions_that_a_link_hides_are_missed_at_the_next_call(project, path):
    stored = Path(decisions.path())
    stored.parent.mkdir(exist_ok=True)
    time.sleep(SETTLED)
    assert run(project) == "old"
    # As where the disk with the decisions is not mounted.
    stored.symlink_to("/nowhere/decisions.json")
    assert run(project) == "trust_store_unreadable"


def test_an_approval_ends_where_a_folder_above_the_project_moves(tmp_path):
    before, after, link = tmp_path / "before", tmp_path / "after", tmp_path / "link"
    put(before / "project", "tools/my/tool.py", tool(key=STRANGER))
    bring_key(before / "project")
    approve(before / "project", "my/tool")
    link.symlink_to(before)
    time.sleep(SETTLED)
    assert run(link / "project") == "old"
    before.rename(after)
    link.unlink()
    link.symlink_to(after)
    # The project's own folder bears the same stamp.
    assert run(link / "project") == "untrusted_key"


def test_a_folder_above_a_tool_that_leaves_the_space_takes_it_along(project):
    trust_key()
    put(project, "tools/far/my/tool.py", signed(tool_text("far/my/tool", 'return {"success": True, "output": "far"}')))
    far = project / ".ai/tools/far"
    time.sleep(SETTLED)
    assert {rye.execute("far/my/tool", project_path=project)["data"]["output"] for _ in range(2)} == {"far"}
    far.rename(project / "outside")
    far.symlink_to(project / "outside")
    assert rye.execute("far/my/tool", project_path=project)["code"] == "item_not_found"


def test_a_path_too_long_to_ask_for_hides_no_change(project, monkeypatch):
    trust_key()
    name, where = "t" * 60, str(project)
    monkeypatch.chdir(project)
    while (left := 4_060 - len(where)) > 1:
        part = "d" * min(left - 1, 200)
        os.mkdir(part)
        os.chdir(part)
        where += f"/{part}"
    Path(".ai/tools/my").mkdir(parents=True)
    for word in ("old", "new"):
        text = signed(tool_text(f"my/{name}", f'return {{"success": True, "output": "{word}"}}'))
        Path(f".ai/tools/my/{name}.py").write_bytes(text)
        time.sleep(SETTLED)
        assert [rye.execute(f"my/{name}", project_path=where)["data"]["output"] for _ in range(2)] == [word, word]


def test_control_what_an_earlier_call_found_is_kept(project, path, here):
    opened = []
    sys.addaudithook(lambda event, given: opened.append(given[0]) if event == "open" and opened is not None else None)
    time.sleep(SETTLED)
    run(project)
    opened.clear()
    run(project)
    assert f"{project}/.ai" not in opened
    os.utime(path)
    run(project)
    assert f"{project}/.ai" in opened


def test_a_server_notices_that_its_project_is_another_folder(project):
    (project / "a.txt").write_text("mine\n", encoding="utf-8")
    tools = rye.toolset(project_path=project)
    for _ in range(2):
        assert "mine" in tools.call("read", {"file_path": "a.txt"})
    moved = project.with_name("moved")
    project.rename(moved)
    project.mkdir()
    (project / "a.txt").write_text("a stranger's\n", encoding="utf-8")
    for _ in range(2):
        assert "another folder now" in tools.call("read", {"file_path": "a.txt"})
    assert not any(leads_to(fd, project) for fd in map(int, os.listdir("/proc/self/fd")))
    shutil.rmtree(project)
    assert "not usable" in tools.call("read", {"file_path": "a.txt"})
    moved.rename(project)
    assert "mine" in tools.call("read", {"file_path": "a.txt"})
    project.rename(moved)
    # By another way to the same folder: what a link leads to is asked for anew.
    project.symlink_to(moved)
    assert "mine" in tools.call("read", {"file_path": "a.txt"})
    with Workspace(str(project)) as opened:
        assert opened.real == str(moved)


def test_a_host_that_closed_all_descriptors_keeps_those_that_it_opened_since(project, tmp_path):
    (project / "a.txt").write_text("mine\n", encoding="utf-8")
    tools = rye.toolset(project_path=project)
    tools.call("read", {"file_path": "a.txt"})
    # As a process does that becomes a daemon.
    number = next(fd for fd in map(int, os.listdir("/proc/self/fd")) if leads_to(fd, project))
    os.close(number)
    assert "mine" in tools.call("read", {"file_path": "a.txt"})
    number = next(fd for fd in map(int, os.listdir("/proc/self/fd")) if leads_to(fd, project))
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, number)
    assert "mine" in tools.call("read", {"file_path": "a.txt"})
    assert os.write(number, b"still open") == 10
    os.close(number)
    os.close(log)


def leads_to(fd, folder):
    """Tell whether a descriptor is that of a folder."""
    try:
        return os.path.samestat(os.fstat(fd), folder.stat())
    except OSError:
        return False


@pytest.mark.root
@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("mkfs.ext4"), reason="only root mounts a file system, made by mkfs.ext4"
)
def test_where_times_are_whole_seconds_no_id_is_shown_on_another_text(tmp_path):
    image, root = tmp_path / "image", tmp_path / "root"
    root.mkdir()
    image.write_bytes(bytes(1 << 22))
    # Small inodes have no room for parts of a second.
    subprocess.run(["mkfs.ext4", "-q", "-I", "128", "-O", "^has_journal", image], check=True, capture_output=True)
    if subprocess.run(["mount", "-o", "loop", image, root], check=False, capture_output=True).returncode:
        pytest.skip("no loop device can be mounted here")
    try:
        file, seen = root / "a.txt", {}
        file.write_text("0000\n")
        for number in range(1, 6):
            for text in (f"{number:04}", f"{number:04}"[::-1]):
                with open(file, "r+") as opened:
                    opened.write(text)
                said = rye.execute("rye/file-system/read", {"file_path": "a.txt"}, project_path=root)["data"]["output"]
                name, shown = said.removesuffix("\n").split(" ")
                assert (shown, seen.setdefault(name, shown)) == (text, text)
            change = [f"find|{text}|{text[1:]}x"]
            answer = rye.execute("rye/file-system/edit_lines", {"file_path": "a.txt", "changes": change}, project_path=root)
            assert answer["status"] == "success", answer
            rye.execute("rye/file-system/read", {"file_path": "a.txt"}, project_path=root)
    finally:
        subprocess.run(["umount", root], check=True)

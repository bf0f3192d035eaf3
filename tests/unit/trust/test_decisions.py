"""The user's decisions: what counts for which root, kept whole, never lost in silence."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
from pathlib import Path

import pytest

import rye
from rye.errors import RyeError, TrustError, WorkspaceError
from rye.items import spaces
from rye.trust import decisions
from rye.trust.decisions import Root
from rye.trust.verify import render_key_document
from support.signed_tools import MINE, STRANGER, put, put_tool, signed, tool_text

pytestmark = pytest.mark.usefixtures("here")

KEY = "a" * 64
OTHER = "b" * 64


def test_decisions_are_read_back_as_they_were_made(project):
    root = Root.of(project)
    decisions.approve(KEY, root, frozenset({"my/a"}))
    decisions.approve(KEY, root, frozenset({"my/b"}))
    decisions.approve_shadow("rye/x", root)
    decisions.approve_shadow("rye/x", root)
    decided = decisions.load()
    assert decided.approved_keys(root) == {KEY}
    assert decided.announced(root, KEY) == {"my/a", "my/b"}
    assert decided.announced(root, OTHER) == frozenset()
    assert decided.shadowed(root) == {"rye/x"}
    assert (len(decided.approvals), len(decided.shadows)) == (1, 1)
    # Of one root and one key each.
    elsewhere = Root(root.path, root.device, root.inode + 1)
    assert decided.announced(elsewhere, KEY) == decided.shadowed(elsewhere) == frozenset()
    assert decided.approvals[0].time.endswith("Z")
    assert stat.S_IMODE(Path(decisions.path()).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(decisions.path()).parent.stat().st_mode) == 0o700
    assert sorted(os.listdir(Path(decisions.path()).parent)) == ["decisions.json", "decisions.lock"]


def test_a_revocation_drops_the_keys_approvals_and_cannot_be_approved_away(project):
    root = Root.of(project)
    decisions.approve(KEY, root, frozenset())
    decisions.approve(OTHER, root, frozenset())
    decisions.revoke(KEY)
    written = Path(decisions.path()).stat().st_ino
    decisions.revoke(KEY)
    assert Path(decisions.path()).stat().st_ino == written
    assert decisions.load().revoked_keys == {KEY}
    assert len(decisions.load().revoked) == 1
    assert decisions.load().approved_keys(root) == {OTHER}
    with pytest.raises(TrustError) as caught:
        decisions.approve(KEY, root, frozenset())
    assert caught.value.code == "revoked_key"
    assert decisions.load().approved_keys(root) == {OTHER}


@pytest.mark.parametrize("key", ["", "a" * 63, "A" * 64, "g" * 64, "a" * 16])
def test_only_a_full_digest_can_be_decided_on(project, key):
    for decide in (decisions.revoke, lambda key: decisions.approve(key, Root.of(project), frozenset())):
        with pytest.raises(ValueError):
            decide(key)
    assert not Path(decisions.path()).exists()


def test_a_root_is_its_real_path_device_and_inode(project, tmp_path):
    root = Root.of(project)
    assert (root.path, root.inode) == (os.path.realpath(project), project.stat().st_ino)
    (tmp_path / "link").symlink_to(project)
    assert Root.of(tmp_path / "link") == root
    decisions.approve(KEY, root, frozenset())
    decisions.approve_shadow("rye/x", root)
    # Moved: same inode, another path.
    moved = project.rename(tmp_path / "moved")
    # Another folder at the path: same path, another inode.
    project.mkdir()
    for elsewhere in (moved, project):
        assert decisions.load().approved_keys(Root.of(elsewhere)) == frozenset()
        assert decisions.load().shadowed(Root.of(elsewhere)) == frozenset()
    other_device = Root(root.path, root.device + 1, root.inode)
    assert decisions.load().approved_keys(other_device) == frozenset()
    assert decisions.load().approved_keys(root) == {KEY}
    with pytest.raises(WorkspaceError) as caught:
        Root.of(tmp_path / "nowhere")
    assert caught.value.code == "project_not_found"


def approval(**changes):
    return {"key": KEY, "root": "/x", "device": 1, "inode": 2, "ids": ["a"], "time": "t"} | changes


GOOD = {"format": 1, "approvals": [approval()], "shadows": [], "revoked": []}


def test_a_link_to_a_file_that_is_not_there_means_that_nothing_is_trusted(project, tmp_path):
    """The disk to which it leads may not be mounted: a revocation must not be forgotten for that."""
    decisions.revoke(KEY)
    away = tmp_path / "away.json"
    Path(decisions.path()).rename(away)
    Path(decisions.path()).symlink_to(away)
    assert KEY in decisions.load().revoked_keys
    away.rename(tmp_path / "unmounted.json")
    assert rye.execute("rye/file-system/read", {}, project_path=project)["code"] == "trust_store_unreadable"
    with pytest.raises(TrustError):
        decisions.revoke("0" * 64)
    assert Path(decisions.path()).is_symlink()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"null",
        b"1",
        b"[" * 100_000,
        b"{}",
        None,
        json.dumps(GOOD).encode()[:-1] + b', "revoked": []}',
        *(
            json.dumps(record).encode()
            for record in (
                GOOD | {"format": 2},
                GOOD | {"format": True},
                *(GOOD | {name: empty} for name in ("approvals", "shadows", "revoked", "interpreters") for empty in ({}, "")),
                GOOD | {"approvals": [approval(ids="abc")]},
                GOOD | {"approvals": None},
                GOOD | {"approvals": [1]},
                GOOD | {"approvals": [approval(key="a")]},
                GOOD | {"approvals": [approval(key=["a"] * 64)]},
                GOOD | {"approvals": [approval(key=KEY.upper())]},
                GOOD | {"approvals": [approval(device=None)]},
                GOOD | {"approvals": [approval(inode="x")]},
                GOOD | {"approvals": [approval(inode=float("inf"))]},
                GOOD | {"approvals": [approval(ids=None)]},
                GOOD | {"shadows": [{"id": "rye/x"}]},
                GOOD | {"revoked": [KEY]},
                GOOD | {"revoked": [{"key": KEY}]},
                GOOD | {"revoked": [{"key": "x", "time": "t"}]},
                {name: value for name, value in GOOD.items() if name != "revoked"},
            )
        ),
    ],
    ids=range(35),
)
def test_a_broken_file_means_that_nothing_is_trusted(project, content):
    put_tool(project, "my/tool")
    assert rye.execute("my/tool", project_path=project)["status"] == "success"
    Path(decisions.path()).parent.mkdir(parents=True, exist_ok=True)
    if content is None:
        Path(decisions.path()).mkdir()
    else:
        Path(decisions.path()).write_bytes(content)
    for item_id in ("my/tool", "rye/file-system/read"):
        response = rye.execute(item_id, {}, project_path=project)
        assert (response["code"], response["metadata"]["ran"]) == ("trust_store_unreadable", False)
        assert "nothing is trusted" in response["error"]
        assert str(decisions.path()) in response["error"]
    for decide in (decisions.revoke, lambda key: decisions.approve_shadow(key, Root.of(project))):
        with pytest.raises(TrustError):
            decide(KEY)
    if content is None:
        Path(decisions.path()).rmdir()
    else:
        assert Path(decisions.path()).read_bytes() == content
    # Control: the same calls with a good file.
    Path(decisions.path()).write_text(json.dumps(GOOD))
    assert rye.execute("my/tool", project_path=project)["status"] == "success"


def test_a_change_is_noticed_whatever_the_files_times_say(project):
    root = Root.of(project)
    decisions.approve(KEY, root, frozenset())
    before = Path(decisions.path()).stat()
    assert decisions.load().approved_keys(root) == {KEY}
    text = Path(decisions.path()).read_text()
    # In place: same inode, size and time.
    Path(decisions.path()).write_text(text.replace(KEY, OTHER))
    os.utime(decisions.path(), ns=(before.st_atime_ns, before.st_mtime_ns))
    after = Path(decisions.path()).stat()
    assert (before.st_ino, before.st_size, before.st_mtime_ns) == (after.st_ino, after.st_size, after.st_mtime_ns)
    assert decisions.load().approved_keys(root) == {OTHER}


def test_what_cannot_be_kept_is_said_and_changes_nothing(project, user_space, monkeypatch):
    decisions.revoke(KEY)
    before = Path(decisions.path()).read_bytes()
    faults = [OSError(28, "No space left on device")]
    sync = os.fsync

    def failing_once(fd):
        if faults:
            raise faults.pop()
        sync(fd)

    monkeypatch.setattr(decisions.os, "fsync", failing_once)
    with pytest.raises(RyeError) as caught:
        decisions.revoke(OTHER)
    assert caught.value.code == "trust_store_unwritable"
    assert "No space" in caught.value.message
    assert Path(decisions.path()).read_bytes() == before
    assert sorted(os.listdir(Path(decisions.path()).parent)) == ["decisions.json", "decisions.lock"]
    monkeypatch.undo()
    monkeypatch.setenv("USER_SPACE", str(user_space / "file"))
    (user_space / "file").write_bytes(b"")
    with pytest.raises(RyeError, match="Not a directory"):
        decisions.revoke(OTHER)


def test_a_lock_file_that_is_a_link_is_not_followed(project, tmp_path):
    Path(decisions.path()).parent.mkdir(parents=True)
    Path(decisions.path()).with_suffix(".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RyeError) as caught:
        decisions.revoke(KEY)
    assert caught.value.code == "trust_store_unwritable"
    assert not (tmp_path / "elsewhere").exists()


def revoke_some(start):
    for number in range(20):
        decisions.revoke(f"{start + number:064x}")


def test_decisions_of_several_processes_are_all_kept(project):
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=revoke_some, args=(1_000 * at,)) for at in range(1, 5)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    assert len(decisions.load().revoked_keys) == 80


# --- what a call makes of them ---


@pytest.fixture
def approved(project):
    """A project that brings a key and a tool; the user approved the key while only that tool stood there."""
    put(project, "trusted_keys/k.toml", render_key_document(STRANGER.public, "someone"))
    put(project, "tools/my/first.py", signed(tool_text("my/first"), STRANGER))
    assert rye.execute("my/first", project_path=project)["code"] == "untrusted_key"
    decisions.approve(STRANGER.public.digest, Root.of(project), frozenset({"my/first"}))
    return project


def test_an_approved_keys_item_runs(approved):
    response = rye.execute("my/first", project_path=approved)
    assert response["status"] == "success"
    assert "warnings" not in response


def test_a_new_id_under_an_approved_key_is_announced_once(approved):
    put(approved, "tools/my/second.py", signed(tool_text("my/second"), STRANGER))
    first, second = (rye.execute("my/second", project_path=approved) for _ in range(2))
    assert first["status"] == second["status"] == "success"
    (warning,) = first["warnings"]
    assert "First use of my/second" in warning
    assert STRANGER.public.fingerprint in warning
    assert "warnings" not in second
    # A tool under the user's own key needs no announcement.
    put_tool(approved, "my/third")
    assert "warnings" not in rye.execute("my/third", project_path=approved)


def test_where_it_cannot_be_kept_it_is_announced_every_time(approved, monkeypatch):
    put(approved, "tools/my/second.py", signed(tool_text("my/second"), STRANGER))

    def full(*words):
        raise RyeError("trust_store_unwritable", "Full.")

    monkeypatch.setattr(decisions, "approve", full)
    for _ in range(2):
        response = rye.execute("my/second", project_path=approved)
        assert (response["status"], len(response["warnings"])) == ("success", 1)


def test_a_moved_or_replaced_project_asks_again(approved, tmp_path):
    moved = approved.rename(tmp_path / "moved")
    assert rye.execute("my/first", project_path=moved)["code"] == "untrusted_key"
    copy = tmp_path / "project"
    (copy / ".ai").parent.mkdir()
    put(copy, "trusted_keys/k.toml", render_key_document(STRANGER.public, "someone"))
    put(copy, "tools/my/first.py", signed(tool_text("my/first"), STRANGER))
    assert rye.execute("my/first", project_path=copy)["code"] == "untrusted_key"
    # Control: back in its place the approval holds.
    copy.rename(tmp_path / "copy")
    moved.rename(tmp_path / "project")
    assert rye.execute("my/first", project_path=tmp_path / "project")["status"] == "success"


def test_an_approval_is_of_the_full_key_and_needs_its_document(approved):
    other = put(approved, "tools/my/other.py", signed(tool_text("my/other"), MINE))
    put(approved, "trusted_keys/other.toml", render_key_document(MINE.public, "someone"))
    assert rye.execute("my/other", project_path=approved)["code"] == "untrusted_key"
    other.unlink()
    (approved / ".ai/trusted_keys/k.toml").unlink()
    assert rye.execute("my/first", project_path=approved)["code"] == "untrusted_key"


def test_a_shadow_needs_the_users_word_and_a_key_that_counts(approved):
    (approved / "a.txt").write_text("x\n")
    put(approved, "tools/rye/file-system/read.py", signed(tool_text("rye/file-system/read"), STRANGER))

    def call():
        return rye.execute("rye/file-system/read", {"file_path": "a.txt"}, project_path=approved)

    assert call()["item"]["space"] == "system"
    decisions.approve_shadow("rye/file-system/read", Root.of(approved))
    schema = {"type": "object", "properties": {"file_path": {"type": "string"}}}
    put(approved, "tools/rye/file-system/read.py", signed(tool_text("rye/file-system/read", schema=schema), STRANGER))
    response = call()
    assert (response["item"]["space"], response["data"]["output"]) == ("project", "done")
    # That id only, and signed by a key that counts.
    put(approved, "tools/rye/file-system/write.py", signed(tool_text("rye/file-system/write"), STRANGER))
    assert spaces.find("tool", "rye/file-system/write", spaces.spaces(approved)).space == "system"
    decisions.revoke(STRANGER.public.digest)
    assert call()["code"] == "revoked_key"


def test_no_store_of_another_call_counts(project, tmp_path):
    """The document that one call names does not count for a project that brings the same one."""
    document = render_key_document(STRANGER.public, "someone")
    (tmp_path / "k.toml").write_bytes(document)
    (row,) = rye.verify(
        [put(tmp_path, "tools/my/a.py", signed(tool_text("my/a"), STRANGER))], trust=[tmp_path / "k.toml"], project_path=project
    )
    assert row["verdict"] == "valid"
    put(project, "trusted_keys/k.toml", document)
    put(project, "tools/my/a.py", signed(tool_text("my/a"), STRANGER))
    assert rye.execute("my/a", project_path=project)["code"] == "untrusted_key"


# --- revocation ---


def hundred(project):
    put(project, "trusted_keys/k.toml", render_key_document(STRANGER.public, "someone"))
    ids = [f"my/tool{number}" for number in range(100)]
    for item_id in ids:
        put(project, f"tools/{item_id}.py", signed(tool_text(item_id), STRANGER))
    decisions.approve(STRANGER.public.digest, Root.of(project), frozenset(ids))
    return ids


def test_every_item_of_a_revoked_key_is_refused_at_the_very_next_call(project):
    from support.signed_tools import rye as new_process

    ids = hundred(project)
    assert [rye.execute(item_id, project_path=project)["status"] for item_id in ids] == ["success"] * 100
    decisions.revoke(STRANGER.public.digest)
    codes = [rye.execute(item_id, project_path=project)["code"] for item_id in ids]
    assert codes == ["revoked_key"] * 100
    assert {row["verdict"] for row in rye.verify(everything=True, space="project", project_path=project)} == {"revoked_key"}
    done = new_process("verify", "--all", "--space", "project", "--json", cwd=project)
    rows = json.loads(done.stdout)
    assert (done.returncode, len(rows), {row["verdict"] for row in rows}) == (3, 100, {"revoked_key"})
    done = new_process("execute", ids[0], cwd=project)
    assert done.returncode == 3
    assert STRANGER.public.digest in done.stderr.decode()


def _answer(project, ids, pipe):
    for item_id in ids:
        pipe.recv()
        pipe.send(rye.execute(item_id, project_path=project).get("code"))


def test_a_running_process_notices_what_another_one_revokes(project):
    ids = hundred(project)
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    process = multiprocessing.get_context("fork").Process(target=_answer, args=(project, [*ids, *ids], theirs))
    process.start()
    answers = []
    for at in range(200):
        if at == 100:
            decisions.revoke(STRANGER.public.digest)
        ours.send(None)
        answers.append(ours.recv())
    process.join(30)
    assert answers == [None] * 100 + ["revoked_key"] * 100


@pytest.mark.parametrize("place", ["user", "system"])
def test_a_revoked_key_is_refused_wherever_it_came_from(project, place):
    put_tool(project, "my/tool")
    (project / "a.txt").write_text("x\n")
    item_id, digest = {
        "user": ("my/tool", MINE.public.digest),
        "system": ("rye/file-system/read", rye.trust.verify.SYSTEM_KEY_DIGEST),
    }[place]
    parameters = {"file_path": "a.txt"} if place == "system" else {}
    assert rye.execute(item_id, parameters, project_path=project)["status"] == "success"
    decisions.revoke(digest)
    assert rye.execute(item_id, parameters, project_path=project)["code"] == "revoked_key"

"""The user's decisions: what counts for which root, kept whole, never lost in silence."""

import json
import multiprocessing
import os
import shutil
import stat
from pathlib import Path

import pytest

import rye
from rye.errors import RyeError, TrustError
from rye.trust import decisions
from support.signed_tools import STRANGER, approve, bring_key, put, put_tool, signed, tool_text
from support.signed_tools import rye as new_process

pytestmark = pytest.mark.usefixtures("here")

KEY = "a" * 64
OTHER = "b" * 64


def test_decisions_lie_where_only_the_user_reads_and_hold_for_one_root(project):
    root = decisions.Root.of(project)
    decisions.approve(KEY, root, frozenset({"my/a"}))
    decisions.approve(KEY, root, frozenset({"my/b"}))
    for name in ("rye/x", "rye/y", "rye/x"):
        decisions.approve_shadow(name, root)
        decisions.approve_interpreter(name, "file", root)
    decided = decisions.load()
    assert (len(decided.approvals), len(decided.shadows), len(decided.interpreters)) == (1, 2, 2)

    def of(where, key=KEY):
        return decided.approved_keys(where), decided.announced(where, key), decided.shadowed(where)

    assert of(root) == ({KEY}, {"my/a", "my/b"}, {"rye/x", "rye/y"})
    assert of(root, OTHER)[1] == frozenset()
    for device, inode in ((0, 1), (1, 0)):
        assert {*of(decisions.Root(root.path, root.device + device, root.inode + inode))} == {frozenset()}
    assert decided.approvals[0].time.endswith("Z")
    folder = Path(decisions.path()).parent
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, Path(decisions.path()))}
    assert modes == {"trust": 0o700, "decisions.json": 0o600}
    assert sorted(os.listdir(folder)) == ["decisions.json", "decisions.lock"]


def test_a_revocation_drops_the_keys_approvals(project):
    root = decisions.Root.of(project)
    for key in (KEY, OTHER):
        decisions.approve(key, root, frozenset())
    decisions.revoke(KEY)
    decisions.revoke(KEY)
    assert (decisions.load().revoked_keys, len(decisions.load().revoked)) == ({KEY}, 1)
    with pytest.raises(TrustError) as caught:
        decisions.approve(KEY, root, frozenset())
    assert caught.value.code == "revoked_key"
    assert decisions.load().approved_keys(root) == {OTHER}


@pytest.mark.parametrize("key", ["", "a" * 63, "A" * 64, "g" * 64, "a" * 16])
def test_only_a_full_digest_can_be_decided_on(project, key):
    for decide in (decisions.revoke, lambda key: decisions.approve(key, decisions.Root.of(project), frozenset())):
        with pytest.raises(ValueError):
            decide(key)
    assert not Path(decisions.path()).exists()


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


BROKEN = [
    *({name: empty} for name in ("approvals", "shadows", "revoked", "interpreters") for empty in ({}, "")),
    *({"format": other} for other in (2, True)),
    *({"approvals": wrong} for wrong in (None, [1])),
    *({"approvals": [approval(key=key)]} for key in ("a", ["a"] * 64, KEY.upper())),
    *({"approvals": [approval(ids=ids)]} for ids in ("abc", None)),
    *({"approvals": [approval(inode=inode)]} for inode in ("x", float("inf"))),
    {"approvals": [approval(device=None)]},
    {"shadows": [{"id": "rye/x"}]},
    *({"revoked": [wrong]} for wrong in (KEY, {"key": KEY}, {"key": "x", "time": "t"})),
]


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"\xff", b"[]", b"null", b"1", b"[" * 100_000, b"{}", None),
        json.dumps(GOOD).encode()[:-1] + b', "revoked": []}',
        json.dumps({name: value for name, value in GOOD.items() if name != "revoked"}).encode(),
        *(json.dumps(GOOD | wrong).encode() for wrong in BROKEN),
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
        assert ("nothing is trusted" in response["error"], str(decisions.path()) in response["error"]) == (True, True)
    for decide in (decisions.revoke, lambda key: decisions.approve_shadow(key, decisions.Root.of(project))):
        with pytest.raises(TrustError):
            decide(KEY)
    if content is None:
        Path(decisions.path()).rmdir()
    else:
        assert Path(decisions.path()).read_bytes() == content
    # Control: the same calls with a good file.
    Path(decisions.path()).write_text(json.dumps(GOOD))
    assert rye.execute("my/tool", project_path=project)["status"] == "success"


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
    assert (caught.value.code, "No space" in caught.value.message) == ("trust_store_unwritable", True)
    assert Path(decisions.path()).read_bytes() == before
    assert sorted(os.listdir(Path(decisions.path()).parent)) == ["decisions.json", "decisions.lock"]
    monkeypatch.undo()
    monkeypatch.setenv("USER_SPACE", str(user_space / "file"))
    (user_space / "file").write_bytes(b"")
    with pytest.raises(RyeError, match="Not a directory"):
        decisions.revoke(OTHER)
    # A lock file that is a link is not followed.
    monkeypatch.setenv("USER_SPACE", str(user_space / "other"))
    put(user_space / "other", "trust/decisions.lock", b"").unlink()
    Path(decisions.path()).with_suffix(".lock").symlink_to(user_space / "elsewhere")
    with pytest.raises(RyeError, match="could not be stored"):
        decisions.revoke(KEY)
    assert not (user_space / "elsewhere").exists()


def revoke_some(start):
    for number in range(20):
        decisions.revoke(f"{start + number:064x}")


def test_decisions_of_several_processes_are_all_kept(project):
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.map_async(revoke_some, range(1_000, 5_000, 1_000), chunksize=1).get(60)
    assert len(decisions.load().revoked_keys) == 80


@pytest.fixture
def approved(project):
    """A project that brings a key and a tool; the user approved the key while only that tool stood there."""
    bring_key(project)
    put(project, "tools/my/first.py", signed(tool_text("my/first"), STRANGER))
    approve(project, "my/first")
    assert "warnings" not in rye.execute("my/first", project_path=project)
    return project


def test_a_new_id_under_an_approved_key_is_announced_once_where_that_can_be_kept(approved, monkeypatch):
    put(approved, "tools/my/second.py", signed(tool_text("my/second"), STRANGER))

    def full(*words):
        raise RyeError("trust_store_unwritable", "Full.")

    monkeypatch.setattr(decisions, "approve", full)
    assert [len(rye.execute("my/second", project_path=approved)["warnings"]) for _ in range(2)] == [1, 1]
    monkeypatch.undo()
    (warning,) = rye.execute("my/second", project_path=approved)["warnings"]
    assert ("First use of my/second" in warning, STRANGER.public.fingerprint in warning) == (True, True)
    assert "warnings" not in rye.execute("my/second", project_path=approved)
    # A tool under the user's own key needs no announcement.
    put_tool(approved, "my/third")
    assert "warnings" not in rye.execute("my/third", project_path=approved)


def test_a_moved_or_replaced_project_asks_again(approved, tmp_path):
    (tmp_path / "link").symlink_to(approved)
    assert rye.execute("my/first", project_path=tmp_path / "link")["status"] == "success"
    moved = approved.rename(tmp_path / "moved")
    assert rye.execute("my/first", project_path=moved)["code"] == "untrusted_key"
    copy = Path(shutil.copytree(moved, approved))
    assert rye.execute("my/first", project_path=copy)["code"] == "untrusted_key"
    # Control: back in its place the approval holds.
    copy.rename(tmp_path / "copy")
    moved.rename(approved)
    assert rye.execute("my/first", project_path=approved)["status"] == "success"
    (approved / f".ai/trusted_keys/{STRANGER.public.fingerprint}.toml").unlink()
    assert rye.execute("my/first", project_path=approved)["code"] == "untrusted_key"


def test_what_another_process_decides_counts_at_the_very_next_call(approved, user_space):
    # Also in place, with the same size and time.
    store = Path(decisions.path())
    before, text = store.stat(), store.read_text()
    store.write_text(text.replace(STRANGER.public.digest, OTHER))
    os.utime(store, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (store.stat().st_ino, store.stat().st_size) == (before.st_ino, before.st_size)
    assert rye.execute("my/first", project_path=approved)["code"] == "untrusted_key"
    store.write_text(text)
    put(approved, "tools/my/second.py", signed(tool_text("my/second"), STRANGER))
    ids = ("my/first", "my/second")
    assert [rye.execute(item_id, project_path=approved).get("code") for item_id in ids] == [None, None]
    put(user_space, "config/rye.yaml", b"signing: {agents: allow}\n")
    assert new_process("trust", "revoke", STRANGER.public.digest, cwd=approved).returncode == 0
    assert [rye.execute(item_id, project_path=approved).get("code") for item_id in ids] == ["revoked_key"] * 2
    rows = rye.verify(everything=True, space="project", project_path=approved)
    assert [row["verdict"] for row in rows] == ["revoked_key"] * 2

"""A call known from before is answered as before only while nothing that it stands on has changed, however the change is hidden.

The control of each hidden change: who looks at size and mtime alone does not see it.
"""

from __future__ import annotations

import os
import random
import shutil
import time

import pytest

import rye
from rye import decisions, executor, lockfiles, spaces, standing
from signed_tools import put, put_tool

READ = "rye/file-system/read"


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(standing, "_SETTLED_NS", 50_000_000)


def settle():
    time.sleep(0.08)


def naive(place):
    """Return what a cache by size and mtime looks at."""
    try:
        info = os.stat(place)
    except OSError:
        return (0,)
    return info.st_size, info.st_mtime_ns


def watched(*places):
    with standing.watched() as kept:
        for place in places:
            standing.note(str(place), found=os.path.exists(place))
    return kept


def in_place(file, at=None):
    """Change a byte of a file, not its size, and put its times back."""
    before, data = file.stat(), bytearray(file.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 1
    with open(file, "r+b") as stream:
        stream.write(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(file):
    """Put another file of the same size and mtime there."""
    before = file.stat()
    other = file.with_name("other")
    other.write_bytes(bytes(reversed(file.read_bytes())))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)


def another_folder(file):
    """Put a folder of the same mtime with a file of the same size and mtime in the folder's place."""
    folder = file.parent
    shutil.copytree(folder, folder.with_name("copy"))
    replaced(folder.with_name("copy") / file.name)
    times = folder.stat()
    folder.rename(folder.with_name("old"))
    folder.with_name("copy").rename(folder)
    os.utime(folder, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize("change", [in_place, replaced, another_folder])
def test_a_hidden_change_is_seen_and_size_and_mtime_do_not_show_it(tmp_path, change):
    file = tmp_path / "folder/a.txt"
    file.parent.mkdir()
    file.write_bytes(b"one and two")
    settle()
    kept, stamp = watched(file), naive(file)
    assert kept.hold()
    change(file)
    assert not kept.hold()
    assert naive(file) == stamp


def test_what_comes_goes_or_is_shut_is_seen(tmp_path):
    folder, file, missing = tmp_path / "keys", tmp_path / "keys/a.toml", tmp_path / "none/at/all"
    folder.mkdir()
    file.write_bytes(b"key")
    settle()
    for change in (
        lambda: (folder / "b.toml").write_bytes(b"new"),
        file.unlink,
        lambda: (tmp_path / "none/at/all").mkdir(parents=True),
        lambda: folder.chmod(0o500),
        lambda: (folder.chmod(0o700), folder.rename(tmp_path / "elsewhere"), folder.symlink_to(tmp_path / "elsewhere")),
    ):
        settle()
        kept = watched(folder, file, missing)
        assert kept.hold()
        change()
        assert not kept.hold()


def test_what_is_too_new_or_changes_meanwhile_is_not_kept(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"new")
    assert not watched(file).hold()
    settle()
    with standing.watched() as kept:
        standing.note(str(file), found=True)
        file.write_bytes(b"meanwhile")
    settle()
    assert not kept.hold()
    assert watched(file).hold()
    os.utime(file, ns=(time.time_ns() + 10**12, time.time_ns() + 10**12))
    settle()
    assert not watched(file).hold()


def test_a_place_that_seemed_missing_and_is_there_is_not_relied_on(tmp_path):
    """A link that leads outside: the way beneath the folder is closed, but a plain look finds something."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "outside")
    settle()
    with standing.watched() as kept:
        standing.note(str(tmp_path / "link"), found=False)
    assert not kept.hold()


def test_what_holds_is_what_stood_there(tmp_path):
    """Random changes, hidden as well as can be: as long as all holds, listing and contents are as they were."""
    seed = int(os.environ.get("SEED") or random.randrange(1 << 32))
    print(f"SEED={seed}")
    chance = random.Random(seed)
    names = ["a", "b", "c"]
    for number in range(12):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name in names:
            (folder / name).write_bytes(name.encode() * 8)
        settle()
        kept = watched(folder, *(folder / name for name in names))
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert kept.hold()
        for _ in range(4):
            file, times = folder / chance.choice(names), folder.stat()
            if file.exists():
                chance.choice([in_place, replaced, lambda file: file.unlink(), lambda file: file.read_bytes()])(file)
            os.utime(folder, ns=(times.st_atime_ns, times.st_mtime_ns))
            now = {path.name: path.read_bytes() for path in folder.iterdir()}
            assert not kept.hold() or now == before


# --- calls ---


@pytest.fixture
def bundle(tmp_path, monkeypatch):
    """A copy of the system bundle that serves in its place."""
    copy = tmp_path / "bundle/.ai"
    shutil.copytree(spaces.system_folder(), copy, ignore=shutil.ignore_patterns("__pycache__", "cache"))
    monkeypatch.setattr(spaces, "system_folder", lambda: copy)
    return copy


@pytest.fixture
def admitted(monkeypatch):
    """The ids that went the whole way, in order."""
    ids, real = [], executor._admit
    monkeypatch.setattr(executor, "_admit", lambda call, response: (ids.append(call.item_id), real(call, response))[1])
    return ids


@pytest.fixture
def warm(project, bundle, admitted, user_space):
    """A project in which the next call of `read` is known from before."""
    (project / "a.txt").write_bytes(b"x\n")
    decisions.revoke("0" * 64)
    (project / ".ai/tools/rye").mkdir(parents=True)
    assert read(project)["status"] == "success"
    settle()
    assert [read(project)["status"] for _ in range(3)] == ["success"] * 3
    assert admitted == [READ, READ]
    return project


def read(project):
    return rye.execute(READ, {"file_path": "a.txt"}, project_path=project)


def test_a_known_call_answers_as_the_first_did(warm, admitted):
    executor._known.clear()
    first = read(warm)
    known = read(warm)
    for response in (first, known):
        del response["metadata"]
    assert known == first
    assert known["chain"]
    known["chain"].clear()
    known["item"].clear()
    assert read(warm)["chain"] == first["chain"]


FILES = (
    "tools/rye/file-system/read.py", "tools/rye/core/runtimes/python_function_runtime.yaml", "bundles/rye/manifest.yaml",
)  # fmt: skip


@pytest.mark.parametrize("change", [in_place, replaced, another_folder])
@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_of_the_bundle_is_refused_at_the_next_call(warm, bundle, name, change):
    change(bundle / name)
    refused = read(warm)
    assert (refused["status"], refused["data"]) == ("error", None)
    assert refused["code"] in ("tampered", "malformed", "unsigned", "untrusted_key", "misplaced")


@pytest.mark.parametrize("name", FILES)
def test_control_by_size_and_mtime_it_would_not_be(warm, bundle, monkeypatch, name):
    monkeypatch.setattr(standing, "state_of", naive)
    monkeypatch.setattr(standing, "_is_settled", lambda state, began: True)
    executor._known.clear()
    read(warm)
    in_place(bundle / name)
    assert read(warm)["status"] == "success"


def revoke(project, bundle):
    decisions.revoke(rye.trust.SYSTEM_KEY_DIGEST)


def spoil_decisions(project, bundle):
    in_place(decisions.path(), at=0)


def remove_key(project, bundle):
    next((bundle / "trusted_keys").glob("*.toml")).unlink()


def lock_elsewhere(project, bundle):
    tool, chain = executor.chain_of(READ, str(project))
    chain[1]["integrity"] = "0" * 64
    lockfiles.write(str(project), tool.id, tool.version, chain)


def lock_by_the_user(project, bundle):
    lock_elsewhere(project, bundle)
    target = decisions.path().parents[1] / "lockfiles"
    shutil.move(project / ".ai/lockfiles", target)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (revoke, "revoked_key"),
        (spoil_decisions, "trust_store_unreadable"),
        (remove_key, "untrusted_key"),
        (lock_elsewhere, "lockfile_mismatch"),
        (lock_by_the_user, "lockfile_mismatch"),
    ],
)
def test_what_forbids_it_holds_at_the_next_call(warm, bundle, change, code):
    change(warm, bundle)
    refused = read(warm)
    assert (refused["status"], refused.get("code"), refused["data"]) == ("error", code, None)


def test_a_file_in_its_place_is_told_and_serves_once_the_user_says_so(warm, bundle):
    put(warm, "tools/rye/file-system/read.py", b"raise SystemExit\n")
    response = read(warm)
    assert response["status"] == "success"
    assert "does not serve" in response["warnings"][0]
    decisions.approve_shadow(READ, decisions.Root.of(warm))
    assert read(warm)["code"] == "unsigned"
    (warm / ".ai/tools/rye/file-system/read.py").unlink()
    assert read(warm)["status"] == "success"


def test_another_users_space_is_another_ground(warm, tmp_path, monkeypatch):
    monkeypatch.setenv("USER_SPACE", str(tmp_path / "another"))
    assert read(warm)["status"] == "success"
    decisions.revoke(rye.trust.SYSTEM_KEY_DIGEST)
    assert read(warm)["code"] == "revoked_key"
    monkeypatch.delenv("USER_SPACE")
    monkeypatch.setenv("HOME", str(tmp_path / "third"))
    assert read(warm)["status"] == "success"


def test_tools_of_others_and_relative_places_go_the_whole_way_each_time(warm, admitted, monkeypatch):
    put_tool(warm, "my/tool")
    monkeypatch.chdir(warm)
    for _ in range(2):
        settle()
        rye.execute("my/tool", project_path=warm)
        rye.execute(READ, {"file_path": "a.txt"}, project_path=".")
    assert admitted[-4:] == ["my/tool", READ] * 2

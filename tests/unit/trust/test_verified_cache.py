"""Verdicts known before: a cache that only its owner fills, and whose loss or corruption costs a check and nothing else."""

from __future__ import annotations

import hashlib
import os
import socket
import stat

import pytest

import rye
from rye.executor import admission
from rye.trust import verified_cache
from rye.trust.verified_cache import Verdicts
from support.signed_tools import MINE, STRANGER, put, put_tool, signed, tool_text, trust_key

pytestmark = pytest.mark.usefixtures("here")

STATE = "5" * 64
GOOD = hashlib.sha256(b"good").hexdigest()
OTHER = hashlib.sha256(b"other").hexdigest()


@pytest.fixture
def cache(user_space):
    """The file of a state that knows GOOD."""
    Verdicts(STATE).add(GOOD)
    (file,) = (user_space / ".ai/trust").iterdir()
    return file


def knows(digest=GOOD):
    return digest in Verdicts(STATE)


def test_what_was_added_is_known_to_the_next_process_under_the_same_state_only(cache):
    assert knows()
    assert not knows(OTHER)
    assert GOOD not in Verdicts("6" * 64)
    assert GOOD not in Verdicts(STATE[:-1] + "4")
    assert STATE in cache.name
    assert stat.S_IMODE(cache.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.parent.stat().st_mode) == 0o700
    Verdicts(STATE).add(OTHER)
    assert cache.read_text() == f"{GOOD}\n{OTHER}\n"
    Verdicts(STATE).add(OTHER)
    assert cache.read_text().count("\n") == 2


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o700, 0o400, 0o602, 0o4600])
def test_a_file_of_another_mode_is_not_believed_nor_added_to(cache, mode):
    cache.chmod(mode)
    content = cache.read_bytes()
    known = Verdicts(STATE)
    assert GOOD not in known
    known.add(OTHER)
    assert cache.read_bytes() == content
    # Control: the mode alone decided.
    cache.chmod(0o600)
    assert knows()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_owner_is_not_believed_nor_added_to(cache):
    os.chown(cache, 65_534, -1)
    content = cache.read_bytes()
    known = Verdicts(STATE)
    assert GOOD not in known
    known.add(OTHER)
    assert cache.read_bytes() == content
    os.chown(cache, 0, -1)
    assert knows()


def as_link(cache, tmp_path):
    target = tmp_path / "target"
    target.write_bytes(cache.read_bytes())
    target.chmod(0o600)
    cache.unlink()
    cache.symlink_to(target)
    return target


def as_fifo(cache, tmp_path):
    cache.unlink()
    os.mkfifo(cache, 0o600)


def as_folder(cache, tmp_path):
    cache.unlink()
    cache.mkdir(mode=0o600)


def as_socket(cache, tmp_path):
    cache.unlink()
    here = os.getcwd()
    os.chdir(cache.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(cache.name[:90])
    finally:
        os.chdir(here)
    cache.with_name(cache.name[:90]).rename(cache)


def as_huge(cache, tmp_path):
    with cache.open("ab") as file:
        file.truncate(1 << 30)


@pytest.mark.parametrize("change", [as_link, as_fifo, as_folder, as_socket, as_huge])
def test_what_is_no_plain_file_is_not_believed_nor_followed(cache, tmp_path, change):
    target = change(cache, tmp_path)
    before = target.read_bytes() if target else None
    known = Verdicts(STATE)
    assert GOOD not in known
    known.add(OTHER)
    assert target is None or target.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 1_000,
        b"\xff" * 64 + b"\n",
        b"[]",
        b"1\n2\n",
        b" " + GOOD.encode(),
        GOOD.encode() + b"0\n",
        GOOD.upper().encode(),
    ],
)
def test_corrupt_content_is_a_fresh_check(cache, content):
    cache.write_bytes(content)
    assert not knows()
    # What it is worth: a torn line costs that line.
    cache.write_bytes(content[:100] + b"\n" + GOOD.encode() + b"\n")
    assert knows()


def test_it_does_not_grow_without_end(cache, monkeypatch):
    monkeypatch.setattr(verified_cache, "_KEPT", 5)
    known = Verdicts(STATE)
    for number in range(12):
        known.add(f"{number:064x}")
    assert cache.read_text().count("\n") <= 5
    assert f"{11:064x}" in known
    assert knows(f"{11:064x}")


def test_what_was_found_last_is_known_when_it_is_full(cache, monkeypatch):
    """To forget everything would verify all items anew at each search of more than that many."""
    monkeypatch.setattr(verified_cache, "_KEPT", 100)
    known = Verdicts(STATE)
    for number in range(101):
        known.add(f"{number:064x}")
    assert sum(f"{number:064x}" in known for number in range(101)) >= 49
    assert sum(f"{number:064x}" in Verdicts(STATE) for number in range(101)) >= 49


def test_states_of_long_ago_are_forgotten(user_space):
    for number in range(40):
        Verdicts(f"{number:064x}").add(GOOD)
        for file in (user_space / ".ai/trust").iterdir():
            os.utime(file, ns=(0, file.stat().st_mtime_ns - 10**9))
    kept = os.listdir(user_space / ".ai/trust")
    assert len(kept) <= 16
    assert GOOD in Verdicts(f"{39:064x}")
    assert GOOD not in Verdicts(f"{0:064x}")


def test_where_nothing_can_be_kept_nothing_fails(user_space, monkeypatch):
    (user_space / "file").write_bytes(b"")
    monkeypatch.setenv("USER_SPACE", str(user_space / "file"))
    known = Verdicts(STATE)
    known.add(GOOD)
    assert GOOD in known


# --- what a call makes of it ---


@pytest.fixture
def fresh():
    """Return a function that makes this process forget what it knows, as a new one would."""

    def forget():
        for known in (admission._ready, admission._read, admission._primitives, admission._manifests, admission._verdicts):
            known.clear()

    forget()
    yield forget
    forget()


@pytest.fixture
def checks(monkeypatch):
    """Collect the signatures that are really checked."""
    from rye.trust import verify

    seen = []
    check = verify.check
    monkeypatch.setattr(verify, "check", lambda key, signed: (seen.append(signed.digest), check(key, signed))[1])
    return seen


def test_a_cold_call_checks_no_signature_twice(project, user_space, fresh, checks):
    put_tool(project, "my/tool")
    assert rye.execute("my/tool", project_path=project)["status"] == "success"
    assert len(checks) == 4  # the tool, the runtime, the primitive, the bundle's manifest
    fresh()
    assert rye.execute("my/tool", project_path=project)["status"] == "success"
    assert len(checks) == 4
    # A corrupt cache only costs the check.
    for file in (user_space / ".ai/trust").glob("verdicts-*"):
        file.write_bytes(b"\xff\n" * 100)
    fresh()
    assert rye.execute("my/tool", project_path=project)["status"] == "success"
    assert len(checks) == 8


def test_another_state_of_trust_is_checked_afresh(project, fresh, checks):
    put_tool(project, "my/tool")
    rye.execute("my/tool", project_path=project)
    trust_key(STRANGER)
    fresh()
    rye.execute("my/tool", project_path=project)
    assert len(checks) == 8


def test_a_known_file_is_still_refused_when_its_key_does_not_count_or_it_stands_elsewhere(project, user_space, fresh):
    from rye.trust import decisions

    path = put_tool(project, "my/tool")
    assert rye.execute("my/tool", project_path=project)["status"] == "success"
    put(project, "tools/my/other.py", path.read_bytes())
    fresh()
    assert rye.execute("my/other", project_path=project)["code"] == "misplaced"
    path.write_bytes(path.read_bytes().replace(b"done", b"d0ne"))
    assert rye.execute("my/tool", project_path=project)["code"] == "tampered"
    put_tool(project, "my/tool")
    decisions.revoke(MINE.public.digest)
    fresh()
    assert rye.execute("my/tool", project_path=project)["code"] == "revoked_key"


def forged(item_id):
    """Return an item whose line names the user's key and the right digest, with a signature that nobody made."""
    raw = signed(tool_text(item_id))
    fields = raw.split(b":", 7)
    fields[-2] = b"A" * 86 + b"=="
    return b":".join(fields)


def test_no_project_can_supply_one(project, user_space, fresh):
    trust_key()
    raw = forged("my/forged")
    put(project, "tools/my/forged.py", raw)
    assert rye.execute("my/forged", project_path=project)["code"] == "bad_signature"
    line = f"{hashlib.sha256(raw).hexdigest()}\n".encode()
    state = admission.Admission(rye.items.spaces.spaces(project)).state
    for place in ("trust", "cache", "state", "cache/trust"):
        put(project, f"{place}/verdicts-{state}.txt", line).chmod(0o600)
    fresh()
    assert rye.execute("my/forged", project_path=project)["code"] == "bad_signature"
    # Control: the user's own file is believed, which is why nobody else may write it.
    put(user_space, f"trust/verdicts-{state}.txt", line).chmod(0o600)
    fresh()
    assert rye.execute("my/forged", project_path=project)["status"] == "success"
    (user_space / f".ai/trust/verdicts-{state}.txt").chmod(0o644)
    fresh()
    assert rye.execute("my/forged", project_path=project)["code"] == "bad_signature"

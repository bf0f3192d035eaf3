"""Changed folders and changed signatures: none is accepted. `RYE_TEST_TIMES=100` flips 100 times as many bits."""

from __future__ import annotations

import base64
import copy
import json
import shutil

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from rye.folders import oms, signing
from rye.trust import verify
from support.harness import exchange, times
from support.signed_tools import key_pair

# What the format lets a writer leave out.
FREE = {("dsseEnvelope", "signatures", 0, "keyid"), ("verificationMaterial", "tlogEntries")}
FILES = {"a.md": b"one\n", "sub/b c": b"two\n", "sub/\xfc": bytes(range(256))}
OF_FILES = {
    "a byte": lambda folder: (folder / "a.md").write_bytes(b"onf\n"),
    "a file added": lambda folder: (folder / "sub/.hidden").write_bytes(b""),
    "a file removed": lambda folder: (folder / "sub/b c").unlink(),
    "a file renamed": lambda folder: (folder / "a.md").rename(folder / "a.md "),
    "two files swapped": lambda folder: exchange(folder / "a.md", folder / "sub/b c"),
    "a link for a file": lambda folder: (folder / "a.md").symlink_to((folder / "a.md").rename(folder.parent / "target")),
}


def verdict(folder, public):
    return signing.verify(str(folder), verify.TrustStore(), key=str(public))[0]["verdict"]


def places(value, path=()):
    """Yield the path of each field and list entry."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        yield (*path, name)
        yield from places(one, (*path, name))


def others(value):
    """Return other values, mostly of the same type."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        return [f"{value}x", f"{value.upper()}A", chr(ord(value[0]) ^ 1) + value[1:] if value else "y"]
    return [[], [*value, *(value or ["x"])], {"a": value}] if isinstance(value, list) else [None, [], 7, "x"]


def changed(value):
    """Yield the JSON of a value with each of its fields changed, left out, or standing there twice."""
    for path in places(value):
        *above, last = path
        if path in FREE:
            continue
        for what in [*others(find(value, path)), "left out"]:
            made = copy.deepcopy(value)
            find(made, above)[last] = what
            if what == "left out":
                del find(made, above)[last]
            yield path, what, json.dumps(made)
        if isinstance(last, str):
            made = copy.deepcopy(value)
            find(made, above)["DOUBLED"] = find(value, path)
            yield path, "doubled", json.dumps(made).replace('"DOUBLED"', json.dumps(last))


def find(value, path):
    for name in path:
        value = value[name]
    return value


def bundles(text, key, rng):
    """Yield other bundles, with what is other about them."""
    bundle = json.loads(text)
    payload = base64.b64decode(bundle["dsseEnvelope"]["payload"])
    yield from changed(bundle)
    for path, what, statement in changed(json.loads(payload)):
        yield path, what, json.dumps(with_payload(bundle, statement.encode()))
    stranger = ec.generate_private_key(ec.SECP256R1())
    manifest = oms.check(oms.read(text), oms.read_key(oms.pem_of(key.public_key())))
    forged = json.loads(oms.build(manifest, stranger))
    yield "signed by another", "", json.dumps({**forged, "verificationMaterial": bundle["verificationMaterial"]})
    mine = json.loads(oms.build(oms.FolderManifest("x", {"a": "0" * 64}), key))
    yield "another's statement", "", json.dumps(with_payload(bundle, base64.b64decode(mine["dsseEnvelope"]["payload"])))
    for bit in rng.sample(range(len(text) * 8), times(100)):
        data = bytearray(text)
        data[bit // 8] ^= 1 << bit % 8
        if data.translate(None, b" \t\n\r") != text.translate(None, b" \t\n\r"):
            yield bit, "flipped", data


def with_payload(bundle, payload):
    return {**bundle, "dsseEnvelope": {**bundle["dsseEnvelope"], "payload": base64.b64encode(payload).decode()}}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["P-256", "P-384", "P-521", "Ed25519"])
def test_no_mutant_is_accepted(tmp_path, rng, kind):
    private, public = key_pair(tmp_path, kind)
    folder, kept = tmp_path / "folder", tmp_path / "kept"
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    assert signing.sign(str(folder), "/", key=str(private))["status"] == "signed"
    shutil.copytree(folder, kept)
    for what, change in OF_FILES.items():
        # The control: what is changed next was good.
        assert verdict(folder, public) == "valid"
        change(folder)
        assert verdict(folder, public) != "valid", what
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)
    text = (folder / "oms.sig").read_bytes()
    key = signing._private(str(private))
    found = [*bundles(text, key, rng)]
    assert len(found) > 200
    for about, what, made in found:
        (folder / "oms.sig").write_bytes(made if isinstance(made, bytearray) else made.encode())
        assert verdict(folder, public) != "valid", (about, what)
    (folder / "oms.sig").write_bytes(text)
    assert verdict(folder, public) == "valid"

"""The signature line, the bytes it covers, Ed25519, key files."""

import base64
import hashlib
import os
import stat

import pytest

from rye.errors import ItemError, RyeError, TrustError
from rye.trust import signature
from support.signed_tools import NOW

KEY = signature.PrivateKey(bytes(range(32)))
TOOL = signature.form_of("tool", ".py")
SCRIPT = signature.form_of("tool", ".sh")
YAML = signature.form_of("tool", ".yaml")
KNOWLEDGE = signature.form_of("knowledge", ".md")
DIRECTIVE = signature.form_of("directive", ".md")

# A key, digest and signature of another RYE installation, published in its knowledge base.
FOREIGN_PEM = (
    b"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAY24FNlBttfGlH91xaEe4Ms0Meu5kvHL8L8W6w9lVyLU=\n-----END PUBLIC KEY-----\n"
)
FOREIGN_DIGEST = "28491686f11dd779965576ac8ceccebeb28bada81efd682e4e98d7cc89db5200"
FOREIGN_LINE = (
    b"<!-- rye:signed:2026-02-21T05:56:40Z:28491686f11dd779965576ac8ceccebeb28bada81efd682e4e98d7cc89db5200:"
    b"vKQAEfxullcbheiH2Jc2_aDFInmXzEqYKu4MkY6ZYaekYZiGSWi1qp14ysAM_HIBnGRldIyOOZ0oCD6sWDcWCQ==:"
    b"9fbfabe975fa5a7f -->\n"
)


def signed(body: bytes, form=KNOWLEDGE, **fields) -> bytes:
    return signature.sign(body, form, KEY, **{"timestamp": NOW, **fields})


def code_of(call, *given, **fields) -> str:
    with pytest.raises(RyeError) as caught:
        call(*given, **fields)
    assert caught.value.hint or caught.value.code in ("bad_key", "bad_signature_field")
    return caught.value.code


ENV = b"#!/usr/bin/env python3\n"
STALE = [
    *(b"# rye:signed:\n", b"#  rye:signed:2026-01-01T00:00:00Z:damaged coding: utf-7\n", b"# rye:signed:x\r\n"),
    *(b"# kiwi-mcp:validated:2025-01-01T00:00:00Z:abc\n", b"# rye:validated:2025-01-01T00:00:00Z:abc\n", b"// rye:signed:x\n"),
    *(b"<!-- rye:signed:x -->\n", b"# rye:signed:x --> y\n", b"<!-- rye:validated:2025-01-01 -->\n"),
]
OWN = [b"# validated: yes\n", b"# see rye:signed:\n", b"# a:validated:b\n", b"\n"]
HARMLESS = [b"# -*- coding: utf-8 -*-\n", b"# coding=UTF8\n", b"x\ny\n# coding: latin-1\n"]
ODD = [b"a\r\n", b"a\0\n", b"\xef\xbb\xbfa\n", b"\xff\n", b"# coding: latin-1\n", b"\n# vim: fileencoding=utf-7\n"]
SPAN = b"<directive name='x'>\n</directive> a </directive>"


@pytest.mark.parametrize(
    ("form", "before", "raw", "covered"),
    [
        # A damaged line, or one of before, is replaced; an author's own is kept.
        *((TOOL, before, line + b"x = 1\n", b"x = 1\n") for line in STALE for before in (b"", ENV)),
        *((TOOL, b"", line + b"x = 1\n", line + b"x = 1\n") for line in OWN),
        (KNOWLEDGE, b"", b"<!-- rye:signed:x --> my text\nmore\n", b" my text\nmore\n"),
        (KNOWLEDGE, b"", b"<!-- rye:signed:x -->  \nmore\n", b"more\n"),
        *((TOOL, b"", line, line) for line in HARMLESS),
        *((KNOWLEDGE, b"", text, text) for text in ODD),
        (KNOWLEDGE, b"", b"---\nname: x\n---\ntext\n", b"---\nname: x\n---\ntext\n"),
        (signature.form_of("knowledge", ".yml"), b"", b"a: 1\n", b"a: 1\n"),
        # Where no shebang may stand, a line like one is covered.
        *((form, b"", b"#!/bin/sh\ntext\n", b"#!/bin/sh\ntext\n") for form in (KNOWLEDGE, YAML)),
        # A directive is its element.
        (DIRECTIVE, b"", b"# <directives>\nbefore\n" + SPAN + b"\nafter", SPAN),
    ],
)
def test_the_line_stands_first_and_covers_the_rest(form, before, raw, covered):
    made = signed(before + raw, form)
    assert made.startswith(before + form.opening + b"rye:signed:" + NOW.encode())
    taken = signature.split(made, form)
    signature.check(KEY.public, taken)
    assert (taken.body, taken.digest) == (covered, hashlib.sha256(covered).hexdigest())
    assert signature.split(signed(made, form), form).body == covered, "signed again"


@pytest.mark.parametrize("mark", [b"#", b"//", b"--", b";"])
@pytest.mark.parametrize("first", [b"", b"#!/usr/bin/env -S lua -W\n", b"#!/bin/sh\n", b"<?php\n"])
def test_a_script_has_the_comment_of_its_header(mark, first):
    raw = signed(first + mark + b" ---\n" + mark + b" a: 1\n", SCRIPT)
    assert raw.startswith(first + mark + b" rye:signed:" + NOW.encode())
    assert signature.split(raw, SCRIPT).body == mark + b" ---\n" + mark + b" a: 1\n"
    assert signed(raw, SCRIPT) == raw
    line = raw[len(first) :].split(b"\n")[0]
    for other in (b"#", b"//", b"--", b";", b"<!--"):
        assert code_of(signature.split, raw + line.replace(mark, other, 1) + b"\n", SCRIPT) == "malformed", other
    for above in (b"#!/bin/sh -c 'rm *'\n", b"#!/home/x/bin/sh\n", b"<?php system('x');\n", b"#!/bin/sh\r\n"):
        assert code_of(signature.split, above + raw[len(first) :], SCRIPT) == "malformed"
    assert code_of(signature.split, b"%%" + raw[len(first) :], SCRIPT) in ("malformed", "unsigned")
    with pytest.raises(ItemError, match="no comment"):
        signed(first + b"print()\n", SCRIPT)


@pytest.mark.parametrize(
    ("form", "raw", "fields", "code"),
    [
        *((KNOWLEDGE, raw, {}, "empty_item") for raw in (b"", *(signed(b"x").split(b"\n")[0] + end for end in (b"", b"\n")))),
        *((TOOL, raw, {}, "empty_item") for raw in (ENV, ENV[:-1])),
        *((TOOL, text, {}, "malformed") for text in ODD),
        (TOOL, b"#!/tmp/evil\nx = 1\n", {}, "malformed"),
        *(
            (DIRECTIVE, text, {}, "malformed")
            for text in (b"text", b"</directive><directive>", b"<directive/></directive>", b"<directive>")
        ),
        # Fields cannot be smuggled.
        *((KNOWLEDGE, b"text", {"timestamp": one}, "bad_signature_field") for one in ("now", NOW + "\n")),
        (KNOWLEDGE, b"text", {"suffix": ""}, "bad_signature_field"),
        (KNOWLEDGE, b"text", {"suffix": "a@b\nx"}, "bad_signature_field"),
    ],
)
def test_what_would_not_verify_is_not_signed(form, raw, fields, code):
    assert code_of(signed, raw, form, **fields) == code


def test_what_moves_or_is_put_beside_what_was_signed_is_refused():
    for form in (KNOWLEDGE, YAML):
        assert code_of(signature.split, b"#!/bin/sh\n" + signed(b"text\n", form), form) in ("unsigned", "malformed")
    for end in (b"", b"\n"):
        assert code_of(signature.split, signed(b"x").split(b"\n")[0] + end, KNOWLEDGE) == "malformed"
    raw = signed(b"# <directives>\nbefore\n" + SPAN + b"\nafter", DIRECTIVE)
    assert signature.split(raw.replace(b"before", b"BEFORE").replace(b"after", b""), DIRECTIVE).body == SPAN
    assert code_of(signature.split, raw + b"</directive>", DIRECTIVE) == "tampered"
    assert code_of(signature.split, raw.replace(b"# <dir", b"<directive>\n# <dir"), DIRECTIVE) == "tampered"


def test_an_earlier_line_above_a_directive_is_not_read_and_one_within_it_is_refused():
    """As other installations leave them: the first line decides, what is covered is the same for every reader."""
    raw = signed(b"<directive name='x'>\ntext\n</directive>\n", DIRECTIVE)
    line, _, rest = raw.partition(b"\n")
    assert signature.split(line + b"\n" + FOREIGN_LINE + rest, DIRECTIVE).body == signature.split(raw, DIRECTIVE).body
    # The other way round the first line is of another text.
    assert code_of(signature.split, FOREIGN_LINE + raw, DIRECTIVE) == "tampered"
    assert code_of(signature.split, raw.replace(b"text\n", FOREIGN_LINE), DIRECTIVE) == "malformed"


def test_timestamp_suffix_and_a_listed_first_line_are_not_covered():
    raw = signed(b"text", suffix="rye-registry@leo_1")
    assert signature.split(raw, KNOWLEDGE).signature.suffix == "rye-registry@leo_1"
    for other in (raw.replace(b"leo_1", b"eve"), raw.replace(b"2026", b"2099")):
        signature.check(KEY.public, signature.split(other, KNOWLEDGE))
    assert signature.split(ENV + signed(b"x = 1\n", TOOL), TOOL).body == b"x = 1\n"


@pytest.mark.parametrize(
    ("item_type", "suffix"),
    [("tool", ".json"), ("tool", ".md"), ("knowledge", ".py"), ("directive", ".yaml"), ("tool", ""), ("x", ".py")],
)
def test_what_cannot_carry_a_line_is_unsignable(item_type, suffix):
    with pytest.raises(ItemError) as caught:
        signature.form_of(item_type, suffix)
    assert caught.value.code == "unsignable"
    # What there is instead: suffixes for a type, types for none.
    assert caught.value.hint.startswith("Item types are tool, " if item_type == "x" else f"A {item_type} is one of .")
    assert ("suffix of a runtime" in caught.value.hint) == (item_type == "tool")


def test_a_foreign_signature_verifies():
    key = signature.PublicKey.from_pem(FOREIGN_PEM)
    assert (key.fingerprint, key.digest) == ("9fbfabe975fa5a7f", hashlib.sha256(key.raw).hexdigest())
    with pytest.raises(TrustError, match="changed") as caught:
        signature.split(FOREIGN_LINE + b"not the text that was signed\n", KNOWLEDGE)
    assert (caught.value.code, caught.value.details["expected"]) == ("tampered", FOREIGN_DIGEST)
    # The line as such is right: put the digest it was made for under it.
    made = base64.urlsafe_b64decode(FOREIGN_LINE.split(b":")[-2])
    line = signature.Signature("", FOREIGN_DIGEST, made, key.fingerprint)
    signature.check(key, signature.Signed(line, b"", FOREIGN_DIGEST))
    own = signature.split(signed(b"text"), KNOWLEDGE)
    for other, digest in (
        (key, own.digest),
        *((signature.PublicKey(raw), FOREIGN_DIGEST) for raw in (bytes(32), b"\xff" * 32)),
    ):
        with pytest.raises(TrustError, match="was not made by the key"):
            signature.check(other, signature.Signed(line, own.body, digest))


def test_pem_is_that_of_the_library_and_of_no_other_kind_of_key():
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, x25519

    def public_pem(key):
        return key.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo)

    key = ed25519.Ed25519PrivateKey.generate()
    private, public = key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption()), public_pem(key)
    own = signature.PrivateKey.from_pem(private)
    assert (own.pem, own.public.pem, own.sign(b"m"), repr(own)) == (private, public, key.sign(b"m"), "PrivateKey()")
    assert signature.PublicKey.from_pem(b"\n " + public.strip() + b"\n\n") == signature.PublicKey.from_pem(public)
    others = (ec.generate_private_key(ec.SECP256R1()), ed448.Ed448PrivateKey.generate(), x25519.X25519PrivateKey.generate())
    odd = [public.replace(*one) for one in ((b"\n", b"\r\n"), (b"=\n", b"\n"), (b"-----\nMCow", b"-----\nComment: x\n\nMCow"))]
    for pem in (*map(public_pem, others), b"", b"\xff", b"-----BEGIN PUBLIC KEY-----", public + public, *odd):
        assert code_of(signature.PublicKey.from_pem, pem) == code_of(signature.PrivateKey.from_pem, pem) == "bad_key", pem
    assert code_of(signature.PublicKey.from_pem, private) == code_of(signature.PrivateKey.from_pem, public) == "bad_key"
    with pytest.raises(TrustError, match="32"):
        signature.PublicKey(b"x" * 31)


def test_key_files_are_made_with_their_modes_and_read_with_any(tmp_path, monkeypatch):
    folder = tmp_path / "a/keys"
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, flags, mode: opened.append((flags, mode)) or real(path, flags, mode))
    umask = os.umask(0o077)
    try:
        public = signature.generate_key_pair(folder)
    finally:
        os.umask(umask)
    monkeypatch.undo()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}
    assert modes == {"keys": 0o700, "private_key.pem": 0o600, "public_key.pem": 0o644}
    # No instant at which the private one could be opened by others: the mode is in the very first open.
    assert (bool(opened[0][0] & os.O_EXCL), opened[0][1]) == (True, 0o600)
    (folder / "private_key.pem").chmod(0o444)
    assert signature.load_private_key(folder / "private_key.pem").public == public
    assert signature.PublicKey.from_pem((folder / "public_key.pem").read_bytes()) == public


@pytest.mark.parametrize("name", ["private_key.pem", "public_key.pem"])
@pytest.mark.parametrize("dangling", [False, True])
def test_no_key_is_overwritten(tmp_path, name, dangling):
    if dangling:
        (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    else:
        (tmp_path / name).write_text("mine")
    assert code_of(signature.generate_key_pair, tmp_path) == "key_exists"
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert dangling or (tmp_path / name).read_text() == "mine"


def test_key_file_errors_are_typed(tmp_path):
    (tmp_path / "file").write_text("no key")
    for path, code in (("none", "key_not_found"), ("", "key_unreadable"), ("file", "bad_key")):
        assert code_of(signature.load_private_key, tmp_path / path) == code
    assert code_of(signature.generate_key_pair, tmp_path / "file/keys") == "key_unwritable"

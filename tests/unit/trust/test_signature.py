"""The signature line, the bytes it covers, Ed25519, key files."""

from __future__ import annotations

import hashlib
import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.errors import ItemError, RyeError, TrustError, UsageError
from rye.trust.signature import (
    PrivateKey,
    PublicKey,
    Signature,
    Signed,
    check,
    form_of,
    generate_key_pair,
    load_private_key,
    sign,
    split,
)

KEY = PrivateKey(bytes(range(32)))
NOW = "2026-01-02T03:04:05Z"
TOOL = form_of("tool", ".py")
KNOWLEDGE = form_of("knowledge", ".md")
DIRECTIVE = form_of("directive", ".md")

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
    return sign(body, form, KEY, timestamp=NOW, **fields)


def refusal(raw: bytes, form=KNOWLEDGE) -> str:
    with pytest.raises(TrustError) as caught:
        split(raw, form)
    assert caught.value.hint
    return caught.value.code


# --- forms ---


@pytest.mark.parametrize(
    ("item_type", "suffixes", "opening", "closing"),
    [
        ("tool", ".py .yaml .yml", b"# ", b""),
        ("knowledge", ".md .yaml .yml", b"<!-- ", b" -->"),
        ("directive", ".md", b"<!-- ", b" -->"),
    ],
)
def test_each_file_type_has_its_comment(item_type, suffixes, opening, closing):
    for suffix in suffixes.split():
        form = form_of(item_type, suffix)
        assert (form.opening, form.closing) == (opening, closing)
        assert form.python == (suffix == ".py")
        raw = signed(b"<directive name='x'>text</directive>\n", form)
        assert raw.startswith(opening + b"rye:signed:" + NOW.encode())
        check(KEY.public, split(raw, form))


@pytest.mark.parametrize("mark", [b"#", b"//", b"--", b";"])
@pytest.mark.parametrize("first", [b"", b"#!/usr/bin/env -S lua -W\n", b"#!/bin/sh\n", b"<?php\n"])
def test_a_script_has_the_comment_of_its_header(mark, first):
    form = form_of("tool", ".any")
    raw = signed(first + mark + b" ---\n" + mark + b" a: 1\n", form)
    assert raw.startswith(first + mark + b" rye:signed:" + NOW.encode())
    assert split(raw, form).body == mark + b" ---\n" + mark + b" a: 1\n"
    assert signed(raw, form) == raw
    line = raw[len(first) :].split(b"\n")[0]
    for other in (b"#", b"//", b"--", b";", b"<!--"):
        assert refusal(raw + line.replace(mark, other, 1) + b"\n", form) == "malformed", other
    for above in (b"#!/bin/sh -c 'rm *'\n", b"#!/home/x/bin/sh\n", b"<?php system('x');\n", b"#!/bin/sh\r\n"):
        assert refusal(above + raw[len(first) :], form) == "malformed"
    assert refusal(b"%%" + raw[len(first) :], form) in ("malformed", "unsigned")
    with pytest.raises(ItemError, match="no comment"):
        signed(first + b"print()\n", form)


@pytest.mark.parametrize(
    ("item_type", "suffix"),
    [("tool", ".json"), ("tool", ".md"), ("knowledge", ".py"), ("directive", ".yaml"), ("tool", ""), ("x", ".py")],
)
def test_what_cannot_carry_a_line_is_unsignable(item_type, suffix):
    with pytest.raises(ItemError) as caught:
        form_of(item_type, suffix)
    assert caught.value.code == "unsignable"
    # What there is instead: suffixes for a type, types for none.
    assert caught.value.hint.startswith("Item types are tool, " if item_type == "x" else f"A {item_type} is one of .")


# --- keys ---


def test_a_foreign_signature_verifies():
    key = PublicKey.from_pem(FOREIGN_PEM)
    assert key.fingerprint == "9fbfabe975fa5a7f"
    assert key.digest == hashlib.sha256(key.raw).hexdigest()
    body = b"not the text that was signed\n"
    with pytest.raises(TrustError, match="changed") as caught:
        split(FOREIGN_LINE + body, KNOWLEDGE)
    assert caught.value.code == "tampered"
    assert caught.value.details["expected"] == FOREIGN_DIGEST
    # The line as such is right: put the digest it was made for under it.
    own = split(signed(body), KNOWLEDGE)
    line = Signature("", FOREIGN_DIGEST, foreign_signature(), key.fingerprint)
    check(key, Signed(line, b"", FOREIGN_DIGEST))
    with pytest.raises(TrustError):
        check(key, Signed(line, own.body, own.digest))


def foreign_signature() -> bytes:
    import base64

    return base64.urlsafe_b64decode(FOREIGN_LINE.split(b":")[-2])


def test_pem_is_that_of_the_library():
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
    public = key.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo)
    assert PrivateKey.from_pem(private).pem == private
    assert PrivateKey.from_pem(private).public.pem == public
    assert PublicKey.from_pem(b"\n " + public.strip() + b"\n\n") == PublicKey.from_pem(public)
    assert key.sign(b"m") == PrivateKey.from_pem(private).sign(b"m")


def other_pems() -> list[bytes]:
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric import ec, ed448, x25519

    info = (s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo)
    others = (ec.generate_private_key(ec.SECP256R1()), ed448.Ed448PrivateKey.generate())
    pem = KEY.public.pem
    return [
        *(key.public_key().public_bytes(*info) for key in (*others, x25519.X25519PrivateKey.generate())),
        b"",
        b"\xff",
        b"-----BEGIN PUBLIC KEY-----",
        KEY.pem,
        pem.replace(b"\n", b"\r\n"),
        pem.replace(b"=\n", b"\n"),
        pem + pem,
        pem.replace(b"-----\nMCow", b"-----\nComment: x\n\nMCow"),
    ]


@pytest.mark.parametrize("pem", other_pems(), ids=range(11))
def test_other_keys_are_refused(pem):
    for kind in (PublicKey, PrivateKey):
        if pem == KEY.pem and kind is PrivateKey:
            continue
        with pytest.raises(TrustError) as caught:
            kind.from_pem(pem)
        assert caught.value.code == "bad_key"


def test_a_key_has_32_bytes_and_keeps_them_to_itself():
    with pytest.raises(TrustError, match="32"):
        PublicKey(b"x" * 31)
    assert repr(KEY) == "PrivateKey()"


def test_garbage_is_not_a_signature_of_any_key():
    for raw in (bytes(32), b"\xff" * 32, os.urandom(32)):
        with pytest.raises(TrustError) as caught:
            check(PublicKey(raw), split(signed(b"text"), KNOWLEDGE))
        assert caught.value.code == "bad_signature"


def test_key_files(tmp_path):
    umask = os.umask(0o077)
    try:
        public = generate_key_pair(tmp_path / "a" / "keys")
    finally:
        os.umask(umask)
    folder = tmp_path / "a" / "keys"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}
    assert modes == {"keys": 0o700, "private_key.pem": 0o600, "public_key.pem": 0o644}
    assert load_private_key(folder / "private_key.pem").public == public
    assert PublicKey.from_pem((folder / "public_key.pem").read_bytes()) == public


def test_the_private_key_is_created_with_its_mode(tmp_path, monkeypatch):
    """No instant at which it could be opened by others: the mode is in the very first open."""
    modes = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, flags, mode: modes.append((flags, mode)) or real(path, flags, mode))
    generate_key_pair(tmp_path)
    assert modes[0][0] & os.O_EXCL
    assert modes[0][1] == 0o600


@pytest.mark.parametrize("name", ["private_key.pem", "public_key.pem"])
@pytest.mark.parametrize("dangling", [False, True])
def test_no_key_is_overwritten(tmp_path, name, dangling):
    if dangling:
        (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    else:
        (tmp_path / name).write_text("mine")
    with pytest.raises(RyeError) as caught:
        generate_key_pair(tmp_path)
    assert caught.value.code == "key_exists"
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert dangling or (tmp_path / name).read_text() == "mine"


def test_key_file_errors_are_typed(tmp_path):
    (tmp_path / "file").write_text("no key")
    for path, code in (("none", "key_not_found"), ("", "key_unreadable"), ("file", "bad_key")):
        with pytest.raises(RyeError) as caught:
            load_private_key(tmp_path / path)
        assert caught.value.code == code
    with pytest.raises(RyeError) as caught:
        generate_key_pair(tmp_path / "file" / "keys")
    assert caught.value.code == "key_unwritable"


def test_a_key_readable_by_all_can_be_loaded(tmp_path):
    (tmp_path / "key").write_bytes(KEY.pem)
    (tmp_path / "key").chmod(0o444)
    assert load_private_key(tmp_path / "key") == KEY


# --- signing ---


@given(st.binary(min_size=1))
def test_knowledge_round_trip(body):
    raw = signed(body)
    taken = split(raw, KNOWLEDGE)
    check(KEY.public, taken)
    assert taken.body == body
    assert taken.digest == hashlib.sha256(body).hexdigest()
    assert raw.endswith(b"\n" + body)


@given(st.lists(st.sampled_from([b"#!/bin/sh\n", b"# kiwi-mcp:x\n", b"# rye:signed:\n", b"x\n", b"\n", b"---\n"])))
def test_signing_again_covers_the_same_bytes(lines):
    for form in (KNOWLEDGE, form_of("tool", ".sh")):
        try:
            once = signed(b"".join(lines), form)
        except RyeError:
            continue
        twice = sign(once, form, PrivateKey(b"2" * 32), timestamp="2027-01-01T00:00:00Z")
        assert split(twice, form).body == split(once, form).body
        assert twice.count(b"rye:signed:2027") == 1
        assert twice.count(b"rye:signed:2026") == 0


@pytest.mark.parametrize(
    "line",
    [
        b"# rye:signed:\n",
        b"#  rye:signed:2026-01-01T00:00:00Z:damaged coding: utf-7\n",
        b"# rye:signed:x\r\n",
        b"// rye:signed:x\n",
        b"# kiwi-mcp:validated:2025-01-01T00:00:00Z:abc\n",
        b"# rye:validated:2025-01-01T00:00:00Z:abc\n",
        b"<!-- rye:signed:x -->\n",
        b"# rye:signed:x --> y\n",
        b"# <!-- rye:validated:2025-01-01 -->\n"[2:],
    ],
)
def test_a_damaged_or_legacy_line_is_replaced(line):
    for shebang in (b"", b"#!/usr/bin/env python3\n"):
        raw = signed(shebang + line + b"x = 1\n", TOOL)
        assert raw.startswith(shebang + b"# rye:signed:" + NOW.encode())
        assert split(raw, TOOL).body == b"x = 1\n"


@pytest.mark.parametrize("line", [b"# validated: yes\n", b"# see rye:signed:\n", b"# a:validated:b\n", b"\n"])
def test_an_authors_own_first_line_is_kept(line):
    assert split(signed(line + b"x = 1\n", TOOL), TOOL).body == line + b"x = 1\n"


def test_text_behind_a_replaced_comment_is_kept():
    assert split(signed(b"<!-- rye:signed:x --> my text\nmore\n"), KNOWLEDGE).body == b" my text\nmore\n"
    assert split(signed(b"<!-- rye:signed:x -->  \nmore\n"), KNOWLEDGE).body == b"more\n"


def test_a_line_before_a_shebang_stays_there():
    raw = signed(b"#!/usr/bin/env python3\nx = 1\n", TOOL)
    shebang, line, rest = raw.split(b"\n", 2)
    assert (shebang, rest) == (b"#!/usr/bin/env python3", b"x = 1\n")
    swapped = line + b"\n" + shebang + b"\n" + rest
    assert refusal(swapped, TOOL) == "tampered"
    assert split(signed(swapped, TOOL), TOOL).body == shebang + b"\n" + rest


def test_the_suffix_is_read_and_not_covered():
    raw = signed(b"text", suffix="rye-registry@leo_1")
    assert split(raw, KNOWLEDGE).signature.suffix == "rye-registry@leo_1"
    assert split(signed(b"text"), KNOWLEDGE).signature.suffix is None
    check(KEY.public, split(raw.replace(b"leo_1", b"eve"), KNOWLEDGE))


@pytest.mark.parametrize("raw", [b"", signed(b"x").split(b"\n")[0], signed(b"x").split(b"\n")[0] + b"\n"])
def test_an_empty_file_is_not_signed(raw):
    with pytest.raises(ItemError) as caught:
        signed(raw)
    assert caught.value.code == "empty_item"
    if raw:
        assert refusal(raw) == "malformed"


def test_where_no_shebang_may_stand_a_line_like_one_is_covered():
    for form in (KNOWLEDGE, form_of("tool", ".yaml")):
        raw = signed(b"#!/bin/sh\ntext\n", form)
        assert raw.startswith(form.opening + b"rye:signed:")
        assert split(raw, form).body == b"#!/bin/sh\ntext\n"
        assert refusal(b"#!/bin/sh\n" + raw, form) in ("unsigned", "malformed")


def test_a_shebang_alone_is_an_empty_file():
    for raw in (b"#!/usr/bin/env python3", b"#!/usr/bin/env python3\n"):
        with pytest.raises(ItemError) as caught:
            signed(raw, TOOL)
        assert caught.value.code == "empty_item"
        assert refusal(raw, TOOL) == "unsigned"


@pytest.mark.parametrize("fields", [{"timestamp": "now"}, {"timestamp": NOW + "\n"}, {"suffix": ""}, {"suffix": "a@b\nx"}])
def test_fields_cannot_be_smuggled(fields):
    with pytest.raises(UsageError):
        sign(b"text", KNOWLEDGE, KEY, **({"timestamp": NOW} | fields))


@pytest.mark.parametrize(
    "body", [b"a\r\n", b"a\0\n", b"\xef\xbb\xbfa\n", b"\xff\n", b"# coding: latin-1\n", b"\n# vim: fileencoding=utf-7\n"]
)
def test_ambiguous_python_is_not_signed_and_knowledge_is(body):
    with pytest.raises(TrustError) as caught:
        signed(body, TOOL)
    assert caught.value.code == "malformed"
    assert split(signed(body), KNOWLEDGE).body == body


@pytest.mark.parametrize("body", [b"# -*- coding: utf-8 -*-\n", b"# coding=UTF8\n", b"x\ny\n# coding: latin-1\n"])
def test_harmless_encoding_lines_are_signed(body):
    assert split(signed(body, TOOL), TOOL).body == body


def test_another_shebang_is_not_signed():
    with pytest.raises(TrustError, match="env python3"):
        signed(b"#!/tmp/evil\nx = 1\n", TOOL)


def test_front_matter_is_covered():
    body = b"---\nname: x\n---\ntext\n"
    raw = signed(body)
    assert split(raw, KNOWLEDGE).body == body
    assert refusal(raw.replace(b"name: x", b"name: y")) == "tampered"


def test_a_directive_is_its_element():
    span = b"<directive name='x'>\n</directive> a </directive>"
    raw = signed(b"# <directives>\nbefore\n" + span + b"\nafter", DIRECTIVE)
    assert split(raw, DIRECTIVE).body == span
    assert split(raw.replace(b"before", b"BEFORE").replace(b"after", b""), DIRECTIVE).body == span
    assert refusal(raw + b"</directive>", DIRECTIVE) == "tampered"
    assert refusal(raw.replace(b"# <dir", b"<directive>\n# <dir"), DIRECTIVE) == "tampered"


def test_an_earlier_line_above_a_directive_is_not_read_and_one_within_it_is_refused():
    """As other installations leave them: the first line decides, what is covered is the same for every reader."""
    raw = signed(b"<directive name='x'>\ntext\n</directive>\n", DIRECTIVE)
    line, _, rest = raw.partition(b"\n")
    twice = line + b"\n" + FOREIGN_LINE + rest
    assert split(twice, DIRECTIVE).body == split(raw, DIRECTIVE).body
    # The other way round the first line is of another text.
    assert refusal(FOREIGN_LINE + raw, DIRECTIVE) == "tampered"
    inside = signed(b"<directive name='x'>\ntext\n</directive>\n", DIRECTIVE).replace(b"text\n", FOREIGN_LINE)
    assert refusal(inside, DIRECTIVE) == "malformed"
    # Of every other form the whole file is covered, and a second line in it is refused.
    line, _, rest = signed(b"text\n").partition(b"\n")
    assert refusal(line + b"\n" + FOREIGN_LINE + rest) == "malformed"


@pytest.mark.parametrize("body", [b"text", b"</directive><directive>", b"<directive/></directive>", b"<directive>"])
def test_no_directive_no_signature(body):
    with pytest.raises(TrustError) as caught:
        signed(body, DIRECTIVE)
    assert caught.value.code == "malformed"

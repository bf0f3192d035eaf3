"""Changes to signed files that must not survive verification.

Each has a positive control: a verifier in the lax manner accepts the mutant, so the refusal proves something.
It finds the line by a regular expression without an end, reads text with newlines folded, leaves shebang and
front matter out, and takes out any number of lines.
"""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

from rye.errors import TrustError
from rye.trust import signature as signatures
from rye.trust import verify

KEY = signatures.PrivateKey(b"k" * 32)
NOW = "2026-01-02T03:04:05Z"
TOOL = signatures.form_of("tool", ".py")
KNOWLEDGE = signatures.form_of("knowledge", ".md")
STORE = verify.TrustStore.build([verify.render_key_document(KEY.public, "me")], [])

CODE = b"""'A tool.'
# \\u000aEVIL = 1


def execute(params, project_path):
    return {"success": True}
"""
SHEBANG = b"#!/usr/bin/env python3\n"
GOOD = signatures.sign(CODE, TOOL, KEY, timestamp=NOW)
ENTRY = signatures.sign(b"\n---\nid: a\n---\n\n# Title\r\n\xff\n", KNOWLEDGE, KEY, timestamp=NOW)

LAX = re.compile(
    r"^(?:#|//|<!--) rye:signed:([^:\n]+:\d\d:[^:\n]+):([0-9a-f]{64}):([\w-]+={0,2}):([0-9a-f]{16}).*\n",
    re.MULTILINE | re.IGNORECASE,
)


def lax_verify(raw: bytes, *, front_matter: bool = False) -> bool:
    text = raw.decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n").replace("\r", "\n")
    match = LAX.search(text)
    if match is None:
        return False
    rest = LAX.sub("", re.sub(r"\A#!.*\n", "", text))
    if front_matter and rest.startswith("---"):
        rest = rest[3:].partition("---")[2].strip()
    digest = hashlib.sha256(rest.encode("utf-8", "surrogateescape")).hexdigest()
    if digest != match[2].lower() or match[4].lower() != KEY.public.fingerprint:
        return False
    signature = base64.urlsafe_b64decode(match[3].rstrip("=") + "==")
    try:
        signatures.check(KEY.public, signatures.Signed(signatures.Signature("", digest, signature, ""), b"", digest))
    except TrustError:
        return False
    return True


def lax_sign(body: bytes, covered: bytes | None = None, opening: bytes = b"# ", closing: bytes = b"") -> bytes:
    """Sign whatever it is, as the holder of a key can."""
    digest = hashlib.sha256(body if covered is None else covered).hexdigest()
    signature = base64.urlsafe_b64encode(KEY.sign(digest.encode())).decode()
    fields = f"rye:signed:{NOW}:{digest}:{signature}:{KEY.public.fingerprint}".encode()
    return opening + fields + closing + b"\n" + body


def verdict(raw: bytes, form=TOOL) -> str:
    try:
        verify.verify(raw, form, STORE)
    except TrustError as error:
        return error.code
    return "valid"


def line_end(text: bytes) -> bytes:
    """Return GOOD with `text` behind the last field."""
    line, _, rest = GOOD.partition(b"\n")
    return line + text + b"\n" + rest


def field(index: int, change) -> bytes:
    """Return GOOD with one field of its line changed."""
    line, _, rest = GOOD.partition(b"\n")
    fields = line.split(b":")
    fields[index] = change(fields[index])
    assert b":".join(fields) != line
    return b":".join(fields) + b"\n" + rest


def other_last_bits(signature: bytes) -> bytes:
    """Return another base64 spelling of the same 64 bytes."""
    last = signature[-3:-2]
    return signature[:-3] + {b"A": b"B", b"Q": b"R", b"g": b"h", b"w": b"x"}[last] + b"=="


def test_the_harness_itself():
    assert verdict(GOOD) == verdict(ENTRY, KNOWLEDGE) == "valid"
    assert lax_verify(GOOD)
    assert lax_sign(CODE) == GOOD
    assert not lax_verify(GOOD + b"x")


# Each is accepted by the lax verifier: only the one strict rule stands between it and being run.
MUTANTS = {
    "cookie_on_the_line": (line_end(b" coding:utf-7"), "malformed"),
    "emacs_cookie_on_the_line": (line_end(b" -*- coding: unicode_escape -*-"), "malformed"),
    "blank_after_the_line": (line_end(b" "), "malformed"),
    "suffix_without_user": (line_end(b"|rye-registry"), "malformed"),
    "suffix_of_nothing": (line_end(b"|@"), "malformed"),
    "suffix_twice": (line_end(b"|a@b|c@d"), "malformed"),
    "suffix_with_more": (line_end(b"|a@b c"), "malformed"),
    "suffix_with_letters_beyond_ascii": (line_end("|ä@b".encode()), "malformed"),
    "crlf": (GOOD.replace(b"\n", b"\r\n"), "malformed"),
    "crlf_after_the_line": (GOOD.replace(b"\n", b"\r\n", 1), "malformed"),
    "crlf_in_the_body": (GOOD.replace(b"params, project_path):\n", b"params, project_path):\r\n"), "malformed"),
    "lone_cr": (GOOD.replace(b"project_path):\n", b"project_path):\r"), "malformed"),
    "lone_cr_after_the_line": (GOOD.replace(b"\n", b"\r", 1), "malformed"),
    "foreign_shebang": (b"#!/tmp/evil\n" + GOOD, "malformed"),
    "shebang_with_options": (b"#!/usr/bin/env python3 -i\n" + GOOD, "malformed"),
    "shebang_with_cookie": (b"#!/usr/bin/env python3 # coding: utf-7\n" + GOOD, "malformed"),
    "shebang_of_a_shell": (b"#!/bin/sh\n" + GOOD, "malformed"),
    "bom": (b"\xef\xbb\xbf" + GOOD, "malformed"),
    "second_line_above": (GOOD.partition(b"\n")[0] + b"\n" + GOOD, "malformed"),
    "second_line_below": (GOOD + GOOD.partition(b"\n")[0] + b"\n", "malformed"),
    "another_comment_marker": (GOOD.replace(b"# rye", b"// rye", 1), "malformed"),
    "upper_case_digest": (field(-3, bytes.upper), "malformed"),
    "upper_case_fingerprint": (field(-1, bytes.upper), "malformed"),
    "base64_without_padding": (field(-2, lambda signature: signature.rstrip(b"=")), "malformed"),
    "base64_other_spelling": (field(-2, other_last_bits), "malformed"),
    "timestamp_of_another_shape": (GOOD.replace(b"2026-01-02T", b"2026-1-2 "), "malformed"),
    "signed_nul": (lax_sign(CODE + b"\0"), "malformed"),
    "signed_cookie": (lax_sign(b"# coding: utf-7\n" + CODE), "malformed"),
    "signed_cookie_on_line_2": (lax_sign(b"\n\t# vim: set fileencoding=latin-1 :\n" + CODE), "malformed"),
    "signed_bytes_not_utf8": (lax_sign(CODE + b"# \xff\n"), "malformed"),
    "signed_nothing": (lax_sign(b""), "malformed"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_refused_and_the_lax_verifier_takes_it(name):
    mutant, expected = MUTANTS[name]
    assert mutant != GOOD
    assert lax_verify(mutant), "the control must accept it"
    assert verdict(mutant) == expected


def test_a_cookie_on_the_line_would_have_run_other_code():
    """The reason for the strict line: the same signed bytes, and another program."""
    spaces: list[dict[str, object]] = [{}, {}]
    exec(compile(GOOD, "good", "exec"), spaces[0])
    exec(compile(MUTANTS["emacs_cookie_on_the_line"][0], "mutant", "exec"), spaces[1])
    assert ["EVIL" in space for space in spaces] == [False, True]


@pytest.mark.parametrize("opening", [b"# ", b"// ", b"<!-- ", b"#", b"<!--\t"])
@pytest.mark.parametrize("before", [b"text\n", b"\r", b"", b"\xef\xbb\xbf"])
def test_a_second_line_in_any_style_is_refused(opening, before):
    line = lax_sign(b"", b"other", opening, b" -->" if opening.startswith(b"<") else b"")
    body = before + line + b"more\n"
    assert verdict(lax_sign(body, None, b"<!-- ", b" -->"), KNOWLEDGE) == "malformed"
    # An example that is indented, or not a full line, is text.
    for text in (b"    " + line, line.replace(b"rye:signed:2026", b"rye:signed:TIME")):
        assert verdict(lax_sign(b"x\n" + text, None, b"<!-- ", b" -->"), KNOWLEDGE) == "valid"


def test_front_matter_outside_the_hash_is_refused():
    body = b"---\nid: a\n---\n\ntext\n"
    legacy = lax_sign(body, b"text", b"<!-- ", b" -->")
    changed = legacy.replace(b"id: a", b"id: evil")
    assert lax_verify(legacy, front_matter=True)
    assert lax_verify(changed, front_matter=True)
    assert verdict(legacy, KNOWLEDGE) == verdict(changed, KNOWLEDGE) == "tampered"
    with pytest.raises(TrustError, match="rye sign"):
        verify.verify(legacy, KNOWLEDGE, STORE)
    assert verdict(signatures.sign(legacy, KNOWLEDGE, KEY, timestamp=NOW), KNOWLEDGE) == "valid"


@pytest.mark.parametrize(
    ("raw", "form", "free"),
    [(SHEBANG + GOOD, TOOL, True), (GOOD, TOOL, False), (ENTRY, KNOWLEDGE, False)],
    ids=["tool_with_shebang", "tool", "knowledge"],
)
def test_no_flipped_bit_is_accepted(raw, form, free):
    assert verdict(raw, form) == "valid"
    timestamp = raw.index(NOW.encode())
    accepted, lax = [], 0
    for bit in range(len(raw) * 8):
        index = bit // 8
        if timestamp <= index < timestamp + len(NOW):
            continue
        mutant = bytearray(raw)
        mutant[index] ^= 1 << bit % 8
        lax += free and lax_verify(bytes(mutant))
        if verdict(bytes(mutant), form) == "valid":
            accepted.append((index, bit % 8))
    assert accepted == []
    assert lax > 100 or not free, "the lax verifier overlooks every bit of the shebang"

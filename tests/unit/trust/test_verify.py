"""Which keys count, in which order the checks run, and that nothing else makes a `Verified`."""

from __future__ import annotations

import copy
import hashlib
import pickle
import sys
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.errors import TrustError, UsageError
from rye.plain_class import as_dict, changed
from rye.trust import signature
from rye.trust import verify as trust_verify
from rye.trust.signature import PrivateKey, PublicKey, form_of, sign
from rye.trust.verify import SYSTEM_KEY_DIGEST, VERDICTS, TrustStore, Verified, parse_key_document, render_key_document, verify

MINE = PrivateKey(b"m" * 32)
OTHER = PrivateKey(b"o" * 32)
TOOL = form_of("tool", ".py")
CODE = b"x = 1\n"
RAW = sign(CODE, TOOL, MINE, timestamp="2026-01-02T03:04:05Z")
OTHERS = sign(CODE, TOOL, OTHER, timestamp="2026-01-02T03:04:05Z")


def document(key: PrivateKey, owner: str = "someone") -> bytes:
    return render_key_document(key.public, owner)


def refused(raw: bytes, store: TrustStore) -> TrustError:
    with pytest.raises(TrustError) as caught:
        verify(raw, TOOL, store)
    assert caught.value.code in VERDICTS
    assert caught.value.hint
    return caught.value


# --- key documents ---


@given(st.text(), st.text())
def test_documents_round_trip_or_are_not_written(owner, attestation):
    try:
        data = render_key_document(MINE.public, owner, attestation)
    except UsageError:
        assert not owner.isprintable()
        return
    assert tomllib.loads(data.decode())["owner"] == owner
    assert parse_key_document(data) == trust_verify.TrustedKey(MINE.public, owner, attestation, "project")


PLAIN = document(MINE).decode()


@given(
    st.lists(
        st.tuples(st.integers(0, len(PLAIN)), st.integers(0, 3), st.text(max_size=2) | st.sampled_from("\"\\\n=#'")), max_size=2
    )
)
def test_a_document_reads_as_the_toml_library_reads_it(changes):
    """One in the form that we write is read without the library: never differently."""
    text = PLAIN
    for at, less, more in changes:
        text = text[:at] + more + text[at + less :]
    try:
        expected = tomllib.loads(text)
    except ValueError:
        expected = None
    try:
        found = trust_verify._table(text)
    except ValueError:
        found = None
    assert found == expected


def test_a_document_of_ours_needs_no_toml_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "tomllib", None)
    assert parse_key_document(document(MINE)).owner == "someone"
    with pytest.raises(ImportError):
        parse_key_document(document(MINE).replace(b"owner =", b"owner  ="))


def test_texts_that_toml_cannot_hold_are_refused():
    for owner, attestation in (("\x1b[2J", ""), ("a\nb", ""), ("\ud800", ""), ("a", "\ud800"), ("a", "x" * 20_000)):
        with pytest.raises(UsageError):
            render_key_document(MINE.public, owner, attestation)
    assert parse_key_document(render_key_document(MINE.public, 'a"\\', "\x7f\0\r\n")).attestation == "\x7f\0\r\n"


def test_a_signature_line_in_a_document_means_nothing():
    assert parse_key_document(b"# rye:signed:whatever\n" + document(MINE)).public == MINE.public


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"a = " + b"[" * 10_000,
        b"a = 1",
        b"public_key = 1",
        b"# " + b"x" * 20_000,
        document(MINE).replace(MINE.public.fingerprint.encode(), OTHER.public.fingerprint.encode()),
        document(MINE).replace(b"fingerprint", b"fingerprnt"),
        document(MINE).replace(b'owner = "someone"', b"owner = 1"),
        document(MINE).replace(b'owner = "someone"', b'owner = "\\u001b[2J"'),
        document(MINE).replace(b'attestation = ""', b"attestation = []"),
        document(MINE).replace(b"PUBLIC", b"PRIVATE"),
    ],
    ids=range(12),
)
def test_malformed_documents_are_ignored_and_reported(data):
    with pytest.raises(TrustError) as caught:
        parse_key_document(data)
    assert caught.value.code == "bad_key_document"
    store = TrustStore.build([data, document(MINE)], [data])
    assert len(store.problems) == 2
    assert verify(RAW, TOOL, store).key.public == MINE.public


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (document(MINE).replace(b"pem =", b"PEM ="), "key document: it has no text 'pem'"),
        (document(MINE).replace(b"PUBLIC", b"PRIVATE"), "key document: its pem: This is not an Ed25519 public key"),
        (document(MINE).replace(b"owner =", b"OWNER ="), "key document: it has no text 'owner'"),
        (b"a", "key document: it is not TOML"),
    ],
)
def test_what_is_wrong_with_a_document_is_said_once(data, told):
    with pytest.raises(TrustError) as caught:
        parse_key_document(data)
    assert told in caught.value.message
    assert caught.value.message.count("key document") == 1


# --- which keys count ---


def test_user_and_explicit_keys_count():
    assert verify(RAW, TOOL, TrustStore.build([document(MINE, "me")], [])).key.owner == "me"
    explicit = TrustStore.build([], [], explicit_documents=[document(MINE)])
    assert verify(RAW, TOOL, explicit).key.role == "explicit"
    assert refused(OTHERS, explicit).code == "untrusted_key"


def test_a_projects_key_counts_for_nothing_and_its_words_are_not_repeated():
    store = TrustStore.build([], [], [document(MINE, "rye-registry")])
    error = refused(RAW, store)
    assert error.code == "untrusted_key"
    assert "project brings it" in error.message
    assert error.details["key_digest"] == MINE.public.digest
    assert error.details["fingerprint"] == MINE.public.fingerprint
    assert "rye-registry" not in str(error)
    assert "trusted_keys" in error.hint
    assert "project" not in refused(RAW, TrustStore()).message


def test_of_installed_bundles_only_the_system_key_counts(monkeypatch):
    documents = [document(MINE), document(OTHER)]
    assert refused(RAW, TrustStore.build([], documents)).details["proposed_by"] == "bundle"
    monkeypatch.setattr(trust_verify, "SYSTEM_KEY_DIGEST", MINE.public.digest)
    store = TrustStore.build([], documents)
    assert verify(RAW, TOOL, store).key.role == "system"
    assert "installed bundle brings it" in refused(OTHERS, store).message


def test_a_key_in_several_places_has_its_strongest_role(monkeypatch):
    monkeypatch.setattr(trust_verify, "SYSTEM_KEY_DIGEST", MINE.public.digest)
    mine = document(MINE)
    assert verify(RAW, TOOL, TrustStore.build([mine], [mine], [mine], [mine])).key.role == "system"
    assert verify(RAW, TOOL, TrustStore.build([mine], [], [mine], [mine])).key.role == "explicit"
    assert verify(RAW, TOOL, TrustStore.build([mine], [], [mine])).key.role == "user"
    assert TrustStore.build([mine], [mine], [mine], [mine]).proposed == ()


def test_the_system_key_is_pinned():
    pinned = PublicKey.from_pem(
        b"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAwZ7O7mUupEP0wFvks7VRo18JjAkdncJE6c20ZRwJuMA=\n-----END PUBLIC KEY-----\n"
    )
    assert pinned.digest == SYSTEM_KEY_DIGEST


def test_a_revoked_key_is_refused_in_every_role(monkeypatch):
    monkeypatch.setattr(trust_verify, "SYSTEM_KEY_DIGEST", MINE.public.digest)
    mine, none = [document(MINE)], []
    for places in ((mine, none, none, none), (none, mine, none, none), (none, none, mine, none), (none, none, none, mine)):
        error = refused(RAW, TrustStore.build(*places, frozenset({MINE.public.digest})))
        assert error.code == "revoked_key"
        assert error.details["key_digest"] == MINE.public.digest


def test_a_revocation_that_names_no_key_is_reported_and_one_that_does_is_not():
    for entry in ("", "a" * 63, "g" * 64, "A" * 64, MINE.public.fingerprint):
        (problem,) = TrustStore.build([], [], revoked=frozenset({entry})).problems
        assert repr(entry) in problem
    assert TrustStore.build([], [], revoked=frozenset({MINE.public.digest})).problems == ()


def test_an_approval_makes_a_projects_key_count_and_no_other():
    approved = frozenset({MINE.public.digest})
    store = TrustStore.build([], [], [document(MINE), document(OTHER)], approved=approved)
    assert verify(RAW, TOOL, store).key.role == "approved"
    assert refused(OTHERS, store).details["proposed_by"] == "project"
    # It is for what a project brings: it makes no installed bundle's key count, and no weaker key of a stronger one.
    assert refused(RAW, TrustStore.build([], [document(MINE)], approved=approved)).details["proposed_by"] == "bundle"
    assert verify(RAW, TOOL, TrustStore.build([document(MINE)], [], [document(MINE)], approved=approved)).key.role == "user"
    assert refused(RAW, TrustStore.build([], [], [document(MINE)], (), approved, approved)).code == "revoked_key"
    assert refused(RAW, TrustStore.build([], [], approved=approved)).code == "untrusted_key"


def test_of_a_known_file_only_the_signature_is_not_checked_again():
    store = TrustStore.build([document(MINE)], [])
    raw, _ = damaged("bad_signature")
    known = {hashlib.sha256(raw).hexdigest()}
    assert verify(raw, TOOL, store, known).key.public == MINE.public
    assert refused(raw, store).code == "bad_signature"
    for fault in ("untrusted_key", "revoked_key", "tampered", "malformed", "unsigned"):
        mutant, other = damaged("bad_signature", fault)
        with pytest.raises(TrustError) as caught:
            verify(mutant, TOOL, other, {hashlib.sha256(mutant).hexdigest()})
        assert caught.value.code == fault


def test_of_a_known_file_it_is_still_found_out_which_of_two_keys_signed_it(monkeypatch):
    monkeypatch.setattr(signature.PublicKey, "fingerprint", property(lambda _: "0" * 16))
    raw = sign(CODE, TOOL, MINE, timestamp="2026-01-02T03:04:05Z")
    store = TrustStore.build([document(OTHER), document(MINE)], [])
    known = {hashlib.sha256(raw).hexdigest()}
    assert verify(raw, TOOL, store, known).key.public == MINE.public
    assert verify(raw, TOOL, TrustStore.build([document(MINE), document(OTHER)], []), known).key.public == MINE.public


def test_a_shared_fingerprint_is_no_trust(monkeypatch):
    """Forge what an attacker would need 2^64 keys for: two keys of one fingerprint."""
    monkeypatch.setattr(signature.PublicKey, "fingerprint", property(lambda _: "0" * 16))
    mine = sign(CODE, TOOL, MINE, timestamp="2026-01-02T03:04:05Z")
    others = sign(CODE, TOOL, OTHER, timestamp="2026-01-02T03:04:05Z")
    only_mine = TrustStore.build([document(MINE)], [], [document(OTHER)])
    assert verify(mine, TOOL, only_mine).key.public == MINE.public
    assert refused(others, only_mine).code == "bad_signature"
    third = PrivateKey(b"3" * 32)
    for order in ((MINE, OTHER), (OTHER, MINE), (third, MINE, OTHER), (third, OTHER, MINE)):
        both = TrustStore.build([document(key) for key in order], [])
        assert verify(mine, TOOL, both).key.public == MINE.public
        assert verify(others, TOOL, both).key.public == OTHER.public
    revoked = TrustStore.build([document(MINE), document(OTHER)], [], revoked=frozenset({OTHER.public.digest}))
    assert verify(mine, TOOL, revoked).key.public == MINE.public
    assert refused(others, revoked).code == "bad_signature"


def test_the_digest_is_that_of_what_verdicts_depend_on():
    mine, other = document(MINE), document(OTHER)
    stores = [
        TrustStore(),
        TrustStore.build([mine], []),
        TrustStore.build([document(MINE, "renamed")], []),
        TrustStore.build([], [], explicit_documents=[mine]),
        TrustStore.build([mine, other], []),
        TrustStore.build([mine], [], revoked=frozenset({OTHER.public.digest})),
    ]
    assert len({store.digest for store in stores}) == len(stores)
    assert TrustStore.build([other, mine], [], [other]).digest == TrustStore.build([mine, other, mine], []).digest


# --- the order of the checks ---


def damaged(*faults: str) -> tuple[bytes, TrustStore]:
    """Return an item with several faults at once."""
    raw, store = RAW, TrustStore.build([document(MINE)], [])
    if "bad_signature" in faults:
        fields = raw.split(b":")
        fields[-2] = OTHERS.split(b":")[-2]
        raw = b":".join(fields)
    if "untrusted_key" in faults:
        store = TrustStore()
    if "revoked_key" in faults:
        store = TrustStore.build([document(MINE)], [], revoked=frozenset({MINE.public.digest}))
    if "tampered" in faults:
        raw += b"y = 2\n"
    if "malformed" in faults:
        raw = raw.replace(b"\n", b" \n", 1)
    if "unsigned" in faults:
        raw = raw.replace(b"rye:signed:", b"rye:")
    return raw, store


ORDER = ["unsigned", "malformed", "tampered", "untrusted_key", "bad_signature"]


@pytest.mark.parametrize("key_fault", ["untrusted_key", "revoked_key"])
@pytest.mark.parametrize("first", range(5))
def test_the_first_fault_in_order_is_the_verdict(first, key_fault):
    order = [key_fault if fault == "untrusted_key" else fault for fault in ORDER]
    alone = refused(*damaged(order[first]))
    assert alone.code == refused(*damaged(*order[first:])).code == order[first]
    assert set(ORDER) | {"valid", "misplaced", "revoked_key", "reserved_id"} == set(VERDICTS)


def test_tampered_says_what_was_expected_and_found():
    error = refused(*damaged("tampered"))
    assert error.details["expected"] == hashlib.sha256(CODE).hexdigest()
    assert error.details["actual"] == hashlib.sha256(CODE + b"y = 2\n").hexdigest()


# --- Verified ---


def test_verified_holds_the_bytes_and_their_digests():
    verified = verify(RAW, TOOL, TrustStore.build([document(MINE)], []))
    assert (verified.raw, verified.body) == (RAW, CODE)
    assert verified.digest == hashlib.sha256(CODE).hexdigest()
    assert verified.file_digest == hashlib.sha256(RAW).hexdigest()
    assert verified.signature.timestamp == "2026-01-02T03:04:05Z"
    assert "x = 1" not in repr(verified)


def test_only_verify_makes_a_verified():
    verified = verify(RAW, TOOL, TrustStore.build([document(MINE)], []))
    fields = list(as_dict(verified).values())
    with pytest.raises(TypeError):
        Verified(*fields)
    with pytest.raises(TypeError):
        Verified(*fields, object())
    with pytest.raises(TypeError):
        Verified(*fields, mint=object())
    with pytest.raises(TypeError):
        changed(verified, body=b"evil")
    with pytest.raises(TypeError):
        changed(verified, body=b"evil", mint=object())
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            leave(verified)
    with pytest.raises(AttributeError):
        verified.body = b"evil"

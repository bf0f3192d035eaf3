"""Which keys count, and that nothing else makes a `Verified`."""

import copy
import pickle
import tomllib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rye.errors import TrustError, UsageError
from rye.plain_class import as_dict, changed
from rye.trust import signature
from rye.trust import verify as trust_verify

MINE = signature.PrivateKey(b"m" * 32)
OTHER = signature.PrivateKey(b"o" * 32)
TOOL = signature.form_of("tool", ".py")
CODE = b"x = 1\n"
RAW = signature.sign(CODE, TOOL, MINE, timestamp="2026-01-02T03:04:05Z")
OTHERS = signature.sign(CODE, TOOL, OTHER, timestamp="2026-01-02T03:04:05Z")


def document(key: signature.PrivateKey, owner: str = "someone") -> bytes:
    return trust_verify.render_key_document(key.public, owner)


def refused(raw: bytes, store: trust_verify.TrustStore) -> TrustError:
    with pytest.raises(TrustError) as caught:
        trust_verify.verify(raw, TOOL, store)
    assert caught.value.code in trust_verify.VERDICTS
    assert caught.value.hint
    return caught.value


@given(st.text(), st.text())
@example('a"\\', "\x7f\0\r\n")
def test_documents_round_trip_or_are_not_written(owner, attestation):
    try:
        data = trust_verify.render_key_document(MINE.public, owner, attestation)
    except UsageError:
        assert not owner.isprintable()
        return
    assert tomllib.loads(data.decode())["owner"] == owner
    assert trust_verify.parse_key_document(data) == trust_verify.TrustedKey(MINE.public, owner, attestation, "project")


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


def test_texts_that_toml_cannot_hold_are_refused():
    for owner, attestation in (("\x1b[2J", ""), ("a\nb", ""), ("\ud800", ""), ("a", "\ud800"), ("a", "x" * 20_000)):
        with pytest.raises(UsageError):
            trust_verify.render_key_document(MINE.public, owner, attestation)


MALFORMED = {
    "key document: it is not TOML": [b"\xff", b"a", b"a = " + b"[" * 4_000],
    "key document: it has no text 'pem'": [b"", b"public_key = 1", PLAIN.replace("pem =", "PEM =").encode()],
    "key document: it is larger than": [b"# " + b"x" * 5_000],
    "key document: a line of it has more than 100 dots": [b"a" + b".a" * 1_900 + b" = 1"],
    "another fingerprint": [PLAIN.replace(MINE.public.fingerprint, OTHER.public.fingerprint).encode()],
    "key document: it has no text 'fingerprint'": [PLAIN.replace("fingerprint", "fingerprnt").encode()],
    "key document: it has no text 'owner'": [PLAIN.replace("owner =", one).encode() for one in ("OWNER =", "owner = 1 #")],
    "cannot be printed": [PLAIN.replace('owner = "someone"', 'owner = "\\u001b[2J"').encode()],
    "key document: it has no text 'attestation'": [PLAIN.replace('attestation = ""', "attestation = []").encode()],
    "key document: its pem: This is not an Ed25519 public key": [PLAIN.replace("PUBLIC", "PRIVATE").encode()],
}


@pytest.mark.parametrize(("told", "at"), [(told, at) for told, texts in MALFORMED.items() for at in range(len(texts))])
def test_malformed_documents_are_ignored_and_what_is_wrong_is_said_once(told, at):
    data = MALFORMED[told][at]
    with pytest.raises(TrustError) as caught:
        trust_verify.parse_key_document(data)
    assert (caught.value.code, caught.value.message.count("key document")) == ("bad_key_document", 1)
    assert told in caught.value.message
    store = trust_verify.TrustStore.build([data, document(MINE)], [data])
    assert len(store.problems) == 2
    assert trust_verify.verify(RAW, TOOL, store).key.public == MINE.public


ME, OF_OTHER = document(MINE, "rye-registry"), document(OTHER)
DIGEST = MINE.public.digest


@pytest.mark.parametrize(
    ("where", "outcome"),
    [
        ({"user_documents": [ME]}, "user"),
        ({"explicit_documents": [ME]}, "explicit"),
        ({}, "untrusted_key"),
        ({"explicit_documents": [OF_OTHER], "user_documents": [OF_OTHER]}, "untrusted_key"),
        ({"proposed_documents": [ME]}, "untrusted_key by project"),
        ({"system_documents": [OF_OTHER, ME]}, "untrusted_key by bundle"),
        # An approval makes a project's key count, and no other: it is for what a project brings.
        ({"proposed_documents": [OF_OTHER, ME], "approved": {DIGEST}}, "approved"),
        ({"proposed_documents": [ME], "approved": {OTHER.public.digest}}, "untrusted_key by project"),
        ({"system_documents": [ME], "approved": {DIGEST}}, "untrusted_key by bundle"),
        ({"approved": {DIGEST}}, "untrusted_key"),
        ({"user_documents": [ME], "proposed_documents": [ME], "approved": {DIGEST}}, "user"),
        # Of several places the strongest role counts.
        ({"user_documents": [ME], "proposed_documents": [ME], "explicit_documents": [ME]}, "explicit"),
        ({"user_documents": [ME], "proposed_documents": [ME]}, "user"),
        # A revoked key counts nowhere.
        *(
            ({place: [ME], "revoked": {DIGEST}, "approved": {DIGEST}}, "revoked_key")
            for place in ("user_documents", "system_documents", "proposed_documents", "explicit_documents")
        ),
    ],
)
def test_where_its_document_lies_decides_whether_a_key_counts(where, outcome):
    sets = {name: frozenset(where[name]) for name in ("approved", "revoked") if name in where}
    store = trust_verify.TrustStore.build(**{"user_documents": [], "system_documents": [], **where, **sets})
    code, _, proposer = outcome.partition(" by ")
    if code not in trust_verify.VERDICTS:
        assert trust_verify.verify(RAW, TOOL, store).key.role == outcome
        assert all(key.public != MINE.public for key in store.proposed)
        return
    error = refused(RAW, store)
    found = (error.code, error.details["fingerprint"], error.details.get("proposed_by", ""))
    assert found == (code, MINE.public.fingerprint, proposer)
    assert ({"project": "The project brings it", "bundle": "An installed bundle brings it"}.get(proposer, "")) in error.message
    assert ("brings it" in error.message) is bool(proposer)
    assert error.details.get("key_digest") == (DIGEST if proposer or code == "revoked_key" else None)
    # The words of a document that does not count are not repeated.
    assert "rye-registry" not in str(error)
    assert code == "revoked_key" or "trusted_keys" in error.hint


def test_of_installed_bundles_only_the_system_key_counts(monkeypatch):
    monkeypatch.setattr(trust_verify, "SYSTEM_KEY_DIGEST", DIGEST)
    assert trust_verify.verify(RAW, TOOL, trust_verify.TrustStore.build([ME], [ME, OF_OTHER], [ME], [ME])).key.role == "system"
    assert refused(OTHERS, trust_verify.TrustStore.build([], [ME, OF_OTHER])).details["proposed_by"] == "bundle"
    assert refused(RAW, trust_verify.TrustStore.build([], [ME], revoked=frozenset({DIGEST}))).code == "revoked_key"


def test_the_system_key_is_pinned():
    pinned = signature.PublicKey.from_pem(
        b"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAwZ7O7mUupEP0wFvks7VRo18JjAkdncJE6c20ZRwJuMA=\n-----END PUBLIC KEY-----\n"
    )
    assert pinned.digest == trust_verify.SYSTEM_KEY_DIGEST


def test_a_shared_fingerprint_is_no_trust(monkeypatch):
    """Forge what an attacker would need 2^64 keys for: two keys of one fingerprint."""
    monkeypatch.setattr(signature.PublicKey, "fingerprint", property(lambda _: "0" * 16))
    mine, others = (signature.sign(CODE, TOOL, key, timestamp="2026-01-02T03:04:05Z") for key in (MINE, OTHER))
    only_mine = trust_verify.TrustStore.build([document(MINE)], [], [document(OTHER)])
    assert trust_verify.verify(mine, TOOL, only_mine).key.public == MINE.public
    assert refused(others, only_mine).code == "bad_signature"
    for order in ((MINE, OTHER), (OTHER, MINE)):
        both = trust_verify.TrustStore.build([document(key) for key in order], [])
        assert trust_verify.verify(mine, TOOL, both).key.public == MINE.public
        assert trust_verify.verify(others, TOOL, both).key.public == OTHER.public
    revoked = trust_verify.TrustStore.build([document(MINE), document(OTHER)], [], revoked=frozenset({OTHER.public.digest}))
    assert trust_verify.verify(mine, TOOL, revoked).key.public == MINE.public
    assert refused(others, revoked).code == "bad_signature"


def test_only_verify_makes_a_verified():
    verified = trust_verify.verify(RAW, TOOL, trust_verify.TrustStore.build([document(MINE)], []))
    fields = list(as_dict(verified).values())
    for leave in (copy.copy, pickle.dumps, lambda one: changed(one, body=b"evil")):
        with pytest.raises(TypeError):
            leave(verified)
    with pytest.raises(TypeError):
        trust_verify.Verified(*fields, mint=object())
    with pytest.raises(AttributeError):
        verified.body = b"evil"

"""Signatures over whole folders: OpenSSF Model Signing (OMS) 1.0, read and written by `cryptography` alone.

A signature is a file of its own: a sigstore bundle (JSON) around a DSSE envelope, whose payload is an in-toto statement that
lists every file with its digest (github.com/ossf/model-signing-spec, spec/v1.0.md). Nothing outside the payload is signed, so
each field there has one value that is taken. Names are paths from the folder with `/`, digests lower-case hex.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rye.errors import TrustError, UsageError
from rye.fs.records import without_twins
from rye.plain_class import Record

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.x509 import Certificate

    AnyPublic = EllipticCurvePublicKey | Ed25519PublicKey
    AnyPrivate = EllipticCurvePrivateKey | Ed25519PrivateKey

IGNORED: Final = (".git", ".gitattributes", ".github", ".gitignore")
"""What no signature covers, at the top of a folder."""
ALGORITHMS: Final = {"sha256": 64, "blake2b": 128}
"""The digests that are read, with their hex digits; sha256 is the one that is written."""
MOST_BYTES: Final = 32 << 20
"""The largest bundle that is read."""

_BUNDLE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"
_PAYLOAD: Final = "application/vnd.in-toto+json"
_STATEMENT: Final = "https://in-toto.io/Statement/v1"
_PREDICATE: Final = "https://model_signing/signature/v1.0"
# Of each curve that signs folders the digest that it signs.
_HASHES: Final = {"secp256r1": "SHA256", "secp384r1": "SHA384", "secp521r1": "SHA512"}


class FolderManifest(Record):
    """What a statement lists.

    Attributes:
        name: the folder's, as its signer called it; it says nothing.
        files: path -> digest.
        ignored: paths that are left out; those of `IGNORED` are, whether they stand there or not.
        algorithm: one of `ALGORITHMS`.
        links: whether links to files stand for their targets' contents.
    """

    name: str
    files: Mapping[str, str]
    ignored: tuple[str, ...] = IGNORED
    algorithm: str = "sha256"
    links: bool = False


class Bundle(Record):
    """A bundle as it was read; what `payload` says counts only after `check`.

    Attributes:
        hint: SHA-256 of the signer's public key (PEM) in hex; empty where certificates or the key itself stand for it.
        raw_key: the key itself, as bundles before 2025 have it (PEM or DER); with `curve` where they name it.
        chain: the signer's certificate and those above it (DER).
    """

    payload: bytes
    signature: bytes
    hint: str = ""
    raw_key: bytes = b""
    curve: str = ""
    chain: tuple[bytes, ...] = ()


def read_key(pem: bytes) -> AnyPublic:
    """Read a public key.

    Raises:
        ValueError: it is none. UsageError: `bad_key`, of another kind.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        return _of_a_kind(load_pem_public_key(pem))
    except UnsupportedAlgorithm as err:
        raise ValueError(str(err)) from None


def _of_a_kind(key: Any) -> AnyPublic:
    """Return a public key that signs folders. Raises UsageError `bad_key` for one of another kind."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if not isinstance(key, Ed25519PublicKey) and getattr(getattr(key, "curve", None), "name", "") not in _HASHES:
        hint = "Use Ed25519, or a curve P-256, P-384 or P-521."
        raise UsageError("bad_key", "The key is of a kind that signs no folders.", hint)
    found: AnyPublic = key
    return found


def pem_of(key: AnyPublic) -> bytes:
    """Return a public key as PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def hint_of(key: AnyPublic) -> str:
    """Return how a bundle names a key: SHA-256 over its PEM, 64 hex digits."""
    return hashlib.sha256(pem_of(key)).hexdigest()


def is_named(bundle: Bundle, key: AnyPublic) -> bool:
    """Tell whether a key is the one that a bundle names as its signer's."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    if bundle.chain:
        from cryptography import x509

        try:
            return pem_of(_of_a_kind(x509.load_der_x509_certificate(bundle.chain[0]).public_key())) == pem_of(key)
        except (ValueError, UsageError):
            return False
    if bundle.raw_key:
        return bundle.raw_key in (pem_of(key), key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    return bundle.hint == hint_of(key)


def _scheme(key: AnyPrivate | AnyPublic) -> tuple[Any, ...]:
    """Return what a key's `sign` and `verify` take besides: of a curve how its digest is made."""
    curve = getattr(key, "curve", None)
    if curve is None:
        return ()
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    return (ec.ECDSA(getattr(hashes, _HASHES[curve.name])()),)


def build(manifest: FolderManifest, key: AnyPrivate) -> bytes:
    """Return the bundle of a manifest, signed. Raises UsageError `bad_key`."""
    public = _of_a_kind(key.public_key())
    names = sorted(manifest.files)
    serialization = {
        "method": "files",
        "hash_type": manifest.algorithm,
        "allow_symlinks": manifest.links,
        "ignore_paths": list(manifest.ignored),
    }
    statement = {
        "_type": _STATEMENT,
        "subject": [{"name": manifest.name, "digest": {"sha256": root_digest(manifest.files[one] for one in names)}}],
        "predicateType": _PREDICATE,
        "predicate": {
            "resources": [{"name": one, "digest": manifest.files[one], "algorithm": manifest.algorithm} for one in names],
            "serialization": serialization,
        },
    }
    payload = json.dumps(statement).encode()
    signature = key.sign(_authenticated(payload), *_scheme(key))
    return json.dumps(
        {
            "mediaType": _BUNDLE,
            "verificationMaterial": {"publicKey": {"hint": hint_of(public)}, "tlogEntries": []},
            "dsseEnvelope": {
                "payload": base64.b64encode(payload).decode(),
                "payloadType": _PAYLOAD,
                "signatures": [{"sig": base64.b64encode(signature).decode(), "keyid": ""}],
            },
        }
    ).encode()


def root_digest(digests: Iterable[str]) -> str:
    """Return SHA-256 over digests (hex) in their order, which names a folder's whole content."""
    return hashlib.sha256(b"".join(map(bytes.fromhex, digests))).hexdigest()


def read(data: bytes) -> Bundle:
    """Read a bundle; nothing of it is believed yet.

    Raises:
        TrustError: `malformed`; `unsupported`, it bears an identity of sigstore.
    """
    record = _object(_json(data), "the bundle", ("mediaType", "verificationMaterial", "dsseEnvelope"))
    if record["mediaType"] != _BUNDLE:
        raise _malformed(f"its mediaType is not {_BUNDLE}")
    material = _object(record["verificationMaterial"], "verificationMaterial", (), _MATERIAL)
    if "certificate" in material:
        hint = "Its signer can be asked for a signature by a key or a certificate chain."
        raise TrustError("unsupported", "It is signed by a sigstore identity, which is not checked here.", hint)
    # No log and no time stamp vouches for a key or a chain: what is not checked is not carried along.
    if material.get("tlogEntries") not in (None, []) or material.get("timestampVerificationData") not in (None, {}):
        raise _malformed("it has log entries or time stamps, which belong to sigstore identities")
    envelope = _object(record["dsseEnvelope"], "dsseEnvelope", ("payload", "payloadType", "signatures"))
    if envelope["payloadType"] != _PAYLOAD:
        raise _malformed(f"its payloadType is not {_PAYLOAD}")
    signatures = envelope["signatures"]
    if not isinstance(signatures, list) or len(signatures) != 1:
        raise _malformed("it has not one signature")
    one = _object(signatures[0], "the signature", ("sig",), ("keyid",))
    if one.get("keyid") not in (None, ""):
        raise _malformed("its keyid is not empty")
    payload, signature = _bytes(envelope["payload"]), _bytes(one["sig"])
    if ("publicKey" in material) == ("x509CertificateChain" in material):
        raise _malformed("it names neither a key nor certificates, or both")
    if "publicKey" in material:
        key = _object(material["publicKey"], "publicKey", (), ("hint", "rawBytes", "keyDetails"))
        hint, raw, details = key.get("hint") or "", key.get("rawBytes") or "", key.get("keyDetails") or ""
        if not (isinstance(hint, str) and isinstance(details, str) and re.fullmatch("[0-9a-f]{64}" if not raw else "", hint)):
            raise _malformed("its publicKey has not one of hint and rawBytes")
        return Bundle(payload, signature, hint, _bytes(raw) if raw else b"", details)
    chain = _object(material["x509CertificateChain"], "x509CertificateChain", ("certificates",))["certificates"]
    if not isinstance(chain, list) or not 0 < len(chain) <= 16:
        raise _malformed("its chain has no certificates, or more than 16")
    return Bundle(
        payload, signature, chain=tuple(_bytes(_object(c, "a certificate", ("rawBytes",))["rawBytes"]) for c in chain)
    )


_MATERIAL: Final = ("publicKey", "x509CertificateChain", "certificate", "tlogEntries", "timestampVerificationData")


def check(bundle: Bundle, key: AnyPublic) -> FolderManifest:
    """Check a bundle's signature by a key, and return what its statement lists.

    Raises:
        TrustError: `bad_signature`; `malformed`.
    """
    from cryptography.exceptions import InvalidSignature

    curve = getattr(key, "curve", None)
    named = "" if curve is None else f"PKIX_ECDSA_P{curve.key_size}_SHA_{_HASHES[curve.name][3:]}"
    if bundle.curve not in ("", named):
        raise _malformed("it names another kind of key than its key is")
    try:
        key.verify(bundle.signature, _authenticated(bundle.payload), *_scheme(key))
    except InvalidSignature:
        raise TrustError("bad_signature", "Its signature is not this key's.", "Do not use it; fetch it again.") from None
    return _manifest(_json(bundle.payload))


def _authenticated(payload: bytes) -> bytes:
    """Return what is signed: DSSE's pre-authentication encoding of a payload."""
    return b"DSSEv1 %d %b %d %b" % (len(_PAYLOAD), _PAYLOAD.encode(), len(payload), payload)


def _manifest(statement: object) -> FolderManifest:
    record = _object(statement, "the statement", ("_type", "subject", "predicateType", "predicate"))
    if (record["_type"], record["predicateType"]) != (_STATEMENT, _PREDICATE):
        raise _malformed("its statement is not one of model signing 1.0")
    subjects = record["subject"]
    if not isinstance(subjects, list) or len(subjects) != 1:
        raise _malformed("its statement has not one subject")
    subject = _object(subjects[0], "the subject", ("name", "digest"), None)
    predicate = _object(record["predicate"], "the predicate", ("resources", "serialization"), None)
    how = _object(predicate["serialization"], "serialization", ("method", "hash_type", "allow_symlinks"), None)
    algorithm, links, ignored = how["hash_type"], how["allow_symlinks"], how.get("ignore_paths", [])
    if how["method"] != "files" or not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        what = f"{how['method']} and {algorithm}"[:60]
        why = f"It lists {what}; whole files by sha256 or blake2b are read."
        raise TrustError("unsupported", why, "Ask its signer for those.")
    if not isinstance(links, bool) or not isinstance(ignored, list) or not all(map(is_path, ignored)):
        raise _malformed("its serialization is not well formed")
    if not isinstance(predicate["resources"], list):
        raise _malformed("it lists no resources")
    files: dict[str, str] = {}
    for resource in predicate["resources"]:
        one = _object(resource, "a resource", ("name", "digest", "algorithm"), None)
        name, digest = one["name"], one["digest"]
        is_digest = isinstance(digest, str) and re.fullmatch(f"[0-9a-f]{{{ALGORITHMS[algorithm]}}}", digest)
        if not is_path(name) or name in files or one["algorithm"] != algorithm or not is_digest:
            raise _malformed(f"its resource {str(name)[:100]!r} is not well formed, or stands there twice")
        files[name] = digest
    given = subject["digest"] if isinstance(subject["digest"], dict) else {}
    if not files:
        raise _malformed("it lists no files")
    if not isinstance(subject["name"], str) or given != {"sha256": root_digest(files.values())}:
        raise _malformed("its subject is not what its resources come to")
    return FolderManifest(subject["name"], files, tuple(ignored), algorithm, links)


def is_path(name: object) -> bool:
    """Tell whether this is a path from the folder in its one spelling."""
    return isinstance(name, str) and "\0" not in name and not {"", ".", ".."} & set(name.split("/"))


def _json(data: bytes) -> object:
    try:
        return json.loads(data.decode(), object_pairs_hook=without_twins, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise _malformed("it is not JSON in UTF-8, or names a field twice") from None


def _no_constant(_text: str) -> object:
    raise ValueError


def _object(value: object, what: str, needed: Iterable[str], more: Iterable[str] | None = ()) -> dict[str, Any]:
    """Return a JSON object with the fields that are needed; with others only of `more`, or any where that is None."""
    needed = set(needed)
    if not isinstance(value, dict) or not needed <= set(value) or (more is not None and set(value) - needed - set(more)):
        raise _malformed(f"{what} has not the fields that it must have")
    return value


def _bytes(text: object) -> bytes:
    try:
        data = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        data = b""
    # A decoder ignores the last character's low bits, which would give each signature several spellings.
    if not data or base64.b64encode(data).decode() != text:
        raise _malformed("a field is not base64")
    return data


def _malformed(why: str) -> TrustError:
    return TrustError("malformed", f"This is no signature of a folder: {why}.", "Fetch it again from its author.")


def signer_in(chain: tuple[bytes, ...], roots: Iterable[Certificate]) -> AnyPublic:
    """Return the key of a chain's first certificate, if one of the roots vouches for it now.

    Raises:
        TrustError: `malformed`; `unknown_signer`, none does, or its own certificate is not for signing.
    """
    from cryptography import x509
    from cryptography.x509 import verification
    from cryptography.x509.oid import ExtendedKeyUsageOID

    def refuse_other_usage(_policy: object, _certificate: Certificate, usage: x509.KeyUsage | None) -> None:
        if usage is not None and not usage.key_cert_sign:
            raise ValueError("its key signs no certificates")

    any_of_these, both = verification.ExtensionPolicy.permit_all(), verification.Criticality.AGNOSTIC
    above = any_of_these.require_present(x509.BasicConstraints, both, None)
    above = above.may_be_present(x509.KeyUsage, both, refuse_other_usage)
    try:
        leaf, *rest = map(x509.load_der_x509_certificate, chain)
        extensions = {type(one.value): one.value for one in leaf.extensions}
        usage, purposes = extensions.get(x509.KeyUsage), extensions.get(x509.ExtendedKeyUsage, ())
        if getattr(usage, "digital_signature", False) or ExtendedKeyUsageOID.CODE_SIGNING in purposes:
            policies = verification.PolicyBuilder().store(verification.Store(list(roots)))
            policies = policies.extension_policies(ca_policy=above, ee_policy=any_of_these)
            policies.build_client_verifier().verify(leaf, rest)
            return _of_a_kind(leaf.public_key())
    except verification.VerificationError:
        pass
    except (ValueError, UsageError):
        raise _malformed("its certificates cannot be read") from None
    why = "No certificate that was given vouches for its signer now."
    raise TrustError("unknown_signer", why, "Give its root with --key ROOT.pem.")

"""Which keys count, and the one place where bytes become `Verified`.

Rules enforced here:

* Bytes in, `Verified` out, or a TrustError: nothing is opened, and no caller can forget to look at a result.
* The checks run in one order: the line (`unsigned`, `malformed`), the digest (`tampered`), the key
  (`revoked_key`, `untrusted_key`), the signature (`bad_signature`). What was changed is `tampered`.
* A fingerprint only points at keys; each key it points at is tried in full.
* A key counts because the user has its document, or the command line names one, or because it is the system
  bundle's. What a project or another bundle brings counts for nothing; a refusal only says that it was there.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, Literal, NoReturn, final

from rye.errors import TrustError, UsageError
from rye.plain_class import Record, changed, field
from rye.trust.signature import Form, PublicKey, Signature, Signed, check, split

VERDICTS: Final = (
    "valid", "unsigned", "malformed", "tampered", "untrusted_key", "bad_signature", "misplaced", "revoked_key", "reserved_id",
)  # fmt: skip
"""The verdicts on an item: `misplaced` by `rye.items.parse`, the rest here; all but `valid` as an error's code."""

SYSTEM_KEY_DIGEST: Final = "ef544e2052b291c02bd0f42b8cfb868683b5caaad9f5db5b3f677f393f66052d"
"""Full digest of the system bundle's key: a bundle cannot be swapped together with its key document."""

Role = Literal["system", "user", "explicit", "approved", "bundle", "project", "unsigned"]
_COUNTING: Final = ("system", "user", "explicit", "approved")

_DOCUMENT_LIMIT = 4 * 1024
# In one line. The parser's time grows with their square: a dotted key of 16 KB took it two seconds.
_MOST_DOTS = 100
_TRUSTED_KEYS = "${USER_SPACE:-~}/.ai/trusted_keys"
# Without escapes and control characters, so that the texts stand for themselves in TOML.
_RENDERED = (
    r'fingerprint = "([0-9a-f]*)"\nowner = "([\w .,@<>()-]*)"\nattestation = "([\w .,@<>()-]*)"\n\n'
    r'\[public_key\]\npem = """\n(-----BEGIN PUBLIC KEY-----\n[A-Za-z0-9+/=]+\n-----END PUBLIC KEY-----\n)"""\n'
)
_MINT = object()


class TrustedKey(Record):
    """A key document's content and who vouches for it.

    Attributes:
        public: the key.
        owner: the name given to it by whoever keeps the document; printable, one line.
        attestation: free text of the document; nothing is derived from it.
        role: where the document was found. `system`, `user` and `explicit` (named on the command line) count;
            `approved` (a project's, which the user approved for that project root) counts there;
            `bundle` (an installed bundle that is not the system's) and `project` do not. `unsigned` means the
            absence of a key in what `unsafe_unsigned` makes.
    """

    public: PublicKey
    owner: str
    attestation: str = ""
    role: Role = "project"

    def as_explicit(self) -> TrustedKey:
        """Return the key as if the user had named it: to see what it would admit."""
        return changed(self, role="explicit")


def parse_key_document(data: bytes, role: Role = "project") -> TrustedKey:
    """Read a key document: TOML with the texts `fingerprint`, `owner`, `attestation`, and `[public_key] pem`.

    Args:
        data: the file. A `# rye:signed:` line in it is a comment and means nothing.
        role: see `TrustedKey`; unless the caller says otherwise the key does not count.

    Raises:
        TrustError: `bad_key_document`, it is none, or names another fingerprint than its key has.
    """
    try:
        # Before parsing: a project brings these files, and the parser takes time for each byte.
        if len(data) > _DOCUMENT_LIMIT:
            raise _bad_document(f"it is larger than {_DOCUMENT_LIMIT} bytes")
        if any(line.count(b".") > _MOST_DOTS for line in data.split(b"\n")):
            raise _bad_document(f"a line of it has more than {_MOST_DOTS} dots")
        table = _table(data.decode())
        public = PublicKey.from_pem(_text(table.get("public_key"), "pem").encode())
    except (ValueError, RecursionError) as error:
        raise _bad_document("it is not TOML in UTF-8") from error
    except TrustError as error:
        raise (error if error.code == "bad_key_document" else _bad_document(f"its pem: {error.message}")) from error
    # A document under another fingerprint could take the place of a key that the user looks for.
    if _text(table, "fingerprint") != public.fingerprint:
        raise _bad_document(f"it names another fingerprint than its key has, {public.fingerprint}")
    owner = _text(table, "owner")
    # The owner is printed in errors and lists: a control character could change what a terminal shows.
    if not owner.isprintable():
        raise _bad_document("its owner has characters that cannot be printed")
    return TrustedKey(public, owner, _text({"attestation": ""} | table, "attestation"), role)


def _table(text: str) -> dict[str, Any]:
    """Read TOML. A document just as `render_key_document` writes it needs no parser, whose import costs a cold call 5 ms."""
    rendered = re.fullmatch(_RENDERED, text)
    if rendered is None:
        import tomllib

        return tomllib.loads(text)
    fingerprint, owner, attestation, pem = rendered.groups()
    return {"fingerprint": fingerprint, "owner": owner, "attestation": attestation, "public_key": {"pem": pem}}


def render_key_document(key: PublicKey, owner: str, attestation: str = "") -> bytes:
    """Write the document that `parse_key_document` reads.

    Raises:
        UsageError: `bad_key_document`, the texts cannot stand in one.
    """
    document = (
        f"fingerprint = {_quote(key.fingerprint)}\n"
        f"owner = {_quote(owner)}\n"
        f"attestation = {_quote(attestation)}\n\n"
        f'[public_key]\npem = """\n{key.pem.decode()}"""\n'
    ).encode("utf-8", "surrogatepass")
    try:
        parse_key_document(document)
    except TrustError as error:
        hint = "Give the owner as one line of printable text, and keep the attestation short."
        raise UsageError("bad_key_document", f"No key document can name the owner {owner!r} so.", hint) from error
    return document


class TrustStore(Record):
    """The keys of one moment. Made by `build`.

    Attributes:
        keys: those that count, each once, by its strongest role.
        proposed: documents that do not count; a refusal can name them.
        revoked: full digests of keys that are refused whatever else holds.
        problems: a sentence for each document or revocation that could not be read.
        digest: SHA-256 over keys that count, roles, owners and revocations: verdicts last as long as it does.
    """

    keys: tuple[TrustedKey, ...] = ()
    proposed: tuple[TrustedKey, ...] = ()
    revoked: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()
    digest: str = ""

    @classmethod
    def build(
        cls,
        user_documents: Iterable[bytes],
        system_documents: Iterable[bytes],
        proposed_documents: Iterable[bytes] = (),
        explicit_documents: Iterable[bytes] = (),
        revoked: frozenset[str] = frozenset(),
        approved: frozenset[str] = frozenset(),
        problems: Iterable[str] = (),
    ) -> TrustStore:
        """Read the documents of each place; one that cannot be read is left out and reported.

        Args:
            user_documents: from the user's space.
            system_documents: from installed bundles; only the key of `SYSTEM_KEY_DIGEST` counts.
            proposed_documents: from the project.
            explicit_documents: named by the user for this call.
            revoked: full key digests.
            approved: full digests of those of the project's keys that the user approved for it.
            problems: what went wrong before, while the documents were collected.
        """
        problems = list(problems)
        found: list[TrustedKey] = []
        # In this order, so that of several documents for one key the strongest role wins.
        places: tuple[tuple[Role, Iterable[bytes]], ...] = (
            ("system", system_documents),
            # Before the user's: a key that is named for a call has authority over its files, also over reserved ids.
            ("explicit", explicit_documents),
            ("user", user_documents),
            ("project", proposed_documents),
        )
        for role, documents in places:
            for number, document in enumerate(documents, 1):
                try:
                    found.append(_placed(parse_key_document(document, role), approved))
                except TrustError as error:
                    problems.append(f"The {role} key document {number} is ignored. {error.message}")
        # Reversed, so that the first document of a key, which has the strongest role, overwrites the others.
        keys = {key.public: key for key in reversed(found) if key.role in _COUNTING}
        proposed = tuple(key for key in found if key.public not in keys)
        problems += [f"The revocation {entry!r} names no key." for entry in revoked if not re.fullmatch("[0-9a-f]{64}", entry)]
        return cls(tuple(reversed(keys.values())), proposed, revoked, tuple(problems))

    def __post_init__(self) -> None:
        # Sorted below: the order of files in a folder must not change the state.
        lines = [f"{key.public.digest} {key.role} {key.owner}" for key in self.keys]
        lines += [f"{entry} revoked" for entry in self.revoked]
        object.__setattr__(self, "digest", sha256("\n".join(sorted(lines)).encode()).hexdigest())


@final
class Verified(Record):
    """Bytes signed by a key that counts. Only `verify` makes one.

    Attributes:
        raw: the file as it was read.
        body: the signed bytes; nothing else of `raw` may be run, parsed or shown.
        digest: SHA-256 of `body`, 64 hex digits.
        file_digest: SHA-256 of `raw`, 64 hex digits.
        key: whose signature it is.
        signature: the fields of the line; timestamp and suffix are not covered.
    """

    raw: bytes = field(shown=False)
    body: bytes = field(shown=False)
    digest: str
    file_digest: str
    key: TrustedKey
    signature: Signature

    def __init__(self, *fields: object, mint: object = None) -> None:
        # A `Verified` is the proof that the rest of the code relies on; only one function may make it.
        if mint is not _MINT:
            raise TypeError("only rye.trust.verify.verify makes a Verified")
        super().__init__(*fields)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be pickled or copied: what comes back from a file was not verified."""
        raise TypeError("a Verified is made anew by rye.trust.verify.verify, never stored")


def verify(raw: bytes, form: Form, store: TrustStore, known: Container[str] = ()) -> Verified:
    """Return the item as `Verified`.

    Args:
        raw: the file, read once; run, parse and show what is returned, never the file again.
        form: see `rye.trust.signature.form_of`.
        store: the keys that count.
        known: SHA-256 of files (raw bytes) whose signature was found good under this very state of the store; for these
            the signature alone is not checked again.

    Raises:
        TrustError: its `code` is the verdict, one of `VERDICTS`; its hint is the next thing to do.
    """
    signed = split(raw, form)
    file_digest = sha256(raw).hexdigest()
    key = _signing_key(signed, store, known=file_digest in known)
    return Verified(raw, signed.body, signed.digest, file_digest, key, signed.signature, mint=_MINT)


def unsafe_unsigned(raw: bytes, form: Form) -> Verified:
    """Return a file that bears no signature as if verified, signed by nobody: for a person who builds it and says so.

    Raises:
        TrustError: the verdict of a file that bears a signature line, good or bad: it has another way.
    """
    try:
        split(raw, form)
    except TrustError as error:
        if error.code != "unsigned":
            raise
    else:
        raise TrustError("malformed", "It bears a signature line.", "Run it as it is, or remove the line.")
    digest = sha256(raw).hexdigest()
    nobody = TrustedKey(PublicKey(bytes(32)), "nobody", role="unsigned")
    return Verified(raw, raw, digest, digest, nobody, Signature("", digest, b"", ""), mint=_MINT)


def _signing_key(signed: Signed, store: TrustStore, *, known: bool) -> TrustedKey:
    """Return the key that made the signature, of all that count and have its fingerprint."""
    fingerprint = signed.signature.fingerprint
    named = [key for key in store.keys + store.proposed if key.public.fingerprint == fingerprint]
    live = [key for key in named if key.public.digest not in store.revoked]
    # A revocation is named before anything else: "unknown key" would invite the user to approve it.
    if named and not live:
        raise _revoked(named[0])
    counting = [key for key in live if key.role in _COUNTING]
    if not counting:
        raise _untrusted(fingerprint, live)
    # With two candidates the stored verdict does not say whose signature it was.
    if known and len(counting) == 1:
        return counting[0]
    for key in counting[:-1]:
        with suppress(TrustError):  # two keys may share a fingerprint
            check(key.public, signed)
            return key
    check(counting[-1].public, signed)
    return counting[-1]


def _revoked(key: TrustedKey) -> TrustError:
    why = f"Its key {key.public.fingerprint} was revoked (full digest {key.public.digest})."
    hint = "Do not use it. Fetch one signed by another key, or review it and run `rye sign` with your own."
    return TrustError("revoked_key", why, hint, fingerprint=key.public.fingerprint, key_digest=key.public.digest)


def _untrusted(fingerprint: str, proposed: list[TrustedKey]) -> TrustError:
    """Return the error that no key that counts has the fingerprint; it repeats no text of a document that does not count."""
    message = f"Its key {fingerprint} is not one you trust."
    details = {"fingerprint": fingerprint}
    if proposed:
        key = proposed[0]
        source = "The project" if key.role == "project" else "An installed bundle"
        message += f" {source} brings it (full digest {key.public.digest}); it counts for nothing until you approve it."
        details |= {"key_digest": key.public.digest, "proposed_by": key.role}
    add = f"`rye trust add KEY.toml` (stored in {_TRUSTED_KEYS})"
    brought = f"run `rye trust approve` in this project for a key that the project brings, or {add}"
    missing = f"run {add}; who signed it puts the key into a project by `rye keys export --project`"
    hint = f"If you know whose it is, {brought if proposed else missing}. If the item is your own, run `rye sign`."
    return TrustError("untrusted_key", message, hint, **details)


def _placed(key: TrustedKey, approved: frozenset[str]) -> TrustedKey:
    """Take the system's role from a bundle's key that is not the system's; give an approved project key its own."""
    # An installed package cannot make itself the system by bringing a key document.
    if key.role == "system" and key.public.digest != SYSTEM_KEY_DIGEST:
        return changed(key, role="bundle")
    return changed(key, role="approved") if key.role == "project" and key.public.digest in approved else key


def _text(table: Any, name: str) -> str:
    value = table.get(name) if isinstance(table, dict) else None
    if not isinstance(value, str):
        raise _bad_document(f"it has no text {name!r}")
    return value


def _bad_document(reason: str) -> TrustError:
    hint = "Ask its owner for the document again, or write one with `rye keys`."
    return TrustError("bad_key_document", f"This is not a key document: {reason}.", hint)


def _quote(text: str) -> str:
    """Return a TOML basic string."""
    import json

    # JSON's escapes are TOML's, but for DEL, and for halves of a surrogate pair, which TOML does not have.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

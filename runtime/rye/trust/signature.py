"""Signature lines, the bytes they cover, Ed25519 and key files.

One line signs an item, behind the comment marker of its file type, at byte 0 or after a shebang::

    rye:signed:TIMESTAMP:SHA256HEX:ED25519SIG:FP16[|provider@user]

SHA256HEX is the digest of the covered bytes, ED25519SIG the signature (RFC 8032) over its 64 ASCII characters
in padded base64url, FP16 the key's fingerprint. Files signed by other RYE installations verify here.

There is one spelling of each valid line. TIMESTAMP, the suffix, a first line before it and the comment marker are not
covered: show them, never rely on them. The executor compares a script's with what its signed runtime declares. Nor
does the signature say what the bytes are: that an item is under its own type and id is checked by `rye.items.parse`.
Which keys count is decided by `rye.trust.verify`.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self

from rye.errors import ItemError, RyeError, TrustError, UsageError
from rye.fs import atomic
from rye.plain_class import Record, changed, field

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_TIMESTAMP = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
_SUFFIX = rb"[\w-]+@[\w-]+"
_GRAMMAR = rb"rye:signed:(%b):([0-9a-f]{64}):([\w-]{86}==):([0-9a-f]{16})(?:\|(%b))?" % (_TIMESTAMP, _SUFFIX)
_FIELDS = re.compile(_GRAMMAR)
# The next two are compiled where they are used: a plain verification needs neither.
# Looser than a valid line in what surrounds the fields: no reader, however lax, may find another to believe.
_ANOTHER_LINE = rb"(?:\A|[\r\n])(?:\xef\xbb\xbf)?(?:#|//|--|;|<!--)[ \t]*%b(?:[ \t]*-->)?[ \t]*(?:[\r\n]|\Z)" % _GRAMMAR
# What signing replaces: our line however damaged, and two retired forms that were never verifiable.
_STALE = rb"[ \t]*(#|//|--|;|<!--)[ \t]*(?:rye:signed:|kiwi-mcp:|[\w-]+:validated:\d{4}-)"
_DIRECTIVE = rb"<directive[\s>]"
_MARKS = (b"#", b"//", b"--", b";")
_MARKED = rb"\s*(#|//|--|;)[ \t\r\n]"
_HEADER = "Begin it with its metadata as YAML in a comment, between two lines of ---."
# PEP 263, without its condition that line 1 be a comment: stricter, and simpler to be sure of.
_COOKIE = rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)"
_SIGN = "Review it, then run `rye sign`."
_AGAIN = f"Fetch it again from its author. Or: {_SIGN}"


class Form(Record):
    """How an item of one type and file suffix carries its signature.

    Attributes:
        opening: comment marker before the fields, with its blank; empty where it is one of `MARKERS`, as the file has it.
        closing: comment marker after the fields; empty where the end of the line ends the comment.
        coverage: `file`, all but signature line and first line; `directive`, one `<directive …>…</directive>`.
        python: what could make Python read the same bytes as another program is refused.
        first: a pattern of the only first lines that may precede the signature line; none of them is covered.
    """

    opening: bytes
    closing: bytes = b""
    coverage: Literal["file", "directive"] = "file"
    python: bool = False
    first: bytes = b""


MARKERS: Final = ("#", "//", "--", ";")
"""The comment markers that a script's header may have."""
_FIRST: Final = rb"<\?php|#! ?/(?:usr/(?:local/)?)?bin/(?:env (?:-S )?)?[\w.+-]+(?: -[\w-]+)*"
_SCRIPT: Final = Form(b"", first=_FIRST)
# What a script says of itself at its beginning; any other file among the tools is none.
_BEGINNING: Final = rb"(?:(#!|<\?php)[^\n]*\n)?\s*(#|//|--|;) (?:rye:signed:|---[ \t\r]*\n)"
_FORMS: Final = {
    # In the order in which a tool's file is looked for. Any other suffix is that of a script, see `is_script_suffix`.
    "tool": {
        ".py": Form(b"# ", python=True, first=rb"#!/usr/bin/env python3?"),
        **dict.fromkeys((".yaml", ".yml"), Form(b"# ")),
    },
    "knowledge": dict.fromkeys((".md", ".yaml", ".yml"), Form(b"<!-- ", b" -->")),
    "directive": {".md": Form(b"<!-- ", b" -->", coverage="directive")},
}
BUILT_IN: Final = (".py", ".yaml", ".yml", ".md", ".json")
"""The suffixes that no runtime outside the system bundle may claim."""


def suffixes_of(item_type: str) -> tuple[str, ...]:
    """Return the built-in suffixes of the files that an item of a type can be, in the order in which they are tried."""
    return tuple(_FORMS[item_type])


def is_script_suffix(suffix: str) -> bool:
    """Tell whether a suffix can be that of a tool in a language of its own, which a signed runtime declares."""
    return suffix[1:].isalnum() and suffix.isascii() and len(suffix) <= 16 and suffix.lower() not in BUILT_IN


def beginning(raw: bytes) -> tuple[str, str] | None:
    """Return a script's first line before its header ("" for none) and its comment marker; None for any other file."""
    match = re.match(_BEGINNING, raw)
    if match is None:
        return None
    return (raw.partition(b"\n")[0].decode("utf-8", "replace") if match[1] else "", match[2].decode())


def form_of(item_type: str, suffix: str) -> Form:
    """Return how a file of an item type (`tool`, `knowledge`, `directive`) and suffix (`.py`) is signed.

    Raises:
        ItemError: `unsignable`, there is no such type, or no comment in such a file could carry the line.
    """
    forms = _FORMS.get(item_type, {})
    if suffix in forms:
        return forms[suffix]
    if item_type == "tool" and is_script_suffix(suffix):
        return _SCRIPT
    more = ", or the suffix of a runtime" if item_type == "tool" else ""
    hint = f"A {item_type} is one of {' '.join(forms)}{more}." if forms else f"Item types are {', '.join(_FORMS)}."
    raise ItemError("unsignable", f"A {suffix!r} file cannot carry a signature as {item_type!r}.", hint)


class Signature(Record):
    """The fields of a signature line.

    Attributes:
        timestamp: when it was signed, `YYYY-MM-DDTHH:MM:SSZ`, as the signer states it; not covered.
        digest: SHA-256 of the covered bytes as the line states it, 64 lower-case hex digits.
        signature: Ed25519 signature over `digest` as ASCII, 64 bytes.
        fingerprint: which key to look for, 16 lower-case hex digits; a pointer, not a proof.
        suffix: `provider@user`, as whoever passed the file on states it; not covered.
    """

    timestamp: str
    digest: str
    signature: bytes
    fingerprint: str
    suffix: str | None = None


class Signed(Record):
    """An item whose line is well formed and whose bytes have the stated digest; by whom is not settled yet.

    Attributes:
        signature: the line's fields.
        body: exactly the covered bytes; nothing else of the file may be used.
        digest: SHA-256 of `body`, 64 lower-case hex digits.
    """

    signature: Signature
    body: bytes
    digest: str


def split(raw: bytes, form: Form) -> Signed:
    """Take a signed item apart and compare its digest.

    Raises:
        TrustError: `unsigned`; `malformed`, also where the digest would match; `tampered` with the details
            `expected` and `actual`.
    """
    start = _line_start(raw, form)
    line, _, rest = raw[start:].partition(b"\n")
    signature = _parse_line(line, form)
    # The first line is not covered, so only plain forms are allowed: it decides which program runs the file.
    if start and not re.fullmatch(form.first, raw[: start - 1]):
        raise _malformed("Its first line is none that may be unsigned.", f"Write such as #!/usr/bin/env python3. {_SIGN}")
    if not rest:
        raise _malformed("It has nothing behind its signature line.")
    # Another implementation may search for the line: two of them could verify different bytes. Of a directive that is so in
    # what is covered alone; above it other installations leave the line of an earlier signature, which nobody reads.
    start_of_directive = None if form.coverage == "file" else re.search(_DIRECTIVE, rest)
    searched = rest[start_of_directive.start() :] if start_of_directive else rest
    if b"rye:signed:" in searched and re.search(_ANOTHER_LINE, searched):
        raise _malformed("It has a second signature line.", f"Remove it, or indent it as an example. {_SIGN}")
    if form.python:
        _refuse_ambiguous_python(raw, rest)
    body = _covered(rest, form)
    # After the checks of the form: those give the more useful error for a file that fails both.
    digest = sha256(body).hexdigest()
    if digest != signature.digest:
        message = f"It was changed after it was signed: expected {signature.digest[:16]}…, found {digest[:16]}…."
        raise TrustError("tampered", message, f"Restore it. Or: {_SIGN}", expected=signature.digest, actual=digest)
    return Signed(signature, body, digest)


def sign(raw: bytes, form: Form, key: PrivateKey, *, timestamp: str, suffix: str | None = None) -> bytes:
    """Return the item with a new signature line in place of the one it had; no other byte differs.

    Raises:
        ItemError: `empty_item`.
        TrustError: `malformed`, the result would not verify; the hint says what to change.
        UsageError: `bad_signature_field`, `timestamp` or `suffix` is not of its form (see `Signature`).
    """
    tail = "" if suffix is None else f"|{suffix}"
    fields = (timestamp + tail).encode("utf-8", "replace")
    # The text goes into the line as it is: a newline in it would end the comment.
    if not re.fullmatch(rb"%b(\|%b)?" % (_TIMESTAMP, _SUFFIX), fields) or not _is_moment(timestamp.encode()):
        message = f"A signature cannot carry the timestamp {timestamp!r} with the suffix {suffix!r}."
        raise UsageError("bad_signature_field", message, "Use YYYY-MM-DDTHH:MM:SSZ and provider@user.")
    # Signing twice must give one line, not two.
    head, rest = _without_line(raw, form)
    if not form.opening:
        found = re.match(_MARKED, rest)
        if found is None:
            raise ItemError("unsignable", "It begins with no comment that could carry a signature.", _HEADER)
        form = changed(form, opening=found[1] + b" ")
    if not rest:
        raise ItemError("empty_item", "There is nothing to sign in this file.", "Write its content first.")
    public = key.public
    digest = sha256(_covered(rest, form)).hexdigest()
    encoded = base64.urlsafe_b64encode(key.sign(digest.encode())).decode()
    line = f"rye:signed:{timestamp}:{digest}:{encoded}:{public.fingerprint}{tail}"
    signed = b"%b%b%b%b\n%b" % (head, form.opening, line.encode(), form.closing, rest)
    check(public, split(signed, form))  # nothing leaves here that would be refused elsewhere
    return signed


def check(key: PublicKey, signed: Signed) -> None:
    """Return if `key` made the signature.

    Raises:
        TrustError: `bad_signature`.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        # The text of the digest is signed, not the bytes: so other RYE installations do it.
        Ed25519PublicKey.from_public_bytes(key.raw).verify(signed.signature.signature, signed.digest.encode())
    except InvalidSignature:
        message = f"Its signature was not made by the key {key.fingerprint}."
        raise TrustError("bad_signature", message, _AGAIN, fingerprint=key.fingerprint) from None


class _Key(Record):
    """A key of 32 bytes, or the one PEM text of it; anything else is a TrustError `bad_key`."""

    _label: ClassVar[bytes]
    _der: ClassVar[bytes]  # what precedes the key in its only DER form (RFC 8410 sections 4 and 7)
    raw: bytes = field(shown=False)

    def __post_init__(self) -> None:
        if len(self.raw) != 32:
            raise TrustError("bad_key", f"An Ed25519 key has 32 bytes, not {len(self.raw)}.")

    @classmethod
    def from_pem(cls, pem: bytes) -> Self:
        """Read the text of `pem`; only blanks around it may differ."""
        # The last 32 bytes are the key exactly if they encode to the same text: that saves a parser.
        with contextlib.suppress(ValueError, IndexError, TrustError):
            key = cls(base64.b64decode(pem.strip().split(b"\n")[1])[-32:])
            if key.pem.strip() == pem.strip():
                return key
        label = cls._label.decode()
        hint = f"It must be one -----BEGIN {label}----- block, unencrypted, with LF line ends."
        raise TrustError("bad_key", f"This is not an Ed25519 {label.lower()} in PEM.", hint)

    @property
    def pem(self) -> bytes:
        """SubjectPublicKeyInfo or unencrypted PKCS #8 in PEM, with its final newline."""
        encoded = base64.b64encode(self._der + self.raw)
        return b"-----BEGIN %b-----\n%b\n-----END %b-----\n" % (self._label, encoded, self._label)


class PublicKey(_Key):
    """An Ed25519 public key (RFC 8032): `raw` is its 32 bytes, `pem` has 113."""

    _label = b"PUBLIC KEY"
    _der = bytes.fromhex("302a300506032b6570032100")

    @property
    def fingerprint(self) -> str:
        """First 16 hex digits of SHA-256 over `pem`: where to look, never whether to trust."""
        return sha256(self.pem).hexdigest()[:16]

    @property
    def digest(self) -> str:
        """SHA-256 over `raw`, 64 hex digits: the key's full name."""
        return sha256(self.raw).hexdigest()


class PrivateKey(_Key):
    """An Ed25519 private key (RFC 8032): `raw` is its 32 secret bytes, which no `repr` shows."""

    _label = b"PRIVATE KEY"
    _der = bytes.fromhex("302e020100300506032b657004220420")

    @property
    def public(self) -> PublicKey:
        """The public key that belongs to it."""
        return PublicKey(self._engine().public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """Return the Ed25519 signature over `message`, 64 bytes."""
        return self._engine().sign(message)

    def _engine(self) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.raw)


def generate_key_pair(directory: Path, more: Callable[[PublicKey], dict[Path, bytes]] = lambda _: {}) -> PublicKey:
    """Make `private_key.pem` (0600) and `public_key.pem` (0644) in `directory`, itself made 0700 if missing.

    `more` returns further files to make with them, of a public key, by their paths.

    Raises:
        RyeError: `key_exists`, no file is ever overwritten; `key_unwritable`. Nothing is left of it then.
    """
    key = PrivateKey(os.urandom(32))
    made: list[Path] = []
    path = directory
    try:
        atomic.make_private(directory)
        pair = ((directory / "private_key.pem", key.pem, 0o600), (directory / "public_key.pem", key.public.pem, 0o644))
        for path, pem, mode in (*pair, *((path, data, 0o644) for path, data in more(key.public).items())):
            atomic.make_private(path.parent)
            # The mode holds from the first moment; fchmod only undoes what a narrow umask took from it.
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
                made.append(path)
                os.fchmod(stream.fileno(), mode)
                stream.write(pem)
    except OSError as error:
        for one in made:  # half a pair would make the next attempt fail
            one.unlink(missing_ok=True)
        # Else a file stands where its folder should be.
        is_there = isinstance(error, FileExistsError) and str(error.filename) == str(path)
        code = "key_exists" if is_there else "key_unwritable"
        hint = "A key is never overwritten: use the one that is there, or move its files away first."
        raise RyeError(code, f"No key was made in {directory}: {error.strerror}.", hint) from error
    return key.public


def load_private_key(path: Path) -> PrivateKey:
    """Read a private key file of whatever mode: a mounted release key may well be readable by all.

    Raises:
        RyeError: `key_not_found`, `key_unreadable`.
        TrustError: `bad_key`.
    """
    try:
        with path.open("rb") as stream:
            return PrivateKey.from_pem(stream.read(4096))
    except OSError as error:
        code = "key_not_found" if isinstance(error, FileNotFoundError) else "key_unreadable"
        hint = "Run `rye keys generate`, or name another key with --key."
        raise RyeError(code, f"The signing key {path} cannot be read: {error.strerror}.", hint) from error


def _line_start(raw: bytes, form: Form) -> int:
    """Return where the signature line belongs: byte 0, or after a shebang (which `split` then judges)."""
    if form.first and raw.startswith(b"#!" if form.python else (b"#!", b"<?php")):
        return raw.find(b"\n") + 1 or len(raw)
    return 0


def _parse_line(line: bytes, form: Form) -> Signature:
    # Sliced, not searched: the whole line is the signature, or there is none.
    opening = form.opening or line.partition(b" ")[0] + b" "
    framed = line.startswith(opening) and line.endswith(form.closing) and (form.opening or opening[:-1] in _MARKS)
    match = _FIELDS.fullmatch(line[len(opening) : len(line) - len(form.closing)]) if framed else None
    if match is None:
        if b"rye:signed:" in line:
            raise _malformed("Its signature line is not of the defined form, with nothing before or after it.")
        raise TrustError("unsigned", "It carries no signature.", _SIGN)
    encoded = match[3]
    signature = base64.urlsafe_b64decode(encoded)
    # A decoder ignores the last character's low bits, which would give each signature 16 spellings.
    if base64.urlsafe_b64encode(signature) != encoded:
        raise _malformed("Its signature is not canonical base64.")
    if not _is_moment(match[1]):
        raise _malformed(f"Its timestamp {match[1].decode()} names no moment.")
    suffix = match[5].decode() if match[5] else None
    return Signature(match[1].decode(), match[2].decode(), signature, match[4].decode(), suffix)


def _is_moment(timestamp: bytes) -> bool:
    """Tell whether a timestamp of the right form is a date and a time of day."""
    year, month, day, hour, minute, second = map(int, re.findall(rb"\d+", timestamp))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = (31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return year > 0 and 0 < month <= 12 and 0 < day <= days[month - 1] and hour < 24 and minute < 60 and second < 60


def _refuse_ambiguous_python(raw: bytes, rest: bytes) -> None:
    """Refuse what could be taken for another program than the one that was signed.

    An encoding cookie turns the same bytes into other statements; NUL and CR end lines for some readers only.
    """
    hint = "Save it as UTF-8 with LF line ends, no BOM and no encoding line, then run `rye sign`."
    for found, name in ((b"\r", "a carriage return"), (b"\0", "a NUL byte"), (b"\xef\xbb\xbf", "a byte order mark")):
        # In the whole file, the shebang line too: it precedes the covered bytes, but Python reads it.
        if found in raw:
            raise _malformed(f"A Python tool may not contain {name}.", hint)
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        raise _malformed("A Python tool must be UTF-8.", hint) from None
    # PEP 263 looks at the first two lines, of the file and of the signed text when that is compiled alone.
    for line in (*raw.split(b"\n", 2)[:2], *rest.split(b"\n", 2)[:2]):
        # Few lines hold the word, and compiling what looks for it costs a cold call more than all the rest here.
        cookie = re.match(_COOKIE, line) if b"coding" in line else None
        if cookie and cookie[1].lower() not in (b"utf-8", b"utf8", b"utf_8"):
            raise _malformed("A Python tool may not declare an encoding other than utf-8.", hint)


def _covered(rest: bytes, form: Form) -> bytes:
    """Return the bytes that are hashed, out of those that follow the signature line."""
    if form.coverage == "file":
        return rest
    # From the first opening tag to the last closing one: what a reader takes for the element is covered whole.
    start = re.search(_DIRECTIVE, rest)
    inside, end, _ = rest[start.start() :].rpartition(b"</directive>") if start else (b"", b"", b"")
    if not end:
        raise _malformed("It has no <directive …>…</directive>, which is what a signature covers.", _SIGN)
    return inside + end


def _without_line(raw: bytes, form: Form) -> tuple[bytes, bytes]:
    """Return the bytes before and after the signature line, or before and after the place where it will be."""
    start = _line_start(raw, form)
    stale = re.compile(_STALE).match(raw, start)
    if stale is None:
        return raw[:start], raw[start:]
    line, lf, rest = raw[start:].partition(b"\n")
    text = line.partition(b"-->")[2] if stale[1] == b"<!--" else b""
    # An author's text behind the comment is not ours to drop.
    return raw[:start], text + lf + rest if text.strip() else rest


def _malformed(message: str, hint: str = _AGAIN) -> TrustError:
    return TrustError("malformed", message, hint)

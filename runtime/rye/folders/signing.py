"""Verifying and signing a folder: one row each, with the verdicts of items and `unknown_signer`, `signer_changed`,
`unsupported` and `not_signable` beside them.

Whose signature counts is decided as for items: a key that the user trusts (or names for the call), not revoked, and the one
that signed this folder when it was verified here first. That is kept with the registries' pins, under `folder:PATH`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rye.call.results import first_few
from rye.config import user_dirs
from rye.errors import RyeError, TrustError, UsageError
from rye.folders import oms, tree
from rye.fs import atomic, names
from rye.trust import keys, pins

if TYPE_CHECKING:
    from rye.trust.verify import TrustStore

SIGNATURE: Final = "oms.sig"
PINNED: Final = "folder:"

_LARGEST_KEY: Final = 64 << 10
_MOST_NAMED: Final = 20
_MOST_PINS: Final = 1_000


def signature_of(folder: str) -> str | None:
    """Return where a folder's signature lies: in it, else beside it; None for neither."""
    places = (os.path.join(folder, SIGNATURE), os.path.join(os.path.dirname(os.path.abspath(folder)), SIGNATURE))
    return next((one for one in places if os.path.isfile(one)), None)


def is_whole(folder: str) -> bool:
    """Tell whether a folder is verified as one thing.

    It bears a signature, or did when it was verified before; is a skill or a plugin; or has no file that could be an item.
    """
    from rye.items import targets

    marks = (SIGNATURE, "SKILL.md", os.path.join(".claude-plugin", "plugin.json"))
    if any(os.path.isfile(os.path.join(folder, one)) for one in marks):
        return True
    if holds_items(folder):
        return False
    was_signed = signature_of(folder) is not None or PINNED + os.path.realpath(folder) in pins.load().pins
    return was_signed or not targets.holds_any(folder)


def holds_items(folder: str) -> bool:
    """Tell whether a folder is an `.ai`, lies in one, or has one: its items are signed one by one."""
    return ".ai" in os.path.realpath(folder).split("/") or os.path.isdir(os.path.join(folder, ".ai"))


def verify(
    folder: str, store: TrustStore, *, key: str | None = None, signature: str | None = None, pins_signer: bool = True
) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return the verdict on a folder, and the digests of the files that were found good, by name; none where it is not valid.

    Args:
        folder: its path.
        store: the keys that count, and those that are revoked.
        key: a file with the signer's public key, or with root certificates (PEM): in place of the keys that count.
        signature: the bundle; None for `signature_of`.
        pins_signer: take no other signer for this folder from now on, where its signature is good.

    Returns:
        The row of `rye.items.sign_verify.verify`, of type `folder`, with `files` (how many are covered) and `uncovered`: names
        of what lies there and no signature covers, which is a place to hide.

    Raises:
        UsageError: `bad_key`, the file with the key holds none.
    """
    row: dict[str, Any] = {"target": names.show(os.fsencode(folder)), "item_id": None, "type": "folder", "verdict": "valid"}
    row |= {"signer": None, "owner": None, "expected": None, "actual": None, "hint": None, "files": 0, "uncovered": []}
    try:
        signer, files = _judge(folder, store, key, signature or signature_of(folder), row)
        if pins_signer:
            _pin(PINNED + os.path.realpath(folder), signer)
        return row, files
    except TrustError as err:
        row.update(verdict=err.code, hint=str(err))
    except OSError as err:
        row.update(verdict="malformed", hint=f"It cannot be read: {err.strerror}.")
    return row, {}


def _judge(
    folder: str, store: TrustStore, key: str | None, signature: str | None, row: dict[str, Any]
) -> tuple[str, Mapping[str, str]]:
    """Return the signer and the files that are signed, with their digests; `row` takes what is found out."""
    name = PINNED + os.path.realpath(folder)
    pinned = pins.load().pins.get(name)
    if signature is None:
        was = f" It was signed by {pinned[:16]} when it was verified before." if pinned else ""
        raise TrustError("unsigned", f"It carries no signature.{was}", "Review it, then run `rye sign FOLDER`.")
    bundle = oms.read(atomic.read_regular(signature, oms.MOST_BYTES, whole=True)[0])
    public, owner = _signer(bundle, store, key)
    signer = oms.hint_of(public)
    row.update(signer=signer[:16])
    manifest = oms.check(bundle, public)
    row.update(owner=owner, files=len(manifest.files), expected=oms.root_digest(manifest.files.values()))
    if pinned not in (None, signer):
        why = f"It was signed by {pinned[:16]} when it was verified before; now by {signer[:16]}."
        raise TrustError("signer_changed", why, f"Ask its author. If that is right, run `rye registry unpin '{name}'` first.")
    own = os.path.relpath(os.path.realpath(signature), os.path.realpath(folder))
    ignored = frozenset((*oms.IGNORED, *manifest.ignored, own))
    found = tree.read(folder, ignored, manifest.algorithm, links=manifest.links)
    row.update(uncovered=[one for one in found.uncovered if one != own])
    row.update(actual=oms.root_digest(found.digests[one] for one in sorted(found.digests)))
    if found.digests != manifest.files:
        raise TrustError("tampered", differences(manifest.files, found.digests), "Do not use it; fetch it again.")
    return signer, found.digests


def _signer(bundle: oms.Bundle, store: TrustStore, named: str | None) -> tuple[oms.AnyPublic, str | None]:
    """Return the key whose signature this must be, and whose it is where that is known."""
    owner = None
    if named is not None:
        try:
            data = atomic.read_regular(named, _LARGEST_KEY, whole=True)[0]
            if b"-----BEGIN CERTIFICATE" in data:
                from cryptography import x509

                public = oms.signer_in(bundle.chain, x509.load_pem_x509_certificates(data)) if bundle.chain else None
            else:
                public = oms.read_key(data)
        except (ValueError, OSError):
            raise UsageError("bad_key", f"{named} holds no public key and no certificate.", "Give a PEM file.") from None
        if public is None or not oms.is_named(bundle, public):
            raise _unknown(bundle, "It is not signed by the key that was given")
    else:
        public, owner = _trusted(bundle, store)
    pem, hint = oms.pem_of(public), oms.hint_of(public)
    own = next((one for one in (*store.keys, *store.proposed) if one.public.pem == pem), None)
    if {hint, own.public.digest if own else ""} & store.revoked:
        raise TrustError("revoked_key", f"Its key {hint[:16]} was revoked.", "Do not use what it signed.")
    return public, owner or (own.owner if own in store.keys and own is not None else None)


def _trusted(bundle: oms.Bundle, store: TrustStore) -> tuple[Any, str | None]:
    """Return the user's key that a bundle names: of the documents that count, or `trusted_keys/FINGERPRINT.pem`."""
    for one in store.keys:
        public = oms.read_key(one.public.pem)
        if oms.is_named(bundle, public):
            return public, one.owner
    for path in sorted((Path(user_dirs.user_ai()) / "trusted_keys").glob("*.pem")):
        with contextlib.suppress(ValueError, OSError, UsageError):
            public = oms.read_key(atomic.read_regular(str(path), _LARGEST_KEY, whole=True)[0])
            if oms.is_named(bundle, public):
                return public, None
    raise _unknown(bundle, "Its signer is not one you trust")


def public_key(path: str) -> tuple[bytes, str]:
    """Return a public key as PEM with its digest, 64 hex digits. Raises UsageError `bad_key`."""
    try:
        public = oms.read_key(atomic.read_regular(path, _LARGEST_KEY, whole=True)[0])
    except (ValueError, OSError):
        raise UsageError("bad_key", f"{path} holds no public key.", "Give a PEM file.") from None
    return oms.pem_of(public), oms.hint_of(public)


def _unknown(bundle: oms.Bundle, why: str) -> TrustError:
    what = f" (it names the key {bundle.hint[:16]})" if bundle.hint else " (it brings certificates)" if bundle.chain else ""
    hint = "If you know whose it is: --key PUBLIC.pem for this call, `rye trust add PUBLIC.pem` for all."
    return TrustError("unknown_signer", f"{why}{what}.", hint)


def differences(signed: Any, found: Any) -> str:
    """Return in a sentence how files differ from those that were signed, each a mapping of paths to digests."""
    said = []
    for word, those in (
        ("changed", [one for one in signed if one in found and found[one] != signed[one]]),
        ("missing", [one for one in signed if one not in found]),
        ("not signed", [one for one in found if one not in signed]),
    ):
        if those:
            shown = [names.show(one.encode("utf-8", "backslashreplace")) for one in sorted(those)]
            said.append(f"{word}: {first_few(shown, _MOST_NAMED)}")
    return f"Its files are not those that were signed ({'; '.join(said)})."


def _pin(name: str, signer: str) -> None:
    if pins.load().pins.get(name) == signer:
        return
    # Where nothing can be kept, the verdict stands all the same.
    with contextlib.suppress(RyeError), pins.changing() as known:
        of_folders = [one for one in known.pins if one.startswith(PINNED)]
        # Each is read and written with the others, for good: those of folders that are gone make room.
        for one in of_folders if len(of_folders) >= _MOST_PINS else ():
            if not os.path.isdir(one.removeprefix(PINNED)):
                del known.pins[one]
        known.pins[name] = signer


def sign(
    folder: str,
    project: str,
    *,
    key: str | None = None,
    signature: str | None = None,
    ignore: Sequence[str] = (),
    links: bool = False,
) -> dict[str, Any]:
    """Sign a folder as it lies there: write its bundle, and nothing else.

    Args:
        folder: its path.
        project: whose record takes the change, where the bundle lies in it.
        key: a private key file (PEM: Ed25519, P-256, P-384 or P-521); None for the user's own.
        signature: where the bundle is written; None for `oms.sig` in the folder.
        ignore: paths in the folder that are left out.
        links: take links to files for their contents; else they are refused.

    Returns:
        The row of `rye.items.sign_verify.sign`, of type `folder`.

    Raises:
        UsageError: `bad_key`, `bad_path`. RyeError: `key_not_found`, `key_unreadable`.
    """
    from rye.journal import own_files

    private = _private(key)
    path = os.path.abspath(signature or os.path.join(folder, SIGNATURE))
    own = os.path.relpath(os.path.realpath(path), os.path.realpath(folder))
    left_out = [one.rstrip("/").removeprefix("./") for one in ignore]
    bad = next((one for one in left_out if not oms.is_path(one)), None)
    if bad is not None:
        raise UsageError("bad_path", f"{bad!r} is no path in the folder.", "Write it from the folder, such as cache/tmp.")
    left_out += [own] * (not own.startswith("../"))
    ignored = tuple(dict.fromkeys((*oms.IGNORED, *left_out)))
    row: dict[str, Any] = {"target": names.show(os.fsencode(folder)), "item_id": None, "type": "folder", "status": "failed"}
    row |= {"digest": None, "signer": oms.hint_of(private.public_key())[:16], "path": names.show(os.fsencode(path))}
    row |= {"error": None, "code": None, "hint": None}
    try:
        found = tree.read(folder, frozenset(ignored), links=links, every=True)
        if not found.digests:
            raise TrustError("not_signable", "The folder holds no file that a signature covers.", "Put files into it first.")
        name = os.path.basename(os.path.realpath(folder)) or "root"
        manifest = oms.FolderManifest(name, found.digests, ignored, links=links)
        row["digest"] = oms.root_digest(found.digests[one] for one in sorted(found.digests))
        if _is_signed(path, private, manifest):
            row["status"] = "unchanged"
        else:
            own_files.write(
                [own_files.OwnFile(path, oms.build(manifest, private), 0o644)], "rye/primary-tools/rye_sign", [project]
            )
            row["status"] = "signed"
    except RyeError as err:
        row.update(error=err.message, code=err.code, hint=err.hint or None)
    except OSError as err:
        row.update(error=f"It cannot be read: {err.strerror}.", code="not_signable")
    return row


def _is_signed(path: str, key: oms.AnyPrivate, manifest: oms.FolderManifest) -> bool:
    """Tell whether a bundle is this key's over this very manifest: a signature that holds keeps its bytes."""
    try:
        return oms.check(oms.read(atomic.read_regular(path, oms.MOST_BYTES, whole=True)[0]), key.public_key()) == manifest
    except (OSError, TrustError):
        return False


def _private(named: str | None) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if named is None:
        data = keys.signing_key().pem
    else:
        try:
            data = atomic.read_regular(named, _LARGEST_KEY, whole=True)[0]
        except OSError as err:
            hint = "Name another key with --key."
            raise RyeError("key_unreadable", f"The signing key {named} cannot be read: {err.strerror}.", hint) from None
    try:
        private = load_pem_private_key(data, None)
    except (ValueError, TypeError):
        hint = "Give a PEM file of Ed25519, P-256, P-384 or P-521, without a password."
        raise UsageError("bad_key", f"{named} holds no private key that can be read.", hint) from None
    oms.read_key(oms.pem_of(private.public_key()))  # type: ignore[arg-type]  # another kind is refused
    return private

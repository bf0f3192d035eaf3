"""Bundle manifests: the signed list of what a bundle holds.

`.ai/bundles/<id>/manifest.yaml`, signed like a YAML tool, maps every item of the bundle to the SHA-256 of its raw file::

    bundle: {id: rye, version: 0.1.0, type: system, description: …, created_at: …}
    items:
      tool:
        rye/file-system/read: 9f86d081…

Against it even bytes that an item's own signature leaves out (timestamp, suffix, shebang, text around a directive) and swaps
between ids show.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from rye import items, spaces, trust
from rye.errors import ItemError, TrustError
from rye.record import Record
from rye.signing import form_of

if TYPE_CHECKING:
    from collections.abc import Container, Mapping
    from pathlib import Path

    from rye.spaces import Candidate, Space
    from rye.trust import TrustStore, Verified

SYSTEM = "rye"
_MEND = "Reinstall the package that brought the bundle; in its own checkout sign again and run `rye bundle create`."


class Manifest(Record):
    """A verified manifest: the bundle's facts, and for each item type its ids and raw files' digests."""

    verified: Verified
    bundle: Mapping[str, Any]
    items: Mapping[str, Mapping[str, str]]


def bundle_of(space: Space) -> str | None:
    """Return the id of the bundle that a space is; None for a project's and the user's."""
    if space.name == "system":
        return SYSTEM
    return space.name.removeprefix("bundle:") if space.name.startswith("bundle:") else None


def path_of(space: Space, bundle_id: str) -> Path:
    """Return where a bundle's manifest stands."""
    from pathlib import Path

    return Path(space.folder, "bundles", bundle_id, "manifest.yaml")


def read(raw: bytes | None, bundle_id: str, store: TrustStore, known: Container[str] = ()) -> Manifest:
    """Return a bundle's manifest, verified; `raw` is None where there is none.

    Raises:
        TrustError: the verdict of the manifest itself; `unsigned` where there is none. A bundle without a good one
            serves nothing.
        ItemError: `malformed_item`, it is signed and is no manifest.
    """
    if raw is None:
        raise TrustError("unsigned", f"The bundle {bundle_id} has no manifest, so nothing of it is served.", _MEND)
    verified = trust.verify(raw, form_of("tool", ".yaml"), store, known)
    # A key that was approved for one project says nothing of what is installed for all.
    if verified.key.role not in (("system",) if bundle_id == SYSTEM else ("system", "user", "explicit")):
        raise TrustError(
            "untrusted_key", f"The manifest of {bundle_id} is signed by a key that does not count for it.", _MEND,
            fingerprint=verified.key.public.fingerprint,
        )  # fmt: skip
    try:
        content = items.yaml_mapping(verified.body.decode())
    except UnicodeDecodeError:
        raise _no_manifest(bundle_id) from None
    bundle, listed = content.get("bundle"), content.get("items")
    if not isinstance(bundle, dict) or not isinstance(listed, dict) or not all(map(_is_listing, listed.values())):
        raise _no_manifest(bundle_id)
    if bundle.get("id") != bundle_id:
        raise TrustError("misplaced", f"The manifest of {bundle_id} is that of another bundle.", _MEND)
    return Manifest(verified, bundle, listed)


def _is_listing(found: object) -> bool:
    return isinstance(found, dict) and all(isinstance(text, str) for pair in found.items() for text in pair)


def _no_manifest(bundle_id: str) -> ItemError:
    return ItemError("malformed_item", f"The manifest of {bundle_id} is none: it lists no items by id.", _MEND)


def check(manifest: Manifest, candidate: Candidate) -> None:
    """Hold a bundle's item against its manifest.

    Raises:
        TrustError: `tampered` when the file is not the listed one; `misplaced` when it is listed under another id, or not.
    """
    listed = manifest.items.get(candidate.item_type, {})
    actual = hashlib.sha256(candidate.raw).hexdigest()
    expected = listed.get(candidate.item_id)
    if expected == actual:
        return
    if expected is None or actual in listed.values():
        raise TrustError(
            "misplaced", f"{candidate.item_id} is not what the manifest of its bundle lists there.", _MEND, actual=actual
        )
    raise TrustError(
        "tampered", f"{candidate.item_id} is not the file that the manifest of its bundle lists.", _MEND,
        expected=expected, actual=actual,
    )  # fmt: skip


def compose(space: Space, facts: Mapping[str, Any]) -> bytes:
    """Return the unsigned manifest of what stands in a bundle's folder now.

    Args:
        space: the bundle's.
        facts: `id`, `version`, `type`, `description`, `created_at`.

    Raises:
        ItemError: `item_unreadable`, or `unsignable` for an item that cannot carry a signature.
    """
    found: dict[str, dict[str, str]] = {}
    for item_type in spaces.TYPES:
        listed = {}
        for item_id, path in spaces.items_in(space, item_type):
            form_of(item_type, path.suffix)
            raw = spaces.read_file(space, path.relative_to(space.folder).as_posix())
            if raw is None:
                raise ItemError("item_unreadable", f"{path} cannot be read.", "Make it a regular file.")
            listed[item_id] = hashlib.sha256(raw).hexdigest()
        if listed:
            found[item_type] = listed
    # JSON is YAML in flow style, and much faster to read: see `items.yaml_mapping`.
    return json.dumps({"bundle": dict(facts), "items": found}, sort_keys=True, indent=2).encode() + b"\n"

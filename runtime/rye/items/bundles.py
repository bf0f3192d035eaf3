"""Bundle manifests: the signed list of what a bundle holds.

`.ai/bundles/<id>/manifest.yaml`, signed like a YAML tool, maps every item of the bundle to the SHA-256 of its raw file::

    bundle: {id: rye, version: 0.1.0, type: system, description: …, created_at: …}
    items:
      tool:
        rye/file-system/read: 9f86d081…

The system's manifest also has, in `metadata`, what each Python tool says of itself, as JSON by the tool's id: its literals and
docstring, so that a call need not parse the tool for them, with the digest of the file that they are about.

Against it even bytes that an item's own signature leaves out (timestamp, suffix, shebang, text around a directive) and swaps
between ids show.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeGuard

from rye.errors import ItemError, RyeError, TrustError
from rye.items import parse, spaces
from rye.items.spaces import Candidate, Space
from rye.plain_class import Record
from rye.trust import verify
from rye.trust.signature import form_of, split
from rye.trust.verify import TrustStore, Verified

if TYPE_CHECKING:
    from pathlib import Path


SYSTEM = "rye"
_REPAIR = "Reinstall the package that brought the bundle; in its own checkout sign again and run `rye bundle create`."


class Manifest(Record):
    """A verified manifest: the bundle's facts, for each item type its ids and raw files' digests, and `metadata`, see above."""

    verified: Verified
    bundle: Mapping[str, Any]
    items: Mapping[str, Mapping[str, str]]
    metadata: Mapping[str, str]


def bundle_of(space: Space) -> str | None:
    """Return the id of the bundle that a space is; None for a project's and the user's."""
    if space.name == "system":
        return SYSTEM
    return space.name.removeprefix("bundle:") if space.name.startswith("bundle:") else None


def path_of(space: Space, bundle_id: str) -> Path:
    """Return the path of a bundle's manifest."""
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
        raise TrustError("unsigned", f"The bundle {bundle_id} has no manifest, so nothing of it is served.", _REPAIR)
    try:
        verified = verify.verify(raw, form_of("tool", ".yaml"), store, known)
    except TrustError as err:
        raise TrustError(err.code, f"The manifest of {bundle_id}: {err.message}", err.hint, **err.details) from None
    # A key that was approved for one project says nothing of what is installed for all.
    if verified.key.role not in (("system",) if bundle_id == SYSTEM else ("system", "user", "explicit")):
        why = f"The manifest of {bundle_id} is signed by a key that does not count for it."
        raise TrustError("untrusted_key", why, _REPAIR, fingerprint=verified.key.public.fingerprint)
    content = parse.yaml_mapping(parse.text_of(verified.body))
    bundle, listed, metadata = content.get("bundle"), content.get("items"), content.get("metadata", {})
    if not isinstance(bundle, dict) or not isinstance(listed, dict) or not all(map(is_listing, (*listed.values(), metadata))):
        raise ItemError("malformed_item", f"The manifest of {bundle_id} lists no items by id.", _REPAIR)
    # A signed manifest of another bundle could be copied here, with other files listed.
    if bundle.get("id") != bundle_id:
        raise TrustError("misplaced", f"The manifest of {bundle_id} is that of another bundle.", _REPAIR)
    return Manifest(verified, bundle, listed, metadata)


def is_listing(found: object) -> TypeGuard[dict[str, str]]:
    """Tell whether what YAML said is a mapping of texts to texts."""
    return isinstance(found, dict) and all(isinstance(text, str) for pair in found.items() for text in pair)


def admit(candidate: Candidate, store: TrustStore, manifest: Manifest | None = None) -> parse.Item:
    """Return the item that bytes are, wherever they came from: checked against its bundle's manifest, its signature and place.

    Raises:
        TrustError: its `code` is the verdict. ItemError: `malformed_item`, `bad_item_id`.
    """
    spaces.check_id(candidate.item_id)
    if manifest is not None:
        check(manifest, candidate)
    return parse.read(signed(candidate, store), candidate.item_type, candidate.item_id, candidate.suffix)


def signed(candidate: Candidate, store: TrustStore, known: Container[str] = ()) -> Verified:
    """Check the signature, and that a key of the id's owner made it; see `admit` for the rest.

    Raises:
        TrustError: its `code` is the verdict.
    """
    try:
        verified = verify.verify(candidate.raw, form_of(candidate.item_type, candidate.suffix), store, known)
    except TrustError as err:
        # The check of bytes knows no name; who calls an item may not know which file is meant.
        hint = err.hint.replace("`rye sign`", f"`rye sign {candidate.item_id}`")
        raise TrustError(err.code, f"{candidate.item_id}: {err.message}", hint, **err.details) from None
    # What a project or a user may serve under a reserved id, `spaces.serves` decides.
    if candidate.space not in ("project", "user"):
        spaces.check_reserved_id(candidate.item_id, verified.key.role)
    return verified


def check(manifest: Manifest, candidate: Candidate) -> None:
    """Hold a bundle's item against its manifest.

    Raises:
        TrustError: `tampered` when the file is not the listed one; `misplaced` when it is listed under another id, or not.
    """
    digests = manifest.items.get(candidate.item_type, {})
    actual = candidate.digest
    expected = digests.get(candidate.item_id)
    if expected == actual:
        return
    # The very bytes of another id: the file was moved, not changed.
    if expected is None or actual in digests.values():
        what = f"{candidate.item_id} is not what the manifest of its bundle lists there."
        raise TrustError("misplaced", what, _REPAIR, actual=actual)
    why = f"{candidate.item_id} is not the file that the manifest of its bundle lists."
    raise TrustError("tampered", why, _REPAIR, expected=expected, actual=actual)


def metadata_from_manifest(candidate: Candidate, manifest: Manifest) -> parse.ToolMetadata | None:
    """Return the metadata that a manifest vouches for of a tool's very bytes; None where it does not, and they are parsed."""
    found = json.loads(manifest.metadata.get(candidate.item_id, "{}"))
    return (found["literals"], found["docstring"]) if found.get("tool") == candidate.digest else None


def verdicts(manifest: Manifest, space: Space, store: TrustStore) -> list[dict[str, str]]:
    """Compare the items in a bundle with those that its manifest lists, in both directions.

    Returns:
        `{"verdict", "type", "item_id", "hint"}` of each; one bad file does not hide the verdicts on the others.
    """
    rows: list[dict[str, str]] = []
    for item_type in spaces.TYPES:
        present = dict(spaces.items_in(space, item_type))
        for item_id in sorted(present.keys() | manifest.items.get(item_type, {}).keys()):
            row = {"verdict": "valid", "type": item_type, "item_id": item_id, "hint": ""}
            try:
                if item_id not in present:
                    raise TrustError("tampered", "It is listed, and its file is gone.", "Reinstall the bundle.")
                path = present[item_id]
                raw = spaces.read_item(space, path) or b""
                admit(Candidate(item_type, item_id, path.suffix, space.name, str(path), raw), store, manifest)
            except RyeError as err:
                row.update(verdict=err.code if isinstance(err, TrustError) else "malformed", hint=str(err))
            rows.append(row)
    return rows


def _metadata(raw: bytes) -> str | None:
    """Return what a Python tool says of itself, in its order; None where JSON does not carry it."""
    literals, docstring = parse.literals_of(parse.python_tree(split(raw, form_of("tool", ".py")).body))
    text = json.dumps({"tool": sha256(raw).hexdigest(), "docstring": docstring, "literals": literals})
    # A tuple would come back as a list.
    return text if json.loads(text)["literals"] == literals else None


def compose(space: Space, facts: Mapping[str, Any]) -> bytes:
    """Return the unsigned manifest of the present content of a bundle's folder.

    Args:
        space: the bundle's.
        facts: `id`, `version`, `type`, `description`, `created_at`.

    Raises:
        ItemError: `item_unreadable`, or `unsignable` for an item that cannot carry a signature.
    """
    found: dict[str, dict[str, str]] = {}
    metadata: dict[str, str] = {}
    for item_type in spaces.TYPES:
        item_table = {}
        for item_id, path in spaces.items_in(space, item_type):
            form_of(item_type, path.suffix)
            # A link that leads out of its folder is refused now, not at the first call.
            raw = spaces.read_item(space, path)
            if raw is None:
                raise ItemError("item_unreadable", f"{path} cannot be read.", "Make it a regular file.")
            item_table[item_id] = sha256(raw).hexdigest()
            if facts.get("id") == SYSTEM and path.suffix == ".py" and (text := _metadata(raw)) is not None:
                metadata[item_id] = text
        if item_table:
            found[item_type] = item_table
    content = {"bundle": dict(facts), "items": found, **({"metadata": metadata} if metadata else {})}
    # JSON is YAML in flow style, and much faster to read: see `rye.items.parse.yaml_mapping`.
    return json.dumps(content, sort_keys=True, indent=2).encode() + b"\n"

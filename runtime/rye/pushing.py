"""Pushing: what is verified here goes to a registry byte for byte. Nothing is signed on the way, and no version replaced."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from rye import bundles, items, oci_manifest, spaces, trust
from rye.admission import Admission
from rye.artifacts import Shelf
from rye.errors import ItemError, RegistryError, UsageError
from rye.oci_manifest import CATEGORY, DESCRIPTION, ID, KEY, KEY_TYPE, SIGNER, SUFFIX, TITLE, TYPE, VERSION, YANKED, Pushed
from rye.oci_reference import check_item, is_version, repository_of, tag_of
from rye.signing import form_of
from rye.toolkit.untrusted import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rye.oci_reference import Reference
    from rye.oci_store import Store
    from rye.spaces import Candidate, Space
    from rye.trust import Verified

_BUNDLE_MANIFEST = "application/vnd.rye.bundle.v1+yaml"


def push_items(
    wanted: Sequence[tuple[str, str]], store: Store, among: Sequence[Space], *, replace: bool = False
) -> list[dict[str, Any]]:
    """Push items by (type, id), as the spaces serve them; return a row for each.

    Raises:
        TrustError: the verdict of one that is not verified here; nothing was pushed.
        ItemError: `item_not_found`, `no_version`. RegistryError: `version_exists`, and those of the storage.
    """
    admission = Admission(among)
    made: list[tuple[str, dict[str, Any], Pushed]] = []
    for item_type, item_id in wanted:
        check_item(item_type, item_id)
        candidate = spaces.find(item_type, item_id, among)
        made.append(_item(candidate, admission.verify(candidate)))
    return _push(made, store, replace=replace)


def push_bundle(
    space: Space, bundle_id: str, store: Store, among: Sequence[Space], *, replace: bool = False
) -> list[dict[str, Any]]:
    """Push a bundle from its folder: the signed manifest and every item that it lists. Errors as `push_items`."""
    check_item("bundle", bundle_id)
    trusted = spaces.trust_store(among)
    manifest = bundles.read(spaces.read_file(space, f"bundles/{bundle_id}/manifest.yaml"), bundle_id, trusted)
    version = str(manifest.bundle.get("version", ""))
    files = {f"bundles/{bundle_id}/manifest.yaml": (_BUNDLE_MANIFEST, manifest.verified.raw)}
    for item_type, listed in manifest.items.items():
        for item_id in listed:
            candidate = spaces.find(item_type, item_id, [space])
            bundles.check(manifest, candidate)
            verified = trust.verify(candidate.raw, form_of(item_type, candidate.suffix), trusted)
            items.check_place(verified, item_type, item_id, candidate.suffix)
            title = f"{spaces.type_folder(item_type)[0]}/{item_id}{candidate.suffix}"
            files[title] = (oci_manifest.media_type(candidate.suffix), candidate.raw)
    facts = {"item_type": "bundle", "item_id": bundle_id, "version": version, "suffix": ".yaml"}
    described = str(manifest.bundle.get("description", ""))
    return _push([_composed(facts, files, manifest.verified, described)], store, replace=replace)


def _item(candidate: Candidate, verified: Verified) -> tuple[str, dict[str, Any], Pushed]:
    version = items.check_place(verified, candidate.item_type, candidate.item_id, candidate.suffix)
    name = candidate.item_id.rpartition("/")[2] + candidate.suffix
    facts = {
        "item_type": candidate.item_type, "item_id": candidate.item_id, "version": version, "suffix": candidate.suffix
    }  # fmt: skip
    files = {name: (oci_manifest.media_type(candidate.suffix), verified.raw)}
    return _composed(facts, files, verified, _description(candidate, verified))


def _description(candidate: Candidate, verified: Verified) -> str:
    if candidate.item_type == "tool":
        return items.read_tool(verified, candidate.item_id, candidate.suffix).description
    if candidate.item_type == "knowledge":
        header = items.read_knowledge(verified, candidate.item_id, candidate.suffix).header
        return str(header.get("description", header.get("title", "")))
    return str(items.read_directive(verified, candidate.item_id).text.metadata["description"])


def _composed(
    facts: Mapping[str, str], files: dict[str, tuple[str, bytes]], verified: Verified, description: str
) -> tuple[str, dict[str, Any], Pushed]:  # fmt: skip
    """Return the namespace, the row for people, and what is pushed."""
    item_id, version = facts["item_id"], facts["version"]
    if not is_version(version):
        raise ItemError(
            "no_version",
            f"{item_id} names no version X.Y.Z, so no registry can hold it.",
            "Add one to its header, and sign again.",
        )
    key = verified.key.public
    document = trust.render_key_document(key, verified.key.owner, verified.key.attestation)
    annotations = {
        ID: item_id, TYPE: facts["item_type"], CATEGORY: item_id.rpartition("/")[0], VERSION: version, SUFFIX: facts["suffix"],
        TITLE: item_id, DESCRIPTION: plain(description, 500), SIGNER: key.fingerprint, KEY: key.digest,
    }  # fmt: skip
    manifest, blobs = oci_manifest.compose({**files, f"{key.fingerprint}.toml": (KEY_TYPE, document)}, annotations)
    row = {
        "item_type": facts["item_type"], "item_id": item_id, "version": version, "signer": key.fingerprint,
        "digest": oci_manifest.digest_of(manifest), "status": "pushed",
    }  # fmt: skip
    tag = tag_of(facts["item_type"], item_id, version)
    return item_id.partition("/")[0], row, Pushed(tag, manifest, blobs)


def _push(made: list[tuple[str, dict[str, Any], Pushed]], store: Store, *, replace: bool) -> list[dict[str, Any]]:
    grouped: dict[str, list[tuple[dict[str, Any], Pushed]]] = {}
    for namespace, row, one in made:
        grouped.setdefault(repository_of(namespace), []).append((row, one))
    for repository, group in grouped.items():
        _mark_standing(store, repository, group, replace=replace)
    for repository, group in grouped.items():
        store.push(repository, [one for row, one in group if row["status"] == "pushed"])
    return [row for _, row, _ in made]


def _mark_standing(store: Store, repository: str, group: Iterable[tuple[dict[str, Any], Pushed]], *, replace: bool) -> None:
    """Leave out what stands there already; refuse to put another thing in place of a version."""
    tags = set(store.tags(repository))
    for row, one in group:
        if one.tag not in tags:
            continue
        standing = None
        with contextlib.suppress(RegistryError):
            standing = oci_manifest.parse(store.manifest(repository, one.tag))
        if standing is not None and standing.files == oci_manifest.parse(one.manifest).files:
            row.update(status="unchanged", digest=standing.digest)
        elif standing is not None and not replace:
            raise RegistryError(
                "version_exists", f"{row['item_id']}:{row['version']} stands in {store.name} with other content.",
                "Give the item a new version and sign it; a version that was published is never another thing.",
            )  # fmt: skip


def yank(wanted: Reference, store: Store, reason: str) -> dict[str, Any]:
    """Mark a version as taken back: whoever pulls it is warned. Nothing is deleted, so what is pinned can still be had.

    Raises:
        UsageError: `no_version`. RegistryError: `not_in_registry`, and those of the storage.
    """
    if wanted.version is None:
        raise UsageError("no_version", "Which version is to be yanked?", f"Write {wanted.item_id}:X.Y.Z.")
    shelf = Shelf.of(store, wanted.namespace)
    tag = tag_of(wanted.item_type, wanted.item_id, wanted.version)
    standing = oci_manifest.parse(store.manifest(shelf.repository, tag))
    annotations = {ID: wanted.item_id, TYPE: wanted.item_type, VERSION: wanted.version, YANKED: plain(reason, 500) or "yes"}
    text = f"{wanted.item_id}:{wanted.version} ({standing.digest}) was yanked. {annotations[YANKED]}\n".encode()
    manifest, blobs = oci_manifest.compose({"yanked.txt": ("text/plain", text)}, annotations)
    store.push(
        shelf.repository, [Pushed(tag_of(wanted.item_type, wanted.item_id, wanted.version, yanked=True), manifest, blobs)]
    )
    return {"item_type": wanted.item_type, "item_id": wanted.item_id, "version": wanted.version, "reason": annotations[YANKED]}


def yank_reason(shelf: Shelf, item_type: str, item_id: str, version: str) -> str | None:
    """Return why a version was yanked, as the registry says it; None for one that was not."""
    if not shelf.yanked(item_type, item_id, version):
        return None
    with contextlib.suppress(RegistryError):
        raw = shelf.store.manifest(shelf.repository, tag_of(item_type, item_id, version, yanked=True))
        return plain(oci_manifest.parse(raw).annotations.get(YANKED, ""), 500)
    return ""

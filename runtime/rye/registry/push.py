"""Pushing: what is verified here goes to a registry byte for byte. Nothing is signed on the way, and no version replaced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rye.call.safe_text import plain
from rye.errors import ItemError, RegistryError, UsageError
from rye.executor.admission import Admission
from rye.items import bundles, parse, spaces, tool_files
from rye.items.spaces import Candidate, Space
from rye.items.versions import is_version
from rye.registry.artifacts import Repository, file_title
from rye.registry.oci import manifest as oci_manifest
from rye.registry.oci.manifest import (
    CATEGORY,
    DESCRIPTION,
    ID,
    KEY,
    KEY_TYPE,
    SIGNER,
    SUFFIX,
    TITLE,
    TYPE,
    VERSION,
    YANKED,
    Pushed,
)
from rye.registry.oci.reference import Reference, check_item, tag_of
from rye.registry.oci.store import Store
from rye.trust import verify
from rye.trust.verify import Verified

_BUNDLE_MANIFEST = "application/vnd.rye.bundle.v1+yaml"
_FILE = "application/octet-stream"
# The errors of a version that nobody can be served: its tag leads to nothing, or to bytes that are not those of its digest.
_LOST = ("not_in_registry", "manifest_missing", "manifest_digest_mismatch")


def push_items(items: Sequence[tuple[str, str]], store: Store, search_path: Sequence[Space]) -> list[dict[str, Any]]:
    """Push items by (type, id), as the spaces serve them; return a row for each.

    Raises:
        TrustError: the verdict of one that is not verified here; nothing was pushed.
        ItemError: `item_not_found`, `no_version`. RegistryError: `version_exists`,
            `version_unreadable`, and those of the storage.
    """
    admission = Admission(search_path)
    uploads: list[tuple[str, dict[str, Any], Pushed]] = []
    for item_type, item_id in items:
        # First, since an id that no tag can express should fail before files are read.
        check_item(item_type, item_id)
        # Everything is verified before the first byte goes out: a push of many is refused as a whole.
        candidate = spaces.find(item_type, item_id, search_path)
        space = next(one for one in search_path if one.name == candidate.space)
        uploads.append(_item(candidate, admission.admit(candidate), space))
    return _push(uploads, store)


def push_bundle(space: Space, bundle_id: str, store: Store, search_path: Sequence[Space]) -> list[dict[str, Any]]:
    """Push a bundle from its folder: the signed manifest and every item that it lists. Errors as `push_items`."""
    check_item("bundle", bundle_id)
    trusted = spaces.trust_store(search_path)
    manifest = bundles.read(spaces.read_file(space, f"bundles/{bundle_id}/manifest.yaml"), bundle_id, trusted)
    version = str(manifest.bundle.get("version", ""))
    files = {f"bundles/{bundle_id}/manifest.yaml": (_BUNDLE_MANIFEST, manifest.verified.raw)}
    for item_type, ids in manifest.items.items():
        for item_id in ids:
            candidate = spaces.find(item_type, item_id, [space])
            verified, _ = bundles.admit(candidate, trusted, manifest)
            title = f"{spaces.type_folder(item_type)[0]}/{item_id}{candidate.suffix}"
            files[title] = (oci_manifest.media_type(candidate.suffix), candidate.raw)
            files |= _files_of(candidate, verified, space)
    facts = {"item_type": "bundle", "item_id": bundle_id, "version": version, "suffix": ".yaml"}
    described = str(manifest.bundle.get("description", ""))
    return _push([_composed(facts, files, manifest.verified, described)], store)


def _item(candidate: Candidate, verified: Verified, space: Space) -> tuple[str, dict[str, Any], Pushed]:
    version = parse.check_place(verified, candidate.item_type, candidate.item_id, candidate.suffix)
    name = candidate.item_id.rpartition("/")[2] + candidate.suffix
    facts = {"item_type": candidate.item_type, "item_id": candidate.item_id, "version": version, "suffix": candidate.suffix}
    files = {name: (oci_manifest.media_type(candidate.suffix), verified.raw), **_files_of(candidate, verified, space)}
    return _composed(facts, files, verified, _description(candidate, verified))


def _files_of(candidate: Candidate, verified: Verified, space: Space) -> dict[str, tuple[str, bytes]]:
    """Return the other files of a tool, which its signature covers, by the title that they get."""
    if candidate.item_type != "tool":
        return {}
    found = tool_files.read(parse.read_tool(verified, candidate.item_id, candidate.suffix), space)
    return {file_title(candidate.item_id, path): (_FILE, content) for path, content in found.items()}


def _description(candidate: Candidate, verified: Verified) -> str:
    if candidate.item_type == "tool":
        return parse.read_tool(verified, candidate.item_id, candidate.suffix).description
    if candidate.item_type == "knowledge":
        header = parse.read_knowledge(verified, candidate.item_id, candidate.suffix).header
        return str(header.get("description", header.get("title", "")))
    return str(parse.read_directive(verified, candidate.item_id).text.metadata["description"])


def _composed(
    facts: Mapping[str, str], files: dict[str, tuple[str, bytes]], verified: Verified, description: str
) -> tuple[str, dict[str, Any], Pushed]:
    """Return the namespace, the row for people, and what is pushed."""
    item_id, version = facts["item_id"], facts["version"]
    if not is_version(version):
        raise ItemError(
            "no_version",
            f"{item_id} names no version X.Y.Z, so no registry can hold it.",
            "Add one to its header, and sign again.",
        )
    key = verified.key.public
    # Travels with the item, so that a receiver can see whose key it claims to be.
    document = verify.render_key_document(key, verified.key.owner, verified.key.attestation)
    annotations = {
        ID: item_id,
        TYPE: facts["item_type"],
        CATEGORY: item_id.rpartition("/")[0],
        VERSION: version,
        SUFFIX: facts["suffix"],
        TITLE: item_id,
        DESCRIPTION: plain(description, 500),
        SIGNER: key.fingerprint,
        KEY: key.digest,
    }
    manifest, blobs = oci_manifest.compose({**files, f"{key.fingerprint}.toml": (KEY_TYPE, document)}, annotations)
    row = {
        "item_type": facts["item_type"],
        "item_id": item_id,
        "version": version,
        "signer": key.fingerprint,
        "digest": oci_manifest.digest_of(manifest),
        "status": "pushed",
    }
    tag = tag_of(facts["item_type"], item_id, version)
    return item_id.partition("/")[0], row, Pushed(tag, manifest, blobs)


def _push(uploads: list[tuple[str, dict[str, Any], Pushed]], store: Store) -> list[dict[str, Any]]:
    grouped: dict[str, list[tuple[dict[str, Any], Pushed]]] = {}
    for namespace, row, one in uploads:
        grouped.setdefault(namespace, []).append((row, one))
    for repository, group in grouped.items():
        _mark_existing(store, repository, group)
    for repository, group in grouped.items():
        pushed = [(row, one) for row, one in group if row["status"] == "pushed"]
        for (row, _), digest in zip(pushed, store.push(repository, [one for _, one in pushed]), strict=True):
            row["digest"] = digest
    return [row for _, row, _ in uploads]


def _mark_existing(store: Store, repository: str, group: Iterable[tuple[dict[str, Any], Pushed]]) -> None:
    """Skip versions that are published already; refuse to replace one by other content."""
    tags = set(store.tags(repository))
    for row, one in group:
        if one.tag not in tags:
            continue
        name = f"{row['item_id']}:{row['version']}"
        try:
            current = oci_manifest.parse(store.manifest(repository, one.tag))
        except RegistryError as err:
            if err.code in _LOST:
                continue
            # A registry that fails to show a version may hold it whole, with other content.
            raise RegistryError(
                "version_unreadable",
                f"{name} is in {store.name}, but cannot be read, so nothing was pushed: {err.message}",
                "Try again later. If somebody else's push broke off and left it damaged, give the item a new version, "
                "or ask the registry's owner to delete its tag.",
            ) from None
        # Files only: annotations change with releases of this program, signed bytes do not.
        if current.files == oci_manifest.parse(one.manifest).files:
            row.update(status="unchanged", digest=current.digest)
        else:
            raise RegistryError(
                "version_exists",
                f"{name} is in {store.name} with other content.",
                "Give the item a new version and sign it; a version that was published is never another thing.",
            )


def yank(reference: Reference, store: Store, reason: str) -> dict[str, Any]:
    """Mark a version as taken back: whoever pulls it is warned. Nothing is deleted, so what is pinned can still be had.

    Raises:
        UsageError: `no_version`. RegistryError: `not_in_registry`, and those of the storage.
    """
    if reference.version is None:
        raise UsageError("no_version", "Which version is to be yanked?", f"Write {reference.item_id}:X.Y.Z.")
    repository = Repository(store, reference.namespace)
    tag = tag_of(reference.item_type, reference.item_id, reference.version)
    current = oci_manifest.parse(store.manifest(repository.name, tag))
    annotations = {
        ID: reference.item_id,
        TYPE: reference.item_type,
        VERSION: reference.version,
        YANKED: plain(reason, 500) or "yes",
    }
    # A yank is a tag of its own: OCI has no marks, and deleting would break who pinned the version.
    text = f"{reference.item_id}:{reference.version} ({current.digest}) was yanked. {annotations[YANKED]}\n".encode()
    manifest, blobs = oci_manifest.compose({"yanked.txt": ("text/plain", text)}, annotations)
    store.push(
        repository.name,
        [Pushed(tag_of(reference.item_type, reference.item_id, reference.version, yanked=True), manifest, blobs)],
    )
    return {
        "item_type": reference.item_type,
        "item_id": reference.item_id,
        "version": reference.version,
        "reason": annotations[YANKED],
    }


def yank_reason(repository: Repository, item_type: str, item_id: str, version: str) -> str | None:
    """Return why a version was yanked, as the registry says it; None for one that was not."""
    if not repository.yanked(item_type, item_id, version):
        return None
    with contextlib.suppress(RegistryError):
        raw = repository.store.manifest(repository.name, tag_of(item_type, item_id, version, yanked=True))
        return plain(oci_manifest.parse(raw).annotations.get(YANKED, ""), 500)
    return ""

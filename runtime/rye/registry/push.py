"""Pushing: what is verified here goes to a registry byte for byte. Nothing is signed on the way, and no version replaced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rye.call.safe_text import plain
from rye.errors import ItemError, RegistryError, UsageError
from rye.executor.admission import Admission
from rye.items import bundles, spaces, tool_files
from rye.items import parse as items_parse
from rye.items.spaces import Candidate, Space
from rye.items.versions import is_version
from rye.registry.artifacts import Repository, file_title
from rye.registry.oci import manifest as oci_manifest
from rye.registry.oci.manifest import ID, TYPE, VERSION, YANKED, Pushed
from rye.registry.oci.reference import check_item, parse, tag_of
from rye.registry.oci.store import OciStore, RegistryTarget
from rye.trust import verify
from rye.trust.verify import Verified

_BUNDLE_MANIFEST = "application/vnd.rye.bundle.v1+yaml"
_FILE = "application/octet-stream"
# The errors of a version that nobody can be served: its tag leads to nothing, or to bytes that are not those of its digest.
_LOST = ("not_in_registry", "manifest_missing", "manifest_digest_mismatch")


def push(target: RegistryTarget, item_type: str, ids: Sequence[str], *, source: str | None = None) -> list[dict[str, Any]]:
    """Push items, as the spaces serve them; an id may be a pattern (`my/*`). Return a row for each.

    Raises:
        TrustError: the verdict of one that is not verified here; nothing was pushed.
        ItemError: `item_not_found`, `no_version`. RegistryError: `version_exists`, `version_unreadable`, and those of the
            storage. UsageError: `no_items`.
    """
    search_path = [space for space in spaces.spaces(target.project) if source in (None, space.name)]
    admission = Admission(search_path)
    uploads: list[tuple[str, dict[str, Any], Pushed]] = []
    for item_id in (item_id for text in ids for item_id in _matching(item_type, text, search_path)):
        # First, since an id that no tag can express should fail before files are read.
        check_item(item_type, item_id)
        # Everything is verified before the first byte goes out: a push of many is refused as a whole.
        candidate = spaces.find(item_type, item_id, search_path)
        space = next(one for one in search_path if one.name == candidate.space)
        uploads.append(_item(candidate, admission.admit(candidate), space))
    return _push(uploads, target.store())


def _matching(item_type: str, text: str, search_path: Sequence[Space]) -> list[str]:
    if not any(char in text for char in "*?"):
        return [text]
    found = [item_id for item_id, _, _ in spaces.served_items(item_type, search_path, ()) if fnmatchcase(item_id, text)]
    if not found:
        raise UsageError("no_items", f"No {item_type} fits {text!r}.", "`rye tools` shows what there is.")
    return found


def push_bundle(target: RegistryTarget, bundle_id: str, folder: Path | None) -> list[dict[str, Any]]:
    """Push a bundle from its `.ai` folder, None for the system bundle's: the signed manifest and every item that it lists.

    Errors as `push`.
    """
    check_item("bundle", bundle_id)
    space = Space("system", spaces.system_folder()) if folder is None else Space(f"bundle:{bundle_id}", str(folder))
    trusted = spaces.trust_store(spaces.spaces(target.project))
    manifest = bundles.read(spaces.read_file(space, f"bundles/{bundle_id}/manifest.yaml"), bundle_id, trusted)
    version = str(manifest.bundle.get("version", ""))
    files = {f"bundles/{bundle_id}/manifest.yaml": (_BUNDLE_MANIFEST, manifest.verified.raw)}
    for item_type, ids in manifest.items.items():
        for item_id in ids:
            candidate = spaces.find(item_type, item_id, [space])
            item = bundles.admit(candidate, trusted, manifest)
            title = f"{spaces.type_folder(item_type)[0]}/{item_id}{candidate.suffix}"
            files[title] = (oci_manifest.media_type(candidate.suffix), candidate.raw)
            files |= _files_of(item, space)
    described = str(manifest.bundle.get("description", ""))
    return _push([_composed(("bundle", bundle_id, version), files, manifest.verified, described)], target.store())


def _item(candidate: Candidate, verified: Verified, space: Space) -> tuple[str, dict[str, Any], Pushed]:
    item = items_parse.read(verified, candidate.item_type, candidate.item_id, candidate.suffix)
    title = str(item.header.get("title", "")) if isinstance(item, items_parse.Knowledge) else ""
    name = item.id.rpartition("/")[2] + candidate.suffix
    files = {name: (oci_manifest.media_type(candidate.suffix), verified.raw), **_files_of(item, space)}
    return _composed((candidate.item_type, item.id, item.version), files, verified, item.description or title)


def _files_of(item: object, space: Space) -> dict[str, tuple[str, bytes]]:
    """Return the other files of a tool, which its signature covers, by the title that they get."""
    if not isinstance(item, items_parse.Tool):
        return {}
    return {file_title(item.id, path): (_FILE, content) for path, content in tool_files.read(item, space).items()}


def _composed(
    named: tuple[str, str, str], files: dict[str, tuple[str, bytes]], verified: Verified, description: str
) -> tuple[str, dict[str, Any], Pushed]:
    """Return the namespace, the row for people, and what is pushed of what type, id and version name."""
    item_type, item_id, version = named
    if not is_version(version):
        why = f"{item_id} names no version X.Y.Z, so no registry can hold it."
        raise ItemError("no_version", why, "Add one to its header, and sign again.")
    key = verified.key.public
    # Travels with the item, so that a receiver can see whose key it claims to be.
    document = verify.render_key_document(key, verified.key.owner, verified.key.attestation)
    annotations = {
        ID: item_id,
        TYPE: item_type,
        oci_manifest.CATEGORY: item_id.rpartition("/")[0],
        VERSION: version,
        oci_manifest.TITLE: item_id,
        oci_manifest.DESCRIPTION: plain(description, 500),
        oci_manifest.SIGNER: key.fingerprint,
        oci_manifest.KEY: key.digest,
    }
    manifest, blobs = oci_manifest.compose({**files, f"{key.fingerprint}.toml": (oci_manifest.KEY_TYPE, document)}, annotations)
    row = {"item_type": item_type, "item_id": item_id, "version": version, "signer": key.fingerprint}
    row |= {"digest": oci_manifest.digest_of(manifest), "status": "pushed"}
    return item_id.partition("/")[0], row, Pushed(tag_of(*named), manifest, blobs)


def _push(uploads: list[tuple[str, dict[str, Any], Pushed]], store: OciStore) -> list[dict[str, Any]]:
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


def _mark_existing(store: OciStore, repository: str, group: Iterable[tuple[dict[str, Any], Pushed]]) -> None:
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
            hint = "Give the item a new version and sign it; a version that was published is never another thing."
            raise RegistryError("version_exists", f"{name} is in {store.name} with other content.", hint)


def yank(target: RegistryTarget, item_type: str, named: str, reason: str) -> dict[str, Any]:
    """Mark a version as taken back: whoever pulls it is warned. Nothing is deleted, so what is pinned can still be had.

    Raises:
        UsageError: `no_version`. RegistryError: `not_in_registry`, and those of the storage.
    """
    reference = parse(named, item_type)
    if reference.version is None:
        raise UsageError("no_version", "Which version is to be yanked?", f"Write {reference.item_id}:X.Y.Z.")
    store = target.store(reference)
    tag = tag_of(reference.item_type, reference.item_id, reference.version)
    current = oci_manifest.parse(store.manifest(reference.namespace, tag))
    annotations = {ID: reference.item_id, TYPE: reference.item_type, VERSION: reference.version}
    annotations[YANKED] = plain(reason, 500) or "yes"
    # A yank is a tag of its own: OCI has no marks, and deleting would break who pinned the version.
    text = f"{reference.item_id}:{reference.version} ({current.digest}) was yanked. {annotations[YANKED]}\n".encode()
    manifest, blobs = oci_manifest.compose({"yanked.txt": ("text/plain", text)}, annotations)
    mark = tag_of(reference.item_type, reference.item_id, reference.version, yanked=True)
    store.push(reference.namespace, [Pushed(mark, manifest, blobs)])
    row = {"item_type": reference.item_type, "item_id": reference.item_id, "version": reference.version}
    return {**row, "reason": annotations[YANKED]}


def yank_reason(repository: Repository, item_type: str, item_id: str, version: str) -> str | None:
    """Return why a version was yanked, as the registry says it; None for one that was not."""
    if not repository.yanked(item_type, item_id, version):
        return None
    with contextlib.suppress(RegistryError):
        raw = repository.store.manifest(repository.name, tag_of(item_type, item_id, version, yanked=True))
        return plain(oci_manifest.parse(raw).annotations.get(YANKED, ""), 500)
    return ""

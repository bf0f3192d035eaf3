"""From a reference to verified items: what a registry answers is fetched, hashed, and checked by the same rules as local items.

Nothing that a registry says decides: its annotations, its yank marks and its key documents are shown, never believed. An item
counts because its bytes are signed by a key that the user trusts, and because the signed text says the id and the version
that were asked for.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from rye.call.safe_text import plain
from rye.errors import ItemError, RegistryError, TrustError
from rye.items import bundles, parse, spaces, tool_files
from rye.items.spaces import MAX_ITEM_BYTES, Candidate, Space
from rye.items.versions import is_version, version_key
from rye.plain_class import Record, changed, field
from rye.registry.oci import manifest as oci_manifest
from rye.registry.oci.manifest import ItemManifest, Layer
from rye.registry.oci.reference import YANKED_TAG, Reference, read_tag, tag_of
from rye.registry.oci.store import OciStore, open_store
from rye.trust import verify as trust_verify
from rye.trust.signature import Form, check, form_of, split
from rye.trust.verify import TrustedKey, TrustStore, Verified

_KEY_LIMIT = 16 * 1024


class Repository(Record, frozen=False):
    """A namespace's repository in one storage; its tags are asked for once."""

    store: OciStore
    name: str
    _tags: dict[str, None] | None = field(default=None)

    @property
    def tags(self) -> Collection[str]:
        """The tags at the first request, in the order of the storage."""
        if self._tags is None:
            self._tags = dict.fromkeys(self.store.tags(self.name))
        return self._tags

    def items(self, item_type: str | None) -> dict[str, Reference]:
        """Return what the tags name, of one type or of all, by the tags; the marks of what was yanked name nothing."""
        found = ((tag, read_tag(tag)) for tag in self.tags if not tag.startswith(YANKED_TAG))
        return {tag: one for tag, one in found if one is not None and item_type in (None, one.item_type)}

    def versions(self, item_type: str, item_id: str) -> list[str]:
        """Return an item's versions, the highest first."""
        found = (one.version or "" for one in self.items(item_type).values() if one.item_id == item_id)
        return sorted(found, key=version_key, reverse=True)

    def yanked(self, item_type: str, item_id: str, version: str) -> bool:
        """Tell whether a version bears the mark of one that was taken back."""
        return tag_of(item_type, item_id, version, yanked=True) in self.tags


class Fetched(Record):
    """What a registry gave, checked against its digests and nothing else.

    Attributes:
        reference: what was asked for, with the version where the registry had to choose.
        repository: where it came from.
        manifest: as it claims.
        files: the item's one file; of a bundle the signed manifest (type `bundle`), then its items. Each has as its path that
            below `.ai` where it is installed.
        key: the key document that came with it, if it can be read.
    """

    reference: Reference
    repository: Repository
    manifest: ItemManifest
    files: tuple[Candidate, ...]
    key: TrustedKey | None


class VerifiedFile(NamedTuple):
    """A file that was verified, the version that its signed text gives, and of a tool the other files that it names."""

    file: Candidate
    verified: Verified
    version: str
    files: Mapping[str, bytes] = MappingProxyType({})


_FILES = "files/"


def file_title(item_id: str, path: str) -> str:
    """Return the title of the layer that holds another file of a tool; `path` is relative to the tool's folder."""
    return f"{_FILES}{item_id}/{path}"


def fetch(repository: Repository, reference: Reference) -> Fetched:
    """Return what a registry holds under a reference.

    Raises:
        RegistryError: `not_in_registry`, `no_layer`, `bad_title`, `item_oversized`, and those of the storage.
    """
    chosen = _choose(repository, reference)
    # A digest wins over a version: it names exact bytes, a tag can be moved.
    name = chosen.digest or tag_of(chosen.item_type, chosen.item_id, chosen.version or "")
    manifest = oci_manifest.parse(repository.store.manifest(repository.name, name))
    files = _bundle_files if chosen.item_type == "bundle" else _item_file
    return Fetched(chosen, repository, manifest, files(repository, chosen, manifest), _key(repository, manifest))


def _choose(repository: Repository, reference: Reference) -> Reference:
    """Fill in the version: the highest that was not yanked."""
    if reference.version is not None or reference.digest is not None:
        return reference
    versions = repository.versions(reference.item_type, reference.item_id)
    if not versions:
        why = f"There is no {reference.item_type} {reference.item_id} in {repository.store.name}."
        raise RegistryError("not_in_registry", why, f"`rye registry list {reference.namespace}` shows what there is.")
    current = [one for one in versions if not repository.yanked(reference.item_type, reference.item_id, one)]
    if not current:
        why = f"Every version of {reference.item_id} was yanked: {', '.join(versions[:5])}."
        raise RegistryError("yanked", why, f"To take one all the same, name it: {reference.item_id}:{versions[0]}.")
    return changed(reference, version=current[0])


def _item_file(repository: Repository, reference: Reference, manifest: ItemManifest) -> tuple[Candidate, ...]:
    layers = _items(manifest)
    if len(layers) != 1:
        why = f"{reference} has {len(layers)} files where an item is one."
        raise RegistryError("no_layer", why, "It is not what `rye registry push` makes.")
    folder = "/".join((spaces.type_folder(reference.item_type)[0], *reference.item_id.split("/")[:-1]))
    place = (reference.item_type, reference.item_id)
    return (_file(repository, layers[0], f"{folder}/{layers[0].title}", place),)


def _items(manifest: ItemManifest) -> list[Layer]:
    """Return the layers that are items, or a bundle's manifest: all but the other files of tools."""
    return [layer for layer in manifest.files if not layer.title.startswith(_FILES)]


def _file(repository: Repository, layer: Layer, path: str, only: tuple[str, str] | None = None) -> Candidate:
    """Fetch the file of an item, which must have a path below `.ai` that an item can have; `only` is the one it may be."""
    stem, suffix = os.path.splitext(path)
    for item_type, (folder, _) in spaces.TYPES.items():
        item_id = stem.removeprefix(f"{folder}/")
        # A title is a file name from outside: it is compared, and never joined to a path.
        if item_id != stem and spaces.may_end_in(suffix, item_type) and only in (None, (item_type, item_id)):
            with contextlib.suppress(ItemError):
                spaces.check_id(item_id)
                return Candidate(item_type, item_id, suffix, "registry", path, _blob(repository, layer, MAX_ITEM_BYTES))
    why = f"A file is called {plain(layer.title, 100)!r}, which no {' '.join(only or ('item',))} can be."
    raise RegistryError("bad_title", why, "A file's name never decides where it lands; nothing was installed.")


def _blob(repository: Repository, layer: Layer, limit: int) -> bytes:
    # Refused by the announced size before anything is read; the storage reads no more than that size.
    if layer.size > limit:
        why = f"The registry announces {layer.size:,} bytes, where {limit:,} are the most."
        raise RegistryError("item_oversized", why, "It is not fetched.")
    return repository.store.blob(repository.name, layer)


def _bundle_files(repository: Repository, reference: Reference, manifest: ItemManifest) -> tuple[Candidate, ...]:
    """Fetch a bundle's signed manifest and the items: each title must be that of a place below `.ai`."""
    title = f"bundles/{reference.item_id}/manifest.yaml"
    head = next((layer for layer in manifest.files if layer.title == title), None)
    if head is None:
        raise RegistryError("no_layer", f"{reference} has no {title}.", "It is not what `rye registry push` makes.")
    signed = Candidate("bundle", reference.item_id, ".yaml", "registry", title, _blob(repository, head, MAX_ITEM_BYTES))
    rest = [_file(repository, layer, layer.title) for layer in _items(manifest) if layer is not head]
    # `a.yaml` and `a.yml` are one id: the second would replace the first after its check.
    if len({(file.item_type, file.item_id) for file in rest}) != len(rest):
        raise RegistryError("bad_title", f"{reference} holds two files for one id.", "Nothing was installed.")
    return (signed, *rest)


def _key(repository: Repository, manifest: ItemManifest) -> TrustedKey | None:
    """Return the key document that came along; it is for showing, so one that cannot be had is no failure."""
    if manifest.key is None or manifest.key.size > _KEY_LIMIT:
        return None
    try:
        return trust_verify.parse_key_document(repository.store.blob(repository.name, manifest.key))
    except (RegistryError, TrustError):
        return None


def verify_files(fetched: Fetched, search_path: Sequence[Space], destination: str = "project") -> list[VerifiedFile]:
    """Return the files as verified, the bundle's manifest first.

    Raises:
        TrustError: the verdict; `untrusted_key` says whose the key claims to be and how to trust it.
        ItemError: `malformed_item`, `no_version`.
    """
    store = spaces.trust_store(search_path)
    try:
        return _verified(fetched, store, destination)
    except TrustError as err:
        # Every other verdict is final; only for an unknown key is there something that the user can do.
        if err.code != "untrusted_key" or "fingerprint" not in err.details:
            raise
        raise _stranger(fetched, err) from None


def _verified(fetched: Fetched, store: TrustStore, destination: str) -> list[VerifiedFile]:
    reference, (head, *rest) = fetched.reference, fetched.files
    manifest = item = None
    if reference.item_type == "bundle":
        manifest = bundles.read(head.raw, reference.item_id, store)
        verified, version = manifest.verified, str(manifest.bundle.get("version", ""))
    else:
        item = bundles.admit(head, store)
        verified, version = item.verified, item.version
    # An approval is for one project; the user's own space counts in every project.
    if verified.key.role == "approved" and destination != "project":
        why = f"Its key {verified.key.public.fingerprint} counts for this project only, not for your own space."
        raise TrustError("untrusted_key", why, "Pull it into the project, or run `rye trust add` with the key's document.")
    _refuse_other_version(reference, version)
    # Without this a registry could hold back single files of a signed bundle.
    listed = {(kind, one) for kind, ids in manifest.items.items() for one in ids} if manifest else set()
    for kind, one in sorted(listed - {(file.item_type, file.item_id) for file in rest}):
        what = f"The bundle's manifest lists {kind} {one}, which did not come."
        raise TrustError("incomplete", what, "Nothing was installed.")
    admitted = [(file, bundles.admit(file, store, manifest)) for file in rest]
    files = (VerifiedFile(file, one.verified, one.version, _files_of(fetched, one)) for file, one in admitted)
    return [VerifiedFile(head, verified, version, _files_of(fetched, item)), *files]


def _files_of(fetched: Fetched, item: parse.Item | None) -> dict[str, bytes]:
    """Fetch the other files that a verified tool names; only bytes with the digests of its signed text count.

    Raises:
        TrustError: `tampered`, one did not come or is another. RegistryError: `item_oversized`, and those of the storage.
    """
    if not isinstance(item, parse.Tool):
        return {}
    layers = {layer.title: layer for layer in fetched.manifest.files}

    def content_of(path: str) -> bytes | None:
        layer = layers.get(file_title(item.id, path))
        return None if layer is None else _blob(fetched.repository, layer, tool_files.MOST_BYTES)

    return tool_files.gathered(item, content_of)


def _refuse_other_version(reference: Reference, version: str) -> None:
    if not is_version(version):
        raise ItemError("no_version", f"{reference.item_id} names no version X.Y.Z in its signed text.", "Ask its author to.")
    if reference.version not in (None, version):
        why = f"The registry answers {reference.item_id}:{reference.version} with version {version}."
        hint = "The tag and the signed text differ, so one of them was moved; nothing was installed."
        raise TrustError("other_version", why, hint)


def form_in_registry(file: Candidate) -> Form:
    """Return how the signature of a file stands in it; a bundle's manifest is signed like a tool."""
    return form_of("tool" if file.item_type == "bundle" else file.item_type, file.suffix)


def signed_by(fetched: Fetched) -> TrustedKey | None:
    """Return the key that came along, if it is the one that made the signature: a claim that can be shown, not trust."""
    head, key = fetched.files[0], fetched.key
    with contextlib.suppress(TrustError):
        if key is not None:
            # The document is only a claim until its key verifies this very signature.
            check(key.public, split(head.raw, form_in_registry(head)))
            return key
    return None


def _stranger(fetched: Fetched, err: TrustError) -> TrustError:
    """Name the key of an item that is not trusted, whose it claims to be, and the line that would trust it."""
    key = signed_by(fetched)
    if key is None:
        return TrustError(
            "untrusted_key",
            f"{err.message} No key document that fits its signature came with it.",
            "Ask its author for the key document, then run `rye trust add KEY.toml`.",
            **err.details,
        )
    digest, kind = key.public.digest, fetched.reference.item_type
    arg = f"{fetched.reference}{'' if kind == 'tool' else f' --type {kind}'}{_where(fetched)}"
    name = f"{key.public.fingerprint}.toml"
    return TrustError(
        "untrusted_key",
        f"Its key {key.public.fingerprint} is not one you trust. The registry says it is {plain(key.owner, 100)!r}'s; the full "
        f"digest is {digest}.",
        f"Compare the digest with its owner by another way. Then: `rye registry key {arg} > {name} && rye trust add {name}`.",
        fingerprint=key.public.fingerprint,
        key_digest=digest,
        owner_claim=plain(key.owner, 100),
    )


def _where(fetched: Fetched) -> str:
    """Return the option that names the registry, where neither the reference nor the user's default does."""
    name = fetched.repository.store.name
    known = fetched.reference.registry is not None or name == open_store(None).name
    return "" if known else f" --registry {shlex.quote(name)}"

"""Manifests of registry items: an OCI image manifest with the item's files as layers and its facts as annotations.

Layers: the item's raw bytes (title: its file name; of a bundle the signed manifest, then each item under its path below
`.ai`), and last the signer's key document. Nothing in a manifest is believed: annotations are shown, and the item itself is
verified. Format: OCI image specification 1.1, `application/vnd.oci.image.manifest.v1+json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from rye.errors import RegistryError
from rye.plain_class import Record

MEDIA_TYPE = "application/vnd.oci.image.manifest.v1+json"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
CONFIG_TYPE = "application/vnd.rye.config.v1+json"
KEY_TYPE = "application/vnd.rye.key.v1+toml"
EMPTY = b"{}"
MAX_MANIFEST_BYTES = 4 << 20
MAX_LAYERS = 5_000
MAX_BYTES = 256 << 20
"""Of all layers together."""

TITLE = "org.opencontainers.image.title"
VERSION = "org.opencontainers.image.version"
DESCRIPTION = "org.opencontainers.image.description"
ID, TYPE, CATEGORY = "vnd.rye.id", "vnd.rye.type", "vnd.rye.category"
SIGNER, KEY, YANKED = "vnd.rye.signer", "vnd.rye.key", "vnd.rye.yanked"

_MEDIA = {
    ".py": "text/x-python",
    ".md": "text/markdown",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".json": "application/json",
    ".toml": "application/toml",
    ".sh": "text/x-shellscript",
}


class Layer(Record):
    """A blob that a manifest names: `digest` is `sha256:…`, `size` in bytes, `title` a name that nobody vouches for."""

    media_type: str
    digest: str
    size: int
    title: str


class ItemManifest(Record):
    """A manifest that was read: what it claims, nothing of it verified but its own digest."""

    digest: str
    layers: tuple[Layer, ...]
    annotations: Mapping[str, str]

    @property
    def files(self) -> tuple[Layer, ...]:
        """The layers that are not the key document."""
        return tuple(layer for layer in self.layers if layer.media_type != KEY_TYPE)

    @property
    def key(self) -> Layer | None:
        """The key document's layer."""
        return next((layer for layer in self.layers if layer.media_type == KEY_TYPE), None)


class Pushed(NamedTuple):
    """One item to push: its tag, its manifest, and the blobs that the manifest names, by digest."""

    tag: str
    manifest: bytes
    blobs: Mapping[str, bytes]


def digest_of(data: bytes) -> str:
    """Return `sha256:` and the digest in hex."""
    return f"sha256:{sha256(data).hexdigest()}"


def media_type(suffix: str) -> str:
    """Return the media type of an item's file."""
    return _MEDIA.get(suffix, "text/plain")


def compose(files: Mapping[str, tuple[str, bytes]], annotations: Mapping[str, str]) -> tuple[bytes, dict[str, bytes]]:
    """Return a manifest, and the blobs that it names by digest.

    Args:
        files: title -> (media type, content), in the order of the layers.
        annotations: texts by key.
    """
    blobs = {digest_of(EMPTY): EMPTY}
    layers = []
    for title, (media, data) in files.items():
        blobs[digest_of(data)] = data
        layers.append({"mediaType": media, "digest": digest_of(data), "size": len(data), "annotations": {TITLE: title}})
    record = {
        "schemaVersion": 2,
        "mediaType": MEDIA_TYPE,
        "config": {"mediaType": CONFIG_TYPE, "digest": digest_of(EMPTY), "size": len(EMPTY)},
        "layers": layers,
        "annotations": dict(annotations),
    }
    # Compact and in a fixed order: the same item gives the same digest on every machine.
    return json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode(), blobs


def parse(data: bytes) -> ItemManifest:
    """Read a manifest.

    Raises:
        RegistryError: `not_a_manifest`, `foreign_artifact`.
    """
    record = from_json(data, _no_manifest)
    try:
        # An index or another artifact has the same outer shape.
        if record["schemaVersion"] != 2 or record.get("mediaType", MEDIA_TYPE) != MEDIA_TYPE:
            why = "It is an image index or another kind of artifact."
            raise RegistryError("foreign_artifact", why, "Pull items of rye only.")
        layers_field = record["layers"]
        if not isinstance(layers_field, list) or len(layers_field) > MAX_LAYERS:
            raise _no_manifest(f"it has not a list of at most {MAX_LAYERS:,} layers")
        annotations = record.get("annotations") or {}
        texts = {key: text for key, text in annotations.items() if isinstance(text, str)}
        layers = tuple(map(_layer, layers_field))
        # They are held in memory until the signature of the bundle's own manifest was checked.
        if sum(layer.size for layer in layers) > MAX_BYTES:
            raise RegistryError(
                "item_oversized", f"The registry announces more than {MAX_BYTES >> 20} MB.", "It is not fetched."
            )
        return ItemManifest(digest_of(data), layers, texts)
    except (KeyError, TypeError, ValueError, AttributeError) as err:
        raise _no_manifest(f"it lacks what a manifest has ({type(err).__name__})") from None


def from_json(data: bytes, refused: Callable[[str], RegistryError]) -> Any:
    """Return what a registry's JSON says; `refused` makes the error for what is none, from a word on what it is."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise refused("it is HTML" if data.lstrip()[:1] == b"<" else "it is no JSON" if data else "it is empty") from None


def _layer(record: Any) -> Layer:
    digest, size = record["digest"], record["size"]
    right = isinstance(digest, str) and digest.startswith("sha256:") and len(digest) == 71
    if not right or set(digest[7:]) - set("0123456789abcdef"):
        raise _no_manifest("a layer's digest is not sha256:… with 64 hex digits")
    # Not isinstance, since JSON's true would pass as 1.
    if type(size) is not int or size < 0:
        raise _no_manifest("a layer's size is no number of bytes")
    title = (record.get("annotations") or {}).get(TITLE, "")
    return Layer(str(record["mediaType"]), digest, size, title if isinstance(title, str) else "")


def _no_manifest(why: str) -> RegistryError:
    what = f"The registry's answer is not the manifest of an item: {why}."
    return RegistryError("not_a_manifest", what, "Check the registry's address.")

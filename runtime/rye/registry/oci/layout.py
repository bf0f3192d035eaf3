"""A registry without a server: one OCI image layout in a directory for each namespace.

`<root>/<repository>/` holds `oci-layout`, `blobs/sha256/<hex>` and `index.json`, which names each tag. Blobs are written first,
each whole or not at all, and the index last, under a lock: a push that is killed leaves no item that is visible in part,
and writers beside one another lose nothing. Whoever reads takes regular files only, bounded, and hashes them again: the
directory may come from anyone. Format: OCI image layout 1.0.0.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from rye.errors import RegistryError
from rye.fs import atomic, beneath
from rye.registry.oci.manifest import INDEX_TYPE, MAX_MANIFEST_BYTES, MEDIA_TYPE, Layer, Pushed, digest_of, from_json

_REF_NAME = "org.opencontainers.image.ref.name"
_LAYOUT: Final = b'{"imageLayoutVersion": "1.0.0"}'
_MAX_INDEX_BYTES = 64 << 20
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


class Layout:
    """The layouts below one root; see `rye.registry.oci.store.Store`."""

    def __init__(self, root: Path) -> None:
        """Take the folder; it need not exist until something is pushed."""
        self._root = root
        self.name = str(root)
        self.parallel = 1
        self._indexes: dict[str, dict[str, Any]] = {}

    def repositories(self) -> list[str]:
        """Return the names of the repositories, sorted."""
        try:
            found = sorted(os.listdir(self._root))
        except OSError:
            return []
        return [name for name in found if not name.startswith(".") and (self._root / name / "oci-layout").is_file()]

    def tags(self, repository: str) -> list[str]:
        """Return the tags of a repository, sorted; [] where there is none."""
        return sorted(self._tagged(repository))

    def manifest(self, repository: str, reference: str) -> bytes:
        """Return a manifest by tag or digest; see `Store.manifest`."""
        digest = reference
        if not reference.startswith("sha256:"):
            found = self._tagged(repository).get(reference)
            if found is None:
                why = f"There is no {reference} in {repository} of {self.name}."
                raise RegistryError("not_in_registry", why, "`rye registry list` shows what is.")
            digest = str(found.get("digest"))
        return self._blob(repository, digest, MAX_MANIFEST_BYTES, "manifest")

    def blob(self, repository: str, layer: Layer) -> bytes:
        """Return a blob; see `Store.blob`."""
        return self._blob(repository, layer.digest, layer.size, "blob")

    def push(self, repository: str, pushed: Iterable[Pushed]) -> list[str]:
        """Write items; they become visible together. See `Store.push`."""
        folder = self._root / repository
        entries: list[dict[str, Any]] = []
        try:
            self._make(folder)
            for one in pushed:
                for digest, data in {**one.blobs, digest_of(one.manifest): one.manifest}.items():
                    self._write_blob(folder, digest, data)
                size, named = len(one.manifest), {_REF_NAME: one.tag}
                entries.append({"mediaType": MEDIA_TYPE, "digest": digest_of(one.manifest), "size": size, "annotations": named})
            # Names of the blobs reach the disk before the index that refers to them.
            atomic.sync(folder / "blobs" / "sha256")
            with atomic.locked(folder / ".lock"):
                self._index_anew(repository, folder, entries)
            return [entry["digest"] for entry in entries]
        except OSError as err:
            why = f"{folder} cannot be written: {err.strerror}."
            raise RegistryError("registry_unwritable", why, "Check the folder, the disk and the permissions.") from None

    def _make(self, folder: Path) -> None:
        (folder / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)
        if not (folder / "oci-layout").exists():
            atomic.write(folder / "oci-layout", _LAYOUT)
            atomic.sync(self._root)

    def _write_blob(self, folder: Path, digest: str, data: bytes) -> None:
        path = folder / "blobs" / "sha256" / digest.removeprefix("sha256:")
        with suppress(OSError):
            # Compared, not only found: a blob that was damaged is written again.
            if _read(folder, f"blobs/sha256/{path.name}", len(data)) == data:
                return
        atomic.write(path, data, sync_folder=False)

    def _index_anew(self, repository: str, folder: Path, entries: list[dict[str, Any]]) -> None:
        # Read under the lock, so that the tags of another push are not lost.
        self._indexes.pop(repository, None)
        old = self._index(repository)
        new = {entry["annotations"][_REF_NAME] for entry in entries}
        others = [entry for entry in old.get("manifests", []) if _name(entry) not in new]
        record = {**old, "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [*others, *entries]}
        atomic.write(folder / "index.json", json.dumps(record).encode() + b"\n")
        self._indexes[repository] = record

    def _tagged(self, repository: str) -> Mapping[str, dict[str, Any]]:
        """Return the descriptors of the manifests by tag."""
        manifests = self._index(repository).get("manifests", [])
        return {name: entry for entry in manifests if (name := _name(entry)) is not None}

    def _index(self, repository: str) -> dict[str, Any]:
        """Return a repository's index as it was at the first request."""
        if repository in self._indexes:
            return self._indexes[repository]
        folder = self._root / repository
        try:
            raw = _read(folder, "index.json", _MAX_INDEX_BYTES)
        except FileNotFoundError:
            return {}
        except OSError as err:
            raise _bad_index(folder, f"it cannot be read: {err.strerror}") from None
        record = from_json(raw, lambda why: _bad_index(folder, why))
        if not isinstance(record, dict) or not isinstance(record.get("manifests", []), list):
            raise _bad_index(folder, "it is no object with a list of manifests")
        self._indexes[repository] = record
        return record

    def _blob(self, repository: str, digest: str, limit: int, what: str) -> bytes:
        name = digest.removeprefix("sha256:")
        if len(name) != 64 or set(name) - set("0123456789abcdef"):
            raise _bad_index(self._root / repository, f"it names {digest[:80]!r} for a digest")
        try:
            data = _read(self._root / repository, f"blobs/sha256/{name}", limit)
        except FileNotFoundError:
            why = f"The {what} sha256:{name[:12]}… is not in {repository} of {self.name}."
            raise RegistryError(f"{what}_missing", why, "Ask the registry's owner to push it again.") from None
        except OSError as err:
            why = f"The {what} sha256:{name[:12]}… cannot be read: {err.strerror}."
            hint = "It must be a regular file, reached through no symbolic link."
            raise RegistryError(f"{what}_unreadable", why, hint) from None
        if len(data) > limit:
            message = f"The {what} sha256:{name[:12]}… is larger than {limit:,} bytes."
            raise RegistryError(f"{what}_oversized", message, "Nothing was installed.")
        check_digest(data, digest, what)
        return data


def check_digest(data: bytes, digest: str, what: str) -> None:
    """Hash what came, whatever its source said.

    Raises:
        RegistryError: `manifest_digest_mismatch`, `blob_digest_mismatch`.
    """
    if digest_of(data) != digest:
        why = f"The {what} that came is {digest_of(data)[:19]}…, not {digest[:19]}… as named."
        hint = "It was changed on the way or in the registry; nothing was installed."
        raise RegistryError(f"{what}_digest_mismatch", why, hint, expected=digest, actual=digest_of(data))


def _read(folder: Path, path: str, limit: int) -> bytes:
    """Read at most `limit` + 1 bytes of a regular file that no link leads to."""
    with atomic.closing(os.open(folder, beneath.DIRECTORY | os.O_NOFOLLOW)) as root:
        return atomic.read_open(beneath.open_unlinked(root, path.split("/"), _READ), limit + 1, path)[0]


def _name(entry: Any) -> str | None:
    annotations = entry.get("annotations") if isinstance(entry, dict) else None
    name = annotations.get(_REF_NAME) if isinstance(annotations, dict) else None
    return name if isinstance(name, str) else None


def _bad_index(folder: Path, why: str) -> RegistryError:
    return RegistryError("bad_layout", f"{folder}/index.json is no index of an OCI layout: {why}.", "Check the folder.")

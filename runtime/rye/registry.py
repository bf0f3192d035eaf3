"""The registry of signed items: push, pull, search, list, inspect, verify, yank, key and unpin, each one function.

Storage is an OCI image layout directory, or any OCI registry. A registry is a place where bytes lie: what counts is decided
here, by the user's own keys (see `rye.artifacts`).
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from rye import artifacts, marks, pulling, pushing, registry_look, spaces, trust
from rye.errors import RegistryError, UsageError
from rye.oci_reference import Reference, parse, read_tag
from rye.oci_store import Store, open_store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rye.pulling import Wish

ACTIONS = ("push", "pull", "search", "list", "inspect", "verify", "yank", "key", "unpin")


class At(NamedTuple):
    """Where to look: the registry (see `rye.oci_store.open_store`), whether plain http is spoken, and the project."""

    project: str
    registry: str | None = None
    plain_http: bool = False

    def store(self, reference: Reference | None = None) -> Store:
        """Return the storage: the reference's own registry before the named one."""
        return open_store((reference.registry if reference else None) or self.registry, plain_http=self.plain_http)


def push(at: At, item_type: str, ids: Sequence[str], *, source: str | None = None) -> list[dict[str, Any]]:
    """Push items; an id may be a pattern (`my/*`). Errors as `rye.pushing.push_items`."""
    among = [space for space in spaces.spaces(at.project) if source in (None, space.name)]
    wanted = [(item_type, item_id) for text in ids for item_id in _matching(item_type, text, among)]
    return pushing.push_items(wanted, at.store(), among)


def push_bundle(at: At, bundle_id: str, folder: Path | None) -> list[dict[str, Any]]:
    """Push a bundle from its `.ai` folder; None for the system bundle's."""
    if folder is None:
        space = spaces.Space("system", spaces.system_folder())
    else:
        space = spaces.Space(f"bundle:{bundle_id}", str(folder))
    return pushing.push_bundle(space, bundle_id, at.store(), spaces.spaces(at.project))


def _matching(item_type: str, text: str, among: Sequence[spaces.Space]) -> list[str]:
    if not any(char in text for char in "*?"):
        return [text]
    found = [item_id for item_id, _, _ in spaces.listed(item_type, among, ()) if fnmatchcase(item_id, text)]
    if not found:
        raise UsageError("no_items", f"No {item_type} fits {text!r}.", "`rye tools` shows what there is.")
    return found


def pull(at: At, item_type: str, references: Sequence[str], wish: Wish) -> list[dict[str, Any]]:
    """Pull items; a reference may be a pattern below a namespace (`my/*`). See `rye.pulling.take`."""
    stores: dict[str | None, Store] = {}

    def store_of(reference: Reference) -> Store:
        return stores.setdefault(reference.registry, at.store(reference))

    wanted = [one for text in references for one in _wanted(text, item_type, store_of)]
    return pulling.take(wanted, store_of, at.project, wish)


def _wanted(text: str, item_type: str, store_of: Any) -> list[Reference]:  # noqa: ANN401 - a function of a Reference
    if "*" not in text:
        return [parse(text, item_type)]
    sample = parse(text.replace("*", "x"), item_type)
    pattern = text.removeprefix(f"{sample.registry}").lstrip("/") if sample.registry else text
    namespace = pattern.partition("/")[0]
    if "*" in namespace or sample.version or sample.digest:
        raise UsageError("bad_reference", f"Not a pattern of items: {text!r}.", "Write namespace/*, without version.")
    store = store_of(sample)
    named = [one for tag in artifacts.Shelf.of(store, namespace).tags if (one := read_tag(tag)) and one.item_type == item_type]
    ids = {one.item_id for one in named if one.item_id and not one.yanked}
    if any(one.item_id is None for one in named):
        # Of a long id the tag has only the hash: the manifest says which it is, and is held to the tag.
        ids |= {row["item_id"] for row in registry_look.rows([namespace], store, item_type)}
    found = sorted(item_id for item_id in ids if fnmatchcase(item_id, pattern))
    if not found:
        raise RegistryError(
            "not_in_registry", f"No {item_type} fits {text!r}.", f"`rye registry list {namespace}` shows what is."
        )
    return [Reference(item_type, item_id, registry=sample.registry) for item_id in found]


def search(at: At, query: str, namespaces: Sequence[str], item_type: str | None = None, limit: int = 20) -> dict[str, Any]:
    """Search; see `rye.registry_look.search`."""
    return registry_look.search(query, namespaces, at.store(), item_type, limit)


def listing(at: At, namespaces: Sequence[str], item_type: str | None = None) -> list[dict[str, Any]]:
    """List versions; see `rye.registry_look.rows`."""
    return registry_look.rows(namespaces, at.store(), item_type)


def inspect(at: At, item_type: str, reference: str, destination: str = "project") -> dict[str, Any]:
    """Inspect before a pull; see `rye.registry_look.inspect`."""
    wanted = parse(reference, item_type)
    return registry_look.inspect(wanted, at.store(wanted), at.project, destination)


def verify(at: At, item_type: str, reference: str) -> dict[str, Any]:
    """Fetch and verify without installing; return what `inspect` returns, without the diff.

    Raises:
        RyeError: whatever a pull would be refused for, but for what stands at its destination.
    """
    wanted = parse(reference, item_type)
    fetched = artifacts.fetch(artifacts.Shelf.of(at.store(wanted), wanted.namespace), wanted)
    among = spaces.spaces(at.project)
    pulled = pulling.Pull(fetched, artifacts.verify(fetched, among))
    for checked in pulled.checked:
        pulling.judge(checked, marks.load(), among, pulling.Wish("none"))
    pulling.note_yank(pulled)
    return {"verdict": "valid", **pulled.row}


def yank(at: At, item_type: str, reference: str, reason: str) -> dict[str, Any]:
    """Mark a version as taken back; see `rye.pushing.yank`."""
    wanted = parse(reference, item_type)
    return pushing.yank(wanted, at.store(wanted), reason)


def key(at: At, item_type: str, reference: str) -> dict[str, Any]:
    """Return the key document that came with an item: `{"document", "fingerprint", "digest", "owner"}`.

    Raises:
        RegistryError: `no_key_document`.
    """
    wanted = parse(reference, item_type)
    fetched = artifacts.fetch(artifacts.Shelf.of(at.store(wanted), wanted.namespace), wanted)
    found = artifacts.signed_by(fetched)
    if found is None:
        raise RegistryError(
            "no_key_document",
            f"No key document that fits the signature came with {wanted}.",
            "Ask its author for the document.",
        )
    return {
        # Without its attestation: free text from a registry is not for a terminal, nor for keeping.
        "document": trust.render_key_document(found.public, found.owner).decode(),
        "fingerprint": found.public.fingerprint, "digest": found.public.digest, "owner": found.owner,
    }  # fmt: skip


def unpin(namespace: str) -> str:
    """Forget which key a namespace was pinned to; return its full digest.

    Raises:
        UsageError: `not_pinned`.
    """
    with marks.changing() as known:
        pinned = known.pins.pop(namespace, None)
    if pinned is None:
        raise UsageError("not_pinned", f"The namespace {namespace!r} is not pinned.", "Nothing was changed.")
    return pinned

"""The registry of signed items: push, pull, verify, yank, key and unpin, each one function; `browse` looks without a change.

Storage is an OCI image layout directory, or any OCI registry. A registry is a place where bytes lie: what counts is decided
here, by the user's own keys (see `rye.registry.artifacts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rye.errors import RegistryError, UsageError
from rye.items import spaces
from rye.registry import artifacts
from rye.registry import pull as registry_pull
from rye.registry import push as registry_push
from rye.registry.oci.reference import Reference, parse, read_tag
from rye.registry.oci.store import RegistryTarget, Store
from rye.registry.pull import PullOptions
from rye.trust import pins
from rye.trust import verify as trust_verify


def push(target: RegistryTarget, item_type: str, ids: Sequence[str], *, source: str | None = None) -> list[dict[str, Any]]:
    """Push items; an id may be a pattern (`my/*`). Errors as `rye.registry.push.push_items`."""
    search_path = [space for space in spaces.spaces(target.project) if source in (None, space.name)]
    items = [(item_type, item_id) for text in ids for item_id in _matching(item_type, text, search_path)]
    return registry_push.push_items(items, target.store(), search_path)


def push_bundle(target: RegistryTarget, bundle_id: str, folder: Path | None) -> list[dict[str, Any]]:
    """Push a bundle from its `.ai` folder; None for the system bundle's."""
    if folder is None:
        space = spaces.Space("system", spaces.system_folder())
    else:
        space = spaces.Space(f"bundle:{bundle_id}", str(folder))
    return registry_push.push_bundle(space, bundle_id, target.store(), spaces.spaces(target.project))


def _matching(item_type: str, text: str, search_path: Sequence[spaces.Space]) -> list[str]:
    if not any(char in text for char in "*?"):
        return [text]
    found = [item_id for item_id, _, _ in spaces.served_items(item_type, search_path, ()) if fnmatchcase(item_id, text)]
    if not found:
        raise UsageError("no_items", f"No {item_type} fits {text!r}.", "`rye tools` shows what there is.")
    return found


def pull(target: RegistryTarget, item_type: str, references: Sequence[str], options: PullOptions) -> list[dict[str, Any]]:
    """Pull items; a reference may be a pattern below a namespace (`my/*`). See `rye.registry.pull.pull_references`."""
    stores: dict[str | None, Store] = {}

    def store_of(reference: Reference) -> Store:
        # One store for each registry, so that its connections and tokens serve all references.
        return stores.setdefault(reference.registry, target.store(reference))

    all_references = [one for text in references for one in _references(text, item_type, store_of)]
    return registry_pull.pull_references(all_references, store_of, target.project, options)


def _references(text: str, item_type: str, store_of: Any) -> list[Reference]:
    if "*" not in text:
        return [parse(text, item_type)]
    # Parsed with a letter in place of each *, so that the rules for references hold for patterns too.
    sample = parse(text.replace("*", "x"), item_type)
    pattern = text.removeprefix(f"{sample.registry}").lstrip("/") if sample.registry else text
    namespace = pattern.partition("/")[0]
    if "*" in namespace or sample.version or sample.digest:
        raise UsageError("bad_reference", f"Not a pattern of items: {text!r}.", "Write namespace/*, without version.")
    store = store_of(sample)
    tags = [one for tag in artifacts.Repository(store, namespace).tags if (one := read_tag(tag)) and one.item_type == item_type]
    ids = {one.item_id for one in tags if not one.yanked}
    found = sorted(item_id for item_id in ids if fnmatchcase(item_id, pattern))
    if not found:
        raise RegistryError(
            "not_in_registry", f"No {item_type} fits {text!r}.", f"`rye registry list {namespace}` shows what is."
        )
    return [Reference(item_type, item_id, registry=sample.registry) for item_id in found]


def verify(target: RegistryTarget, item_type: str, reference: str) -> dict[str, Any]:
    """Fetch and verify without installing; return what `inspect` returns, without the diff.

    Raises:
        RyeError: whatever a pull would be refused for, except for the file at its destination.
    """
    parsed = parse(reference, item_type)
    search_path = spaces.spaces(target.project)
    repository = artifacts.Repository(target.store(parsed), parsed.namespace)
    pulled = registry_pull.verified_pull(repository, parsed, search_path)
    for checked in pulled.checked:
        registry_pull.judge(checked, pins.load(), search_path, registry_pull.PullOptions("none"))
    return {"verdict": "valid", **pulled.row}


def yank(target: RegistryTarget, item_type: str, reference: str, reason: str) -> dict[str, Any]:
    """Mark a version as taken back; see `rye.registry.push.yank`."""
    parsed = parse(reference, item_type)
    return registry_push.yank(parsed, target.store(parsed), reason)


def key(target: RegistryTarget, item_type: str, reference: str) -> dict[str, Any]:
    """Return the key document that came with an item: `{"document", "fingerprint", "digest", "owner"}`.

    Raises:
        RegistryError: `no_key_document`.
    """
    parsed = parse(reference, item_type)
    fetched = artifacts.fetch(artifacts.Repository(target.store(parsed), parsed.namespace), parsed)
    found = artifacts.signed_by(fetched)
    if found is None:
        raise RegistryError(
            "no_key_document",
            f"No key document that fits the signature came with {parsed}.",
            "Ask its author for the document.",
        )
    return {
        # Without its attestation: free text from a registry is neither printed nor stored.
        "document": trust_verify.render_key_document(found.public, found.owner).decode(),
        "fingerprint": found.public.fingerprint,
        "digest": found.public.digest,
        "owner": found.owner,
    }


def unpin(namespace: str) -> str:
    """Forget which key a namespace was pinned to; return its full digest.

    Raises:
        UsageError: `not_pinned`.
    """
    with pins.changing() as known:
        pinned = known.pins.pop(namespace, None)
    if pinned is None:
        raise UsageError("not_pinned", f"The namespace {namespace!r} is not pinned.", "Nothing was changed.")
    return pinned

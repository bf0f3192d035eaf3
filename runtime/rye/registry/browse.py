"""Looking into registries: listing, searching, and inspecting an item before it is pulled. Nothing is written but a cache."""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Sequence
from typing import Any

from rye.call import context
from rye.call.safe_text import content, plain
from rye.config import user_dirs
from rye.errors import RegistryError, RyeError, UsageError
from rye.executor.admission import Admission
from rye.items import parse, spaces
from rye.items.versions import is_version, version_key
from rye.registry.artifacts import Fetched, Repository, VerifiedFile, fetch, form_in_registry, signed_by, verify_files
from rye.registry.oci import manifest
from rye.registry.oci.manifest import DESCRIPTION, KEY, SIGNER, VERSION, ItemManifest
from rye.registry.oci.reference import is_namespace
from rye.registry.oci.reference import parse as parse_reference
from rye.registry.oci.store import OciStore, RegistryTarget, at_once
from rye.registry.pull import PullOptions, check_install
from rye.registry.push import yank_reason
from rye.trust import pins
from rye.trust import verify as trust_verify
from rye.trust.signature import split

_DIFF_LINES = 400


def namespaces(given: Sequence[str], store: OciStore) -> list[str]:
    """Return where to look: the named ones, else those of the setting `registry.namespaces`, else what the storage knows.

    Raises:
        UsageError: `no_namespace`.
    """
    names = list(given) or context.settings().texts("registry.namespaces")
    names = names or [name for name in store.repositories() if is_namespace(name)]
    if not names:
        raise UsageError(
            "no_namespace",
            f"{store.name} cannot be asked for its namespaces.",
            "Name one: `rye registry list NAMESPACE`; or set `registry: {namespaces: [NAMESPACE]}` in "
            f"{user_dirs.settings_file()}.",
        )
    for name in names:
        spaces.check_id(name)
    return names


def rows(target: RegistryTarget, given_namespaces: Sequence[str], item_type: str | None = None) -> list[dict[str, Any]]:
    """Return a row for each version of each item of some namespaces, sorted: what tags and annotations claim, unverified."""
    store = target.store()
    return [row for name in namespaces(given_namespaces, store) for row in _rows(Repository(store, name), item_type)]


def _rows(repository: Repository, item_type: str | None) -> list[dict[str, Any]]:
    found = repository.items(item_type)
    out: list[dict[str, Any]] = []
    for one, claimed in zip(found.values(), _manifests(repository, [*found]), strict=True):
        if claimed is None:
            continue
        out.append(
            {
                "item_type": one.item_type,
                "item_id": one.item_id,
                "version": one.version,
                "category": one.item_id.rpartition("/")[0],
                "description": plain(claimed.annotations.get(DESCRIPTION, ""), 300),
                "signer": plain(claimed.annotations.get(SIGNER, ""), 16),
                "key_digest": plain(claimed.annotations.get(KEY, ""), 64),
                "yanked": repository.yanked(one.item_type, one.item_id, one.version or ""),
                "digest": claimed.digest,
                "registry": repository.store.name,
            }
        )
    return sorted(out, key=lambda row: (row["item_type"], row["item_id"], version_key(row["version"])))


# A tag that leads to no manifest of an item is not listed.
_NO_ITEM = ("not_in_registry", "manifest_missing", "manifest_digest_mismatch", "manifest_oversized", "not_a_manifest")


def _manifests(repository: Repository, tags: Sequence[str]) -> list[ItemManifest | None]:
    """Return the manifest of each tag; None for one that cannot be had."""

    def one(tag: str) -> ItemManifest | None:
        try:
            return manifest.parse(repository.store.manifest(repository.name, tag))
        except RegistryError as err:
            if err.code in (*_NO_ITEM, "foreign_artifact"):
                return None
            raise

    return at_once(repository.store.parallel, one, tags)


def search(
    target: RegistryTarget, query: str, given_namespaces: Sequence[str], item_type: str | None = None, limit: int = 20
) -> dict[str, Any]:
    """Find items whose id, type, category, description or signer holds the words; the newest version of each.

    Returns:
        `{"query", "results": rows with "score", "total"}`; most words found first, a word in the id counts twice.
    """
    words = [word for word in query.casefold().split() if word != "*"]
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows(target, given_namespaces, item_type):
        key = (row["item_type"], row["item_id"])
        # Rows come in ascending versions: a later one wins, but a yanked one never over one that is not.
        if key not in newest or not row["yanked"] or newest[key]["yanked"]:
            newest[key] = row
    scored = [{**row, "score": score} for row in newest.values() if (score := _score(row, words)) or not words]
    # By id after the score, so that two searches give one order.
    scored.sort(key=lambda row: (-row["score"], row["item_id"]))
    return {"query": query, "results": scored[:limit], "total": len(scored)}


def _score(row: dict[str, Any], words: Sequence[str]) -> int:
    text = " ".join(str(row[name]) for name in ("item_type", "description", "signer")).casefold()
    return sum(2 * (word in row["item_id"].casefold()) + (word in text) for word in words)


def inspect(target: RegistryTarget, item_type: str, text: str, destination: str = "project") -> dict[str, Any]:
    """Return what is known of an item before a pull: the claims, the verdict, permissions, and the diff to the current file.

    Returns:
        `{"item_type", "item_id", "version", "digest", "verdict", "error"?, "hint"?, "signer", "owner", "key_digest", "yanked",
        "versions", "permissions"?, "requires_rye"?, "requires"?, "description"?, "items"?, "installed": {"version", "path"} |
        None, "diff": unified diff}`. `owner` is a claim unless the verdict is `valid`; text and diff of an item that is not
        verified are not given: nothing of it is put before a model.
    """
    reference, search_path = parse_reference(text, item_type), spaces.spaces(target.project)
    repository = Repository(target.store(reference), reference.namespace)
    fetched = fetch(repository, reference)
    found = _claims(fetched)
    try:
        checked = verify_files(fetched, search_path, destination)
    except RyeError as err:
        return {**found, "verdict": err.code, "error": err.message, "hint": err.hint}
    head = checked[0]
    try:
        for one in checked:
            # Judged as a pull would be, but without its lock: nothing is remembered here.
            check_install(one, pins.load(), search_path, PullOptions(destination))
        verdict: dict[str, Any] = {"verdict": "valid"}
    except RyeError as err:
        verdict = {"verdict": err.code, "error": err.message, "hint": err.hint}
    key = head.verified.key
    reason = yank_reason(repository, head.file.item_type, head.file.item_id, head.version)
    return {
        **found,
        **verdict,
        "version": head.version,
        "signer": key.public.fingerprint,
        "owner": key.owner,
        "key_digest": key.public.digest,
        "yanked": reason is not None,
        "yank_reason": reason,
        **_facts(checked),
        **_compared(head, search_path),
    }


def _claims(fetched: Fetched) -> dict[str, Any]:
    """Return what the registry says of an item."""
    reference, annotations = fetched.reference, fetched.manifest.annotations
    key = signed_by(fetched)
    head = fetched.files[0]
    signer = None
    with contextlib.suppress(RyeError):
        # From the signature line itself, which names a key even if no document came.
        signer = split(head.raw, form_in_registry(head)).signature.fingerprint
    version = reference.version or plain(annotations.get(VERSION, ""), 40)
    return {
        "item_type": reference.item_type,
        "item_id": reference.item_id,
        "version": version,
        "digest": fetched.manifest.digest,
        "signer": signer,
        "owner": plain(key.owner, 100) if key else None,
        "key_digest": key.public.digest if key else None,
        "registry": fetched.repository.store.name,
        "yanked": is_version(version) and fetched.repository.yanked(reference.item_type, reference.item_id, version),
        "versions": fetched.repository.versions(reference.item_type, reference.item_id),
        "size": sum(len(file.raw) for file in fetched.files),
        "files": len(fetched.files),
    }


def _facts(checked: Sequence[VerifiedFile]) -> dict[str, Any]:
    """Return what a verified item declares."""
    head = checked[0]
    if head.file.item_type == "bundle":
        rows_ = [
            {"item_type": one.file.item_type, "item_id": one.file.item_id, "version": one.version, **_declared(one)}
            for one in checked[1:]
        ]
        return {"items": rows_}
    return _declared(head)


def _declared(checked: VerifiedFile) -> dict[str, Any]:
    file = checked.file
    if file.item_type != "tool":
        return {}
    tool = parse.read_tool(checked.verified, file.item_id, file.suffix)
    requires = tool.metadata.get("__requires__", [])
    return {
        "description": plain(tool.description, 300),
        "permissions": [*tool.permissions, *tool.secrets],
        "requires_rye": plain(str(tool.metadata.get("__requires_rye__", "")), 40) or None,
        "requires": [plain(str(one), 100) for one in requires] if isinstance(requires, list | tuple) else [],
    }


def _compared(head: VerifiedFile, search_path: Sequence[spaces.Space]) -> dict[str, Any]:
    """Return what serves the id here now, and the diff from it to what would be installed."""
    file = head.file
    try:
        # No space serves a bundle by its id.
        current = spaces.find(file.item_type, file.item_id, search_path)
    except RyeError:
        return {"installed": None, "diff": ""}
    version = None
    with contextlib.suppress(RyeError):
        verified = Admission(search_path).admit(current)
        version = parse.read(verified, file.item_type, file.item_id, current.suffix).version
    # Replaced, not refused: the diff is for reading and the bytes were checked already.
    old, new = (raw.decode("utf-8", "replace").splitlines() for raw in (current.raw, file.raw))
    lines = list(
        difflib.unified_diff(old, new, f"installed {version or '(not verified)'}", f"pulled {head.version}", lineterm="")
    )
    omitted = [f"… {len(lines) - _DIFF_LINES} more lines"] if len(lines) > _DIFF_LINES else []
    diff = content("\n".join([*lines[:_DIFF_LINES], *omitted]))
    if version is None and lines:
        diff = "(the file installed here is not verified)"
    return {"installed": {"version": version, "path": os.fspath(current.path), "space": current.space}, "diff": diff}


def key(target: RegistryTarget, item_type: str, reference: str) -> dict[str, Any]:
    """Return the key document that came with an item: `{"document", "fingerprint", "digest", "owner"}`.

    Raises:
        RegistryError: `no_key_document`.
    """
    parsed = parse_reference(reference, item_type)
    fetched = fetch(Repository(target.store(parsed), parsed.namespace), parsed)
    found = signed_by(fetched)
    if found is None:
        why = f"No key document that fits the signature came with {parsed}."
        raise RegistryError("no_key_document", why, "Ask its author for the document.")
    return {
        # Without its attestation: free text from a registry is neither printed nor stored.
        "document": trust_verify.render_key_document(found.public, found.owner).decode(),
        "fingerprint": found.public.fingerprint,
        "digest": found.public.digest,
        "owner": found.owner,
    }

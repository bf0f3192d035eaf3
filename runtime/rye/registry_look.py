"""Looking into registries: listing, searching, and inspecting an item before it is pulled. Nothing is written but a cache."""

from __future__ import annotations

import contextlib
import difflib
import os
from typing import TYPE_CHECKING, Any

from rye import items, marks, oci_manifest, spaces
from rye.artifacts import Shelf, fetch, signed_by, verify
from rye.errors import RegistryError, RyeError, UsageError
from rye.oci_manifest import CATEGORY, DESCRIPTION, ID, KEY, SIGNER, TYPE, VERSION
from rye.oci_reference import is_version, namespace_of, read_tag, tag_of, version_key
from rye.pulling import Wish, judge
from rye.pushing import yank_reason
from rye.signing import form_of, split
from rye.toolkit import config
from rye.toolkit.untrusted import content, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rye.artifacts import Checked, Fetched
    from rye.oci_reference import Reference
    from rye.oci_store import Store

_DIFF_LINES = 400


def namespaces(named: Sequence[str], store: Store) -> list[str]:
    """Return where to look: the named ones, else those of the setting `registry.namespaces`, else what the storage knows.

    Raises:
        UsageError: `no_namespace`.
    """
    chosen = list(named) or config.texts("registry.namespaces")
    chosen = chosen or [name for one in store.repositories() if (name := namespace_of(one))]
    if not chosen:
        raise UsageError(
            "no_namespace", f"{store.name} cannot be asked for its namespaces.",
            "Name one: `rye registry list NAMESPACE`; or set `registry: {namespaces: [NAMESPACE]}` in ~/.ai/config/rye.yaml.",
        )  # fmt: skip
    for name in chosen:
        spaces.check_id(name)
    return chosen


def rows(named: Sequence[str], store: Store, item_type: str | None = None) -> list[dict[str, Any]]:
    """Return a row for each version of each item of some namespaces, sorted: what tags and annotations claim, unverified."""
    return [row for name in namespaces(named, store) for row in _rows(Shelf.of(store, name), item_type)]


def _rows(shelf: Shelf, item_type: str | None) -> list[dict[str, Any]]:
    named = [found for tag in shelf.tags if (found := read_tag(tag)) and item_type in (None, found.item_type)]
    yanked = {tag for tag in shelf.tags if tag.startswith("yanked--")}
    standing = [one for one in named if not one.yanked]
    listed: list[dict[str, Any]] = []
    for one, raw in zip(standing, _manifests(shelf, [one.tag for one in standing]), strict=True):
        if raw is None:
            continue
        try:
            annotations = oci_manifest.parse(raw).annotations
        except RegistryError:
            continue
        item_id = one.item_id or annotations.get(ID, "")
        if tag_of(one.item_type, item_id, one.version) != one.tag:
            continue
        listed.append({
            "item_type": one.item_type, "item_id": item_id, "version": one.version,
            "category": item_id.rpartition("/")[0], "description": plain(annotations.get(DESCRIPTION, ""), 300),
            "signer": plain(annotations.get(SIGNER, ""), 16), "key_digest": plain(annotations.get(KEY, ""), 64),
            "yanked": tag_of(one.item_type, item_id, one.version, yanked=True) in yanked,
            "digest": oci_manifest.digest_of(raw), "registry": shelf.store.name,
        })  # fmt: skip
    return sorted(listed, key=lambda row: (row["item_type"], row["item_id"], version_key(row["version"])))


def _manifests(shelf: Shelf, tags: Sequence[str]) -> Iterator[bytes | None]:
    """Yield the manifest of each tag; None for one that cannot be had."""

    def one(tag: str) -> bytes | None:
        try:
            return shelf.store.manifest(shelf.repository, tag)
        except RegistryError as err:
            if err.code in ("not_in_registry", "manifest_missing", "manifest_digest_mismatch", "manifest_oversized"):
                return None
            raise

    if shelf.store.parallel == 1:
        yield from map(one, tags)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(shelf.store.parallel) as pool:
        yield from pool.map(one, tags)


def search(query: str, named: Sequence[str], store: Store, item_type: str | None = None, limit: int = 20) -> dict[str, Any]:
    """Find items whose id, type, category, description or signer holds the words; the newest version of each.

    Returns:
        `{"query", "results": rows with "score", "total"}`; most words found first, a word in the id counts twice.
    """
    words = [word for word in query.casefold().split() if word != "*"]
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows(named, store, item_type):
        key = (row["item_type"], row["item_id"])
        if key not in newest or not row["yanked"] or newest[key]["yanked"]:
            newest[key] = row
    scored = [{**row, "score": score} for row in newest.values() if (score := _score(row, words)) or not words]
    scored.sort(key=lambda row: (-row["score"], row["item_id"]))
    return {"query": query, "results": scored[:limit], "total": len(scored)}


def _score(row: dict[str, Any], words: Sequence[str]) -> int:
    text = " ".join(str(row[name]) for name in ("item_type", "description", "signer")).casefold()
    return sum(2 * (word in row["item_id"].casefold()) + (word in text) for word in words)


def inspect(wanted: Reference, store: Store, project: str, destination: str = "project") -> dict[str, Any]:
    """Return what is known of an item before it is pulled: the claims, the verdict, permissions, and the diff to what stands.

    Returns:
        `{"item_type", "item_id", "version", "digest", "verdict", "error"?, "hint"?, "signer", "owner", "key_digest", "yanked",
        "versions", "permissions"?, "requires_rye"?, "requires"?, "description"?, "items"?, "installed": {"version", "path"} |
        None, "diff": unified diff}`. `owner` is a claim unless the verdict is `valid`; text and diff of an item that is not
        verified are not given: nothing of it is put before a model.
    """
    among = spaces.spaces(project)
    shelf = Shelf.of(store, wanted.namespace)
    fetched = fetch(shelf, wanted)
    found = _claims(fetched)
    try:
        checked = verify(fetched, among, destination)
    except RyeError as err:
        return {**found, "verdict": err.code, "error": err.message, "hint": err.hint}
    head = checked[0]
    try:
        for one in checked:
            judge(one, marks.load(), among, Wish(destination))
        verdict: dict[str, Any] = {"verdict": "valid"}
    except RyeError as err:
        verdict = {"verdict": err.code, "error": err.message, "hint": err.hint}
    key = head.verified.key
    reason = yank_reason(shelf, head.file.item_type, head.file.item_id, head.version)
    return {
        **found, **verdict, "version": head.version, "signer": key.public.fingerprint, "owner": key.owner,
        "key_digest": key.public.digest, "yanked": reason is not None, "yank_reason": reason, **_facts(checked),
        **_compared(head, among),
    }  # fmt: skip


def _claims(fetched: Fetched) -> dict[str, Any]:
    """Return what the registry says of an item."""
    reference, annotations = fetched.reference, fetched.manifest.annotations
    key = signed_by(fetched)
    head = fetched.files[0]
    signer = None
    with contextlib.suppress(RyeError):
        form = form_of("tool", ".yaml") if head.item_type == "bundle" else form_of(head.item_type, head.suffix)
        signer = split(head.raw, form).signature.fingerprint
    version = reference.version or plain(annotations.get(VERSION, ""), 40)
    return {
        "item_type": reference.item_type, "item_id": reference.item_id, "version": version,
        "digest": fetched.manifest.digest, "signer": signer, "owner": plain(key.owner, 100) if key else None,
        "key_digest": key.public.digest if key else None, "registry": fetched.shelf.store.name,
        "yanked": is_version(version) and fetched.shelf.yanked(reference.item_type, reference.item_id, version),
        "versions": fetched.shelf.versions(reference.item_type, reference.item_id),
        "claimed": {name: plain(annotations.get(key_, ""), 300) for name, key_ in (
            ("type", TYPE), ("id", ID), ("category", CATEGORY), ("description", DESCRIPTION))},
        "size": sum(len(file.raw) for file in fetched.files), "files": len(fetched.files),
    }  # fmt: skip


def _facts(checked: Sequence[Checked]) -> dict[str, Any]:
    """Return what a verified item declares."""
    head = checked[0]
    if head.file.item_type == "bundle":
        rows_ = [
            {"item_type": one.file.item_type, "item_id": one.file.item_id, "version": one.version, **_declared(one)}
            for one in checked[1:]
        ]
        return {"items": rows_}
    return _declared(head)


def _declared(checked: Checked) -> dict[str, Any]:
    file = checked.file
    if file.item_type != "tool":
        return {}
    tool = items.read_tool(checked.verified, file.item_id, file.suffix)
    requires = tool.metadata.get("__requires__", [])
    return {
        "description": plain(tool.description, 300), "permissions": list(tool.permissions),
        "requires_rye": plain(str(tool.metadata.get("__requires_rye__", "")), 40) or None,
        "requires": [plain(str(one), 100) for one in requires] if isinstance(requires, list | tuple) else [],
    }  # fmt: skip


def _compared(head: Checked, among: Sequence[spaces.Space]) -> dict[str, Any]:
    """Return what serves the id here now, and the diff from it to what would be installed."""
    file = head.file
    if file.item_type == "bundle":
        return {"installed": None, "diff": ""}
    try:
        standing = spaces.find(file.item_type, file.item_id, among)
    except RyeError:
        return {"installed": None, "diff": ""}
    version = None
    with contextlib.suppress(RyeError):
        from rye.admission import Admission

        verified = Admission(among).verify(standing)
        version = items.check_place(verified, file.item_type, file.item_id, standing.suffix)
    old, new = (raw.decode("utf-8", "replace").splitlines() for raw in (standing.raw, file.raw))
    lines = list(
        difflib.unified_diff(old, new, f"installed {version or '(not verified)'}", f"pulled {head.version}", lineterm="")
    )
    cut = [f"… {len(lines) - _DIFF_LINES} more lines"] if len(lines) > _DIFF_LINES else []
    diff = (
        content("\n".join([*lines[:_DIFF_LINES], *cut]))
        if version is not None or not lines
        else "(what stands here is not verified)"
    )
    return {"installed": {"version": version, "path": os.fspath(standing.path), "space": standing.space}, "diff": diff}

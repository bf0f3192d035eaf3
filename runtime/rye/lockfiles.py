"""Lockfiles: a tool pinned to the digests of its whole chain.

`.ai/lockfiles/<item id>@<version>.lock.json` in the project (or the user's space): `{"lockfile_version": 1, "generated_at",
"root": {"tool_id", "version", "integrity"}, "resolved_chain": [{"item_id", "space", "tool_type", "executor_id", "integrity"}],
"registry": null, "verified_deps": null}`; integrity is the signed digest. Format: the RYE lockfile.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rye import spaces
from rye.errors import TrustError
from rye.toolkit import beneath

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rye.spaces import Space

_FOLDER = "lockfiles"


def name_of(item_id: str, version: str) -> str:
    """Return a lockfile's path below `.ai`."""
    return f"{_FOLDER}/{item_id}@{version}.lock.json"


def compose(item_id: str, version: str, chain: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the lockfile of a tool for a chain as the executor gives it (the tool first)."""
    return {
        "lockfile_version": 1, "generated_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "root": {"tool_id": item_id, "version": version, "integrity": chain[0]["integrity"]},
        "resolved_chain": list(chain), "registry": None, "verified_deps": None,
    }  # fmt: skip


def write(space: Space, item_id: str, version: str, chain: Sequence[dict[str, Any]]) -> str:
    """Write a tool's lockfile, in place of all that pin it in this space; return its path.

    Raises:
        OSError: the space cannot be written.
    """
    path = space.folder / name_of(item_id, version)
    path.parent.mkdir(parents=True, exist_ok=True)
    for other in _standing(space, item_id):
        (path.parent / other).unlink(missing_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(json.dumps(compose(item_id, version, chain), indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)
    return str(path)


def check(space: Space, item_id: str, version: str, chain: Sequence[dict[str, Any]]) -> None:
    """Hold a chain against the lockfiles of one space; without one for the tool nothing is demanded.

    Raises:
        TrustError: `lockfile_mismatch`. Nothing of the lockfile's own text is repeated: a project may have brought it.
    """
    standing = _standing(space, item_id)
    if not standing:
        return
    wanted = os.path.basename(name_of(item_id, version))
    if wanted not in standing:
        raise _mismatch(item_id, space, f"it pins another version than {version}")
    raw = spaces.read_file(space, name_of(item_id, version))
    try:
        record = json.loads(raw or b"")
        pinned = [(link["item_id"], link["integrity"]) for link in record["resolved_chain"]]
        root = (record["root"]["tool_id"], record["root"]["version"], record["root"]["integrity"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _mismatch(item_id, space, "it cannot be read") from None
    if root != (item_id, version, chain[0]["integrity"]):
        raise _mismatch(item_id, space, f"the tool's digest is {chain[0]['integrity'][:16]}…")
    if pinned != [(link["item_id"], link["integrity"]) for link in chain]:
        raise _mismatch(item_id, space, "an element of its chain differs")


def _mismatch(item_id: str, space: Space, why: str) -> TrustError:
    return TrustError(
        "lockfile_mismatch", f"Lockfile integrity mismatch for {item_id} (in the {space.name} space): {why}.",
        f"If the change is wanted, renew it with `rye lock {item_id}`; or delete the lockfile.",
    )  # fmt: skip


def _standing(space: Space, item_id: str) -> list[str]:
    """Return the names of the lockfiles for an id, of any version."""
    folder, _, stem = f"{_FOLDER}/{item_id}".rpartition("/")
    try:
        root = os.open(space.folder, beneath.DIRECTORY)
    except OSError:
        return []
    try:
        fd, _ = beneath.open_beneath(root, os.fsencode(folder).split(b"/"), os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return []
    finally:
        os.close(root)
    try:
        return sorted(name for name in os.listdir(fd) if name.startswith(f"{stem}@") and name.endswith(".lock.json"))
    finally:
        os.close(fd)

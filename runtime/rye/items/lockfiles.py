"""Lockfiles: a tool pinned to the digests of its whole chain.

`.ai/lockfiles/<item id>@<version>.lock.json` in the project (or the user's space): `{"lockfile_version": 1, "generated_at",
"root": {"tool_id", "version", "integrity"}, "resolved_chain": [{"item_id", "space", "tool_type", "executor_id", "integrity"}],
"registry": null, "verified_deps": null}`; integrity is the signed digest. Format: the RYE lockfile.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any

from rye.errors import ItemError, TrustError, WorkspaceError
from rye.fs import beneath
from rye.fs.atomic import closing
from rye.items import spaces
from rye.items.spaces import Space
from rye.workspace.workspace import Workspace

FOLDER = "lockfiles"

_TOOL = "rye/cli/lock"


def name_of(item_id: str, version: str) -> str:
    """Return a lockfile's path below `.ai`."""
    return f"{FOLDER}/{item_id}@{version}.lock.json"


def write(project_path: str, item_id: str, version: str, chain: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Write a tool's lockfile into a project, in place of all that pin the tool there; return its content.

    The project may be anyone's: what it holds in the way of links leads nowhere outside.

    Raises:
        WorkspaceError: the project cannot be written; `is_link`, `path_outside`.
    """
    # Imported here: every call asks for lockfiles, few write one.
    from datetime import UTC, datetime

    from rye.journal import commit, journal, own_files

    record = {
        "lockfile_version": 1,
        "generated_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "root": {"tool_id": item_id, "version": version, "integrity": chain[0]["integrity"]},
        # As the executor gives it, the tool first.
        "resolved_chain": list(chain),
        "registry": None,
        "verified_deps": None,
    }
    data = json.dumps(record, indent=2).encode() + b"\n"
    name = f".ai/{name_of(item_id, version)}"
    folder = name.rpartition("/")[0]
    with Workspace(project_path, writes=f".ai/{FOLDER}") as ws, ExitStack() as stack:
        found: list[str] = []
        # A folder that cannot be read cannot be written either: that is said below.
        with suppress(TrustError):
            found += [f"{folder}/{one}" for one in _current(Space("project", f"{ws.real}/.ai"), item_id)]
        files = [name, *(one for one in found if one != name)]
        held = own_files.held(ws, stack, files)
        # A cloned project can hold a link here that leads to another file of the user.
        if linked := next((one for one, (place, _) in zip(files, held, strict=True) if place.path != os.fsencode(one)), None):
            raise WorkspaceError("is_link", f"{linked} is, or lies behind, a symbolic link.", "Remove the link.")
        # The new one first: a crash in between leaves the tool pinned twice, never free.
        contents = [data, *[None] * (len(held) - 1)]
        changes = [
            commit.Change(place, new, journal.whole_entry(ws, _TOOL, place, old, new))
            for (place, old), new in zip(held, contents, strict=True)
        ]
        commit.commit(ws, changes, is_own=True)
    return record


def check(space: Space, item_id: str, version: str, chain: Sequence[dict[str, Any]]) -> None:
    """Hold a chain against the lockfiles of one space; without one for the tool nothing is demanded.

    Raises:
        TrustError: `lockfile_mismatch`. Nothing of the lockfile's own text is repeated: a project may have brought it.
    """
    current = _current(space, item_id)
    if not current:
        return
    expected = os.path.basename(name_of(item_id, version))
    # A lockfile of another version pins the tool as well: an older file cannot be run beside it.
    if expected not in current:
        raise _mismatch(item_id, space, f"it pins another version than {version}")
    try:
        record = json.loads(spaces.read_file(space, name_of(item_id, version)) or b"")
        pinned = [(link["item_id"], link["integrity"]) for link in record["resolved_chain"]]
        root = (record["root"]["tool_id"], record["root"]["version"], record["root"]["integrity"])
    except (ItemError, ValueError, KeyError, TypeError, RecursionError):
        raise _mismatch(item_id, space, "it cannot be read") from None
    if root != (item_id, version, chain[0]["integrity"]):
        raise _mismatch(item_id, space, f"the tool's digest is {chain[0]['integrity'][:16]}…")
    if pinned != [(link["item_id"], link["integrity"]) for link in chain]:
        raise _mismatch(item_id, space, "an element of its chain differs")


def _mismatch(item_id: str, space: Space, why: str) -> TrustError:
    what = f"Lockfile integrity mismatch for {item_id} (in the {space.name} space): {why}."
    hint = f"If the change is wanted, renew it with `rye lock {item_id}`; or delete the lockfile."
    return TrustError("lockfile_mismatch", what, hint)


def _current(space: Space, item_id: str) -> list[str]:
    """Return the names of the lockfiles for an id, of any version."""
    folder = f"{FOLDER}/{item_id}".rpartition("/")[0]
    try:
        root = os.open(space.folder, beneath.DIRECTORY)
    except OSError as err:
        spaces.refuse_failing(err)
        return []
    try:
        with closing(root):
            fd, _ = beneath.open_beneath(root, os.fsencode(folder).split(b"/"), os.O_RDONLY | os.O_DIRECTORY)
    # Only absence means that nothing is pinned; any other failure must not lift a pin.
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        raise _mismatch(item_id, space, "the folder of its lockfiles cannot be read") from None
    stem = item_id.rpartition("/")[2]
    with closing(fd):
        return sorted(name for name in os.listdir(fd) if name.startswith(f"{stem}@") and name.endswith(".lock.json"))


def versions(space: Space, item_id: str) -> list[str]:
    """Return the versions that a space's lockfiles pin an id to: one, or none."""
    stem = item_id.rpartition("/")[2]
    return [name.removeprefix(f"{stem}@").removesuffix(".lock.json") for name in _current(space, item_id)]

"""What the user decided about keys and ids, stored in `${USER_SPACE:-~}/.ai/trust/`, where no project can write.

`decisions.json` (0600) holds `{"format": 1, "approvals": [...], "shadows": [...], "interpreters": [...], "revoked": [...]}`:

* an approval `{"key", "root", "device", "inode", "ids", "granted", "time"}`: a project's key (full digest) counts for that
  project root, named by real path, device and inode. `ids` are those that were shown when it was approved, or announced since;
  `granted` says which permissions were shown with each.
* a shadow `{"id", "root", "device", "inode", "time"}`: that root may serve a reserved id instead of the system bundle.
* an interpreter `{"path", "file", "root", "device", "inode", "time"}`: tools of that root may be run by the project's own
  program at that path, as long as `file` (see `rye.executor.primitives.interpreters.identity`) is what is there.
* a revocation `{"key", "time"}`: the full digest of a key that is refused everywhere.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rye.config import user_dirs
from rye.errors import TrustError, WorkspaceError
from rye.fs.records import Store, listed
from rye.plain_class import Record, changed

if TYPE_CHECKING:
    from pathlib import Path


class Root(Record):
    """A project root as an approval names it: another folder moved to the same path is another root."""

    path: str
    device: int
    inode: int

    @classmethod
    def of(cls, project_path: str | Path) -> Root:
        """Return the root of a project folder.

        Raises:
            WorkspaceError: `project_not_found`.
        """
        # One project has many paths; an approval must hold for all of them, and for no other folder.
        real = os.path.realpath(project_path)
        try:
            info = os.stat(real)
        except OSError as err:
            why = f"Project folder not usable: {project_path} ({err.strerror})."
            raise WorkspaceError("project_not_found", why, "Give project_path (or --project) an existing directory.") from None
        return cls(real, info.st_dev, info.st_ino)


class Approval(Record):
    """A key that the user approved for one project root, the ids announced with it, and the permissions granted to each."""

    key: str
    root: Root
    ids: frozenset[str]
    time: str
    granted: frozenset[tuple[str, str]] = frozenset()


class Decisions(Record):
    """All that the user decided."""

    approvals: tuple[Approval, ...] = ()
    shadows: tuple[tuple[str, Root, str], ...] = ()
    revoked: tuple[tuple[str, str], ...] = ()
    interpreters: tuple[tuple[str, Root, str, str], ...] = ()

    @property
    def revoked_keys(self) -> frozenset[str]:
        """Return the full digests of revoked keys."""
        return frozenset(key for key, _ in self.revoked)

    def approved_keys(self, root: Root) -> frozenset[str]:
        """Return the full digests of the keys approved for a root."""
        return frozenset(approval.key for approval in self.approvals if approval.root == root)

    def announced(self, root: Root, key: str) -> frozenset[str]:
        """Return the ids announced under an approved key."""
        return frozenset().union(*(a.ids for a in self.approvals if a.root == root and a.key == key))

    def granted(self, root: Root, key: str) -> frozenset[tuple[str, str]]:
        """Return (id, permission) of all that the user saw when they approved a key."""
        return frozenset().union(*(a.granted for a in self.approvals if a.root == root and a.key == key))

    def unapproved(self, root: Root, key: str, item_id: str, permissions: Iterable[str]) -> list[str]:
        """Return the permissions of a tool that the user did not approve with its key.

        A tool that is new under the key may have what any tool had that was shown with it.
        """
        granted = self.granted(root, key)
        known = item_id in self.announced(root, key)
        # A known id gets only what was shown with it: an update cannot ask for more in silence.
        allowed = {permission for one, permission in granted if one == item_id or not known}
        return [one for one in permissions if one not in allowed]

    def interpreter(self, root: Root, path: str) -> str | None:
        """Return what file the user let be a root's program at a path; None where they did not."""
        return next((file for known, where, file, _ in self.interpreters if (known, where) == (path, root)), None)

    def shadowed(self, root: Root) -> frozenset[str]:
        """Return the reserved ids that a root may serve."""
        return frozenset(item_id for item_id, where, _ in self.shadows if where == root)


def path() -> str:
    """Return the path of the decisions."""
    return f"{user_dirs.user_ai()}/trust/decisions.json"


def load() -> Decisions:
    """Return the current decisions.

    Raises:
        TrustError: `trust_store_unreadable`; nothing is trusted until it is repaired.
    """
    return _STORE.load()


def _of_json(record: Any) -> Decisions:
    return Decisions(
        tuple(
            Approval(_key(a["key"]), _root(a), frozenset(map(str, listed(a, "ids"))), str(a["time"]), _granted(a))
            for a in listed(record, "approvals")
        ),
        tuple((str(s["id"]), _root(s), str(s["time"])) for s in listed(record, "shadows")),
        tuple((_key(r["key"]), str(r["time"])) for r in listed(record, "revoked")),
        # Files of an earlier version have none.
        tuple(
            (str(i["path"]), _root(i), str(i["file"]), str(i["time"]))
            for i in listed({"interpreters": []} | record, "interpreters")
        ),
    )


def _key(text: object) -> str:
    if not isinstance(text, str) or len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise ValueError(text)
    return text


def _granted(record: dict[str, Any]) -> frozenset[tuple[str, str]]:
    found = record.get("granted", {})
    return frozenset((str(item_id), str(one)) for item_id, permissions in found.items() for one in permissions)


def _root(record: dict[str, Any]) -> Root:
    return Root(str(record["root"]), int(record["device"]), int(record["inode"]))


def approve(key: str, root: Root, ids: frozenset[str], granted: frozenset[tuple[str, str]] = frozenset()) -> None:
    """Let a project's key count for one root, and note the ids and the (id, permission) pairs that were shown with it.

    Raises:
        TrustError: `revoked_key`; `trust_store_unreadable`, as at every change.
        RyeError: `trust_store_unwritable`, as at every change.
    """
    with _STORE.changing() as store:
        old = store.now
        if _key(key) in old.revoked_keys:
            raise TrustError("revoked_key", f"The key {key} was revoked.", "Do not use what it signed.", key_digest=key)
        announced = old.announced(root, key) | ids
        known = old.granted(root, key) | granted
        others = tuple(a for a in old.approvals if (a.key, a.root) != (key, root))
        store.now = changed(old, approvals=(*others, Approval(key, root, announced, _time(), known)))


def approve_shadow(item_id: str, root: Root) -> None:
    """Let a root serve a reserved id."""
    with _STORE.changing() as store:
        others = tuple(s for s in store.now.shadows if s[:2] != (item_id, root))
        store.now = changed(store.now, shadows=(*others, (item_id, root, _time())))


def approve_interpreter(path: str, file: str, root: Root) -> None:
    """Let a root's tools be run by the project's own program at a path, as long as it is this very file."""
    with _STORE.changing() as store:
        others = tuple(i for i in store.now.interpreters if i[:2] != (path, root))
        store.now = changed(store.now, interpreters=(*others, (path, root, file, _time())))


def revoke(key: str) -> None:
    """Refuse a key everywhere, from now on; approvals of it are dropped."""
    with _STORE.changing() as store:
        old = store.now
        if key not in old.revoked_keys:
            # Else the key would count again if the revocation were ever removed.
            approvals = tuple(a for a in old.approvals if a.key != key)
            store.now = changed(old, approvals=approvals, revoked=(*old.revoked, (_key(key), _time())))


def _to_json(decisions: Decisions) -> dict[str, Any]:
    return {
        "approvals": [
            {"key": a.key, **_named(a.root), "ids": sorted(a.ids), "granted": _by_id(a.granted), "time": a.time}
            for a in decisions.approvals
        ],
        "shadows": [{"id": item_id, **_named(root), "time": when} for item_id, root, when in decisions.shadows],
        "interpreters": [
            {"path": path, **_named(root), "file": file, "time": when} for path, root, file, when in decisions.interpreters
        ],
        "revoked": [{"key": key, "time": when} for key, when in decisions.revoked],
    }


def _by_id(granted: frozenset[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item_id, permission in sorted(granted):
        found.setdefault(item_id, []).append(permission)
    return found


def _named(root: Root) -> dict[str, Any]:
    return {"root": root.path, "device": root.device, "inode": root.inode}


def _time() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


_STORE = Store(path, "The user's trust decisions", Decisions, _of_json, _to_json)

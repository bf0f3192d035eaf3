"""What the keys that a project brings would admit: shown to a person before they approve one, at a terminal or on a page."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import NamedTuple

from rye.errors import RyeError
from rye.items import parse, spaces
from rye.trust import decisions, signature, verify
from rye.trust.decisions import Root
from rye.trust.verify import TrustedKey, TrustStore, Verified

_MOST_CLAIMED = 160


class Admitted(NamedTuple):
    """An item that a key would admit: its ID, what it may do with its signer's own claim, and its permissions."""

    item_id: str
    effects: str
    permissions: tuple[str, ...] = ()


def store_of(project: str) -> TrustStore:
    """Return the keys known in a project, with those that installed bundles bring."""
    return spaces.trust_store([*spaces.spaces(project), *spaces.installed_bundles()])


def waiting(store: TrustStore, root: Root) -> list[TrustedKey]:
    """Return the project's keys that a person may approve: new ones, and those whose tools want more than was approved."""
    decided = decisions.load()
    more = [
        key
        for key in store.keys
        if key.role == "approved"
        and any(decided.unapproved(root, key.public.digest, row.item_id, row.permissions) for row in admitted(key, root))
    ]
    return [*(key for key in store.proposed if key.role == "project"), *more]


def admitted(key: TrustedKey, root: Root) -> list[Admitted]:
    """Return the project's items that the key signed and that would be served, with side effects by their own word."""
    space = spaces.Space("project", os.path.join(root.path, ".ai"), decisions.load().shadowed(root))
    # This key alone: the list must show what it adds, not what other keys already admit.
    store = TrustStore(keys=(key.as_explicit(),))
    rows: list[Admitted] = []
    for item_type in spaces.TYPES:
        for item_id, path in spaces.items_in(space, item_type):
            if not spaces.serves(space, item_id):
                continue
            try:
                raw = spaces.read_file(space, path.relative_to(space.folder).as_posix()) or b""
                verified = verify.verify(raw, signature.form_of(item_type, path.suffix), store)
                rows.append(_row(verified, item_type, item_id, path.suffix))
            except (RyeError, UnicodeDecodeError):
                continue
    return rows


def signer_of(item_id: str, root: Root) -> str:
    """Say whose signature the project's file bears that would serve an id, as far as a key that is known here made it."""
    space = spaces.Space("project", os.path.join(root.path, ".ai"), frozenset({item_id}))
    known = store_of(root.path)
    store = TrustStore(tuple(key.as_explicit() for key in (*known.keys, *known.proposed)), revoked=known.revoked)
    for item_type in spaces.TYPES:
        try:
            found = spaces.find(item_type, item_id, [space])
            if found.space == "project":
                key = verify.verify(found.raw, signature.form_of(item_type, found.suffix), store).key.public
                return f"signed by {key.fingerprint} (full digest {key.digest})"
        except RyeError:
            continue
    return "not there, or not signed by a key that is known here"


def approve(key: TrustedKey, root: Root, rows: list[Admitted]) -> None:
    """Let a key count for a project: for exactly the items and permissions that a person saw. More needs another yes."""
    granted = frozenset((row.item_id, one) for row in rows for one in row.permissions)
    decisions.approve(key.public.digest, root, frozenset(row.item_id for row in rows), granted)


def fingerprint(key: TrustedKey, root: Root, rows: list[Admitted]) -> str:
    """Return a digest of what a person was shown, to tell whether it is still so when they say yes."""
    return sha256(repr((key.public.digest, root.path, root.device, root.inode, rows)).encode()).hexdigest()


def _row(verified: Verified, item_type: str, item_id: str, suffix: str) -> Admitted:
    """Return what the sandbox will let the tool do, and its docstring's sentence on side effects, the signer's claim."""
    tool = parse.read(verified, item_type, item_id, suffix)
    if not isinstance(tool, parse.Tool):
        return Admitted(item_id, item_type)
    if tool.tool_type in ("runtime", "primitive"):
        # What it lists is the most that it leaves to a tool; it has nothing itself.
        sent = f", and gives it {', '.join(tool.secrets)}" if tool.secrets else ""
        return Admitted(item_id, f"{tool.tool_type}: decides which program runs a tool{sent}", tool.secrets)
    lines = tool.docstring.splitlines()
    line = next((x.strip() for x in lines if x.strip().lower().startswith("side effects:")), "side effects not stated")
    # Text of a signer who is not trusted yet: escaped and cut, so that it cannot steer the terminal.
    claim = "".join(c if c.isprintable() else "?" for c in line)[:_MOST_CLAIMED]
    permissions = (*tool.permissions, *tool.secrets)
    return Admitted(item_id, f"may: {', '.join(permissions) or 'nothing'}; {claim}", permissions)

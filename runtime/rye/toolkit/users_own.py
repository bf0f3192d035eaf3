"""The user's own places, of which no tool may change anything, nor read a key, even where they lie in the project.

They do when the project is a home or holds one, or is where a part of the user's `.ai` links to. What stands in them decides
what is trusted and what is confined, so they are told by identity (device and inode), under whatever name they are reached.
"""

from __future__ import annotations

import os
from typing import Final

from rye import state
from rye.errors import WorkspaceError
from rye.toolkit import beneath, names

ITEMS: Final = (b"tools", b"knowledge", b"directives")
"""All that tools may write below the user's `.ai`: an item counts by its signature alone."""

_CLOSED: Final = ("config", "trust", "state", "keys", "trusted_keys")

_Identity = tuple[int, int]


def place_of(root_fd: int, parts: beneath.Parts) -> str | None:
    """Return which of the user's own places some physical components below a root lie in, or None."""
    whole, home = _identity(state.user_ai()), _identity(state.user_space())
    closed = {_identity(f"{state.user_ai()}/{name}"): name for name in _CLOSED}
    for at, below in enumerate(parts):
        try:
            fd, _ = beneath.open_beneath(root_fd, parts[:at], beneath.DIRECTORY)
        except OSError:
            # It does not exist yet, and what is above it was looked at.
            return None
        try:
            info = os.fstat(fd)
        finally:
            os.close(fd)
        here = (info.st_dev, info.st_ino)
        if here in closed:
            return f"the user's own .ai/{closed[here]}"
        if here == whole and below not in ITEMS:
            return "the user's own .ai"
        if here == home and names.folded(below) == ".ai" and at + 1 < len(parts) and parts[at + 1] not in ITEMS:
            return "the user's own .ai"
    return None


def refuse_key(info: os.stat_result, parts: beneath.Parts) -> None:
    """Refuse to read one of the user's private keys, under whatever name it was reached.

    Raises:
        WorkspaceError: `protected_path`.
    """
    if is_key(info):
        raise WorkspaceError(
            "protected_path", f"{names.show(b'/'.join(parts))} is the user's private key, which no tool reads.",
            "Signing is the user's own: ask for `rye sign`.",
        )  # fmt: skip


def refuse_keys_folder(info: os.stat_result, parts: beneath.Parts) -> None:
    """Refuse to search the folder of the user's private keys. Errors as `refuse_key`."""
    if _stands_at(f"{state.user_ai()}/keys", info):
        raise WorkspaceError(
            "protected_path", f"{names.show(b'/'.join(parts)) or '.'} holds the user's private keys, which no tool reads.",
            "Search another folder.",
        )  # fmt: skip


def is_own_folder(info: os.stat_result) -> bool:
    """Tell whether an open folder is the user's own `.ai`."""
    return _stands_at(state.user_ai(), info)


def is_key(info: os.stat_result) -> bool:
    """Tell whether an open file is one of the user's private keys: told by identity, so hard links count, too."""
    named = os.environ.get("RYE_SIGNING_KEY")
    if named and _stands_at(named, info):
        return True
    try:
        with os.scandir(f"{state.user_ai()}/keys") as entries:
            return any(one.inode() == info.st_ino and _stands_at(one.path, info) for one in entries)
    except OSError:
        return False


def _stands_at(path: str, info: os.stat_result) -> bool:
    return _identity(path) == (info.st_dev, info.st_ino)


def _identity(path: str) -> _Identity | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino

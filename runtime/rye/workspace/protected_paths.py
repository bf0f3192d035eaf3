"""Files that no tool may write, and keys that no tool may read.

First, files that editors, shells, debuggers or MCP clients run or load by themselves (`NAMES`), at the root of a project or
of a home that lies in it. File tools refuse to write them (`protected_path`), and the sandbox mounts them read-only while a
command runs (see `rye.sandbox.project_mounts` for what it cannot protect). The user can allow single names for file tools and
commands alike: `protected: {allow: [.vscode]}` in the user's own `rye.yaml`. No project can.

Second, the user's own `.ai`, which lies in the project when that is a home, or when a part of it is a link into the project.
It decides what is trusted and confined. It is recognised by identity (device and inode), whatever path leads to it.

Always protected: git's own folder, and in `.ai` the trust store, keys, cache, settings and lockfiles (`protected`). The rest of
`.ai` is for file tools to write, since an item counts by its signature alone; a command may write none of it.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from typing import Final

from rye.call import context
from rye.config import user_dirs
from rye.errors import UsageError, WorkspaceError
from rye.fs import beneath, names

ALSO_ABSENT: Final = (".vscode", ".mcp.json", ".claude", ".cursor")
"""Names that a command may not make either, where they do not exist."""

NAMES: Final = (
    *ALSO_ABSENT,
    ".idea",
    ".zed",
    ".windsurf",
    ".roo",
    ".kiro",
    ".amazonq",
    ".kilocode",
    ".junie",
    ".qwen",
    ".aider.conf.yml",
    ".gemini",
    ".codex",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".continue",
    ".crush.json",
    "crush.json",
    ".factory",
    ".openhands",
    ".trae",
    ".helix",
    ".nvim.lua",
    ".nvim",
    ".vim",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".envrc",
    ".direnv",
    ".gitmodules",
    ".gitconfig",
    ".lldbinit",
    ".gdbinit",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".inputrc",
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".emacs",
)
"""All protected names: configuration of editors, MCP clients, shells, debuggers, direnv and git."""

_SETTING = "protected.allow"


def allowed() -> frozenset[str]:
    """Return the protected names that the user lets tools write.

    Raises:
        UsageError: `bad_config`, also for a name that is not in the list.
    """
    found = context.settings().texts(_SETTING)
    if unknown := [name for name in found if name not in NAMES]:
        raise UsageError(
            "bad_config",
            f"The setting {_SETTING} names {repr(unknown[0])[:80]}, which is no name that can be allowed.",
            f"Correct {user_dirs.user_ai()}/config/rye.yaml; the names are {', '.join(NAMES)}.",
        )
    return frozenset(found)


def name_at(root_fd: int, parts: beneath.Parts) -> str | None:
    """Return the protected name at or above some physical components below a root; None for none, or an allowed one.

    A name that is a symbolic link counts where it leads, too.
    """
    at = _spelled(root_fd, parts) or _linked(root_fd, parts)
    return None if at is None or at in allowed() else at


def _spelled(root_fd: int, parts: beneath.Parts) -> str | None:
    for at, part in enumerate(parts):
        name = folded(part)
        if name in NAMES and (at == 0 or _is_home(root_fd, parts[:at])):
            return name
    return None


def _is_home(root_fd: int, parts: beneath.Parts) -> bool:
    try:
        fd, _ = beneath.open_beneath(root_fd, parts, beneath.DIRECTORY)
        try:
            return os.path.samestat(os.fstat(fd), os.stat(user_dirs.user_space()))
        finally:
            os.close(fd)
    except OSError:
        return False


def _linked(root_fd: int, parts: beneath.Parts) -> str | None:
    for name in NAMES:
        try:
            if not stat.S_ISLNK(os.lstat(name, dir_fd=root_fd).st_mode):
                continue
            fd, physical = beneath.open_parent(root_fd, (name.encode(),))
        except OSError:
            # Not there, or it leads out of the project, where no tool writes anyway.
            continue
        os.close(fd)
        if parts[: len(physical)] == physical:
            return name
    return None


ITEMS: Final = (b"tools", b"knowledge", b"directives")
"""All that tools may write below the user's `.ai`: an item counts by its signature alone."""

_CLOSED: Final = ("config", "trust", "state", "keys", "trusted_keys")

_Identity = tuple[int, int]


def place_of(root_fd: int, parts: beneath.Parts, but: str = "") -> str | None:
    """Return the place that is closed to tools in which some physical components below a root lie, or None.

    It is one of those that `protected` names, except `but`, or a part of the user's own `.ai`.
    """
    place = protected(parts)
    return _users_own(root_fd, parts) if place in (None, but) else place


def _users_own(root_fd: int, parts: beneath.Parts) -> str | None:
    users = user_dirs.user_ai()
    whole, home = _identity(users), _identity(os.path.dirname(users))
    closed = {_identity(f"{users}/{name}"): name for name in _CLOSED}
    for at, below in enumerate(parts):
        # By identity at every level: a link or another spelling leads to the same device and inode.
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
        if here == home and folded(below) == ".ai" and at + 1 < len(parts) and parts[at + 1] not in ITEMS:
            return "the user's own .ai"
    return None


def refuse_key(info: os.stat_result, parts: beneath.Parts) -> None:
    """Refuse to read one of the user's private keys, whatever path led to it.

    Raises:
        WorkspaceError: `protected_path`.
    """
    if is_key(info):
        raise WorkspaceError(
            "protected_path",
            f"{names.show(b'/'.join(parts))} is the user's private key, which no tool reads.",
            "Signing is the user's own: ask for `rye sign`.",
        )


def refuse_keys_folder(info: os.stat_result, parts: beneath.Parts) -> None:
    """Refuse to search the folder of the user's private keys. Errors as `refuse_key`."""
    if _is_at(f"{user_dirs.user_ai()}/keys", info):
        raise WorkspaceError(
            "protected_path",
            f"{names.show(b'/'.join(parts)) or '.'} holds the user's private keys, which no tool reads.",
            "Search another folder.",
        )


def is_own_folder(info: os.stat_result) -> bool:
    """Tell whether an open folder is the user's own `.ai`."""
    return _is_at(user_dirs.user_ai(), info)


def is_key(info: os.stat_result) -> bool:
    """Tell whether an open file is one of the user's private keys, by device and inode: a hard link counts too."""
    named = os.environ.get("RYE_SIGNING_KEY")
    if named and _is_at(named, info):
        return True
    try:
        with os.scandir(f"{user_dirs.user_ai()}/keys") as entries:
            # The listing has the inode already; a stat then confirms the device.
            return any(one.inode() == info.st_ino and _is_at(one.path, info) for one in entries)
    except OSError:
        return False


def _is_at(path: str, info: os.stat_result) -> bool:
    return _identity(path) == (info.st_dev, info.st_ino)


def _identity(path: str) -> _Identity | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino


def protected(parts: tuple[bytes, ...]) -> str | None:
    """Return the protected place that physical components lie in (`.git`, `.ai/trusted_keys` …), or None.

    Protected wherever they are: the trust store, keys, cache, settings and lockfiles of any space, and git's internals.
    """
    spelled = [folded(part) for part in parts]
    for at, name in enumerate(spelled):
        # `git~1` is the short name that FAT and NTFS give to `.git`.
        if name in (".git", "git~1"):
            return ".git"
        if name in (".ai", "ai~1"):
            below = spelled[at + 1] if at + 1 < len(spelled) else ""
            if below in _PROTECTED_BELOW_AI or below.startswith(("truste~", "lockfi~")):
                return f".ai/{below}"
    return None


def folded(part: bytes) -> str:
    """Fold a component as case-insensitive and normalising file systems do, so that no spelling slips past a rule."""
    text = unicodedata.normalize("NFKC", part.decode("utf-8", "replace"))
    if not text.isascii():
        text = "".join(c for c in text if unicodedata.category(c) != "Cf" and not re.match(_IGNORED, c))
    # NTFS opens `name:stream` and `name. ` as `name`.
    return text.casefold().split(":", 1)[0].rstrip(". ")


# `config` tightens the sandbox and `lockfiles` pin versions: a model could loosen what the project asks for.
_PROTECTED_BELOW_AI = frozenset({"trusted_keys", "keys", "cache", "config", "lockfiles"})


# What a case-folding ext4 ignores in names, beside format characters (Unicode: Default_Ignorable_Code_Point).
_IGNORED = "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"

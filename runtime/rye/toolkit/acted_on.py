"""Names in a project that a program of the user acts on without asking: one list, for the file tools and for commands.

Editors run tasks, clients start servers, shells and debuggers load files that stand at these names at the root of a project,
or in a home that lies in it. So no tool makes or changes what stands at one, or below it: the file tools refuse it
(`protected_path`), and the sandbox covers it while a command runs (see `rye.toolkit.protected` for what it cannot hold). The
user can let names of this list be written, by file tools and commands alike: `protected: {allow: [.vscode]}` in the user's own
`rye.yaml`. No project can.

Beside this list, and never let go: git's own folder, and the trust store, keys and cache in `.ai` (`names.protected`). The rest
of `.ai` is for file tools to write, since an item counts by its signature alone; a command may write none of it.
"""

from __future__ import annotations

import os
import stat
from typing import Final

from rye import state
from rye.errors import UsageError
from rye.toolkit import beneath, config, names

ALSO_ABSENT: Final = (".vscode", ".mcp.json", ".claude", ".cursor")
"""Those that the sandbox holds also while they are absent."""

NAMES: Final = (
    *ALSO_ABSENT, ".idea", ".zed", ".windsurf", ".gemini", ".codex", ".opencode", "opencode.json", "opencode.jsonc", ".envrc",
    ".direnv", ".gitmodules", ".gitconfig", ".lldbinit", ".gdbinit", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout",
    ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc",
    ".vimrc", ".exrc", ".nvimrc", ".emacs",
)  # fmt: skip
"""All of them: the configuration of editors, MCP clients, shells, debuggers, direnv and git."""

_SETTING = "protected.allow"


def allowed() -> frozenset[str]:
    """Return the names of the list that the user lets tools write.

    Raises:
        UsageError: `bad_config`, also for a name that is not of the list.
    """
    found = config.texts(_SETTING)
    if unknown := [name for name in found if name not in NAMES]:
        raise UsageError(
            "bad_config", f"The setting {_SETTING} names {repr(unknown[0])[:80]}, which is none that can be allowed.",
            f"Mend {state.user_ai()}/config/rye.yaml; the names are {', '.join(NAMES)}.",
        )  # fmt: skip
    return frozenset(found)


def name_at(root_fd: int, parts: beneath.Parts) -> str | None:
    """Return which name of the list physical components below a root stand at, and are not allowed to; None for none.

    A name that is a symbolic link counts where it leads, too.
    """
    at = _spelled(root_fd, parts) or _linked(root_fd, parts)
    return None if at is None or at in allowed() else at


def _spelled(root_fd: int, parts: beneath.Parts) -> str | None:
    for at, part in enumerate(parts):
        name = names.folded(part)
        if name in NAMES and (at == 0 or _is_home(root_fd, parts[:at])):
            return name
    return None


def _is_home(root_fd: int, parts: beneath.Parts) -> bool:
    try:
        fd, _ = beneath.open_beneath(root_fd, parts, beneath.DIRECTORY)
        try:
            return os.path.samestat(os.fstat(fd), os.stat(state.user_space()))
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

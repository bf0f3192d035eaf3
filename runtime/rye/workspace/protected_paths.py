"""Files that no tool may write, and keys that no tool may read.

First, files that editors, shells, debuggers, package managers or MCP clients run or load by themselves (`NAMES` and what
follows them), at the root of a project or of a home that lies in it: a program acts on them when a folder is opened or
entered, or when it is asked for no more than its version. File tools refuse to write them (`protected_path`), and the sandbox
mounts them read-only while a command runs (see `rye.sandbox.project_mounts` for what it cannot protect). The user can allow
single names for file tools and commands alike: `protected: {allow: [.vscode]}` in the user's own `rye.yaml`. No project can.
What runs the project's own code in any case (a Makefile, a package's scripts, a linter's program) is not among them.

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
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from rye.call import context
from rye.config import user_dirs
from rye.errors import UsageError, WorkspaceError
from rye.fs import beneath, names, stamps
from rye.fs.atomic import closing

ALSO_ABSENT: Final = (".vscode", ".mcp.json", ".claude", ".cursor")
"""Names that a command may not make either, where they do not exist."""

_BY_KIND: Final = {
    "editors": ".idea .vs .fleet .zed .helix .nvim.lua .nvim .vim .vimrc .exrc .nvimrc .lvimrc .lazy.lua .emacs .dir-locals.el "
    ".dir-locals-2.el .devcontainer .devcontainer.json .lazygit.yml",
    "assistants": ".windsurf .roo .kiro .amazonq .kilocode .junie .qwen .aider.conf.yml .gemini .codex .opencode opencode.json "
    "opencode.jsonc .continue .crush.json crush.json .factory .openhands .trae .github/hooks .pi .qoder .vibe .amp .augment",
    "shells": ".envrc .direnv .bashrc .bash_profile .bash_login .bash_logout .profile .zshrc .zshenv .zprofile .zlogin "
    ".zlogout .kshrc .cshrc .tcshrc .login .inputrc .autoenv .autoenv.zsh",
    "debuggers, interpreters": ".lldbinit .gdbinit .pdbrc .ghci .ocamlinit .Rprofile .Renviron .RData .octaverc .irbrc .pryrc",
    "version controls": ".gitmodules .gitconfig .hg/hgrc .hg/hgrc-not-shared .hg/sharedpath .jj/repo/config.toml .sl/config "
    "_darcs/prefs/defaults .pijul/config",
    "package and version managers": ".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .corepack.env .cargo/config .cargo/config.toml "
    "rust-toolchain rust-toolchain.toml .tool-versions .rvmrc .bazelversion .bazeliskrc tools/bazel .mvn/jvm.config .mise "
    "mise.toml .mise.toml mise.local.toml .mise.local.toml .config/mise .config/mise.toml mise/config.toml",
    "hooks": ".pre-commit-config.yaml .pre-commit-config.yml lefthook.yml lefthook.yaml lefthook.toml lefthook.json "
    ".lefthook.yml .lefthook.yaml .lefthook.toml .lefthook.json lefthook-local.yml .overcommit.yml",
}

NAMES: Final = (*ALSO_ABSENT, *(name for kind, names in _BY_KIND.items() if kind != "hooks" for name in names.split()))
"""Protected names, from the root: configuration of programs by their kind and of MCP clients. They are those that are
known: the list is not complete, and below the root the same names mean nothing."""

PATTERNS: Final = ("*.code-workspace", "*.sublime-project")
"""What names of files in the root end with, of which an editor does the same."""

WITH_HOOKS: Final = tuple(_BY_KIND["hooks"].split())
"""Lists of programs for hooks of git: protected where the user has installed hooks, which run them at the next commit."""

_EVERY: Final = (*NAMES, *PATTERNS, *WITH_HOOKS)
_PARTS: Final = {name: tuple(name.casefold().split("/")) for name in _EVERY}
_FIRST: Final = frozenset(parts[0] for parts in _PARTS.values())
_SETTING = "protected.allow"


def allowed_by_user() -> frozenset[str]:
    """Return the protected names that the user lets tools write.

    Raises:
        UsageError: `bad_config`, also for a name that is not in the list.
    """
    found = context.settings().texts(_SETTING)
    if unknown := [name for name in found if name not in _EVERY]:
        why = f"The setting {_SETTING} names {repr(unknown[0])[:80]}, which is no name that can be allowed."
        hint = f"Correct {user_dirs.user_ai()}/config/rye.yaml; the names are {', '.join(_EVERY)}."
        raise UsageError("bad_config", why, hint)
    return frozenset(found)


def forbidden_names(root_fd: int) -> list[str]:
    """Return the names and patterns that no tool may write in a project now. Errors as `allowed_by_user`."""
    allowed_names = allowed_by_user()
    names = _EVERY if _has_hooks(root_fd) else (*NAMES, *PATTERNS)
    return [name for name in names if name not in allowed_names]


def existing_paths(root_fd: int, paths: Sequence[str]) -> list[str]:
    """Return the paths from a root that exist at some of these names; a link counts as itself. Raises OSError."""
    return [path for path in _with_existing_start(root_fd, paths) if "/" not in path or _is_there(root_fd, path)]


def _is_there(root_fd: int, path: str) -> bool:
    """Tell whether a path exists, or goes through a link or a closed folder: whoever follows it may come to something."""
    try:
        return _is_linked(root_fd, path) or beneath.exists(root_fd, path)
    except OSError as err:
        return isinstance(err, PermissionError)


def _with_existing_start(root_fd: int, paths: Sequence[str]) -> list[str]:
    """Return the paths of which at least the first component exists. Raises OSError."""
    # Opened anew, for a position of its own. One listing, because most of the names are not there.
    with closing(os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root_fd)) as fd:
        entries = os.listdir(fd)
    # Another spelling counts where the file system finds it, as one that folds case does.
    firsts, found = _FIRST.intersection(map(str.casefold, entries)), list[str]()
    folded = [(one, case_folded(os.fsencode(one))) for one in entries]
    # Most roots have none of the names.
    for name in paths if firsts else [one for one in PATTERNS if one in paths]:
        if name in PATTERNS:
            found += [one for one, spelled in folded if _is_like(spelled, name)]
        elif _PARTS[name][0] in firsts and beneath.exists(root_fd, name.split("/", 1)[0]):
            found.append(name)
    return found


def _is_like(spelled: str, pattern: str) -> bool:
    return spelled.endswith(pattern[1:])


def _has_hooks(root_fd: int) -> bool:
    """Tell whether the user has installed hooks of git. A linked worktree has them elsewhere: it counts as having some."""
    try:
        fd = os.open(".git/hooks", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root_fd)
    except FileNotFoundError:
        return False
    except OSError:
        # A command may have closed it.
        return True
    with closing(fd):
        # Samples have a dot, which no hook's name has.
        return any("." not in name for name in os.listdir(fd))


def name_at(root_fd: int, parts: beneath.Parts, links: Links | None = None) -> str | None:
    """Return the protected name at or above some physical components below a root; None for none, or an allowed one.

    A name that is a symbolic link counts where it leads, too. `links`, as `links_of` returned them, save a look at the root.
    """
    at = _spelled(root_fd, parts)
    if at is None:
        found = links_of(root_fd) if links is None else links
        at = next((name for led, name in found if parts[: len(led)] == led), None)
    if at is None or at in allowed_by_user() or (at in WITH_HOOKS and not _has_hooks(root_fd)):
        return None
    return at


def _spelled(root_fd: int, parts: beneath.Parts) -> str | None:
    for at, part in enumerate(parts):
        first = case_folded(part)
        if (first in _FIRST or any(_is_like(first, one) for one in PATTERNS)) and (at == 0 or _is_home(root_fd, parts[:at])):
            below = tuple(map(case_folded, parts[at:]))
            for name, own_parts in _PARTS.items():
                if below[: len(own_parts)] == own_parts or (name in PATTERNS and _is_like(first, name)):
                    return name
    return None


def _is_home(root_fd: int, parts: beneath.Parts) -> bool:
    try:
        fd, _ = beneath.open_beneath(root_fd, parts, beneath.DIRECTORY)
        with closing(fd):
            return os.path.samestat(os.fstat(fd), os.stat(user_dirs.user_space()))
    except OSError:
        return False


Links = Sequence[tuple[beneath.Parts, str]]
"""Where protected names that are symbolic links lead, as physical components, with the names."""


def links_of(root_fd: int) -> Links:
    """Return where the protected names of a root lead that are symbolic links, or are reached through one."""
    out: list[tuple[beneath.Parts, str]] = []
    try:
        existing = _with_existing_start(root_fd, _EVERY)
    except OSError:
        return out
    # Also what does not exist yet: the folder above it may be a link.
    for path in existing:
        try:
            if not _is_linked(root_fd, path):
                continue
            fd, physical = beneath.open_parent(root_fd, tuple(os.fsencode(path).split(b"/")))
        except OSError:
            # It leads out of the project, where no tool writes anyway.
            continue
        os.close(fd)
        spelled = case_folded(os.fsencode(path))
        out.append((physical, path if path in _EVERY else next(name for name in PATTERNS if _is_like(spelled, name))))
    return out


def _is_linked(root_fd: int, path: str) -> bool:
    """Tell whether a path, or a folder that it goes through, is a symbolic link, as far as it exists. Raises OSError."""
    parts = path.split("/")
    for at in range(len(parts)):
        try:
            if stat.S_ISLNK(os.lstat("/".join(parts[: at + 1]), dir_fd=root_fd).st_mode):
                return True
        except FileNotFoundError:
            break
    return False


ITEMS: Final = (b"tools", b"knowledge", b"directives")
"""All that tools may write below the user's `.ai`: an item counts by its signature alone."""

_CLOSED: Final = ("config", "trust", "state", "keys", "trusted_keys")


def place_of(root_fd: int, parts: beneath.Parts, but: str = "") -> str | None:
    """Return the place that is closed to tools in which some physical components below a root lie, or None.

    It is one of those that `protected` names, except `but`, or a part of the user's own `.ai`.
    """
    place = protected(parts)
    return _users_own(root_fd, parts) if place in (None, but) else place


def _users_own(root_fd: int, parts: beneath.Parts) -> str | None:
    users = user_dirs.user_ai()
    own, home = stamps.identity(users), stamps.identity(os.path.dirname(users))
    closed = {stamps.identity(f"{users}/{name}"): name for name in _CLOSED}
    for at, below in enumerate(parts):
        # By identity at every level: a link or another spelling leads to the same device and inode.
        current = stamps.identity(b"/".join(parts[:at]) or b".", dir_fd=root_fd)
        if current is None:
            # It does not exist yet, and what is above it was looked at.
            return None
        if current in closed:
            return f"the user's own .ai/{closed[current]}"
        if current == own and below not in ITEMS:
            return "the user's own .ai"
        if current == home and case_folded(below) == ".ai" and at + 1 < len(parts) and parts[at + 1] not in ITEMS:
            return "the user's own .ai"
    return None


def refuse_key(info: os.stat_result, parts: beneath.Parts) -> None:
    """Refuse to read one of the user's private keys, whatever path led to it.

    Raises:
        WorkspaceError: `protected_path`.
    """
    if is_key(info):
        why = f"{names.show(b'/'.join(parts))} is the user's private key, which no tool reads."
        raise WorkspaceError("protected_path", why, "Signing is the user's own: ask for `rye sign`.")


def refuse_keys_folder(info: os.stat_result, parts: beneath.Parts) -> None:
    """Refuse to search the folder of the user's private keys. Errors as `refuse_key`."""
    if _is_at(f"{user_dirs.user_ai()}/keys", info):
        why = f"{names.show(b'/'.join(parts)) or '.'} holds the user's private keys, which no tool reads."
        raise WorkspaceError("protected_path", why, "Search another folder.")


def is_own_folder(info: os.stat_result) -> bool:
    """Tell whether an open folder is the user's own `.ai`."""
    return _is_at(user_dirs.user_ai(), info)


def key_files() -> list[str]:
    """Return the paths of the user's private keys: all that lies in their folder, and what RYE_SIGNING_KEY names."""
    folder, found = f"{user_dirs.user_ai()}/keys", []
    with suppress(OSError):
        found = [f"{folder}/{name}" for name in os.listdir(folder)]
    if named := os.environ.get("RYE_SIGNING_KEY"):
        # A relative name has no meaning where the current folder is gone.
        with suppress(OSError):
            found.append(os.path.abspath(named))
    return found


def is_key(info: os.stat_result) -> bool:
    """Tell whether an open file is one of the user's private keys, by device and inode: any link to it counts too."""
    return any(_is_at(path, info) for path in key_files())


def _is_at(path: str, info: os.stat_result) -> bool:
    return stamps.identity(path) == (info.st_dev, info.st_ino)


def protected(parts: tuple[bytes, ...]) -> str | None:
    """Return the protected place that physical components lie in (`.git`, `.ai/trusted_keys` …), or None.

    Protected wherever they are: the trust store, keys, cache, settings and lockfiles of any space, and git's internals.
    """
    spelled = [case_folded(part) for part in parts]
    for at, name in enumerate(spelled):
        # `git~1` is the short name that FAT and NTFS give to `.git`.
        if name in (".git", "git~1"):
            return ".git"
        if name in (".ai", "ai~1"):
            below = spelled[at + 1] if at + 1 < len(spelled) else ""
            if below in _PROTECTED_BELOW_AI or below.startswith(("truste~", "lockfi~")):
                return f".ai/{below}"
    return None


def case_folded(part: bytes) -> str:
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

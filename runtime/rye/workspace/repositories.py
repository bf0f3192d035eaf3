"""What git takes for a repository below a project's root, wherever it lies and whatever it is called.

Git needs no folder named `.git`: a folder with `HEAD`, `objects` and `refs` is a repository, and its configuration is obeyed by
a plain `git status` in it. A file `.git` names such a folder, and a file `commondir` in it names where its configuration lies.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Final, NamedTuple

from rye.config import user_dirs
from rye.fs import atomic, beneath, stamps
from rye.fs.atomic import closing, passing

MAX_ENTRIES: Final = 2_000_000
"""A walk over a tree ends after so many names, and as many times 64 characters of folders' paths."""

_NAMES: Final = ("HEAD", "objects", "refs", "commondir")
_PARTS: Final = frozenset({".git", *(name.lower() for name in _NAMES)})
_LENGTHS: Final = frozenset(map(len, _PARTS))
# A path that the kernel takes, and what stands before it and behind it.
_POINTER = 2 * beneath.PATH_MAX
_POINTERS: Final = "pointers.json"
# What git takes settings, programs or steps from, and what makes a folder a repository.
_OF_REPOSITORIES: Final = frozenset(
    "head objects refs commondir config config.worktree hooks info modules rebase-merge sequencer worktrees".split()  # noqa: SIM905
)

SYSTEMS: Final = "/etc/gitconfig"
"""In it git has the settings of all users."""

FOLDERS: Final = (".git", ".hg", ".svn")
"""In folders with these names a version control keeps what it needs."""

IGNORED_DIRECTORIES = (
    "node_modules", *FOLDERS, "dist", "build", "__pycache__", ".venv", "venv", ".tox", ".pytest_cache",
    ".mypy_cache", ".ruff_cache", "*.egg-info", ".eggs", ".nox",
)  # fmt: skip
"""The one list of directories that listing and searching leave out (glob patterns)."""


def is_git_directory(names: Container[str]) -> bool:
    """Tell whether a folder with these names, in lower case, is a repository by git's own test."""
    return "head" in names and ("commondir" in names or ("objects" in names and "refs" in names))


class Listing(NamedTuple):
    """What a look keeps of a folder. It is true as long as the folder has this inode and time of change.

    Attributes:
        inode: the folder's.
        changed: its time of the last change (ns); 0 where a later change could bear the same time.
        parts: those of its names, in lower case, that tell a repository.
        below: the names of the folders in it.
        links: the names of the links in it.
    """

    inode: int
    changed: int
    parts: list[str]
    below: list[str]
    links: list[str]


Listings = dict[str, Listing]
"""The folders below a root, by their path from it; `""` is the root itself."""


def listings(root: str, known: Listings | None = None) -> Listings:
    """Return every folder below a root; no link is followed. A repository's own folder is no exception: one may lie in it.

    Args:
        root: a real path.
        known: what an earlier look returned: a folder that has not changed since then is not read again. The kernel sets
            the time of change, and no command can.

    Raises:
        OSError: there is no such root; EFBIG after `MAX_ENTRIES` names; EMFILE and the like.
    """
    known, found, waiting, count = known or {}, Listings(), [""], 0
    device, closed = os.lstat(root).st_dev, dict[str, os.stat_result]()
    changed = _changed(root, known, device)
    if known and not changed:
        return known
    try:
        while waiting:
            path = waiting.pop()
            prefix = f"{path}/" if path else ""
            one = None if path in changed else known.get(path)
            if one is None:
                one, read = _read(root, path, device, closed)
                count += read
            # Their paths take memory by the square of the depth.
            count += len(one[3]) + len(path) // 64
            if count > MAX_ENTRIES:
                raise OSError(errno.EFBIG, "too many files, or too deep")
            found[path] = one
            waiting += [prefix + name for name in one[3]]
    finally:
        _close_again(root, closed)
    return found


def _changed(root: str, known: Listings, device: int) -> set[str]:
    """Return the folders that are not as they were."""
    found = set()
    # The one thing that a look does a thousand times.
    lstat = os.lstat
    for path, one in known.items():
        try:
            info = lstat(f"{root}/{path}")
        except OSError:
            # Gone; or its path is too long for this question, and the folder is read again each time.
            found.add(path)
            continue
        # Another file system in the project may have a clock of its own.
        if info.st_ctime_ns != one[1] or info.st_ino != one[0] or info.st_dev != device:
            found.add(path)
    return found


def _read(root: str, path: str, device: int, closed: dict[str, os.stat_result]) -> tuple[Listing, int]:
    """Read a folder; return what to keep of it, and how many names it has."""
    now, parts, below, links, count = stamps.clock(), [], [], [], 0
    try:
        with closing(_opened(root, path, closed)) as fd, os.scandir(fd) as entries:
            # Of the open folder, and before its names: what changes it afterwards changes the time, too.
            info = os.fstat(fd)
            for entry in entries:
                name, count = entry.name, count + 1
                # Most names are ruled out by their length, which costs less than a copy in lower case.
                if len(name) in _LENGTHS and name.lower() in _PARTS:
                    parts.append(name.lower())
                if entry.is_dir(follow_symlinks=False):
                    below.append(name)
                elif entry.is_symlink():
                    links.append(name)
    except OSError as err:
        if err.errno in atomic.FAILING:
            raise
        return Listing(0, 0, [], [], []), 0
    lasts = info.st_dev == device and stamps.settled(info.st_ctime_ns, now)
    return Listing(info.st_ino, info.st_ctime_ns if lasts else 0, parts, below, links), count


def _opened(root: str, path: str, closed: dict[str, os.stat_result] | None = None) -> int:
    """Open a folder, through no link; one that its owner may not list is opened up and noted in `closed`. Raises OSError."""
    parts = path.split("/") if path else []
    with closing(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as top:
        try:
            return beneath.open_unlinked(top, parts, os.O_RDONLY | os.O_DIRECTORY)
        except PermissionError:
            if closed is None:
                raise
        fd, closed[path] = opened_up(top, parts)
        return fd


def opened_up(top: int, parts: Sequence[str]) -> tuple[int, os.stat_result]:
    """Let a folder below another be listed, and open it; return it with its state before, whose mode it is to get again.

    Git enters one that its owner may not list, so a command could hide a repository or hooks there. Raises OSError.
    """
    with closing(beneath.open_unlinked(top, parts, os.O_PATH | os.O_DIRECTORY)) as at:
        # Through /proc, because no chmod takes a descriptor opened with O_PATH.
        name, held = f"/proc/self/fd/{at}", os.fstat(at)
        os.chmod(name, stat.S_IMODE(held.st_mode) | 0o500)
        try:
            return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), held
        except OSError:
            os.chmod(name, stat.S_IMODE(held.st_mode))
            raise


@contextmanager
def listed(root: str) -> Iterator[int]:
    """Open a project's folder, which can be listed until the block ends, also where its owner may not. Raises OSError."""
    closed: os.stat_result | None = None
    try:
        opened = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        with closing(os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as at:
            opened, closed = opened_up(at, ())
    with closing(opened) as fd:
        try:
            yield fd
        finally:
            if closed is not None:
                os.fchmod(fd, stat.S_IMODE(closed.st_mode))


def _close_again(root: str, closed: dict[str, os.stat_result]) -> None:
    """Give folders that were opened up their modes again: the inner first, which were found last."""
    for path, held in reversed(closed.items()):
        with suppress(OSError), closing(_opened(root, path)) as fd:
            if os.path.samestat(os.fstat(fd), held):
                os.fchmod(fd, stat.S_IMODE(held.st_mode))


def find(root: str, found: Listings | None = None) -> set[str]:
    """Return the paths from the root of all folders that git takes for a repository, and of those they take settings from.

    Args:
        root: a real path.
        found: its folders, where they are known.

    Raises:
        OSError: as `listings`.
    """
    places: set[str] = set()
    for path, one in (listings(root) if found is None else found).items():
        # A `.git` without its other parts: a `git init` of the user makes it whole, and keeps the settings and hooks in it.
        if (one[2] and is_git_directory(one[2])) or (path[-4:].lower() == ".git" and path[-5:-4] in ("", "/")):
            places.add(path)
        if ".git" in one[2]:
            places.update(_named(root, f"{path}/.git" if path else ".git"))
    for path in list(places):
        places.update(_named(root, f"{path}/commondir" if path else "commondir"))
    return places


def _named(root: str, pointer: str) -> Iterator[str]:
    """Yield the folder below the root that a pointer file, or a link in its place, names."""
    path = os.path.join(root, pointer)
    # A folder that is no link was found by its names.
    target = _pointed(path) if not os.path.isdir(path) else os.path.realpath(path) if os.path.islink(path) else ""
    if target and os.path.isdir(target) and f"{target}/".startswith(f"{root}/"):
        yield os.path.relpath(target, root) if target != root else ""


def _pointed(path: str) -> str:
    """Return the real path, there or not, that a file `.git` or `commondir` names; empty for none."""
    with passing():
        if named := named_by(atomic.read_regular(path, _POINTER)[0], path):
            return os.path.realpath(os.path.join(os.path.dirname(path), named))
    return ""


def named_by(data: bytes, file: str) -> str:
    """Return the path that the content of a file `.git` or `commondir` names, as git reads it; empty for none."""
    if file.endswith(".git"):
        if not data.startswith(b"gitdir:"):
            return ""
        data = data.removeprefix(b"gitdir:").removeprefix(b" ")
    # No blank goes but the ends of lines, and a NUL ends what is a path to the kernel.
    return os.fsdecode(data.rstrip(b"\r\n").partition(b"\0")[0])


def linked(work_tree: str) -> tuple[str, str] | None:
    """Return the folders from which a linked worktree or a submodule takes settings: its own, and the one that it shares.

    None where the folder has no file `.git`.

    Args:
        work_tree: its path.
    """
    own = _pointed(os.path.join(work_tree, ".git"))
    return (own, _pointed(os.path.join(own, "commondir")) or own) if own else None


def store_pointers(root_fd: int, root: str, found: Listings, places: Iterable[str]) -> None:
    """Store which files below a root name a folder as a repository, or as one that has its settings, for `place_of`.

    Raises OSError. Args: the project, open; its real path; its folders; and what `find` returned.
    """
    files = [f"{path}/.git" if path else ".git" for path, one in found.items() if ".git" in one[2]]
    files += [f"{path}/commondir" if path else "commondir" for path in places]
    named = sorted(one for one in files if not os.path.isdir(f"{root}/{one}") and _pointed(os.path.join(root, one)))
    store = f"{user_dirs.state_dir(root_fd)}/{_POINTERS}"
    data = json.dumps(named).encode()
    if (atomic.read(store) or b"[]") != data:
        atomic.write(store, data, 0o600, durably=False)


def _is_pointed_at(root_fd: int, root: str, parts: beneath.Parts) -> bool:
    """Tell whether a part of a repository would be written where a file below the root says that one is, or will be."""
    pointers = list[str]()
    # What is damaged, as by a power cut, is stored anew by the next look.
    with suppress(OSError, ValueError, TypeError):
        if stored := atomic.read(f"{user_dirs.state_dir(root_fd)}/{_POINTERS}"):
            pointers = [one for one in json.loads(stored) if isinstance(one, str)]
    for pointer in pointers:
        target, aim = os.path.join(root, os.fsdecode(b"/".join(parts))), _pointed(os.path.join(root, pointer))
        if aim and target.startswith(f"{aim}/") and target[len(aim) + 1 :].partition("/")[0].lower() in _OF_REPOSITORIES:
            return True
    return False


def place_of(root_fd: int, root: str, parts: beneath.Parts) -> str | None:
    """Return what git would take or act on, of which some physical components below a root are a part, or None.

    Args:
        root_fd: the project, open.
        root: its real path.
        parts: the file.
    """
    if _reaches_into(root_fd, parts) or _is_pointed_at(root_fd, root, parts):
        return "a folder that git takes for a repository"
    setting = _named_by_settings(root_fd, root, parts)
    return f"what git acts on, by the project's own {setting}" if setting else None


def _reaches_into(root_fd: int, parts: beneath.Parts) -> bool:
    """Tell whether writing at physical components makes a repository, a part of one, or changes one, by git's own test.

    One call may write several files, and each is asked for alone before the first is there. So a `HEAD` is always refused,
    and beside one the other parts are.
    """
    for at, part in enumerate(parts):
        folder = b"".join(above + b"/" for above in parts[:at])
        # Nearly every folder ends here.
        if part.lower() != b"head" and not beneath.exists(root_fd, folder + b"HEAD"):
            continue
        if (part == b"HEAD" and at == len(parts) - 1) or _text(part) in ("objects", "refs", "commondir"):
            return True
        if is_git_directory(
            {name.lower() for name in _NAMES if beneath.exists(root_fd, folder + name.encode())} | {_text(part)}
        ):
            return True
    return False


_SETTINGS: Final = ("config", "config.worktree")
_MAX_SETTINGS: Final = 1 << 20
# `path = FILE` of include and includeIf, and `hooksPath = FOLDER`. A line that git reads in another way protects too much.
# Patterns are compiled at first use: few calls meet settings of git.
_NAMED_PATH: Final = rb"(?im)^[ \t]*(?:\[[^\]\n]*\])?[ \t]*(path|hookspath|templatedir)[ \t]*=[ \t]*([^\n#;]+)"
_INCLUDES: Final = rb"(?ims)^[ \t]*\[include(?:if[^\n]*)?\].*?(?=^[ \t]*\[|\Z)"
_MOST_INCLUDED: Final = 100
# What git starts when the user asks for no program: not aliases, which the user calls as any script of the project.
STARTED: Final = (
    "clean", "smudge", "process", "textconv", "external", "driver", "fsmonitor", "editor", "pager", "sshcommand", "helper",
    "askpass", "program", "command", "difffilter", "gitproxy", "cmd", "alternaterefscommand", "packobjectshook",
)  # fmt: skip
"""Last words of keys whose value is a command line that git starts by itself."""
_NAMED_PROGRAM: Final = (
    rf"(?im)^[ \t]*(?:\[[^\]\n]*\])?[ \t]*(?:{'|'.join(STARTED)})[ \t]*=[ \t]*([^\n]*/[^\n]*|[^\n]+ [^\n]+)".encode()
)


def _named_by_settings(root_fd: int, root: str, parts: beneath.Parts) -> str:
    """Return the setting by which git acts on the file at some physical components; empty for none.

    Settings are those of the repositories above the file, also above the root, and the user's own.
    """
    target = os.path.join(root, os.fsdecode(b"/".join(parts)))
    seen: dict[str, stamps.Stamp | None] = {}
    users = list(_users_files(seen))
    inner = (b"".join(part + b"/" for part in parts[:depth]) for depth in range(len(parts)))
    for work_tree in (*inner, *(os.fsencode(f"{one}/") for one in enclosing(root))):
        work_tree_path = os.path.join(root, os.fsdecode(work_tree))
        if target in _linked_hooks(work_tree_path):
            return "link in hooks"
        for data, folder in (*_settings_of(root_fd, work_tree, work_tree_path), *users):
            if found := _names(data, target, work_tree_path, folder):
                return found
    there = stamps.identity(target, follow=False)
    # Of what is not there yet a link of the user may have the name.
    is_users = target in map(os.path.realpath, seen) if there is None else there in [one and one[:2] for one in seen.values()]
    return "settings of the user" if is_users else ""


def enclosing(root: str) -> Iterator[str]:
    """Yield the folders above a root, by its real path, that are the work tree of a repository."""
    while len(root) > 1:
        root = root.rpartition("/")[0]
        if os.path.lexists(f"{root}/.git"):
            yield root or "/"


def _linked_hooks(work_tree: str) -> list[str]:
    """Return where the links among a repository's hooks lead."""
    with passing(), os.scandir(f"{work_tree}/.git/hooks") as entries:
        return [os.path.realpath(entry.path) for entry in entries if entry.is_symlink()]
    return []


def _settings_of(root_fd: int, work_tree: bytes, parent: str) -> Iterator[tuple[bytes, str]]:
    """Yield the settings of the repository whose work tree begins at a folder, each with the folder that it lies in."""
    try:
        os.close(os.open(work_tree + b".git", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root_fd))
    except NotADirectoryError:
        folders = linked(parent)
        for folder, name in zip(reversed(folders or ()), _SETTINGS, strict=False):
            yield _settings(None, os.fsencode(os.path.join(folder, name))), folder
    except OSError:
        return
    else:
        for name in _SETTINGS:
            yield _settings(root_fd, work_tree + b".git/" + name.encode()), os.path.join(parent, ".git")


def _names(data: bytes, target: str, parent: str, folder: str) -> str:
    """Return the setting in some settings by which git acts on a file; empty for none.

    Args:
        data: the settings.
        target: the file's path.
        parent: the work tree.
        folder: where the settings lie.
    """
    paths, named_programs = _named_in(data)
    for key, value in paths:
        is_hooks = key.lower() == b"hookspath"
        named = os.path.expanduser(os.fsdecode(value).strip().strip('"'))
        # Git counts hooks from the work tree, and included files from the file that includes them.
        real = os.path.realpath(os.path.join(parent if is_hooks else folder, named))
        if key.lower() == b"templatedir":
            if target.startswith(f"{real}/"):
                return "init.templateDir"
        elif target == real or (is_hooks and _is_hook_of(target, real)):
            return "core.hooksPath" if is_hooks else "include.path"
    if named_programs:
        # Few settings name a program, and every call loads this module.
        from rye.workspace import programs

        if any(programs.loaded(os.fsdecode(value), parent).holds(target) for value in named_programs):
            return "settings of a program"
    return ""


@lru_cache(maxsize=8)
def _named_in(data: bytes) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
    """Return the paths with their keys, and the programs, that some settings name."""
    # Most settings have none of the keys.
    return re.findall(_NAMED_PATH, data) if re.search(b"(?i)path|templatedir", data) else [], re.findall(_NAMED_PROGRAM, data)


def _is_hook_of(target: str, folder: str) -> bool:
    # Husky's own hooks are in `_`, and start those beside it.
    real = os.path.realpath(folder).removesuffix("/_")
    return os.path.dirname(target) in (real, f"{real}/_")


def users_settings() -> tuple[str, str]:
    """Return the files in which git has the user's own settings: of two that say something the last counts."""
    xdg, home = os.environ.get("XDG_CONFIG_HOME", ""), user_dirs.home()
    return f"{xdg if os.path.isabs(xdg) else f'{home}/.config'}/git/config", f"{home}/.gitconfig"


def _users_files(seen: dict[str, stamps.Stamp | None]) -> Iterator[tuple[bytes, str]]:
    """Yield the content and the folder of each file of settings for all repositories, and of those that these include.

    `seen` gains their paths, with what is there.
    """
    waiting = [SYSTEMS, *users_settings()]
    while waiting and len(seen) < _MOST_INCLUDED:
        # The first three always count, whatever the others include.
        path = waiting.pop(0)
        if path not in seen:
            seen[path] = stamps.stamp(path)
            data, included = _users(path, seen[path])
            if data:
                folder = os.path.dirname(path)
                yield data, folder
                waiting += [os.path.join(folder, os.path.expanduser(one)) for one in included]


@lru_cache(maxsize=_MOST_INCLUDED)
def _users(path: str, _state: stamps.Stamp | None) -> tuple[bytes, list[str]]:
    data = _settings(None, os.fsencode(path))
    named = (value for block in re.findall(_INCLUDES, data) for _, value in re.findall(_NAMED_PATH, block))
    return data, [os.fsdecode(value).strip().strip('"') for value in named]


def _settings(root_fd: int | None, path: bytes) -> bytes:
    with passing():
        return atomic.read_regular(path, _MAX_SETTINGS, dir_fd=root_fd)[0]
    return b""


def _text(part: bytes) -> str:
    return part.lower().decode("ascii", "replace")

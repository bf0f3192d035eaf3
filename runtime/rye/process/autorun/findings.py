"""What makes git, an editor or a shell start a program, below a project's root: settings, hooks, steps and start files.

`rye.process.autorun.command_check` compares what is there before a command with what is there after it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

from rye.fs import atomic, beneath, stamps
from rye.fs.atomic import closing
from rye.sandbox import project_mounts
from rye.workspace import programs, protected_paths, repositories

_MAX_FILE: Final = 1 << 20
_CONFIGS: Final = ("config", "config.worktree")
# Folders of a repository that git writes into; "" is its own. A work tree may lie beside them.
_GIT_WRITES: Final = frozenset(
    ("", "branches", "hooks", "info", "lfs", "logs", "modules", "objects", "rebase-apply", "rebase-merge", "refs", "rr-cache",
     "sequencer", "svn", "worktrees")
)  # fmt: skip
_STEPS: Final = ("rebase-merge/git-rebase-todo", "sequencer/todo")
EXEC: Final = re.compile(rb"^[ \t]*(?:x|exec)(?:[ \t].*)?(?:\n|\Z)", re.MULTILINE)
_MOST_INCLUDED: Final = 100
_MOST_KEPT: Final = 10_000
NAME: Final = project_mounts.NAME
PROGRAM: Final = "program of git's settings"
_MOST_NAMES: Final = 200


class Tree(NamedTuple):
    """A project's root: its real path, and a descriptor of it."""

    root: str
    fd: int
    parsed: dict[str, Any]

    def folder(self, path: str) -> int:
        """Open a folder below it, through no link, also one that its owner may not list. Raises OSError."""
        return _folder(self.fd, tuple(part for part in path.split("/") if part))


def _folder(top: int, parts: tuple[str, ...]) -> int:
    try:
        return beneath.open_unlinked(top, parts, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        fd, held = repositories.opened_up(top, parts)
        os.fchmod(fd, stat.S_IMODE(held.st_mode))
        return fd


@contextmanager
def opened(root: str, identity: Sequence[int]) -> Iterator[Tree]:
    """Open a project; raises OSError, also where another folder has taken its path."""
    closed: os.stat_result | None = None
    try:
        opened_root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        # Until the end: the look opens it anew for its listings.
        with closing(os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as at:
            opened_root, closed = repositories.opened_up(at, ())
    with closing(opened_root) as fd:
        try:
            if stamps.identity(fd) != tuple(identity):
                raise OSError(errno.ESTALE, "another folder has taken the project's path")
            yield Tree(root, fd, {})
        finally:
            if closed is not None:
                os.fchmod(fd, stat.S_IMODE(closed.st_mode))


class Finding(NamedTuple):
    """Something below the root that makes git or another program of the user start a program, or write elsewhere.

    Attributes:
        path: the file that holds it, from the project's root.
        what: the setting's key, `hook`, `exec`, `link`, `pointer` (to a repository outside the project), `unreadable`,
            `protected name`, or `program of git's settings`.
        value: what it says; of a hook its digest.
    """

    path: str
    what: str
    value: str

    @property
    def mark(self) -> str:
        """What tells it from others, in a short word: its place, too, as a copy elsewhere is another one."""
        return _short(self.path, self.what, self.value)


def _short(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def at_names(tree: Tree, forbidden: Sequence[str], *, own: bool = False, exactly: Container[str] = ()) -> Iterator[Finding]:
    """Yield the files at the names that editors, shells and the like act on.

    Args:
        tree: the project.
        forbidden: the names.
        own: the sandbox covers those that it can: they are passed over.
        exactly: names whose content counts as well, in a finding of its own; none of these is passed over for it.
    """
    try:
        existing = protected_paths.existing_paths(tree.fd, forbidden)
    except OSError:
        return
    for name in existing:
        is_covered = own and name in protected_paths.ALSO_ABSENT
        if is_covered and name not in exactly:
            continue
        with suppress(OSError):
            path, info, value = _followed(tree.fd, name)
            if stat.S_ISDIR(info.st_mode) and project_mounts.is_made(tree.root, f"{tree.root}/{name}"):
                # A job that began meanwhile is kept from the name by it.
                continue
            if not is_covered:
                yield Finding(path, NAME, value)
            if name in exactly:
                yield Finding(path, NAME, f"{value}\0{digest_at(tree.fd, path)}")


def _followed(root_fd: int, name: str) -> tuple[str, os.stat_result, str]:
    """Return a path or the first link on it, how that is, and where the link leads. Raises OSError."""
    parts = name.split("/")
    for at in range(1, len(parts) + 1):
        path = "/".join(parts[:at])
        info = os.lstat(path, dir_fd=root_fd)
        if stat.S_ISLNK(info.st_mode):
            return path, info, os.readlink(path, dir_fd=root_fd)
    return name, info, ""


def digest_at(folder: int, name: str, depth: int = 2) -> str:
    """Return a digest of a file, or of a folder with what it holds."""
    data, _ = content(folder, name)
    if data is not None or depth == 0:
        return hashlib.sha256(data or b"").hexdigest()
    try:
        fd = _folder(folder, (name,))
    except OSError:
        return ""
    with closing(fd):
        below = sorted(os.listdir(fd))[:_MOST_NAMES]
        return _short(*(f"{one}\0{digest_at(fd, one, depth - 1)}" for one in below))


def in_repository(tree: Tree, path: str, covered: Container[str] = ()) -> Iterator[Finding]:
    """Yield the findings of one repository but those in some files and folders, which the sandbox covers."""
    try:
        fd = tree.folder(path)
    except OSError as err:
        if err.errno in repositories.FAILING:
            raise
        return
    with closing(fd):
        yield from _settings(tree, path, fd, "config", path, included_only=f"{path}/config" in covered)
        yield from _settings(tree, path, fd, "config.worktree", path)
        yield from () if f"{path}/hooks" in covered else _hooks(path, fd)
        if users := repositories.users_hooks_path():
            yield from _named_hooks(tree, path, users)
        for name in _STEPS:
            yield from _steps(path, fd, name)
        yield from _pointer(tree, path, fd, "commondir", b"")


def _pointer(tree: Tree, path: str, fd: int, name: str, prefix: bytes) -> Iterator[Finding]:
    """Yield a file by which git takes a folder outside the project for a repository, or settings from one."""
    data, why = content(fd, name)
    file = f"{path}/{name}" if path else name
    if why:
        yield Finding(file, why, "")
    elif data is not None and data.startswith(prefix):
        target = os.fsdecode(data.removeprefix(prefix).strip())
        with suppress(ValueError):
            if not f"{os.path.realpath(os.path.join(tree.root, path, target))}/".startswith(f"{tree.root}/"):
                yield Finding(file, "pointer", target)


def links(tree: Tree, folders: repositories.Listings, places: Iterable[str]) -> Iterator[Finding]:
    """Yield the links in repositories: git makes none there, and writes where one leads, as to its log and its messages."""
    inside = set(places)
    for path, listing in folders.items():
        if listing[4] and _is_gits(path, inside):
            with suppress(OSError), closing(tree.folder(path)) as fd:
                for name in listing[4]:
                    with suppress(OSError):
                        yield Finding(f"{path}/{name}" if path else name, "link", os.readlink(name, dir_fd=fd))


def _is_gits(path: str, places: Container[str]) -> bool:
    """Tell whether a folder is a repository's, or one of those in it into which git writes."""
    above, below = path, ""
    while True:
        if above in places and below.partition("/")[0] in _GIT_WRITES:
            return True
        if not above:
            return False
        above, _, name = above.rpartition("/")
        below = f"{name}/{below}"


def _settings(
    tree: Tree, path: str, fd: int, name: str, repository: str, *, included_only: bool = False, included: set[str] | None = None
) -> Iterator[Finding]:
    """Yield the findings of a file of settings; with `included_only` those of the files that it names."""
    included = set() if included is None else included
    file = f"{path}/{name}" if path else name
    data, why = content(fd, name)
    if why and not included_only:
        yield Finding(file, why, "")
    if data is None:
        return
    found = _programs(tree, path, data)
    if found is None and not included_only:
        yield Finding(file, "unreadable", hashlib.sha256(data).hexdigest())
    for key, value in found or ():
        if not included_only:
            yield Finding(file, key, value)
        is_path = len(value) < beneath.PATH_MAX
        if is_path and key.startswith("include"):
            yield from _included(tree, path, value, repository, included)
        if is_path and key == "core.hookspath":
            yield from _named_hooks(tree, repository, value)
        if key.rpartition(".")[2] in repositories.STARTED and not key.startswith("alias."):
            yield from _named_programs(tree, repository, value)


def _named_programs(tree: Tree, repository: str, value: str) -> Iterator[Finding]:
    """Yield the files of the project that a repository's settings start, such as `filter.x.clean = tools/clean`, and load."""
    for target in programs.loaded(value, _work_tree(tree, repository)).there():
        if target.startswith(f"{tree.root}/"):
            path = os.path.relpath(target, tree.root)
            folder, _, name = path.rpartition("/")
            with suppress(OSError):
                with closing(tree.folder(folder)) as fd:
                    info = os.lstat(name, dir_fd=fd)
                    digest = _program_digest(fd, name, info)
                if not stat.S_ISDIR(info.st_mode):
                    yield Finding(path, PROGRAM, digest)


def _program_digest(fd: int, name: str, info: os.stat_result) -> str:
    data, _ = content(fd, name)
    return hashlib.sha256(data).hexdigest() if data is not None else str(info.st_ino)


def _work_tree(tree: Tree, repository: str) -> str:
    parent, name = os.path.split(repository)
    return os.path.join(tree.root, parent if name == ".git" else repository)


def in_linked(tree: Tree, work_tree: str) -> Iterator[Finding]:
    """Yield what the settings of a linked worktree or a submodule name in it; they may lie outside of the project."""
    with suppress(OSError), closing(tree.folder(work_tree)) as fd:
        if not stat.S_ISDIR(os.lstat(".git", dir_fd=fd).st_mode):
            yield from _pointer(tree, work_tree, fd, ".git", b"gitdir:")
    folders = repositories.linked(os.path.join(tree.root, work_tree))
    place = f"{work_tree}/.git" if work_tree else ".git"
    for folder, name in zip(reversed(folders or ()), _CONFIGS, strict=False):
        with suppress(OSError), closing(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as fd:
            yield from _settings(tree, folder, fd, name, place, included_only=True)
    if folders and (users := repositories.users_hooks_path()):
        yield from _named_hooks(tree, place, users)


def _programs(tree: Tree, path: str, data: bytes) -> list[tuple[str, str]] | None:
    """Return the settings of a file that are not plain; None where git cannot read it."""
    # A cold supervisor starts without it.
    from rye.process.autorun import git_settings

    digest = hashlib.sha256(data).hexdigest()
    found = tree.parsed.get(digest)
    if found is None:
        try:
            found = git_settings.questionable(data, tree.root)
        except git_settings.UnreadableError:
            # Not kept: git may be installed, or be quicker, the next time.
            return None
        # Nor what would make each later command read and write megabytes.
        if sum(len(text) for pair in found for text in pair) < _MOST_KEPT:
            tree.parsed[digest] = found
    # What a path among them leads to is asked at each look.
    return git_settings.refused(((key, value) for key, value in found), os.path.join(tree.root, path), tree.root)


def settings_shown(tree: Tree, folder: str, data: bytes) -> list[str]:
    """Return the settings in a file's content that are not plain, as lines; empty also for what is no file of settings."""
    return [f"{key} = {value}" for key, value in _programs(tree, folder, data) or ()]


def _included(tree: Tree, path: str, value: str, repository: str, included: set[str]) -> Iterator[Finding]:
    """Yield the findings of a file of the project that a repository's settings include: a command may write it."""
    # Only files of the project: a command cannot write others, and their content is the user's.
    target = os.path.realpath(os.path.join(tree.root, path, value))
    if not target.startswith(f"{tree.root}/") or target in included:
        return
    included.add(target)
    if len(included) > _MOST_INCLUDED:
        # Each takes a process of git. So many are no one's own.
        yield Finding(os.path.relpath(target, tree.root), "unreadable", "")
        return
    folder, _, name = os.path.relpath(target, tree.root).rpartition("/")
    with suppress(OSError), closing(tree.folder(folder)) as fd:
        yield from _settings(tree, folder, fd, name, repository, included=included)


def content(fd: int, name: str) -> tuple[bytes | None, str]:
    """Return a file's bytes, and why it has none that could be judged."""
    try:
        # One byte more than allowed shows that a file is too large to judge. A named pipe or a device would block git.
        data, _ = atomic.read_regular(name, _MAX_FILE + 1, dir_fd=fd, follow=False)
    except OSError as err:
        link = err.errno in (errno.ELOOP, errno.EMLINK)
        return None, "link" if link else "" if err.errno in (errno.ENOENT, errno.ENOTDIR) else "unreadable"
    return (None, "unreadable") if len(data) > _MAX_FILE else (data, "")


def _hooks(path: str, fd: int) -> Iterator[Finding]:
    folder = f"{path}/hooks" if path else "hooks"
    try:
        hooks = _folder(fd, ("hooks",))
    except OSError as err:
        if err.errno in (errno.ELOOP, errno.ENOTDIR):
            yield Finding(folder, "link", "")
        return
    with closing(hooks):
        yield from _hooks_in(folder, hooks)


def _named_hooks(tree: Tree, repository: str, value: str) -> Iterator[Finding]:
    """Yield the hooks that a repository's settings look for among the project's own files, as husky has them."""
    target = os.path.realpath(os.path.join(_work_tree(tree, repository), os.path.expanduser(value)))
    # Those of Husky are in `_`, and start the files beside it.
    for place in (target, os.path.dirname(target)) if os.path.basename(target) == "_" else (target,):
        folder = os.path.relpath(place, tree.root)
        # `.git/hooks` is looked at by itself.
        if not place.startswith(f"{tree.root}/") or os.path.basename(os.path.dirname(place)) == ".git":
            continue
        with suppress(OSError), closing(tree.folder(folder)) as fd:
            yield from _hooks_in(folder, fd, started_by_another=place != target)


def _hooks_in(folder: str, hooks: int, *, started_by_another: bool = False) -> Iterator[Finding]:
    # Git runs only files with a hook's exact name; `pre-commit.sample` has a dot.
    for name in (one for one in os.listdir(hooks) if "." not in one):
        with suppress(OSError):
            entry = os.lstat(name, dir_fd=hooks)
            if stat.S_ISLNK(entry.st_mode):
                # Whatever it leads to now: another file can be put there later.
                yield Finding(f"{folder}/{name}", "hook", os.readlink(name, dir_fd=hooks))
            elif stat.S_ISREG(entry.st_mode) and (entry.st_mode & 0o111 or started_by_another):
                yield Finding(f"{folder}/{name}", "hook", _program_digest(hooks, name, entry))


def _steps(path: str, fd: int, name: str) -> Iterator[Finding]:
    data, why = content(fd, name)
    inner_path = f"{path}/{name}" if path else name
    if why:
        yield Finding(inner_path, why, "")
    elif data and (lines := EXEC.findall(data)):
        yield Finding(inner_path, "exec", hashlib.sha256(b"".join(lines)).hexdigest())

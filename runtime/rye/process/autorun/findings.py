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
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from rye.fs import atomic, beneath, stamps
from rye.fs.atomic import closing, passing
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
# Of a strategy `x` git starts the program `git-merge-x`; with a slash in it that is a file of the work tree.
_STRATEGIES: Final = ("rebase-merge/strategy", "sequencer/opts")
EXEC: Final = re.compile(rb"^[ \t]*(?:x|exec)(?:[ \t].*)?(?:\n|\Z)", re.MULTILINE)
_MOST_INCLUDED: Final = 100
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MOST_KEPT: Final = 10_000
SUFFIX: Final = ".rye-set-aside"
NAME: Final = project_mounts.NAME
PROGRAM: Final = "program of git's settings"
_MOST_NAMES: Final = 50_000
_MOST_READ: Final = 1_000
_MOST_BYTES: Final = 1 << 26


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
    with repositories.listed(root) as fd:
        if stamps.identity(fd) != tuple(identity):
            raise OSError(errno.ESTALE, "another folder has taken the project's path")
        yield Tree(root, fd, {})


class Finding(NamedTuple):
    """Something below the root that makes git or another program of the user start a program, or write elsewhere.

    Attributes:
        path: the file that holds it, from the project's root.
        what: the setting's key, `hook`, `exec`, `strategy`, `link`, `pointer` (to a repository outside the project),
            `unreadable`, `protected name`, or `program of git's settings`.
        value: what it says; of a hook its digest, and who may run it.
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


def at_names(
    tree: Tree, forbidden: Sequence[str], *, own: bool = False, exactly: Container[str] | None = None
) -> Iterator[Finding]:
    """Yield the files at the names that editors, shells and the like act on.

    Args:
        tree: the project.
        forbidden: the names.
        own: the sandbox covers those that it can: they are passed over.
        exactly: names whose content counts as well, in a finding of its own; none of these is passed over for it. None: all.
    """
    for name in protected_paths.existing_paths(tree.fd, forbidden):
        is_covered = own and name in protected_paths.ALSO_ABSENT
        is_exact = exactly is None or name in exactly
        if is_covered and not is_exact:
            continue
        with passing():
            path, info, value = _followed(tree.fd, name)
            if stat.S_ISDIR(info.st_mode) and project_mounts.is_made(tree.root, f"{tree.root}/{name}"):
                # A job that began meanwhile is kept from the name by it.
                continue
            if not is_covered:
                yield Finding(path, NAME, value)
            if is_exact:
                yield Finding(path, NAME, f"{value}\0{digest_at(tree.fd, path)}")


def _followed(root_fd: int, name: str) -> tuple[str, os.stat_result, str]:
    """Return a path, or the first on it that is a link or closed, how that is, and where the link leads. Raises OSError."""
    parts = name.split("/")
    for at in range(1, len(parts) + 1):
        path = "/".join(parts[:at])
        try:
            info = os.lstat(path, dir_fd=root_fd)
        except PermissionError:
            if at == 1:
                raise
            return "/".join(parts[: at - 1]), info, ""
        if stat.S_ISLNK(info.st_mode):
            return path, info, os.readlink(path, dir_fd=root_fd)
    return name, info, ""


def digest_at(folder: int, name: str) -> str:
    """Return a digest of a file, or of a folder with all that it holds, of which the state counts beyond 1,000."""
    try:
        info = os.lstat(name, dir_fd=folder)
        if not stat.S_ISDIR(info.st_mode):
            return hashlib.sha256(atomic.read_regular(name, _MOST_BYTES, dir_fd=folder, follow=False)[0]).hexdigest()
    except OSError as err:
        if err.errno in atomic.FAILING:
            raise
        return "" if err.errno == errno.ENOENT else str(info.st_ino)
    found, waiting = list[str](), [tuple(name.split("/"))]
    while waiting and len(found) < _MOST_NAMES:
        parts = waiting.pop()
        with passing(), closing(_folder(folder, parts)) as fd:
            below = sorted(os.listdir(fd))
            # What an assistant checks out there is no setting of it.
            for one in () if ".git" in below and "worktrees" in parts else below:
                info = os.lstat(one, dir_fd=fd)
                state = _state(info) if len(found) > _MOST_READ else _digest(fd, one, info)
                found.append(f"{'/'.join((*parts[1:], one))}\0{state}")
                if stat.S_ISDIR(info.st_mode):
                    waiting.append((*parts, one))
    return _short(*found)


def in_repository(tree: Tree, path: str, covered: Container[str] = ()) -> Iterator[Finding]:
    """Yield the findings of one repository but those in some files and folders, which the sandbox covers."""
    try:
        fd = tree.folder(path)
    except OSError as err:
        if err.errno in atomic.FAILING:
            raise
        return
    with closing(fd):
        yield from _settings(tree, path, fd, "config", path, included_only=f"{path}/config" in covered)
        yield from _settings(tree, path, fd, "config.worktree", path)
        yield from _hooks(tree, path, fd, linked_only=f"{path}/hooks" in covered)
        for name in (*_STEPS, *_STRATEGIES):
            yield from _steps(path, fd, name)
        yield from _pointer(tree, path, fd, "commondir")


def _pointer(tree: Tree, path: str, fd: int, name: str) -> Iterator[Finding]:
    """Yield a file by which git takes a folder outside the project for a repository, or settings from one.

    So is one that names its folder by a link or in another way than git writes it: who reads it may come to another place.
    """
    data, why = content(fd, name)
    file = f"{path}/{name}" if path else name
    if why:
        yield Finding(file, why, "")
    elif data is not None and (target := repositories.named_by(data, name)):
        place = os.path.join(tree.root, path, target)
        is_plain = b"\0" not in data and target == target.strip() and len(os.fsencode(place)) < beneath.PATH_MAX
        real = os.path.realpath(place)
        if not is_plain or os.path.normpath(place) != real or not f"{real}/".startswith(f"{tree.root}/"):
            yield Finding(file, "pointer", target)


def links(tree: Tree, folders: repositories.Listings, places: Iterable[str]) -> Iterator[Finding]:
    """Yield the links in repositories: git makes none there, and writes where one leads, as to its log and its messages."""
    inside = set(places)
    for path, listing in folders.items():
        if listing[4] and _is_gits(path, inside):
            with passing(), closing(tree.folder(path)) as fd:
                for name in listing[4]:
                    with passing():
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
        if is_path and key == "init.templatedir":
            yield from _named_hooks(tree, repository, f"{value}/hooks")
            yield from _included(tree, path, f"{value}/config", repository, included)
        if key.rpartition(".")[2] in repositories.STARTED and not key.startswith("alias."):
            yield from _named_programs(tree, repository, value)


def _named_programs(tree: Tree, repository: str, value: str) -> Iterator[Finding]:
    """Yield the files of the project that a repository's settings start, such as `filter.x.clean = tools/clean`, and load."""
    for target in programs.loaded(value, _work_tree(tree, repository)).there():
        yield from _program(tree, target)


def _program(tree: Tree, target: str) -> Iterator[Finding]:
    """Yield a file by its absolute path, where it lies in the project."""
    if target.startswith(f"{tree.root}/"):
        path = os.path.relpath(target, tree.root)
        folder, _, name = path.rpartition("/")
        with passing():
            with closing(tree.folder(folder)) as fd:
                digest = _digest(fd, name, os.lstat(name, dir_fd=fd))
            yield Finding(path, PROGRAM, digest)


def _digest(fd: int, name: str, info: os.stat_result) -> str:
    """Return a digest of a file; of one that is large or cannot be read, and of all else, its state."""
    data, _ = content(fd, name)
    return hashlib.sha256(data).hexdigest() if data is not None else _state(info)


def _state(info: os.stat_result) -> str:
    # The kernel sets the time of change, and no command can.
    return f"{info.st_ino} {info.st_mode} {info.st_size} {info.st_ctime_ns}"


def _work_tree(tree: Tree, repository: str) -> str:
    parent, name = os.path.split(repository)
    return os.path.join(tree.root, parent if name == ".git" else repository)


def in_linked(tree: Tree, work_tree: str) -> Iterator[Finding]:
    """Yield what the settings of a linked worktree or a submodule name in it; they may lie outside of the project."""
    with passing(), closing(tree.folder(work_tree)) as fd:
        if not stat.S_ISDIR(os.lstat(".git", dir_fd=fd).st_mode):
            yield from _pointer(tree, work_tree, fd, ".git")
    path = os.path.join(tree.root, work_tree)
    if folders := repositories.linked(path):
        yield from _outside(tree, f"{path}/.git", folders)


def _outside(tree: Tree, place: str, folders: tuple[str, str]) -> Iterator[Finding]:
    for folder, name in zip(reversed(folders), _CONFIGS, strict=True):
        with passing(), closing(os.open(folder, _FOLDER)) as fd:
            yield from _settings(tree, folder, fd, name, place, included_only=True)


def from_outside(tree: Tree, places: Iterable[str]) -> Iterator[Finding]:
    """Yield what is named in the project by the user's own settings, and by those of repositories in which it lies.

    Args:
        tree: the project.
        places: its repositories, and the `.git` of each work tree.
    """
    above = list(repositories.enclosing(tree.root))
    for work_tree in above:
        place = f"{work_tree}/.git"
        yield from _outside(tree, place, repositories.linked(work_tree) or (place, place))
    # A link in the home may lead to a file of the project. Most users have but one of them.
    files = [one for one in (*repositories.users_settings(), repositories.SYSTEMS) if os.path.lexists(one)]
    for place in dict.fromkeys((".git", *places, *(f"{one}/.git" for one in above))):
        for file in files:
            yield from _included(tree, "", file, place, set())


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
    """Yield the findings of a file that a repository's settings include; of one outside the project what it names in it.

    A command cannot write that one, and its own content is the user's.
    """
    named = os.path.join(tree.root, path, os.path.expanduser(value))
    target = os.path.realpath(named)
    if target in included:
        return
    included.add(target)
    is_outside = not target.startswith(f"{tree.root}/")
    if len(included) > _MOST_INCLUDED:
        # Each takes a process of git. So many are no one's own.
        yield from () if is_outside else [Finding(os.path.relpath(target, tree.root), "unreadable", "")]
        return
    folder, _, name = (target if is_outside else os.path.relpath(target, tree.root)).rpartition("/")
    with passing(), closing(os.open(folder, _FOLDER) if is_outside else tree.folder(folder)) as fd:
        if not is_outside:
            yield from _settings(tree, folder, fd, name, repository, included=included)
        # Git counts from the place by which it was named, whatever link that is.
        yield from _settings(tree, os.path.dirname(named), fd, name, repository, included_only=True, included=included)


def content(fd: int, name: str) -> tuple[bytes | None, str]:
    """Return a file's bytes, and why it has none that could be judged."""
    try:
        # One byte more than allowed shows that a file is too large to judge. A named pipe or a device would block git.
        data, _ = atomic.read_regular(name, _MAX_FILE + 1, dir_fd=fd, follow=False)
    except OSError as err:
        if err.errno in atomic.FAILING:
            raise
        link = err.errno in (errno.ELOOP, errno.EMLINK)
        return None, "link" if link else "" if err.errno in (errno.ENOENT, errno.ENOTDIR) else "unreadable"
    return (None, "unreadable") if len(data) > _MAX_FILE else (data, "")


def _hooks(tree: Tree, path: str, fd: int, *, linked_only: bool) -> Iterator[Finding]:
    """Yield a repository's hooks; with `linked_only` what links among them lead to in the project."""
    folder = f"{path}/hooks" if path else "hooks"
    try:
        hooks = _folder(fd, ("hooks",))
    except OSError as err:
        if err.errno in atomic.FAILING:
            raise
        if err.errno in (errno.ELOOP, errno.ENOTDIR):
            yield Finding(folder, "link", "")
        return
    with closing(hooks):
        yield from _hooks_in(tree, folder, hooks, linked_only=linked_only)


def _named_hooks(tree: Tree, repository: str, value: str) -> Iterator[Finding]:
    """Yield the hooks that a repository's settings look for among the project's own files, as husky has them."""
    target = os.path.realpath(os.path.join(_work_tree(tree, repository), os.path.expanduser(value)))
    # Those of Husky are in `_`, and start the files beside it; or they load what is there.
    for place in (target.removesuffix("/_"), f"{target.removesuffix('/_')}/_"):
        folder = os.path.relpath(place, tree.root)
        # `.git/hooks` is looked at by itself.
        if not place.startswith(f"{tree.root}/") or os.path.basename(os.path.dirname(place)) == ".git":
            continue
        with passing(), closing(tree.folder(folder)) as fd:
            yield from _hooks_in(tree, folder, fd)


def _hooks_in(tree: Tree, folder: str, hooks: int, *, linked_only: bool = False) -> Iterator[Finding]:
    # Git runs only files with a hook's exact name; one that runs may load any other (`. "$(dirname "$0")/lib.sh"`).
    for name in (one for one in os.listdir(hooks) if not one.endswith(".sample") and SUFFIX not in one):
        with passing():
            entry = os.lstat(name, dir_fd=hooks)
            if stat.S_ISLNK(entry.st_mode):
                if not linked_only:
                    # Whatever it leads to now: another file can be put there later.
                    yield Finding(f"{folder}/{name}", "hook", os.readlink(name, dir_fd=hooks))
                yield from _program(tree, os.path.realpath(os.path.join(tree.root, folder, name)))
            elif stat.S_ISREG(entry.st_mode) and not linked_only:
                yield Finding(f"{folder}/{name}", "hook", f"{entry.st_mode & 0o111:o} {_digest(hooks, name, entry)}")


def _steps(path: str, fd: int, name: str) -> Iterator[Finding]:
    data, why = content(fd, name)
    inner_path = f"{path}/{name}" if path else name
    if why:
        yield Finding(inner_path, why, "")
    elif data and name in _STRATEGIES:
        if b"/" in data:
            yield Finding(inner_path, "strategy", hashlib.sha256(data).hexdigest())
    elif data and (lines := EXEC.findall(data)):
        yield Finding(inner_path, "exec", hashlib.sha256(b"".join(lines)).hexdigest())

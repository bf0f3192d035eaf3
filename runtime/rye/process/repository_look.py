"""The look after a command: repositories and files below the root that make git or an editor start what the command named.

A repository that a command made or changed stays as it is, unless its settings, hooks or a list of steps to go on with name
programs. Those alone are moved aside, beside where they were (`….rye-set-aside`), and the result says so. What was there before
the command is the user's and stays.

Each command has a look before it and one after it. What the first one finds is the user's, unless another command was
running: then only what did not change since that one began, by the kernel's time of the last change, which no command can set.
What the second one finds besides was put there in between. A look reads only folders that changed since the last one
(`rye.workspace.repositories.listings`). What it found is stored in the project's state folder, with the commands that run; one
whose process was killed is looked for by the next look.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rye.config import user_dirs
from rye.fs import atomic, beneath, names
from rye.process import job_supervisor
from rye.workspace import protected_paths, repositories

if TYPE_CHECKING:
    from rye.workspace.workspace import Workspace

SUFFIX: Final = ".rye-set-aside"

_RECORD: Final = "repositories.json"
_FOLDERS: Final = "folders.json"
_DIGEST: Final = 64
_MAX_PARSED: Final = 1_000
_MAX_FILE: Final = 1 << 20
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
_CONFIGS: Final = ("config", "config.worktree")
_STEPS: Final = ("rebase-merge/git-rebase-todo", "sequencer/todo")
_EXEC: Final = re.compile(rb"^[ \t]*(?:x|exec)(?:[ \t].*)?(?:\n|\Z)", re.MULTILINE)
_MAX_INCLUDES: Final = 4
_SET_BACK: Final = 50_000_000
# File systems whose times of change are another machine's, or a program's.
_FOREIGN: Final = ("nfs", "cifs", "smb", "9p", "fuse", "virtiofs", "ceph", "afs", "lustre", "vboxsf", "drvfs")
_SHOWN: Final = 5
_NAME: Final = "protected name"
# The record: kinds of findings that stay; marks of those that could not be set aside; repositories; the commands that run, each
# with its process and when it began; and which settings start a program, by a digest of their file.
_SHAPE: Final = {"known": list, "refused": list, "places": list, "running": dict, "parsed": dict}


class _Tree(NamedTuple):
    """A project's root: its real path, and a descriptor of it."""

    root: str
    fd: int
    parsed: dict[str, Any]

    def folder(self, path: str) -> int:
        """Open a folder below it, through no link. Raises OSError."""
        parts = tuple(part for part in path.split("/") if part)
        return beneath.open_unlinked(self.fd, parts, os.O_RDONLY | os.O_DIRECTORY)


@contextlib.contextmanager
def _tree(root: str, identity: Sequence[int]) -> Iterator[_Tree]:
    """Open a project; raises OSError, also where another folder has taken its path."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        info = os.fstat(fd)
        if (info.st_dev, info.st_ino) != tuple(identity):
            raise OSError(errno.ESTALE, "another folder has taken the project's path")
        yield _Tree(root, fd, {})
    finally:
        os.close(fd)


class Finding(NamedTuple):
    """Something in a repository that makes git start a program.

    Attributes:
        path: the file that holds it, from the project's root.
        what: the setting's key, `hook`, `exec`, `link`, `unreadable`, or `protected name`.
        value: what it says; of a hook its digest.
        changed: when the file, its folder or the repository's was changed last (ns).
        place: the repository's folder; of a protected name nothing.
    """

    path: str
    what: str
    value: str
    changed: int
    place: str = ""

    @property
    def mark(self) -> str:
        """What tells it from others, in a short word."""
        return _short(self.path, self.what, self.value)

    @property
    def kind(self) -> str:
        """What tells which program it starts, wherever it lies: a copy of the user's own starts no other one."""
        return _short(os.path.basename(self.path), self.what, self.value)


def _short(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


class Look(NamedTuple):
    """A look that is to be made when a command is over.

    Attributes:
        root: the real path of the project.
        token: what the record knows the command by; empty: no look is made.
        own: the sandbox keeps the settings and hooks of the project's own repository from being changed.
        names: the protected names that the user has not allowed. The look does not read the settings for them: a job's
            supervisor makes it, and starts without the packages that reading settings needs.
        began: when the command began (ns), by the clock of files.
        identity: device and inode of the root.
    """

    root: str
    token: str
    own: bool
    names: Sequence[str]
    began: int
    identity: Sequence[int]


def begin(ws: Workspace, report: dict[str, Any], *, covered: bool = True) -> Look:
    """Look what the user has, and note that a command begins. Where no sandbox was asked for, no look is made.

    Where it cannot be made, the report lists `protected_names` as missing.

    Args:
        ws: the project.
        report: the sandbox's report.
        covered: the sandbox covers `.git` in the root; it does not where there was none.
    """
    if report["kind"] == "none" or "project_read_only" in report["holds"]:
        return Look(ws.real, "", own=False, names=(), began=0, identity=ws.identity)
    token = os.urandom(8).hex()
    held = [name for name in protected_paths.NAMES if name not in protected_paths.allowed()]
    own = covered and "protected_names" in report["holds"]
    look = Look(ws.real, token, own, held, repositories.clock(), ws.identity)
    try:
        with _tree(look.root, look.identity) as tree:
            before = _stored(_path(tree))
            found, places = _all(tree, before, held, own=False)
            with _record(tree) as record:
                users = _of_the_user(tree.root, found, before, record, look.began, places)
                # What is gone is the user's no more: a command could make it again.
                there = {one.kind for one in found}
                record["known"] = sorted(there.intersection(record["known"] or ()) | users)
                record["places"] = sorted({*record["places"], *places} if record["running"] else places)
                record["parsed"] = tree.parsed
                record["running"][token] = [job_supervisor.own_identity(), look.began, time.monotonic_ns()]
    except (OSError, repositories.TooLargeError) as err:
        # No look rather than no command: without the record nothing can be compared.
        why = f"{err.strerror}" if isinstance(err, OSError) else "it has too many files"
        _miss(report, f"the project cannot be looked through after the command: {why}")
        return look._replace(token="")
    return look


def _miss(report: dict[str, Any], why: str) -> None:
    if "protected_names" in report["holds"]:
        report["holds"].remove("protected_names")
        report["missing"]["protected_names"] = why


def _of_the_user(
    root: str, found: list[Finding], before: dict[str, Any], record: dict[str, Any], began: int, places: list[str]
) -> set[str]:
    """Return the kinds of what the user made: all of it while no command ran, else what none of those can have made."""
    refused = {*before["refused"], *record["refused"]}
    fresh = [one for one in found if one.mark not in refused]
    running = [*before["running"].values(), *record["running"].values()]
    if not running and {**before, "parsed": 0} == {**record, "parsed": 0}:
        return {one.kind for one in fresh}
    since = 0 if _foreign_clock(root) else min([began, *map(_since, running)])
    # A repository that was none before may have been put together out of old files.
    new = set(places).difference(record["places"])
    return {one.kind for one in fresh if one.changed < since and one.place not in new}


def take_over(look: Look) -> None:
    """Become the process that will make the look."""
    with suppress(OSError), _tree(look.root, look.identity) as tree, _record(tree) as record:
        if look.token in record["running"]:
            record["running"][look.token][0] = job_supervisor.own_identity()


def end(look: Look, report: dict[str, Any], root_fd: int) -> list[dict[str, str]]:
    """Look what commands left behind, set it aside, and return what was done.

    Args:
        look: what `begin` returned.
        report: the sandbox's report: what cannot be set aside makes `protected_names` missing.
        root_fd: an open descriptor of the project: it may have another path by now.

    Returns:
        `{"path", "what", "stored"}` for each; `stored` is empty where it could not be set aside.
    """
    if not look.token:
        return []
    try:
        with _tree(beneath.real_path(root_fd, look.root), look.identity) as tree:
            done = _look(tree, look)
    except FileNotFoundError:
        # The project is gone.
        return []
    except repositories.TooLargeError:
        done = [{"path": ".", "what": "the project has too many files to be looked through", "stored": ""}]
    except OSError as err:
        done = [{"path": ".", "what": f"the look failed: {err.strerror}", "stored": ""}]
    if any(not one["stored"] for one in done):
        _miss(report, "what the command put there could not be set aside")
    return done


def _look(tree: _Tree, look: Look) -> list[dict[str, str]]:
    before = _stored(_path(tree))
    found, places = _all(tree, before, look.names, own=look.own)
    known, refused = set(before["known"] or ()), set(before["refused"])
    # The record was lost while the command ran: then only the time is left to judge by.
    since = look.began if look.token not in before["running"] else 0
    bad = [one for one in found if one.mark in refused or (one.kind not in known and one.changed >= since)]
    # Outside the lock: searching a large project takes seconds, and other commands must be able to begin.
    done, left = _set_aside(tree, bad)
    kinds = {one.kind for one in bad}
    with _record(tree) as record:
        # What a command that began meanwhile found is not lost.
        begun = set(record["known"] or ()) - known
        record["known"] = sorted({one.kind for one in found} - kinds | begun)
        record["refused"] = sorted({one.mark for one in left})
        record["places"], record["parsed"] = places, tree.parsed
        for other, (process, *_) in list(record["running"].items()):
            # Also forget commands whose process was killed: their early start would make every later change suspect.
            if other == look.token or (other in before["running"] and job_supervisor.identity(process["pid"]) != process):
                record["running"].pop(other, None)
    return done


def message(done: list[dict[str, str]]) -> str:
    """Say in one line what was set aside; empty for nothing."""
    if not done:
        return ""
    listed = "; ".join(_said(one) for one in done[:_SHOWN])
    more = f"; and {len(done) - _SHOWN} more" if len(done) > _SHOWN else ""
    return (
        f"[sandbox: git or another program of the user would act on what the command put here. Set aside: {listed}{more}. "
        "Only the user can put it back.]"
    )


def _said(one: dict[str, str]) -> str:
    place = f"stored in {one['stored']}" if one["stored"] else "NOT set aside: remove it before you use git there"
    what = one["path"] if one["what"] == _NAME else f"{one['what']} of {one['path']}"
    return f"{what} ({place})"


# --- what there is ---


def _all(tree: _Tree, record: dict[str, Any], held: Sequence[str], *, own: bool) -> tuple[list[Finding], list[str]]:
    """Return all findings of a project, and its repositories. Raises OSError and TooLargeError."""
    listed = _listed(tree)
    places = sorted(repositories.find(tree.root, listed))
    # What git's parser said of files that are the same is not asked again.
    tree.parsed.update(record["parsed"] if len(record["parsed"]) < _MAX_PARSED else {})
    found = [one for path in places for one in _in_repository(tree, path, own=own)]
    return [*found, *_at_names(tree, held, own=own)], places


def _listed(tree: _Tree) -> repositories.Listings:
    """Return the folders of a project; those that have not changed since the last look are not read again."""
    path = f"{user_dirs.state_dir(tree.fd)}/{_FOLDERS}"
    known = {} if _foreign_clock(tree.root) else _folders(path)
    found = repositories.listings(tree.root, known)
    if found != known:
        body = json.dumps(found).encode()
        # A cache: where it cannot be written, the next look reads everything.
        with suppress(OSError):
            atomic.write(path, hashlib.sha256(body).hexdigest().encode() + body, 0o600, durably=False)
    return found


def _folders(path: str) -> repositories.Listings:
    try:
        with open(path, "rb") as file:
            digest, body = file.read(_DIGEST), file.read()
        # Damaged, it could hide a folder: JSON alone would not tell.
        if hashlib.sha256(body).hexdigest().encode() == digest:
            found: repositories.Listings = json.loads(body)
            return found
    except OSError:
        pass
    return {}


def _at_names(tree: _Tree, held: Sequence[str], *, own: bool) -> Iterator[Finding]:
    """Yield the files at the names that editors, shells and the like act on; `own`: the sandbox covers those that it can."""
    for name in held:
        if own and name in protected_paths.ALSO_ABSENT:
            continue
        with suppress(OSError):
            info = os.lstat(name, dir_fd=tree.fd)
            target = os.readlink(name, dir_fd=tree.fd) if stat.S_ISLNK(info.st_mode) else ""
            yield Finding(name, _NAME, target, info.st_ctime_ns)


def _in_repository(tree: _Tree, path: str, *, own: bool = False) -> Iterator[Finding]:
    """Yield the findings of one repository; `own`: what the sandbox covers of the project's own is passed over."""
    try:
        fd = tree.folder(path)
    except OSError:
        return
    covered = own and path == ".git"
    try:
        # An old file that was moved into a repository changes the folder, and only that.
        changed = os.fstat(fd).st_ctime_ns
        found = [*_settings(tree, path, fd, "config", included_only=covered), *_settings(tree, path, fd, "config.worktree")]
        found += [] if covered else _hooks(path, fd)
        for name in _STEPS:
            found += _steps(path, fd, name)
    finally:
        os.close(fd)
    yield from (one._replace(changed=max(one.changed, changed), place=path) for one in found)


def _settings(tree: _Tree, path: str, fd: int, name: str, *, included_only: bool = False, depth: int = 0) -> Iterator[Finding]:
    file = f"{path}/{name}" if path else name
    data, changed, why = _content(fd, name)
    if why and not included_only:
        yield Finding(file, why, "", changed)
    if data is None or (included_only and b"include" not in data.lower()):
        return
    found = _programs(tree, path, data)
    if found is None and not included_only:
        yield Finding(file, "unreadable", hashlib.sha256(data).hexdigest(), changed)
    for key, value in found or ():
        if not included_only:
            yield Finding(file, key, value, changed)
        if key.startswith("include") and depth < _MAX_INCLUDES:
            yield from _included(tree, path, value, depth + 1)


def _programs(tree: _Tree, path: str, data: bytes) -> list[tuple[str, str]] | None:
    """Return the settings of a file that start a program; None where git cannot read it."""
    # A cold supervisor starts without it.
    from rye.process import git_settings

    # The folder counts as well: it decides where a relative path leads.
    digest = hashlib.sha256(os.fsencode(path) + b"\0" + data).hexdigest()
    if digest not in tree.parsed:
        try:
            tree.parsed[digest] = git_settings.programs(data, os.path.join(tree.root, path), tree.root)
        except git_settings.UnreadableError:
            # Not kept: git may be installed, or be quicker, the next time.
            return None
    return [(key, value) for key, value in tree.parsed[digest]]


def _included(tree: _Tree, path: str, value: str, depth: int) -> Iterator[Finding]:
    """Yield the findings of a file of the project that a repository's settings include: a command may write it."""
    # Only files of the project: a command cannot write others, and their content is the user's.
    target = os.path.realpath(os.path.join(tree.root, path, value))
    if not target.startswith(f"{tree.root}/"):
        return
    folder, _, name = os.path.relpath(target, tree.root).rpartition("/")
    with suppress(OSError):
        fd = tree.folder(folder)
        try:
            yield from _settings(tree, folder, fd, name, depth=depth)
        finally:
            os.close(fd)


def _content(fd: int, name: str) -> tuple[bytes | None, int, str]:
    """Return a file's bytes, when it or its folder was changed, and why it has no bytes that could be judged."""
    folder = os.fstat(fd).st_ctime_ns
    try:
        at = os.open(name, _READ, dir_fd=fd)
    except OSError as err:
        link = err.errno in (errno.ELOOP, errno.EMLINK)
        return None, folder, "link" if link else "" if err.errno in (errno.ENOENT, errno.ENOTDIR) else "unreadable"
    try:
        info = os.fstat(at)
        changed = max(info.st_ctime_ns, 0)
        # A named pipe or a device would block git, or give it other bytes at each read.
        if not stat.S_ISREG(info.st_mode):
            return None, changed, "unreadable"
        # One byte more than allowed shows that a file is too large to judge.
        data = os.pread(at, _MAX_FILE + 1, 0)
        return (None, changed, "unreadable") if len(data) > _MAX_FILE else (data, changed, "")
    finally:
        os.close(at)


def _hooks(path: str, fd: int) -> Iterator[Finding]:
    folder = f"{path}/hooks" if path else "hooks"
    try:
        hooks = os.open("hooks", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
    except OSError as err:
        if err.errno in (errno.ELOOP, errno.ENOTDIR):
            yield Finding(folder, "link", "", os.lstat("hooks", dir_fd=fd).st_ctime_ns)
        return
    try:
        changed = os.fstat(hooks).st_ctime_ns
        # Git runs only files with a hook's exact name; `pre-commit.sample` has a dot.
        for name in (one for one in os.listdir(hooks) if "." not in one):
            with suppress(OSError):
                entry = os.lstat(name, dir_fd=hooks)
                found = max(entry.st_ctime_ns, changed)
                if stat.S_ISLNK(entry.st_mode):
                    # Whatever it leads to now: another file can be put there later.
                    yield Finding(f"{folder}/{name}", "hook", os.readlink(name, dir_fd=hooks), found)
                elif stat.S_ISREG(entry.st_mode) and entry.st_mode & 0o111:
                    data, _, _ = _content(hooks, name)
                    digest = hashlib.sha256(data).hexdigest() if data is not None else str(entry.st_ino)
                    yield Finding(f"{folder}/{name}", "hook", digest, found)
    finally:
        os.close(hooks)


def _steps(path: str, fd: int, name: str) -> Iterator[Finding]:
    folder, _, file = name.partition("/")
    try:
        at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
    except OSError:
        return
    try:
        data, changed, why = _content(at, file)
        changed = max(changed, os.fstat(at).st_ctime_ns)
    finally:
        os.close(at)
    shown = f"{path}/{name}" if path else name
    if why:
        yield Finding(shown, why, "", changed)
    elif data and (lines := _EXEC.findall(data)):
        yield Finding(shown, "exec", hashlib.sha256(b"".join(lines)).hexdigest(), changed)


# --- setting aside ---


def _set_aside(tree: _Tree, bad: list[Finding]) -> tuple[list[dict[str, str]], list[Finding]]:
    """Set findings aside; return what was done, and those that could not be."""
    by_file: dict[str, list[Finding]] = {}
    for one in bad:
        by_file.setdefault(one.path, []).append(one)
    done, left = [], []
    for path, found in by_file.items():
        what = ", ".join(dict.fromkeys(names.show(one.what.encode("utf-8", "surrogateescape")) for one in found))
        try:
            stored = _set_file_aside(tree, path, found)
        except OSError:
            stored = ""
            left += found
        done.append({"path": names.show(os.fsencode(path)), "what": what, "stored": names.show(os.fsencode(stored))})
    return done, left


def _set_file_aside(tree: _Tree, path: str, found: list[Finding]) -> str:
    """Move what was found out of a file, and return the name under which the file as it was is stored. Raises OSError."""
    folder, _, name = path.rpartition("/")
    fd = tree.folder(folder)
    try:
        stored = _free_name(fd, name)
        rest = _rest(tree, folder, fd, name, found)
        # Read mode and owner before the rename: the new file gets the same.
        before = os.lstat(name, dir_fd=fd)
        os.rename(name, stored, src_dir_fd=fd, dst_dir_fd=fd)
        if rest is not None:
            # O_EXCL: a command that still runs could put a link at the free name.
            at = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=fd)
            with open(at, "wb") as file:
                with suppress(OSError):
                    os.fchown(at, before.st_uid, before.st_gid)
                # Without the setuid bits, which a file of settings never needs.
                os.fchmod(at, before.st_mode & 0o777)
                file.write(rest)
    finally:
        os.close(fd)
    return f"{folder}/{stored}" if folder else stored


def _rest(tree: _Tree, folder: str, fd: int, name: str, found: list[Finding]) -> bytes | None:
    """Return what stays of a file; None where nothing of it can."""
    from rye.process import git_settings

    whats = {one.what for one in found}
    data, _, _ = _content(fd, name)
    if data is None or whats & {"hook", "link", "unreadable", _NAME}:
        return None
    if whats == {"exec"}:
        return _EXEC.sub(b"", data)
    settings = [(one.what, one.value) for one in found]
    try:
        rest = git_settings.without(data, settings, user_dirs.state_dir(tree.fd))
        still = git_settings.programs(rest, os.path.join(tree.root, folder), tree.root)
    except git_settings.UnreadableError:
        return None
    # Judge the result again: git may read a malformed file in another way than the removal did.
    return None if set(still) & set(settings) else rest


def _free_name(fd: int, name: str) -> str:
    taken = set(os.listdir(fd))
    names = (f"{name}{SUFFIX}{number or ''}" for number in range(10_000))
    return next((one for one in names if one not in taken), f"{name}{SUFFIX}.{os.urandom(4).hex()}")


# --- the record ---


def _since(one: list[Any]) -> int:
    """Return from when on changes are a command's: earlier than it says, should the clock have been set back."""
    _, wall, steady = one
    # The steady clock cannot be set: it tells when the command began by today's wall clock.
    by_now = time.time_ns() - (time.monotonic_ns() - steady)
    return int(wall if wall - by_now < _SET_BACK else by_now)


def _foreign_clock(root: str) -> bool:
    """Tell whether the project lies on a file system whose times of change are not this machine's."""
    device = os.stat(root).st_dev
    named = f"{os.major(device)}:{os.minor(device)}"
    with suppress(OSError), open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            fields = line.split()
            if fields[2] == named:
                # The number of optional fields varies; the file system's type follows the lone dash.
                return fields[fields.index("-") + 1].startswith(_FOREIGN)
    return False


@contextlib.contextmanager
def _record(tree: _Tree) -> Iterator[dict[str, Any]]:
    """Give the record to change, under its lock. Raises OSError."""
    path = _path(tree)
    with atomic.locked(f"{path}.lock"):
        record = _stored(path)
        before = json.dumps(record)
        yield record
        after = json.dumps(record)
        if after != before:
            atomic.write(path, after.encode(), 0o600, durably=False)


def _path(tree: _Tree) -> str:
    return f"{user_dirs.state_dir(tree.fd)}/{_RECORD}"


def _stored(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read())
        if all(isinstance(found[name], kind) for name, kind in _SHAPE.items()):
            return {name: found[name] for name in _SHAPE}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {"known": None, "refused": [], "places": [], "running": {}, "parsed": {}}

"""The look after a command: repositories and files below the root that make git or an editor start what the command named.

A repository that a command made or changed stays as it is, unless its settings, hooks or a list of steps to go on with name
programs. Those alone are moved aside, beside where they were (`….rye-set-aside`), and the result says so. What was there before
the command is the user's and stays.

Changes are found by the kernel's time of the last change (ctime), which no command can set: it is compared with the
beginning of the earliest command whose look has not been made. What was found before is stored in the project's state folder,
with the commands that run; one whose process was killed is looked for by the next look.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from rye.config import user_dirs
from rye.fs import atomic, beneath, names
from rye.process import job_supervisor
from rye.workspace import protected_paths, repositories

SUFFIX: Final = ".rye-set-aside"

_RECORD: Final = "repositories.json"
_MAX_FILE: Final = 1 << 20
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
_CONFIGS: Final = ("config", "config.worktree")
_STEPS: Final = ("rebase-merge/git-rebase-todo", "sequencer/todo")
_EXEC: Final = re.compile(rb"^[ \t]*(?:x|exec)(?:[ \t].*)?(?:\n|\Z)", re.MULTILINE)
_MAX_INCLUDES: Final = 4
# The clock of a file's times: it goes on by ticks, so the usual one is ahead of it.
_CLOCK: Final = getattr(time, "CLOCK_REALTIME_COARSE", 5)
_SET_BACK: Final = 50_000_000
# File systems whose times of change are another machine's, or a program's.
_FOREIGN: Final = ("nfs", "cifs", "smb", "9p", "fuse", "virtiofs", "ceph", "afs", "lustre", "vboxsf", "drvfs")
_SHOWN: Final = 5
_NAME: Final = "protected name"
# The record: marks of findings that stay, and of those that could not be set aside; repositories seen; when the last look was
# made; the commands that run, each with its process and when it began.
_SHAPE: Final = {"known": list, "refused": list, "places": list, "looked": int, "running": dict}


class _Tree(NamedTuple):
    """A project's root: its real path, and a descriptor of it."""

    root: str
    fd: int

    def folder(self, path: str) -> int:
        """Open a folder below it, through no link. Raises OSError."""
        parts = tuple(part for part in path.split("/") if part)
        return beneath.open_unlinked(self.fd, parts, os.O_RDONLY | os.O_DIRECTORY)


@contextlib.contextmanager
def _tree(root: str) -> Iterator[_Tree]:
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield _Tree(root, fd)
    finally:
        os.close(fd)


class Finding(NamedTuple):
    """Something in a repository that makes git start a program.

    Attributes:
        path: the file that holds it, from the project's root.
        what: the setting's key, `hook`, `exec`, `link`, `unreadable`, or `protected name`.
        value: what it says; of a hook its digest.
        changed: when the file or its folder was changed last (ns).
    """

    path: str
    what: str
    value: str
    changed: int

    @property
    def mark(self) -> str:
        """What tells it from others, in a short word."""
        text = f"{self.path}\0{self.what}\0{self.value}"
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


class Look(NamedTuple):
    """A look that is to be made when a command is over.

    Attributes:
        root: the real path of the project.
        token: what the record knows the command by; empty: no look is made.
        own: the sandbox keeps the settings and hooks of the project's own repository from being changed.
        names: the protected names that the user has not allowed. The look does not read the settings for them: a job's
            supervisor makes it, and starts without the packages that reading settings needs.
    """

    root: str
    token: str
    own: bool
    names: Sequence[str]


def begin(root: str, report: dict[str, Any], *, job: bool = False, covered: bool = True) -> Look:
    """Note that a command begins. Where no sandbox was asked for, or the state folder cannot be written, no look is made.

    Args:
        root: the real path of the project.
        report: the sandbox's report.
        job: it may run while the user's own git replaces the settings of the project's repository.
        covered: the sandbox covers `.git` in the root; it does not where there was none.
    """
    token = os.urandom(8).hex() if report["kind"] != "none" and "project_read_only" not in report["holds"] else ""
    held = [name for name in protected_paths.NAMES if name not in protected_paths.allowed()]
    look = Look(root, token, covered and "protected_names" in report["holds"], held)
    if not token:
        return look
    try:
        with _tree(root) as tree, _record(root) as record:
            # The first command in this project: whatever is there now is the user's.
            if record["known"] is None:
                record["places"] = sorted(repositories.find(tree.root))
                found = (one for path in record["places"] for one in _in_repository(tree, path))
                record["known"] = sorted({one.mark for one in (*found, *_at_names(tree, held, own=False))})
            else:
                record["known"] = sorted({*record["known"], *(one.mark for one in _of_the_user(tree, record, held, job=job))})
            record["running"][token] = [job_supervisor.own_identity(), _now(), time.monotonic_ns()]
    except (OSError, repositories.TooLargeError):
        # No look rather than no command: without the record nothing can be compared.
        return look._replace(token="")
    return look


def _of_the_user(tree: _Tree, record: dict[str, Any], held: Sequence[str], *, job: bool) -> Iterator[Finding]:
    """Yield what the user made after the last look and before any command that runs, at names and in known repositories."""
    # What appeared while any command ran may be that command's, so it is not taken for the user's.
    before = min((_since(one) for one in record["running"].values()), default=sys.maxsize)
    # A time alone does not tell it from what the command makes: the clock of files goes on by ticks of some milliseconds.
    yield from (one for one in _at_names(tree, held, own=False) if one.changed < before)
    for path in record["places"]:
        if (job and path == ".git") or _changed(tree, path) >= record["looked"]:
            yield from (one for one in _in_repository(tree, path) if one.changed < before)


def _changed(tree: _Tree, path: str) -> int:
    """Return when a repository's settings were changed last (ns)."""
    try:
        fd = tree.folder(path)
    except OSError:
        return 0
    try:
        return max(_content(fd, name)[1] for name in _CONFIGS)
    finally:
        os.close(fd)


def take_over(look: Look) -> None:
    """Become the process that will make the look."""
    with suppress(OSError), _record(look.root) as record:
        if look.token in record["running"]:
            record["running"][look.token][0] = job_supervisor.own_identity()


def end(look: Look) -> list[dict[str, str]]:
    """Look what commands left behind, set it aside, and return what was done.

    Returns:
        `{"path", "what", "stored"}` for each; `stored` is empty where it could not be set aside.
    """
    if not look.token:
        return []
    try:
        with _tree(look.root) as tree:
            return _look(tree, look)
    except repositories.TooLargeError:
        return [{"path": ".", "what": "the project has too many files to be looked through", "stored": ""}]
    except OSError as err:
        return [{"path": ".", "what": f"the look failed: {err.strerror}", "stored": ""}]


def _look(tree: _Tree, look: Look) -> list[dict[str, str]]:
    token, own = look.token, look.own
    with _record(tree.root) as record:
        running, known, refused = dict(record["running"]), set(record["known"] or ()), set(record["refused"])
    since = 0 if _foreign_clock(tree.root) else min((_since(one) for one in running.values()), default=0)
    # The time is taken first: a change during the search counts as later than the look.
    now, places = _now(), sorted(repositories.find(tree.root))
    found = [one for path in places for one in _in_repository(tree, path, own=own)]
    found += _at_names(tree, look.names, own=own)
    bad = [one for one in found if one.mark in refused or (one.changed >= since and one.mark not in known)]
    # Outside the lock: searching a large project takes seconds, and other commands must be able to begin.
    done, left = _set_aside(tree, bad)
    marks = {one.mark for one in bad}
    with _record(tree.root) as record:
        record["known"] = sorted({one.mark for one in found} - marks)
        record["refused"] = sorted({one.mark for one in left})
        record["places"], record["looked"] = places, now
        for other, (process, *_) in running.items():
            # Also forget commands whose process was killed: their early start would make every later change suspect.
            if other == token or job_supervisor.identity(process["pid"]) != process:
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
        yield from _settings(tree, path, fd, "config", included_only=covered)
        yield from _settings(tree, path, fd, "config.worktree")
        if not covered:
            yield from _hooks(path, fd)
        for name in _STEPS:
            yield from _steps(path, fd, name)
    finally:
        os.close(fd)


def _settings(tree: _Tree, path: str, fd: int, name: str, *, included_only: bool = False, depth: int = 0) -> Iterator[Finding]:
    # A cold supervisor starts without it.
    from rye.process import git_settings

    file = f"{path}/{name}" if path else name
    data, changed, why = _content(fd, name)
    if why and not included_only:
        yield Finding(file, why, "", changed)
    if data is None or (included_only and b"include" not in data.lower()):
        return
    try:
        found = git_settings.programs(data, os.path.join(tree.root, path), tree.root)
    except git_settings.UnreadableError:
        found = []
        if not included_only:
            yield Finding(file, "unreadable", hashlib.sha256(data).hexdigest(), changed)
    for key, value in found:
        if not included_only:
            yield Finding(file, key, value, changed)
        if key.startswith("include") and depth < _MAX_INCLUDES:
            yield from _included(tree, path, value, depth + 1)


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
        for name in os.listdir(hooks):
            with suppress(OSError):
                info = os.stat(name, dir_fd=hooks)
                # Git runs only executable files with a hook's exact name; `pre-commit.sample` has a dot.
                if "." in name or not stat.S_ISREG(info.st_mode) or not info.st_mode & 0o111:
                    continue
                # The link and its target: replacing either one changes what git runs.
                entry = os.lstat(name, dir_fd=hooks)
                data, _, _ = _content(hooks, name)
                digest = hashlib.sha256(data).hexdigest() if data is not None else str(entry.st_ino)
                yield Finding(f"{folder}/{name}", "hook", digest, max(info.st_ctime_ns, entry.st_ctime_ns))
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
        rest = git_settings.without(data, settings, user_dirs.state_dir(tree.root))
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


def _now() -> int:
    return time.clock_gettime_ns(_CLOCK) if sys.platform.startswith("linux") else time.time_ns()


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
def _record(root: str) -> Iterator[dict[str, Any]]:
    """Give the record to change, under its lock. Raises OSError."""
    path = f"{user_dirs.state_dir(root)}/{_RECORD}"
    with atomic.locked(f"{path}.lock"):
        record = _stored(path)
        before = json.dumps(record)
        yield record
        after = json.dumps(record)
        if after != before:
            atomic.write(path, after.encode(), 0o600, durably=False)


def _stored(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read())
        if all(isinstance(found[name], kind) for name, kind in _SHAPE.items()):
            return {name: found[name] for name in _SHAPE}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {"known": None, "refused": [], "places": [], "looked": 0, "running": {}}

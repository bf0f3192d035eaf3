"""The look after a command: repositories and files below the root that make git or an editor start what the command named.

A repository that a command made or changed stays as it is, unless its settings, hooks or a list of steps to go on with name
programs. Those alone are moved aside, beside where they were (`….rye-set-aside`), and the result says so. What was there before
the command is the user's and stays.

What is the user's is one baseline: what was there while nothing of ours ran, by its place and content. Each command has a look
before it and one after it. The first renews the baseline where nothing else of ours is alive; the second sets aside what is not
in it. A file that one of our own tools wrote last is not the user's. What a person changes while a job runs cannot be told from
what the job does: it is set aside too, and `rye trust settings PATH` brings it back. A look reads only folders that changed
since the last one (`rye.workspace.repositories.listings`), and judges all that it finds. Where the process of a command was
killed, the next look makes up for it.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Final, NamedTuple

from rye.call.results import first_few
from rye.config import user_dirs
from rye.fs import atomic, beneath, names
from rye.fs.atomic import closing
from rye.process.autorun import findings
from rye.process.autorun.findings import SUFFIX, Finding, Tree
from rye.process.mount_watch import identity_at
from rye.sandbox.policy import Confined
from rye.snapshots import watch
from rye.workspace import protected_paths, repositories, running_commands
from rye.workspace.workspace import Workspace

_RECORD: Final = "repositories.json"
_FOLDERS: Final = "listings.json"
_DIGEST: Final = 64
_MAX_PARSED: Final = 1_000
_MOST_LISTED: Final = 1 << 30
# File systems whose times of change are another machine's, or a program's.
_FOREIGN: Final = ("nfs", "cifs", "smb", "9p", "fuse", "virtiofs", "ceph", "afs", "lustre", "vboxsf", "drvfs")
_TRIES: Final = 5
# Of a file in which one of these was found nothing can stay.
_WHOLE: Final = frozenset(("hook", "strategy", "link", "pointer", "unreadable", findings.NAME, findings.PROGRAM))
# Of the project's own repository the sandbox covers these, unless another file has taken their name.
_COVERED: Final = (".git/config", ".git/hooks")
# The record: marks of what is the user's, and of what could not be set aside; the commands after which no look was made yet;
# and the questionable settings of files, by their digest.
_SHAPE: Final = {"known": list, "refused": list, "running": list, "parsed": dict}


class Look(NamedTuple):
    """A look that is to be made when a command is over.

    Attributes:
        root: the real path of the project.
        token: of the command, see `rye.workspace.running_commands`; empty: no look is made.
        own: the sandbox keeps the settings and hooks of the project's own repository from being changed, and the names that
            it can cover.
        names: the protected names that the user has not allowed. The look does not read the settings for them: a job's
            supervisor makes it, and starts without the packages that reading settings needs.
        covered: the paths that the sandbox covers, each with its `rye.process.mount_watch.identity_at`. Where another
            file has taken one of them, the kernel has taken the mount off, and the command could write there.
        known: marks of what was the user's when the command began: the record may be lost meanwhile.
        identity: device and inode of the root.
    """

    root: str
    token: str
    own: bool
    names: Sequence[str]
    covered: Mapping[str, Sequence[int]]
    known: Sequence[str]
    identity: Sequence[int]


def begin(
    ws: Workspace,
    token: str,
    confined: Confined,
    ours: Callable[[Iterable[str]], set[str]],
    identities_before: Mapping[str, Sequence[int]],
) -> Look:
    """Look what the user has, and note that a command begins. Where no sandbox was asked for, no look is made.

    Where it cannot be made, the report lists `protected_names` as missing.

    Args:
        ws: the project.
        token: names the running command; empty where its record could not be begun.
        confined: the command.
        ours: returns those of some paths that one of our own tools wrote last; asked for what is new since the last look.
        identities_before: of what the sandbox covers, from before it was made.
    """
    report = confined.report
    if report["kind"] == "none" or "project_read_only" in report["holds"]:
        return Look(ws.real, "", own=False, names=(), covered={}, known=(), identity=ws.identity)
    forbidden = protected_paths.forbidden_names(ws.fd)
    # Where there was no `.git`, nothing covers one that the command makes.
    own = ".git" not in confined.absent and "protected_names" in report["holds"]
    look = Look(ws.real, token, own, forbidden, identities_before, (), ws.identity)
    try:
        if not token:
            raise OSError(errno.EIO, "the user's state folder cannot be used")
        with findings.opened(look.root, look.identity) as tree:
            before = atomic.shaped(_path(tree), _SHAPE)
            if "protected_names" not in report["holds"]:
                # Where something does not keep the names, as Landlock alone, each counts as one that the command can write.
                existing = protected_paths.existing_paths(tree.fd, forbidden)
                look = look._replace(covered={**identities_before, **{f"{ws.real}/{name}": (0, 0) for name in existing}})
            found = _all(tree, before, forbidden)
            refused, known = set(before["refused"]), set(before["known"])
            fresh = [one for one in found if one.mark not in known and one.mark not in refused]
            written = ours({one.path for one in fresh}) if fresh and not before["running"] else set()
            with _record(tree) as record:
                # Another command may have begun meanwhile.
                alone = not record["running"] and not before["running"]
                users = {one.mark for one in fresh if alone and one.path not in written}
                # What is gone is the user's no more: a command could make it again.
                record["known"] = sorted({one.mark for one in found} & (users | {*record["known"]}))
                record["parsed"] = tree.parsed
                record["running"].append(token)
                look = look._replace(known=record["known"])
    except OSError as err:
        # No look rather than no command: without the record nothing can be compared.
        _miss(report, f"the project cannot be looked through after the command: {err.strerror}")
        return look._replace(token="")
    return look


def _unmounted(tree: Tree, look: Look) -> set[str]:
    """Return the paths from the root whose mounts the kernel has taken off."""
    # The project may have been renamed since.
    at = {path: f"{tree.root}{path.removeprefix(look.root)}" for path in look.covered}
    return {
        os.path.relpath(at[path], tree.root) for path, known in look.covered.items() if identity_at(at[path]) != tuple(known)
    }


def _miss(report: dict[str, Any], why: str) -> None:
    if "protected_names" in report["holds"]:
        report["holds"].remove("protected_names")
        report["missing"]["protected_names"] = why


def end(look: Look, report: dict[str, Any], root_fd: int, *, over: bool = True) -> list[dict[str, str]]:
    """Look what commands left behind, set it aside, and return what was done.

    Args:
        look: what `begin` returned.
        report: the sandbox's report: what cannot be set aside makes `protected_names` missing.
        root_fd: an open descriptor of the project: it may have another path by now.
        over: the command has ended; else it is stopped for the look.

    Returns:
        `{"path", "what", "stored"}` for each; `stored` is empty where it could not be set aside.
    """
    if not look.token:
        return []
    try:
        with findings.opened(beneath.real_path(root_fd, look.root), look.identity) as tree:
            moved = _look(tree, look, over=over)
    except FileNotFoundError:
        # The project is gone.
        return []
    except OSError as err:
        moved = [{"path": ".", "what": f"the look failed: {err.strerror}", "stored": ""}]
    if any(not one["stored"] for one in moved):
        _miss(report, "what the command put there could not be set aside")
    return moved


def _look(tree: Tree, look: Look, *, over: bool) -> list[dict[str, str]]:
    before, unmounted = atomic.shaped(_path(tree), _SHAPE), _unmounted(tree, look)
    covered = {path for path in _COVERED if look.own and unmounted.isdisjoint((".git", path))}
    # Without the record what was there when the command began is what we know.
    known = set(before["known"] if look.token in before["running"] else look.known)

    def bad() -> list[Finding]:
        found = _all(tree, before, look.names, covered=covered, own=look.own, exactly=unmounted)
        return [one for one in found if one.mark not in known]

    # Outside the lock: searching a large project takes seconds, and other commands must be able to begin.
    moved: list[dict[str, str]] = []
    remaining: list[Finding] = []
    if bad():
        # One look after the other, and anew: the second could take what the first has left of a file.
        with atomic.locked(f"{_path(tree)}.aside"):
            moved, remaining = _set_aside(tree, bad())
    with _record(tree) as record:
        # What the sandbox covers was not looked at: it is the user's still. So is what the user has brought back meanwhile.
        record["known"] = sorted(known.union(record["known"]))
        record["refused"] = sorted({one.mark for one in remaining})
        record["parsed"] = tree.parsed
        # Also forget commands whose process was killed: while one is in the list, nothing new is the user's.
        ended = {one for one in before["running"] if not running_commands.is_alive(tree.fd, one)}
        ended |= {look.token} if over else set()
        record["running"] = [one for one in record["running"] if one not in ended]
    return moved


class Kept(NamedTuple):
    """A file that was set aside, or one that no look has judged yet.

    Attributes:
        path: its place, from the root.
        stored: the name in its folder under which it is stored; empty where nothing is.
        shown: what is in it for which it would be set aside, in words.
        digest: of its content.
    """

    path: str
    stored: str
    shown: list[str]
    digest: str


def kept(ws: Workspace, path: str) -> Kept:
    """Return what `bring_back` would bring back, and make the user's. Raises OSError: there is no such file.

    Args:
        ws: the project.
        path: the file's place, or the name under which it is stored.
    """
    place, mark, _ = path.partition(SUFFIX)
    with findings.opened(ws.real, ws.identity) as tree:
        folder, _, name = place.rpartition("/")
        with closing(tree.folder(folder)) as fd:
            stored = path.rpartition("/")[2] if mark else _newest_stored(fd, name)
            data, why = findings.content(fd, stored or name)
            os.lstat(stored or name, dir_fd=fd)
            digest = findings.digest_at(fd, stored or name)
        lines = [] if data is None else findings.settings_shown(tree, folder, data)
        return Kept(place, stored, lines or [why or "the file as a whole"], digest)


def _newest_stored(fd: int, name: str) -> str:
    found = [one for one in os.listdir(fd) if one.startswith(_stored_name(name))]
    return max(found, key=lambda one: os.lstat(one, dir_fd=fd).st_ctime_ns, default="")


def _swap(fd: int, name: str, other: str) -> None:
    """Exchange two names of a folder, of which the second may be of nothing. Raises OSError."""
    pair = os.fsencode(name), os.fsencode(other)
    try:
        beneath.rename(fd, *pair, beneath.EXCHANGE)
    except FileNotFoundError:
        beneath.rename(fd, *pair, beneath.NOREPLACE)


def bring_back(ws: Workspace, one: Kept) -> int:
    """Put a file back in its place, make what is in it the user's, and return how many findings that are.

    What is in its place now gets the other name. Raises OSError, also where the file is not the one that was shown.
    """
    with findings.opened(ws.real, ws.identity) as tree:
        folder, _, name = one.path.rpartition("/")
        with closing(tree.folder(folder)) as fd:
            if one.stored:
                _swap(fd, one.stored, name)
            if findings.digest_at(fd, name) != one.digest:
                if one.stored:
                    _swap(fd, name, one.stored)
                raise OSError(errno.ESTALE, "it was changed meanwhile")
        forbidden = protected_paths.forbidden_names(tree.fd)
        found = _all(tree, atomic.shaped(_path(tree), _SHAPE), forbidden)
        marks = {found_one.mark for found_one in found if f"{found_one.path}/".startswith(f"{one.path}/")}
        with _record(tree) as record:
            record["known"] = sorted(marks.union(record["known"]))
            record["refused"] = [mark for mark in record["refused"] if mark not in marks]
    return len(marks)


def message(moved: list[dict[str, str]]) -> str:
    """Say in one line what was set aside; empty for nothing."""
    if not moved:
        return ""
    places = first_few([*map(_in_words, moved)], between="; ")
    return (
        f"[sandbox: git or another program of the user would act on what the command put here. Set aside: {places}. "
        "What the user changed meanwhile cannot be told from it. Only the user can bring it back: `rye trust settings PATH`.]"
    )


def _in_words(one: dict[str, str]) -> str:
    place = f"stored in {one['stored']}" if one["stored"] else "NOT set aside: remove it before you use git there"
    subject = one["path"] if one["what"] in (findings.NAME, findings.PROGRAM) else f"{one['what']} of {one['path']}"
    return f"{subject} ({place})"


# --- what there is ---


def _all(
    tree: Tree,
    record: dict[str, Any],
    forbidden: Sequence[str],
    *,
    covered: Container[str] = (),
    own: bool = False,
    exactly: Container[str] | None = None,
) -> list[Finding]:
    """Return all findings of a project but those in what the sandbox covers; `own` and `exactly` as of `at_names`.

    Raises OSError.
    """
    folders = _folder_listings(tree)
    places = sorted(repositories.find(tree.root, folders))
    # A guard of file tools: where it cannot be stored, the look still judges what they write.
    with suppress(OSError):
        repositories.store_pointers(tree.fd, tree.root, folders, places)
    # What git's parser said of files that are the same is not asked again.
    tree.parsed.update(record["parsed"] if len(record["parsed"]) < _MAX_PARSED else {})
    found = [one for path in places for one in findings.in_repository(tree, path, covered)]
    trees = [path for path, listing in folders.items() if ".git" in listing[2]]
    found += [one for path in trees for one in findings.in_linked(tree, path)]
    found += [
        *findings.from_outside(tree, [*places, *(f"{path}/.git" for path in trees if path)]),
        *findings.links(tree, folders, places),
    ]
    return [*found, *findings.at_names(tree, forbidden, own=own, exactly=exactly)]


def _folder_listings(tree: Tree) -> repositories.Listings:
    """Return the folders of a project; those that have not changed since the last look are not read again."""
    path = f"{user_dirs.state_dir(tree.fd)}/{_FOLDERS}"
    root = os.stat(tree.root)
    watched = watch.known(root)
    is_foreign = (watch.type_of(root.st_dev) if watched is None else watched.type).startswith(_FOREIGN)
    known = {} if is_foreign else _parsed_folders(atomic.read(path, _MOST_LISTED) or b"")
    found = repositories.listings(tree.root, known)
    if found is not known and found != known:
        body = json.dumps(found).encode()
        # A cache: where it cannot be written, the next look reads everything.
        with suppress(OSError):
            atomic.write(path, hashlib.sha256(body).hexdigest().encode() + body, 0o600, durably=False)
    return found


@functools.lru_cache(maxsize=2)
def _parsed_folders(data: bytes) -> repositories.Listings:
    digest, body = data[:_DIGEST], data[_DIGEST:]
    # Damaged, it could hide a folder: JSON alone would not tell.
    if hashlib.sha256(body).hexdigest().encode() != digest:
        return {}
    found: repositories.Listings = json.loads(body)
    return found


# --- setting aside ---


def _set_aside(tree: Tree, bad: list[Finding]) -> tuple[list[dict[str, str]], list[Finding]]:
    """Set findings aside; return what was done, and those that could not be."""
    by_file: dict[str, list[Finding]] = {}
    for one in bad:
        by_file.setdefault(one.path, []).append(one)
    moved, remaining = [], []
    for path, found in by_file.items():
        reason = ", ".join(dict.fromkeys(names.show(one.what.encode("utf-8", "surrogateescape")) for one in found))
        try:
            try:
                stored = _set_file_aside(tree, path, found)
            except PermissionError:
                # A command may close a folder to its owner, whose programs act on what is in it all the same.
                with closing(tree.folder(path.rpartition("/")[0])) as fd:
                    os.fchmod(fd, os.fstat(fd).st_mode & 0o7777 | 0o700)
                stored = _set_file_aside(tree, path, found)
        except FileNotFoundError:
            continue
        except OSError:
            stored = ""
            remaining += found
        moved.append({"path": names.show(os.fsencode(path)), "what": reason, "stored": names.show(os.fsencode(stored))})
    return moved, remaining


def _set_file_aside(tree: Tree, path: str, found: list[Finding]) -> str:
    """Move what was found out of a file, and return the name under which the file as it was is stored. Raises OSError."""
    folder, _, name = path.rpartition("/")
    with closing(tree.folder(folder)) as fd:
        for tries_left in reversed(range(_TRIES)):
            stored = _free_name(fd, name)
            data, _ = findings.content(fd, name)
            rest = _rest(tree, folder, data, found)
            # Read mode and owner before the rename: the new file gets the same.
            before = os.lstat(name, dir_fd=fd)
            os.rename(name, stored, src_dir_fd=fd, dst_dir_fd=fd)
            if rest is None or not tries_left or findings.content(fd, stored)[0] == data:
                break
            # Another program, such as the person's git, has replaced it meanwhile: what that wrote is to stay.
            beneath.rename(fd, os.fsencode(stored), os.fsencode(name), beneath.NOREPLACE)
        if rest is not None:
            # O_EXCL: a command that still runs could put a link at the free name.
            at = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=fd)
            with open(at, "wb") as file:
                with suppress(OSError):
                    os.fchown(at, before.st_uid, before.st_gid)
                # Without the setuid bits, which a file of settings never needs.
                os.fchmod(at, before.st_mode & 0o777)
                file.write(rest)
    return f"{folder}/{stored}" if folder else stored


def _rest(tree: Tree, folder: str, data: bytes | None, found: list[Finding]) -> bytes | None:
    """Return what stays of a file; None where nothing of it can."""
    from rye.process.autorun import git_settings

    whats = {one.what for one in found}
    if data is None or whats & _WHOLE:
        return None
    if whats == {"exec"}:
        return findings.EXEC.sub(b"", data)
    settings = [(one.what, one.value) for one in found]
    try:
        rest = git_settings.without(data, settings, user_dirs.state_dir(tree.fd), tree.root)
        still = git_settings.refused(git_settings.questionable(rest, tree.root), os.path.join(tree.root, folder), tree.root)
    except git_settings.UnreadableError:
        return None
    # Judge the result again: git may read a malformed file in another way than the removal did.
    return None if set(still) & set(settings) else rest


def _free_name(fd: int, name: str) -> str:
    used = set(os.listdir(fd))
    names = (f"{_stored_name(name)}{number or ''}" for number in range(10_000))
    return next((one for one in names if one not in used), f"{_stored_name(name)}.{os.urandom(4).hex()}")


def _stored_name(name: str) -> str:
    # A name has 255 bytes at most.
    return f"{os.fsdecode(os.fsencode(name)[:200])}{SUFFIX}"


# --- the record ---


def _record(tree: Tree) -> AbstractContextManager[dict[str, Any]]:
    """Give the record to change, under its lock. Raises OSError."""
    return atomic.changing(_path(tree), _SHAPE)


def _path(tree: Tree) -> str:
    return f"{user_dirs.state_dir(tree.fd)}/{_RECORD}"

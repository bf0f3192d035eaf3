"""The files below a project's root as they stand, and what differs from how they stood before.

One walk compares every entry's time of the last change (ctime) and inode with those of the last walk. No program can set a
ctime, so what a command changes is found. Only what differs is read, and its content stored (`rye.snapshots.contents`).

Folders are opened one below the other by descriptor, through no link, so a walk beside a running command stays in the project.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from rye.errors import WorkspaceError
from rye.fs import beneath, stamps
from rye.fs.atomic import closing
from rye.snapshots import watch as watches
from rye.snapshots.states import FORMAT, PASSED, Change, Folders, Mark, State, is_passed, state_of
from rye.workspace import cache, repositories

if TYPE_CHECKING:
    from rye.snapshots.contents import Contents
    from rye.snapshots.watch import Watch

SKIPPED: Final = frozenset({
    *repositories.FOLDERS, ".ragix", "node_modules", ".venv", "venv", "__pycache__", ".mypy_cache", ".pytest_cache",
    ".ruff_cache", ".hypothesis", ".tox", ".nox", ".cache", ".gradle", ".terraform", ".next", ".nuxt", ".parcel-cache",
    ".turbo",
})  # fmt: skip
"""Folders with these names are made again by programs: they are not recorded, and neither is one with a `CACHEDIR.TAG`.

A tag, or git's own files, decide only of a folder of which nothing is recorded yet: no command takes files out of the record.
"""

MAX_ENTRIES: Final = 500_000
"""A project with more names is not recorded."""

_OWN: Final = ".ai"
_GIT: Final = ".git"
# Where the package itself stores what it remembers, by the folder that holds it: no change of a command.
_MEMORY: Final = {"": frozenset({cache.VIEWS}), _OWN: frozenset({"cache"})}
_MAX_DEPTH: Final = 200
_TAG: Final = "CACHEDIR.TAG"
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Longer than a tick of the clock of files (seconds).
_TICKS: Final = 0.04


class Scope(NamedTuple):
    """What a walk leaves out.

    Attributes:
        max_file: a larger file's content is not stored (bytes).
        room: so much may be stored in all (bytes).
        skipped: names of folders that are not looked into.
        made: returns the names in the root that the sandbox made for its mounts, with their inodes.
    """

    max_file: int
    room: int
    skipped: frozenset[str] = SKIPPED
    made: Callable[[], Mapping[str, int]] = dict


class TreeTooLargeError(WorkspaceError):
    """The project has more than `MAX_ENTRIES` names."""


class Walk:
    """One comparison of the tree with what is known of it.

    Attributes:
        folders: how the tree is now.
        changes: what differs from before.
        left_out: files whose content was not stored, and folders that could not be read: path -> why.
        is_whole: everything was looked at, not changed folders only.
        short: how many bytes there was no room for.
        turned: folders that were not recorded (dependencies, caches, repositories' own) and are from this walk on, or the other
            way round: nothing in them counts as changed.
        gone: folders that were not recorded, and are not there any more.
    """

    def __init__(
        self,
        known: Folders,
        contents: Contents,
        scope: Scope,
        watch: Watch | None = None,
        *,
        quick: bool = False,
        beside: bool = False,
        wary: bool = True,
    ) -> None:
        """Prepare a walk from how the tree was before; `contents` takes what has changed.

        A `quick` one with a `watch` that knows this tree visits only the folders that changed. It does not see that a file was
        written by another name (a hard link) in a folder that is not looked into; nor, unless it is `wary`, in any other one.
        One `beside` programs that go on sees to it that what they write by a mapping later bears a later time.
        """
        self.folders: Folders = {}
        self.changes: list[Change] = []
        self.left_out: dict[str, str] = {}
        self.short = self._count = 0
        self.is_whole, self.gone = True, list[str]()
        self.turned = set[str]()
        self._known, self._contents = known, contents
        self._max_file, self._most, self._skipped, self._made = scope
        # Asked for with the first file that is read: mostly nothing has changed.
        self._room: int | None = None
        self._found: list[tuple[str, Mark | None, Mark | None]] = []
        self._watch, self._quick, self._beside, self._wary, self._visited = watch, quick, beside, wary, set[str]()
        # Whether a file has got another name that a visit of changed folders would not look at.
        self._linked = False

    def run(self, root_fd: int) -> None:
        """Walk over the tree below an open folder.

        Raises:
            TooLargeError: it has more than `MAX_ENTRIES` names.
            OSError: the root cannot be read, or contents cannot be stored.
        """
        changed = self._watch.changed(self._known) if self._watch is not None else None
        try:
            if changed is not None and self._quick:
                self._visit_changed(root_fd, changed)
                self.is_whole = False
                self._linked |= self._wary and self._watch is not None and self._watch.hides(self.folders)
            if changed is None or not self._quick or self._linked:
                self._start_again()
                self.is_whole = True
                # Opened anew: the given descriptor may be one that only names the folder.
                self._descend(os.open(".", _FOLDER, dir_fd=root_fd), "")
        except BaseException:
            if self._watch is not None:
                self._watch.restart()
            raise
        # At the first look everything is new, and nothing has changed.
        if self._known:
            self._compare_folders()
            self._compare()
        # A visit of changed folders may get past a folder that cannot be listed; a walk over all ends at it.
        found = self.left_out
        self.left_out = {path: why for path, why in found.items() if not _is_below(os.path.dirname(path), found)}

    def _start_again(self) -> None:
        if self._watch is not None:
            self._watch.restart()
        self.folders, self.left_out = {}, {}
        self.short = self._count = 0
        self._found.clear()
        self._visited.clear()

    def _visit_changed(self, root_fd: int, changed: set[str]) -> None:
        """Visit the folders that changed, and those below them that are not the same as before."""
        self.folders = dict(self._known)
        # A parent comes before what it holds: it may be visited, or be gone, with all that is below it.
        for path in sorted(changed):
            if path in self._visited or path not in self.folders:
                continue
            try:
                fd = beneath.open_unlinked(root_fd, tuple(path.split("/")) if path else (), _FOLDER)
            except OSError:
                # It is gone, or was tried from the folder above it: both are that folder's change.
                continue
            with closing(fd):
                for name in self._look_into(fd, path):
                    opened = self._enter(fd, name, f"{path}/{name}" if path else name, path.count("/") + 1)
                    if opened is not None:
                        self._descend(opened, f"{path}/{name}" if path else name)

    def _look_into(self, fd: int, path: str) -> list[str]:
        """Visit one folder that changed; return the names of the folders in it that are others than before."""
        assert self._watch is not None
        prefix = f"{path}/" if path else ""
        # Those that are there still are found again.
        for name in self._skipped:
            self.folders.pop(prefix + name, None)
        below = self._visit(fd, path)
        new = [name for name in below if prefix + name not in self._known or not self._watch.has(prefix + name, fd, name)]
        inner = {name for name, mark in self._known.get(path, {}).items() if mark[2] & FORMAT == stat.S_IFDIR}
        others = {prefix + name for name in (*new, *(inner | ({_OWN} if not path else set())).difference(below))}
        if others:
            # What is below those is found again, or is gone.
            self.folders = {one: marks for one, marks in self.folders.items() if not _is_below(one, others)}
        return new

    def _descend(self, root: int, top: str) -> None:
        """Visit an open folder and all that is below it; it is closed."""
        frames = [(root, top, self._visited_names(root, top))]
        try:
            while frames:
                fd, path, below = frames[-1]
                name = next(below, None)
                if name is None:
                    os.close(frames.pop()[0])
                    continue
                child = f"{path}/{name}" if path else name
                opened = self._enter(fd, name, child, len(frames))
                if opened is not None:
                    frames.append((opened, child, self._visited_names(opened, child)))
        finally:
            for fd, _, _ in frames:
                os.close(fd)

    def _visited_names(self, fd: int, path: str) -> Iterator[str]:
        """Visit a folder when the first name is asked for."""
        yield from self._visit(fd, path)

    def _enter(self, parent: int, name: str, path: str, depth: int) -> int | None:
        """Open a folder; None where that fails: what is known of it and below stays."""
        why = "too deep" if depth > _MAX_DEPTH else ""
        if not why:
            try:
                return os.open(name, _FOLDER, dir_fd=parent)
            except FileNotFoundError:
                return None
            except OSError as err:
                why = err.strerror or "unreadable"
        self.left_out[path] = why
        if self._watch is not None:
            self._watch.unreadable(path.rpartition("/")[0])
        for known in [one for one in self._known if one == path or one.startswith(f"{path}/")]:
            self.folders[known] = self._known[known]
        return None

    def _listed(self, fd: int, path: str) -> list[os.DirEntry[str]]:
        # Asked before and after: a job that begins or ends meanwhile makes names for mounts, or takes them away.
        made = set() if path else {*self._made().items()}
        with os.scandir(fd) as listing:
            entries = list(listing)
        made |= set() if path else {*self._made().items()}
        return [entry for entry in entries if (entry.name, entry.inode()) not in made] if made else entries

    def _visit(self, fd: int, path: str) -> list[str]:
        """Compare one folder; return the names of the folders in it to look into."""
        known = self._known.get(path, {})
        if is_passed(known):
            known = {}
        self._visited.add(path)
        if self._watch is not None:
            # Before the names are read: what comes afterwards is told.
            self._watch.add(path, fd)
        entries = self._listed(fd, path)
        self._count += len(entries)
        if self._count > MAX_ENTRIES:
            why = f"The project has more than {MAX_ENTRIES:,} files."
            raise TreeTooLargeError("not_recorded", why, "Changes of commands are not recorded here; use git.")
        get, skipped, below = known.get, self._skipped | _MEMORY.get(path, frozenset()), list[str]()
        # None: a file whose state is read when it is opened.
        new: dict[str, os.stat_result | None] = {}
        count = 0
        # This loop takes most of the time of a command in a large project: no calls, no copies for what has not changed.
        for entry in entries:
            name = entry.name
            if not known and entry.is_file(follow_symlinks=False) and name != _GIT:
                new[name] = None
                count += 1
                continue
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            mark = get(name)
            if info.st_mode & 0o170000 == 0o040000:
                if name in skipped:
                    if name in self._skipped:
                        self._pass_over(f"{path}/{name}" if path else name)
                    continue
                below.append(name)
                if mark is None or mark[2] != info.st_mode:
                    new[name] = info
            elif mark is None or mark[0] != info.st_ctime_ns or mark[1] != info.st_ino:
                if name == _GIT:
                    # Of a worktree or a submodule: it is git's own, as the folder of that name.
                    self._pass_over(f"{path}/{name}" if path else name)
                    continue
                new[name] = info
            count += 1
        if not path and _OWN in below:
            # Our own locks make it; what is in it, but for the cache, is recorded.
            new.pop(_OWN, None)
            count -= 1
        if not new and count == len(known):
            # The same names as before: it was not one to be skipped, and is none.
            self.folders[path] = known
        elif path and not known and self._is_skipped(entries):
            self._pass_over(path)
            return []
        else:
            # A folder that is passed over may have come in the place of a file.
            names = {one.name for one in entries if not (one.name in skipped and one.is_dir(follow_symlinks=False))}
            self.folders[path] = self._changed(fd, path, known, new, names)
        if self._watch is not None and self._watch.judge(path, self.folders[path]):
            self._linked |= any(mark[5] and not (name in known and known[name][5]) for name, mark in self.folders[path].items())
        return below

    def _pass_over(self, path: str) -> None:
        """Note that a folder is there that is not recorded: as the very same where it was not before."""
        known = self._known.get(path, {})
        self.folders[path] = known if is_passed(known) else PASSED

    def _is_skipped(self, entries: list[os.DirEntry[str]]) -> bool:
        """Tell whether a folder is a cache or a repository's own, by what is in it."""
        names = {entry.name for entry in entries if entry.name in ("HEAD", "objects", "refs", "commondir", _TAG)}
        return bool(names) and (_TAG in names or repositories.is_git_directory({name.lower() for name in names}))

    def _changed(
        self, fd: int, path: str, known: dict[str, Mark], new: dict[str, os.stat_result | None], names: set[str]
    ) -> dict[str, Mark]:
        """Read what is new in a folder, and note what is gone from it."""
        marks = {name: mark for name, mark in known.items() if name in names}
        prefix = f"{path}/" if path else ""
        for name in known.keys() - names:
            self._note(prefix + name, known[name], None)
        # Before any is read: what is written while it is read must bear a later time.
        now = stamps.clock()
        for name, info in new.items():
            if info is None or info.st_mode & FORMAT == stat.S_IFREG:
                mark = self._file_mark(fd, name, prefix + name, now)
            else:
                mark = self._other_mark(fd, name, info, now)
            if mark is None:
                marks.pop(name, None)
            else:
                marks[name] = mark
            self._note(prefix + name, known.get(name), mark)
        return marks

    def _note(self, path: str, before: Mark | None, after: Mark | None) -> None:
        if not self._known or (before is None and is_passed(self._known.get(path, {}))):
            # A folder that was left out by its name was not listed in its parent either.
            return
        self._found.append((path, before, after))

    def _compare(self) -> None:
        """Turn what was found into changes: of what was read, most is often as before."""
        if self.turned:
            self._found = [one for one in self._found if not _is_below(one[0], self.turned)]
        shared = any(mark is not None and mark[5] for _, *marks in self._found for mark in marks)
        names = [_names(folders) if shared else {} for folders in (self._known, self.folders)]
        for path, *marks in sorted(self._found, key=lambda one: one[0]):
            sides = [
                state_of(mark, [one for one in known.get(mark[1], ()) if one != path] if mark is not None and mark[5] else ())
                for mark, known in zip(marks, names, strict=True)
            ]
            if not _same(sides, marks):
                self.changes.append(Change(path, *sides))

    def _other_mark(self, fd: int, name: str, info: os.stat_result, now: int) -> Mark | None:
        """Return the mark of what is no file; None where it is gone by now."""
        kind = info.st_mode & FORMAT
        if kind == stat.S_IFLNK:
            with suppress(OSError):
                target = os.readlink(name, dir_fd=fd)
                return Mark(_settled(info, now), info.st_ino, info.st_mode, 0, target, False)
            return None
        return Mark(0 if kind == stat.S_IFDIR else info.st_ctime_ns, info.st_ino, info.st_mode, 0, "", False)

    def _file_mark(self, fd: int, name: str, path: str, now: int) -> Mark | None:
        """Return the mark of a file, its content stored; None where it is gone by now. A first look does it for each."""
        if self._room is None:
            self._room = self._contents.limit(self._most) - self._contents.disk_size()
        # What is opened counts: another file may have come in the place of the one that was listed.
        try:
            opened = beneath.open_file(fd, name, _READ)
        except OSError as err:
            return self._unread_mark(fd, name, path, now, err.strerror or "unreadable")
        try:
            info = os.fstat(opened)
            why = stored = None
            if info.st_size > self._max_file:
                why = f"larger than {self._max_file:,} bytes"
            elif info.st_mode & FORMAT == stat.S_IFREG:
                if self._beside:
                    watches.write_back(opened)
                stored = self._contents.add(opened, info.st_size, self._max_file, self._room)
        finally:
            os.close(opened)
        if stored is None:
            return self._unread_mark(fd, name, path, now, why or "changed while it was read")
        digest, size, taken = stored
        if taken > self._room:
            self.short += taken
            return self._unread_mark(fd, name, path, now, "no room for what it holds (record.max_bytes, or the disk)")
        self._room -= taken
        return Mark(_settled(info, now), info.st_ino, info.st_mode, size, digest.hex(), info.st_nlink > 1)

    def _unread_mark(self, fd: int, name: str, path: str, now: int, why: str) -> Mark | None:
        """Return the mark of a file whose content is not stored, because of `why`; None where it is gone by now."""
        try:
            info = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if info.st_mode & FORMAT != stat.S_IFREG:
                return self._other_mark(fd, name, info, now)
            # Its time alone will tell of a change: it must not be one that the next look cannot rely on.
            now, info = _waited_for(fd, name, info, now)
        except OSError:
            return None
        self.left_out[path] = why
        return Mark(_settled(info, now), info.st_ino, info.st_mode, info.st_size, None, info.st_nlink > 1)

    def _compare_folders(self) -> None:
        """Note what was in folders that are no more, whose own names were noted where they were listed, and which turned."""
        for path, marks in self._known.items():
            now = self.folders.get(path)
            if now is marks:
                continue
            if now is not None:
                if is_passed(now) != is_passed(marks):
                    self.turned.add(path)
            elif is_passed(marks):
                self.gone.append(path)
            else:
                for name, mark in marks.items():
                    self._note(f"{path}/{name}" if path else name, mark, None)


def _is_below(path: str, tops: Container[str]) -> bool:
    """Tell whether a path is one of some, or lies below one."""
    while path not in tops:
        path, slash, _ = path.rpartition("/")
        if not slash:
            return False
    return True


def _names(folders: Folders) -> dict[int, list[str]]:
    """Return the paths of each inode that has several."""
    out: dict[int, list[str]] = {}
    for path, mark in entries(folders):
        if mark[5]:
            out.setdefault(mark[1], []).append(path)
    return out


def _same(sides: Sequence[State | None], marks: Sequence[Mark | None]) -> bool:
    """Tell whether what is under a path is as it was. Another file with the same content is, unless it has other names."""
    (old, new), (was, now) = sides, marks
    if old is None or new is None or was is None or now is None:
        return old is new
    if old[:4] != new[:4]:
        return False
    # Without a stored content the time of the change alone tells.
    if old.kind == "file" and old.value is None:
        return False
    return was[1] == now[1] or sorted(old.links) == sorted(new.links)


def _settled(info: os.stat_result, now: int) -> int:
    """Return a ctime to compare with at the next walk, -1 where the content may change again without a new one.

    `now` is what the clock of files showed before the content was read.
    """
    return info.st_ctime_ns if stamps.settled(info.st_ctime_ns, now) else -1


def _waited_for(fd: int, name: str, info: os.stat_result, now: int) -> tuple[int, os.stat_result]:
    """Let the tick go by in which a file changed; return the time and what the file is then. Raises OSError."""
    if stamps.settled(info.st_ctime_ns, now) or not stamps.settled(info.st_ctime_ns, now + 1_000_000_000):
        # Not for a clock that goes on by seconds.
        return now, info
    time.sleep(_TICKS)
    return stamps.clock(), os.stat(name, dir_fd=fd, follow_symlinks=False)


def entries(folders: Folders) -> Iterator[tuple[str, Mark]]:
    """Yield every path of a tree with its mark."""
    for path, marks in folders.items():
        if is_passed(marks):
            continue
        for name, mark in marks.items():
            yield (f"{path}/{name}" if path else name), mark


def state_at(folder_fd: int, name: str) -> State | None:
    """Return what is in an open folder under a name now, its content read in blocks; None where nothing is. Raises OSError."""
    try:
        info = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    kind = info.st_mode & FORMAT
    value = ""
    if kind == stat.S_IFLNK:
        value = os.readlink(name, dir_fd=folder_fd)
    elif kind == stat.S_IFREG:
        with open(beneath.open_file(folder_fd, name, _READ), "rb", buffering=0) as file:
            value = hashlib.file_digest(file, "sha256").hexdigest()
    return state_of(Mark(0, info.st_ino, info.st_mode, info.st_size, value, info.st_nlink > 1))

"""The project folder: its root, and opens beneath it only.

A `Workspace` holds a descriptor of the project root. Paths come in as text (relative, or absolute and inside), are opened
by `rye.fs.beneath`, and go out as descriptors with the physical path that was opened.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import TracebackType

from rye.call import context
from rye.call.context import check_deadline
from rye.config import user_dirs
from rye.errors import UsageError, WorkspaceError
from rye.fs import beneath, names
from rye.fs.atomic import closing
from rye.plain_class import Record
from rye.workspace import protected_paths, repositories
from rye.workspace.path_errors import outside, protected, system_failure, wrong_kind
from rye.workspace.root import OpenRoot, opened

MAX_FILE_BYTES = 512 * 1024 * 1024
"""The toolkit reads no larger file into memory."""

# O_NONBLOCK so that a FIFO is refused instead of waited for, O_NOCTTY so that no terminal is taken.
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_LONGEST = 2 * beneath.PATH_MAX  # the root's path and one below it (bytes): what is longer is not taken apart


class OpenFile(Record):
    """A regular file held open for reading: where it physically lies, and its state when opened.

    Attributes:
        path: physical and project-relative; `parts` are its components.
        looked: a time just before `stat` was taken, in nanoseconds since the epoch.
    """

    fd: int
    parts: beneath.Parts
    path: bytes
    stat: os.stat_result
    looked: int

    @property
    def shown(self) -> str:
        """Return the path as results name it."""
        return names.show(self.path)

    def read(self, limit: int = MAX_FILE_BYTES) -> bytes:
        """Return the whole content.

        Raises:
            WorkspaceError: `file_too_large`, above `limit` bytes.
        """
        size = os.fstat(self.fd).st_size
        if size > limit:
            why = f"{self.shown} has {size:,} bytes, more than the limit of {limit:,}."
            raise WorkspaceError("file_too_large", why, "Use head, tail or sed in a command to look at a part of it.")
        return read_all(self.fd, size, limit)


class Place(Record):
    """Where a file is or will be: the directory held open, its physical path, the state of what is there now.

    `made` are the folders that were made for it, the outer first. `check` is asked right before the file is exchanged (see
    `Workspace.guard_open`).
    """

    dir_fd: int
    parts: beneath.Parts
    stat: os.stat_result | None
    made: Sequence[beneath.Parts] = ()
    check: Callable[[], None] | None = None

    @property
    def name(self) -> bytes:
        """Return the file's own name."""
        return self.parts[-1]

    @property
    def path(self) -> bytes:
        """Return the physical project-relative path."""
        return b"/".join(self.parts)

    @property
    def shown(self) -> str:
        """Return the path as results name it."""
        return names.show(self.path)


Identity = tuple[int, int]


def identity_of(root: str) -> Identity:
    """Return a root's device and inode, for whoever serves one project for long. Errors as `Workspace`."""
    with Workspace(root) as workspace:
        return workspace.identity


def project_changed(root: str) -> WorkspaceError:
    """Return the refusal of a root that is another folder now."""
    why = f"{root} is another folder now than when this server or toolset opened it."
    return WorkspaceError("project_changed", why, "Start the server or make the toolset again, if that folder is meant.")


def read_all(fd: int, size: int, limit: int) -> bytes:
    """Read a descriptor from its start to its end; a file that grew past `limit` meanwhile is cut there."""
    chunks: list[bytes] = []
    at = 0
    # To the end, not to the known size: the file may grow while it is read.
    while chunk := os.pread(fd, min(max(size - at, 65_536), limit + 1 - at), at):
        chunks.append(chunk)
        at += len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


class Workspace:
    """A project root held open. Use it as a context manager, or `close` it.

    Inside a call, every workspace of the call's root shares the descriptor that the executor opened. As a context manager
    it turns whatever the system refuses inside the block, in any module, into a typed failure.
    """

    def __init__(self, root: str, writes: str = "", *, keep: bool = False) -> None:
        """Hold `root` (an existing directory) open.

        Args:
            root: the project's folder.
            writes: a protected place, such as `.ai/lockfiles`, that this user of the workspace may write all the same:
                for rye's own commands, never for a tool.
            keep: let it stay open for the next call.

        Raises:
            WorkspaceError: `project_not_found`, or `bad_project` for a kernel file system.
        """
        self.root = os.path.abspath(root)
        self.opened: OpenRoot
        shared = context.current().workspace
        # A tool that outlives its call finds the call's root closed, and opens its own.
        if isinstance(shared, Workspace) and shared.root == self.root and shared.opened.join():
            self.opened = shared.opened
        else:
            self.opened = opened(self.root, root, keep=keep)
        self.fd, self.real, self._stat = self.opened.fd, self.opened.real, self.opened.stat
        self._writes = writes
        self._closed = False

    @property
    def identity(self) -> Identity:
        """Return what makes the root this folder and no other: its device and inode."""
        return self._stat.st_dev, self._stat.st_ino

    def hold_to(self, identity: Identity | None) -> None:
        """Refuse a root that is another folder than the one that was pinned.

        Raises:
            WorkspaceError: `project_changed`.
        """
        if identity is not None and identity != self.identity:
            # Nobody works there: held open, it could not be unmounted.
            self.opened.keep = False
            raise project_changed(self.root)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
        if isinstance(error, OSError):
            name = error.filename if isinstance(error.filename, str | bytes) else self.root
            raise system_failure(error, names.show(os.fsencode(name))) from error

    def close(self) -> None:
        """Release the root."""
        if not self._closed:
            self._closed = True
            self.opened.leave()

    def components(self, path: str) -> beneath.Parts:
        """Return the raw components of `path` below the root; whether they lead outside is decided at the open.

        Raises:
            WorkspaceError: `bad_path` (empty, NUL, not encodable), `path_outside` for an absolute path elsewhere.
        """
        if not path or "\0" in path:
            why = "The path is empty." if not path else "The path contains a NUL character."
            raise WorkspaceError("bad_path", why, "Give a path relative to the project, such as src/app.py.")
        try:
            known, raw = self.opened.parsed
            # Most calls are about one path, which is opened several times.
            if known != path:
                raw = names.parse(path)
                self.opened.parsed = path, raw
        except UnicodeEncodeError:
            why = "The path contains a lone surrogate, which no file name holds."
            raise WorkspaceError("bad_path", why, "Copy the path as ls, glob or grep show it.") from None
        if b"\0" in raw:
            raise WorkspaceError("bad_path", "The path contains a NUL byte.", "Give a path without it.")
        if len(raw) > _LONGEST:
            what = f"The path {path[:100]}… is longer than any file's."
            raise WorkspaceError("bad_path", what, "Give a path below the root.")
        parts = tuple(raw.split(b"/"))
        return parts if parts[0] else self._below_root(parts[1:], path)

    def _below_root(self, parts: beneath.Parts, shown: str) -> beneath.Parts:
        """Find the root among an absolute path's prefixes by identity (device, inode), the longest first."""
        for cut in range(len(parts), -1, -1):
            try:
                info = os.stat(b"/" + b"/".join(parts[:cut]))
            except (OSError, ValueError):
                continue
            if (info.st_dev, info.st_ino) == (self._stat.st_dev, self._stat.st_ino):
                return parts[cut:] or (b".",)
        raise outside(shown)

    def open_file(self, path: str) -> OpenFile:
        """Open a regular file for reading; the caller closes `fd` (or use `file`).

        Raises:
            WorkspaceError: `path_outside`, `file_not_found` (with the nearest existing path), `is_directory`,
                `not_regular_file`, `permission_denied`, `bad_path`.
            DeadlineError: the call's time is up.
        """
        check_deadline()
        fd, physical = self._opened(path, _READ)
        try:
            looked, info = time.time_ns(), os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise wrong_kind(info.st_mode, names.show(b"/".join(physical)) or ".")
            # A kernel file system is always another device, so most opens skip the second check.
            if info.st_dev != self._stat.st_dev and beneath.is_of_kernel(fd):
                message = f"{names.show(b'/'.join(physical))} lies in a kernel file system."
                raise WorkspaceError("not_regular_file", message, "Name a file on a disk.")
            protected_paths.refuse_key(info, physical)
        except BaseException:
            os.close(fd)
            raise
        return OpenFile(fd, physical, b"/".join(physical), info, looked)

    @contextmanager
    def file(self, path: str) -> Iterator[OpenFile]:
        """Open a regular file for the length of the block; errors as `open_file`."""
        opened = self.open_file(path)
        with closing(opened.fd):
            yield opened

    @contextmanager
    def held(self, path: str, flags: int = beneath.DIRECTORY) -> Iterator[tuple[int, beneath.Parts]]:
        """Hold open what a path names, by default a folder; yield its descriptor and its physical components.

        Raises:
            WorkspaceError: as `open_file`, but for its kind; `not_a_directory`.
        """
        fd, physical = self._opened(path, flags)
        with closing(fd):
            yield fd, physical

    def _opened(self, path: str, flags: int) -> tuple[int, beneath.Parts]:
        try:
            return beneath.open_beneath(self.fd, self.components(path), flags)
        except OSError as err:
            raise self.refusal(err, path) from None

    @contextmanager
    def place(self, path: str, *, create_parents: bool = False, guarded: bool = True) -> Iterator[Place]:
        """Hold open the directory in which `path` is or will be, following the file's own link inside.

        Not `guarded`, it may lie where tools may not write: for what a person told rye to write there.

        Raises:
            WorkspaceError: as `open_file`; also `protected_path`. A file that does not exist is no error.
        """
        check_deadline()
        parts = self.components(path)
        created: list[beneath.Parts] = []
        try:
            try:
                dir_fd, physical = self._parent(parts, created, guarded=guarded, create=create_parents)
            except OSError as err:
                raise self.refusal(err, path) from None
            with closing(dir_fd):
                if guarded:
                    self.guard(physical)
                check = partial(self.guard_open, dir_fd, physical) if guarded else None
                yield Place(dir_fd, physical, _current(dir_fd, physical), tuple(created), check)
        except BaseException:
            # Made for a file which then did not come.
            self.remove_empty(created)
            raise

    def content_of(self, place: Place) -> bytes | None:
        """Return the content of the file in a place; None where there is none. Errors as `open_file`, and `OpenFile.read`."""
        if place.stat is None:
            return None
        with self.file(place.shown) as file:
            return file.read()

    def missing_folders(self, path: str) -> list[bytes]:
        """Return the physical paths of the folders that `place` would make for a file, the outer first."""
        parts = self.components(path)[:-1]
        try:
            count, physical = self._existing(parts)
        except OSError:
            return []
        missing = parts[count:]
        if {b"", b".", b".."} & {*missing}:
            return []
        return [b"/".join([*physical, *missing[: at + 1]]) for at in range(len(missing))]

    def _existing(self, parts: beneath.Parts) -> tuple[int, beneath.Parts]:
        """Return how many of some components lead to a folder that is there, and its physical path. Raises OSError."""
        for count in range(len(parts), 0, -1):
            with suppress(FileNotFoundError):
                fd, physical = beneath.open_beneath(self.fd, parts[:count], beneath.DIRECTORY)
                os.close(fd)
                return count, physical
        return 0, ()

    def _parent(
        self, parts: beneath.Parts, created: list[beneath.Parts], *, guarded: bool, create: bool
    ) -> tuple[int, beneath.Parts]:
        """Open the folder of a file; with `create` missing ones are made, beneath the root and none in a protected place."""
        try:
            return beneath.open_parent(self.fd, parts)
        except FileNotFoundError:
            if not create:
                raise
        there, _ = self._existing(parts[:-1])
        for count in range(there + 1, len(parts)):
            if parts[count - 1] in (b"", b"."):
                continue
            dir_fd, physical = beneath.open_parent(self.fd, parts[:count])
            with closing(dir_fd):
                if guarded:
                    self.guard(physical, names.show(b"/".join(parts)))
                # Where another process made it, it is not ours to remove.
                with suppress(FileExistsError):
                    os.mkdir(physical[-1], dir_fd=dir_fd)
                    created.append(physical)
        return beneath.open_parent(self.fd, parts)

    def remove_empty(self, folders: Iterable[beneath.Parts]) -> None:
        """Remove those of some folders, by their physical components, that are empty: the inner before the outer."""
        # `rmdir` refuses a folder that has got another file meanwhile.
        for *above, name in sorted(folders, key=len, reverse=True):
            parents = [os.fsdecode(part) for part in above]
            with suppress(OSError), closing(beneath.open_unlinked(self.fd, parents, beneath.DIRECTORY)) as fd:
                os.rmdir(name, dir_fd=fd)

    def guard(self, parts: beneath.Parts, shown: str = "", links: protected_paths.Links | None = None) -> None:
        """Raise `protected_path` when physical components lie in a place that tools may not write.

        `shown` is the path that the refusal names, where it is another one. `links` are those of the root, for many paths at a
        time (see `protected_paths.links_of`): a root is listed for each path without them.
        """
        place = protected_paths.place_of(self.fd, parts, self._writes) or repositories.place_of(self.fd, self.real, parts)
        name = None if place else protected_paths.name_at(self.fd, parts, links)
        if place or name:
            raise protected(shown or names.show(b"/".join(parts)), place, name)

    def guard_open(self, dir_fd: int, parts: beneath.Parts, links: protected_paths.Links | None = None) -> None:
        """Guard a file again right before it is exchanged: a command may have made a repository there. Arguments as of `guard`.

        Raises:
            WorkspaceError: `protected_path`; `conflict`, its folder has been moved.
        """
        if not beneath.is_at(self.fd, parts[:-1], dir_fd):
            shown = names.show(b"/".join(parts))
            raise WorkspaceError("conflict", f"The folder of {shown} was moved meanwhile. Nothing was written.", "Try again.")
        self.guard(parts, links=links)

    def check(self, path: str) -> None:
        """Confine `path` without needing it to exist: what the executor asks before a tool runs.

        Raises:
            WorkspaceError: `path_outside`, `bad_path`, and what else an open refuses, except that nothing is there.
        """
        parts = self.components(path)
        try:
            try:
                fd, _ = beneath.open_beneath(self.fd, parts, os.O_PATH)
            except FileNotFoundError:
                # A dangling link is followed to where it would create: outside must be refused before the tool runs.
                fd, _ = beneath.open_parent(self.fd, parts)
        except (FileNotFoundError, IsADirectoryError):
            return
        except OSError as err:
            raise self.refusal(err, path) from None
        os.close(fd)

    def refusal(self, err: OSError, path: str) -> WorkspaceError:
        """Turn what the kernel said about `path` into an instruction."""
        if err.errno == errno.EXDEV:
            part = self._failing(path, errno.EXDEV)
            is_absolute = "absolute" in str(err.strerror)
            kind = (
                "an absolute symbolic link that does not begin with the root's own path"
                if is_absolute
                else "a link that leads out"
            )
            return outside(path, "" if part.endswith("..") else f"{'it' if part == path else part} is {kind}")
        if err.errno == errno.ENOENT:
            # Only who is refused pays for the search for what was meant.
            from rye.workspace.path_suggestions import not_found

            return not_found(self.root, self.fd, self.components, path)
        if err.errno == errno.ENOTDIR:
            part = self._failing(path, errno.ENOTDIR)
            of = "" if part == path.rstrip("/") else f", so there is no {path}"
            return WorkspaceError("not_a_directory", f"{part} is no directory{of}.", "Use ls to see what is there.")
        if err.errno == errno.EISDIR:
            return wrong_kind(stat.S_IFDIR, path)
        if err.errno == errno.ENXIO:
            return wrong_kind(stat.S_IFSOCK, path)
        return system_failure(err, path)

    def _failing(self, path: str, number: int) -> str:
        """Return the shortest beginning of a path that cannot be opened as a folder for a reason, or the path."""
        parts = self.components(path)
        for count in range(1, len(parts) + 1):
            try:
                os.close(beneath.open_beneath(self.fd, parts[:count], beneath.DIRECTORY)[0])
            except OSError as err:
                if err.errno == number:
                    return names.show(b"/".join(parts[:count]))
        return path


def _current(dir_fd: int, physical: beneath.Parts) -> os.stat_result | None:
    try:
        info = os.stat(physical[-1], dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(info.st_mode):
        raise wrong_kind(info.st_mode, names.show(b"/".join(physical)))
    return info


def find_root() -> str:
    """Return the project root for the current folder: the nearest ancestor that is marked as one, else the folder itself.

    A project is marked by `.git`, or by an `.ai` that holds more than `cache`, which a read makes. The user's own space
    and homes never are: settings may lie in a repository there. Nor is the root of the disk.

    Raises:
        UsageError: `bad_user_space`; `no_folder`, where the current one was removed.
    """
    space = user_dirs.user_space()
    try:
        folder_now = folder = os.getcwd()
    except FileNotFoundError:
        hint = "Go into one that is there, or name the project: --project DIR, or project_path= in Python."
        raise UsageError("no_folder", "The current folder was removed, or replaced by another one.", hint) from None
    while folder != os.path.dirname(folder):
        if _is_marked(folder) and not _is_home(folder, space):
            return folder
        folder = os.path.dirname(folder)
    return folder_now


def root_to_work_in(named: str | os.PathLike[str] | None) -> str:
    """Return the root of the project whose files a call may change: the one that is named, else that of the current folder.

    Raises:
        UsageError: `no_project`, where that would be a whole home, or what is above it: clients often start there; as
            `find_root`.
    """
    if named is not None:
        return os.fspath(named)
    root = find_root()
    # HOME may name another place than the account's own home.
    homes = [os.path.realpath(home) for home in (user_dirs.home(), user_dirs.home_of_account())]
    real, why = os.path.realpath(root), ""
    if real in homes:
        why = "it is your home, whose files are not to be changed by accident"
    elif real == os.sep:
        why = "it is the root of the disk"
    elif not _is_marked(root) and any(home.startswith(f"{real}/") for home in homes):
        # But a project may keep a home of its own for its builds.
        why = "homes lie below it"
    elif not _is_marked(root) and real in map(os.path.realpath, ("/tmp", "/var/tmp", os.environ.get("TMPDIR", "/tmp"))):  # noqa: S108 - refused
        why = "every program's temporary files lie in it"
    if why:
        import shlex

        hint = f"Go into one (mkdir new && cd new), or name it: --project {shlex.quote(root)}, or project_path= in Python."
        raise UsageError("no_project", f"{root} is no project's folder: {why}.", hint)
    return root


def _is_home(folder: str, space: str) -> bool:
    # HOME may name another place than the account's own home.
    real = os.path.realpath(folder)
    return real in map(os.path.realpath, (space, user_dirs.home(), user_dirs.home_of_account()))


def _is_marked(folder: str) -> bool:
    return os.path.exists(f"{folder}/.git") or _has_items(f"{folder}/.ai")


def _has_items(folder: str) -> bool:
    """Tell whether an `.ai` folder holds more than the cache."""
    try:
        with os.scandir(folder) as entries:
            return any(entry.name != "cache" for entry in entries)
    except OSError:
        return False

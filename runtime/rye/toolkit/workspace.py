"""The project folder: its root, and opens beneath it only.

A `Workspace` holds a descriptor of the project root. Paths come in as text (relative, or absolute and inside), are opened
by `rye.toolkit.beneath`, and go out as descriptors with the physical path that was opened.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rye import state
from rye.errors import WorkspaceError
from rye.record import Record
from rye.toolkit import acted_on, beneath, names, users_own
from rye.toolkit.output import deadline
from rye.toolkit.refusals import outside, protected, system_failure, wrong_kind
from rye.toolkit.suggest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

IGNORED_DIRECTORIES = (
    "node_modules", "__pycache__", ".git", ".venv", "venv", ".tox", ".pytest_cache", ".mypy_cache", ".ruff_cache",
    "dist", "build", "*.egg-info", ".eggs", ".nox", ".hg", ".svn",
)  # fmt: skip
"""The one list of directories that listing and searching leave out (glob patterns)."""

MAX_FILE_BYTES = 512 * 1024 * 1024
"""The toolkit reads no larger file into memory."""

# O_NONBLOCK so that a FIFO is refused instead of waited for, O_NOCTTY so that no terminal is taken.
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
# The root's path and one below it (bytes): what is longer is not taken apart.
_LONGEST = 2 * beneath.PATH_MAX
_KERNEL_TREES = ("/proc", "/sys", "/dev")


class OpenFile(Record):
    """A regular file held open for reading: where it physically lies, and its state when opened."""

    fd: int
    parts: beneath.Parts
    stat: os.stat_result

    @property
    def path(self) -> bytes:
        """Return the physical project-relative path."""
        return b"/".join(self.parts)

    @property
    def shown(self) -> str:
        """Return the path as it stands in results."""
        return names.show(self.path)

    def read(self, limit: int = MAX_FILE_BYTES) -> bytes:
        """Return the whole content.

        Raises:
            WorkspaceError: `file_too_large`, above `limit` bytes.
        """
        size = os.fstat(self.fd).st_size
        if size > limit:
            raise WorkspaceError(
                "file_too_large",
                f"{self.shown} has {size:,} bytes, more than the limit of {limit:,}.",
                "Use rye/bash/bash with head, tail or sed to look at a part of it.",
            )
        return read_all(self.fd, size, limit)


class Place(Record):
    """Where a file stands or will stand: the directory held open, its physical path, what stands there now."""

    dir_fd: int
    parts: beneath.Parts
    stat: os.stat_result | None

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
        """Return the path as it stands in results."""
        return names.show(self.path)


def read_all(fd: int, size: int, limit: int) -> bytes:
    """Read a descriptor from its start to its end; a file that grew past `limit` meanwhile is cut there."""
    chunks: list[bytes] = []
    at = 0
    while chunk := os.pread(fd, min(max(size - at, 65_536), limit + 1 - at), at):
        chunks.append(chunk)
        at += len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


class Workspace:
    """A project root held open. Use it as a context manager, or `close` it.

    As a context manager it turns whatever the system refuses inside the block, in any module, into a typed failure.
    """

    def __init__(self, root: str) -> None:
        """Hold `root` (an existing directory) open.

        Raises:
            WorkspaceError: `project_not_found`, or `bad_project` for a kernel file system.
        """
        self.root = os.path.abspath(root)
        try:
            self.fd = os.open(self.root, beneath.DIRECTORY)
        except OSError as err:
            raise WorkspaceError(
                "project_not_found", f"Project folder not usable: {root} ({os.strerror(err.errno or 0)}).",
                "Give project_path (or --project) an existing directory.",
            ) from None  # fmt: skip
        try:
            self._stat = os.fstat(self.fd)
        except OSError as err:
            self.close()
            raise system_failure(err, root) from None
        self.real = beneath.real_path(self.fd, self.root)
        if f"{self.real}/".startswith(tuple(f"{tree}/" for tree in _KERNEL_TREES)):
            self.close()
            raise WorkspaceError(
                "bad_project", f"{root} lies in a kernel file system.", "Give project_path a directory on a disk."
            )

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
        if isinstance(error, OSError):
            name = error.filename if isinstance(error.filename, str | bytes) else self.root
            raise system_failure(error, names.show(os.fsencode(name))) from error

    def close(self) -> None:
        """Let the root go."""
        os.close(self.fd)

    def components(self, path: str) -> beneath.Parts:
        """Return the raw components of `path` below the root; whether they lead outside is decided at the open.

        Raises:
            WorkspaceError: `bad_path` (empty, NUL, not encodable), `path_outside` for an absolute path elsewhere.
        """
        if not path or "\0" in path:
            raise WorkspaceError(
                "bad_path", "The path is empty." if not path else "The path contains a NUL character.",
                "Give a path relative to the project, such as src/app.py.",
            )  # fmt: skip
        try:
            raw = names.parse(path)
        except UnicodeEncodeError:
            raise WorkspaceError(
                "bad_path", "The path contains a lone surrogate, which no file name holds.",
                "Copy the path as ls, glob or grep show it.",
            ) from None  # fmt: skip
        if b"\0" in raw:
            raise WorkspaceError("bad_path", "The path contains a NUL byte.", "Give a path without it.")
        if len(raw) > _LONGEST:
            raise WorkspaceError(
                "bad_path", f"The path {path[:100]}… is longer than any file's.", "Give a path below the root."
            )
        parts = tuple(raw.split(b"/"))
        return parts if parts[0] else self._below_root(parts[1:], path)

    def _below_root(self, parts: beneath.Parts, shown: str) -> beneath.Parts:
        """Find the root among an absolute path's prefixes by identity (device, inode), the longest first."""
        for cut in range(len(parts), -1, -1):
            try:
                here = os.stat(b"/" + b"/".join(parts[:cut]))
            except (OSError, ValueError):
                continue
            if (here.st_dev, here.st_ino) == (self._stat.st_dev, self._stat.st_ino):
                return parts[cut:] or (b".",)
        raise outside(shown)

    def open_file(self, path: str) -> OpenFile:
        """Open a regular file for reading; the caller closes `fd` (or use `file`).

        Raises:
            WorkspaceError: `path_outside`, `file_not_found` (with the nearest existing path), `is_directory`,
                `not_regular_file`, `permission_denied`, `bad_path`.
            DeadlineError: the call's time is up.
        """
        deadline().check()
        parts = self.components(path)
        try:
            fd, physical = beneath.open_beneath(self.fd, parts, _READ)
        except OSError as err:
            raise self.refusal(err, path) from None
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise wrong_kind(info.st_mode, names.show(b"/".join(physical)) or ".")
            users_own.refuse_key(info, physical)
        except BaseException:
            os.close(fd)
            raise
        return OpenFile(fd, physical, info)

    @contextmanager
    def file(self, path: str) -> Iterator[OpenFile]:
        """Open a regular file for the length of the block; errors as `open_file`."""
        opened = self.open_file(path)
        try:
            yield opened
        finally:
            os.close(opened.fd)

    @contextmanager
    def place(self, path: str, *, create_parents: bool = False) -> Iterator[Place]:
        """Hold open the directory in which `path` stands or will stand, following the file's own link inside.

        Raises:
            WorkspaceError: as `open_file`; also `protected_path`. A file that does not exist is no error.
        """
        deadline().check()
        parts = self.components(path)
        made: list[beneath.Parts] = []
        try:
            dir_fd, physical = self._parent(parts, made if create_parents else None)
        except OSError as err:
            self._remove_empty(made)
            raise self.refusal(err, path) from None
        except WorkspaceError:
            self._remove_empty(made)
            raise
        try:
            self.guard(physical)
            yield Place(dir_fd, physical, _standing(dir_fd, physical))
        except BaseException:
            self._remove_empty(made)
            raise
        finally:
            os.close(dir_fd)

    def _parent(self, parts: beneath.Parts, made: list[beneath.Parts] | None) -> tuple[int, beneath.Parts]:
        try:
            return beneath.open_parent(self.fd, parts)
        except FileNotFoundError:
            if made is None:
                raise
        self._make_directory(parts[:-1], made)
        return beneath.open_parent(self.fd, parts)

    def _make_directory(self, parts: beneath.Parts, made: list[beneath.Parts]) -> None:
        """Make a directory and its missing ancestors, each beneath the root and none in a protected place."""
        try:
            fd, _ = beneath.open_beneath(self.fd, parts, beneath.DIRECTORY)
            os.close(fd)
            return
        except FileNotFoundError:
            if not parts:
                raise
        self._make_directory(parts[:-1], made)
        if parts[-1] in (b"", b"."):
            return
        dir_fd, physical = beneath.open_parent(self.fd, parts)
        try:
            self.guard(physical)
            os.mkdir(physical[-1], dir_fd=dir_fd)
            made.append(physical)
        except FileExistsError:
            pass
        finally:
            os.close(dir_fd)

    def _remove_empty(self, made: list[beneath.Parts]) -> None:
        """Take back directories that were made for a file which then did not come."""
        for parts in reversed(made):
            try:
                fd, _ = beneath.open_beneath(self.fd, parts[:-1], beneath.DIRECTORY)
            except OSError:
                return
            try:
                os.rmdir(parts[-1], dir_fd=fd)
            except OSError:
                return
            finally:
                os.close(fd)

    def guard(self, parts: beneath.Parts) -> None:
        """Raise `protected_path` when physical components lie in a place that tools may not write."""
        place = names.protected(parts) or users_own.place_of(self.fd, parts)
        name = None if place else acted_on.name_at(self.fd, parts)
        if place or name:
            raise protected(names.show(b"/".join(parts)), place, name)

    def check(self, path: str) -> None:
        """Confine `path` without needing it to exist: what the executor asks before a tool runs.

        Raises:
            WorkspaceError: `path_outside`, `bad_path`, and what else an open refuses, except that nothing is there.
        """
        parts = self.components(path)
        try:
            fd, _ = beneath.open_beneath(self.fd, parts, beneath.O_PATH)
        except FileNotFoundError:
            self._check_missing(parts, path)
        except OSError as err:
            raise self.refusal(err, path) from None
        else:
            os.close(fd)

    def _check_missing(self, parts: beneath.Parts, path: str) -> None:
        """Follow a dangling link to where it would create: outside must be refused before the tool runs."""
        try:
            fd, _ = beneath.open_parent(self.fd, parts)
        except (FileNotFoundError, IsADirectoryError):
            return
        except OSError as err:
            raise self.refusal(err, path) from None
        os.close(fd)

    def refusal(self, err: OSError, path: str) -> WorkspaceError:
        """Turn what the kernel said about `path` into an instruction."""
        if err.errno == errno.EXDEV:
            return outside(path, "it passes an absolute symbolic link" if "absolute" in str(err.strerror) else "")
        if err.errno == errno.ENOENT:
            return self._not_found(path)
        if err.errno == errno.ENOTDIR:
            return WorkspaceError(
                "not_a_directory", f"A part of the path {path} is a file, not a directory.",
                "Use ls on its parent to see what is there.",
            )  # fmt: skip
        if err.errno == errno.EISDIR:
            return wrong_kind(stat.S_IFDIR, path)
        if err.errno == errno.ENXIO:
            return wrong_kind(stat.S_IFSOCK, path)
        return system_failure(err, path)

    def _not_found(self, path: str) -> WorkspaceError:
        folder, _, wanted = path.rstrip("/").rpartition("/")
        existing, entries = self._nearest_folder(folder)
        close = nearest(wanted, entries) if existing == (folder or ".") else []
        prefix = "" if existing == "." else f"{existing}/"
        near = f"Did you mean {' or '.join(prefix + name for name in close)}? " if close else ""
        return WorkspaceError(
            "file_not_found", f"File not found: {path}.", f'{near}Use ls(path="{existing}") to see what is there.',
            nearest=[prefix + name for name in close],
        )  # fmt: skip

    def _nearest_folder(self, folder: str) -> tuple[str, list[str]]:
        """Return the deepest existing ancestor inside the project, and up to 10,000 of its entries."""
        while True:
            try:
                parts = self.components(folder or ".")
                fd, _ = beneath.open_beneath(self.fd, parts, os.O_RDONLY | os.O_DIRECTORY)
            except (OSError, WorkspaceError):
                if not folder:
                    return ".", []
                folder = folder.rpartition("/")[0]
                continue
            try:
                return folder or ".", [names.show(os.fsencode(name)) for name in os.listdir(fd)[:10_000]]
            finally:
                os.close(fd)


def _standing(dir_fd: int, physical: beneath.Parts) -> os.stat_result | None:
    try:
        info = os.stat(physical[-1], dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as err:
        raise system_failure(err, names.show(b"/".join(physical))) from None
    if not stat.S_ISREG(info.st_mode):
        raise wrong_kind(info.st_mode, names.show(b"/".join(physical)))
    return info


def find_root(start: str) -> str:
    """Return the project root for a folder: the nearest ancestor with `.ai` or `.git`, else the folder itself.

    The user's space has an `.ai` of its own, and may be under git, and never counts; nor does the whole disk.
    """
    # Not `abspath`, which takes `..` for granted where a link leads elsewhere.
    here = folder = os.path.join(os.getcwd(), start).rstrip("/") or "/"
    home = state.user_space()
    while folder != os.path.dirname(folder):
        marked = os.path.exists(f"{folder}/.git") or os.path.isdir(f"{folder}/.ai")
        if marked and not (os.path.exists(home) and os.path.samefile(folder, home)):
            return folder
        folder = os.path.dirname(folder)
    return here

"""Files as the agent-sandbox contract moves them: whole, of any size, in pieces. Paths go through the project's workspace.

An upload takes its name when all of it is there. It is recorded for undo as what a command changes (up to
`record.max_file_bytes`).
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from typing import Any, BinaryIO, Final

from rye.call import context, profile
from rye.call.context import CallOptions
from rye.errors import WorkspaceError
from rye.fs import atomic, beneath, names
from rye.journal import journal, recovery, tree_changes
from rye.workspace import cache, running_commands
from rye.workspace.atomic_replace import conflict, discard, temporary_name
from rye.workspace.path_errors import wrong_kind
from rye.workspace.workspace import Place, Workspace

ACTOR: Final = "agent-sandbox"
"""By whom changes are made, as the journal names it."""

TOOL: Final = "agent-sandbox/upload"
MOST_ENTRIES: Final = 100_000
"""A folder with more entries is not listed."""

PIECE: Final = 256 * 1024
"""So much is read at a time (bytes)."""

_NEW: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC


def tool_path(path: str) -> str:
    """Return a path of the contract as our tools name it: relative to the root, also where it begins with a slash."""
    # The bytes that the client sent; what is no UTF-8 came as surrogates.
    return names.show(path.lstrip("/").encode("utf-8", "surrogateescape")) or "."


def put(root: str, path: str, source: BinaryIO) -> None:
    """Copy an open file into the project, in one step, and record it as what a command changes; missing folders are made.

    Raises:
        WorkspaceError: as `Workspace.place`; `is_directory`, `not_regular_file`, `conflict`. UsageError: `read_only_profile`.
    """
    named = CallOptions(actor=ACTOR)
    with context.using(options=named), Workspace(root) as ws:
        profile.refuse_changes(ws.root)
        recovery.recover(ws)
        # From before a folder is made for it, so that the record has that folder, and never the file's name until it is whole.
        with running_commands.running(ws.fd) as token:
            recording = tree_changes.begin(ws, token, TOOL, f"upload {tool_path(path)}")
            try:
                _copied(ws, tool_path(path), source)
            finally:
                tree_changes.end(ws, recording)


def _copied(ws: Workspace, path: str, source: BinaryIO) -> None:
    with journal.place_for(ws, path) as place:
        _refuse_kind(place)
        temporary = temporary_name()
        # As others may read the old file, not sooner than it is whole.
        mode = 0o666 if place.stat is None else 0o600
        with open(os.open(temporary, _NEW, mode, dir_fd=place.dir_fd), "wb") as file:
            try:
                shutil.copyfileobj(source, file, PIECE)
                file.flush()
                os.fsync(file.fileno())
                with cache.locked(ws, place.path):
                    _exchange(ws, place, temporary, file.fileno())
            finally:
                discard(place.dir_fd, temporary)


def _exchange(ws: Workspace, place: Place, temporary: bytes, fd: int) -> None:
    """Give a file beside the target its name; refused where the folder has become another one, or one that no tool writes."""
    # Placed and judged anew: a command may have made the folder a repository since the upload began.
    with ws.place(place.shown) as now:
        if now.parts != place.parts or not os.path.samestat(os.fstat(now.dir_fd), os.fstat(place.dir_fd)):
            raise conflict(place)
        _refuse_kind(now)
        if now.stat is not None:
            os.fchmod(fd, stat.S_IMODE(now.stat.st_mode))
        os.rename(temporary, now.name, src_dir_fd=now.dir_fd, dst_dir_fd=now.dir_fd)
        atomic.sync(dir_fd=now.dir_fd)


def _refuse_kind(place: Place) -> None:
    if place.stat is not None and not stat.S_ISREG(place.stat.st_mode):
        raise wrong_kind(place.stat.st_mode, place.shown)


def opened(root: str, path: str) -> tuple[FileIO, int]:
    """Return a file to send, which the caller closes, and its size. Errors as `Workspace.open_file`."""
    with Workspace(root) as ws, ws.file(tool_path(path)) as file:
        return FileIO(os.dup(file.fd)), file.stat.st_size


def entries_of(root: str, path: str) -> list[dict[str, Any]]:
    """Return the entries of a folder: `{"name", "size" (bytes), "type": "file" | "directory", "mod_time" (seconds)}`.

    Raises:
        WorkspaceError: as `Workspace`; `not_a_directory`, `too_many_entries`.
    """
    found: list[dict[str, Any]] = []
    with Workspace(root) as ws, ws.held(tool_path(path), os.O_RDONLY | os.O_DIRECTORY) as (fd, _), os.scandir(fd) as listing:
        for entry in listing:
            if len(found) >= MOST_ENTRIES:
                many = f"{path} has more than {MOST_ENTRIES:,} entries."
                raise WorkspaceError("too_many_entries", many, "List it with a command.")
            found += _entry(ws, fd, path, entry)
    return sorted(found, key=lambda one: str(one["name"]))


def _entry(ws: Workspace, fd: int, path: str, entry: os.DirEntry[str]) -> Iterator[dict[str, Any]]:
    """Yield one entry, of a link what it leads to inside the root; nothing where it is gone by now."""
    with suppress(OSError):
        info = os.stat(entry.name, dir_fd=fd, follow_symlinks=False)
        if stat.S_ISLNK(info.st_mode):
            with suppress(WorkspaceError):
                info = _found(ws, f"{path.rstrip('/')}/{entry.name}") or info
        kind = "directory" if stat.S_ISDIR(info.st_mode) else "file"
        name = entry.name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        yield {"name": name, "size": info.st_size, "type": kind, "mod_time": info.st_mtime}


def exists(root: str, path: str) -> bool:
    """Tell whether there is something at a path. Raises WorkspaceError `path_outside` and others, but for what is not there."""
    with Workspace(root) as ws:
        return _found(ws, path) is not None


def _found(ws: Workspace, path: str) -> os.stat_result | None:
    """Return what a path leads to, inside the root. Errors as `exists`."""
    relative = tool_path(path)
    try:
        fd, _ = beneath.open_beneath(ws.fd, ws.components(relative), os.O_PATH | os.O_CLOEXEC)
    except OSError as err:
        refused = ws.refusal(err, relative)
        if refused.code in ("file_not_found", "not_a_directory", "symlink_loop"):
            return None
        raise refused from None
    with atomic.closing(fd):
        return os.fstat(fd)

"""Files as the agent-sandbox contract moves them: whole, of any size, in pieces. Paths go through the project's workspace.

An upload is written beside its target as it comes, and takes its name when all of it is there. It is recorded for undo: a small
one in the journal, as `write` does it, a large one as what a command changes (up to `record.max_file_bytes`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any, Final

from rye.call import context, profile
from rye.call.context import CallOptions
from rye.edits.apply import index_whole
from rye.errors import WorkspaceError
from rye.fs import beneath, names
from rye.journal import commit, journal, tree_changes
from rye.workspace import cache
from rye.workspace.atomic_replace import discard, sync_directory, temporary_name
from rye.workspace.path_errors import wrong_kind
from rye.workspace.workspace import Place, Workspace

ACTOR: Final = "agent-sandbox"
"""By whom changes are made, as the journal names it."""

TOOL: Final = "agent-sandbox/upload"
MOST_UPLOAD: Final = 8 * 1024 * 1024 * 1024
"""A larger upload is refused (bytes)."""

MOST_ENTRIES: Final = 100_000
"""A folder with more entries is not listed."""

_SMALL: Final = 1024 * 1024
_PIECE: Final = 256 * 1024
_NEW: Final = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


def tool_path(path: str) -> str:
    """Return a path of the contract as our tools name it: relative to the root, also where it begins with a slash."""
    # The bytes that the client sent; what is no UTF-8 came as surrogates.
    return names.show(path.lstrip("/").encode("utf-8", "surrogateescape")) or "."


class Upload:
    """One file on its way. Call `write` for each piece, then `finish` once; `close` in any case."""

    def __init__(self, root: str, path: str) -> None:
        """Open a file beside the target; missing folders are made.

        Raises:
            WorkspaceError: as `Workspace.place`; `is_directory`, `not_regular_file`. UsageError: `read_only_profile`.
        """
        self._stack = ExitStack()
        self._fd = -1
        self._finished = False
        self.size = 0
        try:
            self._ws = self._stack.enter_context(Workspace(root))
            profile.refuse_changes(self._ws.root)
            commit.recover(self._ws)
            self._place: Place = self._stack.enter_context(journal.place_for(self._ws, tool_path(path)))
            if self._place.stat is not None and not stat.S_ISREG(self._place.stat.st_mode):
                raise wrong_kind(self._place.stat.st_mode, self._place.shown)
            self._temporary = temporary_name()
            # As others may read the old file, not sooner than it is whole.
            mode = 0o666 if self._place.stat is None else 0o600
            self._fd = os.open(self._temporary, _NEW, mode, dir_fd=self._place.dir_fd)
        except BaseException as err:
            self._leave(err)
            raise

    def write(self, piece: bytes) -> None:
        """Add a piece. Raises WorkspaceError `file_too_large`, OSError."""
        self.size += len(piece)
        if self.size > MOST_UPLOAD:
            raise WorkspaceError("file_too_large", f"The file is larger than {MOST_UPLOAD:,} bytes.", "Send less.")
        view = memoryview(piece)
        while view:
            view = view[os.write(self._fd, view) :]

    def finish(self) -> None:
        """Put the file in place and record it. Errors as `journal.apply_change`; then nothing was changed."""
        named = CallOptions(actor=ACTOR)
        with context.using(options=named), cache.locked(self._ws, self._place.path):
            old = self._place.stat
            if self.size <= _SMALL and (old is None or old.st_size <= _SMALL):
                self._replace_small()
            else:
                self._replace_large()
        self._finished = True

    def _replace_small(self) -> None:
        data = os.pread(self._fd, _SMALL + 1, 0)
        discard(self._place.dir_fd, self._temporary)
        before = None
        if self._place.stat is not None:
            with self._ws.file(self._place.shown) as file:
                before = file.read()
        if before == data:
            return
        entry = journal.whole_entry(self._ws, TOOL, self._place, before, data)
        journal.apply_change(self._ws, self._place, data, entry)
        index_whole(self._ws, self._place, data, "utf-8")

    def _replace_large(self) -> None:
        if self._place.stat is not None:
            os.fchmod(self._fd, stat.S_IMODE(self._place.stat.st_mode))
        os.fsync(self._fd)
        recording = tree_changes.begin(self._ws, TOOL, f"upload {self._place.shown}")
        try:
            fd = self._place.dir_fd
            os.rename(self._temporary, self._place.name, src_dir_fd=fd, dst_dir_fd=fd)
            sync_directory(fd)
        finally:
            tree_changes.end(self._ws, recording)

    def close(self) -> None:
        """Remove what is left of it: of one that was not finished the folders that were made for it, too."""
        self._leave(None if self._finished else WorkspaceError("unfinished", "The upload did not end."))

    def _leave(self, err: BaseException | None) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            with suppress(OSError):
                discard(self._place.dir_fd, self._temporary)
        # Folders that were made for a file which did not come are removed by the place.
        self._stack.__exit__(type(err) if err else None, err, err.__traceback__ if err else None)


def opened(root: str, path: str) -> tuple[int, int]:
    """Return a descriptor of a file to send, which the caller closes, and its size. Errors as `Workspace.open_file`."""
    with Workspace(root) as ws, ws.file(tool_path(path)) as file:
        return os.dup(file.fd), file.stat.st_size


def piece_at(fd: int, at: int, end: int) -> bytes:
    """Return the next bytes of a file, none at its end."""
    return os.pread(fd, min(_PIECE, end - at), at)


def entries_of(root: str, path: str) -> list[dict[str, Any]]:
    """Return the entries of a folder: `{"name", "size" (bytes), "type": "file" | "directory", "mod_time" (seconds)}`.

    Raises:
        WorkspaceError: as `Workspace`; `not_a_directory`, `too_many_entries`.
    """
    with Workspace(root) as ws:
        fd = _folder(ws, path)
        try:
            found: list[dict[str, Any]] = []
            with os.scandir(fd) as listing:
                for entry in listing:
                    if len(found) >= MOST_ENTRIES:
                        raise WorkspaceError(
                            "too_many_entries", f"{path} has more than {MOST_ENTRIES:,} entries.", "List it with a command."
                        )
                    found += _entry(ws, fd, path, entry)
        finally:
            os.close(fd)
    return sorted(found, key=lambda one: str(one["name"]))


def _folder(ws: Workspace, path: str) -> int:
    relative = tool_path(path)
    try:
        return beneath.open_beneath(ws.fd, ws.components(relative), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)[0]
    except OSError as err:
        raise ws.refusal(err, relative) from None


def _entry(ws: Workspace, fd: int, path: str, entry: os.DirEntry[str]) -> Iterator[dict[str, Any]]:
    """Yield one entry, of a link what it leads to inside the root; nothing where it is gone by now."""
    with suppress(OSError):
        info = os.stat(entry.name, dir_fd=fd, follow_symlinks=False)
        if stat.S_ISLNK(info.st_mode):
            info = _followed(ws, f"{path.rstrip('/')}/{entry.name}") or info
        kind = "directory" if stat.S_ISDIR(info.st_mode) else "file"
        name = entry.name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        yield {"name": name, "size": info.st_size, "type": kind, "mod_time": info.st_mtime}


def _followed(ws: Workspace, path: str) -> os.stat_result | None:
    try:
        fd, _ = beneath.open_beneath(ws.fd, ws.components(tool_path(path)), os.O_PATH | os.O_CLOEXEC)
    except (OSError, WorkspaceError):
        return None
    try:
        return os.fstat(fd)
    finally:
        os.close(fd)


def exists(root: str, path: str) -> bool:
    """Tell whether there is something at a path. Raises WorkspaceError `path_outside` and others, but for what is not there."""
    with Workspace(root) as ws:
        relative = tool_path(path)
        try:
            fd, _ = beneath.open_beneath(ws.fd, ws.components(relative), os.O_PATH | os.O_CLOEXEC)
        except OSError as err:
            refused = ws.refusal(err, relative)
            if refused.code in ("file_not_found", "not_a_directory", "symlink_loop"):
                return False
            raise refused from None
        os.close(fd)
        return True

"""Epochs of line IDs: how often the index of a file began anew, so that no ID comes back for another line.

`<state>/line_index_epochs` has a row `name epoch` for each epoch that began; the last row of a file counts.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from pathlib import Path

from rye.config import user_dirs
from rye.errors import WorkspaceError
from rye.fs.atomic import closing
from rye.workspace import cache
from rye.workspace.workspace import Workspace

FILE = "line_index_epochs"
# From here on the tail of an ID has five digits or more, and no counting arrives soon.
_RANDOM = 4_096


def next_epoch(ws: Workspace, path: bytes, index_folder: tuple[str, ...], above: int = 0) -> int:
    """Return the epoch for an index that begins anew, higher than `above`, and remember that it was used.

    The epoch is drawn at random, from those that no counting reaches soon, where the epochs used before cannot be known: the
    state folder cannot be read or written, or it knows none though something lies where the file's index has its place.
    """
    name = cache.name_of(path)
    try:
        last = _last(_rows(_file(ws)), name)
        epoch = _random_epoch() if last is None and _has_index(ws, name, index_folder) else max(last or 0, above) + 1
        _append(_file(ws), name, epoch)
    except OSError:
        # Trouble with the state folder must not keep a file from being read.
        return _random_epoch()
    return epoch


def give_back(ws: Workspace, path: bytes, epoch: int) -> None:
    """Take it that an epoch was not used: no ID of it was stored or shown, and the file's lock is held since it was drawn."""
    # A random one says that the epochs before cannot be known: it stays.
    if epoch < _RANDOM:
        with suppress(OSError):
            _append(_file(ws), cache.name_of(path), epoch - 1)


def merge(source: Path, target: Path) -> None:
    """Give a project's epochs those of another one; of two epochs of one file the higher one counts.

    Raises:
        OSError: as the system says.
    """
    lost, known = _rows(str(source)), _rows(str(target))
    for name in {one.decode() for one in re.findall(rb"^([0-9a-f]{16}) ", lost, re.MULTILINE)}:
        if (epoch := _last(lost, name) or 0) > (_last(known, name) or 0):
            _append(str(target), name, epoch)


def _file(ws: Workspace) -> str:
    return f"{user_dirs.state_dir(ws.fd)}/{FILE}"


def _random_epoch() -> int:
    return _RANDOM + int.from_bytes(os.urandom(4)) % (1 << 20)


def _has_index(ws: Workspace, name: str, index_folder: tuple[str, ...]) -> bool:
    """Tell whether an index of the file may have been stored here once, though it is none of ours now."""
    with suppress(WorkspaceError, OSError), cache.folder(ws, *index_folder) as fd:
        return os.access(f"{name}.json", os.F_OK, dir_fd=fd)
    return False


def _rows(file: str) -> bytes:
    try:
        with open(file, "rb") as rows:
            return rows.read()
    except FileNotFoundError:
        return b""


def _last(rows: bytes, name: str) -> int | None:
    """Return the last epoch of a file; a damaged row counts as none."""
    found = re.findall(rb"^%b (\d{1,8})\n" % name.encode(), rows, re.MULTILINE)
    return int(found[-1]) if found else None


def _append(file: str, name: str, epoch: int) -> None:
    # At the end and in one write, which those of other processes do not cross; on a line of its own, whatever a full disk left.
    row = f"\n{name} {epoch}\n".encode()
    with closing(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)) as fd:
        if os.write(fd, row) < len(row):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file)

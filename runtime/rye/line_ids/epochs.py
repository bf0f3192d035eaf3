"""Epochs of line IDs: how often the index of a file began anew, so that no ID comes back for another line.

`<state>/line_epochs/<name>` holds the last epoch of one file. What was not used for a month goes into one file for all, `old`,
with a line `name epoch` each: a small file takes a whole block of the disk.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from rye.config import user_dirs
from rye.errors import WorkspaceError
from rye.fs import atomic
from rye.line_ids.index import EPOCHS
from rye.workspace import cache, seals
from rye.workspace.workspace import Workspace

FOLDER = "line_epochs"
OLD = "old"
_UNUSED_SECONDS = 30 * 86_400.0
_STAMP = ".packed"
# From here on the tail of an ID has five digits or more, and no counting arrives soon.
_RANDOM = 4_096


def next_epoch(ws: Workspace, path: bytes, index_folder: tuple[str, ...]) -> int:
    """Return the epoch for an index that begins anew, and remember that it was used.

    The epoch is drawn at random, from those that no counting reaches soon, where the epochs used before cannot be known: the
    state folder cannot be read or written, or it knows none though a sealed index of the file lies in the cache.
    """
    name = cache.name_of(path)
    try:
        folder = Path(user_dirs.state_dir(ws.fd), FOLDER)
        folder.mkdir(mode=0o700, exist_ok=True)
        try:
            epoch = int((folder / name).read_bytes()) + 1
        except FileNotFoundError:
            last = _old(folder).get(name)
            known = last is not None or not _bears_a_seal(ws, name, index_folder)
            epoch = (last or 0) + 1 if known else _random_epoch()
        except ValueError:
            epoch = _random_epoch()
        # Damaged, or counted to the end.
        if not 0 < epoch < EPOCHS:
            epoch = _random_epoch()
        atomic.write(folder / name, f"{epoch}\n".encode(), 0o600, durably=False)
        if atomic.is_due(folder / _STAMP):
            pack(folder)
    except OSError:
        # Trouble with the state folder must not keep a file from being read.
        return _random_epoch()
    return epoch


def give_back(ws: Workspace, path: bytes, epoch: int) -> None:
    """Take it that an epoch was not used: no ID of it was stored or shown, and the file's lock is held since it was drawn."""
    with suppress(OSError, ValueError):
        place = Path(user_dirs.state_dir(ws.fd), FOLDER, cache.name_of(path))
        # A random one says that the epochs before cannot be known: it stays.
        if int(place.read_bytes()) == epoch < _RANDOM:
            if epoch > 1:
                atomic.write(place, f"{epoch - 1}\n".encode(), 0o600, durably=False)
            else:
                place.unlink()


def _random_epoch() -> int:
    return _RANDOM + int.from_bytes(os.urandom(4)) % (1 << 20)


def _bears_a_seal(ws: Workspace, name: str, index_folder: tuple[str, ...]) -> bool:
    """Tell whether an index of the file was stored here once, though its seal is not ours now."""
    with suppress(WorkspaceError, OSError), cache.folder(ws, *index_folder) as fd:
        return (cache.read(fd, f"{name}.json") or b"").startswith(seals.START)
    return False


def _old(folder: Path) -> dict[str, int]:
    """Return the last epochs of files that were not used for long; a damaged line counts as none."""
    out: dict[str, int] = {}
    for line in (atomic.read(folder / OLD) or b"").decode("ascii", "replace").splitlines():
        name, _, epoch = line.partition(" ")
        if epoch.isdecimal() and len(epoch) < 12:
            out[name] = int(epoch)
    return out


def pack(folder: Path) -> None:
    """Move the epochs that were not used for a month into the one file.

    Raises:
        OSError: as the system says.
    """
    before = time.time() - _UNUSED_SECONDS
    with atomic.locked(folder / ".lock"):
        epochs = _old(folder)
        unused: list[Path] = []
        for file in folder.iterdir():
            if file.name.startswith(".") or file.name == OLD or file.stat().st_mtime > before:
                continue
            with suppress(ValueError):
                epochs[file.name] = max(int(file.read_bytes()), epochs.get(file.name, 0))
                unused.append(file)
        # The common file first: a crash in between leaves an epoch in two places, never in none.
        if unused:
            _write(folder, epochs)
        for file in unused:
            file.unlink(missing_ok=True)


def _write(folder: Path, epochs: dict[str, int]) -> None:
    atomic.write(folder / OLD, "".join(f"{name} {epoch}\n" for name, epoch in sorted(epochs.items())).encode(), 0o600)


def merge(source: Path, target: Path) -> None:
    """Give a folder of epochs those of another; of two epochs of one file the higher one counts.

    Raises:
        OSError: as the system says.
    """
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    with atomic.locked(target / ".lock"):
        found = _old(source)
        for file in source.iterdir():
            if not file.name.startswith(".") and file.name != OLD:
                with suppress(ValueError):
                    found[file.name] = max(int(file.read_bytes()), found.get(file.name, 0))
        for name, epoch in found.items():
            # An epoch in a file of its own is read before the common file, so it must be raised too.
            own = atomic.read(target / name) or b""
            if own.strip().isdigit() and int(own) < epoch:
                atomic.write(target / name, f"{epoch}\n".encode(), 0o600, durably=False)
        known = _old(target)
        _write(target, {**known, **{name: max(epoch, known.get(name, 0)) for name, epoch in found.items()}})

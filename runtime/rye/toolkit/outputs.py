"""Outputs that were too long to be shown whole, in the project's state folder: `outputs/<id>/stdout` and `stderr`.

The format of the files is that of `spool`. Old ones are removed when new ones come (settings `outputs.…`).
"""

from __future__ import annotations

import os
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path

from rye import state
from rye.toolkit import config
from rye.toolkit.spool import Spool

FOLDER = "outputs"
ID = re.compile(r"[0-9a-f]{16}\Z")
"""What names an output or a job: 64 random bits."""

_DAY = 86_400


def new_id() -> str:
    """Return a name that nobody guesses."""
    return os.urandom(8).hex()


class Outputs:
    """Where one command's long outputs go; the folder is made when the first of them needs it."""

    def __init__(self, root: str) -> None:
        """Name the folder, making nothing."""
        self.id = new_id()
        self._root = root

    def spool(self, name: str) -> Spool | None:
        """Make the file of a stream; None where the state folder cannot be written."""
        try:
            above = Path(state.state_dir(self._root)) / FOLDER
            folder = above / self.id
            if not folder.exists():
                above.mkdir(mode=0o700, exist_ok=True)
                folder.mkdir(mode=0o700)
                _prune(above)
            dir_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                return Spool(dir_fd, name)
            finally:
                os.close(dir_fd)
        except OSError:
            return None


def _prune(folder: Path) -> None:
    """Remove what is too old, then the oldest until the rest is small enough."""
    with os.scandir(folder) as entries:
        found = sorted(((entry.stat().st_mtime, entry.path) for entry in entries if ID.match(entry.name)), reverse=True)
    oldest = time.time() - config.number("outputs.max_age_days") * _DAY
    room = config.number("outputs.max_bytes")
    for stamp, path in found:
        with suppress(OSError), os.scandir(path) as entries:
            room -= sum(entry.stat().st_size for entry in entries)
        if stamp < oldest or room < 0:
            shutil.rmtree(path, ignore_errors=True)

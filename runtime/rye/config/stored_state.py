"""The state of all projects in the user's space: how much there is, and which of it can go.

State is named by the identity of a project's folder (`user_dirs.project_key`), so only its record says where that folder was.
A folder that was renamed looks gone and is in use: what was used within the age limit is never dropped for that.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rye.config import user_dirs
from rye.config.settings import Settings
from rye.fs import atomic

_DAY = 86_400
# A stamp older than this may mean a clock that jumped ahead: it is believed a day later.
_LEAP = 8 * _DAY
_STAMP = ".pruned"


class StoredState(NamedTuple):
    """What is stored for one project.

    Attributes:
        key: the folder's name in the state.
        path: where the project was first seen; empty where that is not known.
        lost: no folder with this identity is there.
        kinds: bytes on the disk for each kind of state: journal, jobs, …
        used: when anything of it was last written (seconds since 1970).
        busy: a background job listens in it.
    """

    key: str
    path: str
    lost: bool
    kinds: Mapping[str, int]
    used: float
    busy: bool

    @property
    def size(self) -> int:
        """How many bytes it takes on the disk."""
        return sum(self.kinds.values())


def folder() -> Path:
    """Return the folder that holds the state of all projects, which may not exist."""
    return Path(user_dirs.user_ai(), "state")


def stored_states() -> list[StoredState]:
    """Return what is stored for each project, the one used last first."""
    try:
        found = [one for one in folder().iterdir() if one.is_dir() and not one.is_symlink()]
    except OSError:
        return []
    return sorted(map(_measured, found), key=lambda one: -one.used)


def _measured(where: Path) -> StoredState:
    record = atomic.read_json(where / user_dirs.PROJECT_FILE) or {}
    path = str(record.get("path", ""))
    try:
        lost = user_dirs.project_key(path) != where.name
    except (OSError, ValueError):
        lost = True
    kinds, used, busy = Counter[str](), 0.0, False
    for folder_path, _, names in os.walk(where):
        inner = os.path.relpath(folder_path, where)
        for name in names:
            with suppress(OSError):
                info = os.lstat(os.path.join(folder_path, name))
                kinds["other" if inner == "." else inner.split(os.sep)[0]] += atomic.disk_size(info)
                used = max(used, info.st_mtime)
                busy = busy or stat.S_ISSOCK(info.st_mode)
    return StoredState(where.name, path, lost, kinds, used, busy)


def prune() -> None:
    """Drop the state of projects that are gone and were not used for long, then of those used longest ago, beyond the bound."""
    limits, now = Settings(), time.time()
    lost_since = now - limits.number("state.max_age_days") * _DAY
    for one in removable(stored_states(), now - _DAY, lost_since, limits.number("state.max_bytes")):
        with suppress(OSError):
            remove(one.key)


def removable(states: Sequence[StoredState], idle_since: float, lost_since: float, most: float) -> list[StoredState]:
    """Return what can go: what is lost and was not used since then, then what was used longest ago, until the rest fits.

    Args:
        states: all that are stored.
        idle_since: what was used later stays (seconds since 1970), and what a background job listens in.
        lost_since: of what is lost, too.
        most: how many bytes the rest may take.
    """
    idle = [
        (not (one.lost and one.used < lost_since), one.used, one) for one in states if not one.busy and one.used < idle_since
    ]
    left = sum(one.size for one in states)
    found = []
    # False sorts before True: what is lost first, then the longest unused.
    for stays, _, one in sorted(idle, key=lambda row: row[:2]):
        if not stays or left > most:
            found.append(one)
            left -= one.size
    return found


def remove(key: str) -> None:
    """Remove a project's state: renamed first, so that no process finds half of it. Raises OSError."""
    moved_to = folder() / f".{key}.{os.urandom(4).hex()}"
    (folder() / key).rename(moved_to)
    # What a crash leaves under the hidden name belongs to no project, and is harmless.
    shutil.rmtree(moved_to, ignore_errors=True)


def prune_when_due() -> None:
    """Prune once a day; after a longer pause nobody worked here, or the clock jumped ahead: a day later it is believed."""
    stamp, age = folder() / _STAMP, -1.0
    with suppress(OSError):
        age = time.time() - os.stat(stamp).st_mtime
    if 0 <= age < _DAY:
        return
    with suppress(OSError):
        stamp.touch()
        if _DAY <= age <= _LEAP:
            prune()

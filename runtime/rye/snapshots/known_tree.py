"""What is known of a project's tree since the last look, and which commands run in it; see `rye.snapshots.tree`.

It lies in `<state>/tree`, whose lock a look holds. The tree is stored in the form of Python's `marshal`, behind its SHA-256:
loading it is a part of every command's cost. A file that is missing or damaged means that nothing is known, so that the next
look starts anew.

A look first writes the new tree as `known.next`, with the ID of the last journal entry that it makes. So the next look can tell
whether a process that was killed had recorded what it found.
"""

from __future__ import annotations

import json
import marshal
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from rye.config import user_dirs
from rye.fs import atomic
from rye.plain_class import Record
from rye.snapshots.tree import Folders

_TREE: Final = "known"
_NEXT: Final = "known.next"
_RUNNING: Final = "running.json"
_LARGEST: Final = 512 * 1024 * 1024
_DIGEST_BYTES: Final = 32
_VERSION: Final = 1


class Running(Record):
    """A command that runs and may change files.

    Attributes:
        token: its name here.
        process: identity of the process that will look when it ends (see `rye.process.job_supervisor`).
        tool, actor: what the journal says of its changes.
        about: what it is, for people: the beginning of a command line.
        started: seconds since 1970.
    """

    token: str
    process: dict[str, Any]
    tool: str
    actor: str
    about: str
    started: float


class Known(NamedTuple):
    """A tree as it stood at a look.

    Attributes:
        folders: its entries.
        newest: ID of the newest entry of the journal then; empty where there was none.
    """

    folders: Folders
    newest: str


def folder(root: str | int) -> Path:
    """Return the folder of the project's tree, which may not exist. Raises OSError."""
    return Path(user_dirs.state_dir(root), "tree")


@contextmanager
def locked(root: str | int) -> Iterator[Path]:
    """Hold the project's tree; yields its folder. Raises OSError."""
    where = folder(root)
    with atomic.locked(where / "lock"):
        yield where


def load(where: Path, is_recorded: Callable[[str], bool]) -> Known | None:
    """Return what is known of the tree; None where nothing is.

    Args:
        where: the folder; the caller holds its lock.
        is_recorded: tells whether the journal holds an entry with this ID.
    """
    cut_off = _read(where / _NEXT)
    if cut_off is not None:
        if is_recorded(cut_off[1]):
            (where / _NEXT).replace(where / _TREE)
            return cut_off[0]
        (where / _NEXT).unlink(missing_ok=True)
    found = _read(where / _TREE)
    return None if found is None else found[0]


def _read(path: Path) -> tuple[Known, str] | None:
    data = atomic.read(path, _LARGEST)
    # The digest is compared first: `marshal` trusts its input.
    if data is None or data[:_DIGEST_BYTES] != sha256(data[_DIGEST_BYTES:]).digest():
        return None
    try:
        version, folders, newest, entry_id = marshal.loads(memoryview(data)[_DIGEST_BYTES:])  # noqa: S302 - our own state
    except (ValueError, EOFError, TypeError):
        return None
    return (Known(folders, newest), entry_id) if version == _VERSION else None


def prepare(where: Path, known: Known, entry_id: str) -> None:
    """Write a new tree, to take effect with `finish`, or once the entry is in the journal. Raises OSError."""
    plain = {path: {name: tuple(mark) for name, mark in marks.items()} for path, marks in known.folders.items()}
    data = marshal.dumps((_VERSION, plain, known.newest, entry_id))
    atomic.write(where / _NEXT, sha256(data).digest() + data, 0o600, durably=False)


def finish(where: Path) -> None:
    """Let the tree that was prepared take effect. Raises OSError."""
    (where / _NEXT).replace(where / _TREE)


def forget(where: Path) -> None:
    """Drop what is known, so that the next look starts anew."""
    for name in (_NEXT, _TREE):
        with suppress(OSError):
            (where / name).unlink(missing_ok=True)


def running(where: Path) -> list[Running]:
    """Return the commands that run, or were cut off."""
    found = atomic.read_json(where / _RUNNING) or {}
    out = []
    for token, one in found.items():
        with suppress(TypeError):
            out.append(Running(token=token, **one))
    return out


def set_running(where: Path, commands: list[Running]) -> None:
    """Store which commands run; with none there is no file. Raises OSError."""
    if not commands:
        (where / _RUNNING).unlink(missing_ok=True)
        return
    record = {
        one.token: {"process": one.process, "tool": one.tool, "actor": one.actor, "about": one.about, "started": one.started}
        for one in commands
    }
    atomic.write(where / _RUNNING, json.dumps(record).encode(), 0o600, durably=False)


def is_running(root: str | int) -> bool:
    """Tell whether a command runs whose changes are recorded. One look at a name: every edit asks."""
    try:
        return os.path.exists(folder(root) / _RUNNING)
    except OSError:
        return False

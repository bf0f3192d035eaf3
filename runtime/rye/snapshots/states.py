"""Plain data of the record of commands: how an entry of the tree stands, what changed, and who may have changed it."""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rye.plain_class import Record

FORMAT: Final = 0o170000
"""The bits of a mode that tell the type."""

_KINDS: Final = {stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFDIR: "directory", stat.S_IFIFO: "fifo"}


class Mark(NamedTuple):
    """How an entry stood at a walk.

    Attributes:
        ctime: time of its last change (ns); -1: it must be read again; 0 for a folder.
        inode: its inode.
        mode: type and permission bits.
        size: of a file (bytes).
        value: hexadecimal SHA-256 of a file's content, or a link's target; None where it is not stored.
        shared: the file has other names (hard links).
    """

    ctime: int
    inode: int
    mode: int
    size: int
    value: str | None
    shared: bool


Folders = dict[str, dict[str, Mark]]
"""Folder from the root (`""`: the root itself) -> name -> mark; `PASSED` for one that is not recorded."""

PASSED: Final[dict[str, Mark]] = {"/": Mark(0, 0, 0, 0, None, False)}
"""What is known of a folder that is not recorded: that it is there. No file has this name."""


class State(NamedTuple):
    """What is under a path.

    Attributes:
        kind: `file`, `link`, `directory`, `fifo` or `other` (a socket or a device).
        mode: permission bits; 0 of a link.
        value: hexadecimal SHA-256 of a file's content, or a link's target; None where the content is not stored.
        size: of a file (bytes).
        links: the other names of the file in the tree (hard links).
    """

    kind: str
    mode: int
    value: str | None
    size: int
    links: Sequence[str] = ()


class Change(NamedTuple):
    """What a walk found different at a path; None: nothing is there."""

    path: str
    before: State | None
    after: State | None


class Running(Record):
    """A command that runs and may change files.

    Attributes:
        token: its name, see `rye.workspace.running_commands`.
        tool, actor: what the journal says of its changes.
        about: what it is, for people: the beginning of a command line.
        started: seconds since 1970.
    """

    token: str
    tool: str
    actor: str
    about: str
    started: float


def state_of(mark: Mark | None, links: Sequence[str] = ()) -> State | None:
    """Return a mark as it is recorded, with the other names of the file."""
    if mark is None:
        return None
    # As loaded, a mark is a plain list.
    mark = Mark(*mark)
    kind = _KINDS.get(mark.mode & FORMAT, "other")
    if kind == "file":
        # Without set-id bits: an undo that gave them back would give them to what was written since.
        return State(kind, stat.S_IMODE(mark.mode) & ~(stat.S_ISUID | stat.S_ISGID), mark.value, mark.size, links)
    if kind == "link":
        return State(kind, 0, mark.value, 0)
    return State(kind, stat.S_IMODE(mark.mode), "", 0)


def is_passed(marks: Mapping[str, Mark]) -> bool:
    """Tell whether a folder is one that is not recorded, by what is known of it."""
    return "/" in marks

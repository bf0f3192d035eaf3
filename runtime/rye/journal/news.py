"""What changed in a project since an entry of its record, whoever changed it."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from rye.call import context
from rye.errors import WorkspaceError
from rye.journal.own_edits import paths_since
from rye.journal.tree_changes import look_at, newest_entry
from rye.snapshots import known_tree
from rye.snapshots.tree import Change, TooLargeError
from rye.workspace.workspace import Workspace


class News(NamedTuple):
    """What changed in the project, whoever changed it.

    Attributes:
        newest: the newest entry.
        recorded: the paths that entries changed since an older one -> whether something was there before.
        unrecorded: what differs from the last look while a command runs, by path.
    """

    newest: str
    recorded: dict[str, bool]
    unrecorded: dict[str, Change]


def news(ws: Workspace, since: str | None) -> News:
    """Return what changed since an entry; what others changed until now is recorded first, where no command runs.

    Where no look is kept it is what entries say. `since`: None, where only the beginning is asked for.
    """
    found: list[Change] = []
    if known_tree.is_known(ws.fd) and context.settings().get("record.commands"):
        with suppress(OSError, TooLargeError, WorkspaceError), look_at(ws, quick=True) as look:
            if look.running:
                found = look.changes
            else:
                look.attribute()
    newest = newest_entry(ws)
    recorded = {} if since in (None, newest) else paths_since(ws, str(since))
    return News(newest, recorded, {one.path: one for one in found})

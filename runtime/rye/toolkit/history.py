"""The journal from its newest entry on, read as far as it is asked for: a long one costs no more than a short one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rye.toolkit import journal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rye.toolkit.journal import Entry
    from rye.toolkit.workspace import Workspace


class History:
    """The recorded changes of a project, newest first; each is read once, when it is come to.

    What undoes an entry is newer than it: so `undone` is true for every entry that was come to.

    Attributes:
        read: the entries come to, by ID, newest first.
        undone: which entries are undone, by which; an undone undo counts no more.
    """

    def __init__(self, ws: Workspace) -> None:
        """List the journal; nothing is read."""
        self._waiting = journal.files(ws)[::-1]
        self.read: dict[str, Entry] = {}
        self.undone: dict[str, str] = {}

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries, newest first; unreadable files are passed over."""
        yield from [*self.read.values()]
        while self._waiting:
            entry = journal.kept(self._waiting.pop())
            if entry is None:
                continue
            self.read[entry.id] = entry
            if entry.undoes is not None and entry.id not in self.undone:
                self.undone.setdefault(entry.undoes, entry.id)
            yield entry

    @property
    def left(self) -> int:
        """Return how many were not come to."""
        return len(self._waiting)

    def undoer(self, entry: Entry) -> str | None:
        """Return what undid an entry, or None; only what is newer than it is read."""
        for one in self:
            if one.id <= entry.id:
                break
        return self.undone.get(entry.id)

    def batch(self, batch_id: str) -> list[Entry]:
        """Return the newest entry of each file of a batch, newest first, none older than need be."""
        found: dict[str, Entry] = {}
        for entry in self:
            if entry.batch == batch_id:
                found.setdefault(entry.path, entry)
                if len(found) == entry.batch_size:
                    break
        return list(found.values())


__all__ = ["History"]

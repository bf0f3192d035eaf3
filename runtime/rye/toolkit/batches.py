"""Landing changes of several files as one: edits of lines and changes of whole files, each with its line IDs carried over."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rye.toolkit import commits
from rye.toolkit.editing import index_whole
from rye.toolkit.landing import Prepared, landed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rye.toolkit.journal import Entry
    from rye.toolkit.workspace import Place, Workspace


class Whole(NamedTuple):
    """The change of a whole file: created, replaced or (data None) deleted.

    Attributes:
        entry: from `journal.whole_entry`.
        data: the new content.
        encoding: codec name for its index.
        ids: IDs that its lines get back, one each; empty when new.
    """

    entry: Entry
    data: bytes | None
    encoding: str = "utf-8"
    ids: Sequence[str | None] = ()


class Piece(NamedTuple):
    """One file of a batch: where it stands, held open, and what shall become of it."""

    place: Place
    made: Prepared | Whole


def land_all(ws: Workspace, pieces: Sequence[Piece], tool: str, batch: str) -> commits.Committed:
    """Make all changes or none, under one name in the journal; the caller holds the files' locks.

    Raises:
        WorkspaceError, DeadlineError: as `commits.commit`.
    """
    changes = [commits.Change(piece.place, piece.made.entry.before, _content(piece.made), piece.made.entry) for piece in pieces]
    committed = commits.commit(ws, changes, tool, batch)
    warnings = [*committed.warnings]
    for piece, entry in zip(pieces, committed.entries, strict=True):
        if isinstance(piece.made, Prepared):
            warnings += landed(piece.made, piece.place, entry, ()).warnings
        elif piece.made.data is not None:
            warnings += index_whole(ws, piece.place, piece.made.data, piece.made.encoding, piece.made.ids)
    return commits.Committed(committed.entries, warnings)


def _content(made: Prepared | Whole) -> bytes | None:
    return (made.document.data or b"") if isinstance(made, Prepared) else made.data

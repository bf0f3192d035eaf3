"""Installing verified bytes below a space: one file, or several in one step, replacing nothing that its owner did not allow."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from rye.edits.apply import FileChange, WholeFile, apply_all
from rye.errors import ItemError, WorkspaceError
from rye.fs import names
from rye.items import spaces
from rye.journal import journal, own_files
from rye.workspace.atomic_replace import is_free
from rye.workspace.workspace import Place, Workspace


class Copy(NamedTuple):
    """One file to install: its path below the root, its bytes, and its item type, if it is an item."""

    path: str
    raw: bytes
    item_type: str = ""


class Installed(NamedTuple):
    """What was done: for each copy its path for people and the digest of what it replaced (None: nothing), and warnings."""

    paths: list[str]
    replaced: list[str | None]
    warnings: list[str]


def install(copies: Sequence[Copy], root: str, tool: str, may_replace: Callable[[str, bytes], bool]) -> Installed:
    """Write all the files or none; each is written whole, is recorded in the journal, and can be undone.

    Args:
        copies: of different files.
        root: the folder that holds the space's `.ai`.
        tool: the id by which the journal names the change.
        may_replace: decides by path and content whether a different file at the destination may be replaced.

    Raises:
        WorkspaceError: `is_link`, `path_outside`, and what else the workspace refuses.
        ItemError: `destination_exists`. Nothing was written.
    """
    with Workspace(root) as ws, ExitStack() as stack:
        held = own_files.held(ws, stack, [copy.path for copy in copies])
        warnings: list[str] = []
        pieces: list[FileChange] = []
        for copy, (place, old) in zip(copies, held, strict=True):
            _refuse_unfit(place, copy, old, may_replace)
            if old == copy.raw:
                warnings.append(f"{place.shown} is there already, byte for byte.")
                continue
            entry = journal.whole_entry(ws, tool, place, old, copy.raw)
            pieces.append(FileChange(place, WholeFile(entry, copy.raw)))
        # Several files are one commit, so that a crash leaves all of them or none.
        warnings += apply_all(ws, pieces, None)[2]
        shown = [names.show(os.path.join(os.fsencode(os.path.abspath(root)), os.fsencode(copy.path))) for copy in copies]
        before = {piece.place.shown: piece.made.entry.before for piece in pieces}
        return Installed(shown, [before.get(place.shown) for place, _ in held], warnings)


def _refuse_unfit(place: Place, copy: Copy, old: bytes | None, may_replace: Callable[[str, bytes], bool]) -> None:
    """Refuse to write a copy behind a link, beside a file of the same id, or in place of what may not be replaced."""
    # The physical path is compared: a link in a project could lead the file to another place.
    if place.shown != copy.path:
        what = f"{copy.path} is reached through a symbolic link, to {place.shown}."
        raise WorkspaceError("is_link", what, "Remove the link.")
    _refuse_siblings(place, copy)
    if old not in (None, copy.raw) and not may_replace(copy.path, old or b""):
        why = f"Another file is at {place.shown}. Nothing was copied."
        raise ItemError("destination_exists", why, "Compare the two; give overwrite to replace it.")


def _refuse_siblings(place: Place, copy: Copy) -> None:
    """Two files of one id and type would hide one another."""
    if not copy.item_type:
        return
    stem, suffix = os.path.splitext(copy.path)
    name = stem.rpartition("/")[2]
    scripts = spaces.scripts_named(place.dir_fd, name) if copy.item_type == "tool" else []
    for other in (*spaces.TYPES[copy.item_type][1], *scripts):
        if other != suffix and not is_free(place, os.fsencode(f"{name}{other}")):
            why = f"{stem}{other} has the same id. Nothing was copied."
            raise ItemError("destination_exists", why, "Remove it first, if it is not needed.")

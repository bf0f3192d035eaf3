"""Installing verified bytes below a space: one file, or several in one step, replacing nothing that its owner did not allow."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from rye.errors import ItemError, WorkspaceError
from rye.toolkit import cache, commits, editing, journal, names
from rye.toolkit.replace import digest_of
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rye.toolkit.workspace import Place


class Copy(NamedTuple):
    """One file to install: its path below the root, its bytes, and the extensions under which its id could stand, too."""

    path: str
    raw: bytes
    suffixes: Sequence[str] = ()


class Installed(NamedTuple):
    """What was done: for each copy its path for people and the digest of what it replaced (None: nothing), and warnings."""

    paths: list[str]
    replaced: list[str | None]
    warnings: list[str]


def install(copies: Sequence[Copy], root: str, tool: str, may_replace: Callable[[str, bytes], bool]) -> Installed:
    """Write all the files or none; each lands whole, is recorded in the journal, and can be undone.

    Args:
        copies: of different files.
        root: the folder that holds the space's `.ai`.
        tool: the id by which the journal names the change.
        may_replace: tells by path and content whether a file that stands there, and differs, may go.

    Raises:
        WorkspaceError: `is_link`, `path_outside`, and what else the workspace refuses.
        ItemError: `destination_exists`. Nothing was written.
    """
    with Workspace(root) as ws, ExitStack() as stack:
        journal.recover(ws)
        commits.recover(ws)
        places = [stack.enter_context(ws.place(copy.path, create_parents=True)) for copy in copies]
        stack.enter_context(cache.locked(ws, *{place.path for place in places}))
        warnings: list[str] = []
        old = [_standing(ws, place, copy, warnings, may_replace) for place, copy in zip(places, copies, strict=True)]
        changes = [
            commits.Change(place, None if before is None else digest_of(before), copy.raw,
                           journal.whole_entry(ws, tool, place, before, copy.raw))
            for place, copy, before in zip(places, copies, old, strict=True) if before != copy.raw
        ]  # fmt: skip
        warnings += _land(ws, changes, tool)
        shown = [names.show(os.path.join(os.fsencode(os.path.abspath(root)), os.fsencode(copy.path))) for copy in copies]
        replaced = [
            digest_of(before) if before is not None and before != copy.raw else None
            for before, copy in zip(old, copies, strict=True)
        ]
        return Installed(shown, replaced, warnings)


def _land(ws: Workspace, changes: Sequence[commits.Change], tool: str) -> list[str]:
    warnings: list[str] = []
    if len(changes) == 1 and changes[0].entry is not None:
        warnings += journal.land(ws, changes[0].place, changes[0].data, changes[0].entry)
    elif changes:
        warnings += commits.commit(ws, changes, tool).warnings
    for change in changes:
        warnings += editing.index_whole(ws, change.place, change.data or b"", "utf-8")
    return warnings


def _standing(
    ws: Workspace, place: Place, copy: Copy, warnings: list[str], may_replace: Callable[[str, bytes], bool]
) -> bytes | None:  # fmt: skip
    """Return what stands at a copy's place, if it may be replaced."""
    if place.shown != copy.path:
        raise WorkspaceError(
            "is_link", f"{copy.path} is reached through a symbolic link, to {place.shown}.", "Remove the link."
        )
    _refuse_siblings(place, copy)
    if place.stat is None:
        return None
    with ws.file(place.shown) as file:
        old = file.read()
    if old == copy.raw:
        warnings.append(f"{place.shown} stands there already, byte for byte.")
    elif not may_replace(copy.path, old):
        raise ItemError(
            "destination_exists", f"Another file stands at {place.shown}. Nothing was copied.",
            "Compare the two; give overwrite to replace it.",
        )  # fmt: skip
    return old


def _refuse_siblings(place: Place, copy: Copy) -> None:
    """Two files of one id and type would hide one another."""
    stem, suffix = os.path.splitext(copy.path)
    for other in copy.suffixes:
        if other != suffix and _stands(place, f"{stem}{other}".rpartition("/")[2]):
            raise ItemError(
                "destination_exists", f"{stem}{other} has the same id. Nothing was copied.",
                "Remove it first, if it is not needed.",
            )  # fmt: skip


def _stands(place: Place, name: str) -> bool:
    try:
        os.stat(name, dir_fd=place.dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True

"""What a command of rye writes for its person, wherever that lies in a project: one step for all files, recorded as any change.

Tools may not write some of these places (a client's settings, lockfiles): there the person alone takes it back, by hand.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Final, NamedTuple

from rye.fs import atomic, names
from rye.journal import commit, journal, recovery
from rye.plain_class import changed
from rye.workspace import cache
from rye.workspace.atomic_replace import conflict
from rye.workspace.workspace import Place, Workspace

BY_A_PERSON: Final = "rye/cli/"
"""How the names begin by which the journal names what a person's command line wrote."""


class OwnFile(NamedTuple):
    """A file to write.

    Attributes:
        path: absolute, where no link leads elsewhere.
        data: the new content; None deletes the file.
        mode: permission bits of a new file; None: 0666 less the umask. A file that is there keeps its own.
    """

    path: str
    data: bytes | None
    mode: int | None = None


def root_of(paths: Sequence[str], roots: Sequence[str]) -> str | None:
    """Return the first of some folders that all paths lie below, as a real path; None where none is."""
    real = map(os.path.realpath, roots)
    return next((root for root in real if all(path.startswith(os.path.join(root, "")) for path in paths)), None)


def write(
    files: Sequence[OwnFile], tool: str, roots: Sequence[str], *, guarded: bool = False, replace: bool = True
) -> list[str]:
    """Write all files, or none, and record them in the journal of the first of some projects that holds them all.

    Files that lie in none of these are in no project's record: they are written one by one.

    Args:
        files: of different paths; missing folders are made.
        tool: by which the journal names the change.
        roots: the projects' folders.
        guarded: refuse what no tool may write: for files that belong to none of these places.
        replace: whether a file that is there may be replaced, which is for who has looked at it.

    Returns:
        Warnings.

    Raises:
        WorkspaceError: as `commit.commit`; `conflict`, there is a file that may not be replaced. OSError: a file outside of all
            projects cannot be written.
    """
    root = root_of([file.path for file in files], roots)
    if root is None:
        for file in files:
            _write_unrecorded(file)
        return []
    with Workspace(root) as ws, ExitStack() as stack:
        shown = [names.show(os.fsencode(os.path.relpath(file.path, root))) for file in files]
        changes = []
        for file, (place, old) in zip(files, held(ws, stack, shown, guarded=guarded), strict=True):
            if old is not None and not replace:
                raise conflict(place)
            if old != file.data:
                entry = journal.whole_entry(ws, tool, place, old, file.data)
                entry = entry if file.mode is None else changed(entry, mode=file.mode)
                changes.append(commit.Change(place, file.data, entry))
        return commit.commit(ws, changes, is_own=True).warnings


def held(ws: Workspace, stack: ExitStack, paths: Sequence[str], *, guarded: bool = True) -> list[tuple[Place, bytes | None]]:
    """Hold the places and the locks of files until the stack ends; return each place with the file's content, None for no file.

    Errors as `journal.place_for`.
    """
    # First: what a crash left half done must not be taken for the present state of a file.
    recovery.recover(ws)
    places = [stack.enter_context(journal.place_for(ws, path, guarded=guarded)) for path in paths]
    # All locks in one call, which takes them in a fixed order: two writers cannot wait for each other.
    stack.enter_context(cache.locked(ws, *{place.path for place in places}))
    return [(place, ws.content_of(place)) for place in places]


def _write_unrecorded(file: OwnFile) -> None:
    if file.data is None:
        with suppress(FileNotFoundError):
            os.unlink(file.path)
        return
    os.makedirs(os.path.dirname(file.path), exist_ok=True)
    try:
        mode = stat.S_IMODE(os.stat(file.path).st_mode)
    except FileNotFoundError:
        mode = 0o644 if file.mode is None else file.mode
    atomic.write(file.path, file.data, mode)

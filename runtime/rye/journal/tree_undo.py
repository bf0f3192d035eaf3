"""Taking back what a command changed in the tree: files, links, folders and modes, all of one look's change or one file of it.

A path is taken back where it is as the change left it. A text file that changed elsewhere since is merged: the change is
taken out of it where its lines stand unchanged. Anything else is refused, and nothing is written.

What is worked out here is made by `rye.journal.tree_undo_steps`.
"""

from __future__ import annotations

import functools
import os
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rye.call.results import call_text, first_few
from rye.errors import EditError, WorkspaceError
from rye.fs import beneath
from rye.journal import followed_lines, hunks, journal
from rye.journal import tree_undo_steps as steps
from rye.journal.entries import Entry, printable
from rye.plain_class import changed
from rye.snapshots.contents import Contents
from rye.snapshots.states import Change, State
from rye.workspace import protected_paths
from rye.workspace.encoding import UTF8
from rye.workspace.text import split
from rye.workspace.workspace import Workspace

_MAX_NAMED: Final = 5


class Plan(NamedTuple):
    """What an undo will do.

    Attributes:
        changes: for each path what is there, and what shall be.
        merged: paths whose change is taken out of a file that changed elsewhere since.
        guarded: paths that only the user may write, which are left as they are.
        gone: sockets and devices, which no undo makes again.
    """

    changes: list[Change]
    merged: list[str]
    guarded: list[str]
    gone: list[str]


def plan(ws: Workspace, contents: Contents, entry: Entry, path: str | None, chosen: Mapping[str, Sequence[int]]) -> Plan:
    """Work out what takes back a change of the tree, or its part at one path.

    Args:
        ws: the workspace.
        contents: the stored contents.
        entry: the change.
        path: the one path; None: all.
        chosen: for some paths the numbers of the hunks to take back; for the others all.

    Raises:
        EditError: `changed_since`, `not_recorded`, `damaged_entry`: nothing was written.
        WorkspaceError: `protected_path`, when the one path, or every path of those that differ, may not be written by tools.
    """
    made = Plan([], [], [], [])
    guard: WorkspaceError | None = None
    refused: list[str] = []
    current: list[dict[str, object]] = []
    links = protected_paths.links_of(ws.fd)
    respelled = _respelled(ws, [one.path for one in entry.files or ()])
    for one in entry.files or ():
        if path not in (None, one.path):
            continue
        try:
            ws.guard(steps.parts_of(one.path), links=links)
        except WorkspaceError as err:
            # What a command did elsewhere is taken back all the same.
            guard = guard or err
            made.guarded.append(one.path)
            continue
        if one.before is not None and one.before.kind == "other":
            made.gone.append(one.path)
            continue
        is_there = one.path not in respelled
        why = _planned(ws, contents, made, entry, one, chosen.get(one.path), current, is_there=is_there)
        if why:
            refused.append(f"{printable(one.path)} {why}")
    if refused:
        raise EditError(
            "changed_since",
            f"Change {entry.id} cannot be taken back exactly: {first_few(refused, between='; ')}. Nothing was written.",
            "Give file_path, or hunks of a file, to take back a part of it, or edit the file by hand; "
            f"{call_text('undo', list=True)} shows what the change was.",
            **({"current": current[:_MAX_NAMED]} if current else {}),
        )
    if guard is not None and not made.changes:
        raise guard
    if made.gone and not made.changes:
        raise EditError(
            "not_recorded",
            f"Change {entry.id} removed or changed sockets or devices alone ({printable(made.gone[0])}), which no "
            "undo makes again. Nothing was written.",
            "Start the program again that makes them.",
        )
    return made


def _respelled(ws: Workspace, paths: Sequence[str]) -> set[str]:
    """Return those of the paths that differ from others in their spelling alone and are not there as they are spelled.

    A file system that ignores case finds the other file there: a change that renames `a` to `A` would seem half taken back.
    """
    folded = {path: unicodedata.normalize("NFC", path).casefold() for path in paths}
    counted = Counter(folded.values())
    names_in = functools.cache(functools.partial(steps.names_in, ws))

    def is_spelled(path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return name in names_in(folder) and (not folder or is_spelled(folder))

    return {path for path in paths if counted[folded[path]] > 1 and not is_spelled(path)}


def _planned(
    ws: Workspace,
    contents: Contents,
    made: Plan,
    entry: Entry,
    one: Change,
    chosen: Sequence[int] | None,
    current: list[dict[str, object]],
    *,
    is_there: bool,
) -> str:
    """Add one path to the plan; return why that cannot be, in words, or an empty text. `current` takes the lines in the way."""
    if one.after is not None and one.after.kind == "file" and one.after.value is None:
        # Asked before the file is read, which may take long.
        return "was left as a file whose content is not recorded: it is too large, or may not be read"
    now = steps.state_now(ws, one.path) if is_there else None
    if chosen is not None and not chosen:
        return ""
    if chosen is None:
        if steps.alike(now, one.before) and not steps.parted(one):
            return ""
        missing = _not_stored(contents, one.before)
        if missing:
            return missing
        if steps.alike(now, one.after):
            # As recorded, because the names that a file shares are not seen at its path.
            made.changes.append(Change(one.path, one.after, one.before))
            return ""
    merged = _merged(ws, contents, entry, one, now, chosen)
    if isinstance(merged, State):
        if chosen is None or not steps.alike(now, one.after):
            made.merged.append(one.path)
        made.changes.append(Change(one.path, now, merged))
        return ""
    current += merged
    return f"has changed since{hunks.said_in_the_way(merged)}"


def _not_stored(contents: Contents, state: State | None) -> str:
    if state is None or state.kind in ("link", "directory", "fifo"):
        return ""
    if state.value is None:
        return "was a file whose content is not recorded: it was too large, or could not be read"
    return "" if contents.is_whole(bytes.fromhex(state.value)) else "has no stored content any more"


def _merged(
    ws: Workspace, contents: Contents, entry: Entry, one: Change, now: State | None, chosen: Sequence[int] | None
) -> State | list[dict[str, object]]:
    """Return the file with the change, or hunks of it, taken out where it is unchanged, its content stored.

    Returns:
        The file as it shall be; where that is not exact, the lines in the way, if there are any.
    """
    sides = hunks.texts(contents, one)
    if (
        sides is None
        or now is None
        or now.kind != "file"
        or now.size > hunks.MAX_TEXT
        or one.after is None
        or one.before is None
    ):
        return []
    how = os.O_RDONLY | os.O_NONBLOCK
    with steps.folder_of(ws, one.path) as (fd, name), open(beneath.open_file(fd, name, how), "rb") as file:
        current = file.read()
    wanted = hunks.between(one.path, sides.before, sides.after, sides.codes)
    wanted = [hunk for hunk in wanted if chosen is None or hunk.number in chosen]
    found = followed_lines.places(ws, entry, wanted, current) if wanted else ([], [])
    if found is None:
        return []
    spots, missing = found
    # It is text, or the record would not tell of its lines.
    code = hunks.code_of(current) or UTF8
    lines = split(current, code)
    result = missing or hunks.replaced(lines, spots, code.newline)
    if not isinstance(result, bytes):
        return [hunks.in_the_way(one.path, lines[place.start : place.stop], place, code.name) for place in result]
    digest = contents.put(result)
    mode = now.mode
    # The mode is the hunk behind those of the lines.
    if one.before.mode != one.after.mode and (chosen is None or len(hunks.of_change(contents, one)) in chosen):
        if now.mode == one.after.mode:
            mode = one.before.mode
        elif chosen is not None and now.mode != one.before.mode:
            return []
    return State("file", mode, digest.hex(), len(result))


def entry_for(
    ws: Workspace, planned: Plan, tool: str, undoes: Entry, path: str | None, taken: Sequence[int] = (), count: int = 0
) -> Entry:
    """Return the journal's entry of an undo; `taken` are the hunks of the path that it takes back, out of `count`."""
    first = printable(planned.changes[0].path)
    made = journal.undoing(journal.new_entry(ws, tool, first, None, None, "utf-8", []), undoes.id)
    about = undoes.about or undoes.tool
    undone = about.removeprefix("undo of ")
    said = f"redo of {undone}" if undone != about else f"undo of {about.removeprefix('redo of ')}"
    return changed(made, files=planned.changes, part=path, about=said, hunks=[*taken], hunk_count=count)

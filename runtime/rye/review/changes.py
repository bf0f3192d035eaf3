"""The calls that changed something, as the timeline lists them: newest first, searched and filtered."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from rye.edits import change_texts
from rye.fs import stamps
from rye.journal import history, tree_changes
from rye.journal.entries import Entry
from rye.journal.history import History, Row
from rye.review.marks import ReviewMarks
from rye.workspace.workspace import Workspace

PER_PAGE: Final = 100
"""So many calls are on one page of the timeline."""

_MOST_PATHS: Final = 200
# What others changed is looked for so often at most.
_EVERY_SECONDS: Final = 2.0


class ChangeGroup(NamedTuple):
    """One call: an entry, or the entries of a batch that were made together, newest first. Its ID takes all of it back."""

    id: str
    rows: Sequence[Row]

    @property
    def first(self) -> Row:
        """The row that stands for it."""
        return self.rows[-1]

    @property
    def files(self) -> int:
        """How many files it changed."""
        return sum(row.files for row in self.rows)

    @property
    def who(self) -> str:
        """Who made it."""
        return self.first.actor or NOBODY

    @property
    def tool(self) -> str:
        """Its tool's short name."""
        return "someone else" if self.first.tool == tree_changes.SOMEONE_ELSE else self.first.tool.rpartition("/")[2]

    @property
    def title(self) -> str:
        """The heading of its page."""
        more = f" and {self.files - 1:,} more" if self.files > 1 else ""
        return f"{self.tool}: {os.path.basename(self.first.path)}{more}"


class ChangeSummary(NamedTuple):
    """What a call's entries say of it: the command, the paths (some of many), and its lines, once they are counted."""

    about: str
    paths: Sequence[str]
    added: int | None = None
    removed: int | None = None


class Query(NamedTuple):
    """What is looked for. Empty texts ask for nothing.

    Attributes:
        text: in the paths, the command, the tool, the caller, the ID; letter case does not count.
        tool, actor: these exactly.
        show: `new` (since the user looked last), `open` (not reviewed), `undone`.
    """

    text: str = ""
    tool: str = ""
    actor: str = ""
    show: str = ""


class Timeline(NamedTuple):
    """The journal at one moment.

    Attributes:
        groups: newest first.
        places: where in `groups` one is, by its ID and those of its entries.
        rows: the journal's rows by ID, newest first.
        past: the journal's own list, which knows what was taken back by which undo.
    """

    groups: Sequence[ChangeGroup]
    places: dict[str, int]
    rows: dict[str, Row]
    past: History

    def group(self, call_id: str) -> ChangeGroup:
        """Return a call by its ID, or by that of one of its entries. Raises LookupError."""
        return self.groups[self.places[call_id]]

    def newer(self, entry_id: str) -> int | None:
        """Return how many calls came after an entry, which the record may have dropped by now; None for no entry."""
        if not entry_id or entry_id in self.places:
            return self.places.get(entry_id)
        return sum(call.first.id > entry_id for call in self.groups)

    def undos_of(self, entry_id: str) -> list[str]:
        """Return the undos that took back an entry, its files or its hunks, each once."""
        whole = [self.past.undone[entry_id]] if entry_id in self.past.undone else []
        parts = list(self.past.undone_parts.get(entry_id, {}).values())
        hunks = [by for taken in self.past.undone_hunks.get(entry_id, {}).values() for by in taken.values()]
        return list(dict.fromkeys([*whole, *parts, *hunks]))

    def is_undone(self, call: ChangeGroup) -> bool:
        """Tell whether all of a call is taken back."""
        return all(row.id in self.past.undone for row in call.rows)


class ChangeIndex:
    """The calls of one project. Any thread may ask."""

    def __init__(self, root: str) -> None:
        """Read a project's journal, given by the project's root."""
        self._root = root
        self._lock = threading.Lock()
        self._known: tuple[str, Timeline] | None = None
        self._caught_up = -_EVERY_SECONDS
        self._facts: dict[str, ChangeSummary] = {}

    def version(self, ws: Workspace) -> str:
        """Return a text that changes whenever the journal does, also by what others changed until now."""
        if time.monotonic() - self._caught_up > _EVERY_SECONDS:
            self._caught_up = time.monotonic()
            tree_changes.catch_up(ws)
        with suppress(OSError):
            return str(stamps.stamp(str(history.folder(ws) / "index")) or "")
        return ""

    def timeline(self, ws: Workspace) -> Timeline:
        """Return the calls as they are now."""
        version = self.version(ws)
        with self._lock:
            if self._known is None or not version or self._known[0] != version:
                self._known = (version, _read(ws))
            return self._known[1]

    def find(self, ws: Workspace, now: Timeline, query: Query, marks: ReviewMarks) -> Sequence[ChangeGroup]:
        """Return the calls that a query asks for."""
        found: Sequence[ChangeGroup] = now.groups
        if query.show == "new":
            found = found[: now.newer(marks.looked)]
        elif query.show == "open":
            found = [call for call in found if call.id not in marks]
        elif query.show == "undone":
            found = [call for call in found if now.is_undone(call)]
        found = [call for call in found if query.tool in ("", call.first.tool) and query.actor in ("", call.who)]
        return [call for call in found if self._holds(ws, call, query.text.casefold())] if query.text else found

    def _holds(self, ws: Workspace, call: ChangeGroup, text: str) -> bool:
        row = call.first
        if text in f"{call.id} {row.tool} {row.actor} {' '.join(one.path for one in call.rows)}".casefold():
            return True
        # What a command was, and which files it changed besides its first, only its entry says.
        facts = self._facts_of(ws, call) if row.files > 1 or row.tool not in _ONE_FILE else ChangeSummary("", ())
        return text in f"{facts.about} {' '.join(facts.paths)}".casefold()

    def facts(self, ws: Workspace, among: Sequence[ChangeGroup]) -> dict[str, ChangeSummary]:
        """Return what is known of some calls, their lines counted."""
        for call in among:
            facts = self._facts_of(ws, call)
            if facts.added is None:
                counts = [change_texts.counted(change_texts.diff_of(ws, one)) for one in entries_of(ws, call)]
                added, removed = (sum(one[name] for one in counts) for name in ("added", "removed"))
                self._facts[call.id] = facts._replace(added=added, removed=removed)
        return {call.id: self._facts[call.id] for call in among}

    def _facts_of(self, ws: Workspace, call: ChangeGroup) -> ChangeSummary:
        # An entry never changes, so what it says is kept; a command that still runs adds entries of their own.
        if call.id not in self._facts:
            made = entries_of(ws, call)
            paths = [path for entry in made for path in entry.paths[:_MOST_PATHS]][:_MOST_PATHS]
            about = next((entry.about for entry in made if entry.about), "")
            self._facts[call.id] = ChangeSummary(about, paths or [row.path for row in call.rows])
        return self._facts[call.id]


NOBODY: Final = "a person"
"""Who made a change that has no caller's name: a person at a terminal, or a program without a name."""

_ONE_FILE: Final = frozenset({"rye/file-system/edit_lines", "rye/file-system/write", "rye/file-system/undo"})


def _read(ws: Workspace) -> Timeline:
    past = History(ws)
    rows = {row.id: row for row in past}
    made = dict[str, list[Row]]()
    for row in rows.values():
        made.setdefault(row.batch or row.id, []).append(row)
    groups = [ChangeGroup(name, some) for name, some in made.items()]
    places = {name: at for at, call in enumerate(groups) for name in (call.id, *(row.id for row in call.rows))}
    return Timeline(groups, places, rows, past)


def entries_of(ws: Workspace, call: ChangeGroup) -> list[Entry]:
    """Return a call's entries, oldest first; those that are damaged are missing."""
    return [entry for row in reversed(call.rows) if (entry := history.entry_of(ws, row)) is not None]

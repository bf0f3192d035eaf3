"""What each page of `rye review` shows, as plain values for its template, and the pages that the templates make of them.

Each text is escaped, and what would hide or turn text around is named.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain, groupby, repeat
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from rye.call.safe_text import is_hidden
from rye.journal import file_history
from rye.journal.entries import Entry
from rye.journal.history import Row
from rye.process import job_report
from rye.review import diffs
from rye.review.changes import NOBODY, PER_PAGE, ChangeGroup, ChangeSummary, Query, Timeline, tool_name
from rye.review.colours import Colours
from rye.review.diffs import ShownFile
from rye.review.marks import ReviewMarks
from rye.workspace.workspace import Workspace

_PAGES: Final = (
    ("", "Changes", "1"),
    ("since", "Since you looked", "2"),
    ("jobs", "Jobs", "3"),
    ("tools", "Tools", "4"),
    ("keys", "Keys", "5"),
)
_KEYS: Final = (
    (("j", "k"), "the next, the previous item: a call, a file, a hunk"),
    (("Enter",), "open the item"),
    (("n", "p"), "the older, the newer call"),
    (("u",), "take back, or restore, the item; on a call's page without an item: the call"),
    (("U",), "take back, or restore, the whole call"),
    (("r",), "mark the item as reviewed, or not"),
    (("R",), "mark the whole call as reviewed, or not"),
    (("s",), "I have seen everything up to here"),
    (("/",), "search"),
    (("x",), "go to the stop button of the job (Enter presses it)"),
    (("a",), "go to the code field or the button that approves a key"),
    (("b",), "back to the list"),
    (("1", "5"), "the pages"),
    (("?",), "this help (Escape closes it)"),
)


class Frame(NamedTuple):
    """What a page needs besides its content.

    Attributes:
        base: the path that all addresses begin with.
        token: what a form must hold.
        project: the project's folder.
    """

    base: str
    token: str
    project: str


def render(
    frame: Frame, name: str, title: str, values: dict[str, Any], *, path: str = "", live: str = "", said: str = ""
) -> str:
    """Return a whole page.

    Args:
        frame: see `Frame`.
        name: its template.
        title: its heading.
        values: what the template shows.
        path: the entry of the navigation that it belongs to.
        live: the version of what it shows; with one, `live.js` asks for newer ones.
        said: what the last action came to; empty for nothing.
    """
    shared = {"frame": frame, "title": title, "path": path, "live": live, "said": said, "navigation": _PAGES, "keys": _KEYS}
    return _environment().get_template(f"{name}.html").render({"newline": "\n", **shared, **values})


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_shown,
    )
    # A text of several lines keeps their ends.
    made.filters |= {"text": lambda text: Markup("\n").join(map(_shown, text.split("\n"))), "moment": _moment}
    return made


def _shown(value: Any) -> Any:
    """Return a text as HTML, with hidden characters named; what is HTML already stays."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    if value.isascii() and (value.isprintable() or value == "\n"):
        return escape(value)
    named = Markup('<span class="odd">U+{}</span>')
    return Markup("").join(
        escape(char) if char == "\t" or not is_hidden(char) else named.format(f"{ord(char):04X}") for char in value
    )


def _moment(stamp: float | str, whole: bool = False) -> Markup:
    """Return a time in this machine's time zone as a `time` element: hour and minute, or all of it, as in its title."""
    there = time.localtime(float(stamp))
    machine = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(float(stamp)))
    full = time.strftime("%Y-%m-%d %H:%M:%S", there)
    text = full if whole else time.strftime("%H:%M", there)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(machine, full, text)


Values = dict[str, Any]

_SHOW: Final = (("", "all"), ("new", "new since you looked"), ("open", "not reviewed"), ("undone", "taken back"))
_MOST_ABOUT: Final = 200
_MOST_ACTORS: Final = 100
_LINES_PER_PAGE: Final = 4_000
_MAX_ALONE: Final = 20_000
_COLOURED_FILES: Final = 20
_MOST_FILES: Final = 100
_MOST_CHANGES: Final = 1_000
_SECONDS: Final = 2.0
_COMMAND: Final = 300


class TimelineView(NamedTuple):
    """What of the timeline is shown: the query, the number of the first call (from 0), and what it found."""

    query: Query
    first: int
    found: Sequence[ChangeGroup]

    @property
    def shown(self) -> Sequence[ChangeGroup]:
        """The calls of this page."""
        return self.found[self.first : self.first + PER_PAGE]

    def address(self, first: int) -> str:
        """Return the query of the address of a page."""
        asked = {name: value for name, value in self.query._asdict().items() if value}
        return urlencode(asked | ({"first": str(first)} if first else {}))


def timeline(now: Timeline, view: TimelineView, facts: Mapping[str, ChangeSummary], marks: ReviewMarks) -> Values:
    """Return the list of calls, and what it can be searched by."""
    count, following = len(view.found), view.first + PER_PAGE
    today, looked = time.time(), now.newer(marks.looked)
    # Each session of a client is a caller of its own: of many the newest.
    actors = sorted(list(dict.fromkeys(call.first.actor or NOBODY for call in now.groups))[:_MOST_ACTORS])
    tools = sorted({call.first.tool for call in now.groups})
    rows = [_timeline_row(now, call, facts[call.id], marks, looked) for call in view.shown]
    return {
        "query": view.query,
        "asked": any(view.query),
        "back": f"?{view.address(view.first)}",
        "new": len(now.groups) if looked is None else looked,
        "newest": now.groups[0].id if now.groups else "",
        "looked": marks.looked,
        "tools": [("", "any"), *((one, one.rpartition("/")[2]) for one in tools)],
        "actors": [("", "anyone"), *((one, one) for one in actors)],
        "show": _SHOW,
        "days": [(title, list(some)) for title, some in groupby(rows, lambda row: _day(row["time"], today))],
        "count": count,
        "first": view.first + 1,
        "last": min(following, count),
        "newer": view.address(max(view.first - PER_PAGE, 0)) if view.first > 0 else None,
        "older": view.address(following) if following < count else None,
    }


def _timeline_row(now: Timeline, call: ChangeGroup, facts: ChangeSummary, marks: ReviewMarks, looked: int | None) -> Values:
    row, about = call.first, " ".join(facts.about.split())
    undone = now.is_undone(call)
    new = looked is not None and now.places[call.id] < looked
    return {
        "id": call.id,
        "time": row.time,
        "tool": tool_name(row),
        "who": row.actor or NOBODY,
        "about": about if len(about) <= _MOST_ABOUT else f"{about[:_MOST_ABOUT]}…",
        "name": f"{tool_name(row)} {facts.about[:80] or row.path}",
        "path": facts.paths[0] if facts.paths else row.path,
        "more": call.files - 1,
        "undone": undone,
        "tags": [name for name, holds in (("new", new), ("taken back", undone), ("an undo", row.undoes is not None)) if holds],
        "reviewed": call.id in marks,
        "added": facts.added,
        "removed": facts.removed,
    }


def _day(stamp: float, now: float) -> str:
    """Return the day of a time, in words where it is near."""
    there = time.localtime(stamp)
    for text, before in (("Today", 0), ("Yesterday", 86_400)):
        if time.localtime(now - before)[:3] == there[:3]:
            return text
    return time.strftime("%A, %Y-%m-%d", there)


def change_title(call: ChangeGroup) -> str:
    """Return the heading of a call's page."""
    more = f" and {call.files - 1:,} more" if call.files > 1 else ""
    return f"{tool_name(call.first)}: {os.path.basename(call.first.path)}{more}"


def change(
    now: Timeline,
    call: ChangeGroup,
    entries: Sequence[Entry],
    files: Sequence[ShownFile],
    only: int | None,
    marks: ReviewMarks,
    colours: Colours,
) -> Values:
    """Return one call: what it was, and its files and hunks; with `only` a number, that file alone."""
    row, place, undone = call.first, now.places[call.id], now.is_undone(call)
    beside = sorted({name for entry in entries for name in entry.shared})
    shown, left = [], _LINES_PER_PAGE if only is None else _MAX_ALONE
    chosen = list(enumerate(files)) if only is None else list(enumerate(files))[only : only + 1]
    coloured = diffs.coloured(colours, [one for _, one in chosen[:_COLOURED_FILES]])
    for (number, one), sides in zip(chosen, chain(coloured, repeat(diffs.PLAIN)), strict=False):
        most = min(left, diffs.LINES_PER_FILE if only is None else _MAX_ALONE)
        made = diffs.parts(one, sides, most)
        left -= sum(max(len(part.rows), 1) for part in made)
        shown.append(_file(now, call, number, one, made, marks))
    return {
        "id": call.id,
        "newer": now.groups[place - 1].id if place else "",
        "older": now.groups[place + 1].id if place + 1 < len(now.groups) else "",
        "tool": tool_name(row),
        "who": row.actor or NOBODY,
        "time": row.time,
        "undoes": row.undoes,
        "beside": ", ".join(beside),
        "undone": undone,
        "undone_by": now.past.undone.get(row.id) if undone else None,
        "about": next((entry.about for entry in entries if entry.about), ""),
        "reviewed": call.id in marks,
        "count": call.files,
        "added": sum(one.added for one in files),
        "removed": sum(one.removed for one in files),
        "files": shown,
        "hidden": call.files - len(files),
    }


def _file(
    now: Timeline, call: ChangeGroup, number: int, one: ShownFile, made: Sequence[diffs.ShownPart], marks: ReviewMarks
) -> Values:
    taken = [hunk.undone_by != "" for hunk in one.hunks]
    reviewed = [f"{call.id}/{number}/{at}" in marks for at in range(max(len(one.hunks), 1))]
    return {
        "number": number,
        "path": one.path,
        "diff": one,
        "undone": all(taken) if taken else one.entry_id in now.past.undone,
        "reviewed": all(reviewed),
        "single": len(one.hunks) == 1,
        "left": len(one.hunks) - len(made),
        "parts": [
            part._asdict() | {"where": _where(part.hunk), "undone": taken[part.at], "reviewed": reviewed[part.at]}
            for part in made
        ],
    }


def _where(hunk: diffs.ShownHunk) -> str:
    return "mode" if hunk.note else f"line {hunk.new + 1:,}" if hunk.added else f"after line {hunk.new:,}"


def since(ws: Workspace, now: Timeline, marks: ReviewMarks, colours: Colours) -> Values:
    """Return what changed since the user looked last, file by file, whoever changed it."""
    last = {row.id for call in now.groups[: now.newer(marks.looked)] for row in call.rows}
    rows = [row for row in now.rows.values() if row.id in last]
    if not rows or len(rows) > _MOST_CHANGES:
        return {"changes": len(rows), "files": None}
    paths = list(file_history.touched(ws, rows))
    found, looked_at, end = list[ShownFile](), 0, time.monotonic() + _SECONDS
    for path in paths[:_MOST_FILES]:
        if time.monotonic() > end:
            break
        looked_at += 1
        one = _between(ws, path, rows)
        found += [] if one is None else [one]
    files = []
    for one, sides in zip(found, diffs.coloured(colours, found), strict=True):
        made = diffs.parts(one, sides, diffs.LINES_PER_FILE)
        files.append({"path": one.path, "diff": one, "parts": made, "left": len(one.hunks) - len(made)})
    hidden = len(paths) - looked_at
    return {"changes": len(rows), "count": len(paths), "files": files, "hidden": hidden, "newest": now.groups[0].id}


def _between(ws: Workspace, path: str, rows: Sequence[Row]) -> ShownFile | None:
    """Return a file between then and now; None where it is as it was."""
    known = file_history.of_file(ws, path, list(rows))
    if not known.steps:
        return diffs.ShownFile("", path, (), ["It changed; what it held then is not stored, or is no text."])
    first, last = known.steps[0], known.steps[-1]
    notes = [] if known.whole else ["Some of what changed is not stored, so the oldest changes are missing."]
    if first.before == last.after:
        return None
    found = diffs.of_contents(path, first.before, last.after)
    return found._replace(notes=[*notes, *found.notes])


def job(record: Mapping[str, Any]) -> Values:
    """Return a job as a row of the list."""
    text = " ".join(record["command"].split())
    short = text if len(text) <= _COMMAND else f"{text[:_COMMAND]}…"
    return {**record, "short": short, "words": job_report.status_words(job_report.status_fields(dict(record)))}


def tools(found: Sequence[Mapping[str, Any]], text: str) -> Values:
    """Return the tools that a text is found in: each with its verdict, who signed it, and what it may do."""
    fields, optional = ("item_id", "description", "verdict", "owner"), ("docstring", "hint", "signer", "space")
    chosen = [row for row in found if text.casefold() in " ".join(str(row.get(name, "")) for name in fields).casefold()]
    return {
        "text": text,
        "count": len(found),
        "tools": [
            {
                **dict.fromkeys((*fields, *optional), ""),
                **row,
                "may": _may(row),
                # Of what runs tools the hint only says that it is none itself.
                "runs_tools": row.get("tool_type") in ("runtime", "primitive"),
            }
            for row in chosen
        ],
    }


def _may(row: Mapping[str, Any]) -> str:
    if row.get("tool_type") in ("runtime", "primitive"):
        return "run tools"
    if row.get("space") == "system":
        effects: Mapping[str, bool] = row.get("effects") or {}
        return "read only" if effects.get("read_only") else "change files" if effects else ""
    return ", ".join(row.get("permissions") or ()) or "nothing"

"""The timeline as HTML: search and filters, and a row for each call."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple
from urllib.parse import urlencode

from rye.review.calls import NOBODY, PER_PAGE, Call, Facts, Found, Query, Timeline, tool_name
from rye.review.frame import Frame, button, day, lines, moment, shown, toggle
from rye.review.marks import Marks

_SHOW = (("", "all"), ("new", "new since you looked"), ("open", "not reviewed"), ("undone", "taken back"))
_MOST_ABOUT = 200
_MOST_ACTORS = 100


class View(NamedTuple):
    """What of the timeline is shown: the query, the number of the first call (from 0), and what it found."""

    query: Query
    first: int
    found: Found

    @property
    def shown(self) -> Sequence[Call]:
        """The calls of this page."""
        return self.found.calls[self.first : self.first + PER_PAGE]

    def address(self, first: int) -> str:
        """Return the query of the address of a page."""
        asked = {name: value for name, value in self.query._asdict().items() if value}
        return urlencode(asked | ({"first": str(first)} if first else {}))


def body(frame: Frame, now: Timeline, view: View, facts: Mapping[str, Facts], marks: Marks) -> str:
    """Return the list of calls."""
    count = len(view.found.calls)
    rows = _rows(frame, now, view, facts, marks)
    empty = "No call fits." if any(view.query) else "Nothing was changed by tools or commands in this project yet."
    back = f"?{view.address(view.first)}"
    listed = frame.form("mark", rows, {"back": back}, "list") if rows else f'<p class="empty">{empty}</p>'
    return f"{_since(frame, now, marks)}{_filters(frame, now, view.query)}{listed}{_more(frame, view, count)}"


def _since(frame: Frame, now: Timeline, marks: Marks) -> str:
    new = now.places.get(marks.looked, len(now.calls))
    if not new:
        return '<p class="since">Nothing new since you looked.</p>' if now.calls else ""
    words = f"{new:,} call{'s' if new > 1 else ''} since you looked." if marks.looked else f"{new:,} calls."
    seen = button("I have seen all of it", f"seen {now.calls[0].id}", "seen")
    link = f'<a href="{frame.base}/since">What changed since then</a>' if marks.looked else ""
    return frame.form("mark", f"<p>{words} {link} {seen}</p>", kind="since")


def _filters(frame: Frame, now: Timeline, query: Query) -> str:
    tools = sorted({call.first.tool for call in now.calls})
    # Each session of a client is a caller of its own: of many the newest.
    actors = sorted(list(dict.fromkeys(call.first.actor or NOBODY for call in now.calls))[:_MOST_ACTORS])
    return (
        f'<form method="get" action="{frame.base}/" role="search" class="filters" aria-label="Search and filter">'
        f'<label>Search <input type="search" id="search" name="text" value="{escape(query.text)}" '
        'placeholder="path, command, caller, ID"></label>'
        f"{_select('tool', 'Tool', [('', 'any'), *((one, one.rpartition('/')[2]) for one in tools)], query.tool)}"
        f"{_select('actor', 'Caller', [('', 'anyone'), *((one, one) for one in actors)], query.actor)}"
        f"{_select('show', 'Show', _SHOW, query.show)}<button>Search</button>"
        f'{f"""<a href="{frame.base}/">Clear</a>""" if any(query) else ""}</form>'
    )


def _select(name: str, label: str, options: Sequence[tuple[str, str]], chosen: str) -> str:
    rows = ""
    for value, text in options:
        mark = " selected" if value == chosen else ""
        rows += f'<option value="{escape(value)}"{mark}>{shown(text)}</option>'
    return f'<label>{label} <select name="{name}">{rows}</select></label>'


def _rows(frame: Frame, now: Timeline, view: View, facts: Mapping[str, Facts], marks: Marks) -> str:
    out: list[str] = []
    heading, moment_now = "", time.time()
    looked = now.places.get(marks.looked)
    for call in view.shown:
        title = day(call.first.time, moment_now)
        if title != heading:
            out += ["</ol>"] if heading else []
            out.append(f'<h2>{title}</h2><ol class="calls">')
            heading = title
        new = looked is not None and now.places[call.id] < looked
        out.append(_row(frame, now, call, facts[call.id], reviewed=call.id in marks, new=new))
    return "".join(out) + ("</ol>" if heading else "")


def _row(frame: Frame, now: Timeline, call: Call, facts: Facts, *, reviewed: bool, new: bool) -> str:
    row = call.first
    undone = now.is_undone(call)
    states = [name for name, holds in (("new", new), ("taken back", undone), ("an undo", row.undoes is not None)) if holds]
    tags = "".join(f'<span class="tag">{one}</span> ' for one in states)
    mark = button("✓" if reviewed else "○", f"mark {call.id}", "mark", kind="check")
    mark = toggle(mark, pressed=reviewed, name=f"Reviewed: {_name(call, facts)}")
    who = f'<span class="who">{shown(row.actor or NOBODY)}</span>'
    name = escape(call.id)
    what = f'<span class="tool">{shown(tool_name(row))}</span> {_what(call, facts)}'
    return (
        f'<li data-scope class="call{" undone" if undone else ""}">{mark}{moment(row.time)}'
        f'<a data-item id="c-{name}" href="{frame.base}/change/{name}">{what}</a>'
        f'<span class="tags">{tags}</span>{_lines(facts)}{who}</li>'
    )


def _name(call: Call, facts: Facts) -> str:
    return f"{tool_name(call.first)} {facts.about[:80] or call.first.path}"


def _what(call: Call, facts: Facts) -> str:
    count = call.files
    files = shown(facts.paths[0] if facts.paths else call.first.path) + (f" and {count - 1:,} more" if count > 1 else "")
    if not facts.about:
        return f'<span class="path">{files}</span>'
    about = facts.about if len(facts.about) <= _MOST_ABOUT else f"{facts.about[:_MOST_ABOUT]}…"
    return f'<code>{shown(" ".join(about.split()))}</code> <span class="path">{files}</span>'


def _lines(facts: Facts) -> str:
    if facts.added is None or facts.removed is None:
        return '<span class="lines" data-more></span>'
    return lines(facts.added, facts.removed)


def _more(frame: Frame, view: View, count: int) -> str:
    links = []
    if view.first > 0:
        links.append(f'<a rel="prev" data-key="p" href="{frame.base}/?{view.address(max(view.first - PER_PAGE, 0))}">Newer</a>')
    if view.first + PER_PAGE < count:
        links.append(f'<a rel="next" data-key="n" href="{frame.base}/?{view.address(view.first + PER_PAGE)}">Older</a>')
    last = min(view.first + PER_PAGE, count)
    range_shown = f"{view.first + 1:,} to {last:,} of {count:,} calls. " if count else ""
    left = view.found.unsearched
    unsearched = f"{left:,} older calls are not searched yet: search again to go on. " if left else ""
    return f'<p class="more">{range_shown}{unsearched}{" ".join(links)}</p>'

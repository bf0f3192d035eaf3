"""What changed since the user looked last, file by file, whoever changed it: as HTML."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from rye.journal import file_history
from rye.journal.history import Row
from rye.review import diff_lines, diffs
from rye.review.calls import Timeline
from rye.review.colours import Colours
from rye.review.diffs import FileDiff
from rye.review.frame import Frame, button
from rye.review.marks import Marks
from rye.workspace.workspace import Workspace

_MOST_FILES: Final = 100
_MOST_CHANGES: Final = 1_000
_SECONDS: Final = 2.0


def rows_since(now: Timeline, marks: Marks) -> Sequence[Row]:
    """Return the changes since then, newest first."""
    place = now.places.get(marks.looked, len(now.calls))
    last = {row.id for call in now.calls[:place] for row in call.rows}
    return [row for row in now.rows.values() if row.id in last]


def body(ws: Workspace, frame: Frame, now: Timeline, marks: Marks, colours: Colours) -> str:
    """Return the page's content."""
    rows = rows_since(now, marks)
    if not rows:
        return '<p class="empty">Nothing was changed since you looked.</p>'
    if len(rows) > _MOST_CHANGES:
        link = f'<a href="{frame.base}/">the timeline</a>'
        return f'<p class="empty">{len(rows):,} changes are too many to show as one: see {link}.</p>'
    paths = list(file_history.touched(ws, list(rows)))
    found, end = [], time.monotonic() + _SECONDS
    hidden = len(paths)
    for path in paths[:_MOST_FILES]:
        if time.monotonic() > end:
            break
        hidden -= 1
        one = _between(ws, path, rows)
        found += [] if one is None else [one]
    more = f'<p class="empty">{hidden:,} more files are not shown.</p>' if hidden > 0 else ""
    seen = button("I have seen all of it", f"seen {now.calls[0].id}", "seen")
    head = frame.form("mark", f"<p>{len(rows):,} changes of {len(paths):,} files. {seen}</p>", {"back": "since"}, "since")
    files = "".join(diff_lines.file(one, colours) for one in found)
    return f"{head}{files or '<p class=empty>All of it is as it was then.</p>'}{more}"


def _between(ws: Workspace, path: str, rows: Sequence[Row]) -> FileDiff | None:
    """Return a file between then and now; None where it is as it was."""
    known = file_history.of_file(ws, path, list(rows))
    if not known.steps:
        return diffs.FileDiff("", path, (), ["It changed; what it held then is not stored, or is no text."])
    first, last = known.steps[0], known.steps[-1]
    notes = [] if known.whole else ["Some of what changed is not stored, so the oldest changes are missing."]
    if first.before == last.after:
        return None
    found = diffs.of_contents(path, first.before, last.after)
    return found._replace(notes=[*notes, *found.notes])


def title(marks: Marks) -> str:
    """Return the page's heading."""
    return "Changes since you looked" if marks.looked else "All changes"

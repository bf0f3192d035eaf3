"""The pages of `rye review`: the templates that make them, and what of a change's lines they have room for.

Each text is escaped, and what would hide or turn text around is named.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from typing import Any, Final, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from rye.call.safe_text import is_hidden
from rye.journal import file_history
from rye.journal.history import Row
from rye.process import job_report
from rye.review import diffs
from rye.review.colours import Colours
from rye.review.diffs import ShownFile, ShownPart
from rye.workspace.workspace import Workspace

_LINES_PER_PAGE: Final = 4_000
_MAX_ALONE: Final = 20_000
_COLOURED_FILES: Final = 20
_MOST_FILES: Final = 100
_MOST_CHANGES: Final = 1_000
_SECONDS: Final = 2.0


def render(name: str, title: str, **values: Any) -> str:
    """Return a whole page.

    Args:
        name: its template.
        title: its heading.
        values: what the template shows, and what `frame.html` says that each page has.
    """
    return _environment().get_template(f"{name}.html").render(values, title=title)


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
    made.filters["text"] = lambda text: Markup("\n").join(map(_shown, text.split("\n")))
    made.filters |= {"moment": _moment, "day": _day}
    made.filters["job_words"] = lambda record: job_report.status_words(job_report.status_fields(record))
    made.globals["newline"] = "\n"
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


def _day(stamp: float) -> str:
    """Return the day of a time, in words where it is near."""
    there, now = time.localtime(stamp), time.time()
    for text, before in (("Today", 0), ("Yesterday", 86_400)):
        if time.localtime(now - before)[:3] == there[:3]:
            return text
    return time.strftime("%A, %Y-%m-%d", there)


class FileParts(NamedTuple):
    """A file on a page: its number among those of its change, and the hunks of it that the page has room for."""

    number: int
    file: ShownFile
    parts: Sequence[ShownPart]


def of_change(files: Sequence[ShownFile], only: int | None, colours: Colours) -> list[FileParts]:
    """Return the files of a call as its page shows them; with `only` a number, that file alone."""
    out, left = [], _LINES_PER_PAGE if only is None else _MAX_ALONE
    chosen = list(enumerate(files)) if only is None else list(enumerate(files))[only : only + 1]
    coloured = diffs.coloured(colours, [one for _, one in chosen[:_COLOURED_FILES]])
    for (number, one), sides in zip(chosen, chain(coloured, repeat(diffs.PLAIN)), strict=False):
        made = diffs.parts(one, sides, min(left, diffs.LINES_PER_FILE if only is None else _MAX_ALONE))
        left -= sum(max(len(part.rows), 1) for part in made)
        out.append(FileParts(number, one, made))
    return out


def since(ws: Workspace, rows: list[Row], colours: Colours) -> dict[str, Any]:
    """Return what some changes came to, file by file, whoever changed it; `files` is None for too many."""
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
    coloured = zip(found, diffs.coloured(colours, found), strict=True)
    files = [FileParts(0, one, diffs.parts(one, sides, diffs.LINES_PER_FILE)) for one, sides in coloured]
    return {"changes": len(rows), "count": len(paths), "files": files, "hidden": len(paths) - looked_at}


def _between(ws: Workspace, path: str, rows: list[Row]) -> ShownFile | None:
    """Return a file between then and now; None where it is as it was."""
    known = file_history.of_file(ws, path, rows)
    if not known.steps:
        return diffs.ShownFile("", path, (), ["It changed; what it held then is not stored, or is no text."])
    first, last = known.steps[0], known.steps[-1]
    notes = [] if known.whole else ["Some of what changed is not stored, so the oldest changes are missing."]
    if first.before == last.after:
        return None
    found = diffs.of_contents(path, first.before, last.after)
    return found._replace(notes=[*notes, *found.notes])

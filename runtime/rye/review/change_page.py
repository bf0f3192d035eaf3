"""One call as HTML: what it was, its files and hunks, and a button for each thing that can be done."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

from rye.journal.entries import Entry
from rye.review.calls import NOBODY, Call, Timeline, tool_name
from rye.review.colours import Colours
from rye.review.diff_lines import LINES_PER_FILE, DiffLines, head
from rye.review.diffs import FileDiff
from rye.review.frame import Frame, button, lines, moment, shown, shown_lines, toggle
from rye.review.marks import Marks

_LINES_PER_PAGE: Final = 4_000
_MAX_ALONE: Final = 20_000
_COLOURED_FILES: Final = 20


class Shown(NamedTuple):
    """What a call's page shows.

    Attributes:
        call, entries, files: the call, its entries, and what they did.
        only: the number of the one file that is shown; None: all of them.
    """

    call: Call
    entries: Sequence[Entry]
    files: Sequence[FileDiff]
    only: int | None = None


class _State(NamedTuple):
    """What became of a call."""

    now: Timeline
    marks: Marks
    call: Call

    def is_undone(self, one: FileDiff, number: int | None = None) -> bool:
        """Tell whether a file was taken back, by itself or with its entry; or one hunk of it (from 0)."""
        numbers = [hunk.number for hunk in (one.hunks if number is None else [one.hunks[number]])]
        if number is None and self.now.undoer_of(one.entry_id, one.path) is not None:
            return True
        return bool(numbers) and all(self.now.undoer_of(one.entry_id, one.path, each) is not None for each in numbers)

    def actions(self, one: FileDiff, file: int, hunk: int | None = None) -> str:
        """Return the buttons of a file, or of one hunk of it."""
        undone = self.is_undone(one, hunk)
        where = f"{file}" if hunk is None else f"{file} {hunk}"
        about = one.path if hunk is None else f"hunk {hunk + 1} of {one.path}"
        label = ("Restore" if undone else "Take back") + (" file" if hunk is None else "")
        undo = button(label, f"{'redo' if undone else 'undo'} {where}", "undo", about)
        mark = button("Reviewed", f"mark {where}", "mark", about, "check")
        reviewed = f"{self.call.id}/{where.replace(' ', '/')}" in self.marks
        tag = '<span class="tag">taken back</span>' if undone else ""
        return f'{tag}<span class="do">{undo}{toggle(mark, pressed=reviewed)}</span>'


def title(call: Call) -> str:
    """Return the heading of a call's page."""
    more = f" and {call.files - 1:,} more" if call.files > 1 else ""
    return f"{tool_name(call.first)}: {os.path.basename(call.first.path)}{more}"


def body(frame: Frame, now: Timeline, what: Shown, marks: Marks, colours: Colours) -> str:
    """Return a call's page."""
    state = _State(now, marks, what.call)
    files = _files(frame, state, what, colours)
    return f"{_about(frame, now, what)}{frame.form('act', _whole(state, what) + files, {'id': what.call.id}, 'diff')}"


def _about(frame: Frame, now: Timeline, what: Shown) -> str:
    row = what.call.first
    about = next((entry.about for entry in what.entries if entry.about), "")
    shared = sorted({name for entry in what.entries for name in entry.shared})
    facts = [
        f'<span class="tool">{shown(tool_name(row))}</span> by {shown(row.actor or NOBODY)}, {moment(row.time, whole=True)}',
        *([f"It undoes {_link(frame, row.undoes)}."] if row.undoes else []),
        *([f"Beside it ran {shown(', '.join(shared))}: some of this may be theirs."] if shared else []),
        *([f"It was taken back by {_link(frame, by)}." for by in [now.undone.get(row.id)] if by and now.is_undone(what.call)]),
    ]
    command = (
        f'<pre class="command" tabindex="0" role="region" aria-label="command">{shown_lines(about)}</pre>' if about else ""
    )
    return f'{_way(frame, now, what.call)}<p class="facts">{" ".join(f"<span>{one}</span>" for one in facts)}</p>{command}'


def _way(frame: Frame, now: Timeline, call: Call) -> str:
    place = now.places[call.id]
    links = [f'<a data-key="b" href="{frame.base}/#c-{escape(call.id)}">All changes</a>']
    for name, key, to in (("Newer", "p", place - 1), ("Older", "n", place + 1)):
        if 0 <= to < len(now.calls):
            links.append(f'<a data-key="{key}" href="{frame.base}/change/{escape(now.calls[to].id)}">{name}</a>')
    return f'<p class="way">{" ".join(links)}</p>'


def _link(frame: Frame, entry_id: str) -> str:
    return f'<a href="{frame.base}/change/{escape(entry_id)}">{escape(entry_id)}</a>'


def _whole(state: _State, what: Shown) -> str:
    undone = state.now.is_undone(what.call)
    reviewed = what.call.id in state.marks
    undo = button("Restore the call", "redo", "undo-call") if undone else button("Take back the call", "undo", "undo-call")
    mark = toggle(button("Reviewed", "mark", "mark-call", "the whole call", "check"), pressed=reviewed)
    tag = '<span class="tag">taken back</span>' if undone else ""
    added, removed = sum(one.added for one in what.files), sum(one.removed for one in what.files)
    count = what.call.files
    files = f"{count:,} file{'s' if count != 1 else ''}"
    return f'<p class="whole">{undo} {mark} {tag} <span>{files}</span> {lines(added, removed)}</p>'


def _files(frame: Frame, state: _State, what: Shown, colours: Colours) -> str:
    out: list[str] = []
    alone = what.only is not None
    left = _MAX_ALONE if alone else _LINES_PER_PAGE
    for number, one in enumerate(what.files):
        if what.only in (None, number):
            most = max(min(left, _MAX_ALONE if alone else LINES_PER_FILE), 0)
            coloured = colours if alone or number < _COLOURED_FILES else None
            text, count = _file(frame, state, number, one, DiffLines(one, coloured, most))
            left -= count
            out.append(text)
    hidden = what.call.files - len(what.files)
    if hidden > 0:
        out.append(f'<p class="empty">{hidden:,} more files are not shown; the call as a whole takes them back, too.</p>')
    return "".join(out)


def _file(frame: Frame, state: _State, number: int, one: FileDiff, made: DiffLines) -> tuple[str, int]:
    parts, used = [], 0
    for at in range(len(one.hunks)):
        if used >= made.most:
            address = f"{frame.base}/change/{escape(state.call.id)}?file={number}"
            parts.append(f'<p class="empty">{len(one.hunks) - at:,} more hunks: <a href="{address}">this file alone</a>.</p>')
            break
        text, count = made.of(at, made.most - used)
        parts.append(_hunk(state, number, at, one, text))
        used += count
    done = " undone" if state.is_undone(one) else ""
    top = head(one, state.actions(one, number), f"f{number}")
    inner = f"{top}{''.join(parts)}"
    return f'<section class="file{done}" data-scope aria-label="{escape(one.path)}">{inner}</section>', used


def _hunk(state: _State, file: int, at: int, one: FileDiff, text: str) -> str:
    hunk = one.hunks[at]
    inner = f'<p class="note">{shown(hunk.note)}</p>' if hunk.note else f"<pre>{text}</pre>"
    # Of a file with one hunk the file's own buttons say the same.
    if len(one.hunks) == 1:
        return inner
    where = "mode" if hunk.note else f"line {hunk.new + 1:,}" if hunk.added else f"after line {hunk.new:,}"
    done = " undone" if state.is_undone(one, at) else ""
    title_of = f'<h3 tabindex="-1" data-item id="f{file}h{at}">{at + 1} of {len(one.hunks)}, {where}</h3>'
    top = f'<div class="hunkhead">{title_of}{state.actions(one, file, at)}</div>'
    label = f"hunk {at + 1} of {escape(one.path)}"
    return f'<section class="hunk{done}" data-scope aria-label="{label}">{top}{inner}</section>'
